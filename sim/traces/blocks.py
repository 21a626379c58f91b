"""The blocks of a file of warps: stretches of many warps, column by column, compressed.

A block is a head, a table with a row for each stretch (a *piece*), and the columns of all pieces, one piece behind the
other in each. Numbers are 32 bits, little-endian. A column that is told by differences has each number less the one
before it; the first byte of all numbers comes first, then the second, and so on; then DEFLATE.
"""

from __future__ import annotations

import struct
import zlib
from dataclasses import dataclass

import numpy as np

from lockstep.models.execution.isa import LANES
from lockstep.sim.errors import UsageError

__all__ = ["HEAD", "Block", "Piece", "Steps", "decode", "encode", "read_head", "read_table"]

MAGIC = b"LSTB"
HEAD = struct.Struct("<4s6I")  # magic, pieces, bytes of the table, of the columns, of these unpacked, CRC-32 of each
MOST_PIECES = 1 << 20
MOST_BYTES = 1 << 27  # of the columns, unpacked
LEVEL = 6  # of zlib
AT_A_TIME = 1 << 12  # accesses, of which strides are looked for

TABLE = ("warp", "instructions", "runs", "guards", "values", "accesses", "addresses")
"""The columns of the table: a warp's number in the grid, and how many of each its piece has."""

COLUMNS = (
    ("run_pc", "runs", True),  # a run: instructions that follow each other in the same lanes; the first one ...
    ("run_count", "runs", False),  # ... how many ...
    ("run_active", "runs", False),  # ... and the lanes on top of the stack
    ("guard", "guards", False),  # the lanes in which each guarded instruction executed
    ("value", "values", True),  # that steer a control instruction, lane by lane
    ("lanes", "accesses", False),  # that touch memory ...
    ("shared", "accesses", False),  # ... those of them that touch the scratchpad
    ("base", "accesses", True),  # address of lane 0 ...
    ("stride", "accesses", False),  # ... and what each further lane adds
    ("listed", "accesses", False),  # 1: the addresses are listed instead
    ("address", "addresses", True),
)
"""A column, what it has an entry for, and whether it is told by differences."""


def damaged(place: str, why: str) -> UsageError:
    return UsageError(f"{place}: damaged: {why}")


@dataclass(frozen=True)
class Steps:
    """What is recorded of some warps, in the order of issue (``models.traces.record``)."""

    steps: np.ndarray
    accesses: np.ndarray
    values: np.ndarray


@dataclass(frozen=True)
class Piece:
    """Where a stretch of a warp lies."""

    block: int  # offset in the file
    index: int  # in the block


@dataclass(frozen=True)
class Block:
    """A block, unpacked: the table and the columns, by name."""

    table: dict[str, np.ndarray]
    columns: dict[str, np.ndarray]


def _packed(numbers: np.ndarray, differences: bool) -> bytes:
    words = numbers.astype("<u4")
    if differences and len(words):
        words = np.diff(words, prepend=words[:1] * 0)
    return np.ascontiguousarray(words.view(np.uint8).reshape(-1, 4).T).tobytes()


def _unpacked(data: bytes, count: int, differences: bool) -> np.ndarray:
    planes = np.frombuffer(data, np.uint8).reshape(4, count)
    words = planes[3].astype(np.uint32)
    for plane in planes[2::-1]:
        words <<= 8
        words |= plane
    return np.cumsum(words, dtype=np.uint32) if differences else words


def _bits(masks: np.ndarray) -> np.ndarray:
    """The lanes of masks, as an array of truth values."""
    return (masks[:, None] >> np.arange(LANES, dtype=np.uint32) & 1).astype(bool)


def _strides(lanes: np.ndarray, addresses: np.ndarray) -> tuple[np.ndarray, ...]:
    """Base and stride of the accesses that have them, and which have not; a few at a time, since it takes memory."""
    begins = range(0, max(len(lanes), 1), AT_A_TIME)
    parts = [_strides_of(lanes[at : at + AT_A_TIME], addresses[at : at + AT_A_TIME]) for at in begins]
    return tuple(np.concatenate(each) for each in zip(*parts, strict=True))


def _strides_of(lanes: np.ndarray, addresses: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    inside = _bits(lanes)
    wide = addresses.astype(np.int64)
    first = inside.argmax(axis=1)
    rest = inside.copy()
    rest[np.arange(len(rest)), first] = False
    several = rest.any(axis=1)
    second = np.where(several, rest.argmax(axis=1), first + 1)
    rows = np.arange(len(wide))
    at = wide[rows, first]
    rise, over = np.where(several, wide[rows, np.minimum(second, LANES - 1)] - at, 0), second - first
    stride = rise // over
    base = at - stride * first
    told = base[:, None] + stride[:, None] * np.arange(LANES)
    regular = ((told == wide) | ~inside).all(axis=1) & (np.abs(stride) < 1 << 31)
    return np.where(regular, base, 0) & 0xFFFF_FFFF, np.where(regular, stride, 0) & 0xFFFF_FFFF, ~regular


def encode(found: Steps, guarded: np.ndarray) -> bytes:
    """The block of what was recorded; ``guarded``: which instructions of the kernel are."""
    steps = found.steps[np.argsort(found.steps["warp"], kind="stable")]
    accesses = found.accesses[np.argsort(found.accesses["warp"], kind="stable")]
    values = found.values[np.argsort(found.values["warp"], kind="stable")]
    warps = np.unique(np.concatenate([each["warp"] for each in (steps, accesses, values)]))
    bounds = np.append(np.searchsorted(steps["warp"], warps), len(steps))  # an access may be all that a warp has here
    pc, active = steps["pc"].astype(np.int64), steps["active"]
    fresh = np.ones(len(steps), bool)
    fresh[1:] = (pc[1:] != pc[:-1] + 1) | (active[1:] != active[:-1])
    fresh[bounds[:-1][np.diff(bounds) > 0]] = True
    runs = np.flatnonzero(fresh)
    of_guards = guarded[pc]
    base, stride, listed = _strides(accesses["lanes"], accesses["address"])
    touched = _bits(accesses["lanes"])
    columns = {
        "run_pc": pc[runs], "run_count": np.diff(np.append(runs, len(steps))), "run_active": active[runs],
        "guard": steps["lanes"][of_guards], "value": values["address"][_bits(values["lanes"])],
        "lanes": accesses["lanes"], "shared": accesses["shared"], "base": base, "stride": stride, "listed": listed,
        "address": accesses["address"][touched & listed[:, None]],
    }  # fmt: skip

    def counted(owners: np.ndarray, each: np.ndarray | None = None) -> np.ndarray:
        return np.bincount(np.searchsorted(warps, owners), each, len(warps)).astype(np.int64)

    table = {
        "warp": warps, "instructions": np.diff(bounds), "runs": counted(steps["warp"][runs]),
        "guards": counted(steps["warp"][of_guards]),
        "values": counted(values["warp"], _bits(values["lanes"]).sum(axis=1)),
        "accesses": counted(accesses["warp"]),
        "addresses": counted(accesses["warp"], touched.sum(axis=1) * listed),
    }  # fmt: skip
    head = zlib.compress(b"".join(_packed(table[name], name == "warp") for name in TABLE), LEVEL)
    plain = b"".join(_packed(columns[name], differences) for name, _, differences in COLUMNS)
    body = zlib.compress(plain, LEVEL)
    crc = zlib.crc32(head), zlib.crc32(body)
    return HEAD.pack(MAGIC, len(warps), len(head), len(body), len(plain), *crc) + head + body


@dataclass(frozen=True)
class Head:
    """The head of a block."""

    pieces: int
    table_bytes: int
    column_bytes: int
    plain_bytes: int
    table_crc: int
    column_crc: int

    @property
    def bytes(self) -> int:
        """Those of the whole block."""
        return HEAD.size + self.table_bytes + self.column_bytes


def read_head(data: bytes, place: str) -> Head:
    """A head. Raises :class:`UsageError`."""
    if len(data) < HEAD.size:
        raise damaged(place, "ends within a block")
    magic, *numbers = HEAD.unpack(data)
    head = Head(*numbers)
    if magic != MAGIC:
        raise damaged(place, "no block begins where one must")
    if not 1 <= head.pieces <= MOST_PIECES or head.plain_bytes > MOST_BYTES:
        raise damaged(place, f"a block of {head.pieces} pieces and {head.plain_bytes} bytes is too large")
    return head


def _inflated(data: bytes, size: int, crc: int, place: str) -> bytes:
    """Unpacked bytes: no more than they must be are made of any data."""
    if zlib.crc32(data) != crc:
        raise damaged(place, "a block does not have its checksum")
    machine = zlib.decompressobj()
    try:
        plain = machine.decompress(data, size + 1)
    except zlib.error as error:
        raise damaged(place, f"a block cannot be unpacked ({error})") from None
    if len(plain) != size or not machine.eof or machine.unused_data:
        raise damaged(place, "a block does not have its size")
    return plain


def read_table(data: bytes, head: Head, place: str) -> dict[str, np.ndarray]:
    """The table of a block. Raises :class:`UsageError`."""
    plain = _inflated(data, 4 * len(TABLE) * head.pieces, head.table_crc, place)
    rows = {}
    for k, name in enumerate(TABLE):
        part = plain[4 * k * head.pieces : 4 * (k + 1) * head.pieces]
        rows[name] = _unpacked(part, head.pieces, name == "warp").astype(np.int64)
    if sum(4 * int(rows[of].sum()) for _, of, _ in COLUMNS) != head.plain_bytes:
        raise damaged(place, "a block's table does not fit its columns")
    if (np.diff(rows["warp"]) <= 0).any():
        raise damaged(place, "a block has two pieces of a warp, or its warps in disorder")
    return rows


def decode(data: bytes, head: Head, table: dict[str, np.ndarray], place: str) -> Block:
    """The columns of a block. Raises :class:`UsageError`."""
    plain = _inflated(data, head.plain_bytes, head.column_crc, place)
    columns, at = {}, 0
    for name, of, differences in COLUMNS:
        count = int(table[of].sum())
        columns[name] = _unpacked(plain[at : at + 4 * count], count, differences)
        at += 4 * count
    return Block(table, columns)
