"""Proofs about the allocation: its range, and that an error that lasts moves it after every beat up to its end."""

from __future__ import annotations

from functools import partial
from typing import ClassVar

from amaranth.hdl import Assert, Assume, Cover, Elaboratable, Module, Signal, Value

from lockstep.rtl.scavenger.pid_controller import PidController
from lockstep.spec.scavenger.fixed import ERROR, IPC, SHARE, WARPS
from lockstep.verif.formal import Proof
from lockstep.verif.scavenger.bench_pid_controller import CONFIGURATIONS, legal

# Of an error: at the smallest weight, 1/256, and the thesis's gains, half of 1/256 warps or more.
DEAD_BAND = ERROR.code(0.2) + 1


class Legal(Elaboratable):
    """The block under whatever its contract allows."""

    PARAMETERS: ClassVar[dict[str, int]] = CONFIGURATIONS["shipped"]

    def __init__(self, **parameters: int) -> None:
        self.parameters = {**self.PARAMETERS, **parameters}

    def elaborate(self, platform: object) -> Module:
        m = Module()
        m.submodules.dut = self.dut = dut = PidController(**self.parameters)
        m.d.comb += Assume(legal(self.parameters, {"first": dut.first, "target": dut.target}))
        return m


class Range(Legal):
    """The allocation is in its range, and what the primary does not have is the secondary's."""

    def elaborate(self, platform: object) -> Module:
        m = super().elaborate(platform)
        dut, most = self.dut, self.parameters["most"]
        m.d.comb += [
            Assert((dut.allocation >= WARPS.one) & (dut.allocation <= most * WARPS.one)),
            Assert((dut.primary >= 1) & (dut.primary + dut.secondary == most)),
        ]
        return m


class Lasting(Legal):
    """Both errors beyond the dead band, of one sign, and a slack above 0 and below 1: the allocation moves their way.

    Asserted on the way: what the registers hold after each step of the arithmetic, and that none overflows.
    """

    def elaborate(self, platform: object) -> Module:
        m = super().elaborate(platform)
        dut, interval = self.dut, self.parameters["interval"]
        slack = dut.idle_share
        some = (slack > 0) & (slack < SHARE.one)
        up, down = Signal(), Signal()
        least, most = DEAD_BAND * interval, interval << IPC.bits
        m.d.comb += [
            up.eq(some & (dut.short_error >= least) & (dut.long_error >= DEAD_BAND)),
            down.eq(some & (dut.short_error <= -least) & (dut.long_error <= -DEAD_BAND)),
            Assert(dut.cycle < interval),
            Assert(self._within(dut.error, dut.cycle << IPC.bits)),
            Assert(~dut.working | self._within(dut.short_error, most)),
            Assert(~dut.working | (slack <= SHARE.one)),
            Assert(~dut.working | (dut.step <= dut.divided)),
            Assert(~dut.working | (dut.cycle == dut.step)),
        ]
        self.moves = moves = up | down
        gains, sums = [0, 0], [0, 0]  # of the sum of the beat's errors and of e_l, so far; the sum's least and most
        with m.If(dut.working):
            with m.Switch(dut.step):
                for step in range(dut.summed + 1):
                    with m.Case(step):
                        m.d.comb += [
                            Assert(self._within(dut.sum, sums[1])),
                            Assert(~up | (dut.sum >= sums[0])),
                            Assert(~down | (dut.sum <= -sums[0])),
                        ]
                    if step < dut.summed:
                        bit = dut._gain_bits - 1 - step // 2
                        if step % 2 == 0:
                            gains = [2 * gain for gain in gains]
                        which = (0, 1, 1, 0)[step % 4]
                        gains[which] += dut._gains[which] >> bit & 1
                    sums = [gains[0] * least + gains[1] * DEAD_BAND, gains[0] * most + (gains[1] << IPC.bits)]
                assert gains == [*dut._gains]
                least_sum = sums[0]
                bits = dut.weighed - dut.summed - 1  # of the weight
                for done in range(bits + 1):
                    with m.Case(dut.summed + 1 + done):
                        left = bits - done
                        m.d.comb += Assert(~moves | dut.product[:left].any() | (dut.product[left:] >= least_sum))
                places = len(dut.quotient)
                for done in range(places + 1):
                    with m.Case(dut.scaled + 1 + done):
                        m.d.comb += self._divided(done)
            with m.If(dut.step > dut.summed):
                m.d.comb += [
                    Assert(~moves | (dut.sum >= least_sum)),
                    Assert(~up | ~dut.negative),
                    Assert(~down | dut.negative),
                ]
            with m.If(dut.step > dut.scaled):
                m.d.comb += Assert(dut.beyond | (dut.rest < dut.divisor))
        self._moved(m, up, down)
        return m

    @staticmethod
    def _within(value: Value, most: Value | int) -> Value:
        return (value <= most) & (-value <= most)

    def _divided(self, done: int) -> Assert:
        """After so many steps there is a bit of the quotient, or what is left is at least the divisor."""
        dut, places = self.dut, len(self.dut.quotient)
        left = (dut.rest << places - done) + (dut.quotient >> done)
        found = dut.quotient[:done].any() | dut.beyond
        return Assert(~self.moves | found | (left >= dut.divisor))

    def _moved(self, m: Module, up: Value, down: Value) -> None:
        """The cycle after the last step."""
        dut = self.dut
        was, rose, fell = Signal.like(dut.allocation), Signal(), Signal()
        ends = dut.run & dut.working & (dut.step == dut.divided) & (dut.cycle != self.parameters["interval"] - 1)
        m.d.sync += [was.eq(dut.allocation), rose.eq(ends & up), fell.eq(ends & down)]
        m.d.comb += [
            Assert(~rose | (dut.allocation > was) | (dut.allocation == self.parameters["most"] * WARPS.one)),
            Assert(~fell | (dut.allocation < was) | (dut.allocation == WARPS.one)),
            Assert((dut.allocation >= WARPS.one) & (dut.allocation <= self.parameters["most"] * WARPS.one)),
        ]


class Reached(Legal):
    """The allocation moves from one end to the other, and back."""

    PARAMETERS: ClassVar = {
        **CONFIGURATIONS["one"],
        "most": 2,
        "interval": 40,
        "proportional": 3,
        "integral": 0,
        "scale": 64,
    }

    def elaborate(self, platform: object) -> Module:
        m = super().elaborate(platform)
        dut = self.dut
        low, back = Signal(), Signal()
        began = Signal()
        m.d.sync += [
            began.eq(1), low.eq(low | began & dut.run & (dut.allocation == WARPS.one)),
            back.eq(low & dut.run & (dut.allocation == 2 * WARPS.one)),
        ]  # fmt: skip
        m.d.comb += [Assume(began == dut.run), Assume((dut.first == 2) & (dut.slack == SHARE.one // 2)), Cover(back)]
        return m


_WARPS, _REQUESTS = "64 warps, as shipped", "256 requests, as shipped"
PROOFS = {
    "range": Proof(Range, "prove", 1, f"1 to all, both are all; {_WARPS}"),
    "range of requests": Proof(partial(Range, most=256), "prove", 1, f"1 to all, both are all; {_REQUESTS}"),
    "lasting": Proof(
        Lasting, "prove", 1,
        "an error of 0.2 instructions per cycle or more that lasts moves it after each beat, whatever the slack "
        f"between 0 and 1, until it is at its end; no register overflows; {_WARPS}", long=True,
    ),
    "reached": Proof(Reached, "cover", 130, "from one end to the other and back, a beat each", long=True),
}  # fmt: skip
