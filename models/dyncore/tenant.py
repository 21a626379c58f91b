"""DYNCORE on a GPU: an ``activity_counter`` on every SM, and the ``core_gate`` that closes some to CTAs.

The counter sees every cycle of its SM. The gate is clocked once in a window, when it has added up the counts: all that
it looks at has held since then, and nothing that it says changes before.
"""

from __future__ import annotations

from lockstep.models.blocks import instance
from lockstep.models.clocked import clock
from lockstep.models.core.state import SM
from lockstep.models.dispatching import RUN
from lockstep.models.dyncore import activity_counter, core_gate
from lockstep.models.execution.isa import Fault
from lockstep.models.jit import addressof, i64, inline, jit, pointer_to, record, slots
from lockstep.models.time import NEVER
from lockstep.spec.dyncore.parameters import COUNTER, GATE

COUNTS = record(
    [
        ("active_cycles", "i8"),
        ("beyond", "i8"),  # of an issue under way, those that the launch does not have any more
        ("drained", "i8"),  # SM 0 has those of the whole GPU
        ("returned", "i8"),
        ("turned_off", "i8"),
    ]
)
STATE = record(
    [
        ("counts", COUNTS),
        ("gauges", record([("drained", "i8"), ("off", "i8")])),
        ("limit", "i8"),
        ("activity_counter", instance(COUNTER, activity_counter.STATE)),
    ]
)
WHOLE = record(
    [
        ("states", "i8"),
        ("next", "i8"),  # cycle of the gate's next clock edge
        ("core_gate", instance(GATE, core_gate.STATE)),
    ]
)


@jit
def see(state, sm):
    """Clock the counter for equal cycles: an issue is under way in the first of them."""
    seen, counts = sm.frame.seen, state.counts
    cycles, issuing = i64(seen.cycles), i64(seen.issuing)
    _clock(state, sm, issuing, i64(1))
    _clock(state, sm, cycles - issuing, i64(0))
    counts.active_cycles += issuing
    counts.beyond = max(i64(sm.active_until) - i64(seen.first) - cycles, i64(0))
    return NEVER


@inline
def _clock(state, sm, cycles, active):
    io = state.activity_counter.io
    io.i.active = active
    if clock(state.activity_counter.binding, addressof(io), cycles) != 0:
        sm.fault = Fault.DIFFERENCE


@jit
def update(state, sm):
    """An SM that is drained takes no CTA."""
    sm.frame.limit[state.limit].ctas = 0 if state.gauges.drained != 0 else NEVER
    return NEVER


@jit
def watch(whole, run):
    """Right behind the gate's decision: its clock edges up to then, and what the SMs learn of it."""
    now, sms = i64(run.now), i64(run.sms)
    gate, io = whole.core_gate, whole.core_gate.io
    if whole.next == 0:
        whole.next = now
        return now + sms + 1
    first = sms - i64(gate.state.off)
    io.i.busy[0] = 0
    io.i.busy[1] = 0
    for s in range(sms):
        io.i.active[s] = at_state(i64(whole.states) + s * STATE_BYTES).activity_counter.io.o.count
        if s >= first and at_sm(i64(run.sm) + s * SM_BYTES).ctas_resident != 0:
            io.i.busy[s - first >> 6] |= i64(1) << (s - first & 63)
    drained, off = i64(io.o.drained), i64(io.o.off)
    if clock(gate.binding, addressof(io), now - i64(whole.next)) != 0:
        run.fault = Fault.DIFFERENCE
    whole.next = now
    counts = at_state(i64(whole.states)).counts
    counts.drained += i64(io.o.drained > drained)
    counts.returned += i64(io.o.drained < drained)
    counts.turned_off += i64(io.o.off > off)
    for s in range(first, sms):
        state = at_state(i64(whole.states) + s * STATE_BYTES)
        state.gauges.drained = io.o.drained
        state.gauges.off = io.o.off
        update(state, at_sm(i64(run.sm) + s * SM_BYTES))
    return now + i64(gate.state.window)


STATE_BYTES, SM_BYTES = STATE.itemsize, SM.itemsize
at_state, at_sm = pointer_to(STATE), pointer_to(SM)

TENANTS = {
    "limits": slots(STATE, SM, update=update),
    "monitors": slots(STATE, SM, see=see) | slots(WHOLE, RUN, watch=watch),
}
