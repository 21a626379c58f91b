"""The check of the memory order, at every line that the L1 accepts, whatever the path. It changes no cycle.

A warp's memory instructions form groups, loads that follow each other one group, every store and every atomic one of
its own. All lines of a group are accepted before any line of a later one, and every lane exactly once, with the line
that its address lies in.
"""

from __future__ import annotations

from lockstep.models.execution.isa import Fault
from lockstep.models.jit import ctz, jit, record
from lockstep.models.lsu.faults import fail, fail_at
from lockstep.models.lsu.tokens import lanes_of_line
from lockstep.spec.parameters import TICKETS

GROUPS = 32  # more than a warp has instructions in flight

ORDER = record(
    [
        ("issued", "i4"),  # group of the last instruction issued ...
        ("loads", "i4"),  # ... which is one of loads
        ("accepting", "i4"),  # group whose lines the L1 accepts
        ("unsent", "i4", (GROUPS,)),  # instructions with lanes to be accepted, by group
    ]
)


@jit
def order_issued(lsu, number, loads):
    """A token has been given to the next instruction of its warp."""
    order = lsu.order[number // TICKETS]
    if not (loads and order.loads):
        order.issued += 1
    order.loads = loads
    order.unsent[order.issued % GROUPS] += 1
    lsu.token[number].group = order.issued


@jit
def check_order(lsu, number, lanes, line):
    """The L1 accepts the line of some lanes of a token."""
    token = lsu.token[number]
    order = lsu.order[number // TICKETS]
    if token.group != order.accepting:
        if token.group != order.accepting + 1 or order.unsent[order.accepting % GROUPS] != 0:
            fail(lsu, Fault.MEMORY_ORDER, number)
        order.accepting = token.group
    if lanes == 0 or lanes & ~token.unsent != 0:
        fail(lsu, Fault.LANES, number)
    astray = lanes & ~lanes_of_line(lsu, number, line)
    if astray != 0:
        fail_at(lsu, Fault.LINE, number, token, ctz(astray), line << lsu.l1.line_shift)
    if token.unsent & ~lanes == 0:
        order.unsent[token.group % GROUPS] -= 1
