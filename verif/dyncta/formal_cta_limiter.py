"""Proofs about the limit and the pauses, at a reduced size: four places, windows of sixteen cycles."""

from __future__ import annotations

from amaranth.hdl import Assert, Assume, Cat, Const, Cover, Elaboratable, Module, Mux, Signal, Value

from lockstep.rtl.bits import popcount
from lockstep.rtl.dyncta.cta_limiter import CtaLimiter
from lockstep.spec.dyncta.parameters import MIN_WINDOW
from lockstep.verif.dyncta.bench_cta_limiter import legal
from lockstep.verif.formal import Proof

CTAS = 4
IDLE_HIGH, MEMORY_LOW, MEMORY_HIGH = 3, 5, 9


class Launched(Elaboratable):
    """The block under whatever its contract allows; no CTA starts before the first launch.

    ``here`` are the places with CTAs, ``cycle`` that of the window, and ``idles`` and ``memories`` what has been said
    of its cycles, each counted a cycle later.
    """

    def elaborate(self, platform: object) -> Module:
        m = Module()
        m.submodules.dut = self.dut = dut = CtaLimiter(
            ctas=CTAS, window=MIN_WINDOW, idle_high=IDLE_HIGH, memory_low=MEMORY_LOW, memory_high=MEMORY_HIGH
        )
        self.launched, self.here = Signal(), Signal(CTAS)
        ports = {name: getattr(dut, name) for name in ("most", "start", "finish")}
        m.d.comb += Assume(legal(self.here, CTAS, ports))
        self.cycle = Signal(range(MIN_WINDOW))
        self.idles, self.memories = (Signal(range(MIN_WINDOW + 1), name=name) for name in ("saw_idle", "saw_memory"))
        self.last = Signal(2)
        m.d.comb += Assume(self.launched | ~dut.start.any())
        self.ends = Signal()
        m.d.comb += self.ends.eq(self.cycle == MIN_WINDOW - 1)
        anew = self.ends | dut.launch
        m.d.sync += [
            self.launched.eq(self.launched | dut.launch),
            self.here.eq(Mux(dut.launch, 0, self.here & ~dut.finish | dut.start)),
            self.cycle.eq(Mux(anew, 0, self.cycle + 1)),
            self.last.eq(Mux(dut.launch, 0, Cat(dut.idle, dut.memory))),
            self.idles.eq(Mux(anew, 0, self.idles + self.last[0])),
            self.memories.eq(Mux(anew, 0, self.memories + self.last[1])),
        ]
        m.d.comb += [  # what the block keeps, for induction
            Assert(dut.resident == self.here),
            Assert(dut.cycle == self.cycle),
            Assert(dut.idles == self.idles),
            Assert(dut.memories == self.memories),
            Assert(Cat(dut.was_idle, dut.was_memory) == self.last),
            Assert(self.idles <= self.cycle),
            Assert(self.memories <= self.cycle),
            Assert(self.launched | ((dut.limit == 0) & (dut.largest == 0) & ~self.here.any())),
            Assert(~self.launched | ((dut.largest >= 1) & (dut.largest <= CTAS))),
            Assert(~self.launched | ((dut.limit >= 1) & (dut.limit <= dut.largest))),
        ]
        return m


class Limit(Launched):
    """After a window the limit moves by one or stays, as its counts say; at all other times it stays."""

    def elaborate(self, platform: object) -> Module:
        m = super().elaborate(platform)
        dut = self.dut
        began, was, most = Signal(), Signal.like(dut.limit), Signal.like(dut.most)
        launch, ends, idles, memories = (Signal.like(s) for s in (dut.launch, self.ends, self.idles, self.memories))
        m.d.sync += [
            began.eq(1), was.eq(dut.limit), most.eq(dut.most), launch.eq(dut.launch), ends.eq(self.ends),
            idles.eq(self.idles + self.last[0]), memories.eq(self.memories + self.last[1]),
        ]  # fmt: skip
        rises = (idles >= IDLE_HIGH) | (memories < MEMORY_LOW)
        falls = ~rises & (memories >= MEMORY_HIGH)
        with m.If(began & launch):
            m.d.comb += [Assert(dut.limit == Mux(most == 1, 1, most >> 1)), Assert(dut.largest == most)]
        with m.Elif(began & ends & self.launched):
            m.d.comb += [
                Assert((dut.limit == was + 1) == (rises & (was != dut.largest))),
                Assert((dut.limit + 1 == was) == (falls & (was != 1))),
                Assert((dut.limit == was) | (dut.limit == was + 1) | (dut.limit + 1 == was)),
            ]
        with m.Elif(began):
            m.d.comb += Assert(dut.limit == was)
        return m


class Paused(Launched):
    """Exactly the CTAs beyond the limit are paused, and none that came before one that is not.

    Of two arbitrary places, ``first`` says which one's CTA came first.
    """

    def elaborate(self, platform: object) -> Module:
        m = super().elaborate(platform)
        dut = self.dut
        beyond = Signal(range(CTAS + 1))
        count = popcount(self.here)
        m.d.comb += [
            beyond.eq(Mux(count > dut.limit, count - dut.limit, 0)),
            Assert(popcount(dut.paused) == beyond),
            Assert(dut.paused & ~self.here == Const(0)),
        ]
        for high in range(1, CTAS):
            for low in range(high):
                first = Signal(name=f"first_{low}_{high}")  # the CTA in the lower place came first
                m.d.sync += first.eq(Mux(dut.start[high], 1, Mux(dut.start[low], 0, first)))
                both = self.here[low] & self.here[high]
                m.d.comb += [
                    Assert(~both | (dut.before[high - 1][low] == first)),
                    Assert(~(both & first & dut.paused[low]) | dut.paused[high]),
                    Assert(~(both & ~first & dut.paused[high]) | dut.paused[low]),
                ]
        m.d.comb += self._ordered(dut)
        return m

    def _ordered(self, dut: CtaLimiter) -> list[Assert]:
        """The order in which CTAs came is one: for induction."""

        def before(a: int, b: int) -> Value:
            return dut.before[b - 1][a] if a < b else ~dut.before[a - 1][b]

        every = [(a, b, c) for a in range(CTAS) for b in range(CTAS) for c in range(CTAS) if len({a, b, c}) == 3]
        return [
            Assert(~(self.here[a] & self.here[b] & self.here[c] & before(a, b) & before(b, c)) | before(a, c))
            for a, b, c in every
        ]


class Resumed(Launched):
    """A paused CTA resumes within a window in which the limit rises, or when enough of those before it end.

    Of an arbitrary CTA: while it is there, the number of CTAs before it never grows; so it is paused no longer once
    that number is below the limit, whatever comes after it.
    """

    def elaborate(self, platform: object) -> Module:
        m = super().elaborate(platform)
        dut = self.dut
        for place in range(CTAS):
            others = [other for other in range(CTAS) if other != place]
            earlier = popcount(
                Cat(
                    self.here[o] & (dut.before[place - 1][o] if o < place else ~dut.before[o - 1][place])
                    for o in others
                )
            )
            was, stays = Signal(range(CTAS), name=f"was_{place}"), Signal(name=f"stays_{place}")
            m.d.sync += [was.eq(earlier), stays.eq(self.here[place] & ~dut.finish[place] & ~dut.launch)]
            with m.If(stays & self.here[place]):
                m.d.comb += Assert(earlier <= was)
            with m.If(self.here[place]):
                m.d.comb += Assert(dut.paused[place] == (earlier >= dut.limit))
        return m


class Reached(Launched):
    """The limit falls from the most to 1 with all CTAs there, and one that was paused goes on."""

    def elaborate(self, platform: object) -> Module:
        m = super().elaborate(platform)
        dut = self.dut
        low, again = Signal(), Signal()
        m.d.comb += Assume(~self.launched | ~dut.launch)
        m.d.sync += low.eq(low | (popcount(dut.paused) == CTAS - 1))
        m.d.sync += again.eq(low & (popcount(dut.paused) == CTAS - 2) & (popcount(self.here) == CTAS))
        m.d.comb += Cover(again)
        return m


_SIZE = f"{CTAS} places, windows of {MIN_WINDOW}"
PROOFS = {
    "limit": Proof(Limit, "prove", 2, f"1 to the most, by one after a window, as the counts say; {_SIZE}"),
    "paused": Proof(Paused, "prove", 2, f"exactly those beyond the limit, that came last; {_SIZE}"),
    "resumed": Proof(Resumed, "prove", 2, f"nobody that comes later delays a paused CTA; {_SIZE}"),
    "reached": Proof(Reached, "cover", 60, f"all but one paused, and one resumed; {_SIZE}"),
}
