"""Masks of up to 64 warps, as signed words."""

from __future__ import annotations

from lockstep.models.jit import ctz, i64, inline


@inline
def next_after(mask, last):
    """The first bit of a mask, not empty, after ``last``, circularly."""
    later = mask & i64(i64(-2) << last)
    return ctz(later if later != 0 else mask)
