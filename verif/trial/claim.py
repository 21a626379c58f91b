"""Trial tenant of *claims*: refuses every third grant of an SM; who was refused asks again at once."""

from __future__ import annotations

from lockstep.models.core.state import SM
from lockstep.models.jit import i64, jit, record, slots
from lockstep.spec.parameters import MAX_SCHEDULERS

STATE = record([("grants", "i8")])


@jit
def ask(state, sm):
    refused = i64(0)
    number = i64(state.grants)
    for k in range(MAX_SCHEDULERS):
        if sm.frame.grants[k].valid != 0:
            number += 1
            if number % 3 == 0:
                refused |= i64(1) << k
    return refused


@jit
def commit(state, sm):
    for k in range(MAX_SCHEDULERS):
        state.grants += sm.frame.grants[k].valid
    return i64(0)


TENANTS = {"claims": slots(STATE, SM, ask=ask, commit=commit)}
