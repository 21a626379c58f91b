"""Fences around accesses that acquire or release, where lines of the L1 have values of their own.

Where they have none, a load has the value of its issue, and a warp's accesses are in order without them.
"""

from __future__ import annotations

from dataclasses import replace

from lockstep.models.execution.isa import Category, Control, Flag, Group
from lockstep.sim.compile.ptx.draft import Draft
from lockstep.sim.compile.ptx.micro import Micro


def fence(wide: bool) -> Micro:
    """A fence of the CTA's threads, or a ``wide`` one of all."""
    return Micro(Group.CONTROL, Control.FENCE, Category.SYNCHRONIZATION, sub=int(wide))


def fences(draft: Draft) -> None:
    """Put a fence before what releases, and one behind what acquires."""
    draft.code.replace([_ordered(micro) for micro in draft.code.list])


def _ordered(micro: Micro) -> list[Micro]:
    one = replace(fence(not micro.flags & Flag.IN_CTA), guard=micro.guard, guard_not=micro.guard_not, line=micro.line)
    before = [one] if micro.flags & Flag.RELEASE else []
    return [*before, micro, *([replace(one)] if micro.flags & Flag.ACQUIRE else [])]
