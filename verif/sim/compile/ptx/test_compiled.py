"""Whole programs from CUDA to results: what the host computes from the same source, with and without spilling."""

from __future__ import annotations

import struct
from pathlib import Path

import numpy as np
import pytest

from lockstep.sim import Gpu
from lockstep.sim.device.module import Module

FOLDER = Path(__file__).parent / "compiled"
BODY = struct.pack("<fi3hxxd", 1.5, -7, 3, -4, 5, 2.25)
LIMITS = (63, 16)  # the lower one makes all these programs spill


def expected(name: str) -> np.ndarray:
    lines = (FOLDER / f"{name}.expected").read_text(encoding="utf-8").splitlines()
    return np.array([[int(word) for word in line.split()] for line in lines], object)


def loaded(name: str, variant: str, limit: int) -> tuple[Gpu, Module]:
    gpu = Gpu("gtx480", core_registers_per_thread=limit)
    module = gpu.load(FOLDER / f"{name}_{variant}.ptx")
    kernel = module.program.kernels[name]
    assert kernel.registers <= limit
    assert (kernel.spilled > 0) == (limit == 16)
    return gpu, module


@pytest.mark.parametrize("limit", LIMITS)
@pytest.mark.parametrize("variant", ["75", "100", "debug"])
def test_functions(variant: str, limit: int) -> None:
    gpu, module = loaded("functions", variant, limit)
    inputs, results = expected("functions").T
    out = gpu.empty(128, np.uint32)
    arguments = [out, gpu.to_device(inputs.astype(np.int32)), BODY]
    module.launch("functions", grid=2, block=64, args=arguments, shared_bytes=4 * 64)
    np.testing.assert_array_equal(gpu.from_device(out), results.astype(np.uint32))


@pytest.mark.parametrize("limit", LIMITS)
@pytest.mark.parametrize("variant", ["75", "100", "debug"])
def test_arithmetic(variant: str, limit: int) -> None:
    gpu, module = loaded("arithmetic", variant, limit)
    table = expected("arithmetic")
    out = gpu.empty(128, np.uint64)
    words, longs = table[:, :2].astype(np.uint32), table[:, 2:4].astype(np.uint64)
    module.launch("arithmetic", grid=2, block=64, args=[out, gpu.to_device(words), gpu.to_device(longs)])
    np.testing.assert_array_equal(gpu.from_device(out), table[:, 4].astype(np.uint64))
