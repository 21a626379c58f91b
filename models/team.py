"""The host's part in windows of cycles (``models/windows.py``): how long they may be, and threads."""

from __future__ import annotations

import ctypes
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

from lockstep.models import jit as J
from lockstep.models.execution.isa import CONTEXT, Control, Group
from lockstep.models.memory.system import most_sent
from lockstep.models.memory.timing import hit_delay
from lockstep.models.run import run
from lockstep.models.windows import TEAM
from lockstep.spec.parameters import MAX_THREADS, Gpu

__all__ = ["LONGEST", "Team", "window"]

_C = ctypes.CDLL(None)
_GIVE_WAY, _SLEEP = (ctypes.cast(function, ctypes.c_void_p).value for function in (_C.sched_yield, _C.usleep))
LONGEST = 32  # core cycles of a window; ``PORT.taken`` has a bit for each


def window(gpu: Gpu) -> int:
    """Core cycles that SMs may be ahead of the memory system: until a reply comes, or an answered token is reused."""
    return min(gpu.crossbar.latency, hit_delay(gpu), LONGEST)


class Team:
    """The threads of one GPU's runs. All but ``threads`` are for tests."""

    def __init__(self, gpu: Gpu) -> None:
        self.threads = 1
        self.length = window(gpu)
        """Core cycles of a window; 0: none, in lockstep."""
        self.forced = False
        """Windows also where they have little to do."""
        self.look: Any = None
        """A slot that is told of each SM's part of a window, in front of it and behind."""
        self.record = np.zeros(1, TEAM)[0:1].reshape(())
        self._most_sent = most_sent(gpu)

    @property
    def argument(self) -> Any:
        """The record as compiled functions take it."""
        return J.argument(self.record)

    @contextmanager
    def of(self, code: np.ndarray | None, arguments: tuple[Any, ...], context: np.ndarray) -> Iterator[None]:
        """Let the threads work on a run of a kernel with this code, in windows; None: one thread does, in lockstep.

        ``arguments`` are those of :func:`~lockstep.models.run.run`, of which each thread has a ``context`` of its own.
        """
        J.as_bytes(self.record)[...] = 0
        record, threads = self.record, self.threads
        assert threads <= MAX_THREADS
        if code is None or self.length == 0:
            yield
            return
        fences = (code["group"] == Group.CONTROL) & (code["op"] == Control.FENCE) & (code["sub"] != 0)
        record["threads"], record["length"], record["forced"] = threads, self.length, self.forced
        record["fences"], record["most_sent"], record["give_way"] = fences.any(), self._most_sent, _GIVE_WAY
        record["sleep"] = _SLEEP
        record["look"] = J.address(self.look) if self.look else 0
        contexts = np.zeros(threads, CONTEXT)
        J.as_bytes(contexts)[...] = J.as_bytes(context)
        state, sms, memory, launch, settings, _, rows = arguments
        others = []
        for member in range(1, threads):
            own = J.argument(contexts[member : member + 1].reshape(()))
            part = self.argument, member, state, sms, memory, launch, settings, own, rows, 0
            others.append(threading.Thread(target=run, args=part, daemon=True))
        for other in others:
            other.start()
        try:
            yield
        finally:
            record["quit"] = 1
            record["number"] += 1
            for other in others:
                other.join()
