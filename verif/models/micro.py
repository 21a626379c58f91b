"""Micro-kernels in PTX, whose cycle counts give a GPU's parameters away."""

from __future__ import annotations

import numpy as np

from lockstep.sim import Gpu

_FRAME = """
.version 7.8
.target sm_75
.address_size 64
.const .align 8 .b8 zeros[256];
.visible .entry k(.param .u64 data)
{{
    .reg .pred %p<8>;
    .reg .b32 %r<64>;
    .reg .f32 %f<64>;
    .reg .f64 %d<32>;
    .reg .b64 %rd<64>;
    .shared .align 16 .b8 pad[{shared}];
    ld.param.u64 %rd1, [data];
    mov.u32 %r1, %tid.x;
    mov.u32 %r2, %ctaid.x;
    mov.u32 %r3, 0;
    mov.u64 %rd3, zeros;
{body}
    ret;
}}
"""


def kernel(body: str, shared: int = 16) -> str:
    """PTX of a kernel ``k``: ``%rd1`` is its buffer, ``%r1`` the thread, ``%r2`` the CTA, ``%rd3`` constant zeros."""
    return _FRAME.format(body=body, shared=shared)


def run(body: str, *, grid: int = 1, block: int = 32, nbytes: int = 1 << 16, shared: int = 16, gpu="gtx480", **settings):
    """Run a body on a GPU with these settings (``core__sms=1`` sets ``core.sms``); its buffer holds zeros."""
    device = Gpu(gpu, **{name.replace("__", "."): value for name, value in settings.items()})
    data = device.to_device(np.zeros(nbytes, np.uint8))
    return device.load(kernel(body, shared)).launch("k", grid=(grid,), block=(block,), args=[data])


def slope(repeat, low: int, high: int, **how) -> float:
    """Core cycles per repetition: the difference of two runs, so that start and end of the kernel drop out."""
    first, second = (run(repeat(n), **how).cycles for n in (low, high))
    return (second - first) / (high - low)
