"""The metadata table: directed cases, its end-to-end check, hardware against the golden model."""

from __future__ import annotations

import hashlib
import random

import pytest
from amaranth.hdl import Module, ResetInserter, Signal

from lockstep.models.jit import view
from lockstep.models.warppool import mshr_metadata
from lockstep.rtl.warppool.mshr_metadata import MshrMetadata
from lockstep.verif.bench import Bench, interpreted, seeded
from lockstep.verif.simulation import compare
from lockstep.verif.warppool.bench_mshr_metadata import BINS, CONFIGURATIONS, SHAPES, UNREACHABLE, Environment

RESET = 60  # the cycle in which the hardware is reset


class Run(Bench):
    """The model in its declared environment."""

    def __init__(self, configuration: str, shape: str, seed: int) -> None:
        super().__init__(mshr_metadata, **CONFIGURATIONS[configuration])
        self.environment = Environment(self.parameters, shape, random.Random(seed))
        self.views = view(self.i), view(self.o), None

    def offer(self) -> None:
        """Drive this cycle's inputs and look at all ports."""
        i, o, c = self.views
        self.environment.drive(i, o)
        self.comb()
        self.environment.observe(i, o, c)


class Again(MshrMetadata):
    """The hardware, reset in one cycle in mid-run."""

    def elaborate(self, platform: object) -> Module:
        m = Module()
        cycle, again = Signal(16), Signal()
        m.d.sync += cycle.eq(cycle + 1)
        m.d.comb += again.eq(cycle == RESET)
        m.submodules.block = ResetInserter(again)(super().elaborate(platform))
        return m


@pytest.mark.parametrize("configuration", CONFIGURATIONS)
def test_the_checks_hold_and_every_bin_is_hit(configuration: str) -> None:
    seed = seeded().randrange(1 << 32)
    parameters = CONFIGURATIONS[configuration]
    missed = {name for name in BINS if not UNREACHABLE.get(name, lambda _: False)(parameters)}
    hit = set()
    for shape in SHAPES:
        run = Run(configuration, shape, seed)
        for _ in range(Environment.CYCLES):
            run.offer()
            hit |= {name for name in BINS if name not in hit and BINS[name](parameters, *run.views)}
            run.step()
        run.environment.finish()
    assert hit == missed


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("configuration", CONFIGURATIONS)
def test_hardware_equals_the_model(configuration: str, shape: str) -> None:
    run = Run(configuration, shape, seeded().randrange(1 << 32))
    compare(MshrMetadata(**run.parameters), run, lambda _: run.offer(), 150 if configuration == "largest" else 500)
    run.environment.finish()


@pytest.mark.parametrize("configuration", ["one", "odd", "paper"])
def test_reset_in_mid_run(configuration: str) -> None:
    """The hardware, whose memories keep their contents, against a model that is made anew."""
    seed = seeded().randrange(1 << 32)
    run = Run(configuration, SHAPES[0], seed)
    cycles = 0

    def offer(_: Bench) -> None:
        nonlocal cycles
        if cycles == RESET + 1:
            fresh = Run(configuration, SHAPES[1], seed)
            run.state[()], run.io["o"], run.environment = fresh.state, fresh.o, fresh.environment
        cycles += 1
        run.offer()

    compare(Again(**run.parameters), run, offer, 4 * RESET)


def test_idle_cycles_change_nothing() -> None:
    rng = seeded()
    idle = 0
    runs = [Run("odd", shape, rng.randrange(1 << 32)) for shape in SHAPES]
    for run in 2000 * runs:
        run.offer()
        steps = min(run.idle(), rng.randrange(1, 5))
        stepped, skipped = run.copy(), run.copy()
        for _ in range(steps):
            stepped.cycle()
        skipped.skip(steps)
        assert stepped.bytes() == skipped.bytes()
        idle += steps > 0
        run.step()
    assert idle > 20


def digest(seed: int) -> str:
    """Of all state and ports over a run in each shape."""
    found = hashlib.sha256()
    for shape in SHAPES:
        run = Run("odd", shape, seed)
        for _ in range(200):
            run.offer()
            run.step()
            found.update(run.bytes())
    return found.hexdigest()


def test_interpreted_run_is_identical() -> None:
    seed = seeded().randrange(1 << 32)
    assert interpreted(digest, seed) == digest(seed)


class Table(Bench):
    def __init__(self) -> None:
        super().__init__(mshr_metadata, **CONFIGURATIONS["odd"])

    def send(self, request: int | None = None, answer: int | None = None) -> int:
        """A cycle in which a request of two slots for warp ``request`` is sent, and entry ``answer`` answered."""
        access, answers = self.i["access"], self.i["answer"]
        access["valid"] = access["ready"] = request is not None
        access["payload"]["count"] = 2
        access["payload"]["slots"]["warp"][:3] = request or 0, 7, 9
        answers["valid"] = answers["ready"] = answer is not None
        answers["payload"]["id"] = answer or 0
        entry = int(self.o["id"])
        self.step()
        return entry

    @property
    def warps(self) -> tuple[int, list[int]]:
        return int(self.o["slots"]["count"]), list(map(int, self.o["slots"]["slots"]["warp"]))[:3]


def test_new_entries_first_and_then_the_longest_free() -> None:
    bench = Table()
    assert [bench.send(request=1) for _ in range(10)] == list(range(10))
    for entry in (7, 2, 5):
        bench.send(answer=entry)
    assert [bench.send(request=1) for _ in range(5)] == [10, 11, 12, 7, 2]
    assert (bench.o["free"], bench.o["id"]) == (1, 5)
    assert bench.send(request=1, answer=12) == 5
    assert (bench.o["free"], bench.o["id"]) == (1, 12)
    bench.send(request=1)
    assert (bench.o["free"], bench.o["id"]) == (0, 0)


def test_an_answer_shows_its_slots_one_cycle_later_until_the_next() -> None:
    bench = Table()
    assert bench.warps == (0, [0, 0, 0])
    for warp in (4, 6):
        bench.send(request=warp)
    bench.send(answer=1)
    assert bench.warps == (2, [6, 7, 0])  # the third was beyond its count
    bench.send(request=3)
    assert bench.warps == (2, [6, 7, 0])
    bench.send(answer=0)
    assert bench.warps == (2, [4, 7, 0])


def test_a_store_takes_no_entry() -> None:
    bench = Table()
    bench.i["access"]["payload"]["store"] = 1
    bench.send(request=1)
    assert (bench.o["free"], bench.o["id"]) == (13, 0)
