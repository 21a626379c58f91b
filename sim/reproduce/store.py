"""Results of runs, kept by what they depend on: the job, the sources of model and kernels, and the versions below them.

A result is written as a whole when its run has ended, so that whatever interrupts a chapter costs the runs in flight.
"""

from __future__ import annotations

import functools
import hashlib
import importlib.metadata
import json
from dataclasses import asdict
from pathlib import Path
from typing import Any

from lockstep.models import cache
from lockstep.sim.job import Job
from lockstep.spec import files

SOURCES = ("models", "spec", "sim")
LIBRARIES = ("numba", "numpy")


@functools.cache
def _code() -> bytes:
    digest = hashlib.sha256()
    for folder in SOURCES:
        for path in sorted((cache.ROOT / folder).rglob("*")):
            if path.is_file() and "__pycache__" not in path.parts and "reproduce" not in path.parts:
                digest.update(str(path.relative_to(cache.ROOT)).encode() + path.read_bytes())
    for library in LIBRARIES:
        digest.update(importlib.metadata.version(library).encode())
    return digest.digest()


def _place(job: Job) -> Path:
    digest = hashlib.sha256(_code())
    digest.update(json.dumps(asdict(job), sort_keys=True).encode())
    for name in (job.kernel, job.gpu):  # of a user
        if Path(name).is_file():
            digest.update(Path(name).read_bytes())
    return cache.folder() / "results" / f"{digest.hexdigest()}.json"


def find(job: Job) -> dict[str, Any] | None:
    """The result of a job that was run before."""
    try:
        return json.loads(_place(job).read_text())
    except (FileNotFoundError, ValueError):  # not there, or damaged
        return None


def keep(job: Job, result: dict[str, Any]) -> None:
    path = _place(job)
    path.parent.mkdir(exist_ok=True)
    files.write(path, json.dumps(result))
