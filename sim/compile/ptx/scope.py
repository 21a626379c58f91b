"""A kernel while it is being lowered: its micro-operations so far, and what names and operands stand for.

Registers are matched by width, never by declared type: compilers keep f32 in ``.b32`` registers from sm_100 on.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass, field

from lockstep.models.execution import isa
from lockstep.models.execution.isa import Category, Fetch, Group, Space, Special, Write
from lockstep.sim.compile.ptx import ast
from lockstep.sim.compile.ptx.micro import NONE, Code, Micro, Source, Storage, immediate, move
from lockstep.sim.compile.ptx.operations import BITS, FETCH, FETCH_LONG
from lockstep.sim.compile.ptx.parameters import ParameterStorage

MODULE_SPACES = {"global": Space.GLOBAL, "const": Space.CONST}  # textures and surfaces count as global

SPECIALS: dict[str, tuple[Special, int]] = {
    **{
        f"%{name}.{axis}": (Special[f"{name.upper()}_{axis.upper()}"], 32)
        for name in ("tid", "ntid", "ctaid", "nctaid")
        for axis in "xyz"
    },
    **{
        f"%{name}": (Special[name.upper()], 32)
        for name in (
            "laneid", "warpid", "nwarpid", "smid", "nsmid", "lanemask_eq", "lanemask_lt", "lanemask_le", "lanemask_gt",
            "lanemask_ge", "clock", "clock_hi", "globaltimer_hi", "dynamic_smem_size", "total_smem_size",
        )
    },
    "%gridid": (Special.GRIDID, 64),
    "%clock64": (Special.CLOCK64, 64),
    "%globaltimer": (Special.GLOBALTIMER, 64),
    "%globaltimer_lo": (Special.GLOBALTIMER, 32),
    "%reserved_smem_offset_begin": (Special.ZERO, 32),
    "%aggr_smem_size": (Special.TOTAL_SMEM_SIZE, 32),
    # Clusters of one CTA.
    "%cluster_ctarank": (Special.ZERO, 32),
    **{f"%cluster_ctaid.{axis}": (Special.ZERO, 32) for axis in "xyz"},
    **{f"%clusterid.{axis}": (Special[f"CTAID_{axis.upper()}"], 32) for axis in "xyz"},
    **{f"%nclusterid.{axis}": (Special[f"NCTAID_{axis.upper()}"], 32) for axis in "xyz"},
}  # fmt: skip

# What CUDA keeps of a CTA's shared memory from compute capability 8.0 on (CUDA C Programming Guide): 1 KiB, in which
# groups of several warps meet.
RESERVED = ast.Variable("%reserved_smem_offset_1", "shared", "b8", align=16, count=1024, bytes=1024, is_array=True)

# Halves of the address where the CTAs of a cooperative launch meet. It is 0 for others, in which ``grid.sync()`` traps.
GRID_WORKSPACE = ("%envreg1", "%envreg2")


class BadOperand(Exception):
    """A known instruction with operands that it cannot have; the message says why."""


@dataclass(slots=True)
class Frame:
    """A function being lowered: what its names stand for."""

    function: ast.Function
    local_base: int = 0  # bytes of local memory below it
    local_bytes: int = 0  # of its own variables
    leave: int | None = None  # the label behind the inlined body; None in a kernel, where ``ret`` ends the thread
    registers: dict[str, int] = field(default_factory=dict)
    labels: dict[str, int] = field(default_factory=dict)
    storage: dict[str, Storage] = field(default_factory=dict)
    label_names: set[str] = field(default_factory=set)  # all of the body's
    tables: dict[str, tuple[str, ...]] = field(default_factory=dict)  # branch targets
    declared: dict[str, tuple[int, int]] = field(init=False)  # where, as Code has it

    def __post_init__(self) -> None:
        function = self.function
        self.declared = {name: (function.line, place) for place, name in enumerate(function.registers)}


class Scope:
    """One kernel, with a frame for every call around the statement at hand; the last one is the current function's."""

    def __init__(self, module: ast.Module, addresses: dict[str, int]) -> None:
        self.module = module
        self.addresses = addresses  # of functions that are used as data
        self.code = Code()
        self.frames: list[Frame] = []
        self.line = 0
        self.statics: dict[tuple[str, str], tuple[Storage, ast.Variable]] = {}  # shared and module-scope local
        self.parameters: list[ParameterStorage] = []
        self.carry = NONE
        self.asks_for_grid = False  # where the CTAs of a grid meet

    def emit(self, micro: Micro) -> None:
        micro.line = self.line
        self.code.list.append(micro)

    def carry_flag(self) -> int:
        """The hidden predicate that ``.cc`` writes."""
        if self.carry == NONE:
            self.carry = self.code.register(1)
        return self.carry

    # --------------------------------------------------------------------------------------------------------- operands

    def guard(self, statement: ast.Instruction | ast.Call) -> tuple[int, bool]:
        if statement.guard is None:
            return NONE, False
        return self.predicate(statement.guard), statement.guard_not

    def label(self, name: str) -> int:
        """The label's number in this frame."""
        labels = self.frames[-1].labels
        if name not in labels:
            labels[name] = self.code.label()
        return labels[name]

    def branch_target(self, name: str) -> int:
        """The number of a label that must exist."""
        if name not in self.frames[-1].label_names:
            raise BadOperand(f"there is no label `{name}`")
        return self.label(name)

    def register(self, name: str) -> tuple[int, int]:
        """The virtual register of a name, and its bits."""
        frame = self.frames[-1]
        register = frame.registers.get(name)
        if register is None:
            kind = frame.function.registers.get(name)
            if kind not in BITS:
                raise BadOperand(f"{name} is not a register of 1 to 64 bits here")
            register = frame.registers[name] = self.code.register(max(BITS[kind], 16) if kind != "pred" else 1)
            self.code.declared[register] = frame.declared[name]
        return register, self.code.bits[register]

    def predicate(self, operand: ast.Operand) -> int:
        """A predicate register."""
        if not isinstance(operand, ast.Register):
            raise BadOperand("takes a predicate here")
        register, bits = self.register(operand.name)
        if bits != 1:
            raise BadOperand(f"{operand.name} is not a predicate")
        return register

    def predicate_source(self, operand: ast.Operand) -> tuple[int, bool]:
        """``psrc`` and ``psrc_not``: a predicate, its complement, or a constant."""
        if isinstance(operand, ast.Immediate):
            return NONE, operand.bits == 0
        if isinstance(operand, ast.Not):
            return self.predicate(operand.item), True
        return self.predicate(operand), False

    def predicate_result(self, operand: ast.Operand) -> int:
        return NONE if isinstance(operand, ast.Sink) else self.predicate(operand)

    def result(self, operand: ast.Operand, kind: str) -> int:
        """A destination of exactly the type's width."""
        if isinstance(operand, ast.Sink):
            return NONE
        if not isinstance(operand, ast.Register):
            raise BadOperand("the destination must be a register")
        register, bits = self.register(operand.name)
        if bits != BITS[kind]:
            raise BadOperand(f"{operand.name} has {bits} bits, .{kind} takes {BITS[kind]}")
        return register

    def source(self, operand: ast.Operand, kind: str, *, wide: bool = False, flush: bool = False) -> Source:
        """A value of a type: a register of its width, a number, a special register or an address."""
        fetch = (FETCH_LONG if wide else FETCH)[kind]
        if flush and kind == "f32":
            fetch = Fetch.FTZ
        if isinstance(operand, ast.Register):
            register, bits = self.register(operand.name)
            if bits != max(BITS[kind], 16):
                raise BadOperand(f"{operand.name} has {bits} bits, .{kind} takes {max(BITS[kind], 16)}")
            return Source(fetch, register)
        if isinstance(operand, ast.Immediate):
            return immediate(fetch, constant(operand, kind))
        if isinstance(operand, ast.Special):
            register, bits = self.special(operand)
            if bits != BITS[kind]:
                raise BadOperand(f"{operand.name} has {bits} bits, .{kind} takes {BITS[kind]}")
            return Source(fetch, register)
        if isinstance(operand, ast.Symbol):
            return self._address_constant(operand, kind)._replace(fetch=fetch)
        raise BadOperand("takes a register or a constant here")

    def special(self, operand: ast.Special) -> tuple[int, int]:
        """A special register read into a fresh one, and its bits."""
        micro = self.read_special(operand, NONE)
        bits = 64 if micro.write == Write.PAIR else 32
        micro.dst = self.code.register(bits)
        self.emit(micro)
        return micro.dst, bits

    def read_special(self, operand: ast.Special, target: int) -> Micro:
        """The micro-operation that reads a special register."""
        if operand.name == "%reserved_smem_offset_1":
            return move(32, target, Source(Fetch.WORD, storage=self._static("", RESERVED)))
        self.asks_for_grid |= operand.name in GRID_WORKSPACE
        found = SPECIALS.get(operand.name)
        if found is None and operand.name.startswith(("%envreg", "%pm")):
            found = isa.Special.ZERO, 32
        if found is None:
            raise BadOperand(f"{operand.name} is not a special register that is known here")
        number, bits = found
        write = Write.PAIR if bits == 64 else Write.WORD
        return Micro(Group.WARP, isa.Warp.SPECIAL, Category.INTEGER, dst=target, write=write, sub=number)

    def _address_constant(self, symbol: ast.Symbol, kind: str) -> Source:
        if symbol.name in self.addresses and symbol.name not in self.frames[-1].function.variables:
            return Source(Fetch.PAIR, bits=self.addresses[symbol.name])
        storage = self.storage(symbol.name)
        if isinstance(storage, ParameterStorage):
            storage.address_taken = True
        if BITS[kind] != 64 and (storage.module or BITS[kind] != 32):
            raise BadOperand(f"the address of `{symbol.name}` has 64 bits")
        return Source(Fetch.PAIR, bits=symbol.offset, storage=storage)

    def in_register(self, operand: ast.Operand, bits: int, kind: str) -> tuple[int, int]:
        """A register with an operand, moved there when it is a constant; at least ``bits`` wide."""
        if isinstance(operand, ast.Register):
            register, width = self.register(operand.name)
            if width < bits or width == 1:
                raise BadOperand(f"{operand.name} has {width} bits, .{kind} takes {bits}")
            return register, width
        wide = 64 if bits == 64 else 32
        register = self.code.register(wide)
        value = self.source(operand, kind)
        fetch = Fetch.PAIR if wide == 64 else Fetch.WORD
        self.emit(move(wide, register, value._replace(fetch=fetch)))
        return register, wide

    def address(self, operand: ast.Operand) -> tuple[tuple[Source, ...], int, Storage | None]:
        """``[base + offset]`` as sources, offset, and the storage to add."""
        if not isinstance(operand, ast.Address):
            raise BadOperand("takes an address in brackets here")
        base = operand.base
        if isinstance(base, ast.Register):
            register, bits = self.register(base.name)
            if bits not in (32, 64):
                raise BadOperand(f"{base.name} has {bits} bits, an address 32 or 64")
            return (Source(Fetch.PAIR if bits == 64 else Fetch.U32, register),), operand.offset, None
        if isinstance(base, ast.Immediate):
            return (), base.bits + operand.offset, None
        return (), base.offset + operand.offset, self.storage(base.name)

    # ---------------------------------------------------------------------------------------------------------- storage

    def storage(self, name: str) -> Storage:
        storage = self.find_storage(name)
        if storage is None and name in self.module.functions:  # a kernel, since functions have addresses
            raise BadOperand("launches of kernels by kernels are not supported")
        if storage is None:
            raise BadOperand(f"`{name}` is not declared")
        return storage

    def find_storage(self, name: str) -> Storage | None:
        """The meaning of a name in the current frame."""
        frame = self.frames[-1]
        found = frame.storage.get(name)
        if found is None:
            variable = frame.function.variables.get(name)
            if variable is not None and variable.space == "param":
                found = self.parameter_storage(variable)
            elif variable is not None:
                found = self._static(frame.function.name, variable)
            elif name in self.module.variables:
                found = self._static("", self.module.variables[name])
            else:
                return None
            frame.storage[name] = found
        return found

    def _static(self, owner: str, variable: ast.Variable) -> Storage:
        if variable.space not in ("shared", "local"):
            space = MODULE_SPACES.get(variable.space, Space.GLOBAL)
            return Storage(variable.name, space, module=True, bytes=variable.bytes)
        key = owner, variable.name
        if key not in self.statics:
            space = Space.SHARED if variable.space == "shared" else Space.LOCAL
            self.statics[key] = Storage(variable.name, space), variable
        return self.statics[key][0]

    def parameter_storage(self, variable: ast.Variable) -> ParameterStorage:
        """A variable for a call's argument or result."""
        storage = ParameterStorage(variable.name, Space.LOCAL, bytes=variable.bytes, align=max(variable.align, 4))
        self.parameters.append(storage)
        return storage


def constant(operand: ast.Immediate, kind: str) -> int:
    """The bits of a number as an operand of a type."""
    bits, width = operand.bits, BITS[kind]
    if operand.kind == "int":
        if kind in ("f32", "f64"):
            raise BadOperand(f"{bits} is an integer, .{kind} takes 0f or 0d and hexadecimal digits, or a decimal point")
    elif operand.kind == "f64" and kind in ("f32", "b32"):
        bits = _narrow(bits)
    elif operand.kind == "f32" and width == 64:
        if kind != "f64":
            raise BadOperand(f"an f32 constant is not .{kind}")
        bits = struct.unpack("<Q", struct.pack("<d", struct.unpack("<f", struct.pack("<I", bits))[0]))[0]
    elif kind[0] in "us" or width < 32:
        raise BadOperand(f"a floating-point constant is not .{kind}")
    bits &= (1 << width) - 1
    return bits - (1 << 64) if bits >> 63 else bits


def _narrow(bits: int) -> int:
    """An f64 rounded to f32, as bits."""
    value = struct.unpack("<d", struct.pack("<Q", bits & (1 << 64) - 1))[0]
    try:
        return struct.unpack("<I", struct.pack("<f", value))[0]
    except OverflowError:
        return 0x7F80_0000 | (bits >> 63 & 1) << 31
