"""Sizes and speeds of traces: bytes per warp instruction beside Accel-Sim's text, and replay beside execution.

::

    $ python -m lockstep.verif.trace_figures [KERNEL...] [--size small] [--gpu gtx480] [--rounds 5]
    $ python -m lockstep.verif.trace_figures [KERNEL...] [--size small] [--gpu gtx480] --shares
    $ python -m lockstep.verif.trace_figures [KERNEL...] [--size small] [--gpu gtx480] --memory

The text is what Accel-Sim's tracer would write of the same warp instructions, after the description of its format, with
PTX's opcodes in the place of SASS's; xz is what its users pack it with. Executions and replays take turns; of each the
fastest counts. A recording is timed once. *Shares* are sampled (``lockstep bench --profile``): of an execution, what
computing values takes, and how many times as fast a replay would be that did all else and nothing more; of a replay,
what its trace takes, and accesses to memory. *Memory* is the most that a process has, of each a new one.
"""

from __future__ import annotations

import argparse
import itertools
import lzma
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np

from lockstep.models.execution.isa import PT, RZ, Group
from lockstep.sim import Gpu
from lockstep.sim.study import replayed as replays
from lockstep.sim.study.job import Job
from lockstep.sim.study.own_time import sampled
from lockstep.sim.traces import schema
from lockstep.sim.traces.read import Trace
from lockstep.verif.replays import executed, replayed

KERNELS = ("saxpy", "BlackScholes", "CP", "mri-q", "binomialOptions", "sgemm", "MersenneTwister", "bfs", "spmv", "AES")
MEMORY = (Group.MEMORY, Group.ATOMIC, Group.TEXTURE)


PEAK = """
import sys
from pathlib import Path
from lockstep.cli.main import main
code = main(sys.argv[1:])
lines = Path("/proc/self/status").read_text(encoding="utf-8").splitlines()
print(next(line for line in lines if line.startswith("VmHWM")))
sys.exit(code)
"""
"""A program that runs a command and tells the most memory that it has had: Linux counts a program's from its begin."""


def texts(trace: Trace, launch: schema.Launch) -> Iterator[bytes]:
    """The lines of Accel-Sim's format for a launch, warp by warp."""
    code, warps = trace.code(launch), trace.warps(launch)
    rows = code.instructions
    heads = [_head(row, text) for row, text in zip(rows, code.kernel.text, strict=True)]
    guarded, accesses = (rows["guard"] != PT).tolist(), np.isin(rows["group"], MEMORY).tolist()
    for number in range(warps.blocks):
        block = warps.block(number)
        columns = {name: column.tolist() for name, column in block.columns.items()}
        columns["stride"] = block.columns["stride"].view(np.int32).tolist()
        at = dict.fromkeys(("run", "guard", "access", "address"), 0)
        for piece, runs in enumerate(block.table["runs"].tolist()):
            yield f"\nwarp = {piece}\ninsts = {int(block.table['instructions'][piece])}\n".encode()
            for _ in range(runs):
                pc, active = columns["run_pc"][at["run"]], columns["run_active"][at["run"]]
                for each in range(pc, pc + columns["run_count"][at["run"]]):
                    lanes = active
                    if guarded[each]:
                        lanes = columns["guard"][at["guard"]]
                        at["guard"] += 1
                    tail = _addresses(columns, at) if accesses[each] and lanes else "0"
                    yield f"{16 * each:04x} {lanes:08x} {heads[each]} {tail} 0\n".encode()
                at["run"] += 1


def _head(row: np.void, text: str) -> str:
    words = sum(int(word) << 64 * k for k, word in enumerate(row["writes"].tolist()))
    writes = [f"R{k}" for k in range(RZ) if words >> k & 1][:1]
    reads = [f"R{register}" for register in row["read"][: int(row["reads"])].tolist()]
    opcode = next((word for word in text.split() if not word.startswith("@")), "nop").rstrip(";")
    return " ".join([str(len(writes)), *writes, opcode, str(len(reads)), *reads])


def _addresses(columns: dict[str, list[int]], at: dict[str, int]) -> str:
    k = at["access"]
    at["access"] += 1
    count = columns["lanes"][k].bit_count()
    if not columns["listed"][k]:
        return f"4 1 0x{0x7F0000000000 + columns['base'][k]:x} {columns['stride'][k]}"
    listed = columns["address"][at["address"] : at["address"] + count]
    at["address"] += count
    differences = (str(two - one) for one, two in itertools.pairwise(listed))
    return f"4 2 0x{0x7F0000000000 + listed[0]:x} {' '.join(differences)}"


def seconds(device: Gpu) -> float:
    return sum(run.wall_seconds for run in device.runs)


def row(name: str, gpu: str, size: str, rounds: int) -> str:
    """A kernel's line of the table."""
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place) / "trace"
        recording = seconds(executed(name, gpu, [], size, folder))
        trace = Trace(folder)
        stored = sum(file.stat().st_size for file in folder.iterdir() if not file.name.endswith(".ptx"))
        instructions = sum(launch.instructions for launch in trace.manifest.launches)
        machine, plain, packed = lzma.LZMACompressor(), 0, 0
        for launch in trace.manifest.launches:
            for line in texts(trace, launch):
                plain += len(line)
                packed += len(machine.compress(line))
        packed += len(machine.flush())
        times = [(seconds(executed(name, gpu, [], size)), seconds(replayed(folder, gpu, []))) for _ in range(rounds)]
    execution, replay = (min(column) for column in zip(*times, strict=True))
    cells = [
        f"{instructions:,}",
        *(f"{bytes_ / instructions:.2f}" for bytes_ in (stored, plain, packed)),
        *(f"{instructions / time / 1000:,.0f}" for time in (execution, replay)),
        f"{execution / replay:.2f}",
        f"{recording / execution:.1f}",
    ]
    return f"| {name} | {' | '.join(cells)} |"


def shares(name: str, gpu: str, size: str) -> str:
    """A kernel's line of the table of shares."""
    execution = sampled(Job(name, gpu, size))["own_time"]["parts"]
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place) / "trace"
        executed(name, gpu, [], size, folder)
        replay = sampled(replays.job(str(folder)))["own_time"]["parts"]
    cells = [f"{100 * execution['execution']:.0f}", f"{1 / (1 - execution['execution']):.2f}"]
    return f"| {name} | {' | '.join([*cells, *(f'{100 * replay[part]:.0f}' for part in ('trace', 'execution'))])} |"


def peak(*arguments: str) -> int:
    """The most memory, in MiB, that a command of ``lockstep`` has."""
    told = subprocess.run([sys.executable, "-c", PEAK, *arguments], check=True, capture_output=True,
                          encoding="utf-8").stdout  # fmt: skip
    return int(told.split()[-2]) >> 10


def memory(name: str, gpu: str, size: str) -> str:
    """A kernel's line of the table of memory."""
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place) / "trace"
        what = name, "--gpu", gpu, "--size", size
        recording = "trace", "record", *what, "-o", str(folder)
        peaks = [peak(*each) for each in (("run", *what), recording, ("run", "--trace", str(folder)))]
        instructions = sum(launch.instructions for launch in Trace(folder).manifest.launches)
    return f"| {name} | {size} | {instructions:,} | {' | '.join(map(str, peaks))} |"


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(prog="python -m lockstep.verif.trace_figures", description="Sizes and speeds.")
    parser.add_argument("kernels", nargs="*", metavar="KERNEL", default=list(KERNELS))
    parser.add_argument("--size", default="small")
    parser.add_argument("--gpu", default="gtx480")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--shares", action="store_true", help="what execution and trace take, instead")
    parser.add_argument("--memory", action="store_true", help="the most memory that each needs, instead")
    options = parser.parse_args(arguments)
    executed("saxpy", options.gpu, [], "tiny")  # so that nothing is compiled while time runs
    if options.memory:
        print("| kernel | size | warp instructions | execution, MiB | recording | replay |\n|---|---|---|---|---|---|")
        for name in options.kernels:
            print(memory(name, options.gpu, options.size), flush=True)
        return
    if options.shares:
        print("| kernel | execution: values, % | at most | replay: trace, % | accesses, % |\n|---|---|---|---|---|")
        shares("saxpy", options.gpu, "tiny")  # so that nothing is compiled while samples are taken
        for name in options.kernels:
            print(shares(name, options.gpu, options.size), flush=True)
        return
    print("| kernel | warp instructions | bytes each | text | text, xz | execution, kwips | replay, kwips | "
          "replay / execution | recording / execution |\n|---|---|---|---|---|---|---|---|---|")  # fmt: skip
    for name in options.kernels:
        print(row(name, options.gpu, options.size, options.rounds), flush=True)


if __name__ == "__main__":
    main()
