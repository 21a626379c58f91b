"""Internal faults that the load/store unit, its path or a client of the L1 finds: the launch stops after the cycle."""

from __future__ import annotations

from lockstep.models.jit import jit, record

FAULT = record(
    [
        ("code", "i8"),  # execution.isa.Fault
        ("token", "i8"),
        ("pc", "i8"),
        ("lane", "i8"),  # -1: the whole token
        ("address", "i8"),  # that the lane asked for ...
        ("named", "i8"),  # ... and that was named for it
    ]
)


@jit
def fail(lsu, fault, number):
    """An internal fault at a token."""
    lsu.fault.code = fault
    lsu.fault.token = number
    lsu.fault.pc = lsu.token[number].pc
    lsu.fault.lane = -1


@jit
def fail_at(lsu, fault, number, access, lane, named):
    """An internal fault at one lane, for which this address was named.

    ``access`` has pc and addresses: the token, or a copy, if the token may stand for another instruction by now.
    """
    fail(lsu, fault, number)
    lsu.fault.pc = access.pc
    lsu.fault.lane = lane
    lsu.fault.address = access.address[lane]
    lsu.fault.named = named
