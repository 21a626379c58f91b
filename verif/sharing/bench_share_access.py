"""ShareAccess at the border between own and shared, and far from it: looked at byte by byte."""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping
from typing import Any

from amaranth.hdl import Module, Signal, ValueLike

from lockstep.rtl.sharing.share_access import ADDRESS_BITS, MAX_SIZE, REGISTER_BITS
from lockstep.spec.parameters import LANES
from lockstep.verif.bench import mask

BLOCK = "sharing.share_access"
CONFIGURATIONS = {
    "shipped": {"lanes": LANES},
    "one": {"lanes": 1},
    "odd": {"lanes": 5},
}
SHAPES = ("own", "anywhere", "border", "one lane over", "unshared", "ends")

REGISTERS = (1 << REGISTER_BITS) - 1  # of a thread, at most
BYTES = 1 << ADDRESS_BITS  # of a CTA's scratchpad, at most


class Environment:
    """Instructions whose registers and bytes are near the border of what is shared, or anywhere."""

    CYCLES = 1000

    def __init__(self, parameters: dict[str, int], shape: str, rng: random.Random) -> None:
        self.lanes, self.shape, self.rng = parameters["lanes"], shape, rng
        self.asked = self.passed = 0  # instructions that need a lock, and that need none

    def drive(self, i: Any, o: Any) -> None:
        rng = self.rng
        i.shared = self.shape != "unshared" and rng.random() < 0.9
        i.names = rng.random() < 0.8
        i.own_registers = rng.choice([0, 1, REGISTERS, rng.randint(0, REGISTERS)])
        i.highest = self.register(i)
        i.touched = mask(rng, self.lanes)
        i.size = rng.choice([1, 2, 4, 8, MAX_SIZE, rng.randint(1, MAX_SIZE)])
        if not i.touched and rng.random() < 0.5:
            i.size = 0
        i.own_bytes = self.bytes()
        for lane in range(self.lanes):
            i.address[lane] = min(max(self.address(i), 0), BYTES - 1)
        if self.shape == "one lane over" and i.own_bytes < BYTES:
            first = i.own_bytes + rng.choice([0, 1 - i.size])
            i.address[rng.randrange(self.lanes)] = min(max(first, 0), BYTES - 1)

    def register(self, i: Any) -> int:
        """The highest that an instruction names; any number if it names none."""
        if not i.names:
            return self.rng.randint(0, REGISTERS)
        near = i.own_registers + self.rng.choice([-1, 0, 1])
        return near if near in range(REGISTERS) and self.rng.random() < 0.7 else self.rng.randrange(REGISTERS)

    def bytes(self) -> int:
        """How many are the CTA's own."""
        rng = self.rng
        if self.shape == "ends":
            return rng.choice([0, 1, MAX_SIZE, BYTES - 1, BYTES])
        return rng.choice([rng.randrange(1024), 1 << rng.randrange(ADDRESS_BITS), rng.randint(0, BYTES)])

    def address(self, i: Any) -> int:
        """A lane's, which may still have to be brought into range."""
        rng = self.rng
        last = i.own_bytes - i.size  # from here on, the last byte is the last own one
        if self.shape == "anywhere":
            return rng.getrandbits(ADDRESS_BITS)
        if self.shape == "border":
            return last + rng.choice([-1, 0, 1] if rng.random() < 0.05 else [0])
        if self.shape == "ends":
            return rng.choice([last, last + 1, i.own_bytes, 0, BYTES - 1, BYTES - i.size])
        return rng.randint(0, max(last, 0))

    def observe(self, i: Any, o: Any, c: Any) -> None:
        register = i.names and i.highest in range(i.own_registers, REGISTERS)
        assert c.register_lock == (i.shared and register), "the highest register is one of the shared ones"
        lanes = [lane for lane in range(self.lanes) if i.touched >> lane & 1]
        shared = any(byte >= i.own_bytes for lane in lanes for byte in _bytes(i, lane))
        assert c.scratchpad_lock == (i.shared and shared), "some byte of some lane is shared"
        asks = c.register_lock or c.scratchpad_lock
        self.asked += asks
        self.passed += not asks

    def finish(self) -> None:
        assert self.passed > 0
        assert (self.asked == 0) == (self.shape == "unshared")


def _bytes(i: Any, lane: int) -> range:
    """Those that a lane accesses."""
    return range(i.address[lane], i.address[lane] + i.size)


Bin = Callable[[dict[str, int], Any, Any, Any], bool]


def _lanes(such: Callable[[Any, int], bool], enough: Callable[[int, int], bool] = lambda some, all: some > 0) -> Bin:
    """A warp that shares touches lanes of which some, or ``enough`` of all, are such."""

    def hit(p: dict[str, int], i: Any, o: Any, c: Any) -> bool:
        touched = [lane for lane in range(p["lanes"]) if i.touched >> lane & 1]
        return bool(i.shared and enough(sum(such(i, lane) for lane in touched), len(touched)))

    return hit


def _over(i: Any, lane: int) -> bool:
    """The lane accesses a shared byte."""
    return bool(_bytes(i, lane).stop > i.own_bytes)


def _last_over(i: Any, lane: int) -> bool:
    """Of its bytes, the last one alone is shared."""
    return bool(_bytes(i, lane).stop == i.own_bytes + 1 and i.size > 1)


def _first_over(i: Any, lane: int) -> bool:
    """Its first byte is the first shared one."""
    return bool(i.address[lane] == i.own_bytes)


def _up_to(i: Any, lane: int) -> bool:
    """Its last byte is the last own one."""
    return bool(_bytes(i, lane).stop == i.own_bytes)


def _named(i: Any) -> bool:
    """A warp that shares names a register."""
    return bool(i.shared and i.names)


BINS: dict[str, Bin] = {
    "the last own register": lambda p, i, o, c: _named(i) and i.highest == i.own_registers - 1,
    "the first shared register": lambda p, i, o, c: _named(i) and i.highest == i.own_registers,
    "the last register of all, and it is shared": lambda p, i, o, c: (
        _named(i) and i.highest == REGISTERS - 1 and i.own_registers < REGISTERS
    ),
    "no own register": lambda p, i, o, c: _named(i) and i.own_registers == 0,
    "every register is own": lambda p, i, o, c: _named(i) and i.own_registers == REGISTERS,
    "no register is named": lambda p, i, o, c: i.shared and not i.names and i.highest >= i.own_registers,
    "a register of a warp that shares nothing": lambda p, i, o, c: (
        not i.shared and i.names and i.highest >= i.own_registers
    ),
    "no lane is touched": _lanes(_over, lambda some, all: all == 0),
    "no lane needs the lock": _lanes(_over, lambda some, all: some == 0 < all),
    "one lane of several needs the lock": _lanes(_over, lambda some, all: some == 1 < all),
    "all lanes need the lock": _lanes(_over, lambda some, all: some == all > 0),
    "lanes up to the last own byte, and none beyond": lambda p, i, o, c: (
        not c.scratchpad_lock and _lanes(_up_to)(p, i, o, c)
    ),
    "the last byte of a lane is shared": _lanes(_last_over),
    "the first byte of a lane is the first shared one": _lanes(_first_over),
    "lanes that are not touched are beyond": lambda p, i, o, c: (
        i.shared and not c.scratchpad_lock and any(_over(i, lane) for lane in range(p["lanes"]))
    ),
    "lanes of a warp that shares nothing are beyond": lambda p, i, o, c: (
        not i.shared and any(_over(i, lane) for lane in range(p["lanes"]) if i.touched >> lane & 1)
    ),
    "fewer own bytes than an access has": lambda p, i, o, c: i.shared and i.touched and i.own_bytes < i.size,
    "no own byte": lambda p, i, o, c: i.shared and i.touched and i.own_bytes == 0,
    "every byte is own": lambda p, i, o, c: i.shared and i.touched and i.own_bytes == BYTES,
    "an access beyond the last address": _lanes(lambda i, lane: _bytes(i, lane).stop > BYTES),
    "both locks": lambda p, i, o, c: c.register_lock and c.scratchpad_lock,
}

IN_KERNELS = (
    "the last own register", "the first shared register", "all lanes need the lock",
    "the first byte of a lane is the first shared one",
)  # fmt: skip

UNREACHABLE: dict[str, Callable[[dict[str, int]], bool]] = {
    "one lane of several needs the lock": lambda p: p["lanes"] == 1,
}


def protocol(m: Module, p: dict[str, int], ports: Mapping[str, Signal]) -> ValueLike:
    """Registers that there are, no more own bytes than there are, and a size that lanes have."""
    register = ~ports["names"] | (ports["highest"] < REGISTERS)
    size = (ports["size"] <= MAX_SIZE) & ((ports["size"] != 0) | (ports["touched"] == 0))
    return register & size & (ports["own_bytes"] <= BYTES)
