"""heartwall: Rodinia's tracking of a heart's walls: a CTA of 256 threads for each of 51 points, a launch per frame.

full has Rodinia's 609 x 590 pixels, templates of 51 x 51 and windows of 81 x 81, but two of its 20 frames. The
video is synthetic: a texture that is moved as a whole, and noise. Templates follow the points' surroundings in every
frame, where Rodinia's do in every tenth; points of the inner and of the outer wall are alike.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from lockstep.sim.kernels import Close, Data, Outputs

if TYPE_CHECKING:
    from lockstep.sim import Gpu, Module

TITLE = "points of a heart's walls, tracked through a video"
SUITE = "Rodinia"
PTX = "heartwall.ptx"
_SUMS = "float32 running sums over a window, and the difference of squares, against float64"
TOLERANCE = {"scores": Close(rtol=2e-3, atol=2e-3, reason=_SUMS)}

BLOCK = 256
KEEP = 0.87
ROWS_COLUMNS = {"tiny": (83, 97), "small": (301, 290), "full": (609, 590)}
POINTS = {"tiny": 3, "small": 51, "full": 51}
RADII_MOVE = {"tiny": (3, 7, 2), "small": (8, 14, 5), "full": (25, 40, 10)}  # of template and window
FRAMES = {"tiny": 3, "small": 2, "full": 2}


def setup(size: str, seed: int) -> Data:
    random = np.random.default_rng(seed)
    (rows, columns), points, (radius, reach, move) = ROWS_COLUMNS[size], POINTS[size], RADII_MOVE[size]
    noise = random.random((rows, columns))
    # Neighbouring pixels are alike.
    texture = sum((np.roll(noise, by, (0, 1)) for by in np.ndindex(2, 2)), np.zeros_like(noise)) / 4
    margin = radius + reach + move
    angles = 2 * np.pi * np.arange(points) / points
    walls = np.where(np.arange(points) * 5 < points * 2, 0.6, 1.0)  # 20 of 51 are on the inner one
    row = np.rint(rows / 2 + (rows / 2 - margin) * walls * np.sin(angles)).astype(np.int32)
    column = np.rint(columns / 2 + (columns / 2 - margin) * walls * np.cos(angles)).astype(np.int32)
    frames = [texture]
    for _ in range(FRAMES[size] - 1):
        by = random.integers(-move, move + 1, 2)
        frames.append(np.roll(texture, by, (0, 1)) + 0.3 * random.random((rows, columns)))
    return {
        "frames": np.array(frames, np.float32),
        "row": row,
        "column": column,
        "radius": radius,
        "reach": reach,
        "move": move,
    }


def run(gpu: Gpu, module: Module, data: Data) -> Outputs:
    frames, points = data["frames"], len(data["row"])
    sizes = np.zeros(1, "i4, i4, i4, i4, i4, f4")
    sizes[0] = (*frames.shape[1:], data["radius"], data["reach"], data["move"], KEEP)
    module.set_symbol("sizes", sizes.view(np.uint8))
    side, width = 2 * data["radius"] + 1, 2 * data["reach"] + 1
    places, padded = width + side - 1, width + 2 * side
    floats = [side**2, width**2, places**2, padded**2, padded**2, places * padded, places * padded, places**2]
    spaces = [[gpu.empty(count, np.float32).address for count in floats] for _ in range(points)]
    row, column = gpu.to_device(data["row"]), gpu.to_device(data["column"])
    score = gpu.empty(points, np.float32)
    places_of_points = gpu.to_device(np.array(spaces, np.uint64))
    outputs: dict[str, list[np.ndarray]] = {"rows": [], "columns": [], "scores": []}
    for number, frame in enumerate(frames):
        args = [gpu.to_device(frame), np.int32(number == 0), row, column, score, places_of_points]
        module.launch("track", grid=(points,), block=(BLOCK,), args=args)
        if number > 0:
            for name, buffer in zip(outputs, (row, column, score), strict=True):
                outputs[name].append(gpu.from_device(buffer))
    return {name: np.array(values) for name, values in outputs.items()}


def reference(data: Data) -> Outputs:
    frames = data["frames"].astype(np.float64)
    count, points = len(frames) - 1, len(data["row"])
    rows, columns, scores = (np.empty((count, points), kind) for kind in (np.int32, np.int32, np.float32))
    for point, (row, column) in enumerate(zip(data["row"], data["column"], strict=True)):
        pattern = _around(frames[0], row, column, data["radius"])
        for number, frame in enumerate(frames[1:]):
            likeness = _likeness(pattern, _around(frame, row, column, data["reach"]))
            centre, move = data["radius"] + data["reach"], data["move"]
            near = likeness[centre - move : centre + move + 1, centre - move : centre + move + 1]
            down, right = np.unravel_index(near.argmax(), near.shape)
            row, column = row + down - move, column + right - move
            pattern = KEEP * pattern + (1 - KEEP) * _around(frame, row, column, data["radius"])
            rows[number, point], columns[number, point], scores[number, point] = row, column, near.max()
    return {"rows": rows, "columns": columns, "scores": scores}


def _around(frame: np.ndarray, row: int, column: int, radius: int) -> np.ndarray:
    return frame[row - radius : row + radius + 1, column - radius : column + radius + 1]


def _likeness(pattern: np.ndarray, window: np.ndarray) -> np.ndarray:
    """Normalised cross-correlation at every place where they overlap; the window is zero outside."""
    padded = np.pad(window, len(pattern) - 1)
    patches = np.lib.stride_tricks.sliding_window_view(padded, pattern.shape)
    sums, squares = patches.sum(axis=(2, 3)), np.einsum("pqij,pqij->pq", patches, patches)
    covariance = np.einsum("pqij,ij->pq", patches, pattern) - sums * pattern.mean()
    return covariance / np.sqrt((squares - sums**2 / pattern.size) * ((pattern - pattern.mean()) ** 2).sum())
