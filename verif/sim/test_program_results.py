"""Whole CUDA programs that run as they stand: what kernels compute, against NumPy. ``test_programs`` loads all."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from lockstep.sim import Gpu, UsageError
from lockstep.sim.device.buffers import Buffer
from lockstep.verif.conftest import partly

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


def test_every_program_has_a_result() -> None:
    """Here, or beside the loader's tests."""
    texts = "".join(
        (Path(__file__).parent / name).read_text(encoding="utf-8") for name in ("test_programs.py", Path(__file__).name)
    )
    used = re.findall(r'(?:load\(FOLDER / |Device\(gpu, )"([\w/]+\.cu)"', texts)
    assert set(used) == {str(path.relative_to(FOLDER)) for path in FOLDER.glob("*/*.cu")}


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


def test_forces_in_cells(gpu: Gpu) -> None:
    """Eight cells, each next to all others; structs with unions and arrays, by value and in memory."""
    side, per_cell, cutoff, stiffness = 2, 48, 0.7, 3.0
    neighbour = np.dtype([("cell", "i4"), ("away", "i1", 3), ("", "i1")])
    cell = np.dtype([("at", "i4", 3), ("start", "i4"), ("count", "i4"), ("neighbours", neighbour, 26)])
    cells = np.zeros(side**3, cell)
    cells["at"] = np.argwhere(np.ones((side,) * 3))[:, ::-1]
    cells["start"], cells["count"] = np.arange(side**3) * per_cell, side**3 - 1
    for k in range(side**3):
        cells["neighbours"]["cell"][k, : side**3 - 1] = [other for other in range(side**3) if other != k]
    place = np.repeat(cells["at"], per_cell, 0) + uniform(cells.size * per_cell, 3)
    particles = np.concatenate([place, 0.5 + uniform(len(place), 1)], 1).astype(np.float32)
    world = np.array([side, side**3], np.int32).tobytes() + np.array([cutoff, stiffness], np.float32).tobytes()
    *_, out = Device(gpu, "rodinia/cellforces.cu").launch(
        "forces", side**3, 64, world, cells.view(np.uint8), particles, np.zeros((len(place), 3), np.float32)
    )
    apart = particles[:, None, :3] - particles[None, :, :3]
    far = np.sqrt((apart**2).sum(2, keepdims=True))
    near = (far > 0) & (far < cutoff)
    charge = (particles[:, None, 3:] * particles[None, :, 3:]) * near
    expected = (stiffness * charge * (cutoff - far) / np.where(near, far, 1) * apart).sum(1)
    assert np.allclose(out, expected, rtol=1e-3, atol=1e-3)


def test_a_picture_without_speckles(gpu: Gpu) -> None:
    rows, cols, lam, threads = 9, 20, 0.5, 64
    grey = NUMBERS.integers(40, 220, size=(rows, cols), dtype=np.uint8)
    device = Device(gpu, "rodinia/despeckle.cu", define=[f"RD_WG_SIZE_0={threads}"])
    blocks, n, zeros = -(-grey.size // threads), grey.size, np.zeros((rows, cols), np.float32)
    _, image = device.launch("widen", blocks, threads, grey, zeros, n)
    assert np.allclose(image, np.exp(grey / 255), rtol=1e-5)
    _, sums, squares = device.launch("moments", blocks, threads, image, *np.zeros((2, blocks), np.float32), n)
    assert np.allclose([sums.sum(), squares.sum()], [image.sum(), (image**2).sum()], rtol=1e-5)
    q0 = float(image.var() / image.mean() ** 2)
    _, coefficient = device.launch("diffuse", blocks, threads, image, zeros, rows, cols, q0)
    around = np.pad(image, 1, mode="edge")
    north, south, west, east = around[:-2, 1:-1], around[2:, 1:-1], around[1:-1, :-2], around[1:-1, 2:]
    each = np.array([north, south, west, east]) - image
    slope, curve = (each**2).sum(0) / image**2, each.sum(0) / image
    q = (0.5 * slope - curve**2 / 16) / (1 + 0.25 * curve) ** 2
    assert np.allclose(coefficient, np.clip(1 / (1 + (q - q0) / (q0 * (1 + q0))), 0, 1), rtol=1e-3, atol=1e-5)
    *_, out = device.launch("smooth", blocks, threads, image, coefficient, zeros, rows, cols, lam)
    further = np.pad(coefficient, 1, mode="edge")
    flow = coefficient * (north + west - 2 * image) + further[2:, 1:-1] * each[1] + further[1:-1, 2:] * each[3]
    assert np.allclose(out, image + 0.25 * lam * flow, rtol=1e-4)


def test_a_gas_on_a_ring(gpu: Gpu) -> None:
    """Each cell has two others beside it, the far field above and a wall below."""
    n, gamma = 70, 1.4
    far = np.array([1.4, 0.84, 0, 0, 2.752], np.float32)
    normals = np.zeros((4, 3, n), np.float32)
    normals[:, :2] = np.array([[1, 0], [-1, 0], [0, 1], [0, -1]])[:, :, None]
    neighbours = np.array([np.roll(np.arange(n), -1), np.roll(np.arange(n), 1), *np.full((2, n), -1)], np.int32)
    neighbours[2] = -2
    areas, zeros = 1 + uniform(n), np.zeros((5, n), np.float32)
    device = Device(gpu, "rodinia/gasflow.cu")
    device.module.set_symbol("far_state", far)
    (field,) = device.launch("start_field", 2, 64, n, zeros)
    assert np.allclose(field[:4], far[:4, None]) and np.allclose(field[4, :7] / far[4], [1, 1, 1, 1.1, 1, 1, 1])
    v = (field * (1 + 0.1 * uniform(5, n))).astype(np.float32)

    def of(v: Any) -> tuple[Any, ...]:
        pressure = (gamma - 1) * (v[4] - 0.5 * (v[1:4] ** 2).sum(0) / v[0])
        return v[1:4] / v[0], pressure, np.sqrt(gamma * pressure / v[0])

    speed, p, sound = of(v)
    _, _, factors = device.launch("local_step", 2, 64, n, v, areas, np.zeros(n, np.float32))
    assert np.allclose(factors, 0.25 / (np.sqrt(areas) * (np.sqrt((speed**2).sum(0)) + sound)), rtol=1e-5)
    *_, fluxes = device.launch("residual", 2, 64, n, neighbours, normals, v, zeros)
    expected = np.zeros((5, n))
    for o, normal in ((np.roll(v, -1, 1), normals[0]), (np.roll(v, 1, 1), normals[1]), (far[:, None], normals[2])):
        other, q, loud = of(o)
        un, vn = (speed * normal).sum(0), (other * normal).sum(0)
        push = np.concatenate([np.zeros((1, n)), (p + q) * normal, [p * un + q * vn]])
        a = 0.5 * (abs(un) + abs(vn) + sound + loud)
        expected += -0.5 * (v * un + o * vn + push) + 0.5 * a * (o - v)
    expected[1:4] -= normals[3] * p
    assert np.allclose(fluxes, expected, atol=1e-4)
    _, after, *_ = device.launch("update", 2, 64, 1, n, v, zeros, factors, fluxes)
    assert np.allclose(after, v + factors / 3 * fluxes, rtol=1e-5)


def test_gradients_along_circles(gpu: Gpu) -> None:
    """Two texture objects, four tables of constants."""
    width, height, points, circles = 40, 12, 32, 5
    x, y = NUMBERS.random((2, height, width), np.float32) - np.float32(0.5)
    angle = 2 * np.pi * np.arange(points) / points
    offsets = [[np.trunc(turn(angle) * (7 + k)) for k in range(circles)] for turn in (np.cos, np.sin)]
    device = Device(gpu, "rodinia/gradflow.cu")
    for name, values in (("c_sin_angle", np.sin(angle)), ("c_cos_angle", np.cos(angle))):
        device.module.set_symbol(name, values.astype(np.float32))
    for name, table in zip(("c_tX", "c_tY"), offsets, strict=True):
        device.module.set_symbol(name, np.array(table, np.int32))
    textures = [gpu.texture(each) for each in (x, y)]
    (score,) = device.launch("score_kernel", (1, height), 64, *textures, np.zeros_like(x), width, height)
    row, column = np.mgrid[:height, :width]
    best = np.zeros(x.shape)
    for px, py in zip(*np.array(offsets, int), strict=True):
        at = np.clip(row[..., None] + py, 0, height - 1), np.clip(column[..., None] + px, 0, width - 1)
        values = x[at] * np.cos(angle) + y[at] * np.sin(angle)
        best = np.maximum(best, values.mean(2) ** 2 / (values.var(2, ddof=1) + 1e-6))
    assert np.allclose(score, best, rtol=1e-3, atol=1e-6)
    _, dilated = device.launch("dilate_kernel", 2, 256, score, np.zeros_like(score), width, height, 2)
    padded, disc = np.pad(score, 2), np.argwhere(np.hypot(*(np.mgrid[-2:3, -2:3])) <= 2)
    assert (dilated == np.max([padded[v : v + height, u : u + width] for v, u in disc], 0)).all()


def test_cells_of_a_membrane(gpu: Gpu) -> None:
    cells, steps, dt = 150, 12, 0.002
    y, c = 0.3 * uniform(8, cells), 1 + uniform(cells, 4)
    settings = np.array([cells, steps], np.int32).tobytes() + np.float32(dt).tobytes()
    out, _, diverged = Device(gpu, "rodinia/membrane.cu").launch("heun", 2, 128, settings, y, c, np.zeros(1, np.int32))

    def settled(v: Any, half: float, slope: float) -> Any:
        return 1 / (1 + np.exp(-(v - half) / slope))

    def slopes(t: float, y: Any) -> Any:
        v, k = y[0], c.T
        current = k[0] * y[1] * y[2] * (v - 1) + k[1] * y[3] * (v + 0.8) + k[2] * (v + 0.2)
        gates = (settled(v, -0.3, 0.1) - y[1]) * 20, (settled(-v, 0.5, 0.1) - y[2]) * 4, (settled(v, 0, 0.2) - y[3]) * 2
        chain = [k[3] * (y[i - 1] - y[i]) / (i - 2) for i in range(4, 8)]
        return np.array([(1.5 if t < 0.01 else 0) - current, *gates, *chain])

    expected = y.astype(float)
    for step in range(steps):
        first = slopes(step * dt, expected)
        second = slopes(step * dt + dt, expected + dt * first)
        expected = expected + dt * 0.5 * (first + second)
    assert diverged[0] == 0 and np.allclose(out, expected, atol=1e-5)


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


def test_samples_on_a_grid(gpu: Gpu) -> None:
    """Counted, scanned, put in order and gathered; parameters by value."""
    n, shape, reach, beta = 200, (8, 6, 4), 3.0, 0.8
    samples = uniform(n, 6) * np.array([1, 1, *(length - 1 for length in shape), 1], np.float32)
    parameters = np.array([n, *shape], np.int32).tobytes() + np.array([reach, beta], np.float32).tobytes()
    device = Device(gpu, "parboil/gridding.cu")
    bins, zeros = int(np.prod(shape)) + 1, np.zeros(n, np.uint32)
    _, place, counts = device.launch("binning_kernel", 2, 128, n, samples, zeros, np.zeros(bins, np.uint32), parameters)
    cell = samples[:, 2:5].astype(int) @ [1, shape[0], shape[0] * shape[1]]
    assert (counts == np.bincount(cell, minlength=bins)).all()
    starts, total = device.launch("scan_blocks", 1, 128, counts, np.zeros(1, np.uint32), bins)
    assert (starts == counts.cumsum() - counts).all() and total[0] == n
    starts, _ = device.launch("add_offsets", 1, 128, starts, np.zeros(1, np.uint32), bins)
    *_, ordered = device.launch("reorder_kernel", 2, 128, n, place, starts, samples, np.zeros_like(samples), parameters)
    _, _, grid, density = device.launch(
        "gather_kernel", (1, shape[1], shape[2]), 32, ordered, starts, np.zeros((bins - 1, 2), np.float32),
        np.zeros(bins - 1, np.float32), parameters,
    )  # fmt: skip
    points = np.argwhere(np.ones(shape[::-1]))[:, ::-1]
    apart = ((samples[None, :, 2:5] - points[:, None]) ** 2).sum(2)
    weight = np.where(apart < (reach / 2) ** 2, np.exp(-beta * apart), 0) * samples[:, 5]
    assert np.allclose(density, weight.sum(1), atol=1e-4) and np.allclose(grid, weight @ samples[:, :2], atol=1e-4)


def test_flow_round_an_obstacle(gpu: Gpu) -> None:
    """A kernel made of macros; the flags of a cell are bits in a float."""
    width, height, omega, cells = 64, 32, 1.2, 96 * 34
    moves = ((0, 0), (0, 1), (0, -1), (1, 0), (-1, 0), (1, 1), (-1, 1), (1, -1), (-1, -1))
    weights = [4 / 9] + 4 * [1 / 9] + 4 * [1 / 36]
    flat = np.zeros(10 * cells + 2 * 96, np.float32)
    field = flat[96:-96].reshape(10, 34, 96)[:, :height, :width]
    field[:9] = np.array(weights)[:, None, None] * (1 + 0.1 * uniform(9, height, width))
    solid, driven = NUMBERS.random((2, height, width)) < 0.1
    field[9] = (solid + 2 * driven).astype(np.uint32).view(np.float32)
    before = field[:9].astype(float)
    _, out = Device(gpu, "parboil/lbm.cu").launch("stream_collide_kernel", height, width, flat, np.zeros_like(flat))
    rho = before.sum(0)
    speed = np.einsum("ka,kyx->ayx", moves, before) / rho
    speed = np.where(driven, np.array([0.05, 0.002])[:, None, None], speed)
    for k, (dx, dy) in enumerate(moves):
        along = dx * speed[0] + dy * speed[1]
        wanted = weights[k] * rho * (1 + 3 * along + 4.5 * along**2 - 1.5 * (speed**2).sum(0))
        value = np.where(solid, before[moves.index((-dx, -dy))], (1 - omega) * before[k] + omega * wanted)
        there = out[96:-96].reshape(10, 34, 96)[k, :height, :width]
        assert np.allclose(there, np.roll(value, (dy, dx), (0, 1)), atol=1e-5), k


@pytest.mark.parametrize("same", [True, False])
def test_angles_between_points(gpu: Gpu, same: bool) -> None:
    n = 150
    points = NUMBERS.normal(size=(2, n, 3))
    points = (points / np.linalg.norm(points, axis=2, keepdims=True)).astype(np.float32)
    first, second = points[0], points[0 if same else 1]
    edges = np.cos(np.radians(10 ** (np.arange(21) / 5) / 60)).astype(np.float32)
    device = Device(gpu, "parboil/pairs.cu")
    device.module.set_symbol("bounds", edges)
    histogram, *_ = device.launch("angle_histogram", 2, 128, np.zeros(22, np.uint32), first, second, n, same)
    cosines = (first @ second.T)[np.triu_indices(n, 1) if same else ...].ravel()
    assert (histogram == np.bincount(np.searchsorted(-edges, -cosines), minlength=22)).all()


def test_the_potential_of_atoms(gpu: Gpu) -> None:
    """Atoms in constant memory; 64-bit atomics count the pairs within the cut-off."""
    shape, low, step, cutoff = (24, 6, 4), -1.0, 0.45, 2.0
    atoms = uniform(30, 4) * np.array([10, 3, 2, 1], np.float32)
    device = Device(gpu, "parboil/potential.cu")
    device.module.set_symbol("atoms_c", atoms)
    dim = np.array(shape, np.int32).tobytes() + np.array([low, low, low, step], np.float32).tobytes()
    (energy,) = device.launch("add_potential", (2, 2, 4), (16, 4), dim, len(atoms), cutoff**2, cutoff**-2,
                              np.zeros(shape[::-1], np.float32))  # fmt: skip
    points = low + step * np.argwhere(np.ones(shape[::-1]))[:, ::-1]
    apart = ((points[:, None] - atoms[None, :, :3]) ** 2).sum(2)
    each = np.where(apart < cutoff**2, atoms[:, 3] / np.sqrt(apart + 1e-6) * (1 - apart / cutoff**2) ** 2, 0)
    assert np.allclose(energy.ravel(), each.sum(1), atol=1e-4)
    assert device.module.get_symbol("pairs_within", np.uint64)[0] == (apart < cutoff**2).sum()


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


@pytest.mark.parametrize("columns", [0, 1])
def test_alternating_directions(gpu: Gpu, columns: int) -> None:
    n = 32
    a, b, x = NUMBERS.random((n, n)), 3 + NUMBERS.random((n, n)), NUMBERS.random((n, n))
    device = Device(gpu, "polybench/adi.cu", define=[f"N={n}"])
    _, pivots, half = device.launch(f"forward<{columns}>", 1, 32, a, b, x)
    _, half = device.launch(f"last<{columns}>", 1, 32, pivots, half)
    *_, result = device.launch(f"backward<{columns}>", 1, 32, a, pivots, half)
    for line in range(n):
        own = [each[:, line] if columns else each[line] for each in (a, b, x)]
        matrix = np.diag(own[1]) + np.diag(own[0][1:], 1) + np.diag(own[0][1:], -1)
        assert np.allclose(result[:, line] if columns else result[line], np.linalg.solve(matrix, own[2]))


def test_weights_of_27_points(gpu: Gpu) -> None:
    """A plane of a volume; a table of constants in device memory."""
    volume, plane = uniform(24, 32, 40), 5
    _, out = Device(gpu, "polybench/conv3d.cu").launch(
        "conv3D_kernel", (2, 8), (32, 4), volume, np.zeros_like(volume), plane
    )
    weights = np.array([[0.2, 0.5, -0.8], [-0.3, 0.6, -0.9], [0.4, 0.7, 0.1]])
    three = volume[plane - 1] + 2 * volume[plane] + volume[plane + 1]
    expected = sum(weights[j, k] * three[j : j + 30, k : k + 38] for j in range(3) for k in range(3))
    assert np.allclose(out[plane, 1:-1, 1:-1], expected, atol=1e-4) and not out[plane + 1].any()


@pytest.mark.parametrize("kind", [np.float32, np.float64])
def test_a_contraction(gpu: Gpu, kind: Any) -> None:
    a, c, plane = NUMBERS.random((4, 8, 16)).astype(kind), NUMBERS.random((16, 16)).astype(kind), 2
    device = Device(gpu, "polybench/doitgen.cu", define=["MINI_DATASET"])
    word = {np.float32: "float", np.float64: "double"}[kind]
    _, _, sums = device.launch(f"doitgen::contract<{word}>", 1, (16, 8), plane, a, c, np.zeros((8, 16), kind))
    assert np.allclose(sums, a[plane] @ c, rtol=1e-5)
    after, _ = device.launch(f"doitgen::write_back<{word}>", 1, (16, 8), plane, a, sums)
    assert (after[plane] == sums).all() and (after[:plane] == a[:plane]).all()


def test_a_field_in_time(gpu: Gpu) -> None:
    nx, ny = 12, 40
    device = Device(gpu, "polybench/fdtd2d.cu", define=["TMAX=3", f"NX={nx}", f"NY={ny}"])
    fict, ex, ey, hz = uniform(3), uniform(nx, ny + 1), uniform(nx + 1, ny), uniform(nx, ny)
    x, y, h = ex.copy(), ey.copy(), hz.copy()
    for t in range(3):
        _, ex, ey, hz = device.launch("step_ey", (2, 2), (32, 8), fict, ex, ey, hz, t)
        ex, ey, hz = device.launch("step_ex", (2, 2), (32, 8), ex, ey, hz, t)
        ex, ey, hz = device.launch("step_hz", (2, 2), (32, 8), ex, ey, hz, t)
        y[0] = fict[t]
        y[1:-1] -= 0.5 * np.diff(h, axis=0)
        x[:, 1:-1] -= 0.5 * np.diff(h, axis=1)
        h -= 0.7 * (np.diff(x, axis=1) + np.diff(y, axis=0))
    assert np.allclose(hz, h, atol=1e-4) and np.allclose(ey, y, atol=1e-4) and np.allclose(ex, x, atol=1e-4)


def test_an_orthogonal_basis(gpu: Gpu) -> None:
    n = 16
    given = uniform(n, n) + np.eye(n, dtype=np.float32)
    device = Device(gpu, "polybench/gramschmidt.cu", define=["MINI_DATASET"])
    a, r, q = given, np.zeros_like(given), np.zeros_like(given)
    for k in range(n):
        a, r = device.launch("gramschmidt_kernel1", 1, 32, a, r, k)
        a, r, q = device.launch("gramschmidt_kernel2", 1, 64, a, r, q, k)
        a, r, q = device.launch("gramschmidt_kernel3", 1, 64, a, r, q, k)
    assert np.allclose(q @ r, given, atol=1e-5) and np.allclose(q.T @ q, np.eye(n), atol=1e-3)
    assert not np.tril(r, -1).any()


def test_sweeps_over_a_plane(gpu: Gpu) -> None:
    """Two kernels for each sweep. All of them in one launch, whose grid waits for itself, is refused."""
    n, sweeps = 32, 2
    result = uniform(n, n)
    b, expected = result.copy(), result.astype(float)
    device = Device(gpu, "polybench/jacobi2d.cu", define=["MINI_DATASET"])
    with pytest.raises(UsageError, match=r"jacobi_all.* waits for all CTAs of its grid"):
        device.launch("jacobi_all", 4, 128, result, b, sweeps)
    for _ in range(sweeps):
        _, b = device.launch("jacobi_half", (1, 4), (32, 8), result, b)
        _, result = device.launch("jacobi_half", (1, 4), (32, 8), b, result)
    for _ in range(2 * sweeps):
        around = expected[:-2, 1:-1] + expected[2:, 1:-1] + expected[1:-1, :-2] + expected[1:-1, 2:]
        expected[1:-1, 1:-1] = 0.2 * (expected[1:-1, 1:-1] + around)
    assert np.allclose(result, expected, rtol=1e-4)


@pytest.mark.parametrize("tail", [False, True])
def test_triangles(gpu: Gpu, tail: bool) -> None:
    """Step by step, or all at once in shared memory."""
    n = 32
    given = uniform(n, n) + n * np.eye(n, dtype=np.float32)
    device = Device(gpu, "polybench/lu.cu", define=["MINI_DATASET"])
    if tail:
        (a,) = device.launch("lu_tail", 1, n, given)
    else:
        a = given
        for k in range(n):
            (a,) = device.launch("lu_kernel1", 1, 128, a, k)
            (a,) = device.launch("lu_kernel2", (1, 4), (32, 8), a, k)
    assert np.allclose(np.tril(a) @ (np.triu(a, 1) + np.eye(n)), given, atol=1e-4)


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


@pytest.mark.parametrize("kernel", partly((f"compact_{by}<Wanted>" for by in ("coalesced", "threads", "warps")), 3))
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


@pytest.mark.parametrize("kernel", partly(["grouped<int>", "interleaved<int>", "unrolled<int, 64, false>"], 3))
def test_reductions(gpu: Gpu, kernel: str) -> None:
    values = NUMBERS.integers(-1000, 1000, size=500, dtype=np.int32)
    grid = 8 if kernel.startswith("inter") else 3
    _, sums = Device(gpu, "sdk/reduction.cu").launch(
        kernel, grid, 64, values, np.zeros(grid, np.int32), 500, shared=256
    )
    assert sums.sum() == values.sum()


def test_words_are_mixed(gpu: Gpu) -> None:
    """As in several streams, which are one after the other here."""
    words, key = NUMBERS.integers(1 << 32, size=500, dtype=np.uint32), 17
    device = Device(gpu, "sdk/asyncPipeline.cu")
    (out,) = device.launch("mix", 2, 128, words, words.size, key)
    expected: np.ndarray = words ^ np.uint32(key)
    for _ in range(3):
        expected = expected * np.uint32(0x9E3779B1)
        expected = (expected << 13 | expected >> 19) + np.uint32(key)
    assert (out == expected).all() and device.module.get_symbol("launches", np.uint32)[0] == 1
    data, _ = device.launch("add_factor", 1, 64, np.arange(64, dtype=np.int32), np.array([5], np.int32), 3)
    assert (data == np.arange(64) + 15).all()
