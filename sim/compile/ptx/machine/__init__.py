"""What a GPU's assembler makes of PTX before it allocates registers: the tenant of the stage *machine*.

PTX names every value; machine code does not. Here a kernel loses its copies, its addresses become as wide as the GPU's,
and its parameters become operands of the instructions that use them. What results is the program that is counted and
simulated; nothing in it has ``Flag.ADDED``. A GPU description says what its assembler does (section ``compiler``).
"""

from __future__ import annotations

from lockstep.sim.compile.ptx.draft import Draft
from lockstep.sim.compile.ptx.machine.address_offsets import absorb
from lockstep.sim.compile.ptx.machine.addresses import narrow
from lockstep.sim.compile.ptx.machine.constant_operands import fold
from lockstep.sim.compile.ptx.machine.copies import propagate, sweep
from lockstep.sim.compile.ptx.machine.multiply_adds import fuse
from lockstep.sim.compile.ptx.machine.predication import predicate
from lockstep.sim.compile.ptx.machine.rematerialization import rematerialize
from lockstep.sim.compile.ptx.machine.repetitions import merge
from lockstep.sim.compile.ptx.machine.scheduling import schedule
from lockstep.spec.parameters import Compiler


def assemble(draft: Draft, free_registers: int, **settings: int) -> None:
    """Make machine code of a kernel. The settings are the fields of :class:`Compiler`."""
    compiler, code = Compiler(**settings), draft.code
    propagate(code)
    if compiler.addresses == 32:
        narrow(code)
        propagate(code)
    if compiler.address_offsets:
        absorb(code)
        propagate(code)
        merge(code)
    if compiler.constant_operands:
        fold(code, compiler.constant_operands)
    if compiler.multiply_adds:
        fuse(code)
    sweep(code)
    if compiler.predication:
        predicate(code)
    if compiler.rematerialization:
        rematerialize(code)
    if compiler.scheduling:
        schedule(code, min(free_registers, draft.limit))
