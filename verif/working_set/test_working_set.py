"""The working set of registers, counted by hand."""

from __future__ import annotations

import pytest

from lockstep.verif.models.micro import Bench


def used(body: str, settings: dict[str, int], block: int = 32) -> float:
    """Warp registers in all windows together."""
    run = Bench(body, settings, mechanisms=["working-set"])(block=block)
    return run.stats["working_set.registers"] * run.stats["sm.active_core_cycles"] / settings["working_set.window"]


def test_a_register_counts_once_in_a_window() -> None:
    one_window = {"working_set.window": 1 << 20}
    again = "add.s32 %r3, %r3, %r1;\n"
    others = "".join(f"add.s32 %r{k}, %r{k}, %r1;\n" for k in range(3, 13))
    few = used(again, one_window)
    assert used(10 * again, one_window) == pytest.approx(few)
    assert used(others + others, one_window) == pytest.approx(few + 9)
    assert used(again, one_window, block=64) == pytest.approx(2 * few), "each warp has its own"


def test_a_register_counts_again_in_the_next_window() -> None:
    """Twenty additions that wait for each other, in windows of a cycle: each is alone in one, and names two."""
    short = {"working_set.window": 1}
    chain = "add.s32 %r3, %r3, %r1;\n"
    assert used(30 * chain, short) - used(10 * chain, short) == pytest.approx(20 * 2)
