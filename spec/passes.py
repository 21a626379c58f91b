"""Passes: functions that transform a kernel between lowering and the records that the model executes.

What a pass sees and may change is said in ``sim/ptx/passes``.
"""

from __future__ import annotations

from dataclasses import dataclass

STAGES = BEFORE_ALLOCATION, ALLOCATION, RENUMBERING, HINTS, REGIONS = (
    "before allocation", "allocation", "renumbering", "hints", "regions"
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


FIRST_USE = Pass(RENUMBERING, "lockstep.sim.ptx.passes.first_use:renumber")
"""Registers numbered by their first use."""

DECLARATION = Pass(RENUMBERING, "lockstep.sim.ptx.passes.declaration:renumber")
"""Registers numbered as the PTX declares them."""
