"""The reconvergence stack: every lane takes its own path, and lanes meet again where they should."""

from __future__ import annotations

import os
import random

import numpy as np
import pytest

from lockstep.models.core import warp as W
from lockstep.models.execution.isa import LANES, Fault
from lockstep.models.jit import argument, view
from lockstep.sim.compile.ptx.cfg import reconvergence

ALL = 0xFFFF_FFFF


def fresh(end: int, lanes: int = ALL):
    """A new warp, as the model takes it and as Python reads it."""
    array = np.zeros(1, W.WARP)[0:1].reshape(())
    W.start(argument(array), lanes, end, 0)
    return argument(array), view(array)


def random_program(rng: random.Random, length: int) -> list[tuple[int, ...]]:
    """Successors of each instruction: fall through, a branch with fall through, a jump, or an exit."""
    program: list[tuple[int, ...]] = []
    for pc in range(length - 1):
        kind = rng.random()
        if kind < 0.5:
            program.append((pc + 1,))
        elif kind < 0.9:
            program.append((pc + 1, rng.randrange(length)))
        elif kind < 0.97:
            program.append((rng.randrange(pc + 1, length),))
        else:
            program.append(())
    return [*program, ()]


def lane_path(program: list[tuple[int, ...]], choices: list[bool]) -> list[int]:
    """What one lane executes alone: its n-th conditional branch goes by ``choices[n]``, later ones fall through."""
    path, pc, taken = [], 0, 0
    while True:
        path.append(pc)
        following = program[pc]
        if not following:
            return path
        if len(following) == 2:
            pc = following[1] if taken < len(choices) and choices[taken] else following[0]
            taken += 1
        else:
            pc = following[0]


@pytest.mark.parametrize("case", range(40))
def test_every_lane_follows_its_own_path(case: int) -> None:
    seed = int(os.environ.get("LOCKSTEP_SEED", 20260)) + case
    print(f"LOCKSTEP_SEED={seed - case}, case {case}")
    rng = random.Random(seed)
    program = random_program(rng, rng.randrange(4, 30))
    meets = reconvergence(program)
    end = len(program)
    choices = [[rng.random() < 0.5 for _ in range(12)] for _ in range(LANES)]
    record, warp = fresh(end)
    visited: list[list[int]] = [[] for _ in range(LANES)]
    taken_so_far = [0] * LANES
    deepest = 0
    for _ in range(20_000):
        pc, mask = int(warp.pc), int(warp.mask)
        lanes = [lane for lane in range(LANES) if mask >> lane & 1]
        assert lanes, "the warp runs with no lane"
        for lane in lanes:
            visited[lane].append(pc)
        following = program[pc]
        if not following:
            if W.exit_lanes(record, mask):
                break
        elif len(following) == 2:
            taken = 0
            for lane in lanes:
                k = taken_so_far[lane]
                taken |= (k < 12 and choices[lane][k]) << lane
                taken_so_far[lane] += 1
            assert W.branch(record, following[1], meets[pc], taken, W.STACK) == Fault.NONE
        else:
            assert W.branch(record, following[0], meets[pc], mask, W.STACK) == Fault.NONE
        deepest = max(deepest, int(warp.depth))
    else:
        pytest.fail("the warp did not end")
    assert visited == [lane_path(program, c) for c in choices]
    assert deepest <= 2 * len(program)


def test_lanes_reconverge_at_the_post_dominator() -> None:
    # 0: branch to 3; 1, 2: one side; 3: the other; 4: the meeting point
    record, warp = fresh(6)
    W.branch(record, 3, 4, 0xFFFF, W.STACK)
    assert (warp.pc, warp.mask) == (1, 0xFFFF_0000)
    W.branch(record, 4, 4, 0xFFFF_0000, W.STACK)
    assert (warp.pc, warp.mask) == (3, 0xFFFF)
    warp.pc = 4
    W.pop_reconverged(record)
    assert (warp.pc, warp.mask, warp.depth) == (4, ALL, 0)


def test_a_loop_that_lanes_leave_one_by_one_keeps_the_stack_flat() -> None:
    record, warp = fresh(10)
    for lane in range(LANES - 1):
        warp.pc = 4
        W.branch(record, 0, 5, int(warp.mask) & ~(1 << lane), W.STACK)  # back to 0, or fall through to 5
        assert warp.depth <= 2
        # the fall-through side is at the meeting point at once, so the loop goes on in the lanes that remain
        assert int(warp.mask) == ALL & ~((2 << lane) - 1)


def test_a_full_stack_is_a_fault() -> None:
    record, warp = fresh(100)
    mask = ALL
    fault = Fault.NONE
    for depth in range(8):
        mask >>= 2
        fault = W.branch(record, 50 + depth, 90 - depth, ALL & ~mask & int(warp.mask), 6)
        if fault != Fault.NONE:
            break
    assert fault == Fault.STACK_OVERFLOW


def test_exits_inside_a_divergent_path_leave_the_others() -> None:
    record, warp = fresh(9)
    W.branch(record, 5, 8, 0xFF, W.STACK)
    assert W.exit_lanes(record, int(warp.mask)) == 0
    assert (warp.pc, warp.mask, warp.alive) == (5, 0xFF, 0xFF)
    assert W.exit_lanes(record, 0xF) == 0
    assert (warp.pc, warp.mask) == (6, 0xF0)
    assert W.exit_lanes(record, 0xF0) == 1
