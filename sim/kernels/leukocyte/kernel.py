"""leukocyte: Rodinia's white blood cells: GICOV scores, their dilation (CTAs of 176 threads), and IMGVF (320 threads).

GICOV has a CTA per column of a frame and a thread per row (175 in full). full has Rodinia's cropped frame of 219 x 640
pixels, seven circles, a disk of radius 12, and 36 cells of 41 x 81 pixels, but 20 of up to 500 iterations. steady has
the first 150 columns of GICOV, 160 CTAs of the dilation, and two iterations. The frame and the cells are synthetic; all
cells have the same size, the first is so flat that tiny's converges at once, and double literals are float.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from lockstep.sim.kernels import Close, Data, Outputs

if TYPE_CHECKING:
    from lockstep.sim import Gpu, Module

TITLE = "white blood cells in a video: detection, and a field that follows edges"
SUITE = "Rodinia"
PTX = "leukocyte.ptx"
_SCORES = Close(rtol=1e-5, atol=1e-6, reason="float32 mean and variance of 150 values of mixed sign against float64")
_FIELDS = Close(rtol=2e-6, atol=2e-6, reason="float32 and atanf, compounded over the iterations, against float64")
TOLERANCE = {"scores": _SCORES, "dilated": _SCORES, "fields": _FIELDS}

POINTS, LEAST_RADIUS = 150, 8  # of circles; each is wider than the one before by 2
DILATE_BLOCK, FIELD_BLOCK = 176, 320
UNSCORED = np.float32(0.001)  # what stands where nothing is computed; 0 in Rodinia
V, EPSILON, LAMBDA = 1.0, 1e-10, 5.0
ROWS_COLUMNS = {"tiny": (57, 26), "small": (88, 424), "full": (219, 640), "steady": (219, 640)}
CIRCLES_RADIUS = {"tiny": (2, 1), "small": (2, 4), "full": (7, 12), "steady": (7, 12)}
CELLS = {"tiny": (2, 16, 21), "small": (120, 20, 33), "full": (36, 41, 81), "steady": (36, 41, 81)}
ITERATIONS = {"tiny": 2, "small": 2, "full": 20, "steady": 2}
CUTOFF = {"tiny": 0.01}  # the mean change with which a cell has converged, where it is not 1e-5
COMPUTED = {"steady": (150, 160)}  # columns of GICOV and CTAs of the dilation, where not all of them are
SIZES = tuple(ROWS_COLUMNS)


def setup(size: str, seed: int) -> Data:
    random = np.random.default_rng(seed)
    (rows, columns), (circles, radius), (cells, height, width) = ROWS_COLUMNS[size], CIRCLES_RADIUS[size], CELLS[size]
    x, y = np.mgrid[:columns, :rows]
    frame = random.random((columns, rows))
    for _ in range(columns * rows // 1000):
        centre_x, centre_y, own_radius = random.uniform(0, columns), random.uniform(0, rows), random.uniform(8, 14)
        frame += np.hypot(x - centre_x, y - centre_y) < own_radius
    gradient_x, gradient_y = np.gradient(frame)

    x, y = np.mgrid[:height, :width]
    ring = np.exp(-(((np.hypot(x - height / 2, y - width / 2) - height / 4) / 3) ** 2))
    edges = 0.8 * ring + 0.2 * random.random((cells, height, width))
    edges[0] = 0.5 + (edges[0] - 0.5) / 20
    return {
        "gradient_x": gradient_x.astype(np.float32),
        "gradient_y": gradient_y.astype(np.float32),
        "circles": circles,
        "radius": radius,
        "edges": edges.astype(np.float32),
        "iterations": ITERATIONS[size],
        "cutoff": CUTOFF.get(size, 1e-5),
        "computed": COMPUTED.get(size, (columns - 2 * _border(circles), -(-rows * columns // DILATE_BLOCK))),
    }


def _border(circles: int) -> int:
    return LEAST_RADIUS + 2 * (circles - 1) + 2


def _circles(circles: int) -> tuple[np.ndarray, ...]:
    """Sine and cosine of the points' angles, and the points' offsets in x and y by circle."""
    angles = 2 * np.pi * np.arange(POINTS) / POINTS
    radii = LEAST_RADIUS + 2 * np.arange(circles)[:, None]
    offsets = ((radii * function(angles)).astype(np.int32) for function in (np.cos, np.sin))
    return np.sin(angles).astype(np.float32), np.cos(angles).astype(np.float32), *offsets


def _disk(radius: int) -> np.ndarray:
    away = np.arange(-radius, radius + 1)
    return (np.hypot(away[:, None], away) <= radius).astype(np.float32)


def run(gpu: Gpu, module: Module, data: Data) -> Outputs:
    (columns, rows), border = data["gradient_x"].shape, _border(data["circles"])
    for name, values in zip(("sine", "cosine", "offset_x", "offset_y"), _circles(data["circles"]), strict=True):
        module.set_symbol(name, values)
    disk = _disk(data["radius"])
    module.set_symbol("element", disk)
    scored, ctas = data["computed"]
    scores, dilated = (gpu.to_device(np.full(shape, UNSCORED)) for shape in ((columns, rows), (rows, columns)))
    gradients = gpu.texture(data["gradient_x"].ravel()), gpu.texture(data["gradient_y"].ravel())
    args = [*gradients, np.int32(rows), np.int32(border), np.int32(data["circles"]), scores]
    module.launch("gicov", grid=(scored,), block=(rows - 2 * border,), args=args)

    found = gpu.from_device(scores)
    args = [gpu.texture(found.ravel()), np.int32(rows), np.int32(columns), np.int32(len(disk)), dilated]
    module.launch("dilate", grid=(ctas,), block=(DILATE_BLOCK,), args=args)

    cells, height, width = data["edges"].shape
    fields, edges = gpu.to_device(data["edges"]), gpu.to_device(data["edges"])
    constants = [np.float32(value) for value in (V, V, EPSILON)]
    sizes = [np.int32(height), np.int32(width)]
    args = [fields, edges, *sizes, *constants, np.int32(data["iterations"]), np.float32(data["cutoff"])]
    module.launch("imgvf", grid=(cells,), block=(FIELD_BLOCK,), args=args)
    return {"scores": found, "dilated": gpu.from_device(dilated), "fields": gpu.from_device(fields)}


def reference(data: Data) -> Outputs:
    scores = _scores(data)
    radius = data["radius"]
    around = np.lib.stride_tricks.sliding_window_view(np.pad(scores, radius), (2 * radius + 1,) * 2)
    dilated = around[:, :, _disk(radius) != 0].max(axis=2)
    dilated.ravel()[data["computed"][1] * DILATE_BLOCK :] = UNSCORED
    outputs = {"scores": scores, "dilated": dilated.T, "fields": _fields(data)}
    return {name: values.astype(np.float32) for name, values in outputs.items()}


def _scores(data: Data) -> np.ndarray:
    gradient_x, gradient_y = (data[name].astype(np.float64) for name in ("gradient_x", "gradient_y"))
    (columns, rows), border = gradient_x.shape, _border(data["circles"])
    sine, cosine, offsets_x, offsets_y = _circles(data["circles"])
    scores = np.full((columns, rows), float(UNSCORED))
    part = slice(border, border + data["computed"][0]), slice(border, rows - border)
    scores[part] = 0
    for circle_x, circle_y in zip(offsets_x, offsets_y, strict=True):
        total = squares = np.zeros(scores[part].shape)
        for x, y, sin, cos in zip(circle_x, circle_y, sine.astype(np.float64), cosine.astype(np.float64), strict=True):
            at = tuple(slice(axis.start + away, axis.stop + away) for axis, away in zip(part, (x, y), strict=True))
            across = gradient_x[at] * cos + gradient_y[at] * sin
            total, squares = total + across, squares + across**2
        mean = total / POINTS
        scores[part] = np.maximum(scores[part], mean**2 / ((squares - total * mean) / (POINTS - 1)))
    return scores


def _fields(data: Data) -> np.ndarray:
    edges = data["edges"].astype(np.float64)
    field = edges.copy()
    moving = np.ones(len(edges), bool)
    for _ in range(data["iterations"]):
        old, edge = field[moving], edges[moving]
        padded = np.pad(old, ((0, 0), (1, 1), (1, 1)), mode="edge")
        flow = np.zeros_like(old)
        for down, right in np.ndindex(3, 3):
            slope = padded[:, down : down + old.shape[1], right : right + old.shape[2]] - old
            along = slope * (V * (right - 1) + V * (down - 1)) / EPSILON
            flow += slope * (np.arctan(along) / np.pi + 0.5)
        new = old + 0.5 / LAMBDA * flow
        new -= edge * (new - edge) / LAMBDA
        field[moving] = new
        moving[moving] = np.abs(new - old).mean(axis=(1, 2)) >= data["cutoff"]
    return field
