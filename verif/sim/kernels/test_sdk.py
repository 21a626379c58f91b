"""Kernels of the SDK: what their results are for, and their references against plain loops over the same inputs."""

from __future__ import annotations

import io
import math
import struct
from itertools import accumulate, product

import numpy as np
from PIL import Image

from lockstep.sim import Gpu, kernels
from lockstep.sim.kernels import Data
from lockstep.verif.sim.kernels.test_kernels import SEED, same, tiny


def run(name: str, data: Data) -> dict[str, np.ndarray]:
    kernel, gpu = kernels.find(name), Gpu("gtx480")
    return kernel.run(gpu, gpu.load(kernel.ptx), data)


def colour(number: int) -> np.ndarray:
    """Red (the upper bits), green and blue of a palette's end point."""
    red, green, blue = number >> 11, number >> 5 & 63, number & 31
    return np.array([red << 3 | red >> 2, green << 2 | green >> 4, blue << 3 | blue >> 2])


def decode(block: np.ndarray) -> np.ndarray:
    """The 16 pixels of a block of DXT1."""
    first, second = int(block[0]) & 0xFFFF, int(block[0]) >> 16
    a, b = colour(first), colour(second)
    mixed = [(2 * a + b) / 3, (a + 2 * b) / 3] if first > second else [(a + b) / 2, np.full(3, np.nan)]
    palette = np.array([a, b, *mixed])
    return palette[[int(block[1]) >> 2 * pixel & 3 for pixel in range(16)]]


def test_dxtc_can_be_decoded() -> None:
    """Blocks with a colour, with two, with a slope and with noise, in palettes of four colours and of three."""
    random = np.random.default_rng(SEED)
    blocks = random.integers(0, 256, (12, 16, 3)).astype(np.uint8)
    blocks[:3] = blocks[:3, :1]
    blocks[3:6] = blocks[3:6, random.integers(0, 2, 16)]
    blocks[6:9] = (blocks[6:9, :1] * np.linspace(0.2, 1, 16)[:, None]).astype(np.uint8)
    result = run("dxtc", {"blocks": blocks, "ctas": len(blocks)})["result"]
    differences = np.array([decode(coded) for coded in result]) - blocks
    worst, mean = np.abs(differences).max(axis=(1, 2)), np.abs(differences).mean(axis=(1, 2))
    assert worst[:6].max() <= 4.5 and worst[6:9].max() < 25, f"LOCKSTEP_SEED={SEED}: {worst}"
    assert (mean < blocks.std(axis=1).mean(axis=1))[9:].all(), f"LOCKSTEP_SEED={SEED}: {mean}"
    modes = {int(first) & 0xFFFF > int(first) >> 16 for first, _ in result}
    assert modes == {True, False}


def test_dwt_haar_can_be_undone() -> None:
    data = tiny("dwtHaar1D")
    parts = run("dwtHaar1D", data)["decomposition"].astype(np.float64)
    signal = parts[:1]
    while signal.size < parts.size:
        details = parts[signal.size : 2 * signal.size]
        signal = np.stack([signal + details, signal - details], axis=1).ravel() * 0.5**0.5
    assert np.abs(signal - data["signal"]).max() < 1e-6, f"LOCKSTEP_SEED={SEED}"


def test_jpeg_is_what_libjpeg_decodes() -> None:
    """The stream as a file. Between samples of chrominance libjpeg interpolates: colours are near, greys the same."""
    data, tables = tiny("JPEG"), kernels.find("JPEG").setup.__globals__
    parts = np.split(data["stream"], data["begins"][1:])
    assert b"\xff\x00" in data["stream"].tobytes() or SEED != 20
    huffman = [bytes([16 * table, *tables["COUNTS"][table], *tables["SYMBOLS"][table]]) for table in range(2)]
    file = b"\xff\xd8" + _segment(0xDB, b"\0" + tables["QUANTA"][tables["ZIGZAG"]].tobytes())
    file += _segment(0xC0, struct.pack(">BHHB9B", 8, *data["shape"], 3, 1, 0x22, 0, 2, 0x11, 0, 3, 0x11, 0))
    file += _segment(0xC4, huffman[0]) + _segment(0xC4, huffman[1])
    file += _segment(0xDD, struct.pack(">H", data["units_per_interval"]))
    file += _segment(0xDA, bytes([3, 1, 0, 2, 0, 3, 0, 0, 63, 0]))
    for number, part in enumerate(parts):
        file += (bytes([0xFF, 0xD0 + (number - 1) % 8]) if number else b"") + part.tobytes()
    coloured, grey = (Image.open(io.BytesIO(file + b"\xff\xd9")) for _ in range(2))
    grey.draft("L", grey.size)

    pixels = run("JPEG", data)["pixels"]
    colours = np.stack([pixels >> shift & 255 for shift in (0, 8, 16)], axis=2).astype(np.float64)
    assert np.median(np.abs(colours - np.asarray(coloured, np.float64))) == 0
    whole = ((colours > 0) & (colours < 255)).all(axis=2)  # not cut
    differences = colours @ [0.299, 0.587, 0.114] - np.asarray(grey, np.float64)
    assert whole.mean() > 0.5
    assert np.abs(differences)[whole].max() < 1.5 + 1e-6  # a sample's rounding, and the colours'


def _segment(marker: int, content: bytes) -> bytes:
    """Of a JPEG file."""
    return struct.pack(">BBH", 0xFF, marker, len(content) + 2) + content


def test_fast_walsh() -> None:
    """Every element as the sum that defines it."""
    signal = tiny("fastWalshTransform")["signal"].astype(int).tolist()
    places = range(len(signal))
    spectrum = [sum(-signal[i] if (i & k).bit_count() % 2 else signal[i] for i in places) for k in places]
    same("fastWalshTransform", {"spectrum": np.array(spectrum, np.float32)})


def test_dct() -> None:
    """Every element as the sum that defines it; and the inverse undoes the transform."""
    data, kernel = tiny("dct8x8"), kernels.find("dct8x8")
    waves = [[math.cos((2 * i + 1) * k * math.pi / 16) / (8**0.5 if k == 0 else 2) for k in range(8)] for i in range(8)]
    places = list(product(range(8), range(8)))
    found = {name: np.empty_like(data["image"]) for name in ("coefficients", "image")}
    for y, x in product(range(0, data["image"].shape[0], 8), range(0, data["image"].shape[1], 8)):
        pixels, quantized = (data[name][y : y + 8, x : x + 8].tolist() for name in ("image", "quantized"))
        for i, j in places:
            found["coefficients"][y + i, x + j] = sum(waves[k][i] * waves[m][j] * pixels[k][m] for k, m in places)
            found["image"][y + i, x + j] = sum(waves[i][k] * waves[j][m] * quantized[k][m] for k, m in places)
    same("dct8x8", found)
    again = kernel.reference({**data, "quantized": found["coefficients"]})["image"]
    assert np.abs(again - data["image"]).max() < 1e-3


def test_scan() -> None:
    sums = [list(accumulate(array, initial=0))[:-1] for array in tiny("scan")["arrays"].astype(int).tolist()]
    same("scan", {kind: np.array(sums, np.float32) for kind in ("naive", "workefficient", "best")})


def test_scan_of_long_arrays() -> None:
    sums = [list(accumulate(array, initial=0))[:-1] for array in tiny("scan-large")["arrays"].tolist()]
    same("scan-large", {"sums": np.array([[each % 2**32 for each in row] for row in sums], np.uint32)})


def test_sobol_numbers_fill_the_interval() -> None:
    """Of the first 256 numbers of a dimension, each interval of 1/256 has one."""
    numbers = kernels.find("sobolQRNG").reference(tiny("sobolQRNG"))["numbers"]
    for dimension in numbers:
        assert sorted((dimension[:256] * 256).astype(int).tolist()) == list(range(256))
    assert len({tuple(dimension) for dimension in numbers.tolist()}) == len(numbers)


def test_niederreiter_numbers_fill_the_cube() -> None:
    """Of the first 128 points, each box of 2^-6 has two, however it is cut, as the polynomials' degrees are 1, 1, 2."""
    numbers = kernels.find("quasirandomGenerator").reference({"first": 0, "count": 128})["numbers"]
    for cuts in product(range(7), repeat=3):
        if sum(cuts) == 6:
            boxes = [(axis * (1 << cut)).astype(int) for axis, cut in zip(numbers, cuts, strict=True)]
            counts = np.unique(boxes, axis=1, return_counts=True)[1]
            assert counts.tolist() == 64 * [2], cuts


def test_mersenne_twister() -> None:
    """Each twister by itself, and pairs of its numbers as complex ones."""
    data = tiny("MersenneTwister")
    uniform, normal = (np.empty((data["count"], data["twisters"].size), np.float32) for _ in range(2))
    for column, (matrix, mask_b, mask_c, seed) in enumerate(data["twisters"].tolist()):
        state = [seed]
        for i in range(1, 19):
            state.append((1812433253 * (state[-1] ^ state[-1] >> 30) + i) % 2**32)
        for row in range(data["count"]):
            word = state[row] >> 1 << 1 | state[row + 1] & 1
            state.append(state[row + 9] ^ word >> 1 ^ matrix * (word & 1))
            word = state[-1]
            word ^= word >> 12
            word ^= word << 7 & mask_b
            word ^= word << 15 & mask_c
            uniform[row, column] = float(np.float32(np.float32(word ^ word >> 18) + np.float32(1))) / 2**32
    for row, column in np.ndindex(data["count"] // 2, data["twisters"].size):
        first, second = (float(uniform[2 * row + k, column]) for k in range(2))
        turned = math.sqrt(-2 * math.log(first)) * complex(math.cos(math.tau * second), math.sin(math.tau * second))
        normal[2 * row : 2 * row + 2, column] = turned.real, turned.imag
    same("MersenneTwister", {"uniform": uniform, "normal": normal})


def test_atomics() -> None:
    """The threads one after the other, in any order."""
    data = tiny("simpleAtomicIntrinsics")
    words, before = data["words"].tolist(), int(data["words"][7])
    threads = range(data["ctas"] * data["block"])
    for tid in np.random.default_rng(SEED).permutation(threads).tolist():
        words[0] += 10
        words[1] -= 10
        words[2] = tid
        words[3] = max(words[3], tid)
        words[4] = min(words[4], tid)
        words[5] = 0 if words[5] >= 17 else words[5] + 1
        words[6] = 137 if words[6] == 0 or words[6] > 137 else words[6] - 1
        words[7] = tid if words[7] == tid - 1 else words[7]
        words[8] &= 2 * tid + 7
        words[9] |= 1 << tid % 32
        words[10] ^= tid
    words[2], words[7] = words[2] in threads, before <= words[7] < len(threads)
    same("simpleAtomicIntrinsics", {"words": np.array(words, np.int64).astype(np.int32)})


def test_binomial_options() -> None:
    """The mean over all leaves of the tree, by how many ways lead to them."""
    data = tiny("binomialOptions")
    steps, prices = data["steps"], []
    for price, strike, step, up, down in data["options"].tolist():
        leaves = [max(price * math.exp(step * (2 * rises - steps)) - strike, 0) for rises in range(steps + 1)]
        ways = (math.comb(steps, rises) * up**rises * down ** (steps - rises) for rises in range(steps + 1))
        prices.append(sum(leaf * way for leaf, way in zip(leaves, ways, strict=True)))
    assert max(prices) > 1
    same("binomialOptions", {"prices": np.array(prices, np.float32)})


def test_stencil_of_order_eight() -> None:
    data = tiny("3DFD")
    grid, coefficients = data["grid"].astype(int).tolist(), data["coefficients"].astype(int).tolist()
    found = np.zeros_like(data["grid"])
    inner = [range(4, extent - 4) for extent in found.shape]
    for z, y, x in product(*inner):
        total = coefficients[0] * grid[z][y][x]
        for k in range(1, 5):
            near = grid[z - k][y][x] + grid[z + k][y][x] + grid[z][y - k][x] + grid[z][y + k][x]
            total += coefficients[k] * (near + grid[z][y][x - k] + grid[z][y][x + k])
        found[z, y, x] = total
    same("3DFD", {"grid": found})


def test_convolution_from_textures() -> None:
    data = tiny("convolutionTexture")
    height, width = data["image"].shape
    image, coefficients = data["image"].astype(int).tolist(), data["coefficients"].astype(int).tolist()
    assert coefficients != coefficients[::-1]
    rows, columns = ([[0] * width for _ in range(height)] for _ in range(2))
    for y, x, away in product(range(height), range(width), range(-8, 9)):
        rows[y][x] += coefficients[8 - away] * image[y][min(max(x + away, 0), width - 1)]
    for y, x, away in product(range(height), range(width), range(-8, 9)):
        columns[y][x] += coefficients[8 - away] * rows[min(max(y + away, 0), height - 1)][x]
    same("convolutionTexture", {"rows": np.array(rows, np.float32), "columns": np.array(columns, np.float32)})
