"""`lockstep energy`: the energy of saved runs, by component, or of the gates of blocks in recordings of kernels."""

from __future__ import annotations

import math
import sys
from argparse import ArgumentParser, Namespace
from pathlib import Path
from typing import Any

from lockstep.cli import options as shared
from lockstep.sim.errors import UsageError
from lockstep.sim.output import check_writable, say, table
from lockstep.sim.study.energy import BY, DEFAULT, Account, Part, Process, account, load, parts
from lockstep.sim.study.saved import Saved, read

CYCLES = 5_000  # of a recording
PERIOD = 2.8  # nanoseconds, about a cycle of the GTX 480's core clock


def arguments(to: ArgumentParser) -> None:
    shared.saved_runs(to)
    to.add_argument("--process", metavar="NAME|FILE.toml", default=DEFAULT, help="energies of events (default: "
                    f"{DEFAULT})")  # fmt: skip
    to.add_argument("--by", choices=BY, help="what each SM, launch or interval takes, instead of each run; launches "
                    "and intervals need runs that were made with --energy")  # fmt: skip
    to.add_argument("--liberty", metavar="FILE", help="of recordings among the files (*.npz, lockstep cosim --record): "
                    "the energy of the blocks' gates in this library's cells")  # fmt: skip
    to.add_argument("--cycles", metavar="N", type=int, default=CYCLES, help="with --liberty: of a "
                    f"recording, from the first on (default: {CYCLES})")  # fmt: skip
    to.add_argument("--period", metavar="NS", type=float, default=PERIOD, help="with --liberty: of the clock, for "
                    f"leakage and power (default: {PERIOD})")  # fmt: skip
    shared.json(to)


def command(options: Namespace) -> int:
    check_writable(options.json)
    recordings = [file for file in options.files if file.endswith(".npz")]
    saved = [file for file in options.files if not file.endswith(".npz")]
    if recordings and not options.liberty:
        raise UsageError(f"{recordings[0]}: a recording, of whose gates --liberty FILE gives the energies")
    if options.liberty and not recordings:
        raise UsageError(f"--liberty {options.liberty}: is for recordings, *.npz, of which the files have none")
    process = load(options.process)
    runs = [run for file in saved for run in read(file)]
    accounts = [account(run, process) for run in runs]
    divided = [parts(run, process, options.by) if options.by else [] for run in runs]
    gates = _gates(options, recordings) if recordings else []
    if gates is None:
        return 1
    if options.json != "-":
        _show(options, runs, accounts, divided, process)
        _show_gates(options, gates)
    every = zip(runs, accounts, divided, strict=True)
    shared.write(options, [*(_as_json(run, found, own, process) for run, found, own in every), *gates])
    return 0


def _gates(options: Namespace, recordings: list[str]) -> list[dict[str, Any]] | None:
    """The energy of blocks' gates, or none if they do not what was recorded."""
    from lockstep.sim.cosim import activity
    from lockstep.synth.power import Mismatch

    if not 0 < options.period < math.inf:
        raise UsageError(f"--period {options.period}: must be above 0, in nanoseconds")
    if options.cycles < 1:
        raise UsageError(f"--cycles {options.cycles}: must be 1 or more")
    try:
        return [activity.energy(Path(file), options.liberty, options.cycles, options.period) for file in recordings]
    except Mismatch as fault:
        print(f"lockstep: internal fault: {fault}; the same command reproduces it", file=sys.stderr)
        return None


def _show_gates(options: Namespace, gates: list[dict[str, Any]]) -> None:
    if not gates:
        return
    first = gates[0]
    kinds = list(first["femtojoules"])
    rows = [[each["block"], each["cycles"], each["cells"], each["flip_flops"],
             *(each["femtojoules"][kind] / max(1, each["cycles"]) for kind in kinds),
             each["total_femtojoules"] / max(1, each["cycles"]), each["milliwatts"]] for each in gates]  # fmt: skip
    columns = ("block", "cycles", "cells", "flip-flops", *kinds, "total", "mean mW")
    table(
        f"fJ per cycle in cells of {first['library']} at {first['voltage']:g} V, {options.period:g} ns", columns, rows
    )


def _as_json(run: Saved, found: Account, divided: list[Part], process: Process) -> dict[str, Any]:
    whole = {
        "command": run["command"],
        "process": {"name": process.name, "node_nm": process.node_nm, "voltage": process.voltage},
        **_account(found),
    }
    own = [{"name": part.name, "core_cycles": part.cycles, **_account(part.account)} for part in divided]
    return {**whole, "parts": own} if divided else whole


def _account(found: Account) -> dict[str, Any]:
    return {
        "femtojoules": dict(found.energies),
        "total_femtojoules": found.total,
        "not_counted": {component: dict(events) for component, events in found.not_counted.items()},
    }


def _show(
    options: Namespace, runs: list[Saved], accounts: list[Account], divided: list[list[Part]], process: Process
) -> None:
    if not runs:
        return
    for number, run in enumerate(runs, 1):
        say(f"{number}: {run['command']}", others="   ")
    if options.by:
        for number, (run, found, own) in enumerate(zip(runs, accounts, divided, strict=True), 1):
            _show_parts(f"{number}, by {options.by}", run, found, own, process)
    else:
        _show_runs(runs, accounts, process)
    _say_what_is_missing(accounts, process)


def _show_runs(runs: list[Saved], accounts: list[Account], process: Process) -> None:
    components = list(dict.fromkeys(component for found in accounts for component in found.energies))
    columns = ["", *(f"{number}, nJ" for number in range(1, len(accounts) + 1))]
    if len(accounts) > 1:
        columns += [f"{number} to 1" for number in range(2, len(accounts) + 1)]
    rows = [[name, *_row([found.energies.get(name, 0) for found in accounts])] for name in components]
    rows.append(["total", *_row([found.total for found in accounts])])
    whole = [Part("", run["cycles"], found) for run, found in zip(runs, accounts, strict=True)]
    power = [part.milliwatts(run["configuration"]["clocks.core"]) for run, part in zip(runs, whole, strict=True)]
    rows.append(["mean power, mW", *power, *[None] * (len(accounts) - 1)])
    table(f"Energy at {process.node_nm:g} nm and {process.voltage:g} V", columns, rows)


def _row(energies: list[int]) -> list[float | None]:
    ratios = [energy / energies[0] if energies[0] else None for energy in energies[1:]]
    return [energy / 1e6 for energy in energies] + ratios


def _show_parts(name: str, run: Saved, whole: Account, divided: list[Part], process: Process) -> None:
    """Components that take something, in nanojoules, and the mean power of all of them."""
    components = [component for component, energy in whole.energies.items() if energy]
    rows = [
        [part.name, part.cycles, *(part.account.energies[component] / 1e6 for component in components),
         part.account.total / 1e6, part.milliwatts(run["configuration"]["clocks.core"])]
        for part in divided
    ]  # fmt: skip
    columns = ("", "core cycles", *components, "total", "mean mW")
    table(f"{name}: energy at {process.node_nm:g} nm and {process.voltage:g} V, nJ", columns, rows)


def _say_what_is_missing(accounts: list[Account], process: Process) -> None:
    missing = {statistic for found in accounts for events in found.not_counted.values() for statistic in events}
    if missing:
        say(f"Not counted, since {process.name} has no energy for it: {', '.join(sorted(missing))}.")
