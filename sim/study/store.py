"""Results of runs, kept by what they depend on: kernel, input, resolved configuration, and the version of the code.

A result is one file, which is there as a whole or not at all: whatever interrupts a sweep or a chapter costs the runs
in flight. A file has two lines of JSON: the hash of the second, and the second, which is the result. One that is
damaged does not count. Reading one runs no code.
"""

from __future__ import annotations

import hashlib
import json
import os
import time
from pathlib import Path

from lockstep.models import cache
from lockstep.sim.device import description
from lockstep.sim.errors import UsageError
from lockstep.sim.study import saved
from lockstep.sim.study.job import Job, Result
from lockstep.sim.study.sources import code_version, kernel_version
from lockstep.spec import files

__all__ = ["drop", "find", "folder", "keep", "key", "tidy", "unchanged"]

STALE = 24 * 3600  # seconds after which a file that was not finished belongs to nobody


def folder() -> Path:
    """Where results are kept."""
    place = cache.folder() / "results"
    place.mkdir(exist_ok=True)
    return place


def key(job: Job) -> str:
    """The name of a job's result. Jobs that ask for the same run in other words have the same.

    Raises :class:`UsageError` for a job whose settings contradict each other.
    """
    gpu = description.load(job.gpu, job.settings, job.mechanisms)
    run = [kernel_version(job.kernel), job.size, job.seed, job.strict, gpu.mechanisms, description.values(gpu)]
    if (second := job.secondary) is not None:
        run += [kernel_version(second.kernel), second.size, second.seed, job.repeat]
    return _hash(json.dumps([code_version(), *run], sort_keys=True))


def unchanged(job: Job, expected: str) -> None:
    """Raise :class:`UsageError` if a job no longer has the key that it had: somebody has edited a file."""
    if key(job) != expected:
        raise UsageError(f"{job.kernel}: the kernel, {job.gpu} or Lockstep has changed since the sweep began")


def find(job: Job, key: str) -> Result | None:
    """The result of a job that was run before, by its key."""
    try:
        seal, _, text = _place(key).read_text(encoding="utf-8").partition("\n")
        if json.loads(seal) != _hash(text):
            return None
        saved.check(text, key)
    except (OSError, ValueError, UsageError):  # not there, or damaged
        return None
    return {**json.loads(text), **job.asked}


def keep(key: str, result: Result) -> None:
    """Keep a result under its key, on the disk, whatever happens next."""
    text = json.dumps(result)
    with files.replacing(_place(key)) as file:
        file.write(f"{json.dumps(_hash(text))}\n{text}".encode())
        file.flush()
        os.fsync(file.fileno())


def drop(key: str) -> None:
    """Forget a result."""
    _place(key).unlink(missing_ok=True)


def tidy() -> None:
    """Remove what was not finished because its process was killed."""
    for file in folder().glob(".*"):
        try:
            if file.stat().st_mtime < time.time() - STALE:
                file.unlink()
        except FileNotFoundError:  # somebody else was faster
            continue


def _place(key: str) -> Path:
    return folder() / f"{key}.jsonl"


def _hash(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()
