"""scan: the SDK's first three exclusive scans, a CTA per array of 512 elements (tiny: 64).

scan_naive has a thread per element and two buffers in the scratchpad, scan_workefficient and scan_best a thread for two
elements. The SDK has one array; full has 4,096, so that all SMs have work, as Chen chapter 3 enlarges kernels that are
too short. `scan-large` is the later sample. Elements are whole numbers, so that results are exact.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from lockstep.sim.kernels import Data, Outputs

if TYPE_CHECKING:
    from lockstep.sim import Gpu, Module

TITLE = "exclusive scans of many short arrays: naive, work-efficient, without bank conflicts"
SUITE = "CUDA SDK"
PTX = "scan.ptx"

ARRAYS_ELEMENTS = {"tiny": (2, 64), "small": (128, 512), "full": (4096, 512)}
BANKS = 16


def setup(size: str, seed: int) -> Data:
    return {"arrays": np.random.default_rng(seed).integers(0, 1000, ARRAYS_ELEMENTS[size]).astype(np.float32)}


def run(gpu: Gpu, module: Module, data: Data) -> Outputs:
    arrays, elements = data["arrays"].shape
    source, outputs = gpu.to_device(data["arrays"]), {}
    for kind, threads, places in (
        ("naive", elements, 2 * elements),
        ("workefficient", elements // 2, elements),
        ("best", elements // 2, elements + elements // BANKS),
    ):
        target = gpu.empty((arrays, elements), np.float32)
        args = [target, source, np.int32(elements)]
        module.launch(f"scan_{kind}", grid=(arrays,), block=(threads,), args=args, shared_bytes=4 * places)
        outputs[kind] = gpu.from_device(target)
    return outputs


def reference(data: Data) -> Outputs:
    sums = np.cumsum(data["arrays"], axis=1, dtype=np.float64) - data["arrays"]
    return {kind: sums.astype(np.float32) for kind in ("naive", "workefficient", "best")}
