"""AES: GPGPU-Sim's AES-256 encryption in ECB mode, CTAs of 256 threads, four threads to a block of 16 bytes.

small has GPGPU-Sim's 257 CTAs, which is 263,168 bytes: a picture of 256 KiB with its header; ours are random. The four
tables are copied from constant memory into the scratchpad by every CTA. Of such CTAs a core holds four, as DYNCTA's
paper says. The reference follows FIPS 197 step by step, without tables.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from lockstep.sim.kernels import Data, Outputs

if TYPE_CHECKING:
    from lockstep.sim import Gpu, Module

TITLE = "AES-256 encryption of many blocks with one key"
SUITE = "GPGPU-Sim"
PTX = "aes.ptx"

BLOCK = 256
BLOCK_BYTES, KEY_BYTES, ROUNDS = 16, 32, 14
BLOCKS = {"tiny": 70, "small": 257 * 64, "reference": 10 * 64}  # of 16 bytes
SIZES = tuple(BLOCKS)


def setup(size: str, seed: int) -> Data:
    random = np.random.default_rng(seed)
    return {
        "key": random.integers(0, 256, KEY_BYTES, np.uint8),
        "text": random.integers(0, 256, (BLOCKS[size], BLOCK_BYTES), np.uint8),
    }


def run(gpu: Gpu, module: Module, data: Data) -> Outputs:
    module.set_symbol("tables", _tables())
    module.set_symbol("round_keys", _round_keys(data["key"]).view("<u4"))
    cipher = gpu.empty(data["text"].shape, np.uint8)
    words = data["text"].size // 4
    args = [gpu.to_device(data["text"]), cipher, np.int32(words)]
    module.launch("encrypt_aes256", grid=(-(-words // BLOCK),), block=(BLOCK,), args=args)
    return {"cipher": gpu.from_device(cipher)}


def _double(x: np.ndarray) -> np.ndarray:
    """By 2 in GF(2^8)."""
    return (x << 1 ^ np.where(x & 0x80, 0x1B, 0)).astype(np.uint8)


def _substitutes() -> np.ndarray:
    """The S-box: the inverse in GF(2^8), by powers of 3, and an affine map."""
    power = np.ones(255, np.uint8)
    for i in range(1, 255):
        power[i] = power[i - 1] ^ _double(power[i - 1])
    inverse = np.zeros(256, np.uint8)
    inverse[power] = power[-np.arange(255) % 255]
    rotations = [inverse << n | inverse >> 8 - n for n in range(1, 5)]
    return inverse ^ np.bitwise_xor.reduce(rotations) ^ np.uint8(0x63)


def _tables() -> np.ndarray:
    """By row and byte: what the byte adds to the four rows of a column of the next state, as a word."""
    s = _substitutes()
    first = np.stack([_double(s), s, s, s ^ _double(s)], axis=-1)  # of a byte in row 0, by row
    return np.stack([np.roll(first, row, axis=-1) for row in range(4)]).view("<u4")[..., 0]


def _round_keys(key: np.ndarray) -> np.ndarray:
    """By round and column: four bytes."""
    substitutes, constant = _substitutes(), np.ones((), np.uint8)
    words = list(key.reshape(-1, 4))
    for i in range(len(words), 4 * (ROUNDS + 1)):
        word = words[-1]
        if i % 8 == 0:
            word = substitutes[np.roll(word, -1)]
            word[0] ^= constant
            constant = _double(constant)
        elif i % 8 == 4:
            word = substitutes[word]
        words.append(words[-8] ^ word)
    return np.array(words).reshape(ROUNDS + 1, 16)


def reference(data: Data) -> Outputs:
    substitutes, keys = _substitutes(), _round_keys(data["key"])
    shifted = (np.arange(16) + np.arange(16) % 4 * 4) % 16  # where byte 4 column + row comes from
    state = data["text"] ^ keys[0]
    for round_key in keys[1:-1]:
        columns = substitutes[state][:, shifted].reshape(-1, 4, 4)
        below, two, three = (np.roll(columns, -row, axis=-1) for row in (1, 2, 3))
        state = (_double(columns) ^ _double(below) ^ below ^ two ^ three).reshape(-1, 16) ^ round_key
    return {"cipher": substitutes[state][:, shifted] ^ keys[-1]}
