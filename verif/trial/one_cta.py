"""Trial tenant of the frame slots *limits* and *placement*: one CTA on an SM, and the grid's CTAs from the last on."""

from __future__ import annotations

from lockstep.models.core.state import SM
from lockstep.models.dispatching import RUN
from lockstep.models.jit import jit, record, slots
from lockstep.models.time import NEVER

STATE = record([("limit", "i8")])


@jit
def update(state, sm):
    sm.frame.limit[state.limit].ctas = 1
    return NEVER


@jit
def number(state, run):
    return run.grids[0].ctas - 1 - run.cta_dispatcher[0].io.o.dispatch.cta


TENANTS = {"limits": slots(STATE, SM, update=update), "placement": slots(STATE, RUN, number=number)}
