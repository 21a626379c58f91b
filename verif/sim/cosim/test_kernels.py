"""Whole kernels with RTL in them, through the command line."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from lockstep.cli.main import main
from lockstep.models.stop import ModelFault
from lockstep.sim import Gpu, kernels
from lockstep.sim.cosim import run, session
from lockstep.sim.cosim.session import Session, chosen
from lockstep.sim.study.job import Job
from lockstep.spec.registry import MECHANISMS
from lockstep.verif.sim.cosim.bench import faulty
from lockstep.verif.trial.mechanisms import registered

SETTINGS = {"core.sms": 2}
COALESCER = "lsu.intra_warp_coalescer"
DISPATCHER = "cta.cta_dispatcher"
BASELINE = [DISPATCHER, COALESCER, "scheduling.warp_scheduler"]


def cosim(*arguments: str, json_to: Path) -> tuple[int, dict[str, Any]]:
    options = ["--size", "tiny", "--set", "core.sms=2", "-o", str(json_to.parent / "cosim"), "--json", str(json_to)]
    code = main(["cosim", *arguments, *options])
    return code, json.loads(json_to.read_text(encoding="utf-8"))


@pytest.mark.parametrize("mode", ["shadow", "replace"])
def test_every_block_of_the_baseline(mode: str, tmp_path: Path) -> None:
    code, result = cosim("saxpy", "--rtl", "all", "--mode", mode, json_to=tmp_path / "result.json")
    assert (code, result["checked"], result["mismatches"]) == (0, True, 0)
    assert (result["blocks"], result["mode"]) == (BASELINE, mode)
    assert (result["compared_cycles"] > result["cycles"]) == (mode == "shadow")
    assert result["cycles_per_second"] > 0 and result["stats"]


@pytest.mark.parametrize("mode", ["shadow", "replace"])
def test_the_interpreted_model_takes_no_hardware(
    mode: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(session, "COMPILED", False)
    assert main(["cosim", "saxpy", "--size", "tiny", "--set", "core.sms=2", "--rtl", COALESCER, "--mode", mode]) == 2
    assert capsys.readouterr().err == "lockstep: RTL runs with the compiled model only: unset NUMBA_DISABLE_JIT\n"


@pytest.mark.exhaustive
@pytest.mark.long
def test_classes_of_a_mechanism_reach_the_hardware(tmp_path: Path) -> None:
    with registered():
        arguments = ["saxpy", "--rtl", "scheduling", "--with", "trial-classes"]
        code, result = cosim(*arguments, json_to=tmp_path / "result.json")
    assert (code, result["checked"], result["mismatches"]) == (0, True, 0)


ELSEWHERE = ("regless", "sharing")  # verif/regless and verif/sharing run them in the kernels that they concern
HARDWARE = {name: each.blocks for name, each in MECHANISMS.items() if each.blocks and name not in ELSEWHERE}
SOME = {**HARDWARE, "warppool": ("warppool.mshr_metadata", "warppool.writeback")}  # all ten take long to compile


@pytest.mark.long
@pytest.mark.parametrize(
    ("mechanism", "blocks"),
    [
        *(pytest.param(*each, id=each[0]) for each in SOME.items()),
        pytest.param("warppool", HARDWARE["warppool"], id="warppool, all", marks=pytest.mark.exhaustive),
    ],
)
def test_every_block_of_a_mechanism(mechanism: str, blocks: Sequence[str], tmp_path: Path) -> None:
    rtl = ",".join(blocks)
    code, result = cosim("spmv", "--rtl", rtl, "--with", mechanism, json_to=tmp_path / "result.json")
    assert (code, result["mismatches"]) == (0, 0)
    assert set(result["blocks"]) == set(blocks)


@pytest.mark.long
def test_the_stalls_behind_a_register_file_that_refuses(tmp_path: Path) -> None:
    """Results wait, then the L1's answers; hardware and model agree in that too."""
    held = {}
    for refusals in (0, 12):
        options = ["--with", "warppool", "--set", f"core.write_refusals={refusals}"]
        code, result = cosim("spmv", "--rtl", "warppool.writeback", *options, json_to=tmp_path / "result.json")
        assert (code, result["checked"], result["mismatches"]) == (0, True, 0)
        held[refusals] = result["stats"]["warppool.answers_held_core_cycles"] / result["cycles"]
    assert held[12] > 0.1 > 10 * held[0]


@pytest.mark.exhaustive
@pytest.mark.long
def test_recorded_traffic_meets_mutants(tmp_path: Path) -> None:
    """Kernels on two GPUs: the mutants of each have the sizes of its blocks."""
    block, report = "warppool.thread_map_table", tmp_path / "report.json"
    run = ["--rtl", block, "--with", "warppool", "--sm", "1", "--record"]
    files: list[Path] = []
    for entries in (4, 8):
        traffic, setting = tmp_path / str(entries), f"warppool.maps={entries}"
        assert cosim("spmv", "--set", setting, *run, str(traffic), json_to=tmp_path / "result.json")[0] == 0
        files += traffic.iterdir()
    assert [path.name for path in files] == [f"{block}.sm1.0.npz"] * 2
    mutants = ["--level", "mutation", "--mutants", "40", "--seed", "1", "--json", str(report)]
    assert main(["verify", block, *mutants, "--replay", *map(str, files)]) == 0
    runs, bits, four, eight, *proofs = json.loads(report.read_text(encoding="utf-8"))["checks"]
    assert not bits["errors"] and "inverted bits" in bits["detail"]
    for entries, check in ((4, four), (8, eight)):
        assert f"entries={entries}" in check["name"] and check["data"]["kernels"] > 5
    assert runs["data"]["kernels"] == 0 and len(proofs) == 3
    assert all("refuted" in proof["detail"] for proof in proofs)
    assert main(["cosim", "saxpy", "--mode", "replace", *run, str(tmp_path)]) == 2


@pytest.mark.exhaustive
@pytest.mark.long
def test_a_unit_that_sleeps_when_the_launch_ends_has_counted_all_its_cycles(tmp_path: Path) -> None:
    arguments = ["--rtl", "warppool", "--with", "warppool", "--set", "warppool.quantum=100", "--mode", "replace"]
    code, result = cosim("histogram", *arguments, json_to=tmp_path / "result.json")
    assert (code, result["mismatches"]) == (0, 0)


@pytest.mark.exhaustive
@pytest.mark.long
def test_a_fault_stops_the_run(tmp_path: Path) -> None:
    makes = {COALESCER: faulty(COALESCER, "line_number", 3, 321)}
    job = Job("saxpy", size="tiny", settings=SETTINGS)
    result = run.cosim(job, COALESCER, sms=[1], folder=tmp_path, makes=makes)
    found = result["difference"]
    assert (found["block"], found["sm"], found["port"], found["cycle"]) == (COALESCER, 1, "o.line.payload.number", 321)
    assert result["mismatches"] == 1 and not result["checked"]
    assert {path.name for path in tmp_path.iterdir()} == {"report.txt", "report.json", "waves.vcd", "replay.npz"}


def test_the_core_cycle_is_that_of_the_run_loop() -> None:
    gpu = Gpu("gtx480", core_sms=2)
    instances = chosen(COALESCER, gpu.machine.instances, [1])
    models = [instance.record["binding"].tobytes() for instance in instances]
    session = Session(gpu.machine, instances, makes={COALESCER: faulty(COALESCER, "line_number", 3, 321)})
    kernel = kernels.find("saxpy")
    with pytest.raises(ModelFault) as stopped:
        kernel.run(gpu, gpu.load(kernel.ptx), kernel.setup("tiny", 1))
    found, stop = session.difference, stopped.value.stop
    assert found is not None and (found.core_cycle, found.sm) == (stop.cycle + 1, stop.sm)
    session.close()
    assert [instance.record["binding"].tobytes() for instance in instances] == models  # they play again


def test_a_fault_in_replace_shows_in_the_results() -> None:
    """A CTA starts on another SM than the dispatcher's model says."""
    makes = {DISPATCHER: faulty(DISPATCHER, "dispatch_sm", 0, 3)}
    result = run.cosim(Job("saxpy", size="tiny", settings=SETTINGS), DISPATCHER, mode="replace", makes=makes)
    assert result["mismatches"] > 0 and not result["checked"]
    assert any("cycles" in line or "lines" in line for line in result["difference"])


@pytest.mark.exhaustive
@pytest.mark.long
def test_a_lost_line_in_replace_stops_the_run() -> None:
    """Who waits for it waits for ever."""
    makes = {COALESCER: faulty(COALESCER, "line_valid", 0, 400)}
    perfect = {f"{cache}_cache.mode": "perfect" for cache in ("instruction", "constant")}
    job = Job("saxpy", size="tiny", settings={**SETTINGS, **perfect, "launch.no_progress": 20_000})
    result = run.cosim(job, COALESCER, mode="replace", makes=makes)
    assert result["mismatches"] > 0 and not result["checked"]
    assert any("the run with RTL stopped: saxpy: no progress" in line for line in result["difference"])


REFUSED = [["--rtl", "warppool.writeback"], ["--rtl", "nothing"], ["--sm", "7"], ["--sm", "a"]]


@pytest.mark.parametrize("arguments", REFUSED)
def test_what_is_not_there_is_refused(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["cosim", "saxpy", "--size", "tiny", "--set", "core.sms=2", *arguments]) == 2
    error = capsys.readouterr().err.strip().splitlines()[-1]
    assert error.startswith(f"lockstep: {arguments[0]} {arguments[1]}: ")
