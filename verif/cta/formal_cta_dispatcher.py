"""Proofs about the CTA dispatcher, at a reduced size: three SMs, grids of up to seven CTAs, intervals of up to four."""

from __future__ import annotations

from amaranth.hdl import Assert, Assume, Cat, Cover, Elaboratable, Module, Mux, Signal, Value

from lockstep.rtl.cta.cta_dispatcher import CtaDispatcher
from lockstep.spec.parameters import DISPATCHERS, MAX_CTAS
from lockstep.verif.cta.bench_cta_dispatcher import protocol
from lockstep.verif.formal import Proof

SMS = 3
CTA_BITS = 3
INTERVAL = 4
CAPACITY = 2  # CTAs that an SM of the environment holds
LOAD_BALANCED = DISPATCHERS.index("load-balanced")


class Grids(Elaboratable):
    """Any grids, one after the other, at one interval and under one policy.

    ``last`` is the SM after which the next one is looked for; ``best`` are the SMs that had room and, if balanced, the
    fewest CTAs in the cycle before. What the block keeps to itself is tied to what its ports have shown.
    """

    def elaborate(self, platform: object) -> Module:
        m = Module()
        m.submodules.dut = self.dut = dut = CtaDispatcher(sms=SMS, cta_bits=CTA_BITS)
        constant = {"policy": dut.policy, "interval": dut.interval}
        m.d.comb += [Assume(protocol(m, {}, constant)), Assume(dut.interval <= INTERVAL)]

        # The grid: how many of its CTAs have been presented, where the last one went, and when.
        self.total, self.given, self.fresh = Signal(CTA_BITS), Signal(CTA_BITS), Signal(init=1)
        self.before, self.last, self.wait = Signal(CTA_BITS), Signal.like(dut.dispatch.sm), Signal(range(INTERVAL))
        none = Signal()  # no CTA of this grid has been presented
        m.d.comb += [
            self.given.eq(self.before + dut.dispatch.valid),
            none.eq(self.fresh & ~dut.dispatch.valid),
            self.last.eq(Mux(none, SMS - 1, dut.dispatch.sm)),
        ]
        m.d.sync += [self.before.eq(self.given), self.fresh.eq(none)]
        left = Signal(range(INTERVAL))
        m.d.comb += self.wait.eq(Mux(dut.dispatch.valid, dut.interval - 1, left))
        m.d.sync += left.eq(Mux(self.wait != 0, self.wait - 1, 0))
        with m.If(dut.launch):
            m.d.sync += [self.total.eq(dut.ctas), self.before.eq(0), self.fresh.eq(1), left.eq(0)]
        self._best(m)
        m.d.comb += [
            Assert(dut._next == self.given),
            Assert(dut._wait == self.wait),
            Assert(dut._last == self.last),
            Assert(dut.remaining == self.total - self.given),
            Assert(self.given <= self.total),
            Assert((left == 0) | (left < dut.interval) & ~self.fresh),
            Assert(dut.dispatch.sm < SMS),
            Assert(~dut.dispatch.valid | (left == 0)),
        ]
        return m

    def _best(self, m: Module) -> None:
        dut = self.dut
        balanced = dut.policy == LOAD_BALANCED
        able, best, found = Signal(SMS), Signal(SMS), Signal()
        self.best, level = Signal(SMS), Signal.like(dut._level)
        fewest = Signal.like(level)
        m.d.comb += able.eq(Cat(dut.room[0][sm] & ~(dut.dispatch.valid & (dut.dispatch.sm == sm)) for sm in range(SMS)))
        for sm in range(SMS):
            fewer = Cat(able[other] & (dut.load[other] < dut.load[sm]) for other in range(SMS))
            m.d.comb += best[sm].eq(able[sm] & ~(balanced & fewer.any()))
            with m.If(best[sm]):
                m.d.comb += fewest.eq(dut.load[sm])
            m.d.comb += Assume(~dut.room[0][sm] | (dut.load[sm] < MAX_CTAS))
        m.d.sync += [self.best.eq(best), found.eq(~balanced | (fewest == level))]
        # Where they are not found at once, the level comes nearer to the fewest CTAs.
        with m.If(balanced & able.any() & (fewest != level)):
            m.d.sync += level.eq(Mux(fewest > level, level + 1, level - 1))
        with m.If(dut.launch):
            m.d.sync += [found.eq(0), level.eq(0)]
        m.d.comb += [
            Assert(dut._in_question == Mux(found, self.best, 0)),
            Assert(dut._level == level),
        ]
        served = Mux(dut.dispatch.valid, 1 << dut.dispatch.sm, 0)
        self.candidates = Mux(found, self.best & ~served, 0)


class Once(Grids):
    """The CTAs of a grid are presented in the order of their numbers, each once, and one whenever one can be."""

    def elaborate(self, platform: object) -> Module:
        m = super().elaborate(platform)
        dut = self.dut
        can, began = Signal(), Signal()
        m.d.sync += [
            began.eq(1),
            can.eq(~dut.launch & (self.wait == 0) & (self.given != self.total) & self.candidates.any()),
        ]
        with m.If(dut.dispatch.valid):
            m.d.comb += [Assert(dut.dispatch.cta == self.before), Assert(self.before < self.total)]
        with m.If(began):
            m.d.comb += Assert(dut.dispatch.valid == can)
        return m


class Room(Grids):
    """SMs that tell the truth about their room are never given a CTA that they cannot hold."""

    def elaborate(self, platform: object) -> Module:
        m = super().elaborate(platform)
        dispatch = self.dut.dispatch
        for sm in range(SMS):
            held, ends = Signal(range(CAPACITY + 1), name=f"held_{sm}"), Signal(name=f"ends_{sm}")
            taken = dispatch.valid & (dispatch.sm == sm)
            m.d.comb += [Assume(~ends | (held != 0)), Assume(self.dut.room[0][sm] == (held < CAPACITY))]
            m.d.comb += [Assert(held <= CAPACITY), Assert(~taken | (held < CAPACITY))]
            m.d.sync += held.eq(held + taken - ends)
        return m


class Policy(Grids):
    """The SM is the next of the best ones after the last, circularly."""

    def elaborate(self, platform: object) -> Module:
        m = super().elaborate(platform)
        dut = self.dut
        wrong = Signal(SMS)  # the SMs that another one would have to go before

        def later(sm: int, other: int) -> Value:
            """Whether ``other`` comes before ``sm``, counted from the SM after the last."""
            place, its = Signal(range(SMS)), Signal(range(SMS))
            for number, signal in ((sm, place), (other, its)):
                behind = (number + SMS - 1) - self.last
                m.d.comb += signal.eq(Mux(behind >= SMS, behind - SMS, behind))
            return its < place

        for sm in range(SMS):
            better = [self.candidates[other] & later(sm, other) for other in set(range(SMS)) - {sm}]
            m.d.sync += wrong[sm].eq(~self.candidates[sm] | Cat(better).any())
        with m.If(dut.dispatch.valid):
            m.d.comb += Assert(~wrong.bit_select(dut.dispatch.sm, 1))
        return m


class Reached(Grids):
    """A whole grid is dispatched, to every SM, and another one begins."""

    def elaborate(self, platform: object) -> Module:
        m = super().elaborate(platform)
        dut = self.dut
        served, again = Signal(SMS), Signal()
        m.d.sync += served.eq(served | (dut.dispatch.valid << dut.dispatch.sm)[:SMS])
        with m.If(dut.launch & served.all() & (dut.remaining == 0)):
            m.d.sync += again.eq(1)
        m.d.comb += Cover(again & dut.dispatch.valid & (dut.interval == INTERVAL))
        return m


_SIZE = f"{SMS} SMs, grids of up to {2**CTA_BITS - 1} CTAs, intervals of 1 to {INTERVAL}"
PROOFS = {
    "once": Proof(Once, "prove", 2, f"every CTA once, in order, one whenever one can be; {_SIZE}"),
    "room": Proof(Room, "prove", 2, f"never to a full SM; {_SIZE}"),
    "policy": Proof(Policy, "prove", 2, f"round robin and load balance among the SMs with room; {_SIZE}"),
    "reached": Proof(Reached, "cover", 24, f"a whole grid on all SMs, and a second one; {_SIZE}"),
}
