"""Bounds on two cores: by hand, and a timed run beside an untimed one."""

from __future__ import annotations

import numpy as np
import pytest

from lockstep.verif import windows
from lockstep.verif.replays import executed

SM = windows.FIRST_SM


def rows(*sms: tuple[float, ...], memory: float = 5.0) -> np.ndarray:
    """A row for each window, of these times of SMs."""
    found = np.zeros((len(sms), SM + len(sms[0])))
    found[:, windows.NUMBER] = 1 + np.arange(len(sms))
    found[:, windows.MEMORY] = memory
    found[:, SM:] = sms
    return found


def test_sms_are_divided_evenly() -> None:
    assert windows.divided([5, 4, 3, 2]).tolist() == [False, True, True, False]
    assert windows.divided([5, 4, 3, 2], beside=6).tolist() == [False, False, True, False]


def test_bounds() -> None:
    found = windows.bounds(rows((10, 10), (10, 10)), 1)
    assert found["after"] == pytest.approx(50 / (2 * (10 + 5 + 2)))
    assert found["beside"] == pytest.approx(50 / ((10 + 1) + (10 + 5 + 1)))  # nothing is in front of the first window
    uneven = windows.bounds(rows((16, 4), (4, 16)), 1)
    assert uneven["after"] == pytest.approx(50 / (2 * (16 + 5 + 2)))


def test_an_sm_that_stays_behind_is_stepped_alone() -> None:
    late = rows((10, 10), (10, 10))
    late[0, windows.BEHIND] = 0b01
    found = windows.bounds(late, 1)
    assert found["after"] == pytest.approx(50 / ((10 + 10 + 5 + 2) + (10 + 5 + 2)))
    assert found["beside"] == pytest.approx(50 / ((10 + 1 + 10 + 5 + 1) + (10 + 1)))


def test_short_windows_need_no_second_thread() -> None:
    found = windows.bounds(rows((10, 10), (1000, 1000)), 100)
    assert found["after"] < found["after, adaptive"] == pytest.approx(2030 / (25 + 1000 + 5 + 200))
    assert windows.bounds(rows((10, 10)), 100)["beside, adaptive"] >= 1


def test_longer_windows_are_joined() -> None:
    found = rows((1,), (2,), (3,), (4,))
    found[:, windows.NUMBER] = 1, 2, 3, 6
    found[:, windows.BEHIND] = 1, 2, 0, 0
    found[:, windows.LONG_BEHIND] = 1, 2, 0, 4
    longer = windows.joined(found, 8)
    assert longer[:, SM].tolist() == [3, 3, 4] and longer[:, windows.BEHIND].tolist() == [3, 0, 4]
    assert windows.joined(found, 4)[:, windows.BEHIND].tolist() == [1, 2, 0, 0]


@pytest.mark.long
@pytest.mark.exhaustive
def test_a_timed_run_is_the_same_run() -> None:
    log = windows.Log()
    with windows.run_by(windows.timed):
        timed = executed("bfs", "gtx480", [], "tiny")
    plain = executed("bfs", "gtx480", [], "tiny")
    assert timed.stats == plain.stats and len(log.rows) > 100
    assert (np.diff(log.rows[:, windows.NUMBER]) != 0).all()
    seconds = windows.tick() * log.rows[:, windows.DISPATCH :].sum() / 1e6
    assert 0 < seconds < 1.05 * sum(run.wall_seconds for run in timed.runs)
    assert (log.rows[:, windows.DISPATCH : windows.FIRST_SM + 15].sum(axis=0) > 0).all()
    assert (log.rows[:, windows.LONG_BEHIND] != 0).any()
