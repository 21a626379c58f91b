"""What the solvers solve: made images, and each equation in NumPy, in the order of the kernels' operations.

Arrays have a ring of fixed nodes around the others, and planes: of fields, which change, and of constants.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np

__all__ = ["Poisson", "Problem", "ShapeFromShading", "curved", "linear", "patches", "poisson",
           "shape_from_shading", "smallest"]  # fmt: skip

INSIDE = np.s_[..., 1:-1, 1:-1]
ROUNDINGS = 8  # of the largest value, that a residual of single precision may have


@dataclass(frozen=True)
class Problem(ABC):
    """``fields``: as they are at the start, with the ring; ``constants``: of the same extent."""

    fields: np.ndarray
    constants: np.ndarray

    FUNCTION: ClassVar[str]  # of the kernel
    EPSILON: ClassVar[float]  # for the residual's largest value

    @abstractmethod
    def update(self, fields: np.ndarray, constants: np.ndarray) -> np.ndarray:
        """All nodes within a ring after a step in which each sees its neighbours as they were before it."""

    @property
    def extent(self) -> tuple[int, int]:
        """Rows and columns that change."""
        _, height, width = self.fields.shape
        return height - 2, width - 2

    def step(self, fields: np.ndarray) -> np.ndarray:
        """The whole after a step of all nodes."""
        after = fields.copy()
        after[INSIDE] = self.update(fields, self.constants)
        return after

    def coarse(self, fields: np.ndarray, width: int, height: int, steps: int) -> np.ndarray:
        """The whole after some steps in blocks of which none sees how the others change."""
        after, (rows, columns) = fields.copy(), self.extent
        for y in range(0, rows, height):
            for x in range(0, columns, width):
                window = np.s_[:, y : y + height + 2, x : x + width + 2]
                block, constants = fields[window].copy(), self.constants[window]
                for _ in range(steps):
                    block[INSIDE] = self.update(block, constants)
                after[window][INSIDE] = block[INSIDE]
        return after

    def residual(self, fields: np.ndarray) -> float:
        """The largest residual of the equations, times the four neighbours, in double precision."""
        exact = fields.astype(np.float64)
        return float(4 * np.abs(self.update(exact, self.constants) - exact[INSIDE]).max())

    def with_fields(self, fields: np.ndarray) -> Problem:
        return replace(self, fields=fields.astype(np.float32))


def smallest(problem: Problem) -> float:
    """The residual that single precision can be trusted to reach, with values of about 1 or those of the start."""
    return float(ROUNDINGS * np.spacing(np.float32(max(1, np.abs(problem.fields).max()))))


class Poisson(Problem):
    """Seamless cloning with mixed gradients (Perez, Gangnet and Blake 2003). Constants: source, background, mask.

    Where the mask is 0, the field begins as the background, and stays.
    """

    FUNCTION = "poisson"
    EPSILON = 2e-6

    def update(self, fields: np.ndarray, constants: np.ndarray) -> np.ndarray:
        (field,), mask = fields, constants[2][INSIDE]
        total = field[:-2, 1:-1] + field[2:, 1:-1]
        total = total + field[1:-1, :-2]
        total = total + field[1:-1, 2:]
        total = (total + guidance(constants)) * fields.dtype.type(0.25)
        return np.where(mask != 0, total, constants[1][INSIDE].astype(fields.dtype))[None]

    def solution(self) -> np.ndarray:
        """The fields that solve the equations, directly, in double precision."""
        solved = self.fields.astype(np.float64)
        solved[0] = np.where(self._free(), 0, solved[0])  # what is known, as the right-hand side sees it
        right = 4 * self.update(solved, self.constants)[0]
        nodes = np.argwhere(self._free()[INSIDE])
        known = _eliminate(self._free()[INSIDE], right)
        solved[0][INSIDE][tuple(nodes.T)] = known[tuple(nodes.T)]
        return solved

    def _free(self) -> np.ndarray:
        free = self.constants[2] != 0
        free[[0, -1]] = free[:, [0, -1]] = False
        return free


def _eliminate(free: np.ndarray, right: np.ndarray) -> np.ndarray:
    """Block elimination, row by row: 4 u - neighbours = right at the free nodes, and 0 at the others."""
    rows, columns = free.shape
    links = np.eye(columns, k=1) + np.eye(columns, k=-1)
    factors: list[np.ndarray] = []
    values: list[np.ndarray] = []
    for y in range(rows):
        here = np.where(free[y][:, None] & free[y][None, :], 4 * np.eye(columns) - links, np.eye(columns))
        value = np.where(free[y], right[y], 0)
        if y:
            meets = (free[y] & free[y - 1]).astype(float)
            here -= meets[:, None] * factors[-1] * meets[None, :]
            value = value + meets * values[-1]
        inverse = np.linalg.inv(here)
        factors.append(inverse)
        values.append(inverse @ value)
    for y in reversed(range(rows - 1)):
        values[y] = values[y] + factors[y] @ ((free[y] & free[y + 1]) * values[y + 1])
    return np.array(values)


def guidance(constants: np.ndarray) -> np.ndarray:
    """The sum of the stronger gradients to the four neighbours."""
    source, background = constants[0], constants[1]

    def stronger(window: tuple[slice, slice]) -> np.ndarray:
        one, other = source[INSIDE] - source[window], background[INSIDE] - background[window]
        return np.where(np.abs(other) > np.abs(one), other, one)

    total = stronger(np.s_[:-2, 1:-1]) + stronger(np.s_[2:, 1:-1])
    total = total + stronger(np.s_[1:-1, :-2])
    return np.asarray(total + stronger(np.s_[1:-1, 2:]))


class ShapeFromShading(Problem):
    """Stereographic gradients f and g of a surface from its brightness (Horn 1986, chapter 11). Constant: brightness.

    What the gradient's brightness lacks is taken at the neighbours' mean, so that a step of all nodes is stable.
    """

    FUNCTION = "shading"
    EPSILON = 2e-6
    LIGHT = tuple(np.float32(part / 7) for part in (2, 3, 6))
    STRENGTH = np.float32(0.01)  # 1 / (4 lambda), of brightness against smoothness

    def update(self, fields: np.ndarray, constants: np.ndarray) -> np.ndarray:
        kind = fields.dtype.type
        s1, s2, s3 = (kind(part) for part in self.LIGHT)
        around = fields[:, :-2, 1:-1] + fields[:, 2:, 1:-1]
        around = around + fields[:, 1:-1, :-2]
        f, g = around = (around + fields[:, 1:-1, 2:]) * kind(0.25)
        shown, inverse = self.brightness(around), kind(1) / (kind(4) + (f * f + g * g))
        pull = kind(self.STRENGTH) * (constants[0][INSIDE].astype(kind) - shown) * inverse
        lean = kind(2) * (s3 + shown)
        return np.stack([f + pull * (kind(4) * s1 - lean * f), g + pull * (kind(4) * s2 - lean * g)])

    @classmethod
    def brightness(cls, fields: np.ndarray) -> np.ndarray:
        """Of a surface whose gradient is (f, g)."""
        f, g = fields
        kind = fields.dtype.type
        s1, s2, s3 = (kind(part) for part in cls.LIGHT)
        square = f * f + g * g
        shown = kind(4) * (s1 * f + s2 * g) + s3 * (kind(4) - square)
        return np.asarray(shown * (kind(1) / (kind(4) + square)))




# -------------------------------------------------------------------------------------------------------------- images


def ripples(rows: int, columns: int, seed: int) -> np.ndarray:
    """A smooth image between 0 and 1: a few waves of random directions, with the ring."""
    random = np.random.default_rng(seed)
    y, x = np.mgrid[: rows + 2, : columns + 2] / max(rows, columns)
    image = np.zeros(y.shape)
    for _ in range(6):
        angle, length, phase = random.uniform(0, 2 * np.pi), random.uniform(0.1, 0.7), random.uniform(0, 2 * np.pi)
        image += np.sin(2 * np.pi * (np.cos(angle) * x + np.sin(angle) * y) / length + phase)
    return (image - image.min()) / (image.max() - image.min())


def poisson(rows: int, columns: int, seed: int, free: np.ndarray | None = None) -> Poisson:
    """An image with a bright disc in it, cloned onto another; of ``free`` nodes alone, or of all within the ring."""
    y, x = np.mgrid[: rows + 2, : columns + 2]
    far = np.hypot(y - 0.5 * rows, x - 0.45 * columns) / (0.3 * min(rows, columns))
    source = 0.3 * ripples(rows, columns, seed + 1) + 0.5 / (1 + np.exp(12 * (far - 1)))
    background = ripples(rows, columns, seed)
    mask = np.ones((rows + 2, columns + 2)) if free is None else free
    constants = np.stack([source, background, mask]).astype(np.float32)
    return Poisson(constants[1:2].copy(), constants)


def patches(rows: int, columns: int, height: int, width: int, radius: float) -> np.ndarray:
    """1 in a disc around every node where four blocks meet, with the ring; 0 elsewhere."""
    y, x = np.mgrid[: rows + 2, : columns + 2] - 0.5
    return (np.hypot(_to_line(y, rows, height), _to_line(x, columns, width)) < radius).astype(np.float32)


def _to_line(place: np.ndarray, extent: int, block: int) -> np.ndarray:
    """How far the nearest line between blocks is."""
    lines = np.arange(block, extent, block)
    return np.abs(place[..., None] - lines).min(axis=-1) if len(lines) else np.full(place.shape, np.inf)


def shape_from_shading(rows: int, columns: int, seed: int) -> ShapeFromShading:
    """The brightness of a sphere, and of a vase beside it, on a plane that fills the ring."""
    normals = _normals(rows, columns)
    light = np.array(ShapeFromShading.LIGHT, float)
    brightness = np.tensordot(light, normals, 1) + 0.02 * (ripples(rows, columns, seed) - 0.5)
    return ShapeFromShading(
        np.zeros((2, rows + 2, columns + 2), np.float32), brightness[None].astype(np.float32)
    )


def curved(rows: int, columns: int, seed: int, disturbed: np.ndarray) -> ShapeFromShading:
    """One whose solution is known: f and g are linear, and the brightness is theirs. They begin ``disturbed``."""
    random = np.random.default_rng(seed)
    y, x = np.mgrid[: rows + 2, : columns + 2]
    slopes = random.uniform(-0.5, 0.5, (2, 3))
    solved = np.stack([a + b * y / rows + c * x / columns for a, b, c in slopes]).astype(np.float32)
    shown = ShapeFromShading.brightness(solved.astype(np.float64)).astype(np.float32)
    bumps = disturbed * random.uniform(0, 0.2, solved.shape)
    return ShapeFromShading((solved + bumps).astype(np.float32), shown[None])


def linear(problem: Problem) -> np.ndarray:
    """The fields of :func:`curved` that solve the equations, from the corners of the ring."""
    fields = problem.fields.astype(np.float64)
    _, rows, columns = fields.shape
    y, x = np.mgrid[:rows, :columns]
    first, right, down = (fields[:, row, column, None, None] for row, column in ((0, 0), (0, -1), (-1, 0)))
    return np.asarray(first + (right - first) * x / (columns - 1) + (down - first) * y / (rows - 1))


def _normals(rows: int, columns: int) -> np.ndarray:
    """Of a sphere and a vase, in x, y and z."""
    y, x = np.mgrid[: rows + 2, : columns + 2].astype(float)
    y, x = (y - 0.5) / rows, (x - 0.5) / columns
    normals = np.stack([np.zeros(x.shape), np.zeros(x.shape), np.ones(x.shape)])
    for across, down, lean in (_sphere(y, x), _vase(y, x)):
        inside = across**2 + lean**2 < 1
        depth = np.sqrt(np.clip(1 - across**2, 0, 1))
        length = np.sqrt(across**2 + down**2 + depth**2)
        normals = np.where(inside, np.stack([across, down, depth]) / np.maximum(length, 1e-9), normals)
    return normals


def _sphere(y: np.ndarray, x: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Places on its surface, in radii, and what lies outside."""
    across, down = (x - 0.28) / 0.2, (y - 0.5) / 0.2
    width = np.sqrt(np.clip(1 - down**2, 1e-6, 1))
    return across / width, down / width, np.where(np.abs(down) < 1, 0, 2)


def _vase(y: np.ndarray, x: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """A surface of revolution: its radius goes up and down with the height."""
    radius = 0.11 + 0.06 * np.sin(7 * y)
    slope = 0.06 * 7 * np.cos(7 * y)
    return (x - 0.74) / radius, -slope, np.where(np.abs(y - 0.5) < 0.36, 0, 2)
