"""The device memory's allocator: alignment, validity per granule, reuse, limits, and RAM that is not used."""

from __future__ import annotations

import ctypes
import resource

import numpy as np
import pytest

from lockstep.models.execution.isa import GLOBAL_BASE, GRANULE, LOCAL_PHYSICAL, POISON
from lockstep.sim.device.memory import Arena
from lockstep.sim.errors import UsageError
from verif.bench import seeded


def valid_bytes(arena: Arena, address: int, size: int) -> int:
    first = (address - GLOBAL_BASE) // GRANULE
    return int(arena.valid[first : first + -(-size // GRANULE)].sum())


@pytest.mark.parametrize("size", [0, 1, 255, 256, 257, 1000, 4096])
def test_validity_ends_with_the_allocation(size: int) -> None:
    arena = Arena(1 << 20)
    arena.allocate(100)
    address = arena.allocate(size)
    assert address % GRANULE == 0 and address >= GLOBAL_BASE
    assert valid_bytes(arena, address, size + GRANULE) == size
    arena.allocate(100)
    assert valid_bytes(arena, address, size + 1) == size, "the next byte belongs to nobody"


def test_random_allocations_never_overlap() -> None:
    rng = seeded()
    arena = Arena(1 << 20)
    live: dict[int, int] = {}
    for _ in range(2000):
        if live and rng.random() < 0.5:
            address = rng.choice(list(live))
            del live[address]
            arena.free(address)
        else:
            size = rng.choice([0, 1, 256, rng.randrange(20_000)])
            try:
                address = arena.allocate(size)
            except UsageError:
                continue
            assert all(a + s < address or address + size < a for a, s in live.items())
            live[address] = size
        assert arena.used == sum(live.values())
    assert int(arena.valid.sum()) == sum(live.values())
    for address in live:
        arena.free(address)
    assert arena.allocate((1 << 20) - GRANULE) == GLOBAL_BASE, "all of it is free again, in one piece"


def test_full() -> None:
    arena = Arena(1 << 16)
    with pytest.raises(UsageError, match="65536 bytes asked for"):
        arena.allocate(1 << 16)


def test_reserves_no_ram() -> None:
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    arena = Arena()
    address = arena.allocate(2 << 30)
    arena.view(address, 4)[:] = 1
    assert arena.bytes == LOCAL_PHYSICAL - GLOBAL_BASE
    # 2 GiB allocated: the validity of its granules is written (16 MB), its contents are not.
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 64 << 10


def test_views_share_memory() -> None:
    arena = Arena(1 << 20)
    address = arena.allocate(512)
    arena.view(address, 512)[:] = np.arange(512) % 251
    assert arena.view(address + 300, 1)[0] == 300 % 251
    assert arena.data.ctypes.data == arena.address


def test_before() -> None:
    arena = Arena(1 << 20)
    assert arena.before(GLOBAL_BASE) is None
    first, second = arena.allocate(100), arena.allocate(50)
    assert arena.before(second - 1) == (first, 100)
    assert arena.before(second) == (second, 50)


def marks(arena: Arena, address: int, size: int) -> list[int]:
    """The marks of bytes, read where the model looks for them."""
    return list((ctypes.c_uint8 * size).from_address(arena.view(address, size).ctypes.data + arena.marks))


def test_written_bytes_are_marked() -> None:
    arena = Arena(1 << 20, strict=True)
    arena.allocate(100)
    address = arena.allocate(8)
    arena.poison(address, 8)
    assert marks(arena, address, 8) == [0] * 8 and (arena.view(address, 8) == POISON).all()
    arena.write(address + 3, np.array([1, 2], np.uint8))
    assert marks(arena, address, 8) == [0, 0, 0, 255, 255, 0, 0, 0]
    assert arena.view(address, 8).tolist() == [POISON] * 3 + [1, 2] + [POISON] * 3
    arena.free(address)
    assert arena.allocate(8) == address and marks(arena, address, 8) == [0] * 8


def test_marks_are_kept_only_where_asked_for() -> None:
    arena = Arena(1 << 20)
    address = arena.allocate(8)
    arena.write(address, np.arange(8, dtype=np.uint8))
    assert arena.marks == 0 and arena.view(address, 8).tolist() == list(range(8))
