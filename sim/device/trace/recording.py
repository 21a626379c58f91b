"""A launch on one SM, instruction by instruction: made of the events that were recorded."""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from lockstep.models.core import frame
from lockstep.models.execution.isa import Control, Group
from lockstep.models.observe import trace as kinds
from lockstep.models.time import NEVER
from lockstep.spec.causes import CAUSES
from lockstep.spec.parameters import CATEGORIES
from lockstep.spec.parameters import Gpu as Description

if TYPE_CHECKING:
    from lockstep.sim.device.profile import Place

__all__ = ["Instruction", "Launch", "Warp"]

NAMES = tuple(CAUSES)
MEMORY_GROUPS = (Group.MEMORY, Group.ATOMIC, Group.TEXTURE)


@dataclass
class Instruction:
    """A warp instruction that issued in the window. Cycles are core cycles of the run; -1: not known, or not in it.

    ``fetched`` is when it arrived in its warp's buffer, ``next`` when it became the warp's next one, ``start`` when its
    pipeline began, ``done`` when its results were written (``written``), or when it had no more to do. ``cut``: the
    record ends before that. ``waits``: from when on the warp waited for which cause. ``needs``: instructions whose
    results it had to wait for.
    """

    warp: Warp
    pc: int
    lanes: int
    issue: int
    fetched: int = -1
    next: int = -1
    start: int = -1
    done: int = -1
    written: bool = False
    cut: bool = False
    waits: list[tuple[int, str]] = field(default_factory=list)
    needs: list[Instruction] = field(default_factory=list)


@dataclass(eq=False)
class Warp:
    """A warp in its slot. ``states``: from when on it waited for which cause; "issues", while it did."""

    slot: int
    place: int  # of its CTA in the SM
    cta: int
    index: int  # in its CTA
    begin: int
    end: int = -1
    states: list[tuple[int, str]] = field(default_factory=list)
    issued: list[Instruction] = field(default_factory=list)


@dataclass
class Launch:
    """The recorded events of one launch, which begins at ``begin`` in the run, from ``first`` to before ``until``."""

    kernel: str
    gpu: Description
    code: np.ndarray
    places: Callable[[], Sequence[Place]]
    begin: int
    first: int
    until: int
    ended: bool  # with ``until``; else the record does
    events: np.ndarray
    warps: list[Warp] = field(default_factory=list)
    ctas: list[tuple[int, int, int, int]] = field(default_factory=list)  # place in the SM, CTA, begin, end
    levels: list[tuple[int, int, int]] = field(default_factory=list)  # cycle, which (``models.observe.trace``), value
    lines: list[tuple[int, int, int, int]] = field(default_factory=list)  # cycle, slot, pc, lanes: accepted by the L1

    def __post_init__(self) -> None:
        _Reader(self).read()

    @property
    def instructions(self) -> Iterator[Instruction]:
        """In the order of their issue."""
        return iter(sorted((each for warp in self.warps for each in warp.issued), key=lambda each: each.issue))


class _Reader:
    """Makes instructions, warps and CTAs of the events of a launch."""

    def __init__(self, launch: Launch) -> None:
        self.launch = launch
        self.warp: dict[int, Warp] = {}
        self.cta: dict[int, tuple[int, int]] = {}  # by place: its number, its begin
        self.buffer: dict[int, deque[tuple[int, int]]] = defaultdict(deque)  # by slot: pc, arrival
        self.flying: dict[int, list[Instruction]] = defaultdict(list)  # by slot: without an end
        self.starting: dict[tuple[int, int], deque[Instruction]] = defaultdict(deque)
        self.queue: deque[Instruction | None] = deque()  # in the load/store unit; None: issued before the window
        self.is_open = False  # the window: it begins with what is in that queue
        self.next: dict[int, int] = {}  # by slot: since when its next instruction is that
        code = launch.code
        self.accesses = np.isin(code["group"], MEMORY_GROUPS).tolist()
        control = code["group"] == Group.CONTROL
        self.barriers = (control & np.isin(code["op"], (Control.BARRIER, Control.REDUCE))).tolist()
        self.writes = [sum(int(word) << 64 * k for k, word in enumerate(row)) for row in code["writes"]]
        self.reads = [sum(int(word) << 64 * k for k, word in enumerate(row)) for row in code["need"]]
        self.pwrites, self.preads = code["pwrites"].tolist(), code["pneed"].tolist()
        pipelines = [launch.gpu.pipelines[name] for name in CATEGORIES]
        self.latency = [pipelines[category].latency for category in code["category"]]
        self.in_lsu = [pipelines[category].pipe == "lsu" for category in code["category"]]

    def read(self) -> None:
        launch = self.launch
        late = launch.events["kind"] != kinds.FETCHED  # what arrives in a cycle may issue in it
        order = np.lexsort((late, launch.events["cycle"]))
        names = ("cycle", "kind", "slot", "cta", "pc", "value")
        columns = (launch.events[name][order].tolist() for name in names)
        for cycle, kind, slot, place, pc, value in zip(*columns, strict=True):
            self._event(cycle + launch.begin, kind, slot, place, pc, value)
        for place, (number, begin) in self.cta.items():
            launch.ctas.append((place, number, begin, launch.until))
        for slot in list(self.warp):
            self._end(slot, launch.until)
        for warp in launch.warps:
            for each in warp.issued:
                if each.done < 0 or (not launch.ended and each.done >= launch.until):
                    each.done, each.cut, each.written = launch.until, True, False
                if each.start > each.done:
                    each.start = -1

    def _event(self, cycle: int, kind: int, slot: int, place: int, pc: int, value: int) -> None:
        launch = self.launch
        if kind == kinds.WAITS:
            self._waits(cycle, slot, value)
        elif kind == frame.ISSUE:
            self._issue(cycle, slot, pc, value)
        elif kind == kinds.FETCHED:
            arrived = self.buffer[slot]
            if arrived and arrived[-1][0] + 1 != pc:
                arrived.clear()
            arrived.extend((pc + k, cycle) for k in range(value))
        elif kind == kinds.STARTED:
            if self.starting[slot, pc]:
                later = value == NEVER
                self._started(self.starting[slot, pc].popleft(), cycle + 1 if later else launch.begin + value)
        elif kind == kinds.LSU_STARTED:
            one = self.queue.popleft() if self.queue else None
            if one:
                self._started(one, cycle)
        elif kind in (frame.WRITTEN, frame.LEFT):
            self._done(cycle, slot, pc, kind == frame.LEFT)
        elif kind == frame.SENT:
            launch.lines.append((cycle, slot, pc, value))
        elif kind == kinds.LEVEL:
            if slot == kinds.QUEUED and not self.is_open:
                self.is_open = True
                self.queue.extend([None] * value)
            launch.levels.append((cycle, slot, value))
        elif kind == frame.CTA_START:
            self.cta.setdefault(place, (value, cycle))
        elif kind in (frame.CTA_END, frame.CTA_SAVED):
            if place in self.cta:
                number, begin = self.cta.pop(place)
                launch.ctas.append((place, number, begin, cycle + 1))
            for each in [s for s, warp in self.warp.items() if warp.place == place]:
                self._end(each, cycle + 1)
        elif kind == frame.WARP_START:
            if slot in self.warp and not self.warp[slot].issued:
                self.warp[slot].index = value
            elif slot not in self.warp:
                self.warp[slot] = Warp(slot, place, self.cta[place][0] if place in self.cta else -1, value, cycle)
                launch.warps.append(self.warp[slot])
                self.next[slot] = cycle
                self.buffer[slot].clear()
        elif kind == frame.WARP_END:
            self._end(slot, cycle + 1)

    def _end(self, slot: int, cycle: int) -> None:
        if slot in self.warp:
            self.warp.pop(slot).end = cycle

    def _waits(self, cycle: int, slot: int, value: int) -> None:
        if slot in self.warp and value >= 0:
            self.warp[slot].states.append((cycle, NAMES[value]))

    def _issue(self, cycle: int, slot: int, pc: int, lanes: int) -> None:
        warp = self.warp[slot]
        one = Instruction(warp, pc, lanes & 0xFFFF_FFFF, cycle, next=self.next[slot])
        self.next[slot] = cycle + 1
        arrived = self.buffer[slot]
        while arrived and arrived[0][0] != pc:
            arrived.popleft()
        if arrived:
            one.fetched = arrived.popleft()[1]
        since = [k for k, (when, _) in enumerate(warp.states) if when <= one.next]
        for when, why in warp.states[since[-1] if since else 0 :]:
            if why != "issues" and when < cycle:
                one.waits.append((max(when, one.next), why))
        flying = self.flying[slot]
        for other in flying:
            late = other.done < 0 or other.done > one.next
            if late and (self.writes[other.pc] & self.reads[pc] or self.pwrites[other.pc] & self.preads[pc]):
                one.needs.append(other)
        self.flying[slot] = [other for other in flying if other.done < 0 or other.done > cycle]
        if self.writes[pc] or self.pwrites[pc] or self.accesses[pc] or self.barriers[pc]:
            self.flying[slot].append(one)
        if self.in_lsu[pc]:
            self.queue.append(one)
        else:
            self.starting[slot, pc].append(one)
        warp.issued.append(one)
        warp.states.append((cycle, "issues"))

    def _started(self, one: Instruction, cycle: int) -> None:
        one.start = cycle
        pc = one.pc
        if one.done < 0 and not (self.writes[pc] or self.pwrites[pc] or self.accesses[pc] or self.barriers[pc]):
            one.done = max(cycle - 1 + self.latency[pc], cycle + 1)

    def _done(self, cycle: int, slot: int, pc: int, barrier: bool) -> None:
        for one in self.flying[slot]:
            own = self.barriers[one.pc] if barrier else one.pc == pc and max(one.issue, one.start) < cycle
            if one.done < 0 and own:
                one.done, one.written = cycle, not barrier
                return
