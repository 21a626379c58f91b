"""Runs the cocotb bench of a block under Verilator or Icarus Verilog.

The exit code of a simulator does not tell that a cocotb test failed: the results file does, and here every run that was
asked for must be in it.
"""

from __future__ import annotations

import json
import random
import re
import shutil
import tempfile
import xml.etree.ElementTree as ElementTree
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from lockstep.sim.cosim.replay import load
from lockstep.verif import verilated
from lockstep.verif.blocks import Declaration
from lockstep.verif.power_up import stripped
from lockstep.verif.state import state
from lockstep.verif.trace import Run, Trace, kept, record, replayed

SIMULATORS = ("verilator", "icarus")
# cocotb would have pytest rewrite the assertions of every module that the bench imports, which takes seconds.
NO_REWRITING = {"COCOTB_REWRITE_ASSERTION_FILES": ""}


@dataclass(frozen=True)
class Reached:
    """The bits of each port that some cycle saw as 1, and those that all cycles saw as 1."""

    ones: dict[str, int] = field(default_factory=dict)
    never_zero: dict[str, int] = field(default_factory=dict)

    def take(self, columns: Mapping[str, np.ndarray]) -> None:
        """Add the values of a trace."""
        for name, rows in columns.items():
            some, always = (
                int.from_bytes(combine.reduce(rows, axis=0).tobytes(), "little")
                for combine in (np.bitwise_or, np.bitwise_and)
            )
            self.ones[name] = self.ones.get(name, 0) | some
            self.never_zero[name] = self.never_zero.get(name, -1) & always

    def bits(self) -> dict[str, int]:
        """How many of each port's bits were both."""
        return {name: (ones & ~self.never_zero[name]).bit_count() for name, ones in self.ones.items()}


@dataclass(frozen=True)
class Report:
    """All runs of one configuration. ``failures``: a line for each that the environment or a difference stopped.

    ``bins`` counts the cycles that hit each bin; ``reached`` tells the bits of ports that were both 0 and 1.
    """

    failures: list[str] = field(default_factory=list)
    bins: Counter[str] = field(default_factory=Counter)
    reached: Reached = field(default_factory=Reached)


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

    It powers up with contents that the runs determine: random ones under Verilator, unknown ones under Icarus. Under
    Verilator, the contract of its ports is bound to it, and what breaks that ends all runs. ``verilog`` takes the place
    of the block's own.
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
        traces: list[tuple[str, Mapping[int, Mapping[str, int]]]] = []
        for trace in _traces(declared, configuration, runs, cycles, replays, report):
            columns = {port.name: trace.packed(port) for port in ports}
            _write(folder / f"{len(traces)}.npz", trace, columns)
            traces.append((trace.name, trace.presets))
            report.reached.take(columns)
        if not traces:
            return report
        ships = configuration == declared.shipped
        inner = state(text, top) if ships or any(presets for _, presets in traces) else []
        if simulator == "verilator":
            build = verilated.simulator(text + declared.contract(configuration), top, ports, inner)
        else:
            build = folder
            (folder / f"{top}.v").write_text(text, encoding="utf-8")
            log = folder / "build.log"
            runner.build(
                sources=[folder / f"{top}.v"], hdl_toplevel=top, build_dir=build, log_file=log, timescale=("1ns", "1ps")
            )
        task = {
            "traces": traces,
            "inputs": {port.name: port.bits for port in ports if port.is_input},
            "outputs": {port.name: port.bits for port in ports if not port.is_input},
            "state": {each.path: each.words for each in inner if ships and not _may_change(declared, each.path)},
        }
        # What the runner does about failed tests, but only under pytest, and about a simulator that ends early.
        with suppress(SystemExit, RuntimeError):
            runner.test(
                test_module="lockstep.verif.cocotb_bench", hdl_toplevel=top, hdl_toplevel_lang="verilog",
                build_dir=build, test_dir=folder, results_xml=str(folder / "results.xml"),
                plusargs=["+verilator+rand+reset+2", f"+verilator+seed+{contents}"] if simulator == "verilator" else [],
                extra_env={"LOCKSTEP_TASK": json.dumps(task), **NO_REWRITING}, log_file=folder / "simulator.log",
            )  # fmt: skip
        results = _results(folder / "results.xml") if (folder / "results.xml").exists() else []
        if broken := _broken(folder):
            report.failures.append(f"{configuration}: {broken}")
        elif len(results) != len(traces):
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
            trace = record(declared, run, cycles, simulated=True)
        except AssertionError as error:
            report.failures.append(str(error))
        else:
            report.bins.update(trace.bins)
            yield trace
    for path in replays:
        yield replayed(declared, str(path), declared.configurations[configuration], kept(load(path)))


def _write(path: Path, trace: Trace, columns: Mapping[str, np.ndarray]) -> None:
    """A trace as the bench reads it: rows of bytes, lowest first, for each port, the reset, and whether it is idle."""
    rst, idle = (flags.astype(np.uint8)[:, None] for flags in (trace.reset, trace.idle))
    np.savez(path, **{"_rst": rst, "_idle": idle}, **columns)  # type: ignore[arg-type]  # no port begins with _


def _may_change(declared: Declaration, path: str) -> bool:
    """Whether a register may change in an idle cycle."""
    return any(re.fullmatch(pattern, path) for pattern in declared.idle_changes)


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


def _broken(folder: Path) -> str:
    """What a simulator says of the first assertion or assumption that fails."""
    found = re.search(r"\[(\d+)\].*Assertion failed in \S*\.(\w+)\.(\w+)", _log(folder))
    return f"the contract is broken at {found[1]} ns: {found[3]}" if found else ""


def _tail(folder: Path) -> str:
    return "\n".join(_log(folder).splitlines()[-30:])


def _log(folder: Path) -> str:
    log = folder / "simulator.log"
    return log.read_text(encoding="utf-8") if log.exists() else "(no log)"
