"""Replay beside execution, of all kernels: cycles and all statistics must be equal. A table in Markdown.

::

    $ python -m lockstep.verif.replays [KERNEL...] [--gpu NAME,...] [--with M,...] [--size tiny] [--json FILE]

Each kernel is recorded once on each GPU, without mechanisms, then executed and replayed with each of them. Exit code 1:
something differs.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from lockstep.sim import Gpu, kernels
from lockstep.sim.errors import UsageError
from lockstep.sim.traces.read import Trace
from lockstep.sim.traces.replay import replay
from lockstep.spec import registry

GPUS = ("gtx480", "gtx980", "tesla-c2050")
MECHANISMS = tuple(name for name, each in registry.MECHANISMS.items() if not each.values)
"""Those with which a trace can be replayed."""


@dataclass(frozen=True)
class Row:
    """A kernel on a GPU with a mechanism. ``differs``: statistics; ``refused``: why it was not replayed."""

    kernel: str
    gpu: str
    mechanism: str
    cycles: int = 0
    instructions: int = 0
    differs: tuple[str, ...] = ()
    refused: str = ""
    execution_seconds: float = 0.0
    replay_seconds: float = 0.0


def executed(name: str, gpu: str, mechanisms: Sequence[str], size: str, folder: Path | None = None) -> Gpu:
    """A device that has run a kernel, and recorded it into a folder if there is one."""
    kernel = kernels.find(name)
    device = Gpu(gpu, mechanisms)
    device.on_print = None
    module = device.load(kernel.ptx, kernel.registers)
    data = kernel.setup(size, 1)
    if folder is None:
        kernel.run(device, module, data)
    else:
        with device.recording(folder):
            kernel.run(device, module, data)
    return device


def replayed(folder: Path, gpu: str, mechanisms: Sequence[str]) -> Gpu:
    """A device that has replayed a trace."""
    device = Gpu(gpu, mechanisms)
    replay(Trace(folder), device)
    return device


def differing(one: Gpu, other: Gpu) -> tuple[str, ...]:
    """The statistics in which two devices differ, and ``cycles`` if a launch took others."""
    cycles = [run.cycles for run in one.runs] != [run.cycles for run in other.runs]
    return (*(["cycles"] if cycles else []), *(name for name, value in one.stats.items() if other.stats[name] != value))


def rows(name: str, gpu: str, mechanisms: Sequence[str], size: str) -> list[Row]:
    """A kernel on a GPU, with each mechanism."""
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place) / "trace"
        try:
            executed(name, gpu, [], size, folder)
        except UsageError as error:
            return [Row(name, gpu, mechanism, refused=f"not recorded: {error}") for mechanism in mechanisms]
        return [_row(name, gpu, mechanism, size, folder) for mechanism in mechanisms]


def _row(name: str, gpu: str, mechanism: str, size: str, folder: Path) -> Row:
    selected = [each for each in mechanism.split("+") if each != "baseline"]
    try:
        execution = executed(name, gpu, selected, size)
    except UsageError as error:
        return Row(name, gpu, mechanism, refused=f"not executed: {error}")
    cycles, instructions = (
        sum(getattr(run, what) for run in execution.runs) for what in ("cycles", "warp_instructions")
    )
    try:
        again = replayed(folder, gpu, selected)
    except UsageError as error:
        why = str(error).removeprefix(f"{folder}: ")
        return Row(name, gpu, mechanism, cycles, instructions, refused=why)
    seconds = [sum(run.wall_seconds for run in device.runs) for device in (execution, again)]
    return Row(name, gpu, mechanism, cycles, instructions, differing(execution, again), "", *seconds)


def shown(row: Row) -> str:
    """A row of the table."""
    outcome = row.refused or ("equal" if not row.differs else f"**differs**: {', '.join(row.differs[:3])}")
    return f"| {row.kernel} | {row.gpu} | {row.mechanism} | {row.cycles:,} | {row.instructions:,} | {outcome} |"


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m lockstep.verif.replays", description="Replay beside execution.")
    parser.add_argument("kernels", nargs="*", metavar="KERNEL", help="default: all")
    parser.add_argument("--gpu", default=",".join(GPUS))
    parser.add_argument("--with", dest="mechanisms", default=",".join(MECHANISMS))
    parser.add_argument("--size", default="tiny")
    parser.add_argument("--json")
    options = parser.parse_args(arguments)
    print("| kernel | GPU | mechanism | core cycles | warp instructions | replay |\n|---|---|---|---|---|---|")
    found: list[Row] = []
    for name in options.kernels or kernels.names():
        for gpu in options.gpu.split(","):
            for row in rows(name, gpu, options.mechanisms.split(","), options.size):
                found.append(row)
                print(shown(row), flush=True)
    wrong = [row for row in found if row.differs]
    refused = sum(bool(row.refused) for row in found)
    print(f"\n{len(found)} runs: {len(found) - len(wrong) - refused} equal, {refused} refused, {len(wrong)} differ")
    if options.json:
        Path(options.json).write_text(json.dumps([asdict(row) for row in found]), encoding="utf-8")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
