"""What is proved of ``warppool.request_selector``, in an environment that does whatever the protocol allows.

The environment is the tags in the inter-warp queues, the stores on offer and the metadata in use. Beside it, each proof
counts in its own terms (ages in allocations, requests on their way) and ties these to the block's state, so that one
step of induction is enough.
"""

from __future__ import annotations

from functools import reduce
from operator import add, or_

from amaranth.hdl import Assert, Assume, Cat, Const, Cover, Elaboratable, Module, Mux, Signal, Value

from lockstep.rtl.bits import index_of, lowest, popcount, select
from lockstep.rtl.warppool.request_selector import RequestSelector
from lockstep.spec.warppool.parameters import PIPELINE
from lockstep.verif.formal import Proof

METADATA, QUANTUM, STORE_WAIT = 2, 3, 2


class Neighbours(Elaboratable):
    """The block in its environment, without a property."""

    def __init__(self, tags: int = 3, coalescers: int = 2, warps: int = 4) -> None:
        self.tags, self.coalescers = tags, coalescers
        self.dut = RequestSelector(
            lanes=1, warps=warps, tickets=1, tags=tags, merges=1, coalescers=coalescers, metadata=METADATA,
            quantum=QUANTUM, store_wait=STORE_WAIT,
        )  # fmt: skip
        self.here = Signal(tags)  # the tags that the queues hold
        self.popped = Signal(tags)  # one-hot: the tag that leaves
        self.allocations = [Signal(tags, name=f"allocation_{k}") for k in range(coalescers)]  # one-hot
        self.merges = [Signal(tags, name=f"merge_{k}") for k in range(coalescers)]
        self.way, self.needy = Signal(range(PIPELINE + 2)), Signal(range(PIPELINE + 2))  # requests; loads and atomics
        self.queued = Signal(range(PIPELINE + 1))
        self.taken, self.transfer, self.possible = Signal(coalescers), Signal(), Signal()

    def elaborate(self, platform: object) -> Module:
        m = Module()
        m.submodules.dut = dut = self.dut
        self._lines(m)
        self._stores(m)
        in_use, released = Signal(range(METADATA + 1)), Signal(range(METADATA + 1))
        takes = Signal()
        m.d.comb += [
            self.transfer.eq(dut.access.valid & dut.access.ready),
            takes.eq(self.transfer & ~dut.access.p.store),
            dut.metadata_free.eq(METADATA - in_use),
            Assume(released <= in_use),
            Assert(in_use + takes <= METADATA),
            self.possible.eq(self.way < PIPELINE),
        ]
        needs = dut.pop.valid | (self.taken & Cat(stores.head.atomic for stores in dut._stores)).any()
        m.d.sync += [
            in_use.eq(in_use + takes - released),
            self.way.eq(self.way + dut.pop.valid + self.taken.any() - self.transfer),
            self.needy.eq(self.needy + needs - takes),
        ]
        # What the block counts is on its way, and there is metadata for it.
        entries = ((i < self.queued) & ~entry.store for i, entry in enumerate(dut._entries))
        m.d.comb += [
            self.queued.eq(index_of(dut._count)),
            Assert(popcount(dut._count) == 1),
            Assert(self.way == self.queued + dut._popped),
            Assert(self.way <= PIPELINE),
            Assert(self.needy == dut._reserved),
            Assert(self.needy == reduce(add, entries, dut._popped)),
            Assert(self.needy + dut._metadata_left <= dut.metadata_free),
        ]
        return m

    def _lines(self, m: Module) -> None:
        dut = self.dut
        room: Value = dut.room
        named: Value = Const(0, self.tags)
        for k, insert in enumerate(dut.insert):
            tag = Signal(self.tags, name=f"named_{k}")
            m.d.comb += [
                tag.eq(Mux(insert.valid, Const(1) << insert.payload.tag, 0)),
                Assume(~insert.valid | (insert.payload.tag < self.tags)),
                Assume((tag & named) == 0),
                self.allocations[k].eq(Mux(insert.payload.allocated, tag, 0)),
                self.merges[k].eq(Mux(insert.payload.allocated, 0, tag)),
                Assume((self.allocations[k] & self.here) == 0),
                Assume((self.merges[k] & ~self.here) == 0),
                Assume(~self.allocations[k].any() | (room != 0)),
            ]
            room = room - self.allocations[k].any()
            named = named | tag
        arrives = Signal()
        m.d.comb += [
            self.popped.eq(Mux(dut.pop.valid, Const(1) << dut.pop.payload.tag, 0)),
            dut.request.valid.eq(arrives),
            Assert(arrives == dut._popped),
        ]
        m.d.sync += [
            self.here.eq(reduce(or_, self.allocations, self.here) & ~self.popped),
            arrives.eq(dut.pop.valid),
        ]

    def _stores(self, m: Module) -> None:
        """A store that is on offer stays until it enters."""
        dut = self.dut
        for k, (port, stores) in enumerate(zip(dut.store, dut._stores, strict=True)):
            offered, before = Signal(name=f"offered_{k}"), Signal.like(port.p, name=f"before_{k}")
            m.d.sync += [offered.eq(port.valid & ~port.ready), before.eq(port.p)]
            m.d.comb += [
                self.taken[k].eq(stores.o.valid & stores.o.ready),
                Assume(~offered | (port.valid & (Value.cast(port.p) == Value.cast(before)))),
                Assert(stores.count <= 2),
                Assert((dut._waited[k] == 0) | stores.o.valid),
                Assert(dut._waited[k] <= STORE_WAIT),
                Assert(dut._late[k] == (dut._waited[k] == STORE_WAIT)),
            ]

    def may_go(self, k: int) -> Value:
        """The first store of port k may be taken."""
        stores = self.dut._stores[k]
        return stores.o.valid & (self.dut._metadata_left | ~stores.head.atomic)


class Order(Neighbours):
    """The tag that leaves is the one that the policy names, and ``room`` is exact, a cycle late."""

    def __init__(self, tags: int = 3, coalescers: int = 2, warps: int = 4) -> None:
        super().__init__(tags, coalescers, warps)
        self.age = [Signal(range(tags + 1), name=f"age_{t}") for t in range(tags)]  # allocations since, and its own
        self.oldest = Signal(range(tags + 1))  # the highest age, 0 if there is none
        self.choice, self.is_chosen = Signal(tags), Signal()
        self.by_warp, self.load = Signal(), Signal()

    def elaborate(self, platform: object) -> Module:
        m = super().elaborate(platform)
        dut, tags = self.dut, range(self.tags)
        later: list[Value] = []  # per port: allocations from it on
        for allocation in reversed(self.allocations):
            later.insert(0, allocation.any() + (later[0] if later else 0))
        for t in tags:
            m.d.sync += self.age[t].eq(self.age[t] + later[0])
            for k in range(self.coalescers):
                with m.If(self.allocations[k][t]):
                    m.d.sync += self.age[t].eq(later[k])

        ages = [Mux(self.here[t], self.age[t], 0) for t in tags]
        room = Signal(range(self.tags + 1), init=self.tags)
        m.d.sync += room.eq(self.tags - self.oldest - later[0])
        m.d.comb += [
            *(Assume(age <= self.oldest) for age in ages),
            Assume(reduce(or_, (age == self.oldest for age in ages))),
            Assert(dut.room == room),
            Assert(room + self.oldest <= self.tags),
            Assert((self.popped & ~self.here) == 0),
            self.by_warp.eq(dut.policy & (room != 0) & (popcount(self.here) > 1)),
            self.load.eq(Mux(self.by_warp, self.is_chosen, self.here.any()) & dut._metadata_left),
        ]
        self._search(m)
        for t in tags:
            with m.If(self.popped[t]):
                m.d.comb += Assert(Mux(self.by_warp, self.is_chosen & self.choice[t], self.age[t] == self.oldest))

        # Where the block keeps it.
        second = Signal(range(self.tags + 1))  # the highest age but one
        younger = [Mux(age == self.oldest, 0, age) for age in ages]
        m.d.comb += [
            *(Assume(age <= second) for age in younger),
            Assume(reduce(or_, (age == second for age in younger))),
            Assert((dut._head < self.tags) & (dut._second < self.tags) & (dut._tail < self.tags)),
            Assert(popcount(dut._waiting) == popcount(self.here)),
            Assert(dut._count_waiting == popcount(self.here)),
            Assert(dut._some_wait == (dut._count_waiting != 0)),
            Assert(dut._by_warp == (dut.policy & (room != 0) & (dut._count_waiting != 1))),
            Assert(dut._head == self._position(m, self.oldest, "oldest")),
            Assert((second == 0) | (dut._second == self._position(m, second, "second"))),
        ]
        for t in tags:
            where = Signal.like(dut._head, name=f"place_{t}")
            m.d.comb += where.eq(dut._place_of(m, Const(t)))
            what = dut._tag_of(m, where)
            with m.If(self.here[t]):
                m.d.comb += [
                    Assert(where == self._position(m, self.age[t], f"tag_{t}")),
                    Assert(self.age[t] != 0),
                    Assert(what == t),
                    Assert(dut._waiting.bit_select(where, 1)),
                    Assert((self.age[t] != self.oldest) | (dut._head_tag == t)),
                    Assert(~(self.is_chosen & self.choice[t]) | (dut._choice == where)),
                ]
        return m

    def _search(self, m: Module) -> None:
        """The search for the lowest warp as the documentation tells it, from tags, ages and inserts a cycle late."""
        dut, tags = self.dut, range(self.tags)
        fresh, lowered, lowers = Signal(self.tags), Signal(), Signal()  # allocated in the cycle before
        warp = [Signal.like(dut.insert[0].payload.warp, name=f"known_warp_{t}") for t in tags]
        searched, follow = Signal(range(len(dut._search))), len(dut._search) - 1
        best, first = Signal(self.tags), Signal(self.tags)
        found = Signal(self.tags)  # and has not been the choice
        found_warp, least = Signal.like(warp[0]), Signal.like(warp[0])  # of what was found; of what came since
        begins, follows, ends = Signal(), Signal(), Signal()
        seen, unchosen = self.here & ~fresh, Signal(self.tags)
        m.d.sync += fresh.eq(reduce(or_, self.allocations))
        m.d.comb += [
            unchosen.eq(seen & ~Mux(self.is_chosen, self.choice, 0)),
            begins.eq((searched == 0) & unchosen.any()),
            follows.eq((searched == follow) & (self.popped.any() | ~self.is_chosen)),
            ends.eq(~dut.policy | (self.popped.any() & ~self.by_warp)),
        ]
        for t in tags:
            m.d.comb += [
                best[t].eq(unchosen[t] & Cat(~unchosen[u] | (warp[t] <= warp[u]) for u in tags).all()),
                first[t].eq(found[t] & Cat(~found[u] | (self.age[t] >= self.age[u]) for u in tags).all()),
            ]
        with m.If(begins):
            m.d.sync += [found.eq(best), found_warp.eq(select(lowest(best), warp))]
        with m.If(follows):
            m.d.sync += [self.choice.eq(first), found.eq(found & ~first)]
        with m.If(ends | lowered | (follows & (found == first)) | ((searched == follow) & (least < found_warp))):
            m.d.sync += searched.eq(0)
        with m.Elif(begins | ((searched != 0) & (searched != follow))):
            m.d.sync += searched.eq(searched + 1)
        m.d.sync += [
            self.is_chosen.eq((follows | (self.is_chosen & ~self.popped.any())) & ~ends),
            lowered.eq(lowers),
        ]
        lowering = []
        least_now: Value = Mux(searched == 0, (1 << len(least)) - 1, least)
        for k, insert in enumerate(dut.insert):
            allocated, merged = Signal(self.tags, name=f"was_allocated_{k}"), Signal(self.tags, name=f"was_merged_{k}")
            late = Signal.like(insert.payload.warp, name=f"late_warp_{k}")
            m.d.sync += [allocated.eq(self.allocations[k]), merged.eq(self.merges[k])]
            with m.If(insert.valid):
                m.d.sync += late.eq(insert.payload.warp)
            least_now = Mux((allocated | merged).any() & (late < least_now), late, least_now)
            for t in tags:
                lower = merged[t] & self.here[t] & (late < warp[t])
                lowering.append(lower)
                with m.If(allocated[t] | lower):
                    m.d.sync += warp[t].eq(late)
                with m.If((allocated[t] | merged[t]) & self.here[t]):
                    m.d.comb += Assert(dut._at[k] == self._position(m, self.age[t], f"written_{k}_{t}"))
                with m.If(merged[t] & ~self.here[t]):
                    m.d.comb += Assert(~dut._waiting.bit_select(dut._at[k], 1))
            m.d.comb += [
                Assert(popcount(allocated | merged) <= 1),
                Assert(dut._inserted[k] == (allocated | merged).any()),
                Assert(~dut._inserted[k] | ((dut._warp[k] == late) & (dut._allocated[k] == allocated.any()))),
                Assert(~allocated.any() | allocated.bit_select(dut._tag[k], 1)),
            ]
        m.d.comb += lowers.eq(Cat(lowering).any())
        m.d.sync += least.eq(least_now)

        for t in tags:
            where = Signal.like(dut._head, name=f"searched_{t}")
            m.d.comb += where.eq(dut._place_of(m, Const(t)))
            kept = Cat(bits.bit_select(where, 1) for bits in dut._lowest)
            m.d.comb += Assert(~seen[t] | (kept == warp[t]))
            with m.If((searched == follow) | (searched == follow - 1)):
                m.d.comb += Assert(~found[t] | dut._candidates.bit_select(where, 1))
            with m.If(searched == follow):
                m.d.comb += Assert(~first[t] | (dut._found == where))
        with m.If((searched == follow) | (searched == follow - 1)):
            m.d.comb += [
                Assert(found.any() & ((found & ~self.here) == 0) & ~(self.is_chosen & (self.choice & found).any())),
                Assert(popcount(dut._candidates) == popcount(found)),
                Assert(dut._found_warp == found_warp),
            ]
        m.d.comb += [
            Assert((fresh & ~self.here) == 0),
            Assert(dut._search == Const(1) << searched),
            Assert(dut._lowered == lowered),
            Assert((searched == 0) | (dut._least == least)),
            Assert(dut._choice_valid == self.is_chosen),
            Assert(~self.is_chosen | ((popcount(self.choice) == 1) & ((self.choice & ~self.here) == 0))),
            Assert(dut._choice_tag == Mux(self.is_chosen, index_of(self.choice), 0)),
        ]

    def _position(self, m: Module, age: Value, name: str) -> Value:
        """As many positions before the tail as there were allocations."""
        place = Signal(range(2 * self.tags), name=f"position_of_{name}")
        m.d.comb += place.eq(self.dut._tail + self.tags - age)
        return Mux(place < self.tags, place, place - self.tags)


class Actions(Order):
    """One action a cycle, of what may go; none only if nothing may; loads first, but for overdue stores."""

    def elaborate(self, platform: object) -> Module:
        m = super().elaborate(platform)
        dut = self.dut
        can, late = Signal(self.coalescers), Signal(self.coalescers)
        taken, load, action = self.taken, self.load, Signal()
        m.d.comb += [
            can.eq(Cat(self.may_go(k) for k in range(self.coalescers))),
            late.eq(Cat(self.may_go(k) & (dut._waited[k] == STORE_WAIT) for k in range(self.coalescers))),
            action.eq(dut.pop.valid | taken.any()),
            Assert(popcount(taken) + dut.pop.valid <= 1),
            Assert(action == (self.possible & (load | can.any()))),
            Assert((taken & ~can) == 0),
            Assert(~dut.pop.valid | load),
            Assert(~(taken.any() & load) | (taken & late).any()),
            Assert(dut.overdue == (taken & late).any()),
            Assert(~dut.overdue | ~load | ~dut._load_next),
            Assert(self.way + action <= PIPELINE),
            Assert(self.queued - self.transfer + dut.request.valid + taken.any() <= PIPELINE),
        ]
        return m


class OldestWaits(Order):
    """The oldest tag leaves in the (2 x tags)-th cycle at the latest in which it could have."""

    def elaborate(self, platform: object) -> Module:
        m = super().elaborate(platform)
        dut = self.dut
        passed, chances = Signal(range(self.tags + 1)), Signal(range(2 * self.tags + 2))  # by others; of the oldest
        chance = self.possible & self.load
        oldest = Cat(self.age[t] == self.oldest for t in range(self.tags))
        with m.If((self.popped & oldest).any() | ~self.here.any()):
            m.d.sync += [passed.eq(0), chances.eq(0)]
        with m.Else():
            m.d.sync += [passed.eq(passed + dut.pop.valid), chances.eq(chances + chance)]
        m.d.comb += [
            Assert(~chance | (chances < 2 * self.tags)),
            Assert(passed < self.tags),
            # Each of the others that left did so from a place behind the oldest, which is not free again.
            Assert(~self.here.any() | (passed + popcount(self.here) <= self.oldest)),
            Assert(self.here.any() | ((passed == 0) & (chances == 0))),
            Assert(chances <= 2 * passed + dut._load_next),
        ]
        return m


class StoresWait(Neighbours):
    """An overdue store that is no atomic is taken in the (2 x coalescers)-th cycle in which it could have been."""

    def elaborate(self, platform: object) -> Module:
        m = super().elaborate(platform)
        dut, ports = self.dut, self.coalescers
        for k in range(ports):
            waited = Signal(range(STORE_WAIT + 1), name=f"waited_for_{k}")
            others = Signal(range(ports + 1), name=f"others_before_{k}")
            chances = Signal(range(2 * ports + 2), name=f"chances_{k}")
            late = (waited == STORE_WAIT) & ~dut._stores[k].head.atomic
            between = Signal(range(ports), name=f"between_{k}")  # ports whose turn comes before
            m.d.comb += between.eq(Mux(dut._last < k, k - 1 - dut._last, k + ports - 1 - dut._last))
            with m.If(~dut._stores[k].o.valid | self.taken[k]):
                m.d.sync += [waited.eq(0), others.eq(0), chances.eq(0)]
            with m.Else():
                m.d.sync += waited.eq(waited + (waited != STORE_WAIT))
                with m.If(late):
                    m.d.sync += [others.eq(others + self.taken.any()), chances.eq(chances + self.possible)]
            m.d.comb += [
                Assert(~(late & self.possible) | (chances < 2 * ports)),
                Assert(waited == dut._waited[k]),
                Assert(dut._last < ports),
                Assert(late | ((others == 0) & (chances == 0))),
                Assert(others + between < ports),
                Assert(chances <= 2 * others + ~dut._load_next),
            ]
        return m


class Followed(Neighbours):
    """Some store or load is followed: what it sent leaves after all actions before it, unchanged."""

    def elaborate(self, platform: object) -> Module:
        m = super().elaborate(platform)
        dut = self.dut
        begins, waits, followed, known = Signal(), Signal(), Signal(), Signal()
        ahead, before = Signal(), Signal(range(PIPELINE + 1))  # stores of the port, requests on their way
        content, request = Signal.like(dut.access.p), Signal.like(dut.access.p)
        port, stores, payload = dut.store[0], dut._stores[0], dut.request.payload
        offered, kept = self._request(m, port.p), self._request(m, Mux(ahead, stores.second, stores.head))
        m.d.comb += [
            request.number.eq(payload.number), request.bypass.eq(payload.bypass), request.count.eq(payload.count),
            request.slots.eq(payload.slots),
        ]  # fmt: skip
        with m.If(waits):
            with m.If(self.taken[0] & ~ahead):
                m.d.sync += [waits.eq(0), followed.eq(1), known.eq(1), before.eq(self.way - self.transfer)]
            with m.Elif(self.taken[0]):
                m.d.sync += ahead.eq(0)
        with m.Elif(followed):
            m.d.sync += before.eq(before - self.transfer)
            with m.If(~known):
                m.d.sync += [known.eq(1), content.eq(request)]
            with m.If(self.transfer & (before == 0)):
                m.d.sync += followed.eq(0)
        with m.Elif(begins & dut.pop.valid):
            m.d.sync += [followed.eq(1), known.eq(0), before.eq(self.way - self.transfer)]
        with m.Elif(begins & port.valid & port.ready):
            m.d.sync += [waits.eq(1), content.eq(offered), ahead.eq(stores.count != self.taken[0])]
        m.d.comb += [
            Assert(~waits | ((ahead < stores.count) & ~followed)),
            Assert(~waits | (Value.cast(content) == Value.cast(kept))),
        ]
        with m.If(followed):
            m.d.comb += [
                Assert(before < self.way),
                Assert(known | (dut._popped & (before == self.queued))),
                Assert(~known | (before < self.queued)),
                Assert(~(self.transfer & (before == 0)) | (Value.cast(dut.access.p) == Value.cast(content))),
            ]
            for i, entry in enumerate(dut._entries):
                m.d.comb += Assert(~known | (before != i) | (Value.cast(entry) == Value.cast(content)))
        return m

    def _request(self, m: Module, store: Value) -> Signal:
        """What a store asks of the L1."""
        fields, result = Signal.like(self.dut.store[0].p), Signal.like(self.dut.access.p)
        m.d.comb += [
            Value.cast(fields).eq(Value.cast(store)),
            result.number.eq(fields.number), result.store.eq(~fields.atomic), result.atomic.eq(fields.atomic),
            result.last.eq(fields.last), result.mask.eq(fields.mask), result.count.eq(1),
            result.slots[0].warp.eq(fields.warp), result.slots[0].ticket.eq(fields.ticket),
        ]  # fmt: skip
        return result


class Policy(Neighbours):
    """The policy toggles after a quantum in which all loads that used the L1 missed, if there were any."""

    def elaborate(self, platform: object) -> Module:
        m = super().elaborate(platform)
        dut, access = self.dut, self.dut.access.p
        cycle, accesses, hits = Signal(range(QUANTUM)), Signal(range(QUANTUM + 1)), Signal(range(QUANTUM + 1))
        looked, hit = Signal(), Signal()  # in the cycle before
        policy = Signal()
        now, hits_now = accesses + looked, hits + hit
        lookup = self.transfer & ~access.store & ~access.atomic & ~access.bypass
        m.d.sync += [looked.eq(lookup), hit.eq(lookup & ~dut.miss)]
        with m.If(cycle == QUANTUM - 1):
            m.d.sync += [cycle.eq(0), accesses.eq(0), hits.eq(0), policy.eq(policy ^ (100 * hits_now < now))]
        with m.Else():
            m.d.sync += [cycle.eq(cycle + 1), accesses.eq(now), hits.eq(hits_now)]
        m.d.comb += [
            Assert(dut.policy == policy),
            # What the block counts, for induction.
            Assert((cycle < QUANTUM) & (dut._cycle == cycle) & (accesses <= cycle) & (hits <= accesses)),
            Assert(dut._margin == accesses - 100 * hits - 1),
            Assert((dut._hit == hit) & (dut._missed == (looked & ~hit)) & (looked | ~hit)),
        ]
        return m


class Reached(Neighbours):
    """That the environment leaves room for what matters."""

    def elaborate(self, platform: object) -> Module:
        m = super().elaborate(platform)
        dut = self.dut
        wrapped = Signal()
        with m.If((dut._tail < dut._head) & (dut._tail != 0)):
            m.d.sync += wrapped.eq(1)
        m.d.comb += [
            Cover(wrapped & (dut.room == self.tags)),
            Cover((dut.room == 0) & (dut._waiting != (1 << self.tags) - 1)),
            Cover(dut.policy & dut.pop.valid & (dut.pop.payload.tag != 0) & (dut.room == 0)),
            Cover(dut.overdue & dut._load_next & ~self.here.any()),
            Cover((self.way == PIPELINE - 1) & dut._popped & self.taken.any()),
        ]
        return m


_SIZE = "3 tags, 2 coalescers, 4 warps, 2 metadata entries, store_wait 2"
PROOFS = {
    "actions": Proof(
        Actions, "prove", 6, f"one action a cycle, whenever something may go; no overflow; {_SIZE}", long=True
    ),
    "order": Proof(
        lambda: Order(warps=8), "prove", 7,
        "the pop is the one that the policy names; room is exact; 3 tags, 2 coalescers, 8 warps, 2 metadata entries",
        long=True,
    ),
    "order, the second leaves": Proof(
        lambda: Order(4, 1, 2), "prove", 6, "as order, with 4 tags, 1 coalescer, 2 warps: room and two behind the head",
        long=True,
    ),
    "the oldest waits": Proof(
        OldestWaits, "prove", 6, f"bounded waiting of the oldest tag, with any policy; {_SIZE}", long=True
    ),
    "stores wait": Proof(
        lambda: StoresWait(2, 3), "prove", 1, "bounded waiting of overdue stores; 2 tags, 3 coalescers, store_wait 2",
        long=True,
    ),
    "in order": Proof(Followed, "prove", 1, f"requests leave in the order of the actions, unchanged; {_SIZE}"),
    "policy": Proof(Policy, "prove", 1, f"the policy toggles after a quantum of misses alone; quantum 3, {_SIZE}"),
    "reached": Proof(Reached, "cover", 14, f"full, wrapped, overdue, three on their way; {_SIZE}"),
}
