"""Versions of what results come from, by contents: of the code, without what cannot change a result, and of kernels."""

from __future__ import annotations

import functools
import hashlib
import importlib.metadata
import json
import os
import re
from pathlib import Path

from lockstep.models import blocks, cache
from lockstep.sim import kernels

__all__ = ["code_version", "kernel_files", "kernel_version"]

FOLDERS = ("models", "spec", "sim/compile/cuda", "sim/compile/ptx")  # some of whose modules are imported by name
SHOWN = "sim/gpu.py"  # what makes results imports it, and it shows them in notebooks
LIBRARIES = ("numba", "numpy", "nvidia-cuda-nvrtc")
SHARED = "lockstep.sim.kernels."  # modules that several kernels import
DIGITS = 12

TEXTS = (".py", ".cu", ".cuh", ".h", ".hpp")
"""The ends of files that may name others. PTX names none that matter: its ``.file`` is for people."""


@functools.cache
def code_version() -> str:
    """The package's version and a hash of everything in it that can change a run's result: ``0.1.0+9c3f0e12ab45``.

    Kernels and GPU descriptions are not in it.
    """
    digest = hashlib.sha256(json.dumps(blocks.layouts(), sort_keys=True).encode())
    inside = {path for folder in FOLDERS for path in (cache.ROOT / folder).rglob("*") if _is_source(path)}
    makes = cache.closure(cache.ROOT / "sim" / "study" / "job.py", without=[cache.ROOT / SHOWN])
    for path in sorted(inside | set(makes)):
        digest.update(str(path.relative_to(cache.ROOT)).encode() + path.read_bytes())
    for library in LIBRARIES:
        digest.update(f"{library} {_version(library)}".encode())
    return f"{_version('lockstep-sm')}+{digest.hexdigest()[:DIGITS]}"


def kernel_files(kernel: str) -> list[Path]:
    """A kernel's file, those that it names, in strings or as modules, and those that these name; no code is run."""
    todo, found = [kernels.file_of(kernel).resolve()], set[Path]()
    while todo:
        path = todo.pop()
        if path not in found:
            found.add(path)
            text = path.read_text(encoding="utf-8", errors="replace") if path.suffix in TEXTS else ""
            words = set(re.findall(r"[\w./+-]+", text))
            named = [path.parent / ending for word in words for ending in (word, f"{word}.py")]
            named += [kernels.FOLDER / f"{word.removeprefix(SHARED)}.py" for word in words if word.startswith(SHARED)]
            todo += [each.resolve() for each in named if _is_file(each)]
    return sorted(found)


def kernel_version(kernel: str) -> str:
    """A hash of the kernel's name and of :func:`kernel_files`."""
    digest = hashlib.sha256(kernels.name_of(kernels.file_of(kernel)).encode())
    for path in kernel_files(kernel):
        content = path.read_bytes()
        digest.update(os.fsencode(f"{path.name} {len(content)} ") + content)
    return digest.hexdigest()


def _is_file(path: Path) -> bool:
    try:
        return path.is_file()
    except OSError:  # a word that is no name
        return False


def _is_source(path: Path) -> bool:
    return path.is_file() and "__pycache__" not in path.parts


def _version(distribution: str) -> str:
    try:
        return importlib.metadata.version(distribution)
    except importlib.metadata.PackageNotFoundError:
        return ""
