"""Keeps which warps' loads wait for each request to the L1, until it is answered.

Kloosterman's thesis, section 3.3.6, table 3.1: a slot of 23 bits for each of the four loads that a request merges, and
an entry for each of the requests that the L1 can have in flight.
"""

from __future__ import annotations

from typing import ClassVar

from amaranth.hdl import Module, Mux, Signal, Value
from amaranth.lib import data, memory, wiring
from amaranth.lib.wiring import In, Out
from amaranth.utils import bits_for

from lockstep.rtl.signatures import observed
from lockstep.rtl.warppool._layouts import slot_layout, slots_layout
from lockstep.spec.parameters import MAX_WARPS, TICKETS
from lockstep.spec.warppool.parameters import MAX_METADATA, MAX_SLOTS


class MshrMetadata(wiring.Component):
    """Allocates an entry when the L1 accepts a load or an atomic; gives its slots and frees it when it is answered.

    Latency: an entry that is allocated in a cycle can be answered in the next; an answer's slots follow one cycle after
    it, from the output latch of a synchronous memory, and its entry is free from then on.

    Free entries form a queue, the longest free first, that begins with all entries in order. What it begins with is not
    stored: an entry that was never used is the queue's position itself.

    The environment transfers no load or atomic when ``free`` is 0, and answers only entries that are in use.

    Parameters
    ----------
    lanes : int
        Threads of a warp.
    warps : int
        Warps of the SM.
    tickets : int
        Memory instructions of a warp that can be in flight.
    entries : int
        Requests that can be in flight.
    merges : int
        Loads that a request merges.

    Members
    -------
    access : In, observed
        The requests to the L1. Each but a ``store`` stores the first ``count`` of its ``slots`` in the entry ``id``.
    id : Out
        The next entry; 0 when none is free.
    free : Out
        Free entries.
    answer : In, observed
        The answers of the L1: ``id`` is the entry.
    slots : Out
        ``count`` and ``slots`` of the last answer; slots from ``count`` on are zero, as is everything before the first
        answer.

    Raises
    ------
    ValueError
        for a size out of range.
    """

    LARGEST: ClassVar = {
        "lanes": 32, "warps": MAX_WARPS, "tickets": TICKETS, "entries": MAX_METADATA, "merges": MAX_SLOTS
    }  # fmt: skip

    def __init__(
        self, *, lanes: int = 32, warps: int = 48, tickets: int = TICKETS, entries: int = 256, merges: int = 4
    ) -> None:
        for what, value, most in (
            ("lanes", lanes, 32), ("warps", warps, MAX_WARPS), ("tickets", tickets, TICKETS),
            ("entries", entries, MAX_METADATA), ("merges", merges, MAX_SLOTS),
        ):  # fmt: skip
            if not 1 <= value <= most:
                raise ValueError(f"{what} must be 1 to {most}, not {value}")
        self._entries = entries
        self._merges = merges
        slots = slots_layout(merges, slot_layout(lanes=lanes, warps=warps, tickets=tickets))
        index = bits_for(entries - 1)
        super().__init__(
            {
                "access": In(observed(data.StructLayout({"store": 1, **slots}))),
                "id": Out(index),
                "free": Out(range(entries + 1)),
                "answer": In(observed(data.StructLayout({"id": index}))),
                "slots": Out(data.StructLayout(slots)),
            }
        )
        # The state; proofs speak of it. The queue of free entries is full at first: both ends are at position 0.
        self.head = Signal(index)
        self.tail = Signal(index)
        self.reused = Signal()  # every entry was allocated before
        self.used = Signal(range(entries + 1))

    @property
    def entries(self) -> int:
        return self._entries

    @property
    def merges(self) -> int:
        return self._merges

    def elaborate(self, platform: object) -> Module:
        m = Module()
        allocate = Signal()
        answered = Signal()
        m.d.comb += [
            allocate.eq(self.access.valid & self.access.ready & ~self.access.payload.store),
            answered.eq(self.answer.valid & self.answer.ready),
        ]

        m.submodules.table = table = memory.Memory(shape=self.slots.shape(), depth=self.entries, init=[])
        write = table.write_port()
        read = table.read_port()
        latched = Signal()  # the memory's output latch is not reset
        m.d.comb += [
            write.en.eq(allocate),
            write.addr.eq(self.id),
            write.data.count.eq(self.access.payload.count),
            write.data.slots.eq(self.access.payload.slots),
            read.en.eq(answered),
            read.addr.eq(self.answer.payload.id),
        ]
        with m.If(answered):
            m.d.sync += latched.eq(1)
        with m.If(latched):
            m.d.comb += self.slots.count.eq(read.data.count)
            for i in range(self.merges):
                m.d.comb += self.slots.slots[i].eq(Mux(i < read.data.count, Value.cast(read.data.slots[i]), 0))

        m.submodules.queue = queue = memory.Memory(shape=self.id.shape(), depth=self.entries, init=[])
        push = queue.write_port()
        front = queue.read_port(domain="comb")
        head, tail, reused, used = self.head, self.tail, self.reused, self.used
        last = self.entries - 1
        m.d.comb += [
            self.free.eq(self.entries - used),
            front.addr.eq(head),
            push.en.eq(answered),
            push.addr.eq(tail),
            push.data.eq(self.answer.payload.id),
        ]
        with m.If(used != self.entries):
            m.d.comb += self.id.eq(Mux(reused, front.data, head))
        m.d.sync += used.eq(used + allocate - answered)
        with m.If(allocate):
            m.d.sync += [head.eq(Mux(head == last, 0, head + 1)), reused.eq(reused | (head == last))]
        with m.If(answered):
            m.d.sync += tail.eq(Mux(tail == last, 0, tail + 1))
        return m
