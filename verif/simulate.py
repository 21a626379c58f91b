"""Runs the cocotb bench of a block under Verilator or Icarus Verilog.

The exit code of a simulator does not tell that a cocotb test failed: the results file does, and here every run that was
asked for must be in it.
"""

from __future__ import annotations

import json
import random
import shutil
import tempfile
import xml.etree.ElementTree as ElementTree
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from lockstep.rtl.flat import FlatPort
from lockstep.sim.cosim.replay import load
from lockstep.verif import verilated
from lockstep.verif.blocks import Declaration
from lockstep.verif.power_up import stripped
from lockstep.verif.trace import Run, Trace, kept, record, replayed

SIMULATORS = ("verilator", "icarus")
# cocotb would have pytest rewrite the assertions of every module that the bench imports, which takes seconds.
NO_REWRITING = {"COCOTB_REWRITE_ASSERTION_FILES": ""}


@dataclass(frozen=True)
class Report:
    """All runs of one configuration. ``failures``: a line for each that the environment or a difference stopped.

    ``bins`` counts the cycles that hit each bin.
    """

    failures: list[str] = field(default_factory=list)
    bins: Counter[str] = field(default_factory=Counter)


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

    It powers up with contents that the runs determine: random ones under Verilator, unknown ones under Icarus.
    ``verilog`` takes the place of the block's own.
    """
    from cocotb_tools.runner import get_runner

    ports = declared.ports(configuration)
    top = declared.name
    text = stripped(verilog or declared.verilog(configuration))
    runner = get_runner(simulator)
    report = Report()
    contents = random.Random(f"{declared.block} {[*map(str, runs)]}").randrange(1, 1 << 31)  # 0 is the time
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        traces: list[str] = []
        for trace in _traces(declared, configuration, runs, cycles, replays, report):
            _write(folder / f"{len(traces)}.npz", trace, ports)
            traces.append(trace.name)
        if not traces:
            return report
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
            "traces": traces,
            "inputs": [port.name for port in ports if port.is_input],
            "outputs": {port.name: port.bits for port in ports if not port.is_input},
        }
        with suppress(SystemExit):  # what the runner does about failed tests under pytest, and only there
            runner.test(
                test_module="lockstep.verif.cocotb_bench", hdl_toplevel=top, hdl_toplevel_lang="verilog",
                build_dir=build, test_dir=folder, results_xml=str(folder / "results.xml"),
                plusargs=["+verilator+rand+reset+2", f"+verilator+seed+{contents}"] if simulator == "verilator" else [],
                extra_env={"LOCKSTEP_TASK": json.dumps(task), **NO_REWRITING}, log_file=folder / "simulator.log",
            )  # fmt: skip
        results = _results(folder / "results.xml")
        if len(results) != len(traces):
            raise RuntimeError(f"{declared.block}: {simulator} ran {len(results)} tests:\n{_tail(folder)}")
        report.failures.extend(failure for failure in results if failure)
    return report


def available(simulator: str) -> bool:
    return simulator == "verilator" or shutil.which("iverilog") is not None


def _traces(
    declared: Declaration,
    configuration: str,
    runs: Sequence[Run],
    cycles: int | None,
    replays: Sequence[Path],
    report: Report,
) -> Iterator[Trace]:
    """What the golden model does; where its environment finds fault with it, the report says so."""
    for run in runs:
        try:
            trace = record(declared, run, cycles)
        except AssertionError as error:
            report.failures.append(str(error))
        else:
            report.bins.update(trace.bins)
            yield trace
    for path in replays:
        yield replayed(declared, str(path), declared.configurations[configuration], kept(load(path)))


def _write(path: Path, trace: Trace, ports: Sequence[FlatPort]) -> None:
    """A trace as the bench reads it: rows of bytes, lowest first, for each port and for the reset."""
    columns = {port.name: trace.packed(port) for port in ports}
    np.savez(path, rst=trace.reset.astype(np.uint8)[:, None], **columns)  # type: ignore[arg-type]


def _results(path: Path) -> list[str]:
    """For each test in a results file why it failed, or nothing."""
    results = []
    for case in ElementTree.parse(path).iter("testcase"):
        failure = next((child for child in case if child.tag in ("failure", "error")), None)
        told = ""
        if failure is not None:
            told = failure.get("error_msg") or failure.get("message") or failure.text or "failed"
        results.append(told.strip().split("\n")[0])
    return results


def _tail(folder: Path) -> str:
    log = folder / "simulator.log"
    return "\n".join(log.read_text().splitlines()[-30:]) if log.exists() else "(no log)"
