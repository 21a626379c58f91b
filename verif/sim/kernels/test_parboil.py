"""References of Parboil's sad and fft against plain loops over the same inputs."""

from __future__ import annotations

import cmath

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
