"""Proofs about who is older and who owns, at a reduced size: any of two pairs."""

from __future__ import annotations

from collections.abc import Iterable

from amaranth.hdl import Assert, Assume, Cat, Cover, Elaboratable, Module, Mux, Signal, Value

from lockstep.rtl.sharing.share_owner import ShareOwner
from lockstep.verif.formal import Proof
from lockstep.verif.sharing.bench_share_owner import protocol

CTAS = 4
MAX_AGE = 7


class Pair(Elaboratable):
    """The block under any CTAs and locks that its contract allows, seen from one arbitrary pair.

    Bit s of ``here``: side s has a CTA, as starts and finishes tell. Of the cycle before: ``stayed``, those that were
    here and did not finish; ``held``, those of them that held a lock; ``owned`` and ``elder``, the pair's outputs.
    """

    def __init__(self) -> None:
        self.here, self.start, self.holds = Signal(2), Signal(2), Signal(2)
        self.owner, self.older = Signal(), Signal()
        self.stayed, self.held, self.owned, self.elder = Signal(2), Signal(2), Signal(), Signal()

    def elaborate(self, platform: object) -> Module:
        m = Module()
        m.submodules.dut = dut = ShareOwner(ctas=CTAS)
        # Some pair, always the same.
        pair, before, began = Signal(range(dut.pairs)), Signal(range(dut.pairs)), Signal()
        m.d.sync += [before.eq(pair), began.eq(1)]
        m.d.comb += Assume(~began | (pair == before))

        def own(masks: Iterable[Value]) -> Value:
            return Cat(mask.bit_select(pair, 1) for mask in masks)

        ports = {name: Cat(*getattr(dut, name)) for name in ("start", "finish", "holds", "present")}
        stays = Signal(2)
        m.d.comb += [
            Assume(protocol(m, {}, ports)),
            self.start.eq(own(dut.start)),
            self.holds.eq(own(dut.holds)),
            self.owner.eq(own([dut.owner])),
            self.older.eq(own([dut.older])),
            stays.eq(self.here & ~own(dut.finish)),
            Assert(own(dut.present) == self.here),
        ]
        m.d.sync += [
            self.here.eq(stays | self.start),
            self.stayed.eq(stays),
            self.held.eq(stays & self.holds),
            self.owned.eq(self.owner),
            self.elder.eq(self.older),
        ]
        two = [Cat(dut.present[side][index] for side in range(2)).all() for index in range(dut.pairs)]
        m.d.comb += Assert(dut.sharing == Cat(two).any())
        return m


class Owners(Pair):
    """All that the contract says of the owner and of the older one, case by case."""

    def elaborate(self, platform: object) -> Module:
        m = super().elaborate(platform)
        with m.Switch(self.here):
            with m.Case(0):
                m.d.comb += Assert(~self.owner & ~self.older)
            with m.Case(1, 2):
                m.d.comb += Assert((self.owner == self.here[1]) & (self.older == self.here[1]))
            with m.Default():
                self._two(m)
        return m

    def _two(self, m: Module) -> None:
        with m.Switch(self.stayed):
            with m.Case(0):
                m.d.comb += Assert(~self.owner & ~self.older)
            with m.Case(1, 2):
                m.d.comb += Assert((self.owner == self.stayed[1]) & (self.older == self.stayed[1]))
            with m.Default():
                alone = self.held.xor()
                m.d.comb += [
                    Assert(self.older == self.elder),
                    Assert(~alone | (self.owner == self.held[1])),
                    Assert(alone | (self.owner == self.owned)),
                    Assert(~self.held.bit_select(self.owned, 1) | (self.owner == self.owned)),
                ]


class Ages(Pair):
    """The cycles since each CTA came, up to a largest number."""

    def elaborate(self, platform: object) -> Module:
        m = super().elaborate(platform)
        ages = [Signal(range(MAX_AGE + 1), name=f"age_{side}") for side in range(2)]
        for age, start in zip(ages, self.start, strict=True):
            m.d.sync += age.eq(Mux(start, 0, Mux(age == MAX_AGE, age, age + 1)))
        with m.If(self.here.all()):
            m.d.comb += [
                Assert(self.older | (ages[0] >= ages[1])),
                Assert(~self.older | (ages[1] > ages[0]) | (ages[0] == MAX_AGE)),
            ]
        return m


class Ruled(Pair):
    """No side holds a lock while the other one does."""

    def elaborate(self, platform: object) -> Module:
        m = super().elaborate(platform)
        m.d.comb += Assume(~self.holds.all())
        for side in range(2):
            m.d.comb += Assert(~(self.held[side] & self.holds[side]) | (self.owner == side))
        return m


class Handovers(Pair):
    """What must be reachable."""

    def elaborate(self, platform: object) -> Module:
        m = super().elaborate(platform)
        by_lock, by_end = Signal(2), Signal(2)  # that made the owner of a pair with two CTAs side 0, side 1
        changed = self.here.all() & (self.owner != self.owned)
        new = Cat(~self.owner, self.owner)
        with m.If(changed):
            m.d.sync += [
                by_lock.eq(by_lock | Mux(self.stayed.all(), new, 0)),
                by_end.eq(by_end | Mux(self.stayed.xor(), new, 0)),
            ]
        m.d.comb += [Cover(by_lock.all()), Cover(by_end.all())]
        return m


_SIZE = "2 pairs"
PROOFS = {
    "owners": Proof(
        Owners, "prove", 1,
        "a lone CTA owns; of two that stay, the only one with a lock does, else the one that did; one that stays goes "
        f"before one that comes, and side 0 of two that come; sharing while a pair has two: {_SIZE}",
    ),
    "ages": Proof(Ages, "prove", 1, f"the older of two CTAs has been there longer, or it is side 0: {_SIZE}"),
    "a holder owns": Proof(
        Ruled, "prove", 1, f"with the rule against deadlock, from the second cycle with a lock on: {_SIZE}"
    ),
    "handovers": Proof(
        Handovers, "cover", 9, f"both sides become owner by a lock, and both by the other one's end: {_SIZE}"
    ),
}  # fmt: skip
