"""The trial tenants as mechanisms. They are in no registry but that of the tests (:func:`registered`)."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from unittest.mock import patch

from lockstep.spec import registry
from lockstep.spec.mechanism import Mechanism


def _trial(name: str, doc: str, *slots: str) -> Mechanism:
    module = f"lockstep.verif.trial.{name.removeprefix('trial-').replace('-', '_')}"
    return Mechanism(name=name, doc=doc, tenants=dict.fromkeys(slots, module))


TRIALS = {
    mechanism.name: mechanism
    for mechanism in (
        _trial("trial-gate", "warps in odd slots issue in even cycles only", "gates"),
        _trial("trial-claim", "every third grant is refused", "claims"),
        _trial("trial-turn", "the warps of a CTA issue one after the other", "claims", "events"),
        _trial("trial-classes", "warps in even slots come after the others", "order"),
        _trial("trial-elsewhere", "registers live elsewhere and come a cycle later", "operands"),
        _trial("trial-client", "lines are written and read back", "l1_clients"),
        _trial("trial-one-cta", "one CTA on an SM, the last of the grid first", "limits", "placement"),
        _trial("trial-half", "half as many CTAs as fit", "capacity"),
        _trial("trial-monitor", "windows of seven cycles, and events", "monitors", "events"),
        _trial("trial-watcher", "a look at all SMs every thousand cycles", "monitors"),
    )
}


@contextmanager
def registered() -> Iterator[None]:
    """Let the trial mechanisms be selected by their names."""
    with patch.dict(registry.MECHANISMS, TRIALS):
        yield
