"""The golden model of the CTA dispatcher, case by case; ``bench_cta_dispatcher.py`` has the random runs."""

from __future__ import annotations

import hashlib
import random

import pytest

from lockstep.models.blocks import FOREVER
from lockstep.models.cta import cta_dispatcher
from lockstep.models.jit import view
from lockstep.models.parameters import DISPATCHERS, MAX_SMS
from lockstep.verif.bench import Bench, interpreted, seeded
from lockstep.verif.cta.bench_cta_dispatcher import stimulate


class Gpu(Bench):
    """The model with SMs that take CTAs and end them at random; they tell their room a cycle later, as registers do."""

    def __init__(self, policy: str, sms: int, slots: int, interval: int = 1) -> None:
        super().__init__(cta_dispatcher)
        self.i["policy"], self.i["interval"] = DISPATCHERS.index(policy), interval
        self.slots = slots
        self.resident: list[list[int]] = [[] for _ in range(sms)]
        self.tell()

    def tell(self) -> None:
        room = sum(1 << sm for sm, ctas in enumerate(self.resident) if len(ctas) < self.slots)
        self.i["room"] = room & (1 << 64) - 1, room >> 64
        self.i["load"][: len(self.resident)] = [len(ctas) for ctas in self.resident]

    def launch(self, ctas: int) -> None:
        self.i["launch"], self.i["ctas"] = 1, ctas
        self.step()
        self.i["launch"] = 0

    def cycle(self) -> tuple[int, int] | None:
        """One clock of everything; the dispatch that the SMs saw, as (SM, CTA)."""
        seen = (int(self.o["dispatch"]["sm"]), int(self.o["dispatch"]["cta"])) if self.o["dispatch"]["valid"] else None
        self.step()
        if seen:
            self.resident[seen[0]].append(seen[1])
            assert len(self.resident[seen[0]]) <= self.slots
        self.tell()
        return seen


def test_round_robin_fills_the_sms_in_turn() -> None:
    gpu = Gpu("round-robin", 4, 2)
    gpu.launch(20)
    seen = [gpu.cycle() for _ in range(12)]
    assert seen == [None, *((n % 4, n) for n in range(8)), None, None, None]


def test_load_balanced_fills_the_emptiest_sm() -> None:
    gpu = Gpu("load-balanced", 4, 8)
    gpu.resident = [[-1] * n for n in (3, 1, 2, 1)]
    gpu.tell()
    gpu.launch(7)
    seen = [dispatch[0] for dispatch in (gpu.cycle() for _ in range(12)) if dispatch]
    assert seen[:2] == [1, 3]
    assert [len(resident) for resident in gpu.resident] in ([4, 3, 4, 3], [4, 4, 3, 3], [3, 4, 4, 3], [3, 4, 3, 4])


@pytest.mark.parametrize("interval", [1, 2, 5, 1024])
def test_dispatches_are_an_interval_apart(interval: int) -> None:
    gpu = Gpu("round-robin", 8, 8, interval)
    gpu.launch(4)
    cycles = [cycle for cycle in range(4 * interval + 4) if gpu.cycle()]
    assert cycles == [1 + interval * n for n in range(4)]


@pytest.mark.parametrize("policy", range(2))
def test_idle_cycles_change_nothing_but_the_wait(policy: int) -> None:
    rng = seeded()
    bench = Bench(cta_dispatcher)
    idle = waits = 0
    for _ in range(3000):
        bench.i["policy"], bench.i["interval"] = policy, 4
        stimulate(view(bench.io).i, rng, MAX_SMS)
        steps = min(bench.idle(), rng.randrange(1, 8))
        stepped, skipped = bench.copy(), bench.copy()
        for _ in range(steps):
            stepped.step()
        skipped.skip(steps)
        assert stepped.bytes() == skipped.bytes()
        assert skipped.io.tobytes() == bench.io.tobytes()
        idle += steps > 0
        waits += 0 < bench.idle() < FOREVER
        bench.step()
    assert idle > 500
    assert waits > 100


@pytest.mark.parametrize("policy", range(2))
def test_reset_in_mid_run_gives_a_fresh_record(policy: int) -> None:
    rng = seeded()
    bench, fresh = Bench(cta_dispatcher), Bench(cta_dispatcher)
    bench.i["policy"], bench.i["interval"] = policy, 3
    for _ in range(300):
        stimulate(view(bench.io).i, rng, MAX_SMS)
        bench.step()
    bench.reset()
    fresh.i[()] = bench.i
    assert bench.bytes() == fresh.bytes()


def run(seed: int) -> str:
    """A digest of all state and ports over a random run with every policy."""
    rng = random.Random(seed)
    digest = hashlib.sha256()
    bench = Bench(cta_dispatcher)
    for _ in range(600):
        bench.i["policy"], bench.i["interval"] = rng.randrange(2), rng.choice([1, 2])
        stimulate(view(bench.io).i, rng, MAX_SMS)
        bench.step()
        digest.update(bench.bytes())
    return digest.hexdigest()


def test_interpreted_run_is_identical() -> None:
    seed = seeded().randrange(1 << 32)
    assert interpreted(run, seed) == run(seed)
