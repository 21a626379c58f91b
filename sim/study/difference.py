"""The command `diff`: what two saved runs differ in, and where the cycles went."""

from __future__ import annotations

import math
import shutil
import textwrap
from argparse import Namespace
from collections.abc import Mapping, Sequence
from typing import Any

from lockstep.sim.device.description import PARAMETERS
from lockstep.sim.device.statistics import STATISTICS
from lockstep.sim.errors import UsageError
from lockstep.sim.output import check_writable, table, write_json
from lockstep.sim.study.comparison import BASELINE
from lockstep.sim.study.job import complaint
from lockstep.sim.study.saved import Saved, outcomes, read
from lockstep.spec.registry import MECHANISMS
from lockstep.spec.statistics import CYCLES

__all__ = ["diff", "difference"]

SHOWN = 10  # statistics of cycles, and as many others

Row = dict[str, Any]


def diff(options: Namespace) -> int:
    check_writable(options.json)
    found = difference(*(_only(file) for file in (options.first, options.second)))
    if options.json:
        write_json(options.json, found)
    if options.json != "-":
        _show(found)
        if options.json:
            print(f"written to {options.json}")
    return 0


def _only(file: str) -> Saved:
    runs = read(file)
    if len(runs) > 1:
        raise UsageError(f"{file}: has {len(runs)} runs; diff compares files with one run (`lockstep run --json`)")
    return runs[0]


def difference(first: Saved, second: Saved) -> dict[str, Any]:
    """All that two runs differ in, as it is printed and as the JSON has it.

    ``notes`` say what to know before the figures are believed. The rows of ``breakdown`` are cycles of a mean SM, and
    add up to the cycles. ``stalls``, if both runs have a profile, are cycles of all warps by what each waited for.
    ``configuration`` and ``statistics`` have what is different, the latter those first that explain most: counts of
    cycles by their difference, then the others by how many times one is the other.
    """
    return {
        "first": first["command"],
        "second": second["command"],
        "notes": _notes(first, second),
        "configuration": _configuration(first, second),
        "cycles": {"first": first["cycles"], "second": second["cycles"]},
        "breakdown": _parts(*({name: cycles / run["configuration"]["core.sms"]
                               for name, cycles in outcomes(run).items()} for run in (first, second))),
        "stalls": _stalls(first, second),
        "statistics": _statistics(first, second),
    }  # fmt: skip


def _notes(first: Saved, second: Saved) -> list[str]:
    notes = [
        f"{key}: {first[key]} and {second[key]}: {text}"
        for key, text in (
            ("kernel", "these are different kernels"),
            ("size", "the inputs have different sizes"),
            ("seed", "the inputs are different"),
            ("code_version", "other versions of Lockstep made the runs, so the models may differ, too"),
        )
        if first[key] != second[key]
    ]
    if first["mechanisms"] != second["mechanisms"]:
        named = (",".join(run["mechanisms"]) or BASELINE for run in (first, second))
        notes.append(f"with: {' and '.join(named)}")
        for name in sorted(set(first["mechanisms"]) ^ set(second["mechanisms"])):
            if name in MECHANISMS:
                notes.append(f"{name}: {MECHANISMS[name].doc}")
    if first["gpu"] != second["gpu"]:
        notes.append(f"gpu: {first['gpu']} and {second['gpu']}")
    clocks = [run["configuration"]["clocks.core"] for run in (first, second)]
    if clocks[0] != clocks[1]:
        times = [run["cycles"] / clock for run, clock in zip((first, second), clocks, strict=True)]
        notes.append(f"core clocks differ: the runs take {times[0]:,.3f} and {times[1]:,.3f} microseconds")
    for name, run in (("first", first), ("second", second)):
        if text := complaint(dict(run)):
            notes.append(f"{name} run: {text}")
    return notes


def _configuration(first: Saved, second: Saved) -> list[Row]:
    one, other = first["configuration"], second["configuration"]
    return [
        {"parameter": key, "first": one.get(key), "second": other.get(key), **_explained(key)}
        for key in {**one, **other}
        if one.get(key) != other.get(key) and key in PARAMETERS
    ]


def _explained(key: str) -> dict[str, str]:
    metadata = PARAMETERS[key].metadata
    return {"unit": metadata.get("unit", ""), "meaning": metadata.get("doc", "")}


def _parts(first: Mapping[str, float], second: Mapping[str, float]) -> list[Row]:
    return [
        {"part": part, "first": first.get(part, 0), "second": second.get(part, 0),
         "difference": second.get(part, 0) - first.get(part, 0)}
        for part in {**first, **second}
    ]  # fmt: skip


def _stalls(first: Saved, second: Saved) -> list[Row]:
    if "profile" not in first or "profile" not in second:
        return []
    rows = _parts(*(_warp_cycles(run) for run in (first, second)))
    return sorted((row for row in rows if row["first"] or row["second"]), key=lambda row: -abs(row["difference"]))


def _warp_cycles(run: Saved) -> dict[str, float]:
    found: dict[str, float] = {}
    for function in run["profile"]["functions"]:
        for cause, cycles in {"issued": function["issues"], **function["stalls"]}.items():
            found[cause] = found.get(cause, 0) + cycles
    return found


def _statistics(first: Saved, second: Saved) -> list[Row]:
    one, other = first["stats"], second["stats"]
    rows = [
        {"statistic": name, "first": one[name], "second": other[name], "unit": known.unit, "meaning": known.doc}
        for name, known in STATISTICS.items()
        if name in one and name in other and one[name] != other[name]
    ]

    def weight(row: Row) -> tuple[bool, float]:
        left, right = row["first"], row["second"]
        if row["unit"] == CYCLES:
            return False, -abs(right - left)
        return True, -abs(math.log(abs(right / left))) if left and right else -math.inf

    return sorted(rows, key=weight)


# --------------------------------------------------------------------------------------------------------------- shown


def _show(found: Mapping[str, Any]) -> None:
    width = shutil.get_terminal_size().columns
    for name in ("first", "second"):
        print(textwrap.fill(found[name], width, initial_indent=f"{name:6}  ", subsequent_indent=" " * 8))
    for note in found["notes"]:
        print(textwrap.fill(note, width, initial_indent="! ", subsequent_indent="  "))
    if rows := found["configuration"]:
        _table("Configuration:", ("first", "second", "parameter"), [
            (_or_none(row["first"]), _or_none(row["second"]), f"{row['parameter']}: {_meaning(row)}") for row in rows
        ], width)  # fmt: skip
    else:
        print("The configurations are equal.")
    cycles = found["cycles"]
    title = f"{cycles['first']:,} and {cycles['second']:,} cycles ({_change(cycles)}). What a mean SM did in them:"
    _show_parts(title, found["breakdown"], width)
    if found["stalls"]:
        _show_parts("Cycles of all warps, by what each waited for:", found["stalls"], width)
    statistics = found["statistics"]
    if not statistics:
        print("All statistics are equal.")
        return
    of_cycles = [row for row in statistics if row["unit"] == CYCLES]
    others = [row for row in statistics if row["unit"] != CYCLES]
    chosen = [*of_cycles[:SHOWN], *others[:SHOWN]]
    _table("Statistics that differ most, core cycles of all SMs, then others:", (
        "first", "second", "change", "statistic"), [
        (row["first"], row["second"], _change(row), f"{row['statistic']}: {row['meaning']}") for row in chosen
    ], width)  # fmt: skip
    if left := len(statistics) - len(chosen):
        print(f"Not shown: {left} more statistics that differ (--json has all).")


def _show_parts(title: str, rows: list[Row], width: int) -> None:
    _table(title, ("first", "second", "difference", ""), [
        (round(row["first"]), round(row["second"]), f"{row['difference']:+,.0f}", row["part"]) for row in rows
    ], width)  # fmt: skip


def _table(title: str, columns: Sequence[str], rows: list[tuple[Any, ...]], width: int) -> None:
    print()
    print(textwrap.fill(title, width))
    table("", columns, rows, width)


def _or_none(value: Any) -> Any:
    return "-" if value is None else value


def _meaning(row: Row) -> str:
    return f"{row['meaning']} ({row['unit']})" if row["unit"] else row["meaning"]


def _change(row: Row) -> str:
    left, right = row["first"], row["second"]
    if not left:
        return "from 0"
    return f"{right / left - 1:+.1%}" if right < 10 * left else f"{right / left:,.0f} times"
