"""CTA preemption with the traffic that it costs, as Scavenger needs it (Kloosterman, sections 5.5.2 and 5.6.1)."""

from __future__ import annotations

from dataclasses import dataclass

from lockstep.spec.mechanism import Law, Mechanism
from lockstep.spec.parameters import MAX_CTAS, Gpu, choice, integer
from lockstep.spec.statistics import CYCLES, Counts, counted

CONTEXTS = ("dram", "l2")
MAX_CYCLES = 1 << 40
SOONEST = 1000  # core cycles: beyond the way to DRAM and back


@dataclass(frozen=True, kw_only=True)
class Preemption:
    """Of its own accord, an SM gives up ``ctas`` CTAs when none has been out for ``every`` cycles."""

    context: str = choice("dram", CONTEXTS, "where the contexts of preempted CTAs are kept")
    every: int = integer(0, 0, MAX_CYCLES, "core cycles", "without a CTA out, until an SM gives up some; 0: never")
    ctas: int = integer(1, 1, MAX_CTAS, "CTAs", "that an SM gives up then")
    away: int = integer(2000, 0, MAX_CYCLES, "core cycles", "from then on until they may come back")


def _check(gpu: Gpu) -> list[str]:
    """A warp that has come back must be able to fetch an instruction, and may not seem to be stuck before."""
    every, away, stuck = gpu.sections["preemption"].every, gpu.sections["preemption"].away, gpu.launch.no_progress
    errors = [f"preemption.every = {every}: must be 0, or {SOONEST} at least"] if 0 < every < SOONEST else []
    if every and away >= stuck:
        errors.append(f"preemption.away = {away}: must be less than launch.no_progress = {stuck}")
    return errors


def _laws(c: Counts) -> list[Law]:
    return [
        ("preempted CTAs that have come back", c("preemption.resumed"), c("sm.preempted")),
        ("lines of contexts", c("preemption.lines_read"), c("preemption.lines_written")),
    ]


_STAYS = "what lies elsewhere stays when its CTA leaves"

MECHANISM = Mechanism(
    name="preemption",
    doc="moves the contexts of CTAs out of an SM and back, line by line through its L1 (Kloosterman, 5.5.2)",
    tenants=dict.fromkeys(("limits", "context", "l1_clients"), "lockstep.models.preemption.tenant"),
    sections={"preemption": Preemption},
    check=_check,
    conflicts={
        "regless": _STAYS,
        "rfv": _STAYS,
        "rfh": _STAYS,
        "sharing": "a CTA cannot leave without the other one of its pair",
    },
    statistics=(
        counted("preemption.lines_written", "lines", "preemption.lines_written", "lines of contexts that left an SM"),
        counted("preemption.lines_read", "lines", "preemption.lines_read", "lines of contexts that came back"),
        counted("preemption.out_core_cycles", CYCLES, "preemption.out_cycles",
                "cycles in which a context was on its way out of an SM, summed over SMs"),
        counted("preemption.in_core_cycles", CYCLES, "preemption.in_cycles",
                "cycles in which a context was on its way back, from the claim of room on, summed over SMs"),
    ),
    laws=_laws,
    grids=2,
)  # fmt: skip
