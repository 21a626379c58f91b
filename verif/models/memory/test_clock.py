"""Clock domains: exact against fractions."""

from __future__ import annotations

from fractions import Fraction
from math import ceil, floor
from types import SimpleNamespace

import pytest

from lockstep.models.memory.clock import core_cycles, cycle_after, cycle_of, ratio


@pytest.mark.parametrize("core,domain", [(1400, 1400), (1400, 700), (1400, 924), (700, 1848), (1401, 2503), (1, 10000)])
def test_ticks_are_exact(core: int, domain: int) -> None:
    ticks, ticks_per_core_cycle = ratio(core, domain)
    assert Fraction(ticks, ticks_per_core_cycle) == Fraction(core, domain)
    clock = SimpleNamespace(core=ticks, domain=ticks_per_core_cycle)
    for tick in [*range(200), 10**15 + 7]:
        exact = Fraction(tick, ticks_per_core_cycle)
        assert cycle_of(clock, tick) == floor(exact)
        assert cycle_after(clock, tick) == ceil(exact)
    for cycles in range(200):
        assert core_cycles(core, domain, cycles) == ceil(Fraction(cycles * core, domain))
