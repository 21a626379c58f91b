"""Proof about the turnstile, at a reduced size: two slots, three cycles."""

from __future__ import annotations

from amaranth.hdl import Assert, Elaboratable, Module, Mux, Signal

from lockstep.rtl.odd_gate.turnstile import Turnstile
from lockstep.verif.formal import Proof

PERIOD = 3


class Periodic(Elaboratable):
    """Any slots, and the cycles since it was open."""

    def elaborate(self, platform: object) -> Module:
        m = Module()
        m.submodules.dut = dut = Turnstile(warps=2, period=PERIOD)
        since = Signal(range(PERIOD + 1), init=PERIOD)
        m.d.sync += since.eq(Mux(dut.open, 1, since + 1))
        m.d.comb += [
            Assert(dut.open == (since == PERIOD)),
            Assert(dut.phase == Mux(since == PERIOD, 0, since)),
            Assert(dut.closed == Mux(dut.open, 0, dut.slots)),
        ]
        return m


PROOFS = {
    "open once in a period": Proof(
        Periodic, "prove", 2, "closed for two cycles between two in which it is open, for its slots alone: 2 slots"
    )
}
