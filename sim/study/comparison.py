"""The effect of mechanisms on kernels that memory throughput limits: per kernel function, and as geometric means.

Kloosterman's thesis counts the kernel functions of a benchmark one by one, and looks at those in which a memory
instruction waits for more than nine tenths of the time (section 3.4.1); so does this.
"""

from __future__ import annotations

import statistics
from collections.abc import Iterable, Sequence
from typing import Any

from lockstep.spec.registry import MECHANISMS

LIMIT = 0.9  # of the cycles of SMs with work
BASELINE = "baseline"  # the name of no mechanisms
MEASURES = ("speed-up", *dict.fromkeys(measure for m in MECHANISMS.values() for measure in m.measures), "misses")

Result = dict[str, Any]


def mechanisms(text: str) -> tuple[str, ...]:
    """The mechanisms that a text names, with commas between them; none for the baseline."""
    return tuple(name for name in text.split(",") if name and name != BASELINE)


def name_of(result: Result) -> str:
    """The mechanisms of a run."""
    return ",".join(result["mechanisms"]) or BASELINE


def limited(results: Sequence[Result]) -> list[tuple[str, str, float, dict[str, float]]]:
    """For each throughput-limited function and each mechanism: label, mechanism, baseline's waiting share, measures."""
    rows = []
    ended = [result for result in results if "functions" in result]
    for base in ended:
        if base["mechanisms"]:
            continue
        others = [r for r in ended if r["mechanisms"] and _same(base, r)]
        for number, function in enumerate(base["functions"]):
            waiting = function["stats"]["lsu.waiting"]
            if waiting > LIMIT:
                label = base["kernel"] if len(base["functions"]) == 1 else f"{base['kernel']}_{number + 1}"
                rows += [(label, name_of(r), waiting, _measures(function, r, number)) for r in others]
    return rows


def _same(left: Result, right: Result) -> bool:
    return all(left[key] == right[key] for key in ("kernel", "gpu", "size", "seed", "settings"))


def _measures(base: Result, run: Result, number: int) -> dict[str, float]:
    """Of one function of a run; 1 where none of its mechanisms has the measure."""
    other = run["functions"][number]
    stats = other["stats"]
    misses = base["stats"]["l1.mpki"]
    found = dict.fromkeys(MEASURES, 1.0)
    for name in run["mechanisms"]:
        found |= {measure: stats[key] or 1.0 for measure, key in MECHANISMS[name].measures.items()}
    found["speed-up"] = base["cycles"] / other["cycles"]
    if misses:
        found["misses"] = stats["l1.mpki"] / misses
    return found


def means(rows: Iterable[tuple[str, str, float, dict[str, float]]]) -> list[tuple[str, int, dict[str, float]]]:
    """Per mechanism: how many functions, and the geometric mean of every measure."""
    found: dict[str, list[dict[str, float]]] = {}
    for _, mechanism, _, measures in rows:
        found.setdefault(mechanism, []).append(measures)
    return [(name, len(all_), {m: statistics.geometric_mean(x[m] for x in all_) for m in MEASURES})
            for name, all_ in found.items()]  # fmt: skip


def published(mechanism: str, measure: str) -> float | str:
    """The thesis's figure, or nothing: a mean over the benchmarks' own dimensions, so no match for other sizes."""
    found = MECHANISMS.get(mechanism)
    return found.published.get(measure, "") if found else ""
