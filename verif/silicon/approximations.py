"""How far results of approximate instructions may lie from a GPU's."""

from __future__ import annotations

import math

import numpy as np

from lockstep.verif.models.execution.promised import PROMISED
from lockstep.verif.silicon.cases import Case

LEAST_NORMAL = 2.0**-126
FAR = 2 * math.pi  # beyond, sines and cosines have larger errors
HALVES = {"f16x2": "f16", "bf16x2": "bf16"}


def is_approximate(name: str) -> bool:
    return ".approx." in name or ".full." in name


def error(case: Case, operands: list[np.ndarray], got: np.ndarray, wanted: np.ndarray) -> np.ndarray:
    """Distances, as parts of what is allowed: what PTX promises of the one, and a unit in the last place of the other.

    Infinite where one of two results is a NaN or an infinity.
    """
    if case.result in HALVES:
        parts = [[array >> np.uint64(shift) & np.uint64(0xFFFF) for array in (got, wanted)] for shift in (0, 16)]
        half = Case(case.name.removesuffix("x2"), case.sources, HALVES[case.result], case.text)
        return np.maximum(*(error(half, operands, *each) for each in parts))
    absolute, relative, units = PROMISED[case.name.replace(".ftz", "")]
    if ".ftz" in case.name:  # where one is flushed, and the other has just not to be
        absolute += LEAST_NORMAL
    with np.errstate(all="ignore"):
        a, b = (_values(case.result, array) for array in (got, wanted))
        distance = np.abs(a - b) / (absolute + relative * np.abs(b) + (units + 1) * _unit(case.result, b))
        if case.name[:3] in ("sin", "cos"):
            distance[np.abs(_values("f32", operands[0])) > FAR] = 0
    distance[got == wanted] = 0
    return np.where(np.isnan(distance), np.inf, distance)


def _values(kind: str, bits: np.ndarray) -> np.ndarray:
    """Bits as numbers."""
    if kind == "f64":
        return bits.view(np.float64)
    if kind == "f16":
        return bits.astype(np.uint16).view(np.float16).astype(np.float64)
    return (bits.astype(np.uint32) << (16 if kind == "bf16" else 0)).view(np.float32).astype(np.float64)


def _unit(kind: str, values: np.ndarray) -> np.ndarray:
    """A unit in the last place. Results of f64 have only upper words, or nearly all bits."""
    if kind == "f64":
        return np.zeros_like(values)
    dtype = np.float16 if kind == "f16" else np.float32
    return np.spacing(np.abs(values).astype(dtype)).astype(np.float64) * (2.0**16 if kind == "bf16" else 1)
