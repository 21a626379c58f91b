"""References of Parboil's sad, fft, lbm and tpacf against plain loops over the same inputs."""

from __future__ import annotations

import cmath
from itertools import combinations, product

import numpy as np

from lockstep.verif.sim.kernels.test_kernels import same, tiny


def test_sad() -> None:
    data = tiny("sad")
    current, reference = (data[name].tolist() for name in ("current", "reference"))
    rows, columns = data["current"].shape
    assert rows == columns == 16
    side = 2 * data["range"] + 1
    places = [(place // side - data["range"], place % side - data["range"]) for place in range(side * side)]

    def difference(y: int, x: int, down: int, across: int) -> int:
        from_y, from_x = min(max(y + down, 0), rows - 1), min(max(x + across, 0), columns - 1)
        return abs(current[y][x] - reference[from_y][from_x])

    differences = np.array([[[difference(y, x, *place) for x in range(16)] for y in range(16)] for place in places])
    outputs = {}
    for width, height in ((4, 4), (8, 4), (4, 8), (8, 8), (16, 8), (8, 16), (16, 16)):
        blocks = [
            differences[:, y : y + height, x : x + width].sum(axis=(1, 2))
            for y in range(0, 16, height)
            for x in range(0, 16, width)
        ]
        outputs[f"{width}x{height}"] = np.array([blocks], np.uint16)
    assert places[int(outputs["16x16"][0, 0].argmin())] == (-3, 2)  # where the frame has come from
    same("sad", outputs)


def test_fft() -> None:
    """Every point as the sum that defines it."""
    signals = tiny("fft")["signals"]
    count, points, _ = signals.shape
    spectra = np.zeros((count, points, 2))
    for signal, k in np.ndindex(count, points):
        turns = (cmath.exp(-2j * cmath.pi * i * k / points) for i in range(points))
        total = sum(complex(*value) * turn for value, turn in zip(signals[signal], turns, strict=True))
        spectra[signal, k] = total.real, total.imag
    same("fft", {"spectra": spectra.astype(np.float32)})


def test_lbm() -> None:
    """Cell by cell. What leaves a plane beyond its first or last row is in the plane beside it."""
    data = tiny("lbm")
    _, nz, ny, nx = data["densities"].shape
    half = [(0, 1, 0), (1, 0, 0), (0, 0, 1), (1, 1, 0), (-1, 1, 0), (0, 1, 1), (0, 1, -1), (1, 0, 1), (1, 0, -1)]
    ways = [(0, 0, 0), *((sign * x, sign * y, sign * z) for x, y, z in half for sign in (1, -1))]
    weights = [1 / 3] + 6 * [1 / 18] + 12 * [1 / 36]
    opposite = [ways.index((-x, -y, -z)) for x, y, z in ways]

    cells = list(product(range(nz), range(ny), range(nx)))
    grid = {(k, z * ny + y, x): float(data["densities"][k, z, y, x]) for k in range(19) for z, y, x in cells}
    other = dict(grid)
    for _ in range(data["steps"]):
        for z, y, x in cells:
            f = [grid[k, z * ny + y, x] for k in range(19)]
            flags = int(data["flags"][z, y, x])
            total = sum(f)
            ux, uy, uz = (sum(way[axis] * f[k] for k, way in enumerate(ways)) / total for axis in range(3))
            if flags & 2:
                ux, uy, uz = 0.005, 0.002, 0.0
            for k, way in enumerate(ways):
                along = way[0] * ux + way[1] * uy + way[2] * uz
                settled = weights[k] * total * (1 + 3 * along + 4.5 * along**2 - 1.5 * (ux**2 + uy**2 + uz**2))
                value = f[opposite[k]] if flags & 1 else -0.95 * f[k] + 1.95 * settled
                other[k, (z + way[2]) * ny + y + way[1], x + way[0]] = value
        grid, other = other, grid
    found = np.empty_like(data["densities"])
    for k, (z, y, x) in product(range(19), cells):
        found[k, z, y, x] = grid[k, z * ny + y, x]
    assert np.abs(found - data["densities"]).max() > 1e-3  # more than the tolerance: the steps matter
    same("lbm", {"densities": found})


def test_tpacf() -> None:
    data = tiny("tpacf")
    (observed, *others), bounds = data["places"].tolist(), data["bounds"].tolist()
    within = [list(combinations(points, 2)) for points in (observed, *others)]
    pairs = within + [list(product(observed, points)) for points in others]
    histograms = np.zeros((len(pairs), 20), np.uint32)
    for histogram, chosen in zip(histograms, pairs, strict=True):
        for (x, y, z), (u, v, w) in chosen:
            cosine = float(np.float32(z * w + float(np.float32(y * v + float(np.float32(x * u))))))
            for k in range(20):
                histogram[k] += bounds[k + 1] <= cosine < bounds[k]
    assert histograms.sum() > 1000 and np.count_nonzero(histograms[0]) > 5
    same("tpacf", {"histograms": histograms})
