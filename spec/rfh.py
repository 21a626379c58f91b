"""A register file hierarchy that the compiler manages (Gebhart et al., MICRO 2011), as Kloosterman compares with it.

It needs a two-level scheduler: only warps of the active set have registers in the small levels. An access takes as long
as one to a register file, whatever its level; only its energy differs.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from lockstep.spec.energy import ARRAY, REGISTER_BYTES, REGISTERS, WARP_REGISTER_BITS, Configuration, Use, register_file
from lockstep.spec.mechanism import Mechanism
from lockstep.spec.parameters import integer
from lockstep.spec.passes import register_hierarchy
from lockstep.spec.statistics import counted

MAX_ENTRIES = 32
LEVELS = {"last": "the last result", "small": "the small file", "main": "the main file"}
ACCESSES = ("reads", "writes")


@dataclass(frozen=True, kw_only=True)
class Rfh:
    entries: int = integer(8, 1, MAX_ENTRIES, "registers", "small file: registers of a thread")


def _small(registers: Callable[[Configuration], int]) -> Callable[[Configuration], tuple[int, int]]:
    """A lane's own array has registers of all active warps."""

    def size(c: Configuration) -> tuple[int, int]:
        return WARP_REGISTER_BITS, registers(c) * c["core.active_warps"] * c["core.schedulers"] * REGISTER_BYTES

    return size


_SIZES = {"last": _small(lambda c: 1), "small": _small(lambda c: int(c["rfh.entries"])), "main": register_file}

MECHANISM = Mechanism(
    name="rfh",
    doc="a hierarchy of register files, which the compiler manages (Gebhart et al.; Kloosterman, 4.6.1)",
    tenants={"events": "lockstep.models.rfh.tenant"},
    sections={"rfh": Rfh},
    defaults={"core.scheduler": "two-level"},
    conflicts={"regless": "registers are in one place", "rfv": "registers are in one place"},
    passes=lambda gpu: (register_hierarchy(gpu.sections["rfh"].entries),),
    statistics=tuple(
        counted(f"rfh.{level}_{access}", "registers", f"rfh.{level}_{access}", f"warp registers: {access} of {text}")
        for access in ACCESSES for level, text in LEVELS.items()
    ),
    energy=tuple(
        Use(REGISTERS, tuple(f"rfh.{level}_{access}" for access in ACCESSES), ARRAY, size)
        for level, size in _SIZES.items()
    ),
)  # fmt: skip
