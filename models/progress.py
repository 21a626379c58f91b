"""Whether a launch makes progress: a warp ends, a barrier opens, a CTA starts; or a warp computes something new.

Warps that spin issue instructions and send requests like others. But they come back to states that they have been in,
while in a loop that will end something counts. So where none of the above happens for long, this module looks at the
warps now and then. The launch makes no progress when every warp has returned to a state that it had left before, or has
never left its first one (program counter, lanes, registers, predicates). :data:`LAST` finds loops that wait and count
their rounds, later.

The looks are made between calls of the run loop, which knows nothing of them.
"""

from __future__ import annotations

import numpy as np

from lockstep.models.core.frame import HAS_OPERANDS
from lockstep.models.execution.isa import LANES, MAX_PREDICATES, MAX_REGISTERS
from lockstep.spec.parameters import MAX_WARPS

LOOKS = 128  # within ``launch.no_progress``: enough to meet a state of a loop with some hundred states again
LAST = 100  # times ``launch.no_progress`` in which no warp ends or passes a barrier: no progress either


def between_looks(limit: int) -> int:
    """Core cycles between looks, where ``limit`` is ``launch.no_progress``."""
    return max(limit // LOOKS, 1)


def _changes(rows: np.ndarray) -> np.ndarray:
    """How often each column changes from row to row."""
    return (rows[1:] != rows[:-1]).sum(axis=0)


class Watch:
    """Of one launch, whose records these are; ``limit`` is ``launch.no_progress``, ``registers`` those of a thread.

    ``pair_file`` has the registers that pairs of warps share.
    """

    def __init__(
        self, sms: np.ndarray, register_file: np.ndarray, pair_file: np.ndarray, predicate_file: np.ndarray,
        registers: int, limit: int,
    ) -> None:  # fmt: skip
        positions = len(sms) * MAX_WARPS
        self._sms = sms
        self._limit = limit
        self._words = [
            file[: positions * size].view(np.uint64).reshape(positions, size // 8)
            for file, size in ((register_file, 4 * LANES * registers), (predicate_file, 4 * (MAX_PREDICATES + 1)))
        ]
        row = 4 * LANES * registers
        self._pairs = pair_file[: len(pair_file) // row * row].view(np.uint64).reshape(-1, row // 8)
        random = np.random.default_rng(0)
        self._weights = [random.integers(1 << 64, size=words.shape[1], dtype=np.uint64) for words in self._words]
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
        for words, weights in zip(self._words, self._weights, strict=True):
            hashes[resident] += words[resident] @ weights
        shared = warps["own_registers"] < MAX_REGISTERS
        place = (warps["pair_regs"] - self._pairs.ctypes.data) // (8 * self._pairs.shape[1])
        paired = resident & shared & (place >= 0) & (place < len(self._pairs))
        hashes[paired] += self._pairs[place[paired]] @ self._weights[0]
        hashes[np.repeat(sms["tenants"] & HAS_OPERANDS != 0, MAX_WARPS) | (shared & ~paired)] = now
        hashes[~resident] = 0
        return hashes
