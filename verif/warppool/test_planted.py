"""Faults in the RTL and in models: the bench finds them, and a kernel finds them and says where.

The right model and the RTL compute again, from the replay file, what a report says. Some faults are tried here, and
all of them by ``python -m lockstep.verif.evidence warppool lsu``.
"""

from __future__ import annotations

import importlib
import re
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from lockstep.sim.cosim import build, library, replay, report, run
from lockstep.spec.warppool import MECHANISM
from lockstep.verif import levels
from lockstep.verif.bench import Bench
from lockstep.verif.blocks import Declaration, blocks, declaration
from lockstep.verif.planted import Differing, Fault, Misleading, component, planted
from lockstep.verif.trace import Trace, record
from lockstep.verif.warppool.planted import FAULTS, MISLEADING

SEED = 1
OVERHEAD = 500  # core cycles before a launch begins, in which no block is stepped
BENCHED = [fault for fault in FAULTS if fault.block in blocks()]


def test_every_block_has_one_in_each_body() -> None:
    assert sorted((fault.block, fault.body) for fault in FAULTS) == sorted(
        (block, body) for block in MECHANISM.all_blocks for body in ("rtl", "models")
    )


@pytest.mark.exhaustive
@pytest.mark.long
def test_models_that_are_loaded_while_a_fault_is_planted_do_not_have_it() -> None:
    """Else Numba would keep code that has it."""
    script = (
        "from lockstep.verif.planted import planted\n"
        "from lockstep.verif.warppool.planted import FAULTS\n"
        "with planted(next(f for f in FAULTS if f.block == 'warppool.inter_warp_queues' and f.body == 'models')):\n"
        "    from lockstep.models.warppool import warp_pool\n"
        "print(warp_pool.inter_warp_queues.__name__)\n"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, encoding="utf-8", check=True)
    assert done.stdout == "lockstep.models.warppool.inter_warp_queues\n"


def first_difference(declared: Declaration, trace: Trace, make: build.Make | None) -> str:
    """Where the RTL leaves a trace of the model; empty if it follows it to the end."""
    rtl = library.load(declared.block, trace.parameters, make).instance()
    try:
        for cycle in range(len(trace)):
            io = trace.io[cycle, ...]
            if cycle == 0 or trace.reset[cycle - 1]:
                rtl.shadow_reset(io)
            if rtl.play(io, 1, 3) == 0:
                ports = replay.differing(io, rtl.outputs, replay.SIDES[rtl.difference])
                return f"{trace.name}, cycle {cycle}: {ports[0]}"
    finally:
        rtl.close()
    return ""


def red(fault: Fault) -> Iterator[str]:
    """What the bench of the block says about a fault, shape after shape; nothing where it does not meet it."""
    declared = declaration(fault.block)
    with planted(fault) as makes:
        for each in levels.runs(declared, next(iter(declared.configurations)), SEED, 1):
            try:
                trace = record(declared, each)
            except AssertionError as error:
                yield str(error)
                continue
            if found := first_difference(declared, trace, makes.get(fault.block)):
                yield found


@pytest.mark.exhaustive
@pytest.mark.long
@pytest.mark.parametrize("fault", BENCHED[::4], ids=str)
def test_found_by_the_bench(fault: Fault) -> None:
    found = next(red(fault), "")
    print(found)
    assert found


def beside_the_right_model(kept: replay.Replay) -> tuple[replay.Outcome, int]:
    """Where the model, with the inputs of a replay, first leaves its outputs; the cycles since reset."""
    bench = Bench(importlib.import_module(f"lockstep.models.{kept.block}"), **kept.parameters)
    cycle = since_reset = 0
    for each in kept.records():
        if each.reset:
            bench.reset()
            since_reset = 0
        bench.i[()] = each.io["i"]
        for _ in range(each.cycles):
            last = kept.last if cycle == kept.cycles - 1 else ""
            sides = ["o"] if bench.o.dtype.names else []
            if bench.c.dtype.names and last != "o":
                bench.comb()
                sides.append("c")
            for side in sides:
                if bench.io[side].tobytes() != each.io[side].tobytes():
                    return replay.Outcome(cycle, replay.differing(each.io, bench.io, side)), since_reset
            if last:
                return replay.Outcome(cycle), since_reset
            bench.step()
            cycle, since_reset = cycle + 1, since_reset + 1
    raise AssertionError("the replay does not end with a difference")


@pytest.mark.exhaustive
@pytest.mark.long
@pytest.mark.parametrize("fault", [*FAULTS[::8], *FAULTS[1::8]], ids=str)
def test_found_in_a_kernel(fault: Differing, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(report, "waves", lambda *_: None)  # a build of its own, which has its own tests
    job = replace(fault.job, settings={**fault.job.settings, "launch.overhead": OVERHEAD})
    with planted(fault) as makes:
        found = run.cosim(job, fault.block, folder=tmp_path, makes=makes)["difference"]
    print((tmp_path / "report.txt").read_text(encoding="utf-8"))
    assert (found["block"], found["sm"]) == (fault.block, 0)
    assert re.fullmatch(fault.port, found["port"])
    right, wrong = ("model", "rtl") if fault.body == "rtl" else ("rtl", "model")
    assert fault.shows(found[right], found[wrong])

    kept = replay.load(tmp_path / "replay.npz")
    outcome, since_reset = beside_the_right_model(kept)
    if fault.body == "rtl":
        assert outcome == replay.Outcome(found["cycle"])
        outcome = replay.play(kept, makes[fault.block])
    assert (found["cycle"], found["core_cycle"]) == (outcome.cycle, OVERHEAD + since_reset)
    assert found["differing"] == [vars(port) for port in outcome.differing]


@pytest.mark.exhaustive
@pytest.mark.long
@pytest.mark.parametrize("fault", MISLEADING[::4], ids=str)
def test_stops_a_run_with_the_rtl_in_the_place_of_the_model(fault: Misleading) -> None:
    result = run.cosim(fault.job, fault.block, mode="replace", makes={fault.block: component(fault)})
    print(result["message"])
    found = re.fullmatch(
        r"the run with RTL stopped: cycle \d+, SM 0, CTA \(.*\), warp \d+, instruction \d+: (.*)", result["message"]
    )
    assert found is not None and re.fullmatch(fault.message, found[1])
