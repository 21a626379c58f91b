"""The thread-map table: directed cases, its end-to-end check, hardware against the golden model."""

from __future__ import annotations

import hashlib
import random

import pytest
from amaranth.hdl import Module, ResetInserter, Signal

from lockstep.models.jit import view
from lockstep.models.warppool import thread_map_table
from lockstep.models.warppool.mapping import Mapping
from lockstep.rtl.warppool.thread_map_table import ThreadMapTable
from lockstep.verif.bench import Bench, interpreted, seeded
from lockstep.verif.simulation import compare
from lockstep.verif.warppool.bench_thread_map_table import BINS, CONFIGURATIONS, SHAPES, UNREACHABLE, Environment

RESET = 60  # the cycle in which the hardware is reset


class Run(Bench):
    """The model in its declared environment."""

    def __init__(self, configuration: str, shape: str, seed: int) -> None:
        super().__init__(thread_map_table, **CONFIGURATIONS[configuration])
        self.environment = Environment(self.parameters, shape, random.Random(seed))
        self.views = view(self.i), view(self.o), view(self.c)

    def offer(self) -> None:
        """Drive this cycle's inputs and look at all ports."""
        i, o, c = self.views
        self.environment.drive(i, o)
        self.comb()
        self.environment.observe(i, o, c)


class Again(ThreadMapTable):
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
    compare(ThreadMapTable(**run.parameters), run, lambda _: run.offer(), 150 if configuration == "largest" else 500)
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


def take(bench: Bench, k: int, words: list[int]) -> int:
    """Let coalescer k transfer a line that needs an entry, alone, and say which it got."""
    line = bench.i["line"][k]
    line["valid"] = line["ready"] = 1
    line["payload"]["mapping"], line["payload"]["mask"] = Mapping.RANDOM, 0xFFFF_FFFF
    line["payload"]["words"] = words
    entry = int(bench.o["entry"][k])
    bench.cycle()
    line["valid"] = 0
    return entry


def release(bench: Bench, entry: int) -> None:
    result = bench.i["result"]
    result["valid"] = result["ready"] = 1
    result["payload"]["mapping"], result["payload"]["word"] = Mapping.RANDOM, entry
    bench.cycle()
    result["valid"] = 0


def looked_up(bench: Bench, entry: int) -> list[int]:
    bench.i["lookup"] = entry
    bench.comb()
    return [int(word) for word in bench.c["map"]["words"]]


def test_each_bank_hands_out_its_lowest_free_entry() -> None:
    bench = Bench(thread_map_table, **CONFIGURATIONS["paper"])
    assert [take(bench, 1, [0] * 32) for _ in range(4)] == [4, 5, 6, 7]
    assert [take(bench, 0, [0] * 32) for _ in range(3)] == [0, 1, 2]
    assert list(bench.o["free"])[:2] == [1, 0]
    assert list(bench.o["entry"])[:2] == [3, 4]  # the bank's first when none is free
    release(bench, 6)
    release(bench, 1)
    assert list(bench.o["free"])[:2] == [2, 1]
    assert list(bench.o["entry"])[:2] == [1, 6]


def test_an_entry_is_kept_until_its_release() -> None:
    bench = Bench(thread_map_table, **CONFIGURATIONS["paper"])
    words = [lane ^ 9 for lane in range(32)]
    assert take(bench, 0, words) == 0
    assert take(bench, 1, words[::-1]) == 4
    assert looked_up(bench, 0) == words
    assert looked_up(bench, 4) == words[::-1]
    release(bench, 0)
    assert looked_up(bench, 0) == [0] * 32
    assert looked_up(bench, 4) == words[::-1]
    assert looked_up(bench, 31) == [0] * 32  # beyond the table
