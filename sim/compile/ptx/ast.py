"""The result of the PTX parser: a module as plain data, close to the text, before any decision about registers."""

from __future__ import annotations

import builtins
from dataclasses import dataclass, field


@dataclass(slots=True, frozen=True)
class Register:
    """A general register or predicate, by its unique name: ``%r1`` of a nested block is renamed."""

    name: str


@dataclass(slots=True, frozen=True)
class Immediate:
    """A number. ``bits`` is two's complement of 64 bits for integers, the encoding for ``0f``/``0d``/decimal floats."""

    bits: int
    kind: str  # "int", "f32" (0fXXXXXXXX) or "f64" (0dXXXXXXXXXXXXXXXX, 1.5)


@dataclass(slots=True, frozen=True)
class Special:
    """``%tid.x``, ``%laneid``, ... with the leading percent sign."""

    name: str


@dataclass(slots=True, frozen=True)
class Symbol:
    """The address of a variable, parameter, function or label, plus a byte offset."""

    name: str
    offset: int = 0


@dataclass(slots=True, frozen=True)
class Address:
    """``[base + offset]``."""

    base: Register | Symbol | Immediate
    offset: int = 0


@dataclass(slots=True, frozen=True)
class Vector:
    """``{a, b, c, d}``."""

    items: tuple[Operand, ...]


@dataclass(slots=True, frozen=True)
class Not:
    """``!%p1``."""

    item: Register


@dataclass(slots=True, frozen=True)
class Pair:
    """``d|p`` or ``p|q``: two destinations."""

    first: Operand
    second: Operand


@dataclass(slots=True, frozen=True)
class Element:
    """``%r1.x``: an element of a vector register; video sub-word selectors (``%r1.b0``, ``%r1.h1``) too."""

    item: Register
    selector: str


@dataclass(slots=True, frozen=True)
class Texel:
    """``[tex, {x, y}]`` or ``[tex, sampler, {x, y}]``."""

    texture: Operand
    sampler: Operand | None
    coordinates: tuple[Operand, ...]


@dataclass(slots=True, frozen=True)
class Sink:
    """``_``."""


Operand = Register | Immediate | Special | Symbol | Address | Vector | Not | Pair | Element | Texel | Sink


@dataclass(slots=True)
class Instruction:
    """One statement: ``@!guard opcode.modifiers operands;``. Call arguments: see :class:`Call`."""

    opcode: str  # "add", "ld", "barrier"
    modifiers: tuple[str, ...]  # ("rn", "f32"); "cta" of "::cta" as "::cta" glued to its predecessor
    operands: tuple[Operand, ...]
    line: int
    text: str  # as written, one line
    guard: Register | None = None
    guard_not: bool = False


@dataclass(slots=True)
class Call:
    """``call (result), target, (arguments), prototype;``. The target is a function's name or a register."""

    results: tuple[Operand, ...]
    target: str | Register
    arguments: tuple[Operand, ...]
    prototype: str | None
    line: int
    text: str
    guard: Register | None = None
    guard_not: bool = False


@dataclass(slots=True)
class Label:
    name: str  # unique within the function: labels of nested blocks are renamed
    line: int


@dataclass(slots=True)
class BranchTargets:
    """``name: .branchtargets a, b, c;``"""

    name: str
    labels: tuple[str, ...]
    line: int


Statement = Instruction | Call | Label | BranchTargets


@dataclass(slots=True)
class Variable:
    """A variable of any space, a parameter, or a register declared singly."""

    name: str  # unique within its function or module
    space: str  # "global", "const", "shared", "local", "param", "tex", "samplerref", "texref", "surfref"
    type: str  # element type: "f32", "b8", ...
    align: int
    count: int  # elements; 0: unsized array (dynamic shared memory)
    bytes: int
    is_array: bool = False
    extern: bool = False
    pointer_space: str | None = None  # .ptr .global of a parameter
    pieces: tuple[tuple[int, builtins.bytes], ...] | None = None  # of the initial value, by offset; else zeros
    relocations: tuple[tuple[int, Symbol, bool], ...] = ()  # (byte offset, symbol, generic()) in the initial value
    line: int = 0

    @property
    def initial(self) -> builtins.bytes | None:
        """The whole initial value; None: there is none, and all bytes are 0."""
        if self.pieces is None:
            return None
        whole = bytearray(self.bytes)
        for offset, content in self.pieces:
            whole[offset : offset + len(content)] = content
        return builtins.bytes(whole)


@dataclass(slots=True)
class Prototype:
    """``name: .callprototype (result) _ (parameters);``"""

    name: str
    results: tuple[Variable, ...]
    parameters: tuple[Variable, ...]


@dataclass(slots=True)
class Function:
    """An ``.entry`` or a ``.func`` with its body."""

    name: str
    entry: bool
    parameters: tuple[Variable, ...]
    results: tuple[Variable, ...]
    registers: dict[str, str]  # name -> type: "pred", "b16", "f32", "u64", "b128"
    variables: dict[str, Variable]  # shared, local and param variables of the body
    body: list[Statement] = field(default_factory=list)
    prototypes: dict[str, Prototype] = field(default_factory=dict)
    maxntid: tuple[int, int, int] | None = None
    reqntid: tuple[int, int, int] | None = None
    minnctapersm: int | None = None
    maxnreg: int | None = None
    defined: bool = True  # False: a declaration only (vprintf, malloc, ...)
    line: int = 0


@dataclass(slots=True)
class Module:
    """One PTX file."""

    path: str  # as given; "<text>" for text
    version: tuple[int, int]
    target: str
    address_size: int
    variables: dict[str, Variable]
    functions: dict[str, Function]
