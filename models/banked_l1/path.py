"""The path to an L1 of eight banks: queue, a coalescer per bank, L1 (Kloosterman's thesis, section 3.4.1).

The oldest instruction alone is served. In each cycle every bank takes the line of its lowest lane that is left; all
hits are served, and one miss, since there is one set of MSHRs. Stores and atomics go one line per cycle, in the order
of their lanes. The banks are the lowest bits of the set index.
"""

from __future__ import annotations

from lockstep.models.jit import addressof, ctz, i64, jit, lanes_equal, pointer_to, record, slot
from lockstep.models.lsu.clients import further_answer, next_answer
from lockstep.models.lsu.path import send
from lockstep.models.lsu.queue import offered, take_head
from lockstep.models.lsu.tokens import answered, is_load
from lockstep.models.lsu.unit import LSU
from lockstep.models.memory.fabric import PORT
from lockstep.models.memory.l1 import NONE, l1_holds, named_for, set_index
from lockstep.models.memory.timing import FRONT_END
from lockstep.models.time import NEVER
from lockstep.spec.banked_l1 import BANKS
from lockstep.spec.parameters import CONFIG

COALESCING = FRONT_END - 1  # core cycles from the queue to the look-up, as with one coalescer

COUNTS = record(
    [
        ("lines", "i8"),  # served in a cycle, summed over the cycles ...
        ("cycles", "i8"),  # ... in which there was one
    ]
)
STATE = record([("counts", COUNTS), ("token", "i8")])  # the instruction that is served, or NONE

at_state, at_lsu, at_port, at_config = pointer_to(STATE), pointer_to(LSU), pointer_to(PORT), pointer_to(CONFIG)


@jit
def _serve(lsu, port, config, number, now):
    """Look up what the banks present of an instruction. Returns how many lines were accepted."""
    token = lsu.token[number]
    shift = i64(lsu.l1.line_shift)
    loads = is_load(token.kind)
    left = i64(token.unsent)
    busy = i64(0)  # banks
    missed = False
    served = i64(0)
    while left != 0:
        line = i64(token.address[ctz(left)]) >> shift
        lanes = lanes_equal(addressof(token), shift, 0, line) & left
        left &= ~lanes
        bank = i64(1) << (set_index(lsu.l1, line) & BANKS - 1)
        if busy & bank != 0:
            continue
        busy |= bank
        hit = loads and l1_holds(lsu.l1, named_for(token.kind, line))
        if hit or not missed:
            missed = missed or not hit
            if send(lsu, port, config, number, line, lanes, now):
                served += 1
        if not loads:
            break
    return served


@jit
def step(state, lsu, port, config, now):
    """One core cycle."""
    number = next_answer(lsu, port, config, now, lsu.writable != 0)
    answers = 1
    while number >= 0:
        answered(lsu, number, now)
        number = further_answer(lsu, now, True) if answers < BANKS else i64(-1)
        answers += 1
    lsu.gates.entered = 0
    lsu.path.wake = NEVER
    if state.token == NONE and offered(lsu, now):
        start = i64(lsu.queue.entry[lsu.queue.head].at) + COALESCING
        if start > now:
            lsu.path.wake = start
            return
        state.token = take_head(lsu, now)
    if state.token == NONE:
        return
    served = _serve(lsu, port, config, i64(state.token), now)
    if served != 0:
        state.counts.lines += served
        state.counts.cycles += 1
        lsu.path.wake = now + 1
    lsu.queue.occupied = 1
    if lsu.token[state.token].unsent == 0:
        state.token = NONE
        lsu.queue.occupied = 0
        lsu.queue.free = now + 1


@slot
def reset_slot(state, lsu):
    at_lsu(lsu).path.answers = BANKS
    at_state(state).token = NONE
    return i64(0)


@slot
def step_slot(state, lsu):
    unit = at_lsu(lsu)
    step(at_state(state), unit, at_port(unit.port), at_config(unit.config), i64(unit.now))
    return i64(0)


TENANTS = {"path": {"reset": reset_slot, "step": step_slot}}
