"""CUDA C to PTX through NVRTC, which needs neither a GPU nor a CUDA installation: ``pip install lockstep-sm[cuda]``."""

from __future__ import annotations

import ctypes
import hashlib
import sys
from pathlib import Path
from typing import Any

from lockstep.models.cache import folder, kept
from lockstep.sim.errors import UsageError
from lockstep.spec import files

__all__ = ["compile_file", "compile_text"]

OPTIONS = ("--gpu-architecture=compute_75", "--std=c++17", "--generate-line-info")
MISSING = "CUDA C needs NVRTC: pip install 'lockstep-sm[cuda]', or give the PTX instead"


def compile_file(path: Path) -> Path:
    """The PTX file made from a ``.cu`` file; a file that was compiled before is not compiled again."""
    try:
        text = path.read_text()
    except OSError as error:
        raise UsageError(f"{path}: cannot read the CUDA file: {error.strerror}") from None
    except UnicodeDecodeError:
        raise UsageError(f"{path}: not a CUDA file: it is not UTF-8 text") from None
    return compile_text(text, str(path), (path.resolve().parent,))


def compile_text(text: str, name: str = "<text>", include: tuple[Path, ...] = ()) -> Path:
    """The same for a text. Raises :class:`UsageError` with the compiler's first error."""
    options = (*OPTIONS, *(f"--include-path={item}" for item in include))
    library = _library()
    version = (ctypes.c_int(), ctypes.c_int())
    library.nvrtcVersion(ctypes.byref(version[0]), ctypes.byref(version[1]))
    key = hashlib.sha256("\n".join([name, text, *options, *(str(v.value) for v in version)]).encode()).hexdigest()
    place = folder() / "nvrtc" / f"{Path(name).stem.strip('<>')}-{key[:16]}.ptx"

    def make() -> bytes:
        return _compile(library, text, name, options)

    # A header that is included may have changed: only a text without headers is sure to be the same.
    ptx = make() if "#include" in text else kept(f"nvrtc/{key}", make)
    if not place.is_file() or place.read_bytes() != ptx:
        place.parent.mkdir(parents=True, exist_ok=True)
        files.write(place, ptx)
    return place


def _compile(library: Any, text: str, name: str, options: tuple[str, ...]) -> bytes:
    program = ctypes.c_void_p()
    library.nvrtcCreateProgram(ctypes.byref(program), text.encode(), name.encode(), 0, None, None)
    try:
        arguments = (ctypes.c_char_p * len(options))(*(option.encode() for option in options))
        if library.nvrtcCompileProgram(program, len(options), arguments):
            log = _result(library.nvrtcGetProgramLogSize, library.nvrtcGetProgramLog, program).decode()
            lines = [line.strip() for line in log.splitlines() if line.strip()]
            raise UsageError(next((line for line in lines if "error" in line), f"{name}: NVRTC failed"))
        return _result(library.nvrtcGetPTXSize, library.nvrtcGetPTX, program)
    finally:
        library.nvrtcDestroyProgram(ctypes.byref(program))


def _result(size_of: Any, get: Any, program: ctypes.c_void_p) -> bytes:
    size = ctypes.c_size_t()
    size_of(program, ctypes.byref(size))
    text = ctypes.create_string_buffer(size.value)
    get(program, text)
    return text.value


def _library() -> Any:
    """NVRTC from its PyPI package or from the system's library path."""
    found = [file for entry in sys.path for file in Path(entry).glob("nvidia/*/lib/libnvrtc.so.*")]
    for candidate in (*map(str, found), "libnvrtc.so"):
        try:
            return ctypes.CDLL(candidate)
        except OSError:
            continue
    raise UsageError(MISSING)
