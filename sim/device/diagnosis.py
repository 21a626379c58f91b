"""The lines below the error of a launch that makes no progress: which warps wait for what, since when, and where."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import cache
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING

from lockstep.models.waiting import ENDED, REPEATING
from lockstep.sim.compile.ptx.kernel import Kernel
from lockstep.sim.compile.ptx.lines import Places
from lockstep.sim.errors import StuckWarp

if TYPE_CHECKING:
    from lockstep.models.stop import Stop

__all__ = ["Lines", "lines", "stuck_warps"]

MOST_LINES = 16  # with the error itself, a terminal shows it without scrolling
MOST_GROUPS = 6  # of the warps of one CTA

Place = tuple[str, int]  # file, line


class Lines:
    """The lines of a kernel's instructions in the PTX, and in the source that it says it is made from."""

    def __init__(self, kernel: Kernel, places: Places) -> None:
        self._kernel, self._places = kernel, places
        self.source = cache(self._source)

    def ptx(self, pc: int) -> Place | None:
        line = int(self._kernel.code["line"][pc]) if 0 <= pc < len(self._kernel.code) else 0
        return (self._kernel.path, line) if line else None

    def _source(self, pc: int) -> Place | None:
        place = self.ptx(pc)
        found = self._places.source(place[1]) if place else None
        return ("<text>", found[1]) if found and Path(found[0]).name == "<text>" else found  # it has no folder


def _span(places: Iterable[Place | None]) -> tuple[str, int, int] | None:
    """The file of the first place, with the first and the last line in it."""
    known = [place for place in places if place is not None]
    own = [line for file, line in known if file == known[0][0]]
    return (known[0][0], min(own), max(own)) if known else None


def stuck_warps(stop: Stop, lines: Lines) -> tuple[StuckWarp, ...]:
    """The warps of a stopped launch by CTA, with their lines."""
    loops = _loops(w.places for w in stop.waiting if len(w.places) > 1)
    found = []
    for w in sorted(stop.waiting, key=lambda w: (w.cta[::-1], w.warp)):
        repeated = w.state == REPEATING
        places = next((loop for loop in loops if repeated and loop[0] <= w.places[0] <= loop[-1]), w.places)
        spans = _span(map(lines.ptx, places)), _span(map(lines.source, places))
        found.append(StuckWarp(w.sm, w.cta, w.warp, w.state, w.since, *spans))
    return tuple(found)


def _loops(repeated: Iterable[tuple[int, ...]]) -> list[list[int]]:
    """The loops that warps repeat, from samples of each: ranges of instructions that overlap are one loop."""
    loops: list[list[int]] = []
    for places in sorted(repeated):
        if loops and places[0] <= loops[-1][-1]:
            loops[-1] = sorted({*loops[-1], *places})
        else:
            loops.append(list(places))
    return loops


def lines(warps: Sequence[StuckWarp], ctas: tuple[int, ...]) -> list[str]:
    """A line for each group of CTAs that are in the same state; ``ctas``: in all, ended, not begun."""
    alike: dict[tuple[str, ...], list[list[list[StuckWarp]]]] = {}
    for _, own in groupby(warps, key=lambda w: w.cta):
        groups = _groups(own)
        alike.setdefault(tuple(map(_what, groups)), []).append(groups)
    found = [_line(what, groups) for what, groups in alike.items()]
    if len(found) > MOST_LINES:
        left_out = sum(len(groups) for groups in list(alike.values())[MOST_LINES:])
        found[MOST_LINES:] = [f"... and {left_out} more CTAs in other states"]
    total, ended, not_begun = ctas
    return [*found, f"{ended} of {total} CTAs have ended; {not_begun} have not begun."]


def _groups(warps: Iterable[StuckWarp]) -> list[list[StuckWarp]]:
    """The warps of a CTA by what they wait for, and where; first come those that wait for other warps."""
    alike: dict[tuple[str, str], list[StuckWarp]] = {}
    for warp in warps:
        alike.setdefault((warp.state, _where(warp)), []).append(warp)
    return sorted(alike.values(), key=lambda group: group[0].state == ENDED)


def _where(warp: StuckWarp) -> str:
    place = warp.source or warp.ptx
    if place is None:
        return ""
    file, first, last = place
    return f"{Path(file).name}:{first}" + (f"-{last}" if last != first else "")


def _what(group: list[StuckWarp]) -> str:
    """Which warps of a CTA wait for what, and where."""
    return ", ".join(filter(None, (f"{_numbers([w.warp for w in group])} {group[0].state}", _where(group[0]))))


def _numbers(warps: list[int]) -> str:
    """Warps 0-5, 8."""
    runs: list[list[int]] = []
    for warp in sorted(warps):
        if runs and warp == runs[-1][1] + 1:
            runs[-1][1] = warp
        else:
            runs.append([warp, warp])
    text = ", ".join(str(first) if first == last else f"{first}-{last}" for first, last in runs)
    return f"warp{'s' if len(warps) > 1 else ''} {text}"


def _line(what: tuple[str, ...], ctas: list[list[list[StuckWarp]]]) -> str:
    """One line for CTAs in the same state."""
    first, last = ctas[0][0][0], ctas[-1][0][0]
    title = f"CTA {first.cta}" if len(ctas) == 1 else f"{len(ctas)} CTAs, {first.cta} to {last.cta}"
    parts = []
    for text, *same in list(zip(what, *ctas, strict=True))[:MOST_GROUPS]:
        word = "at" if same[0][0].state == ENDED else "since"
        earliest, latest = (extreme(warp.since for group in same for warp in group) for extreme in (min, max))
        when = f"cycles {earliest} to {latest}" if latest > earliest else f"cycle {earliest}"
        parts.append(f"{text}, {word} {when}")
    if left_out := sum(len(group) for group in ctas[0][MOST_GROUPS:]):
        parts.append(f"... and {left_out} more warps")
    return f"{title}: {'; '.join(parts)}"
