"""The golden model of a GPU as the host sees it: runs of one grid, or of two at once."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

from lockstep.models.launch import Arena, Kernel
from lockstep.models.machine import Model
from lockstep.models.observe import Observer
from lockstep.models.session import Result, Session
from lockstep.spec.parameters import Gpu


class Busy(RuntimeError):
    """A launch in the middle of another one: from another thread, or out of a callback."""


class Machine(Model):
    """One GPU. Memory contents and the L2 outlive a run; everything else starts anew.

    The run after one that did not come to its end starts with cold caches, too. ``skip`` = False steps every SM in
    every cycle: the same results, slowly (for tests).
    """

    def __init__(self, gpu: Gpu, skip: bool = True) -> None:
        super().__init__(gpu, skip)
        self._whole = True  # the last run has come to its end
        self._free = threading.Lock()

    def launch(
        self,
        kernel: Kernel,
        grid: tuple[int, int, int],
        block: tuple[int, int, int],
        params: bytes,
        dynamic_bytes: int,
        arena: Arena,
        progress: Callable[[int, int, int], None] | None = None,
        observers: Sequence[Observer] = (),
        interval: int | None = None,
    ) -> Result:
        """Run one grid of a kernel whose relocations have been applied; ``dynamic_bytes`` is its dynamic scratchpad.

        ``progress`` is called now and then with the CTAs that have ended, the CTAs in all, and the core cycle;
        ``observers`` look at this launch alone. ``interval`` is the length of the intervals of the result
        (``observe.intervals``). Raises RuntimeError when a conservation law is broken, which is a fault of the model,
        and :class:`Busy` when it is called during a launch.
        """
        with self.session(1, progress, observers, interval) as session:
            session.enter(0, kernel, grid, block, params, dynamic_bytes, arena)
            session.advance()
            return session.collect()

    @contextmanager
    def session(
        self,
        grids: int,
        progress: Callable[[int, int, int], None] | None = None,
        observers: Sequence[Observer] = (),
        interval: int | None = None,
    ) -> Iterator[Session]:
        """A run of up to ``grids`` grids at once; the other arguments are those of :meth:`launch`.

        Raises :class:`Busy` when it is called during another run.
        """
        with self._under_way():
            session = Session(self, grids, progress, observers, interval)
            yield session
            self._whole = session.whole

    @contextmanager
    def _under_way(self) -> Iterator[None]:
        """One run at a time; behind one that did not come to its end, caches are cold."""
        if not self._free.acquire(blocking=False):
            raise Busy("another launch is under way on this GPU")
        try:
            if not self._whole:
                self.cool()
            self._whole = False
            yield
        finally:
            self._free.release()
