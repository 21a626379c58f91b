"""Profiles: their sums are the run's own statistics, whatever is skipped, and each cause is found where it arises."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import pytest

from lockstep.sim import Gpu, kernels
from lockstep.sim.device.run import Run
from lockstep.spec.registry import MECHANISMS
from lockstep.verif.models.micro import Bench
from lockstep.verif.trial.mechanisms import registered

KERNELS = ("histogram", "histogram-atomics", "nw", "spmv", "transpose-naive")
TRIALS = ("trial-claim", "trial-classes", "trial-gate", "trial-one-cta", "trial-preempt")


@pytest.fixture(autouse=True)
def trials() -> Iterator[None]:
    with registered():
        yield


def runs(name: str, mechanisms: Sequence[str], profile: bool = True, skip: bool = True) -> list[Run]:
    kernel = kernels.find(name)
    gpu = Gpu("gtx480", mechanisms, core_sms=2, profile=profile, sharing_percent=50)
    gpu.machine.skip = skip
    kernel.run(gpu, gpu.load(kernel.ptx), kernel.setup("tiny", 1))
    return list(gpu.runs)


def raw(run: Run, *names: str) -> int:
    return sum(int(run.raw[name].sum()) for name in names)


@pytest.mark.parametrize("mechanism", ["", *MECHANISMS, *TRIALS])
@pytest.mark.parametrize("name", KERNELS)
def test_sums_are_the_statistics(name: str, mechanism: str) -> None:
    """Every warp cycle, issue, lane, request and conflict of a run is in its profile, once."""
    for run in runs(name, [mechanism] if mechanism else []):
        assert run.profile is not None
        rows = run.profile.rows
        total = {field: int(rows[field].sum()) for field in rows.dtype.names or ()}
        assert total["issues"] == raw(run, "sm.warp_instructions", "sm.added_instructions")
        assert total["issues"] + total["stalls"] == raw(run, "sm.resident_warp_cycles", "sm.warps")
        assert total["requests"] == raw(run, "lsu.lines")
        assert total["conflict_core_cycles"] == raw(run, "sm.scratchpad_conflict_cycles")
        assert total["scratchpad_accesses"] == raw(run, "sm.scratchpad_accesses")
        if not raw(run, "sm.added_instructions"):
            assert total["lanes"] == raw(run, "sm.lanes")
        if not raw(run, "lsu.merged") and not raw(run, "l1.local_stores"):
            assert total["l1_hits"] == raw(run, "l1.hits")
            assert total["l1_misses"] == raw(run, "l1.misses", "l1.atomics")
            assert total["l1_merges"] == raw(run, "l1.merges")


@pytest.mark.parametrize("mechanism", ["", "warppool", "register-sharing", "dyncta", "regless", "trial-claim"])
@pytest.mark.parametrize("name", KERNELS)
def test_profiles_change_nothing_and_skipping_does_not_change_them(name: str, mechanism: str) -> None:
    mechanisms = [mechanism] if mechanism else []
    plain, skipping, stepping = (
        runs(name, mechanisms, profile, skip) for profile, skip in ((False, True), (True, True), (True, False))
    )
    for without, one, other in zip(plain, skipping, stepping, strict=True):
        assert without.profile is None and one.profile is not None and other.profile is not None
        assert {key: values.tolist() for key, values in without.raw.items()} == {
            key: values.tolist() for key, values in one.raw.items()
        }
        assert (one.profile.rows == other.profile.rows).all()


def test_one_launch_alone() -> None:
    """A launch says for itself whether it has a profile, and leaves nothing behind for the next one."""
    bench = Bench("add.s32 %r3, %r1, %r1;")
    launch = bench.module.launch
    arguments = [bench.buffer, bench.image, np.uint32(0)]
    first = launch("k", 1, 32, arguments, profile=True)
    second = launch("k", 1, 32, arguments)
    third = launch("k", 1, 32, arguments, profile=True)
    assert first.profile and third.profile and second.profile is None
    assert first.profile.issues == third.profile.issues == first.warp_instructions
    both = first.profile + third.profile
    assert both.warp_cycles == first.profile.warp_cycles + third.profile.warp_cycles
    bench.gpu.profile = True
    assert launch("k", 1, 32, arguments, profile=False).profile is None


# ------------------------------------------------------------------------------------------------------ causes, by hand

LATENCY = {"pipelines.integer.latency": 18, "pipelines.shared.latency": 31, "pipelines.const.latency": 23}


def stalls(
    body: str, text: str, settings: dict[str, Any] | None = None, mechanisms: Sequence[str] = (), block: int = 32,
    constants: int = 64,
) -> dict[str, int]:  # fmt: skip
    """Warp cycles by cause of the instructions that a text stands in."""
    bench = Bench(body, {**LATENCY, **(settings or {})}, mechanisms=mechanisms, constants=constants)
    bench.gpu.profile = True
    profile = bench(block=block, shared=256).profile
    assert profile is not None
    found = [cost for cost in profile.instructions if text in cost.place.text]
    assert found, text
    result: dict[str, int] = {}
    for cost in found:
        for name, cycles in cost.stalls.items():
            result[name] = result.get(name, 0) + cycles
    return result


USE = "\nadd.s32 %r9, %r8, 1;\nst.global.u32 [%rd1], %r9;\n"
NEEDS = "%r9, %r8"


def test_arithmetic() -> None:
    """Each addition of a chain waits for the one before: 18 cycles from issue to issue."""
    assert stalls("add.s32 %r8, %r1, 5;" + USE, NEEDS) == {"arithmetic": 17}


@pytest.mark.parametrize(
    ("load", "cause", "cycles"),
    [
        ("ld.global.u32 %r8, [%rd1];", "memory", None),
        ("atom.global.add.u32 %r8, [%rd1], 1;", "memory", None),
        ("tex.1d.v4.u32.s32 {%r8, %r10, %r11, %r12}, [%rd2, {%r1}];", "memory", None),
        ("ld.local.u32 %r8, [%rd4];", "memory", None),
        ("ld.shared.u32 %r8, [0];", "scratchpad", 30),
        ("ld.const.u32 %r8, [zeros];", "constants", 22),
    ],
)
def test_results(load: str, cause: str, cycles: int | None) -> None:
    found = stalls(load + USE, NEEDS)
    assert found.keys() == {cause}
    assert found[cause] == cycles if cycles else found[cause] > 100


def test_a_line_of_constants_is_on_its_way() -> None:
    found = stalls("ld.const.u32 %r8, [many+2048];" + USE, NEEDS, {"constant_cache.mode": "finite"}, constants=4096)
    assert found["constant_cache"] > 100


def test_the_first_cause_of_several_counts() -> None:
    """What comes from memory, or from the scratchpad, comes later than the sum; all are needed."""
    body = "ld.{}.u32 %r10, [{}];\nadd.s32 %r8, %r1, 1;\nadd.s32 %r9, %r8, %r10;\nst.global.u32 [%rd1], %r9;\n"
    assert stalls(body.format("shared", "0"), NEEDS).keys() == {"scratchpad"}
    assert stalls(body.format("global", "%rd1"), NEEDS).keys() == {"memory"}


def test_a_result_that_nobody_needs_is_no_cause() -> None:
    """A load from the scratchpad is on its way; the addition waits for another addition."""
    body = "ld.shared.u32 %r10, [0];\nadd.s32 %r8, %r1, 1;" + USE + "st.global.u32 [%rd1+4], %r10;\n"
    assert stalls(body, NEEDS) == {"arithmetic": 17}


def test_branches_and_barriers_are_charged_themselves() -> None:
    latency = {"pipelines.control.latency": 25, "core.fetch_latency": 1}
    body = "setp.eq.u32 %p2, %r1, %r1;\n@%p2 bra $on;\n$on:\nadd.s32 %r9, %r1, 1;"
    assert stalls(body, "bra", latency)["branch"] == 24
    body = "setp.gt.u32 %p2, %r1, 31;\n@%p2 bra $there;\n" + "add.s32 %r8, %r8, 1;\n" * 20 + "$there:\nbar.sync 0;\n"
    found = stalls(body, "bar.sync", block=64)
    assert found["barrier"] > 20 * 17
    assert found.keys() <= {"barrier", "fetch", "arithmetic", "not_selected", "branch"}


def test_the_end_waits_for_accesses() -> None:
    """A warp ends when the L1 has accepted its stores: here, one line each."""
    assert stalls("mad.wide.u32 %rd5, %r1, 128, %rd1;\nst.global.u32 [%rd5], %r1;", "ret")["memory"] > 31


def test_pipelines_and_turns() -> None:
    """Of 32 warps, one issues; the others could, or find no collector."""
    body = "".join(f"add.s32 %r{10 + k}, %r1, %r1;\n" for k in range(20))
    found = stalls(body, "%r1, %r1", {"core.schedulers": 1}, block=1024)
    assert found["not_selected"] > 0
    slow = {"core.schedulers": 1, "pipelines.integer.interval": 16, "pipes.alu": 1, "core.collectors_alu": 1}
    found = stalls(body, "%r1, %r1", slow, block=1024)
    assert found["pipeline"] > 10 * found.get("not_selected", 0)


def test_the_load_store_unit() -> None:
    body = "mad.wide.u32 %rd5, %r1, 128, %rd1;\n" + "".join(f"ld.global.u32 %r{10 + k}, [%rd5];\n" for k in range(8))
    body += "".join(f"st.global.u32 [%rd1], %r{10 + k};\n" for k in range(8))
    assert stalls(body, "ld.global.u32 %r17", {"core.collectors_lsu": 2})["lsu"] == 31


def test_fetch() -> None:
    body = "add.s32 %r8, %r1, 1;" + USE
    slow = {"core.fetch_latency": 40, "core.instruction_buffer": 1, "core.fetch_width": 1}
    assert stalls(body, NEEDS, slow).keys() == {"fetch"}
    assert stalls(body, "ld.param.u64 %rd1", {"instruction_cache.mode": "finite"})["instruction_cache"] > 100


@pytest.mark.parametrize("mechanism", ["trial-gate", "trial-claim"])
def test_mechanisms_that_hold_back(mechanism: str) -> None:
    body = "".join(f"add.s32 %r{10 + k}, %r1, %r1;\n" for k in range(20))
    assert stalls(body, "%r1, %r1", mechanisms=[mechanism], block=256)["mechanism"] > 0
    assert "mechanism" not in stalls(body, "%r1, %r1", block=256)


def test_operands_that_come_later() -> None:
    body = "".join(f"add.s32 %r{10 + k}, %r1, %r1;\n" for k in range(20))
    assert stalls(body, "%r1, %r1", mechanisms=["trial-elsewhere"])["operands"] > 0
