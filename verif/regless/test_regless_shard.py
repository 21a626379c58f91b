"""The joined shard, case by case; ``bench_regless_shard.py`` has the random runs."""

from __future__ import annotations

import pytest

from lockstep.models.regless import regless_shard
from lockstep.rtl import registry
from lockstep.sim.compile.ptx.passes.register_regions.words import Metadata, encode
from lockstep.spec.register_regions import KIND_SHIFT, LAST, PAYLOAD_BITS, Entry
from lockstep.spec.regless.parameters import POISON
from lockstep.verif.bench import Bench
from lockstep.verif.regless.bench_regless_shard import CONFIGURATIONS


def cycles_until_active(entries: tuple[tuple[Entry, int], ...]) -> tuple[Bench, int]:
    """A warp with a region of one slot, whose operand is register 2; cycles from its word until it may issue."""
    made = Bench(regless_shard, **CONFIGURATIONS["gtx480"])
    made.i["request"]["ready"] = made.i["begin"]["valid"] = 1
    made.cycle()
    made.i["begin"]["valid"] = 0
    [word] = encode(Metadata((LAST,), (0, 0, len(entries), 0, 0, 0, 0, 0), entries))
    made.i["word"]["valid"] = 1
    made.i["word"]["payload"]["word"]["payload"] = word & (1 << PAYLOAD_BITS) - 1
    made.i["word"]["payload"]["word"]["kind"] = word >> KIND_SHIFT & 3
    for cycle in range(1, 40):
        made.cycle()
        made.i["word"]["valid"] = 0
        if made.o["active"]:
            return made, cycle
    raise AssertionError("the region does not start")


def test_latencies_and_an_operand() -> None:
    assert cycles_until_active(())[1] == 9
    made, cycles = cycles_until_active(((Entry.PRELOAD, 2),))
    assert cycles == 14, "the compressor has no copy"
    issue = made.i["issue"]
    issue["valid"] = issue["payload"]["slots"] = 1
    made.comb()
    assert made.c["last"]["valid"]
    made.step()
    issue["valid"] = 0
    assert not made.o["active"] and made.o["flags"]["payload"]["slots"].tolist() == [LAST, 0, 0, 0, 0, 0]
    access = made.i["access"][2]
    access["valid"], access["payload"]["number"], access["payload"]["flags"] = 1, 2, LAST
    made.cycle()
    access["valid"] = 0
    made.cycle()
    operand = made.o["operand"][2]
    assert operand["valid"] and set(operand["payload"]["words"].tolist()) == {POISON}


def test_arguments_are_those_of_the_parts() -> None:
    with pytest.raises(ValueError, match=r"regless_shard takes lanes, warps, .*, all of them"):
        registry.component("regless.regless_shard")(warps=4)
