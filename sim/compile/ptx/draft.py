"""A kernel between lowering and assembly: what the passes work on."""

from __future__ import annotations

from dataclasses import dataclass, field

from lockstep.sim.compile.ptx.kernel import Kernel
from lockstep.sim.compile.ptx.micro import Code


class Refused(Exception):
    """A kernel that cannot be made; the message continues "kernel `name` ..."."""


@dataclass(slots=True)
class Draft:
    """The micro-operations of a kernel; ``kernel`` has everything else, its ``code`` is still empty."""

    kernel: Kernel
    code: Code
    limit: int  # registers per thread
    whole: bool = False  # an instruction that reads half of a 64-bit value needs the other one to be there, too
    physical: list[int] = field(default_factory=list)  # place of every virtual register; empty before the allocation
