"""What a GPU's assembler makes of PTX before it allocates registers: the tenant of the stage *machine*.

PTX names every value; machine code does not. Here a kernel loses its copies, its addresses become as wide as the GPU's,
and its parameters become operands of the instructions that use them. What results is the program that is counted and
simulated; nothing in it has ``Flag.ADDED``. A GPU description says what its assembler does (section ``compiler``).
"""

from __future__ import annotations

from lockstep.sim.compile.ptx.draft import Draft
from lockstep.sim.compile.ptx.machine import addresses as narrow
from lockstep.sim.compile.ptx.machine.constant_operands import fold
from lockstep.sim.compile.ptx.machine.copies import propagate, sweep


def assemble(draft: Draft, *, addresses: int, constant_operands: int) -> None:
    """Make machine code of a kernel for addresses of 32 or 64 bits, and so many constant operands an instruction."""
    propagate(draft.code)
    if addresses == 32:
        narrow.narrow(draft.code)
        propagate(draft.code)
    if constant_operands:
        fold(draft.code, constant_operands)
    sweep(draft.code)
