"""Merges the loads of several warps to the same cache line: between the coalescers and the request selector.

Kloosterman's thesis, sections 3.3.4 and 3.3.9, figure 3.7: a tag names a line, its slots say who waits for it. The 124
bits of table 3.1 per tag are valid (1), the line's number (27) and bypass (1), the count of its slots (3), and 4 slots
of 23.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import ClassVar

from amaranth.hdl import Cat, Const, Module, Mux, Signal, Value
from amaranth.lib import data, stream, wiring
from amaranth.lib.memory import Memory
from amaranth.lib.wiring import In, Out
from amaranth.utils import bits_for

from lockstep.rtl import ranges
from lockstep.rtl.bits import index_of, lowest, select
from lockstep.rtl.buffer import Buffer
from lockstep.rtl.signatures import event
from lockstep.rtl.warppool._layouts import NUMBER_BITS, slot_layout, slots_layout
from lockstep.spec.mapping import Mapping
from lockstep.spec.parameters import FERMI, FOLD, L1_INDEXES, MAX_L1_LINES, MAX_MAPS, MAX_WARPS, TICKETS
from lockstep.spec.warppool.parameters import MAX_COALESCERS, MAX_SLOTS, MAX_TAGS


class InterWarpQueues(wiring.Component):
    """Collects loads under tags, one tag per line and bypass, until the request selector pops the tag.

    The tags are divided into queues, of which a line number chooses one as it chooses a set of the L1. Each port has a
    head and a line behind it. What a line needs to know of the tags of its queue is read in the cycle before it becomes
    the head, and then follows what happens to them. The head is inserted as soon as a cycle allows it:

    * a tag of its queue has the same number and bypass: merged into it, if that has a slot left, or else it waits;
    * none has: it takes the queue's lowest free tag, if the selector has room for it and for one more per head of a
      lower port.

    A queue takes one line per cycle, from the lowest port whose head is of this queue; while that waits, so do those of
    the ports above. So two tags never have the same line, and no port's decision depends on another's. What is inserted
    is decided from state alone: a tag that is popped in this cycle still merges, and what is merged leaves with it; it
    is free in the next cycle.

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
    index : int
        How the L1 chooses a set, as a position in ``parameters.L1_INDEXES``; the queue is the set modulo the queues.
    set_bits : int
        Log2 of the L1's sets.
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
        "index": FERMI,
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
        index: int = FERMI,
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
            ("index", index, 0, len(L1_INDEXES) - 1),
            ("set_bits", set_bits, 0, bits_for(MAX_L1_LINES - 1)),
            ("maps", maps, 1, MAX_MAPS),
        ):
            ranges.check(what, value, least, most)
        if queues & (queues - 1):
            raise ValueError(f"queues must be a power of two, not {queues}")
        if queues * tags > MAX_TAGS:
            raise ValueError(f"queues * tags must be at most {MAX_TAGS}, not {queues} * {tags}")
        self._queues, self._tags, self._merges, self._coalescers = queues, tags, merges, coalescers
        self._index, self._set_bits = index, set_bits
        self._slot = slot_layout(lanes=lanes, warps=warps, tickets=tickets)
        self._line = data.StructLayout({"number": NUMBER_BITS, "bypass": 1, **self._slot.members})
        self._valid = Signal(queues * tags, name="valid")  # of the tags
        # By tag, while it is in use: what it stands for, its slots in use, and these. Ports write to different queues
        # in a cycle, so that no two write ports of a memory meet.
        size, count = queues * tags, range(merges + 1)
        key = data.StructLayout({"number": NUMBER_BITS, "bypass": 1})
        self._keys, self._counts = Memory(shape=key, depth=size, init=[]), Memory(shape=count, depth=size, init=[])
        self._slots = [Memory(shape=self._slot, depth=size, init=[]) for _ in range(merges)]
        # Per port: its lines with their queues, of which the head is inserted next. By place in the head's queue,
        # whether the tag is in use, whether it is and has the head's number and bypass, and, while it is in use, how
        # many of its slots are, and whether all are.
        ports = range(coalescers)
        self._buffers = [Buffer(data.StructLayout({**self._line.members, "queue": range(queues)})) for _ in ports]
        self._hits = [Signal(tags, reset_less=True, name=f"hits_{k}") for k in ports]
        self._full = [Signal(tags, reset_less=True, name=f"full_{k}") for k in ports]
        self._used = [Signal(tags, reset_less=True, name=f"used_{k}") for k in ports]
        self._filled = [[Signal(count, reset_less=True, name=f"filled_{k}_{i}") for i in range(tags)] for k in ports]
        self._budget = Signal(range(coalescers + 1), name="budget")  # tags to allocate; more than one a port is no use
        # Of the cycle: the place that the head can take, and the tag that this or the one that hits is.
        self._frees = [Signal(tags, name=f"free_{k}") for k in ports]
        self._targets = [Signal(range(size), name=f"target_{k}") for k in ports]
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
        m.submodules.keys, m.submodules.counts = self._keys, self._counts
        for i, memory in enumerate(self._slots):
            m.submodules[f"slots_{i}"] = memory
        ports = range(self._coalescers)
        for k in ports:
            self._drive_buffer(m, k)
            self._insert(m, k)
            self._look_up(m, k)
        self._leave(m)

        # What is left, by the number of allocations; each port decides which of two neighbours remains.
        left = [Mux(self.room < len(ports) + n, self.room - n, len(ports)) for n in range(len(ports) + 1)]
        allocated: Value = Const(0)
        for insert, tag in zip(self.insert, self._targets, strict=True):
            allocates = insert.payload.allocated
            left = [Mux(allocates, fewer, more) for more, fewer in pairwise(left)]
            allocated = allocated | Mux(allocates, 1 << tag, 0)
        popped = Mux(self.pop.valid, 1 << self.pop.payload.tag, 0)
        m.d.sync += [self._budget.eq(left[0]), self._valid.eq((self._valid | allocated) & ~popped)]
        return m

    def _insert(self, m: Module, k: int) -> None:
        """Whether port k's head is inserted, and where; the heads of the ports below come first.

        Number and slot are written where they would go, before it is known whether the line is inserted.
        """
        buffer, hits, free = self._buffers[k], self._hits[k], self._frees[k]
        head, queue = buffer.head, buffer.head.queue
        known = Signal(name=f"known_{k}")
        count = Signal(range(self._merges + 1), name=f"count_{k}")  # of the tag that is merged into, else 0
        tag = self._targets[k]
        m.d.comb += [
            free.eq(lowest(~self._used[k])),
            known.eq(hits.any()),
            count.eq(select(hits, self._filled[k])),
            tag.eq(queue * self._tags + index_of(Mux(known, hits, free))),
        ]
        below = [(each.o.valid, each.head.queue) for each in self._buffers[:k]]
        taken = Cat(valid & (other == queue) for valid, other in below).any()
        left = self._budget > sum(valid for valid, _ in below)
        valid, insert = self.insert[k].valid, self.insert[k].payload
        placed = Signal(name=f"placed_{k}")
        m.d.comb += [
            placed.eq(buffer.o.valid & ~taken & (known | free.any())),
            valid.eq(placed & Mux(known, (hits & ~self._full[k]).any(), left)),
        ]
        with m.If(valid):
            m.d.comb += [
                insert.tag.eq(tag),
                insert.warp.eq(head.warp),
                insert.allocated.eq(~known),
            ]
        writes = [
            (self._keys, Cat(head.number, head.bypass), placed & ~known),
            (self._counts, count + 1, valid),
            *((memory, self._slot_of(head), placed & (count == i)) for i, memory in enumerate(self._slots)),
        ]
        for memory, value, enable in writes:
            port = memory.write_port()
            m.d.comb += [port.addr.eq(tag), port.data.eq(value), port.en.eq(enable)]

    def _look_up(self, m: Module, k: int) -> None:
        """What port k's head needs to know in the next cycle: read for the next head, else kept up to date."""
        buffer, line = self._buffers[k], self._buffers[k].following
        key, queue = Cat(line.number, line.bypass), line.queue
        first = Signal(range(self._queues * self._tags), name=f"first_{k}")
        m.d.comb += first.eq(queue * self._tags)
        alike = [Value.cast(_read(m, self._keys, first + i)) == key for i in range(self._tags)]
        counts = [_read(m, self._counts, first + i) for i in range(self._tags)]
        used = (self._valid >> first)[: self._tags]
        of_next = self._after(m, key, queue, used & Cat(alike), used, counts, Cat(n == self._merges for n in counts))
        head, kept = buffer.head, (self._hits[k], self._used[k], self._filled[k], self._full[k])
        of_head = self._after(m, Cat(head.number, head.bypass), head.queue, *kept)
        moves = buffer.moves
        states = (state for of_tag in zip(*kept, strict=True) for state in of_tag)
        m.d.sync += [state.eq(Mux(moves, new, old)) for state, new, old in zip(states, of_next, of_head, strict=True)]

    def _after(
        self, m: Module, key: Value, queue: Value, hits: Value, used: Value, counts: Sequence[Value], full: Value
    ) -> Iterator[Value]:
        """Of each tag of a queue, after this cycle: does it have the key, is it in use, how many slots are, and all?"""
        ports = range(self._coalescers)
        near, same = Signal(self._coalescers), Signal(self._coalescers)  # ports whose head has this queue, and key
        m.d.comb += [
            near.eq(Cat(buffer.head.queue == queue for buffer in self._buffers)),
            same.eq(Cat(Cat(buffer.head.number, buffer.head.bypass) == key for buffer in self._buffers)),
        ]
        for i in range(self._tags):
            new, more = Signal(self._coalescers), Signal()
            m.d.comb += [
                new.eq(near & Cat(self.insert[j].payload.allocated & self._frees[j][i] for j in ports)),
                more.eq((near & Cat(self.insert[j].valid & self._hits[j][i] for j in ports)).any()),
            ]
            leaves = self.pop.valid & (self.pop.payload.tag == queue * self._tags + i)
            yield Mux(new.any(), (new & same).any(), hits[i] & ~leaves)
            yield (used[i] & ~leaves) | new.any()
            yield Mux(new.any(), 1, counts[i] + more)
            yield Mux(new.any(), self._merges == 1, Mux(more, counts[i] == self._merges - 1, full[i]))

    def _leave(self, m: Module) -> None:
        """The tag popped, and what is merged into it in this cycle."""
        tag, request = self.pop.payload.tag, self.request.payload
        into = Signal(self._coalescers)  # ports whose head belongs to it; only the first of them can be inserted
        merged, late = Signal(self._slot), Signal()
        count = Signal(range(self._merges + 1))
        for k, (buffer, hits) in enumerate(zip(self._buffers, self._hits, strict=True)):
            found = Cat(hits[i] & (tag == buffer.head.queue * self._tags + i) for i in range(self._tags))
            m.d.comb += into[k].eq(buffer.o.valid & found.any())
        m.d.comb += [
            merged.eq(select(lowest(into), [self._slot_of(buffer.head) for buffer in self._buffers])),
            late.eq((into & Cat(insert.valid for insert in self.insert)).any()),
            count.eq(_read(m, self._counts, tag)),
        ]
        slots = [_read(m, memory, tag) for memory in self._slots]  # of which the first is in use
        key = _read(m, self._keys, tag)
        slots[1:] = [
            Mux(count > i, slot, Mux((count == i) & late, merged, 0)) for i, slot in enumerate(slots[1:], start=1)
        ]
        m.d.sync += self.request.valid.eq(self.pop.valid)
        with m.If(self.pop.valid):
            m.d.sync += [
                request.number.eq(key.number),
                request.bypass.eq(key.bypass),
                request.count.eq(count + late),
                request.slots.eq(Cat(slots)),
            ]

    def _queue_of(self, number: Value) -> Value:
        """The queue of a line, if only the low bits are looked at."""
        if self._index == FERMI:
            return number ^ Cat(number[6:9], number[10], number[12])
        if self._index == FOLD:
            return number ^ number >> self._set_bits ^ number >> 2 * self._set_bits
        return number

    def _slot_of(self, line: data.View) -> Value:
        return Cat(line[name] for name, _ in self._slot)

    def _drive_buffer(self, m: Module, k: int) -> None:
        """Port k's lines enter with the map entry in the place of the word, and leave as they are inserted."""
        line, buffer = self.line[k], self._buffers[k]
        m.submodules[f"buffer_{k}"] = buffer
        m.d.comb += [
            line.ready.eq(buffer.i.ready),
            buffer.i.valid.eq(line.valid),
            buffer.i.p.queue.eq(self._queue_of(line.p.number)),
            *(buffer.i.p[name].eq(getattr(line.p, name)) for name, _ in self._line),
            buffer.o.ready.eq(self.insert[k].valid),
        ]
        with m.If(line.p.mapping == Mapping.RANDOM):
            m.d.comb += buffer.i.p.word.eq(self.map_entry[k])


def _read(m: Module, memory: Memory, address: Value) -> Value:
    port = memory.read_port(domain="comb")
    m.d.comb += port.addr.eq(address)
    return port.data
