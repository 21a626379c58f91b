"""Proofs about the warp scheduler, at a reduced size: three warps and a patience of up to three.

All inputs are free in every cycle, but for the constant ones, which have any legal value. What the proofs compare with
is kept apart from the block: numbers for classes, ages and passes where the block has masks.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce
from itertools import pairwise
from operator import add, or_

from amaranth.hdl import Assert, Assume, Cat, Const, Cover, Elaboratable, Module, Mux, Signal, Value

from lockstep.rtl.bits import popcount, select
from lockstep.rtl.scheduling.warp_scheduler import WarpScheduler
from lockstep.spec.parameters import SCHEDULERS
from lockstep.verif.formal import Proof

WARPS = 3
PATIENCE = 3
SLOTS = range(WARPS)
AGE = 2  # bits


def chosen(values: Sequence[Value], index: Value) -> Value:
    """The value of a slot."""
    return reduce(or_, (Mux(index == slot, value, 0) for slot, value in enumerate(values)))


class Scheduler(Elaboratable):
    """The block, and beside it who lives, how old and of which class warps are, and how often they were passed over."""

    def __init__(self) -> None:
        self.dut = WarpScheduler(warps=WARPS, schedulers=1, patience=PATIENCE)
        self.live, self.passes = Signal(WARPS), [Signal(range(PATIENCE + 1), name=f"passed_{s}") for s in SLOTS]
        self.elder = [Signal(AGE, name=f"elder_{slot}") for slot in SLOTS]  # live warps that are older
        self.rank = [Signal(4, init=1, name=f"rank_{slot}") for slot in SLOTS]  # the highest class is 0
        self.urgent, self.candidates, self.question = Signal(WARPS), Signal(WARPS), Signal(WARPS)
        self.gone, self.staying = Signal(WARPS), Signal(WARPS)
        self.issued, self.issuing = Signal(), Signal(WARPS)

    def policy(self, *names: str) -> Value:
        return reduce(or_, (self.dut.policy == SCHEDULERS.index(name) for name in names))

    def elaborate(self, platform: object) -> Module:
        m = Module()
        m.submodules.dut = dut = self.dut
        m.d.comb += [
            Assume(dut.policy < len(SCHEDULERS)),
            Assume((dut.active_warps >= 1) & (dut.active_warps <= WARPS)),
        ]
        self.constant(m, dut.policy, dut.active_warps, dut.patience)
        m.d.comb += [
            self.gone.eq(dut.start | dut.finish),
            self.staying.eq(self.live & ~self.gone),
            self.issued.eq(dut.grant.valid & ~dut.refused),
            self.issuing.eq(self.issued << dut.grant.warp),
        ]
        m.d.sync += self.live.eq(self.live & ~dut.finish | dut.start)
        m.d.comb += Assert(dut.live == self.live)
        self.ages(m)
        self.classes(m)
        self.patience(m)
        requesting = dut.request & self.live
        m.d.comb += [
            self.candidates.eq(requesting & Mux(self.policy("two-level"), dut.active | self.urgent, -1)),
            Assert((dut.active & ~Mux(self.policy("two-level"), self.live, 0)) == 0),
            Assert((dut.holder & ~Mux(self.policy("simple-p", "region-p"), self.live, 0)) == 0),
            Assert(self.policy("simple-p", "region-p") | (dut.before_holder == 0)),
            Assert(popcount(dut.holder) <= 1),
            *(Assert(~one | next_one) for one, next_one in pairwise(dut.after_last)),
        ]
        its_age = select(dut.holder, self.elder)
        for slot in SLOTS:
            before = dut.holder.any() & (self.elder[slot] < its_age)
            m.d.comb += Assert(~self.live[slot] | (dut.before_holder[slot] == before))
        overdue = (self.candidates & self.urgent).any()
        for slot in SLOTS:
            higher = (self.candidates[other] & (self.rank[other] < self.rank[slot]) for other in SLOTS)
            highest = Mux(overdue, self.urgent[slot], ~reduce(or_, higher))
            m.d.comb += self.question[slot].eq(self.candidates[slot] & highest)
        return m

    def constant(self, m: Module, *inputs: Value) -> None:
        started = Signal()
        m.d.sync += started.eq(1)
        for k, value in enumerate(inputs):
            before = Signal.like(value, name=f"constant_{k}")
            m.d.sync += before.eq(value)
            m.d.comb += Assume(~started | (value == before))

    def ages(self, m: Module) -> None:
        dut = self.dut
        for slot in SLOTS:
            older = [self.staying[s] & (self.elder[s] < self.elder[slot]) for s in SLOTS]
            with m.If(dut.start[slot]):
                m.d.sync += self.elder[slot].eq(popcount(self.staying) + popcount(dut.start[:slot]))
            with m.Else():
                m.d.sync += self.elder[slot].eq(reduce(add, older))
            with m.If(self.live[slot]):
                m.d.comb += Assert(self.elder[slot] < popcount(self.live))
                for other in range(slot):
                    is_older = self.elder[other] < self.elder[slot]
                    m.d.comb += [
                        Assert(~self.live[other] | (dut.older[slot - 1][other] == is_older)),
                        Assert(~self.live[other] | (self.elder[other] != self.elder[slot])),
                    ]

    def classes(self, m: Module) -> None:
        dut = self.dut
        for slot in SLOTS:
            share = Mux(dut.owner[slot], 0, Mux(dut.non_owner[slot], 2, 1))
            rank = share + Mux(dut.secondary[slot], 3, 0) + Mux(dut.paused[slot], 6, 0)
            m.d.sync += self.rank[slot].eq(rank)
            for other in range(slot):
                m.d.comb += [
                    Assert(dut.higher[slot - 1][other] == (self.rank[other] < self.rank[slot])),
                    Assert(dut.lower[slot - 1][other] == (self.rank[other] > self.rank[slot])),
                ]

    def patience(self, m: Module) -> None:
        dut = self.dut
        rank = chosen(self.rank, dut.grant.warp)
        overdue = self.urgent.bit_select(dut.grant.warp, 1)
        for slot, passes in enumerate(self.passes):
            count = Mux(dut.anew[slot], 0, Cat(bits[slot] for bits in dut.passes)) + dut.added[slot]
            passed = self.issued & ~overdue & dut.request[slot] & self.live[slot] & (self.rank[slot] > rank)
            with m.If(self.gone[slot] | self.issuing[slot]):
                m.d.sync += passes.eq(0)
            with m.Elif(passed & (passes < dut.patience)):
                m.d.sync += passes.eq(passes + 1)
            m.d.comb += [
                self.urgent[slot].eq((passes == dut.patience) & (dut.patience != 0)),
                Assert(passes <= dut.patience),
                Assert(self.live[slot] | (passes == 0)),
                Assert(dut.urgent[slot] == self.urgent[slot]),
                Assert(self.urgent[slot] | (count == passes)),
            ]


class Grants(Scheduler):
    """One candidate is granted whenever there is one: of those that patience lets go, or of the highest class."""

    def elaborate(self, platform: object) -> Module:
        m = super().elaborate(platform)
        dut, grant = self.dut, self.dut.grant
        one_class = Signal(init=1)
        m.d.sync += one_class.eq((dut.paused | dut.secondary | dut.owner | dut.non_owner) == 0)
        m.d.comb += [
            Assert(grant.valid == self.candidates.any()),
            Assert(~grant.valid | self.question.bit_select(grant.warp, 1)),
            Assert(grant.warp < WARPS),
            Assert(grant.valid | (grant.warp == 0)),
            Assert(dut.granted == (grant.valid << grant.warp)),
            Assert(~one_class | self.urgent.any() | (self.question == self.candidates)),
        ]
        return m


class Order(Grants):
    """Of those that come into question, the policy's is granted; the priority goes where it must."""

    def __init__(self) -> None:
        super().__init__()
        self.last, self.greedy = Signal(2, init=WARPS - 1), Signal()  # who issued last, and whether it goes on
        self.held, self.holder = Signal(), Signal(2)  # whether somebody has the priority, and who

    def elaborate(self, platform: object) -> Module:
        m = super().elaborate(platform)
        dut, warp = self.dut, self.dut.grant.warp
        last, greedy, held, holder = self.last, self.greedy, self.held, self.holder
        latest = Mux(self.issued, warp, last)
        m.d.sync += [last.eq(latest), greedy.eq((greedy | self.issued) & ~dut.start.bit_select(latest, 1))]
        with m.If(dut.grant.valid):
            around = [self.distance(Const(slot, 2), last) for slot in SLOTS]
            keeps = self.policy("greedy-rr", "gto") & greedy & self.question.bit_select(last, 1)
            with m.If(keeps):
                m.d.comb += Assert(warp == last)
            self.first(m, self.policy("lrr", "greedy-rr", "two-level") & ~keeps, around)
            self.first(m, self.policy("gto", "oldest") & ~keeps, self.elder)
            from_holder = [Mux(held, self.behind(slot, holder), self.elder[slot]) for slot in SLOTS]
            self.first(m, self.policy("simple-p", "region-p"), from_holder)
        self.priority(m, held, holder)
        m.d.comb += [
            Assert((last < WARPS) & (holder < WARPS)),
            Assert(dut.after_last == Cat(slot > last for slot in SLOTS[1:])),
            Assert(dut.greedy == Mux(greedy, Const(1, WARPS) << last, 0)),
            Assert(dut.holder == Mux(held, Const(1, WARPS) << holder, 0)),
        ]
        return m

    @staticmethod
    def distance(slot: Value, last: Value) -> Value:
        """Of a slot behind another, circularly; the other itself is the farthest."""
        return Mux(slot > last, slot - last, slot + WARPS - last)[:3]

    def behind(self, slot: int, holder: Value) -> Value:
        """Warps by age, circularly, from the holder of the priority to a slot."""
        mine, its = self.elder[slot], chosen(self.elder, holder)
        return Mux(mine >= its, mine - its, mine + popcount(self.live) - its)[:3]

    def first(self, m: Module, condition: Value, keys: Sequence[Value]) -> None:
        """The granted slot has the lowest key of those that come into question."""
        mine = chosen(keys, self.dut.grant.warp)
        for slot in SLOTS:
            m.d.comb += Assert(~condition | ~self.question[slot] | (mine <= keys[slot]))

    def priority(self, m: Module, held: Signal, holder: Signal) -> None:
        dut = self.dut
        ends = ~self.staying.bit_select(holder, 1)
        waits = dut.global_wait.bit_select(holder, 1) & (self.staying & ~dut.global_wait).any()
        hints = self.issued & dut.hint & (dut.grant.warp == holder)
        moves = ends | Mux(self.policy("simple-p"), waits, hints)
        with m.If(self.policy("simple-p", "region-p")):
            with m.If(~held | moves):
                for slot in SLOTS:
                    keys = [Mux(held, self.after(s, holder), self.elder[s]) for s in SLOTS]
                    nearer = (self.staying[s] & (keys[s] < keys[slot]) for s in SLOTS)
                    with m.If(self.staying[slot] & ~reduce(or_, nearer)):
                        m.d.sync += [held.eq(1), holder.eq(slot)]
                with m.If(~self.staying.any()):
                    m.d.sync += [held.eq(0), holder.eq(0)]
        with m.If(~held):
            m.d.comb += Assert(holder == 0)

    def after(self, slot: int, holder: Value) -> Value:
        """As ``behind``, but the holder itself is the farthest."""
        return Mux(holder == slot, WARPS, self.behind(slot, holder))


class Waiting(Grants):
    """Others issue at most once each while a warp waits whose patience has ended."""

    def elaborate(self, platform: object) -> Module:
        m = super().elaborate(platform)
        dut = self.dut
        waiting, slot = Signal(), Signal(range(WARPS))
        served = Signal(WARPS)
        self.constant(m, slot)
        m.d.comb += [
            Assume(slot < WARPS),
            waiting.eq((self.urgent & dut.request).bit_select(slot, 1)),
            Assert(~waiting | dut.grant.valid),
            Assert(~(waiting & self.issued) | ~(served & self.issuing).any()),
        ]
        with m.If(~waiting | (self.issuing | self.gone).bit_select(slot, 1)):
            m.d.sync += served.eq(0)
        with m.Else():
            m.d.sync += served.eq(served | self.issuing)
        for s in SLOTS:
            m.d.comb += Assert(~served[s] | (self.passes[s] == 0))
        m.d.comb += Assert(~served.bit_select(slot, 1))
        return m


class Turns(Order):
    """How long a warp can wait that comes into question in every cycle, until it issues.

    lrr, two-level: each other warp issues at most once. greedy-rr: each has one turn at most. simple-p, region-p: each
    holds the priority once at most, and the warp issues when it holds it.
    """

    def elaborate(self, platform: object) -> Module:
        m = super().elaborate(platform)
        warp, slot, mine = self.dut.grant.warp, Signal(range(WARPS)), Signal(WARPS)
        holding, held_before = Signal(WARPS), Signal(WARPS)
        served, had = Signal(WARPS), Signal(WARPS)  # who has issued since, and held the priority
        self.constant(m, slot)
        m.d.comb += [
            Assume(slot < WARPS),
            mine.eq(Const(1, WARPS) << slot),
            holding.eq(Mux(self.held, Const(1, WARPS) << self.holder, 0)),
        ]
        waits = (self.question & ~self.issuing & self.staying & mine).any()
        m.d.sync += [
            served.eq(Mux(waits, served | self.issuing, 0)),
            had.eq(Mux(waits & ~(holding & mine).any(), (had | holding) & self.staying, 0)),
            held_before.eq(holding),
        ]
        again = waits & (served & self.issuing).any()
        m.d.comb += [
            Assert(~self.policy("lrr", "two-level") | ~again),
            Assert(~self.policy("greedy-rr") | ~again | (warp == self.last)),
        ]
        with m.If(self.policy("lrr", "greedy-rr", "two-level")):
            for other in SLOTS:
                passed = self.distance(slot, self.last) <= self.distance(slot, Const(other, 2))
                m.d.comb += Assert(~served[other] | passed)
        with m.If(self.policy("simple-p", "region-p")):
            m.d.comb += [
                Assert(~(holding & self.question & mine).any() | (warp == slot)),
                Assert((holding == held_before) | ~(holding & had).any()),
            ]
            place = chosen([self.behind(s, self.holder) for s in SLOTS], slot)
            for other in SLOTS:
                later = (self.holder == other) | (place < self.behind(other, self.holder))
                m.d.comb += Assert(~had[other] | (self.live[other] & (self.live & mine).any() & self.held & later))
        return m


class Starves(Grants):
    """The warp in slot 0 waits for ever, and others issue: states in a circle, through which the inputs can repeat."""

    def elaborate(self, platform: object) -> Module:
        m = super().elaborate(platform)
        dut = self.dut
        begins, running, others = Signal(), Signal(), Signal()  # when it begins is free
        one_class = (dut.paused | dut.secondary | dut.owner | dut.non_owner) == 0
        waits = (dut.request & self.live & ~self.issuing)[0] & ~self.gone.any() & one_class
        with m.If(begins | running):
            m.d.sync += [running.eq(waits), others.eq(waits & (others | self.issued))]
        same: list[Value] = []
        for register in registers(dut):
            first = Signal.like(register, name=f"first_{register.name}")
            with m.If(~running):
                m.d.sync += first.eq(register)
            same.append(first == register)
        circle = running & others & Cat(same).all()
        m.d.comb += [Cover(self.policy(name) & circle) for name in SCHEDULERS if name != "lrr"]
        return m


def registers(dut: WarpScheduler) -> list[Signal]:
    """The whole state of a scheduler."""
    names = (
        "live", "active", "waiting", "filled", "entered", "after_last", "greedy", "after_promoted", "holder",
        "before_holder", "urgent", "anew", "added",
    )  # fmt: skip
    return [*(getattr(dut, name) for name in names), *dut.passes, *dut.older, *dut.higher, *dut.lower]


def same_state(one: WarpScheduler, other: WarpScheduler) -> list[Assert]:
    """That all registers of two schedulers agree."""
    return [Assert(mine == its) for mine, its in zip(registers(one), registers(other), strict=True)]


class Served(Elaboratable):
    """A scheduler of an SM that has two behaves as one that has its warps alone."""

    def elaborate(self, platform: object) -> Module:
        m = Module()
        m.submodules.dut = dut = WarpScheduler(warps=2 * WARPS - 1, schedulers=2, patience=PATIENCE)
        m.submodules.alone = alone = WarpScheduler(warps=WARPS, schedulers=1, patience=PATIENCE)
        which, started, before = Signal(), Signal(), Signal()
        m.d.sync += [started.eq(1), before.eq(which)]
        m.d.comb += [Assume(~started | (which == before)), Assume(dut.active_warps <= WARPS), *same_state(dut, alone)]
        for name in dut.signature.members:
            if name in ("grant", "granted"):
                continue
            mine, its = getattr(dut, name), getattr(alone, name)
            if len(mine) != 2 * WARPS - 1:
                m.d.comb += its.eq(mine)
                continue
            m.d.comb += its.eq(Mux(which, mine[1::2], mine[::2]))
            m.d.comb += Assume(Mux(which, mine[::2], mine[1::2]) == 0)
        same = dut.grant.warp == Mux(dut.grant.valid, Cat(which, alone.grant.warp), 0)
        m.d.comb += [
            Assert(dut.grant.valid == alone.grant.valid),
            Assert(same),
            Assert(Mux(which, dut.granted[1::2], dut.granted[::2]) == alone.granted),
            Assert(Mux(which, dut.granted[::2], dut.granted[1::2]) == 0),
        ]
        return m


class Refused(Elaboratable):
    """A cycle with a refused grant leaves the state of a cycle without requests."""

    def elaborate(self, platform: object) -> Module:
        m = Module()
        m.submodules.dut = dut = WarpScheduler(warps=WARPS, schedulers=1, patience=PATIENCE)
        m.submodules.other = other = WarpScheduler(warps=WARPS, schedulers=1, patience=PATIENCE)
        for name in dut.signature.members:
            if name not in ("grant", "granted", "request", "refused"):
                m.d.comb += getattr(other, name).eq(getattr(dut, name))
        m.d.comb += [other.request.eq(Mux(dut.refused, 0, dut.request)), other.refused.eq(0)]
        m.d.comb += same_state(dut, other)
        same = (dut.grant.valid == other.grant.valid) & (dut.grant.warp == other.grant.warp)
        m.d.comb += Assert(dut.refused | same)
        return m


class Active(Grants):
    """Two-level: who becomes active and who yields; a paused warp issues where it alone can."""

    def __init__(self) -> None:
        super().__init__()
        self.promoted = Signal(2, init=WARPS - 1)  # slot that became active last

    def elaborate(self, platform: object) -> Module:
        m = super().elaborate(platform)
        dut, two_level = self.dut, self.policy("two-level")
        able, pending, full = Signal(WARPS), Signal(WARPS), Signal()
        waiting, filled = Signal(WARPS), Signal(range(WARPS + 1))
        m.d.sync += waiting.eq(dut.long_latency & self.staying)
        m.d.comb += [
            Assert(~two_level | (dut.waiting == waiting)),
            Assert(~two_level | (dut.filled + dut.entered == filled)),
            able.eq(self.live & ~waiting),
            pending.eq(able & ~dut.active),
            full.eq(filled >= dut.active_warps),
        ]
        best, worst = Signal(4), Signal(4)
        m.d.comb += [best.eq(self.extreme(pending, lowest=False)), worst.eq(self.extreme(dut.active, lowest=True))]
        enters, yields = Signal(WARPS), Signal(WARPS)
        for slot in SLOTS:
            m.d.comb += [
                enters[slot].eq(self.next(slot, [pending[s] & (self.rank[s] == best) for s in SLOTS])),
                yields[slot].eq(self.next(slot, [dut.active[s] & (self.rank[s] == worst) for s in SLOTS])),
            ]
        # What the next cycle must show.
        active, started = Signal(WARPS), Signal()
        changes = pending.any() & (~full | (dut.active.any() & (worst > best)))
        after = Signal(WARPS)
        m.d.comb += after.eq(Mux(changes, dut.active & ~Mux(full, yields, 0) | enters, dut.active))
        m.d.sync += [
            started.eq(1),
            filled.eq(popcount(after)),
            active.eq(after & self.staying & ~dut.long_latency),
        ]
        for slot in SLOTS:
            with m.If(two_level & changes & enters[slot]):
                m.d.sync += self.promoted.eq(slot)
        m.d.comb += [
            Assert(self.promoted < WARPS),
            Assert(dut.after_promoted == Cat(slot > self.promoted for slot in SLOTS[1:])),
            Assert(~two_level | ((dut.active & ~able) == 0)),
            Assert(~started | ~two_level | (dut.active == active)),
            Assert(~two_level | (popcount(dut.active) <= dut.active_warps)),
        ]
        self.alone(m, able)
        return m

    def extreme(self, mask: Value, lowest: bool) -> Value:
        """The number of the highest, or the lowest, class among the slots of a mask."""
        ranks = [Mux(mask[slot], self.rank[slot], 0 if lowest else 15) for slot in SLOTS]
        return reduce(lambda a, b: Mux((a > b) == int(lowest), a, b), ranks)

    def next(self, slot: int, among: Sequence[Value]) -> Value:
        """A slot is the first of some, circularly after the one that became active last."""
        key = [Order.distance(Const(s, 2), self.promoted) for s in SLOTS]
        return among[slot] & ~reduce(or_, (among[s] & (key[s] < key[slot]) for s in SLOTS))

    def alone(self, m: Module, able: Value) -> None:
        slot, before = Signal(range(WARPS)), Signal(2)  # for how many cycles
        self.constant(m, slot)
        bit = Signal(WARPS)
        m.d.comb += [Assume(slot < WARPS), bit.eq(Const(1, WARPS) << slot)]
        only = (able == bit) & (self.dut.request == bit) & self.policy("two-level")
        m.d.sync += before.eq(Mux(only & (self.staying & bit).any(), Mux(before == 2, 2, before + 1), 0))
        m.d.comb += [
            Assert(~((before == 2) & only) | (self.dut.grant.valid & (self.dut.grant.warp == slot))),
            Assert((before == 0) | ~(only & (before == 2)) | (self.dut.active & bit).any()),
        ]


class Reached(Grants):
    """That what the proofs speak of happens."""

    def elaborate(self, platform: object) -> Module:
        m = super().elaborate(platform)
        dut, warp = self.dut, self.dut.grant.warp
        all_paused = Signal(WARPS)
        m.d.sync += all_paused.eq(dut.paused)
        paused = dut.grant.valid & all_paused.bit_select(warp, 1)
        others = (self.candidates & ~all_paused).any()
        m.d.comb += [
            *(Cover(self.policy(name) & paused & others & (dut.patience == PATIENCE)) for name in SCHEDULERS),
            Cover(self.policy("two-level") & paused & ~dut.active.bit_select(warp, 1)),
            Cover(popcount(self.urgent) == 2),
            Cover(self.policy("simple-p") & dut.holder[0] & (self.elder[0] == 2)),
            Cover(self.policy("region-p") & dut.holder[0] & (self.elder[0] == 2)),
            Cover(reduce(or_, (self.rank[s] == 8 for s in SLOTS)) & dut.refused & dut.grant.valid),
        ]
        return m


_SIZE = "3 warps, patience up to 3"
PROOFS = {
    "grants": Proof(
        Grants, "prove", 1,
        "whenever a live warp that requests (two-level: active, or at the end of its patience) is there, one such warp "
        f"is granted, of the highest class or at the end of its patience; {_SIZE}",
    ),
    "order": Proof(
        Order, "prove", 1, f"inside the class, each policy's order; where the priority is; {_SIZE}", long=True
    ),
    "waiting is bounded": Proof(
        Waiting, "prove", 1,
        "after as many grants to higher classes as its patience, a warp that requests waits for at most one grant to "
        f"each other warp; {_SIZE}, all policies",
        long=True,
    ),
    "turns": Proof(
        Turns, "prove", 1,
        "while a warp comes into question: lrr and two-level let each other warp issue once at most, greedy-rr has one "
        f"turn of each, simple-p and region-p give the priority to each once; {_SIZE}",
        long=True,
    ),
    "starves": Proof(
        Starves, "cover", 8,
        "under each policy but lrr, a way in which a warp requests for ever and others issue, which ends in the state "
        f"in which it began; {_SIZE}",
    ),
    "served": Proof(
        Served, "prove", 1,
        "a scheduler of two, with three warps or two of an SM's five, grants as one with these warps alone; patience "
        "up to 3",
    ),
    "refused": Proof(Refused, "prove", 1, f"a refused grant leaves the state of a cycle without requests; {_SIZE}"),
    "active warps": Proof(
        Active, "prove", 2,
        "two-level: never more than active_warps; who enters and who yields; a warp that alone can issue, paused or "
        f"not, does so in the third such cycle at the latest; {_SIZE}",
        long=True,
    ),
    "reached": Proof(Reached, "cover", 10, f"every policy lets a paused warp go first once; {_SIZE}", long=True),
}  # fmt: skip
