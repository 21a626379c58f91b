"""When SMs give up CTAs and take them back, as a user says it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from lockstep.models.time import NEVER
from lockstep.sim.errors import UsageError
from lockstep.spec.parameters import MAX_CTAS, Gpu

SCHEDULE = "context.schedule"
"""The table's name among those of the user's (``models/tenants.py``)."""


def preemptions(at: Sequence[Any], gpu: Gpu) -> np.ndarray:
    """The table of rows (cycle, SM, CTAs, back), in the order of their cycles, with a last row that is never reached.

    Raises :class:`UsageError` for what makes no sense, in one line.
    """
    if "context" not in gpu.frame_slots:
        raise UsageError("preempting: no mechanism of this GPU moves CTAs out of an SM; select preemption")
    rows = [_row(row, gpu) for row in at]
    return np.array([*sorted(rows), (NEVER, 0, 0, 0)], np.int64)


def _row(row: Any, gpu: Gpu) -> tuple[int, ...]:
    shown = f"preempting: {row!r}"
    try:
        cycle, sm, ctas, back = (int(value) for value in row if isinstance(value, int | np.integer))
    except (TypeError, ValueError):
        raise UsageError(f"{shown}: must be four integers: cycle, SM, CTAs, cycle from which they may return") from None
    if not 0 <= sm < gpu.core.sms:
        raise UsageError(f"{shown}: SM {sm}: {gpu.name} has SMs 0 to {gpu.core.sms - 1}")
    if not 1 <= ctas <= MAX_CTAS:
        raise UsageError(f"{shown}: {ctas} CTAs: must be 1 to {MAX_CTAS}")
    if not 0 <= cycle <= back < NEVER:
        raise UsageError(f"{shown}: must not be back before it leaves, nor leave before cycle 0")
    if back - cycle >= gpu.launch.no_progress:
        limit = f"launch.no_progress = {gpu.launch.no_progress} core cycles"
        raise UsageError(f"{shown}: away for {back - cycle}: must be less than {limit}")
    return cycle, sm, ctas, back
