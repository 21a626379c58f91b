"""What a change of the model's structure must leave as it was: every statistic, cycle and byte of memory of whole runs.

``python -m lockstep.verif.unchanged record FILE`` keeps them, ``... compare FILE`` runs the same again and names what
differs. Both take ``--size``, and ``--kernels``, ``--gpus`` and ``--mechanisms`` with names between commas; without
them, every kernel on every GPU, alone and with every mechanism. Instances of a GPU's SMs are compared too.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import multiprocessing
import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from lockstep.sim import Gpu, kernels
from lockstep.sim.device import description
from lockstep.spec.files import write
from lockstep.spec.registry import MECHANISMS

Run = tuple[str, str, str, str]
"""Kernel, GPU, mechanisms, size."""


def _hash(value: bytes) -> str:
    return hashlib.sha256(value).hexdigest()[:16]


def _by_name(rows: list[dict[str, float]]) -> dict[str, str]:
    """A hash of each column."""
    return {name: _hash(json.dumps([row[name] for row in rows]).encode()) for name in rows[0]}


def observe(run: Run) -> tuple[str, dict[str, Any]]:
    """The name of a run, and what it leaves behind."""
    name, gpu_name, mechanisms, size = run
    kernel = kernels.find(name)
    gpu = Gpu(gpu_name, [m for m in mechanisms.split("+") if m])
    outputs = kernel.run(gpu, gpu.load(kernel.ptx), kernel.setup(size, 1))
    found = {
        "cycles": [one.cycles for one in gpu.runs],
        "stats": gpu.stats,
        "per_sm": _by_name([sm for one in gpu.runs for sm in one.per_sm]),
        "timeline": _hash(b"".join(column.tobytes() for one in gpu.runs for column in one.timeline.values())),
        "outputs": {output: _hash(array.tobytes()) for output, array in outputs.items()},
        "memory": _hash(gpu.memory.contents.tobytes()),
    }
    return " ".join(run), json.loads(json.dumps(found))


def differences(before: dict[str, Any], after: dict[str, Any]) -> list[str]:
    """What differs between two observations, by name. Statistics that only the second has are new, not different."""
    wrong = [key for key in before if key not in ("stats", "per_sm") and before[key] != after[key]]
    for table in ("stats", "per_sm"):
        wrong += [
            f"{table} {name}: {value} became {after[table].get(name, 'nothing')}"
            for name, value in before[table].items()
            if after[table].get(name) != value
        ]
    return wrong


def main(arguments: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(prog="unchanged", description=__doc__)
    parser.add_argument("action", choices=("record", "compare"))
    parser.add_argument("file", type=Path)
    parser.add_argument("--size", default="tiny")
    parser.add_argument("--kernels", default=",".join(kernels.names()))
    parser.add_argument("--gpus", default=",".join(description.names()))
    parser.add_argument("--mechanisms", default=",".join(["", *MECHANISMS]), help="those of a run between +")
    parser.add_argument("--processes", type=int, default=os.cpu_count())
    options = parser.parse_args(arguments)
    runs = [
        (kernel, gpu, mechanisms, options.size)
        for mechanisms in options.mechanisms.split(",")
        for gpu in options.gpus.split(",")
        for kernel in options.kernels.split(",")
    ]
    before = json.loads(options.file.read_text(encoding="utf-8")) if options.action == "compare" else {}
    if missing := [name for name in map(" ".join, runs) if options.action == "compare" and name not in before]:
        print(f"{options.file}: {len(missing)} of these runs were not recorded, such as {missing[0]}", file=sys.stderr)
        return 2
    after, wrong = {}, 0
    observe(runs[0])  # compiles, once
    with multiprocessing.get_context("spawn").Pool(options.processes) as pool:
        for name, found in pool.imap_unordered(observe, runs):
            after[name] = found
            if options.action == "compare" and (lines := differences(before[name], found)):
                wrong += 1
                print(f"{name}: {len(lines)} differences: {'; '.join(lines[:4])}", flush=True)
    if options.action == "record":
        write(options.file, json.dumps(after, sort_keys=True))
    print(f"{len(after)} runs{f', {wrong} of them differ' if options.action == 'compare' else ' recorded'}")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
