"""Scavenger's statistics, and what must hold of its counts."""

from __future__ import annotations

from lockstep.spec.mechanism import Law
from lockstep.spec.scavenger.control import End, State
from lockstep.spec.scavenger.fixed import IPC
from lockstep.spec.statistics import CYCLES, Counts, counted, of_sm, ratio

STATES = {
    State.FREE: "without a primary: the secondary has the SM",
    State.CLEARING: "in which the secondary leaves and the primary's CTAs come, or in which the kernels do not fit",
    State.PROFILING: "of profiles, with the primary alone",
    State.TARGETING: "between a profile and its run",
    State.RUNNING: "of runs, in which both share the SM",
    State.ALONE: "of the primary alone, after a fallback",
}
ENDS = {
    End.LANES: "the primary's active lanes",
    End.REQUESTS: "the primary's requests per instruction",
    End.PCS: "the primary's instructions",
    End.LENGTH: "their length",
    End.FALLBACK: "a primary that stayed behind its target",
    End.KERNEL: "another kernel",
    End.GONE: "the primary's end on the SM",
}


def cycles(state: State) -> str:
    """The raw count of cycles in a state."""
    return f"scavenger.{state.name.lower()}"


def ended(end: End) -> str:
    """The raw count of runs that ended for a reason."""
    return f"scavenger.ended_{end.name.lower()}"


_SHARED = "scavenger.shared"

STATISTICS = (
    *(
        counted(f"{cycles(state)}_core_cycles", CYCLES, cycles(state), f"cycles {what}, summed over SMs")
        for state, what in STATES.items()
    ),
    counted("scavenger.shared_core_cycles", CYCLES, _SHARED,
            "cycles of runs in which both kernels have CTAs on the SM, summed over SMs"),
    counted("scavenger.profiles", "profiles", "scavenger.profiles", "stable profiles, each of which sets a target"),
    of_sm("scavenger.predicted_ipc", "instructions per cycle", "mean of what profiles predict of the primary alone",
          lambda c: ratio(c("scavenger.predicted"), c("scavenger.profiles") * IPC.one)),
    of_sm("scavenger.target_ipc", "instructions per cycle", "mean target, over shared cycles",
          lambda c: ratio(c("scavenger.target"), c(_SHARED) * IPC.one)),
    of_sm("scavenger.primary_ipc", "instructions per cycle", "instructions of the primary by shared cycles",
          lambda c: ratio(c("scavenger.instructions"), c(_SHARED))),
    of_sm("scavenger.primary_warps", "warps", "mean of those that the primary may have active, over shared cycles",
          lambda c: ratio(c("scavenger.primary_warps"), c(_SHARED))),
    of_sm("scavenger.primary_requests", "requests",
          "mean of those that the primary may have outstanding, over shared cycles",
          lambda c: ratio(c("scavenger.primary_requests"), c(_SHARED))),
    of_sm("scavenger.primary_ctas", "CTAs", "mean of those that the primary may have, over shared cycles",
          lambda c: ratio(c("scavenger.primary_limit"), c(_SHARED))),
    of_sm("scavenger.secondary_ctas", "CTAs", "mean of those that the secondary may have, over shared cycles",
          lambda c: ratio(c("scavenger.secondary_limit"), c(_SHARED))),
    *(counted(ended(end), "runs", ended(end), f"runs that ended by {what}") for end, what in ENDS.items()),
)  # fmt: skip

SHOWN = (
    "scavenger.clearing_core_cycles", "scavenger.profiling_core_cycles", "scavenger.shared_core_cycles",
    "scavenger.predicted_ipc", "scavenger.target_ipc", "scavenger.primary_ipc",
)  # fmt: skip


def laws(c: Counts) -> list[Law]:
    """Every cycle of an SM is one of a state."""
    spent = c("gpu.cycles") - c.gpu.launch.overhead if c("gpu.cycles") else 0
    return [
        ("cycles by Scavenger's states", c.sum(*(cycles(state) for state in STATES)), c.sms * spent),
        ("instructions of warps that Scavenger holds back", c("scavenger.wrongly_issued"), 0),
    ]
