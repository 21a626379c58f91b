"""Whether a launch makes progress: a warp ends, a barrier opens, a CTA starts; or a warp computes something new.

Warps that spin issue instructions and send requests like others. But they come back to states that they have been in,
while in a loop that will end something counts. So where none of the above happens for long, this module looks at the
warps now and then. The launch makes no progress when every warp has returned to a state that it had left before, or has
never left its first one (program counter, lanes, registers, predicates). :data:`LAST` finds loops that wait and count
their rounds, later.

The looks are made between calls of the run loop, which knows nothing of them.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np

from lockstep.models.core.frame import HAS_OPERANDS
from lockstep.models.execution.isa import LANES, MAX_PREDICATES, MAX_REGISTERS
from lockstep.spec.parameters import MAX_WARPS

LOOKS = 128  # within ``launch.no_progress``: enough to meet a state of a loop with some hundred states again
LAST = 100  # times ``launch.no_progress`` in which no warp ends or passes a barrier: no progress either


def between_looks(limit: int) -> int:
    """Core cycles between looks, where ``limit`` is ``launch.no_progress``."""
    return max(limit // LOOKS, 1)


def _rows(file: np.ndarray, size: int) -> np.ndarray:
    """The rows of a file, of ``size`` bytes each, in words of 64 bits."""
    return file.view(np.uint64).reshape(-1, size // 8)


def _changes(rows: np.ndarray) -> np.ndarray:
    """How often each column changes from row to row."""
    return (rows[1:] != rows[:-1]).sum(axis=0)


class Files(NamedTuple):
    """The registers of a grid's warps, and those that pairs of them share; ``registers`` are those of a thread."""

    own: np.ndarray
    pairs: np.ndarray
    registers: int


class Watch:
    """Of the grids that run, by index; ``limit`` is ``launch.no_progress``."""

    def __init__(self, sms: np.ndarray, grids: Mapping[int, Files], predicate_file: np.ndarray, limit: int) -> None:
        positions = len(sms) * MAX_WARPS
        self._sms = sms
        self._limit = limit
        self._grids: list[tuple[int, np.ndarray, np.ndarray]] = []
        for index, files in grids.items():
            row = 4 * LANES * files.registers
            own, pairs = files.own[: positions * row], files.pairs[: len(files.pairs) // row * row]
            self._grids.append((index, _rows(own, row), _rows(pairs, row)))
        self._predicates = _rows(predicate_file, 4 * (MAX_PREDICATES + 1))
        random = np.random.default_rng(0)
        widths = max(words.shape[1] for _, words, _ in self._grids), self._predicates.shape[1]
        self._weights = [random.integers(1 << 64, size=width, dtype=np.uint64) for width in widths]
        self._looks: list[np.ndarray] = []
        self._places: list[np.ndarray] = []
        self.began = 0
        """The core cycle in which the looks began that were compared last."""

    def stuck(self, now: int) -> bool:
        """Look at the warps; whether the launch makes no progress any more."""
        latest = int(self._sms["progress"].max())
        if latest >= self.began:
            self._begin(now)
            return False
        self._looks.append(self._states(now))
        self._places.append(self._sms["warps"]["pc"].reshape(-1).copy())
        if now - latest > LAST * self._limit:
            return True
        if now - self.began <= self._limit:
            return False
        states = np.array(self._looks)
        changes, distinct = _changes(states), _changes(np.sort(states, axis=0))
        if ((distinct < changes) | (changes == 0)).all():
            return True
        self._begin(now)
        return False

    def _begin(self, now: int) -> None:
        self._looks, self._places, self.began = [], [], now

    def places(self, position: int) -> tuple[int, ...]:
        """The instructions at which a warp (SM x MAX_WARPS + slot) was met since :attr:`began`."""
        return tuple(sorted({int(look[position]) for look in self._places}))

    def _states(self, now: int) -> np.ndarray:
        """A hash of each warp's state; of those whose registers lie elsewhere, one that does not come again."""
        warps, sms = self._sms["warps"].reshape(-1), self._sms
        hashes = warps["pc"].astype(np.uint64) << np.uint64(32) ^ warps["mask"].astype(np.uint64)
        resident = (sms["resident"][:, None] >> np.arange(MAX_WARPS) & 1).reshape(-1) != 0
        hashes[resident] += self._predicates[resident] @ self._weights[1]
        shared = warps["own_registers"] < MAX_REGISTERS
        grid = (sms["second"][:, None] >> np.arange(MAX_WARPS) & 1).reshape(-1)
        for index, words, pairs in self._grids:
            weights, of = self._weights[0][: words.shape[1]], resident & (grid == index)
            hashes[of] += words[of] @ weights
            place = (warps["pair_regs"] - pairs.ctypes.data) // (8 * pairs.shape[1])
            paired = of & shared & (place >= 0) & (place < len(pairs))
            hashes[paired] += pairs[place[paired]] @ weights
            hashes[of & shared & ~paired] = now
        hashes[np.repeat(sms["tenants"] & HAS_OPERANDS != 0, MAX_WARPS)] = now
        hashes[~resident] = 0
        return hashes
