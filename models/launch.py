"""One launch: what is asked for, and the record of its grid that the compiled run reads."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from lockstep.models.execution.isa import GLOBAL_BASE, PARAM_BYTES, Flag
from lockstep.models.occupancy import Occupancy, round_up


class Arena(Protocol):
    """Device memory, as a launch needs it: host addresses of the bytes and of their validity (``execution.isa``).

    ``marks`` is the distance of the bytes' marks, or 0 (``execution.written``). A launch keeps marks where these are.
    """

    address: int
    bytes: int
    valid_address: int
    marks: int
    textures: np.ndarray


class Kernel(Protocol):
    """A kernel, as a launch needs it; ``sim/compile/ptx/kernel.py`` says what is in one."""

    code: np.ndarray
    branch_table: list[int]
    registers: int
    shared_bytes: int
    local_bytes: int
    tables: dict[str, np.ndarray]


@dataclass(frozen=True)
class Launch:
    """One grid of a kernel whose relocations have been applied; ``dynamic_bytes`` is its dynamic scratchpad."""

    kernel: Kernel
    grid: tuple[int, ...]  # CTAs
    block: tuple[int, ...]  # threads of a CTA
    params: bytes
    dynamic_bytes: int
    strict: bool  # memory keeps marks (``execution.written``)
    fit: Occupancy
    grids: int = 1  # that may run at once

    @property
    def ctas(self) -> int:
        return math.prod(self.grid)

    @property
    def shared_bytes(self) -> int:
        return self.kernel.shared_bytes + self.dynamic_bytes

    @property
    def shared_stride(self) -> int:
        """Bytes between the scratchpads of CTAs, so that every access is aligned on the host too."""
        return round_up(self.shared_bytes, 16)


class Program:
    """A kernel's code and its launch's parameters in host memory, where they must stay until the launch has ended.

    ``index`` is that of the grid: operands from the constant bank are looked up where its parameters lie.
    """

    def __init__(self, launch: Launch, index: int) -> None:
        self.code = np.ascontiguousarray(launch.kernel.code)
        self.param_offset = index * PARAM_BYTES
        if index:
            self.code = self.code.copy()
            parameters = (self.code["flags"] & Flag.CONSTANT != 0) & (self.code["offset"] < GLOBAL_BASE)
            self.code["offset"][parameters] += self.param_offset
        self.branch_table = np.array(launch.kernel.branch_table, np.int32)
        self.words = np.ascontiguousarray(launch.kernel.tables.get("stream.words", ()), np.int32)
        self.parameters = np.frombuffer(launch.params + bytes(8), np.uint8).copy()


def describe(grid: np.ndarray, launch: Launch, program: Program, code_address: int, number: int) -> None:
    """Fill the record of a launch's grid (``execution.isa.GRID``), the GPU's ``number``-th one."""
    fit, words = launch.fit, program.words
    for name, value in dict(
        code=program.code.ctypes.data, code_address=code_address, length=len(program.code),
        words_to=words.ctypes.data if len(words) else 0, branch_table=program.branch_table.ctypes.data, number=number,
        block=launch.block, size=launch.grid, total=launch.ctas, threads=math.prod(launch.block),
        warps=fit.warps_per_cta, per_sm=fit.ctas, registers=launch.kernel.registers,
        allocated_registers=fit.registers_per_warp * fit.warps_per_cta, allocated_shared=fit.scratchpad_bytes,
        pairs=fit.pairs, own_registers=fit.own_registers, own_shared=fit.own_scratchpad_bytes,
        shared_bytes=launch.shared_bytes, shared_stride=launch.shared_stride, dynamic_bytes=launch.dynamic_bytes,
        local_bytes=launch.kernel.local_bytes,
        param=program.parameters.ctypes.data, param_bytes=len(launch.params), param_offset=program.param_offset,
    ).items():  # fmt: skip
        grid[name] = value
