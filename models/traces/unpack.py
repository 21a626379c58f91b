"""A block's accesses, checked, as the replay reads them (``models.traces.replay.ACCESS``)."""

from __future__ import annotations

from lockstep.models.execution.isa import GLOBAL_BASE, LOCAL_PHYSICAL, PARAM_WINDOW
from lockstep.models.jit import clz64, ctz, entry, i64, inline, jit, popcount, without_lowest

GOOD, BAD_LANES, BAD_COUNT, BAD_ADDRESS = range(4)
"""What :func:`unpack` finds: lanes that contradict each other, pieces with other addresses than their tables say, and
addresses beyond all memory that the kernel has."""


@inline
def _is_there(address, shared, scratchpad, local, params):
    """Whether a kernel has memory there, as far as that is known of a trace."""
    if shared != 0:
        return address < scratchpad
    in_parameters = address >= PARAM_WINDOW and address < PARAM_WINDOW + params
    return in_parameters or (address >= GLOBAL_BASE and address < LOCAL_PHYSICAL + local)


@inline
def _ends_are_there(lanes, shared, base, stride, scratchpad, local, params):
    """Whether the first and the last lane touch one memory; then so do those between them."""
    if lanes == 0 or (shared != 0 and shared != lanes):
        return False
    one, other = base + ctz(lanes) * stride, base + (63 - clz64(lanes)) * stride
    low, high = min(one, other), max(one, other)
    if shared != 0:
        return low >= 0 and high < scratchpad
    in_parameters = low >= PARAM_WINDOW and high < PARAM_WINDOW + params
    return in_parameters or (low >= GLOBAL_BASE and high < LOCAL_PHYSICAL + local)


@jit
def _strided(lanes, shared, base, stride, scratchpad, local, params):
    """Whether a kernel has memory where lanes touch that lie a stride apart."""
    if _ends_are_there(lanes, shared, base, stride, scratchpad, local, params):
        return True
    while lanes != 0:
        lane = ctz(lanes)
        lanes = without_lowest(lanes)
        there = (base + lane * stride) & 0xFFFF_FFFF
        if not _is_there(there, (shared >> lane) & 1, scratchpad, local, params):
            return False
    return True


@entry
def unpack(lanes, shared, base, stride, listed, address, accesses, addresses, out, scratchpad, local, params):
    """Fill ``out`` from the columns of a block.

    ``accesses`` and ``addresses`` are how many of each its pieces have; ``scratchpad``, ``local`` (of a warp) and
    ``params`` the bytes of the kernel's memories. Returns what it has found.
    """
    at = listed_at = i64(0)
    for piece in range(len(accesses)):
        first = listed_at
        for _ in range(accesses[piece]):
            mask, inside = i64(lanes[at]), i64(shared[at])
            if inside & ~mask != 0 or listed[at] > 1:
                return BAD_LANES
            access = out[at]
            access.lanes = mask
            access.shared = inside
            access.base = base[at]
            access.stride = stride[at]
            access.listed = listed[at]
            access.first = listed_at - first
            if listed[at] == 0:
                if not _strided(mask, inside, i64(base[at]), i64(stride[at]), scratchpad, local, params):
                    return BAD_ADDRESS
            else:
                if listed_at + popcount(mask) > len(address):
                    return BAD_COUNT
                while mask != 0:
                    lane = ctz(mask)
                    mask = without_lowest(mask)
                    if not _is_there(i64(address[listed_at]), (inside >> lane) & 1, scratchpad, local, params):
                        return BAD_ADDRESS
                    listed_at += 1
            at += 1
        if listed_at - first != addresses[piece]:
            return BAD_COUNT
    return GOOD
