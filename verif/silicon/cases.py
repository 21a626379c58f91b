"""The instructions that are compared with a GPU: every one that computes, with every type and modifier.

Arithmetic comes from the compiler's own table (``sim/compile/ptx/operations.py``), so that a new rule is a new case.
What has a handler instead of a rule is listed here.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import product

from lockstep.sim.compile.ptx.operations import BITS, RULES, Rule

ROUNDINGS = ("rn", "rz", "rm", "rp")
INTEGRAL = ("rni", "rzi", "rmi", "rpi")
INTEGERS = ("u8", "s8", "u16", "s16", "u32", "s32", "u64", "s64")
FLOATS = ("f16", "bf16", "f32", "f64")
EQUALITY, ORDER = ("eq", "ne"), ("lt", "le", "gt", "ge")
UNSIGNED_ORDER = ("lo", "ls", "hi", "hs")
UNORDERED = ("equ", "neu", "ltu", "leu", "gtu", "geu", "num", "nan")


@dataclass(frozen=True)
class Case:
    """One instruction, perhaps with what brings its result into one register.

    ``sources`` are the kinds of the operands ``{a}`` to ``{d}`` of ``text``: types, or see ``operands.draw``. The
    result ``{r}`` is of type ``result``. ``{x}`` and ``{y}`` are more registers of that type, ``{p}`` and ``{q}``
    predicates, ``{in}`` and ``{out}`` the addresses of the first operand and of the result.
    """

    name: str
    sources: tuple[str, ...]
    result: str
    text: str


# Where hardware departs from PTX outside of these operands (docs/model.md).
WITHIN = {
    "bfe.u64": ("u64", "byte", "byte"),
    "bfe.s64": ("s64", "byte", "byte"),
    "bfi.b64": ("b64", "b64", "byte", "byte"),
    "fns.b32": ("b32", "b32", "offset"),
}


def _case(name: str, sources: str, result: str, text: str = "") -> Case:
    kinds = tuple(sources.split())
    places = ", ".join(["{r}", *("{" + letter + "}" for letter, _ in zip("abcd", kinds, strict=False))])
    return Case(name, kinds, result, text or f"{name} {places};")


def cases() -> list[Case]:
    """All cases, group by group."""
    groups = (
        _arithmetic(), _carries(), _conversions(), _comparisons(), _selections(), _moves(), _memory(), _atomics(),
        _warps(),
    )  # fmt: skip
    return [case for group in groups for case in group]


# ---------------------------------------------------------------------------------------------------------- arithmetic


def _arithmetic() -> Iterator[Case]:
    for key, rule in RULES.items():
        if rule.carry_in:
            continue
        split = next(index for index, part in enumerate(key) if part in BITS)
        sources = rule.sources[: len(rule.sources) - rule.optional]
        for attributes in _attributes(key, rule):
            name = ".".join((*key[:split], *attributes, *key[split:]))
            yield _case(name, " ".join(WITHIN.get(name, sources)), rule.result)


def _attributes(key: tuple[str, ...], rule: Rule) -> Iterator[tuple[str, ...]]:
    """The combinations of modifiers that PTX has: the table allows a few that ``ptxas`` refuses."""
    single = "bf16" in key or "bf16x2" in key
    half = single or "f16" in key or "f16x2" in key
    needs_rounding = "rnd" in rule.required or (key[0] == "mad" and key[-1][0] == "f")
    roundings: list[tuple[str, ...]] = [] if needs_rounding else [()]
    if "rnd" in rule.allowed:
        roundings += [(rounding,) for rounding in ROUNDINGS]
    elif "rn" in rule.allowed:
        roundings += [("rn",)]
        roundings = roundings[-1:] if "rn" in rule.required else roundings
    flushes: list[tuple[str, ...]] = [] if "ftz" in rule.required else [()]
    if "ftz" in rule.allowed:
        flushes.append(("ftz",))
    ends: list[tuple[str, ...]] = [()]
    if "sat" in rule.allowed and not single:
        ends.append(("sat",))
    if "relu" in rule.allowed and half:
        ends.append(("relu",))
    if "NaN" in rule.allowed:
        ends += [("NaN",), ("xorsign", "abs"), ("NaN", "xorsign", "abs")]
    for parts in product(roundings, flushes, ends):
        yield tuple(word for part in parts for word in part)


def _carries() -> Iterator[Case]:
    """An instruction that gives a carry, and one that takes it; and the carry itself."""
    for kind in ("u32", "s32", "u64", "s64"):
        two, three, four = (" ".join([kind] * count) for count in (2, 3, 4))
        taken = f"addc.{kind} {{r}}, 0, 0;"
        for name in ("add", "sub"):
            shown = f"{name}c.{kind} {{r}}, 0, 0;"
            first = f"{name}.cc.{kind} {{x}}, {{a}}, {{b}};"
            yield _case(f"{name}.cc.{kind} carry", two, kind, f"{first} {shown}")
            for last in (f"{name}c.{kind}", f"{name}c.cc.{kind}"):
                yield _case(last, four, kind, f"{first} {last} {{r}}, {{c}}, {{d}};")
            text = f"{first} {name}c.cc.{kind} {{x}}, {{c}}, {{d}}; {shown}"
            yield _case(f"{name}c.cc.{kind} carry", four, kind, text)
        for part in ("lo", "hi"):
            name = f"mad.{part}.cc.{kind}"
            yield _case(f"{name} carry", three, kind, f"{name} {{x}}, {{a}}, {{b}}, {{c}}; {taken}")
            name = f"madc.{part}.cc.{kind}"
            text = f"add.cc.{kind} {{x}}, {{c}}, {{d}}; {name}"
            yield _case(name, four, kind, f"{text} {{r}}, {{a}}, {{b}}, {{d}};")
            yield _case(f"{name} carry", four, kind, f"{text} {{x}}, {{a}}, {{b}}, {{d}}; {taken}")


# ---------------------------------------------------------------------------------------------------------- conversions


def _conversions() -> Iterator[Case]:
    for kind, source in product(INTEGERS, INTEGERS):
        wider = BITS[kind] > BITS[source] and (kind[0] == "s" or source[0] == "u")
        for end in ("",) if kind == source or wider else ("", ".sat"):
            yield _case(f"cvt{end}.{kind}.{source}", source, kind)
    for kind, source, rounding in product(INTEGERS, FLOATS, INTEGRAL):
        if BITS[kind] == 8 and source == "bf16":
            continue
        for middle in ("", ".ftz") if source == "f32" else ("",):
            yield _case(f"cvt.{rounding}{middle}.{kind}.{source}", source, kind)
    for kind, source, rounding in product(FLOATS, INTEGERS, ROUNDINGS):
        if BITS[source] == 8 and kind == "bf16":
            continue
        for end in ("", ".sat") if kind != "bf16" else ("",):
            yield _case(f"cvt.{rounding}{end}.{kind}.{source}", source, kind)
    for kind in FLOATS:
        for rounding in INTEGRAL:
            flushes, ends = (("", ".ftz") if kind == "f32" else ("",)), (("", ".sat") if kind != "bf16" else ("",))
            for middle, end in product(flushes, ends):
                yield _case(f"cvt.{rounding}{middle}{end}.{kind}.{kind}", kind, kind)
    exactly, rounded = [""], [f".{rounding}" for rounding in ROUNDINGS]
    for kind, source, roundings in (
        ("f32", "f16", exactly), ("f64", "f16", exactly), ("f32", "bf16", exactly), ("f64", "bf16", exactly),
        ("f32", "f32", exactly), ("f64", "f32", exactly), ("f64", "f64", exactly), ("f16", "f32", rounded),
        ("bf16", "f32", rounded), ("f32", "f64", rounded), ("f16", "f64", rounded), ("bf16", "f64", rounded),
        ("bf16", "f16", rounded), ("f16", "bf16", rounded),
    ):  # fmt: skip
        flushes = ("", ".ftz") if "f32" in (kind, source) and "bf16" not in (kind, source) else ("",)
        ends = ("",) if "bf16" in (kind, source) else ("", ".sat")
        for each, middle, end in product(roundings, flushes, ends):
            if (kind, middle) != ("f16", ".ftz") or each not in (".rm", ".rp"):  # hardware does not flush there
                yield _case(f"cvt{each}{middle}{end}.{kind}.{source}", source, kind)
    for kind, rounding in product(("f16", "bf16"), ("rn", "rz")):
        yield _case(f"cvt.{rounding}.relu.{kind}.f32", "f32", kind)
        for end in ("", ".relu"):
            yield _case(f"cvt.{rounding}{end}.{kind}x2.f32", "f32 f32", f"{kind}x2")
    # A narrow result in a wide register, and a narrow source in one.
    for kind, source in product(("u8", "s8", "u16", "s16", "u32", "s32"), ("s8", "u16", "s32", "u64", "f32", "f64")):
        rounding = ".rzi" if source[0] == "f" else ""
        name = f"cvt{rounding}.{kind}.{source}"
        yield _case(f"{name} wide", source, "b32", f"{name} {{r}}, {{a}};")
    for kind, source in (("s8", "s8"), ("s8", "u32"), ("u16", "u16"), ("u16", "u32"), ("s32", "s8"), ("s32", "u32")):
        yield _case(f"cvt.{kind}.{source} widest", source, "b64", f"cvt.{kind}.{source} {{r}}, {{a}};")


# ---------------------------------------------------------------------------------------------------------- comparisons


def _orders(kind: str) -> tuple[str, ...]:
    if kind[0] == "b" and kind != "bf16":
        return EQUALITY
    if kind[0] == "u":
        return EQUALITY + ORDER + UNSIGNED_ORDER
    return EQUALITY + ORDER + (UNORDERED if "f" in kind else ())


def _comparisons() -> Iterator[Case]:
    for kind in ("b16", "u16", "s16", "b32", "u32", "s32", "b64", "u64", "s64", "f16", "bf16", "f32", "f64"):
        for order, flush in product(_orders(kind), ("", ".ftz") if kind in ("f16", "f32") else ("",)):
            name = f"setp.{order}{flush}.{kind}"
            yield _case(name, f"{kind} {kind}", "pred", f"{name} {{p}}, {{a}}, {{b}};")
        for combine in ("and", "or", "xor") if kind not in ("f16", "bf16") else ():
            order = "ltu" if "f" in kind else "ne"
            for guard in ("{q}", "!{q}"):
                name = f"setp.{order}.{combine}.{kind}"
                # The second result is the complement of the comparison, combined in the same way.
                text = (
                    f"setp.ne.b32 {{q}}, {{c}}, 0; {name} {{p}}|{{q}}, {{a}}, {{b}}, {guard}; "
                    "selp.b32 {x}, 1, 0, {p}; selp.b32 {y}, 2, 0, {q}; or.b32 {r}, {x}, {y};"
                )
                yield _case(f"{name}{' not' if '!' in guard else ''}", f"{kind} {kind} bit", "b32", text)
        for result in ("u32", "s32", "f32"):
            flushes = ("", ".ftz") if kind == "f32" else ("",)
            orders = ("ltu", "num", "ge") if "f" in kind else ("ne",) if kind[0] == "b" else ("ne", "lt", "ge")
            for order, flush in product(orders, flushes):
                if kind != "bf16" and kind != "f16":
                    yield _case(f"set.{order}{flush}.{result}.{kind}", f"{kind} {kind}", result)
        if kind[0] != "b" and "f" not in kind:
            name = f"set.lt.xor.u32.{kind}"
            text = f"setp.ne.b32 {{q}}, {{c}}, 0; {name} {{r}}, {{a}}, {{b}}, {{q}};"
            yield _case(name, f"{kind} {kind} bit", "u32", text)
    for order in ("lt", "gtu", "nan", "eq"):
        for flush, result in product(("", ".ftz"), ("f16", "u16", "s16", "u32", "s32")):
            yield _case(f"set.{order}{flush}.{result}.f16", "f16 f16", result)
        for result in ("bf16", "u16", "s16", "u32", "s32"):
            yield _case(f"set.{order}.{result}.bf16", "bf16 bf16", result)
        for flush in ("", ".ftz"):
            yield _case(f"set.{order}{flush}.f16x2.f16x2", "f16x2 f16x2", "f16x2")
    for kind, name in product(("f32", "f64"), ("finite", "infinite", "number", "notanumber", "normal", "subnormal")):
        yield _case(f"testp.{name}.{kind}", kind, "pred", f"testp.{name}.{kind} {{p}}, {{a}};")


def _selections() -> Iterator[Case]:
    for kind in ("b16", "b32", "b64", "f32", "f64"):
        text = f"setp.ne.b32 {{q}}, {{c}}, 0; selp.{kind} {{r}}, {{a}}, {{b}}, {{q}};"
        yield _case(f"selp.{kind}", f"{kind} {kind} bit", kind, text)
    for kind in ("b16", "u16", "b32", "s32", "b64", "f32", "f64"):
        yield _case(f"slct.{kind}.s32", f"{kind} {kind} s32", kind)
        for flush in ("", ".ftz"):
            yield _case(f"slct{flush}.{kind}.f32", f"{kind} {kind} f32", kind)
    for table in (0x00, 0x01, 0x17, 0x2D, 0x3C, 0x59, 0x80, 0x96, 0xAA, 0xB8, 0xCC, 0xE8, 0xF0, 0xFE, 0xFF):
        yield _case(f"lop3.b32 {table:#04x}", "b32 b32 b32", "b32", f"lop3.b32 {{r}}, {{a}}, {{b}}, {{c}}, {table};")
    for combine, table in product(("or", "and"), (0x80, 0x96)):
        text = (
            f"setp.ne.b32 {{q}}, {{d}}, 0; lop3.{combine}.b32 {{x}}|{{p}}, {{a}}, {{b}}, {{c}}, {table}, {{q}}; "
            "selp.b32 {y}, 1, 0, {p}; xor.b32 {r}, {x}, {y};"
        )
        yield _case(f"lop3.{combine}.b32 {table:#04x}", "b32 b32 b32 bit", "b32", text)
    for name in ("and", "or", "xor"):
        text = (
            f"setp.ne.b32 {{p}}, {{a}}, 0; setp.ne.b32 {{q}}, {{b}}, 0; {name}.pred {{p}}, {{p}}, !{{q}}; "
            "not.pred {p}, {p};"
        )
        yield _case(f"{name}.pred", "bit bit", "pred", text)


# ----------------------------------------------------------------------------------------------------- moves and memory


def _moves() -> Iterator[Case]:
    yield _case("mov.b32 pack", "b16 b16", "b32", "mov.b32 {r}, {{{a}, {b}}};")
    yield _case("mov.b64 pack", "b32 b32", "b64", "mov.b64 {r}, {{{a}, {b}}};")
    yield _case("mov.b64 pack of four", "b16 b16 b16 b16", "b64", "mov.b64 {r}, {{{a}, {b}, {c}, {d}}};")
    yield _case("mov.b32 unpack", "b32", "b16", "mov.b32 {{{x}, {y}}}, {a}; sub.u16 {r}, {x}, {y};")
    yield _case("mov.b64 unpack", "b64", "b32", "mov.b64 {{{x}, {y}}}, {a}; sub.u32 {r}, {x}, {y};")
    yield _case("mov.b64 unpack of four", "b64", "b16", "mov.b64 {{_, {x}, _, {y}}}, {a}; sub.u16 {r}, {x}, {y};")
    masks = [f"lanemask_{order}" for order in ("eq", "lt", "le", "gt", "ge")]
    for name in ("laneid", *masks, "tid.x", "ctaid.x", "ntid.x", "nctaid.x", "tid.y", "nctaid.z"):
        yield _case(f"mov.u32 %{name}", "b32", "b32", f"mov.u32 {{r}}, %{name};")
    for space in ("global", "shared", "local", "const"):
        yield _case(f"isspacep.{space} of global", "b64", "pred", f"isspacep.{space} {{p}}, {{in}};")


def _memory() -> Iterator[Case]:
    for kind in ("u8", "s8", "b8", "u16", "s16", "b16", "u32", "s32", "b32"):
        width = BITS[kind] // 8
        for register in ("b16", "b32", "b64"):
            if BITS[register] >= BITS[kind]:
                text = f"ld.global.{kind} {{r}}, [{{in}}+{8 - 2 * width + width % 2}];"
                yield _case(f"ld.global.{kind} to {register}", "b64", register, text)
    for kind, source in product(("u8", "u16", "u32"), ("b16", "b32", "b64")):
        if BITS[source] >= BITS[kind]:
            text = "mov.b64 {r}, -1; st.global.b64 [{out}], {r}; "
            text += f"st.global.{kind} [{{out}}+{BITS[kind] // 8}], {{a}}; ld.global.b64 {{r}}, [{{out}}];"
            yield _case(f"st.global.{kind} of {source}", source, "b64", text)
    yield _case("ld.global.v2.u16", "b64", "b32", "ld.global.v2.u16 {{{x}, {y}}}, [{in}+4]; sub.u32 {r}, {x}, {y};")
    four = "ld.global.v4.s8 {{{x}, {r}, {y}, _}}, [{in}+4]; mad.lo.u32 {r}, {x}, {y}, {r};"
    yield _case("ld.global.v4.s8", "b64", "b32", four)
    yield _case("ld.global.v2.u32", "b64", "b32", "ld.global.v2.u32 {{{x}, {y}}}, [{in}]; sub.u32 {r}, {x}, {y};")


_ATOMICS = {
    **{name: ("u32", "s32", "u64", "s64") for name in ("min", "max")},
    **{name: ("b32", "b64") for name in ("and", "or", "xor", "exch")},
    "add": ("u32", "s32", "u64", "f32", "f64", "noftz.f16", "noftz.f16x2", "noftz.bf16x2"),
    "inc": ("u32",),
    "dec": ("u32",),
    "cas": ("b32", "b64"),
}


def _atomics() -> Iterator[Case]:
    """What is left in memory, and what the operation gives: for ``cas`` with few values, so that some are equal."""
    for space, (name, kinds) in product(("global", "shared"), _ATOMICS.items()):
        place = "{out}" if space == "global" else "{place}"
        for kind in kinds:
            plain = kind.split(".")[-1]
            bits = BITS[plain]
            source = f"few{bits}" if name == "cas" else plain
            operands = "{b}, {c}" if name == "cas" else "{b}"
            full = f"{space}.{name}.{kind}"
            sources = " ".join([source] * (3 if name == "cas" else 2))
            before = f"st.{space}.b{bits} [{place}], {{a}}; "
            after = f"ld.volatile.{space}.b{bits} {{r}}, [{place}];"
            atom = f"{before}atom.{full} {{}}, [{place}], {operands};"
            yield _case(f"atom.{full}", sources, plain, atom.replace("{}", "{r}"))
            yield _case(f"atom.{full} memory", sources, plain, f"{atom.replace('{}', '{x}')} {after}")
            if name not in ("exch", "cas"):
                yield _case(f"red.{full}", sources, plain, f"{before}red.{full} [{place}], {operands}; {after}")


# -------------------------------------------------------------------------------------------------------------- a warp


def _warps() -> Iterator[Case]:
    """Operands of kind ``mask`` are the same in a warp; the lanes of such a mask execute, the others give 0."""
    member = "mov.u32 {x}, %lanemask_eq; and.b32 {x}, {x}, {m}; setp.ne.b32 {q}, {x}, 0; mov.b32 {r}, 0; "
    for mode in ("up", "down", "bfly", "idx"):
        text = (
            f"shfl.sync.{mode}.b32 {{x}}|{{p}}, {{a}}, {{b}}, {{c}}, -1; selp.b32 {{y}}, 1, 0, {{p}}; "
            "xor.b32 {r}, {x}, {y};"
        )
        yield _case(f"shfl.sync.{mode}.b32", "b32 b32 b32", "b32", text)
        yield _case(f"shfl.sync.{mode}.b32 near", "b32 lane clamp", "b32", text)
    vote = member.replace("{m}", "{b}") + "setp.ne.b32 {p}, {a}, 0; "
    for sources in ("bit mask", "rare mask"):
        values = sources.split()[0]
        text = f"{vote}@{{q}} vote.sync.ballot.b32 {{r}}, {{p}}, {{b}};"
        yield _case(f"vote.sync.ballot.b32 of {values}", sources, "b32", text)
        for mode in ("all", "any", "uni"):
            for guard in ("{p}", "!{p}"):
                text = f"{vote}@{{q}} vote.sync.{mode}.pred {{p}}, {guard}, {{b}}; @{{q}} selp.b32 {{r}}, 1, 2, {{p}};"
                name = f"vote.sync.{mode}.pred of {'not ' if '!' in guard else ''}{values}"
                yield _case(name, sources, "b32", text)
    for bits in (32, 64):
        few = f"few{bits} mask"
        text = member.replace("{m}", "{b}")
        yield _case(f"match.any.sync.b{bits}", few, "b32", f"{text}@{{q}} match.any.sync.b{bits} {{r}}, {{a}}, {{b}};")
        text += (
            f"@{{q}} match.all.sync.b{bits} {{r}}|{{p}}, {{a}}, {{b}}; @{{q}} selp.b32 {{y}}, 1, 0, {{p}}; "
            "@{q} xor.b32 {r}, {r}, {y};"
        )
        yield _case(f"match.all.sync.b{bits}", few, "b32", text)
        yield _case(f"match.all.sync.b{bits} of one", f"one{bits} mask", "b32", text)
    for operation, kind in (
        ("add", "u32"), ("add", "s32"), ("min", "u32"), ("min", "s32"), ("max", "u32"), ("max", "s32"), ("and", "b32"),
        ("or", "b32"), ("xor", "b32"),
    ):  # fmt: skip
        name = f"redux.sync.{operation}.{kind}"
        yield _case(name, f"{kind} mask", kind, f"{member.replace('{m}', '{b}')}@{{q}} {name} {{r}}, {{a}}, {{b}};")
    member = member.replace("{m}", "{a}")
    elect = "@{q} elect.sync {r}|{p}, {a}; @{q} selp.b32 {y}, 64, 0, {p}; @{q} or.b32 {r}, {r}, {y};"
    yield _case("elect.sync", "mask", "b32", member + elect)
    yield _case("activemask.b32", "mask", "b32", member + "@{q} activemask.b32 {r};")
    for mode in ("popc", "and", "or"):
        for sources in ("bit", "rare"):
            vote = "setp.ne.b32 {p}, {a}, 0; "
            if mode == "popc":
                text = f"{vote}bar.red.popc.u32 {{r}}, 0, {{p}};"
            else:
                text = f"{vote}bar.red.{mode}.pred {{q}}, 0, {{p}}; selp.b32 {{r}}, 1, 2, {{q}};"
            yield _case(f"bar.red.{mode} of {sources}", sources, "b32", text)


def signatures(every: Iterable[Case]) -> dict[tuple[str, ...], list[Case]]:
    """The cases by the kinds of their operands."""
    found: dict[tuple[str, ...], list[Case]] = {}
    for case in every:
        found.setdefault(case.sources, []).append(case)
    return found
