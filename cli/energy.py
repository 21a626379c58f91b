"""`lockstep energy`: the energy of saved runs, by component."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from typing import Any

from lockstep.cli import options as shared
from lockstep.sim.output import check_writable, say, table
from lockstep.sim.study.energy import Account, Process, account, load
from lockstep.sim.study.saved import Saved, read


def arguments(to: ArgumentParser) -> None:
    shared.saved_runs(to)
    to.add_argument("--process", metavar="NAME|FILE.toml", default="45nm", help="energies of events (default: "
                    "45nm)")  # fmt: skip
    shared.json(to)


def command(options: Namespace) -> int:
    check_writable(options.json)
    process = load(options.process)
    runs = [run for file in options.files for run in read(file)]
    accounts = [account(run, process) for run in runs]
    if options.json != "-":
        _show(runs, accounts, process)
    shared.write(options, [_as_json(run, found, process) for run, found in zip(runs, accounts, strict=True)])
    return 0


def _as_json(run: Saved, found: Account, process: Process) -> dict[str, Any]:
    return {
        "command": run["command"],
        "process": {"name": process.name, "node_nm": process.node_nm, "voltage": process.voltage},
        "femtojoules": dict(found.energies),
        "total_femtojoules": found.total,
        "not_counted": {component: dict(events) for component, events in found.not_counted.items()},
    }


def _show(runs: list[Saved], accounts: list[Account], process: Process) -> None:
    components = list(dict.fromkeys(component for found in accounts for component in found.energies))
    for number, run in enumerate(runs, 1):
        say(f"{number}: {run['command']}", others="   ")
    columns = ["", *(f"{number}, nJ" for number in range(1, len(runs) + 1))]
    if len(runs) > 1:
        columns += [f"{number} to 1" for number in range(2, len(runs) + 1)]
    rows = [[name, *_row([found.energies.get(name, 0) for found in accounts])] for name in components]
    rows.append(["total", *_row([found.total for found in accounts])])
    table(f"Energy at {process.node_nm:g} nm and {process.voltage:g} V", columns, rows)
    missing = {statistic for found in accounts for events in found.not_counted.values() for statistic in events}
    if missing:
        say(f"Not counted, since {process.name} has no energy for it: {', '.join(sorted(missing))}.")


def _row(energies: list[int]) -> list[float | None]:
    ratios = [energy / energies[0] if energies[0] else None for energy in energies[1:]]
    return [energy / 1e6 for energy in energies] + ratios
