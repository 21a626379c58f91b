"""Ages of boundary values: how many are read, and how old they must be where that is known."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from lockstep.sim import Gpu
from lockstep.sim.kernels.solvers import Blocks, Scheme, Session
from lockstep.sim.study.pde import ages

STEPS = 12


def counts(resident: int, lines: bool = False) -> np.ndarray:
    """Of four blocks below each other, of which so many run at a time, in a launch that follows another."""
    settings = {"core.sms": resident, "core.ctas": 1, **({"l1.values": "lines"} if lines else {"l1.data": 0})}
    gpu = Gpu("gtx580", settings=settings)
    problem, scheme = ages.ages(32, 8, 8, 8), Scheme("up-down", "linear", 1, ages.PHASE, 32, plain=lines)
    session = Session(gpu, gpu.load(ages.SOURCE), problem, Blocks(8, 8, resident), scheme)
    session.launch()
    before = ages.seen(session.fields())
    session.scheme = replace(scheme, steps=STEPS)
    session.launch()
    fields = session.fields()
    assert (fields[0, 1:-1, 1:-1] == 1 + STEPS).all()
    return ages.seen(fields) - before


def test_each_boundary_value_is_counted_at_each_step() -> None:
    """Three lines between blocks, eight nodes on either side."""
    assert counts(4).sum() == 3 * 8 * 2 * STEPS


def test_what_runs_later_or_has_run_is_told_by_its_age() -> None:
    """One block at a time: the one to the right has not moved, the one to the left is at its end."""
    old = [sum(1 for step in range(STEPS) if first <= step <= last) for first, last in ((1, 4), (5, 8), (9, STEPS))]
    assert counts(1).tolist() == [3 * 8 * (STEPS + 1), *(3 * 8 * each for each in old)]


@pytest.mark.long
def test_stale_lines_are_old() -> None:
    """Of blocks that run together, values are two phases old at most; in L1s, those of the first phase stay."""
    fresh, stale = counts(4), counts(4, lines=True)
    assert fresh[3] == 0 < stale[3]
