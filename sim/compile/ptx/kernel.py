"""The front end's results: kernels as arrays of micro-operations, and everything a loader needs to place them."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from lockstep.models.execution import isa
from lockstep.sim.compile.ptx import ast
from lockstep.sim.compile.ptx.names import readable


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


@dataclass(frozen=True, slots=True)
class Constant:
    """An operand from the constant bank: what stands there when the kernel is launched goes into a field."""

    pc: int
    source: int  # 0 to 3: the field ``imm``
    bytes: int  # 4 or 8
    symbol: str | None  # of a module variable; None: in the kernel's parameters
    offset: int  # bytes


@dataclass(slots=True)
class Kernel:
    """An ``.entry``, with the functions that it calls inlined and its registers allocated."""

    name: str
    path: str
    parameters: list[Parameter]
    param_bytes: int
    shared_bytes: int  # static; dynamic shared memory starts here
    dynamic_shared: bool  # declares an ``extern .shared`` array
    local_bytes: int  # per thread, a multiple of 4, spilled registers included
    max_block: tuple[int, int, int] | None  # .maxntid: the product is the limit on threads per CTA
    required_block: tuple[int, int, int] | None  # .reqntid
    source_instructions: int  # PTX instructions after inlining; the rest of ``code`` is made by the front end
    line: int
    registers: int = 1  # per thread, 32 bits each: the highest one used, plus one, or what the user wants; at least 1
    predicates: int = 0  # likewise, may be 0
    spilled: int = 0  # 32-bit registers that live in local memory
    code: np.ndarray = field(default_factory=lambda: np.zeros(0, isa.INSTRUCTION))
    relocations: list[Relocation] = field(default_factory=list)
    constants: list[Constant] = field(default_factory=list)
    branch_table: list[int] = field(default_factory=list)  # targets of ``brx.idx``
    tables: dict[str, np.ndarray] = field(default_factory=dict)  # what passes tell the model beside the code

    @property
    def shown(self) -> str:
        """The name as people write it."""
        return readable(self.name)


@dataclass(slots=True)
class Program:
    """One PTX module."""

    path: str
    kernels: dict[str, Kernel]
    variables: dict[str, ast.Variable]  # module scope: global, const, texref, surfref, samplerref
    functions: dict[str, int] = field(default_factory=dict)  # functions used as data -> the value of their address
    refused: dict[str, str] = field(default_factory=dict)  # kernels that cannot be compiled -> why, in one line
