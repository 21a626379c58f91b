"""Micro-kernels in PTX whose cycle counts give a GPU's parameters away."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Any, TypedDict

import numpy as np

from lockstep.sim import Gpu
from lockstep.sim.device.run import Run

_FRAME = """
.version 7.8
.target sm_75
.address_size 64
.const .align 8 .u64 self[1] = {{self}};
.const .align 8 .b8 zeros[256];
.const .align 64 .b8 many[{constants}];
.visible .entry k(.param .u64 data, .param .u64 image, .param .u32 value)
{{
    .reg .pred %p<8>;
    .reg .b32 %r<128>;
    .reg .f32 %f<64>;
    .reg .f64 %d<64>;
    .reg .b64 %rd<64>;
    .local .align 8 .b8 private[64];
    ld.param.u64 %rd1, [data];
    ld.param.u64 %rd2, [image];
    ld.param.u32 %r0, [value];
    mov.u64 %rd3, self;
    mov.u64 %rd4, private;
    mov.u32 %r1, %tid.x;
    mov.u32 %r2, %ctaid.x;
    setp.ne.u32 %p1, %r1, %r1;
{body}
    ret;
}}
"""

ALIGNMENT = 1 << 16  # bytes: the buffer begins with a row of DRAM, in the first bank

WARM = {"instruction_cache.mode": "perfect", "constant_cache.mode": "perfect"}
"""Micro-kernels are straight, and would wait for each line of their instructions."""

Settings = dict[str, Any]
Repeat = Callable[[int], str]
"""A kernel's body with so many repetitions of what is measured."""


class Chased(TypedDict):
    """The buffer of a :class:`Bench` whose words hold addresses."""

    nbytes: int
    stride: int


class Bench:
    """A GPU with one micro-kernel and its buffer; every launch starts with what the one before left in the L2.

    The body finds ``%rd1``: its buffer, ``%rd2``: a texture of zeros, ``%rd3``: a constant that holds its own address,
    ``%rd4``: local memory, ``%r0``: the launch's ``value``, ``%r1``: its thread, ``%r2``: its CTA, ``%p1``: false, and
    ``many``: so many ``constants`` of a byte, zero. Other registers up to 60 are free. The buffer holds zeros; with
    ``stride``, each multiple of it holds the address of the next one, the last one that of the first.
    """

    def __init__(
        self,
        body: str,
        settings: Settings | None = None,
        *,
        gpu: str = "gtx480",
        nbytes: int = 4096,
        stride: int = 0,
        mechanisms: Sequence[str] = (),
        constants: int = 64,
        strict: bool = False,
    ) -> None:
        self.gpu = Gpu(gpu, mechanisms, {"core.sms": 1, **WARM, **(settings or {})}, strict=strict)
        self.image = self.gpu.texture(np.zeros(64, np.uint32))
        room = self.gpu.to_device(np.zeros(ALIGNMENT + nbytes, np.uint8))
        self.nbytes = nbytes
        self.buffer = room + -room.address % ALIGNMENT
        if stride:
            places = np.arange(0, nbytes, stride)
            words = self.gpu.memory.view(self.buffer.address, nbytes).view(np.uint64)
            words[places // 8] = self.buffer.address + np.roll(places, -1)
        self.module = self.gpu.load(_FRAME.format(body=body, constants=constants))
        self.registers = self.module.kernel("k").registers

    def __call__(self, *, grid: int = 1, block: int = 32, shared: int = 0, value: int = 0) -> Run:
        arguments = [self.buffer, self.image, np.uint32(value)]
        return self.module.launch("k", (grid,), (block,), arguments, shared_bytes=shared)

    def words(self) -> np.ndarray:
        """The buffer's contents as u32."""
        return self.gpu.memory.view(self.buffer.address, self.nbytes).view(np.uint32)


def slope(
    repeat: Repeat,
    low: int,
    high: int,
    settings: Settings | None = None,
    *,
    gpu: str = "gtx480",
    nbytes: int = 4096,
    stride: int = 0,
    **launch: int,
) -> float:
    """Core cycles per repetition: the difference of two cold runs, so that start and end of the kernel drop out."""

    def cycles(n: int) -> int:
        return Bench(repeat(n), settings, gpu=gpu, nbytes=nbytes, stride=stride)(**launch).cycles

    return (cycles(high) - cycles(low)) / (high - low)


def chain(instruction: str, before: str = "") -> Repeat:
    """Instructions each of which depends on the one before."""
    return lambda n: "\n".join([before, *[instruction] * n])


_TYPES = {"r": "b32", "f": "f32", "d": "f64", "rd": "b64"}


def independent(instruction: str, registers: int = 16, before: str = "") -> Repeat:
    """Instructions that do not depend on each other: ``{k}`` is another register every time, ``{n}`` counts.

    All of the registers are read at the end; otherwise they would share one. The reads take as long for any multiple of
    ``registers`` instructions.
    """
    file = re.search(r"%([a-z]+)\{k\}", instruction)
    read = f"mov.{_TYPES[file[1]]} %{file[1]}7, %{file[1]}{{k}};" if file else ""

    def body(n: int) -> str:
        used = [8 + k % registers for k in range(n)]
        writes = [instruction.format(k=register, n=k) for k, register in enumerate(used)]
        return "\n".join([before, *writes, *(read.format(k=register) for register in sorted(set(used)))])

    return body
