"""Decides what goes to the L1 next: a line from the inter-warp queues, or a store from an intra-warp coalescer.

Kloosterman's thesis, sections 3.3.5 and 3.3.8: the circular queue of the order in which lines were inserted, the
policies *oldest* and *warp ID*, the quanta after which a miss rate above 99 % toggles them, and loads before stores.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce
from itertools import pairwise
from operator import and_, or_
from typing import ClassVar

from amaranth.hdl import Cat, Const, Module, Mux, Signal, Value
from amaranth.lib import data, stream, wiring
from amaranth.lib.memory import Memory
from amaranth.lib.wiring import In, Out
from amaranth.utils import bits_for

from lockstep.rtl.bits import first_after, index_of, lowest, next_after, select
from lockstep.rtl.buffer import Buffer
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
    moves on to the first position that still waits, and those that it passes are free again, as ``room`` says a cycle
    later. So a pop of the head is what makes room, and no position waits for more than ``tags - 1`` others once it is
    the head.

    **Search.** With policy 1 a search finds the positions with the lowest warp, among those that wait in its first
    cycle, with the warps that they have then; what was inserted in the cycle before counts from the next cycle on. It
    takes a cycle to begin, one for every two bits of the warps and one for the oldest: 5 for 48 warps. What it found
    follows, oldest first: in the cycle after, and after each pop, the next of them becomes the choice, which may be
    popped from the following cycle on. With the last of them the next search begins, which leaves the choice out. It
    also begins anew two cycles after a merge that lowers a warp, and once what was found has a higher warp than a line
    inserted since.

    **Choice.** A load may go while metadata is left for it: with policy 0 the head; with policy 1 the choice, but the
    head where nothing else waits, and whenever there is no room, so that the order never keeps lines out of the queues.
    A pop of the head for these reasons ends search and choice. Each port holds two stores, the first of which may go,
    an atomic only while metadata is left. A load goes before a store, but for an *overdue* store, one that has already
    been its port's first for ``store_wait`` cycles. After an overdue store, the next load that can go comes first, so
    that neither starves the other however slow the L1 is. Stores take turns: the first port after that of the store
    taken last.

    **Bounds**, in cycles in which an action is possible (fewer than three requests on their way): an overdue store that
    is no atomic is taken in the (2 x ``coalescers``)-th at the latest; a head, counting only cycles in which a load may
    go, is popped in the (2 x ``tags``)-th at the latest.

    **On their way** are at most three requests: popped, arriving from the inter-warp queues, or in the output queue of
    three, whose head is ``access``. They leave in the order of the actions. Metadata is left if ``metadata_free`` of
    the cycle before exceeded the loads and atomics that were on their way to it, the action of that cycle included.

    **Policy.** 0 after reset. At the end of every quantum in which more than 99 of 100 loads that used the L1 missed it
    toggles. Loads that bypass the L1 do not count; the others do in the cycle after their transfer.

    Latency: ``insert`` to ``pop`` 1 cycle, with policy 1 a search and 3 where others wait too; ``pop`` to ``access`` 2
    (the request arrives after 1); a store that enters is taken in the next cycle at the earliest and presented one
    cycle later. All outputs depend on state alone.

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
        Cycles after which a port's first store is overdue, 1 to 4095.

    Members
    -------
    insert : In, event per coalescer
        A line was put into ``tag``, which was ``allocated`` for it or has it merged. Two never name the same tag.
        Allocations of one cycle never exceed ``room``.
    request : In, event
        What was in the tag popped in the cycle before: exactly then.
    pop : Out, event
        ``tag`` leaves the inter-warp queues. While not valid, the tag that would be popped; 0 if there is none.
    room : Out
        Free positions.
    store : In, stream per coalescer
        A line that is not a load: an atomic or else a store. Ready while its port holds fewer than two.
    metadata_free : In
        Free metadata entries, before what leaves on ``access`` in this cycle takes one.
    access : Out, stream
        The request to the L1. Stores and atomics: ``count`` is 1, ``slots[0]`` has warp and ticket, all else in the
        slots is 0. Loads: ``mask`` and ``last`` are 0. The payload holds until the next one is presented.
    miss : In
        The load that is transferred on ``access`` in this cycle missed, or joined one that did.
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
                "room": Out(range(tags + 1), init=tags),
                "store": In(stream.Signature(store)).array(coalescers),
                "metadata_free": In(range(metadata + 1)),
                "access": Out(stream.Signature(access)),
                "miss": In(1),
                "policy": Out(1),
                "overdue": Out(1),
            }
        )
        # State of the order, by position but for the places of the tags; how many lines wait, whether some do, and
        # whether a load goes by its warp. ``second`` is the first position behind the head.
        index = bits_for(tags - 1)
        self._waiting, self._count_waiting = Signal(tags, name="waiting"), Signal(range(tags + 1), name="count_waiting")
        self._some_wait, self._by_warp = Signal(name="some_wait"), Signal(name="by_warp")
        self._head, self._second, self._tail = (Signal(index, name=name) for name in ("head", "second", "tail"))
        self._head_tag = Signal(tag, name="head_tag")
        self._lowest = [Signal(tags, reset_less=True, name=f"lowest_{bit}") for bit in range(warp)]  # bits of the warp
        self._tag_at = Memory(shape=index, depth=tags, init=[])
        self._position_of = Memory(shape=index, depth=tags, init=[])
        # Of the lines inserted in the cycle before, whose warps and places are written now.
        self._inserted = [Signal(name=f"inserted_{k}") for k in range(coalescers)]
        self._allocated = [Signal(name=f"allocated_{k}") for k in range(coalescers)]
        self._at = [Signal(index, name=f"at_{k}") for k in range(coalescers)]
        self._warp = [Signal(warp, name=f"warp_{k}") for k in range(coalescers)]
        self._tag = [Signal(tag, name=f"tag_{k}") for k in range(coalescers)]
        # Of the search: its cycle, one-hot, the first bit also while there is none, the last while what was found
        # follows; what may still be the lowest, or is and has not been the choice; the oldest of them; the choice. Its
        # tag is 0 while there is none.
        self._comparisons = (warp + 1) // 2
        self._search = Signal(self._comparisons + 3, init=1, name="search")
        self._candidates, self._found = Signal(tags, name="candidates"), Signal(index, name="found")
        self._found_warp = Signal(2 * self._comparisons, name="found_warp")
        self._least = Signal(warp, name="least")  # of the warps inserted since the search began
        self._choice, self._choice_tag = Signal(index, name="choice"), Signal(tag, name="choice_tag")
        self._choice_valid = Signal(name="choice_valid")
        self._lowered = Signal(name="lowered")  # a warp was, in the cycle before
        # Of the choice: each port's stores; cycles for which the first of them has waited, and whether for
        # ``store_wait``; the port that was last to have one taken; an overdue store went, and no load since.
        self._stores = [Buffer(store) for _ in range(coalescers)]
        self._waited = [Signal(range(store_wait + 1), name=f"waited_{k}") for k in range(coalescers)]
        self._late = Signal(coalescers, name="late")
        self._last, self._load_next = Signal(range(coalescers), name="last"), Signal(name="load_next")
        # Of what is on its way: popped in the cycle before, how many are in the queue (one-hot), the queue, the loads
        # and atomics.
        self._popped, self._count = Signal(name="popped"), Signal(PIPELINE + 1, init=1, name="count")
        self._reserved = Signal(range(PIPELINE + 1), name="reserved")
        self._entries = [self.access.p]
        self._entries += [Signal(access, reset_less=True, name=f"behind_{i}") for i in range(1, PIPELINE)]
        self._metadata_left = Signal(name="metadata_left")
        # Of the policy: what the L1 said of a load in the cycle before; the cycle of the quantum; by how much the loads
        # that used the L1 in those before exceed 100 times those that hit, less one: negative as long as at most 99 of
        # 100 missed.
        self._hit, self._missed = Signal(name="hit"), Signal(name="missed")
        self._cycle = Signal(range(quantum), name="cycle")
        self._margin = Signal(range(-99 * quantum - 1, quantum), init=-1, name="margin")

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
        load = self._order(m, self._toggle(m))
        taken = Signal(self.coalescers)
        may_go, due = self._wait(m, taken)

        # The store that goes, if one does, is known before it is known whether a load goes.
        candidate, takes = Signal(self.coalescers), Signal()
        store = Signal.like(self._stores[0].head, name="candidate_store")
        possible, some_due, load_first = Signal(), Signal(), Signal()
        m.d.comb += [
            possible.eq(~(self._count[-1] | (self._popped & self._count[-2]))),
            some_due.eq(due.any()),
            candidate.eq(Mux(some_due, next_after(due, self._last), next_after(may_go, self._last))),
            Value.cast(store).eq(select(candidate, [Value.cast(stores.head) for stores in self._stores])),
            load_first.eq(load & (self._load_next | ~some_due)),
            takes.eq(possible & may_go.any() & ~load_first),
            taken.eq(Mux(takes, candidate, 0)),
            self.pop.valid.eq(possible & load_first),
            self.overdue.eq(takes & some_due),
        ]
        with m.If(self.pop.valid | self.overdue):
            m.d.sync += self._load_next.eq(self.overdue)
        with m.If(takes):
            m.d.sync += self._last.eq(index_of(candidate))
        self._output(m, store, takes)
        self._metadata(m, store.atomic & takes)
        return m

    def _order(self, m: Module, next_policy: Value) -> Signal:
        """The circular queue and what it pops: drives ``room`` and the tag. Returns whether a load may go."""
        m.submodules.tag_at, m.submodules.position_of = self._tag_at, self._position_of
        waiting, count, tags = self._waiting, self._count_waiting, self.tags
        head, second, tail = self._head, self._second, self._tail

        by_warp, load, position = self._by_warp, Signal(), Signal.like(head)
        m.d.comb += [
            load.eq(Mux(by_warp, self._choice_valid, self._some_wait) & self._metadata_left),
            position.eq(Mux(by_warp, self._choice, head)),
            self.pop.payload.tag.eq(Mux(by_warp, self._choice_tag, self._head_tag)),
        ]
        head_goes, second_goes = Signal(), Signal()
        kept_head, kept_second = Signal.like(head), Signal.like(second)
        none_left, one_left = Signal(), Signal()
        third = first_after(m, waiting, second, "third")
        numbers = range(self.coalescers + 1)  # of allocations
        allocates = [Signal(name=f"allocates_{k}") for k in numbers[1:]]
        tails = [tail, *(Signal.like(tail, name=f"tail_after_{n}") for n in numbers[1:])]
        added = [reduce(or_, (Const(1) << place for place in tails[:n]), Const(0)) for n in numbers]
        m.d.comb += [
            Cat(allocates).eq(Cat(insert.valid & insert.payload.allocated for insert in self.insert)),
            *(new.eq(Mux(place == tags - 1, 0, place + 1)) for place, new in pairwise(tails)),
            head_goes.eq(self.pop.valid & (~by_warp | (self._choice == head))),
            second_goes.eq(self.pop.valid & by_warp & (self._choice == second)),
            kept_head.eq(Mux(head_goes, second, head)),
            kept_second.eq(Mux(head_goes | second_goes, third, second)),
            none_left.eq(Mux(self.pop.valid, count <= 1, count == 0)),
            one_left.eq(Mux(self.pop.valid, count == 2, count == 1)),
        ]
        places = [
            Mux(allocates[k], _by_count(allocates[:k], tails[: k + 1]), self._place_of(m, insert.payload.tag))
            for k, insert in enumerate(self.insert)
        ]
        # Who is second or third does not matter while fewer wait.
        first_tag = reduce(
            lambda rest, k: Mux(allocates[k], self.insert[k].payload.tag, rest), reversed(range(self.coalescers)), 0
        )
        m.d.sync += [
            waiting.eq((waiting & ~Mux(self.pop.valid, Const(1) << position, 0)) | _by_count(allocates, added)),
            count.eq(_by_count(allocates, [Mux(self.pop.valid, count + n - 1, count + n) for n in numbers])),
            self._some_wait.eq(_by_count(allocates, [~none_left, *[1] * self.coalescers])),
            head.eq(Mux(none_left, tail, kept_head)),
            self._head_tag.eq(Mux(none_left, first_tag, Mux(head_goes, self._tag_of(m, second), self._head_tag))),
            second.eq(Mux(none_left, tails[1], Mux(one_left, tail, kept_second))),
            tail.eq(_by_count(allocates, tails)),
        ]
        free, alone = Signal.like(self.room), [one_left, none_left, *[Const(0)] * self.coalescers]
        m.d.comb += free.eq(Mux(count == 0, tags, head - tail + Mux(head < tail, tags, 0)))
        m.d.sync += [
            self.room.eq(_by_count(allocates, [free - n for n in numbers])),
            by_warp.eq(_by_count(allocates, [next_policy & (free > n) & ~alone[n] for n in numbers])),
        ]
        self._lower(m, places, by_warp)
        return load

    def _tag_of(self, m: Module, place: Value) -> Value:
        return self._recent(m, self._tag_at, place, self._at, self._tag)

    def _place_of(self, m: Module, tag: Value) -> Value:
        return self._recent(m, self._position_of, tag, self._tag, self._at)

    def _recent(
        self, m: Module, memory: Memory, address: Value, addresses: Sequence[Value], contents: Sequence[Value]
    ) -> Value:
        """What a memory of places will hold when the lines inserted in the cycle before are written."""
        result = _read(m, memory, address)
        for k, (written, content) in enumerate(zip(addresses, contents, strict=True)):
            result = Mux(self._inserted[k] & self._allocated[k] & (written == address), content, result)
        return result

    def _lower(self, m: Module, places: list[Value], by_warp: Value) -> None:
        """The warps of the lines inserted in the cycle before, and the search for the lowest."""
        waiting, tags = self._waiting, self.tags
        fresh, lowers = Signal(tags), Signal(tags)  # positions that were allocated; those whose warp gets lower
        written = []
        for k, insert in enumerate(self.insert):
            warp, allocated = self._warp[k], self._allocated[k]
            at, less = Signal(tags, name=f"written_{k}"), Signal(tags, name=f"less_{k}")
            below: Value = Const(0, tags)
            for bit, bits in zip(warp, self._lowest, strict=True):
                below = (bits & below) | Mux(bit, 0, bits | below)
            m.d.comb += [
                less.eq(below),
                at.eq(
                    Mux(self._inserted[k], Const(1) << self._at[k], 0) & waiting & (less | allocated.replicate(tags))
                ),
            ]
            written.append(at)
            both = ((self._tag_at, self._at[k], self._tag[k]), (self._position_of, self._tag[k], self._at[k]))
            for memory, address, content in both:
                port = memory.write_port()
                m.d.comb += [
                    port.en.eq(self._inserted[k] & allocated), port.addr.eq(address), port.data.eq(content)
                ]  # fmt: skip
            m.d.sync += [
                self._inserted[k].eq(insert.valid),
                allocated.eq(insert.payload.allocated),
                self._at[k].eq(places[k]),
                self._tag[k].eq(insert.payload.tag),
                warp.eq(insert.payload.warp),
            ]
        by_kind = list(zip(written, self._allocated, strict=True))
        m.d.comb += [
            fresh.eq(reduce(or_, (Mux(allocated, at, 0) for at, allocated in by_kind))),
            lowers.eq(reduce(or_, (Mux(allocated, 0, at) for at, allocated in by_kind))),
        ]
        least: Value = Mux(self._search[0], (1 << len(self._least)) - 1, self._least)
        for inserted, warp in zip(self._inserted, self._warp, strict=True):
            least = Mux(inserted & (warp < least), warp, least)
        m.d.sync += self._least.eq(least)
        for bit, bits in enumerate(self._lowest):
            ones = (Mux(warp[bit], at, 0) for warp, at in zip(self._warp, written, strict=True))
            m.d.sync += bits.eq(reduce(or_, ones, bits & ~reduce(or_, written)))
        m.d.sync += self._lowered.eq(lowers.any())
        self._find(m, waiting & ~fresh, by_warp)

    def _find(self, m: Module, seen: Value, by_warp: Value) -> None:
        """The search: what waits, two bits of the warps in each of the next cycles, then the oldest, one by one."""
        search, compared, tags, candidates = self._search, self._comparisons, self.tags, self._candidates
        planes = [*self._lowest, Const(0, tags)][: 2 * compared]
        high, low, narrowed = (Signal(tags, name=name) for name in ("high_bits", "low_bits", "narrowed"))
        steps = search[1 : compared + 1]
        m.d.comb += [
            low.eq(select(steps, planes[-2::-2])),
            high.eq(select(steps, planes[-1::-2])),
        ]
        classes = [Signal(tags, name=f"class_{i}") for i in range(4)]
        some, first = Signal(4, name="classes_with_some"), Signal(4, name="first_class")
        m.d.comb += [
            *(
                bits.eq(candidates & (high if i & 2 else ~high) & (low if i & 1 else ~low))
                for i, bits in enumerate(classes)
            ),
            some.eq(Cat(bits.any() for bits in classes)),
            first.eq(lowest(some)),
            narrowed.eq(select(first, classes)),
        ]
        chosen, left = Signal(tags), Signal(tags)
        ends, begins, follows, anew = Signal(), Signal(), Signal(), Signal()
        m.d.comb += [
            chosen.eq(Mux(self._choice_valid, Const(1) << self._choice, 0)),
            left.eq(candidates & ~(Const(1) << self._found)),
            ends.eq(~self.policy | (self.pop.valid & ~by_warp)),
            # What was allocated in the cycle before waits, and is not seen.
            begins.eq(
                search[0] & (self._count_waiting > sum(map(and_, self._inserted, self._allocated), self._choice_valid))
            ),
            follows.eq(search[-1] & (self.pop.valid | ~self._choice_valid)),
            anew.eq(self._lowered | (search[-1] & (self._least < self._found_warp)) | (follows & ~left.any())),
        ]
        with m.If(self.policy & search[0]):
            m.d.sync += candidates.eq(seen & ~chosen)
        with m.Elif(steps.any()):
            m.d.sync += [
                candidates.eq(narrowed),
                self._found_warp.eq(Cat(index_of(first), self._found_warp)),
            ]
        with m.Elif(follows):
            m.d.sync += candidates.eq(left)
        oldest = first_after(m, candidates, Mux(search[-1], self._found, self._head), "oldest", itself=~search[-1])
        with m.If(search[-2] | follows):
            m.d.sync += self._found.eq(oldest)
        with m.If(follows):
            m.d.sync += self._choice.eq(self._found)
        with m.If(ends | (self.pop.valid & ~follows)):
            m.d.sync += self._choice_tag.eq(0)
        with m.Elif(follows):
            m.d.sync += self._choice_tag.eq(_read(m, self._tag_at, self._found))  # of a line that the search saw
        with m.If(ends | anew):
            m.d.sync += search.eq(1)
        with m.Elif(begins | ~(search[0] | search[-1])):
            m.d.sync += search.eq(search.rotate_left(1))
        m.d.sync += self._choice_valid.eq((follows | (self._choice_valid & ~self.pop.valid)) & ~ends)

    def _wait(self, m: Module, taken: Signal) -> tuple[Signal, Signal]:
        """The stores that wait. The masks of the ports whose first may go, and of those where it is overdue."""
        may_go = Signal(self.coalescers)
        due = Signal(self.coalescers)
        for k, (port, stores, waited) in enumerate(zip(self.store, self._stores, self._waited, strict=True)):
            m.submodules[f"buffer_{k}"] = stores
            wiring.connect(m, wiring.flipped(port), stores.i)
            m.d.comb += [
                stores.o.ready.eq(taken[k]),
                may_go[k].eq(stores.o.valid & (self._metadata_left | ~stores.head.atomic)),
                due[k].eq(self._late[k] & may_go[k]),
            ]
            with m.If(~stores.o.valid | taken[k]):
                m.d.sync += [waited.eq(0), self._late[k].eq(0)]
            with m.Elif(~self._late[k]):
                m.d.sync += [waited.eq(waited + 1), self._late[k].eq(waited == self.store_wait - 1)]
        return may_go, due

    def _output(self, m: Module, store: data.View, takes: Signal) -> None:
        """The queue in front of the L1, ``access`` first: what arrives enters before a store taken in that cycle."""
        request, entries, count = self.request.payload, self._entries, self._count
        kept, after_request = Signal.like(count), Signal.like(count)
        leaves = Signal()
        m.d.comb += [
            self.access.valid.eq(~count[0]),
            leaves.eq(self.access.valid & self.access.ready),
            kept.eq(Mux(leaves, count >> 1, count)),
            after_request.eq(Mux(self.request.valid, kept << 1, kept)),
        ]
        m.d.sync += [
            self._popped.eq(self.pop.valid),
            count.eq(Mux(takes, after_request << 1, after_request)),
        ]
        with m.If(leaves & ~count[1]):
            m.d.sync += [entries[i - 1].eq(entries[i]) for i in range(1, PIPELINE)]
        load = {name: request[name] for name in ("number", "bypass", "count", "slots")}
        with m.If(self.request.valid):
            _put(m, entries, kept, load)
        with m.If(takes):
            same = {name: store[name] for name in ("number", "mask", "last", "atomic")}
            slot = Cat(store.warp, store.ticket)  # the lowest bits of the first one
            _put(m, entries, after_request, {**same, "store": ~store.atomic, "count": 1, "slots": slot})

    def _metadata(self, m: Module, atomic: Value) -> None:
        """Whether an entry is left for one more load or atomic, in addition to those on their way."""
        reserves = Signal()
        leaves = Signal()
        m.d.comb += [
            reserves.eq(self.pop.valid | atomic),
            leaves.eq(self.access.valid & self.access.ready & ~self.access.p.store),
        ]
        more = self._reserved + 1
        m.d.sync += [
            self._reserved.eq(self._reserved + reserves - leaves),
            self._metadata_left.eq(Mux(reserves, self.metadata_free > more, self.metadata_free > self._reserved)),
        ]

    def _toggle(self, m: Module) -> Value:
        """The policy, decided at the end of every quantum. Returns that of the next cycle."""
        cycle, margin = self._cycle, self._margin
        counts, now, ends = Signal(), Signal.like(margin, name="margin_now"), Signal(name="quantum_ends")
        access = self.access.p
        m.d.comb += [
            counts.eq(self.access.valid & self.access.ready & ~(access.store | access.atomic | access.bypass)),
            now.eq(margin + Mux(self._hit, -99, self._missed)),
            ends.eq(cycle == self.quantum - 1),
        ]
        m.d.sync += [self._hit.eq(counts & ~self.miss), self._missed.eq(counts & self.miss)]
        following = self.policy ^ (ends & (now >= 0))
        m.d.sync += [
            cycle.eq(Mux(ends, 0, cycle + 1)),
            margin.eq(Mux(ends, margin.init, now)),
            self.policy.eq(following),
        ]
        return following


def _by_count(happens: Sequence[Value], prepared: Sequence[Value | int]) -> Value:
    """What is prepared for the number of things that happen: each of them, late, decides which of two remains."""
    for each in happens:
        prepared = [Mux(each, more, fewer) for fewer, more in pairwise(prepared)]
    return Value.cast(prepared[0])


def _read(m: Module, memory: Memory, address: Value) -> Value:
    port = memory.read_port(domain="comb")
    m.d.comb += port.addr.eq(address)
    return port.data


def _put(m: Module, entries: list[data.View], place: Value, fields: dict[str, Value | int]) -> None:
    """Fill the entry at a place, one-hot; the fields that are not given become 0."""
    for chosen, entry in zip(place, entries, strict=False):
        with m.If(chosen):
            for name in entry.shape().members:
                m.d.sync += Value.cast(entry[name]).eq(Value.cast(fields.get(name, 0)))
