"""Device ``printf``: what the lanes print is formatted when they call it, and put in order when the launch has ended.

Compilers turn ``printf`` into ``vprintf(format, arguments)``, two generic pointers. The arguments lie one after the
other, each aligned to its size; ``float`` has become ``double``, ``char`` and ``short`` have become ``int``. Format and
strings are read at the time of the call, from any memory.

The host's C library formats each conversion, as with CUDA: ``%[flags][width][.precision][size]type`` with the flags
``-+ #0``, ``*`` as width or precision, the sizes hh, h, l, ll, z, j, t, and the types d, i, o, u, x, X, c, s, p, f, F,
e, E, g, G, a, A. ``long`` has 64 bits. Anything else, and conversions beyond the 32nd argument, are printed as they
stand. Widths and precisions end at :data:`WIDEST`. The result is the number of arguments, or -1 for a null format.

The text of a launch is ordered by CTA, warp, time and lane. It holds :data:`TEXT_BYTES`; what comes after that is
counted and dropped (CUDA's buffer, of the same size, drops the oldest).

In the model's time a call is one instruction of the category *miscellaneous*. The stores that make its arguments are
the program's own; what ``vprintf`` would execute and write on a GPU is not modelled.
"""

from __future__ import annotations

import ctypes
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np

from lockstep.models.execution.isa import GLOBAL_BASE, LANES, Fault
from lockstep.models.execution.system import COPY, copy_bytes
from lockstep.models.jit import address, called, hosted, view

TEXT_BYTES = 1 << 20
MOST_ARGUMENTS = 32
WIDEST = 4095  # characters; what C promises of a conversion

_CONVERSION = re.compile(rb"%([-+ #0]*)(\*|\d*)(?:(\.)(\*|\d*))?(hh|h|ll|l|z|j|t)?([diouxXcspfFeEgGaA%])")
_LONG = (b"l", b"ll", b"z", b"j", b"t")
_C_TYPES: dict[str, Any] = {  # of a string, its address
    "*": ctypes.c_int, "i": ctypes.c_int, "q": ctypes.c_longlong, "d": ctypes.c_double,
    "p": ctypes.c_void_p, "s": ctypes.c_void_p,
}  # fmt: skip
_snprintf = ctypes.CDLL(None).snprintf


@dataclass(frozen=True)
class Conversion:
    """One conversion: what the host's ``printf`` is given, and where its arguments lie.

    ``arguments`` are pairs of an offset and a type: ``i`` and ``q`` integers of 4 and 8 bytes, ``*`` a width or a
    precision, ``d`` a double, ``p`` a pointer, ``s`` a string.
    """

    format: bytes
    arguments: tuple[tuple[int, str], ...]


@dataclass(frozen=True)
class Format:
    """A format string, parsed: text and conversions in their order."""

    parts: tuple[bytes | Conversion, ...]
    arguments: int


@lru_cache(1000)
def parse(text: bytes) -> Format:
    """Parse a format string, without its terminating zero."""
    parts: list[bytes | Conversion] = []
    count = end = done = 0
    for match in _CONVERSION.finditer(text):
        flags, width, point, precision, size, kind = match.groups()
        parts.append(text[done : match.start()])
        done = match.end()
        if kind == b"%":
            parts.append(b"%")
            continue
        types = "*" * ((width == b"*") + (precision == b"*")) + _type(kind, size)
        if count + len(types) > MOST_ARGUMENTS:
            parts.append(match.group())
            continue
        arguments = []
        for each in types:
            nbytes = ctypes.sizeof(_C_TYPES[each])
            offset = -(-end // nbytes) * nbytes
            arguments.append((offset, each))
            end = offset + nbytes
        count += len(types)
        kept = size if kind in b"diouxX" and size else b""
        given = b"".join([b"%", flags, _limited(width), point or b"", _limited(precision or b""), kept, kind])
        parts.append(Conversion(given, tuple(arguments)))
    parts.append(text[done:])
    return Format(tuple(parts), count)


def _type(kind: bytes, size: bytes | None) -> str:
    if kind in b"fFeEgGaA":
        return "d"
    if kind in b"sp":
        return kind.decode()
    return "q" if size in _LONG and kind != b"c" else "i"


def _limited(width: bytes) -> bytes:
    return width if width in (b"", b"*") else b"%d" % min(int(width), WIDEST)


class _Stopped(Exception):
    """A lane's pointer is bad; the context says which."""


class Text:
    """What a launch prints; its grid has this size."""

    def __init__(self, grid: tuple[int, ...]) -> None:
        self.grid = grid
        self._pieces: list[tuple[int, int, bytes]] = []  # CTA, warp, what a lane has printed
        self._room, self._dropped = TEXT_BYTES, 0

    def add(self, cta: int, warp: int, pieces: Iterable[bytes]) -> None:
        """What a lane prints. Once something has found no room, nothing is formatted any more."""
        if self._room:
            text = b"".join(pieces)
            if len(text) <= self._room:
                self._room -= len(text)
                self._pieces.append((cta, warp, text))
                return
            self._room = 0
        self._dropped += 1

    def __str__(self) -> str:
        ordered = sorted(self._pieces, key=lambda piece: piece[:2])  # of a warp, the order stays
        printed = b"".join(text for _, _, text in ordered).decode(errors="replace")
        if self._dropped:
            broken = "\n" if printed and not printed.endswith("\n") else ""
            printed += f"{broken}[{self._dropped} more calls of printf: a launch prints up to {TEXT_BYTES} bytes]\n"
        return printed


class Printer:
    """What the lanes of a machine print.

    ``address`` is that of the slot ``host`` in the machine's context (``execution.system``). ``error`` is an exception,
    or an interrupt, that came during a call.
    """

    def __init__(self, context: np.ndarray) -> None:
        self._context = context
        self._x = view(context)
        self._copy = np.zeros((), COPY)
        self._read = called(copy_bytes)
        self._slot = hosted(self._call)
        self._buffer = ctypes.create_string_buffer(TEXT_BYTES + 1)
        self.error: BaseException | None = None
        self._texts: dict[int, Text] = {}  # by the address of the grid's record

    @property
    def address(self) -> int:
        return address(self._slot)

    def begin(self, grid: np.ndarray) -> None:
        """Forget what was printed in the place of a grid (its record); another launch begins there."""
        self.error = None
        self._texts[grid.ctypes.data] = Text(tuple(grid["size"].tolist()))

    def text(self, grid: np.ndarray) -> str:
        """What the launch in the place of a grid has printed."""
        text = self._texts.get(grid.ctypes.data)
        return str(text) if text else ""

    def _call(self, _context: int, _operation: int) -> int:
        try:
            self._print()
        except _Stopped:
            return int(self._x.fault)
        except BaseException as error:  # compiled code has called, and cannot be unwound
            self.error = error
            return int(Fault.TRAP)
        return int(Fault.NONE)

    def _print(self) -> None:
        x = self._x
        text = self._texts[x.grid]
        formats, values = list(x.a), list(x.b)  # reading uses b
        x_size, y_size, _ = text.grid
        cta = (x.ctaid[2] * y_size + x.ctaid[1]) * x_size + x.ctaid[0]
        known: dict[int, Format] = {}
        for lane in range(LANES):
            if not x.mask >> lane & 1:
                continue
            where = formats[lane]
            if where == 0:
                x.r[lane] = -1
                continue
            if where not in known or where < GLOBAL_BASE:  # each lane has its own local memory
                known[where] = parse(self._string(lane, where))
            x.r[lane] = known[where].arguments
            text.add(cta, x.warp, self._pieces(known[where], lane, values[lane]))

    def _pieces(self, format: Format, lane: int, where: int) -> Iterator[bytes]:
        """What a lane prints, from its arguments."""
        for part in format.parts:
            if isinstance(part, bytes):
                yield part
                continue
            given = [self._argument(lane, where + offset, kind) for offset, kind in part.arguments]
            length = _snprintf(self._buffer, len(self._buffer), part.format, *given)
            yield ctypes.string_at(self._buffer, min(length, TEXT_BYTES))

    def _argument(self, lane: int, where: int, kind: str) -> Any:
        """An argument as C takes it."""
        argument = _C_TYPES[kind].from_buffer_copy(self._bytes(lane, where, ctypes.sizeof(_C_TYPES[kind])))
        if kind == "*":
            return ctypes.c_int(max(-WIDEST, min(argument.value, WIDEST)))
        if kind == "s" and argument.value:
            return ctypes.c_char_p(self._string(lane, argument.value))
        return argument

    def _string(self, lane: int, where: int) -> bytes:
        return self._bytes(lane, where, TEXT_BYTES, string=True).removesuffix(b"\0")

    def _bytes(self, lane: int, where: int, count: int, string: bool = False) -> bytes:
        """Bytes that a lane sees at a generic address; of a string, those up to its end."""
        for name, value in dict(
            lane=lane, address=where - (where >> 63 << 64), bytes=count, string=string,
            target=ctypes.addressof(self._buffer),
        ).items():  # fmt: skip
            self._copy[name] = value
        if self._read(self._context.ctypes.data, self._copy.ctypes.data):
            raise _Stopped
        return ctypes.string_at(self._buffer, int(self._copy["bytes"]))
