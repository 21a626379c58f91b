"""Proofs about the pairs that are chosen, at a reduced size: two pairs, four CTAs, four warps."""

from __future__ import annotations

from typing import ClassVar

from amaranth.hdl import Array, Assert, Assume, Cat, Cover, Elaboratable, Module, Mux, Signal, Value

from lockstep.rtl.scavenger.cta_balancer import CtaBalancer
from lockstep.verif.formal import Proof
from lockstep.verif.scavenger.bench_cta_balancer import protocol

WARPS, CTAS, PAIRS, WINDOW = 4, 4, 2, 10


class Legal(Elaboratable):
    """The block under whatever its contract allows."""

    PARAMETERS: ClassVar = dict(
        warps=WARPS, ctas=CTAS, pairs=PAIRS, window=WINDOW, primary_slack=1, secondary_slack=2, carry=1
    )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        m.submodules.dut = self.dut = dut = CtaBalancer(**self.PARAMETERS)
        names = ("clear", "run", "primary_warps", "secondary_warps", "primary_resident", "secondary_resident")
        ports = {name: getattr(dut, name) for name in names}
        payload = dut.load.payload
        ports |= {"load_valid": dut.load.valid, "load_primary": payload.primary, "load_secondary": payload.secondary}
        m.d.comb += [
            Assume(protocol(m, self.PARAMETERS, ports)),
            Assume(~dut.load.valid | (dut.count < PAIRS)),  # the same, said of the block's own count: for induction
            Assume(~dut.run | (dut.count != 0)),
        ]
        return m


class Chosen(Legal):
    """Whatever is true of every pair that is loaded is true of every pair that is chosen; nothing overflows.

    So no choice leaves room for one more CTA, and none leaves a kernel without one.
    """

    def elaborate(self, platform: object) -> Module:
        m = super().elaborate(platform)
        dut = self.dut
        free, kept, began = Signal(CTAS * CTAS), Signal(CTAS * CTAS), Signal()
        m.d.sync += [began.eq(1), kept.eq(Mux(began, kept, free))]
        truth = Mux(began, kept, free)  # of each pair

        def good(primary: Value, secondary: Value) -> Value:
            found = Array(truth[index] for index in range(CTAS * CTAS))[Cat(primary, secondary)]
            return found & (primary != 0) & (secondary != 0)

        out = Signal()
        none = (dut.primary == 0) & (dut.secondary == 0)
        m.d.comb += [
            Assume(~dut.load.valid | good(dut.load.payload.primary, dut.load.payload.secondary)),
            out.eq(good(dut.primary, dut.secondary)),
            Assert(none | out),
            Assert(~(dut.ran & (dut.cycle >= PAIRS + 6)) | out & ~dut.working & ~dut.counting),
        ]
        for index in range(PAIRS):  # what the block keeps, for induction
            port = dut.table.read_port(domain="comb")
            m.d.comb += [
                port.addr.eq(index),
                Assert((dut.count <= index) | good(port.data.primary, port.data.secondary)),
            ]
            read = dut.read.data
            looked = dut.working & (dut.step == index + 1) & (dut.count > index)
            m.d.comb += Assert(~looked | good(read.primary, read.secondary))
        chosen = good(dut.chosen.primary, dut.chosen.secondary)
        later, gives = dut.working & (dut.step != 0), dut.gives | dut.returns
        m.d.comb += [
            Assert(dut.count <= PAIRS),
            Assert((dut.count != 0) | none & ~dut.working & ~dut.counting),
            Assert(dut.cycle < WINDOW),
            Assert(dut.ran | ~dut.working & ~dut.counting & (dut.cycle == 0)),
            Assert(~dut.counting | ~dut.working & (dut.cycle == dut.begins)),
            Assert(~(dut.counting & ~dut.begins) | out),
            Assert(Cat(part <= WARPS for part in (*dut.primary_parts, *dut.secondary_parts)).all()),
            Assert(~dut.working | (dut.step <= PAIRS + 3)),
            Assert(~dut.working | (dut.cycle == dut.step + 1 + dut.begins)),
            Assert(~(dut.ran & ~dut.working & ~dut.counting) | out),
            Assert(~(dut.working & ~dut.begins) | out),
            Assert(~(later & dut.begins) | ~(dut.starves | gives)),
            Assert(~(later & dut.begins & (dut.step == 1)) | ~dut.present & ~dut.is_pair & ~dut.found),
            Assert(~(later & dut.begins & (dut.step == 2)) | dut.present & ~dut.is_pair & ~dut.found),
            Assert(~(later & dut.begins & (dut.step == 3)) | dut.is_pair & ~dut.found),
            Assert(~(later & (dut.step == 1)) | ~dut.present & ~dut.is_pair),
            Assert(~(later & (dut.step == 2)) | ~dut.is_pair),
            Assert(~(later & dut.present) | good(dut.entry.primary, dut.entry.secondary)),
            Assert(~(later & dut.is_pair) | good(dut.candidate.primary, dut.candidate.secondary)),
            Assert(~(later & (~dut.begins | (dut.step >= 4))) | chosen),
            Assert((dut.primary_idle <= WARPS) & (dut.secondary_idle <= WARPS)),
            Assert(~(later & gives) | ~dut.starves & ~(dut.gives & dut.returns)),
            Assert(~(later & (dut.step == 1)) | (dut.cost == 0) & (dut.difference <= WARPS)),
            Assert(~(later & (dut.step == 1) & dut.again) | (dut.carried <= 4 * WARPS)),
            Assert(~(later & gives & (dut.step >= 2)) | (dut.cost << 2 <= dut.budget) & (dut.budget <= 5 * WARPS)),
            Assert(~(gives & ~later) | (dut.carried <= 4 * WARPS)),
        ]
        return m


class Reached(Legal):
    """The secondary is given more, with what was carried, and the primary gets it back."""

    def elaborate(self, platform: object) -> Module:
        m = super().elaborate(platform)
        dut = self.dut
        more, carried = Signal(), Signal()
        was = Signal(2)
        m.d.sync += was.eq(dut.secondary)
        rose, fell = dut.ran & (was != 0) & (dut.secondary > was), dut.ran & (dut.secondary < was)
        m.d.sync += [
            carried.eq(carried | dut.gives & ~dut.working & (dut.carried != 0)),
            more.eq(more | rose & carried),
        ]
        m.d.comb += Cover(more & fell)
        return m


_SIZE = f"{PAIRS} pairs, {WARPS} warps, windows of {WINDOW}"
PROOFS = {
    "chosen": Proof(
        Chosen, "prove", 2,
        "what is true of every pair that is loaded is true of every pair that is chosen, and both kernels have a CTA; "
        f"{_SIZE}",
    ),
    "reached": Proof(
        Reached, "cover", 50, f"with what was carried a secondary CTA more, and then one less; {_SIZE}", long=True
    ),
}  # fmt: skip
