"""DYNCORE in whole kernels: which SMs sleep, when, and what becomes of their CTAs."""

from __future__ import annotations

from typing import Any

import pytest

from lockstep.cli import main as cli
from lockstep.sim import Gpu
from lockstep.sim.study.job import Job, execute

SMS = 4


def run(kernel: str, *names: str, size: str = "small", **settings: Any) -> Gpu:
    """The device of a kernel whose result is right, with four SMs."""
    used: list[Gpu] = []
    changed = {"core.sms": SMS} | {key.replace("__", "."): value for key, value in settings.items()}
    assert execute(Job(kernel, "gtx480", size, 1, names, changed), attach=used.append)["checked"]
    return used[0]


def test_sms_that_issue_little_are_turned_off() -> None:
    """Below a threshold that is never reached, the last SM ends its CTAs and takes no other; the three others go on."""
    raw = run("gemm", "dyncore", dyncore__threshold=SMS * 2048).runs[0].raw
    assert (raw["dyncore.drained"].sum(), raw["dyncore.returned"].sum(), raw["dyncore.turned_off"].sum()) == (1, 0, 1)
    asleep, ctas = raw["sm.asleep_cycles"], raw["sm.ctas"]
    assert asleep[:-1].sum() == 0 and 0 < asleep[-1] < raw["gpu.cycles"][0]
    assert 0 < ctas[-1] < min(ctas[:-1]) and ctas.sum() == run("gemm").runs[0].raw["sm.ctas"].sum()


def test_sms_that_issue_enough_are_not() -> None:
    device = run("gemm", "dyncore", dyncore__threshold=1)
    baseline = run("gemm")
    assert device.runs[0].raw["dyncore.drained"].sum() == 0
    assert device.runs[0].cycles == baseline.runs[0].cycles


def test_sms_that_are_drained_take_ctas_again() -> None:
    """Around a threshold that the windows' sums cross."""
    active = run("gemm").runs[0]
    mean = int(2048 * active.raw["sm.active_cycles"].sum() / active.cycles)
    raw = run("gemm", "dyncore", dyncore__threshold=mean, dyncore__window=2048).runs[0].raw
    assert raw["dyncore.returned"].sum() >= 1


def test_time_shows_how_many_sleep() -> None:
    timeline = run("gemm", "dyncta", "dyncore", dyncore__threshold=SMS * 2048).runs[0].timeline
    assert timeline["dyncore.off"][0] == 0 and timeline["dyncore.off"][-1] == 1 / SMS
    assert timeline["dyncta.limit"][0] >= 1


def test_a_window_is_longer_than_the_sum_takes(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["run", "saxpy", "--with", "dyncore", "--set", "dyncore.window=16"]) == 2
    assert "dyncore.window = 16: must be 17 at least with core.sms = 15" in capsys.readouterr().err


def test_one_sm_cannot_be_turned_off(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["run", "saxpy", "--with", "dyncore", "--set", "core.sms=1"]) == 2
    assert "dyncore.off = 1: must be less than core.sms = 1" in capsys.readouterr().err
