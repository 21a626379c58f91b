"""Blocks as the gates that synthesis maps them to, in lockstep with their models through a kernel."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from lockstep.cli.main import main
from lockstep.sim.cosim import replay
from lockstep.synth import mapped
from lockstep.verif.synth.test_synthesis import LIBRARY

OPTIONS = ["--size", "tiny", "--with", "warppool", "--set", "core.sms=1", "--set", "warppool.quantum=64"]


@pytest.mark.exhaustive
@pytest.mark.long
def test_gates_follow_the_model(tmp_path: Path) -> None:
    block = "lsu.intra_warp_coalescer"
    kept = tmp_path / "result.json"
    assert main(["cosim", "spmv", *OPTIONS, "--rtl", block, "--gates", "--json", str(kept)]) == 0
    result = json.loads(kept.read_text(encoding="utf-8"))
    assert (result["blocks"], result["gates"], result["mismatches"]) == ([block], "generic", 0)
    assert result["compared_cycles"] >= result["cycles"]


@pytest.mark.long
def test_cells_of_a_library(tmp_path: Path) -> None:
    """Each does what the library says that it does."""
    library = tmp_path / "cells.lib"
    library.write_text(LIBRARY, encoding="utf-8")
    kept = tmp_path / "result.json"
    options = ["--rtl", "warppool.writeback", "--liberty", str(library), "--json", str(kept)]
    assert main(["cosim", "spmv", *OPTIONS, *options]) == 0
    assert json.loads(kept.read_text(encoding="utf-8"))["gates"] == str(library)


@pytest.mark.exhaustive
@pytest.mark.long
def test_a_wrong_gate_is_found_and_found_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    right = mapped._netlist

    def wrong(*arguments: object) -> str:
        return right(*arguments).replace(" & ", " | ", 1)  # type: ignore[arg-type]

    monkeypatch.setattr(mapped, "_netlist", wrong)
    assert main(["cosim", "spmv", *OPTIONS, "--rtl", "warppool.writeback", "--gates", "-o", str(tmp_path)]) == 1
    assert "model and RTL differ: warppool.writeback[0], SM 0" in capsys.readouterr().err
    again = json.loads((tmp_path / "report.json").read_text(encoding="utf-8"))["again"].split()
    assert again[-1] == "--gates" and replay.main(again[3:]) == 1
    assert replay.main(again[3:-1]) == 0  # the RTL is right


def test_a_library_that_is_none(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["cosim", "saxpy", "--liberty", str(tmp_path / "none")]) == 2
    assert "--liberty" in capsys.readouterr().err
