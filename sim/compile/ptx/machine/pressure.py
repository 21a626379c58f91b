"""How many registers a kernel needs, while its code still changes."""

from __future__ import annotations

from collections import Counter
from itertools import accumulate

from lockstep.models.execution.isa import MAX_REGISTERS
from lockstep.sim.compile.ptx.allocate import Liveness, Pressure, allocate, words
from lockstep.sim.compile.ptx.micro import Code


def registers(code: Code) -> int:
    """Registers of a thread, without spilling as far as there can be so many."""
    try:
        found = allocate(code.copy(), MAX_REGISTERS, 0)
    except Pressure:
        return MAX_REGISTERS + 1
    return found.registers + found.spilled


def pressure(code: Code, live: Liveness) -> list[int]:
    """The registers that have values behind every micro-operation."""
    change: Counter[int] = Counter()
    for register, ranges in enumerate(live.ranges):
        for first, last in ranges:
            change[first] += words(code.bits[register])
            change[last + 1] -= words(code.bits[register])
    return list(accumulate(change[point] for point in range(len(code.list))))
