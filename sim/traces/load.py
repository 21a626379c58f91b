"""The pieces of a trace in host memory, as the compiled replay reads them: blocks come when warps get there, and go."""

from __future__ import annotations

import ctypes
from dataclasses import dataclass
from typing import Any

import numpy as np

from lockstep.models.execution.isa import LANES
from lockstep.models.jit import argument
from lockstep.models.traces.replay import ACCESS, HELD, PIECE, RUN
from lockstep.models.traces.unpack import BAD_ADDRESS, BAD_COUNT, BAD_LANES, GOOD, unpack
from lockstep.sim.traces.blocks import Block, damaged
from lockstep.sim.traces.read import Warps

__all__ = ["Loader"]

MOST_BYTES = 1 << 25  # of blocks that no warp is in
COUNTS = {"runs": "run_count", "guards": "guard_count", "values": "value_count", "accesses": "access_count"}
WRONG = {
    BAD_LANES: "an access in lanes that contradict each other",
    BAD_COUNT: "a piece has other addresses than its table says",
    BAD_ADDRESS: "an access beyond all memory that the kernel has",
}
_FIELDS: Any = PIECE.fields
_BLOCK, _NEXT = _FIELDS["block"][1], _FIELDS["next"][1]


@dataclass
class _Loaded:
    """A block as compiled code reads it. The arrays must stay where they are."""

    warps: np.ndarray  # of its pieces
    pieces: np.ndarray
    held: np.ndarray
    arrays: list[np.ndarray]

    @property
    def bytes(self) -> int:
        return sum(each.nbytes for each in (self.warps, self.pieces, *self.arrays))

    @property
    def addresses(self) -> np.ndarray:
        """Those of its pieces."""
        return self.pieces.ctypes.data + np.arange(len(self.pieces)) * PIECE.itemsize


class Loader:
    """Of one launch. ``first``: where the addresses of the warps' first pieces go (``models.traces.replay``)."""

    def __init__(self, warps: Warps) -> None:
        self._warps = warps
        self.first = np.zeros(0, np.int64)
        self._loaded: dict[int, _Loaded] = {}  # in the order of their use

    def load(self, warp: int, piece: int) -> int:
        """The address of the piece of a warp behind another one, or of its first (0); -1: there is none."""
        own = ctypes.c_int64.from_address(piece + _BLOCK).value if piece else -1
        number = self._warps.following(warp, own)
        if number < 0:
            return -1
        found = self._get(number, own)
        index = int(found.warps.searchsorted(warp))
        if index == len(found.warps) or found.warps[index] != warp:
            raise damaged(self._warps.place, "has been changed since it was opened")
        address = found.pieces.ctypes.data + index * PIECE.itemsize
        if piece:
            ctypes.c_int64.from_address(piece + _NEXT).value = address
        return address

    def _get(self, number: int, kept: int) -> _Loaded:
        """A block. The one that is kept stays, if no warp is in it, too: a warp looks ahead from there."""
        if number in self._loaded:
            self._loaded[number] = self._loaded.pop(number)
            return self._loaded[number]
        self._drop_some(kept)
        found = self._made(self._warps.block(number), number)
        self._loaded[number] = found
        begin = self._warps.first[found.warps] == number
        self.first[found.warps[begin]] = found.addresses[begin]
        self._link(number - 1)
        self._link(number)
        return found

    def _link(self, number: int) -> None:
        """Join pieces in a block and in the one behind it, if both are there."""
        if number in self._loaded and number + 1 in self._loaded:
            one, other = self._loaded[number], self._loaded[number + 1]
            open_ends = np.flatnonzero(one.pieces["next"] == 0)
            warps = one.warps[open_ends]
            at = np.minimum(other.warps.searchsorted(warps), len(other.warps) - 1)
            goes_on = other.warps[at] == warps
            one.pieces["next"][open_ends[goes_on]] = other.addresses[at[goes_on]]

    def _drop_some(self, kept: int) -> None:
        """Forget blocks that no warp is in, those first that have not been used for longest."""
        free = {number: each.bytes for number, each in self._loaded.items() if each.held["count"] == 0}
        free.pop(kept, None)
        left = sum(free.values())
        for number, size in free.items():
            if left <= MOST_BYTES:
                break
            self._drop(number)
            left -= size

    def _drop(self, number: int) -> None:
        old = self._loaded.pop(number)
        self.first[old.warps[self._warps.first[old.warps] == number]] = 0
        begin, end = old.addresses[0], old.addresses[-1]
        for each in self._loaded.values():
            following = each.pieces["next"]
            following[(following >= begin) & (following <= end)] = 0

    def _made(self, block: Block, number: int) -> _Loaded:
        """A block's arrays, and its pieces in them."""
        table, columns = block.table, block.columns
        runs = np.zeros(len(columns["run_pc"]), RUN)
        runs["pc"], runs["count"], runs["active"] = (columns[f"run_{name}"] for name in ("pc", "count", "active"))
        accesses = self._accesses(block)
        starts = {name: np.cumsum(table[name]) - table[name] for name in table if name != "warp"}
        arrays = {
            "runs": runs, "guards": columns["guard"], "values": columns["value"], "accesses": accesses,
            "addresses": columns["address"],
        }  # fmt: skip
        held = np.zeros((), HELD)
        pieces = np.zeros(len(table["warp"]), PIECE)
        pieces["block"], pieces["held"] = number, held.ctypes.data
        pieces["next"] = np.where(self._warps.last[table["warp"]] == number, -1, 0)
        kept = []
        for name, array in arrays.items():
            array = np.ascontiguousarray(array)
            kept.append(array)
            pieces[name] = array.ctypes.data + starts[name] * array.itemsize
            if name in COUNTS:
                pieces[COUNTS[name]] = table[name]
        return _Loaded(table["warp"], pieces, held, kept)

    def _accesses(self, block: Block) -> np.ndarray:
        """A block's accesses, checked. Raises :class:`UsageError`."""
        columns, kernel, launch = block.columns, self._warps.code.kernel, self._warps.launch
        found = np.zeros(len(columns["lanes"]), ACCESS)
        words = (np.ascontiguousarray(columns[name]) for name in ("lanes", "shared", "base"))
        stride = columns["stride"].view(np.int32)
        counts = block.table["accesses"], block.table["addresses"]
        sizes = kernel.shared_bytes + launch.dynamic_bytes, LANES * kernel.local_bytes, kernel.param_bytes + 8
        compiled: Any = unpack
        wrong = compiled(*words, stride, columns["listed"], columns["address"], *counts, argument(found), *sizes)
        if wrong != GOOD:
            raise damaged(self._warps.place, WRONG[int(wrong)])
        return found
