"""The SM's frame: a trial tenant in every frame slot has the effect that is counted by hand, alone and in pairs."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
import pytest

from lockstep.models.core import frame
from lockstep.sim import Gpu, kernels
from lockstep.sim.errors import UsageError
from lockstep.spec import registry
from lockstep.verif.models.micro import Bench
from lockstep.verif.trial import client, monitor, watcher
from lockstep.verif.trial.mechanisms import TRIALS, registered

STEPS = 16
SETTINGS = {"core.schedulers": 1, "core.scheduler": "oldest"}


@pytest.fixture(autouse=True)
def trials() -> Iterator[None]:
    with registered():
        yield


def chain(count: int) -> str:
    """Additions that depend on each other."""
    return "add.s32 %r3, %r3, %r1;\n" * count


def independent(count: int) -> str:
    return "".join(f"add.s32 %r{10 + k % 40}, %r1, %r1;\n" for k in range(count))


def states(gpu: Gpu, name: str) -> np.ndarray:
    """The states of a trial tenant after the last launch, one of each SM."""
    [tenant] = [tenant for tenant in gpu.machine.tenants if tenant.mechanism.name == name]
    return tenant.states


def slope(body: Callable[[int], str], names: Sequence[str], settings: dict[str, Any], **launch: int) -> float:
    """Core cycles per repetition."""
    long, short = (Bench(body(n), settings, mechanisms=names)(**launch).cycles for n in (64, 64 - STEPS))
    return (long - short) / STEPS


# ----------------------------------------------------------------------------------------------------- effects, by hand


@pytest.mark.parametrize(("names", "period"), [([], 17), (["trial-gate"], 18)])
def test_a_gate_holds_warps_back(names: list[str], period: int) -> None:
    """Every 17 cycles is an odd cycle every other time, and then the warp waits for one more."""
    assert slope(chain, names, {"pipelines.integer.latency": 17}, block=64) == period


def test_a_gate_is_never_passed() -> None:
    bench = Bench(independent(100), SETTINGS, mechanisms=["trial-gate", "trial-monitor"])
    run = bench(block=256)
    seen = states(bench.gpu, "trial-monitor")
    assert seen["odd_in_odd"].sum() == 0
    assert run.raw["sm.gated_cycles"].sum() > 0
    free = Bench(independent(100), SETTINGS, mechanisms=["trial-monitor"])
    assert free(block=256).raw["sm.gated_cycles"].sum() == 0
    assert states(free.gpu, "trial-monitor")["odd_in_odd"].sum() > 0


@pytest.mark.parametrize("count", [7, 8, 30])
def test_a_claim_refuses_every_third_grant(count: int) -> None:
    """Of a single warp: granted, granted, refused, and so on, to the last one, which is granted."""
    run = Bench(independent(count), SETTINGS, mechanisms=["trial-claim"])()
    assert run.raw["sm.refused_grants"].sum() == (run.warp_instructions - 1) // 2


def test_who_is_refused_asks_again_when_the_claim_lets_it() -> None:
    """Each warp but the first asks once in vain, and again when the one before it has ended."""
    bench = Bench(chain(5), SETTINGS, mechanisms=["trial-turn", "trial-monitor"])
    run = bench(block=128)
    assert run.raw["sm.refused_grants"].sum() == 3
    assert states(bench.gpu, "trial-monitor")["turns"].sum() == 3
    free = Bench(chain(5), SETTINGS, mechanisms=["trial-monitor"])
    free(block=128)
    assert states(free.gpu, "trial-monitor")["turns"].sum() > 3


@pytest.mark.parametrize(("names", "period"), [([], 18), (["trial-elsewhere"], 19)])
def test_registers_that_live_elsewhere_come_a_cycle_later(names: list[str], period: int) -> None:
    assert slope(chain, names, {"pipelines.integer.latency": 18}) == period


def test_a_client_of_the_l1_gets_back_what_it_wrote() -> None:
    lines = client.LINES * client.ROUNDS
    bench = Bench("ld.global.u64 %rd1, [%rd1];\n" * 60, nbytes=4096, stride=128, mechanisms=["trial-client"])
    run = bench()
    state = states(bench.gpu, "trial-client")
    assert (state["written"].sum(), state["read"].sum(), state["wrong"].sum()) == (lines, lines, 0)
    assert run.raw["lsu.client_lines"].sum() == 2 * lines
    assert run.raw["l1.local_loads"].sum() == run.raw["l1.local_stores"].sum() == lines


def test_a_client_without_requests_costs_nothing() -> None:
    """After the client's last request, a load takes as long as without a client; before, the two take turns."""
    before = "ld.global.u64 %rd1, [%rd1];\n" * 32
    after = chain(400)  # longer than the client is busy
    body = "add.u64 %rd1, %rd1, 0;\n" + before
    found = {}
    for names in ([], ["trial-client"]):
        long, short = (
            Bench(text, nbytes=128, stride=8, mechanisms=names)().cycles for text in (after + body, after + body[:23])
        )
        found[len(names)] = long - short
    assert found[0] == found[1]
    lines = "mul.wide.u32 %rd5, %r1, 128;\nadd.u64 %rd5, %rd5, %rd1;\n" + "ld.global.u32 %r3, [%rd5];\n" * 4
    taken = [Bench(lines, nbytes=1 << 15, mechanisms=names)(block=256).cycles for names in ([], ["trial-client"])]
    assert taken[0] < taken[1]


ORDER = """
    ld.global.u32 %r3, [%rd1];
    add.s32 %r4, %r3, 1;
    st.global.u32 [%rd1], %r4;
    mul.wide.u32 %rd5, %r2, 4;
    add.u64 %rd5, %rd5, %rd1;
    st.global.u32 [%rd5+256], %r3;
"""


@pytest.mark.parametrize("names", [[], ["trial-one-cta"]])
def test_one_cta_at_a_time_from_the_last_on(names: list[str]) -> None:
    """Each CTA takes the next number from memory; two at a time take the same."""
    bench = Bench(ORDER, {"launch.dispatch_interval": 1}, mechanisms=names)
    run = bench(grid=6)
    numbers = bench.gpu.memory.view(bench.buffer.address + 256, 24).view(np.uint32).tolist()
    assert (numbers == [5, 4, 3, 2, 1, 0]) == bool(names)
    assert (run.raw["sm.resident_cta_cycles"] <= run.raw["sm.cycles"]).all() == bool(names)


@pytest.mark.parametrize(("names", "most"), [([], 8), (["trial-half"], 4), (["trial-half", "trial-one-cta"], 1)])
def test_the_plan_says_how_many_ctas_an_sm_can_hold(names: list[str], most: int) -> None:
    """Eight of a warp each; of a limit and the plan the smaller counts."""
    run = Bench(chain(400), mechanisms=names)(grid=16)
    mean = run.raw["sm.resident_cta_cycles"].sum() / run.raw["sm.cycles"].sum()
    assert 0.9 * most < mean <= most


def test_classes_decide_before_the_policy() -> None:
    """Warps in even slots are secondary: none of them issues in a cycle in which another one could."""
    passed = {}
    for names in (["trial-monitor"], ["trial-classes", "trial-monitor"]):
        bench = Bench(independent(100), SETTINGS | {"core.collectors": 32}, mechanisms=names)
        bench(block=512)
        passed[len(names)] = int(states(bench.gpu, "trial-monitor")["passed_over"].sum())
    assert passed[2] == 0 < passed[1]


@pytest.mark.parametrize("kernel", ["saxpy", "reduction", "bfs"])
def test_monitors_see_every_cycle_and_events_everything(kernel: str) -> None:
    gpu, _ = run_kernel(kernel, ["trial-monitor", "trial-watcher"])
    last = gpu.runs[-1]
    seen, raw = states(gpu, "trial-monitor"), last.raw
    assert (seen["cycles"] == last.cycles).all()
    assert (seen["busy"] == raw["sm.cycles"]).all()
    assert (seen["issued"] == raw["sm.issued_cycles"]).all()
    assert seen["late"].sum() == 0
    assert (seen["windows"] == last.cycles // monitor.WINDOW).all()
    assert last.cycles < monitor.WINDOW * monitor.WINDOWS
    assert (seen["busy_of"].sum(axis=1) == raw["sm.cycles"]).all() and seen["busy_of"].max() == monitor.WINDOW
    events = {kind: seen["events"][:, getattr(frame, kind)] for kind in (
        "ISSUE", "SENT", "ANSWERED", "CTA_START", "CTA_END", "WARP_START", "WARP_END", "ARRIVED")}  # fmt: skip
    assert (events["ISSUE"] == raw["sm.warp_instructions"]).all()
    assert (seen["lanes"] == raw["sm.thread_instructions"]).all()
    assert (events["SENT"] == raw["lsu.lines"]).all()
    assert (events["ANSWERED"] == raw["lsu.line_instructions"]).all()
    assert (events["CTA_START"] == raw["sm.ctas"]).all() and (events["CTA_END"] == raw["sm.ctas"]).all()
    assert (events["WARP_START"] == raw["sm.warps"]).all() and (events["WARP_END"] == raw["sm.warps"]).all()
    assert (events["ARRIVED"] == raw["sm.barriers"]).all()
    whole = states(gpu, "trial-watcher")
    assert whole["beats"][0] == -(-last.cycles // watcher.BEAT)
    assert whole["uneven"][0] == 0


# --------------------------------------------------------------------------------------- alone and in pairs, on kernels


def run_kernel(name: str, mechanisms: Sequence[str], skip: bool = True) -> tuple[Gpu, list[dict[str, Any]]]:
    """A kernel at size tiny on two SMs; what its launches leave behind, tenants included. Its result is right."""
    kernel = kernels.find(name)
    gpu = Gpu("gtx480", mechanisms, core_sms=2)
    gpu.machine.skip = skip
    data = kernel.setup("tiny", 1)
    check = kernels.check(kernel, kernel.run(gpu, gpu.load(kernel.ptx), data), data)
    assert check.passed, f"{name} with {', '.join(mechanisms)}: {check.message}"
    left = [{count: values.tolist() for count, values in run.raw.items()} for run in gpu.runs]
    return gpu, left


KERNELS = ("saxpy", "spmv", "reduction", "histogram-atomics", "transpose-naive", "bfs")
NO_BARRIERS = tuple(name for name in KERNELS if name != "reduction")


def kernels_for(names: Sequence[str]) -> tuple[str, ...]:
    """A CTA whose warps run one after the other can't pass a barrier."""
    return NO_BARRIERS if "trial-turn" in names else KERNELS


@pytest.mark.parametrize("name", TRIALS)
def test_skipping_changes_nothing(name: str) -> None:
    for kernel in kernels_for([name]):
        (one, skipped), (other, stepped) = run_kernel(kernel, [name]), run_kernel(kernel, [name], skip=False)
        assert skipped == stepped, kernel
        assert_same_states(one, other)


def assert_same_states(one: Gpu, other: Gpu) -> None:
    for mine, its in zip(one.machine.tenants, other.machine.tenants, strict=True):
        if mine.mechanism.name in TRIALS:
            assert (mine.states == its.states).all(), mine.mechanism.name


@pytest.mark.parametrize("names", [*itertools.combinations((*TRIALS, *registry.MECHANISMS), 2)], ids="+".join)
def test_every_pair_that_may_be_combined(names: tuple[str, str]) -> None:
    """Results are right, and the order of naming does not matter; two tenants of one place are refused."""
    try:
        registry.resolve(names)
    except ValueError as error:
        with pytest.raises(UsageError, match="exclude each other"):
            Gpu("gtx480", names)
        with pytest.raises(UsageError, match=str(error)):
            Gpu("gtx480", names[::-1])
        return
    for kernel in kernels_for(names):
        (one, before), (other, after) = run_kernel(kernel, names), run_kernel(kernel, names[::-1])
        assert before == after, kernel
        assert_same_states(one, other)
