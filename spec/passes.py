"""Passes: functions that transform a kernel between lowering and the records that the model executes.

What a pass sees and may change is said in ``sim/compile/ptx/passes``.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass

from lockstep.spec.parameters import Compiler
from lockstep.spec.register_regions import REGION_REGISTERS

STAGES = MACHINE, BEFORE_ALLOCATION, ALLOCATION, RENUMBERING, HINTS, REGIONS = (
    "machine", "before allocation", "allocation", "renumbering", "hints", "regions"
)  # fmt: skip
"""The stages of a kernel, in their order."""


@dataclass(frozen=True)
class Pass:
    """One pass: ``function``, as "module:name", is called in ``stage`` with the kernel and the ``parameters``.

    The parameters are all that its result depends on beside the kernel.
    """

    stage: str
    function: str
    parameters: tuple[tuple[str, int | float | str], ...] = ()


def machine(compiler: Compiler, free_registers: int) -> Pass:
    """What the GPU's assembler makes of PTX, where ``free_registers`` of a thread cost no warp."""
    parameters = asdict(compiler) | {"free_registers": free_registers}
    return Pass(MACHINE, "lockstep.sim.compile.ptx.machine:assemble", tuple(parameters.items()))


FENCES = Pass(MACHINE, "lockstep.sim.compile.ptx.passes.ordering:fences")
"""Fences around accesses that acquire or release."""

FIRST_USE = Pass(RENUMBERING, "lockstep.sim.compile.ptx.passes.first_use:renumber")
"""Registers numbered by their first use."""

DECLARATION = Pass(RENUMBERING, "lockstep.sim.compile.ptx.passes.declaration:renumber")
"""Registers numbered as the PTX declares them."""

REGISTER_NUMBERING = Pass(RENUMBERING, "lockstep.sim.compile.ptx.passes.register_regions.numbering:renumber")
"""Registers numbered so that those of one instruction lie in different banks of a staging unit."""


MASK_WORDS = 4  # of a mask of registers in a table

RENAMING = Pass(REGIONS, "lockstep.sim.compile.ptx.passes.renaming:annotate")
"""Where registers have values."""


def register_hierarchy(entries: int) -> Pass:
    """Which level of a register hierarchy with ``entries`` small registers of a thread each access goes to."""
    return Pass(REGIONS, "lockstep.sim.compile.ptx.passes.register_hierarchy:annotate", (("entries", entries),))


def register_regions(registers: int = REGION_REGISTERS, lines: int = REGION_REGISTERS) -> Pass:
    """Regions whose registers hardware stages: at most ``registers`` at a time, and ``lines`` of one bank."""
    parameters = (("registers", registers), ("lines", lines))
    return Pass(REGIONS, "lockstep.sim.compile.ptx.passes.register_regions.annotations:annotate", parameters)
