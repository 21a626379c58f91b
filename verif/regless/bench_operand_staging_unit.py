"""Stimulus, end-to-end checks and coverage of ``regless.operand_staging_unit``: no value is lost, old or invented."""

from __future__ import annotations

import random
from collections import Counter, defaultdict, deque
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

from lockstep.spec.register_regions import ERASE, LAST, Entry
from lockstep.spec.regless.parameters import FIRST_RELEASED, IN_TURN, POISON, Request

BLOCK = "regless.operand_staging_unit"
CONFIGURATIONS = {
    "small": dict(lanes=2, warps=3, registers=5, banks=2, lines=3, leaves=IN_TURN),
    "gtx480": dict(lanes=32, warps=24, registers=63, banks=8, lines=32, leaves=IN_TURN),
    # Lanes only widen what is moved: those of one size are enough, and the others are built sooner.
    "paper": dict(lanes=2, warps=16, registers=255, banks=8, lines=16, leaves=IN_TURN),
    "first released": dict(lanes=2, warps=16, registers=255, banks=8, lines=16, leaves=FIRST_RELEASED),
    "128 registers": dict(lanes=2, warps=16, registers=255, banks=8, lines=4, leaves=IN_TURN),
    "2048 registers": dict(lanes=2, warps=16, registers=255, banks=8, lines=64, leaves=IN_TURN),
    "one": dict(lanes=1, warps=1, registers=1, banks=1, lines=1, leaves=FIRST_RELEASED),
    "odd": dict(lanes=3, warps=3, registers=7, banks=2, lines=3, leaves=FIRST_RELEASED),
}


@dataclass(frozen=True)
class Shape:
    """Probabilities per cycle and bank, where there is something to do."""

    preload: float = 0.3
    access: float = 0.6
    write: float = 0.5
    last: float = 0.5  # of the uses
    erase: float = 0.3  # of the last ones
    accept: float = 0.9  # by the compressor
    fill: float = 0.5
    finish: float = 0.01
    numbers: int = 256  # registers of a warp that take part, at most
    held: float = 1.0  # of the lines that regions may have


_SHAPES = {
    "mixed": Shape(),
    "tight": Shape(preload=0.8, last=0.9, erase=0.1, finish=0.002),
    "busy": Shape(preload=0.9, access=1.0, last=0.2, finish=0.001, accept=1.0),
    "slow compressor": Shape(accept=0.1, fill=0.1, erase=0.1),
    "writes": Shape(preload=0.1, access=0.9, write=0.9, erase=0.6),
    "few": Shape(numbers=12, finish=0.002, held=0.5),
    "sparse": Shape(preload=0.02, access=0.1, write=0.1),
    "short warps": Shape(preload=0.05, access=0.3, last=0.9, accept=0.2, finish=0.5),
}
SHAPES = tuple(_SHAPES)

Register = tuple[int, int]  # warp, number
Words = tuple[int, ...]


class Environment:
    """Regions that come and go in each bank, and a compressor that remembers what was stored.

    ``newest`` is what each register was given last; it is missing where nobody needs the value any more.
    """

    CYCLES = 2000

    def __init__(self, parameters: dict[str, int], shape: str, rng: random.Random) -> None:
        self.parameters, self.shape, self.rng = parameters, _SHAPES[shape], rng
        self.lanes = parameters["lanes"]
        banks = parameters["banks"]
        self.registers: list[list[Register]] = [[] for _ in range(banks)]
        for warp in range(parameters["warps"]):
            for number in range(min(parameters["registers"], self.shape.numbers)):
                self.registers[(warp + number) % banks].append((warp, number))
        self.most = max(1, int(self.shape.held * parameters["lines"]))
        self.newest: dict[Register, Words] = {}
        self.below: dict[Register, Words] = {}
        self.released: defaultdict[Register, list[Words]] = defaultdict(list)  # values that may be stored, in order
        self.held: list[set[Register]] = [set() for _ in range(banks)]  # allocated to regions, or about to be
        self.begun: list[list[tuple[Register, int]]] = [
            [] for _ in range(banks)
        ]  # preloads and invalidations that are not answered
        self.answers: list[Counter[int]] = [Counter() for _ in range(banks)]  # that came of them, by warp
        self.accesses: list[deque[tuple[Register, int, int]]] = [deque() for _ in range(banks)]  # result, flags
        self.fresh: set[Register] = set()  # reserved, without a value
        self.reserved: list[list[Register]] = [[] for _ in range(banks)]  # to be written
        self.fills: list[tuple[Register, Words]] = []  # that the compressor owes
        self.taken: dict[tuple[str, int], bool] = {}  # by port: was transferred in the last cycle
        self.reads = 0

    # ------------------------------------------------------------------------------------------------------- stimulus

    def drive(self, i: Any, o: Any) -> None:
        rng, shape = self.rng, self.shape

        def free(port: Any, name: str, bank: int = 0) -> bool:
            port.valid &= not self.taken.get((name, bank), False)
            return not port.valid

        if free(i.finish, "finish") and rng.random() < shape.finish:
            self.finish_warp(i.finish)
        for bank in range(self.parameters["banks"]):
            ending = i.finish.payload.warp if i.finish.valid else -1
            if free(i.preload[bank], "preload", bank) and rng.random() < shape.preload:
                self.begin(bank, i.preload[bank], ending)
            if free(i.access[bank], "access", bank) and rng.random() < shape.access:
                self.use(bank, i.access[bank], ending)
            i.write[bank].valid = 0
            if self.reserved[bank] and rng.random() < shape.write:
                self.write(bank, i.write[bank])
        i.request.ready = rng.random() < shape.accept
        if free(i.fill, "fill") and self.fills and rng.random() < shape.fill:
            register, words = self.fills.pop(rng.randrange(len(self.fills)))
            i.fill.valid = 1
            i.fill.payload.warp, i.fill.payload.number = register
            self.put(i.fill.payload.words, words)

    @staticmethod
    def put(port: Any, words: Words) -> None:
        for lane, word in enumerate(words):
            port[lane] = word

    def finish_warp(self, port: Any) -> None:
        """A warp of which nothing is held or due ends."""
        warp = self.rng.randrange(self.parameters["warps"])
        if not any(register[0] == warp for held in self.held for register in held) and not any(
            register[0] == warp for begun in self.begun for register, _ in begun
        ):
            port.valid, port.payload.warp = 1, warp

    def begin(self, bank: int, port: Any, ending: int) -> None:
        """A region has this register among its entries."""
        rng = self.rng
        warp, number = register = rng.choice(self.registers[bank]) if self.registers[bank] else (ending, 0)
        busy = register in self.held[bank] or any(register == other for other, _ in self.begun[bank])
        if warp == ending or busy:
            return
        action = rng.choice([Entry.PRELOAD] * 3 + [Entry.PRELOAD_LAST, Entry.INVALIDATE])
        if action != Entry.INVALIDATE:
            if len(self.held[bank]) == self.most:
                return
            self.held[bank].add(register)
        self.begun[bank].append((register, action))
        port.valid = 1
        port.payload.warp, port.payload.number, port.payload.action = warp, number, action

    def use(self, bank: int, port: Any, ending: int) -> None:
        """An instruction reads a register, or reserves its place for a result."""
        rng, payload = self.rng, port.payload
        ready = [each for each in sorted(self.held[bank]) if self.usable(bank, each)]
        result = rng.random() < 0.4
        if result and len(self.held[bank]) < self.most and rng.random() < 0.7:
            ready = [
                each for each in rng.sample(self.registers[bank], min(8, len(self.registers[bank])))
                if each not in self.held[bank] and each[0] != ending
                and not any(each == other for other, _ in self.begun[bank])
            ]  # fmt: skip
        if not ready:
            return
        warp, number = register = rng.choice(ready)
        flags = 0 if result else self.flags()
        if result and register not in self.held[bank]:
            self.held[bank].add(register)
            self.fresh.add(register)
        self.accesses[bank].append((register, result, flags))
        port.valid = 1
        payload.warp, payload.number, payload.result, payload.flags = warp, number, result, flags

    def usable(self, bank: int, register: Register) -> bool:
        """It has its value, and no later use of it is on its way."""
        busy = any(register == other for other, *_ in self.accesses[bank]) or register in self.reserved[bank]
        return not busy and register not in self.fresh and not any(register == other for other, _ in self.begun[bank])

    def flags(self) -> int:
        if self.rng.random() >= self.shape.last:
            return 0
        return LAST | ERASE if self.rng.random() < self.shape.erase else LAST

    def write(self, bank: int, port: Any) -> None:
        rng, payload = self.rng, port.payload
        warp, number = self.reserved[bank][rng.randrange(len(self.reserved[bank]))]
        port.valid = 1
        payload.warp, payload.number, payload.flags = warp, number, self.flags()
        payload.mask = rng.choice([(1 << self.lanes) - 1, rng.getrandbits(self.lanes), 0])
        self.put(payload.words, tuple(rng.getrandbits(32) for _ in range(self.lanes)))

    # --------------------------------------------------------------------------------------------------------- checks

    def observe(self, i: Any, o: Any, c: Any) -> None:
        for bank in range(self.parameters["banks"]):
            self.taken["preload", bank] = bool(i.preload[bank].valid and o.preload[bank].ready)
            self.taken["access", bank] = bool(i.access[bank].valid and o.access[bank].ready)
            if o.operand[bank].valid:
                self.operand(bank, o.operand[bank].payload)
            if o.answered[bank].valid:
                self.answered(bank, int(o.answered[bank].payload.warp))
            if i.write[bank].valid:
                self.written(bank, i.write[bank].payload)
            assert len(self.accesses[bank]) <= 5 and len(self.held[bank]) <= self.most
        self.taken["fill", 0] = bool(i.fill.valid and c.fill.ready)
        self.taken["finish", 0] = bool(i.finish.valid and o.finish.ready)
        if self.taken["finish", 0]:
            for register in [each for each in self.newest if each[0] == i.finish.payload.warp]:
                del self.newest[register]
        if o.request.valid and i.request.ready:
            self.request(o.request.payload)

    def operand(self, bank: int, payload: Any) -> None:
        """An access is done; they stay in order."""
        register, result, flags = self.accesses[bank].popleft()
        assert (int(payload.warp), int(payload.number), int(payload.result)) == (*register, result)
        if result:
            self.reserved[bank].append(register)
            return
        self.reads += 1
        assert tuple(payload.words[: self.lanes]) == self.newest[register], "the newest value is read"
        self.used(bank, register, flags)

    def used(self, bank: int, register: Register, flags: int) -> None:
        if flags & LAST:
            self.held[bank].remove(register)
            if flags & ERASE:
                del self.newest[register]
            else:
                self.released[register].append(self.newest[register])

    def written(self, bank: int, payload: Any) -> None:
        register = int(payload.warp), int(payload.number)
        self.reserved[bank].remove(register)
        old = self.newest.get(register)
        if register in self.fresh:
            self.fresh.remove(register)
            old = None
        self.newest[register] = tuple(
            int(payload.words[lane]) if payload.mask >> lane & 1 else old[lane] if old else POISON
            for lane in range(self.lanes)
        )
        self.used(bank, register, int(payload.flags))

    def answered(self, bank: int, warp: int) -> None:
        """When all of a warp's entries in a bank have been answered, its registers are there."""
        begun = [entry for entry in self.begun[bank] if entry[0][0] == warp]
        self.answers[bank][warp] += 1
        assert self.answers[bank][warp] <= len(begun), "an answer for each entry"
        if self.answers[bank][warp] == len(begun):
            self.answers[bank][warp] = 0
            for register, action in begun:
                self.begun[bank].remove((register, action))
                if action == Entry.INVALIDATE:
                    self.newest.pop(register, None)
                else:
                    assert register in self.newest, "a value that nobody stored"

    def request(self, payload: Any) -> None:
        """The compressor."""
        warp, number = register = int(payload.warp), int(payload.number)
        bank = (warp + number) % self.parameters["banks"]
        words = tuple(int(word) for word in payload.words[: self.lanes])
        if payload.kind == Request.FINISH:
            for other in [other for other in self.below if other[0] == warp]:
                del self.below[other]
        elif payload.kind == Request.STORE:
            self.below[register] = words
            values = self.released[register]
            assert words in values, "a value that a region left is stored"
            del values[: values.index(words)]
        elif payload.kind == Request.DROP:
            self.below.pop(register, None)
        else:
            assert any(register == other for other, _ in self.begun[bank]), "nobody has asked for it"
            found = self.below.get(register, (POISON,) * self.lanes)
            assert self.newest.get(register, found) == found, "the newest value is below"
            self.newest[register] = found
            self.fills.append((register, found))
            if payload.kind == Request.FETCH_LAST:
                self.below.pop(register, None)

    def finish(self) -> None:
        assert self.reads > 0


Bin = Callable[[dict[str, int], Any, Any, Any], bool]


def _requested(kind: Request, p: dict[str, int], i: Any, o: Any, c: Any) -> bool:
    return bool(o.request.valid and o.request.payload.kind == kind)


def _written(flags: int, p: dict[str, int], i: Any, o: Any, c: Any) -> bool:
    return any(i.write[b].valid and i.write[b].payload.flags == flags for b in range(p["banks"]))


def _any(side: str, port: str, p: dict[str, int], i: Any, o: Any, c: Any) -> bool:
    """A stream into some bank waits."""
    return any(getattr(i, port)[b].valid and not getattr(o, port)[b].ready for b in range(p["banks"]))


BINS: dict[str, Bin] = {
    **{f"to the compressor: {kind.name}": partial(_requested, kind) for kind in Request},
    **{f"a write with flags {flags}": partial(_written, flags) for flags in (0, LAST, LAST | ERASE)},
    **{f"{port} waits": partial(_any, "i", port) for port in ("access", "preload")},
    "a fill waits for a write": lambda p, i, o, c: i.fill.valid and not c.fill.ready,
    "finish waits": lambda p, i, o, c: i.finish.valid and not o.finish.ready,
    "a request waits": lambda p, i, o, c: o.request.valid and not i.request.ready,
    "two banks are answered": lambda p, i, o, c: sum(o.answered[b].valid for b in range(p["banks"])) > 1,
    "all banks work": lambda p, i, o, c: all(o.operand[b].valid for b in range(p["banks"])),
    "no lane is written": lambda p, i, o, c: any(
        i.write[b].valid and i.write[b].payload.mask == 0 for b in range(p["banks"])
    ),
}

IN_KERNELS = (
    "access waits", "preload waits", "a fill waits for a write", "finish waits", "a request waits",
    "two banks are answered",
)  # fmt: skip


def _one(p: dict[str, int]) -> bool:
    """The only register has a line, and one access, entry or write at a time."""
    return p["warps"] * p["registers"] == 1


UNREACHABLE: dict[str, Callable[[dict[str, int]], bool]] = {
    "two banks are answered": lambda p: p["banks"] == 1,
    **dict.fromkeys(["to the compressor: STORE", "access waits", "preload waits", "a fill waits for a write"], _one),
}
