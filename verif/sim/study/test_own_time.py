"""Shares of the simulator's own time: they add up, and a part that is made slower shows, by as much as it was."""

from __future__ import annotations

import time
from typing import Any

import numpy as np
import pytest
from numba import njit

from lockstep.models import jit as J
from lockstep.models.marks import MARKED, Part, mark
from lockstep.sim import Gpu, kernels
from lockstep.sim.study import own_time
from lockstep.sim.study.job import Job, Result, measured

TURNS = 20_000  # of the loop that makes a part slower


@pytest.mark.skipif(not J.COMPILED, reason="looks at compiled code")
def test_without_a_profile_a_mark_is_no_instruction() -> None:
    @njit(error_model="numpy")
    def marked(word):
        mark(Part.L2)
        return word + 1

    @njit(error_model="numpy")
    def plain(word):
        return word + 1

    assert not MARKED and marked(1) == plain(1) == 2
    bodies = [_instructions(each.inspect_asm(each.signatures[0])) for each in (marked, plain)]
    assert bodies[0] == bodies[1] and bodies[0]


def _instructions(assembly: str) -> list[str]:
    """Those of the first function, without names."""
    lines = [line.split()[0] for line in assembly.splitlines() if line.startswith("\t") and not line.startswith("\t.")]
    return lines[: lines.index("retq") + 1]


def _twice(job: Job) -> Result:
    """Run a job, then again with an L2 whose every visit takes some microseconds more. In a process with marks."""
    from lockstep.models.jit import call, called, put, slot, symbol, words_i64

    words = np.zeros(2, np.int64)  # address of the L2's function, and how often it was called
    place = symbol("lockstep_test_slow", words.ctypes.data)

    @J.jit
    def spin(turns):
        for _ in range(turns):
            put(place() + 8, words_i64(place() + 8, 1)[0])

    @slot
    def slow(where, index):
        words_i64(place() + 8, 1)[0] += 1
        spin(TURNS)
        return call(words_i64(place(), 1)[0], where, index)

    assert called(slow) is not None
    kernel = kernels.find(job.kernel)
    device = Gpu(job.gpu)
    counts: dict[str, int] = {}
    own_time.follow(device, counts)
    module = device.load(kernel.ptx, kernel.registers)

    def ran() -> tuple[dict[str, Any], float]:
        counts.clear()
        data = kernel.setup(job.size, job.seed)
        start = time.process_time()
        kernel.run(device, module, data)
        return dict(own_time.shares(counts)), time.process_time() - start

    ran()
    plain, plain_seconds = ran()
    record = device.machine.memory.record
    words[0] = record["visit_slice"][0]
    record["visit_slice"] = J.address(slow)
    slowed, slowed_seconds = ran()
    start = time.process_time()
    for _ in range(100):
        spin(TURNS)
    each = (time.process_time() - start) / 100
    added = each * int(words[1])
    return {**measured(job, device, device.runs), "plain": plain, "slow": slowed, "seconds": plain_seconds,
            "slow_seconds": slowed_seconds, "added": added}  # fmt: skip


@pytest.mark.long
@pytest.mark.exhaustive
@pytest.mark.skipif(not J.COMPILED, reason="compiled code has marks")
def test_a_slow_part_shows() -> None:
    found = own_time.sampled(Job("atax", size="small"), _twice)
    plain, slow = found["plain"]["parts"], found["slow"]["parts"]
    assert found["plain"]["samples"] > 100 and plain["L2"] < 0.4
    assert sum(plain.values()) == pytest.approx(1) and sum(slow.values()) == pytest.approx(1)
    expected = (plain["L2"] * found["seconds"] + found["added"]) / (found["seconds"] + found["added"])
    assert expected > plain["L2"] + 0.2, "too little was added to see it"
    assert slow["L2"] == pytest.approx(expected, abs=0.08)
    others = {name: share / (1 - plain["L2"]) for name, share in plain.items() if name != "L2"}
    for name, share in others.items():
        assert slow[name] / (1 - slow["L2"]) == pytest.approx(share, abs=0.1), name


@pytest.mark.long
@pytest.mark.exhaustive
@pytest.mark.skipif(not J.COMPILED, reason="compiled code has marks")
def test_shares_of_a_kernel() -> None:
    job = Job("gemm", size="tiny")
    found = own_time.sampled(job)
    own = found["own_time"]
    seconds = found["warp_instructions"] / (1000 * found["kwips"])
    assert found["checked"] and 0 < own["samples"] * own["interval_seconds"] < 1.1 * seconds
    parts = own["parts"]
    assert sum(parts.values()) == pytest.approx(1) and parts["trace"] == parts["mechanisms"] == 0
    assert parts["execution"] > 0.02 and parts["issue"] > 0.02
