"""Kernels of GPGPU-Sim's benchmarks on inputs that have an answer of their own."""

from __future__ import annotations

import hashlib
import math

import numpy as np
import pytest

from lockstep.sim import Gpu, kernels
from lockstep.sim.kernels import Data, Outputs
from lockstep.verif.sim.kernels.test_kernels import SEED, same, tiny


def run(name: str, data: Data) -> Outputs:
    kernel, gpu = kernels.find(name), Gpu("gtx480")
    outputs = kernel.run(gpu, gpu.load(kernel.ptx), data)
    result = kernels.check(kernel, outputs, data)
    assert result.passed, f"LOCKSTEP_SEED={SEED} {name}: {result.message}"
    return outputs


def test_sto_of_known_messages() -> None:
    """Of "abcd", and of nothing, which is left of the last window."""
    digests = run("STO", {"input": np.frombuffer(b"abcd", np.uint8), "threads": 2, "window": 4})["digests"]
    assert digests[0].tobytes().hex() == "81fe8bfe87576c3ecb22426f8e57847382917acf"
    assert digests[1].tobytes().hex() == "da39a3ee5e6b4b0d3255bfef95601890afd80709"


@pytest.mark.parametrize("window", [52, 68, 116, 132, 180])
def test_sto_windows(window: int) -> None:
    """With the most that fits before the length in a last block, and with nothing in it."""
    message = np.random.default_rng(SEED).integers(0, 256, window, np.uint8)
    digests = run("STO", {"input": message, "threads": 2, "window": window})["digests"]
    assert digests[0].tobytes() == hashlib.sha1(message.tobytes()).digest()


def test_mum() -> None:
    data = tiny("MUM")
    lengths, firsts = [], []
    for query in data["queries"]:
        for begin in range(len(query) - data["least"] + 1):
            parts = (query[begin:end] for end in range(len(query), begin + data["least"] - 1, -1))
            match = next((part for part in parts if part in data["reference"]), b"")
            lengths.append(len(match))
            firsts.append(data["reference"].find(match))
    same("MUM", {"length": np.array(lengths, np.int32), "first": np.array(firsts, np.int32)})


@pytest.mark.parametrize("text", [b"A" * 30, b"AC" * 15, b"ACGTACGTTACGTACGAACGTACGT", b"G"])
def test_mum_in_repeats(text: bytes) -> None:
    """Deep trees with long chains of suffix links, and a tree of one leaf."""
    random = np.random.default_rng(SEED)
    queries = [bytes(text[k] for k in (np.arange(9) + random.integers(0, 99)) % len(text)) for _ in range(20)]
    queries += [query[:4] + b"T" + query[5:] for query in queries] + [b"N" * 5, b"GN"]
    outputs = run("MUM", {"reference": text, "queries": queries, "least": 1})
    assert len(set(outputs["length"].tolist())) > 1


def test_lib_without_shocks_to_come() -> None:
    """With volatilities of zero the rates stay: the value is that of a flat curve, computed by hand."""
    data = tiny("LIB") | {"volatility": np.zeros(6, np.float32)}
    discounts = [1.0125**-n for n in range(7)]
    losses = 0.0
    for maturity, rate in zip(data["maturity"], data["swap_rate"], strict=True):
        swap = discounts[maturity] + float(rate) * 0.25 * sum(discounts[1 : maturity + 1]) - 1
        losses += 100 * max(-swap, 0)
    assert losses > 0
    assert np.allclose(run("LIB", data)["value"], losses * discounts[3], rtol=0, atol=3e-4)


def test_aes_of_fips_197() -> None:
    """Appendix C.3, and the same block in the second CTA."""
    key, text = np.arange(32, dtype=np.uint8), np.arange(16, dtype=np.uint8) * 0x11
    cipher = run("AES", {"key": key, "text": np.tile(text, (65, 1))})["cipher"]
    for block in (cipher[0], cipher[-1]):
        assert block.tobytes().hex() == "8ea2b7ca516745bfeafc49904b496089"


def test_nqu() -> None:
    """Eight queens have 92 solutions: the host leaves out those that mirror the others."""
    data = tiny("NQU")

    def count(straight: int, left: int, right: int, rows: int) -> int:
        if rows == 0:
            return 1
        free = [bit for bit in (1 << column for column in range(8)) if not bit & (straight | left | right)]
        return sum(count(straight | bit, (left | bit) << 1, (right | bit) >> 1, rows - 1) for bit in free)

    solutions = np.zeros(data["ctas"], np.uint32)
    for start, (straight, left, right) in enumerate(data["attacks"].tolist()):
        solutions[start // 96] += count(straight, left, right, data["rows"])
    assert solutions.sum() == 92 // 2 and (solutions > 0).sum() == 2
    same("NQU", {"solutions": solutions})


def test_cp() -> None:
    data = tiny("CP")
    energy = np.zeros(data["shape"])
    for row, column in np.ndindex(energy.shape):
        for x, y, height, charge in data["atoms"].astype(np.float64):
            energy[row, column] += charge / math.hypot(0.1 * column - x, 0.1 * row - y, height)
    same("CP", {"energy": energy.astype(np.float32)})
