"""The launches of a kernel on a real GPU, made once by its ``run`` and then again as often as wanted, without the host.

What the host wrote, and the kernel changed, is written again each time, from copies in the GPU's memory, so that every
pass computes the same from the same.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from functools import partial

import numpy as np

from lockstep.sim.kernels import Data, Kernel
from lockstep.verif.silicon.gpu import Driver, Launch, Memory, Silicon

__all__ = ["Tape"]

Step = Callable[[], None]

_NO_TIME = 2  # CU_EVENT_DISABLE_TIMING


class _Memory(Memory):
    """Remembers what was written, and frees nothing: what a pass needs must stay where it is."""

    def __init__(self, driver: Driver, steps: list[Launch | tuple[int, np.ndarray]]) -> None:
        super().__init__(driver)
        self._steps: list[Launch | tuple[int, np.ndarray]] | None = steps

    def write(self, address: int, data: np.ndarray) -> None:
        super().write(address, data)
        if self._steps is not None and data.size:
            self._steps.append((address, np.array(data).reshape(-1).view(np.uint8)))

    def free(self, address: int) -> None:
        pass

    def stop(self) -> None:
        """Remember nothing that is written from now on."""
        self._steps = None


class Tape(Silicon):
    """A real GPU, its ``name`` included, that plays one kernel again."""

    def __init__(self) -> None:
        super().__init__()
        self._recorded: list[Launch | tuple[int, np.ndarray]] = []
        self._memory = _Memory(self.driver, self._recorded)
        self.memory = self._memory  # type: ignore[assignment]
        self.launches: list[Launch] = []
        self.copies: list[Step] = []
        self.steps: list[Step] = []

    def start(self, launch: Launch) -> None:
        super().start(launch)
        self._recorded.append(launch)

    def keep(self, kernel: Kernel, data: Data) -> None:
        """Run a kernel, and make the steps of a pass from what it did."""
        kernel.run(self, self.load(kernel.ptx), data)  # type: ignore[arg-type]
        self._memory.stop()
        self.launches = [step for step in self._recorded if isinstance(step, Launch)]
        launched = False
        for step in self._recorded:
            if isinstance(step, Launch):
                launched = True
                self.steps.append(partial(step.start, self.driver))
            elif launched or (self.memory.view(step[0], step[1].size) != step[1]).any():
                self.copies.append(self._copy(*step))
                self.steps.append(self.copies[-1])
        self._recorded.clear()

    def _copy(self, address: int, data: np.ndarray) -> Step:
        kept = self._memory.allocate(data.size)
        self._memory.write(kept, data)
        places = ctypes.c_uint64(address), ctypes.c_uint64(kept), ctypes.c_size_t(data.size)
        return partial(self.driver.call, "cuMemcpyDtoDAsync_v2", *places, None)

    def mark(self) -> ctypes.c_void_p:
        """An event that follows everything that has been queued."""
        event = ctypes.c_void_p()
        self.driver.call("cuEventCreate", ctypes.byref(event), ctypes.c_uint(_NO_TIME))
        self.driver.call("cuEventRecord", event, None)
        return event

    def reach(self, event: ctypes.c_void_p) -> None:
        """Wait until the GPU is at an event, which is no more after that."""
        self.driver.call("cuEventSynchronize", event)
        self.driver.call("cuEventDestroy_v2", event)

    def wait(self) -> None:
        """Wait until the GPU has done everything."""
        self.driver.call("cuCtxSynchronize")

    def close(self) -> None:
        """Free everything, also after an error that leaves nothing else to do."""
        self.driver.call("cuDevicePrimaryCtxReset_v2", ctypes.c_int(self.driver.number("cuDeviceGet", 0)))
