"""CUDA C to PTX through NVRTC, which needs neither a GPU nor a CUDA installation: ``pip install lockstep-sm[cuda]``.

NVRTC takes device code alone; :mod:`lockstep.sim.compile.cuda.source` cuts whole programs.
"""

from __future__ import annotations

import ctypes
import hashlib
import json
import re
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from lockstep.models.cache import costs_only_time, folder, kept
from lockstep.sim.compile.cuda import headers
from lockstep.sim.compile.cuda.options import Options
from lockstep.sim.compile.cuda.source import Source, device_part, source_text
from lockstep.sim.errors import UsageError
from lockstep.spec import files

__all__ = ["Compiled", "compile_file", "compile_text"]

PRELUDE = Path(__file__).parent / "prelude.h"
MISSING = "CUDA C needs NVRTC: pip install 'lockstep-sm[cuda]', or give the PTX instead"
ALWAYS = ("--device-as-default-execution-space", f"--pre-include={PRELUDE.name}")


LAMBDA = (
    "a kernel's template argument cannot be a lambda of the host; let a __device__ function return it, and ask for "
    "f<decltype(function(arguments))>, or take a struct with operator()"
)


@dataclass(frozen=True)
class Compiled:
    """The PTX file of a CUDA text. ``names``: the PTX's names of the kernels that were asked for by C++ names.

    ``kernels``: what the text calls its kernels; a template among them has no code before an instance is asked for.
    """

    path: Path
    names: dict[str, str]
    kernels: frozenset[str]


def compile_file(path: Path, options: Options | None = None, names: Sequence[str] = ()) -> Compiled:
    """The PTX made from a ``.cu`` file; a file that was compiled before is not compiled again."""
    return compile_text(source_text(path), str(path), path.resolve().parent, options, names)


def compile_text(
    text: str,
    name: str = "<text>",
    beside: Path | None = None,
    options: Options | None = None,
    names: Sequence[str] = (),
) -> Compiled:
    """The same for a text, whose headers lie in ``beside``. ``names``: instances of kernel templates, ``f<3>``.

    Raises :class:`UsageError` with the compiler's first error.
    """
    options = options or Options()
    source = device_part(text, name, beside, options.folders, options.define, names)
    instances = [each for each in source.instances if each not in names]
    try:
        found = _kept(source, name, options, (*names, *instances))
    except UsageError:
        if not instances:
            raise
        found = _kept(source, name, options, tuple(names))  # not all that the host launches needs to be valid here
    place = _placed(f"{Path(name).stem.strip('<>')}-{found['key'][:16]}.ptx", _bytes(found["ptx"]))
    return Compiled(place, found["names"], source.kernels)


def _placed(name: str, ptx: bytes) -> Path:
    """Where a PTX can be read: in the cache, or if its disk is full, somewhere else as long as this process lives."""
    place = folder() / "nvrtc" / name
    with costs_only_time():
        if not place.is_file() or place.read_bytes() != ptx:
            place.parent.mkdir(parents=True, exist_ok=True)
            files.write(place, ptx)
        return place
    place = Path(_elsewhere().name) / name
    files.write(place, ptx)
    return place


@cache
def _elsewhere() -> TemporaryDirectory[str]:
    return TemporaryDirectory(prefix="lockstep-")


def _kept(source: Source, name: str, options: Options, names: tuple[str, ...]) -> dict[str, Any]:
    """The compiler's result for a source; from the cache if it was made before."""
    library = _library()
    version = (ctypes.c_int(), ctypes.c_int())
    library.nvrtcVersion(ctypes.byref(version[0]), ctypes.byref(version[1]))
    _check_architecture(library, options.arch)
    arguments = [*options.arguments(), *ALWAYS]
    own = {PRELUDE.name: PRELUDE.read_text(encoding="utf-8"), **headers.umbrellas(), **source.headers}
    packages = [f"{package} {number}" for package, number, _ in headers.installed()]
    place = str(Path(name).absolute())  # which the PTX names
    key = hashlib.sha256(
        json.dumps([place, source.text, own, arguments, names, [v.value for v in version], packages]).encode()
    ).hexdigest()
    arguments += [f"--include-path={path}" for path in headers.folders()]

    def make() -> bytes:
        ptx, lowered = _compile(library, source, own, name, arguments, names)
        return json.dumps({"key": key, "ptx": ptx, "names": lowered}).encode()

    return json.loads(kept(f"nvrtc/{key}", make))


def _check_architecture(library: Any, arch: str) -> None:
    count = ctypes.c_int()
    library.nvrtcGetNumSupportedArchs(ctypes.byref(count))
    known = (ctypes.c_int * count.value)()
    library.nvrtcGetSupportedArchs(known)
    if int("".join(filter(str.isdigit, arch))) not in known:
        raise UsageError(f"arch = {arch!r}: this NVRTC supports {', '.join(f'sm_{number}' for number in known)}")


def _compile(
    library: Any, source: Source, own: dict[str, str], name: str, arguments: Sequence[str], names: Sequence[str]
) -> tuple[str, dict[str, str]]:
    program = ctypes.c_void_p()
    texts, titles = _strings(own.values()), _strings(own)
    library.nvrtcCreateProgram(ctypes.byref(program), *_strings([source.text, name]), len(own), texts, titles)
    try:
        for each in names:
            library.nvrtcAddNameExpression(program, _bytes(each))
        if library.nvrtcCompileProgram(program, len(arguments), _strings(arguments)):
            log = _result(library.nvrtcGetProgramLogSize, library.nvrtcGetProgramLog, program)
            raise UsageError(_error(log, name, source))
        ptx = _result(library.nvrtcGetPTXSize, library.nvrtcGetPTX, program)
        return ptx, {each: _lowered(library, program, each) for each in names}
    finally:
        library.nvrtcDestroyProgram(ctypes.byref(program))


def _lowered(library: Any, program: ctypes.c_void_p, name: str) -> str:
    lowered = ctypes.c_char_p()
    library.nvrtcGetLoweredName(program, _bytes(name), ctypes.byref(lowered))
    return (lowered.value or b"").decode()


def _error(log: str, name: str, source: Source) -> str:
    """The first error, and what is known of its cause."""
    lines = [line.strip() for line in log.splitlines() if line.strip()]
    error = next((line for line in lines if "error" in line), f"{name}: NVRTC failed")
    undefined = re.search(r'identifier "(?:.*::)?(\w+)" is undefined', error)
    if "closure type for a lambda" in error or (undefined and undefined[1] in source.lambdas):
        return f"{name}: {LAMBDA}"
    if error.startswith("__nv_name_map"):  # NVRTC's own file of the instances that are asked for
        return f"{name}: {error.partition(': error: ')[2]}"
    header = re.search(r'open source file "([^"]+)"', error)
    if header and (hint := headers.to_install(header[1])):
        return f"{error.partition(':')[0]}: {hint}"
    if undefined and undefined[1] in source.dropped:
        return f"{error}: {source.dropped[undefined[1]]} has it for the host alone"
    if source.missing:
        return f"{error}; headers not found (-I): {', '.join(source.missing)}"
    return error


def _bytes(text: str) -> bytes:
    """As UTF-8, names of files in it as their bytes."""
    return text.encode(errors="surrogateescape")


def _strings(items: Any) -> Any:
    encoded = [*map(_bytes, items)]
    return (ctypes.c_char_p * len(encoded))(*encoded)


def _result(size_of: Any, get: Any, program: ctypes.c_void_p) -> str:
    size = ctypes.c_size_t()
    size_of(program, ctypes.byref(size))
    text = ctypes.create_string_buffer(size.value)
    get(program, text)
    return text.value.decode(errors="surrogateescape")


def _library() -> Any:
    """NVRTC from its PyPI package or from the system's library path."""
    found = [file for entry in sys.path for file in Path(entry).glob("nvidia/*/lib/libnvrtc.so.*")]
    for candidate in (*map(str, found), "libnvrtc.so"):
        try:
            return ctypes.CDLL(candidate)
        except OSError:
            continue
    raise UsageError(MISSING)
