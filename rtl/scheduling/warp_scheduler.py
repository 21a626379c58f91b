"""Chooses the warp that issues: one of the schedulers of an SM. Chen's thesis, chapter 4, for the policies."""

from __future__ import annotations

from typing import ClassVar

from amaranth.hdl import Cat, Const, Module, Mux, Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out
from amaranth.utils import bits_for

from lockstep.rtl.bits import index_of, next_after, popcount
from lockstep.spec.parameters import MAX_WARPS, SCHEDULERS


class WarpScheduler(wiring.Component):
    """Grants one of the requesting warps in every cycle.

    The grant answers the requests of the same cycle; it is always taken. A warp can be granted from the cycle after its
    ``start`` until the cycle of its ``finish``; requests of other slots are ignored. Warps are as old as their start;
    those that start together age in the order of their slots.

    ========== =============================================================================================
    lrr        the first requesting slot after the one granted last, circularly; slot 0 first
    gto        the warp granted last, while it requests; else the oldest
    oldest     the oldest
    two-level  as lrr, among at most ``active_warps`` active warps. An active warp that reports a long latency
               becomes pending; in each cycle in which there is room, the next pending warp that reports none,
               circularly by slot, becomes active. Warps start as pending.
    ========== =============================================================================================

    Parameters
    ----------
    warps : int
        Warp slots of the SM. A scheduler that serves some of them sees zeros in the other bits.

    Members
    -------
    policy : In
        Index into ``parameters.SCHEDULERS``; constant.
    active_warps : In
        Two-level: the most active warps; constant, at least 1.
    start : In, one bit per slot
        The slot holds a new warp from the next cycle on, also in the cycle of its last warp's finish.
    finish : In, one bit per slot
        The warp has ended.
    long_latency : In, one bit per slot
        Two-level: the warp waits for memory or at a barrier. Whatever can only end through another warp's progress must
        be reported, or the pending warps may wait for ever.
    request : In, one bit per slot
        The warp could issue now.
    grant : Out
        ``valid`` and ``warp``, the slot granted; 0 while not valid. Combinational.
    """

    LARGEST: ClassVar = {"warps": MAX_WARPS}
    combinational: ClassVar = {"grant": ("policy", "request")}

    def __init__(self, *, warps: int = 48) -> None:
        if not 1 <= warps <= MAX_WARPS:
            raise ValueError(f"warps must be 1 to {MAX_WARPS}, not {warps}")
        self._warps = warps
        super().__init__(
            {
                "policy": In(range(len(SCHEDULERS))),
                "active_warps": In(range(warps + 1)),
                "start": In(warps),
                "finish": In(warps),
                "long_latency": In(warps),
                "request": In(warps),
                "grant": Out(wiring.Signature({"valid": Out(1), "warp": Out(bits_for(warps - 1))})),
            }
        )

    @property
    def warps(self) -> int:
        return self._warps

    def elaborate(self, platform: object) -> Module:
        m = Module()
        warps = self.warps
        policy = {name: self.policy == index for index, name in enumerate(SCHEDULERS)}
        live = Signal(warps)
        last = Signal(bits_for(warps - 1), init=warps - 1)  # slot granted last
        greedy = Signal()  # ``last`` still holds the warp that was granted
        active, promoted = Signal(warps), Signal.like(last)
        # Row i of the age matrix: the slots that are older than i. Rows and columns of slots that are not live mean
        # nothing. Only starts write it, so that the matrix needs neither counters nor the order of finishes.
        older = [Signal(warps, name=f"older_{slot}") for slot in range(warps)]

        candidates = Signal(warps)
        oldest = Cat(candidates[slot] & ~(older[slot] & candidates).any() for slot in range(warps))
        kept = candidates & (Const(1, warps) << last)[:warps]
        granted = Signal(warps)
        m.d.comb += [
            candidates.eq(self.request & live & Mux(policy["two-level"], active, ~Const(0, warps))),
            granted.eq(oldest),
            self.grant.valid.eq(candidates.any()),
            self.grant.warp.eq(index_of(granted)),
        ]
        with m.If(policy["lrr"] | policy["two-level"]):
            m.d.comb += granted.eq(next_after(candidates, last))
        with m.Elif(policy["gto"] & greedy & kept.any()):
            m.d.comb += granted.eq(kept)

        holder = Signal.like(last)
        m.d.comb += holder.eq(Mux(self.grant.valid, self.grant.warp, last))
        m.d.sync += [
            last.eq(holder),
            greedy.eq((greedy | self.grant.valid) & ~self.start.bit_select(holder, 1)),
            live.eq(live & ~self.finish | self.start),
        ]
        with m.If(self.start.any()):
            for slot in range(warps):
                below = Const((1 << slot) - 1, warps)
                m.d.sync += older[slot].eq(Mux(self.start[slot], ~self.start | below, older[slot] & ~self.start))

        staying, kept_active, pending, next_pending = Signal(warps), Signal(warps), Signal(warps), Signal(warps)
        room = Signal()
        m.d.comb += [
            staying.eq(live & ~self.start & ~self.finish & ~self.long_latency),
            kept_active.eq(staying & active),
            pending.eq(staying & ~active),
            next_pending.eq(next_after(pending, promoted)),
            room.eq(popcount(kept_active) < self.active_warps),
        ]
        with m.If(policy["two-level"]):
            m.d.sync += active.eq(kept_active | Mux(room, next_pending, 0))
            with m.If(room & pending.any()):
                m.d.sync += promoted.eq(index_of(next_pending))
        return m
