"""The CTA dispatcher: every CTA once, in order, where the policy says, never too many; hardware against the model."""

from __future__ import annotations

import hashlib
import random

import pytest

from lockstep.models.blocks import FOREVER
from lockstep.models.cta import cta_dispatcher
from lockstep.models.parameters import DISPATCHERS
from lockstep.rtl.cta.cta_dispatcher import CtaDispatcher
from lockstep.verif.bench import Bench, interpreted, mask, seeded
from lockstep.verif.simulation import compare


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


@pytest.mark.parametrize("policy", DISPATCHERS)
@pytest.mark.parametrize("sms, slots, interval", [(1, 1, 1), (2, 1, 1), (15, 8, 1), (30, 2, 7), (64, 3, 1), (99, 2, 1)])
def test_every_cta_goes_where_the_policy_says(policy: str, sms: int, slots: int, interval: int) -> None:
    rng = seeded()
    gpu = Gpu(policy, sms, slots, interval)
    for ctas in (1, rng.randrange(2, 400), rng.randrange(2, 400)):
        gpu.launch(ctas)
        assert gpu.o["remaining"] == ctas
        last, dispatched, previous, earliest = sms - 1, 0, None, 0
        for cycle in range(40_000):
            loads = [len(resident) for resident in gpu.resident]
            open_ = [sm for sm in range(sms) if loads[sm] < slots and sm != previous]
            expected = None
            if dispatched < ctas and open_ and cycle >= earliest:
                least = min(loads[sm] for sm in open_)
                best = [sm for sm in open_ if policy == "round-robin" or loads[sm] == least]
                expected = min(best, key=lambda sm: (sm - last - 1) % sms), dispatched
                last, dispatched, earliest = expected[0], dispatched + 1, cycle + interval
            gpu.cycle()
            previous = expected[0] if expected else None
            shown = gpu.o["dispatch"]
            assert bool(shown["valid"]) == (expected is not None), f"cycle {cycle}"
            assert not expected or (shown["sm"], shown["cta"]) == expected
            assert gpu.o["remaining"] == ctas - dispatched
            for resident in gpu.resident:
                if resident and rng.random() < 0.05:
                    resident.pop(0)
            gpu.tell()
            if dispatched == ctas and previous is None:
                break
        assert gpu.o["remaining"] == 0


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


def stimulate(bench: Bench, rng: random.Random, sms: int = 128) -> None:
    bench.i["launch"], bench.i["ctas"] = rng.random() < 0.02, rng.choice([0, 1, 5, 40, (1 << 40) - 1])
    if rng.random() < 0.5:
        room = rng.choice([0, 0, 1 << rng.randrange(sms), rng.getrandbits(sms), mask(rng, sms)])
        bench.i["room"] = room & (1 << 64) - 1, room >> 64
        bench.i["load"][:sms] = [rng.randrange(rng.choice([2, 33])) for _ in range(sms)]


@pytest.mark.parametrize("policy", range(2))
def test_idle_cycles_change_nothing_but_the_wait(policy: int) -> None:
    rng = seeded()
    bench = Bench(cta_dispatcher)
    idle = waits = 0
    for _ in range(3000):
        bench.i["policy"], bench.i["interval"] = policy, 4
        stimulate(bench, rng)
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
        stimulate(bench, rng)
        bench.step()
    bench.reset()
    fresh.i[()] = bench.i
    assert bench.bytes() == fresh.bytes()


@pytest.mark.parametrize("policy", DISPATCHERS)
@pytest.mark.parametrize("sms, interval, cycles", [(1, 1, 300), (2, 2, 500), (7, 1, 1500), (15, 3, 1000), (66, 1, 300)])
def test_hardware_equals_the_model(policy: str, sms: int, interval: int, cycles: int) -> None:
    rng = seeded()
    bench = Bench(cta_dispatcher)
    bench.i["policy"], bench.i["interval"] = DISPATCHERS.index(policy), interval
    compare(CtaDispatcher(sms=sms), bench, lambda bench: stimulate(bench, rng, sms), cycles)


def run(seed: int) -> str:
    """A digest of all state and ports over a random run with every policy."""
    rng = random.Random(seed)
    digest = hashlib.sha256()
    bench = Bench(cta_dispatcher)
    for _ in range(600):
        bench.i["policy"], bench.i["interval"] = rng.randrange(2), rng.choice([1, 2])
        stimulate(bench, rng)
        bench.step()
        digest.update(bench.bytes())
    return digest.hexdigest()


def test_interpreted_run_is_identical() -> None:
    seed = seeded().randrange(1 << 32)
    assert interpreted(run, seed) == run(seed)
