"""Writeback: directed cases, its end-to-end check, hardware against the golden model."""

from __future__ import annotations

import hashlib
import random

import pytest
from amaranth.hdl import Module, ResetInserter, Signal

from lockstep.models.jit import view
from lockstep.models.warppool import writeback
from lockstep.rtl.warppool.writeback import Writeback
from lockstep.verif.bench import Bench, interpreted, seeded
from lockstep.verif.simulation import compare
from lockstep.verif.warppool.bench_writeback import BINS, CONFIGURATIONS, SHAPES, UNREACHABLE, Environment

RESET = 60  # the cycle in which the hardware is reset


class Run(Bench):
    """The model in its declared environment."""

    def __init__(self, configuration: str, shape: str, seed: int) -> None:
        super().__init__(writeback, **CONFIGURATIONS[configuration])
        self.environment = Environment(self.parameters, shape, random.Random(seed))
        self.views = view(self.i), view(self.o), None

    def offer(self) -> None:
        """Drive this cycle's inputs and look at all ports."""
        i, o, c = self.views
        self.environment.drive(i, o)
        self.comb()
        self.environment.observe(i, o, c)


class Again(Writeback):
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
    compare(Writeback(**run.parameters), run, lambda _: run.offer(), 150 if configuration == "largest" else 500)
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


def stream(counts: list[int], ready: int = 1, cycles: int = 40) -> tuple[list[int], list[int]]:
    """Offer answers with so many slots as fast as they are taken: the cycles of acceptance, and of the results."""
    bench = Bench(writeback, **CONFIGURATIONS["paper"])
    accepted: list[int] = []
    left: list[int] = []
    for cycle in range(cycles):
        bench.i["answer"]["valid"] = len(accepted) < len(counts)
        bench.i["result"]["ready"] = ready
        if bench.o["result"]["valid"] and ready:
            left.append(cycle)
        enters = bool(bench.i["answer"]["valid"] and bench.o["answer"]["ready"])
        bench.step()
        if enters:
            bench.i["slots"]["count"] = counts[len(accepted)]
            accepted.append(cycle)
    return accepted, left


def test_single_slots_flow_without_a_gap() -> None:
    assert stream([1] * 10) == (list(range(10)), list(range(2, 12)))


def test_answers_of_several_slots_stall_the_l1_but_leave_no_gap() -> None:
    accepted, left = stream([4] * 5)
    assert accepted == [0, 1, 5, 9, 13]
    assert left == list(range(2, 22))
    accepted, left = stream([1, 3, 1, 2, 4, 1])
    assert left == list(range(2, 14))


def test_two_answers_and_the_result_are_held() -> None:
    """The first answer's only slot is in the output register, two more answers are behind it."""
    assert stream([1] * 10, ready=0) == ([0, 1, 2], [])
    assert stream([2] * 10, ready=0) == ([0, 1], [])
