"""The warp scheduler's hardware against its golden model."""

from __future__ import annotations

import random

import pytest

from lockstep.models.parameters import SCHEDULERS
from lockstep.models.scheduling import warp_scheduler
from lockstep.rtl.scheduling.warp_scheduler import WarpScheduler
from lockstep.verif.bench import Bench, mask, seeded
from lockstep.verif.simulation import compare


@pytest.mark.parametrize("policy", SCHEDULERS)
@pytest.mark.parametrize("warps, cycles", [(1, 100), (2, 300), (7, 1500), (48, 150)])
def test_hardware_equals_the_model(policy: str, warps: int, cycles: int) -> None:
    rng = seeded()
    bench = Bench(warp_scheduler)
    bench.i["policy"], bench.i["active_warps"] = SCHEDULERS.index(policy), rng.randint(1, warps)

    def stimulate(bench: Bench) -> None:
        if rng.random() < 0.8:
            bench.i["request"], bench.i["long_latency"] = mask(rng, warps), mask(rng, warps)
            bench.i["start"] = mask(rng, warps) if rng.random() < 0.2 else 0
            bench.i["finish"] = mask(rng, warps) if rng.random() < 0.2 else 0

    compare(WarpScheduler(warps=warps), bench, stimulate, cycles)
