"""Blocks on an FPGA: what is counted is the block's own, and what cannot be placed is said."""

from __future__ import annotations

import json
import subprocess
from typing import Any

import pytest

from lockstep.cli import main as cli
from lockstep.rtl import configuration, yosys
from lockstep.sim.device import description
from lockstep.synth import fpga, gates

pytestmark = pytest.mark.hardware

GTX480 = description.load("gtx480")


@pytest.mark.long
def test_a_block_in_the_table(capsys: pytest.CaptureFixture) -> None:
    assert cli.main(["synth", "dyncore.core_gate", "--fpga", "ecp5", "--json", "-"]) == 0
    [block] = json.loads(capsys.readouterr().out)["blocks"]
    placed = block["fpga"]
    assert placed["device"] == fpga.DEVICE and placed["fits"]
    assert placed["flip_flops"] == block["register_bits"], "those of ports are not counted"
    assert placed["luts"] > block["levels"] and placed["block_rams"] == placed["memory_luts"] == 0
    assert 50 < placed["megahertz"] < 500 and placed["start"] and placed["end"]


@pytest.mark.exhaustive
@pytest.mark.long
def test_a_block_with_memories() -> None:
    """A table that is read with the clock, and a queue that is not."""
    placed = fpga.place(configuration.build("warppool.mshr_metadata", GTX480))
    assert placed.fits and placed.luts > 0 and placed.megahertz is not None and placed.megahertz > 20
    assert (placed.block_rams, placed.memory_luts) == (3, 128)


def placed_module() -> gates.Module:
    """A flip-flop between an input and an output."""
    ports = {"clk": ("input", [2]), "rst": ("input", [3]), "policy": ("input", [4]), "a": ("input", [5, 6]),
             "x": ("output", [7, "0"])}  # fmt: skip
    return {
        "ports": {name: {"direction": direction, "bits": bits} for name, (direction, bits) in ports.items()},
        "cells": {"own": {"type": "TRELLIS_FF", "connections": {"CLK": [2], "DI": [5], "Q": [7]}}},
    }


def test_every_timed_port_gets_a_flip_flop() -> None:
    module = placed_module()
    fpga._surround(module, ("rst", "policy"))
    added = {name: cell["connections"] for name, cell in module["cells"].items() if name != "own"}
    assert {name: (found["DI"], found["Q"]) for name, found in added.items()} == {
        "port a[0]": ([8], [5]), "port a[1]": ([9], [6]), "port x[0]": ([7], [10]),
    }  # fmt: skip
    assert all(found["CLK"] == [2] for found in added.values())
    assert [module["ports"][name]["bits"] for name in ("rst", "policy", "a", "x")] == [[3], [4], [8, 9], [10, "0"]]


def failing(monkeypatch: pytest.MonkeyPatch, error: str) -> None:
    """nextpnr fails with this error."""
    monkeypatch.setattr(fpga, "_mapped", lambda _: placed_module())
    monkeypatch.setattr(
        fpga.processes, "run", lambda command, _: subprocess.CompletedProcess(command, 1, "", f"Info: x\n{error}\n")
    )


def test_a_block_that_does_not_fit(monkeypatch: pytest.MonkeyPatch) -> None:
    failing(monkeypatch, "ERROR: Unable to place cell 'x', no BELs remaining to implement cell type 'TRELLIS_COMB'")
    placed = fpga.place(configuration.build("dyncore.core_gate", GTX480))
    assert not placed.fits and placed.megahertz is None and placed.flip_flops == 1


def test_a_failure_is_said(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture) -> None:
    failing(monkeypatch, "ERROR: odd")
    with pytest.raises(fpga.PlaceError, match="odd"):
        fpga.place(configuration.build("dyncore.core_gate", GTX480))
    monkeypatch.undo()
    monkeypatch.setattr(fpga, "installed", lambda: False)
    assert cli.main(["synth", "dyncore.core_gate", "--fpga", "ecp5"]) == 2
    assert "pip install 'lockstep-sm[fpga]'" in capsys.readouterr().err
    assert cli.main(["synth", "dyncore.core_gate", "--fpga", "ice40"]) == 2
    assert "known are ecp5" in capsys.readouterr().err


def test_where_the_better_mapper_fails_the_other_maps(monkeypatch: pytest.MonkeyPatch) -> None:
    """It does for some large blocks."""
    run, scripts = yosys.run, []

    def noted(script: list[str], *rest: Any) -> dict[str, str]:
        scripts.append(script)
        if fpga._MAP in script:
            raise yosys.YosysError("exit code 1")
        return run(script, *rest)

    monkeypatch.setattr(yosys, "run", noted)
    monkeypatch.setattr(fpga, "_route", lambda module: None)
    placed = fpga.place(configuration.build("dyncore.activity_counter", GTX480))
    assert len(scripts) == 2 and placed.flip_flops == 35 and placed.luts > 20
