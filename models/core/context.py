"""The context of a CTA: all that it has in an SM, as the bytes that leave it and come back.

It is made of lines of :data:`LINE` bytes. What is behind a list's end, or no line at all, does not travel:

========== ============================================================================================================
1          the CTA: its number, the warps that live, those that wait
1          for each barrier: threads that have arrived or are expected, votes and voters
1          for each barrier: the warps that wait there
per warp   1 for the top of its stack and its lanes, then 8 entries of the stack a line, then 32 predicates a line, then
that lives a line for each register
the rest   the scratchpad
========== ============================================================================================================

Warps are counted from the CTA's first. Local memory stays where it is: its rows are the CTA's until it ends, by its
``home``, a number that no other CTA of its grid has, in this SM or sent out of it.

:func:`pack` writes a context, :func:`take_off` gives back what the CTA had; :func:`claim` takes room again, and
:func:`put_on` fills it from a context and lets the warps go on. Who calls them moves the bytes in between, and takes
the time for it: the tenant of the frame slot *context*. Marks (``execution.written``) are no part of a context. They
are kept beside it, and cost nothing.
"""

from __future__ import annotations

from lockstep.models.core import warp as W
from lockstep.models.core.frame import CTA_RESUMED, HAS_LISTENERS, emit
from lockstep.models.core.placement import (
    PREDICATE_BYTES,
    copy_words,
    depart,
    enter,
    enter_warp,
    first_slots,
    free_place,
    return_to_barriers,
)
from lockstep.models.execution.isa import CONTEXTS_PHYSICAL, LANES, MAX_PREDICATES, PT, UNCACHED_PHYSICAL
from lockstep.models.execution.written import poison
from lockstep.models.jit import assign, ctz, i64, inline, jit, pointer_to, record, without_lowest, words_u32
from lockstep.spec.parameters import MAX_WARPS

LINE = 4 * LANES
HEADER = 3  # lines

CTA_CONTEXT = record(
    [
        ("index", "i8"),  # as ``warp.CTA`` has them
        ("warps", "i8"),
        ("waiting", "i8"),
        ("ctaid", "i4", (3,)),
        ("live", "i4"),
        ("spare", "i8", (11,)),
        ("arrived", "i2", (W.BARRIERS,)),
        ("expected", "i2", (W.BARRIERS,)),
        ("votes", "i2", (W.BARRIERS,)),
        ("voters", "i2", (W.BARRIERS,)),
        ("at", "i8", (W.BARRIERS,)),
    ]
)
WARP_CONTEXT = record(
    [
        ("mask", "i8"),  # as ``warp.WARP`` has them
        ("alive", "i8"),
        ("present", "i8"),
        ("issued", "i8"),
        ("pc", "i4"),
        ("rpc", "i4"),
        ("depth", "i4"),
        ("index", "i4"),
        ("issued_pc", "i4"),
        ("unused", "i4"),
        ("spare", "i8", (9,)),
    ]
)
ENTRY = record([("mask", "i8"), ("pc", "i4"), ("rpc", "i4")])  # of a stack

assert CTA_CONTEXT.itemsize == HEADER * LINE
assert WARP_CONTEXT.itemsize == LINE

_cta_at, _warp_at, _entry_at = pointer_to(CTA_CONTEXT), pointer_to(WARP_CONTEXT), pointer_to(ENTRY)
_ENTRY_BYTES = ENTRY.itemsize
_OUT, _IN = True, False


@inline
def _lines(nbytes):
    """Bytes in whole lines."""
    return (nbytes + LINE - 1) // LINE * LINE


def context_bytes(warps: int, registers: int, predicates: int, shared_bytes: int, stack: int) -> int:
    """The bytes of the longest context: all warps live, with stacks of ``stack`` entries."""
    warp = LINE + _lines(stack * _ENTRY_BYTES) + _lines(4 * predicates) + registers * LINE
    return HEADER * LINE + warps * warp + _lines(shared_bytes)


@inline
def _move(there, here, nbytes, out):
    """Copy bytes, a multiple of four, to a context, or from it; returns where the context goes on."""
    copy_words(there, here, nbytes, out)
    return i64(there + _lines(nbytes))


@jit
def _move_warp(warp, grid, there, out):
    """Copy what a warp has beside its record; returns where the context goes on."""
    for d in range(warp.depth):
        entry = _entry_at(there + d * _ENTRY_BYTES)
        if out:
            entry.mask = warp.stack_mask[d]
            entry.pc = warp.stack_pc[d]
            entry.rpc = warp.stack_rpc[d]
        else:
            warp.stack_mask[d] = entry.mask
            warp.stack_pc[d] = entry.pc
            warp.stack_rpc[d] = entry.rpc
    there += _lines(i64(warp.depth) * _ENTRY_BYTES)
    there = _move(there, i64(warp.preds), i64(grid.predicates) * 4, out)
    return _move(there, i64(warp.regs), i64(grid.registers) * LINE, out)


@inline
def _move_scratchpad(cta, grid, there, out):
    """The scratchpad is a multiple of 16 bytes in host memory; its last line may have less."""
    return _move(there, i64(cta.shared), i64(grid.shared_stride), out)


@jit
def pack(sm, launch, slot, where):
    """Write the context of a CTA of which nothing is on its way; returns its bytes."""
    cta = sm.ctas[slot]
    grid = launch.grids[cta.grid]
    slots = i64(cta.slots)
    header = _cta_at(where)
    assign(header, cta)
    header.warps = first_slots(i64(cta.warps), slots)
    header.waiting = first_slots(i64(cta.waiting), slots)
    for b in range(W.BARRIERS):
        header.at[b] = first_slots(i64(cta.at[b]), slots)
    there = i64(where + HEADER * LINE)
    left = i64(cta.warps)
    while left != 0:
        warp = sm.warps[ctz(left)]
        left = without_lowest(left)
        assign(_warp_at(there), warp)
        there = _move_warp(warp, grid, there + LINE, _OUT)
    return i64(_move_scratchpad(cta, grid, there, _OUT) - where)


@jit
def _poison_room(sm, launch, slot):
    """Nobody knows what is in the registers, predicates and the scratchpad of a CTA."""
    cta = sm.ctas[slot]
    grid = launch.grids[cta.grid]
    poison(i64(cta.registers), i64(grid.warps) * i64(grid.registers) * LINE, i64(0))
    poison(i64(cta.shared), i64(grid.shared_stride), i64(grid.shared_marks))
    first = i64(sm.index) * MAX_WARPS + ctz(cta.slots)
    predicates = i64(launch.predicate_file) + first * PREDICATE_BYTES
    for k in range(grid.warps):
        poison(predicates + k * PREDICATE_BYTES, i64(grid.predicates) * 4, i64(0))


@jit
def _move_marks(sm, grid, cta, out):
    if grid.shared_marks != 0:
        _move(
            context_of(sm, grid, i64(cta.home)) + i64(grid.context_bytes),
            i64(cta.shared) + i64(grid.shared_marks),
            i64(grid.shared_stride),
            out,
        )


@inline
def context_of(sm, grid, home):
    """Where the context of a CTA that is out lies in host memory."""
    return i64(grid.contexts) + _number(sm, grid, home) * i64(grid.context_stride)


@inline
def context_address(sm, grid, home, cached):
    """Where it lies in device memory, which no kernel can reach."""
    base = i64(CONTEXTS_PHYSICAL) if cached else i64(UNCACHED_PHYSICAL)
    return base + i64(grid.context_region) + _number(sm, grid, home) * i64(grid.context_bytes)


@inline
def _number(sm, grid, home):
    return i64(sm.index) * i64(grid.per_sm) + home


@inline
def staging_of(sm, grid):
    """Where the bytes lie in host memory that leave an SM, or have come back to it."""
    return i64(grid.staging) + i64(sm.index) * i64(grid.context_bytes)


@jit
def take_off(sm, launch, config, slot, now):
    """The context of a CTA is out: free all that it had but its home."""
    cta = sm.ctas[slot]
    _move_marks(sm, launch.grids[cta.grid], cta, _OUT)
    _poison_room(sm, launch, slot)
    depart(sm, config, slot, now)


@jit
def claim(sm, launch, config, index, home, now):
    """Take room for a CTA of a grid that comes back, in which nothing is known yet; returns its place."""
    slot = free_place(sm)
    cta = sm.ctas[slot]
    grid = launch.grids[index]
    cta.grid = index
    cta.live = grid.warps
    cta.own_shared = grid.shared_bytes
    cta.warps = 0
    cta.waiting = 0
    enter(sm, config, grid, slot, now)
    cta.home = home
    cta.row = home * i64(grid.warps)
    _poison_room(sm, launch, slot)
    return slot


@jit
def put_on(sm, launch, config, slot, where, now):
    """Let a CTA that has room go on as its context says."""
    cta = sm.ctas[slot]
    grid = launch.grids[cta.grid]
    header = _cta_at(where)
    first = ctz(cta.slots)
    assign(cta, header)
    cta.warps = i64(header.warps) << first
    cta.waiting = i64(header.waiting) << first
    for b in range(W.BARRIERS):
        cta.at[b] = i64(i64(header.at[b]) << first)
    there = i64(where + HEADER * LINE)
    left = i64(cta.warps)
    while left != 0:
        k = ctz(left)
        left = without_lowest(left)
        warp = sm.warps[k]
        W.start(warp, i64(0), i64(grid.length), now)
        assign(warp, _warp_at(there))
        enter_warp(sm, launch, config, grid, slot, k)
        words_u32(i64(warp.preds), MAX_PREDICATES + 1)[PT] = 0xFFFF_FFFF
        there = _move_warp(warp, grid, there + LINE, _IN)
    _move_scratchpad(cta, grid, there, _IN)
    _move_marks(sm, grid, cta, _IN)
    return_to_barriers(sm, cta)
    sm.select_wake = 0
    if sm.tenants & HAS_LISTENERS != 0:
        emit(sm.frame.events, CTA_RESUMED, now, i64(-1), slot, i64(-1), i64(0), i64(0))
