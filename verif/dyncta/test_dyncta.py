"""DYNCTA in whole kernels: limits, pauses, who is never starved, and what must stay as it is."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from lockstep.cli import main as cli
from lockstep.sim import Gpu, KernelFault
from lockstep.sim.study.job import Job, execute
from lockstep.spec.parameters import SCHEDULERS
from lockstep.verif import combinations

FALLS = {"dyncta.idle_high": 2047, "dyncta.memory_low": 0, "dyncta.memory_high": 0}
"""The limit falls after every window but one with 2047 cycles of C_idle, which no kernel here has."""

RELAY = """
.version 7.0
.target sm_75
.address_size 64

// CTA k waits for the flag of CTA k + 1 and sets its own; the last one need not wait. It looks every ``rounds`` rounds.
.visible .entry relay(.param .u64 flags, .param .u32 last, .param .u32 rounds)
{
  .reg .pred %p<4>;
  .reg .b32 %r<14>;
  .reg .b64 %rd<5>;
  ld.param.u64 %rd1, [flags];
  cvta.to.global.u64 %rd2, %rd1;
  ld.param.u32 %r1, [last];
  ld.param.u32 %r5, [rounds];
  mov.u32 %r2, %ctaid.x;
  mul.wide.u32 %rd3, %r2, 4;
  add.s64 %rd4, %rd2, %rd3;
  setp.eq.u32 %p1, %r2, %r1;
  @%p1 bra $set;
$wait:
  mov.u32 %r6, 0;
$round:
  add.u32 %r8, %r5, 1;
  add.u32 %r9, %r5, 2;
  add.u32 %r10, %r5, 3;
  add.u32 %r11, %r5, 4;
  add.u32 %r12, %r5, 5;
  add.u32 %r13, %r5, 6;
  add.u32 %r6, %r6, 1;
  setp.lt.u32 %p3, %r6, %r5;
  @%p3 bra $round;
  ld.volatile.global.u32 %r3, [%rd4+4];
  setp.eq.u32 %p2, %r3, 0;
  @%p2 bra $wait;
$set:
  mov.u32 %r4, 1;
  st.volatile.global.u32 [%rd4], %r4;
  ret;
}
"""


def run(kernel: str, *names: str, gpu: str = "gtx480", size: str = "tiny", **settings: Any) -> Gpu:
    """The device of a kernel whose result is right."""
    used: list[Gpu] = []
    changed = {key.replace("__", "."): value for key, value in settings.items()}
    assert execute(Job(kernel, gpu, size, 1, names, changed), attach=used.append)["checked"]
    return used[0]


def counts(device: Gpu) -> dict[str, list[int]]:
    """All raw counts of a run but the mechanism's own."""
    return {
        name: np.sum([run.raw[name] for run in device.runs], axis=0).tolist()
        for name in device.runs[0].raw if not name.startswith("dyncta.")
    }  # fmt: skip


@pytest.mark.parametrize("kernel", ["bfs", "hotspot"])
def test_a_limit_that_stays_at_the_most_changes_nothing(kernel: str) -> None:
    limited = run(kernel, "dyncta", dyncta__first="most", dyncta__idle_high=0)
    assert counts(limited) == counts(run(kernel))


@pytest.mark.parametrize("interval", [1, 4])
@pytest.mark.parametrize("kernel", ["bfs", "pathfinder", "hotspot", "gemm"])
def test_skipping_changes_nothing(kernel: str, interval: int) -> None:
    """With windows that are short enough for limits, pauses and SMs that are off."""
    thresholds = {"dyncta.idle_high": 60, "dyncta.memory_low": 8, "dyncta.memory_high": 24}
    settings = {"core.issue_interval": interval, "dyncta.window": 64, "dyncore.window": 256, "core.sms": 2} | thresholds
    found = [combinations.run(kernel, ["dyncta", "dyncore"], skip, settings) for skip in (True, False)]
    assert found[0].raw == found[1].raw and not found[0].wrong


def test_a_limit_that_falls_pauses_ctas() -> None:
    """Three CTAs on one SM: two are paused one after the other, and resumed as those before them end."""
    settings: dict[str, Any] = FALLS | {"core.sms": 1, "dyncta.first": "most", "dyncta.window": 700}
    device = run("hotspot", "dyncta", size="small", **settings)
    raw, timeline = device.runs[0].raw, device.runs[0].timeline
    assert (raw["dyncta.lowered"].sum(), raw["dyncta.raised"].sum()) == (2, 0)
    assert {*timeline["dyncta.limit"]} == {1} and max(timeline["dyncta.paused"]) == 2  # from cycle 2000 on
    assert timeline["dyncta.paused"][-1] == 0


def test_a_limit_takes_no_cta_that_would_be_paused() -> None:
    """One, for a window that is longer than the launch: the others wait in the dispatcher."""
    device = run("hotspot", "dyncta", size="small", dyncta__window=65535, dyncta__first="one")
    raw = device.runs[0].raw
    assert raw["dyncta.raised"].sum() == 0
    assert raw["dyncta.paused"].sum() == 0 and raw["sm.resident_cta_cycles"].sum() <= raw["sm.cycles"].sum()


def relay(names: tuple[str, ...], settings: dict[str, Any], ctas: int = 8, threads: int = 64, rounds: int = 1) -> int:
    """The cycles of a relay on one SM; 0 if it does not end."""
    gpu = Gpu("gtx480", names, {"core.sms": 1, "launch.no_progress": 100_000} | settings)
    flags = gpu.to_device(np.zeros(ctas, np.int32))
    try:
        run = gpu.load(RELAY).launch("relay", ctas, threads, [flags, np.int32(ctas - 1), np.uint32(rounds)])
    except KernelFault as fault:
        assert "no progress" in str(fault)
        return 0
    assert gpu.from_device(flags).all()
    return run.cycles


@pytest.mark.parametrize("policy", SCHEDULERS)
def test_a_paused_cta_that_others_wait_for_goes_on(policy: str) -> None:
    """The one that came last is paused, and all others wait for it: what ends without pauses ends with them."""
    settings = {"core.scheduler": policy, "core.patience": 100}
    paused = relay(("dyncta",), settings | FALLS | {"dyncta.first": "most", "dyncta.window": 64})
    assert paused or not relay((), settings)


def test_patience_lets_a_paused_cta_go_on() -> None:
    """Two CTAs fill the SM, and either would issue in nearly every cycle: the paused one, which the other waits for,
    sets its flag while that one counts, or only in a gap that is left when it looks."""
    settings = {"core.scheduler": "lrr", "dyncta.first": "most", "dyncta.window": 16} | FALLS
    soon, late = (
        relay(("dyncta",), settings | {"core.patience": patience}, 2, 768, 200) for patience in (100, 0)
    )
    assert 0 < 1.5 * soon < late


def test_a_limit_makes_room_for_ctas_that_others_wait_for() -> None:
    """Four of eight at first: those wait for CTAs that are not there, and issue all the time, so the limit rises."""
    assert relay(("dyncta",), {"core.scheduler": "lrr", "dyncta.window": 64})


def test_the_counters_are_those_of_the_statistics() -> None:
    """A law says so after every launch; here where an issue takes four cycles, with both readings of C_mem."""
    for blocked in (0, 1):
        raw = run("kmeans", "dyncta", gpu="dyncta30", core__sms=2, l1__mshrs=2, dyncta__blocked=blocked).runs[-1].raw
        waits = raw["sm.memory_wait_cycles"].sum() + blocked * raw["sm.memory_blocked_cycles"].sum()
        assert raw["dyncta.memory_cycles"].sum() == waits > 0
        assert raw["dyncta.idle_cycles"].sum() == raw["sm.other_idle_cycles"].sum() > 0
        assert raw["sm.memory_blocked_cycles"].sum() > 0


def test_cycles_in_which_the_l1_refuses_requests_are_cycles_of_c_mem() -> None:
    """Whatever the warps are at that wait for no data: in kmeans, loads of constants stand behind what is refused."""
    raw = run("kmeans", "dyncta", gpu="dyncta30", core__sms=2, l1__mshrs=2).runs[-1].raw
    assert raw["sm.memory_blocked_cycles"].sum() > 0.5 * raw["sm.lsu_stalled_cycles"].sum() > 0


def test_thresholds_that_contradict_each_other_are_refused(capsys: pytest.CaptureFixture[str]) -> None:
    command = ["run", "saxpy", "--with", "dyncta", "--set", "dyncta.memory_low=385"]
    assert cli.main(command) == 2
    assert "dyncta.memory_low = 385: must not exceed dyncta.memory_high = 384" in capsys.readouterr().err
