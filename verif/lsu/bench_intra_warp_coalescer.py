"""Stimulus and checks of the intra-warp coalescer: what goes in must come out, under any back-pressure."""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from amaranth.hdl import Module, Signal, Value

from lockstep.spec.mapping import Mapping as ThreadMap
from lockstep.verif.bench import mask
from lockstep.verif.lsu.lines import WAIVER, one_size

BLOCK = "lsu.intra_warp_coalescer"
CONFIGURATIONS = {
    "paper": {"lanes": 32, "warps": 48, "tickets": 16},
    "one": {"lanes": 1, "warps": 1, "tickets": 1},
    "odd": {"lanes": 5, "warps": 7, "tickets": 3},
}
CYCLES = 1500
DEPTH = 3  # cycles from an instruction to its first line, and lines inside: to be found, found, presented

# Probability that an instruction is offered, and that a line is taken; log2 of the line size.
RATES = {"steady": (1.0, 1.0, 7), "stalled": (1.0, 0.4, 5), "sparse": (0.1, 1.0, 6), "mixed": (0.6, 0.6, 7)}
SHAPES = tuple(RATES)


@dataclass(frozen=True)
class Instruction:
    """A warp's memory instruction."""

    address: tuple[int, ...]
    mask: int
    size: int
    store: int = 0
    atomic: int = 0
    bypass: int = 0
    warp: int = 0
    ticket: int = 0

    @property
    def lanes(self) -> list[int]:
        return [lane for lane in range(len(self.address)) if self.mask >> lane & 1]

    def word(self, lane: int, line_bytes: int) -> int:
        """The word of a lane in its line: words are as wide as the access, and at least 4 bytes."""
        return self.address[lane] % line_bytes // max(4, 1 << self.size)


@dataclass(frozen=True)
class Line:
    """A line with the fields of its stream; ``of`` copies them from a payload."""

    number: int
    mask: int
    last: int
    mapping: int
    thread: int
    word: int
    words: tuple[int, ...]
    store: int
    atomic: int
    bypass: int
    warp: int
    ticket: int

    @classmethod
    def of(cls, payload: Any, lanes: int) -> Line:
        scalars = {name: int(getattr(payload, name)) for name in cls.__dataclass_fields__ if name != "words"}
        return cls(**scalars, words=tuple(int(payload.words[lane]) for lane in range(lanes)))


def instruction(rng: random.Random, lanes: int = 32, warps: int = 64, tickets: int = 16) -> Instruction:
    """Patterns that kernels have: unit stride, other strides, broadcasts, shuffled words of few lines, divergence."""
    size = rng.choice([2, 2, 2, 0, 1, 3, 4])
    width = 1 << size
    base = rng.getrandbits(32) & -128
    if rng.random() < 0.5:
        base += rng.randrange(32) * max(4, width)
    pattern = rng.choice(["unit", "unit", "stride", "broadcast", "shuffled", "divergent", "two", "bits"])
    if pattern == "unit":
        offsets = [lane * width for lane in range(lanes)]
    elif pattern == "stride":
        offsets = [lane * width * rng.choice([2, 3, 32]) for lane in range(lanes)]
    elif pattern == "broadcast":
        offsets = [0] * lanes
    elif pattern == "shuffled":
        offsets = [rng.randrange(64) * width for _ in range(lanes)]
    elif pattern == "divergent":
        offsets = [rng.getrandbits(28) for _ in range(lanes)]
    elif pattern == "two":  # broadcasts
        offsets = [rng.randrange(2) * width * 17 for _ in range(lanes)]
    else:  # addresses that differ in a bit
        offsets = [(base ^ rng.choice([0, 1 << rng.randrange(32)])) - base for _ in range(lanes)]
    address = tuple((base + offset) % (1 << 32) // width * width for offset in offsets)
    full = (1 << lanes) - 1
    active = full if rng.random() < 0.4 else mask(rng, lanes)
    kind = rng.choice(["load", "load", "load", "store", "atomic"])
    return Instruction(
        address, active, size, int(kind == "store"), int(kind == "atomic"), rng.randrange(2), rng.randrange(warps),
        rng.randrange(tickets),
    )  # fmt: skip


def lines(instruction: Instruction, line_bytes: int) -> Iterator[tuple[int, list[int]]]:
    """The line numbers in the order of their lowest lane, with their lanes."""
    found: dict[int, list[int]] = {}
    for lane in instruction.lanes:
        found.setdefault(instruction.address[lane] // line_bytes, []).append(lane)
    yield from found.items()


def decoded(mapping: ThreadMap, thread: int, word: int, active: list[int], line_words: int) -> dict[int, int]:
    """Lane to word, from what the encoding and the load's active lanes tell alone."""
    if mapping is ThreadMap.SINGLE:
        return {thread: word}
    if mapping is ThreadMap.BROADCAST:
        return dict.fromkeys(active, word)
    if mapping is ThreadMap.CONSECUTIVE:
        return {lane: lane for lane in active}
    return {lane: word + lane - thread for lane in active if lane >= thread and word + lane - thread < line_words}


def check(instruction: Instruction, got: list[Line], line_bytes: int) -> None:
    """The lines of one instruction: complete, in order, mapped as tersely as possible."""
    expected = list(lines(instruction, line_bytes))
    assert [(line.number, line.mask) for line in got] == [(n, sum(1 << l for l in ls)) for n, ls in expected]
    assert [line.last for line in got] == [0] * (len(got) - 1) + [1]
    line_words = line_bytes // max(4, 1 << instruction.size)
    for line, (_, members) in zip(got, expected, strict=True):
        actual = {lane: instruction.word(lane, line_bytes) for lane in members}
        assert (line.thread, line.word) == (members[0], actual[members[0]])
        encodings = (ThreadMap.SINGLE, ThreadMap.CONSECUTIVE, ThreadMap.BROADCAST, ThreadMap.RANGE)
        right = [m for m in encodings if decoded(m, line.thread, line.word, instruction.lanes, line_words) == actual]
        assert line.mapping == (right[0] if right else ThreadMap.RANDOM)
        words = [0 if right else instruction.word(lane, line_bytes) for lane in range(len(instruction.address))]
        assert list(line.words) == words
        for name in ("store", "atomic", "bypass", "warp", "ticket"):
            assert getattr(line, name) == getattr(instruction, name)


class Environment:
    """An LSU that offers instructions, and a taker of lines."""

    def __init__(self, parameters: dict[str, int], shape: str, rng: random.Random) -> None:
        self.parameters, self.rng = parameters, rng
        self.valid, self.ready, self.line_shift = RATES[shape]
        self.offered: Instruction | None = None
        self.waiting: list[Instruction] = []  # accepted, with lanes; the first one's lines are leaving
        self.inside = 0  # their lines
        self.got: list[Line] = []
        self.gaps = DEPTH  # cycles in which there may be no line although all are offered, and taken, at once
        self.held: Line | None = None

    def drive(self, i: Any, o: Any) -> None:
        rng = self.rng
        i.line_shift, i.line.ready = self.line_shift, rng.random() < self.ready
        if self.offered is None and rng.random() < self.valid:
            self.offered = instruction(rng, **self.parameters)
            drive(i.request.payload, self.offered)
        i.request.valid = self.offered is not None
        o.inside = self.inside

    def observe(self, i: Any, o: Any, c: Any) -> None:
        if i.request.valid and c.request.ready:
            assert self.offered is not None
            limit = DEPTH if i.line.ready else DEPTH - 1
            assert self.inside <= limit, "another instruction waits for its lines to be found"
            if self.offered.mask:
                self.waiting.append(self.offered)
                self.inside += len(list(lines(self.offered, 1 << self.line_shift)))
            else:
                self.gaps += 1
            self.offered = None
        line = Line.of(o.line.payload, self.parameters["lanes"]) if o.line.valid else None
        assert self.held in (None, line), "a presented line must hold"
        self.held = line
        if line and i.line.ready:
            self.held = None
            self.inside -= 1
            self.got.append(line)
            if line.last:
                check(self.waiting.pop(0), self.got, 1 << self.line_shift)
                self.got = []
        if self.valid == self.ready == 1.0:
            self.gaps -= line is None
            assert self.gaps >= 0, "a gap between two lines"

    def finish(self) -> None:
        assert len(self.waiting) <= DEPTH


def protocol(m: Module, parameters: dict[str, int], ports: Mapping[str, Signal]) -> Value:
    """The line size is constant, and 32, 64 or 128 bytes."""
    return one_size(m, ports["line_shift"])


def drive(payload: Any, instruction: Instruction) -> None:
    """Put an instruction into the record of the request's payload."""
    for name, value in vars(instruction).items():
        if name == "address":
            for lane, address in enumerate(value):
                payload.address[lane] = address
        else:
            setattr(payload, name, value)


def _leaves(mapping: ThreadMap) -> Any:
    return lambda p, i, o, c: o.line.valid and i.line.ready and o.line.payload.mapping == mapping


BINS = {
    **{f"mapping {mapping.name.lower()}": _leaves(mapping) for mapping in ThreadMap},
    **{
        f"{what} leaves": lambda p, i, o, c, what=what: o.line.valid and getattr(o.line.payload, what)
        for what in ("store", "atomic", "bypass")
    },
    "not the last line": lambda p, i, o, c: o.line.valid and not o.line.payload.last,
    "back-pressure": lambda p, i, o, c: o.line.valid and not i.line.ready,
    "taken as the last line is found": lambda p, i, o, c: (
        i.request.valid and c.request.ready and o.inside == DEPTH
    ),
    "a request waits for the line presented": lambda p, i, o, c: (
        i.request.valid and not c.request.ready and not i.line.ready
    ),
    "a request waits for the lines of another": lambda p, i, o, c: (
        i.request.valid and not c.request.ready and i.line.ready
    ),
    "no active lane": lambda p, i, o, c: i.request.valid and c.request.ready and i.request.payload.mask == 0,
    "nothing to do": lambda p, i, o, c: not i.request.valid and not o.line.valid,
    **{
        f"lines of {1 << shift} bytes": lambda p, i, o, c, shift=shift: o.line.valid and i.line_shift == shift
        for shift in (5, 6, 7)
    },
    **{
        f"{1 << size} bytes per lane": lambda p, i, o, c, size=size: i.request.valid and i.request.payload.size == size
        for size in range(5)
    },
}

IN_KERNELS = ("back-pressure", "not the last line", "nothing to do")

WAIVERS = (WAIVER,)


def _one_lane(parameters: dict[str, int]) -> bool:
    return parameters["lanes"] == 1


# One lane makes one line with one word.
UNREACHABLE = dict.fromkeys(
    (
        "not the last line", "a request waits for the lines of another",
        *(f"mapping {m.name.lower()}" for m in ThreadMap if m),
    ),
    _one_lane,
)  # fmt: skip
