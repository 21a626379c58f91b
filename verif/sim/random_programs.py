"""Random PTX kernels, and what they compute: a reference that runs one thread after another, statement by statement.

A program is straight code, branches, loops and switches on data, nested, with loads and stores to a region of the
thread's own in global, shared and local memory (generic addresses too), and, where all threads of the CTA meet:
exchanges through shared memory with barriers, shuffles, votes, shared atomics. A thread may leave early. Every thread
stores its registers at its end.
"""

from __future__ import annotations

import random
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from itertools import count, product

import numpy as np

from lockstep.verif.bench import mask

REGISTERS = 6  # of each kind
PARAMETERS = 3  # of 32 bits, beside one of 64
DEPTH = 3  # of nested control flow
REGION = 64  # bytes of a thread in each memory
NAMES = 5  # registers of one address
NEIGHBOURS = 400  # registers of all
LANES = 32
WORD, LONG = 0xFFFF_FFFF, 0xFFFF_FFFF_FFFF_FFFF
NAN = 0x7FFF_FFFF  # what f32 instructions return for any NaN
SPACES = ("global", "shared", "local")


class Thread:
    """Registers ``r`` (32 bits) and ``d`` (64 bits), and the regions."""

    def __init__(self, cta: int, index: int, region: bytes) -> None:
        self.cta, self.index = cta, index
        self.r = [index * 0x9E37_79B9 + cta * 0x85EB_CA6B + k & WORD for k in range(REGISTERS)]
        self.d = [word * 0x2545_F491_4F6C_DD1D & LONG for word in self.r]
        self.region = {"global": bytearray(region), "shared": bytearray(REGION), "local": bytearray(REGION)}

    @property
    def result(self) -> bytes:
        """What a thread stores at its end."""
        words = b"".join(value.to_bytes(4, "little") for value in self.r)
        return b"".join([words, *(value.to_bytes(8, "little") for value in self.d)])


RESULT = REGISTERS * 12  # bytes


def signed(value: int, bits: int = 32) -> int:
    value &= (1 << bits) - 1
    return value - (value >> bits - 1 << bits)


def single(operation: Callable[[np.float32, np.float32], np.float32]) -> Callable[[int, int], int]:
    """An operation on the bits of f32."""

    def run(a: int, b: int) -> int:
        first, second = np.array([a, b], np.uint32).view(np.float32)
        with np.errstate(all="ignore"):
            result = np.float32(operation(first, second))
        return NAN if np.isnan(result) else int(result.view(np.uint32))

    return run


WORDS: dict[str, Callable[[int, int], int]] = {
    "add.u32": lambda a, b: a + b,
    "sub.s32": lambda a, b: a - b,
    "mul.lo.u32": lambda a, b: a * b,
    "mul.hi.u32": lambda a, b: a * b >> 32,
    "mul.hi.s32": lambda a, b: signed(a) * signed(b) >> 32,
    "and.b32": lambda a, b: a & b,
    "or.b32": lambda a, b: a | b,
    "xor.b32": lambda a, b: a ^ b,
    "min.u32": min,
    "max.s32": lambda a, b: max(signed(a), signed(b)),
    "shl.b32": lambda a, b: a << min(b, 32),
    "shr.u32": lambda a, b: a >> min(b, 32),
    "shr.s32": lambda a, b: signed(a) >> min(b, 32),
    "add.rn.f32": single(lambda a, b: a + b),
    "sub.rn.f32": single(lambda a, b: a - b),
    "mul.rn.f32": single(lambda a, b: a * b),
    "div.rn.f32": single(lambda a, b: a / b),
}
LONGS: dict[str, Callable[[int, int], int]] = {
    "add.u64": lambda a, b: a + b,
    "sub.s64": lambda a, b: a - b,
    "mul.lo.u64": lambda a, b: a * b,
    "mul.hi.u64": lambda a, b: a * b >> 64,
    "xor.b64": lambda a, b: a ^ b,
    "max.s64": lambda a, b: max(signed(a, 64), signed(b, 64)),
}
COMPARISONS: dict[str, Callable[[int, int], bool]] = {
    "lt.u32": lambda a, b: a < b,
    "ge.s32": lambda a, b: signed(a) >= signed(b),
    "eq.u32": lambda a, b: a == b,
    "ne.s32": lambda a, b: a != b,
}
LOADS = {"u8": (1, False), "s8": (1, True), "u16": (2, False), "s16": (2, True), "u32": (4, False), "u64": (8, False)}
ATOMICS: dict[str, Callable[[int, int], int]] = {
    "add.u32": lambda a, b: a + b & WORD,
    "xor.b32": lambda a, b: a ^ b,
    "max.u32": max,
    "min.s32": lambda a, b: min(signed(a), signed(b)) & WORD,
}
COUNTERS = list(ATOMICS)


class Statement(ABC):
    """A piece of PTX, and what it does to the threads that reach it."""

    @abstractmethod
    def ptx(self) -> list[str]: ...

    @abstractmethod
    def run(self, threads: list[Thread], grid: Grid) -> None: ...


Body = Sequence[Statement]


def text(body: Body) -> list[str]:
    return [line for statement in body for line in statement.ptx()]


def run(body: Body, threads: list[Thread], grid: Grid) -> None:
    for statement in body:
        if threads:
            statement.run([thread for thread in threads if thread not in grid.left], grid)


@dataclass
class Grid:
    """What threads share: the global counters, and who has left."""

    counters: list[int]
    words: Sequence[int]  # parameters
    long: int
    left: set[Thread] = field(default_factory=set)


# --------------------------------------------------------------------------------------------- what a thread does alone


@dataclass
class Word(Statement):
    """A 32-bit instruction, where ``guard`` holds."""

    operation: str
    target: int
    a: int
    b: int
    guard: Condition | None = None

    def ptx(self) -> list[str]:
        line = f"{self.operation} %r{self.target}, %r{self.a}, %r{self.b};"
        return [*self.guard.ptx("%g"), f"@%g {line}"] if self.guard else [line]

    def run(self, threads: list[Thread], grid: Grid) -> None:
        for thread in threads:
            if self.guard is None or self.guard.holds(thread):
                thread.r[self.target] = WORDS[self.operation](thread.r[self.a], thread.r[self.b]) & WORD


@dataclass
class Long(Statement):
    """A 64-bit instruction."""

    operation: str
    target: int
    a: int
    b: int

    def ptx(self) -> list[str]:
        return [f"{self.operation} %d{self.target}, %d{self.a}, %d{self.b};"]

    def run(self, threads: list[Thread], grid: Grid) -> None:
        for thread in threads:
            thread.d[self.target] = LONGS[self.operation](thread.d[self.a], thread.d[self.b]) & LONG


@dataclass
class Mix(Statement):
    """A product of 64 bits, and half of one back."""

    long: int
    a: int
    b: int
    word: int

    def ptx(self) -> list[str]:
        wide = f"mad.wide.u32 %d{self.long}, %r{self.a}, %r{self.b}, %d{self.long};"
        return [wide, f"shr.u64 %t, %d{self.long}, 32;", f"cvt.u32.u64 %r{self.word}, %t;"]

    def run(self, threads: list[Thread], grid: Grid) -> None:
        for thread in threads:
            thread.d[self.long] = thread.r[self.a] * thread.r[self.b] + thread.d[self.long] & LONG
            thread.r[self.word] = thread.d[self.long] >> 32


@dataclass
class Access(Statement):
    """A load or store in the thread's own region, at an offset taken from a register."""

    space: str
    generic: bool
    store: bool
    kind: str
    data: int
    offset: int

    @property
    def _size(self) -> int:
        return LOADS[self.kind][0]

    def ptx(self) -> list[str]:
        base, space = (f"%g{self.space}", "") if self.generic else (f"%{self.space}", f".{self.space}")
        address = [
            f"and.b32 %i, %r{self.offset}, {REGION - self._size};",
            "cvt.u64.u32 %t, %i;",
            f"add.u64 %t, %t, {base};",
        ]
        register = f"%d{self.data}" if self._size == 8 else f"%r{self.data}"
        if self.store:
            return [*address, f"st{space}.{self.kind} [%t], {register};"]
        return [*address, f"ld{space}.{self.kind} {register}, [%t];"]

    def run(self, threads: list[Thread], grid: Grid) -> None:
        size, extended = LOADS[self.kind]
        for thread in threads:
            registers = thread.d if size == 8 else thread.r
            region = thread.region[self.space]
            at = thread.r[self.offset] & REGION - size
            if self.store:
                region[at : at + size] = (registers[self.data] & (1 << 8 * size) - 1).to_bytes(size, "little")
            else:
                value = int.from_bytes(region[at : at + size], "little", signed=extended)
                registers[self.data] = value & (LONG if size == 8 else WORD)


@dataclass
class Neighbours(Statement):
    """A load and a store in the thread's own region, at a place that a register names and places near it.

    Their addresses are sums with constants that cancel out, each in registers of its own, from ``first`` on.
    """

    space: str
    form: str  # of the index: wide (its product is), long (it is itself) or word (so is the address)
    store: bool  # is first
    data: int
    index: int
    apart: int  # what is added to the index
    near: tuple[int, int]  # distances of the load and the store, in 8 bytes
    first: int

    @staticmethod
    def registers() -> str:
        return f".reg .b32 %n<{NEIGHBOURS}>; .reg .b64 %q<{NEIGHBOURS}>;"

    def ptx(self) -> list[str]:
        lines, places = [], []
        for k, near in enumerate(self.near):
            some, place = self._address(self.first + k * NAMES, near)
            lines.append(some)
            places.append(place)
        load = [*lines[0], f"ld.{self.space}.u64 %d{self.data}, {places[0]};"]
        store = [*lines[1], f"st.{self.space}.u64 {places[1]}, %d{self.data};"]
        return [*store, *load] if self.store else [*load, *store]

    def _address(self, first: int, near: int) -> tuple[list[str], str]:
        n, q = [[f"%{kind}{first + k}" for k in range(NAMES)] for kind in "nq"]
        start, base, apart = f"and.b32 {n[0]}, %r{self.index}, 3;", f"%{self.space}", self.apart
        if self.form == "wide":
            apart &= 0xFF
            lines = [f"add.u32 {n[1]}, {n[0]}, {apart};", f"mul.wide.u32 {q[0]}, {n[1]}, 8;"]
            lines += [f"add.u64 {q[1]}, {base}, {q[0]};", f"sub.u64 {q[2]}, {q[1]}, {8 * apart};"]
            return [start, *lines], f"[{q[2]}+{8 * near}]"
        if self.form == "long":
            lines = [f"cvt.u64.u32 {q[0]}, {n[0]};", f"add.u64 {q[1]}, {q[0]}, {apart};"]
            lines += [f"shl.b64 {q[2]}, {q[1]}, 3;", f"add.u64 {q[3]}, {q[2]}, {base};"]
            return [start, *lines, f"add.u64 {q[4]}, {q[3]}, {-8 * apart & LONG};"], f"[{q[4]}+{8 * near}]"
        lines = [f"cvt.u32.u64 {n[1]}, {base};", f"sub.u32 {n[2]}, {n[0]}, {apart & WORD};"]
        lines += [f"mad.lo.u32 {n[3]}, {n[2]}, 8, {n[1]};", f"add.u32 {n[4]}, {n[3]}, {8 * apart & WORD};"]
        return [start, *lines], f"[{n[4]}+{8 * near}]"

    def run(self, threads: list[Thread], grid: Grid) -> None:
        for thread in threads:
            region = thread.region[self.space]
            load, store = (8 * ((thread.r[self.index] & 3) + near) for near in self.near)
            if self.store:
                region[store : store + 8] = thread.d[self.data].to_bytes(8, "little")
            thread.d[self.data] = int.from_bytes(region[load : load + 8], "little")
            if not self.store:
                region[store : store + 8] = thread.d[self.data].to_bytes(8, "little")


@dataclass
class Parameter(Statement):
    """A 32-bit instruction with a parameter of the kernel, or with the constant of the same number and value."""

    operation: str
    target: int
    a: int
    name: str  # of the parameter or the constant
    number: int
    first: bool

    def ptx(self) -> list[str]:
        a, known = f"%r{self.a}", f"%{self.name}{self.number}"
        first, second = (known, a) if self.first else (a, known)
        return [f"{self.operation} %r{self.target}, {first}, {second};"]

    def run(self, threads: list[Thread], grid: Grid) -> None:
        for thread in threads:
            a, known = thread.r[self.a], grid.words[self.number]
            operands = (known, a) if self.first else (a, known)
            thread.r[self.target] = WORDS[self.operation](*operands) & WORD


@dataclass
class LongParameter(Statement):
    """A product with half of a 64-bit parameter, and a sum with all of it."""

    target: int
    a: int

    def ptx(self) -> list[str]:
        half = ["cvt.u32.u64 %i, %long;", f"mul.wide.u32 %t, %r{self.a}, %i;"]
        return [*half, f"sub.u64 %d{self.target}, %long, %t;"]

    def run(self, threads: list[Thread], grid: Grid) -> None:
        for thread in threads:
            thread.d[self.target] = grid.long - thread.r[self.a] * (grid.long & WORD) & LONG


@dataclass
class Above(Statement):
    """The upper half of a distance from an address, beyond what addresses have."""

    target: int
    a: int
    space: str

    def ptx(self) -> list[str]:
        base = f"%g{self.space}"
        far = [f"mul.wide.u32 %t, %r{self.a}, 0x10001;", f"add.u64 %u, %t, {base};", f"sub.u64 %u, %u, {base};"]
        return [*far, "shr.u64 %u, %u, 32;", f"cvt.u32.u64 %r{self.target}, %u;"]

    def run(self, threads: list[Thread], grid: Grid) -> None:
        for thread in threads:
            thread.r[self.target] = thread.r[self.a] * 0x1_0001 >> 32


@dataclass
class Count(Statement):
    """An atomic on a word of the operation's own that the grid shares, so that order does not matter."""

    operation: str
    a: int

    def ptx(self) -> list[str]:
        return [f"red.global.{self.operation} [%counters+{4 * COUNTERS.index(self.operation)}], %r{self.a};"]

    def run(self, threads: list[Thread], grid: Grid) -> None:
        counter = COUNTERS.index(self.operation)
        for thread in threads:
            grid.counters[counter] = ATOMICS[self.operation](grid.counters[counter], thread.r[self.a])


# --------------------------------------------------------------------------------------------------------- control flow


@dataclass
class Condition:
    comparison: str
    a: int
    b: int

    def ptx(self, predicate: str) -> list[str]:
        return [f"setp.{self.comparison} {predicate}, %r{self.a}, %r{self.b};"]

    def holds(self, thread: Thread) -> bool:
        return COMPARISONS[self.comparison](thread.r[self.a], thread.r[self.b])


@dataclass
class If(Statement):
    label: str
    condition: Condition
    then: Body
    otherwise: Body

    def ptx(self) -> list[str]:
        head = [*self.condition.ptx("%p"), f"@!%p bra {self.label}_else;"]
        then = [*text(self.then), f"bra {self.label}_end;"]
        return [*head, *then, f"{self.label}_else:", *text(self.otherwise), f"{self.label}_end:"]

    def run(self, threads: list[Thread], grid: Grid) -> None:
        taken = [thread for thread in threads if self.condition.holds(thread)]
        other = [thread for thread in threads if thread not in taken]
        run(self.then, taken, grid)
        run(self.otherwise, other, grid)


@dataclass
class Loop(Statement):
    """As often as the low bits of a register say, or a fixed number of times (``times`` None)."""

    label: str
    times: int | None
    trips: int  # the most of them, a power of two less one
    depth: int
    body: Body

    def ptx(self) -> list[str]:
        trip = f"%trip{self.depth}"
        start = f"mov.u32 {trip}, {self.trips};"
        if self.times is not None:
            start = f"and.b32 {trip}, %r{self.times}, {self.trips};"
        test = [f"{self.label}:", f"setp.eq.u32 %p, {trip}, 0;", f"@%p bra {self.label}_end;"]
        again = [f"sub.u32 {trip}, {trip}, 1;", f"bra {self.label};", f"{self.label}_end:"]
        return [start, *test, *text(self.body), *again]

    def run(self, threads: list[Thread], grid: Grid) -> None:
        left = {t: self.trips if self.times is None else t.r[self.times] & self.trips for t in threads}
        for trip in range(self.trips):
            run(self.body, [thread for thread in threads if left[thread] > trip], grid)


@dataclass
class Switch(Statement):
    """An indirect branch."""

    label: str
    selector: int
    cases: Sequence[Body]  # a power of two

    def ptx(self) -> list[str]:
        targets = [f"{self.label}_{k}" for k in range(len(self.cases))]
        lines = [f"and.b32 %i, %r{self.selector}, {len(self.cases) - 1};"]
        lines += [f"{self.label}: .branchtargets {', '.join(targets)};", f"brx.idx %i, {self.label};"]
        for target, case in zip(targets, self.cases, strict=True):
            lines += [f"{target}:", *text(case), f"bra {self.label}_end;"]
        return [*lines, f"{self.label}_end:"]

    def run(self, threads: list[Thread], grid: Grid) -> None:
        chosen = {thread: thread.r[self.selector] & len(self.cases) - 1 for thread in threads}
        for index, case in enumerate(self.cases):
            run(case, [thread for thread in threads if chosen[thread] == index], grid)


@dataclass
class Leave(Statement):
    """Some threads end here."""

    label: str
    condition: Condition

    def ptx(self) -> list[str]:
        return [*self.condition.ptx("%p"), f"@!%p bra {self.label};", *END, f"{self.label}:"]

    def run(self, threads: list[Thread], grid: Grid) -> None:
        grid.left |= {thread for thread in threads if self.condition.holds(thread)}


# -------------------------------------------------------------------------------------- where all threads of a CTA meet


@dataclass
class Exchange(Statement):
    """Every thread gets a word of the thread ``distance`` after it."""

    target: int
    a: int
    distance: int
    block: int

    def ptx(self) -> list[str]:
        return [
            f"st.shared.u32 [%mine], %r{self.a};",
            "bar.sync 0;",
            f"add.u32 %i, %thread, {self.distance};",
            f"rem.u32 %i, %i, {self.block};",
            "mul.wide.u32 %t, %i, 4;",
            "mov.u64 %u, exchange;",
            "add.u64 %t, %t, %u;",
            f"ld.shared.u32 %r{self.target}, [%t];",
            "bar.sync 0;",
        ]

    def run(self, threads: list[Thread], grid: Grid) -> None:
        words = [thread.r[self.a] for thread in threads]
        for thread in threads:
            thread.r[self.target] = words[(thread.index + self.distance) % self.block]


@dataclass
class Shuffle(Statement):
    """``mode`` is up, down, bfly or idx, over ``width`` lanes. Only in blocks of whole warps."""

    mode: str
    target: int
    a: int
    b: int
    width: int

    def ptx(self) -> list[str]:
        clamp = (LANES - self.width << 8) | (0 if self.mode == "up" else LANES - 1)
        line = f"shfl.sync.{self.mode}.b32 %r{self.target}|%p, %r{self.a}, %i, {clamp}, %members;"
        return [f"and.b32 %i, %r{self.b}, 31;", line, f"@%p add.u32 %r{self.target}, %r{self.target}, 1;"]

    def run(self, threads: list[Thread], grid: Grid) -> None:
        words, amounts = [thread.r[self.a] for thread in threads], [thread.r[self.b] & 31 for thread in threads]
        for k, thread in enumerate(threads):
            lane, amount = k % LANES, amounts[k]
            first = lane - lane % self.width
            last = first + self.width - 1
            source = {
                "up": lane - amount,
                "down": lane + amount,
                "bfly": lane ^ amount,
                "idx": first + amount % self.width,
            }[self.mode]
            inside = source >= first if self.mode == "up" else source <= last
            word = words[k - lane + (source if inside else lane)]
            thread.r[self.target] = word + inside & WORD


@dataclass
class Vote(Statement):
    """The lanes of the warp where a condition holds."""

    target: int
    condition: Condition

    def ptx(self) -> list[str]:
        return [*self.condition.ptx("%p"), f"vote.sync.ballot.b32 %r{self.target}, %p, %members;"]

    def run(self, threads: list[Thread], grid: Grid) -> None:
        held = [self.condition.holds(thread) for thread in threads]
        for k, thread in enumerate(threads):
            warp = held[k - k % LANES :][:LANES]
            thread.r[self.target] = sum(1 << lane for lane, holds in enumerate(warp) if holds)


@dataclass
class Total(Statement):
    """An atomic on a word of the CTA, which all threads read then."""

    operation: str
    target: int
    a: int

    def ptx(self) -> list[str]:
        update = f"atom.shared.{self.operation} %i, [total], %r{self.a};"
        read = f"ld.shared.u32 %r{self.target}, [total];"
        return ["st.shared.u32 [total], 0;", "bar.sync 0;", update, "bar.sync 0;", read, "bar.sync 0;"]

    def run(self, threads: list[Thread], grid: Grid) -> None:
        total = 0
        for thread in threads:
            total = ATOMICS[self.operation](total, thread.r[self.a])
        for thread in threads:
            thread.r[self.target] = total


# ------------------------------------------------------------------------------------------------------- whole programs

END = [
    *(f"st.global.u32 [%result+{4 * k}], %r{k};" for k in range(REGISTERS)),
    *(f"st.global.u64 [%result+{4 * REGISTERS + 8 * k}], %d{k};" for k in range(REGISTERS)),
    "ret;",
]


@dataclass
class Program:
    """A kernel ``k(results, regions, counters, *words, long)`` for one grid and block."""

    grid: int
    block: int
    body: Body
    words: Sequence[int]
    long: int

    @property
    def threads(self) -> int:
        return self.grid * self.block

    @property
    def ptx(self) -> str:
        lines = [
            "mov.u32 %thread, %tid.x;",
            "mov.u32 %cta, %ctaid.x;",
            f"mad.lo.u32 %i, %cta, {self.block}, %thread;",
            "ld.param.u64 %result, [results];",
            f"mad.wide.u32 %result, %i, {RESULT}, %result;",
            "ld.param.u64 %global, [regions];",
            f"mad.wide.u32 %global, %i, {REGION}, %global;",
            "mov.u64 %gglobal, %global;",
            "ld.param.u64 %counters, [counts];",
            "mov.u64 %shared, shared;",
            f"mad.wide.u32 %shared, %thread, {REGION}, %shared;",
            "cvta.shared.u64 %gshared, %shared;",
            "mov.u64 %local, local;",
            "cvta.local.u64 %glocal, %local;",
            "mov.u64 %mine, exchange;",
            "mad.wide.u32 %mine, %thread, 4, %mine;",
            "activemask.b32 %members;",
            *(f"ld.param.u32 %w{k}, [w{k}];" for k in range(PARAMETERS)),
            *(f"ld.const.u32 %c{k}, [known+{4 * k}];" for k in range(PARAMETERS)),
            "ld.param.u64 %long, [wide];",
            "mul.lo.u32 %i, %cta, 0x85EBCA6B;",
            "mad.lo.u32 %r0, %thread, 0x9E3779B9, %i;",
            *(f"add.u32 %r{k}, %r0, {k};" for k in range(1, REGISTERS)),
        ]
        for k in range(REGISTERS):
            lines += [f"cvt.u64.u32 %d{k}, %r{k};", f"mul.lo.u64 %d{k}, %d{k}, 0x2545F4914F6CDD1D;"]
        for k in range(0, REGION, 8):
            lines += [f"st.shared.u64 [%shared+{k}], 0;", f"st.local.u64 [%local+{k}], 0;"]
        numbers = range(PARAMETERS)
        parameters = "".join(f", .param .u32 w{k}" for k in numbers) + ", .param .u64 wide"
        code = "\n    ".join([*lines, *text(self.body), *END])
        return f"""
.version 7.8
.target sm_75
.address_size 64
.const .align 4 .u32 known[{PARAMETERS}] = {{{", ".join(map(str, self.words))}}};
.visible .entry k(.param .u64 results, .param .u64 regions, .param .u64 counts{parameters})
{{
    .reg .pred %p, %g;
    .reg .b32 %w<{PARAMETERS}>, %c<{PARAMETERS}>;
    .reg .b32 %r<{REGISTERS}>, %trip<{DEPTH}>, %i, %thread, %cta, %members;
    .reg .b64 %d<{REGISTERS}>, %t, %u, %result, %mine, %counters, %long;
    .reg .b64 %global, %shared, %local, %gglobal, %gshared, %glocal;
    {Neighbours.registers()}
    .shared .align 8 .b8 shared[{REGION * self.block}];
    .shared .align 4 .b8 exchange[{4 * self.block}];
    .shared .align 4 .u32 total;
    .local .align 8 .b8 local[{REGION}];
    {code}
}}
"""

    def reference(self, regions: np.ndarray, counters: np.ndarray) -> tuple[bytes, bytes, list[int]]:
        """Results, regions and counters after the kernel."""
        shared = Grid([int(word) for word in counters], self.words, self.long)
        threads = []
        for cta in range(self.grid):
            own = [Thread(cta, k, regions[cta * self.block + k].tobytes()) for k in range(self.block)]
            run(self.body, own, shared)
            threads += own
        results = b"".join(thread.result for thread in threads)
        return results, b"".join(bytes(thread.region["global"]) for thread in threads), shared.counters


class Maker:
    """Makes random programs."""

    def __init__(self, rng: random.Random) -> None:
        self.rng = rng
        self._labels = count()
        self._names = count(0, 2 * NAMES)

    def program(self) -> Program:
        rng = self.rng
        block = rng.choice([32, 64, 96, 128, rng.randint(1, 130)])
        body = self._body(0, rng.randint(6, 14), block)
        leave = [Leave(self._label(), self._condition()), *self._body(0, 4, None)] if rng.random() < 0.5 else []
        words = [mask(rng, 32) for _ in range(PARAMETERS)]
        return Program(rng.randint(1, 6), block, [*body, *leave], words, mask(rng, 64))

    def regions(self, program: Program) -> np.ndarray:
        return np.frombuffer(self.rng.randbytes(program.threads * REGION), np.uint8).reshape(-1, REGION)

    def counters(self) -> np.ndarray:
        return np.array([mask(self.rng, 32) for _ in COUNTERS], np.uint32)

    def _label(self) -> str:
        return f"$L{next(self._labels)}"

    def _register(self) -> int:
        return self.rng.randrange(REGISTERS)

    def _condition(self) -> Condition:
        return Condition(self.rng.choice(list(COMPARISONS)), self._register(), self._register())

    def _body(self, depth: int, length: int, block: int | None) -> list[Statement]:
        """``block`` is the CTA's size where all its threads meet, else None."""
        return [self._statement(depth, block) for _ in range(length)]

    def _statement(self, depth: int, block: int | None) -> Statement:
        rng = self.rng
        chance = rng.random()
        if block and chance < 0.3:
            return self._meeting(block)
        if depth < DEPTH and chance < 0.5:
            return self._control(depth, block)
        return self._alone()

    def _alone(self) -> Statement:
        rng, register = self.rng, self._register
        chance = rng.random()
        if chance < 0.4:
            guard = self._condition() if rng.random() < 0.3 else None
            return Word(rng.choice(list(WORDS)), register(), register(), register(), guard)
        if chance < 0.5:
            return self._with_parameter()
        if chance < 0.6:
            return Long(rng.choice(list(LONGS)), register(), register(), register())
        if chance < 0.7:
            return Mix(register(), register(), register(), register())
        if chance < 0.75:
            return Count(rng.choice(COUNTERS), register())
        if chance < 0.85:
            return self._neighbours()
        store = rng.random() < 0.5
        kind = rng.choice([k for k in LOADS if not (store and k[0] == "s")])
        return Access(rng.choice(SPACES), rng.random() < 0.3, store, kind, register(), register())

    def _neighbours(self) -> Statement:
        rng, first = self.rng, next(self._names) % NEIGHBOURS
        near = rng.randrange(5), rng.randrange(5)
        space, form = rng.choice([*product(SPACES, ("wide", "long")), ("shared", "word")])
        store = rng.random() < 0.5
        return Neighbours(space, form, store, self._register(), self._register(), mask(rng, 64), near, first)

    def _with_parameter(self) -> Statement:
        rng, register = self.rng, self._register
        chance = rng.random()
        if chance < 0.2:
            return LongParameter(register(), register())
        if chance < 0.4:
            return Above(register(), register(), rng.choice(SPACES))
        number = rng.randrange(PARAMETERS)
        return Parameter(rng.choice(list(WORDS)), register(), register(), rng.choice("wc"), number, rng.random() < 0.5)

    def _control(self, depth: int, block: int | None) -> Statement:
        rng = self.rng

        def body(meets: int | None = None) -> list[Statement]:
            return self._body(depth + 1, rng.randint(1, 4), meets)

        chance = rng.random()
        if chance < 0.5:
            return If(self._label(), self._condition(), body(), body() if rng.random() < 0.7 else [])
        if chance < 0.7:
            return Loop(self._label(), self._register(), 3, depth, body())
        if chance < 0.85:
            return Loop(self._label(), None, 1 if depth else 3, depth, body(block))
        return Switch(self._label(), self._register(), [body() for _ in range(rng.choice([2, 4]))])

    def _meeting(self, block: int) -> Statement:
        rng, register = self.rng, self._register
        chance = rng.random()
        if chance < 0.4:
            return Exchange(register(), register(), rng.randrange(block), block)
        if chance < 0.7 and block % LANES == 0:
            mode = rng.choice(["up", "down", "bfly", "idx"])
            return Shuffle(mode, register(), register(), register(), rng.choice([4, 16, 32]))
        if chance < 0.85:
            return Vote(register(), self._condition())
        return Total(rng.choice(list(ATOMICS)), register(), register())
