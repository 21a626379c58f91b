"""Turnstile, case by case; ``bench_turnstile.py`` has the random runs."""

from __future__ import annotations

import pytest

from lockstep.models.odd_gate import turnstile
from lockstep.rtl.odd_gate.turnstile import Turnstile
from lockstep.verif.bench import Bench


@pytest.mark.parametrize("period", [1, 2, 5])
def test_it_opens_once_in_a_period(period: int) -> None:
    bench = Bench(turnstile, warps=4, period=period)
    bench.i["slots"] = 0b1010
    closed = []
    for _ in range(2 * period + 1):
        bench.comb()
        closed.append(int(bench.c["closed"]))
        bench.step()
    shut = [0b1010] * (period - 1)
    assert closed == [0, *shut, 0, *shut, 0]


def test_sizes_are_checked() -> None:
    with pytest.raises(ValueError, match="period must be 1 to 256, not 0"):
        Turnstile(period=0)
