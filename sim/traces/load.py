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

MOST_BYTES = 1 << 28  # of blocks, beside those that warps are in
COUNTS = {"runs": "run_count", "guards": "guard_count", "values": "value_count", "accesses": "access_count"}
WRONG = {
    BAD_LANES: "an access in lanes that contradict each other",
    BAD_COUNT: "a piece has other addresses than its table says",
    BAD_ADDRESS: "an access beyond all memory that the kernel has",
}
_FIELDS: Any = PIECE.fields
_ROW, _NEXT = _FIELDS["row"][1], _FIELDS["next"][1]


@dataclass
class _Loaded:
    """A block as compiled code reads it. The arrays must stay where they are."""

    pieces: np.ndarray
    held: np.ndarray
    arrays: list[np.ndarray]
    rows: np.ndarray  # in the index, of its pieces

    @property
    def bytes(self) -> int:
        return sum(each.nbytes for each in self.arrays)

    def address(self, index: int) -> int:
        return self.pieces.ctypes.data + index * PIECE.itemsize


class Loader:
    """Of one launch. ``first``: where the addresses of the warps' first pieces go (``models.traces.replay``)."""

    def __init__(self, warps: Warps) -> None:
        self._warps = warps
        self.first = np.zeros(0, np.int64)
        index = warps.pieces
        self._starts = np.searchsorted(index[:, 0], np.arange(warps.launch.ctas * warps.launch.warps_per_cta + 1))
        order = np.lexsort((index[:, 2], index[:, 1]))
        bounds = np.searchsorted(index[order, 1], np.arange(len(warps.blocks) + 1))
        self._rows = [order[bounds[k] : bounds[k + 1]] for k in range(len(warps.blocks))]
        self._loaded: dict[int, _Loaded] = {}  # in the order of their use
        self._bytes = 0

    def load(self, warp: int, piece: int) -> int:
        """The address of the piece of a warp behind another one, or of its first (0); -1: there is none."""
        row = int(self._starts[warp]) if piece == 0 else ctypes.c_int64.from_address(piece + _ROW).value + 1
        if row >= self._starts[warp + 1]:
            return -1
        _, block, index = self._warps.pieces[row].tolist()
        own = int(self._warps.pieces[row - 1, 1]) if piece else -1
        address = self._get(block, own).address(index)
        if piece:
            ctypes.c_int64.from_address(piece + _NEXT).value = address
        return address

    def _get(self, number: int, kept: int) -> _Loaded:
        """A block. The one that is kept stays, if no warp is in it, too: a warp looks ahead from there."""
        if number in self._loaded:
            self._loaded[number] = self._loaded.pop(number)
            return self._loaded[number]
        while self._bytes > MOST_BYTES and self._drop(kept):
            pass
        found = self._made(self._warps.block(number), self._rows[number])
        self._loaded[number] = found
        self._bytes += found.bytes
        begins = self._warps.pieces[found.rows, 0]
        own = found.rows == self._starts[begins]
        self.first[begins[own]] = found.pieces.ctypes.data + np.flatnonzero(own) * PIECE.itemsize
        return found

    def _drop(self, kept: int) -> bool:
        """Forget the block that has not been used for longest, of those that no warp is in."""
        for number, old in self._loaded.items():
            if old.held["count"] == 0 and number != kept:
                break
        else:
            return False
        owners = self._warps.pieces[old.rows, 0]
        self.first[owners[old.rows == self._starts[owners]]] = 0
        for row in old.rows.tolist():
            warp = int(self._warps.pieces[row, 0])
            if row > self._starts[warp]:
                _, block, index = self._warps.pieces[row - 1].tolist()
                if block in self._loaded:
                    self._loaded[block].pieces["next"][index] = 0
        self._bytes -= self._loaded.pop(number).bytes
        return True

    def _made(self, block: Block, rows: np.ndarray) -> _Loaded:
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
        pieces = np.zeros(len(rows), PIECE)
        pieces["row"], pieces["held"] = rows, held.ctypes.data
        owners = self._warps.pieces[rows, 0]
        pieces["next"] = np.where(rows + 1 == self._starts[owners + 1], -1, 0)
        kept = []
        for name, array in arrays.items():
            array = np.ascontiguousarray(array)
            kept.append(array)
            pieces[name] = array.ctypes.data + starts[name] * array.itemsize
            if name in COUNTS:
                pieces[COUNTS[name]] = table[name]
        return _Loaded(pieces, held, kept, rows)

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
