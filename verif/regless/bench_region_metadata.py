"""Stimulus, checks and coverage of ``regless.region_metadata``: what words say arrives once, and in time."""

from __future__ import annotations

import random
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from lockstep.sim.compile.ptx.passes.register_regions.words import Metadata, encode
from lockstep.spec.register_regions import (
    BANKS,
    FLAGS_SLOTS,
    INSTRUCTION_SLOTS,
    KIND_BITS,
    KIND_SHIFT,
    MAX_SLOTS,
    MAX_USAGE,
    PAYLOAD_BITS,
    SLOT_BITS,
    SLOTS_BITS,
    SLOTS_SHIFT,
    Entry,
    Kind,
)

BLOCK = "regless.region_metadata"
CONFIGURATIONS = {
    "small": dict(warps=3, registers=256, banks=4, words=8),
    "paper": dict(warps=16, registers=255, banks=8, words=8),
    "gtx480": dict(warps=24, registers=63, banks=8, words=8),
    "most warps": dict(warps=64, registers=256, banks=4, words=16),
    "one": dict(warps=1, registers=1, banks=1, words=2),
    "odd": dict(warps=5, registers=11, banks=2, words=4),
}
MEASURED = {"gtx480": 1}
TRANSITIONS = {
    r"phase_\d+": {
        "BETWEEN": ("ANNOUNCED",), "ANNOUNCED": ("STARTED",), "STARTED": ("RUNNING",), "RUNNING": ("BETWEEN",),
    }
}  # fmt: skip


@dataclass(frozen=True)
class Shape:
    """Probabilities per cycle, where there is something to do."""

    word: float = 0.8
    want: float = 0.5
    start: float = 0.5
    accept: float = 0.7  # by a bank
    issue: float = 0.8
    jump: float = 0.3  # behind a region
    few: float = 0.4  # regions that fit one word
    slots: int = MAX_SLOTS
    entries: int = 12


_SHAPES = {
    "mixed": Shape(),
    "short": Shape(few=1.0, word=1.0, want=1.0, start=1.0, accept=1.0, issue=1.0),
    "long": Shape(few=0.0, slots=63, entries=40, issue=1.0),
    "many entries": Shape(few=0.0, slots=4, entries=40, accept=0.9),
    "most entries": Shape(few=0.0, slots=63, entries=100, word=1.0, want=1.0, start=1.0, issue=1.0),
    "slow banks": Shape(accept=0.05),
    "ahead": Shape(want=0.02, start=0.05, word=1.0),
    "jumps": Shape(jump=1.0, word=1.0, want=0.1, slots=8),
    "sparse": Shape(word=0.05, want=0.05, start=0.1, issue=0.1),
}
SHAPES = tuple(_SHAPES)


@dataclass(eq=False)
class Region:
    """What its words say, how many of them were given, and what has become of it."""

    metadata: Metadata
    given: int = 0
    taken: int = 0  # slots
    entries: list[tuple[Entry, int]] = field(default_factory=list)  # that were not sent

    def __post_init__(self) -> None:
        self.words = encode(self.metadata)
        self.entries = list(self.metadata.entries)

    @property
    def left(self) -> int:
        return len(self.metadata.slots) - self.taken


@dataclass
class Warp:
    """Where a warp is; ``ahead`` are the regions of which words were given, the current one first."""

    phase: str = "behind"  # a region: then wanted, announced, started, running
    stream: deque[tuple[Region, int]] = field(default_factory=deque)  # words to be given
    ahead: deque[Region] = field(default_factory=deque)
    passed: int = 0  # announcements while it could have been announced


class Environment:
    """Warps that fetch ahead, a capacity manager that lets them start, banks that refuse, and a scheduler."""

    CYCLES = 2000

    def __init__(self, parameters: dict[str, int], shape: str, rng: random.Random) -> None:
        self.parameters, self.shape, self.rng = parameters, _SHAPES[shape], rng
        self.warps = [Warp() for _ in range(parameters["warps"])]
        self.sent = (-1, 0)  # in the last cycle: whose entries, and how many
        self.asked: tuple[int, tuple[int, ...]] | None = None  # flags that are due
        self.held: list[tuple[int, int, int] | None] = [None] * parameters["banks"]  # presented and refused
        self.regions = 0

    def region(self) -> Region:
        rng, shape = self.rng, self.shape
        single = rng.random() < shape.few
        most = min(4 if single else shape.slots, FLAGS_SLOTS * self.parameters["words"])
        slots = rng.choice([1, most, rng.randint(1, most)])
        registers = self.parameters["registers"]
        count = min(rng.randint(0, 2 if single else shape.entries), registers)
        return Region(
            Metadata(
                tuple(rng.getrandbits(SLOT_BITS) for _ in range(slots)),
                tuple(rng.randint(0, 1 if single else MAX_USAGE) for _ in range(BANKS)),
                tuple((Entry(rng.randint(1, 3)), number) for number in rng.sample(range(registers), count)),
            )
        )

    def pick(self, phase: str, chance: float) -> int:
        """One of the warps in a phase, or -1."""
        found = [w for w, warp in enumerate(self.warps) if warp.phase == phase]
        return self.rng.choice(found) if found and self.rng.random() < chance else -1

    # ------------------------------------------------------------------------------------------------------- stimulus

    def drive(self, i: Any, o: Any) -> None:
        rng, shape = self.rng, self.shape
        ready = [w for w, warp in enumerate(self.warps) if warp.phase == "running" and self.complete(warp)]
        self.flush(i.flush)
        self.word(i.word, int(o.room), i.flush.payload.warp if i.flush.valid else -1)
        for w, warp in enumerate(self.warps):
            ends = i.flush.valid and i.flush.payload.warp == w
            if warp.phase == "behind" and not ends and rng.random() < shape.want:
                warp.phase = "wanted"
        i.wanted = sum((warp.phase == "wanted") << w for w, warp in enumerate(self.warps))
        self.say(i.start, self.pick("announced", shape.start))
        for bank in range(self.parameters["banks"]):
            i.preload[bank].ready = rng.random() < shape.accept
        chosen = rng.choice(ready) if ready and rng.random() < shape.issue else -1
        self.say(i.issue, chosen)
        i.issue.payload.slots = 0
        if chosen >= 0:
            most = min(INSTRUCTION_SLOTS, self.warps[chosen].ahead[0].left)
            i.issue.payload.slots = min(rng.choice([1, 1, 2, rng.randint(1, INSTRUCTION_SLOTS)]), most)

    @staticmethod
    def say(port: Any, warp: int) -> None:
        port.valid = warp >= 0
        port.payload.warp = max(warp, 0)

    @staticmethod
    def complete(warp: Warp) -> bool:
        """The words of its region have been given: its instructions are behind them."""
        return warp.ahead[0].given == len(warp.ahead[0].words)

    def flush(self, port: Any) -> None:
        self.say(port, self.pick("behind", self.shape.jump * self.shape.want))
        if port.valid:
            warp = self.warps[port.payload.warp]
            warp.stream.clear()
            warp.ahead.clear()

    def word(self, port: Any, room: int, flushed: int) -> None:
        open_ = [w for w in range(len(self.warps)) if room >> w & 1 and w != flushed]
        self.say(port, self.rng.choice(open_) if open_ and self.rng.random() < self.shape.word else -1)
        value = 0
        if port.valid:
            warp = self.warps[port.payload.warp]
            if not warp.stream:
                region = self.region()
                warp.stream.extend((region, word) for word in region.words)
            region, value = warp.stream.popleft()
            if region.given == 0:
                warp.ahead.append(region)
            region.given += 1
        word = port.payload.word
        word.payload = value & (1 << PAYLOAD_BITS) - 1
        word.slots = value >> SLOTS_SHIFT & (1 << SLOTS_BITS) - 1
        word.kind = value >> KIND_SHIFT & (1 << KIND_BITS) - 1

    # --------------------------------------------------------------------------------------------------------- checks

    def observe(self, i: Any, o: Any, c: Any) -> None:
        self.tell_bins(i, o)
        for w, warp in enumerate(self.warps):
            held = sum(region.given for region in warp.ahead)
            changes = any(port.valid and port.payload.warp == w for port in (i.word, i.flush))  # in this cycle
            assert o.room >> w & 1 or changes or held >= self.parameters["words"], "room, unless words are there"
        if o.region.valid:
            self.announced(o.region.payload)
        if i.start.valid:
            self.warps[i.start.payload.warp].phase = "started"
        self.entries(o, i)
        self.issue(i, o, c)

    def announced(self, payload: Any) -> None:
        warp = self.warps[payload.warp]
        assert warp.phase == "wanted", "announced once, when it is wanted"
        for other in self.warps:
            if other.phase == "wanted" and other.ahead and other is not warp:
                other.passed += 1
                assert other.passed <= 2 * len(self.warps), "everybody is announced in turn"
        warp.passed = 0
        usage = warp.ahead[0].metadata.usage[: self.parameters["banks"]]
        assert tuple(int(payload.usage[b]) for b in range(len(usage))) == usage
        warp.phase = "announced"

    def entries(self, o: Any, i: Any) -> None:
        whose, count = self.sent
        sent = o.sent
        assert int(sent.payload.entries if sent.valid else 0) == count, "as many as were transferred"
        if sent.valid:
            assert not count or sent.payload.warp == whose
            warp = self.warps[sent.payload.warp]
            assert warp.phase == "started"
            if sent.payload.last:
                assert not warp.ahead[0].entries, "all entries of the region are sent"
                warp.phase = "running"
        self.sent = (-1, 0)
        for bank in range(self.parameters["banks"]):
            port = o.preload[bank]
            if not port.valid:
                assert self.held[bank] is None, "what is presented stays"
                continue
            w, number, action = int(port.payload.warp), int(port.payload.number), int(port.payload.action)
            entry = w, number, action
            assert self.held[bank] in (None, entry), "what is presented stays"
            assert (w + number) % self.parameters["banks"] == bank, "each entry goes to its bank"
            assert self.warps[w].phase == "started"
            self.held[bank] = None if i.preload[bank].ready else entry
            if i.preload[bank].ready:
                self.warps[w].ahead[0].entries.remove((Entry(action), number))
                self.sent = (w, self.sent[1] + 1)

    def issue(self, i: Any, o: Any, c: Any) -> None:
        seen = None
        if o.flags.valid:
            seen = (int(o.flags.payload.warp), tuple(int(slot) for slot in o.flags.payload.slots))
        assert seen == self.asked, "the flags of what has issued"
        self.asked, ends = None, False
        if i.issue.valid:
            w, count = int(i.issue.payload.warp), int(i.issue.payload.slots)
            warp = self.warps[w]
            region = warp.ahead[0]
            slots = region.metadata.slots[region.taken : region.taken + count]
            self.asked = (w, slots + (0,) * (INSTRUCTION_SLOTS - count))
            region.taken += count
            ends = region.left == 0
            if ends:
                warp.ahead.popleft()
                warp.phase = "behind"
                self.regions += 1
        assert bool(c.last.valid) == ends, "the last instruction of a region, and no other"
        assert not ends or c.last.payload.warp == i.issue.payload.warp

    def finish(self) -> None:
        assert self.regions > 0

    # ------------------------------------------------------------------------------------------------- what bins see

    def tell_bins(self, i: Any, o: Any) -> None:
        """What only the environment knows of this cycle's inputs, for the bins."""
        o.issuing = self.warps[i.issue.payload.warp].ahead[0] if i.issue.valid else None
        o.started = self.warps[i.start.payload.warp].ahead[0] if i.start.valid else None


Bin = Callable[[dict[str, int], Any, Any, Any], bool]


def _comes(kind: Kind, p: dict[str, int], i: Any, o: Any, c: Any) -> bool:
    return bool(i.word.valid and i.word.payload.word.kind == kind)


def _reach(o: Any, i: Any) -> int:
    """Slots of the word with flags that have been taken behind the instruction."""
    return o.issuing.taken % FLAGS_SLOTS + i.issue.payload.slots if o.issuing else 0


def _transfers(p: dict[str, int], i: Any, o: Any) -> int:
    return sum(bool(o.preload[bank].valid and i.preload[bank].ready) for bank in range(p["banks"]))


BINS: dict[str, Bin] = {
    **{f"a word {kind.name}": partial(_comes, kind) for kind in Kind},
    "no room": lambda p, i, o, c: o.room != (1 << p["warps"]) - 1,
    "a region with more words than places starts": lambda p, i, o, c: o.started and len(o.started.words) > p["words"],
    "a region starts before its words are there": lambda p, i, o, c: (
        o.started and o.started.given < len(o.started.words)
    ),
    "a region without entries starts": lambda p, i, o, c: o.started and not o.started.entries,
    "a bank refuses": lambda p, i, o, c: any(
        o.preload[bank].valid and not i.preload[bank].ready for bank in range(p["banks"])
    ),
    "entries to several banks together": lambda p, i, o, c: _transfers(p, i, o) > 1,
    "the last entry says so": lambda p, i, o, c: o.sent.valid and o.sent.payload.entries != 0 and o.sent.payload.last,
    "words with flags end the entries": lambda p, i, o, c: (
        o.sent.valid and o.sent.payload.entries == 0 and o.sent.payload.last
    ),
    "an instruction with all slots": lambda p, i, o, c: i.issue.valid and i.issue.payload.slots == INSTRUCTION_SLOTS,
    "an instruction in two words": lambda p, i, o, c: not c.last.valid and _reach(o, i) > FLAGS_SLOTS,
    "a region ends in the second word of its last instruction": lambda p, i, o, c: (
        c.last.valid and _reach(o, i) > FLAGS_SLOTS
    ),
    "a word with flags is taken whole": lambda p, i, o, c: not c.last.valid and _reach(o, i) == FLAGS_SLOTS,
    "a region ends with its word": lambda p, i, o, c: c.last.valid and _reach(o, i) == FLAGS_SLOTS,
    "a warp is flushed": lambda p, i, o, c: i.flush.valid,
    "several want a region": lambda p, i, o, c: i.wanted & (i.wanted - 1) != 0,
}  # fmt: skip

IN_KERNELS = (
    "no room", "a bank refuses", "entries to several banks together", "words with flags end the entries",
    "a warp is flushed", "several want a region",
)  # fmt: skip

UNREACHABLE: dict[str, Callable[[dict[str, int]], bool]] = {
    "entries to several banks together": lambda p: p["banks"] == 1,
    "several want a region": lambda p: p["warps"] == 1,
    "a word ENTRIES": lambda p: p["registers"] < 4,
}
