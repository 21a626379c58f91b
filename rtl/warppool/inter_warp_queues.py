"""Merges the loads of several warps to the same cache line: between the coalescers and the request selector.

Kloosterman's thesis, sections 3.3.4 and 3.3.9, figure 3.7: a tag names a line, its slots say who waits for it. The 124
bits of table 3.1 per tag are valid (1), the line's number (27) and bypass (1), the count of its slots (3), and 4 slots
of 23.
"""

from __future__ import annotations

from functools import reduce
from operator import or_
from typing import ClassVar

from amaranth.hdl import Cat, Module, Mux, Signal, Value
from amaranth.lib import data, stream, wiring
from amaranth.lib.memory import Memory
from amaranth.lib.wiring import In, Out
from amaranth.utils import bits_for

from lockstep.rtl.bits import index_of, lowest, select
from lockstep.rtl.buffer import Buffer
from lockstep.rtl.signatures import event
from lockstep.rtl.warppool._layouts import NUMBER_BITS, slot_layout, slots_layout
from lockstep.spec.mapping import Mapping
from lockstep.spec.parameters import MAX_L1_LINES, MAX_MAPS, MAX_WARPS, TICKETS
from lockstep.spec.warppool.parameters import MAX_COALESCERS, MAX_SLOTS, MAX_TAGS


class InterWarpQueues(wiring.Component):
    """Collects loads under tags, one tag per line and bypass, until the request selector pops the tag.

    The tags are divided into queues, of which a line number chooses one as it chooses a set of the L1. Each port has a
    buffer of two lines; its head is inserted as soon as a cycle allows it:

    * a tag of its queue has the same number and bypass: merged into it, if that has a slot left, or else it waits;
    * none has: it takes the queue's lowest free tag, if the selector has room for another one.

    A queue takes one line per cycle, from the lowest port that can insert. So two tags never have the same line. What
    is inserted is decided from state alone: a tag that is popped in this cycle still merges, and what is merged leaves
    with it; it is free in the next cycle.

    Latency: a line transferred in cycle t is inserted in t + 1 at the earliest; a tag popped in t is presented in
    t + 1, for that cycle only. Full throughput on every port.

    Parameters
    ----------
    lanes, warps, tickets : int
        Threads of a warp, warps of the SM, memory instructions of a warp in flight: the widths of a slot.
    queues : int
        A power of two.
    tags : int
        Of one queue; at most 64 in all queues.
    merges : int
        Slots of a tag.
    coalescers : int
        Ports.
    set_bits : int
        Log2 of the L1's sets; the queue is (n ^ n >> set_bits ^ n >> 2 * set_bits) mod queues.
    maps : int
        Entries of the thread-map table.

    Members
    -------
    line : In, stream, per port
        A load's line: ``number``, ``bypass`` (the L1), and its slot: ``warp``, ``ticket``, ``mapping``, ``thread``,
        ``word``.
    map_entry : In, per port
        The thread-map entry of the line transferred in this cycle; takes the place of its word if it is *random*.
    insert : Out, event, per port
        The line that is inserted in this cycle: its ``tag`` (queue * tags + place), its ``warp``, and whether the tag
        is ``allocated`` in this cycle. Zero while not valid.
    room : In
        The tags that the selector can still take, before those of this cycle; at least as many as are allocated in it.
    pop : In, event
        The ``tag``, allocated in an earlier cycle and not popped since, that leaves.
    request : Out, event
        The tag popped in the previous cycle: ``number``, ``bypass`` and its ``count`` ``slots`` in the order of their
        insertion, zero from ``count`` on. Holds while not valid.
    """

    LARGEST: ClassVar = {
        "lanes": 32,
        "warps": MAX_WARPS,
        "tickets": TICKETS,
        "queues": MAX_TAGS // 8,
        "tags": 8,
        "merges": MAX_SLOTS,
        "coalescers": MAX_COALESCERS,
        "set_bits": 6,
        "maps": MAX_MAPS,
    }

    def __init__(
        self,
        *,
        lanes: int = 32,
        warps: int = 48,
        tickets: int = TICKETS,
        queues: int = 32,
        tags: int = 2,
        merges: int = 4,
        coalescers: int = 2,
        set_bits: int = 6,
        maps: int = 8,
    ) -> None:
        for what, value, least, most in (
            ("lanes", lanes, 1, 32),
            ("warps", warps, 1, MAX_WARPS),
            ("tickets", tickets, 1, TICKETS),
            ("queues", queues, 1, MAX_TAGS),
            ("tags", tags, 1, MAX_TAGS),
            ("merges", merges, 1, MAX_SLOTS),
            ("coalescers", coalescers, 1, MAX_COALESCERS),
            ("set_bits", set_bits, 0, bits_for(MAX_L1_LINES - 1)),
            ("maps", maps, 1, MAX_MAPS),
        ):
            if not least <= value <= most:
                raise ValueError(f"{what} must be {least} to {most}, not {value}")
        if queues & (queues - 1):
            raise ValueError(f"queues must be a power of two, not {queues}")
        if queues * tags > MAX_TAGS:
            raise ValueError(f"queues * tags must be at most {MAX_TAGS}, not {queues} * {tags}")
        self._queues, self._tags, self._merges, self._coalescers = queues, tags, merges, coalescers
        self._set_bits = set_bits
        self._slot = slot_layout(lanes=lanes, warps=warps, tickets=tickets)
        self._line = data.StructLayout({"number": NUMBER_BITS, "bypass": 1, **self._slot.members})
        self._valid = Signal(queues * tags, name="valid")  # of the tags
        self._buffers = [Buffer(self._line) for _ in range(coalescers)]
        tag = bits_for(queues * tags - 1)
        insert = data.StructLayout({"tag": tag, "warp": bits_for(warps - 1), "allocated": 1})
        request = data.StructLayout({"number": NUMBER_BITS, "bypass": 1, **slots_layout(merges, self._slot)})
        super().__init__(
            {
                "line": In(stream.Signature(self._line)).array(coalescers),
                "map_entry": In(bits_for(maps - 1)).array(coalescers),
                "insert": Out(event(insert)).array(coalescers),
                "room": In(range(MAX_TAGS + 1)),
                "pop": In(event(data.StructLayout({"tag": tag}))),
                "request": Out(event(request)),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        size = self._queues * self._tags
        ports, places = range(self._coalescers), range(self._tags)
        valid = self._valid
        budget = Signal(range(self._coalescers + 1))  # tags that may be allocated; more than one a port is no use
        # The ports insert into different queues in a cycle, so that no two write ports of a memory meet.
        key_shape = data.StructLayout({"number": NUMBER_BITS, "bypass": 1})
        m.submodules.keys = keys = Memory(shape=key_shape, depth=size, init=[])
        m.submodules.counts = counts = Memory(shape=range(self._merges + 1), depth=size, init=[])
        slots = [Memory(shape=self._slot, depth=size, init=[]) for _ in range(self._merges)]
        for i, memory in enumerate(slots):
            m.submodules[f"slots_{i}"] = memory

        def read(memory: Memory, address: Value) -> Value:
            port = memory.read_port(domain="comb")
            m.d.comb += port.addr.eq(address)
            return port.data

        def write(memory: Memory, address: Value, value: Value, enable: Value) -> None:
            port = memory.write_port()
            m.d.comb += [port.addr.eq(address), port.data.eq(value), port.en.eq(enable)]

        heads = [buffer.o.p for buffer in self._buffers]
        queues = [Signal(range(self._queues), name=f"queue_{k}") for k in ports]
        before = [Signal(range(self._merges + 1), name=f"before_{k}") for k in ports]  # slots that the tag has already
        allocations = [insert.payload.allocated for insert in self.insert]
        for k, head in enumerate(heads):
            number, shift = head.number, self._set_bits
            first = Signal(range(size), name=f"first_{k}")  # tag of the queue
            used, hit = Signal(self._tags, name=f"used_{k}"), Signal(self._tags, name=f"hit_{k}")
            free, known = Signal(self._tags, name=f"free_{k}"), Signal(name=f"known_{k}")
            m.d.comb += [
                queues[k].eq(number ^ number >> shift ^ number >> 2 * shift),
                first.eq(queues[k] * self._tags),
                used.eq(valid >> first),
                free.eq(~used),
            ]
            for i in places:
                key = read(keys, first + i)
                m.d.comb += hit[i].eq(used[i] & (key.number == number) & (key.bypass == head.bypass))
            m.d.comb += [
                known.eq(hit.any()),
                before[k].eq(select(hit, [read(counts, first + i) for i in places])),
            ]

            lower = Cat(self.insert[j].valid & (queues[j] == queues[k]) for j in range(k))
            left = budget > sum(allocations[:k]) if k else budget != 0
            can_insert = Mux(known, before[k] != self._merges, free.any() & left)
            insert = self.insert[k].payload
            m.d.comb += self.insert[k].valid.eq(self._buffers[k].o.valid & ~lower.any() & can_insert)
            with m.If(self.insert[k].valid):
                m.d.comb += [
                    insert.tag.eq(first + index_of(Mux(known, hit, lowest(free)))),
                    insert.warp.eq(head.warp),
                    insert.allocated.eq(~known),
                ]
            write(keys, insert.tag, Cat(number, head.bypass), insert.allocated)
            write(counts, insert.tag, before[k] + 1, self.insert[k].valid)
            for i, memory in enumerate(slots):
                write(memory, insert.tag, self._slot_of(head), self.insert[k].valid & (before[k] == i))
            self._drive_buffer(m, k)
        spare = Signal(range(MAX_TAGS + 1))
        m.d.comb += spare.eq(self.room - sum(allocations))
        m.d.sync += budget.eq(Mux(spare < len(ports), spare, len(ports)))

        # The tag popped, and what is merged into it in this cycle.
        tag, request = self.pop.payload.tag, self.request.payload
        late = Cat(insert.valid & (insert.payload.tag == tag) for insert in self.insert)
        merged = Signal(self._slot)
        count = Signal(range(self._merges + 1))
        key = read(keys, tag)
        m.d.comb += [
            merged.eq(select(late, [self._slot_of(head) for head in heads])),
            count.eq(read(counts, tag)),
        ]
        popped = [Mux(count > i, read(slot, tag), Mux(count == i, merged, 0)) for i, slot in enumerate(slots)]
        m.d.sync += self.request.valid.eq(self.pop.valid)
        with m.If(self.pop.valid):
            m.d.sync += [request.number.eq(key.number), request.bypass.eq(key.bypass)]
            m.d.sync += [request.count.eq(count + late.any()), request.slots.eq(Cat(popped))]

        allocate = [Mux(insert.payload.allocated, 1 << insert.payload.tag, 0) for insert in self.insert]
        m.d.sync += valid.eq((valid | reduce(or_, allocate)) & ~Mux(self.pop.valid, 1 << tag, 0))
        return m

    def _slot_of(self, line: data.View) -> Value:
        return Cat(line[name] for name, _ in self._slot)

    def _drive_buffer(self, m: Module, k: int) -> None:
        """Port k's lines enter with the map entry in the place of the word, and leave as they are inserted."""
        line, buffer = self.line[k], self._buffers[k]
        m.submodules[f"buffer_{k}"] = buffer
        m.d.comb += [
            line.ready.eq(buffer.i.ready),
            buffer.i.valid.eq(line.valid),
            buffer.i.p.eq(line.p),
            buffer.o.ready.eq(self.insert[k].valid),
        ]
        with m.If(line.p.mapping == Mapping.RANDOM):
            m.d.comb += buffer.i.p.word.eq(self.map_entry[k])
