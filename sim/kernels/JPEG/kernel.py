"""JPEG: decoding of a baseline JPEG, in CTAs of 64 threads (Huffman codes, cosine transform) and 128 (colours).

A thread decodes a restart interval of one unit of 16 x 16 pixels, so lanes take different paths; then eight threads
transform a block. All is in integers. The image is synthetic; it has the standard's example tables, those of luminance
for chrominance, too. small has 768 x 1024 pixels, full 1536 x 2048: the paper on DYNCTA, which has a JPEG among its
applications, gives no size.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np

from lockstep.sim.kernels import Data, Outputs

if TYPE_CHECKING:
    from lockstep.sim import Gpu, Module

TITLE = "decoding of a JPEG: Huffman codes, inverse cosine transform, colours"
SUITE = "CUDA SDK"
PTX = "jpeg.ptx"

DECODE_BLOCK, IDCT_BLOCKS, COLOUR_BLOCK = 64, 8, 128
UNIT, BLOCKS = 16, 6
UNITS_PER_INTERVAL = {"tiny": 2}  # where it is not 1
HEIGHT_WIDTH = {"tiny": (80, 112), "small": (768, 1024), "full": (1536, 2048)}

# ITU-T T.81, annex K: tables K.1, K.3 and K.5, the last without what goes on in ascending order.
QUANTA = np.array([
    16, 11, 10, 16, 24, 40, 51, 61, 12, 12, 14, 19, 26, 58, 60, 55, 14, 13, 16, 24, 40, 57, 69, 56, 14, 17, 22, 29, 51,
    87, 80, 62, 18, 22, 37, 56, 68, 109, 103, 77, 24, 35, 55, 64, 81, 104, 113, 92, 49, 64, 78, 87, 103, 121, 120, 101,
    72, 92, 95, 98, 112, 100, 103, 99,
], np.uint8)  # fmt: skip
COUNTS = (  # of codes, by length
    (0, 1, 5, 1, 1, 1, 1, 1, 1, 0, 0, 0, 0, 0, 0, 0),
    (0, 2, 1, 3, 3, 2, 4, 3, 5, 5, 4, 4, 0, 0, 1, 125),
)
_FREQUENT = bytes.fromhex(
    "01 02 03 00 04 11 05 12 21 31 41 06 13 51 61 07 22 71 14 32 81 91 a1 08 23 42 b1 c1 15 52 d1 f0 24 33 62 72 82"
)
_ALL = {16 * run + size for run in range(16) for size in range(1, 11)} | {0, 0xF0}
SYMBOLS = tuple(range(12)), (*_FREQUENT, *sorted(_ALL.difference(_FREQUENT)))


def _codes(table: int) -> dict[int, tuple[int, int]]:
    """Code and length by symbol: in each length, they go on from the last code of the length before."""
    found, code, symbols = {}, 0, iter(SYMBOLS[table])
    for length, count in enumerate(COUNTS[table], 1):
        for _ in range(count):
            found[next(symbols)] = code, length
            code += 1
        code *= 2
    return found


def _diagonal(row: int, column: int) -> tuple[int, int]:
    return row + column, column if (row + column) % 2 == 0 else row


CODES = _codes(0), _codes(1)
ZIGZAG = np.array(sorted(range(64), key=lambda at: _diagonal(*divmod(at, 8))), np.uint8)


def setup(size: str, seed: int) -> Data:
    random = np.random.default_rng(seed)
    height, width = HEIGHT_WIDTH[size]
    units, units_per_interval = height // UNIT * (width // UNIT), UNITS_PER_INTERVAL.get(size, 1)
    strength = 600 / (1 + np.add.outer(np.arange(8), np.arange(8)).ravel()) ** 2  # by frequency
    detail = random.gamma(0.5, 1, (units, 1, 1))  # few units have much of it
    values = random.laplace(0, strength * detail, (units, BLOCKS, 64)) / QUANTA
    limit = 1000 // QUANTA.astype(np.int64)
    quantised = np.clip(np.rint(values), -limit, limit).astype(np.int16)
    streams = [bytes(_encoded(quantised[at : at + units_per_interval])) for at in range(0, units, units_per_interval)]
    return {
        "stream": np.frombuffer(b"".join(streams), np.uint8),
        "begins": np.cumsum([0, *map(len, streams[:-1])], dtype=np.int32),
        "units_per_interval": units_per_interval,
        "shape": (height, width),
        "quantised": quantised,  # what the stream stands for; the GPU doesn't get it
    }


def _encoded(units: np.ndarray) -> Iterator[int]:
    """The bytes of a restart interval."""
    bits = "".join(f"{value:0{length}b}" for value, length in _parts(units) if length)
    bits += "1" * (-len(bits) % 8)
    for byte in int(bits, 2).to_bytes(len(bits) // 8, "big"):
        yield byte
        if byte == 0xFF:
            yield 0


def _parts(units: np.ndarray) -> Iterator[tuple[int, int]]:
    """Codes and numbers, with their lengths."""
    before = [0, 0, 0]
    for unit in units[:, :, ZIGZAG].tolist():
        for block, values in enumerate(unit):
            component = max(0, block - 3)
            difference, before[component] = values[0] - before[component], values[0]
            yield from _number(CODES[0], difference, 0)
            zeros = 0
            for value in values[1:]:
                if value == 0:
                    zeros += 1
                    continue
                yield from [CODES[1][0xF0]] * (zeros // 16)
                yield from _number(CODES[1], value, zeros % 16)
                zeros = 0
            if zeros:
                yield CODES[1][0]


def _number(codes: dict[int, tuple[int, int]], value: int, zeros: int) -> Iterator[tuple[int, int]]:
    size = abs(value).bit_length()
    yield codes[16 * zeros + size]
    yield value if value >= 0 else value + (1 << size) - 1, size


def _set_tables(module: Module) -> None:
    greatest, offset = np.full((2, 16), -1, np.int32), np.zeros((2, 16), np.int32)
    symbols = np.zeros((2, 162), np.uint8)
    for table in range(2):
        symbols[table, : len(SYMBOLS[table])] = SYMBOLS[table]
        for place, (code, length) in enumerate(CODES[table].values()):
            greatest[table, length - 1] = code
            offset[table, length - 1] = place - code
    tables: Data = {"greatest": greatest, "offset": offset, "symbols": symbols, "zigzag": ZIGZAG, "quantum": QUANTA}
    for name, values in tables.items():
        module.set_symbol(name, values)


def run(gpu: Gpu, module: Module, data: Data) -> Outputs:
    _set_tables(module)
    (height, width), begins = data["shape"], data["begins"]
    units = height // UNIT * (width // UNIT)
    coefficients = gpu.to_device(np.zeros((units, BLOCKS, 64), np.int16))
    args = [gpu.to_device(data["stream"]), gpu.to_device(begins), np.int32(begins.size)]
    args += [np.int32(data["units_per_interval"]), np.int32(units), coefficients]
    module.launch("entropy_decode", grid=(-(-begins.size // DECODE_BLOCK),), block=(DECODE_BLOCK,), args=args)

    shapes = (height, width), (height // 2, width // 2), (height // 2, width // 2)
    planes = [gpu.empty(shape, np.uint8) for shape in shapes]
    args = [coefficients, np.int32(BLOCKS * units), np.int32(width // UNIT), *planes]
    module.launch("inverse_transform", grid=(-(-BLOCKS * units // IDCT_BLOCKS),), block=(8, IDCT_BLOCKS), args=args)

    pixels = gpu.empty((height, width), np.uint32)
    args = [*planes, np.int32(width), np.int32(height), pixels]
    module.launch("to_pixels", grid=(-(-width // COLOUR_BLOCK), height), block=(COLOUR_BLOCK,), args=args)
    return {"coefficients": gpu.from_device(coefficients), "pixels": gpu.from_device(pixels)}


def reference(data: Data) -> Outputs:
    coefficients = data["quantised"] * QUANTA.astype(np.int16)
    luminance, blue, red = _planes(coefficients, data["shape"])
    blue, red = (plane.repeat(2, axis=0).repeat(2, axis=1) - 128 for plane in (blue, red))
    colours = 91881 * red, -22554 * blue - 46802 * red, 116130 * blue
    rgb = [np.clip(((luminance << 16) + colour + 32768) >> 16, 0, 255) for colour in colours]
    pixels = rgb[0] | rgb[1] << 8 | rgb[2] << 16 | 0xFF << 24
    return {"coefficients": coefficients, "pixels": pixels.astype(np.uint32)}


def _planes(coefficients: np.ndarray, shape: tuple[int, int]) -> list[np.ndarray]:
    """Samples of luminance and of both chrominances: rows and then columns by the matrix of cosines."""
    angle = np.outer(2 * np.arange(8) + 1, np.arange(8)) * np.pi / 16
    matrix = np.cos(angle) / 2
    matrix[:, 0] = np.sqrt(1 / 8)
    integers = np.rint(2**13 * matrix).astype(np.int64)
    blocks = coefficients.astype(np.int64).reshape(-1, 8, 8)
    rows = (blocks @ integers.T + 2**9) >> 10
    samples = np.clip(((integers @ rows + 2**15) >> 16) + 128, 0, 255)
    units = samples.reshape(shape[0] // UNIT, shape[1] // UNIT, BLOCKS, 8, 8)
    luminance = units[:, :, :4].reshape(*units.shape[:2], 2, 2, 8, 8).transpose(0, 2, 4, 1, 3, 5).reshape(shape)
    half = shape[0] // 2, shape[1] // 2
    return [luminance, *(units[:, :, 4 + part].transpose(0, 2, 1, 3).reshape(half) for part in range(2))]
