"""Stimulus and checks of the store crossbar: every byte must be that of the highest lane that stores it."""

from __future__ import annotations

import random
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

from amaranth.hdl import Module, Value

from lockstep.verif.bench import mask
from lockstep.verif.lsu.lines import RATES, WAIVER, one_size

BLOCK = "lsu.store_crossbar"
CONFIGURATIONS = {"paper": {"lanes": 32}, "one": {"lanes": 1}, "odd": {"lanes": 5}}
CYCLES = 1500
SHAPES = tuple(RATES)
SIZES = range(5)


@dataclass(frozen=True)
class Store:
    """The lanes of a store that are in one line, and the byte of the line at which each begins."""

    size: int
    lanes: dict[int, int]

    def line(self, registers: list[bytes]) -> dict[int, int]:
        """The bytes that are stored, by their places."""
        return {
            first + k: registers[lane][k]
            for lane, first in sorted(self.lanes.items())
            for k in range(1 << self.size)
        }  # fmt: skip


def store(rng: random.Random, line_shift: int, lanes: int) -> Store:
    """A store of any width to a row, to a few places that lanes share, or to any places."""
    size = rng.choice(SIZES)
    places = (1 << line_shift) >> size
    active = mask(rng, lanes)
    members = [lane for lane in range(lanes) if active >> lane & 1]
    kind = rng.randrange(3)
    start, few = rng.randrange(places), [rng.randrange(places) for _ in range(3)]
    if kind == 0:
        at = {lane: start + lane for lane in members if start + lane < places}
    else:
        at = {lane: rng.choice(few) if kind == 1 else rng.randrange(places) for lane in members}
    return Store(size, {lane: place << size for lane, place in at.items()})


class Environment:
    """Stores in any order, each with its registers in the next cycle; others come in between."""

    def __init__(self, parameters: dict[str, int], shape: str, rng: random.Random) -> None:
        self.lanes, self.rng = parameters["lanes"], rng
        self.rate, self.line_shift = RATES[shape]
        self.coming: Store | None = None  # in this cycle
        self.moving: Store | None = None  # in the cycle before: its registers come now
        self.expected: deque[dict[int, int] | None] = deque([None])
        self.written = 0

    def drive(self, i: Any, o: Any) -> None:
        rng = self.rng
        i.line_shift = self.line_shift
        self.moving, self.coming = self.coming, None
        i.store.valid = rng.random() < self.rate
        if i.store.valid:
            self.coming = coming = store(rng, self.line_shift, self.lanes)
            payload = i.store.payload
            payload.size = coming.size
            payload.mask = sum(1 << lane for lane in coming.lanes)
            uncounted = 127 & -1 << self.line_shift | (1 << coming.size) - 1  # bits of a place that say nothing
            for lane in range(self.lanes):
                payload.place[lane] = coming.lanes.get(lane, rng.getrandbits(7)) | rng.getrandbits(7) & uncounted
        if self.moving is not None or rng.random() < 0.3:
            for k in range(4):
                for lane in range(self.lanes):
                    i.registers[k, lane] = rng.getrandbits(32)

    def observe(self, i: Any, o: Any, c: Any) -> None:
        expected = self.expected.popleft()
        write = o.write.payload
        assert o.write.valid == (expected is not None), "a write follows its store by two cycles"
        if expected is not None:
            self.written += 1
            for word in range(32):
                places = range(4 * word, 4 * word + 4)
                assert write.bytes[word] == sum(1 << k for k, at in enumerate(places) if at in expected), f"word {word}"
                value = bytes(expected.get(at, 0) for at in places)
                assert write.line[word] == int.from_bytes(value, "little"), f"word {word}"
        registers = [
            b"".join(int(i.registers[k, lane]).to_bytes(4, "little") for k in range(4)) for lane in range(self.lanes)
        ]
        self.expected.append(self.moving.line(registers) if self.moving is not None else None)

    def finish(self) -> None:
        assert self.written > 0


def protocol(m: Module, parameters: dict[str, int], ports: Any) -> Value:
    """The line size is constant, and 32, 64 or 128 bytes; accesses have 1 to 16 bytes a lane."""
    return one_size(m, ports["line_shift"]) & (ports["store_size"] <= SIZES[-1])


def _sized(size: int, p: dict[str, int], i: Any, o: Any, c: Any) -> bool:
    return bool(i.store.valid and i.store.payload.size == size)


def _shifted(shift: int, p: dict[str, int], i: Any, o: Any, c: Any) -> bool:
    return bool(o.write.valid and i.line_shift == shift)


def _shared(p: dict[str, int], i: Any, o: Any, c: Any) -> bool:
    """Two lanes store the same bytes."""
    store = i.store.payload
    inside = (1 << i.line_shift) - (1 << store.size)
    places = [store.place[lane] & inside for lane in range(p["lanes"]) if store.mask >> lane & 1]
    return bool(i.store.valid and len(set(places)) < len(places))


BINS: dict[str, Callable[[dict[str, int], Any, Any, Any], bool]] = {
    **{f"{1 << size} bytes per lane": partial(_sized, size) for size in SIZES},
    **{f"lines of {1 << shift} bytes": partial(_shifted, shift) for shift in (5, 6, 7)},
    "stores without a gap": lambda p, i, o, c: i.store.valid and o.write.valid,
    "no lane": lambda p, i, o, c: o.write.valid and not any(o.write.payload.bytes[word] for word in range(32)),
    "lanes that store the same bytes": _shared,
    "a part of a word": lambda p, i, o, c: (
        o.write.valid and any(o.write.payload.bytes[word] not in (0, 15) for word in range(32))
    ),
    "a whole line": lambda p, i, o, c: (
        o.write.valid and all(o.write.payload.bytes[word] == 15 for word in range(1 << i.line_shift - 2))
    ),
    "nothing to do": lambda p, i, o, c: not i.store.valid and not o.write.valid,
}

IN_KERNELS = (
    "stores without a gap", "a part of a word", "lanes that store the same bytes", "a whole line", "nothing to do",
)  # fmt: skip

WAIVERS = (WAIVER,)
UNREACHABLE: dict[str, Callable[[dict[str, int]], bool]] = {
    "lanes that store the same bytes": lambda p: p["lanes"] == 1,
    "a whole line": lambda p: p["lanes"] == 1,
}
