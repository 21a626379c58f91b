"""dxtc: the SDK's compression of an image to DXT1, a CTA of 64 threads per block of 4 x 4 pixels.

full has the SDK's 512 x 512 pixels, 16,384 CTAs; steady compresses the first 768 blocks, as many as in Chen table 4-3.
The image has slopes, noise and flat blocks. Results are compared exactly (see the CUDA C).
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np

from lockstep.sim.kernels import Data, Outputs

if TYPE_CHECKING:
    from lockstep.sim import Gpu, Module

TITLE = "compression of an image to DXT1"
SUITE = "CUDA SDK"
PTX = "dxtc.ptx"

THREADS, PIXELS = 64, 16
SPLITS, SPLITS_OF_3 = 992, 160
ITERATIONS = 8
ROWS_COLUMNS_CTAS = {"tiny": (4, 8, 1), "small": (32, 48, 96), "full": (512, 512, 16_384), "steady": (512, 512, 768)}
SIZES = tuple(ROWS_COLUMNS_CTAS)
FLOAT = np.float32
FIRST, MIXED_1, MIXED_2, SECOND = 0, 2, 3, 1  # a pixel's two bits, from one end of the line to the other
# Of a pixel's two bits: the share of the first end point in the unit that follows, and products of shares.
PALETTES = {
    4: (np.array([9, 0, 6, 3], FLOAT), 9, [9, 0, 4, 1], [0, 9, 1, 4], [0, 0, 2, 2]),
    3: (np.array([4, 0, 2, 2], FLOAT), 4, [4, 0, 1, 1], [0, 4, 1, 1], [0, 0, 1, 1]),
}


def setup(size: str, seed: int) -> Data:
    random = np.random.default_rng(seed)
    rows, columns, ctas = ROWS_COLUMNS_CTAS[size]
    y, x = np.mgrid[:rows, :columns]
    slopes = np.stack([x * random.random() + y * random.random() + random.random() * 100 for _ in range(3)], axis=2)
    image = (slopes % 200 + random.uniform(0, 55, slopes.shape)).astype(np.uint8)
    blocks = image.reshape(rows // 4, 4, columns // 4, 4, 3).transpose(0, 2, 1, 3, 4).reshape(-1, PIXELS, 3).copy()
    blocks[3::16] = blocks[3::16, :1]
    return {"blocks": blocks, "ctas": ctas}


def splits() -> np.ndarray:
    """All ways of cutting the line of pixels, two bits for each, those without a fourth colour first.

    The ends of both lists are filled up with the first way. Left out are those with one colour alone: they determine
    no end points.
    """
    ends = range(PIXELS + 1)
    cuts = [(i, j, k) for i in ends for j in ends[i:] for k in ends[j:]]
    ways: dict[bool, list[int]] = {True: [], False: []}
    for i, j, k in cuts:
        sizes = i, j - i, k - j, PIXELS - k
        choices = np.repeat([FIRST, MIXED_1, MIXED_2, SECOND], sizes).tolist()
        if max(sizes) < PIXELS:
            ways[j == k].append(sum(choice << 2 * pixel for pixel, choice in enumerate(choices)))
    lists = zip(ways.values(), (SPLITS_OF_3, SPLITS - SPLITS_OF_3), strict=True)
    return np.concatenate([np.array(way + way[:1] * (count - len(way)), np.uint32) for way, count in lists])


def run(gpu: Gpu, module: Module, data: Data) -> Outputs:
    blocks = data["blocks"].astype(np.uint32)
    image = blocks[:, :, 0] | blocks[:, :, 1] << 8 | blocks[:, :, 2] << 16
    result = gpu.to_device(np.zeros((len(blocks), 2), np.uint32))
    args = [gpu.to_device(splits()), gpu.to_device(image), result]
    module.launch("compress", grid=(data["ctas"],), block=(THREADS,), args=args)
    return {"result": gpu.from_device(result)}


def reference(data: Data) -> Outputs:
    result = np.zeros((len(data["blocks"]), 2), np.uint32)
    for begin in range(0, data["ctas"], 64):
        chunk = slice(begin, min(begin + 64, data["ctas"]))
        result[chunk] = _compress(data["blocks"][chunk].astype(FLOAT))
    return {"result": result}


def _compress(blocks: np.ndarray) -> np.ndarray:
    """In float32 where it may be rounded, and the order of the kernel, so that results are equal."""
    order = np.argsort(_along(blocks), axis=1, kind="stable")
    colours = np.take_along_axis(blocks, order[:, :, None], axis=1)
    ways = splits()

    error, first, second = _evaluate(colours, ways, 4)
    best = _first_least(error)
    error, first, second = (values[best] for values in (error, first, second))
    split = ways[best[1]]
    first, second, split = _exchange(first < second, first, second, split, np.uint32(0x55555555))

    error_3, first_3, second_3 = _evaluate(colours, ways[:SPLITS_OF_3], 3)
    best = _first_least(error_3)
    error_3, first_3, second_3 = (values[best] for values in (error_3, first_3, second_3))
    split_3 = ways[best[1]]
    flipped = ~split_3 >> np.uint32(1) & np.uint32(0x55555555)
    first_3, second_3, split_3 = _exchange(first_3 > second_3, first_3, second_3, split_3, flipped)

    better = error_3 < error
    fits = ((error_3, error), (first_3, first), (second_3, second), (split_3, split))
    error, first, second, split = (np.where(better, of_3, of_4) for of_3, of_4 in fits)
    least = np.arange(len(blocks)), _least(error)
    first, second, split = first[least], second[least], split[least]

    place = np.argsort(order, axis=1)
    choices = (split[:, None] >> (2 * place).astype(np.uint32) & 3) << (2 * np.arange(PIXELS, dtype=np.uint32))
    choices = np.where(first == second, 0, choices.sum(axis=1))
    return np.stack([second << 16 | first, choices], axis=1).astype(np.uint32)


def _fma(a: np.ndarray, b: np.ndarray, c: np.ndarray) -> np.ndarray:
    """Of float32 values: the product is exact in float64."""
    return (a.astype(np.float64) * b + c).astype(FLOAT)


def _dot(a: list[np.ndarray], b: list[np.ndarray]) -> np.ndarray:
    return _fma(a[2], b[2], _fma(a[1], b[1], a[0] * b[0]))


def _along(blocks: np.ndarray) -> np.ndarray:
    """Where the pixels stand along the line that fits them best."""
    x, y, z = (PIXELS * blocks - blocks.sum(axis=1, keepdims=True)).transpose(2, 0, 1)
    xx, xy, xz, yy, yz, zz = (_tree(products) for products in (x * x, x * y, x * z, y * y, y * z, z * z))
    line = [np.ones(len(blocks), FLOAT)] * 3
    for _ in range(ITERATIONS):
        moved = [_dot(row, line) for row in ([xx, xy, xz], [xy, yy, yz], [xz, yz, zz])]
        largest = np.max(moved, axis=0)
        scale = np.divide(FLOAT(1), largest, out=np.zeros_like(largest), where=largest != 0)
        line = [component * scale for component in moved]
    return _dot([component[:, None] for component in line], list(blocks.transpose(2, 0, 1)))


def _tree(values: np.ndarray) -> np.ndarray:
    while values.shape[1] > 1:
        left, right = np.split(values, 2, axis=1)
        values = left + right
    return values[:, 0]


def _evaluate(colours: np.ndarray, ways: np.ndarray, size: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Errors and end points, by block and way. All but the factor, what it multiplies, and errors is exact."""
    share, unit, *products = PALETTES[size]
    choices = ways[:, None] >> (2 * np.arange(PIXELS, dtype=np.uint32)) & 3
    first2, second2, product = (np.array(each)[choices].sum(axis=1).astype(FLOAT) for each in products)
    factor = FLOAT(1) / (first2 * second2 - product * product)
    error: np.ndarray = np.zeros((len(colours), len(ways)), FLOAT)
    first = second = np.zeros(error.shape, np.int64)
    for channel, bits in enumerate((5, 6, 5)):
        of_first = colours[:, :, channel] @ share[choices].T
        of_second = FLOAT(unit) * colours[:, :, channel].sum(axis=1, keepdims=True) - of_first
        a, a_number = _quantise((of_first * second2 - of_second * product) * factor, bits)
        b, b_number = _quantise((of_second * first2 - of_first * product) * factor, bits)
        first, second = first << bits | a_number, second << bits | b_number
        error = _fma(a, a * first2 + b * product - 2 * of_first, error)
        error = _fma(b, b * second2 + a * product - 2 * of_second, error)
    return error * (FLOAT(1) / FLOAT(unit)), first, second


def _quantise(values: np.ndarray, bits: int) -> tuple[np.ndarray, np.ndarray]:
    """The values that a decoder makes of the nearest numbers of some bits, and the numbers."""
    largest = 2**bits - 1
    numbers = np.rint(values.clip(0, 255) * (FLOAT(largest) / FLOAT(255))).astype(np.int64)
    return (numbers << 8 - bits | numbers >> 2 * bits - 8).astype(FLOAT), numbers


def _first_least(errors: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """For each block and thread, the first of the thread's ways with the least error: as an index of such arrays."""
    ways = errors.shape[1]
    of_thread = np.full((len(errors), -(-ways // THREADS) * THREADS), np.inf, FLOAT)
    of_thread[:, :ways] = errors
    turn = of_thread.reshape(len(errors), -1, THREADS).argmin(axis=1)
    return np.arange(len(errors))[:, None], turn * THREADS + np.arange(THREADS)


def _exchange(where: np.ndarray, *fit: np.ndarray | np.uint32) -> Iterator[np.ndarray]:
    first, second, split, flipped = fit
    yield np.where(where, second, first)
    yield np.where(where, first, second)
    yield np.where(where, split ^ flipped, split)


def _least(errors: np.ndarray) -> np.ndarray:
    """By the kernel's tree, in which the left of two equals wins."""
    threads = np.broadcast_to(np.arange(THREADS), errors.shape)
    while errors.shape[1] > 1:
        (left, right), (left_threads, right_threads) = np.split(errors, 2, axis=1), np.split(threads, 2, axis=1)
        errors, threads = np.minimum(left, right), np.where(right < left, right_threads, left_threads)
    return threads[:, 0]
