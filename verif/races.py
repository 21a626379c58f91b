"""Random programs that race: threads load all words, and each stores to words of its own.

What they load depends on every cycle in which a line comes or goes, so they tell whether two ways of running agree.
"""

from __future__ import annotations

import json
import random

import numpy as np

from lockstep.sim import Gpu
from lockstep.sim.device.description import names
from lockstep.sim.errors import UsageError
from lockstep.spec.registry import MECHANISMS
from lockstep.verif.ways import LINES, LOCKSTEP, Way, set_way

__all__ = ["race", "stale"]

RACE = """
struct Step { unsigned kind, word, value; };  // plain and volatile loads, plain and volatile stores, atomics
extern "C" __global__ void race(unsigned *words, unsigned *counters, const Step *steps, unsigned *out, int count)
{
  unsigned thread = blockIdx.x * blockDim.x + threadIdx.x;
  for (int k = 0; k < count; k++) {
    Step step = steps[thread * count + k];
    unsigned value = 0, *word = words + step.word;
    if (step.kind == 0) asm volatile("ld.global.u32 %0, [%1];" : "=r"(value) : "l"(word) : "memory");
    if (step.kind == 1) asm volatile("ld.volatile.global.u32 %0, [%1];" : "=r"(value) : "l"(word) : "memory");
    if (step.kind == 2) asm volatile("st.global.u32 [%0], %1;" :: "l"(word), "r"(step.value) : "memory");
    if (step.kind == 3) asm volatile("st.volatile.global.u32 [%0], %1;" :: "l"(word), "r"(step.value) : "memory");
    if (step.kind == 4) value = atomicAdd(counters + step.word % 8, 1);
    out[thread * count + k] = value;
  }
}
"""
LOADS, STORES, ATOMIC = (0, 1), (2, 3), 4


def race(seed: int, way: tuple[int, int] = LOCKSTEP, skip: bool = True) -> str:
    """Threads load all words, and each stores ever greater values to words of its own. Returns cycles, what they have
    loaded, and all counts, as JSON.

    A thread finds its own words as it has left them, and values of others that these have stored. Its plain loads of a
    word find no older value than those before, nor do its volatile ones: lines are fetched anew, and never go back.
    """
    rng = random.Random(seed)
    ctas, block, count = rng.choice([2, 3, 5]), rng.choice([32, 64]), 24
    everyone, each = ctas * block, rng.choice([1, 2, 4])
    words, order = everyone * each, list(range(everyone * each))
    rng.shuffle(order)  # the words of a thread are anywhere
    own = [[order[thread * each + k] for k in range(each)] for thread in range(everyone)]
    few = [rng.randrange(words) for _ in range(6)]
    steps, last = np.zeros((everyone, count, 3), np.uint32), [0] * words
    for thread in range(everyone):
        for k in range(count):
            kind = rng.choice([0, 0, 0, 1, 1, 2, 3, 4])
            word = rng.choice(own[thread] if kind in STORES or rng.random() < 0.2 else few)
            if kind in STORES:
                last[word] += 1
            steps[thread, k] = kind, word, last[word]
    mechanism = rng.choice(["", "", *(name for name, each in MECHANISMS.items() if "path" in each.tenants)])
    settings = {
        "core.sms": 2, "l1.mshrs": rng.choice([2, 32]), "l1.ways": rng.choice([1, 4]),
        "core.scheduler": rng.choice(["lrr", "gto", "two-level"]), **LINES,
    }  # fmt: skip
    name, mechanisms = rng.choice(names()), [mechanism] if mechanism else []
    try:
        gpu = Gpu(name, mechanisms, settings)
    except UsageError:  # of half-warps, which it does not know
        gpu = Gpu(name, [], settings)
    gpu.machine.skip = skip
    set_way(gpu, Way(*way))
    buffers = [gpu.to_device(np.zeros(words, np.uint32)), gpu.to_device(np.zeros(8, np.uint32)), gpu.to_device(steps)]
    out = gpu.to_device(np.zeros((everyone, count), np.uint32))
    run = gpu.load(RACE).launch("race", grid=ctas, block=block, args=[*buffers, out, np.int32(count)])
    found = gpu.from_device(out).tolist()
    assert gpu.from_device(buffers[0]).tolist() == last, f"seed {seed}: a store is lost"
    _check_loads(seed, steps.tolist(), found, own, last)
    counters = gpu.from_device(buffers[1]).tolist()
    taken: list[list[int]] = [[] for _ in range(8)]
    for thread in range(everyone):
        for k, (kind, word, _) in enumerate(steps[thread].tolist()):
            if kind == ATOMIC:
                taken[word % 8].append(found[thread][k])
    assert [sorted(each) for each in taken] == [list(range(n)) for n in counters], f"seed {seed}: an atomic is lost"
    counts = {name: values.tolist() for name, values in run.raw.items()}
    return json.dumps([run.cycles, found, counts])


def stale(raced: str) -> int:
    """How many lines of a race gave loads what was no longer in memory."""
    return sum(json.loads(raced)[2]["lsu.stale"])


def _check_loads(seed: int, steps: list, found: list, own: list[list[int]], last: list[int]) -> None:
    for thread, mine in enumerate(steps):
        stored = dict.fromkeys(own[thread], 0)
        seen: dict[tuple[int, int], int] = {}
        for k, (kind, word, value) in enumerate(mine):
            if kind in STORES:
                stored[word] = value
            if kind not in LOADS:
                continue
            loaded, where = found[thread][k], f"seed {seed}: thread {thread}, step {k}"
            if word in stored:
                assert loaded == stored[word], f"{where}: {loaded} is not what it has stored"
            assert seen.get((kind, word), 0) <= loaded <= last[word], f"{where}: {loaded} is too old, or from nowhere"
            seen[kind, word] = loaded
