"""Kernels that can be run by name, what a ``kernel.py`` must contain, and the check of a kernel's results.

A kernel is a folder here (adding a folder adds a kernel) or any ``FILE.py`` of a user. A folder has ``kernel.py``, the
CUDA C source that is our own, and the PTX that ``nvcc`` made from it (``make ptx`` makes it again; nothing else needs
``nvcc``). ``kernel.py`` defines::

    TITLE = "y = a x + y"                # one line
    SUITE = "PolyBench"                  # the benchmark suite that it stands for
    PTX = "saxpy.ptx"                    # .ptx or .cu, relative to kernel.py
    SIZES = ("tiny", "small")            # if they are not tiny, small and full
    TOLERANCE = {"y": Close(rtol=1e-6, reason="...")}     # outputs not named here are compared exactly
    REGISTERS = {"saxpy": 12}            # per thread, by function, where a paper gives more than ours needs

    def setup(size: str, seed: int) -> Data:              # inputs: NumPy arrays and scalars by name
    def run(gpu: Gpu, module: Module, data: Data) -> Outputs:       # allocate, launch (once or often), read back
    def reference(data: Data) -> Outputs:                 # the same outputs from NumPy; must not change ``data``

*tiny* takes under a minute in the interpreted model and reaches the partial warps and CTAs at the edges, *small* is 0.3
to 10 million warp instructions, *full* is the original benchmark's input where it is known, below 1 GB. *steady* has
the original's dimensions and pitches, so that caches meet the same addresses, and takes about half a minute: where the
whole takes longer, fewer CTAs and the first steps of inner loops; what is not computed stays as it was. *scattered* is
*steady* with neighbours far apart in memory (spmv). *4096* is the width of a square matrix (transposes). *reference* is
what another simulator was run with (``lockstep reproduce validation``). ``run`` may call::

    gpu.to_device(array) -> Buffer       gpu.from_device(buffer) -> array of the dtype and shape that went in
    gpu.empty(shape, dtype) -> Buffer    for outputs: filled with a poison pattern, to show what the kernel leaves out
    gpu.texture(array, ...) -> handle    buffer + 16 is an interior pointer (bytes)
    module.launch(name, grid=(4,), block=(256,), args=[buffer, np.int32(n)], shared_bytes=0)
    module.set_symbol(name, array)       module-scope .const or .global variables
"""

from __future__ import annotations

import os
import traceback
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any, Protocol, TypedDict

import numpy as np

from lockstep.sim.errors import UsageError
from lockstep.sim.sizes import USUAL_SIZES
from lockstep.spec.words import closest

if TYPE_CHECKING:
    from lockstep.sim.device.buffers import Extent
    from lockstep.sim.device.gpu import Gpu, Module

__all__ = [
    "Check",
    "Close",
    "Data",
    "Exact",
    "Extents",
    "Kernel",
    "Outputs",
    "check",
    "file_of",
    "find",
    "load",
    "name_of",
    "names",
]

FOLDER = Path(__file__).parent
KINDS: dict[str, Any] = {
    "TITLE": str, "SUITE": str, "PTX": str, "SIZES": Sequence, "TOLERANCE": dict, "REGISTERS": dict,
    "setup": Callable, "run": Callable, "reference": Callable,
}  # fmt: skip
"""The types of the definitions."""

Data = dict[str, Any]
Outputs = dict[str, np.ndarray]


class Extents(TypedDict):
    """The part that launches of the same number of threads have in common."""

    grid: Extent
    block: Extent



class Tolerance(Protocol):
    """Says element by element whether a result is right."""

    def agrees(self, got: np.ndarray, expected: np.ndarray) -> np.ndarray: ...


@dataclass(frozen=True)
class Exact:
    """Equal values. NaN equals nothing, so a kernel that may give NaN must compare bits instead."""

    def agrees(self, got: np.ndarray, expected: np.ndarray) -> np.ndarray:
        return np.asarray(got == expected)


@dataclass(frozen=True)
class Close:
    """|got - expected| <= atol + rtol |expected|, with the reason why the results may differ at all."""

    rtol: float = 0.0
    atol: float = 0.0
    reason: str = ""

    def __post_init__(self) -> None:
        if not self.reason:
            raise UsageError("Close(...): a tolerance needs a reason")

    def agrees(self, got: np.ndarray, expected: np.ndarray) -> np.ndarray:
        wide = np.result_type(expected, np.float64)
        with np.errstate(invalid="ignore"):  # inf - inf
            difference = np.abs(got.astype(wide) - expected.astype(wide))
            near = difference <= self.atol + self.rtol * np.abs(expected.astype(wide))
        return (got == expected) | (near & np.isfinite(expected))  # infinities agree with their equals only


@dataclass(frozen=True)
class Kernel:
    """One loaded ``kernel.py``; the fields are its definitions."""

    name: str
    title: str
    suite: str
    ptx: Path
    sizes: tuple[str, ...]
    tolerance: dict[str, Tolerance]
    setup: Callable[[str, int], Data]
    run: Callable[[Gpu, Module, Data], Outputs]
    reference: Callable[[Data], Outputs]
    registers: dict[str, int] = field(default_factory=dict)


@dataclass(frozen=True)
class Check:
    """Outcome of comparing a run with its reference. ``passed`` is false when nothing was compared."""

    passed: bool
    compared: int  # elements
    message: str


def names() -> list[str]:
    """The kernels that can be run by name: every folder here with a ``kernel.py``."""
    return sorted((file.parent.name for file in FOLDER.glob("*/kernel.py")), key=str.lower)


def find(kernel: str | Path, *sizes: str) -> Kernel:
    """Load a kernel by name (upper and lower case are alike) or from a ``FILE.py``.

    Raises :class:`UsageError` when there is none, when its file lacks a definition, or when it has not these sizes.
    """
    found = load(file_of(kernel))
    for size in sizes:
        if size not in found.sizes:
            raise UsageError(f"{found.name}: has no size {size!r}; it has {', '.join(found.sizes)}")
    return found


def file_of(kernel: str | Path) -> Path:
    """The file of a kernel, which is not loaded. Raises :class:`UsageError` when there is none."""
    text = str(kernel)
    if text.endswith(".py"):
        if not Path(text).is_file():
            raise UsageError(f"{text}: no such file")
        return Path(text)
    for name in names():
        if name.lower() == text.lower():
            return FOLDER / name / "kernel.py"
    if text.endswith((".cu", ".ptx")):
        raise UsageError(f"{text}: cannot be run by itself: write a FILE.py that launches it (docs/tutorial.md)")
    raise UsageError(f"kernel {text!r}: not known{closest(text, names())}; see `lockstep kernels`, or give a FILE.py")


def name_of(file: Path) -> str:
    """The name of a kernel: its folder's, or the file's own when it is not called ``kernel.py``."""
    name = file.resolve().parent.name if file.name == "kernel.py" else file.stem
    return os.fsencode(name).decode(errors="replace")  # the same in every locale


def load(file: Path) -> Kernel:
    """Load one ``kernel.py``."""
    name = name_of(file)
    module = _import(file, name)
    required = ("TITLE", "SUITE", "PTX", "setup", "run", "reference")
    if missing := [item for item in required if not hasattr(module, item)]:
        raise UsageError(f"{file}: does not define {', '.join(missing)}; a kernel needs {', '.join(required)}")
    for item, kind in KINDS.items():
        if hasattr(module, item) and not isinstance(value := getattr(module, item), kind):
            raise UsageError(f"{file}: {item} = {value!r}: must be a {kind.__name__}")
    ptx = file.parent / module.PTX
    if not ptx.is_file():
        raise UsageError(f"{file}: PTX = {module.PTX!r}: no such file beside it")
    tolerance = getattr(module, "TOLERANCE", {})
    sizes = tuple(getattr(module, "SIZES", USUAL_SIZES))
    functions = module.setup, module.run, module.reference
    registers = getattr(module, "REGISTERS", {})
    return Kernel(name, module.TITLE, module.SUITE, ptx, sizes, tolerance, *functions, registers)


def _import(file: Path, name: str) -> ModuleType:
    # By path: folder names are those of the benchmarks (mri-q), not Python identifiers. Python's import would leave
    # bytecode beside a user's file, and would not see an edit in the same second.
    module, place = ModuleType(f"{__name__}.{name.replace('.', '_')}"), file.absolute()
    module.__file__ = str(place)
    try:
        exec(compile(file.read_bytes(), place, "exec", dont_inherit=True), vars(module))
    except SyntaxError as error:
        raise UsageError(f"{file}:{error.lineno}: {error.msg}") from error
    except (Exception, SystemExit) as error:
        frames = traceback.extract_tb(error.__traceback__)
        lines = [f":{frame.lineno}" for frame in frames if Path(frame.filename) == place]
        raise UsageError(f"{file}{''.join(lines[-1:])}: {type(error).__name__}: {error}") from error
    return module


def check(kernel: Kernel, outputs: Outputs, data: Data) -> Check:
    """Compare every output with the reference and report the first element that differs."""
    expected = kernel.reference(data)
    compared = 0
    if unlike := sorted(outputs.keys() ^ expected.keys()):
        return Check(False, 0, f"{unlike[0]}: in the {'run' if unlike[0] in outputs else 'reference'} only")
    for name, want in expected.items():
        got = np.asarray(outputs[name])
        want = np.asarray(want)
        if got.shape != want.shape or got.dtype != want.dtype:
            text = f"{name}: got {got.dtype}{list(got.shape)}, expected {want.dtype}{list(want.shape)}"
            return Check(False, compared, text)
        wrong = np.argwhere(~kernel.tolerance.get(name, Exact()).agrees(got, want))
        compared += got.size
        if len(wrong):
            index = tuple(int(i) for i in wrong[0])
            where = f"{name}[{', '.join(map(str, index))}]"
            text = f"{where}: got {got[index]}, expected {want[index]}; {len(wrong)} of {got.size} differ"
            return Check(False, compared, text)
    if compared == 0:
        return Check(False, 0, "nothing was compared")
    return Check(True, compared, f"{compared} elements agree")
