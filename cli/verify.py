"""`lockstep verify`: the hardware of blocks against their golden models."""

from __future__ import annotations

import sys
from argparse import ArgumentParser, Namespace
from pathlib import Path

from lockstep.cli import options as shared
from lockstep.rtl.registry import selectable
from lockstep.sim.errors import UsageError
from lockstep.sim.output import Display, check_writable, table, write_json, write_text
from lockstep.sim.sizes import SIZES
from lockstep.spec.words import closest
from lockstep.verif import combinations, levels, modes, soak


def arguments(to: ArgumentParser) -> None:
    to.add_argument("targets", metavar="BLOCK|AREA|combinations|modes|threads|all", nargs="*", default=["all"],
                        help="default: all; combinations: pairs of mechanisms (random); modes: kernels interpreted, "
                        "and with mechanisms, without skipping (random); threads: kernels and programs that race, with "
                        "several threads (random)")  # fmt: skip
    to.add_argument("--level", choices=levels.LEVELS, default="smoke", help="how thoroughly (default: smoke)")
    to.add_argument("--seeds", type=int, default=1, metavar="N", help="seeds per run (default: 1)")
    to.add_argument("--seed", type=int, metavar="S", help="the first seed (default: LOCKSTEP_SEED, or random)")
    to.add_argument("--mutants", type=int, default=300, metavar="N", help="mutants per block (default: 300)")
    to.add_argument("--launches", type=int, default=soak.LAUNCHES, metavar="N", help="with soak: launches in one "
                    f"process (default: {soak.LAUNCHES})")  # fmt: skip
    to.add_argument("--moments", type=int, default=soak.MOMENTS, metavar="N", help="with soak: moments for each signal "
                    f"and command (default: {soak.MOMENTS})")  # fmt: skip
    to.add_argument("--jobs", type=int, metavar="N", help="checks at the same time (default: one per core; soak: one)")
    to.add_argument("--replay", metavar="FILE", nargs="+", default=[], help="play replay files of `lockstep cosim` "
                    "instead; with mutation, play them to the mutants, too")  # fmt: skip
    to.add_argument("--gpu", metavar="NAME|FILE.toml", help="with kernels: what they run on "
                    "(default: gtx480)")  # fmt: skip
    to.add_argument("--size", choices=SIZES, help="with kernels: of their input (default: tiny)")
    to.add_argument("--set", metavar="KEY=VALUE", action="append", default=[], help="with kernels, combinations "
                    "and modes: a parameter: l1.values=lines")  # fmt: skip
    to.add_argument("--junit", metavar="FILE", help="write the result as JUnit XML")
    to.add_argument("--coverage", metavar="DIR", help="with random: write lcov files, and the Verilog that they "
                    "are about")  # fmt: skip
    shared.json(to)


def command(options: Namespace) -> int:
    for target in (options.json, options.junit):
        check_writable(target)
    for name in ("seeds", "mutants", "launches", "moments"):
        if getattr(options, name) < 1:
            raise UsageError(f"--{name} must be at least 1")
    if options.level != "kernels":
        if options.gpu or options.size:
            raise UsageError("--gpu and --size work with --level kernels only: others have the benches' sizes")
        if options.set and not {*options.targets} <= {combinations.TARGET, modes.TARGET}:
            raise UsageError("--set works with --level kernels, combinations and modes only: benches have parameters")
    folder = None
    if options.coverage:
        folder = Path(options.coverage)
        folder.mkdir(parents=True, exist_ok=True)
    try:
        blocks = levels.find(options.targets, options.level)
    except KeyError as error:
        name, known = error.args[0], levels.targets(options.level)
        suggestion = closest(name, {*known, *selectable(known)})
        what = "part of a soak" if options.level == "soak" else "block or area"
        raise UsageError(f"no {what} {name!r}{suggestion}; there are {', '.join(known)}") from None
    seed = levels.base_seed() if options.seed is None else options.seed
    files = [Path(name) for name in options.replay]
    jobs = options.jobs or (1 if options.level == "soak" else None)
    wanted = levels.Options(
        options.level, seed, options.seeds, options.mutants, options.launches, options.moments, folder, files,
        options.gpu or "gtx480", shared.settings(options), options.size or "tiny",
    )  # fmt: skip
    checks = []
    with Display() as watch:
        watch.phase(f"{options.level}: {len(blocks)} targets")
        instead = files and options.level != "mutation"
        for check in map(levels.replay, files) if instead else levels.verify(blocks, wanted, jobs):
            checks.append(check)
            watch.phase(f"{options.level}: {check.block}: {check.name}")
    if options.json != "-":
        table(f"{options.level}, LOCKSTEP_SEED={seed}, {options.seeds} seeds", ("block", "check", "passed", "s", ""), [
            (check.block, check.name, check.passed, check.seconds, check.detail) for check in checks
        ], keys=2)  # fmt: skip
    if options.junit:
        write_text(options.junit, levels.junit(checks, wanted))
    if options.json:
        rows = [{**vars(check), "passed": check.passed} for check in checks]
        write_json(options.json, {"level": options.level, "seed": seed, "seeds": options.seeds, "checks": rows})
    for check in checks:
        for line in check.errors:
            print(f"lockstep: {check.block}: {check.name}: {line}", file=sys.stderr)
    return 0 if all(check.passed for check in checks) else 1
