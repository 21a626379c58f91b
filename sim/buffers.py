"""What a user holds of device memory: arrays, pointers into them, and textures."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from lockstep.sim.errors import UsageError
from lockstep.sim.memory import Arena

__all__ = ["Buffer", "Texture"]


@dataclass(frozen=True)
class Buffer:
    """An array in device memory, or with ``offset`` a pointer into one.

    ``buffer + 16`` points 16 bytes further, as in C with a ``char*``.
    """

    memory: Arena
    base: int  # device address of the allocation
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
        if not memory.live(self.base):
            raise UsageError(f"{self}: was freed")

    def __add__(self, count: int) -> Buffer:
        return replace(self, offset=self.offset + int(count))

    def __sub__(self, count: int) -> Buffer:
        return self + -int(count)

    def __repr__(self) -> str:
        return f"Buffer({self.dtype}{list(self.shape)} at {self.address:#x})"


@dataclass(frozen=True)
class Texture:
    """A texture object: passed as an argument, or bound to a texture reference with ``Module.set_symbol``."""

    memory: Arena
    handle: int
    texels: Buffer
