"""The load/store unit's gates at issue: which warps may issue what, so that a path finds room and keeps its order.

A path sets the masks of warps if it has reasons: memory instructions in ``admit``, loads in ``load_ready``, and stores,
atomics, barriers and fences in ``drained``. ``cohort_warps`` warps in a row are a cohort, which shares the path's
``room``, counted in instructions: what issues takes its part, and a cohort without any leaves ``admit``. The path sets
the room again in every step, less the instructions that are ``staged``: on their way from issue to it.
"""

from __future__ import annotations

from lockstep.models.jit import clear, i64, jit, record
from lockstep.models.time import NEVER
from lockstep.spec.parameters import MAX_WARPS

GATES = record(
    [
        ("admit", "i8"),  # warps that may issue a memory instruction, ...
        ("load_ready", "i8"),  # ... a load, ...
        ("drained", "i8"),  # ... a store, an atomic, a barrier or a fence
        ("entered", "i8"),  # warps that issued a memory instruction since the path's last step ...
        ("entered_loads", "i8"),  # ... a load
        ("unsent", "i8"),  # warps with lanes that the L1 has not accepted yet, ...
        ("sending", "i4", (MAX_WARPS,)),  # ... and how many instructions these belong to
        ("cohort_warps", "i8"),
        ("room", "i8", (MAX_WARPS,)),  # by cohort: for instructions that issue now ...
        ("staged", "i4", (MAX_WARPS,)),  # ... and instructions on their way from issue to the path
    ]
)


@jit
def gates_reset(gates):
    """Open gates, one cohort with all warps, and room that never ends."""
    clear(gates)
    gates.admit = -1
    gates.load_ready = -1
    gates.drained = -1
    gates.cohort_warps = MAX_WARPS
    for w in range(MAX_WARPS):
        gates.room[w] = NEVER


@jit
def closed(lsu, loads, stores, syncs):
    """Of warps by the kind of their next instruction (atomics among the stores), those that must not issue it now."""
    gates = lsu.gates
    held = (loads | stores) & ~i64(gates.admit) | (loads | stores) & i64(lsu.tickets.none_left)
    return held | loads & ~i64(gates.load_ready) | (stores | syncs) & ~i64(gates.drained)


@jit
def cohort_mask(gates, cohort):
    """The warps of a cohort."""
    warps = i64(gates.cohort_warps)
    return i64((i64(2) << warps - 1) - 1 << cohort * warps)


@jit
def take_room(gates, warp):
    """Take the path's room for an instruction of a warp that is on its way from issue to the path, or may be."""
    cohort = warp // gates.cohort_warps
    gates.staged[cohort] += 1
    gates.room[cohort] -= 1
    if gates.room[cohort] <= 0:
        gates.admit &= ~cohort_mask(gates, cohort)


@jit
def return_room(gates, warp):
    """Undo :func:`take_room`: the instruction takes what room it needs when it executes."""
    cohort = warp // gates.cohort_warps
    gates.staged[cohort] -= 1
    gates.room[cohort] += 1
    if gates.room[cohort] > 0:
        gates.admit |= cohort_mask(gates, cohort)


@jit
def enter(gates, warp, loads):
    """An instruction of a warp is on its way to the path, and its lines to the L1."""
    bit = i64(1) << warp
    gates.unsent |= bit
    gates.sending[warp] += 1
    gates.entered |= bit
    if loads:
        gates.entered_loads |= bit
    take_room(gates, warp)


@jit
def all_sent(gates, warp):
    """The L1 has accepted all lanes of an instruction of a warp."""
    gates.sending[warp] -= 1
    if gates.sending[warp] == 0:
        gates.unsent &= ~(i64(1) << warp)
