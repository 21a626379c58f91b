"""The tenant of *gates*: the block, and the slots that it is for."""

from __future__ import annotations

from lockstep.models.blocks import instance
from lockstep.models.core.frame import KINDS
from lockstep.models.core.state import SM
from lockstep.models.execution.isa import Fault
from lockstep.models.jit import addressof, call, i64, jit, record, slots
from lockstep.models.odd_gate import turnstile
from lockstep.models.time import NEVER
from lockstep.spec.odd_gate import BLOCK, OddGate
from lockstep.spec.parameters import layout

COUNTS = record([("closed", "i8")])
STATE = record(
    [
        ("odd_gate", layout(OddGate)),
        ("counts", COUNTS),
        ("gate", "i8"),
        ("next", "i8"),  # the first cycle that is not counted yet
        ("behind", "i8"),  # 1: the block has not been stepped in the cycle before that
        ("turnstile", instance(BLOCK, turnstile.STATE)),
    ]
)
ODD = -0x5555_5555_5555_5556  # the odd ones of 64 bits


@jit
def update(state, sm):
    """One cycle of the block, after those in which the SM slept; nothing that it sees changed in them."""
    block, now = state.turnstile, i64(sm.frame.now)
    io, binding, counts = block.io, block.binding, state.counts
    asleep = now - i64(state.next) if state.next != 0 else i64(0)
    if asleep + state.behind != 0:
        call(binding.skip, binding.handle, asleep + state.behind)
        counts.closed += asleep if io.c.closed != 0 else 0
    io.i.slots = i64(sm.resident) & ODD
    different = call(binding.comb, binding.handle, addressof(io))
    closed = sm.frame.gate[state.gate].closed
    for kind in range(KINDS):
        closed[kind] = io.c.closed
    counts.closed += 1 if io.c.closed != 0 else 0
    idle = call(binding.idle, binding.handle, addressof(io))
    state.next = now + 1
    state.behind = idle != 0
    if idle == 0:
        different |= call(binding.step, binding.handle, addressof(io))
    if different != 0:
        sm.fault = Fault.DIFFERENCE
    changes = i64(NEVER)  # the next cycle in which time alone changes an input: `slots` changes with the SM only
    return min(now + max(idle, 1), changes)


TENANTS = {"gates": slots(STATE, SM, update=update)}
