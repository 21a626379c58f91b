"""Proofs about ``warppool.inter_warp_queues``: two ports, two queues of two tags with two slots; full line numbers.

The environment is assumed to pop only tags that are in use, and to tell its room truthfully: it does not shrink but by
what was allocated. Everything else is free.
"""

from __future__ import annotations

from amaranth.hdl import Array, Assert, Assume, Cat, Cover, Module, Mux, Signal, Value
from amaranth.lib import data
from amaranth.lib.memory import Memory

from lockstep.rtl.warppool.inter_warp_queues import NUMBER_BITS, InterWarpQueues
from lockstep.spec.mapping import Mapping
from lockstep.spec.parameters import FERMI
from lockstep.verif.formal import Proof

QUEUES, TAGS, MERGES, PORTS = 2, 2, 2, 2
TOTAL = QUEUES * TAGS


def _queue(number: Value) -> Value:
    """As the Fermi L1 chooses a set: bit 6 is added to bit 0."""
    return number[0] ^ number[6]


def _read(m: Module, memory: Memory, address: Value | int) -> data.View:
    port = memory.read_port(domain="comb")
    m.d.comb += port.addr.eq(address)
    return port.data


class _Property(InterWarpQueues):
    """The block with its environment, and with what its tags are in every state."""

    def __init__(self) -> None:
        super().__init__(
            lanes=1, warps=2, tickets=1, queues=QUEUES, tags=TAGS, merges=MERGES, coalescers=PORTS, index=FERMI,
            set_bits=1, maps=2,
        )  # fmt: skip

    def elaborate(self, platform: object) -> Module:
        m = super().elaborate(platform)
        # Of all tags. A read whose address depends on what was read from the same memory would count as a loop.
        self.keys = Array(Value.cast(_read(m, m.submodules.keys, tag)) for tag in range(TOTAL))
        self.counts = Array(Value.cast(_read(m, m.submodules.counts, tag)) for tag in range(TOTAL))
        self.allocations = sum(insert.payload.allocated for insert in self.insert)

        started = Signal()
        self.spare = Signal(self.room.shape())  # room that the previous cycle left
        m.d.sync += [started.eq(1), self.spare.eq(self.room - self.allocations)]
        m.d.comb += [
            Assume(~self.pop.valid | self._valid.bit_select(self.pop.payload.tag, 1)),
            Assume(~started | (self.room >= self.spare)),
        ]

        for tag in range(TOTAL):
            with m.If(self._valid[tag]):
                m.d.comb += Assert(_queue(self.keys[tag][:NUMBER_BITS]) == tag // TAGS)
                m.d.comb += Assert((self.counts[tag] >= 1) & (self.counts[tag] <= MERGES))
        for queue in range(QUEUES):
            a, b = queue * TAGS, queue * TAGS + 1
            with m.If(self._valid[a] & self._valid[b]):
                m.d.comb += Assert(self.keys[a] != self.keys[b])
        for k in range(PORTS):
            self._head(m, k)
        self.check(m)
        return m

    def _head(self, m: Module, k: int) -> None:
        """What a head knows of its queue is so."""
        buffer, head = self._buffers[k], self._buffers[k].head
        queue = head.queue
        m.d.comb += Assert(buffer.count <= 2)
        with m.If(buffer.count != 0):
            m.d.comb += [
                Assert(queue == _queue(head.number)),
                Assert((buffer.count < 2) | (buffer.second.queue == _queue(buffer.second.number))),
            ]
            for i in range(TAGS):
                tag, used = queue * TAGS + i, self._used[k][i]
                m.d.comb += [
                    Assert(used == self._valid.bit_select(tag, 1)),
                    Assert(self._hits[k][i] == (used & (self.keys[tag] == Cat(head.number, head.bypass)))),
                    Assert(~used | (self._filled[k][i] == self.counts[tag])),
                    Assert(~used | (self._full[k][i] == (self.counts[tag] == MERGES))),
                ]

    def check(self, m: Module) -> None:
        raise NotImplementedError


class _Tags(_Property):
    def check(self, m: Module) -> None:
        for k, insert in enumerate(self.insert):
            payload = insert.payload
            key, count = self.keys[payload.tag], self.counts[payload.tag]
            head, in_use = self._buffers[k].head, self._valid.bit_select(payload.tag, 1)
            with m.If(insert.valid):
                m.d.comb += Assert(self._buffers[k].count != 0)
                m.d.comb += Assert(payload.warp == head.warp)
                m.d.comb += Assert(payload.tag // TAGS == _queue(head.number))
                m.d.comb += Assert(payload.allocated != in_use)
                with m.If(payload.allocated & payload.tag[0]):
                    m.d.comb += Assert(self._valid.bit_select(payload.tag ^ 1, 1))
                with m.If(~payload.allocated):
                    m.d.comb += Assert(key == Cat(head.number, head.bypass))
                    m.d.comb += Assert(count < MERGES)
                for other in list(self.insert)[:k]:
                    m.d.comb += Assert(~other.valid | (other.payload.tag // TAGS != payload.tag // TAGS))
            with m.Else():
                m.d.comb += Assert(payload.as_value() == 0)
        m.d.comb += Assert(self.allocations <= self.room)


class _Progress(_Property):
    def check(self, m: Module) -> None:
        known = Signal()  # the room of a previous cycle
        m.d.sync += known.eq(1)
        for k, buffer in enumerate(self._buffers):
            lower = self._buffers[:k]
            head = buffer.head
            same, places, full = Signal(TOTAL), Signal(TOTAL), Signal(TOTAL)
            for tag in range(TOTAL):
                m.d.comb += [
                    same[tag].eq(self._valid[tag] & (self.keys[tag] == Cat(head.number, head.bypass))),
                    places[tag].eq(~self._valid[tag] & (_queue(head.number) == tag // TAGS)),
                    full[tag].eq(self.counts[tag] == MERGES),
                ]
            taken = Cat((b.count != 0) & (_queue(b.head.number) == _queue(head.number)) for b in lower).any()
            before = sum(b.count != 0 for b in lower)
            no_room = (before >= self.spare) | ~known
            reason = taken | Mux(same.any(), (same & full).any(), ~places.any() | no_room)
            m.d.comb += Assert((buffer.count == 0) | self.insert[k].valid | reason)


class _Delivery(_Property):
    """Follows a line, any one, from its port to the request that it leaves in."""

    OUTSIDE, BUFFERED, TAGGED, LEAVING = range(4)

    def check(self, m: Module) -> None:
        stage, port, behind = Signal(2), Signal(range(PORTS)), Signal()
        key, slot = Signal(NUMBER_BITS + 1), Signal(self._slot)
        tag, index = Signal(range(TOTAL)), Signal(range(MERGES))
        choice = Signal(range(PORTS))
        slots = [_read(m, m.submodules[f"slots_{i}"], tag) for i in range(MERGES)]

        def popped(place: Value) -> Value:
            return self.pop.valid & (self.pop.payload.tag == place)

        with m.Switch(stage):
            with m.Case(self.OUTSIDE):
                for k, (line, buffer) in enumerate(zip(self.line, self._buffers, strict=True)):
                    p, follow = line.p, Signal(name=f"follow_{k}")
                    with m.If(line.valid & line.ready & follow & (choice == k)):
                        word = Mux(p.mapping == Mapping.RANDOM, self.map_entry[k], p.word)
                        m.d.sync += [
                            stage.eq(self.BUFFERED), port.eq(k), behind.eq(buffer.count - self.insert[k].valid),
                            key.eq(Cat(p.number, p.bypass)),
                            slot.eq(Cat(p.warp, p.ticket, p.mapping, p.thread, word[:5])),
                        ]  # fmt: skip
            with m.Case(self.BUFFERED):
                for k, buffer in enumerate(self._buffers):
                    payload = self.insert[k].payload
                    count = self.counts[payload.tag]
                    with m.If(port == k):
                        line = Mux(behind, buffer.second, buffer.head)[: self._line.size]
                        m.d.comb += Assert(buffer.count > behind)
                        m.d.comb += Assert(line == Cat(key, slot))
                        with m.If(self.insert[k].valid):
                            m.d.sync += behind.eq(0)
                            with m.If(~behind):
                                m.d.sync += [
                                    stage.eq(Mux(popped(payload.tag), self.LEAVING, self.TAGGED)), tag.eq(payload.tag),
                                    index.eq(Mux(payload.allocated, 0, count)),
                                ]  # fmt: skip
            with m.Case(self.TAGGED):
                m.d.comb += Assert(self._valid.bit_select(tag, 1))
                m.d.comb += Assert(self.keys[tag] == key)
                m.d.comb += Assert(self.counts[tag] > index)
                m.d.comb += Assert(Mux(index, slots[1], slots[0]) == slot.as_value())
                with m.If(popped(tag)):
                    m.d.sync += stage.eq(self.LEAVING)
            with m.Case(self.LEAVING):
                request = self.request.payload
                m.d.comb += [Assert(self.request.valid), Cover(index != 0)]
                m.d.comb += Assert(Cat(request.number, request.bypass) == key)
                m.d.comb += Assert(request.count > index)
                m.d.comb += Assert(request.slots[index].as_value() == slot.as_value())
                m.d.sync += stage.eq(self.OUTSIDE)


class _Count(_Property):
    def check(self, m: Module) -> None:
        inside = Signal(8)
        entering = sum(line.valid & line.ready for line in self.line)
        leaving = Mux(self.request.valid, self.request.payload.count, 0)
        m.d.sync += inside.eq(inside + entering - leaving)
        under_tags = sum(Mux(self._valid[tag], self.counts[tag], 0) for tag in range(TOTAL))
        m.d.comb += Assert(inside == sum(buffer.count for buffer in self._buffers) + under_tags + leaving)
        for i in range(MERGES):
            slot = self.request.payload.slots[i].as_value()
            m.d.comb += Assert((i < self.request.payload.count) | (slot == 0))


class _Covers(_Property):
    def check(self, m: Module) -> None:
        first, second = self.insert[0], self.insert[1]
        left, gone = Signal(range(TOTAL)), Signal()
        m.d.sync += [gone.eq(self.pop.valid), left.eq(self.pop.payload.tag)]
        merges = first.valid & ~first.payload.allocated
        m.d.comb += [
            Cover(self.request.valid & (self.request.payload.count == MERGES)),
            Cover(merges & self.pop.valid & (self.pop.payload.tag == first.payload.tag)),
            Cover(gone & first.payload.allocated & (first.payload.tag == left)),
            Cover(first.payload.allocated & second.payload.allocated),
            Cover(self._valid.all()),
            Cover(~self.line[0].ready & ~first.valid & second.valid),
        ]


PROOFS = {
    "tags": Proof(
        _Tags, "prove", 2,
        "No line has two tags, the lowest tag that is free is allocated, no full tag is merged into, a queue takes one "
        "line per cycle, and no more is allocated than the selector has room for",
        long=True,
    ),
    "progress": Proof(
        _Progress, "prove", 2,
        "A head is inserted unless a lower port's head has its queue, its tag is full, or there is none left for it",
        long=True,
    ),
    "delivery": Proof(
        _Delivery, "prove", 2, "A line leaves in the request of its number and bypass, in the order of insertion",
        long=True,
    ),
    "delivery happens": Proof(_Delivery, "cover", 8, "A line leaves as the second one of its request"),
    "count": Proof(
        _Count, "prove", 2, "As many slots leave as lines entered, but for those inside; others are zero", long=True
    ),
    "covers": Proof(
        _Covers, "cover", 10,
        "A full request, a merge in the cycle of the pop, a tag allocated right after it left, two allocations at "
        "once, all tags in use, and a port that waits while the other one inserts can happen",
    ),
}  # fmt: skip
