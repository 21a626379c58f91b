"""WarpPool, joined: its latencies, faults in the wires; ``bench_warp_pool.py`` has the random runs."""

from __future__ import annotations

import random

import numpy as np
import pytest

from lockstep.models.jit import view
from lockstep.models.warppool import warp_pool
from lockstep.sim.cosim import library
from lockstep.spec.parameters import FOLD
from lockstep.verif.bench import Bench, seeded
from lockstep.verif.planted import Fault, component
from lockstep.verif.warppool.bench_warp_pool import (
    BLOCK,
    CONFIGURATIONS,
    CYCLES,
    SHAPES,
    Environment,
)

SMALL = dict(
    lanes=4, warps=4, tickets=2, warps_per_queue=2, depth=2, coalescers=2, queues=2, tags=2, merges=2, maps=4,
    index=FOLD, set_bits=1, metadata=4, quantum=16, store_wait=4, map_per=0,
)  # fmt: skip


# ------------------------------------------------------------------------------------------------------------ latencies


def alone(kind: str = "") -> tuple[int, int]:
    """One instruction in an empty unit, answered at once: cycles from its entry to the L1, from the answer to the end.

    A store has no end; it counts as -1.
    """
    bench = Bench(warp_pool, **CONFIGURATIONS["paper"])
    i, o = view(bench.i), view(bench.o)
    i.line_shift, i.enter.payload.mask, i.enter.payload.size = 7, 1, 2
    if kind:
        setattr(i.enter.payload, kind, 1)
    access = answer = result = -1
    for cycle in range(30):
        i.issue = i.enter.valid = cycle == 0
        i.issue_load = cycle == 0 and not kind
        i.access.ready = i.result.ready = 1
        i.answer.valid = cycle == access + 1 and access > 0 and kind != "store"
        i.answer.payload.atomic = i.answer.payload.mask = kind == "atomic"
        access = cycle if o.access.valid else access
        answer = cycle if i.answer.valid else answer
        result = cycle if o.result.valid else result
        bench.cycle()
    assert o.drained == (1 << 48) - 1
    return access, result - answer if result >= 0 else -1


def test_latencies_of_the_unit() -> None:
    """2 cycles to the coalescer, 3 through it; 4 more for a load, or 1 once it is taken, the cycle after it is seen."""
    assert alone() == (9, 2)
    assert alone("store") == (7, -1)
    assert alone("atomic") == (7, 2)


# -------------------------------------------------------------------------------------------------- faults in the wires

FAULTS = [
    Fault(
        BLOCK, "rtl", "a store's line is taken when a load's could be",
        "line.ready.eq(Mux(aside, selector.store[k].ready, merging.line[k].ready & table.admits[k]))",
        "line.ready.eq(merging.line[k].ready & table.admits[k])",
    ),
    Fault(
        BLOCK, "rtl", "a store's line goes to the loads too",
        "merging.line[k].valid.eq(line.valid & ~aside & table.admits[k])",
        "merging.line[k].valid.eq(line.valid & table.admits[k])",
    ),
    Fault(BLOCK, "rtl", "the thread-map entry of another coalescer", "table.entry[k]", "table.entry[0]"),
    Fault(
        BLOCK, "rtl", "a line leaves without a thread-map entry",
        "merging.line[k].ready & table.admits[k]", "merging.line[k].ready",
    ),
    Fault(BLOCK, "rtl", "a line that waits for a thread-map entry is inserted", "~aside & table.admits[k])", "~aside)"),
    Fault(
        BLOCK, "rtl", "a line is admitted as another coalescer's",
        "ready & table.admits[k]", "ready & table.admits[0]",
    ),
    Fault(BLOCK, "rtl", "the addresses of another coalescer", "self.address[k]", "self.address[0]"),
    Fault(
        BLOCK, "rtl", "an insertion by another coalescer",
        "eq(merging.insert[k].payload)", "eq(merging.insert[0].payload)",
    ),
    Fault(
        BLOCK, "rtl", "a read of a fixed thread map",
        "table.lookup.entry.eq(writeback.result.p.word)", "table.lookup.entry.eq(0)",
    ),
    Fault(
        BLOCK, "rtl", "no entry of the thread map is freed in time",
        "observe(table.result, result.valid, result.ready", "observe(table.result, result.valid, 1",
    ),
    Fault(BLOCK, "rtl", "misses are not connected", "selector.miss.eq(self.miss)", "selector.miss.eq(0)"),
    Fault(BLOCK, "rtl", "room without end", "merging.room.eq(selector.room)", "merging.room.eq(~0)"),
    Fault(
        BLOCK, "rtl", "metadata without end",
        "selector.metadata_free.eq(metadata.free)", "selector.metadata_free.eq(~0)",
    ),
    Fault(BLOCK, "rtl", "one id for all", "Mux(selector.access.p.store, 0, metadata.id)", "0"),
    Fault(BLOCK, "rtl", "answers are always taken", "answer.ready.eq(writeback.answer.ready)", "answer.ready.eq(1)"),
    Fault(
        BLOCK, "rtl", "results are always taken",
        "writeback.result.ready.eq(result.ready)", "writeback.result.ready.eq(1)",
    ),
    Fault(
        BLOCK, "rtl", "metadata of an answer that waits",
        "observe(metadata.answer, answer.valid, answer.ready", "observe(metadata.answer, answer.valid, 1",
    ),
    Fault(
        BLOCK, "rtl", "loads are not told from stores at issue",
        "order.enter_load.eq(self.issue_load)", "order.enter_load.eq(0)",
    ),
    Fault(
        BLOCK, "rtl", "a request counts as sent before it is taken",
        "order.access.ready.eq(access.ready)", "order.access.ready.eq(1)",
    ),
]  # fmt: skip


def complaint(built: library.Library, seed: int) -> str:
    """What the environment, which knows no model, finds wrong with hardware; empty if nothing."""
    instance = built.instance()
    ports = np.zeros((), warp_pool.PORTS)
    i, o = view(ports["i"]), view(ports["o"])
    try:
        for shape in SHAPES:
            environment = Environment(SMALL, shape, random.Random(seed))
            instance.reset(ports)
            for _ in range(CYCLES):
                try:
                    environment.drive(i, o)
                    environment.observe(i, o, None)
                except (AssertionError, KeyError) as error:
                    return f"{shape}, cycle {environment.cycle}: {error!r}"
                instance.step(ports)
    finally:
        instance.close()
    return ""


@pytest.mark.exhaustive
@pytest.mark.long
@pytest.mark.parametrize("fault", [None, *FAULTS[::4]], ids=str)
def test_the_environment_sees_faults(fault: Fault | None) -> None:
    """Without a model. ``python -m lockstep.verif.evidence warppool.warp_pool`` tries all of them, with one."""
    built = library.load(BLOCK, SMALL, component(fault) if fault else None)
    found = complaint(built, seeded().randrange(1 << 32))
    print(found)
    assert bool(found) == bool(fault)
