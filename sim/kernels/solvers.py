"""The host's part of the asynchronous solvers: blocks, their order, launches until the equations are solved.

After chapter 2 of Chen's thesis. The kernels are in ``solver.cuh``, the equations in ``problems.py``.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from lockstep.sim.errors import UsageError
from lockstep.sim.kernels.problems import Problem, smallest

if TYPE_CHECKING:
    from lockstep.sim.device.gpu import Gpu
    from lockstep.sim.device.module import Module
    from lockstep.sim.device.run import Run

__all__ = ["EXCHANGES", "ORDERS", "Blocks", "Scheme", "Session", "Solved", "check_epsilon", "order_of", "solve"]

LEFT = 32
"""Floats before the first node of a row that changes, so that rows of blocks begin at a line."""

EXCHANGES = ("none", "up-down", "four-way", "combined")
ORDERS = ("stripe", "square", "linear", "random")

DATA = np.dtype(
    [(name, np.uint64) for name in ("from", "to", "constants", "columns", "order")]
    + [(name, np.int32) for name in ("across", "down", "pitch", "plane")],
    align=True,
)
"""``struct Data`` of the kernels."""


@dataclass(frozen=True)
class Blocks:
    """Blocks of nodes, of which each CTA has one. ``resident``: how many CTAs the GPU runs at a time."""

    width: int
    height: int
    resident: int

    def counts(self, extent: tuple[int, int]) -> tuple[int, int]:
        """Blocks below each other and side by side. Raises :class:`UsageError` if they don't fill the extent."""
        rows, columns = extent
        if rows % self.height or columns % self.width:
            raise UsageError(
                f"{columns} x {rows} nodes: blocks of {self.width} x {self.height} do not fill them; "
                "give multiples, or pad the problem with fixed nodes"
            )
        return rows // self.height, columns // self.width


@dataclass(frozen=True)
class Scheme:
    """``steps``: of a launch; ``interval``: steps between two exchanges; ``communicating``: threads of a CTA.

    ``jacobi``: all nodes of a block take a step at a time, and fields alternate. ``plain``: loads that an L1 may serve.
    """

    exchange: str = "none"
    order: str = "stripe"
    steps: int = 1
    interval: int = 1
    communicating: int = 64
    jacobi: bool = False
    plain: bool = False
    seed: int = 1

    def __post_init__(self) -> None:
        for name, value, allowed in (("exchange", self.exchange, EXCHANGES), ("order", self.order, ORDERS)):
            if value not in allowed:
                raise UsageError(f"{name} = {value!r}: must be one of {', '.join(allowed)}")
        for name, number in (("steps", self.steps), ("interval", self.interval)):
            if number < 1:
                raise UsageError(f"{name} = {number}: must be at least 1")
        if self.communicating < 0 or self.communicating % 32:
            raise UsageError(f"communicating = {self.communicating}: must be a multiple of 32 threads, or 0")
        if self.jacobi and self.exchange != "none":
            raise UsageError(f"jacobi: nothing can be exchanged, and exchange = {self.exchange!r}")

    def function(self, kernel: str, blocks: Blocks) -> str:
        """The instance of the kernel's template."""
        interval = 1 if self.exchange == "none" else self.interval
        numbers = (EXCHANGES.index(self.exchange), blocks.width, blocks.height, interval, self.communicating)
        flags = (str(flag).lower() for flag in (self.jacobi, self.plain))
        return f"{kernel}<{', '.join((*map(str, numbers), *flags))}>"


def order_of(order: str, counts: tuple[int, int], resident: int, seed: int) -> np.ndarray:
    """The block of each CTA; a block's number counts row by row."""
    down, across = counts
    blocks = np.arange(down * across, dtype=np.int32).reshape(down, across)
    if order == "random":
        return np.random.default_rng(seed).permutation(blocks.ravel())
    if order == "linear":
        return blocks.ravel()
    if order == "stripe":
        return blocks.T.ravel()
    high = math.isqrt(resident - 1) + 1
    wide = max(1, resident // high)
    tiles = [blocks[y : y + high, x : x + wide].ravel() for y in range(0, down, high) for x in range(0, across, wide)]
    return np.concatenate(tiles)


class Session:
    """A problem on a GPU, in device memory."""

    def __init__(self, gpu: Gpu, module: Module, problem: Problem, blocks: Blocks, scheme: Scheme) -> None:
        self.gpu, self.module, self.problem, self.scheme, self.blocks = gpu, module, problem, scheme, blocks
        self.counts = blocks.counts(problem.extent)
        self.function = scheme.function(problem.FUNCTION, blocks)
        order = order_of(scheme.order, self.counts, blocks.resident, scheme.seed)
        padded = self._padded(problem.fields)
        self.shape = padded.shape
        self.source, self.target = gpu.to_device(padded), gpu.to_device(padded)
        self._constants, self._order = gpu.to_device(self._padded(problem.constants)), gpu.to_device(order)
        self._columns = gpu.to_device(self._packed(problem.fields))

    @staticmethod
    def _padded(planes: np.ndarray) -> np.ndarray:
        """With columns to the left and right, so that each row that changes begins and ends with a line."""
        right = LEFT - 1 + -(planes.shape[2] - 2) % LEFT
        return np.pad(planes, ((0, 0), (0, 0), (LEFT - 1, right)))

    def _packed(self, fields: np.ndarray) -> np.ndarray:
        """The columns beside each line between blocks: by field, line, row of blocks, side."""
        down, across = self.counts
        lines = self.blocks.width * np.arange(across + 1)
        sides = np.stack([fields[:, 1:-1, lines], fields[:, 1:-1, lines + 1]])  # side, field, row, line
        parted = sides.reshape(2, len(fields), down, self.blocks.height, across + 1)
        return np.ascontiguousarray(parted.transpose(1, 4, 2, 0, 3))

    def launch(self) -> Run:
        """Another launch, of the scheme's steps."""
        target = self.target if self.scheme.jacobi else self.source
        buffers = (self.source, target, self._constants, self._columns, self._order)
        down, across = self.counts
        _, rows, pitch = self.shape
        record = np.array([(*(buffer.address for buffer in buffers), across, down, pitch, rows * pitch)], DATA)
        threads = self.blocks.width * self.blocks.height // 2 + self.scheme.communicating
        args = [record[0], np.int32(self.scheme.steps)]
        run = self.module.launch(self.function, grid=(down * across,), block=(threads,), args=args)
        if self.scheme.jacobi:
            self.source, self.target = self.target, self.source
        return run

    def fields(self) -> np.ndarray:
        """The fields as they are now, with the ring."""
        width = self.problem.fields.shape[2]
        return self.gpu.from_device(self.source)[:, :, LEFT - 1 : LEFT - 1 + width].copy()


@dataclass(frozen=True)
class Solved:
    """``residuals``: after each launch, as the host computes them. Without ``converged``, the limit was reached."""

    fields: np.ndarray
    residuals: list[float]
    steps: int
    cycles: int
    converged: bool
    runs: list[Run] = field(default_factory=list, repr=False)


def check_epsilon(problem: Problem, epsilon: float) -> None:
    """Raise :class:`UsageError` for a residual that single precision cannot be trusted to reach."""
    if not epsilon >= (least := smallest(problem)):
        raise UsageError(f"epsilon = {epsilon:g}: must be at least {least:.2g}, which single precision reaches")


def solve(session: Session, epsilon: float | None = None, most_steps: int = 1_000_000) -> Solved:
    """Launch until the residual, recomputed by the host in double precision, is below ``epsilon``."""
    epsilon = session.problem.EPSILON if epsilon is None else epsilon
    check_epsilon(session.problem, epsilon)
    residuals: list[float] = []
    steps = 0
    runs = []
    while steps < most_steps and not (residuals and residuals[-1] < epsilon):
        run = session.launch()
        runs.append(run)
        steps += session.scheme.steps
        residuals.append(session.problem.residual(session.fields()))
    cycles = sum(run.cycles for run in runs)
    return Solved(session.fields(), residuals, steps, cycles, bool(residuals) and residuals[-1] < epsilon, runs)
