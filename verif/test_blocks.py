"""Every block that has a bench: hardware against its golden model in the simulator, functional coverage, proofs.

``lockstep verify`` does the same with all sizes, proofs and more seeds, and code coverage and mutants besides. What
only a model has is tested here alone: it may skip idle cycles, a reset leaves nothing behind, and it runs interpreted
as it does compiled.
"""

from __future__ import annotations

import hashlib
import random
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from lockstep.models.blocks import instances
from lockstep.rtl import netlist, registry
from lockstep.verif import coverage, formal, levels, verilated
from lockstep.verif.bench import elsewhere
from lockstep.verif.blocks import Bin, blocks, declaration, proofs
from lockstep.verif.conftest import Shared
from lockstep.verif.simulate import simulate
from lockstep.verif.trace import Run, Session


def sizes(block: str) -> list[str]:
    """The size of mutants and the one that ships, which may be the same."""
    return [*dict.fromkeys([levels.MUTATED, declaration(block).shipped])]


# Of every block the size at which mutants meet it, small and with nothing that is a power of two; then the others.
CONFIGURATIONS = [
    pytest.param(block, name, marks=[pytest.mark.exhaustive] * (name != levels.MUTATED))
    for block in blocks()
    for name in declaration(block).configurations
]
# That size and the one that ships; ``lockstep verify`` simulates all, and its level *smoke* exports them.
TWO = [
    pytest.param(block, name, marks=[pytest.mark.exhaustive] * (name != levels.MUTATED))
    for block in blocks()
    for name in sizes(block)
]
# Of every block what is proved in seconds, one property at every distance; the level *formal* proves all.
PROOFS = [
    pytest.param(block, name, marks=[pytest.mark.exhaustive] * (k > 0))
    for block in blocks()
    for k, name in enumerate(name for name, proof in proofs(block).items() if not proof.long)
]
GROUPS = 4  # of blocks that share a process


def test_every_block_has_a_bench() -> None:
    assert blocks() == registry.blocks()


@pytest.mark.parametrize("block", blocks())
def test_smoke(block: str) -> None:
    declared = replace(declaration(block), bins={})
    assert simulate(declared, levels.MUTATED, [levels.smoke(declared)], levels.SMOKE_CYCLES).failures == []


Simulate = Callable[[str, str], dict[str, Any]]


@pytest.fixture
def simulated(shared: Shared) -> Simulate:
    """What failed in a configuration, with every shape of stimulus, and the bins that were hit in the one that ships.

    With the same seed every time: that some other misses a rare bin is no fault.
    """
    seed = levels.base_seed(1)
    print(f"LOCKSTEP_SEED={seed}")

    def simulated(block: str, configuration: str) -> dict[str, Any]:
        declared = declaration(block)
        bins = declared.bins if configuration == declared.shipped else {}  # they take as long as all else of a run
        declared = replace(declared, bins={name: once(hit) for name, hit in bins.items()})
        report = simulate(declared, configuration, levels.runs(declared, configuration, seed, 1))
        return {"failures": report.failures, "bins": report.bins}

    return lambda block, configuration: shared(f"{block} {configuration}", lambda: simulated(block, configuration))


def once(hit: Bin) -> Bin:
    """A bin that asks no more when it has been hit."""
    asks = True

    def first(*of_a_cycle: Any) -> bool:
        nonlocal asks
        found = asks and hit(*of_a_cycle)
        asks = asks and not found
        return found

    return first


@pytest.mark.long
@pytest.mark.parametrize("block, configuration", TWO)
def test_hardware_equals_the_model(block: str, configuration: str, simulated: Simulate) -> None:
    assert simulated(block, configuration)["failures"] == []


@pytest.mark.long
@pytest.mark.exhaustive
@pytest.mark.parametrize("block", blocks())
def test_what_ships_hits_every_bin_that_it_can(block: str, simulated: Simulate) -> None:
    declared = declaration(block)
    hit = Counter[str](simulated(block, declared.shipped)["bins"])
    able = {name: declared.bins[name] for name in declared.able(declared.shipped)}
    assert coverage.functional(replace(declared, bins=able), {declared.shipped: hit}) == []


@pytest.mark.long
@pytest.mark.hardware
@pytest.mark.parametrize("block", blocks())
def test_exported_verilog(block: str) -> None:
    """Lint is clean, and no output depends on an input of the same cycle but for those declared."""
    declared = declaration(block)
    assert verilated.lint(declared.verilog(levels.MUTATED), declared.name) == []
    assert netlist.check(declared.component(levels.MUTATED)) == []


def sessions(block: str, configuration: str, seed: int, cycles: int) -> Iterator[Session]:
    """A golden model in its environment, at every cycle's clock edge, in each shape."""
    declared = declaration(block)
    for run in levels.runs(declared, configuration, seed, 1):
        session = Session(declared, run, run.rng())
        for _ in range(cycles):
            session.settle()
            yield session
            session.bench.step()


@pytest.mark.parametrize("block, configuration", CONFIGURATIONS)
def test_idle_cycles_change_nothing_but_what_a_skip_changes(block: str, configuration: str) -> None:
    """A skip equals as many steps with the inputs held, up to the last idle cycle, and leaves the ports alone.

    A model that joins others may put off what their states need; then later ports must be equal.
    """
    seed = levels.base_seed()
    print(f"LOCKSTEP_SEED={seed}")
    rng = random.Random(seed)
    joins = any(instances(declaration(block).model().STATE))
    skips = 0
    for session in sessions(block, configuration, seed, 200):
        bench = session.bench
        idle = min(bench.idle(), 300)
        if not idle:
            continue
        skips += 1
        steps = rng.choice([1, rng.randint(1, idle), idle])
        stepped, skipped = bench.copy(), bench.copy()
        for _ in range(steps):
            stepped.cycle()
        skipped.skip(steps)
        assert bench.io.tobytes() == stepped.io.tobytes() == skipped.io.tobytes()
        if not joins:
            assert stepped.bytes() == skipped.bytes()
            continue
        skipped.idle()  # which shows the blocks their inputs, as a step does
        for _ in range(50):
            stepped.cycle()
            skipped.cycle()
            assert stepped.io.tobytes() == skipped.io.tobytes()
    assert skips > 0


@pytest.mark.parametrize("block, configuration", CONFIGURATIONS)
def test_a_model_that_is_reset_behaves_as_a_new_one(block: str, configuration: str) -> None:
    seed = levels.base_seed()
    print(f"LOCKSTEP_SEED={seed}")
    *_, last = sessions(block, configuration, seed, 150)
    used = last.bench
    for session in sessions(block, configuration, seed + 1, 150):
        fresh = session.bench
        if session is not last:
            last = session
            used.reset()
        used.i[()] = fresh.i
        used.comb()
        assert used.io.tobytes() == fresh.io.tobytes()
        used.step()


def digests(names: Sequence[str], seed: int) -> dict[str, str]:
    """Of all state and ports of blocks over a short run of one shape at each of two sizes."""
    found = {}
    for block, configuration in [(name, size) for name in names for size in sizes(name)]:
        shape = random.Random(seed).choice(declaration(block).shapes)
        run = Run(configuration, shape, seed)
        session, digest = Session(declaration(block), run, run.rng()), hashlib.sha256()
        for _ in range(100):
            session.settle()
            digest.update(session.bench.bytes() + session.bench.idle().to_bytes(8, "little"))
            ahead = session.bench.copy()
            ahead.skip(min(ahead.idle(), 300))
            digest.update(ahead.bytes())
            session.bench.step()
        found[f"{block}, {configuration}"] = digest.hexdigest()
    return found


@pytest.mark.exhaustive
@pytest.mark.long
@pytest.mark.parametrize("group", range(GROUPS))
def test_an_interpreted_run_is_identical(group: int) -> None:
    seed, names = levels.base_seed(), blocks()[group::GROUPS]
    print(f"LOCKSTEP_SEED={seed}")
    assert elsewhere(digests, names, seed, NUMBA_DISABLE_JIT="1") == digests(names, seed)


@pytest.mark.long
@pytest.mark.hardware
@pytest.mark.parametrize("block, name", PROOFS)
def test_property(block: str, name: str, tmp_path: Path) -> None:
    proof = proofs(block)[name]
    outcome = formal.prove(name, replace(proof, build=proof.small or proof.build), tmp_path)
    assert outcome.passed, outcome.counterexample
