"""sobolQRNG: the SDK's Sobol quasirandom numbers, CTAs of 64 threads.

full has the SDK's 100 dimensions of 100,000 numbers, a CTA each. The SDK has direction numbers from a table; here the
first dimension is van der Corput's, the others have the primitive polynomials in ascending order and random odd
initial numbers.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import count, islice
from typing import TYPE_CHECKING

import numpy as np

from lockstep.sim.kernels import Data, Outputs

if TYPE_CHECKING:
    from lockstep.sim import Gpu, Module

TITLE = "Sobol quasirandom numbers"
SUITE = "CUDA SDK"
PTX = "sobol.ptx"

BITS = 32
DIMENSIONS_VECTORS_CTAS = {"tiny": (3, 300, 2), "small": (50, 20_000, 1), "full": (100, 100_000, 1)}
BLOCK = 64


def setup(size: str, seed: int) -> Data:
    """Direction numbers by dimension, whose first has the highest bit."""
    random = np.random.default_rng(seed)
    dimensions, vectors, ctas = DIMENSIONS_VECTORS_CTAS[size]
    first = [1 << (BITS - 1 - k) for k in range(BITS)]
    others = [_directions(polynomial, random) for polynomial in islice(_primitive(), dimensions - 1)]
    return {"directions": np.array([first, *others], np.uint32), "vectors": vectors, "ctas": ctas}


def _primitive() -> Iterator[int]:
    """The primitive polynomials over two elements, as bits: the powers of x are all the others of lower degree."""
    for degree in count(1):
        for polynomial in range((1 << degree) + 1, 2 << degree, 2):
            power, order = 1, 0
            while order == 0 or power != 1:
                power <<= 1
                power ^= polynomial * (power >> degree)
                order += 1
            if order == (1 << degree) - 1:
                yield polynomial


def _directions(polynomial: int, random: np.random.Generator) -> list[int]:
    degree = polynomial.bit_length() - 1
    numbers = [2 * int(random.integers(1 << k)) + 1 for k in range(degree)]  # the k-th has k + 1 bits
    for k in range(degree, BITS):
        number = numbers[k - degree]
        for term in range(1, degree + 1):
            number ^= (polynomial >> (degree - term) & 1) * numbers[k - term] << term
        numbers.append(number)
    return [number << (BITS - 1 - k) for k, number in enumerate(numbers)]


def run(gpu: Gpu, module: Module, data: Data) -> Outputs:
    dimensions, vectors = len(data["directions"]), data["vectors"]
    output = gpu.empty((dimensions, vectors), np.float32)
    args = [output, gpu.to_device(data["directions"]), np.uint32(vectors)]
    module.launch("sobolGPU_kernel", grid=(data["ctas"], dimensions), block=(BLOCK,), args=args)
    return {"numbers": gpu.from_device(output)}


def reference(data: Data) -> Outputs:
    place = np.arange(data["vectors"], dtype=np.uint32)
    gray = place ^ place >> 1
    numbers = np.zeros((len(data["directions"]), place.size), np.uint32)
    for bit, directions in enumerate(data["directions"].T):
        numbers ^= np.where(gray >> bit & 1, directions[:, None], 0).astype(np.uint32)
    return {"numbers": numbers.astype(np.float32) * np.float32(2.0**-BITS)}
