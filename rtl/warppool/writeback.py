"""Gives the register file one load's registers per cycle, from the answers of the L1.

Kloosterman's thesis, section 3.3.7: a queue of two answers with their metadata; the L1 stalls when it is full.
"""

from __future__ import annotations

from typing import ClassVar

from amaranth.hdl import Module, Mux, Signal, Value
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out

from lockstep.rtl.warppool._layouts import slot_layout, slots_layout
from lockstep.spec.parameters import MAX_WARPS, TICKETS
from lockstep.spec.warppool.parameters import MAX_SLOTS


class Writeback(wiring.Component):
    """Serialises the slots of each answer, in order, answer after answer.

    Holds two answers: the one that was accepted last, whose slots the metadata table shows until the next is accepted,
    and one in a buffer. Latency: the first slot of an answer is presented two cycles after the answer was accepted, one
    to read its metadata and one to the output register. Answers of one slot follow each other without a gap. Ready
    depends on state alone, and a result that is presented holds.

    Parameters
    ----------
    lanes : int
        Threads of a warp.
    warps : int
        Warps of the SM.
    tickets : int
        Memory instructions of a warp that can be in flight.
    merges : int
        Loads that a request merges.

    Members
    -------
    answer : In, stream
        The answers of the L1: ``atomic``, and then ``mask``, its lanes.
    slots : In
        ``count``, at least 1, and ``slots`` of the last answer accepted, from the next cycle on.
    result : Out, stream
        ``warp``, ``ticket``, ``mapping``, ``thread`` and ``word`` of one slot; ``atomic`` and ``mask`` of its answer,
        ``mask`` 0 unless ``atomic``.

    Raises
    ------
    ValueError
        for a size out of range.
    """

    LARGEST: ClassVar = {"lanes": 32, "warps": MAX_WARPS, "tickets": TICKETS, "merges": MAX_SLOTS}

    def __init__(self, *, lanes: int = 32, warps: int = 48, tickets: int = TICKETS, merges: int = 4) -> None:
        for what, value, most in (
            ("lanes", lanes, 32), ("warps", warps, MAX_WARPS), ("tickets", tickets, TICKETS),
            ("merges", merges, MAX_SLOTS),
        ):  # fmt: skip
            if not 1 <= value <= most:
                raise ValueError(f"{what} must be 1 to {most}, not {value}")
        slot = slot_layout(lanes=lanes, warps=warps, tickets=tickets)
        answer = {"atomic": 1, "mask": lanes}
        slots = data.StructLayout(slots_layout(merges, slot))
        super().__init__(
            {
                "answer": In(stream.Signature(data.StructLayout(answer))),
                "slots": In(slots),
                "result": Out(stream.Signature(data.StructLayout({**slot.members, **answer}))),
            }
        )
        # The state; proofs speak of it. Contents are memory: unseen unless their flag is set, so not reset.
        self.arriving = Signal()
        self.arrived = Signal(data.StructLayout(answer), reset_less=True)
        self.buffered = Signal()
        self.buffer = Signal(data.StructLayout(answer), reset_less=True)
        self.left = Signal(slots, reset_less=True)  # of the answer in the buffer

    def elaborate(self, platform: object) -> Module:
        m = Module()
        answer, result = self.answer.p, self.result.p
        arriving, buffered, buffer, left = self.arriving, self.buffered, self.buffer, self.left
        m.d.comb += self.answer.ready.eq(~(arriving & buffered))

        # The older answer, and its slots without the one that leaves.
        owner = Signal(answer.shape())
        slots = Signal(left.shape())
        rest = Signal(left.shape())
        present = Signal()
        take = Signal()
        slot_bits = len(Value.cast(slots.slots[0]))
        m.d.comb += [
            owner.eq(Mux(buffered, buffer, self.arrived)),
            slots.eq(Mux(buffered, left, self.slots)),
            present.eq(arriving | buffered),
            take.eq(present & (~self.result.valid | self.result.ready)),
            rest.count.eq(slots.count - take),
            rest.slots.eq(Mux(take, Value.cast(slots.slots) >> slot_bits, slots.slots)),
        ]
        with m.If(present):
            m.d.sync += [buffered.eq(rest.count != 0), buffer.eq(owner), left.eq(rest)]
        with m.If(take):
            m.d.sync += [result[name].eq(slots.slots[0][name]) for name in slots.slots[0].shape().members]
            m.d.sync += [result.atomic.eq(owner.atomic), result.mask.eq(Mux(owner.atomic, owner.mask, 0))]
        m.d.sync += self.result.valid.eq(take | self.result.valid & ~self.result.ready)

        accept = self.answer.valid & self.answer.ready
        m.d.sync += arriving.eq(accept | arriving & buffered)
        with m.If(accept):
            m.d.sync += self.arrived.eq(answer)
        return m
