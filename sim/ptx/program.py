"""What lowering produces: kernels as arrays of micro-operations, and everything a loader needs to place them.

:func:`load` goes from a PTX file or text to a :class:`Program`. The result is kept on disk under a hash of the text,
the register limit and the front end's own sources, so a module is parsed and lowered once.
"""

from __future__ import annotations

import hashlib
import os
import pickle
import tempfile
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path

import numpy as np

from lockstep.models.cache import folder
from lockstep.models.execution import isa
from lockstep.sim.errors import UsageError
from lockstep.sim.ptx import ast


@dataclass(slots=True)
class Parameter:
    """One parameter of a kernel, at ``offset`` bytes into the parameter block."""

    name: str
    type: str  # element type: "u64", "f32", "b8", ...
    offset: int
    bytes: int
    align: int
    is_array: bool = False  # a by-value struct or array
    pointer_space: str | None = None  # ``.ptr .global``: "global"


@dataclass(slots=True)
class Relocation:
    """Add the device address of a module-scope variable (the handle, for a texture or surface reference) to a field."""

    pc: int
    field: str  # "imm0" .. "imm3" or "offset"
    symbol: str
    addend: int  # bytes; the field itself holds 0


@dataclass(slots=True)
class Kernel:
    """An ``.entry``, with the functions that it calls inlined and its registers allocated."""

    name: str
    path: str
    code: np.ndarray  # of isa.INSTRUCTION
    registers: int  # per thread, 32 bits each: the highest one used, plus one; at least 1
    predicates: int  # likewise, may be 0
    parameters: list[Parameter]
    param_bytes: int
    shared_bytes: int  # static; dynamic shared memory starts here
    dynamic_shared: bool  # declares an ``extern .shared`` array
    local_bytes: int  # per thread, a multiple of 4, spilled registers included
    relocations: list[Relocation] = field(default_factory=list)
    branch_table: list[int] = field(default_factory=list)  # targets of ``brx.idx``
    max_block: tuple[int, int, int] | None = None  # .maxntid: the product is the limit on threads per CTA
    required_block: tuple[int, int, int] | None = None  # .reqntid
    spilled: int = 0  # 32-bit registers that live in local memory
    source_instructions: int = 0  # PTX instructions after inlining; the rest of ``code`` is spill code and constants
    line: int = 0


@dataclass(slots=True)
class Program:
    """One PTX module."""

    path: str
    kernels: dict[str, Kernel]
    variables: dict[str, ast.Variable]  # module scope: global, const, texref, surfref, samplerref
    functions: dict[str, int] = field(default_factory=dict)  # functions used as data -> the value of their address


def load(path_or_text: str | os.PathLike[str], registers_per_thread: int = 63) -> Program:
    """Parse and lower a PTX module: a path, or its text (recognised by a line break).

    Raises :class:`UsageError` for a missing file, for PTX that is not understood, and for kernels that cannot be
    compiled under the limit.
    """
    if isinstance(path_or_text, str) and "\n" in path_or_text:
        path, text = "<text>", path_or_text
    else:
        path = os.fspath(path_or_text)
        try:
            text = Path(path).read_text()
        except OSError as error:
            raise UsageError(f"{path}: cannot read the PTX file: {error.strerror}") from None
        except UnicodeDecodeError:
            raise UsageError(f"{path}: not a PTX file: it is not UTF-8 text") from None
    if not 16 <= registers_per_thread <= isa.MAX_REGISTERS:
        raise UsageError(f"registers per thread: {registers_per_thread} is outside 16..{isa.MAX_REGISTERS}")
    key = hashlib.sha256(f"{_sources()}\n{registers_per_thread}\n{path}\n{text}".encode()).hexdigest()
    place = folder() / "ptx" / f"{key}.pickle"
    try:
        return pickle.loads(place.read_bytes())
    except (OSError, pickle.UnpicklingError, EOFError):
        pass
    from lockstep.sim.ptx.lower import lower
    from lockstep.sim.ptx.parser import parse

    program = lower(parse(text, path), registers_per_thread)
    _store(place, program)
    return program


def _store(place: Path, program: Program) -> None:
    """Write a cache entry so that a reader, or an interrupt, never sees half of it."""
    try:
        place.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.NamedTemporaryFile(dir=place.parent, delete=False) as temporary:
            temporary.write(pickle.dumps(program, protocol=5))
        os.replace(temporary.name, place)
    except OSError:
        return  # a full or read-only disk costs time, not the run


@cache
def _sources() -> str:
    """A hash of everything that decides what a program looks like: the front end and the instruction record."""
    digest = hashlib.sha256()
    front_end = Path(__file__).parent
    for source in sorted([*front_end.glob("*.py"), *front_end.glob("*.lark"), Path(isa.__file__)]):
        digest.update(source.name.encode() + source.read_bytes())
    return digest.hexdigest()
