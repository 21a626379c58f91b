"""Stimulus, end-to-end checks and coverage of ``regless.register_compressor``: what is fetched is what was stored."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

from lockstep.spec.regless.parameters import BY_NUMBER, BY_WARP, POISON, Access, Request, State, groups

BLOCK = "regless.register_compressor"
CONFIGURATIONS = {
    "small": dict(lanes=4, warps=3, registers=18, lines=3, per_line=4, compressed_by=BY_NUMBER),
    "paper": dict(lanes=32, warps=16, registers=255, lines=12, per_line=15, compressed_by=BY_NUMBER),
    "gtx480": dict(lanes=32, warps=24, registers=63, lines=12, per_line=15, compressed_by=BY_NUMBER),
    "short lines": dict(lanes=32, warps=16, registers=64, lines=16, per_line=7, compressed_by=BY_WARP),
    "without": dict(lanes=4, warps=3, registers=18, lines=0, per_line=4, compressed_by=BY_NUMBER),
    "one": dict(lanes=1, warps=1, registers=1, lines=1, per_line=1, compressed_by=BY_NUMBER),
    "odd": dict(lanes=3, warps=3, registers=17, lines=3, per_line=3, compressed_by=BY_WARP),
}
TRANSITIONS = {
    "step": {
        "IDLE": ("LOOK", "INSTALL"),
        "LOOK": ("IDLE", "READ", "WRITE"),
        "READ": ("IDLE", "EXPAND"),
        "WRITE": ("IDLE",),
        "INSTALL": ("IDLE", "EXPAND"),
        "EXPAND": ("IDLE",),
    }
}


@dataclass(frozen=True)
class Shape:
    """Probabilities per cycle, but for ``compressible``, of stores, and ``finish``, of requests."""

    request: float = 0.9
    accept: float = 0.9  # by the L1 ...
    pauses: int = 0  # ... which takes nothing for so many cycles now and then
    answer: float = 0.3  # of a fetch that is due
    places_first: bool = False  # while lines for places are due, no other fetch is answered
    take: float = 0.9  # of a fill
    compressible: float = 0.6
    finish: float = 0.01
    numbers: int = 256  # registers of a warp that take part, at most


_SHAPES = {
    "mixed": Shape(finish=0.03),
    "compressible": Shape(compressible=0.98),
    "slow L1": Shape(accept=0.15, answer=0.05),
    "far memory": Shape(answer=0.02, compressible=0.9, finish=0.002),
    "fills wait": Shape(take=0.1, answer=0.9),
    "L1 pauses": Shape(pauses=12, compressible=0.5, request=1.0, accept=1.0, answer=0.9, finish=0.001),
    "places wait": Shape(answer=0.02, compressible=1.0, request=1.0, accept=1.0, take=1.0, finish=0.0),
    "few": Shape(numbers=20, compressible=0.9, finish=0.001),
    "sparse": Shape(request=0.1),
    "warps end": Shape(answer=0.05, compressible=1.0, request=1.0, accept=1.0, take=1.0, finish=0.15, numbers=20),
    "places first": Shape(
        answer=0.06, places_first=True, compressible=1.0, request=1.0, accept=1.0, take=1.0, finish=0.0, numbers=20
    ),
}
SHAPES = tuple(_SHAPES)

Register = tuple[int, int]  # warp, number
Words = tuple[int, ...]
MASK = 0xFFFF_FFFF


class Environment:
    """A staging unit that remembers what it stored, and an L1 with its backing store, which answers in any order."""

    CYCLES = 2500

    def __init__(self, parameters: dict[str, int], shape: str, rng: random.Random) -> None:
        self.parameters, self.shape, self.rng = parameters, _SHAPES[shape], rng
        self.lanes, self.warps, self.per_line = parameters["lanes"], parameters["warps"], parameters["per_line"]
        self.numbers = min(parameters["registers"], self.shape.numbers)
        self.up: set[Register] = set()  # in the staging unit
        self.copy: dict[Register, Words] = {}  # below it
        self.due: dict[Register, Words] = {}  # fetched, not filled
        self.raw: dict[Register, Words] = {}  # in the L1's backing store ...
        self.lines: dict[int, Words] = {}  # ... by group
        self.left: set[int] = set()  # groups with a compressed register of a warp that has ended
        self.fetches: list[tuple[int, ...]] = []  # that the L1 has accepted
        self.taken = self.received = False
        self.filled = self.pause = 0

    def group(self, warp: int, number: int) -> int:
        """Registers lie by number, then by warp, or the other way round, ``per_line`` of them in a compressed line."""
        by_warp = self.parameters["compressed_by"] == BY_WARP
        index = warp * self.parameters["registers"] + number if by_warp else number * self.warps + warp
        return index // self.per_line

    def values(self, group: int, line: Words) -> set[Register]:
        """The registers whose newest values are in this line."""
        return {each for each, words in self.copy.items() if self.group(*each) == group and words[0] in line[::2]}

    def fetched(self, install: int) -> set[int]:
        """The lines that are fetched for a place, or for a value alone."""
        lines = [names for kind, *names in self.fetches if kind == Access.FETCH_LINE]
        return {self.group(warp, number) for warp, number, *_, installs in lines if installs == install}

    # ------------------------------------------------------------------------------------------------------- stimulus

    def value(self) -> Words:
        """A register's words: of a pattern, nearly of one, or any."""
        rng, lanes = self.rng, self.lanes
        half = (lanes + 1) // 2
        words = [rng.getrandbits(32) for _ in range(lanes)]
        if rng.random() < self.shape.compressible:
            stride, halves = rng.choice([(0, 0), (1, 0), (4, 0), (1, 1), (4, 1), (4, 1)])
            bases = words[0], rng.getrandbits(32)
            words = [
                (bases[1] + (lane - half) * stride if halves and lane >= half else bases[0] + lane * stride) & MASK
                for lane in range(lanes)
            ]
            if rng.random() < 0.1:
                words[rng.randrange(lanes)] ^= 1 << rng.randrange(32)
        return tuple(words)

    def drive(self, i: Any, o: Any) -> None:
        rng, shape = self.rng, self.shape
        i.request.valid &= not self.taken
        i.answer.valid &= not self.received
        if not i.request.valid and rng.random() < shape.request:
            self.ask(i.request)
        self.pause = shape.pauses if self.pause == -shape.pauses else self.pause - 1
        i.access.ready = rng.random() < shape.accept and self.pause <= 0
        i.fill.ready = rng.random() < shape.take
        if not i.answer.valid and self.fetches and rng.random() < shape.answer:
            self.reply(i.answer)

    def ask(self, request: Any) -> None:
        """A request that a staging unit may have: none for a register that it waits for."""
        rng, payload = self.rng, request.payload
        warp, number = register = rng.randrange(self.warps), rng.randrange(self.numbers)
        if rng.random() < self.shape.finish:
            kind, waits = Request.FINISH, any(due == warp for due, _ in self.due)
        elif register in self.up:
            kind, waits = rng.choice([Request.STORE] * 3 + [Request.DROP]), False
        else:
            kind = rng.choice([Request.FETCH] * 2 + [Request.FETCH_LAST, Request.STORE, Request.DROP])
            waits = register in self.due
        if not waits:
            request.valid = 1
            payload.kind, payload.warp, payload.number = kind, warp, number
            for lane, word in enumerate(self.value() if kind == Request.STORE else [0] * self.lanes):
                payload.words[lane] = word

    def reply(self, answer: Any) -> None:
        """The L1 answers a fetch, with what its backing store has now."""
        places = [k for k, fetch in enumerate(self.fetches) if fetch[-1]] if self.shape.places_first else []
        kind, *names = self.fetches.pop(self.rng.choice(places or range(len(self.fetches))))
        payload = answer.payload
        answer.valid = 1
        payload.line = kind == Access.FETCH_LINE
        payload.warp, payload.number, payload.pattern, payload.expand, payload.install = names
        register = names[0], names[1]
        words = self.lines[self.group(*register)] if payload.line else self.raw[register]
        if kind == Access.FETCH_LAST:
            del self.raw[register]
        for k, word in enumerate(words):
            payload.words[k] = word

    # --------------------------------------------------------------------------------------------------------- checks

    def observe(self, i: Any, o: Any, c: Any) -> None:
        c.ends_while_fetched = c.shared = c.outlives = c.below_a_fetch = False
        self.taken = bool(i.request.valid and c.request.ready)
        self.received = bool(i.answer.valid and o.answer.ready)
        assert not (i.answer.valid and self.taken), "an answer goes first"
        if o.fill.valid and i.fill.ready:
            register = int(o.fill.payload.warp), int(o.fill.payload.number)
            assert register in self.due, "nobody waits for this register"
            assert tuple(o.fill.payload.words[: self.lanes]) == self.due.pop(register), "what was stored last"
            self.up.add(register)
            self.filled += 1
        if o.access.valid and i.access.ready:
            self.access(o.access.payload, c)
        if self.taken:
            self.request(i.request.payload, c)

    def request(self, payload: Any, c: Any) -> None:
        register = int(payload.warp), int(payload.number)
        if payload.kind == Request.FINISH:
            ends = {self.group(*other) for other in self.copy.keys() - self.raw.keys() if other[0] == register[0]}
            c.ends_while_fetched = not ends.isdisjoint(self.fetched(install=1))
            self.left |= ends
            for known in (self.up, self.copy):
                for other in [other for other in known if other[0] == register[0]]:
                    known.discard(other) if isinstance(known, set) else known.pop(other)
        elif payload.kind == Request.STORE:
            self.up.discard(register)
            self.copy[register] = tuple(payload.words[: self.lanes])
        elif payload.kind == Request.DROP:
            self.copy.pop(register, None)
        else:
            self.due[register] = self.copy.get(register, (POISON,) * self.lanes)
            if payload.kind == Request.FETCH_LAST:
                self.copy.pop(register, None)

    def access(self, payload: Any, c: Any) -> None:
        """The L1 accepts an access."""
        warp, number, group = int(payload.warp), int(payload.number), int(payload.group)
        if payload.kind == Access.STORE:
            self.raw[warp, number] = tuple(payload.words[: self.lanes])
        elif payload.kind == Access.STORE_LINE:
            self.lines[group] = line = tuple(payload.words[: 2 * self.per_line])
            c.shared = len({owner for owner, _ in self.values(group, line)}) > 1
            c.outlives, self.left = group in self.left, self.left - {group}
            c.below_a_fetch = group in self.fetched(install=0)
        elif payload.kind == Access.DROP:
            assert self.raw.pop((warp, number), None), "a line that is dropped was stored"
        else:
            names = (int(payload.pattern), int(payload.expand), int(payload.install))
            self.fetches.append((int(payload.kind), warp, number, *names))
            if payload.kind == Access.FETCH_LINE:
                assert group == self.group(warp, number) and group in self.lines, "a line that was stored"
            else:
                assert (warp, number) in self.raw, "a register that was stored"

    def finish(self) -> None:
        assert self.filled > 0


Bin = Callable[[dict[str, int], Any, Any, Any], bool]


def _asked(kind: Request, p: dict[str, int], i: Any, o: Any, c: Any) -> bool:
    return bool(i.request.valid and c.request.ready and i.request.payload.kind == kind)


def _sent(kind: Access, p: dict[str, int], i: Any, o: Any, c: Any) -> bool:
    return bool(o.access.valid and o.access.payload.kind == kind)


def _pattern(state: State, p: dict[str, int], i: Any, o: Any, c: Any) -> bool:
    return bool(o.access.valid and o.access.payload.pattern == state)


def _numbers(p: dict[str, int], group: int) -> int:
    """Different register numbers in a group."""
    places = range(group * p["per_line"], (group + 1) * p["per_line"])
    by_warp = p["compressed_by"] == BY_WARP
    return len({index % p["registers"] if by_warp else index // p["warps"] for index in places})


BINS: dict[str, Bin] = {
    **{f"a request: {kind.name}": partial(_asked, kind) for kind in Request},
    **{f"an access: {kind.name}": partial(_sent, kind) for kind in Access},
    **{f"fetched with its line: {s.name}": partial(_pattern, s) for s in State if s >= State.CONSTANT},
    "a fetched line takes a place": lambda p, i, o, c: o.access.valid and o.access.payload.install,
    "a place is there, and a value with it is fetched alone": lambda p, i, o, c: (
        o.access.valid and o.access.payload.kind == Access.FETCH_LINE and not o.access.payload.install
    ),
    "a line is fetched for a store": lambda p, i, o, c: (
        o.access.valid and o.access.payload.install and not o.access.payload.expand
    ),
    "a line leaves with registers of several warps": lambda p, i, o, c: c.shared,
    "a line leaves with registers of several numbers": lambda p, i, o, c: (
        _sent(Access.STORE_LINE, p, i, o, c) and _numbers(p, o.access.payload.group) > 1
    ),
    "a line leaves with registers of a warp that has ended": lambda p, i, o, c: c.outlives,
    "a warp ends while a line with its registers is fetched": lambda p, i, o, c: c.ends_while_fetched,
    "a line leaves while a value of it is fetched alone": lambda p, i, o, c: c.below_a_fetch,
    "a request waits for an answer": lambda p, i, o, c: i.request.valid and i.answer.valid and o.answer.ready,
    "a request waits for the L1": lambda p, i, o, c: (
        i.request.valid and not c.request.ready and o.answer.ready and not i.answer.valid
    ),
    "an answer waits": lambda p, i, o, c: i.answer.valid and not o.answer.ready,
    "a fill waits": lambda p, i, o, c: o.fill.valid and not i.fill.ready,
    "a register without a copy": lambda p, i, o, c: o.fill.valid and o.fill.payload.words[0] == POISON,
}

IN_KERNELS = (
    "a fetched line takes a place", "a place is there, and a value with it is fetched alone",
    "a line is fetched for a store", "a line leaves with registers of several numbers",
    "a request waits for an answer", "a request waits for the L1", "an answer waits", "a fill waits",
)  # fmt: skip

_OF_LINES = [bin for bin in BINS if "line" in bin.lower() or "place" in bin]
_SHARED = [bin for bin in BINS if "several" in bin]
_OF_THE_L1 = [
    *(f"an access: {kind.name}" for kind in (Access.FETCH, Access.FETCH_LAST, Access.STORE, Access.DROP)),
    "a request waits for an answer", "a request waits for the L1", "an answer waits",
]  # fmt: skip


def _no_line_leaves(p: dict[str, int]) -> bool:
    """There is none, or each has a place of its own."""
    return p["lines"] == 0 or p["lines"] >= groups(p["warps"], p["registers"], p["per_line"])


def _nothing_leaves(p: dict[str, int]) -> bool:
    """Every value has a pattern, since each half has but one lane, and each line a place of its own."""
    return p["lanes"] <= 2 and p["lines"] != 0 and _no_line_leaves(p)


UNREACHABLE: dict[str, Callable[[dict[str, int]], bool]] = {
    **dict.fromkeys(_OF_THE_L1, _nothing_leaves),
    **dict.fromkeys(_OF_LINES, _no_line_leaves),
    **dict.fromkeys(_SHARED, lambda p: _no_line_leaves(p) or p["per_line"] == 1),
    **{f"fetched with its line: {s.name}": lambda p: _no_line_leaves(p) or p["lanes"] == 1
       for s in State if s > State.CONSTANT},
}  # fmt: skip
