"""Which tests of a block find faults, and at which distance (``docs/tests.md``): evidence for what runs where.

``python -m lockstep.verif.evidence [BLOCK...]`` tries mutants of the hardware, and the faults that tests plant in the
sources of hardware and models. What can find them, by distance, is

======== ============================================================================================================
check    a run of 300 cycles at the size ``odd`` (``test_smoke``)
test     the random runs at that size (``test_hardware_equals_the_model``); for mutants, by shape of stimulus
test-all the random runs at each other size, for planted faults: a mutant is one of the netlist of one size; a kernel,
         for the faults that name one
======== ============================================================================================================

Proofs are not asked: they hold blocks of other sizes, and ``lockstep verify --level mutation`` has mutants of their own
for them.
"""

from __future__ import annotations

import argparse
import importlib
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from lockstep.rtl import export
from lockstep.sim import output
from lockstep.sim.cosim.build import Make
from lockstep.sim.cosim.run import cosim
from lockstep.verif import levels
from lockstep.verif.blocks import FOLDER, Declaration, blocks, declaration
from lockstep.verif.mutation import told
from lockstep.verif.planted import Differing, Fault, InKernel, component, planted
from lockstep.verif.simulate import simulate
from lockstep.verif.trace import Run, record

DISTANCES = ("check", "test", "test-all")
SMOKE = "smoke"
SEED = 1  # that of the tests


@dataclass(frozen=True)
class Found:
    """A fault, and the finders that see it, by name."""

    block: str
    fault: str
    by: list[str]


def distance(finder: str) -> str:
    """The first distance at which a finder runs: the smoke run, a size, or a shape at the size ``odd``."""
    size = finder.partition(", ")[0]
    return "check" if finder == SMOKE else "test" if size == levels.MUTATED else "test-all"


def mutants(declared: Declaration, count: int) -> list[Found]:
    """What tells mutants of the size ``odd`` from the model."""
    traces = {SMOKE: [record(declared, levels.smoke(declared), levels.SMOKE_CYCLES)]}
    for run in levels.runs(declared, levels.MUTATED, SEED, 1):
        traces[f"{run.configuration}, {run.shape}"] = [record(declared, run)]
    found = told(declared, levels.MUTATED, traces, count, SEED)
    return [Found(declared.block, mutant, sorted(by)) for mutant, by in found.items()]


def plant(declared: Declaration, fault: Fault) -> Found:
    """What finds a fault in the source of the hardware or the model."""
    with planted(fault) as makes:
        by = [SMOKE] if _seen(declared, fault, [levels.smoke(declared)], levels.SMOKE_CYCLES) else []
        for configuration in declared.configurations:
            if _seen(declared, fault, levels.runs(declared, configuration, SEED, 1)):
                by.append(configuration)
        if isinstance(fault, InKernel) and _in_its_kernel(fault, makes):
            by.append(f"kernel {fault.kernel}")
    return Found(declared.block, str(fault), by)


def _seen(declared: Declaration, fault: Fault, runs: Sequence[Run], cycles: int | None = None) -> bool:
    """Whether runs of one size find a fault; what a wrong model answers may be nothing that its environment expects."""
    configuration, text = runs[0].configuration, ""
    if fault.body == "rtl":
        try:
            text = export.verilog(component(fault)(**declared.configurations[configuration]), fault.block, {})
        except Exception:  # whatever its own code raises where there is nothing of what it takes wrongly
            return False
    try:
        return bool(simulate(declared, configuration, runs, cycles, verilog=text).failures)
    except LookupError:
        return True


def _in_its_kernel(fault: InKernel, makes: Mapping[str, Make]) -> bool:
    """Whether its run tells: *shadow* where model and RTL differ, else *replace*, by its results or by an error."""
    mode = "shadow" if isinstance(fault, Differing) else "replace"
    with tempfile.TemporaryDirectory() as folder:
        return "difference" in cosim(fault.job, fault.block, mode, folder=Path(folder), makes=makes)


def faults() -> list[Fault]:
    """All that tests plant in blocks that have a bench: the lists of faults in all modules of the tests."""
    found: dict[int, Fault] = {}
    for path in sorted(FOLDER.rglob("*.py")):
        if path != Path(__file__) and "lockstep.verif.planted import" in path.read_text(encoding="utf-8"):
            name = ".".join(("lockstep.verif", *path.relative_to(FOLDER).with_suffix("").parts))
            values = vars(importlib.import_module(name)).values()
            lists = [value for value in values if isinstance(value, list | tuple)]
            found |= {id(each): each for value in lists for each in value if isinstance(each, Fault)}
    return [fault for fault in found.values() if fault.block in blocks()]


def table(found: Sequence[Found]) -> Iterator[tuple[str, int, int, *tuple[float | None, ...]]]:
    """By block and in all: faults, those that are found, and the share of these that each distance finds."""
    names = [*dict.fromkeys(each.block for each in found), "all"]
    for name in names:
        own = [each for each in found if name in (each.block, "all")]
        known = [{distance(finder) for finder in each.by} for each in own if each.by]
        shares = [sum(bool(seen & {*DISTANCES[: k + 1]}) for seen in known) for k in range(len(DISTANCES))]
        yield name, len(own), len(known), *(100 * share / len(known) if known else None for share in shares)


def never_alone(found: Sequence[Found], block: str) -> list[str]:
    """The finders of a block that find something, and never what no other finds."""
    own = [each for each in found if each.block == block]
    alone = Counter(each.by[0] for each in own if len(each.by) == 1)
    return sorted({finder for each in own for finder in each.by} - alone.keys())


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m lockstep.verif.evidence", description=__doc__.partition("\n")[0])
    parser.add_argument("blocks", nargs="*", default=["all"], metavar="BLOCK", help="blocks or areas; all without any")
    parser.add_argument("--mutants", type=int, default=100, help="of each block (default: %(default)s)")
    parser.add_argument("--no-planted", action="store_true", help="mutants alone, which takes seconds for a block")
    parser.add_argument("--json", metavar="FILE", help="every fault, with what finds it")
    chosen = parser.parse_args(arguments)
    names = [block for block in levels.find(chosen.blocks) if block in blocks()]
    found = []
    for block in names:
        declared = declaration(block)
        found += mutants(declared, chosen.mutants)
        if not chosen.no_planted:
            found += [plant(declared, fault) for fault in faults() if fault.block == block]
        print(f"{block}: {sum(each.block == block for each in found)} faults", file=sys.stderr)
    columns = ("block", "faults", "found", *(f"% by {name}" for name in DISTANCES))
    output.table("Faults, those that are found, and the share of these that each distance finds", columns, table(found))
    for block in names:
        if spare := never_alone(found, block):
            output.say(f"{block}: never the only finder: {'; '.join(spare)}", others="  ")
    if chosen.json:
        output.write_json(chosen.json, [asdict(each) for each in found])
    return 0


if __name__ == "__main__":
    sys.exit(main())
