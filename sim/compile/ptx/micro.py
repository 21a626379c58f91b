"""Micro-operations while they are being made: over virtual registers and labels instead of physical ones and pcs."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import NamedTuple

from lockstep.models.execution import isa
from lockstep.models.execution.isa import Category, Fetch, Group, Write

NONE = -1  # no register: RZ or PT in the record


@dataclass(slots=True, eq=False)
class Storage:
    """The meaning of a symbol, as the kernel sees it."""

    name: str
    space: isa.Space
    offset: int = 0  # in its space; of shared and local variables known once all are laid out
    module: bool = False  # a module variable in device memory, or a texture: the loader knows the address
    bytes: int = 0  # of a parameter or a module variable

    @property
    def window(self) -> int:
        """Add this to an address in the space to make it generic."""
        return WINDOWS[self.space]


WINDOWS = {
    isa.Space.GENERIC: 0,
    isa.Space.GLOBAL: 0,
    isa.Space.CONST: 0,
    isa.Space.SHARED: isa.SHARED_WINDOW,
    isa.Space.LOCAL: isa.LOCAL_WINDOW,
    isa.Space.PARAM: isa.PARAM_WINDOW,
}


class Source(NamedTuple):
    """One of the sources a b c d: a virtual register, an immediate, an address (immediate plus storage), or what stands
    at such an address in a constant bank."""

    fetch: Fetch
    register: int = NONE
    bits: int = 0
    storage: Storage | None = None
    constant: bool = False


_EXTENSIONS = {  # width, signed, and the fetch that takes the extended value as it is
    Fetch.S8: (8, True, Fetch.WORD),
    Fetch.U8: (8, False, Fetch.WORD),
    Fetch.S16: (16, True, Fetch.WORD),
    Fetch.U16: (16, False, Fetch.WORD),
    Fetch.S8_LONG: (8, True, Fetch.PAIR),
    Fetch.U8_LONG: (8, False, Fetch.PAIR),
    Fetch.S16_LONG: (16, True, Fetch.PAIR),
    Fetch.U16_LONG: (16, False, Fetch.PAIR),
    Fetch.S32: (32, True, Fetch.PAIR),
    Fetch.U32: (32, False, Fetch.PAIR),
}


def immediate(fetch: Fetch, bits: int) -> Source:
    """A number as a source. Integer extensions are done here, so that execution need not repeat them."""
    if fetch in _EXTENSIONS:
        width, signed, fetch = _EXTENSIONS[fetch]
        bits &= (1 << width) - 1
        if signed and bits >> (width - 1):
            bits -= 1 << width
    if fetch == Fetch.WORD:
        bits &= 0xFFFF_FFFF
    return Source(fetch, bits=bits)


@dataclass(slots=True, eq=False)
class Micro:
    """One micro-operation; the fields are those of :data:`isa.INSTRUCTION`."""

    group: Group
    op: int
    category: Category
    sources: tuple[Source, ...] = ()
    dst: int = NONE
    write: Write = Write.NONE
    sub: int = 0
    flags: int = 0
    rnd: int = 0
    pdst: int = NONE
    pdst2: int = NONE
    psrc: int = NONE
    psrc_not: bool = False
    psrc2: int = NONE
    psrc2_not: bool = False
    space: int = 0
    bytes: int = 0
    vec: int = 1
    data: int = 4
    results: dict[int, int] = field(default_factory=dict)  # index in ``v`` -> register written
    operands: dict[int, int] = field(default_factory=dict)  # index in ``v`` -> register read
    offset: int = 0
    storage: Storage | None = None  # its address is added to ``offset``
    imm3: int = 0
    targets: tuple[int, ...] = ()  # labels: one for a branch, the table of an indexed one
    guard: int = NONE
    guard_not: bool = False
    line: int = 0

    def registers_read(self) -> list[int]:
        """General registers and predicates, with the guard."""
        read = [source.register for source in self.sources]
        read += self.operands.values()
        read += (self.psrc, self.psrc2, self.guard)
        return [register for register in read if register != NONE]

    def registers_written(self) -> list[int]:
        written = [self.dst, self.pdst, self.pdst2, *self.results.values()]
        return [register for register in written if register != NONE]

    def name_read(self, names: dict[int, int]) -> None:
        """Read other registers, but for predicates."""
        get = names.get
        self.sources = tuple(s._replace(register=get(s.register, s.register)) for s in self.sources)
        self.operands = {index: get(register, register) for index, register in self.operands.items()}

    def rename(self, names: dict[int, int]) -> None:
        """Replace registers."""
        self.name_read(names)
        get = names.get
        self.results = {index: get(register, register) for index, register in self.results.items()}
        self.dst = get(self.dst, self.dst)

    def writing(self, register: int) -> Micro:
        """The same operation with another result."""
        return replace(self, dst=register, results=dict(self.results), operands=dict(self.operands))

    @property
    def ends_path(self) -> bool:
        """Control never goes on to the next micro-operation."""
        control = self.op in (isa.Control.BRANCH, isa.Control.EXIT, isa.Control.INDEXED)
        return self.group == Group.CONTROL and control and self.guard == NONE


class Code:
    """The micro-operations of one kernel, in order, with their virtual registers and labels."""

    def __init__(self) -> None:
        self.list: list[Micro] = []
        self.bits: list[int] = []  # width of every virtual register: 1 (predicate), 16, 32 or 64
        self.declared: dict[int, tuple[int, int]] = {}  # where: line of the function, place among its registers
        self.labels: list[int] = []  # index of the micro-operation that a label stands before

    def copy(self) -> Code:
        """The same code, to be changed by itself."""
        made = Code()
        made.list = [
            replace(micro, results=dict(micro.results), operands=dict(micro.operands)) for micro in self.list
        ]
        made.bits, made.declared, made.labels = list(self.bits), dict(self.declared), list(self.labels)
        return made

    def take(self, other: Code) -> None:
        """Become another code."""
        self.list, self.bits, self.declared, self.labels = other.list, other.bits, other.declared, other.labels

    def register(self, bits: int) -> int:
        """A new virtual register."""
        self.bits.append(bits)
        return len(self.bits) - 1

    def label(self) -> int:
        """A new label, to be placed."""
        self.labels.append(NONE)
        return len(self.labels) - 1

    def place(self, label: int) -> None:
        self.labels[label] = len(self.list)

    def replace(self, expansions: list[list[Micro]]) -> None:
        """Put a list of micro-operations in the place of each one; labels follow the first."""
        starts = [0]
        for expansion in expansions:
            starts.append(starts[-1] + len(expansion))
        self.labels = [starts[place] if place != NONE else NONE for place in self.labels]
        self.list = [micro for expansion in expansions for micro in expansion]

    def successors(self) -> list[tuple[int, ...]]:
        """Where control can go from every micro-operation; the length of the list is the end of the thread."""
        end = len(self.list)
        result: list[tuple[int, ...]] = []
        for index, micro in enumerate(self.list):
            following: tuple[int, ...] = () if micro.ends_path else (index + 1,)
            if micro.group == Group.CONTROL:
                if micro.op == isa.Control.EXIT:
                    following += (end,)
                following += tuple(self.labels[target] for target in micro.targets)
            result.append(following)
        return result


def move(bits: int, target: int, source: Source) -> Micro:
    """A move of 16, 32 or 64 bits."""
    if bits == 64:
        return Micro(Group.LONG, isa.Long.MOV, Category.INTEGER, (source,), target, Write.PAIR)
    return Micro(Group.INT, isa.Int.MOV, Category.INTEGER, (source,), target, Write.HALF if bits == 16 else Write.WORD)
