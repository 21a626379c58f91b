"""Observers: they look at a run and take no part in it, so that cycles and statistics are the same without them.

An observer's module fills the frame slots *monitors* and *events* like a mechanism's (``models.tenants``), but is bound
for single runs: ``Machine.launch(..., observers=[...])``.
"""

from __future__ import annotations

from typing import Any, Protocol

import numpy as np

from lockstep.spec.mechanism import Mechanism


class Observer(Protocol):
    """One observer of one run."""

    declaration: Mechanism  # its name, and the modules that fill frame slots

    def begin(self, states: np.ndarray) -> None:
        """A run begins: ``states`` are its states, one of each SM, all zero."""

    def enter(self, grid: int, kernel: Any) -> None:
        """A grid of a ``models.launch.Kernel`` begins, in the place ``grid`` of the run."""


def declaration(name: str, doc: str, *slots: str) -> Mechanism:
    """The declaration of an observer whose module ``models/observe/NAME.py`` fills these frame slots."""
    return Mechanism(name=name, doc=doc, tenants=dict.fromkeys(slots, f"{__name__}.{name}"))
