"""Mutants of a block: would the benches, the kernels and the proofs notice a fault in the hardware?

Yosys puts all mutants of a block into one netlist, selected by an input; it is built once, and each mutant meets the
traces of random runs and of kernels until one tells it from the golden model. What survives is compared with the block
itself:

1. all registers free and equal in both: are the next state and the outputs equal (SAT)? Then it is no mutant at all;
2. from reset on, can the outputs ever differ? ABC's PDR decides (``berkeley-abc``, if installed), else a bounded search
   with z3, which can only find differences.

Survivors that are not proved equal to the block count against the traces; they are listed with their source lines.

Proofs hold a block of another size, so they meet mutants of their own (:func:`refute`).
"""

from __future__ import annotations

import json
import random
import re
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Literal

from amaranth.back import rtlil
from amaranth.hdl import Assert, Cat, ClockDomain, ClockSignal, Instance, Module, Mux, Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from lockstep.models import cache
from lockstep.rtl import yosys
from lockstep.rtl.flat import Flat
from lockstep.spec import processes
from lockstep.verif import verilated
from lockstep.verif.blocks import Declaration
from lockstep.verif.formal import Proof, check, free_rtlil
from lockstep.verif.trace import Trace

SELECTOR = "mutsel"
HARDWARE = "a:src=*/rtl/*"  # selects the cells that are not a property's
PDR_SECONDS = 60
REFUTE_SECONDS = 120
MITER_SECONDS = 60
BITS = 3  # of a register or an output that are inverted, each by itself
BOUND = 12  # cycles of the search without PDR
GOLD, GATE = "_gold", "_gate"  # the block and its mutant; no block begins with an underscore

Verdict = Literal["killed", "equivalent", "different", "undecided"]


@dataclass(frozen=True)
class Mutant:
    """``change`` is Yosys' description, ``source`` where the cell comes from.

    ``run`` and ``kernel`` name the traces that kill it. Of the survivors, ``different`` ones are known to be faults,
    and nobody knows about the ``undecided`` ones.
    """

    change: str
    source: str
    verdict: Verdict
    run: str = ""
    kernel: str = ""


@dataclass(frozen=True)
class Mutation:
    """All mutants of a block."""

    block: str
    seed: int
    mutants: list[Mutant]

    def count(self, verdict: Verdict) -> int:
        return sum(mutant.verdict == verdict for mutant in self.mutants)

    def by(self, kind: Literal["run", "kernel"]) -> int:
        """How many a kind of trace kills, whatever the other does."""
        return sum(bool(getattr(mutant, kind)) for mutant in self.mutants)

    @property
    def score(self) -> float:
        """The share of mutants killed, of those that are not equivalent."""
        return self.count("killed") / max(1, len(self.mutants) - self.count("equivalent"))

    @property
    def survivors(self) -> list[Mutant]:
        return [mutant for mutant in self.mutants if mutant.verdict in ("different", "undecided")]

    def json(self) -> dict[str, Any]:
        verdicts: tuple[Verdict, ...] = ("killed", "equivalent", "different", "undecided")
        return {
            "block": self.block, "seed": self.seed, "mutants": len(self.mutants),
            **{verdict: self.count(verdict) for verdict in verdicts},
            "runs": self.by("run"), "kernels": self.by("kernel"),
            "score": self.score, "survivors": [asdict(mutant) for mutant in self.survivors],
        }  # fmt: skip


def mutate(
    declared: Declaration,
    configuration: str,
    runs: Sequence[Trace],
    count: int,
    seed: int,
    kernels: Sequence[Trace] = (),
    decide: bool = True,
) -> Mutation:
    """Play traces of a configuration, from random runs and from kernels, to ``count`` mutants.

    ``decide``: compare the survivors with the block; without it they are all ``undecided``.
    """
    design = netlist(declared, configuration)
    commands = _list(design, declared.name, count, seed)
    killers = _killers(declared, configuration, design, commands)

    def verdict(command: str, killed: bool) -> Verdict:
        if killed:
            return "killed"
        return compare(declared, configuration, design, command) if decide else "undecided"

    mutants = [
        Mutant(*_described(command), verdict(command, bool(run or kernel)), run, kernel)
        for command, run, kernel in zip(commands[1:], killers(runs), killers(kernels), strict=True)
    ]
    return Mutation(declared.block, seed, mutants)


def _killers(
    declared: Declaration, configuration: str, design: str, commands: Sequence[str]
) -> Callable[[Sequence[Trace]], list[str]]:
    """What tells, for each mutant, the trace that kills it, if one does."""
    ports = declared.ports(configuration)
    player = verilated.player(_selectable(design, commands), declared.name, ports, SELECTOR)

    def killers(traces: Sequence[Trace]) -> list[str]:
        if not traces:
            return [""] * (len(commands) - 1)
        unchanged, *told = verilated.play(player, traces, ports, len(commands) - 1)[0]
        if unchanged >= 0:
            raise RuntimeError(f"{declared.block}: without a mutation, {traces[unchanged].name} differs from the model")
        return [traces[trace].name if trace >= 0 else "" for trace in told]

    return killers


def told(
    declared: Declaration, configuration: str, finders: Mapping[str, Sequence[Trace]], count: int, seed: int
) -> dict[str, set[str]]:
    """``count`` mutants, each by its number, change and source lines, with all whose traces tell it from the block."""
    design = netlist(declared, configuration)
    commands = _list(design, declared.name, count, seed)
    killers = _killers(declared, configuration, design, commands)
    mutants = list(enumerate(commands))[1:]  # number 0 changes nothing
    found = {" ".join([str(number), *_described(command)]): set[str]() for number, command in mutants}
    for name, traces in finders.items():
        for mutant, killer in zip(found, killers(traces), strict=True):
            if killer:
                found[mutant].add(name)
    return found


def everywhere(declared: Declaration, configuration: str, runs: Sequence[Trace], seed: int) -> dict[str, list[str]]:
    """Invert bits, up to :data:`BITS`, of every register, memory and output; by place the traces that kill, or "".

    An output that only repeats an input has no place.
    """
    design = netlist(declared, configuration)
    places = list(_places(design, declared, random.Random(f"{declared.block} {seed}")))
    width = len(places).bit_length()
    commands = [
        f"mutate -mode {mode} -module {declared.name} -ctrl {SELECTOR} {width} {number} {where}"
        for number, (mode, where) in enumerate([("none", ""), *(("inv", where) for _, where in places)])
    ]
    found: dict[str, list[str]] = {}
    for (place, _), killer in zip(places, _killers(declared, configuration, design, commands)(runs), strict=True):
        found.setdefault(place, []).append(killer)
    return found


def _places(design: str, declared: Declaration, rng: random.Random) -> Iterator[tuple[str, str]]:
    """Names of places, and what ``mutate`` takes for a bit of them."""
    text = yosys.run(["read_rtlil design.il", "write_json design.json"], {"design.il": design}, ["design.json"])
    module = json.loads(text["design.json"])["modules"][declared.name]
    names = {
        bit: name
        for name, net in sorted(module["netnames"].items(), key=lambda item: item[1]["hide_name"], reverse=True)
        for bit in net["bits"]
    }  # of several, one from the source
    drivers: dict[int | str, str] = {}
    for name, cell in module["cells"].items():
        for port, direction in cell["port_directions"].items():
            bits = cell["connections"][port]
            if direction == "output":
                drivers |= {bit: f"-cell {name} -port {port} -portbit {k}" for k, bit in enumerate(bits)}
        state = "Q" if "Q" in cell["connections"] else "WR_DATA" if cell["type"] == "$mem_v2" else ""
        if state:
            bits = cell["connections"][state]
            place = names[bits[0]] if state == "Q" else name.rpartition(".")[2]
            for k in rng.sample(range(len(bits)), min(BITS, len(bits))):
                yield f"state {place}", f"-cell {name} -port {state} -portbit {k}"
    for name, port in module["ports"].items():
        driven = [drivers[bit] for bit in port["bits"] if bit in drivers]
        if port["direction"] == "output":
            yield from ((f"output {name}", where) for where in rng.sample(driven, min(BITS, len(driven))))


def refute(block: str, name: str, proof: Proof, count: int, seed: int) -> Mutation:
    """Try a proof on up to ``count`` mutants of the hardware in it; those that it refutes are killed.

    Outputs of flip-flops are left alone: a mutated one loses its initial value, with which a proof begins.
    """
    script = ["read_rtlil in.il", "hierarchy -top top", "proc -norom", "flatten", "opt_clean", "write_rtlil out.il"]
    design = yosys.run(script, {"in.il": free_rtlil(proof.build())}, ["out.il"])["out.il"]
    mutants = []
    for command in _list(design, "top", count, seed, HARDWARE)[1:]:
        change, source = _described(command)
        if "-port Q " in change:
            continue
        script = ["read_rtlil in.il", _alone(command, "top"), "write_rtlil out.il"]
        text = yosys.run(script, {"in.il": design}, ["out.il"])["out.il"]
        with tempfile.TemporaryDirectory() as folder:
            outcome = check(name, text, proof.mode, proof.depth, Path(folder), REFUTE_SECONDS, proof.words)
        refuted = not (outcome.passed or outcome.undecided)
        mutants.append(Mutant(change, source, "killed" if refuted else "undecided"))
    return Mutation(block, seed, mutants)


def _alone(command: str, module: str) -> str:
    """A mutation of this module that no input selects."""
    return re.sub(r"-module \S+", f"-module {module}", re.sub(r"-ctrl \S+ \d+ \d+ ", "", command))


def netlist(declared: Declaration, configuration: str) -> str:
    """The block as RTLIL: one module, flat ports, cells with their source lines, without bits that nothing reads."""
    flat = Flat(declared.component(configuration))
    text = rtlil.convert(flat, name=declared.name, ports=list(flat.signals.values()))
    script = [
        "read_rtlil in.il", f"hierarchy -top {declared.name}", "proc -norom", "flatten", "opt_expr -fine", "wreduce",
        "opt_clean", "memory_collect", "write_rtlil out.il",
    ]  # fmt: skip
    return yosys.run(script, {"in.il": text}, ["out.il"])["out.il"]


# A clock through a gate is late, and Yosys takes no other enables and resets of an asynchronous read port than its own.
_NO_LOGIC = re.compile(r"-port \S*(CLK|RD_EN|RD_SRST|RD_ARST) ")


def _list(design: str, name: str, count: int, seed: int, selection: str = "") -> list[str]:
    """The commands that make the mutants; number 0 changes nothing."""
    listing = f"mutate -list {2 * count + 1} -seed {seed} -none -ctrl {SELECTOR} 1 0 -o list {selection}"
    script = ["read_rtlil design.il", f"cd {name}", listing]
    listed = yosys.run(script, {"design.il": design}, ["list"])["list"].splitlines()
    kept = [command for command in listed if not _NO_LOGIC.search(command)][: count + 1]
    width = count.bit_length()
    return [re.sub(r"-ctrl \S+ \d+ \d+", f"-ctrl {SELECTOR} {width} {n}", command) for n, command in enumerate(kept)]


def _selectable(design: str, commands: Sequence[str]) -> str:
    """Verilog with all mutants."""
    script = ["read_rtlil design.il", *commands, "opt_clean", "write_verilog -noattr out.v"]
    return yosys.run(script, {"design.il": design}, ["out.v"])["out.v"]


def _described(command: str) -> tuple[str, str]:
    """A mutation's change and its source lines, the innermost first."""
    sources = [Path(path) for path in re.findall(r"-src (\S+)", command)]
    near = [_relative(path) for path in sources if "rtl" in path.parts and not path.name.startswith("flat.py")]
    change = re.sub(r"-(ctrl \S+ \d+ \d+|src \S+|module \S+) ?", "", command.removeprefix("mutate ")).strip()
    return change, ", ".join(near)


def _relative(path: Path) -> str:
    file, _, line = path.name.partition(":")
    whole = path.with_name(file).resolve()
    return f"{whole.relative_to(cache.ROOT) if whole.is_relative_to(cache.ROOT) else whole}:{line}"


def compare(declared: Declaration, configuration: str, design: str, command: str) -> Verdict:
    """A mutant against the block: ``equivalent``, ``different`` or ``undecided``."""
    copied = ["read_rtlil design.il", f"copy {declared.name} {GATE}", f"rename {declared.name} {GOLD}"]
    both = [*copied, *_without_initial(command), _alone(command, GATE), "memory_map"]
    files = {"design.il": design, "miter.il": rtlil.convert(Miter(declared, configuration))}
    try:
        yosys.run([*both, "opt_clean", *_ANY_STATE], files)
        return "equivalent"
    except yosys.YosysError:
        pass  # not equal in all states, or the mutation hides a register
    miter = [*both, "read_rtlil miter.il", "hierarchy -top top", "proc -norom", "flatten"]
    with tempfile.TemporaryDirectory() as folder:
        if shutil.which("berkeley-abc"):
            return _reachable([*miter, "chformal -remove", *_GATES], files, Path(folder))
        text = yosys.run([*miter, "write_rtlil top.il"], files, ["top.il"])["top.il"]
        outcome = check("miter", text, "bmc", BOUND, Path(folder), MITER_SECONDS)
        return "undecided" if outcome.passed or outcome.undecided else "different"


def _without_initial(command: str) -> list[str]:
    """Takes the initial value from the register whose output is mutated: it would be that of the mutation, too."""
    register = re.search(r"-port Q .*-wire (\S+) ", command)
    return [f"setattr -unset init {GATE}/w:{register[1]}"] if register else []


_ANY_STATE = (
    f"expose -evert-dff {GOLD} {GATE}", f"miter -equiv -flatten {GOLD} {GATE} top", "cd top", "opt -full",
    "sat -verify -prove trigger 0 -timeout 20",
)  # fmt: skip
_GATES = (
    "techmap", "opt -fast", "dfflegalize -cell $_DFF_P_ 01", "opt_clean", "setundef -undriven -zero",
    "write_blif miter.blif",
)  # fmt: skip


class Miter(wiring.Component):
    """Two instances with the same inputs, the block and its mutant. ``differ``: some output is not the same.

    The first cycle is a reset, since a mutated flip-flop loses its initial value. Reset is an input as any other, and a
    cycle whose inputs break the protocol becomes one: so all that is reached is legal.
    """

    def __init__(self, declared: Declaration, configuration: str) -> None:
        self.declared, self.parameters = declared, declared.configurations[configuration]
        self.ports = declared.ports(configuration)
        super().__init__(
            {**{port.name: In(port.bits) for port in self.ports if port.is_input}, "reset": In(1), "differ": Out(1)}
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        m.domains.sync = domain = ClockDomain(local=True)
        first, legal = Signal(init=1, reset_less=True), Signal()
        m.d.sync += first.eq(0)
        m.d.comb += [domain.clk.eq(ClockSignal("outer")), domain.rst.eq(first | self.reset | ~legal)]
        inputs = {port.name: getattr(self, port.name) for port in self.ports if port.is_input}
        outputs = []
        for name in (GOLD, GATE):
            driven = {port.name: Signal(port.bits) for port in self.ports if not port.is_input}
            m.submodules[name] = Instance(
                name, i_clk=domain.clk, i_rst=domain.rst,
                **{f"i_{port}": Mux(legal & ~first, signal, 0) for port, signal in inputs.items()},
                **{f"o_{port}": signal for port, signal in driven.items()},
            )  # fmt: skip
            outputs.append(driven)
        gold, gate = outputs
        m.d.comb += [
            legal.eq(self.declared.protocol(m, self.parameters, {**inputs, **gold})),
            self.differ.eq((Cat(*gold.values()) != Cat(*gate.values())) & ~first),
            Assert(~self.differ),
        ]
        return m


def _reachable(script: Sequence[str], files: dict[str, str], folder: Path) -> Verdict:
    """PDR: can the miter's output become 1, from the initial state on?"""
    (folder / "miter.blif").write_text(yosys.run(script, files, ["miter.blif"])["miter.blif"], encoding="utf-8")
    command = ["berkeley-abc", "-c", "read_blif miter.blif; strash; &get; &scl; &lcorr; &scorr; &put; dc2; pdr"]
    try:
        done = processes.run(command, folder, timeout=PDR_SECONDS)
    except subprocess.TimeoutExpired:
        return "undecided"
    told: dict[str, Verdict] = {"Property proved": "equivalent", "was asserted in frame": "different"}
    return next((verdict for text, verdict in told.items() if text in done.stdout), "undecided")
