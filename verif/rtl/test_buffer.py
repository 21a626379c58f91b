"""The buffer of an input port, proved to be a queue of two entries."""

from __future__ import annotations

from pathlib import Path

import pytest
from amaranth.hdl import Assert, Cover, Elaboratable, Module, Mux, Signal

from lockstep.rtl import netlist
from lockstep.rtl.buffer import Buffer
from lockstep.verif.formal import Proof, prove

WIDTH = 4


class Queue(Elaboratable):
    """Follows an entry, any one, from its arrival until it leaves; and counts those inside."""

    def elaborate(self, platform: object) -> Module:
        m = Module()
        m.submodules.dut = dut = Buffer(WIDTH)
        enters, leaves = dut.i.valid & dut.i.ready, dut.o.valid & dut.o.ready
        inside = Signal(range(3))
        m.d.sync += inside.eq(inside + enters - leaves)
        m.d.comb += [
            Assert(dut.count == inside),
            Assert(dut.i.ready == (inside < 2)),
            Assert(dut.o.valid == (inside != 0)),
        ]
        followed, behind, value, choice = Signal(), Signal(), Signal(WIDTH), Signal()
        with m.If(followed):
            m.d.comb += [
                Assert(inside > behind),
                Assert(Mux(behind, dut.second, dut.o.p) == value),
            ]
            with m.If(leaves):
                m.d.sync += [behind.eq(0), followed.eq(behind)]
        with m.Elif(enters & choice):
            m.d.sync += [followed.eq(1), behind.eq(inside - leaves), value.eq(dut.i.p)]
        run = Signal(3)
        m.d.sync += run.eq(Mux(enters & leaves, run + (run != 7), 0))
        m.d.comb += [Cover(run == 4), Cover(dut.i.valid & ~dut.i.ready), Cover(followed & behind)]
        return m


@pytest.mark.parametrize(
    "proof",
    [
        Proof(Queue, "prove", 2, "entries leave unchanged and in order; ready and valid tell how many there are"),
        Proof(Queue, "cover", 8, "both sides transfer in cycle after cycle; it is full"),
    ],
    ids=lambda proof: proof.mode,
)
def test_a_queue_of_two(proof: Proof, tmp_path: Path) -> None:
    outcome = prove(proof.mode, proof, tmp_path)
    assert outcome.passed, outcome.counterexample


def test_both_sides_are_registered() -> None:
    assert netlist.check(Buffer(WIDTH)) == []
