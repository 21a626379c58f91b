"""Instructions whose operands need more than a table: moves, comparisons, conversions, memory, control, warps.

A handler takes the scope and an instruction and returns its micro-operation, or None when the instruction is one of
the table's after all (``and.b32`` beside ``and.pred``). Modifiers are consumed one by one; whatever is left over is
unknown.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TypeVar

from lockstep.models.execution.isa import (
    CUBE,
    IN_LAYERS,
    LAYERED,
    Atomic,
    Bool,
    Category,
    Compare,
    Control,
    Convert,
    Double,
    Fetch,
    Flag,
    Float,
    Group,
    Int,
    Integer,
    Long,
    Memory,
    Packed,
    Predicate,
    Round,
    Space,
    Texture,
    Warp,
    Write,
)
from lockstep.sim.compile.ptx import ast
from lockstep.sim.compile.ptx.micro import NONE, WINDOWS, Micro, Source, Storage, immediate, move
from lockstep.sim.compile.ptx.operations import BITS, FETCH, FETCH_LONG, ROUNDING, WRITE
from lockstep.sim.compile.ptx.parameters import ParameterStorage, load_parameter, store_parameter
from lockstep.sim.compile.ptx.scope import BadOperand, Scope

Handler = Callable[[Scope, ast.Instruction], Micro | None]
HANDLERS: dict[str, Handler] = {}
T = TypeVar("T")


class UnknownInstruction(Exception):
    """The opcode, or a modifier of it, is not known."""


class Modifiers:
    """The modifiers of an instruction that are still to be understood."""

    def __init__(self, instruction: ast.Instruction) -> None:
        self.left = list(instruction.modifiers)

    def take(self, choices: Iterable[str]) -> str | None:
        """Take the first that is among the choices."""
        for name in self.left:
            if name in choices:
                self.left.remove(name)
                return name
        return None

    def has(self, name: str) -> bool:
        return self.take((name,)) is not None

    def need(self, choices: Iterable[str]) -> str:
        found = self.take(choices)
        if found is None:
            raise UnknownInstruction
        return found

    def drop(self, prefixes: tuple[str, ...]) -> None:
        """Take hints that change nothing here."""
        self.left = [name for name in self.left if not name.startswith(prefixes)]

    def kind(self, choices: Iterable[str] = BITS) -> str:
        """Take the type, which comes last."""
        if not self.left or self.left[-1] not in choices:
            raise UnknownInstruction
        return self.left.pop()

    def finish(self) -> None:
        if self.left:
            raise UnknownInstruction


def look_up(table: dict[str, T], name: str) -> T:
    """An entry of a table of modifiers."""
    if name not in table:
        raise UnknownInstruction
    return table[name]


def handles(*opcodes: str) -> Callable[[Handler], Handler]:
    def register(handler: Handler) -> Handler:
        for opcode in opcodes:
            HANDLERS[opcode] = handler
        return handler

    return register


def operands(instruction: ast.Instruction, least: int, most: int | None = None) -> tuple[ast.Operand, ...]:
    """The operands, when their number is right."""
    most = least if most is None else most
    count = len(instruction.operands)
    if not least <= count <= most:
        allowed = f"{least}" if least == most else f"{least} to {most}"
        raise BadOperand(f"takes {allowed} operand{'s' if most != 1 else ''}, not {count}")
    return instruction.operands


def two_results(operand: ast.Operand) -> tuple[ast.Operand, ast.Operand]:
    """``d|p``, or ``d`` alone."""
    return (operand.first, operand.second) if isinstance(operand, ast.Pair) else (operand, ast.Sink())


def items(operand: ast.Operand) -> tuple[ast.Operand, ...]:
    """The elements of a vector, or the operand alone."""
    return operand.items if isinstance(operand, ast.Vector) else (operand,)


# --------------------------------------------------------------------------------------------------------------- moves

_PACK = {(32, 2): Long.PACK16X2, (32, 4): Long.PACK8X4, (64, 2): Long.PACK, (64, 4): Long.PACK16}
_UNPACK = {(32, 2): Long.UNPACK16X2, (32, 4): Long.UNPACK8X4, (64, 2): Long.UNPACK, (64, 4): Long.UNPACK16}
_MOVED = tuple(kind for kind, bits in BITS.items() if bits != 8 and "f16" not in kind)


@handles("mov")
def mov(scope: Scope, instruction: ast.Instruction) -> Micro:
    modifiers = Modifiers(instruction)
    kind = modifiers.kind(_MOVED)
    modifiers.finish()
    target, value = operands(instruction, 2)
    if kind == "pred":
        psrc, negated = scope.predicate_source(value)
        pdst = scope.predicate_result(target)
        return Micro(
            Group.PREDICATE, Predicate.MOV, Category.INTEGER, psrc=psrc, psrc_not=negated, pdst=pdst
        )  # fmt: skip
    bits = BITS[kind]
    if isinstance(value, ast.Vector):
        return _pack(scope, target, value, kind)
    if isinstance(target, ast.Vector):
        return _unpack(scope, target, value, kind)
    raw = f"b{bits}"
    if isinstance(value, ast.Special):
        micro = scope.read_special(value, scope.result(target, raw))
        if micro.write == Write.WORD and bits == 16:
            micro.write = Write.HALF
        elif (micro.write == Write.PAIR) != (bits == 64):
            if value.name not in ("%gridid", "%clock64"):
                raise BadOperand(f"{value.name} does not have {bits} bits")
            micro.write = Write.WORD  # %gridid had 32 bits in old PTX; the low word
        return micro
    return move(bits, scope.result(target, raw), scope.source(value, kind if isinstance(value, ast.Immediate) else raw))


def _pack(scope: Scope, target: ast.Operand, value: ast.Vector, kind: str) -> Micro:
    count, bits = len(value.items), BITS[kind]
    if (bits, count) not in _PACK:
        raise BadOperand(f".{kind} cannot be made of {count} elements")
    piece = f"b{bits // count}"
    sources = tuple(_zero_extended(scope.source(item, piece)) for item in value.items)
    write = Write.PAIR if bits == 64 else Write.WORD
    return Micro(
        Group.LONG, _PACK[bits, count], Category.INTEGER, sources, scope.result(target, f"b{bits}"), write
    )  # fmt: skip


def _zero_extended(source: Source) -> Source:
    return immediate(Fetch.U32, source.bits) if source.register == NONE else source._replace(fetch=Fetch.U32)


def _unpack(scope: Scope, target: ast.Vector, value: ast.Operand, kind: str) -> Micro:
    count, bits = len(target.items), BITS[kind]
    if (bits, count) not in _UNPACK:
        raise BadOperand(f".{kind} cannot be taken apart into {count} elements")
    piece = f"b{max(bits // count, 16)}"
    registers = [scope.result(item, piece) for item in target.items]
    source = scope.source(value, f"b{bits}")
    if bits == 32:
        source = _zero_extended(source)
    return Micro(
        Group.LONG, _UNPACK[bits, count], Category.INTEGER, (source,), registers[0], Write.WORD,
        results=dict(enumerate(registers[1:])),
    )  # fmt: skip


@handles("and", "or", "xor", "not")
def predicate_logic(scope: Scope, instruction: ast.Instruction) -> Micro | None:
    if instruction.modifiers != ("pred",):
        return None
    op = Predicate[instruction.opcode.upper()]
    target, *values = operands(instruction, 2 if op == Predicate.NOT else 3)
    psrc, psrc_not = scope.predicate_source(values[0])
    psrc2, psrc2_not = scope.predicate_source(values[-1]) if len(values) == 2 else (NONE, False)
    return Micro(
        Group.PREDICATE, op, Category.LOGICAL, pdst=scope.predicate_result(target), psrc=psrc, psrc_not=psrc_not,
        psrc2=psrc2, psrc2_not=psrc2_not,
    )  # fmt: skip


@handles("lop3")
def lop3(scope: Scope, instruction: ast.Instruction) -> Micro:
    modifiers = Modifiers(instruction)
    combine = modifiers.take(("or", "and"))
    modifiers.kind(("b32",))
    modifiers.finish()
    target, a, b, c, table, *rest = operands(instruction, 6 if combine else 5)
    if not isinstance(table, ast.Immediate) or not 0 <= table.bits <= 255:
        raise BadOperand("takes a look-up table of 0 to 255")
    sources = tuple(scope.source(operand, "b32") for operand in (a, b, c))
    if combine is None:
        return Micro(
            Group.INT, Int.LOP3, Category.LOGICAL, sources, scope.result(target, "b32"), Write.WORD, sub=table.bits
        )  # fmt: skip
    value, predicate = two_results(target)
    psrc, negated = scope.predicate_source(rest[0])
    return Micro(
        Group.PREDICATE, Predicate.LOP3, Category.LOGICAL, sources, scope.result(value, "b32"), Write.WORD, table.bits,
        pdst=scope.predicate_result(predicate), psrc=psrc, psrc_not=negated, imm3=Bool[combine.upper()],
    )  # fmt: skip


# --------------------------------------------------------------------------------------------- comparison and selection

_EQUALITY = {"eq": Compare.EQ, "ne": Compare.NE}
_ORDER = {"lt": Compare.LT, "le": Compare.LE, "gt": Compare.GT, "ge": Compare.GE}
_SIGNED_COMPARISONS = _EQUALITY | _ORDER
_UNSIGNED_COMPARISONS = _SIGNED_COMPARISONS | {
    "lo": Compare.LT, "ls": Compare.LE, "hi": Compare.GT, "hs": Compare.GE,
}  # fmt: skip
_FLOAT_COMPARISONS = _SIGNED_COMPARISONS | {
    name: Compare[name.upper()] for name in ("equ", "neu", "ltu", "leu", "gtu", "geu", "num", "nan")
}
_ALL_COMPARISONS = _UNSIGNED_COMPARISONS.keys() | _FLOAT_COMPARISONS.keys()
_COMPARISONS = {"b": _EQUALITY, "u": _UNSIGNED_COMPARISONS, "s": _SIGNED_COMPARISONS, "f": _FLOAT_COMPARISONS}
_BOOLS = {"and": Bool.AND, "or": Bool.OR, "xor": Bool.XOR}


def _compared(kind: str) -> tuple[str, str]:
    """The suffix of the comparing operation, and the class of comparisons that the type allows."""
    family = "f" if kind in ("f16", "bf16", "f32", "f64") else kind[0]
    width = "64" if BITS[kind] == 64 else "32"
    return f"{'U' if family == 'b' else family.upper()}{width}", family


def _comparison(scope: Scope, instruction: ast.Instruction, modifiers: Modifiers, kind: str, prefix: str) -> Micro:
    """The part that ``setp`` and ``set`` have in common: everything but the destination."""
    suffix, family = _compared(kind)
    code = look_up(_COMPARISONS[family], modifiers.need(_ALL_COMPARISONS))
    combine = modifiers.take(_BOOLS)
    flush = modifiers.has("ftz")
    if flush and kind not in ("f32", "f16"):
        raise UnknownInstruction
    modifiers.finish()
    _, a, b, *rest = operands(instruction, 4 if combine else 3)
    psrc, negated = scope.predicate_source(rest[0]) if rest else (NONE, False)
    sources = (scope.source(a, kind, flush=flush), scope.source(b, kind, flush=flush))
    sub = code | (_BOOLS[combine] if combine else Bool.NONE) << 4
    return Micro(
        Group.PREDICATE, Predicate[f"{prefix}_{suffix}"], Category.COMPARE, sources, sub=sub, psrc=psrc,
        psrc_not=negated, flags=Flag.FTZ if flush and kind == "f16" else 0,
    )  # fmt: skip


_SETP_TYPES = {"b16", "u16", "s16", "b32", "u32", "s32", "b64", "u64", "s64", "f16", "bf16", "f32", "f64"}


@handles("setp")
def setp(scope: Scope, instruction: ast.Instruction) -> Micro:
    modifiers = Modifiers(instruction)
    micro = _comparison(scope, instruction, modifiers, modifiers.kind(_SETP_TYPES), "SETP")
    first, second = two_results(instruction.operands[0])
    micro.pdst, micro.pdst2 = scope.predicate_result(first), scope.predicate_result(second)
    return micro


@handles("set")
def set_(scope: Scope, instruction: ast.Instruction) -> Micro:
    modifiers = Modifiers(instruction)
    kind = modifiers.kind((*_SETP_TYPES, "f16x2"))
    result = modifiers.kind(("u16", "s16", "u32", "s32", "f16", "bf16", "f32", "f16x2"))
    if kind == "f16x2":
        code = look_up(_FLOAT_COMPARISONS, modifiers.need(_FLOAT_COMPARISONS))
        flush = modifiers.has("ftz")
        modifiers.finish()
        target, a, b = operands(instruction, 3)
        if result not in ("f16x2", "u32", "s32"):
            raise UnknownInstruction
        sources = (scope.source(a, kind), scope.source(b, kind))
        return Micro(
            Group.PACKED, Packed.SET_F16X2, Category.COMPARE, sources, scope.result(target, result), Write.WORD, code,
            flags=(Flag.SAT if result == "f16x2" else 0) | (Flag.FTZ if flush else 0),
        )  # fmt: skip
    if result == "f16x2":
        raise UnknownInstruction
    micro = _comparison(scope, instruction, modifiers, kind, "SET")
    micro.dst, micro.write = scope.result(instruction.operands[0], result), WRITE.get(result, Write.WORD)
    if result in ("f16", "bf16", "f32"):
        micro.flags |= Flag.SAT
    return micro


_SELECTED = [kind for kind, bits in BITS.items() if bits >= 16 and "f16" not in kind]


@handles("selp")
def selp(scope: Scope, instruction: ast.Instruction) -> Micro:
    modifiers = Modifiers(instruction)
    kind = modifiers.kind(_SELECTED)
    modifiers.finish()
    target, a, b, chooser = operands(instruction, 4)
    psrc, negated = scope.predicate_source(chooser)
    op = Predicate.SELP64 if BITS[kind] == 64 else Predicate.SELP
    sources = (scope.source(a, kind), scope.source(b, kind))
    return Micro(
        Group.PREDICATE, op, Category.COMPARE, sources, scope.result(target, kind), WRITE.get(kind, Write.WORD),
        psrc=psrc, psrc_not=negated,
    )  # fmt: skip


@handles("slct")
def slct(scope: Scope, instruction: ast.Instruction) -> Micro:
    modifiers = Modifiers(instruction)
    chooser = modifiers.kind(("s32", "f32"))
    kind = modifiers.kind(_SELECTED)
    flush = chooser == "f32" and modifiers.has("ftz")
    modifiers.finish()
    target, a, b, c = operands(instruction, 4)
    op = Predicate[f"SLCT{'64' if BITS[kind] == 64 else ''}_{chooser.upper()}"]
    sources = (scope.source(a, kind), scope.source(b, kind), scope.source(c, chooser, flush=flush))
    return Micro(
        Group.PREDICATE, op, Category.COMPARE, sources, scope.result(target, kind), WRITE.get(kind, Write.WORD)
    )  # fmt: skip


_CLASSES = ("finite", "infinite", "number", "notanumber", "normal", "subnormal")


@handles("testp")
def testp(scope: Scope, instruction: ast.Instruction) -> Micro:
    modifiers = Modifiers(instruction)
    kind = modifiers.kind(("f32", "f64"))
    sub = _CLASSES.index(modifiers.need(_CLASSES))
    modifiers.finish()
    target, value = operands(instruction, 2)
    op, category = (
        (Predicate.TESTP_F32, Category.FLOAT) if kind == "f32" else (Predicate.TESTP_F64, Category.DOUBLE)
    )  # fmt: skip
    return Micro(
        Group.PREDICATE, op, category, (scope.source(value, kind),), sub=sub, pdst=scope.predicate_result(target)
    )  # fmt: skip


# ---------------------------------------------------------------------------------------------------------- conversions

_INTEGRAL = {"rni": Round.RN, "rzi": Round.RZ, "rmi": Round.RM, "rpi": Round.RP}
_INTEGER_TYPES = {name.lower(): number for name, number in Integer.__members__.items()}
_FLOATS = ("f16", "bf16", "f32", "f64")
_CONVERTED = (*_INTEGER_TYPES, *_FLOATS)


def _relaxed(scope: Scope, operand: ast.Operand, kind: str) -> Source:
    """A source that may be wider than its type: the low bits count."""
    if isinstance(operand, ast.Register):
        register, bits = scope.register(operand.name)
        if bits == 1 or bits < BITS[kind]:
            raise BadOperand(f"{operand.name} has {bits} bits, .{kind} takes {BITS[kind]}")
        return Source(FETCH[kind], register)
    return scope.source(operand, kind)


def _destination(scope: Scope, operand: ast.Operand, kind: str) -> tuple[int, int]:
    """A destination that may be wider than its type, and its bits."""
    if isinstance(operand, ast.Sink):
        return NONE, max(BITS[kind], 16)
    if not isinstance(operand, ast.Register):
        raise BadOperand("the destination must be a register")
    register, bits = scope.register(operand.name)
    if bits == 1 or bits < BITS[kind]:
        raise BadOperand(f"{operand.name} has {bits} bits, .{kind} gives {BITS[kind]}")
    return register, bits


@handles("cvt")
def cvt(scope: Scope, instruction: ast.Instruction) -> Micro:
    modifiers = Modifiers(instruction)
    source_kind = modifiers.kind(_CONVERTED)
    kind = modifiers.kind((*_CONVERTED, "f16x2", "bf16x2"))
    integral = modifiers.take(_INTEGRAL)
    rounding = modifiers.take(ROUNDING)
    flush, saturate, relu = modifiers.has("ftz"), modifiers.has("sat"), modifiers.has("relu")
    modifiers.finish()
    flags = (Flag.SAT if saturate else 0) | (Flag.RELU if relu else 0)
    if relu and kind not in ("f16", "bf16", "f16x2", "bf16x2"):
        raise UnknownInstruction
    if (flush and "f32" not in (kind, source_kind)) or (integral and rounding):
        raise UnknownInstruction
    if kind in ("f16x2", "bf16x2"):
        return _cvt_packed(scope, instruction, kind, source_kind, rounding, flags)
    target, value = operands(instruction, 2)
    from_float, to_float = source_kind in _FLOATS, kind in _FLOATS
    if not from_float and not to_float:
        if integral or rounding:
            raise UnknownInstruction
        return _cvt_integers(scope, target, value, kind, source_kind, saturate)
    if not from_float:
        return _cvt_from_integer(scope, target, value, kind, source_kind, rounding, flags)
    source = _relaxed(scope, value, source_kind)
    if flush and source_kind == "f32":
        source = source._replace(fetch=Fetch.FTZ)
        if kind in ("f32", "f64"):
            flags |= Flag.FTZ
    elif flush:
        flags |= Flag.FTZ
    if not to_float:
        if integral is None or rounding:
            raise UnknownInstruction
        return _cvt_to_integer(scope, target, source, kind, source_kind, _INTEGRAL[integral])
    return _cvt_floats(scope, target, source, kind, source_kind, integral, rounding, flags)


def _cvt_integers(
    scope: Scope, target: ast.Operand, value: ast.Operand, kind: str, source_kind: str, saturate: bool
) -> Micro:
    """The source is extended by its own sign to the result's width, or cut, then extended by the result's sign to the
    register's width."""
    source = _relaxed(scope, value, source_kind)
    register, bits = _destination(scope, target, kind)
    write = Write.PAIR if bits == 64 else Write.HALF if bits == 16 else Write.WORD
    if saturate:
        if bits == 64 and BITS[kind] < 64:
            raise BadOperand(f"the saturated .{kind} result takes a register of 16 or 32 bits")
        signed = Flag.SIGNED if source_kind[0] == "s" else 0
        source = source._replace(fetch=FETCH_LONG[source_kind])
        return Micro(
            Group.CONVERT, Convert.CLAMP, Category.CONVERSION, (source,), register, write,
            sub=_INTEGER_TYPES[kind], flags=signed,
        )  # fmt: skip
    grows = BITS[source_kind] < BITS[kind]
    extended = source_kind if grows else kind
    if grows and source_kind[0] == "s" and kind[0] == "u" and bits > BITS[kind]:
        if BITS[kind] != 16 or bits != 32:
            raise BadOperand(f"{source_kind} to {kind} in a register of {bits} bits is not supported")
        write = Write.HALF
    source = source._replace(fetch=(FETCH_LONG if bits == 64 else FETCH)[extended])
    if bits == 64:
        return Micro(Group.LONG, Long.MOV, Category.CONVERSION, (source,), register, write)
    return Micro(Group.INT, Int.MOV, Category.CONVERSION, (source,), register, write)


def _cvt_from_integer(
    scope: Scope, target: ast.Operand, value: ast.Operand, kind: str, source_kind: str, rounding: str | None,
    flags: int,
) -> Micro:  # fmt: skip
    if rounding not in ("rn", "rz", "rm", "rp"):
        raise UnknownInstruction
    source = _relaxed(scope, value, source_kind)._replace(fetch=FETCH_LONG[source_kind])
    op = Convert.INT_TO_F64 if kind == "f64" else Convert.INT_TO_F32
    return Micro(
        Group.CONVERT, op, Category.CONVERSION, (source,), scope.result(target, kind), WRITE.get(kind, Write.WORD),
        sub=_INTEGER_TYPES[source_kind], flags=flags, rnd=ROUNDING[rounding],
    )  # fmt: skip


def _cvt_to_integer(
    scope: Scope, target: ast.Operand, source: Source, kind: str, source_kind: str, rounding: Round
) -> Micro:
    register, bits = _destination(scope, target, kind)
    if bits == 64 and BITS[kind] < 64:
        raise BadOperand(f"the .{kind} result takes a register of 16 or 32 bits")
    op = Convert.F64_TO_INT if source_kind == "f64" else Convert.F32_TO_INT
    write = Write.PAIR if bits == 64 else Write.HALF if bits == 16 else Write.WORD
    return Micro(
        Group.CONVERT, op, Category.CONVERSION, (source,), register, write, sub=_INTEGER_TYPES[kind], rnd=rounding
    )  # fmt: skip


def _cvt_floats(
    scope: Scope, target: ast.Operand, source: Source, kind: str, source_kind: str, integral: str | None,
    rounding: str | None, flags: int,
) -> Micro:  # fmt: skip
    register, write = scope.result(target, kind), WRITE.get(kind, Write.WORD)
    narrows = BITS[kind] < BITS[source_kind] or {kind, source_kind} == {"f16", "bf16"}
    if narrows != (rounding is not None) or (integral is not None and kind != source_kind):
        raise UnknownInstruction
    rnd = ROUNDING[rounding] if rounding else Round.RN
    group, op = Group.FLOAT, int(Float.MOV)
    if kind == "f32" and source_kind in ("f32", "bf16") and source.fetch != Fetch.FTZ and not (integral or flags):
        group, op = Group.INT, int(Int.MOV)  # a NaN stays as it is
    if integral is not None:
        group, op = Group.CONVERT, int(Convert.ROUND_F64 if kind == "f64" else Convert.ROUND_F32)
        # The halves are integers after the rounding, so the write's own rounding mode does not matter.
        rnd = _INTEGRAL[integral]
    elif kind == source_kind == "f64":
        group, op = Group.DOUBLE, int(Double.MOV)
    elif kind == "f64":
        group, op = Group.CONVERT, int(Convert.F32_TO_F64)
    elif source_kind == "f64":
        group, op = Group.CONVERT, int(Convert.F64_TO_F32)
    return Micro(group, op, Category.CONVERSION, (source,), register, write, flags=flags, rnd=rnd)


def _cvt_packed(
    scope: Scope, instruction: ast.Instruction, kind: str, source_kind: str, rounding: str | None, flags: int
) -> Micro:
    if source_kind != "f32" or rounding not in ("rn", "rz"):
        raise UnknownInstruction
    target, high, lower = operands(instruction, 3)
    op = Packed.CVT_F16X2 if kind == "f16x2" else Packed.CVT_BF16X2
    sources = (scope.source(high, "f32"), scope.source(lower, "f32"))
    return Micro(
        Group.PACKED, op, Category.CONVERSION, sources, scope.result(target, kind), Write.WORD, flags=flags,
        rnd=ROUNDING[rounding],
    )  # fmt: skip


_SPACES = {
    "global": Space.GLOBAL, "shared": Space.SHARED, "shared::cta": Space.SHARED, "local": Space.LOCAL,
    "const": Space.CONST, "param": Space.PARAM, "param::entry": Space.PARAM, "param::func": Space.PARAM,
}  # fmt: skip


@handles("cvta")
def cvta(scope: Scope, instruction: ast.Instruction) -> Micro:
    modifiers = Modifiers(instruction)
    kind = modifiers.kind(("u64", "u32"))
    to = modifiers.has("to")
    space = _SPACES[modifiers.need(_SPACES)]
    modifiers.finish()
    if kind == "u32":
        raise BadOperand("addresses of 32 bits are not supported")
    target, value = operands(instruction, 2)
    source = scope.source(value, "u64")
    if space == Space.PARAM and scope.frames[-1].leave is not None:
        space = Space.LOCAL  # parameters of inlined functions lie there
    window = WINDOWS[space]
    dst = scope.result(target, "u64")
    if not window:
        return Micro(Group.LONG, Long.MOV, Category.CONVERSION, (source,), dst, Write.PAIR)
    op = Long.SUB if to else Long.ADD
    return Micro(
        Group.LONG, op, Category.CONVERSION, (source, Source(Fetch.PAIR, bits=window)), dst, Write.PAIR
    )  # fmt: skip


@handles("isspacep")
def isspacep(scope: Scope, instruction: ast.Instruction) -> Micro:
    modifiers = Modifiers(instruction)
    space = _SPACES[modifiers.need(_SPACES)]
    modifiers.finish()
    target, value = operands(instruction, 2)
    return Micro(
        Group.PREDICATE, Predicate.ISSPACE, Category.CONVERSION, (scope.source(value, "b64"),), sub=space,
        pdst=scope.predicate_result(target),
    )  # fmt: skip


# --------------------------------------------------------------------------------------------------------------- memory

_CATEGORIES = {
    Space.GENERIC: Category.GLOBAL, Space.GLOBAL: Category.GLOBAL, Space.SHARED: Category.SHARED,
    Space.LOCAL: Category.LOCAL, Space.CONST: Category.CONST, Space.PARAM: Category.PARAM,
}  # fmt: skip
_SCOPES = ("cta", "cluster", "gpu", "sys")
_HINTS = ("L1::", "L2::")
_VECTORS = {"v2": 2, "v4": 4, "v8": 8}
_LOADED = [kind for kind in BITS if kind != "pred" and "f16" not in kind]


def _ordering(modifiers: Modifiers, semantics: tuple[str, ...]) -> int:
    """The flags of a memory order: what another SM may see must not come from, or stay in, the L1."""
    order, scope = modifiers.take(semantics), modifiers.take(_SCOPES)
    if order in ("volatile", "mmio"):
        return Flag.VOLATILE
    passes_l1 = order not in (None, "weak") and scope != "cta"
    return (Flag.VOLATILE if passes_l1 else 0) | _synchronizes(order, scope)


def _synchronizes(order: str | None, scope: str | None) -> int:
    """The flags of an access that acquires, releases, or does both."""
    flags = Flag.ACQUIRE if order in ("acquire", "acq_rel") else 0
    flags |= Flag.RELEASE if order in ("release", "acq_rel") else 0
    return flags | Flag.IN_CTA if flags and scope == "cta" else flags


def _cache_policy(instruction: ast.Instruction, modifiers: Modifiers) -> int:
    """Take the hints; returns how many operands they bring (a cache policy, which is ignored)."""
    policies = sum(name == "L2::cache_hint" for name in instruction.modifiers)
    modifiers.drop(_HINTS)
    return policies


@handles("ld", "ldu")
def load(scope: Scope, instruction: ast.Instruction) -> Micro:
    modifiers = Modifiers(instruction)
    kind = modifiers.kind(_LOADED)
    policies = _cache_policy(instruction, modifiers)
    flags = _ordering(modifiers, ("weak", "volatile", "relaxed", "acquire", "mmio"))
    space = _SPACES.get(modifiers.take(_SPACES) or "", Space.GENERIC)
    cached = modifiers.take(("ca", "cg", "cs", "lu", "cv"))
    if modifiers.has("nc") and space != Space.GLOBAL:
        raise UnknownInstruction
    vector = modifiers.take(_VECTORS)
    modifiers.finish()
    flags |= {"cv": Flag.VOLATILE, "cg": Flag.CACHE_GLOBAL}.get(cached or "", 0)
    flags |= Flag.SIGNED if kind[0] == "s" else 0
    target, source = operands(instruction, 2 + policies)[:2]
    targets = [_destination(scope, item, kind) for item in _elements(target, vector)]
    widths = {bits for register, bits in targets if register != NONE} or {max(BITS[kind], 16)}
    if len(widths) > 1:
        raise BadOperand("the registers of a vector must be of one width")
    sources, offset, storage = scope.address(source)
    space, parameter = _parameter_space(scope, space, storage, sources)
    if parameter is not None:
        return load_parameter(parameter, offset, BITS[kind] // 8, targets, flags & Flag.SIGNED)
    return Micro(
        Group.MEMORY, Memory.LOAD, _CATEGORIES[space], sources, space=space, bytes=BITS[kind] // 8, vec=len(targets),
        data=widths.pop() // 8, flags=flags, offset=offset, storage=storage,
        results={index: register for index, (register, _) in enumerate(targets)},
    )  # fmt: skip


@handles("st")
def store(scope: Scope, instruction: ast.Instruction) -> Micro:
    modifiers = Modifiers(instruction)
    kind = modifiers.kind(_LOADED)
    policies = _cache_policy(instruction, modifiers)
    flags = _ordering(modifiers, ("weak", "volatile", "relaxed", "release", "mmio"))
    space = _SPACES.get(modifiers.take(_SPACES) or "", Space.GENERIC)
    if space == Space.CONST:
        raise UnknownInstruction
    cached = modifiers.take(("wb", "cg", "cs", "wt"))
    vector = modifiers.take(_VECTORS)
    modifiers.finish()
    flags |= Flag.CACHE_GLOBAL if cached == "cg" else 0
    target, source = operands(instruction, 2 + policies)[:2]
    values = _elements(source, vector)
    sources, offset, storage = scope.address(target)
    space, parameter = _parameter_space(scope, space, storage, sources)
    if parameter is not None:
        return store_parameter(parameter, offset, BITS[kind] // 8, [_stored(scope, value, kind) for value in values])
    if space == Space.PARAM:
        raise BadOperand("a kernel's parameters cannot be written")
    registers = [scope.in_register(value, BITS[kind], kind) for value in values]
    if len({bits == 64 for _, bits in registers}) > 1:
        raise BadOperand("the registers of a vector must be of one width")
    return Micro(
        Group.MEMORY, Memory.STORE, _CATEGORIES[space], sources, space=space, bytes=BITS[kind] // 8, vec=len(values),
        data=min(bits for _, bits in registers) // 8, flags=flags, offset=offset, storage=storage,
        operands={index: register for index, (register, _) in enumerate(registers)},
    )  # fmt: skip


def _stored(scope: Scope, value: ast.Operand, kind: str) -> tuple[Source, int]:
    source = _relaxed(scope, value, kind)
    return source, scope.code.bits[source.register] if source.register != NONE else max(BITS[kind], 16)


def _elements(operand: ast.Operand, vector: str | None) -> tuple[ast.Operand, ...]:
    """The registers of a vector access; one in braces stands for itself."""
    elements = items(operand)
    expected = _VECTORS[vector] if vector else 1
    if len(elements) != expected:
        raise BadOperand(f"takes {expected} element{'s in braces' if vector else ''} of data, not {len(elements)}")
    return elements


def _parameter_space(
    scope: Scope, space: Space, storage: Storage | None, sources: tuple[Source, ...]
) -> tuple[Space, ParameterStorage | None]:
    """Tell a kernel's parameters from those of calls, which are registers or local memory."""
    if space != Space.PARAM:
        return space, None
    if isinstance(storage, ParameterStorage):
        return space, storage
    return (Space.LOCAL if sources and scope.frames[-1].leave is not None else space), None


@handles("prefetch", "prefetchu")
def prefetch(scope: Scope, instruction: ast.Instruction) -> Micro:
    modifiers = Modifiers(instruction)
    space = _SPACES.get(modifiers.take(("global", "local", "const", "param")) or "", Space.GENERIC)
    modifiers.need(("L1", "L2", "tensormap"))
    modifiers.drop(_HINTS)
    modifiers.finish()
    sources, offset, storage = scope.address(operands(instruction, 1)[0])
    return Micro(
        Group.MEMORY, Memory.PREFETCH, _CATEGORIES[space], sources, space=space, bytes=1, offset=offset,
        storage=storage,
    )  # fmt: skip


@handles("createpolicy")
def createpolicy(scope: Scope, instruction: ast.Instruction) -> Micro:
    """Cache policies are hints, and ignored: the policy is zero."""
    if instruction.modifiers[-1:] != ("b64",) or instruction.modifiers[0] not in ("fractional", "range", "cvt"):
        raise UnknownInstruction
    target = operands(instruction, 1, 4)[0]
    return move(64, scope.result(target, "b64"), Source(Fetch.PAIR))


_ATOMICS: dict[tuple[str, str], Atomic] = {
    **{("add", kind): Atomic.ADD for kind in ("u32", "s32", "u64", "s64")},
    ("add", "f32"): Atomic.ADD_F32,
    ("add", "f64"): Atomic.ADD_F64,
    ("add", "f16"): Atomic.ADD_F16,
    ("add", "f16x2"): Atomic.ADD_F16X2,
    ("add", "bf16x2"): Atomic.ADD_BF16X2,
    **{(name, kind): Atomic[name.upper()] for name in ("and", "or", "xor", "exch", "cas") for kind in ("b32", "b64")},
    **{(name, f"u{bits}"): Atomic[f"{name.upper()}_U"] for name in ("min", "max") for bits in (32, 64)},
    **{(name, f"s{bits}"): Atomic[f"{name.upper()}_S"] for name in ("min", "max") for bits in (32, 64)},
    ("inc", "u32"): Atomic.INC,
    ("dec", "u32"): Atomic.DEC,
}


@handles("atom", "red")
def atom(scope: Scope, instruction: ast.Instruction) -> Micro:
    reduces = instruction.opcode == "red"
    modifiers = Modifiers(instruction)
    kind = modifiers.kind()
    policies = _cache_policy(instruction, modifiers)
    operation = modifiers.need(("add", "min", "max", "and", "or", "xor", "inc", "dec", "exch", "cas"))
    op = _ATOMICS.get((operation, kind))
    if op is None or (reduces and op in (Atomic.EXCH, Atomic.CAS)):
        raise UnknownInstruction
    order = modifiers.take(("relaxed",) if reduces else ("relaxed", "acquire", "acq_rel"))
    order = modifiers.take(("release",)) or order
    flags = _synchronizes(order, modifiers.take(_SCOPES))
    space = _SPACES.get(modifiers.take(("global", "shared", "shared::cta")) or "", Space.GENERIC)
    if kind in ("f16", "f16x2", "bf16x2"):
        modifiers.need(("noftz",))
    modifiers.finish()
    values = list(operands(instruction, 3 - reduces + (op == Atomic.CAS) + policies))
    target = ast.Sink() if reduces else values.pop(0)
    sources, offset, storage = scope.address(values[0])
    sources = sources or (immediate(Fetch.WORD, 0),)  # the operands follow the address
    registers = {}
    for index, value in enumerate(values[1 : 2 + (op == Atomic.CAS)]):
        if isinstance(value, ast.Register):
            registers[2 + 2 * index], bits = scope.in_register(value, BITS[kind], kind)
            if bits > max(BITS[kind], 32):
                raise BadOperand(f"takes registers of {BITS[kind]} bits")
        constant = immediate(Fetch.WORD, 0) if isinstance(value, ast.Register) else scope.source(value, kind)
        sources += (constant,)
    dst = scope.result(target, kind)
    return Micro(
        Group.ATOMIC, op, Category.ATOMIC, sources, space=space, bytes=BITS[kind] // 8, data=BITS[kind] // 8,
        flags=flags, offset=offset, storage=storage, results={0: dst}, operands=registers,
    )  # fmt: skip


# ------------------------------------------------------------------------------------------------ textures and surfaces

_DIMENSIONS = {"1d": 1, "2d": 2, "3d": 3}
_LAYERED = {"a1d": 1, "a2d": 2}
_CUBES = {"cube": 2, "acube": 2}


def _coordinates(
    scope: Scope, values: tuple[ast.Operand, ...], dimensions: int, kind: str, layered: bool = False
) -> dict[int, int]:
    """Registers of the coordinates, behind a layer, at their place in ``v``. With three a fourth is ignored."""
    count = dimensions + layered
    if len(values) not in ((count, 4) if count == 3 else (count,)):
        raise BadOperand(f"takes {count} coordinate{'s' if count > 1 else ''}, not {len(values)}")
    kinds = ["u32"] * layered + [kind] * dimensions
    registers = [scope.in_register(value, 32, each) for value, each in zip(values, kinds, strict=False)]
    if any(bits != 32 for _, bits in registers):
        raise BadOperand("coordinates have 32 bits")
    return {4 + index: register for index, (register, _) in enumerate(registers)}


@handles("tex")
def tex(scope: Scope, instruction: ast.Instruction) -> Micro:
    """``tex.level`` names a level of detail; textures have only one, so every level is that one."""
    modifiers = Modifiers(instruction)
    level = modifiers.has("level")
    coordinate_kind = modifiers.kind(("s32", "f32"))
    kind = modifiers.kind(("u32", "s32", "f32"))
    geometry = modifiers.need(_DIMENSIONS | _LAYERED | _CUBES)
    dimensions = (_DIMENSIONS | _LAYERED | _CUBES)[geometry]
    layered, cube = geometry in (*_LAYERED, "acube"), geometry in _CUBES
    if cube and coordinate_kind != "f32":
        raise UnknownInstruction
    modifiers.need(("v4",))
    modifiers.finish()
    target, texel, *levels = operands(instruction, 2 + level)
    for value in levels:
        scope.source(value, coordinate_kind)
    if not isinstance(texel, ast.Texel):
        raise BadOperand("takes a texture and coordinates in brackets")
    if texel.sampler is not None:
        raise BadOperand("separate samplers are not supported, only texture references that hold their own")
    results = [scope.result(item, kind) for item in _elements(target, "v4")]
    return Micro(
        Group.TEXTURE, Texture[f"TEX_{dimensions}D"], Category.TEXTURE, (scope.source(texel.texture, "u64"),),
        sub=int(coordinate_kind == "f32"), flags=Flag.SIGNED if kind == "s32" else 0, vec=4, bytes=4,
        rnd=layered * LAYERED + cube * CUBE, results=dict(enumerate(results)),
        operands=_coordinates(scope, texel.coordinates, dimensions + cube, coordinate_kind, layered),
    )  # fmt: skip


@handles("txq", "suq")
def txq(scope: Scope, instruction: ast.Instruction) -> Micro:
    modifiers = Modifiers(instruction)
    modifiers.kind(("b32",))
    sub = ("width", "height", "depth").index(modifiers.need(("width", "height", "depth")))
    modifiers.finish()
    target, handle = operands(instruction, 2)
    if not isinstance(handle, ast.Address) or handle.offset:
        raise BadOperand("takes a texture or surface in brackets")
    return Micro(
        Group.TEXTURE, Texture.QUERY, Category.TEXTURE, (scope.source(handle.base, "u64"),), sub=sub,
        results={0: scope.result(target, "b32")},
    )  # fmt: skip


_CLAMPS = ("trap", "clamp", "zero")


@handles("suld", "sust")
def surface(scope: Scope, instruction: ast.Instruction) -> Micro:
    """Formatless accesses; the byte offset x comes first, or behind a layer. The faces of a cube are layers.

    ``rnd`` says what an access outside does: see _CLAMPS.
    """
    modifiers = Modifiers(instruction)
    if not modifiers.has("b"):
        raise UnknownInstruction
    clamp = _CLAMPS.index(modifiers.take(_CLAMPS) or "trap")
    kind = modifiers.kind(("b8", "b16", "b32", "b64"))
    geometry = modifiers.need(_DIMENSIONS | _LAYERED)
    dimensions, layered = (_DIMENSIONS | _LAYERED)[geometry], geometry in _LAYERED
    loads = instruction.opcode == "suld"
    modifiers.take(("ca", "cg", "cs", "cv") if loads else ("wb", "cg", "cs", "wt"))
    vector = modifiers.take(("v2", "v4"))
    modifiers.finish()
    first, second = operands(instruction, 2)
    texel, data = (second, first) if loads else (first, second)
    if not isinstance(texel, ast.Texel) or texel.sampler is not None:
        raise BadOperand("takes a surface and coordinates in brackets")
    values = _elements(data, vector)
    coordinates = _coordinates(scope, texel.coordinates, dimensions, "s32", layered)
    micro = Micro(
        Group.TEXTURE, Texture.SURFACE_LOAD if loads else Texture.SURFACE_STORE, Category.TEXTURE,
        (scope.source(texel.texture, "u64"),), sub=dimensions - 1, rnd=clamp + layered * IN_LAYERS,
        bytes=BITS[kind] // 8, vec=len(values), operands=coordinates,
    )  # fmt: skip
    if loads:
        targets = [_destination(scope, value, kind) for value in values]
        micro.results = {index: register for index, (register, _) in enumerate(targets)}
    else:
        targets = [scope.in_register(value, BITS[kind], kind) for value in values]
        micro.operands |= {index: register for index, (register, _) in enumerate(targets)}
    micro.data = max(bits for _, bits in targets) // 8
    return micro


# -------------------------------------------------------------------------------------------------------------- control


@handles("bra")
def bra(scope: Scope, instruction: ast.Instruction) -> Micro:
    modifiers = Modifiers(instruction)
    flags = Flag.UNIFORM if modifiers.has("uni") else 0
    modifiers.finish()
    (target,) = operands(instruction, 1)
    if not isinstance(target, ast.Symbol):
        raise BadOperand("takes a label")
    return Micro(
        Group.CONTROL, Control.BRANCH, Category.CONTROL, flags=flags, targets=(scope.branch_target(target.name),)
    )  # fmt: skip


@handles("brx")
def brx(scope: Scope, instruction: ast.Instruction) -> Micro:
    modifiers = Modifiers(instruction)
    if not modifiers.has("idx"):
        raise UnknownInstruction
    flags = Flag.UNIFORM if modifiers.has("uni") else 0
    modifiers.finish()
    index, table = operands(instruction, 2)
    labels = scope.frames[-1].tables.get(table.name) if isinstance(table, ast.Symbol) else None
    if labels is None:
        raise BadOperand("takes the name of a .branchtargets list")
    return Micro(
        Group.CONTROL, Control.INDEXED, Category.CONTROL, (scope.source(index, "u32"),), flags=flags, imm3=len(labels),
        targets=tuple(scope.branch_target(label) for label in labels),
    )  # fmt: skip


@handles("ret", "exit")
def ret(scope: Scope, instruction: ast.Instruction) -> Micro:
    modifiers = Modifiers(instruction)
    flags = Flag.UNIFORM if instruction.opcode == "ret" and modifiers.has("uni") else 0
    modifiers.finish()
    operands(instruction, 0)
    leave = scope.frames[-1].leave
    if leave is None or instruction.opcode == "exit":
        return Micro(Group.CONTROL, Control.EXIT, Category.CONTROL, flags=flags)
    return Micro(Group.CONTROL, Control.BRANCH, Category.CONTROL, flags=flags | Flag.CALL, targets=(leave,))


@handles("trap", "brkpt", "pmevent", "nanosleep", "griddepcontrol")
def simple_control(scope: Scope, instruction: ast.Instruction) -> Micro:
    """Those that do nothing here but take their place, and ``trap``."""
    op, category, allowed, count = {
        "trap": (Control.TRAP, Category.MISCELLANEOUS, ((),), 0),
        "brkpt": (Control.NOP, Category.MISCELLANEOUS, ((),), 0),
        "pmevent": (Control.NOP, Category.MISCELLANEOUS, ((), ("mask",)), 1),
        "nanosleep": (Control.SLEEP, Category.CONTROL, (("u32",),), 1),
        "griddepcontrol": (Control.NOP, Category.SYNCHRONIZATION, (("wait",), ("launch_dependents",)), 0),
    }[instruction.opcode]
    if instruction.modifiers not in allowed:
        raise UnknownInstruction
    values = operands(instruction, count)
    sources = (scope.source(values[0], "u32"),) if op == Control.SLEEP else ()
    return Micro(Group.CONTROL, op, category, sources)


@handles("membar", "fence")
def fence(scope: Scope, instruction: ast.Instruction) -> Micro:
    modifiers = Modifiers(instruction)
    width = None
    if instruction.opcode == "membar":
        width = modifiers.need(("cta", "gl", "sys"))
    elif not modifiers.has("proxy"):
        modifiers.take(("sc", "acq_rel", "acquire", "release"))
        width = modifiers.need(_SCOPES)
    else:
        modifiers.need(("alias", "async", "async.global"))
        modifiers.take(_SPACES)
    modifiers.finish()
    operands(instruction, 0)
    return Micro(Group.CONTROL, Control.FENCE, Category.SYNCHRONIZATION, sub=int(width != "cta"))


@handles("bar", "barrier")
def barrier(scope: Scope, instruction: ast.Instruction) -> Micro:
    modifiers = Modifiers(instruction)
    if instruction.opcode == "bar" and modifiers.has("warp"):
        modifiers.need(("sync",))
        modifiers.finish()
        mask = scope.source(operands(instruction, 1)[0], "b32")
        return Micro(Group.CONTROL, Control.WARP_SYNC, Category.SYNCHRONIZATION, (mask,))
    modifiers.has("cta")
    if instruction.opcode == "barrier":
        modifiers.has("aligned")
    operation = modifiers.need(("sync", "arrive", "red"))
    if operation == "red":
        return _reduction(scope, instruction, modifiers)
    modifiers.finish()
    values = operands(instruction, 1, 2) if operation == "sync" else operands(instruction, 2)
    sources = tuple(scope.source(value, "u32") for value in values)
    op = Control.BARRIER if operation == "sync" else Control.ARRIVE
    return Micro(Group.CONTROL, op, Category.SYNCHRONIZATION, sources)


def _reduction(scope: Scope, instruction: ast.Instruction, modifiers: Modifiers) -> Micro:
    sub = ("popc", "and", "or").index(modifiers.need(("popc", "and", "or")))
    modifiers.kind(("pred",) if sub else ("u32",))
    modifiers.finish()
    target, *values, vote = operands(instruction, 3, 4)
    psrc, negated = scope.predicate_source(vote)
    micro = Micro(
        Group.CONTROL, Control.REDUCE, Category.SYNCHRONIZATION, tuple(scope.source(value, "u32") for value in values),
        sub=sub, psrc=psrc, psrc_not=negated,
    )  # fmt: skip
    if sub:
        micro.pdst = scope.predicate_result(target)
    else:
        micro.dst, micro.write = scope.result(target, "u32"), Write.WORD
    return micro


# --------------------------------------------------------------------------------------------------------------- a warp


@handles("shfl")
def shfl(scope: Scope, instruction: ast.Instruction) -> Micro:
    modifiers = Modifiers(instruction)
    modifiers.kind(("b32",))
    synchronous = modifiers.has("sync")
    op = Warp[f"SHFL_{modifiers.need(('up', 'down', 'bfly', 'idx')).upper()}"]
    modifiers.finish()
    target, *values = operands(instruction, 5 if synchronous else 4)
    value, predicate = two_results(target)
    return Micro(
        Group.WARP, op, Category.MISCELLANEOUS, tuple(scope.source(operand, "b32") for operand in values),
        scope.result(value, "b32"), Write.WORD, pdst=scope.predicate_result(predicate),
    )  # fmt: skip


@handles("vote")
def vote(scope: Scope, instruction: ast.Instruction) -> Micro:
    modifiers = Modifiers(instruction)
    synchronous = modifiers.has("sync")
    mode = modifiers.need(("all", "any", "uni", "ballot"))
    modifiers.kind(("b32",) if mode == "ballot" else ("pred",))
    modifiers.finish()
    target, value, *mask = operands(instruction, 3 if synchronous else 2)
    psrc, negated = scope.predicate_source(value)
    micro = Micro(
        Group.WARP, Warp.BALLOT if mode == "ballot" else Warp[f"VOTE_{mode.upper()}"], Category.SYNCHRONIZATION,
        tuple(scope.source(operand, "b32") for operand in mask), psrc=psrc, psrc_not=negated,
    )  # fmt: skip
    if mode == "ballot":
        micro.dst, micro.write = scope.result(target, "b32"), Write.WORD
    else:
        micro.pdst = scope.predicate_result(target)
    return micro


@handles("match")
def match(scope: Scope, instruction: ast.Instruction) -> Micro:
    modifiers = Modifiers(instruction)
    kind = modifiers.kind(("b32", "b64"))
    mode = modifiers.need(("any", "all"))
    modifiers.need(("sync",))
    modifiers.finish()
    target, value, mask = operands(instruction, 3)
    first, second = two_results(target)
    if mode == "any" and isinstance(target, ast.Pair):
        raise BadOperand("match.any has no predicate result")
    op = Warp[f"MATCH_{mode.upper()}{'64' if kind == 'b64' else ''}"]
    return Micro(
        Group.WARP, op, Category.SYNCHRONIZATION, (scope.source(value, kind), scope.source(mask, "b32")),
        scope.result(first, "b32"), Write.WORD, pdst=scope.predicate_result(second),
    )  # fmt: skip


_REDUCTIONS = {
    ("add", "u32"): Warp.REDUX_ADD, ("add", "s32"): Warp.REDUX_ADD,
    ("min", "s32"): Warp.REDUX_MIN_S, ("min", "u32"): Warp.REDUX_MIN_U,
    ("max", "s32"): Warp.REDUX_MAX_S, ("max", "u32"): Warp.REDUX_MAX_U,
    ("and", "b32"): Warp.REDUX_AND, ("or", "b32"): Warp.REDUX_OR, ("xor", "b32"): Warp.REDUX_XOR,
}  # fmt: skip


@handles("redux")
def redux(scope: Scope, instruction: ast.Instruction) -> Micro:
    modifiers = Modifiers(instruction)
    kind = modifiers.kind(("u32", "s32", "b32"))
    modifiers.need(("sync",))
    op = _REDUCTIONS.get((modifiers.need(("add", "min", "max", "and", "or", "xor")), kind))
    modifiers.finish()
    if op is None:
        raise UnknownInstruction
    target, value, mask = operands(instruction, 3)
    sources = (scope.source(value, "b32"), scope.source(mask, "b32"))
    return Micro(
        Group.WARP, op, Category.SYNCHRONIZATION, sources, scope.result(target, "b32"), Write.WORD
    )  # fmt: skip


@handles("activemask")
def activemask(scope: Scope, instruction: ast.Instruction) -> Micro:
    modifiers = Modifiers(instruction)
    modifiers.kind(("b32",))
    modifiers.finish()
    (target,) = operands(instruction, 1)
    return Micro(
        Group.WARP, Warp.ACTIVEMASK, Category.SYNCHRONIZATION, dst=scope.result(target, "b32"), write=Write.WORD
    )  # fmt: skip


@handles("elect")
def elect(scope: Scope, instruction: ast.Instruction) -> Micro:
    modifiers = Modifiers(instruction)
    modifiers.need(("sync",))
    modifiers.finish()
    target, mask = operands(instruction, 2)
    value, predicate = two_results(target)
    return Micro(
        Group.WARP, Warp.ELECT, Category.SYNCHRONIZATION, (scope.source(mask, "b32"),), scope.result(value, "b32"),
        Write.WORD, pdst=scope.predicate_result(predicate),
    )  # fmt: skip
