"""Lets the shards of an SM take turns at the L1, which accepts one request per cycle (Kloosterman, section 4.5)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

from amaranth.hdl import Cat, Module, Mux, Signal, Value
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out
from amaranth.utils import bits_for

from lockstep.rtl.bits import above, index_of, lowest, select
from lockstep.rtl.regless._layouts import access_layout, check
from lockstep.rtl.signatures import event
from lockstep.spec.parameters import LANES, MAX_SCHEDULERS, MAX_WARPS
from lockstep.spec.regless.parameters import MAX_REGISTERS, PER_LINE, groups


class ShardArbiter(wiring.Component):
    """Presents one shard's access in each cycle, round robin; one that the L1 refuses gives way to the next shard's.

    So nobody waits behind a refused access, and an access is presented again after at most as many cycles as there are
    other shards. Nothing is kept here but whose turn it is: ``access`` follows ``request``, ``request.ready``
    follows ``accepted``, in the same cycle. Payloads are zero while they are not valid. Latency: none.

    Parameters
    ----------
    shards : int
        Clients.
    lanes, warps, registers, per_line : int
        As of :class:`RegisterCompressor`.

    Members
    -------
    request : In, stream, one per shard
        Of the shard's compressor.
    access : Out, event
        What the L1 sees in this cycle, and ``shard``, whose it is.
    accepted : In
        The L1 takes it.

    Raises
    ------
    ValueError
        for a size out of range.
    """

    LARGEST: ClassVar = {
        "shards": MAX_SCHEDULERS, "lanes": LANES, "warps": MAX_WARPS, "registers": MAX_REGISTERS, "per_line": 1
    }  # fmt: skip
    combinational: ClassVar[Mapping[str, tuple[str, ...]]] = {
        "access": ("request.valid", "request.payload"),
        "request.ready": ("request.valid", "accepted"),
    }

    def __init__(
        self, *, shards: int = 4, lanes: int = LANES, warps: int = 16, registers: int = 255, per_line: int = PER_LINE
    ) -> None:
        given = dict(shards=shards, lanes=lanes, warps=warps, registers=registers, per_line=per_line)
        check(given, self.LARGEST | {"per_line": PER_LINE})
        group = bits_for(groups(warps, registers, per_line) - 1)
        access = access_layout(words=max(lanes, 2 * per_line), group=group, warps=warps, registers=registers)
        super().__init__(
            {
                "request": In(stream.Signature(access)).array(shards),
                "access": Out(event(data.StructLayout({"shard": bits_for(shards - 1), **access.members}))),
                "accepted": In(1),
            }
        )
        self.turn = Signal(bits_for(shards - 1))  # who is presented first

    def elaborate(self, platform: object) -> Module:
        m = Module()
        shards, access = len(self.request), self.access.payload
        valid, later, chosen = Signal(shards, name="valid"), Signal(shards, name="later"), Signal(shards, name="chosen")
        m.d.comb += [
            valid.eq(Cat(request.valid for request in self.request)),
            later.eq(valid & above(self.turn, shards, itself=True)),
            chosen.eq(Mux(later.any(), lowest(later), lowest(valid))),
            self.access.valid.eq(valid.any()),
            access.shard.eq(index_of(chosen)),
        ]
        for name in self.request[0].p.shape().members:
            values = [Value.cast(getattr(request.p, name)) for request in self.request]
            m.d.comb += Value.cast(getattr(access, name)).eq(select(chosen, values))
        m.d.comb += [request.ready.eq(one & self.accepted) for request, one in zip(self.request, chosen, strict=True)]
        with m.If(valid.any()):
            m.d.sync += self.turn.eq(Mux(access.shard == shards - 1, 0, access.shard + 1))
        return m
