"""Kernels whose results do not depend on timing, run as they are and with CTAs that leave and come back."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any
from unittest.mock import patch

import numpy as np

from lockstep.models.core import context
from lockstep.models.session import Session
from lockstep.sim.device.run import Run
from lockstep.verif.models.micro import Bench

NBYTES = 1 << 17
Row = tuple[int, int, int, int]
"""Cycle, SM, CTAs, cycle from which they may come back."""

STORE = """
    mov.u32 %r50, %ntid.x;
    mad.lo.u32 %r51, %r2, %r50, %r1;
    mul.wide.u32 %rd50, %r51, 4;
    add.u64 %rd50, %rd50, %rd1;
    st.global.u32 [%rd50], %r3;
"""

LOOPS = (
    """
    add.u32 %r3, %r1, %r2;
    and.b32 %r4, %r1, 7;
    add.u32 %r4, %r4, 1;
    setp.gt.u32 %p4, %r1, 20;
outer:
    and.b32 %r5, %r4, 3;
    add.u32 %r5, %r5, 1;
    setp.gt.u32 %p5, %r4, 3;
inner:
    mad.lo.u32 %r3, %r3, 3, %r5;
    sub.u32 %r5, %r5, 1;
    setp.ne.u32 %p2, %r5, 0;
    @%p2 bra inner;
    @%p4 add.u32 %r3, %r3, %r4;
    @%p5 bra odd;
    mul.lo.u32 %r3, %r3, 5;
    bra even;
odd:
    add.u32 %r3, %r3, 11;
even:
    sub.u32 %r4, %r4, 1;
    setp.ne.u32 %p3, %r4, 0;
    @%p3 bra outer;
"""
    + STORE
)
"""Lanes leave two nested loops one by one, and split inside; two predicates live through all of it."""

VOTES = (
    """
    shr.u32 %r10, %r1, 5;
    mad.lo.u32 %r11, %r10, 9, 3;
    mov.u32 %r3, 0;
    mov.u32 %r4, 0;
round:
    mov.u32 %r5, %r11;
delay:
    sub.u32 %r5, %r5, 1;
    setp.ne.u32 %p2, %r5, 0;
    @%p2 bra delay;
    add.u32 %r6, %r1, %r4;
    and.b32 %r6, %r6, 3;
    setp.eq.u32 %p3, %r6, 0;
    bar.red.popc.u32 %r7, 1, %p3;
    mad.lo.u32 %r3, %r3, 7, %r7;
    shl.b32 %r8, %r1, 2;
    st.shared.u32 [%r8], %r3;
    bar.sync 0;
    xor.b32 %r8, %r8, 128;
    ld.shared.u32 %r9, [%r8];
    add.u32 %r3, %r3, %r9;
    bar.sync 2;
    add.u32 %r4, %r4, 1;
    setp.lt.u32 %p4, %r4, 3;
    @%p4 bra round;
"""
    + STORE
)
"""Warps that reach barriers one after the other, vote, and exchange words through the scratchpad."""

TRAFFIC = (
    """
    mov.u32 %r3, 1;
    mul.wide.u32 %rd5, %r1, 128;
    add.u64 %rd5, %rd5, %rd1;
    mul.wide.u32 %rd6, %r2, 8192;
    add.u64 %rd5, %rd5, %rd6;
    mov.u32 %r4, 0;
again:
    st.global.u32 [%rd5+65536], %r3;
    st.global.u32 [%rd5+65540], %r4;
    ld.global.u32 %r5, [%rd5+32768];
    red.global.add.u32 [%rd5+32772], 3;
    st.local.u32 [%rd4], %r4;
    mad.lo.u32 %r3, %r3, 5, %r5;
    ld.global.u32 %r6, [%rd5+65536];
    ld.local.u32 %r7, [%rd4];
    add.u32 %r3, %r3, %r6;
    add.u32 %r3, %r3, %r7;
    add.u32 %r4, %r4, 1;
    setp.lt.u32 %p2, %r4, 4;
    @%p2 bra again;
"""
    + STORE
)
"""Each lane has lines of its own: 32 accesses an instruction, loads, stores, atomics and local memory."""


class Case:
    """A kernel on one SM, and what it does undisturbed."""

    def __init__(
        self, body: str, *, grid: int = 1, block: int = 32, shared: int = 0, strict: bool = False,
        mechanisms: Sequence[str] = ("preemption",), **settings: Any,
    ) -> None:  # fmt: skip
        named = {name if "." in name else name.replace("_", ".", 1): value for name, value in settings.items()}
        self.bench = Bench(body, named, mechanisms=mechanisms, nbytes=NBYTES, strict=strict)
        self.gpu = self.bench.gpu
        self._launch = dict(grid=grid, block=block, shared=shared)
        self.calm, self._memory = self._run([])

    def _run(self, rows: Sequence[Row]) -> tuple[Run, np.ndarray]:
        memory = self.gpu.memory.view(self.bench.buffer.address, NBYTES)
        memory[:] = 0
        with self.gpu.preempting(rows):
            run = self.bench(**self._launch)
        return run, memory.copy()

    @property
    def cycles(self) -> int:
        return self.calm.cycles

    def wrong(self, rows: Sequence[Row]) -> tuple[Run, str]:
        """A run with CTAs that leave, and what differs from the undisturbed one in what it has computed."""
        run, memory = self._run(rows)
        bytes_ = int((memory != self._memory).sum())
        errors = [f"{bytes_} bytes"] if bytes_ else []
        errors += [
            f"{name}: {run.raw[name].tolist()} against {self.calm.raw[name].tolist()}"
            for name in ("sm.warp_instructions", "sm.lanes", "sm.barriers", "sm.branches", "sm.ctas", "sm.warps")
            if (run.raw[name].sum(axis=0) != self.calm.raw[name].sum(axis=0)).any()
        ]
        return run, "; ".join(errors)

    def disturb(self, *rows: Row) -> Run:
        """A run with CTAs that leave, which must have computed the same."""
        run, wrong = self.wrong(rows)
        assert not wrong, f"{rows}: {wrong}"
        return run


@contextmanager
def stopped(at: int | Sequence[int], look: Callable[[Any], None]) -> Iterator[None]:
    """Let each launch inside of the ``with`` be looked at before core cycles ``at``: ``look`` gets the machine."""
    advance = Session.advance
    cycles = [at] if isinstance(at, int) else at

    def stops(session: Session, until: int | None = None) -> Any:
        for cycle in cycles:
            if session.now < cycle:
                ended = advance(session, cycle)
                if ended or session.now < cycle:
                    return ended
                look(session._machine)
        return advance(session, until)

    with patch.object(Session, "advance", stops):
        yield


class Context:
    """What lies in memory of a CTA that is out, to look at and to spoil."""

    def __init__(self, machine: Any, home: int = 0, sm: int = 0, grid: int = 0) -> None:
        record = machine.grid(grid)
        stride = int(record["context_stride"])
        first = (sm * int(record["per_sm"]) + home) * stride
        self.bytes = machine.storage[grid].contexts[first : first + stride]
        self.cta = self._part(0, context.CTA_CONTEXT, 1)
        at = context.HEADER * context.LINE
        self.warps: list[dict[str, np.ndarray]] = []
        for _ in range(int(self.cta["warps"][0]).bit_count()):
            top = self._part(at, context.WARP_CONTEXT, 1)
            at += context.LINE
            found = {"top": top}
            for name, kind, count in (
                ("stack", context.ENTRY, int(top["depth"][0])),
                ("predicates", np.dtype("u4"), int(record["predicates"])),
                ("registers", np.dtype(("u4", 32)), int(record["registers"])),
            ):
                found[name] = self._part(at, kind, count)
                at += -(-count * kind.itemsize // context.LINE) * context.LINE
            self.warps.append(found)
        self.scratchpad = self._part(at, np.dtype("u4"), int(record["shared_bytes"]) // 4)

    def _part(self, at: int, kind: np.dtype, count: int) -> np.ndarray:
        return self.bytes[at : at + count * kind.itemsize].view(kind.base).reshape(count, *kind.shape)
