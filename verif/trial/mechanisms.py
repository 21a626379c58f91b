"""The trial tenants as mechanisms. They are in no registry but that of the tests (:func:`registered`)."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from unittest.mock import patch

from lockstep.spec import registry
from lockstep.spec.energy import REGISTERS
from lockstep.spec.mechanism import Mechanism
from lockstep.spec.parameters import MAX_GRIDS
from lockstep.spec.passes import register_regions


def _trial(name: str, doc: str, *slots: str, **declared: Any) -> Mechanism:
    module = f"lockstep.verif.trial.{name.removeprefix('trial-').replace('-', '_')}"
    grids = 1 if "placement" in slots or "passes" in declared else MAX_GRIDS
    return Mechanism(name=name, doc=doc, tenants=dict.fromkeys(slots, module), grids=grids, **declared)


PREEMPTING = ("trial-preempt", *(name for name, each in registry.MECHANISMS.items() if "context" in each.tenants))

TRIALS = {
    mechanism.name: mechanism
    for mechanism in (
        _trial(
            "trial-gate",
            "warps in odd slots issue in even cycles only",
            "gates",
            conflicts={
                name: "a warp that it holds is pending, and active again in the next odd cycle"
                for name, mechanism in registry.MECHANISMS.items()
                if mechanism.defaults.get("core.scheduler") == "two-level"
            },
        ),
        _trial("trial-claim", "every third grant is refused", "claims"),
        _trial(
            "trial-turn",
            "the warps of a CTA issue one after the other",
            "claims",
            "events",
            conflicts=dict.fromkeys(PREEMPTING, "a CTA that comes back has other warp slots"),
        ),
        _trial("trial-classes", "warps in even slots come after the others", "order"),
        _trial(
            "trial-elsewhere",
            "registers live elsewhere and come a cycle later",
            "operands",
            conflicts=dict.fromkeys(PREEMPTING, "what lives elsewhere stays when its CTA leaves"),
        ),
        _trial("trial-client", "lines are written and read back", "l1_clients"),
        _trial("trial-one-cta", "one CTA on an SM, the last of the grid first", "limits", "placement"),
        _trial(
            "trial-preempt",
            "every 400 cycles a CTA leaves its SM, and resumes later",
            "limits",
            "events",
            conflicts={
                name: "what lives elsewhere stays when its CTA leaves"
                for name, mechanism in registry.MECHANISMS.items()
                if "operands" in mechanism.tenants or any(use.component == REGISTERS for use in mechanism.energy)
            },
        ),
        _trial("trial-half", "half as many CTAs as fit", "capacity"),
        _trial(
            "trial-segments",
            "upper registers and scratchpad bytes lie elsewhere",
            "events",
            conflicts=dict.fromkeys(PREEMPTING, "what lies elsewhere stays when its CTA leaves"),
        ),
        _trial("trial-monitor", "windows of seven cycles, and events", "monitors", "events"),
        _trial("trial-watcher", "a look at all SMs every thousand cycles", "monitors"),
    )
}

TABLES = _trial(
    "trial-tables", "register regions are counted, and their words taken", "events", "gates",
    passes=lambda gpu: (register_regions(),),
)  # fmt: skip
"""In no combination: one mechanism alone takes metadata words."""


@contextmanager
def registered() -> Iterator[None]:
    """Let the trial mechanisms be selected by their names."""
    with patch.dict(registry.MECHANISMS, TRIALS | {TABLES.name: TABLES}):
        yield
