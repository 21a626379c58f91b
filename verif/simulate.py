"""Runs the cocotb bench of a block under Verilator or Icarus Verilog.

The exit code of a simulator does not tell that a cocotb test failed: the results file does, and here every run that was
asked for must be in it.
"""

from __future__ import annotations

import json
import shutil
import tempfile
import xml.etree.ElementTree as ElementTree
from collections import Counter
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from lockstep.verif import verilated
from lockstep.verif.blocks import Declaration
from lockstep.verif.trace import Run

SIMULATORS = ("verilator", "icarus")
# cocotb would have pytest rewrite the assertions of every module that the bench imports, which takes seconds.
NO_REWRITING = {"COCOTB_REWRITE_ASSERTION_FILES": ""}


@dataclass(frozen=True)
class Result:
    """One run in a simulator; ``failure`` is empty if all outputs were equal and the environment found no fault."""

    name: str
    failure: str
    seconds: float


@dataclass(frozen=True)
class Report:
    """All runs of one configuration. ``bins``: cycles that hit each bin."""

    results: list[Result]
    bins: Counter[str]

    @property
    def failures(self) -> list[str]:
        return [f"{result.name}: {result.failure}" for result in self.results if result.failure]


def simulate(
    declared: Declaration,
    configuration: str,
    runs: Sequence[Run],
    cycles: int | None = None,
    replays: Sequence[Path] = (),
    simulator: str = "verilator",
    verilog: str = "",
) -> Report:
    """Play runs, all of one configuration, and replay files to the hardware in one process of a simulator.

    ``verilog`` takes the place of the block's own.
    """
    from cocotb_tools.runner import get_runner

    ports = declared.ports(configuration)
    top = declared.name
    text = verilog or declared.verilog(configuration)
    runner = get_runner(simulator)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        if simulator == "verilator":
            build = verilated.simulator(text, top, ports)
        else:
            build = folder
            (folder / f"{top}.v").write_text(text)
            log = folder / "build.log"
            runner.build(
                sources=[folder / f"{top}.v"], hdl_toplevel=top, build_dir=build, log_file=log, timescale=("1ns", "1ps")
            )
        task = {
            "block": declared.block, "configuration": configuration, "cycles": cycles,
            "parameters": dict(declared.configurations[configuration]),
            "runs": [(run.shape, run.seed) for run in runs], "replays": [str(path.absolute()) for path in replays],
            "bins": str(folder / "bins.jsonl"),
        }  # fmt: skip
        with suppress(SystemExit):  # what the runner does about failed tests under pytest, and only there
            runner.test(
                test_module="lockstep.verif.cocotb_bench", hdl_toplevel=top, hdl_toplevel_lang="verilog",
                build_dir=build, test_dir=folder, results_xml=str(folder / "results.xml"),
                extra_env={"LOCKSTEP_RUNS": json.dumps(task), **NO_REWRITING}, log_file=folder / "simulator.log",
            )  # fmt: skip
        results = _results(folder / "results.xml")
        if len(results) != len(runs) + len(replays):
            raise RuntimeError(f"{declared.block}: {simulator} ran {len(results)} tests:\n{_tail(folder)}")
        bins = Counter[str]()
        if (folder / "bins.jsonl").exists():
            for line in (folder / "bins.jsonl").read_text().splitlines():
                bins.update(json.loads(line)[1])
    return Report(results, bins)


def available(simulator: str) -> bool:
    return simulator == "verilator" or shutil.which("iverilog") is not None


def _results(path: Path) -> list[Result]:
    """The tests in a results file."""
    results = []
    for case in ElementTree.parse(path).iter("testcase"):
        failure = next((child for child in case if child.tag in ("failure", "error")), None)
        message = ""
        if failure is not None:
            told = failure.get("error_msg") or failure.get("message") or failure.text or "failed"
            message = told.strip().splitlines()[0]
        results.append(Result(case.get("name", ""), message, float(case.get("time", 0))))
    return results


def _tail(folder: Path) -> str:
    log = folder / "simulator.log"
    return "\n".join(log.read_text().splitlines()[-30:]) if log.exists() else "(no log)"
