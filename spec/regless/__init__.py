"""RegLess (Kloosterman's thesis, chapter 4). The encoding of its metadata is in ``spec/register_regions.py``."""

from __future__ import annotations

from lockstep.spec.energy import ARRAY, REGISTERS, WARP_REGISTER_BITS, Configuration, Use
from lockstep.spec.mechanism import Mechanism
from lockstep.spec.parameters import Gpu
from lockstep.spec.passes import REGISTER_NUMBERING, Pass, register_regions
from lockstep.spec.register_regions import BANKS
from lockstep.spec.regless import parameters, statistics

_TENANT = "lockstep.models.regless.tenant"


def _passes(gpu: Gpu) -> tuple[Pass, ...]:
    return REGISTER_NUMBERING, register_regions(lines=parameters.bank_lines(gpu))


def _bank(c: Configuration) -> tuple[int, int]:
    """Of a staging unit: each access is to one of its lines."""
    registers: int = c["regless.registers"]
    return WARP_REGISTER_BITS, registers * WARP_REGISTER_BITS // 8 // (c["core.schedulers"] * BANKS)


MECHANISM = Mechanism(
    name="regless",
    doc="stages operands for the next instructions, in place of a register file (Kloosterman, chapter 4)",
    tenants=dict.fromkeys(("operands", "gates", "events", "l1_clients"), _TENANT),
    sections={"regless": parameters.Regless},
    check=parameters.check,
    blocks=parameters.BLOCKS,
    arguments=parameters.arguments,
    copies=parameters.copies,
    conflicts={"register-sharing": "registers in a staging unit are nobody else's"},
    passes=_passes,
    values="its compressor packs registers by their values",
    statistics=statistics.STATISTICS,
    energy=(
        Use(REGISTERS, ("regless.operands", "regless.results", "regless.evictions"), ARRAY, _bank),
        Use(REGISTERS, ("regless.evictions", "regless.preloads"), "register compressor"),
    ),
)

JOINED = Mechanism(
    name="regless",
    doc="a shard of RegLess (Kloosterman, chapter 4) as one block: the mechanism has its parts side by side",
    unit=parameters.SHARD,
    arguments=lambda gpu: {parameters.SHARD: parameters.shard(gpu)},
    parts=parameters.parts,
)
