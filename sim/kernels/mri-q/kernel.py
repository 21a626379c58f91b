"""mri-q: Parboil's ComputePhiMag (512 threads per CTA) and ComputeQ (256 threads), 1024 samples per launch.

Compiled with -use_fast_math like the original. full is Parboil's small input, 32 x 32 x 32 voxels and 3,072 samples.
steady has its voxels, and adds the first 384 samples to each.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from lockstep.sim.kernels import Close, Data, Outputs

if TYPE_CHECKING:
    from lockstep.sim import Gpu, Module

TITLE = "Q matrix of an MRI reconstruction"
SUITE = "Parboil"
PTX = "mri_q.ptx"
REGISTERS = {"compute_phi_mag": 12, "compute_q": 24}  # Jatala tables 3 and 2
_REASON = "angles up to 40 in float32 (2e-6 each), sin.approx and cos.approx (2^-20), summed over all samples"
TOLERANCE = {
    "magnitude": Close(rtol=1e-6, reason="fused multiply-add"),
    "q_real": Close(rtol=1e-4, atol=1e-2, reason=_REASON),
    "q_imaginary": Close(rtol=1e-4, atol=1e-2, reason=_REASON),
}

MAGNITUDE_BLOCK, Q_BLOCK = 512, 256
SAMPLES_PER_LAUNCH = 1024  # what the constant array holds
VOXELS_SAMPLES = {
    "tiny": (256, 100),
    "small": (3_072, 1_100),
    "full": (32_768, 3_072),
    "reference": (3_072, 80),
    "steady": (32_768, 3_072),
}
ADDED = {"steady": 384}  # samples, where not all of them are
SIZES = tuple(VOXELS_SAMPLES)


def setup(size: str, seed: int) -> Data:
    random = np.random.default_rng(seed)
    voxels, samples = VOXELS_SAMPLES[size]
    data = {name: random.uniform(-0.5, 0.5, voxels).astype(np.float32) for name in "xyz"}
    data |= {name: random.uniform(-4.0, 4.0, samples).astype(np.float32) for name in ("kx", "ky", "kz")}
    data |= {name: random.standard_normal(samples).astype(np.float32) for name in ("phi_real", "phi_imaginary")}
    return data | {"added": ADDED.get(size, samples)}


def run(gpu: Gpu, module: Module, data: Data) -> Outputs:
    voxels, count = data["x"].size, data["kx"].size
    phi = [gpu.to_device(data[name]) for name in ("phi_real", "phi_imaginary")]
    magnitude = gpu.empty(count, np.float32)
    grid = (-(-count // MAGNITUDE_BLOCK),)
    module.launch("compute_phi_mag", grid=grid, block=(MAGNITUDE_BLOCK,), args=[*phi, magnitude, np.int32(count)])
    magnitudes = gpu.from_device(magnitude)

    samples = np.stack([data["kx"], data["ky"], data["kz"], magnitudes], axis=1)
    position = [gpu.to_device(data[name]) for name in "xyz"]
    q_real, q_imaginary = (gpu.to_device(np.zeros(voxels, np.float32)) for _ in range(2))
    for first in range(0, data["added"], SAMPLES_PER_LAUNCH):
        part = samples[first : min(first + SAMPLES_PER_LAUNCH, data["added"])]
        module.set_symbol("samples", part)
        args = [np.int32(len(part)), *position, q_real, q_imaginary]
        module.launch("compute_q", grid=(voxels // Q_BLOCK,), block=(Q_BLOCK,), args=args)
    return {"magnitude": magnitudes, "q_real": gpu.from_device(q_real), "q_imaginary": gpu.from_device(q_imaginary)}


def reference(data: Data) -> Outputs:
    x, y, z, kx, ky, kz = (data[name].astype(np.float64) for name in ("x", "y", "z", "kx", "ky", "kz"))
    magnitude = data["phi_real"].astype(np.float64) ** 2 + data["phi_imaginary"].astype(np.float64) ** 2
    q = np.zeros(x.size, complex)
    for k in range(data["added"]):
        q += magnitude[k] * np.exp(2j * np.pi * (kx[k] * x + ky[k] * y + kz[k] * z))
    return {
        "magnitude": magnitude.astype(np.float32),
        "q_real": q.real.astype(np.float32),
        "q_imaginary": q.imag.astype(np.float32),
    }
