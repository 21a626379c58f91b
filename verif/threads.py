"""Runs with several threads beside runs with one: the same bits, and how much sooner.

::

    $ python -m lockstep.verif.threads [KERNEL...] [--size small] [--gpu GPU] [--with M,...] [--set KEY=VALUE]
                                       [--threads 2] [--rounds 7] [--busy 1]
    $ lockstep verify threads --level random

The first prints times: runs in lockstep, in windows with one thread, and with several take turns, and medians count.
The second compares all kernels, with each mechanism and with pairs of them, in each of the ways (``ways.py``), and
programs that race.
"""

from __future__ import annotations

import argparse
import hashlib
import random
import statistics
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from lockstep.sim import Gpu, kernels
from lockstep.sim.device import description
from lockstep.sim.errors import UsageError
from lockstep.verif import arguments, combinations
from lockstep.verif.races import race, stale
from lockstep.verif.ways import LINES, LOCKSTEP, WAYS, Way, set_way

TARGET = "threads"
GPUS = ("gtx480", "gtx980", "gtx280")
RACES = 2000
REPEATS = 50  # of the raciest of a hundred
PAIRS = 20

Observation = dict[str, Any]


def observe(
    name: str, gpu_name: str, mechanisms: Sequence[str], way: Way = LOCKSTEP,
    settings: Mapping[str, Any] | None = None, skip: bool = True,
) -> Observation:  # fmt: skip
    """What a kernel leaves behind at size tiny."""
    kernel = kernels.find(name)
    gpu = Gpu(gpu_name, mechanisms, {**LINES, **(settings or {})})
    gpu.on_print = None
    gpu.machine.skip = skip
    set_way(gpu, way)
    kernel.run(gpu, gpu.load(kernel.ptx, kernel.registers), kernel.setup("tiny", 1))
    return {
        "counts": [{count: values.tolist() for count, values in run.raw.items()} for run in gpu.runs],
        "timeline": [{each: column.tolist() for each, column in run.timeline.items()} for run in gpu.runs],
        "memory": hashlib.sha256(gpu.memory.contents.tobytes()).hexdigest(),
    }


def differences(name: str, gpu: str, mechanisms: Sequence[str], **others: Any) -> list[str]:
    """What several threads change in a kernel, a line each."""
    one = observe(name, gpu, mechanisms, **others)
    found = []
    for way in WAYS:
        several = observe(name, gpu, mechanisms, way, **others)
        what = [key for key in ("timeline", "memory") if one[key] != several[key]]
        for mine, its in zip(one["counts"], several["counts"], strict=True):
            what += [count for count in mine if mine[count] != its[count]]
        if what:
            found.append(f"{name}, {gpu}, {'+'.join(mechanisms)}, {way}: {', '.join(dict.fromkeys(what))}")
    return found


def check(gpu: str, mechanisms: Sequence[str], names: Sequence[str]) -> tuple[list[str], str]:
    """What is wrong on a GPU with mechanisms, and how many kernels were compared; some have no room for a CTA there."""
    errors, refused = [], 0
    for name in names:
        try:
            errors += differences(name, gpu, mechanisms)
        except UsageError:
            refused += 1
    return errors, f"{len(names) - refused} kernels, {refused} refused"


def fits(gpu: str, mechanisms: Sequence[str]) -> bool:
    """Whether a GPU can have these mechanisms."""
    try:
        description.load(gpu, LINES, mechanisms)
    except UsageError:
        return False
    return True


def pairs(seed: int) -> list[combinations.Pair]:
    """Some pairs of mechanisms."""
    able = [pair for pair in combinations.pairs() if fits("gtx480", pair)]
    return random.Random(seed).sample(able, min(PAIRS, len(able)))


def races(seeds: Sequence[int], repeats: int = 0) -> list[str]:
    """The seeds of programs that race which come out otherwise in windows.

    The raciest, in which most lines are stale, runs with several threads as many times more as ``repeats`` says.
    """
    lockstep = {seed: race(seed) for seed in seeds}
    raciest = max(seeds, key=lambda seed: stale(lockstep[seed]))
    tries = [(seed, way) for seed in seeds for way in WAYS]
    tries += [(raciest, way) for way in WAYS if way.threads > 1] * repeats
    return [f"seed {seed}, {way}" for seed, way in tries if race(seed, way) != lockstep[seed]]


def seconds(name: str, options: argparse.Namespace, threads: int) -> tuple[float, str]:
    """Seconds that the launches of a kernel take, and why it had one thread, if so; with 0 threads, in lockstep."""
    kernel = kernels.find(name)
    gpu = Gpu(options.gpu, options.mechanisms, {**LINES, **options.settings}, threads=max(threads, 1))
    gpu.on_print = None
    if threads == 0:
        gpu.machine.team.length = 0
    data, module = kernel.setup(options.size, 1), gpu.load(kernel.ptx, kernel.registers)
    runs: list[tuple[float, str]] = []
    gpu.after_launch.append(lambda run: runs.append((run.wall_seconds, run.one_thread)))
    kernel.run(gpu, module, data)
    return sum(wall for wall, _ in runs), next((reason for _, reason in runs if reason), "")


def main(words: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(prog="python -m lockstep.verif.threads", description="Times of several threads.")
    arguments.runs(parser)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--busy", type=int, default=0, metavar="N", help="processes that want a core meanwhile (0)")
    options = arguments.parsed(parser, words)
    print(f"| kernel | s, lockstep | s, one thread | s, {options.threads} threads | times as fast as one |")
    print("|---|---|---|---|---|")
    with busy(options.busy):
        for name in options.kernels:
            print(_row(name, options), flush=True)


@contextmanager
def busy(count: int) -> Iterator[None]:
    """Some processes beside, each of which takes what it gets of a core."""
    processes = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(count)]
    try:
        yield
    finally:
        for process in processes:
            process.kill()
            process.wait()


def _row(name: str, options: argparse.Namespace) -> str:
    """A kernel's times."""
    times: dict[int, list[float]] = {0: [], 1: [], options.threads: []}
    for _ in range(options.rounds):
        for threads, found in times.items():
            wall, reason = seconds(name, options, threads)
            found.append(wall)
    lockstep, one, several = (statistics.median(found) for found in times.values())
    note = f" (one thread: {reason})" if reason else ""
    return f"| {name} | {lockstep:.2f} | {one:.2f} | {several:.2f} | {one / several:.2f}{note} |"


if __name__ == "__main__":
    main()
