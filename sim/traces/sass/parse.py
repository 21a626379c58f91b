"""Accel-Sim's text format: kernelslist.g, and .traceg files, plain or .xz, line by line.

A kernel's file has lines ``-key = value``, then for each CTA ``#BEGIN_TB``, ``thread block = x,y,z``, for each of its
warps ``warp = n``, ``insts = n`` and the instructions, and ``#END_TB``. An instruction is::

    [line] pc mask destinations [R...] opcode sources [R...] width [mode addresses] [immediate]

``pc`` and ``mask`` are hexadecimal, ``line`` is there with ``-enable lineinfo = 1``. Up to version 2 of the tracer the
CTA and the warp stand before it. If ``width`` is not 0, addresses follow: one for each lane (mode 0), a base and a
stride (1), or a base and the differences from lane to lane (2).
"""

from __future__ import annotations

import lzma
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO

import numpy as np

from lockstep.models.execution.isa import LANES
from lockstep.sim.errors import UsageError

__all__ = ["Header", "Instruction", "Kernel", "Warp", "kernel_files"]

MOST_LINE = 8192  # characters
MOST_LINES = 1 << 20  # of a kernelslist.g
MOST_CODE = 1 << 24  # bytes from the first to the last instruction
REGISTER = re.compile(r"R(\d{1,3})")
KEYS = {
    "kernel name": "name", "grid dim": "grid", "block dim": "block", "shmem": "shared_bytes", "nregs": "registers",
    "binary version": "binary", "accelsim tracer version": "tracer", "enable lineinfo": "lines",
    "shmem base_addr": "shared_base", "local mem base_addr": "local_base",
}  # fmt: skip


@dataclass
class Header:
    """What a kernel's file says of its launch."""

    name: str = ""
    grid: tuple[int, ...] = ()
    block: tuple[int, ...] = ()
    shared_bytes: int = 0
    registers: int = 0
    binary: int = 0
    tracer: int = 0
    lines: int = 0
    shared_base: int = 0
    local_base: int = 0


@dataclass(frozen=True)
class Instruction:
    """What every execution of an instruction has in common."""

    opcode: str
    writes: tuple[int, ...]
    reads: tuple[int, ...]
    is_access: bool


@dataclass
class Warp:
    """What a warp executed: where, in which lanes; of accesses, which instruction, and an address for each lane."""

    cta: int
    number: int
    pcs: list[int] = field(default_factory=list)
    lanes: list[int] = field(default_factory=list)
    accesses: list[tuple[int, list[int]]] = field(default_factory=list)


def kernel_files(path: Path) -> list[Path]:
    """The kernels of a ``kernelslist.g``, or the one in a ``.traceg``. Raises :class:`UsageError`."""
    if path.name.endswith((".traceg", ".traceg.xz")):
        return [path]
    found = []
    for number, line in enumerate(_Lines(path), 1):
        if line.startswith("Memcpy") or not line:
            continue
        if "/" in line or "\\" in line or not line.startswith("kernel"):
            raise UsageError(f"{path}:{number}: {line[:60]!r}: must be a kernel's file beside it, or a copy")
        if not line.endswith((".traceg", ".traceg.xz")):
            raise UsageError(f"{path}:{number}: {line[:60]!r}: only text traces are read (.traceg, .traceg.xz)")
        found.append(path.with_name(line))
        if len(found) > MOST_LINES:
            raise UsageError(f"{path}: names more than {MOST_LINES} kernels")
    if not found:
        raise UsageError(f"{path}: names no kernel")
    return found


class _Lines:
    """The lines of a file, without their ends. ``number`` counts them."""

    def __init__(self, path: Path) -> None:
        self.path, self.number = path, 0

    def __iter__(self) -> Iterator[str]:
        try:
            with self._opened() as file:
                while line := file.readline(MOST_LINE + 1):
                    self.number += 1
                    if len(line) > MOST_LINE:
                        raise self.wrong(f"a line of more than {MOST_LINE} characters")
                    yield line.decode("ascii", "replace").strip()
        except OSError as error:
            raise UsageError(f"{self.path}: {error.strerror or error}") from None
        except (lzma.LZMAError, EOFError) as error:
            raise UsageError(f"{self.path}: damaged: {error}") from None

    def _opened(self) -> IO[bytes]:
        if not self.path.is_file():
            raise UsageError(f"{self.path}: no such file")
        return lzma.open(self.path) if self.path.suffix == ".xz" else self.path.open("rb")

    def wrong(self, why: str) -> UsageError:
        return UsageError(f"{self.path}:{self.number}: {why}")


class Kernel:
    """A kernel's file. ``header`` and ``instructions`` are known as far as the file has been read."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.header = Header()
        self.instructions: dict[int, Instruction] = {}
        self._lines = _Lines(path)

    def warps(self) -> Iterator[Warp]:
        """The warps of the file, one after the other. Raises :class:`UsageError`."""
        self._lines = _Lines(self.path)
        cta, warp, left = -1, None, 0
        for line in self._lines:
            if line.startswith("-"):
                self._key(line)
            elif line.startswith("thread block ="):
                cta = self._cta(line)
            elif line.startswith(("warp =", "insts =", "#")):
                if left:
                    raise self._lines.wrong(f"{left} instructions of the warp before are missing")
                if line.startswith("warp ="):
                    if warp:
                        yield warp
                    warp = Warp(cta, self._number(line.partition("=")[2]))
                    self._check(warp)
                elif line.startswith("insts ="):
                    left = self._number(line.partition("=")[2])
                elif line.startswith("#END_TB"):
                    if warp:
                        yield warp
                    cta, warp = -1, None
            elif line:
                if not left or warp is None:
                    raise self._lines.wrong(f"{line[:60]!r}: an instruction of no warp, or one too many")
                self._instruction(line, warp)
                left -= 1
        if left or warp:
            raise self._lines.wrong("the file ends within a CTA")

    def _key(self, line: str) -> None:
        key, _, value = (part.strip() for part in line[1:].partition("="))
        name = KEYS.get(key)
        if name is None:
            return
        if name == "name":
            self.header.name = "".join(each for each in value if each.isprintable())[:1000]
        elif name in ("grid", "block"):
            extent = tuple(self._number(part) for part in value.strip("()").split(","))
            if len(extent) != 3 or not all(extent):
                raise self._lines.wrong(f"{value[:60]!r}: must be three numbers, 1 or more")
            setattr(self.header, name, extent)
        else:
            setattr(self.header, name, self._number(value, 16 if value.startswith("0x") else 10))

    def _number(self, text: str, base: int = 10, most: int = 2**64 - 1) -> int:
        try:
            value = int(text, base)
        except ValueError:
            value = -1
        if not 0 <= value <= most or "_" in text:
            raise self._lines.wrong(f"{text.strip()[:40]!r}: must be a number from 0 to {most}")
        return value

    def _cta(self, line: str) -> int:
        if not self.header.grid or not self.header.block:
            raise self._lines.wrong("a CTA before the dimensions of grid and block")
        place = [self._number(part) for part in line.partition("=")[2].split(",")]
        if len(place) != 3 or any(at >= size for at, size in zip(place, self.header.grid, strict=True)):
            raise self._lines.wrong("a CTA beyond the grid")
        x, y, z = place
        return (z * self.header.grid[1] + y) * self.header.grid[0] + x

    def _check(self, warp: Warp) -> None:
        x, y, z = self.header.block or (1, 1, 1)
        if warp.cta < 0 or warp.number >= -(-x * y * z // LANES):
            raise self._lines.wrong("a warp beyond its CTA, or outside of one")

    def _instruction(self, line: str, warp: Warp) -> None:
        words = line.split()[::-1]
        try:
            if self.header.tracer < 3:
                del words[-4:]
            if self.header.lines:
                words.pop()
            pc, lanes = self._number(words.pop(), 16, MOST_CODE), self._number(words.pop(), 16, 2**32 - 1)
            writes = self._registers(words)
            opcode = words.pop()
            reads = self._registers(words)
            width = self._number(words.pop())
            found = Instruction(opcode[:100], writes, reads, width > 0)
            addresses = self._addresses(words, lanes) if width else []
        except IndexError:
            raise self._lines.wrong(f"{line[:60]!r}: ends early") from None
        known = self.instructions.setdefault(pc, found)
        if (known.opcode, known.is_access) != (found.opcode, found.is_access):
            raise self._lines.wrong(f"{pc:04x} is {found.opcode[:30]} here, and {known.opcode[:30]} before")
        warp.pcs.append(pc)
        warp.lanes.append(lanes)
        if width:
            warp.accesses.append((len(warp.pcs) - 1, addresses))

    def _registers(self, words: list[str]) -> tuple[int, ...]:
        found = []
        for _ in range(self._number(words.pop(), 10, 16)):
            match = REGISTER.fullmatch(words.pop())
            number = int(match.group(1)) if match else 256
            if number > 255:
                raise self._lines.wrong("a register that is none of R0 to R255")
            found.append(number)
        return tuple(found)

    def _addresses(self, words: list[str], lanes: int) -> list[int]:
        """The address of each lane that executes."""
        mode, count = self._number(words.pop()), lanes.bit_count()
        if count == 0:
            return []
        if mode == 0:
            return [self._number(words.pop(), 16) for _ in range(count)]
        base = self._number(words.pop(), 16)
        if mode == 1:
            stride = self._signed(words.pop())
            return [base + stride * k for k in range(count)]
        if mode != 2:
            raise self._lines.wrong(f"address mode {mode}: must be 0, 1 or 2")
        found = [base]
        for _ in range(count - 1):
            found.append(found[-1] + self._signed(words.pop()))
        return found

    def _signed(self, text: str) -> int:
        negative = text.startswith("-")
        value = self._number(text.removeprefix("-"))
        return -value if negative else value


def bits(mask: int) -> np.ndarray:
    """The lanes of a mask."""
    return np.flatnonzero(mask >> np.arange(LANES) & 1)
