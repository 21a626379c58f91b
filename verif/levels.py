"""What ``lockstep verify`` runs: checks of blocks, by level.

======== ===========================================================================================================
smoke    the netlist's combinational paths against the declared ones, lint, a short run of each configuration
random   every configuration and shape of stimulus with as many seeds as asked for, and the coverage of all of them; the
         bits of each port that are reached with the parameters that ship, and that idle cycles leave the state alone;
         *combinations*: every pair of mechanisms that may be combined, on all kernels;
         *modes*: all kernels interpreted, with bounds checks, and with each mechanism without skipping idle cycles;
         *threads*: all kernels, alone, with each mechanism and some pairs, and programs that race, with several threads
formal   the proofs, that what a bench waives in code coverage cannot be reached, and that Verilog to read means what
         Verilog with a wire for each operator means
mutation mutants of the hardware against the random runs, replay files of kernels, and the proofs
gates    that the gates of synthesis do what the RTL does, proved for the blocks for which this takes seconds
kernels  every kernel at size tiny with the blocks in all of two SMs, every output compared with the model's; what the
         blocks met in them (:mod:`.exercised`)
soak     of no block, but of the simulator: launches in great number, threads, processes, signals (:mod:`.soak`)
======== ===========================================================================================================
"""

from __future__ import annotations

import os
import random
import tempfile
import time
import xml.etree.ElementTree as ElementTree
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any

from lockstep.models.blocks import instances
from lockstep.rtl import netlist, registry
from lockstep.sim import kernels
from lockstep.sim.cosim.replay import Replay, load
from lockstep.sim.cosim.run import cosim
from lockstep.sim.device import description
from lockstep.sim.errors import UsageError
from lockstep.sim.study import comparison
from lockstep.sim.study.job import Job as KernelJob
from lockstep.spec.files import write
from lockstep.spec.frame import DEFAULTS, FRAME
from lockstep.spec.processes import side_by_side
from lockstep.spec.registry import MECHANISMS, resolve
from lockstep.synth import equivalence
from lockstep.verif import combinations, exercised, formal, modes, soak, threads, verilated, waivers
from lockstep.verif.blocks import Declaration, blocks, declaration, proofs
from lockstep.verif.coverage import KINDS, Coverage, functional, measure, waived
from lockstep.verif.mutation import everywhere, mutate, refute
from lockstep.verif.simulate import simulate
from lockstep.verif.trace import Run, kept, record, replayed

LEVELS = ("smoke", "random", "formal", "mutation", "gates", "kernels", "soak")
SMOKE_CYCLES = 300
MUTANTS = 300
MUTATED = "odd"  # small enough to decide about survivors, and nothing in it is a power of two
KERNELS = "kernels"  # the configuration of replay files
REFUTED = 15  # one mutant of so many meets each proof, too
SCORE = 0.95  # of the mutants that are not equivalent, those that must be killed


@dataclass(frozen=True)
class Check:
    """One check that was done. ``errors``: what is wrong, a line each; ``detail``: its figures, for people."""

    block: str
    name: str
    errors: list[str]
    detail: str = ""
    data: dict[str, Any] = field(default_factory=dict)
    seconds: float = 0.0

    @property
    def passed(self) -> bool:
        return not self.errors


@dataclass(frozen=True)
class Options:
    """``seed`` is the first of ``seeds``. ``folder``: where coverage reports go, if anywhere.

    A soak makes so many ``launches``, and strikes each command at so many ``moments`` with each signal.

    ``replays`` of kernels are played to mutants, beside the random runs. Kernels of ``size`` run on ``gpu`` with
    ``settings``, which combinations and modes take, too.
    """

    level: str
    seed: int
    seeds: int = 1
    mutants: int = MUTANTS
    launches: int = soak.LAUNCHES
    moments: int = soak.MOMENTS
    folder: Path | None = None
    replays: Sequence[Path] = ()
    gpu: str = "gtx480"
    settings: Mapping[str, Any] = field(default_factory=dict)
    size: str = "tiny"


Job = Callable[[], Check]


def base_seed(otherwise: int | None = None) -> int:
    """The seed that ``LOCKSTEP_SEED`` asks for; without it ``otherwise``, or a random one."""
    return int(os.environ.get("LOCKSTEP_SEED", random.randrange(1 << 32) if otherwise is None else otherwise))


def targets(level: str = LEVELS[0]) -> list[str]:
    """What can be verified at a level."""
    return [*soak.PARTS] if level == "soak" else [*blocks(), combinations.TARGET, modes.TARGET, threads.TARGET]


def find(names: Sequence[str], level: str = LEVELS[0]) -> list[str]:
    """The blocks, combinations, modes and threads, or parts of a soak, that names stand for
    (:func:`lockstep.rtl.registry.select`).

    Raises
    ------
    KeyError
        with the first name that stands for nothing.
    """
    known = targets(level)
    found: list[str] = []
    for name in names:
        matching = registry.select(name, known)
        if not matching:
            raise KeyError(name)
        found += [block for block in matching if block not in found]
    return found


def verify(names: Sequence[str], options: Options, jobs: int | None = None) -> Iterator[Check]:
    """Do all checks of a level on blocks, several at a time; yields them in order."""
    planned = list(_planned(names, options))

    def run(block: str, job: tuple[str, Job]) -> Check:
        name, function = job
        started = time.monotonic()
        try:
            check = function()
        except Exception as error:  # a check that breaks has failed, and the others go on
            check = Check(block, name, [f"{type(error).__name__}: {error}"])
        return Check(block, name, check.errors, check.detail, check.data, time.monotonic() - started)

    done = []
    for check in side_by_side(lambda item: run(*item), planned, jobs):
        done.append(check)
        yield check
    if options.level == "kernels":
        found = exercised.together([check.data.get("bins", {}) for check in done])
        yield from (_exercised(declaration(name), found[name]) for name in names if name in found)


def _planned(names: Sequence[str], options: Options) -> Iterator[tuple[str, tuple[str, Job]]]:
    """All checks of a level: of which block, and its name."""
    if options.level == "kernels":
        yield from _on_kernels(names, options)
        return
    if options.level == "soak":
        for name, part in soak.plan(names, options.seed, options.launches, options.moments):
            yield "soak", (name, partial(_soaked, part))
        return
    if options.level == "gates":
        names = _proved_in_gates(names)
    for name in names:
        joint = {combinations.TARGET: _combinations, modes.TARGET: _modes, threads.TARGET: _threads}.get(name)
        if joint:
            description.load("gtx480", options.settings)  # raises UsageError
        checks = joint(options) if joint else _plan(declaration(name), options)
        yield from ((name, check) for check in checks)


def _proved_in_gates(names: Sequence[str]) -> list[str]:
    """The blocks whose gates are proved. Raises :class:`UsageError` if there is none."""
    found = [name for name in names if name in blocks() and declaration(name).gates]
    if not found:
        able = ", ".join(name for name in blocks() if declaration(name).gates)
        raise UsageError(f"{', '.join(names)}: its gates are not proved, which takes too long; those of {able} are")
    return found


def _soaked(part: Callable[[], soak.Outcome]) -> Check:
    errors, detail = part()
    return Check("soak", "", errors, detail)


def _plan(declared: Declaration, options: Options) -> Iterator[tuple[str, Job]]:
    """The checks of one block, by name."""
    if options.level == "smoke":
        yield "netlist", partial(_netlist, declared)
        for configuration in declared.configurations:
            yield f"lint, {configuration}", partial(_lint, declared, configuration)
            runs = [smoke(declared, configuration, options.seed)]
            yield f"run, {configuration}", partial(_run, declared, configuration, runs, SMOKE_CYCLES)
    elif options.level == "random":
        yield "random", partial(_random, declared, options)
    elif options.level == "formal":
        for name in proofs(declared.block):
            yield name, partial(_proof, declared, name)
        if not proofs(declared.block):
            yield "proofs", partial(Check, declared.block, "", ["there is none: nothing about this block is proved"])
        for configuration in declared.measured:
            if (alone := declared.alone(configuration)).waivers:
                yield f"waivers, {configuration}", partial(_waivers, alone)
        if not any(instances(declared.model().STATE)):  # a unit's parts are blocks
            yield "expressions", partial(_expressions, declared)
    elif options.level == "gates":
        yield "equivalence", partial(_equivalence, declared)
    else:
        yield "mutation", partial(_mutation, declared, options)
        yield "mutation, every register and output", partial(_everywhere, declared, options)
        yield from _kernels(declared, options)
        for name, proof in proofs(declared.block).items():
            if proof.mode != "cover":
                yield f"mutation, proof {name!r}", partial(_refutation, declared, name, proof, options)


def _on_kernels(names: Sequence[str], options: Options) -> Iterator[tuple[str, tuple[str, Job]]]:
    """The checks of blocks by the mechanism that has them; those that the frame has, without a mechanism.

    Raises :class:`UsageError` if no kernel has any of them, or for a GPU or settings that there are not.
    """
    frame = {block for each in (FRAME, *DEFAULTS) for block in each.blocks}
    having = {"baseline": frame, **{name: _blocks_of(name) for name in MECHANISMS}}
    chosen = {name: there for name, its in having.items() if (there := [block for block in names if block in its])}
    if not chosen:
        raise UsageError(f"{', '.join(names)}: no kernel has it: it is verified by itself, at the other levels")
    settings = {"core.sms": 2, **options.settings}
    for name, there in chosen.items():
        mechanisms = comparison.mechanisms(name)
        description.load(options.gpu, settings, mechanisms)
        alone = KernelJob("", options.gpu, options.size, mechanisms=mechanisms, settings=settings)
        runs = [(kernel, replace(alone, kernel=kernel)) for kernel in kernels.names()]
        for kernel, less, second in exercised.contended(name, there):
            job = replace(alone, kernel=kernel, settings={**settings, **less, **options.settings})
            if second:
                job = replace(job, secondary=replace(alone, kernel=second), repeat=True)
            runs.append((f"{kernel}{f' beside {second}' if second else ''}, contended", job))
        for title, job in runs:
            yield name, (title, partial(_kernel, name, job, ",".join(there)))


def _blocks_of(mechanism: str) -> set[str]:
    """Those of a mechanism, and of the ones that it requires."""
    return {block for name in resolve([mechanism]) for block in MECHANISMS[name].blocks}


def _kernel(mechanism: str, job: KernelJob, rtl: str) -> Check:
    with tempfile.TemporaryDirectory() as folder:
        result = cosim(job, rtl, record=folder)
        bins = exercised.recorded(Path(folder))
    errors = [] if result["checked"] else [result["message"]]
    if result["mismatches"]:
        errors.append(f"again: {result['difference']['again']}")
    detail = f"{result['compared_cycles']:,} cycles of blocks compared, {result['mismatches']} mismatches"
    shown = ("cycles", "compared_cycles", "cycles_per_second", "mismatches")
    data = {name: result[name] for name in shown if name in result}
    return Check(mechanism, "", errors, detail, {**data, "bins": bins})


def _exercised(declared: Declaration, bins: Mapping[str, int]) -> Check:
    errors = [f"no kernel hit the bin: {name}" for name in exercised.missed(declared, bins)]
    never = [name for name, cycles in bins.items() if not cycles]
    detail = f"{len(bins) - len(never)} of {len(bins)} bins that ports decide; not: {', '.join(never) or 'none'}"
    return Check(declared.block, "bins that kernels hit", errors, detail, {"bins": dict(bins)})


def _combinations(options: Options) -> Iterator[tuple[str, Job]]:
    if options.level == "random":
        yield "pairs", lambda: Check(combinations.TARGET, "", [], combinations.summary())
        for pair in combinations.pairs():
            yield "+".join(pair), partial(_pair, pair, options.settings)


def _pair(pair: combinations.Pair, settings: Mapping[str, Any]) -> Check:
    return Check(combinations.TARGET, "", combinations.check(pair, settings), f"{len(kernels.names())} kernels")


def _modes(options: Options) -> Iterator[tuple[str, Job]]:
    if options.level == "random":
        names = kernels.names()
        for name in names:
            yield f"interpreted, {name}", partial(_mode, modes.interpreting, [name], options)
        yield "with bounds checks", partial(_mode, modes.checking, names, options)
        for mechanism in MECHANISMS:
            yield f"without skipping, {mechanism}", partial(_unskipped, mechanism, names, options)


def _threads(options: Options) -> Iterator[tuple[str, Job]]:
    if options.level == "random":
        names = kernels.names()
        configurations: list[tuple[str, Sequence[str]]] = [(gpu, ()) for gpu in threads.GPUS]
        configurations += [(gpu, (mechanism,)) for gpu in threads.GPUS for mechanism in MECHANISMS]
        configurations += [("gtx480", pair) for pair in threads.pairs(options.seed)]
        for gpu, mechanisms in configurations:
            if threads.fits(gpu, mechanisms):
                yield "+".join((gpu, *mechanisms)), partial(_divided, gpu, mechanisms, names)
        seeds = range(options.seed, options.seed + threads.RACES)
        for first in range(0, threads.RACES, 100):
            yield f"races from {seeds[first]} on", partial(_raced, seeds[first : first + 100])


def _divided(gpu: str, mechanisms: Sequence[str], names: Sequence[str]) -> Check:
    return Check(threads.TARGET, "", *threads.check(gpu, mechanisms, names))


def _raced(seeds: Sequence[int]) -> Check:
    return Check(threads.TARGET, "", threads.races(seeds, threads.REPEATS), f"{len(seeds)} programs")


Mode = Callable[[Sequence[str], Mapping[str, Any]], list[str]]


def _mode(mode: Mode, names: Sequence[str], options: Options) -> Check:
    return Check(modes.TARGET, "", mode(names, options.settings), f"{len(names)} kernels")


def _unskipped(mechanism: str, names: Sequence[str], options: Options) -> Check:
    return Check(modes.TARGET, "", modes.skipping(names, mechanism, options.settings), f"{len(names)} kernels")


def _netlist(declared: Declaration) -> Check:
    """Each difference names its configuration, and what to do about it."""
    found = {name: netlist.check(declared.component(name)) for name in declared.configurations}
    errors = [
        f"{_shown(declared, name)}: {mismatch}; {_remedy(mismatch, found)}"
        for name, mismatches in found.items()
        for mismatch in mismatches
    ]
    return Check(declared.block, "", errors)


def _shown(declared: Declaration, configuration: str) -> str:
    arguments = ", ".join(f"{key}={value}" for key, value in declared.configurations[configuration].items())
    return f"{configuration!r} ({arguments})"


def _remedy(mismatch: netlist.Mismatch, found: Mapping[str, Sequence[netlist.Mismatch]]) -> str:
    if not mismatch.declared:
        return f"declare it, as in {{{mismatch.output!r}: ({mismatch.source!r},)}}, or cut it by a register"
    having = [repr(name) for name, mismatches in found.items() if mismatch not in mismatches]
    if not having:
        return "no configuration has this path: take it out of 'combinational'"
    return f"{', '.join(having)} have this path: build it for these arguments, too, or refuse them"


def _lint(declared: Declaration, configuration: str) -> Check:
    return Check(declared.block, "", verilated.lint(declared.verilog(configuration), declared.name))


def _run(declared: Declaration, configuration: str, runs: Sequence[Run], cycles: int) -> Check:
    report = simulate(declared, configuration, runs, cycles)
    return Check(declared.block, "", report.failures, f"{cycles * len(runs):,} cycles")


def smoke(declared: Declaration, configuration: str = MUTATED, seed: int = 1) -> Run:
    """What is run for :data:`SMOKE_CYCLES`."""
    return Run(configuration, declared.shapes[0], seed)


def runs(declared: Declaration, configuration: str, seed: int, seeds: int) -> list[Run]:
    """Every shape with every seed."""
    return [Run(configuration, shape, seed + n) for n in range(seeds) for shape in declared.shapes]


def _random(declared: Declaration, options: Options) -> Check:
    """All configurations in the simulator; code coverage of those that are measured from the same runs."""
    errors: list[str] = []
    bins: dict[str, Counter[str]] = {}
    shipped: dict[str, dict[str, int]] = {}  # bits of each port that were both 0 and 1 in the configuration that ships
    cycles = 0
    for configuration in declared.configurations:
        planned = runs(declared, configuration, options.seed, options.seeds)
        report = simulate(declared, configuration, planned)
        errors += report.failures
        bins[configuration] = report.bins
        if configuration == declared.shipped:
            bits, ports = report.reached.bits(), declared.ports(configuration)
            shipped = {port.name: {"reached": bits.get(port.name, 0), "of": port.bits} for port in ports}
        cycles += declared.cycles * len(planned)
    errors += functional(declared, bins)
    measured: dict[str, Coverage] = {}
    for configuration, seeds in declared.measured.items():
        planned = runs(declared, configuration, options.seed, max(seeds, options.seeds))
        traces = [record(declared, run, simulated=True) for run in planned]
        coverage = measured[configuration] = measure(declared.alone(configuration), traces)
        errors += [f"{configuration}: {error}" for error in coverage.errors]
        if options.folder:
            name = declared.block if configuration == declared.first else f"{declared.block}.{configuration}"
            source = options.folder / f"{name}.v"
            write(source, declared.counted(configuration))
            write(options.folder / f"{name}.info", coverage.lcov(str(source)))
    able = [counts[name] for configuration, counts in bins.items() for name in declared.able(configuration)]
    detail = f"{cycles:,} cycles; bins {sum(map(bool, able))} of {len(able)}"
    for configuration, coverage in measured.items():
        counts = {kind: coverage.share(kind) for kind in KINDS}
        shares = ", ".join(f"{kind} {reached} of {able}" for kind, (reached, able) in counts.items() if able)
        detail += f"; {configuration!r}: {shares}; {len(coverage.waived)} waived"
    if shipped:
        reached, of = (sum(port[key] for port in shipped.values()) for key in ("reached", "of"))
        detail += f"; {declared.shipped!r}, which ships: {reached} of {of} bits of ports"
    data = {
        "cycles": cycles,
        "bins": {configuration: dict(counts) for configuration, counts in bins.items()},
        "coverage": {configuration: coverage.json() for configuration, coverage in measured.items()},
        "shipped": shipped,
    }
    return Check(declared.block, "", errors, detail, data)


def replay(path: Path) -> Check:
    """Play a replay file of a co-simulation to the block's hardware, by its cocotb bench."""
    file = load(path)
    if not file.cycles:  # its launch had no use for the block
        return Check(file.block, f"replay {path.name}", [], "no cycles")
    declared = replace(declaration(file.block), configurations={path.name: file.parameters})
    report = simulate(declared, path.name, [], replays=[path])
    return Check(file.block, f"replay {path.name}", report.failures, f"{file.cycles:,} cycles")


def _proof(declared: Declaration, name: str) -> Check:
    proof = proofs(declared.block)[name]
    with tempfile.TemporaryDirectory() as folder:
        outcome = formal.prove(name, proof, Path(folder))
    return Check(declared.block, "", outcome.counterexample.splitlines(), f"{proof.shown}: {proof.doc}")


def _equivalence(declared: Declaration) -> Check:
    """Of the generic gates and the RTL, at the size of mutants."""
    found = equivalence.compare(declared.component(MUTATED), declared.component(MUTATED))
    errors = [f"not proved equal: {point}" for point in found.undecided]
    return Check(declared.block, "", errors, f"{found.points} points of {MUTATED!r} are equal in RTL and gates")


def _expressions(declared: Declaration) -> Check:
    """That expressions in Verilog mean what its operators do, at the size of mutants."""
    texts = (declared.operators(MUTATED), declared.verilog(MUTATED))
    found = equivalence.texts(declared.name, *texts)
    errors = [f"not proved equal: {point}" for point in found.undecided]
    detail = f"{found.points} points of {MUTATED!r} are equal in operators and expressions"
    return Check(declared.block, "", errors, detail)


def _waivers(declared: Declaration) -> Check:
    """That what is waived cannot be reached."""
    points = waived(declared)
    with tempfile.TemporaryDirectory() as folder:
        outcome = waivers.prove(declared, points, Path(folder))
    detail = f"{len(points)} waived points of {declared.first!r} cannot be reached"
    return Check(declared.block, "", outcome.counterexample.splitlines(), detail)


def _mutation(declared: Declaration, options: Options) -> Check:
    traces = [record(declared, run) for run in runs(declared, MUTATED, options.seed, options.seeds)]
    done = mutate(declared, MUTATED, traces, options.mutants, _mutation_seed(options))
    detail = (
        f"{len(done.mutants)} mutants of {MUTATED!r}: {done.count('killed')} killed, {done.count('equivalent')} "
        f"equivalent, {len(done.survivors)} survive: {100 * done.score:.1f} %"
    )
    errors = []
    if done.score < SCORE:
        errors = [f"{100 * done.score:.1f} % killed, {100 * SCORE:.0f} % wanted"]
        errors += [f"{mutant.verdict}: {mutant.source}: {mutant.change}" for mutant in done.survivors]
    return Check(declared.block, "", errors, detail, done.json())


def _everywhere(declared: Declaration, options: Options) -> Check:
    """That a wrong bit is noticed wherever it is: in each register, memory and output at least one of a few."""
    traces = [record(declared, run) for run in runs(declared, MUTATED, options.seed, options.seeds)]
    found = everywhere(declared, MUTATED, traces, _mutation_seed(options))
    errors = [f"no inverted bit is noticed: {place}" for place, killers in found.items() if not any(killers)]
    bits = [killer for killers in found.values() for killer in killers]
    detail = f"{len(found)} places of {MUTATED!r}, {len(bits)} inverted bits, {sum(map(bool, bits))} of them noticed"
    return Check(declared.block, "", errors, detail, {"places": found})


def _kernels(declared: Declaration, options: Options) -> Iterator[tuple[str, Job]]:
    """A check for all replay files of a block that have the same parameters."""
    files = {str(path): load(path) for path in options.replays}
    found = {path: file for path, file in files.items() if file.block == declared.block and file.cycles}
    while found:
        parameters = next(iter(found.values())).parameters
        alike = {path: file for path, file in found.items() if file.parameters == parameters}
        name = f"mutation, kernels with {', '.join(f'{key}={value}' for key, value in parameters.items())}"
        yield name, partial(_traffic, replace(declared, configurations={KERNELS: parameters}), alike, options)
        found = {path: file for path, file in found.items() if path not in alike}


def _traffic(declared: Declaration, replays: Mapping[str, Replay], options: Options) -> Check:
    """How many mutants kernels see, beside the random runs at the same sizes: a figure, since kernels need not see all.

    Too large to decide about survivors, in general.
    """
    traces = [record(declared, run) for run in runs(declared, KERNELS, options.seed, options.seeds)]
    kernels = [replayed(declared, name, file.parameters, kept(file)) for name, file in replays.items()]
    done = mutate(declared, KERNELS, traces, options.mutants, _mutation_seed(options), kernels, decide=False)
    detail = (
        f"{len(done.mutants)} mutants: {done.count('killed')} killed, {done.by('kernel')} by kernels, "
        f"{done.by('run')} by random runs"
    )
    return Check(declared.block, "", [], detail, done.json())


def _refutation(declared: Declaration, name: str, proof: formal.Proof, options: Options) -> Check:
    """How many of a few mutants a proof sees: a figure, since one proof need not see all."""
    done = refute(declared.block, name, proof, max(1, options.mutants // REFUTED), _mutation_seed(options))
    detail = f"{done.count('killed')} of {len(done.mutants)} mutants refuted; {proof.doc}"
    return Check(declared.block, "", [], detail, done.json())


def _mutation_seed(options: Options) -> int:
    return options.seed & 0x7FFF_FFFF  # what Yosys takes


def junit(checks: Sequence[Check], options: Options) -> str:
    """The checks as JUnit XML: a suite per block."""
    root = ElementTree.Element("testsuites", name="lockstep verify")
    for block in dict.fromkeys(check.block for check in checks):
        own = [check for check in checks if check.block == block]
        failures = str(sum(not check.passed for check in own))
        suite = ElementTree.SubElement(root, "testsuite", name=block, tests=str(len(own)), failures=failures)
        properties = ElementTree.SubElement(suite, "properties")
        for name, value in (("seed", options.seed), ("seeds", options.seeds), ("level", options.level)):
            ElementTree.SubElement(properties, "property", name=name, value=str(value))
        for check in own:
            case = ElementTree.SubElement(
                suite, "testcase", classname=block, name=check.name, time=f"{check.seconds:.3f}"
            )
            if check.errors:
                ElementTree.SubElement(case, "failure", message=check.errors[0]).text = "\n".join(check.errors)
            ElementTree.SubElement(case, "system-out").text = check.detail
    ElementTree.indent(root)
    return ElementTree.tostring(root, encoding="unicode", xml_declaration=True) + "\n"
