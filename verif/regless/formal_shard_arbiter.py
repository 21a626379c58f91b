"""Proofs about the shard arbiter: three shards, any L1."""

from __future__ import annotations

from amaranth.hdl import Assert, Assume, Cat, Cover, Elaboratable, Module, Signal

from lockstep.rtl.bits import popcount
from lockstep.rtl.regless.shard_arbiter import ShardArbiter
from lockstep.verif.formal import Proof

SHARDS = 3


class Turns(Elaboratable):
    """Streams hold until they are taken; the L1 refuses as it likes."""

    def elaborate(self, platform: object) -> Module:
        m = Module()
        m.submodules.dut = dut = ShardArbiter(shards=SHARDS, lanes=1, warps=1, registers=1, per_line=1)
        shown = dut.access.payload.shard
        ready = Signal(SHARDS)
        m.d.comb += ready.eq(Cat(request.ready for request in dut.request))
        m.d.comb += Assert(popcount(ready) <= (dut.access.valid & dut.accepted))
        m.d.comb += Assert(dut.turn < SHARDS)
        for shard, request in enumerate(dut.request):
            held, waited = Signal(name=f"held_{shard}"), Signal(range(SHARDS + 1), name=f"waited_{shard}")
            mine = dut.access.valid & (shown == shard)
            m.d.comb += [Assume(~held | request.valid), Assert(~mine | request.valid), Assert(~ready[shard] | mine)]
            m.d.sync += [held.eq(request.valid & ~request.ready), waited.eq(0)]
            with m.If(request.valid & ~mine):
                m.d.sync += waited.eq(waited + 1)
            # Those before it in the order of turns, of which each cycle passes one.
            before = Signal(range(SHARDS), name=f"before_{shard}")
            with m.If(dut.turn <= shard):
                m.d.comb += before.eq(shard - dut.turn)
            with m.Else():
                m.d.comb += before.eq(shard + SHARDS - dut.turn)
            m.d.comb += Assert(waited + before <= SHARDS - 1 + ((waited == 0) & (before != 0)))
            m.d.comb += Assert(~mine | (waited < SHARDS))
        m.d.comb += [Cover(dut.accepted & (shown == SHARDS - 1)), Cover(dut.access.valid & ~dut.accepted)]
        return m


PROOFS = {
    "one at a time, and each in time": Proof(
        Turns, "prove", 4,
        "at most one shard is answered, the one that is presented; an access is presented again within two cycles "
        "whatever the L1 refuses: 3 shards",
    ),
    "accepted and refused": Proof(Turns, "cover", 5, "the last shard is accepted; an access is refused"),
}  # fmt: skip
