"""Shares of the simulator's own time: they add up, and a part that is made slower shows, by as much as it was."""

from __future__ import annotations

import ctypes
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

TURNS = 4_000  # of the loop that makes a part slower
LONGEST = 20_000  # nanoseconds of it; longer is another process's time


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
    """Run a job, then again with an L2 whose every visit takes a microsecond or two more. In a process with marks."""
    from lockstep.models.jit import call, put, slot, symbol, words_i64  # type: ignore[attr-defined]

    words = np.zeros(4, np.int64)  # the address of the L2's function, nanoseconds added, a clock's two words
    place = symbol("lockstep_test_slow", words.ctypes.data)
    libc = ctypes.CDLL(None)
    clock = symbol("lockstep_test_clock", ctypes.cast(libc.clock_gettime, ctypes.c_void_p).value or 0)

    @njit(error_model="numpy")
    def now():
        call(clock(), time.CLOCK_MONOTONIC, place() + 16)
        return words_i64(place(), 4)[2] * 1_000_000_000 + words_i64(place(), 4)[3]

    @slot
    def slow(where, index):
        first, begin, before = now(), now(), words_i64(place(), 4)[1]
        for turn in range(TURNS):
            put(place() + 8, turn)
        took = now() - first + begin - first  # as long as one reading takes is before the first and behind the last
        put(place() + 8, before + min(took, LONGEST))
        return call(words_i64(place(), 4)[0], where, index)

    kernel, device, counts = kernels.find(job.kernel), Gpu(job.gpu), dict[str, int]()
    own_time.follow(device, counts)
    module = device.load(kernel.ptx, kernel.registers)

    def ran() -> dict[str, Any]:
        counts.clear()
        data = kernel.setup(job.size, job.seed)
        start = time.process_time()
        kernel.run(device, module, data)
        return {**own_time.shares(counts), "seconds": time.process_time() - start}

    ran()
    plain = ran()
    record = device.machine.memory.record
    words[0] = record["visit_slice"][0]
    record["visit_slice"] = J.address(slow)
    return {**measured(job, device, device.runs), "plain": plain, "slow": ran(), "added": words[1] / 1e9}


@pytest.mark.long
@pytest.mark.exhaustive
def test_a_slow_part_shows() -> None:
    found = own_time.sampled(Job("atax", size="small"), _twice)
    plain, slow = found["plain"], found["slow"]
    before, after = plain["parts"], slow["parts"]
    assert sum(before.values()) == pytest.approx(1) and sum(after.values()) == pytest.approx(1)
    assert before["L2"] < 0.4
    added = found["added"] / slow["seconds"]
    expected = before["L2"] * (1 - added) + added
    assert before["L2"] + 0.2 < expected < 0.9, f"{added:.2f} of the time were added"
    assert after["L2"] == pytest.approx(expected, abs=_chance(expected, slow["samples"]))
    others = [(1 - each["parts"]["L2"]) * each["samples"] for each in (plain, slow)]
    for name in before.keys() - {"L2"}:
        share = before[name] / (1 - before["L2"])
        chance = sum(_chance(share, count) for count in others)
        assert after[name] / (1 - after["L2"]) == pytest.approx(share, abs=chance), name


def _chance(share: float, samples: float) -> float:
    """How far a sampled share may be off: five standard errors, and 0.03 for what another process takes meanwhile."""
    return 5 * (max(share * (1 - share), 1 / samples) / samples) ** 0.5 + 0.03


@pytest.mark.long
@pytest.mark.exhaustive
def test_shares_of_a_kernel() -> None:
    found = own_time.sampled(Job("gemm", size="small"))
    own = found["own_time"]
    seconds = found["warp_instructions"] / (1000 * found["kwips"])
    assert found["checked"] and 0 < own["samples"] * own["interval_seconds"] < 1.1 * seconds
    parts = own["parts"]
    assert sum(parts.values()) == pytest.approx(1) and parts["trace"] == parts["mechanisms"] == 0
