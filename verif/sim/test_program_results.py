"""Whole CUDA programs that run as they stand: what kernels compute, against NumPy. ``test_programs`` loads all."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from lockstep.sim import Gpu
from lockstep.sim.buffers import Buffer

FOLDER = Path(__file__).parents[1] / "programs"
NUMBERS = np.random.default_rng(1)


@pytest.fixture(scope="module")
def gpu() -> Gpu:
    return Gpu("gtx480", core_sms=2)


@pytest.fixture(autouse=True)
def begin_anew() -> None:
    """The same numbers whichever tests ran before."""
    NUMBERS.bit_generator.state = np.random.default_rng(1).bit_generator.state


def uniform(*shape: int) -> np.ndarray:
    return NUMBERS.random(shape, np.float32)


class Device:
    """A program on a GPU: its arrays go there and come back."""

    def __init__(self, gpu: Gpu, name: str, **options: Any) -> None:
        self.gpu = gpu
        self.module = gpu.load(FOLDER / name, **options)

    def launch(self, kernel: str, grid: Any, block: Any, *arguments: Any, shared: int = 0) -> list[np.ndarray]:
        """Launch with copies of the arrays; returns what stands in these then."""
        there = [self.gpu.to_device(each) if isinstance(each, np.ndarray) else each for each in arguments]
        self.module.launch(kernel, grid, block, there, shared_bytes=shared)
        return [self.gpu.from_device(each) for each in there if isinstance(each, Buffer)]


# ------------------------------------------------------------------------------------------------------------- rodinia


def test_the_cheapest_path_through_a_grid(gpu: Gpu) -> None:
    width, rows, margin = 300, 8, 8
    energy = NUMBERS.integers(256, size=(rows + 1, width), dtype=np.int32)
    useful = 128 - 2 * margin
    _, _, cost = Device(gpu, "rodinia/seam.cu").launch(
        "advance", -(-width // useful), 128, energy, energy[0].copy(), np.zeros(width, np.int32), width, 1, rows, margin
    )
    expected = energy[0]
    for row in energy[1:]:
        padded = np.pad(expected, 1, constant_values=1 << 30)
        expected = row + np.min([padded[:-2], padded[1:-1], padded[2:]], axis=0)
    assert (cost == expected).all()


def test_heat_in_a_slab(gpu: Gpu) -> None:
    nz, ny, nx, k, loss, ambient = 4, 10, 40, 0.12, 0.002, 45.0
    field, source = 40 + 10 * uniform(nz, ny, nx), uniform(nz, ny, nx)
    *_, out = Device(gpu, "rodinia/heatslab.cu").launch(
        "heat_step", (2, 2), (32, 8), field, source, np.zeros_like(field), nx, ny, nz, k, loss, ambient
    )
    padded = np.pad(field, 1, mode="edge")
    middle, shifts = (slice(1, -1),) * 3, (slice(None, -2), slice(2, None))
    neighbours = sum(padded[(*middle[:axis], shift, *middle[axis + 1 :])] for axis in range(3) for shift in shifts)
    assert np.allclose(out, field + k * (neighbours - 6 * field) + source - loss * (field - ambient), rtol=1e-5)


def test_components_of_a_graph(gpu: Gpu) -> None:
    """The program's loop of launches, in Python: chains of ten vertices each."""
    n = 200
    edges = [[other for other in (v - 1, v + 1) if 0 <= other < n and other // 10 == v // 10] for v in range(n)]
    degrees = np.array([len(own) for own in edges])
    vertices = np.stack([np.cumsum(degrees) - degrees, degrees], 1).astype(np.int32)
    device = Device(gpu, "rodinia/components.cu")
    there = [gpu.to_device(each) for each in (vertices, np.concatenate(edges).astype(np.int32))]
    label, active, following = gpu.empty(n, np.int32), gpu.empty(n, np.bool_), gpu.empty(n, np.bool_)
    device.launch("Start", 1, 256, label, active, following, n)
    more, rounds = True, 0
    while more:
        device.launch("Sink", 1, 256, *there, label, active, following, n)
        *_, found = device.launch("Turn", 1, 256, active, following, np.zeros(1, np.bool_), n)
        more, rounds = bool(found[0]), rounds + 1
    assert (gpu.from_device(label) == np.arange(n) // 10 * 10).all() and rounds >= 2


@pytest.mark.parametrize("in_shared", [1, 0])
def test_buckets_are_sorted(gpu: Gpu, in_shared: int) -> None:
    keys, buckets = uniform(1500), 64
    device = Device(gpu, "rodinia/bucketsort.cu", define=[f"HISTOGRAM_IN_SHARED={in_shared}"])
    _, counts = device.launch("histogram", 3, 128, keys, np.zeros(buckets, np.uint32), 0.0, 64.0, keys.size)
    offsets = np.concatenate([[0], counts.cumsum()]).astype(np.uint32)
    _, placed, _ = device.launch(
        "scatter", 12, 128, keys, np.zeros_like(keys), offsets[:-1].copy(), 0.0, 64.0, keys.size
    )
    result, _, overflow = device.launch("sort_buckets", buckets, 128, placed, offsets, np.zeros(1, np.int32))
    assert (result == np.sort(keys)).all() and overflow[0] == 0


# ------------------------------------------------------------------------------------------------------------- parboil


@pytest.mark.parametrize("path", ["readonly", "texture"])
def test_a_sparse_matrix_in_jagged_diagonals(gpu: Gpu, path: str) -> None:
    n = 96
    dense = np.where(NUMBERS.random((n, n)) < 0.1, uniform(n, n), np.float32(0))
    lengths = (dense != 0).sum(1)
    order = np.argsort(-lengths, kind="stable")
    columns = [np.flatnonzero(dense[row]) for row in order]
    values, indices, starts = [], [], [0]
    for k in range(lengths.max()):
        values += [dense[row, own[k]] for row, own in zip(order, columns, strict=True) if k < len(own)]
        indices += [own[k] for own in columns if k < len(own)]
        starts.append(len(values))
    x = uniform(n)
    device = Device(gpu, "parboil/spmv.cu")
    device.module.set_symbol("diagonal_start", np.array(starts, np.int32))
    device.module.set_symbol("longest_row", lengths[order[::32]].astype(np.int32))
    vector = gpu.texture(x) if path == "texture" else gpu.to_device(x)
    number = vector.handle if path == "texture" else vector.address  # type: ignore[union-attr]
    result, *_ = device.launch(
        f"spmv_jds<Path::{path}>", 3, 32, np.zeros(n, np.float32), np.array(values, np.float32),
        np.array(indices, np.int32), order.astype(np.int32), number.to_bytes(8, "little"), n,
    )  # fmt: skip
    assert np.allclose(result, dense @ x, rtol=1e-5)


@pytest.mark.parametrize("naive", [False, True])
def test_a_stencil_that_a_macro_chooses(gpu: Gpu, naive: bool) -> None:
    nz, ny, nx, c0, c1 = 5, 9, 70, 0.5, 0.25
    box = uniform(nz, ny, nx)
    device = Device(gpu, "parboil/stencil.cu", define=["NAIVE"] if naive else [])
    shape, shared = (((ny - 2, nz - 2), 64), 0) if naive else (((2, 3), (32, 4)), 1024)
    _, result = device.launch("sweep", *shape, c0, c1, box, np.zeros_like(box), nx, ny, nz, shared=shared)
    around = sum(np.roll(box, by, axis) for axis in range(3) for by in (1, -1))
    inner = (slice(1, -1),) * 3
    expected = np.zeros_like(box)
    expected[inner] = (around * c1 - box * c0)[inner]
    assert np.allclose(result, expected, rtol=1e-5, atol=1e-6)


def test_a_histogram_that_saturates(gpu: Gpu) -> None:
    bins, size = 4096, 3000
    data = np.where(NUMBERS.random(size) < 0.3, 77, NUMBERS.integers(bins, size=size)).astype(np.uint32)
    device = Device(gpu, "parboil/histo.cu")
    zeros = np.zeros(24 * 1024, np.uint32)
    _, overflow, partial = device.launch("count_bins", 1, 512, data, size, zeros, zeros, 0, shared=24 * 1024)
    *_, out = device.launch("saturate_bins", 2, 256, partial, overflow, bins, np.zeros(bins, np.uint8))
    counts = np.bincount(data, minlength=bins)
    assert counts.max() > 255 and (out == np.minimum(counts, 255)).all()


def test_sums_of_absolute_differences(gpu: Gpu) -> None:
    size, reach = 16, 8
    frame, ref = NUMBERS.integers(256, size=(2, size, size), dtype=np.int16)
    span, across = 2 * reach + 1, size // 4
    device = Device(gpu, "parboil/sad.cu")
    small, *_ = device.launch(
        "sad_4x4", (across, across), 64, np.zeros((across**2, span**2), np.uint16), frame, ref, size, size
    )
    padded = np.pad(ref, reach, mode="edge").astype(int)
    moved = [abs(frame - padded[y : y + size, x : x + size]) for y in range(span) for x in range(span)]
    blocks = np.array(moved).reshape(-1, across, 4, across, 4).sum((2, 4))
    assert (small == blocks.reshape(span**2, -1).T).all()
    _, large = device.launch(
        "sad_merge", (across // 2,) * 2, 64, small, np.zeros((across**2 // 4, span**2), np.uint16), across
    )
    assert (large == blocks.reshape(-1, across // 2, 2, across // 2, 2).sum((2, 4)).reshape(span**2, -1).T).all()


def test_the_q_matrix(gpu: Gpu) -> None:
    voxels, n = 64, 9
    k, place, power = uniform(n, 3) - 0.5, uniform(3, voxels) - 0.5, uniform(n)
    device = Device(gpu, "parboil/mriq.cu")
    device.module.set_symbol("ck", np.concatenate([k, power[:, None]], 1).astype(np.float32))
    zeros = np.zeros(voxels, np.float32)
    *_, real, imaginary = device.launch("q_kernel", 1, 64, n, 0, *(each.copy() for each in place), zeros, zeros)
    expected = power @ np.exp(2j * np.pi * (k.astype(float) @ place))
    assert np.allclose(real + 1j * imaginary, expected, atol=1e-4)


# ----------------------------------------------------------------------------------------------------------- polybench


@pytest.mark.parametrize("kind", [np.float32, np.float64])
def test_kernels_that_a_macro_defines(gpu: Gpu, kind: Any) -> None:
    n = 64
    a, x, y = NUMBERS.random((n, n)).astype(kind), NUMBERS.random(n).astype(kind), NUMBERS.random(n).astype(kind)
    device = Device(gpu, "polybench/mvt.cu", define=[f"N={n}"])
    word = {np.float32: "float", np.float64: "double"}[kind]
    for kernel, grid, matrix in ((f"mvt_rows_{word}", 1, a), (f"mvt_columns_{word}", 1, a.T),
                                 (f"mvt_warp<{word}>", 32, a)):  # fmt: skip
        _, result, _ = device.launch(kernel, grid, 64, a, x, y)
        assert np.allclose(result, x + matrix @ y, rtol=1e-5), kernel


def test_correlation(gpu: Gpu) -> None:
    observations, variables = 32, 16
    data = NUMBERS.random((observations, variables))
    device = Device(gpu, "polybench/correlation.cu", define=["MINI_DATASET"])
    mean, _ = device.launch("mean_kernel", 1, 64, np.zeros(variables), data)
    _, deviation, _ = device.launch("std_kernel", 1, 64, mean, np.zeros(variables), data)
    *_, scaled = device.launch("reduce_kernel", (1, 2), (16, 16), mean, deviation, data)
    result, _ = device.launch("corr_kernel", 1, (16, 16), np.zeros((variables, variables)), scaled)
    assert np.allclose(result, np.corrcoef(data, rowvar=False))


# ----------------------------------------------------------------------------------------------------------------- sdk


def test_a_separable_filter(gpu: Gpu) -> None:
    height, width, weights = 40, 100, uniform(17)
    picture = uniform(height, width)
    device = Device(gpu, "sdk/separableFilter.cu")
    device.module.set_symbol("c_Weights", weights)
    rows, _ = device.launch("filterRows", (2, 10), (16, 4), np.zeros_like(picture), picture, width, height, width)
    result, _ = device.launch("filterColumns", (7, 2), (16, 8), np.zeros_like(picture), rows, width, height, width)
    for axis in (1, 0):
        picture = np.apply_along_axis(lambda line: np.convolve(line, weights, "same"), axis, picture)
    assert np.allclose(result, picture, rtol=1e-4)


@pytest.mark.parametrize("kernel", ["compact_threads<Wanted>", "compact_warps<Wanted>", "compact_coalesced<Wanted>"])
def test_events_are_selected(gpu: Gpu, kernel: str) -> None:
    """A predicate of two words by value; bit-fields; in no order."""
    channel, valid = NUMBERS.integers(256, size=500), NUMBERS.integers(2, size=500)
    events = (np.arange(500) | channel << 20 | valid << 31).astype(np.uint32)
    device = Device(gpu, "sdk/streamCompaction.cu")
    _, out, count = device.launch(kernel, 4, 128, events, 500, np.zeros_like(events), np.zeros(1, np.uint32),
                                  np.array([50, 150], np.uint32).tobytes())  # fmt: skip
    kept = events[(valid == 1) & (channel >= 50) & (channel <= 150)]
    assert count[0] == kept.size and (np.sort(out[: kept.size]) == np.sort(kept)).all()


def test_events_keep_their_order(gpu: Gpu) -> None:
    events = (np.arange(300) | (1 << 31)).astype(np.uint32)
    device = Device(gpu, "sdk/streamCompaction.cu")
    _, out, count = device.launch("compact_ordered<Wanted, 64>", 1, 64, events, 300, np.zeros_like(events),
                                  np.zeros(1, np.uint32), np.array([0, 0], np.uint32).tobytes())  # fmt: skip
    assert count[0] == 300 and (out == events).all()


def test_a_picture_is_rotated(gpu: Gpu) -> None:
    """By a quarter: a texture with filter and wrap, and a matrix by value; the surface takes bytes."""
    n = 16
    picture = uniform(n, n)
    device = Device(gpu, "sdk/rotateTexture.cu")
    quarter = np.array([[0, -1], [1, 0]], np.float32).tobytes()
    texture = gpu.texture(picture, filter="linear", address="wrap", normalized=True)
    (out,) = device.launch("rotateKernel", (2, 2), (8, 8), np.zeros_like(picture), n, n, quarter, texture)
    assert np.allclose(out, np.rot90(picture, 1), atol=1e-2)
    surface = gpu.texture(np.zeros((n, n), np.uint8))
    device.launch("quantise", (2, 2), (8, 8), out, surface, n, n)
    assert (gpu.from_device(surface.texels) == (out * 255 + np.float32(0.5)).astype(np.uint8)).all()


@pytest.mark.parametrize("kind", [np.float32, np.float64])
def test_gravity_of_all_pairs(gpu: Gpu, kind: Any) -> None:
    n, step, softening = 70, 0.01, 0.1
    bodies, velocity = NUMBERS.random((n, 4)).astype(kind), np.zeros((n, 4), kind)
    device = Device(gpu, "sdk/nbody.cu")
    symbol = "nbody::softeningSquared" if kind == np.float32 else "nbody::softeningSquared_fp64"
    device.module.set_symbol(symbol, kind(softening))
    word = "float" if kind == np.float32 else "double"
    after, _, speed = device.launch(f"nbody::integrate<{word}>", 2, 64, np.zeros_like(bodies), bodies, velocity, n,
                                    kind(step), kind(1), shared=64 * bodies.itemsize * 4)  # fmt: skip
    apart = bodies[None, :, :3] - bodies[:, None, :3]
    pull = bodies[None, :, 3] * ((apart**2).sum(2) + softening) ** -1.5
    expected = step * (apart * pull[:, :, None]).sum(1)
    assert np.allclose(speed[:, :3], expected, rtol=1e-3)
    assert np.allclose(after[:, :3], bodies[:, :3] + step * expected, rtol=1e-5)


@pytest.mark.parametrize("kernel", ["interleaved<int>", "unrolled<int, 64, false>", "grouped<int>"])
def test_reductions(gpu: Gpu, kernel: str) -> None:
    values = NUMBERS.integers(-1000, 1000, size=500, dtype=np.int32)
    grid = 8 if kernel.startswith("inter") else 3
    _, sums = Device(gpu, "sdk/reduction.cu").launch(
        kernel, grid, 64, values, np.zeros(grid, np.int32), 500, shared=256
    )
    assert sums.sum() == values.sum()
