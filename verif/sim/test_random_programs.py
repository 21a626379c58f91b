"""Random kernels on random GPUs: results as computed thread by thread, and the same run in every mode of the model."""

from __future__ import annotations

import hashlib
import random
from collections.abc import Mapping
from typing import Any

import numpy as np
import pytest

from lockstep.sim import Gpu
from lockstep.sim.device.description import load, names, values
from lockstep.spec.parameters import BROADCASTS, COALESCINGS, DISPATCHERS, L1_INDEXES, SCHEDULERS
from lockstep.spec.warppool.parameters import MAP_PER
from lockstep.verif.bench import elsewhere, seeded
from lockstep.verif.modes import INTERPRETED
from lockstep.verif.sim.random_programs import RESULT, Maker

PROGRAMS = 24
IN_EVERY_MODE = 4


def settings(rng: random.Random) -> dict[str, Any]:
    """A GPU of two SMs, with as little of everything as makes queues fill up."""
    choices = {
        "core.scheduler": SCHEDULERS,
        "core.scheduler_overhead": [1, 2, 3],
        "core.active_warps": [1, 2, 8],
        "core.collectors_alu": [1, 2, 8],
        "core.collectors_lsu": [1, 2, 8],
        "core.register_banks": [2, 16],
        "core.registers_per_thread": [32, 63],
        "l1.mshrs": [1, 4, 32],
        "l1.data": [0, 1],
        "l2.data": [0, 1],
        "core.coalescing": COALESCINGS,
        "scratchpad.broadcasts": BROADCASTS,
        "l1.index": L1_INDEXES,
        "l2.mshrs": [1, 32],
        "crossbar.buffers": [1, 8],
        "dram.queue": [2, 32],
        "launch.dispatcher": DISPATCHERS,
        "compiler.addresses": [32, 64],
        "compiler.constant_operands": [0, 1],
        "compiler.address_offsets": [0, 1],
        "compiler.multiply_adds": [0, 1],
        "compiler.predication": [0, 1],
        "compiler.rematerialization": [0, 1],
        "compiler.scheduling": [0, 1],
    }
    return {"core.sms": 2, **{name: rng.choice(values) for name, values in choices.items() if rng.random() < 0.5}}


def mechanisms(rng: random.Random) -> tuple[list[str], dict[str, Any]]:
    """A path to the L1, WarpPool's with sizes between the smallest and more than the paper's."""
    path = rng.choice(["", "mrpb", "banked-l1", "warppool", "warppool"])
    sizes = {
        "warppool.coalescers": rng.choice([1, 2, 4]),
        "warppool.warps_per_queue": rng.choice([1, 3, 7]),
        "warppool.instructions": rng.choice([1, 2, 8]),
        "warppool.queues": rng.choice([1, 4, 32]),
        "warppool.tags": rng.choice([1, 2]),
        "warppool.merges": rng.choice([1, 4, 8]),
        "warppool.maps": rng.choice([1, 3, 8]),
        "warppool.map_per": rng.choice(MAP_PER),
        "warppool.quantum": rng.choice([16, 64, 100_000]),
        "warppool.store_wait": rng.choice([1, 64]),
        "mrpb.warps_per_queue": rng.choice([1, 8]),
        "mrpb.requests": rng.choice([1, 8]),
    }
    return [path] if path else [], sizes


def fitting(name: str, selected: list[str], chosen: dict[str, Any]) -> tuple[str, list[str], dict[str, Any]]:
    """Without what excludes each other: L1s of data without an L2, half-warps and what merges whole warps."""
    described = values(load(name)) | chosen
    if described["core.coalescing"] == "half-warp" and selected != ["mrpb"]:
        selected = []
    least = {"l1.data": "l2.data", "warppool.queues": "l1.sets"}
    return name, selected, chosen | {key: min(described[key], described[most]) for key, most in least.items()}


def simulate(seed: int, skip: bool = True, fixed: Mapping[str, Any] | None = None) -> dict[str, Any]:
    """Run a random program and compare it with the reference; returns everything that must not depend on the mode.

    ``fixed`` settings are not drawn.
    """
    rng = random.Random(seed)
    maker = Maker(rng)
    program = maker.program()
    regions, counters = maker.regions(program), maker.counters()
    selected, sizes = mechanisms(rng)
    gpu = Gpu(*fitting(rng.choice(names()), selected, {**settings(rng), **sizes, **(fixed or {})}))
    gpu.machine.skip = skip
    buffers = gpu.empty((program.threads, RESULT), np.uint8), gpu.to_device(regions), gpu.to_device(counters)
    args = [*buffers, *program.words, program.long]
    run = gpu.load(program.ptx).launch("k", grid=program.grid, block=program.block, args=args)
    found = [gpu.from_device(buffer) for buffer in buffers]
    results, memory, totals = program.reference(regions, counters)
    expected = np.frombuffer(results, np.uint8).reshape(-1, RESULT)
    wrong = np.argwhere((found[0] != expected).any(axis=1))
    assert not len(wrong), f"seed {seed}: registers of threads {wrong.reshape(-1).tolist()}"
    assert found[1].tobytes() == memory, f"seed {seed}: global memory"
    assert found[2].tolist() == totals, f"seed {seed}: counters"
    return {
        "seed": seed,
        "counts": {name: values.tolist() for name, values in run.raw.items()},
        "memory": hashlib.sha256(b"".join(array.tobytes() for array in found)).hexdigest(),
    }


def several(seeds: list[int], skip: bool = True) -> list[dict[str, Any]]:
    return [simulate(seed, skip) for seed in seeds]


@pytest.mark.long
def test_results_are_those_of_the_reference() -> None:
    rng = seeded()
    for _ in range(PROGRAMS):
        simulate(rng.getrandbits(32))


@pytest.mark.long
@pytest.mark.parametrize("mode", ["without skipping", pytest.param("interpreted", marks=pytest.mark.exhaustive)])
def test_modes_are_identical(mode: str) -> None:
    rng = seeded()
    seeds = [rng.getrandbits(32) for _ in range(IN_EVERY_MODE)]
    found = elsewhere(several, seeds, mode != "without skipping", **(INTERPRETED if mode == "interpreted" else {}))
    assert found == elsewhere(several, seeds)
