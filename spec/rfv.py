"""A register file that gives places to values alone (Jeon et al., MICRO 2015), as Kloosterman compares with it.

It has a part of the registers, renamed: a register has a place from the issue of the instruction that writes it to that
of the last one that needs it. As many CTAs are resident as with the whole file. What the oldest CTA of an SM may still
need is kept for it, so it always ends. Tables and metadata of renaming cost nothing, as in the thesis.
"""

from __future__ import annotations

from dataclasses import dataclass

from lockstep.spec.energy import ARRAY, REGISTERS, WARP_REGISTER_BITS, Configuration, Use, register_file
from lockstep.spec.mechanism import Law, Mechanism
from lockstep.spec.parameters import LANES, Gpu, integer
from lockstep.spec.passes import RENAMING
from lockstep.spec.statistics import Counts, counted, of_sm, ratio


@dataclass(frozen=True, kw_only=True)
class Rfv:
    percent: int = integer(50, 1, 100, "%", "size of the renamed file, as a share of the GPU's register file")


def places(gpu: Gpu) -> int:
    """Warp registers of the renamed file of an SM."""
    percent: int = gpu.sections["rfv"].percent
    return gpu.core.registers * percent // (100 * LANES)


def _file(c: Configuration) -> tuple[int, int]:
    return WARP_REGISTER_BITS, register_file(c)[1] * c["rfv.percent"] // 100


def _laws(c: Counts) -> list[Law]:
    return [
        ("places that are taken at the end", c("rfv.taken"), c("rfv.freed")),
        ("places beyond those of the file", c("rfv.beyond"), 0),
    ]


MECHANISM = Mechanism(
    name="rfv",
    doc="a smaller register file, with places only for values that are still needed (Jeon et al.; Kloosterman, 4.6.1)",
    tenants=dict.fromkeys(("claims", "events", "monitors"), "lockstep.models.rfv.tenant")
    | {"capacity": "lockstep.models.rfv.capacity"},
    sections={"rfv": Rfv},
    conflicts={"regless": "registers are in one place"},
    passes=lambda gpu: (RENAMING,),
    statistics=(
        counted("rfv.refusals", "grants", "rfv.refusals", "grants refused, since no place was free"),
        counted("rfv.taken", "registers", "rfv.taken", "warp registers that got a place"),
        of_sm("rfv.held", "registers", "mean places that are taken, of an SM with work",
              lambda c: ratio(c("rfv.held"), c("sm.cycles"))),
    ),
    laws=_laws,
    energy=(Use(REGISTERS, ("registers.reads", "registers.writes"), ARRAY, _file),),
)  # fmt: skip
