"""Proofs about the issue path: one pair of CTAs, with any of four warps, in the slots of two schedulers."""

from __future__ import annotations

from amaranth.hdl import Assert, Assume, Cat, Cover, Elaboratable, Module, Signal, Value

from lockstep.rtl.bits import popcount
from lockstep.rtl.sharing.issue_path import IssuePath
from lockstep.rtl.sharing.share_locks import SIDES
from lockstep.spec.parameters import SCHEDULERS
from lockstep.spec.sharing.parameters import POLICY
from lockstep.verif.formal import Proof

WARPS, PORTS = 4, range(2)


class Path(Elaboratable):
    """The unit, whose warps keep their seats, and may request and end whenever they like, but not both at once."""

    def __init__(self) -> None:
        self.dut = IssuePath(
            warps=WARPS, ctas=2, schedulers=len(PORTS), patience=0, policies=1 << SCHEDULERS.index(POLICY), rule=1
        )
        self.issued = Signal(WARPS)  # by slot
        self.paired = Signal(WARPS)  # they are of the pair

    def elaborate(self, platform: object) -> Module:
        m = Module()
        m.submodules.dut = dut = self.dut
        seats = Cat(self.paired, *(seat.as_value() for seat in dut.seat))
        before, began = Signal.like(seats), Signal()
        m.d.sync += [before.eq(seats), began.eq(1)]
        grants = [dut.grant[slot % len(PORTS)] for slot in range(WARPS)]
        granted = Cat(grant.valid & (grant.warp == slot) for slot, grant in enumerate(grants))
        free = Cat(~(dut.refuse | dut.refused)[slot % len(PORTS)] for slot in range(WARPS))
        m.d.comb += [
            Assume(~began | (before == seats)),
            Assume(dut.policy == SCHEDULERS.index(POLICY)),
            Assume((dut.request & dut.finish) == 0),
            Assume(((dut.registers | dut.scratchpad) & ~self.paired) == 0),
            self.issued.eq(granted & free),
        ]
        m.d.comb += [Assume(~paired | (seat.pair == 0)) for paired, seat in zip(self.paired, dut.seat, strict=True)]
        for side in SIDES:
            m.d.comb += [
                Assume(~(self.of(side) & dut.request).any() | ~dut.leave[side].any()),
                Assert(dut.holds[side] == (dut.scratchpads[side] | (dut.held & self.of(side)).any())),
            ]
        m.d.comb += Assert(((dut.held | dut.waiting) & ~self.paired) == 0)
        return m

    def of(self, side: int) -> Value:
        """The slots of a CTA's warps."""
        return self.paired & Cat(seat.side == side for seat in self.dut.seat)

    def takes(self, side: int) -> Value:
        """The slots of a CTA's warps that issue with a lock."""
        return self.issued & self.of(side) & (self.dut.registers | self.dut.scratchpad)


class Excludes(Path):
    """The CTAs of the pair never issue with locks in one cycle, nor hold any together; who waits is not granted."""

    def elaborate(self, platform: object) -> Module:
        m = super().elaborate(platform)
        dut = self.dut
        granted = popcount(Cat(grant.valid for grant in dut.grant))
        m.d.comb += [
            Assert(~(self.takes(0).any() & self.takes(1).any())),
            Assert(~(dut.holds[0] & dut.holds[1]).any()),
            Assert((self.issued & (dut.waiting | ~dut.request)) == 0),
            Assert(popcount(self.issued) <= granted),
        ]
        for side in SIDES:
            m.d.comb += Assert(~self.takes(side).any() | ~dut.holds[1 - side].any())
        return m


class HandsOver(Path):
    """A warp waits for the other CTA, is woken, and issues with a lock, as its scheduler's first of two."""

    def elaborate(self, platform: object) -> Module:
        m = super().elaborate(platform)
        waiting, waited, woken = self.dut.waiting, Signal(WARPS), Signal(WARPS)
        m.d.sync += [waited.eq(waited | waiting), woken.eq(woken | waited & ~waiting)]
        m.d.comb += Cover((self.takes(1) & woken).any() & (self.of(1) & self.dut.request & ~self.issued).any())
        return m


_SIZE = "1 pair, 4 warps of either CTA or of none, 2 schedulers"
PROOFS = {
    "one side issues": Proof(
        Excludes, "prove", 1,
        "the CTAs of a pair neither issue with locks in one cycle nor both hold any; who waits is not granted; "
        f"{_SIZE}",
    ),
    "a lock changes hands": Proof(HandsOver, "cover", 9, f"a warp waits, is woken, and takes a lock; {_SIZE}"),
}  # fmt: skip
