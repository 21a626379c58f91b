"""quasirandomGenerator: the SDK's Niederreiter numbers of base 2 in three dimensions, CTAs of 128 x 3 threads.

full has the SDK's 2^20 numbers per dimension and 128 CTAs; those of tiny are of 32 x 3 threads.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from lockstep.sim.kernels import Data, Outputs

if TYPE_CHECKING:
    from lockstep.sim import Gpu, Module

TITLE = "Niederreiter quasirandom numbers"
SUITE = "CUDA SDK"
PTX = "quasirandom.ptx"

BITS = 31
POLYNOMIALS = 0b10, 0b11, 0b111  # irreducible, one per dimension: x, x + 1, x^2 + x + 1
COUNT_CTAS_BLOCK = {"tiny": (140, 2, 32), "small": (40_000, 128, 128), "full": (1 << 20, 128, 128)}


def setup(size: str, seed: int) -> Data:
    first = int(np.random.default_rng(seed).integers(1, 1 << 16))
    return {"first": first, **dict(zip(("count", "ctas", "block"), COUNT_CTAS_BLOCK[size], strict=True))}


def _table() -> np.ndarray:
    """What each bit of a place adds, by dimension.

    Digit j of a number takes the coefficients of x^u / p^(q + 1) as a series in 1 / x, where q and u are the quotient
    and the rest of j by the degree of p.
    """
    table = np.zeros((len(POLYNOMIALS), BITS), np.uint32)
    for directions, polynomial in zip(table, POLYNOMIALS, strict=True):
        degree = polynomial.bit_length() - 1
        for digit in range(BITS):
            divisor = 1
            for _ in range(digit // degree + 1):
                divisor = _product(divisor, polynomial)
            top, rest = divisor.bit_length() - 1, 1 << digit % degree
            for bit in range(BITS):
                rest <<= 1
                if coefficient := rest >> top & 1:
                    rest ^= divisor
                directions[bit] |= coefficient << (BITS - 1 - digit)
    return table


def _product(a: int, b: int) -> int:
    """Of polynomials over two elements."""
    total = 0
    while b:
        total ^= a * (b & 1)
        a, b = a << 1, b >> 1
    return total


def run(gpu: Gpu, module: Module, data: Data) -> Outputs:
    module.set_symbol("table", _table())
    output = gpu.empty((len(POLYNOMIALS), data["count"]), np.float32)
    args = [output, np.uint32(data["first"]), np.uint32(data["count"])]
    block = (data["block"], len(POLYNOMIALS))
    module.launch("quasirandomGeneratorKernel", grid=(data["ctas"],), block=block, args=args)
    return {"numbers": gpu.from_device(output)}


def reference(data: Data) -> Outputs:
    place = data["first"] + np.arange(data["count"], dtype=np.int64)
    numbers = np.zeros((len(POLYNOMIALS), data["count"]), np.int64)
    for bit, directions in enumerate(_table().T):
        numbers ^= (place >> bit & 1) * directions[:, None].astype(np.int64)
    return {"numbers": (numbers + 1).astype(np.float32) * np.float32(1 / (2**BITS + 1))}
