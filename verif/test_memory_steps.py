"""Bounds on one thread: by hand; what makes a step a lone one; and a timed run beside an untimed one."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from lockstep.models import jit as J
from lockstep.models.core.frame import STEPPED
from lockstep.sim import Gpu
from lockstep.verif import memory_steps
from lockstep.verif.memory_steps import FOLLOWERS, LONE, MEMORY, OTHER
from lockstep.verif.replays import executed
from lockstep.verif.windows import run_by


def test_bounds() -> None:
    found = memory_steps.bounds(np.array([30.0, 10, 40, 20, 0]))
    assert found == pytest.approx({"at once": 100 / 60, "through": 100 / 80, "both": 100 / 40})


def test_a_line_of_the_table() -> None:
    times, steps = np.array([30.0, 10, 40, 20, 0]) * 1e3, 1e3 * np.array([300.0, 100, 600, 50, 50])
    line = memory_steps.line("atax", np.stack([times, steps]))
    assert line == "| atax | 0.10 | 1,000,000 | 80 | 0.60 | 67 | 0.40 | 0.20 | 1.67 | 1.25 | 2.50 |"


@pytest.mark.long
@pytest.mark.exhaustive
def test_what_else_has_something_to_do_makes_a_step_no_lone_one() -> None:
    machine = Gpu("gtx480").machine
    sms, ports = machine.sms[:1], machine.memory.record["ports"][0, :1]
    sm, port = (J.argument(each.reshape(())) for each in (sms, ports))
    sms["wheel"]["occupied"] = 0
    busy: list[tuple[np.ndarray, str, int, int]] = [
        (sms, "select_wake", 99, 7), (ports, "reply_ready", 99, 7), (sms, "want_fetch", 0, 2),
        (sms, "tenants", 0, STEPPED), (sms["lsu"]["performed"], "waits", 0, 1), (sms, "fetch_count", 0, 1),
        (sms["wheel"], "count", 0, 1),
    ]  # fmt: skip
    for record, field, idle, _ in busy:
        record[field] = idle
    assert memory_steps.is_lone(sm, port, 7)
    sms["wheel"]["occupied"][0, 0] = 1 << 7  # an event in cycle 7, once the wheel counts one
    for record, field, idle, own in busy:
        record[field] = own
        assert not memory_steps.is_lone(sm, port, 7), field
        record[field] = idle
    sms["select_wake"] = sms["fetch"]["time"] = 8
    sms["fetch_count"] = 1
    assert memory_steps.is_lone(sm, port, 7)


@pytest.mark.long
@pytest.mark.exhaustive
def test_a_timed_run_is_the_same_run() -> None:
    """Lines of a column of a matrix are many, and hit one after the other."""
    memory_steps._log[:] = 0
    memory_steps._log["limit"] = 1 << 40
    with run_by(memory_steps.timed):
        timed = executed("atax", "gtx480", [], "tiny")
    plain: Any = executed("atax", "gtx480", [], "tiny")
    assert timed.stats == plain.stats
    steps = memory_steps._log["steps"][0]
    assert all(steps[part] > 1000 for part in (OTHER, LONE, FOLLOWERS, MEMORY))
    assert steps[FOLLOWERS] > plain.stats["l1.accesses"] / 4
