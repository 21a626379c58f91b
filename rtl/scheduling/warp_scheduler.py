"""Chooses the warp that issues: one of the schedulers of an SM. Chen's thesis, chapter 4, for the policies."""

from __future__ import annotations

from typing import ClassVar

from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out
from amaranth.utils import bits_for

from lockstep.models.parameters import MAX_WARPS, SCHEDULERS


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
