"""The differences between two saved runs, and where the cycles went."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from lockstep.sim.device.description import PARAMETERS
from lockstep.sim.device.statistics import STATISTICS
from lockstep.sim.study.comparison import BASELINE
from lockstep.sim.study.energy import account, countable, load
from lockstep.sim.study.job import complaint
from lockstep.sim.study.saved import Saved, outcomes
from lockstep.spec.registry import MECHANISMS
from lockstep.spec.statistics import CYCLES

__all__ = ["Row", "difference"]

Row = dict[str, Any]


def difference(first: Saved, second: Saved) -> dict[str, Any]:
    """All that two runs differ in, as it is printed and as the JSON has it.

    ``notes`` say what to know before the figures are believed. The rows of ``breakdown`` are cycles of a mean SM, and
    add up to the cycles. ``stalls``, if both runs have a profile, are cycles of all warps by what each waited for.
    ``energy``: femtojoules of the components that differ (:mod:`.energy`, of its default process). ``kernels``, if one
    of the runs is of two kernels at once: the kernels that are in both runs, one by one; cycles are those of launches.
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
        "energy": _energy(first, second),
        "kernels": _kernels(first, second),
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
    for one, other in _matched(first, second):
        if (one["size"], one["seed"]) != (other["size"], other["seed"]):
            inputs = (f"{each['size']}, seed {each['seed']}" for each in (one, other))
            notes.append(f"{one['kernel']}: the inputs are different: {' and '.join(inputs)}")
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


def _energy(first: Saved, second: Saved) -> list[Row]:
    if not countable(first) or not countable(second):
        return []
    process = load()
    rows = _parts(*({**found.energies, "total": found.total}
                    for found in (account(run, process) for run in (first, second))))  # fmt: skip
    return [row for row in rows if row["difference"]]


def _matched(first: Saved, second: Saved) -> list[tuple[Saved, Saved]]:
    """The kernels that are in both runs, of which at least one is of two kernels at once."""
    if not first.get("kernels") and not second.get("kernels"):
        return []
    found, left = [], list(second.get("kernels") or [second])
    for one in first.get("kernels") or [first]:
        for other in left:
            if one["kernel"] == other["kernel"]:
                found.append((one, other))
                left.remove(other)
                break
    return found


def _kernels(first: Saved, second: Saved) -> list[Row]:
    return [
        {
            "kernel": one["kernel"],
            "cycles": {"first": one["cycles"], "second": other["cycles"]},
            "statistics": _statistics(one, other),
        }
        for one, other in _matched(first, second)
    ]


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
        return True, -abs(math.log(right) - math.log(left)) if left and right else -math.inf

    return sorted(rows, key=weight)


# --------------------------------------------------------------------------------------------------------------- shown
