"""A trace as a file for ui.perfetto.dev: TrackEvents on tracks of CTAs, schedulers, the load/store unit, warps, levels.

A core cycle is shown as a nanosecond.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import count, pairwise
from typing import TYPE_CHECKING, Any

from lockstep.models.memory.l1 import REFUSALS
from lockstep.models.observe import trace as kinds

if TYPE_CHECKING:
    from lockstep.sim.device.trace.recording import Code, Launch, Warp

__all__ = ["content"]

SEQUENCE = 1  # of the packets: there is one writer
WINDOW = 100  # core cycles over which the counter of instructions per cycle is a mean
LEVELS = {kinds.MSHRS: "L1: fetches on their way", kinds.IN_FLIGHT: "LSU: memory instructions in flight",
          kinds.QUEUED: "LSU: instructions in its queue", kinds.WARPS: "resident warps"}  # fmt: skip


def content(sm: int, launches: Sequence[Launch]) -> bytes:
    """The bytes of the file."""
    return _File(sm, launches).content()


class _File:
    def __init__(self, sm: int, launches: Sequence[Launch]) -> None:
        from perfetto.protos.perfetto.trace import perfetto_trace_pb2 as messages

        self.messages: Any = messages
        self.file = messages.Trace()
        self.ids = count(1)
        self.tracks: dict[tuple[str, ...], int] = {}
        self.root = next(self.ids)
        descriptor = self._packet().track_descriptor
        descriptor.uuid = self.root
        descriptor.process.pid = sm + 1
        descriptor.process.process_name = f"SM {sm}"
        descriptor.child_ordering = descriptor.EXPLICIT
        for rank, group in enumerate(("launches", "CTAs", "counters", "schedulers", "LSU", "warps")):
            self._track(group, rank=rank)
        for launch in launches:
            self._launch(launch)

    def content(self) -> bytes:
        return self.file.SerializeToString()

    def _packet(self) -> Any:
        packet = self.file.packet.add()
        packet.trusted_packet_sequence_id = SEQUENCE
        return packet

    def _track(self, *path: str, rank: int = 0, counter: bool = False) -> int:
        """The track with a name inside of others."""
        if path not in self.tracks:
            self.tracks[path] = next(self.ids)
            descriptor = self._packet().track_descriptor
            descriptor.uuid, descriptor.name = self.tracks[path], path[-1]
            descriptor.parent_uuid = self.tracks[path[:-1]] if len(path) > 1 else self.root
            descriptor.child_ordering = descriptor.EXPLICIT
            descriptor.sibling_order_rank = rank
            if counter:
                descriptor.counter.SetInParent()
        return self.tracks[path]

    def _event(self, track: int, cycle: int, kind: int) -> Any:
        packet = self._packet()
        packet.timestamp = cycle
        packet.track_event.track_uuid, packet.track_event.type = track, kind
        return packet.track_event

    def _begin(self, track: int, cycle: int, category: str, name: str, **notes: Any) -> None:
        event = self._event(track, cycle, self.messages.TrackEvent.TYPE_SLICE_BEGIN)
        event.name = name
        event.categories.append(category)
        for key, value in notes.items():
            note = event.debug_annotations.add()
            note.name = key
            if isinstance(value, int):
                note.int_value = value
            else:
                note.string_value = value

    def _end(self, track: int, cycle: int) -> None:
        self._event(track, cycle, self.messages.TrackEvent.TYPE_SLICE_END)

    def _slice(self, track: int, begin: int, end: int, category: str, name: str, **notes: Any) -> None:
        if begin < end:
            self._begin(track, begin, category, name, **notes)
            self._end(track, end)

    def _count(self, name: str, cycle: int, value: float) -> None:
        track = self._track("counters", name, rank=len(self.tracks), counter=True)
        self._event(track, cycle, self.messages.TrackEvent.TYPE_COUNTER).double_counter_value = value

    def _launch(self, launch: Launch) -> None:
        self._kernels(launch)
        for cta in sorted(launch.ctas, key=lambda cta: (cta.place, cta.begin)):
            track = self._track("CTAs", f"place {cta.place}", rank=cta.place)
            name = f"{_whose(launch, cta.code)}CTA {cta.number}"
            self._slice(track, cta.begin, cta.end, "cta", name, cta=cta.number, kernel=cta.code.kernel)
        instructions = list(launch.instructions)
        per_window: dict[int, int] = {}
        for one in instructions:
            warp, number = one.warp, one.warp.slot % launch.gpu.core.schedulers
            ptx = warp.code.places[one.pc].ptx
            name = _name(ptx, one.pc)
            notes = dict(cta=warp.cta, warp=warp.index, pc=one.pc, ptx=ptx, kernel=warp.code.kernel)
            track = self._track("schedulers", f"scheduler {number}", rank=number)
            self._slice(track, one.issue, one.issue + 1, "scheduler", name, **notes)
            per_window[one.issue // WINDOW] = per_window.get(one.issue // WINDOW, 0) + 1
        for index in range(launch.first // WINDOW, -(-launch.until // WINDOW)):
            self._count("instructions per cycle", index * WINDOW, per_window.get(index, 0) / WINDOW)
        for warp in sorted(launch.warps, key=lambda warp: (warp.slot, warp.begin)):
            self._warp(launch, warp)
        track = self._track("LSU", "lines to the L1", rank=0)
        for cycle, slot, pc, lanes, code in launch.lines:
            name = _name(code.places[pc].ptx, pc)
            self._slice(track, cycle, cycle + 1, "line", name, slot=slot, pc=pc, lanes=f"{lanes & 0xFFFF_FFFF:08x}")
        self._levels(launch)

    def _kernels(self, launch: Launch) -> None:
        """When they ran: a track for each stream, if there are two."""
        for code in launch.codes:
            track = self._track("launches", f"stream {code.stream}") if launch.several else self._track("launches")
            begin, end = (min(max(launch.begin + at, launch.first), launch.until) for at in (code.begin, code.end))
            self._slice(track, begin, end, "launch", code.kernel)

    def _warp(self, launch: Launch, warp: Warp) -> None:
        """The issues of a warp, and its waits in between, inside of a slice for its life."""
        number = warp.slot % launch.gpu.core.schedulers
        track = self._track("warps", f"warp slot {warp.slot} (scheduler {number})", rank=warp.slot)
        name = f"{_whose(launch, warp.code)}CTA {warp.cta} warp {warp.index}"
        self._begin(track, warp.begin, "warp", name, cta=warp.cta)
        issued = iter(warp.issued)
        for (begin, why), (end, _) in pairwise([*warp.states, (warp.end, "")]):
            if why != "issues":
                self._slice(track, begin, end, "wait", why)
                continue
            one = next(issued)
            place = warp.code.places[one.pc]
            notes = dict(pc=one.pc, ptx=place.ptx, source=f"{place.file}:{place.line}", lanes=f"{one.lanes:08x}",
                         start=one.start, done=one.done)  # fmt: skip
            self._slice(track, begin, begin + 1, "issue", _name(place.ptx, one.pc), **notes)
        self._end(track, warp.end)

    def _levels(self, launch: Launch) -> None:
        refused: tuple[int, str] | None = None
        track = self._track("LSU", "lines that the L1 refuses", rank=1)
        for cycle, which, value in [*launch.levels, (launch.until, kinds.REFUSED, 0)]:
            if which in LEVELS:
                self._count(LEVELS[which], cycle, value)
                continue
            if refused:
                self._slice(track, refused[0], cycle, "refused", refused[1])
            known = -len(REFUSALS) <= value < 0
            refused = (cycle, REFUSALS[-1 - value] if known else "another one's turn") if value else None


def _whose(launch: Launch, code: Code) -> str:
    """The kernel, if there are several."""
    return f"{code.kernel}: " if launch.several else ""


def _name(ptx: str, pc: int) -> str:
    """The opcode."""
    words = [word for word in ptx.split() if not word.startswith("@")]
    return words[0].rstrip(";") if words else f"instruction {pc}"
