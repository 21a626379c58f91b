"""References of PolyBench's linear algebra against plain loops over the same inputs."""

from __future__ import annotations

import math

import numpy as np
import pytest

from lockstep.verif.sim.kernels.test_kernels import same, tiny


def product(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """In float64, one element after the other."""
    result = np.zeros((len(a), b.shape[1]))
    for i, j in np.ndindex(result.shape):
        result[i, j] = sum(float(a[i, k]) * float(b[k, j]) for k in range(len(b)))
    return result


def times(a: np.ndarray, x: np.ndarray) -> np.ndarray:
    return product(a, x[:, None])[:, 0]


def columns(data: np.ndarray) -> list[list[float]]:
    return [[float(value) for value in column] for column in data.T]


def test_atax() -> None:
    data = tiny("atax")
    tmp = times(data["a"], data["x"])
    same("atax", {"tmp": tmp.astype(np.float32), "y": times(data["a"].T, tmp).astype(np.float32)})


def test_bicg() -> None:
    data = tiny("bicg")
    s, q = times(data["a"].T, data["r"]), times(data["a"], data["p"])
    same("bicg", {"s": s.astype(np.float32), "q": q.astype(np.float32)})


def test_mvt() -> None:
    data = tiny("mvt")
    x1 = data["x1"] + times(data["a"], data["y1"])
    x2 = data["x2"] + times(data["a"].T, data["y2"])
    same("mvt", {"x1": x1.astype(np.float32), "x2": x2.astype(np.float32)})


def test_syrk() -> None:
    data = tiny("syrk")
    c = 1.5 * product(data["a"], data["a"].T) + 1.25 * data["c"]
    same("syrk", {"c": c.astype(np.float32)})


def test_syr2k() -> None:
    data = tiny("syr2k")
    c = 1.5 * product(data["a"], data["b"].T) + 1.5 * product(data["b"], data["a"].T) + 1.25 * data["c"]
    same("syr2k", {"c": c.astype(np.float32)})


def test_2mm() -> None:
    data = tiny("2mm")
    c = product(data["a"], data["b"])
    same("2mm", {"c": c.astype(np.float32), "e": product(c, data["d"]).astype(np.float32)})


def test_3mm() -> None:
    data = tiny("3mm")
    e, f = product(data["a"], data["b"]), product(data["c"], data["d"])
    outputs = {"e": e, "f": f, "g": product(e, f)}
    same("3mm", {name: array.astype(np.float32) for name, array in outputs.items()})


def test_corr() -> None:
    values = columns(tiny("corr")["data"])
    means = [sum(column) / len(column) for column in values]
    deviations = [
        math.sqrt(sum((value - mean) ** 2 for value in column) / len(column))
        for column, mean in zip(values, means, strict=True)
    ]
    matrix = np.empty((len(values), len(values)), np.float32)
    for j, k in np.ndindex(matrix.shape):
        pairs = zip(values[j], values[k], strict=True)
        covariance = sum((a - means[j]) * (b - means[k]) for a, b in pairs) / len(values[j])
        matrix[j, k] = covariance / (deviations[j] * deviations[k])
    assert np.ptp(matrix) > 0.5  # columns correlate, and not all alike
    mean, deviation = (np.array(array, np.float32) for array in (means, deviations))
    same("corr", {"mean": mean, "deviation": deviation, "correlation": matrix})


def test_covar() -> None:
    values = columns(tiny("covar")["data"])
    means = [sum(column) / len(column) for column in values]
    matrix = np.empty((len(values), len(values)), np.float32)
    for j, k in np.ndindex(matrix.shape):
        pairs = zip(values[j], values[k], strict=True)
        matrix[j, k] = sum((a - means[j]) * (b - means[k]) for a, b in pairs)
    same("covar", {"mean": np.array(means, np.float32), "covariance": matrix})


@pytest.mark.parametrize("name", ["corr", "covar"])
def test_deviations_are_not_small(name: str) -> None:
    """PolyBench counts deviations below 0.005 as 1, which the references leave out."""
    assert tiny(name)["data"].std(axis=0).min() > 0.01
