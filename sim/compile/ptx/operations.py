"""The table of arithmetic: PTX opcodes whose operands are plain values, as micro-operations.

A rule is found by the opcode, the modifiers that select an operation, and the type: ``("mul", "wide", "s32")``. What is
left of the modifiers are its attributes (rounding, ``.ftz``, ``.sat``, ``.cc``, ...), which a rule allows or not.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from lockstep.models.execution.isa import Category, Double, Fetch, Flag, Float, Group, Int, Long, Packed, Round, Write

BITS = {
    "pred": 1,
    "b8": 8, "u8": 8, "s8": 8,
    "b16": 16, "u16": 16, "s16": 16, "f16": 16, "bf16": 16,
    "b32": 32, "u32": 32, "s32": 32, "f32": 32, "f16x2": 32, "bf16x2": 32,
    "b64": 64, "u64": 64, "s64": 64, "f64": 64,
}  # fmt: skip

FETCH = {
    "u8": Fetch.U8, "s8": Fetch.S8, "b8": Fetch.U8,
    "u16": Fetch.U16, "s16": Fetch.S16, "b16": Fetch.U16, "f16": Fetch.F16, "bf16": Fetch.BF16,
    "u32": Fetch.WORD, "s32": Fetch.WORD, "b32": Fetch.WORD, "f32": Fetch.WORD, "f16x2": Fetch.WORD,
    "bf16x2": Fetch.WORD, "u64": Fetch.PAIR, "s64": Fetch.PAIR, "b64": Fetch.PAIR, "f64": Fetch.PAIR,
}  # fmt: skip
"""How a source of a type becomes a lane value of its own width."""

FETCH_LONG = FETCH | {
    "u8": Fetch.U8_LONG, "s8": Fetch.S8_LONG, "b8": Fetch.U8_LONG,
    "u16": Fetch.U16_LONG, "s16": Fetch.S16_LONG, "b16": Fetch.U16_LONG,
    "u32": Fetch.U32, "s32": Fetch.S32, "b32": Fetch.U32, "f32": Fetch.U32,
}  # fmt: skip
"""The same for operations whose lanes have 64 bits."""

WRITE = {
    "u16": Write.HALF, "s16": Write.HALF, "b16": Write.HALF, "f16": Write.F16, "bf16": Write.BF16,
    "u64": Write.PAIR, "s64": Write.PAIR, "b64": Write.PAIR, "f64": Write.PAIR,
}  # fmt: skip
"""How a result of a type lands in its register; ``Write.WORD`` for the types that are not here."""

ROUNDING = {"rn": Round.RN, "rz": Round.RZ, "rm": Round.RM, "rp": Round.RP, "rna": Round.RNA}
FLAGS = {"sat": Flag.SAT, "ftz": Flag.FTZ, "NaN": Flag.NAN, "xorsign": Flag.XORSIGN, "relu": Flag.RELU}
ATTRIBUTES = ROUNDING.keys() | FLAGS.keys() | {"cc", "abs"}


@dataclass(frozen=True, slots=True)
class Rule:
    """The operation that an instruction becomes, and the attributes that it may have.

    ``sources``: the types of the sources; ``optional`` of them, at the end, may be absent.
    ``allowed``: attributes, "rnd" for a rounding. ``required`` must be among those given.
    ``carry_in`` (0 or 1): the hidden carry flag is an input.
    """

    group: Group
    op: int
    category: Category
    result: str
    sources: tuple[str, ...]
    allowed: frozenset[str] = frozenset()
    required: frozenset[str] = frozenset()
    sub: int = 0
    flags: int = 0
    optional: int = 0
    carry_in: int = 0


RULES: dict[tuple[str, ...], Rule] = {}

INTEGERS = ("u16", "s16", "u32", "s32", "u64", "s64")
LONG = {"u64", "s64", "b64"}
DOUBLED = {"u16": "u32", "s16": "s32", "u32": "u64", "s32": "s64"}


def rule(
    name: str,
    kind: str,
    group: Group,
    op: int,
    category: Category,
    sources: Iterable[str],
    result: str | None = None,
    *,
    allowed: str = "",
    required: str = "",
    **rest: int,
) -> None:
    """Add the rule for ``name.kind``; both may hold several modifiers."""
    key = (*name.split("."), *kind.split("."))
    words = frozenset(required.split())
    RULES[key] = Rule(
        group, op, category, result or kind, tuple(sources), frozenset(allowed.split()) | words, words, **rest
    )


def _integer(name: str, operation: str, arity: int, kinds: Iterable[str] = INTEGERS, **rest: Any) -> None:
    """An operation of every integer width, all operands of the one type. ``MIN_`` stands for MIN_S and MIN_U."""
    category = CATEGORY.get(operation, Category.INTEGER)
    for kind in kinds:
        full = operation + kind[0].upper() if operation.endswith("_") else operation
        wide = kind in LONG
        group, op = (Group.LONG, Long[full]) if wide else (Group.INT, Int[full])
        rule(name, kind, group, op, category, [kind] * arity, **rest)


CATEGORY = {
    **dict.fromkeys(("AND", "OR", "XOR", "NOT", "CNOT"), Category.LOGICAL),
    **dict.fromkeys(("MUL", "MULHI_", "MAD", "MADHI_", "SAD_"), Category.MULTIPLY),
    **dict.fromkeys(("DIV_", "REM_"), Category.DIVIDE_INTEGER),
}

# Integer arithmetic -------------------------------------------------------------------------------------------------

_WORDS = ("u32", "s32", "u64", "s64")
_integer("add", "ADD", 2)
_integer("sub", "SUB", 2)
_integer("mul.lo", "MUL", 2)
_integer("mul.hi", "MULHI_", 2, _WORDS)
_integer("mad.lo", "MAD", 3)
_integer("mad.hi", "MADHI_", 3, _WORDS)
_integer("sad", "SAD_", 3)
_integer("div", "DIV_", 2)
_integer("rem", "REM_", 2)
_integer("abs", "ABS", 1, ("s16", "s32", "s64"))
_integer("neg", "NEG", 1, ("s16", "s32", "s64"))
_integer("min", "MIN_", 2)
_integer("max", "MAX_", 2)
for _kind in ("u16", "s16"):
    rule("mul.hi", _kind, Group.INT, Int.MULHI16, Category.MULTIPLY, [_kind] * 2)
for _kind, _double in DOUBLED.items():
    _long = _double in LONG
    _group = Group.LONG if _long else Group.INT
    rule("mul.wide", _kind, _group, Long.MUL if _long else Int.MUL, Category.MULTIPLY, [_kind] * 2, _double)
    rule("mad.wide", _kind, _group, Long.MAD if _long else Int.MAD, Category.MULTIPLY, [_kind, _kind, _double], _double)
for _name in ("add", "sub"):
    rule(_name, "sat.s32", Group.INT, Int[f"{_name.upper()}_SAT"], Category.INTEGER, ["s32"] * 2, "s32")
rule("mad.hi", "sat.s32", Group.INT, Int.MADHI_SAT, Category.MULTIPLY, ["s32"] * 3, "s32")
for _kind in _WORDS:
    for _name, _carry, _operation, _arity in (
        ("add", "addc", "ADD", 2),
        ("sub", "subc", "SUB", 2),
        ("mad.lo", "madc.lo", "MAD", 3),
        ("mad.hi", "madc.hi", "MADHI_", 3),
    ):
        _integer(_name, _operation, _arity, (_kind,), allowed="cc")
        _integer(_carry, _operation, _arity, (_kind,), allowed="cc", carry_in=1)
for _kind, _sub in (("u32", 0), ("s32", 1)):
    for _part, _suffix in (("lo", ""), ("hi", "HI")):
        rule(f"mul24.{_part}", _kind, Group.INT, Int[f"MUL{_suffix}24"], Category.MULTIPLY, [_kind] * 2, sub=_sub)
        rule(f"mad24.{_part}", _kind, Group.INT, Int[f"MAD{_suffix}24"], Category.MULTIPLY, [_kind] * 3, sub=_sub)

# Logic, shifts and bit fields ---------------------------------------------------------------------------------------

_BITS = ("b16", "b32", "b64")
for _name in ("and", "or", "xor"):
    _integer(_name, _name.upper(), 2, _BITS)
for _name in ("not", "cnot"):
    _integer(_name, _name.upper(), 1, _BITS)
for _kind in (*INTEGERS, *_BITS):
    _long = _kind in LONG
    _group, _ops = (Group.LONG, Long) if _long else (Group.INT, Int)
    _sign = "S" if _kind[0] == "s" else "U"
    rule("shr", _kind, _group, _ops[f"SHR_{_sign}"], Category.SHIFT, [_kind, "u32"])
    if _kind in _BITS:
        rule("shl", _kind, _group, _ops["SHL"], Category.SHIFT, [_kind, "u32"])
    if _kind not in ("b16", "u16", "s16"):
        if _kind in ("b32", "b64"):
            rule("popc", _kind, _group, _ops["POPC"], Category.SHIFT, [_kind], "u32")
            rule("clz", _kind, _group, _ops["CLZ"], Category.SHIFT, [_kind], "u32")
            rule("brev", _kind, _group, _ops["BREV"], Category.SHIFT, [_kind])
            rule("bfi", _kind, _group, _ops["BFI"], Category.SHIFT, [_kind, _kind, "u32", "u32"])
        else:
            rule("bfe", _kind, _group, _ops[f"BFE_{_sign}"], Category.SHIFT, [_kind, "u32", "u32"])
            rule("bfind", _kind, _group, _ops[f"BFIND_{_sign}"], Category.SHIFT, [_kind], "u32")
            rule("bfind.shiftamt", _kind, _group, _ops[f"BFIND_{_sign}"], Category.SHIFT, [_kind], "u32", sub=1)
for _side in ("l", "r"):
    for _mode in ("clamp", "wrap"):
        _op = Int[f"SHF_{_side}_{_mode}".upper()]
        rule(f"shf.{_side}.{_mode}", "b32", Group.INT, _op, Category.SHIFT, ["b32", "b32", "u32"])
for _sub, _mode in enumerate(("", ".f4e", ".b4e", ".rc8", ".ecl", ".ecr", ".rc16")):
    rule("prmt", f"b32{_mode}", Group.INT, Int.PRMT, Category.INTEGER, ["b32"] * 3, "b32", sub=_sub)
for _sub, _mode in enumerate(("clamp", "wrap")):
    rule(f"bmsk.{_mode}", "b32", Group.INT, Int.BMSK, Category.INTEGER, ["u32", "u32"], sub=_sub)
    rule(f"szext.{_mode}", "s32", Group.INT, Int.SZEXT_S, Category.INTEGER, ["s32", "u32"], sub=_sub)
    rule(f"szext.{_mode}", "u32", Group.INT, Int.SZEXT_U, Category.INTEGER, ["u32", "u32"], sub=_sub)
rule("fns", "b32", Group.INT, Int.FNS, Category.INTEGER, ["b32", "b32", "s32"])

# f32 and f64 --------------------------------------------------------------------------------------------------------


def _f32(name: str, op: Float, arity: int, *, category: Category = Category.FLOAT, **rest: Any) -> None:
    rule(name, "f32", Group.FLOAT, op, category, ["f32"] * arity, **rest)


def _f64(name: str, op: Double, arity: int, *, category: Category = Category.DOUBLE, **rest: Any) -> None:
    rule(name, "f64", Group.DOUBLE, op, category, ["f64"] * arity, **rest)


for _name in ("add", "sub", "mul"):
    _f32(_name, Float[_name.upper()], 2, allowed="rnd ftz sat")
    _f64(_name, Double[_name.upper()], 2, allowed="rnd")
_f32("fma", Float.FMA, 3, allowed="ftz sat", required="rnd")
_f64("fma", Double.FMA, 3, required="rnd")
_f32("mad", Float.FMA, 3, allowed="rnd ftz sat")
_f64("mad", Double.FMA, 3, allowed="rnd")
_f32("div", Float.DIV, 2, category=Category.DIVIDE, allowed="ftz", required="rnd")
_f32("div.approx", Float.DIV_APPROX, 2, category=Category.SPECIAL, allowed="ftz")
_f32("div.full", Float.DIV_FULL, 2, category=Category.SPECIAL, allowed="ftz")
_f64("div", Double.DIV, 2, category=Category.DIVIDE_DOUBLE, required="rnd")
for _name in ("rcp", "sqrt"):
    _f32(_name, Float[_name.upper()], 1, category=Category.DIVIDE, allowed="ftz", required="rnd")
    _f64(_name, Double[_name.upper()], 1, category=Category.DIVIDE_DOUBLE, required="rnd")
for _name, _approximate in (
    ("rcp", Float.RCP_APPROX),
    ("sqrt", Float.SQRT_APPROX),
    ("rsqrt", Float.RSQRT_APPROX),
    ("sin", Float.SIN),
    ("cos", Float.COS),
    ("lg2", Float.LG2),
    ("ex2", Float.EX2),
):
    _f32(f"{_name}.approx", _approximate, 1, category=Category.SPECIAL, allowed="ftz")
_f32("tanh.approx", Float.TANH, 1, category=Category.SPECIAL)
_f64("rcp.approx", Double.RCP_APPROX, 1, category=Category.SPECIAL_DOUBLE, required="ftz")
_f64("rsqrt.approx", Double.RSQRT_APPROX, 1, category=Category.SPECIAL_DOUBLE, allowed="ftz")
for _name in ("min", "max"):
    _f32(_name, Float[_name.upper()], 3, allowed="ftz NaN xorsign abs", optional=1)
    _f64(_name, Double[_name.upper()], 2)
for _name in ("abs", "neg"):
    _f32(_name, Float[_name.upper()], 1, allowed="ftz")
    _f64(_name, Double[_name.upper()], 1)
_f32("copysign", Float.COPYSIGN, 2)
_f64("copysign", Double.COPYSIGN, 2)

# Half precision -----------------------------------------------------------------------------------------------------
# Scalars are widened to f32, where sums and products of halves are exact enough to be rounded once more, by the write.


def _half(name: str, operation: str, arity: int, *, ftz: str = "ftz", allowed: str = "", required: str = "") -> None:
    for kind in ("f16", "bf16"):
        some = f"{allowed} {ftz if kind == 'f16' else ''}"
        if operation == "FMA":
            op = Packed[f"FMA_{kind.upper()}"]
            rule(name, kind, Group.PACKED, op, Category.FLOAT, [kind] * arity, allowed=some, required=required)
        else:
            category = Category.SPECIAL if operation in ("EX2", "TANH") else Category.FLOAT
            rule(name, kind, Group.FLOAT, Float[operation], category, [kind] * arity, allowed=some, required=required)
        packed = f"{operation}_{kind.upper()}X2"
        if packed in Packed.__members__:
            pair = f"{kind}x2"
            category = Category.SPECIAL if operation in ("EX2", "TANH") else Category.FLOAT
            rule(name, pair, Group.PACKED, Packed[packed], category, [pair] * arity, allowed=some, required=required)


for _name in ("add", "sub", "mul"):
    _half(_name, _name.upper(), 2, allowed="rn sat")
_half("fma", "FMA", 3, allowed="sat relu", required="rn")
for _name in ("min", "max"):
    _half(_name, _name.upper(), 2, allowed="NaN xorsign abs")
for _name in ("abs", "neg"):
    _half(_name, _name.upper(), 1)
_half("tanh.approx", "TANH", 1, ftz="")
rule("ex2.approx", "f16", Group.FLOAT, Float.EX2, Category.SPECIAL, ["f16"])
rule("ex2.approx", "f16x2", Group.PACKED, Packed.EX2_F16X2, Category.SPECIAL, ["f16x2"])
rule("ex2.approx", "bf16", Group.FLOAT, Float.EX2, Category.SPECIAL, ["bf16"], required="ftz")

# Dot products and video ---------------------------------------------------------------------------------------------

for _a in ("u32", "s32"):
    for _b in ("u32", "s32"):
        _sub = (_a == "s32") | (_b == "s32") << 1
        _sum = "s32" if _sub else "u32"
        for _name, _dot in (("dp4a", Packed.DP4A), ("dp2a.lo", Packed.DP2A_LO), ("dp2a.hi", Packed.DP2A_HI)):
            rule(_name, f"{_a}.{_b}", Group.PACKED, _dot, Category.INTEGER, [_a, _b, _sum], _sum, sub=_sub)
    for _name in ("vabsdiff4", "vadd4", "vsub4", "vmin4", "vmax4"):
        for _result in ("u32", "s32"):
            for _sub, _mode in ((0, ""), (2, ".add")):
                rule(
                    _name, f"{_result}.{_a}.{_a}{_mode}", Group.PACKED, Packed[_name.upper()], Category.VIDEO,
                    [_a, _a, "u32"], "u32", sub=_sub | (_a == "s32"),
                )  # fmt: skip
