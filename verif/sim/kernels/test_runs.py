"""Every kernel gives the right result on every GPU, with as many instructions where the compiler is the same."""

from __future__ import annotations

from collections import defaultdict
from typing import Any

import pytest

from lockstep.models.occupancy import occupancy
from lockstep.sim import kernels
from lockstep.sim.device import description
from lockstep.sim.device.gpu import Gpu
from lockstep.sim.errors import UsageError
from lockstep.sim.study.job import Job, execute

# What the size steady sets so that a part is computed, at values for the matrices of tiny.
SAMPLES: dict[str, dict[str, Any]] = {
    "2mm": {"rows": 16, "steps": 3},
    "3mm": {"rows": 16, "steps": 2},
    "LIB": {"computed": 100, "simulated": 2},
    "MonteCarlo": {"paths": 300},
    "NN": {"computed": (1, 1, 1, 1, 1)},
    "atax": {"steps": 20},
    "bicg": {"steps": 20},
    "convolutionSeparable": {"cta_rows": (10, 1)},
    "corr": {"reach": 4},
    "covar": {"reach": 4},
    "gaussian": {"steps": 2},
    "kmeans": {"sample": 256},
    "leukocyte": {"computed": (1, 4), "iterations": 1},
    "lud": {"steps": 1},
    "mri-q": {"added": 40},
    "mvt": {"steps": 20},
    "particlefilter": {"one_launch": True},
    "sgemm": {"summed": 8},
    "srad_v2": {"cta_rows": (2, 1)},
    "stencil": {"iterations": 1, "planes": 3},
    "syr2k": {"grid": (1, 3), "steps": 3},
    "syrk": {"grid": (1, 3), "steps": 3},
}


def compilers() -> list[list[str]]:
    """The GPUs for which each compiler makes code."""
    made = defaultdict(list)
    for gpu in description.names():
        made[description.load(gpu).compiler].append(gpu)
    return [*made.values()]


def gpu_of(kernel: str) -> str:
    """One for each kernel: the next kernel runs what another compiler has made, and the next of this one on another."""
    number = kernels.names().index(kernel)
    turn, which = divmod(number, len(compilers()))
    made = compilers()[which]
    return made[turn % len(made)]


@pytest.mark.parametrize("kernel", kernels.names())
def test_results(kernel: str) -> None:
    results(kernel, gpu_of(kernel))


@pytest.mark.exhaustive
@pytest.mark.parametrize("kernel", kernels.names())
def test_results_on_every_gpu(kernel: str) -> None:
    """GPUs whose code comes from the same compiler execute as many instructions; others have been tried alone."""
    for made in compilers():
        if made != [gpu_of(kernel)]:
            assert len({results(kernel, each) for each in made}) == 1


def results(kernel: str, on: str) -> tuple[int, int]:
    """Instructions of warps and of threads in a run that is right."""
    run = execute(Job(kernel, on, "tiny"))
    assert run["checked"], f"{kernel} on {on}: {run['message']}"
    assert run["compared"] > 0
    return run["warp_instructions"], run["thread_instructions"]


def test_every_gpu_runs_kernels() -> None:
    assert {gpu_of(kernel) for kernel in kernels.names()} == set(description.names())


@pytest.mark.parametrize("kernel", ["spmv", "transpose-naive", "histogram-atomics"])
def test_skipping_on_a_mesh(kernel: str) -> None:
    """Gathers, scatters and atomics through a mesh: every count is the same when every SM is stepped in every cycle."""
    found = []
    for skip in (True, False):
        gpu, folder = Gpu("dyncta56"), kernels.find(kernel)
        gpu.machine.skip = skip
        folder.run(gpu, gpu.load(folder.ptx), folder.setup("tiny", 1))
        found.append(([run.cycles for run in gpu.runs], gpu.stats, [run.per_sm for run in gpu.runs]))
    assert found[0] == found[1]
    assert found[0][1]["crossbar.replies_flits"] > 0


def test_local_memory_that_does_not_fit_is_refused() -> None:
    """14 KB per thread: 110 SMs have addresses for the warps of two CTAs each, but not for as many as fit."""
    with pytest.raises(UsageError, match=r"of local memory per thread, of 2640 warps at a time, do not fit$"):
        execute(Job("LIB", "dyncta110", "small"))


@pytest.mark.parametrize("name", SAMPLES)
def test_samples(name: str) -> None:
    """A part of the work gives that part of the result, and leaves the rest alone."""
    kernel, gpu = kernels.find(name), Gpu("gtx480")
    whole = kernel.setup("tiny", 1)
    assert whole.keys() >= SAMPLES[name].keys()
    part = whole | SAMPLES[name]
    outputs = kernel.run(gpu, gpu.load(kernel.ptx), part)
    result = kernels.check(kernel, outputs, part)
    assert result.passed, f"{name}: {result.message}"
    assert not kernels.check(kernel, outputs, whole).passed


# Resident CTAs on the papers' Fermi GPU with as many KiB of scratchpad, and what limits them: Jatala tables 2 and 3
# and Chen table 4-3; with 16 KiB, the set that sharing the scratchpad is measured with.
PUBLISHED = (
    ("b+tree", "findRangeK", 508, 48, 2, "registers"),
    ("gaussian", "Fan1", 512, 48, 3, "threads"),
    ("lavaMD", "kernel_gpu_cuda", 128, 48, 6, "scratchpad"),
    ("lud", "lud_perimeter", 32, 48, 8, "ctas"),
    ("lud", "lud_internal", 256, 48, 6, "threads"),
    ("stencil", "block2D_hybrid_coarsen_x", 512, 48, 2, "registers"),
    ("cfd", "cuda_compute_flux", 192, 48, 2, "registers"),
    ("convolutionSeparable", "convolutionColumnsKernel", 128, 48, 8, "ctas"),
    ("convolutionSeparable", "convolutionRowsKernel", 64, 16, 6, "scratchpad"),
    ("convolutionSeparable", "convolutionColumnsKernel", 128, 16, 3, "scratchpad"),
    ("lavaMD", "kernel_gpu_cuda", 128, 16, 2, "scratchpad"),
    ("nw", "needle_cuda_shared_1", 16, 16, 7, "scratchpad"),
    ("nw", "needle_cuda_shared_2", 16, 16, 7, "scratchpad"),
    ("srad_v2", "srad_cuda_1", 256, 16, 2, "scratchpad"),
    ("srad_v2", "srad_cuda_2", 256, 16, 3, "scratchpad"),
)


@pytest.mark.parametrize("name, function, threads, kibibytes, ctas, limit", PUBLISHED)
def test_occupancy_is_the_published(
    name: str, function: str, threads: int, kibibytes: int, ctas: int, limit: str
) -> None:
    scratchpad = {key: 1024 * kibibytes for key in ("scratchpad.bytes", "scratchpad.bytes_per_cta")}
    kernel, gpu = kernels.find(name), Gpu("gtx480", settings=scratchpad)
    loaded = gpu.load(kernel.ptx, registers=kernel.registers).kernel(function)
    found = occupancy(gpu.description, threads, loaded.registers, loaded.shared_bytes)
    assert found.ctas == ctas and limit in found.limited_by


# CTAs that a core of DYNCTA's GPU holds, where its paper tells (Kayiran sections 3.1 and 5.1).
DYNCTA = ("AES", "encrypt_aes256", 256, 4), ("fft", "fft_step", 128, 8), ("sad", "sad_4x4", 61, 8)


@pytest.mark.parametrize("name, function, threads, ctas", DYNCTA)
def test_occupancy_is_dyncta_s(name: str, function: str, threads: int, ctas: int) -> None:
    gpu = Gpu("dyncta30")
    loaded = gpu.load(kernels.find(name).ptx).kernel(function)
    assert occupancy(gpu.description, threads, loaded.registers, loaded.shared_bytes).ctas == ctas


def test_the_transposes_of_the_case_study() -> None:
    """A line per element where loads walk columns; 32 lanes on one bank without padding, on 32 banks with it."""
    names = ("transpose-columns", "transpose-tiled", "transpose-padded")
    columns, tiled, padded = (execute(Job(name, "gtx480", "tiny")) for name in names)
    height, width = kernels.find("transpose-columns").setup("tiny", 1)["input"].shape
    assert columns["stats"]["l1.loads"] == height * width
    assert columns["stats"]["scratchpad.accesses"] == 0
    spans = [min(32, height - first) for first in range(0, height, 32)]  # lanes that read a column of a tile
    assert tiled["stats"]["scratchpad.conflict_core_cycles"] == width * sum(lanes - 1 for lanes in spans)
    assert padded["stats"]["scratchpad.conflict_core_cycles"] == 0
