"""Kernels whose warps go ways of their own, and devices that record and replay them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np

from lockstep.sim import Gpu
from lockstep.sim.traces.read import Trace
from lockstep.sim.traces.replay import replay

HEAD = """
.version 7.0
.target sm_70
.address_size 64
"""

WAYS = (
    HEAD
    + """
.visible .entry ways(.param .u64 out, .param .u32 n)
{
  .reg .pred %p<6>; .reg .b32 %r<16>; .reg .b64 %rd<8>; .local .align 4 .b8 stack[64]; .shared .align 4 .b8 pad[1024];
  ld.param.u64 %rd1, [out]; ld.param.u32 %r9, [n];
  mov.u32 %r1, %tid.x; mov.u32 %r2, %ctaid.x; mov.u32 %r3, %ntid.x; mad.lo.u32 %r4, %r2, %r3, %r1;
  mov.u32 %r5, 0; and.b32 %r6, %r4, 7; mov.u64 %rd5, stack;
LOOP:
  add.u32 %r5, %r5, %r6; and.b32 %r10, %r5, 15; mul.wide.u32 %rd6, %r10, 4; add.u64 %rd7, %rd5, %rd6;
  st.local.u32 [%rd7], %r5; ld.local.u32 %r11, [%rd7];
  setp.gt.u32 %p1, %r6, 0; sub.u32 %r6, %r6, 1; @%p1 bra LOOP;
  and.b32 %r7, %r4, 3; ts: .branchtargets A, B, C, B; brx.idx %r7, ts;
A:
  add.u32 %r5, %r5, %r9; bra END;
B:
  mul.lo.u32 %r5, %r5, 3; bra END;
C:
  xor.b32 %r5, %r5, 85;
END:
  shl.b32 %r8, %r1, 2; mov.u32 %r12, pad; add.u32 %r13, %r12, %r8; st.shared.u32 [%r13], %r5; bar.sync 0;
  xor.b32 %r8, %r8, 12; add.u32 %r13, %r12, %r8; ld.shared.u32 %r5, [%r13];
  setp.lt.u32 %p2, %r4, 60; mul.wide.u32 %rd2, %r4, 4; add.u64 %rd3, %rd1, %rd2;
  @%p2 st.global.u32 [%rd3], %r5; @!%p2 red.global.add.u32 [%rd1+4096], %r5;
  ret;
}
"""
)
"""A loop of as many rounds as the lane says, an indexed branch, local memory, a barrier, guards, and an atomic."""


def launch(device: Gpu, ctas: int = 6, threads: int = 80) -> np.ndarray:
    """Run ``WAYS``; returns what it has stored."""
    module = device.load(WAYS)
    out = device.to_device(np.zeros(1025, np.uint32))
    module.launch("ways", ctas, threads, [out, np.uint32(5)])
    return device.from_device(out)


def recorded(folder: Path) -> Gpu:
    """A device that has recorded ``WAYS``."""
    device = Gpu("gtx480")
    with device.recording(folder):
        launch(device)
    return device


def replayed(
    folder: Path, gpu: str = "gtx480", mechanisms: Sequence[str] = (), settings: Mapping[str, int] | None = None
) -> Gpu:
    """A device that has replayed a trace."""
    device = Gpu(gpu, mechanisms, settings)
    replay(Trace(folder), device)
    return device


def same(one: Gpu, other: Gpu) -> bool:
    """Whether two devices have run the same, in every statistic of every SM."""
    return [run.cycles for run in one.runs] == [run.cycles for run in other.runs] and one.per_sm == other.per_sm
