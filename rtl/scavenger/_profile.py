"""What blocks see of a profile: that there is one, and which of its intervals a cycle belongs to."""

from __future__ import annotations

from amaranth.lib.wiring import In, Member

from lockstep.rtl.signatures import event
from lockstep.spec.scavenger import prediction


def ports() -> dict[str, Member]:
    """Inputs, as :class:`PerformancePredictor` describes them."""
    return {
        "profile": In(1),
        "part": In(range(prediction.SMALLS + 1)),
        "joining": In(event(range(prediction.SMALLS))),
        "restart": In(1),
        "stable": In(1),
    }
