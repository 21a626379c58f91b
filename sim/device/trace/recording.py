"""A launch on one SM, instruction by instruction: made of the events that were recorded."""

from __future__ import annotations

from bisect import bisect_right
from collections import defaultdict, deque
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
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

__all__ = ["Code", "Cta", "Instruction", "Launch", "Warp"]

NAMES = tuple(CAUSES)
MEMORY_GROUPS = (Group.MEMORY, Group.ATOMIC, Group.TEXTURE)


@dataclass(frozen=True, eq=False)
class Code:
    """A kernel that ran, from ``begin`` to before ``end`` in core cycles of its run, in one of two streams."""

    kernel: str
    instructions: np.ndarray
    find_places: Callable[[], Sequence[Place]]
    stream: int = 0
    begin: int = 0
    end: int = NEVER

    @cached_property
    def places(self) -> Sequence[Place]:
        """Where each instruction comes from."""
        return self.find_places()


@dataclass(frozen=True, eq=False)
class Cta:
    """A CTA in its place in the SM."""

    place: int
    number: int
    begin: int
    end: int
    code: Code


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
    code: Code
    begin: int
    end: int = -1
    states: list[tuple[int, str]] = field(default_factory=list)
    issued: list[Instruction] = field(default_factory=list)


@dataclass
class Launch:
    """The recorded events of one launch, or of those that two streams ran at once.

    It begins at ``begin`` in core cycles of all launches, of which each follows the one before; events are from
    ``first`` to before ``until``.
    """

    codes: Sequence[Code]
    gpu: Description
    begin: int
    first: int
    until: int
    ended: bool  # with ``until``; else the record does
    events: np.ndarray
    warps: list[Warp] = field(default_factory=list)
    ctas: list[Cta] = field(default_factory=list)
    levels: list[tuple[int, int, int]] = field(default_factory=list)  # cycle, which (``models.observe.trace``), value
    lines: list[tuple[int, int, int, int, Code]] = field(default_factory=list)  # that the L1 accepts: slot, pc, lanes

    def __post_init__(self) -> None:
        _Reader(self).read()

    @property
    def kernel(self) -> str:
        """The names of what ran."""
        return " + ".join(dict.fromkeys(code.kernel for code in self.codes))

    @property
    def several(self) -> bool:
        """Whether there are CTAs of two streams."""
        return len({code.stream for code in self.codes}) > 1

    @property
    def instructions(self) -> Iterator[Instruction]:
        """In the order of their issue."""
        return iter(sorted((each for warp in self.warps for each in warp.issued), key=lambda each: each.issue))


class _Operations:
    """What the reader has to know of a kernel's instructions."""

    def __init__(self, code: np.ndarray, gpu: Description) -> None:
        self.accesses = np.isin(code["group"], MEMORY_GROUPS).tolist()
        control = code["group"] == Group.CONTROL
        self.barriers = (control & np.isin(code["op"], (Control.BARRIER, Control.REDUCE))).tolist()
        self.writes = [sum(int(word) << 64 * k for k, word in enumerate(row)) for row in code["writes"]]
        self.reads = [sum(int(word) << 64 * k for k, word in enumerate(row)) for row in code["need"]]
        self.pwrites, self.preads = code["pwrites"].tolist(), code["pneed"].tolist()
        pipelines = [gpu.pipelines[name] for name in CATEGORIES]
        self.latency = [pipelines[category].latency for category in code["category"]]
        self.in_lsu = [pipelines[category].pipe == "lsu" for category in code["category"]]

    def needs(self, pc: int, earlier: int) -> bool:
        """Whether an instruction needs a result of an earlier one of its warp."""
        return bool(self.writes[earlier] & self.reads[pc] or self.pwrites[earlier] & self.preads[pc])

    def has_result(self, pc: int) -> bool:
        """Whether an instruction is done when something else says so, and not after its pipeline's latency."""
        return bool(self.writes[pc] or self.pwrites[pc] or self.accesses[pc] or self.barriers[pc])


class _Reader:
    """Makes instructions, warps and CTAs of the events of a launch."""

    def __init__(self, launch: Launch) -> None:
        self.launch = launch
        self.warp: dict[int, Warp] = {}
        self.cta: dict[int, tuple[int, int, Code]] = {}  # by place: its number, its begin
        self.buffer: dict[int, deque[tuple[int, int]]] = defaultdict(deque)  # by slot: pc, arrival
        self.flying: dict[int, list[Instruction]] = defaultdict(list)  # by slot: without an end
        self.starting: dict[tuple[int, int], deque[Instruction]] = defaultdict(deque)
        self.queue: deque[Instruction | None] = deque()  # in the load/store unit; None: issued before the window
        self.is_open = False  # the window: it begins with what is in that queue
        self.next: dict[int, int] = {}  # by slot: since when its next instruction is that
        self.operations = {code: _Operations(code.instructions, launch.gpu) for code in launch.codes}
        self.stream: dict[int, list[Code]] = defaultdict(list)  # one behind the other
        for code in sorted(launch.codes, key=lambda code: code.begin):
            self.stream[code.stream].append(code)

    def _running(self, stream: int, cycle: int) -> Code:
        """What runs in a stream in a core cycle of all launches."""
        begun = bisect_right(self.stream[stream], cycle - self.launch.begin, key=lambda code: code.begin)
        return self.stream[stream][begun - 1]

    def read(self) -> None:
        launch = self.launch
        late = launch.events["kind"] != kinds.FETCHED  # what arrives in a cycle may issue in it
        order = np.lexsort((late, launch.events["cycle"]))
        names = ("cycle", "kind", "slot", "cta", "pc", "value")
        columns = (launch.events[name][order].tolist() for name in names)
        for cycle, kind, slot, place, pc, value in zip(*columns, strict=True):
            self._event(cycle + launch.begin, kind, slot, place, pc, value)
        for place, (number, begin, code) in self.cta.items():
            launch.ctas.append(Cta(place, number, begin, launch.until, code))
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
            code = self.warp[slot].code if slot in self.warp else launch.codes[0]
            launch.lines.append((cycle, slot, pc, value, code))
        elif kind == kinds.LEVEL:
            if slot == kinds.QUEUED and not self.is_open:
                self.is_open = True
                self.queue.extend([None] * value)
            launch.levels.append((cycle, slot, value))
        elif kind == frame.CTA_START:
            self.cta.setdefault(place, (value, cycle, self._running(pc, cycle)))
        elif kind in (frame.CTA_END, frame.CTA_SAVED):
            if place in self.cta:
                number, begin, code = self.cta.pop(place)
                launch.ctas.append(Cta(place, number, begin, cycle + 1, code))
            for each in [s for s, warp in self.warp.items() if warp.place == place]:
                self._end(each, cycle + 1)
        elif kind == frame.WARP_START:
            if slot in self.warp and not self.warp[slot].issued:
                self.warp[slot].index = value
            elif slot not in self.warp:
                number, _, code = self.cta.get(place, (-1, cycle, launch.codes[0]))
                self.warp[slot] = Warp(slot, place, number, value, code, cycle)
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
        code = self.operations[warp.code]
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
            if late and other.warp is warp and code.needs(pc, other.pc):
                one.needs.append(other)
        self.flying[slot] = [other for other in flying if other.done < 0 or other.done > cycle]
        if code.has_result(pc):
            self.flying[slot].append(one)
        if code.in_lsu[pc]:
            self.queue.append(one)
        else:
            self.starting[slot, pc].append(one)
        warp.issued.append(one)
        warp.states.append((cycle, "issues"))

    def _started(self, one: Instruction, cycle: int) -> None:
        one.start = cycle
        code = self.operations[one.warp.code]
        if one.done < 0 and not code.has_result(one.pc):
            one.done = max(cycle - 1 + code.latency[one.pc], cycle + 1)

    def _done(self, cycle: int, slot: int, pc: int, barrier: bool) -> None:
        for one in self.flying[slot]:
            barriers = self.operations[one.warp.code].barriers
            own = barriers[one.pc] if barrier else one.pc == pc and max(one.issue, one.start) < cycle
            if one.done < 0 and own:
                one.done, one.written = cycle, not barrier
                return
