"""Decides what goes to the L1 next: a line from the inter-warp queues, or a store from an intra-warp coalescer.

Kloosterman's thesis, sections 3.3.5 and 3.3.8: the circular queue of the order in which lines were inserted, the
policies *oldest* and *warp ID*, the quanta after which a miss rate above 99 % toggles them, and loads before stores.
"""

from __future__ import annotations

from functools import reduce
from operator import or_
from typing import ClassVar

from amaranth.hdl import Cat, Const, Module, Mux, Signal, Value, signed
from amaranth.lib import data, stream, wiring
from amaranth.lib.memory import Memory
from amaranth.lib.wiring import In, Out
from amaranth.utils import bits_for

from lockstep.rtl.bits import index_of, next_after
from lockstep.rtl.signatures import event
from lockstep.rtl.warppool._layouts import NUMBER_BITS, slot_layout, slots_layout
from lockstep.spec.parameters import MAX_WARPS, TICKETS
from lockstep.spec.warppool.parameters import MAX_COALESCERS, MAX_METADATA, MAX_SLOTS, MAX_TAGS, PIPELINE

MAX_QUANTUM = 1 << 20
MAX_STORE_WAIT = 4095


class RequestSelector(wiring.Component):
    """One action per cycle: pop a tag of the inter-warp queues, or take a store. Either becomes a request to the L1.

    **Order.** A circular queue of as many positions as there are tags. A line that allocates a tag takes the position
    at the tail, port 0 before port 1; a merge into the tag lowers the position's warp. A pop leaves a hole; the head
    moves on to the first position that still waits, and those that it passes are free again. So a pop of the head is
    what makes room, and no position waits for more than ``tags - 1`` others once it is the head.

    **Choice.** A load may go while metadata is left for it and a position waits: with policy 0 the head, with policy 1
    the position with the lowest warp, the oldest of them at a tie; but the head whenever no position is free, so that
    the order never keeps lines out of the queues. A store may go once it has been seen waiting (its port was valid and
    it was not taken in the cycle before), an atomic only while metadata is left. A load goes before a store, but for an
    *overdue* store, one that has already waited for ``store_wait`` cycles. After an overdue store, the next load that
    can go comes first, so that neither starves the other however slow the L1 is. Stores take turns: the first port
    after that of the store taken last.

    **Bounds**, in cycles in which an action is possible (fewer than three requests on their way): an overdue store that
    is no atomic is taken in the (2 x ``coalescers``)-th at the latest; a head, counting only cycles with metadata left,
    is popped in the (2 x ``tags``)-th at the latest.

    **On their way** are at most three requests: popped, arriving from the inter-warp queues, or in the output queue of
    three, whose head is ``access``. They leave in the order of the actions. Metadata is left if ``metadata_free`` of
    the cycle before exceeded the loads and atomics that were on their way to it, the action of that cycle included.

    **Policy.** 0 after reset. At the end of every quantum in which more than 99 of 100 loads that used the L1 missed it
    toggles. Loads that bypass the L1 do not count.

    Latency: ``insert`` to ``pop`` 1 cycle, ``pop`` to ``access`` 2 (the request arrives after 1), a store that becomes
    valid is taken in the next cycle at the earliest and presented one cycle later. All outputs depend on state alone.

    Parameters
    ----------
    lanes : int
        Threads of a warp, 1 to 32.
    warps : int
        Warps of the SM, 1 to 64.
    tickets : int
        Memory instructions of a warp that can be in flight, 1 to 16.
    tags : int
        Tags of all inter-warp queues, 1 to 64.
    merges : int
        Slots of a tag, 1 to 8.
    coalescers : int
        Intra-warp coalescers: ports for inserts and for stores, 1 to 4.
    metadata : int
        Requests that may wait in the L1, 1 to 2048.
    quantum : int
        Cycles between two decisions on the policy, 1 to 2**20.
    store_wait : int
        Cycles after which a store is overdue, 1 to 4095.

    Members
    -------
    insert : In, event per coalescer
        A line was put into ``tag``, which was ``allocated`` for it or has it merged. Two never name the same tag.
        Allocations of one cycle never exceed ``room``.
    request : In, event
        What was in the tag popped in the cycle before: exactly then.
    pop : Out, event
        ``tag`` leaves the inter-warp queues; 0 while not valid.
    room : Out
        Free positions.
    store : In, stream per coalescer
        A line that is not a load: an atomic or else a store. Ready only while valid is known to be 1.
    metadata_free : In
        Free metadata entries, before what leaves on ``access`` in this cycle takes one.
    access : Out, stream
        The request to the L1. Stores and atomics: ``count`` is 1, ``slots[0]`` has warp and ticket, all else in the
        slots is 0. Loads: ``mask`` and ``last`` are 0. The payload holds until the next one is presented.
    miss : In
        The load that is transferred on ``access`` in this cycle missed.
    policy : Out
        0 oldest, 1 warp ID.
    overdue : Out
        The action of this cycle is an overdue store.

    Raises
    ------
    ValueError
        when an argument is out of range.
    """

    LARGEST: ClassVar = {
        "lanes": 32, "warps": MAX_WARPS, "tickets": TICKETS, "tags": MAX_TAGS, "merges": MAX_SLOTS,
        "coalescers": MAX_COALESCERS, "metadata": MAX_METADATA, "quantum": MAX_QUANTUM, "store_wait": MAX_STORE_WAIT,
    }  # fmt: skip

    def __init__(
        self,
        *,
        lanes: int = 32,
        warps: int = 48,
        tickets: int = TICKETS,
        tags: int = 64,
        merges: int = 4,
        coalescers: int = 2,
        metadata: int = 256,
        quantum: int = 100_000,
        store_wait: int = 64,
    ) -> None:
        given = dict(
            lanes=lanes, warps=warps, tickets=tickets, tags=tags, merges=merges, coalescers=coalescers,
            metadata=metadata, quantum=quantum, store_wait=store_wait,
        )  # fmt: skip
        for name, most in self.LARGEST.items():
            if not 1 <= given[name] <= most:
                raise ValueError(f"{name} must be 1 to {most}, not {given[name]}")
        self._tags, self._coalescers, self._quantum, self._store_wait = tags, coalescers, quantum, store_wait
        tag, warp, ticket = bits_for(tags - 1), bits_for(warps - 1), bits_for(tickets - 1)
        merged = slots_layout(merges, slot_layout(lanes=lanes, warps=warps, tickets=tickets))
        insert = data.StructLayout({"tag": tag, "warp": warp, "allocated": 1})
        request = data.StructLayout({"number": NUMBER_BITS, "bypass": 1, **merged})
        store = data.StructLayout(
            {"number": NUMBER_BITS, "mask": lanes, "last": 1, "atomic": 1, "warp": warp, "ticket": ticket}
        )
        access = data.StructLayout(
            {"number": NUMBER_BITS, "store": 1, "atomic": 1, "bypass": 1, "last": 1, "mask": lanes, **merged}
        )
        super().__init__(
            {
                "insert": In(event(insert)).array(coalescers),
                "request": In(event(request)),
                "pop": Out(event(data.StructLayout({"tag": tag}))),
                "room": Out(range(tags + 1)),
                "store": In(stream.Signature(store)).array(coalescers),
                "metadata_free": In(range(metadata + 1)),
                "access": Out(stream.Signature(access)),
                "miss": In(1),
                "policy": Out(1),
                "overdue": Out(1),
            }
        )
        # State of the order, by position but for the places of the tags.
        index = bits_for(tags - 1)
        self._waiting = Signal(tags, name="waiting")
        self._head, self._tail = Signal(index, name="head"), Signal(index, name="tail")
        self._lowest = [Signal(tags, reset_less=True, name=f"lowest_{bit}") for bit in range(warp)]  # bits of the warp
        self._tag_at = Memory(shape=index, depth=tags, init=[])
        self._position_of = Memory(shape=index, depth=tags, init=[])
        # Of the choice: cycles for which each store has waited, and whether it is an atomic; the port that was last to
        # have one taken; an overdue store went, and no load since.
        self._waited = [Signal(range(store_wait + 1), name=f"waited_{k}") for k in range(coalescers)]
        self._atomic = [Signal(name=f"atomic_{k}") for k in range(coalescers)]
        self._last, self._load_next = Signal(range(coalescers), name="last"), Signal(name="load_next")
        # Of what is on its way: popped in the cycle before, the queue, the loads and atomics.
        self._popped = Signal(name="popped")
        self._count, self._reserved = (Signal(range(PIPELINE + 1), name=name) for name in ("count", "reserved"))
        self._entries = [self.access.p]
        self._entries += [Signal(access, reset_less=True, name=f"behind_{i}") for i in range(1, PIPELINE)]
        self._metadata_left = Signal(name="metadata_left")
        # Of the policy: the cycle of the quantum, loads that used the L1 in those before, and how many hit.
        self._cycle, self._accesses, self._hits = (
            Signal(range(quantum), name=name) for name in ("cycle", "accesses", "hits")
        )

    @property
    def tags(self) -> int:
        return self._tags

    @property
    def coalescers(self) -> int:
        return self._coalescers

    @property
    def quantum(self) -> int:
        return self._quantum

    @property
    def store_wait(self) -> int:
        return self._store_wait

    def elaborate(self, platform: object) -> Module:
        m = Module()
        ready = Signal(self.coalescers)
        taken = Signal(self.coalescers)
        self._order(m)
        may_go, due = self._stores(m)
        self._output(m, taken)
        self._metadata(m, taken)
        self._toggle(m)

        possible = Signal()
        load = Signal()
        preferred = Signal()
        asks = Signal(self.coalescers)
        m.d.comb += [
            possible.eq(self._popped + self._count < PIPELINE),
            load.eq(self._waiting.any() & self._metadata_left),
            preferred.eq(due.any() & ~(load & self._load_next)),
            asks.eq(Mux(preferred, due, may_go)),
            ready.eq(Mux(possible & (preferred | ~load), next_after(asks, self._last), 0)),
            taken.eq(ready & Cat(port.valid for port in self.store)),
            Cat(port.ready for port in self.store).eq(ready),
            self.pop.valid.eq(possible & load & ~preferred),
            self.overdue.eq(possible & preferred),
        ]
        with m.If(self.pop.valid | self.overdue):
            m.d.sync += self._load_next.eq(self.overdue)
        with m.If(ready.any()):
            m.d.sync += self._last.eq(index_of(ready))
        return m

    def _order(self, m: Module) -> None:
        """The circular queue: drives ``room`` and the tag that a pop takes."""
        tags = self.tags
        m.submodules.tag_at, m.submodules.position_of = self._tag_at, self._position_of
        waiting, head, tail, lowest = self._waiting, self._head, self._tail, self._lowest
        index = len(head)

        full = Signal()
        from_head = Signal(tags)
        m.d.comb += [
            full.eq((head == tail) & waiting.any()),
            self.room.eq(Mux(head == tail, Mux(full, 0, tags), head - tail + Mux(head < tail, tags, 0))),
            # An arithmetic shift to the right: ones from the head on.
            from_head.eq(Const(-1 << tags - 1, signed(tags)) >> (tags - 1 - head)[:index]),
        ]

        def oldest(mask: Value, name: str) -> Value:
            """The first position of a mask from the head on, circularly."""
            ahead, searched = Signal(tags, name=f"{name}_ahead"), Signal(tags, name=f"{name}_searched")
            m.d.comb += [ahead.eq(mask & from_head), searched.eq(Mux(ahead.any(), ahead, mask))]
            return _index_of_lowest(m, searched, name)

        candidates = waiting
        for bit in reversed(range(len(lowest))):
            lower, narrowed = Signal(tags, name=f"lower_{bit}"), Signal(tags, name=f"candidates_{bit}")
            m.d.comb += [lower.eq(candidates & ~lowest[bit]), narrowed.eq(Mux(lower.any(), lower, candidates))]
            candidates = narrowed
        position = Signal(index)
        reader = self._tag_at.read_port(domain="comb")
        m.d.comb += [
            position.eq(Mux(self.policy & ~full, oldest(candidates, "lowest_warp"), head)),
            reader.addr.eq(position),
            self.pop.payload.tag.eq(Mux(self.pop.valid, reader.data, 0)),
        ]

        place = tail
        added, lowered = [], []  # masks of positions, by port: which begin to wait, which take the port's warp
        for k, insert in enumerate(self.insert):
            line = insert.payload
            allocates, at = Signal(name=f"allocates_{k}"), Signal(tags, name=f"at_{k}")
            find = self._position_of.read_port(domain="comb")
            warp, new = Signal.like(line.warp, name=f"warp_{k}"), Signal(tags, name=f"new_{k}")
            sets, after = Signal(tags, name=f"sets_{k}"), Signal(index, name=f"after_{k}")
            m.d.comb += [
                allocates.eq(insert.valid & line.allocated),
                find.addr.eq(line.tag),
                at.eq(Const(1) << Mux(allocates, place, find.data)),
                warp.eq(Cat((bits & at).any() for bits in lowest)),
                new.eq(Mux(allocates, at, 0)),
                sets.eq(Mux(insert.valid & (allocates | (line.warp < warp)), at, 0)),
                after.eq(Mux(allocates, Mux(place == tags - 1, 0, place + 1), place)),
            ]
            tag_at = self._tag_at.write_port()
            position_of = self._position_of.write_port()
            for port, address, content in ((tag_at, place, line.tag), (position_of, line.tag, place)):
                m.d.comb += [port.en.eq(allocates), port.addr.eq(address), port.data.eq(content)]
            added.append(new)
            lowered.append(sets)
            place = after

        remaining = Signal(tags)
        m.d.comb += remaining.eq(waiting & ~Mux(self.pop.valid, Const(1) << position, 0))
        m.d.sync += [
            waiting.eq(reduce(or_, added, remaining)),
            head.eq(Mux(remaining.any(), oldest(remaining, "remaining"), tail)),
            tail.eq(place),
        ]
        for bit, bits in enumerate(lowest):
            ones = (Mux(insert.payload.warp[bit], sets, 0) for insert, sets in zip(self.insert, lowered, strict=True))
            m.d.sync += bits.eq(reduce(or_, ones, bits & ~reduce(or_, lowered)))

    def _stores(self, m: Module) -> tuple[Signal, Signal]:
        """The masks of the ports whose store may go, and of those whose store is overdue."""
        may_go = Signal(self.coalescers)
        due = Signal(self.coalescers)
        for k, port in enumerate(self.store):
            waited, atomic = self._waited[k], self._atomic[k]
            m.d.comb += [
                may_go[k].eq((waited != 0) & (self._metadata_left | ~atomic)),
                due[k].eq((waited == self.store_wait) & may_go[k]),
            ]
            m.d.sync += atomic.eq(port.p.atomic)
            with m.If(~port.valid | port.ready):
                m.d.sync += waited.eq(0)
            with m.Elif(waited != self.store_wait):
                m.d.sync += waited.eq(waited + 1)
        return may_go, due

    def _output(self, m: Module, taken: Signal) -> None:
        """The queue in front of the L1, ``access`` first: what arrives enters before a store taken in that cycle."""
        request, entries, count = self.request.payload, self._entries, self._count
        kept = Signal.like(count)
        after_request = Signal.like(count)
        leaves = Signal()
        m.d.comb += [
            self.access.valid.eq(count != 0),
            leaves.eq(self.access.valid & self.access.ready),
            kept.eq(count - leaves),
            after_request.eq(kept + self.request.valid),
        ]
        m.d.sync += [self._popped.eq(self.pop.valid), count.eq(after_request + taken.any())]
        with m.If(leaves & (count > 1)):
            m.d.sync += [entries[i - 1].eq(entries[i]) for i in range(1, PIPELINE)]
        load = {name: request[name] for name in ("number", "bypass", "count", "slots")}
        with m.If(self.request.valid):
            _put(m, entries, kept, load)
        for k, port in enumerate(self.store):
            with m.If(taken[k]):
                same = {name: port.p[name] for name in ("number", "mask", "last", "atomic")}
                slot = Cat(port.p.warp, port.p.ticket)  # the lowest bits of the first one
                _put(m, entries, after_request, {**same, "store": ~port.p.atomic, "count": 1, "slots": slot})

    def _metadata(self, m: Module, taken: Signal) -> None:
        """Whether an entry is left for one more load or atomic, in addition to those on their way."""
        reserves = Signal()
        leaves = Signal()
        m.d.comb += [
            reserves.eq(self.pop.valid | (Cat(port.p.atomic for port in self.store) & taken).any()),
            leaves.eq(self.access.valid & self.access.ready & ~self.access.p.store),
        ]
        m.d.sync += [
            self._reserved.eq(self._reserved + reserves - leaves),
            self._metadata_left.eq(self.metadata_free > self._reserved + reserves),
        ]

    def _toggle(self, m: Module) -> None:
        """The policy, decided at the end of every quantum."""
        cycle, before = self._cycle, (self._accesses, self._hits)
        accesses, hits = (Signal(range(self.quantum + 1), name=f"{signal.name}_now") for signal in before)
        counts = Signal()
        access = self.access.p
        m.d.comb += [
            counts.eq(self.access.valid & self.access.ready & ~(access.store | access.atomic | access.bypass)),
            accesses.eq(before[0] + counts),
            hits.eq(before[1] + (counts & ~self.miss)),
        ]
        with m.If(cycle == self.quantum - 1):
            m.d.sync += [cycle.eq(0), *(signal.eq(0) for signal in before)]
            m.d.sync += self.policy.eq(self.policy ^ (100 * hits < accesses))
        with m.Else():
            m.d.sync += [cycle.eq(cycle + 1), before[0].eq(accesses), before[1].eq(hits)]


def _index_of_lowest(m: Module, mask: Signal, name: str) -> Value:
    """The index of the lowest bit set, found by halving; any index if there is none."""
    bits: list[Value] = []
    for level in reversed(range(bits_for(len(mask) - 1))):
        half = 1 << level
        empty, rest = Signal(name=f"{name}_bit_{level}"), Signal(half, name=f"{name}_half_{level}")
        m.d.comb += [empty.eq(~mask[:half].any()), rest.eq(Mux(empty, mask[half:], mask[:half]))]
        bits.append(empty)
        mask = rest
    return Cat(reversed(bits))


def _put(m: Module, entries: list[data.View], index: Value, fields: dict[str, Value | int]) -> None:
    """Fill the entry at ``index``; the fields that are not given become 0."""
    for i, entry in enumerate(entries):
        with m.If(index == i):
            for name in entry.shape().members:
                m.d.sync += Value.cast(entry[name]).eq(Value.cast(fields.get(name, 0)))
