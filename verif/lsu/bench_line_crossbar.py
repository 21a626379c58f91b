"""Stimulus and checks of the line crossbar: every lane must get its bytes, whatever says where they are."""

from __future__ import annotations

import random
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

from amaranth.hdl import Module, Value

from lockstep.spec.mapping import Mapping
from lockstep.verif.bench import mask
from lockstep.verif.lsu.lines import RATES, WAIVER, one_size

BLOCK = "lsu.line_crossbar"
CONFIGURATIONS = {
    "paper": {"lanes": 32, "warps": 48, "tickets": 16},
    "one": {"lanes": 1, "warps": 1, "tickets": 1},
    "odd": {"lanes": 5, "warps": 7, "tickets": 3},
    "largest": {"lanes": 32, "warps": 64, "tickets": 16},
}
MEASURED = {"largest": 1}
CYCLES = 1500
SHAPES = tuple(RATES)
SIZES = range(5)


@dataclass(frozen=True)
class Load:
    """A line of a load. ``words``: what its mapping says, counted in the access width, of the lanes that take part."""

    warp: int
    ticket: int
    mapping: Mapping
    thread: int
    word: int
    active: int
    size: int
    sign: int
    offset: tuple[int, ...]
    words: dict[int, int]

    def value(self, lane: int, line: bytes) -> list[int]:
        """The registers of a lane: its bytes, little-endian, extended to a whole register."""
        first = self.words[lane] * max(4, 1 << self.size)
        if self.size < 2:
            first += self.offset[lane] & -(1 << self.size)
        value = int.from_bytes(line[first : first + (1 << self.size)], "little", signed=bool(self.sign))
        return [value >> 32 * k & 0xFFFF_FFFF if 4 * k < 1 << self.size else 0 for k in range(4)]


def load(rng: random.Random, line_shift: int, lanes: int, warps: int, tickets: int) -> Load:
    """A line of any access, mapped in any way that its width and its line allow."""
    size = rng.choice(SIZES)
    count = (1 << line_shift) // max(4, 1 << size)
    mapping = rng.choice(list(Mapping))
    thread, word = rng.randrange(lanes), rng.randrange(count)
    active = mask(rng, lanes)
    if mapping is Mapping.CONSECUTIVE:
        active &= (1 << count) - 1
    members = [lane for lane in range(lanes) if active >> lane & 1]
    if mapping is Mapping.SINGLE:
        words = {thread: word}
    elif mapping is Mapping.BROADCAST:
        words = dict.fromkeys(members, word)
    elif mapping is Mapping.CONSECUTIVE:
        words = {lane: lane for lane in members}
    elif mapping is Mapping.RANGE:
        words = {lane: word + lane - thread for lane in members if lane >= thread and word + lane - thread < count}
    else:
        words = {lane: rng.randrange(count) for lane in members if rng.random() < 0.8}
    offset = tuple(rng.randrange(4) for _ in range(lanes))
    warp, ticket, sign = rng.randrange(warps), rng.randrange(tickets), rng.randrange(2)
    return Load(warp, ticket, mapping, thread, word, active, size, sign, offset, words)


class Environment:
    """Loads in any order, each with the bytes of its line in the next cycle; other bytes come in between."""

    def __init__(self, parameters: dict[str, int], shape: str, rng: random.Random) -> None:
        self.parameters, self.rng = parameters, rng
        self.rate, self.line_shift = RATES[shape]
        self.coming: Load | None = None  # in this cycle
        self.moving: Load | None = None  # in the cycle before: its line comes now
        self.expected: deque[tuple[Load, bytes] | None] = deque([None])
        self.written = 0

    def drive(self, i: Any, o: Any) -> None:
        rng, p = self.rng, self.parameters
        i.line_shift = self.line_shift
        self.moving, self.coming = self.coming, None
        i.load.valid = rng.random() < self.rate
        if i.load.valid:
            self.coming = coming = load(rng, self.line_shift, **p)
            payload = i.load.payload
            for name in ("warp", "ticket", "mapping", "thread", "word", "active", "size", "sign"):
                setattr(payload, name, getattr(coming, name))
            of_table = rng.getrandbits(p["lanes"])  # what nobody looks at, unless the mapping is random
            payload.mask = sum(1 << lane for lane in coming.words) if coming.mapping is Mapping.RANDOM else of_table
            for lane in range(p["lanes"]):
                random_word = coming.mapping is Mapping.RANDOM and lane in coming.words
                payload.words[lane] = coming.words[lane] if random_word else rng.randrange(32)
                payload.offset[lane] = coming.offset[lane]
        if self.moving is not None or rng.random() < 0.3:
            for k in range(32):
                i.line[k] = rng.getrandbits(32)

    def observe(self, i: Any, o: Any, c: Any) -> None:
        expected = self.expected.popleft()
        write = o.write.payload
        assert o.write.valid == (expected is not None), "a write follows its load by two cycles"
        if expected is not None:
            self.written += 1
            loaded, line = expected
            assert (write.warp, write.ticket) == (loaded.warp, loaded.ticket)
            assert write.lanes == sum(1 << lane for lane in loaded.words)
            for lane in range(self.parameters["lanes"]):
                value = loaded.value(lane, line) if lane in loaded.words else [0] * 4
                assert [write.registers[k, lane] for k in range(4)] == value, f"lane {lane}"
        line = b"".join(int(i.line[k]).to_bytes(4, "little") for k in range(32))
        self.expected.append((self.moving, line) if self.moving is not None else None)

    def finish(self) -> None:
        assert self.written > 0


def protocol(m: Module, parameters: dict[str, int], ports: Any) -> Value:
    """The line size is constant, and 32, 64 or 128 bytes; the rest of a load is what one can be."""
    return (
        one_size(m, ports["line_shift"])
        & (ports["load_mapping"] <= Mapping.RANDOM)
        & (ports["load_size"] <= SIZES[-1])
    )


def _mapped(mapping: Mapping, p: dict[str, int], i: Any, o: Any, c: Any) -> bool:
    return bool(i.load.valid and i.load.payload.mapping == mapping)


def _sized(size: int, sign: int, p: dict[str, int], i: Any, o: Any, c: Any) -> bool:
    return bool(i.load.valid and i.load.payload.size == size and i.load.payload.sign == sign)


def _shifted(shift: int, p: dict[str, int], i: Any, o: Any, c: Any) -> bool:
    return bool(o.write.valid and i.line_shift == shift)


BINS: dict[str, Callable[[dict[str, int], Any, Any, Any], bool]] = {
    **{f"mapping {mapping.name.lower()}": partial(_mapped, mapping) for mapping in Mapping},
    **{
        f"{1 << size} bytes per lane, {'' if sign else 'un'}signed": partial(_sized, size, sign)
        for size in SIZES
        for sign in (0, 1)
    },
    **{f"lines of {1 << shift} bytes": partial(_shifted, shift) for shift in (5, 6, 7)},
    "loads without a gap": lambda p, i, o, c: i.load.valid and o.write.valid,
    "no lane": lambda p, i, o, c: o.write.valid and o.write.payload.lanes == 0,
    "a negative value": lambda p, i, o, c: (
        o.write.valid and any(o.write.payload.registers[0, lane] >= 0xFFFF_8000 for lane in range(p["lanes"]))
    ),
    "nothing to do": lambda p, i, o, c: not i.load.valid and not o.write.valid,
}

IN_KERNELS = ("loads without a gap", "a negative value", "nothing to do")

WAIVERS = (WAIVER,)
UNREACHABLE: dict[str, Callable[[dict[str, int]], bool]] = {}
