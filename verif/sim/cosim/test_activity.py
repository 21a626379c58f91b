"""The gates of a block play a recording: energy per kind, and outputs that are not as recorded."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from lockstep.cli.main import main
from lockstep.models import blocks
from lockstep.sim.cosim.library import elements
from lockstep.verif.sim.cosim.test_replay import BLOCK, parts, write
from lockstep.verif.synth import test_synthesis as cells

pytestmark = [pytest.mark.hardware, pytest.mark.filterwarnings("ignore::amaranth.hdl.UnusedElaboratable")]

LIBRARY = (
    cells.LIBRARY.replace("time_unit", 'nom_voltage : 1; voltage_unit : "1V"; leakage_power_unit : "1nW"; time_unit')
    .replace("{ area", "{ cell_leakage_power : 1; area")
    .replace("{ direction : output;", '{ direction : output; internal_power() { power(scalar) { values("0.001"); } }')
)
"""Pins of 1 fF at 1 V; an edge of an output takes 1 fJ in the cell."""


@pytest.fixture
def library(tmp_path: Path) -> str:
    (tmp_path / "cells.lib").write_text(LIBRARY, encoding="utf-8")
    return str(tmp_path / "cells.lib")


def recorded(path: Path, ready: int = 1) -> str:
    """Three idle cycles, in which the block takes answers."""
    about, arrays = parts()
    offset = {name: where for name, (where, _) in elements(blocks.ports(BLOCK))}["o.answer.ready"]
    arrays["words"] = np.array([offset // 8], "u2")
    arrays["values"] = np.array([ready << offset % 8 * 8], "u8")
    write(path / "kept.npz", about, arrays)
    return str(path / "kept.npz")


def measured(tmp_path: Path, library: str, *options: str) -> dict[str, Any]:
    assert main(["energy", recorded(tmp_path), "--liberty", library, "--json", str(tmp_path / "e.json"), *options]) == 0
    (found,) = json.loads((tmp_path / "e.json").read_text(encoding="utf-8"))
    return dict(found)


def test_an_idle_block_has_its_clock_and_leakage(tmp_path: Path, library: str) -> None:
    found = measured(tmp_path, library, "--period", "1000")
    kinds = found["femtojoules"]
    assert (found["block"], found["cycles"]) == (BLOCK, 3) and found["flip_flops"] > 0
    assert kinds["leakage"] == 3 * found["cells"] and kinds["switching"] == kinds["internal"] == 0
    assert kinds["clock"] == 3 * found["flip_flops"]  # half a femtojoule for each edge at 1 V and 1 fF
    assert found["total_femtojoules"] == sum(kinds.values())
    assert found["milliwatts"] == pytest.approx(found["total_femtojoules"] / 3 / 1000 / 1000)
    assert measured(tmp_path, library, "--cycles", "2")["cycles"] == 2


def test_outputs_that_differ(tmp_path: Path, library: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["energy", recorded(tmp_path, ready=0), "--liberty", library]) == 1
    says = f"the gates of {BLOCK} differ from the RTL: cycle 0: answer_ready: recorded 0x0, netlist 0x1"
    assert says in capsys.readouterr().err


@pytest.mark.parametrize(
    ("options", "says"),
    [
        (["--cycles", "0"], "--cycles 0: must be 1 or more"),
        (["--period", "nan"], "--period nan: must be above 0, in nanoseconds"),
        (["--liberty", __file__], "so it is not a library of standard cells"),
        (["--liberty", "no.lib"], "no.lib"),
    ],
)
def test_bad_input(
    options: list[str], says: str, tmp_path: Path, library: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["energy", recorded(tmp_path), "--liberty", library, *options]) == 2
    assert says in capsys.readouterr().err


def test_files_of_another_kind_are_refused(tmp_path: Path, library: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["energy", recorded(tmp_path)]) == 2
    assert "kept.npz: a recording, of whose gates --liberty FILE gives the energies" in capsys.readouterr().err
    assert main(["energy", "run.json", "--liberty", library]) == 2
    assert "is for recordings, *.npz, of which the files have none" in capsys.readouterr().err


def test_gates_stand_beside_the_events_of_a_run(
    tmp_path: Path, library: str, capsys: pytest.CaptureFixture[str]
) -> None:
    run = str(tmp_path / "run.json")
    assert main(["run", "saxpy", "--size", "tiny", "--json", run]) == 0
    assert main(["energy", run, "--json", str(tmp_path / "alone.json")]) == 0
    capsys.readouterr()
    files = [recorded(tmp_path), run]
    assert main(["energy", *files, "--liberty", library, "--json", str(tmp_path / "both.json")]) == 0
    events, gates = json.loads((tmp_path / "both.json").read_text(encoding="utf-8"))
    assert [events] == json.loads((tmp_path / "alone.json").read_text(encoding="utf-8"))
    assert [gates] == [measured(tmp_path, library)]
    saved = json.loads(Path(run).read_text(encoding="utf-8"))
    power = events["total_femtojoules"] * saved["configuration"]["clocks.core"] / saved["cycles"] / 1e6
    shown = capsys.readouterr().out
    assert f"{power:,.3f}" in shown and shown.index("mean power, mW") < shown.index("flip-flops")
