"""Whole warps on a shard: random programs of regions run on it, and every operand must be the newest value.

The programs are made with their annotations, region by region. What is checked is what an instruction reads, the words
that reach the L1 and come back, and that everybody goes on.
"""

from __future__ import annotations

import random
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from lockstep.sim.compile.ptx.passes.register_regions.words import Metadata, encode
from lockstep.spec.register_regions import (
    BANKS,
    ERASE,
    FLAG_BITS,
    FLAGS_SLOTS,
    INSTRUCTION_SLOTS,
    KIND_BITS,
    KIND_SHIFT,
    LAST,
    MAX_SLOTS,
    MAX_USAGE,
    OPERANDS,
    PAYLOAD_BITS,
    SLOT_BITS,
    SLOTS_BITS,
    SLOTS_SHIFT,
    Entry,
)
from lockstep.spec.regless.parameters import BY_NUMBER, BY_WARP, FIRST_RELEASED, IN_TURN, POISON, Access
from lockstep.verif.regless import bench_capacity_manager, bench_region_metadata, bench_register_compressor

BLOCK = "regless.regless_shard"
CONFIGURATIONS = {
    "small": dict(
        lanes=4, warps=3, registers=31, banks=4, lines=7, words=8, patience=15, leaves=IN_TURN,
        compressor_lines=2, per_line=8, compressed_by=BY_NUMBER,
    ),
    "gtx480": dict(
        lanes=32, warps=24, registers=63, banks=8, lines=32, words=8, patience=15, leaves=IN_TURN,
        compressor_lines=12, per_line=15, compressed_by=BY_NUMBER,
    ),
    # Lanes only widen what is moved: those of one size are enough, and the others are built sooner. Values of less than
    # three lanes always have a pattern.
    "128 registers": dict(
        lanes=3, warps=16, registers=255, banks=8, lines=4, words=8, patience=0, leaves=FIRST_RELEASED,
        compressor_lines=12, per_line=15, compressed_by=BY_WARP,
    ),
    "one": dict(
        lanes=1, warps=1, registers=3, banks=1, lines=2, words=2, patience=1, leaves=IN_TURN,
        compressor_lines=1, per_line=1, compressed_by=BY_NUMBER,
    ),
    "odd": dict(
        lanes=3, warps=5, registers=7, banks=2, lines=3, words=4, patience=1, leaves=FIRST_RELEASED,
        compressor_lines=3, per_line=3, compressed_by=BY_WARP,
    ),
}  # fmt: skip


@dataclass(frozen=True)
class Shape:
    """Probabilities per cycle, where there is something to do."""

    word: float = 0.9
    issue: float = 0.8
    write: float = 0.5
    accept: float = 0.8  # by the L1 ...
    pauses: int = 0  # ... which takes nothing for so many cycles now and then
    answer: float = 0.3
    hoard: bool = False  # no answer for 70 cycles, then all
    finish: float = 0.5
    bar: float = 0.05
    end: float = 0.05  # of a region
    jump: float = 0.3
    live: int = 24  # registers of a warp, about
    instructions: int = 5  # of a region, at most
    sources: int = 3  # of an instruction, at most ...
    least: int = 0  # ... and at least
    results: int = 2
    idle: float = 0.0  # instructions without operands
    dies: float = 0.4  # a register, with its last use
    drops: float = 0.9  # of a copy, by the preload of a register that is written
    compressible: float = 0.6


_SHAPES = {
    "mixed": Shape(),
    "long": Shape(instructions=60, idle=0.6, end=0.02, word=1.0, issue=1.0),
    "tight": Shape(live=60, compressible=0.9, end=0.01, write=0.9, issue=1.0),
    "raw": Shape(live=60, compressible=0.0, end=0.01, write=0.9, issue=1.0),
    "slow L1": Shape(accept=0.15, answer=0.05, live=60, end=0.005, compressible=0.7),
    **{
        f"L1 pauses for {cycles}": Shape(
            sources=4, results=4, pauses=cycles, accept=1.0, answer=0.9, live=60, end=end, dies=0.0, drops=0.0,
            compressible=0.5,
        )
        for cycles, end in ((8, 0.1), (12, 0.0), (16, 0.0), (24, 0.0), (40, 0.1))  # ends wait, too
    },
    # A warp with many values in memory brings its counter of entries that are due to the most.
    **{
        f"far, {count} instructions": Shape(
            sources=18, least=18, results=18, instructions=count, write=1.0, issue=1.0, bar=0.0, accept=1.0, answer=1.0,
            hoard=True, live=60, end=0.0, dies=0.0, compressible=0.0, word=1.0,
        )
        for count in (2, 3, 4, 5, 6)
    },
    "far lines": Shape(sources=8, results=8, hoard=True, live=60, end=0.0, dies=0.1, compressible=1.0, word=1.0),
    "short lives": Shape(end=0.7, instructions=2, live=6),
    "wide": Shape(sources=18, results=18, instructions=2, live=60, end=0.005, word=1.0, issue=1.0),
    # Regions that have all lines to themselves bring the stack of waiting warps all the way round.
    "contended": Shape(
        sources=18, least=18, results=2, instructions=1, live=60, dies=0.0, end=0.0, bar=0.0, word=1.0, issue=1.0,
        accept=1.0, answer=1.0,
    ),
    # One operand follows the other, and a result takes a cycle between them.
    "reads in a row": Shape(
        instructions=18, sources=1, least=1, results=1, issue=1.0, word=1.0, write=1.0, bar=0.0, end=0.02
    ),
    "late results": Shape(results=8, write=0.03, end=0.01),
    "barred": Shape(bar=0.7),
    "sparse": Shape(word=0.1, issue=0.1, write=0.1),
}  # fmt: skip
SHAPES = tuple(_SHAPES)
PATIENCE = 1500  # cycles without an instruction, at most, if warps could go on

Register = tuple[int, int]  # warp, number
Words = tuple[int, ...]
MASK = 0xFFFF_FFFF


@dataclass(eq=False)
class Instruction:
    """``flags`` by operand: the sources, then the results that are no sources."""

    sources: list[int]
    results: list[int]
    flags: dict[int, int] = field(default_factory=dict)
    waits: int = 0  # accesses that have not come back

    @property
    def operands(self) -> list[int]:
        return list(dict.fromkeys(self.sources + self.results))

    @property
    def slots(self) -> list[int]:
        flags = [self.flags.get(register, 0) for register in self.operands]
        rows = [flags[start : start + OPERANDS] for start in range(0, max(len(flags), 1), OPERANDS)]
        return [sum(flag << FLAG_BITS * place for place, flag in enumerate(row)) for row in rows]


@dataclass(eq=False)
class Region:
    """``fresh``: registers whose first write leaves no old lanes; ``dead``: those that have no value any more."""

    code: list[Instruction]
    words: list[int]
    fresh: set[int]
    dead: set[int]
    missing: int  # words that were not given
    jumps: bool = False
    ends: bool = False


@dataclass
class Warp:
    """Where a warp is, and what its program has made of its registers so far."""

    phase: str = "absent"  # then runs, over, ended
    live: set[int] = field(default_factory=set)  # at the end of the last region that was made
    regions: deque[Region] = field(default_factory=deque)  # that have not issued everything, the current one first
    stream: deque[tuple[Region | None, int]] = field(default_factory=deque)  # words to be given; of None: of no use
    next: int = 0  # instruction
    accesses: int = 0  # that have not come back
    closing: bool = False  # the last instruction of its region has issued, and this has not been told
    flush: bool = False
    due: set[int] = field(default_factory=set)  # registers to be written
    fresh: set[int] = field(default_factory=set)
    values: dict[int, Words] = field(default_factory=dict)


class Environment:
    """Decode, scheduler, register read unit and pipelines; and an L1 with its backing store."""

    CYCLES = 2500

    def __init__(self, parameters: dict[str, int], shape: str, rng: random.Random) -> None:
        self.parameters, self.shape, self.rng = parameters, _SHAPES[shape], rng
        self.lanes, self.per_line = parameters["lanes"], parameters["per_line"]
        self.poison: Words = (POISON,) * self.lanes
        self.banks = range(parameters["banks"])
        self.warps = [Warp() for _ in range(parameters["warps"])]
        self.issued: tuple[int, Instruction] | None = None  # in the last cycle
        self.coming: Region | None = None  # of which a word is given in this cycle
        self.queue: list[deque[tuple[int, int, Instruction]]] = [deque() for _ in self.banks]  # to be presented
        self.under_way: list[deque[tuple[int, int, Instruction]]] = [deque() for _ in self.banks]
        self.results: list[list[tuple[int, int, Instruction]]] = [[] for _ in self.banks]
        self.ended: deque[int] = deque()
        self.taken: dict[tuple[str, int], bool] = {}
        self.raw: dict[Register, Words] = {}
        self.lines: dict[int, Words] = {}  # by group
        self.fetches: list[tuple[int, ...]] = []
        self.instructions = self.quiet = self.pause = self.waited = 0

    # ------------------------------------------------------------------------------------------------------- programs

    def region(self, warp: Warp) -> Region:
        """The next region of a warp, from what is live in it: the longest that the banks have room for."""
        rng, shape, registers = self.rng, self.shape, self.parameters["registers"]
        touched: list[int] = []
        code: list[Instruction] = []
        for _ in range(rng.randint(1, shape.instructions)):
            pool = touched + rng.sample(sorted(warp.live), min(shape.sources, len(warp.live)))
            pool += rng.sample(range(registers), min(shape.results, registers))
            operands = self.spread(pool)[: OPERANDS * INSTRUCTION_SLOTS]
            sources = operands[: rng.randint(shape.least, shape.sources)]
            results = operands[::-1][: rng.randint(0, shape.results)]
            code.append(Instruction([], []) if rng.random() < shape.idle else Instruction(sources, results))
            touched = list(dict.fromkeys(touched + code[-1].operands))
        slots = min(MAX_SLOTS, FLAGS_SLOTS * self.parameters["words"])
        while sum(len(one.slots) for one in code) > slots:
            code.pop()
        while code:
            region, live, usage = self.annotated(warp.live, code)
            if max(usage) <= min(self.parameters["lines"], MAX_USAGE):
                warp.live = live
                return region
            code.pop()
        return self.annotated(warp.live, [Instruction([], [])])[0]

    def spread(self, registers: list[int]) -> list[int]:
        """Those of which a bank has no more than it has lines, in any order."""
        found: list[int] = []
        for number in self.rng.sample(registers, len(registers)):
            most = min(self.parameters["lines"], MAX_USAGE)
            same = sum(other % len(self.banks) == number % len(self.banks) for other in found)
            if number not in found and same < most:
                found.append(number)
        return found

    def annotated(self, before: set[int], code: list[Instruction]) -> tuple[Region, set[int], list[int]]:
        """Say what happens to each register; also what is live then, and how many registers of a bank are held."""
        rng, live, entries = self.rng, {*before}, []
        fresh, dead, held = set(), set(), [[0] * BANKS for _ in code]
        for number in dict.fromkeys(number for one in code for number in one.operands):
            users = [k for k, one in enumerate(code) if number in one.operands]
            written = any(number in code[k].results for k in users)
            hard = number not in code[users[0]].sources and rng.random() < 0.6
            dies = rng.random() < self.shape.dies
            for k in users:
                code[k].flags[number] = 0
            code[users[-1]].flags[number] = LAST | (ERASE if dies else 0)
            if not hard:
                # The compiler never leaves a copy beside a write; here some are, and the next store replaces them.
                drops = dies or rng.random() < (self.shape.drops if written else 0.2)
                entries.append((Entry.PRELOAD_LAST if drops else Entry.PRELOAD, number))
            elif number in live:
                entries.append((Entry.INVALIDATE, number))
            if hard:
                fresh.add(number)
            end = len(code) if number in code[users[-1]].results else users[-1] + 1
            for k in range(users[0] if hard else 0, end):
                held[k][number % len(self.banks)] += 1
            live = live - {number} if dies else live | {number}
        idle = sorted(before - {number for one in code for number in one.operands})
        if idle and (rng.random() < 0.1 or len(live) > self.shape.live):
            dead.add(rng.choice(idle))
            entries += [(Entry.INVALIDATE, number) for number in dead]
        rng.shuffle(entries)
        usage = [max(of_bank) for of_bank in zip(*held, strict=True)]
        slots = tuple(slot for one in code for slot in one.slots)
        words = encode(Metadata(slots, tuple(min(count, MAX_USAGE) for count in usage), tuple(entries)))
        return Region(code, words, fresh, dead, len(words)), live - dead, usage

    def go_on(self, warp: Warp) -> None:
        """Have words to give: of the next region, or of what lies behind a jump or the end."""
        if warp.stream:
            return
        last = warp.regions[-1] if warp.regions else None
        if last and (last.jumps or last.ends):
            if self.rng.random() < 0.5:
                slots = tuple(self.rng.getrandbits(SLOT_BITS) for _ in range(self.rng.randint(1, FLAGS_SLOTS)))
                warp.stream.extend((None, word) for word in encode(Metadata(slots)))
            return
        region = self.region(warp)
        region.ends = self.rng.random() < self.shape.end
        region.jumps = self.rng.random() < self.shape.jump
        warp.regions.append(region)
        warp.stream.extend((region, word) for word in region.words)

    # ------------------------------------------------------------------------------------------------------- stimulus

    @staticmethod
    def say(port: Any, warp: int) -> bool:
        port.valid = warp >= 0
        port.payload.warp = max(warp, 0)
        return warp >= 0

    def pick(self, chance: float, wanted: Callable[[int, Warp], bool]) -> int:
        found = [w for w, warp in enumerate(self.warps) if wanted(w, warp)]
        return self.rng.choice(found) if found and self.rng.random() < chance else -1

    def drive(self, i: Any, o: Any) -> None:
        rng, shape = self.rng, self.shape
        self.begin(i, o)
        self.flush_and_word(i, o)
        i.barred = sum((rng.random() < shape.bar) << w for w in range(len(self.warps)))
        self.accesses(i, o)
        self.deliver(i, o)
        self.write(i)
        self.issue(i, o)
        self.l1(i)

    def begin(self, i: Any, o: Any) -> None:
        w = self.pick(0.5, lambda w, warp: warp.phase == "absent")
        if self.say(i.begin, w):
            self.warps[w] = Warp("runs")
        if not i.finish.valid or self.taken.get(("finish", 0)):
            ready = self.ended and self.rng.random() < self.shape.finish
            i.finish.valid = bool(ready)
            i.finish.payload.warp = self.ended.popleft() if ready else 0

    def flush_and_word(self, i: Any, o: Any) -> None:
        w = self.pick(0.7, lambda w, warp: warp.flush)
        if self.say(i.flush, w):
            self.warps[w].flush = False
            self.warps[w].stream.clear()
        for w, warp in enumerate(self.warps):
            if warp.phase == "runs" and not warp.flush and not (i.flush.valid and i.flush.payload.warp == w):
                self.go_on(warp)
        chosen = self.pick(
            self.shape.word,
            lambda w, warp: (
                bool(warp.stream)
                and bool(o.room >> w & 1)
                and not warp.flush
                and not (i.flush.valid and i.flush.payload.warp == w)
            ),
        )
        value, self.coming = 0, None
        if self.say(i.word, chosen):
            self.coming, value = self.warps[chosen].stream.popleft()
            if self.coming:
                self.coming.missing -= 1
        word = i.word.payload.word
        word.payload = value & (1 << PAYLOAD_BITS) - 1
        word.slots = value >> SLOTS_SHIFT & (1 << SLOTS_BITS) - 1
        word.kind = value >> KIND_SHIFT & (1 << KIND_BITS) - 1

    def accesses(self, i: Any, o: Any) -> None:
        """The accesses of what issued in the last cycle have their flags now."""
        if self.issued:
            w, one = self.issued
            for place, number in enumerate(one.operands):
                slot, shift = int(o.flags.payload.slots[place // OPERANDS]), FLAG_BITS * (place % OPERANDS)
                flags = slot >> shift & (LAST | ERASE)
                assert flags == one.flags[number], "the flags of the operand"
                self.queue[(w + number) % len(self.banks)].append((w, number, one))
        for bank in self.banks:
            port = i.access[bank]
            if self.taken.get(("access", bank)):
                port.valid = 0
            if not port.valid and self.queue[bank]:
                w, number, one = self.queue[bank].popleft()
                port.valid = 1
                payload = port.payload
                payload.warp, payload.number, payload.result = w, number, number not in one.sources
                payload.flags = 0 if number in one.results else one.flags[number]
                self.under_way[bank].append((w, number, one))

    def deliver(self, i: Any, o: Any) -> None:
        """Operands that come in this cycle; then whose last instruction has all of them."""
        for bank in self.banks:
            port, operand = i.reserved[bank], o.operand[bank]
            self.say(port, -1)
            if operand.valid:
                w, number, one = self.under_way[bank].popleft()
                warp = self.warps[w]
                assert (operand.payload.warp, operand.payload.number) == (w, number), "accesses of a bank stay in order"
                assert bool(operand.payload.result) == (number not in one.sources)
                if number in one.sources:
                    found = tuple(int(word) for word in operand.payload.words[: self.lanes])
                    assert found == warp.values.get(number, self.poison), "the newest value"
                warp.accesses -= 1
                one.waits -= 1
                if number in one.results:
                    self.say(port, w)
                elif one.flags[number] & ERASE:
                    warp.values.pop(number, None)
                if one.waits == 0:
                    for result in one.results:
                        self.results[(w + result) % len(self.banks)].append((w, result, one))
        chosen = self.pick(1.0, lambda w, warp: warp.closing and warp.accesses == 0 and not warp.flush)
        if self.say(i.delivered, chosen):
            self.warps[chosen].closing = False

    def write(self, i: Any) -> None:
        for bank in self.banks:
            port = i.write[bank]
            port.valid = bool(self.results[bank]) and self.rng.random() < self.shape.write
            if not port.valid:
                continue
            waiting = self.results[bank]
            w, number, one = waiting.pop(self.rng.randrange(len(waiting)))
            warp, payload = self.warps[w], port.payload
            mask = self.rng.choice([(1 << self.lanes) - 1] * 2 + [self.rng.getrandbits(self.lanes)])
            words = self.value()
            payload.warp, payload.number, payload.flags, payload.mask = w, number, one.flags[number], mask
            for lane, word in enumerate(words):
                payload.words[lane] = word
            old = self.poison if number in warp.fresh else warp.values.get(number, self.poison)
            warp.fresh.discard(number)
            warp.values[number] = tuple(words[lane] if mask >> lane & 1 else old[lane] for lane in range(self.lanes))
            warp.due.discard(number)
            if one.flags[number] & ERASE:
                del warp.values[number]

    def value(self) -> Words:
        rng, lanes = self.rng, self.lanes
        half, bases = (lanes + 1) // 2, (rng.getrandbits(32), rng.getrandbits(32))
        if rng.random() >= self.shape.compressible:
            return tuple(rng.getrandbits(32) for _ in range(lanes))
        stride, halves = rng.choice([(0, 0), (1, 0), (4, 0), (1, 1), (4, 1)])
        return tuple(
            (bases[1] + (lane - half) * stride if halves and lane >= half else bases[0] + lane * stride) & MASK
            for lane in range(lanes)
        )

    def issue(self, i: Any, o: Any) -> None:
        """An active warp, whose instruction waits for no result, and of whose region all words are there."""

        def ready(w: int, warp: Warp) -> bool:
            if not o.active >> w & 1 or warp.regions[0].missing or warp.regions[0] is self.coming:
                return False
            return not warp.due & {*warp.regions[0].code[warp.next].operands}

        chosen = self.pick(self.shape.issue, ready)
        self.issued = None
        i.issue.payload.slots = i.issue.payload.end = 0
        if not self.say(i.issue, chosen):
            return
        warp = self.warps[chosen]
        region = warp.regions[0]
        one = region.code[warp.next]
        i.issue.payload.slots = len(one.slots)
        i.issue.payload.end = warp.next == len(region.code) - 1 and region.ends
        if warp.next == 0:
            warp.fresh = {*region.fresh}
            for number in region.dead:
                warp.values.pop(number, None)
        self.issued = chosen, one
        warp.due |= {*one.results}
        warp.accesses += len(one.operands)
        one.waits = len(one.operands)
        warp.next += 1
        if warp.next == len(region.code):
            warp.next, warp.closing = 0, True
            warp.flush = region.jumps or region.ends
            warp.phase = "over" if region.ends else "runs"
            warp.regions.popleft()
        self.instructions += 1

    def l1(self, i: Any) -> None:
        rng, shape = self.rng, self.shape
        self.pause = shape.pauses if self.pause == -shape.pauses else self.pause - 1
        i.request.ready = rng.random() < shape.accept and self.pause <= 0
        self.waited = self.waited + 1 if self.fetches else 0
        answers = rng.random() < shape.answer and (not shape.hoard or self.waited > 70)
        if self.taken.get(("answer", 0)):
            i.answer.valid = 0
        if not i.answer.valid and self.fetches and answers:
            kind, *names = self.fetches.pop(rng.randrange(len(self.fetches)))
            payload = i.answer.payload
            i.answer.valid = 1
            payload.line = kind == Access.FETCH_LINE
            payload.warp, payload.number, payload.pattern, payload.expand, payload.install = names
            words = self.lines[self.group(names[0], names[1])] if payload.line else self.raw[names[0], names[1]]
            for k, word in enumerate(words):
                payload.words[k] = word

    def group(self, warp: int, number: int) -> int:
        """The compressed line of a register."""
        p = self.parameters
        by_warp = p["compressed_by"] == BY_WARP
        return (warp * p["registers"] + number if by_warp else number * p["warps"] + warp) // self.per_line

    # --------------------------------------------------------------------------------------------------------- checks

    def observe(self, i: Any, o: Any, c: Any) -> None:
        for bank in self.banks:
            self.taken["access", bank] = bool(i.access[bank].valid and o.access[bank].ready)
        self.taken["finish", 0] = bool(i.finish.valid and o.finish.ready)
        self.taken["answer", 0] = bool(i.answer.valid and o.answer.ready)
        if self.taken["finish", 0]:
            self.warps[i.finish.payload.warp].phase = "absent"
        for w, warp in enumerate(self.warps):
            if o.ended >> w & 1:
                assert warp.phase == "over" and not warp.regions and not warp.due and not warp.accesses
                warp.phase = "ended"
                self.ended.append(w)
        ends = bool(self.issued) and self.warps[i.issue.payload.warp].closing
        assert bool(c.last.valid) == ends, "the last instruction of a region, and no other"
        if o.request.valid and i.request.ready:
            self.request(o.request.payload)
        able = any(warp.phase == "runs" for warp in self.warps)
        self.quiet = self.quiet + 1 if able and not self.issued else 0
        assert self.quiet < PATIENCE, "somebody goes on"

    def request(self, payload: Any) -> None:
        """The L1 accepts an access."""
        warp, number, group = int(payload.warp), int(payload.number), int(payload.group)
        if payload.kind == Access.STORE:
            self.raw[warp, number] = tuple(int(word) for word in payload.words[: self.lanes])
        elif payload.kind == Access.STORE_LINE:
            self.lines[group] = tuple(int(word) for word in payload.words[: 2 * self.per_line])
        elif payload.kind != Access.DROP:
            names = int(payload.pattern), int(payload.expand), int(payload.install)
            self.fetches.append((int(payload.kind), warp, number, *names))

    def finish(self) -> None:
        assert self.instructions > 0


Bin = Callable[[dict[str, int], Any, Any, Any], bool]


def _sent(kind: Access) -> Bin:
    return lambda p, i, o, c: o.request.valid and o.request.payload.kind == kind


BINS: dict[str, Bin] = {
    **{f"to the L1: {kind.name}": _sent(kind) for kind in Access},
    "several warps are active": lambda p, i, o, c: o.active & (o.active - 1) != 0,
    "a warp ends": lambda p, i, o, c: o.ended != 0,
    "a warp jumps": lambda p, i, o, c: i.flush.valid,
    "an instruction without operands": lambda p, i, o, c: (
        o.flags.valid and not any(o.operand[bank].valid for bank in range(p["banks"]))
    ),
    "a write while an answer comes": lambda p, i, o, c: (
        i.answer.valid and any(i.write[bank].valid for bank in range(p["banks"]))
    ),
    "an access waits": lambda p, i, o, c: any(
        i.access[bank].valid and not o.access[bank].ready for bank in range(p["banks"])
    ),
}
TRANSITIONS = {
    name: then
    for part in (bench_capacity_manager, bench_region_metadata, bench_register_compressor)
    for name, then in part.TRANSITIONS.items()
}

UNREACHABLE: dict[str, Callable[[dict[str, int]], bool]] = {
    "several warps are active": lambda p: p["warps"] == 1,
}
