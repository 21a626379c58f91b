"""Profiles: what each instruction of a kernel costs, in one row each, added up over SMs.

A resident warp issues in a cycle, or it has a cause for which it does not; so the warp cycles of all rows, and one for
each issue, are all the cycles of all warps. Nothing is sampled.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from lockstep.models.core.frame import CONFLICT, ISSUE, SENT
from lockstep.models.core.state import EMPTY, SM
from lockstep.models.jit import ctz, i64, jit, pointer_to, popcount, record, slots, without_lowest
from lockstep.models.memory.l1 import HIT, MERGED, MISS
from lockstep.models.observe import declaration
from lockstep.models.observe.causes import BARRIER, BRANCH, cause
from lockstep.models.time import NEVER
from lockstep.spec.causes import CAUSES
from lockstep.spec.parameters import MAX_GRIDS

ROW = record(
    [
        ("issues", "i8"),
        ("lanes", "i8"),  # that executed, added up over the issues
        ("stalls", "i8", (len(CAUSES),)),  # warp cycles
        ("requests", "i8"),  # lines that the L1 accepted ...
        ("l1_hits", "i8"),  # ... and found ...
        ("l1_misses", "i8"),  # ... or asked the L2 for ...
        ("l1_merges", "i8"),  # ... or had asked for already; the others are stores
        ("scratchpad_accesses", "i8"),
        ("conflict_core_cycles", "i8"),  # of these accesses, beyond their first cycle
    ]
)
STATE = record([("rows", "i8", (MAX_GRIDS,))])  # of each grid: address of the row of its first instruction

at_row = pointer_to(ROW)


@jit
def see(state, sm):
    """Charge equal cycles to an instruction of each warp that did not issue in them."""
    seen = sm.frame.seen
    if seen.outcome == EMPTY:
        return NEVER
    cycles, first = i64(seen.cycles), i64(seen.first)
    warps = i64(sm.resident) & ~i64(seen.issued)
    while warps != 0:
        slot = ctz(warps)
        warps = without_lowest(warps)
        why = cause(sm, slot, first)
        warp = sm.warps[slot]
        pc = i64(warp.issued_pc) if why == BARRIER or why == BRANCH else i64(warp.pc)
        grid = sm.ctas[warp.cta].grid
        at_row(i64(state.rows[grid]) + pc * ROW_BYTES).stalls[why] += cycles
    return NEVER


@jit
def hear(state, sm):
    """Count issues, requests and conflicts."""
    events = sm.frame.events
    kind = i64(events.kind)
    if kind != ISSUE and kind != SENT and kind != CONFLICT:
        return i64(0)
    grid = events.grid_of[events.cta]
    row = at_row(i64(state.rows[grid]) + i64(events.pc) * ROW_BYTES)
    if kind == ISSUE:
        row.issues += 1
        row.lanes += popcount(i64(events.lanes))
    elif kind == SENT:
        row.requests += 1
        row.l1_hits += i64(events.flags == HIT)
        row.l1_misses += i64(events.flags == MISS)
        row.l1_merges += i64(events.flags == MERGED)
    else:
        row.scratchpad_accesses += 1
        row.conflict_core_cycles += i64(events.flags)
    return i64(0)


ROW_BYTES = ROW.itemsize

TENANTS = {
    "monitors": slots(STATE, SM, see=see),
    "events": slots(STATE, SM, hear=hear),
}


class Profiler:
    """The observer; ``rows`` are the instructions of the kernel that has entered last."""

    declaration = declaration("profile", "what each instruction costs", "monitors", "events")
    rows: np.ndarray

    def begin(self, states: np.ndarray) -> None:
        self._states = states

    def enter(self, grid: int, kernel: Any) -> None:
        self.rows = np.zeros(len(kernel.code), ROW)
        self._states["rows"][:, grid] = self.rows.ctypes.data
