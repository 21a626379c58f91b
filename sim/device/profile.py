"""Profiles: what each instruction of a kernel, and each line of its source, costs."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from lockstep.spec.causes import CAUSES

__all__ = ["Cost", "Place", "Profile", "hot_lines", "reasons"]

SHOWN = 15  # lines
REASONS = 3  # causes of a line ...
LEAST = 0.01  # ... of at least this share of its warp cycles


@dataclass(frozen=True)
class Place:
    """Where an instruction comes from.

    ``file``, ``line`` and ``text`` are of the CUDA file where the PTX says so (``.loc``), else of the PTX; ``line`` is
    0 for what Lockstep's compiler has added. ``ptx_line`` and ``ptx`` are of the PTX.
    """

    file: str
    line: int
    text: str
    ptx_line: int
    ptx: str


@dataclass(frozen=True)
class Cost:
    """The cost of one instruction, or of all those of one line, on all SMs together."""

    place: Place
    pc: int  # of the first of them in the kernel's code
    instructions: int
    issues: int
    lanes: float  # that executed, a mean over the issues
    warp_cycles: int  # that warps spent with it: the issues, and the stalls
    stalls: dict[str, int]  # warp cycles by cause, the most first; see ``lockstep.spec.causes``
    requests: int  # lines of the coalescer that the L1 accepted ...
    l1_hits: int  # ... and held ...
    l1_misses: int  # ... or asked the L2 for, atomics among them ...
    l1_merges: int  # ... or had asked for already; the others are stores
    scratchpad_accesses: int
    conflict_core_cycles: int  # of these accesses, beyond their first cycle

    def as_json(self) -> dict[str, Any]:
        """With the place's fields in one with the others."""
        own = asdict(self)
        return own.pop("place") | own


@dataclass(frozen=True)
class Profile:
    """The cost of one launch of a kernel, or of several together.

    ``rows`` are its instructions (``lockstep.models.observe.profile.ROW``); ``find_places`` says where they come from.
    """

    kernel: str
    rows: np.ndarray
    find_places: Callable[[], Sequence[Place]]

    def __add__(self, other: Profile) -> Profile:
        """Both; of the same kernel, as the same module has it."""
        rows = self.rows.copy()
        for name in rows.dtype.names or ():
            rows[name] += other.rows[name]
        return Profile(self.kernel, rows, self.find_places)

    @cached_property
    def places(self) -> Sequence[Place]:
        """Of each instruction."""
        return self.find_places()

    @cached_property
    def instructions(self) -> list[Cost]:
        """The cost of each micro-operation of the kernel's code, in the order of the code."""
        return [self._cost([pc]) for pc in range(len(self.rows))]

    @cached_property
    def lines(self) -> list[Cost]:
        """The cost of each line of the source, that with the most warp cycles first."""
        by_line: dict[tuple[str, int], list[int]] = {}
        for pc, place in enumerate(self.places):
            by_line.setdefault((place.file, place.line), []).append(pc)
        return sorted(map(self._cost, by_line.values()), key=lambda cost: -cost.warp_cycles)

    @cached_property
    def stalls(self) -> dict[str, int]:
        """Warp cycles by cause."""
        return {name: int(cycles) for name, cycles in zip(CAUSES, self.rows["stalls"].sum(axis=0), strict=True)}

    @property
    def issues(self) -> int:
        return int(self.rows["issues"].sum())

    @property
    def warp_cycles(self) -> int:
        """Cycles of all warps: their issues, and their stalls."""
        return self.issues + sum(self.stalls.values())

    def _cost(self, pcs: list[int]) -> Cost:
        rows = self.rows[pcs]
        count = {name: int(rows[name].sum()) for name in rows.dtype.names or () if rows.dtype[name].shape == ()}
        cycles = rows["stalls"].sum(axis=0)
        order = [int(k) for k in np.argsort(-cycles, kind="stable") if cycles[k]]
        names = list(CAUSES)
        stalls = {names[k]: int(cycles[k]) for k in order}
        lanes, issues = count.pop("lanes"), count["issues"]
        return Cost(
            place=self.places[pcs[0]], pc=pcs[0], instructions=len(pcs), lanes=lanes / issues if issues else 0.0,
            warp_cycles=issues + int(cycles.sum()), stalls=stalls, **count,
        )  # fmt: skip

    def as_json(self) -> dict[str, Any]:
        """The profile as `lockstep run --json` has it; what was never reached is left out."""
        return {
            "kernel": self.kernel,
            "warp_cycles": self.warp_cycles,
            "issues": self.issues,
            "stalls": self.stalls,
            "lines": [cost.as_json() for cost in self.lines if cost.warp_cycles],
            "instructions": [cost.as_json() for cost in self.instructions if cost.warp_cycles],
        }


def reasons(cost: Mapping[str, Any], most: int = REASONS) -> str:
    """The causes for which a line's warps wait most, with their shares of its warp cycles; ``cost`` as in the JSON."""
    shares = ((name, cycles / cost["warp_cycles"]) for name, cycles in [*cost["stalls"].items()][:most])
    return ", ".join(f"{name.replace('_', ' ')} {share:.0%}" for name, share in shares if share >= LEAST)


def hot_lines(function: Mapping[str, Any], most: int = SHOWN) -> tuple[str, Sequence[str], list[Sequence[Any]]]:
    """Title, columns and rows of a table of the lines that cost most, from the JSON of a profile."""
    whole = function["warp_cycles"]
    lines = function["lines"][:most]
    names = {Path(line["file"]).name for line in lines if line["line"]}

    def place(line: Mapping[str, Any]) -> str:
        if not line["line"]:
            return "added"
        return str(line["line"]) if len(names) == 1 else f"{Path(line['file']).name}:{line['line']}"

    rows: list[Sequence[Any]] = [
        (place(line), f"{line['warp_cycles'] / whole:.1%}", reasons(line), " ".join(line["text"].split()),
         line["issues"], f"{line['lanes']:.1f}", line["requests"])
        for line in lines
    ]  # fmt: skip
    title = f"{function['kernel']}, {min(names, default='')}: {whole:,} warp cycles"
    if left := len(function["lines"]) - len(lines):
        title += f"; {left} {'line' if left == 1 else 'lines'} of lower cost left out"
    return title, ("line", "cycles", "waits for", "text", "issues", "lanes", "requests"), rows
