"""The version of the code that results come from, by its contents: edits that cannot change a result are left out.

Kernels and GPU descriptions are not in it: a result names their contents itself (:mod:`lockstep.sim.store`).
"""

from __future__ import annotations

import functools
import hashlib
import importlib.metadata
import json
from pathlib import Path

from lockstep.models import blocks, cache

__all__ = ["code_version"]

FOLDERS = ("models", "spec", "sim/cuda", "sim/ptx")  # some of whose modules are imported by name
LIBRARIES = ("numba", "numpy", "nvidia-cuda-nvrtc")
DIGITS = 12


@functools.cache
def code_version() -> str:
    """The package's version and a hash of everything that can change a run's result: ``0.1.0+9c3f0e12ab45``."""
    digest = hashlib.sha256(json.dumps(blocks.layouts(), sort_keys=True).encode())
    inside = {path for folder in FOLDERS for path in (cache.ROOT / folder).rglob("*") if _is_source(path)}
    for path in sorted(inside | set(cache.closure(cache.ROOT / "sim" / "job.py"))):
        digest.update(str(path.relative_to(cache.ROOT)).encode() + path.read_bytes())
    for library in LIBRARIES:
        digest.update(f"{library} {_version(library)}".encode())
    return f"{_version('lockstep-sm')}+{digest.hexdigest()[:DIGITS]}"


def _is_source(path: Path) -> bool:
    return path.is_file() and "__pycache__" not in path.parts


def _version(distribution: str) -> str:
    try:
        return importlib.metadata.version(distribution)
    except importlib.metadata.PackageNotFoundError:
        return ""
