"""Host memory of what grids keep in the SMs: registers, scratchpads, local memory, and CTAs that were preempted."""

from __future__ import annotations

import mmap

import numpy as np

from lockstep.models.core.context import context_bytes
from lockstep.models.core.placement import PREDICATE_BYTES, store_bytes
from lockstep.models.execution.isa import CONTEXTS_BYTES, LANES, LOCAL_BYTES, LOCAL_PHYSICAL, PT
from lockstep.models.launch import Launch
from lockstep.models.occupancy import local_rows
from lockstep.spec.parameters import MAX_GRIDS, MAX_WARPS, Gpu

WORD_BYTES = 4


def _anonymous(nbytes: int) -> np.ndarray:
    """Zeroed bytes that take memory only once they are touched."""
    flags = mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS  # a process that is forked has its own
    return np.frombuffer(mmap.mmap(-1, max(nbytes, 1), flags=flags), np.uint8)


def predicates(gpu: Gpu) -> np.ndarray:
    """The predicates of all warps, of whichever grid."""
    return _anonymous(gpu.core.sms * MAX_WARPS * PREDICATE_BYTES)


class Storage:
    """What grid ``index`` keeps: arrays that grow with the launch that needs most of them.

    What begins in them initialises them.
    """

    def __init__(self, gpu: Gpu, index: int) -> None:
        self._gpu, self._index = gpu, index
        self.registers = np.zeros(0, np.uint8)
        self.pair_registers = np.zeros(0, np.uint8)
        self.scratchpad = np.zeros(0, np.uint8)
        self.pair_scratchpad = np.zeros(0, np.uint8)
        self.local = np.zeros(0, np.uint8)
        self.preempted = np.zeros(0, np.uint8)
        self.contexts = np.zeros(0, np.uint8)
        self.staging = np.zeros(0, np.uint8)

    def _grow(self, name: str, nbytes: int) -> int:
        """The address of an array, with room for ``nbytes`` at least."""
        if getattr(self, name).nbytes < nbytes:
            setattr(self, name, _anonymous(nbytes))
        return getattr(self, name).ctypes.data

    def begin(self, record: np.ndarray, launch: Launch, preempts: bool, moves: bool) -> None:
        """Make room for a launch, and say where in the grid's record (``execution.isa.GRID``).

        ``preempts``: its CTAs may leave before they have ended; ``moves``: their contexts are moved then.
        """
        sms, fit, stride = self._gpu.core.sms, launch.fit, launch.shared_stride
        registers, local_bytes = launch.kernel.registers, launch.kernel.local_bytes
        rows = local_rows(self._gpu, fit, local_bytes, launch.ctas, launch.grids)
        places = fit.ctas if launch.grids == 1 else self._gpu.core.ctas
        shared, local = sms * max(places, 1) * stride, sms * rows * local_bytes * LANES
        pairs, pair_shared = sms * MAX_WARPS // 2 if fit.pairs else 0, sms * fit.pairs * stride
        warp_registers = registers * LANES * WORD_BYTES
        marks = 1 if launch.strict else 0  # they follow the bytes
        for name, value in dict(
            register_file=self._grow("registers", sms * MAX_WARPS * warp_registers),
            pair_registers=self._grow("pair_registers", pairs * warp_registers),
            scratchpad=self._grow("scratchpad", (1 + marks) * shared), scratchpads=places,
            shared_marks=marks * shared,
            pair_scratchpad=self._grow("pair_scratchpad", (1 + marks) * pair_shared), pair_marks=marks * pair_shared,
            local=self._grow("local", (1 + marks) * local), local_marks=marks * local,
            local_physical=LOCAL_PHYSICAL + self._index * (LOCAL_BYTES // MAX_GRIDS), local_rows=rows,
            stored=0, store_first=0,
        ).items():  # fmt: skip
            record[name] = value
        if moves:
            self._contexts(record, launch)
        elif preempts:
            record["store_entries"] = sms * (fit.ctas + 1)
            record["store_bytes"] = store_bytes(fit.warps_per_cta, registers, local_bytes, stride, launch.strict)
            record["store"] = self._grow("preempted", int(record["store_entries"] * record["store_bytes"]))

    def _contexts(self, record: np.ndarray, launch: Launch) -> None:
        """Room for the contexts of all CTAs that SMs can hold."""
        sms, kernel, fit = self._gpu.core.sms, launch.kernel, launch.fit
        written = int(np.bitwise_or.reduce(kernel.code["pwrites"])) & (1 << PT) - 1
        predicates, marks = written.bit_length(), launch.shared_stride if launch.strict else 0
        shared, stack = launch.shared_stride, self._gpu.core.reconvergence_stack
        nbytes = context_bytes(fit.warps_per_cta, kernel.registers, predicates, shared, stack)
        record["predicates"], record["context_bytes"], record["context_stride"] = predicates, nbytes, nbytes + marks
        record["context_region"] = self._index * CONTEXTS_BYTES
        record["contexts"] = self._grow("contexts", sms * fit.ctas * (nbytes + marks))
        record["staging"] = self._grow("staging", sms * nbytes)
