"""STO: StoreGPU's SHA-1 of overlapping windows, CTAs of 128 threads and 16,256 bytes of scratchpad.

full has GPGPU-Sim's 49,152 threads on 192 KB: a window every four bytes. Its windows' length is not told; ours of 100
bytes are two blocks of a message each, so that both kinds are met. The last window is a word shorter.
"""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING

import numpy as np

from lockstep.sim.kernels import Data, Outputs

if TYPE_CHECKING:
    from lockstep.sim import Gpu, Module

TITLE = "SHA-1 of windows that overlap"
SUITE = "GPGPU-Sim"
PTX = "sto.ptx"
REGISTERS = {"sha1_overlap": 48}  # Jatala table 3

BLOCK = 128
WINDOW, OFFSET, MISSING = 100, 4, 4  # bytes
DIGEST = 20
THREADS = {"tiny": 140, "small": 10_000, "full": 49_152}


def setup(size: str, seed: int) -> Data:
    random = np.random.default_rng(seed)
    threads = THREADS[size]
    length = (threads - 1) * OFFSET + WINDOW - MISSING
    return {"input": random.integers(0, 256, length, np.uint8), "threads": threads, "window": WINDOW}


def run(gpu: Gpu, module: Module, data: Data) -> Outputs:
    threads = data["threads"]
    digests = gpu.empty((threads, DIGEST), np.uint8)
    sizes = [np.int32(value) for value in (data["window"], OFFSET, threads, MISSING)]
    args = [gpu.to_device(data["input"]), *sizes, digests]
    module.launch("sha1_overlap", grid=(-(-threads // BLOCK),), block=(BLOCK,), args=args)
    return {"digests": gpu.from_device(digests)}


def reference(data: Data) -> Outputs:
    message = data["input"].tobytes()
    windows = (message[first : first + data["window"]] for first in range(0, data["threads"] * OFFSET, OFFSET))
    digests = b"".join(hashlib.sha1(window, usedforsecurity=False).digest() for window in windows)
    return {"digests": np.frombuffer(digests, np.uint8).reshape(-1, DIGEST)}
