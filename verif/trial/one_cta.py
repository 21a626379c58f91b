"""Trial tenant of the frame slots *limits* and *placement*: one CTA on an SM, and the grid's CTAs from the last on."""

from __future__ import annotations

from lockstep.models.core.state import SM
from lockstep.models.gpu import RUN
from lockstep.models.jit import jit, pointer_to, record, slot, slots
from lockstep.models.time import NEVER

STATE = record([("limit", "i8")])

at_run = pointer_to(RUN)


@jit
def update(state, sm):
    sm.frame.limit[state.limit].ctas = 1
    return NEVER


@slot
def number(run, dispatch):
    return at_run(run).ctas - 1 - dispatch


TENANTS = {"limits": slots(STATE, SM, update=update), "placement": {"number": number}}
