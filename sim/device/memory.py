"""Device memory: one flat arena for global and constant data, its allocator, and its textures.

Host addresses never change: the whole device window is reserved at once, and the operating system gives a page only
when it is touched. Allocations start at a multiple of :data:`GRANULE` bytes and end with an unused granule, so an
access beyond an array meets an invalid granule; ``valid`` holds, per granule, how many leading bytes may be accessed.
"""

from __future__ import annotations

import mmap
from bisect import insort

import numpy as np

from lockstep.models.execution.isa import GLOBAL_BASE, GRANULE, LOCAL_PHYSICAL, POISON, TEXTURE
from lockstep.sim.errors import UsageError

__all__ = ["Arena"]

WINDOW = LOCAL_PHYSICAL - GLOBAL_BASE  # bytes of device memory
_NO_RESERVE = 0x4000  # MAP_NORESERVE of Linux: address space only


def _reserve(size: int) -> np.ndarray:
    """Zeroed bytes that take no RAM until touched."""
    if size == 0:
        return np.zeros(0, np.uint8)
    flags = mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | _NO_RESERVE
    return np.frombuffer(mmap.mmap(-1, size, flags=flags), np.uint8)


class Arena:
    """The memory of one device.

    ``address`` and ``valid_address`` are host addresses: of the byte at device address :data:`GLOBAL_BASE`, and of the
    i2 array of valid bytes per granule. ``textures`` are the TEXTURE records; a handle is its index plus one. With
    ``strict``, marks say which bytes have been written (``models.execution.written``).
    """

    def __init__(self, size: int = WINDOW, strict: bool = False) -> None:
        if not 0 < size <= WINDOW or size % GRANULE:
            raise ValueError(f"size of device memory: {size} is not a multiple of {GRANULE} up to {WINDOW}")
        self.bytes = size
        self.data = _reserve(size)
        self.valid = _reserve(2 * (size // GRANULE)).view(np.int16)
        self._marks = _reserve(size if strict else 0)
        self.textures = np.zeros(0, TEXTURE)
        self._free = [(0, size)]  # (offset, bytes), by offset; neighbours are merged
        self._sizes: dict[int, int] = {}  # device address -> bytes asked for
        self._serials: dict[int, int] = {}  # device address -> which of all allocations lies there
        self._allocated = 0

    @property
    def address(self) -> int:
        return self.data.ctypes.data

    @property
    def valid_address(self) -> int:
        return self.valid.ctypes.data

    @property
    def marks(self) -> int:
        """Bytes from a byte to its mark in host memory; 0: no marks are kept."""
        return self._marks.ctypes.data - self.address if self._marks.size else 0

    @property
    def contents(self) -> np.ndarray:
        """All bytes up to the last one that may be accessed."""
        granules = np.flatnonzero(self.valid)
        return self.data[: (int(granules[-1]) + 1) * GRANULE if granules.size else 0]

    @property
    def used(self) -> int:
        """Bytes asked for by live allocations."""
        return sum(self._sizes.values())

    @property
    def allocations(self) -> list[tuple[int, int]]:
        """Device address and size of every live allocation."""
        return sorted(self._sizes.items())

    def allocate(self, size: int) -> int:
        """The device address of ``size`` bytes, at a multiple of :data:`GRANULE`.

        What is in them is undefined: :meth:`poison` or :meth:`write` them.
        """
        need = (-(-size // GRANULE) + 1) * GRANULE
        for index, (offset, room) in enumerate(self._free):
            if room >= need:
                self._free[index : index + 1] = [(offset + need, room - need)] if room > need else []
                first, whole = offset // GRANULE, size // GRANULE
                self.valid[first : first + whole] = GRANULE
                self.valid[first + whole] = size % GRANULE
                self._sizes[GLOBAL_BASE + offset] = size
                self._marks[offset : offset + size] = 0
                self._allocated += 1
                self._serials[GLOBAL_BASE + offset] = self._allocated
                return GLOBAL_BASE + offset
        asked = f"{size}" if size < 1 << 64 else "more than 2^64"
        raise UsageError(f"device memory: {asked} bytes asked for, {self.used} of {self.bytes} bytes in use")

    def free(self, address: int) -> None:
        """Give an allocation back; ``address`` is the one that :meth:`allocate` returned. Its textures are no more."""
        size = self._sizes.pop(address)
        del self._serials[address]
        self.textures[self.textures["address"] == address] = np.zeros((), TEXTURE)
        offset, granules = address - GLOBAL_BASE, -(-size // GRANULE) + 1
        self.valid[offset // GRANULE :][:granules] = 0
        insort(self._free, (offset, granules * GRANULE))
        merged: list[tuple[int, int]] = []
        for start, room in self._free:
            if merged and sum(merged[-1]) == start:
                merged[-1] = (merged[-1][0], merged[-1][1] + room)
            else:
                merged.append((start, room))
        self._free = merged

    def serial(self, address: int) -> int:
        """Which of all allocations so far starts at ``address``; 0: none."""
        return self._serials.get(address, 0)

    def before(self, address: int) -> tuple[int, int] | None:
        """Device address and size of the last allocation that does not begin after ``address``."""
        bases = [base for base in self._sizes if base <= address]
        return (max(bases), self._sizes[max(bases)]) if bases else None

    def view(self, address: int, size: int) -> np.ndarray:
        """The bytes at a device address."""
        offset = address - GLOBAL_BASE
        return self.data[offset : offset + size]

    def write(self, address: int, data: np.ndarray) -> None:
        """Copy bytes to a device address; they count as written."""
        self.view(address, data.size)[:] = data
        offset = address - GLOBAL_BASE
        self._marks[offset : offset + data.size] = 0xFF

    def poison(self, address: int, size: int) -> None:
        """Fill bytes with a pattern that shows what a kernel leaves unwritten."""
        self.view(address, size)[:] = POISON

    def add_texture(self, **fields: int) -> int:
        """Enter a TEXTURE record, in the place of one that is no more if there is one, and return its handle."""
        unused = np.flatnonzero(self.textures["bytes"] == 0)
        if not len(unused):
            unused = np.array([len(self.textures)])
            self.textures = np.concatenate([self.textures, np.zeros(1, TEXTURE)])
        for name, value in fields.items():
            self.textures[name][unused[0]] = value
        return int(unused[0]) + 1
