"""Kernels of GPGPU-Sim's benchmarks on inputs that have an answer of their own."""

from __future__ import annotations

import hashlib
import math

import numpy as np
import pytest

from lockstep.models.occupancy import occupancy
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


def test_ray() -> None:
    """Against recursion from pixel to pixel in float64: all but a few at edges agree to a grey level."""
    data = tiny("RAY")
    height, width = data["shape"]
    light, eye = np.array([10.0, 10.0, 10.0]), np.array([0.0, 0.5, 2.0])
    objects = [(item["plane"], item["centre"] + [data["shift"], 0, 0], *item) for item in data["objects"]]

    def unit(vector: np.ndarray) -> np.ndarray:
        return np.asarray(vector / math.dist(vector, [0, 0, 0]))

    def first(origin: np.ndarray, direction: np.ndarray) -> tuple[float, int]:
        found = [(math.inf, -1)]
        for number, (plane, centre, _, radius, *_) in enumerate(objects):
            to = centre - origin
            if plane:
                roots = [to[1] / direction[1]]
            else:
                half = direction @ to
                rest = half**2 - to @ to + float(radius) ** 2
                roots = [half - math.sqrt(rest), half + math.sqrt(rest)] if rest >= 0 else []
            found += [(root, number) for root in roots if root > 0]
        return min(found)

    def colour(origin: np.ndarray, direction: np.ndarray, left: int) -> np.ndarray:
        length, seen = first(origin, direction)
        if seen < 0 or left == 0:
            return np.array([0, 0, 0, float(left == 5)])
        plane, centre, _, _, own, *_ = objects[seen]
        point = origin + length * direction
        normal = np.array([0.0, 1.0, 0.0]) if plane else unit(point - centre)
        facing = -normal if normal @ direction > 0 else normal
        to_light = unit(light - point)
        result = 0.05 * own
        if facing @ to_light > 0 and first(point + 1e-4 * to_light, to_light)[0] > math.dist(light, point):
            result = result + 0.3 * (facing @ to_light) * own
            result[:3] += 0.8 * max(facing @ unit(to_light - direction), 0) ** 50
        mirrored = unit(direction - 2 * (normal @ direction) * normal)
        return np.asarray(result + 0.8 * colour(point + 1e-4 * mirrored, mirrored, left - 1))

    forward = unit(-eye)
    right = unit(np.cross(forward, [0, 1, 0]))
    up = np.cross(right, forward)
    got = np.empty((height, width, 4))
    for y, x in np.ndindex(height, width):
        across, upward = 2 * (x - width / 2) / height, 2 * (y - height / 2) / height
        direction = unit(forward / math.tan(math.radians(65 / 2)) + across * right + upward * up)
        got[y, x] = np.floor(255 * colour(eye, direction, 5).clip(0, 1))
    expected = kernels.find("RAY").reference(data)["image"].view(np.uint8).reshape(got.shape).astype(float)
    assert len(np.unique(expected)) > 50
    wrong = (np.abs(got - expected) > 1).any(axis=2)
    assert wrong.mean() < 0.02, f"LOCKSTEP_SEED={SEED}: {wrong.sum()} of {wrong.size} pixels differ"


@pytest.mark.parametrize("name, function, threads, ctas", [("CP", "cenergy", 128, 8), ("RAY", "render", 128, 6)])
def test_ctas_per_core_are_those_of_ka(name: str, function: str, threads: int, ctas: int) -> None:
    kernel, gpu = kernels.find(name), Gpu("dyncta30")
    loaded = gpu.load(kernel.ptx, registers=kernel.registers).kernel(function)
    assert occupancy(gpu.description, threads, loaded.registers, loaded.shared_bytes).ctas == ctas


def test_weather_keeps_water_and_heat() -> None:
    """In every column of air, with what has fallen out of it; and rain and snow have fallen."""
    data = tiny("WP")
    classes = ("snow", "rain", "ice", "cloud", "vapour")
    before = np.stack([data[name] for name in classes]).astype(np.float64)
    outputs = {name: values.astype(np.float64) for name, values in run("WP", data).items()}
    mass = data["density"].astype(np.float64) * data["thickness"]

    def heat(water: np.ndarray, temperature: np.ndarray) -> np.ndarray:
        latent = 2.5e6 * water[4] - 3.5e5 * (water[0] + water[2])
        return np.asarray((mass * (1004.5 * temperature + latent)).sum(axis=0))

    snow, rain = outputs["fallen"]
    assert (rain > 0.1).any() and (snow > 0.01).any()
    assert np.abs(outputs["water"] - before).max(axis=(1, 2, 3)).min() > 1e-5  # all classes have changed
    water = [(mass * of).sum(axis=(0, 1)) for of in (before, outputs["water"])]
    assert water[1] + rain + snow == pytest.approx(water[0], rel=1e-6)
    heats = heat(before, data["temperature"].astype(np.float64)), heat(outputs["water"], outputs["temperature"])
    assert heats[1] - 3.5e5 * snow == pytest.approx(heats[0], rel=1e-7)
    assert np.abs(heats[1] / heats[0] - 1).max() > 1e-6  # what has fallen as snow matters
