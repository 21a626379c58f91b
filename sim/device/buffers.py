"""The user's handles on device memory: arrays, pointers into them, and textures."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, DTypeLike

from lockstep.sim.device.memory import Arena
from lockstep.sim.errors import UsageError, of_type

__all__ = ["Buffer", "Extent", "Texture", "as_array", "as_dtype", "as_shape"]

Extent = int | np.integer | Sequence[int | np.integer]
"""One dimension, or several: of an array, a grid or a block."""

MOST_DIMENSIONS = 64  # of a NumPy array


def as_dtype(value: DTypeLike) -> np.dtype[Any]:
    """A dtype that elements in device memory can have. Raises :class:`UsageError`, as those below."""
    try:
        kind = np.dtype(value)
    except (TypeError, ValueError, SyntaxError):  # the last one from "f4,,"
        raise UsageError(f"dtype {value!r}: not known to NumPy") from None
    if kind.hasobject or kind.kind == "U":
        what = "strings" if kind.kind == "U" else "objects"
        raise UsageError(f"an array of Python {what} cannot be in device memory")
    if kind.itemsize == 0 or kind.subdtype:
        raise UsageError(f"dtype {kind}: elements must have at least one byte and must not be arrays")
    return kind


def as_array(value: ArrayLike) -> np.ndarray:
    """An array that can be copied to device memory."""
    try:
        array = np.asarray(value, order="C")
    except (TypeError, ValueError) as error:
        raise UsageError(f"{type(value).__name__}: cannot be made an array: {error}") from None
    as_dtype(array.dtype)
    return array


def as_shape(shape: Extent) -> tuple[int, ...]:
    """The extents of an array."""
    extents: tuple = tuple(shape) if isinstance(shape, tuple | list) else (shape,)
    whole = all(isinstance(extent, int | np.integer) and extent >= 0 for extent in extents)
    if not whole or len(extents) > MOST_DIMENSIONS:
        raise UsageError(f"shape {shape!r}: must be an integer, or up to {MOST_DIMENSIONS} integers, all 0 or more")
    return tuple(int(extent) for extent in extents)


@dataclass(frozen=True)
class Buffer:
    """An array in device memory, or with ``offset`` a pointer into one.

    ``buffer + 16`` points 16 bytes further, as in C with a ``char*``.
    """

    memory: Arena
    base: int  # device address of the allocation
    serial: int  # which of the memory's allocations it is
    dtype: np.dtype[Any]
    shape: tuple[int, ...]
    offset: int = 0  # bytes

    @property
    def address(self) -> int:
        """The device address, as kernels see it."""
        return self.base + self.offset

    @property
    def nbytes(self) -> int:
        """Size of the whole allocation."""
        return self.dtype.itemsize * math.prod(self.shape)

    def require_live(self, memory: Arena) -> None:
        """Raise :class:`UsageError` when it was freed, or lies in another memory."""
        if self.memory is not memory:
            raise UsageError(f"{self}: belongs to another Gpu")
        if memory.serial(self.base) != self.serial:
            raise UsageError(f"{self}: was freed")

    def __add__(self, count: int) -> Buffer:
        of_type((int, np.integer), f"{self} + count: count", count, "a number of bytes")
        offset = self.offset + int(count)
        if not 0 <= self.base + offset < 1 << 64:
            raise UsageError(f"{self} + {count}: not an address of 64 bits")
        return replace(self, offset=offset)

    def __sub__(self, count: int) -> Buffer:
        of_type((int, np.integer), f"{self} - count: count", count, "a number of bytes")
        return self + -int(count)

    def __repr__(self) -> str:
        return f"Buffer({self.dtype}{list(self.shape)} at {self.address:#x})"


@dataclass(frozen=True)
class Texture:
    """A texture object: passed as an argument, or bound to a texture reference with ``Module.set_symbol``."""

    memory: Arena
    handle: int
    texels: Buffer
