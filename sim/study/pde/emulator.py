"""Blocks as the kernels of ``solver.cuh`` treat them, without a GPU: what each launch makes of the fields.

The CTAs that are resident at a time go through their phases together, wave after wave. In each phase, all store their
boundaries, all load their neighbours', and these count from the ``delay``-th step of the phase on. A step has
``parts``: rows of one part see what the part before them has made of its rows, and each other as they were before. In
the model, a computing thread has a node in each half of the block, so that a step has two parts; with one, it is a
Jacobi step, as with two buffers.
"""

from __future__ import annotations

import itertools
import math
import time
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from lockstep.models.jit import f32, f64, jit
from lockstep.sim.kernels.problems import Poisson, Problem, ShapeFromShading, guidance
from lockstep.sim.kernels.solvers import EXCHANGES, Blocks, Scheme, check_epsilon, order_of

__all__ = ["DELAY", "PARTS", "Emulated", "emulate", "launches"]

PARTS = 2
DELAY = 1
TESTED = 10  # steps after which the residual is calculated, or more: of short launches, not each is followed by a test
NONE, UP_DOWN, FOUR_WAY, COMBINED = range(len(EXCHANGES))

# Legend: h, w: rows and columns of a block; y0, x0: its first node in the whole, ring included; u: a block's fields
# with their halo; whole: all fields with the ring; constants: a block's, with as many nodes as u. Loops over nodes go
# along memory, halo included, so that they become vector instructions; what is not free keeps its value.


@jit
def poisson_nodes(own, up, down, left, right, wanted, free, after):
    for i in range(len(after)):
        kept = own[i]
        total = up[i] + down[i]
        total = total + left[i]
        total = total + right[i]
        total = (total + wanted[i]) * f32(0.25)
        after[i] = total if free[i] != f32(0) else kept


@jit
def mean_of_nodes(up, down, left, right, after):
    for i in range(len(after)):
        total = up[i] + down[i]
        total = total + left[i]
        after[i] = (total + right[i]) * f32(0.25)


@jit
def shading_nodes(f_own, g_own, brightness, free, light, f_after, g_after):
    """``f_after`` and ``g_after`` have the means at first; ``light``: in three directions, and the strength."""
    s1, s2, s3, strength = light[0], light[1], light[2], light[3]
    two, four = f32(2), f32(4)
    for i in range(len(f_after)):
        f, g = f_after[i], g_after[i]
        f_kept, g_kept = f_own[i], g_own[i]
        square = f * f + g * g
        inverse = f32(1) / (four + square)
        shown = (four * (s1 * f + s2 * g) + s3 * (four - square)) * inverse
        pull = strength * (brightness[i] - shown) * inverse
        lean = two * (s3 + shown)
        f_next, g_next = f + pull * (four * s1 - lean * f), g + pull * (four * s2 - lean * g)
        f_after[i] = f_next if free[i] != f32(0) else f_kept
        g_after[i] = g_next if free[i] != f32(0) else g_kept


@jit
def step_of_rows(u, constants, begin, end, stride, after):
    """The nodes from place ``begin`` to ``end`` of flat arrays."""
    f = u[0]
    own, up, down = f[begin:end], f[begin - stride : end - stride], f[begin + stride : end + stride]
    left, right = f[begin - 1 : end - 1], f[begin + 1 : end + 1]
    free = constants[0, begin:end]
    if len(u) == 1:
        poisson_nodes(own, up, down, left, right, constants[1, begin:end], free, after[0, begin:end])
    else:
        g = u[1]
        f_after, g_after = after[0, begin:end], after[1, begin:end]
        mean_of_nodes(up, down, left, right, f_after)
        up, down = g[begin - stride : end - stride], g[begin + stride : end + stride]
        mean_of_nodes(up, down, g[begin - 1 : end - 1], g[begin + 1 : end + 1], g_after)
        shading_nodes(own, g[begin:end], constants[1, begin:end], free, constants[2], f_after, g_after)


@jit
def steps_of_block(u, constants, steps, parts, after):
    h, stride = u.shape[1] - 2, u.shape[2]
    flat = u.reshape((u.shape[0], u.shape[1] * stride))
    rows = h // parts
    for _ in range(steps):
        for first in range(1, h + 1, rows):
            begin, end = first * stride + 1, (first + rows) * stride - 1
            step_of_rows(flat, constants, begin, end, stride, after)
            for k in range(len(flat)):
                flat[k, begin:end] = after[k, begin:end]


@jit
def store_boundary(u, whole, y0, x0, exchange):
    h, w = u.shape[1] - 2, u.shape[2] - 2
    for k in range(u.shape[0]):
        for x in range(w):
            whole[k, y0, x0 + x], whole[k, y0 + h - 1, x0 + x] = u[k, 1, x + 1], u[k, h, x + 1]
        if exchange != UP_DOWN:
            for y in range(h):
                whole[k, y0 + y, x0], whole[k, y0 + y, x0 + w - 1] = u[k, y + 1, 1], u[k, y + 1, w]


@jit
def see_halo(whole, y0, x0, h, w, pending):
    """What the neighbours have stored."""
    for k in range(whole.shape[0]):
        for x in range(w):
            pending[k, x], pending[k, w + x] = whole[k, y0 - 1, x0 + x], whole[k, y0 + h, x0 + x]
        for y in range(h):
            pending[k, 2 * w + y], pending[k, 2 * w + h + y] = whole[k, y0 + y, x0 - 1], whole[k, y0 + y, x0 + w]


@jit
def take_halo(u, pending, exchange):
    h, w = u.shape[1] - 2, u.shape[2] - 2
    for k in range(u.shape[0]):
        for x in range(w):
            u[k, 0, x + 1], u[k, h + 1, x + 1] = pending[k, x], pending[k, w + x]
        if exchange != UP_DOWN:
            for y in range(h):
                u[k, y + 1, 0], u[k, y + 1, w + 1] = pending[k, 2 * w + y], pending[k, 2 * w + h + y]


@jit
def phase(whole, constants, numbers, places, blocks, pending, steps, exchange, parts, delay, after):
    h, w = blocks.shape[2] - 2, blocks.shape[3] - 2
    early = min(delay, steps)
    for c in range(len(places)):
        store_boundary(blocks[c], whole, places[c, 0], places[c, 1], exchange)
    for c in range(len(places)):
        see_halo(whole, places[c, 0], places[c, 1], h, w, pending[c])
    for c in range(len(places)):
        steps_of_block(blocks[c], constants[numbers[c]], early, parts, after)
        take_halo(blocks[c], pending[c], exchange)
        steps_of_block(blocks[c], constants[numbers[c]], steps - early, parts, after)


@jit
def wave(whole, target, constants, numbers, places, blocks, pending, steps, interval, exchange, parts, delay, after):
    """The CTAs that are resident at a time: ``places`` are their blocks' first nodes."""
    h, w = blocks.shape[2] - 2, blocks.shape[3] - 2
    for c in range(len(places)):
        y0, x0 = places[c, 0], places[c, 1]
        blocks[c] = whole[:, y0 - 1 : y0 + h + 1, x0 - 1 : x0 + w + 1]
    if exchange == NONE:
        for c in range(len(places)):
            steps_of_block(blocks[c], constants[numbers[c]], steps, parts, after)
    else:
        for first in range(0, steps, interval):
            now = min(interval, steps - first)
            phase(whole, constants, numbers, places, blocks, pending, now, exchange, parts, delay, after)
    for c in range(len(places)):
        y0, x0 = places[c, 0], places[c, 1]
        target[:, y0 : y0 + h, x0 : x0 + w] = blocks[c, :, 1 : h + 1, 1 : w + 1]


@jit
def launch(whole, target, constants, numbers, places, blocks, pending, steps, interval, exchange, parts, delay, after):
    """All waves of a launch."""
    resident = len(blocks)
    for first in range(0, len(places), resident):
        now, which = places[first : first + resident], numbers[first : first + resident]
        wave(whole, target, constants, which, now, blocks, pending, steps, interval, exchange, parts, delay, after)


@jit
def poisson_residual(whole, constants, _light):
    """The largest one, in double precision."""
    most = f64(0)
    for y in range(1, whole.shape[1] - 1):
        for x in range(1, whole.shape[2] - 1):
            total = f64(whole[0, y - 1, x]) + f64(whole[0, y + 1, x])
            total += f64(whole[0, y, x - 1]) + f64(whole[0, y, x + 1])
            left = abs(total + f64(constants[1, y, x]) - 4 * f64(whole[0, y, x]))
            if constants[0, y, x] != f32(0):
                most = max(most, left)
    return most


@jit
def shading_residual(whole, constants, light):
    """The largest one of both fields, in double precision."""
    most = f64(0)
    s1, s2, s3, strength = light[0], light[1], light[2], light[3]
    for y in range(1, whole.shape[1] - 1):
        for x in range(1, whole.shape[2] - 1):
            f = f64(whole[0, y - 1, x]) + f64(whole[0, y + 1, x]) + f64(whole[0, y, x - 1]) + f64(whole[0, y, x + 1])
            g = f64(whole[1, y - 1, x]) + f64(whole[1, y + 1, x]) + f64(whole[1, y, x - 1]) + f64(whole[1, y, x + 1])
            f, g = f / 4, g / 4
            square = f * f + g * g
            inverse = 1 / (4 + square)
            shown = (4 * (s1 * f + s2 * g) + s3 * (4 - square)) * inverse
            pull = strength * (f64(constants[1, y, x]) - shown) * inverse
            lean = 2 * (s3 + shown)
            most = max(most, 4 * abs(f + pull * (4 * s1 - lean * f) - f64(whole[0, y, x])))
            most = max(most, 4 * abs(g + pull * (4 * s2 - lean * g) - f64(whole[1, y, x])))
    return most


# --------------------------------------------------------------------------------------------------------------- Python


@dataclass(frozen=True)
class Emulated:
    """``residuals``: after each launch. Without ``converged``, the limit was reached."""

    fields: np.ndarray
    residuals: list[float]
    steps: int
    converged: bool
    seconds: float


def _constants(problem: Problem) -> np.ndarray:
    """Whether a node is free, and what never changes, calculated once; with the ring."""
    constants = problem.constants
    free = np.zeros(constants.shape[1:], np.float32)
    free[1:-1, 1:-1] = 1
    if isinstance(problem, Poisson):
        wanted = np.zeros(free.shape, np.float32)
        wanted[1:-1, 1:-1] = guidance(constants)
        return np.stack([free * (constants[2] != 0), wanted]).astype(np.float32)
    assert isinstance(problem, ShapeFromShading)
    return np.stack([free, constants[0]])


def _by_block(constants: np.ndarray, places: np.ndarray, blocks: Blocks, problem: Problem) -> np.ndarray:
    """The constants of each CTA's block, with a halo that is not free; of shading, the light follows."""
    h, w = blocks.height, blocks.width
    found = np.stack([constants[:, y - 1 : y + h + 1, x - 1 : x + w + 1] for y, x in places])
    found[:, 0, :, [0, -1]] = found[:, 0, [0, -1]] = 0
    flat = found.reshape(*found.shape[:2], -1)
    if isinstance(problem, ShapeFromShading):
        light = np.zeros((len(flat), 1, flat.shape[2]), np.float32)
        s1, s2, s3 = problem.LIGHT
        light[:, 0, :4] = s1, s2, s3, problem.STRENGTH
        flat = np.concatenate([flat, light], axis=1)
    return np.ascontiguousarray(flat)


def launches(
    problem: Problem, blocks: Blocks, scheme: Scheme, parts: int = PARTS, delay: int = DELAY
) -> Iterator[tuple[np.ndarray, float]]:
    """The fields, which change in place, and their residual after each launch, or some short ones, without an end."""
    down, across = blocks.counts(problem.extent)
    order = order_of(scheme.order, (down, across), blocks.resident, scheme.seed)
    places = np.stack([1 + order // across * blocks.height, 1 + order % across * blocks.width], 1).astype(np.int64)
    whole, constants = problem.fields.astype(np.float32), _constants(problem)
    own = _by_block(constants, places, blocks, problem)
    light = own[0, -1, :4].astype(np.float64)
    target = whole.copy() if scheme.jacobi else whole
    count, h, w = len(whole), blocks.height, blocks.width
    held = np.zeros((blocks.resident, count, h + 2, w + 2), np.float32)
    pending = np.zeros((blocks.resident, count, 2 * (h + w)), np.float32)
    after = np.zeros((count, (h + 2) * (w + 2)), np.float32)
    residual = poisson_residual if count == 1 else shading_residual
    how = (scheme.steps, scheme.interval, EXCHANGES.index(scheme.exchange), 1 if scheme.jacobi else parts, delay)
    every = -(-TESTED // scheme.steps)
    for number in itertools.count(1):
        launch(whole, target, own, np.arange(len(places)), places, held, pending, *how, after)
        whole, target = target, whole
        if number % every == 0:
            yield whole, float(residual(whole, constants, light))


def emulate(
    problem: Problem,
    blocks: Blocks,
    scheme: Scheme,
    epsilon: float | None = None,
    most_steps: int = 1_000_000,
    parts: int = PARTS,
    delay: int = DELAY,
) -> Emulated:
    """Launch until the residual is below ``epsilon``, as :func:`lockstep.sim.kernels.solvers.solve` does."""
    epsilon = problem.EPSILON if epsilon is None else epsilon
    check_epsilon(problem, epsilon)
    start, residuals, steps, fields = time.perf_counter(), [math.inf], 0, problem.fields
    tested = launches(problem, blocks, scheme, parts, delay)
    while residuals[-1] >= epsilon and steps < most_steps:
        fields, residual = next(tested)
        steps += scheme.steps * -(-TESTED // scheme.steps)
        residuals.append(residual)
    return Emulated(fields.copy(), residuals[1:], steps, residuals[-1] < epsilon, time.perf_counter() - start)
