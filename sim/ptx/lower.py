"""From a parsed PTX module to micro-operations.

Each instruction goes through a rule of the table in ``operations.py`` or a handler in ``instructions.py`` and becomes
one micro-operation over virtual registers. Extra ones are made only for immediates where the record has room for
registers alone (stores, atomics, texture coordinates), for special registers as operands, and for spilled registers.

Registers are matched by width, never by declared type: compilers keep f32 in ``.b32`` registers from sm_100 on.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Iterator

from lockstep.models.execution import isa
from lockstep.models.execution.isa import Category, Control, Fetch, Group, Space, Write
from lockstep.sim.errors import UsageError
from lockstep.sim.ptx import ast
from lockstep.sim.ptx.allocate import Pressure, allocate
from lockstep.sim.ptx.assemble import assemble
from lockstep.sim.ptx.inline import Frame, ParameterStorage, lower_call, place_parameters
from lockstep.sim.ptx.instructions import HANDLERS, SPECIALS, BadOperand, UnknownInstruction
from lockstep.sim.ptx.micro import NONE, Code, Micro, Source, Storage, immediate, move
from lockstep.sim.ptx.operations import (
    ATTRIBUTES,
    BITS,
    FETCH,
    FETCH_LONG,
    FLAGS,
    ROUNDING,
    RULES,
    WRITE,
    Rule,
)
from lockstep.sim.ptx.program import Kernel, Parameter, Program

MAX_CODE = 1_000_000  # micro-operations of a kernel: calls that multiply are stopped here
MODULE_SPACES = {"global": Space.GLOBAL, "const": Space.CONST}  # textures and surfaces count as global


def lower(module: ast.Module, registers_per_thread: int) -> Program:
    """Lower every kernel of a module. Raises :class:`UsageError`."""
    addresses = _function_addresses(module)
    kernels = {
        name: Lowering(module, function, addresses, registers_per_thread).kernel()
        for name, function in module.functions.items()
        if function.entry and function.defined
    }
    variables = {name: v for name, v in module.variables.items() if v.space not in ("shared", "local")}
    return Program(module.path, kernels, variables, addresses)


def _function_addresses(module: ast.Module) -> dict[str, int]:
    """Small numbers for the functions that are used as data."""
    candidates = {name for name, function in module.functions.items() if not function.entry}
    used = {symbol.name for v in module.variables.values() for _, symbol, _ in v.relocations}
    if candidates:
        for function in module.functions.values():
            for statement in function.body:
                if isinstance(statement, ast.Instruction):
                    used.update(_symbols(statement.operands))
    return {name: number for number, name in enumerate(module.functions, 1) if name in used & candidates}


def _symbols(operands: Iterable[ast.Operand]) -> Iterator[str]:
    for operand in operands:
        if isinstance(operand, ast.Symbol):
            yield operand.name
        elif isinstance(operand, ast.Vector):
            yield from _symbols(operand.items)


class Lowering:
    """One kernel on its way to micro-operations."""

    def __init__(self, module: ast.Module, function: ast.Function, addresses: dict[str, int], limit: int) -> None:
        self.module = module
        self.function = function
        self.addresses = addresses
        self.limit = min(limit, function.maxnreg or limit)
        self.code = Code()
        self.frames: list[Frame] = []
        self.line = function.line
        self.text = function.name
        self.statics: dict[tuple[str, str], tuple[Storage, ast.Variable]] = {}  # shared and module-scope local
        self.parameters: list[ParameterStorage] = []
        self.local_bytes = 0
        self.carry = NONE
        self.source_instructions = 0

    def kernel(self) -> Kernel:
        """Lower, place variables, allocate registers, assemble."""
        frame = Frame(self.function)
        parameters, param_bytes = self._parameters(frame)
        self.body(frame)
        if not self.code.list or not self.code.list[-1].ends_path or len(self.code.list) in self.code.labels:
            self.emit(Micro(Group.CONTROL, Control.EXIT, Category.CONTROL))
        shared_bytes, dynamic = self._place_statics()
        self.local_bytes = place_parameters(self.code, self.parameters, self.local_bytes)
        try:
            allocation = allocate(self.code, self.limit, self.local_bytes)
        except Pressure as error:
            raise self._refused(str(error)) from None
        code, relocations, table = assemble(self.code, allocation.physical)
        return Kernel(
            name=self.function.name,
            path=self.module.path,
            code=code,
            registers=allocation.registers,
            predicates=allocation.predicates,
            parameters=parameters,
            param_bytes=param_bytes,
            shared_bytes=shared_bytes,
            dynamic_shared=dynamic,
            local_bytes=allocation.local_bytes,
            relocations=relocations,
            branch_table=table,
            max_block=self.function.maxntid,
            required_block=self.function.reqntid,
            spilled=allocation.spilled,
            source_instructions=self.source_instructions,
            line=self.function.line,
        )

    def _parameters(self, frame: Frame) -> tuple[list[Parameter], int]:
        offset, result = 0, []
        for variable in self.function.parameters:
            offset = _aligned(offset, variable.align)
            frame.storage[variable.name] = Storage(variable.name, Space.PARAM, offset)
            result.append(
                Parameter(
                    variable.name, variable.type, offset, variable.bytes, variable.align, variable.is_array,
                    variable.pointer_space,
                )
            )  # fmt: skip
            offset += variable.bytes
        return result, offset

    def _place_statics(self) -> tuple[int, bool]:
        """Lay out shared memory, dynamic arrays last. Returns the static bytes, and whether arrays follow."""
        shared, alignment, dynamic = 0, 1, []
        for storage, variable in self.statics.values():
            if storage.space == Space.LOCAL:
                self.local_bytes = _aligned(self.local_bytes, variable.align)
                storage.offset = self.local_bytes
                self.local_bytes += variable.bytes
            elif variable.extern or not variable.bytes:
                dynamic.append(storage)
                alignment = max(alignment, variable.align)
            else:
                shared = _aligned(shared, variable.align)
                storage.offset = shared
                shared += variable.bytes
        if dynamic:
            shared = _aligned(shared, alignment)
        for storage in dynamic:
            storage.offset = shared
        return shared, bool(dynamic)

    # ------------------------------------------------------------------------------------------------------- statements

    def body(self, frame: Frame) -> None:
        """Lower a function's body in its frame."""
        self.frames.append(frame)
        frame.tables = {s.name: s.labels for s in frame.function.body if isinstance(s, ast.BranchTargets)}
        frame.label_names = {s.name for s in frame.function.body if isinstance(s, ast.Label)}
        self._place_locals(frame)
        self.local_bytes = max(self.local_bytes, frame.local_base + frame.local_bytes)
        place = self.line, self.text
        for statement in frame.function.body:
            if isinstance(statement, ast.Label):
                self.code.place(self.label(statement.name))
            elif not isinstance(statement, ast.BranchTargets):
                self._statement(statement)
        self.line, self.text = place
        self.frames.pop()

    def _place_locals(self, frame: Frame) -> None:
        """Give local variables their places. Frames of functions that do not call each other overlap."""
        offset = frame.local_base = _aligned(frame.local_base, 16)
        for variable in frame.function.variables.values():
            if variable.space == "local":
                offset = _aligned(offset, variable.align)
                frame.storage[variable.name] = Storage(variable.name, Space.LOCAL, offset)
                offset += variable.bytes
        frame.local_bytes = offset - frame.local_base

    def _statement(self, statement: ast.Instruction | ast.Call) -> None:
        self.line, self.text = statement.line, statement.text
        self.source_instructions += 1
        if len(self.code.list) > MAX_CODE:
            raise self._refused(f"has more than {MAX_CODE} instructions after inlining its calls")
        try:
            if isinstance(statement, ast.Call):
                lower_call(self, statement)
                return
            micro = self._instruction(statement)
            micro.guard, micro.guard_not = self.guard(statement)
            self.emit(micro)
        except UnknownInstruction:
            raise UsageError(f"{self.module.path}:{self.line}: unknown instruction `{self.text}`") from None
        except BadOperand as error:
            raise UsageError(f"{self.module.path}:{self.line}: `{self.text}`: {error}") from None

    def _refused(self, why: str) -> UsageError:
        return UsageError(f"{self.module.path}:{self.function.line}: kernel `{self.function.name}` {why}")

    def _instruction(self, instruction: ast.Instruction) -> Micro:
        key = (instruction.opcode, *instruction.modifiers)
        rule = RULES.get(key)
        if rule is not None and not rule.required:
            return self._by_rule(rule, [], instruction.operands)
        handler = HANDLERS.get(instruction.opcode)
        if handler is not None:
            micro = handler(self, instruction)
            if micro is not None:
                return micro
        attributes = [name for name in instruction.modifiers if name in ATTRIBUTES]
        rule = RULES.get((instruction.opcode, *(name for name in instruction.modifiers if name not in ATTRIBUTES)))
        if rule is None or len(set(attributes)) != len(attributes):
            raise UnknownInstruction
        given = {"rnd" if name in ROUNDING and "rnd" in rule.allowed else name for name in attributes}
        if not rule.required <= given <= rule.allowed or len(given) != len(attributes):
            raise UnknownInstruction
        if ("abs" in given) != ("xorsign" in given):
            raise UnknownInstruction
        return self._by_rule(rule, attributes, instruction.operands)

    def _by_rule(self, rule: Rule, attributes: list[str], operands: tuple[ast.Operand, ...]) -> Micro:
        most = len(rule.sources) + 1
        if not most - rule.optional <= len(operands) <= most:
            raise BadOperand(f"takes {most} operands, not {len(operands)}")
        flush = "ftz" in attributes
        flags, rnd, pdst = rule.flags, 0, NONE
        for name in attributes:
            flags |= FLAGS.get(name, 0)
            rnd = ROUNDING.get(name, rnd)
            if name == "cc":
                pdst = self.carry_flag()
        wide = rule.group == Group.LONG
        sources = tuple(
            self.source(operand, kind, wide=wide, flush=flush)
            for operand, kind in zip(operands[1:], rule.sources, strict=False)
        )
        return Micro(
            rule.group, rule.op, rule.category, sources, self.result(operands[0], rule.result),
            WRITE.get(rule.result, Write.WORD), rule.sub or int(flush and rule.result == "f64"), flags, rnd, pdst,
            psrc=self.carry_flag() if rule.carry_in else NONE,
        )  # fmt: skip

    def emit(self, micro: Micro) -> None:
        micro.line = self.line
        self.code.list.append(micro)

    def carry_flag(self) -> int:
        """The hidden predicate that ``.cc`` writes."""
        if self.carry == NONE:
            self.carry = self.code.register(1)
        return self.carry

    # --------------------------------------------------------------------------------------------------------- operands

    def bad(self, message: str) -> BadOperand:
        return BadOperand(message)

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
        if storage is None:
            raise BadOperand(f"`{name}` is not declared")
        return storage

    def find_storage(self, name: str) -> Storage | None:
        """What a name stands for in the current frame."""
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
            return Storage(variable.name, MODULE_SPACES.get(variable.space, Space.GLOBAL), module=True)
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


def _aligned(offset: int, alignment: int) -> int:
    return -(-offset // alignment) * alignment


