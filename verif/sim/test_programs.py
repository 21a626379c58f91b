"""Whole CUDA programs load as they stand: all of their kernels, and the results of some."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from lockstep.sim import Gpu
from lockstep.sim.compile.cuda import nvrtc
from lockstep.sim.compile.ptx import names, program

FOLDER = Path(__file__).parents[1] / "programs"
PROGRAMS = sorted(str(path.relative_to(FOLDER)) for path in FOLDER.glob("*/*.cu"))

# Instances of the kernel templates whose arguments only the host's code finds out.
INSTANCES = {
    "polybench/adi.cu": ["forward<0>", "last<0>", "backward<1>"],
    "polybench/doitgen.cu": ["doitgen::contract<double>", "doitgen::write_back<double>"],
    "polybench/mvt.cu": ["mvt_warp<float>"],
    "sdk/monteCarlo.cu": ["estimate<QuarterCircle, 128>"],
    "sdk/nbody.cu": ["nbody::integrate<float>"],
    "sdk/reduction.cu": ["interleaved<int>", "unrolled<double, 64, true>", "grouped<float>"],
    "sdk/scan.cu": ["scan_blocks<int, Plus>", "add_carry<int, Plus<int>>"],
    "sdk/streamCompaction.cu": ["compact_threads<Wanted>", "compact_warps<Wanted>"],
}

REFUSED = {"polybench/jacobi2d.cu": ["jacobi_all"]}  # the grid waits for itself


def test_there_are_forty() -> None:
    assert len(PROGRAMS) == 40


@pytest.mark.parametrize("name", PROGRAMS)
def test_loads(name: str) -> None:
    compiled = nvrtc.compile_file(FOLDER / name, names=INSTANCES.get(name, ()))
    found = program.load(compiled.path)
    assert found.kernels
    assert [names.base(names.readable(kernel)) for kernel in found.refused] == REFUSED.get(name, [])
    missing = compiled.kernels - {names.base(names.readable(kernel)) for kernel in found.kernels | found.refused}
    assert not missing


# ------------------------------------------------------------------------------------------------------------- results


@pytest.fixture(scope="module")
def gpu() -> Gpu:
    return Gpu("gtx480", core_sms=2)


def random(*shape: int) -> np.ndarray:
    return np.random.default_rng(1).random(shape, np.float32)


def test_gemm(gpu: Gpu) -> None:
    a, b, c = random(32, 16), random(16, 64), random(32, 64)
    module = gpu.load(FOLDER / "polybench/gemm.cu", define=["NI=32", "NJ=64", "NK=16"])
    there = [gpu.to_device(each) for each in (a, b, c)]
    module.launch("gemm_kernel", (2, 4), (32, 8), there)
    assert np.allclose(gpu.from_device(there[2]), 1.5 * a @ b + 1.2 * c, rtol=1e-5)


def test_an_instance_that_the_program_makes(gpu: Gpu) -> None:
    a, b, c = random(16, 128), random(16, 32), random(32, 128)  # in columns
    module = gpu.load(FOLDER / "parboil/sgemm.cu")
    there = [gpu.to_device(each) for each in (a, b, c)]
    module.launch(
        "gemm_nt<COLUMNS, DEPTH>", (1, 2), (16, 8), [there[0], 128, there[1], 32, there[2], 128, 16, 2.0, 3.0]
    )
    assert np.allclose(gpu.from_device(there[2]), 2 * b.T @ a + 3 * c, rtol=1e-5)


def test_an_instance_that_is_asked_for(gpu: Gpu) -> None:
    module = gpu.load(FOLDER / "sdk/scan.cu")
    values = np.arange(512, dtype=np.int64)
    out, sums = gpu.empty(512, np.int64), gpu.empty(2, np.int64)
    module.launch("scan_blocks<long long, Plus>", 2, 256, [gpu.to_device(values), out, sums, 512])
    module.launch("add_carry<long long, Plus<long long>>", 2, 256, [out, sums, 512, bytes(1)])
    assert (gpu.from_device(out) == values.cumsum()).all() and gpu.from_device(sums)[0] == values[:256].sum()


def test_a_struct_and_asin(gpu: Gpu) -> None:
    module = gpu.load(FOLDER / "rodinia/nearest.cu")
    places = (random(100, 2) - 0.5) * [180, 360]
    out = gpu.empty(100, np.float32)
    there = gpu.to_device(places.astype(np.float32))
    module.launch("haversine", 1, 128, [there, out, 100, 30.0, -90.0])
    (lat, lng), (x, y) = np.radians(places).T, np.radians([30, -90])
    h = np.sin((x - lat) / 2) ** 2 + np.cos(x) * np.cos(lat) * np.sin((y - lng) / 2) ** 2
    assert np.allclose(gpu.from_device(out), 12742 * np.arcsin(np.sqrt(h)), rtol=1e-3)


def test_halves(gpu: Gpu) -> None:
    module = gpu.load(FOLDER / "sdk/halfScalarProduct.cu")
    a, b = random(512, 2).astype(np.float16), random(512, 2).astype(np.float16)
    sums = gpu.empty(4, np.float32)
    module.launch("product_intrinsics", 4, 128, [gpu.to_device(a), gpu.to_device(b), sums, 512])
    assert np.isclose(gpu.from_device(sums).sum(), (a.astype(float) * b).sum(), rtol=2e-2)


def test_pointers_to_functions(gpu: Gpu) -> None:
    module = gpu.load(FOLDER / "sdk/functionPointers.cu")
    module.set_symbol("neighbourTable", module.get_symbol("boxAddress"), 8)
    picture = np.full((8, 32), 7, np.uint8)
    out = gpu.to_device(np.zeros_like(picture))
    module.launch("filterKernel", 8, 32, [out, gpu.to_device(picture), 32, 32, 8, 2.0, 1, 0])
    assert (gpu.from_device(out) == 14).all()


def test_a_managed_variable(gpu: Gpu) -> None:
    module = gpu.load(FOLDER / "sdk/monteCarlo.cu")
    module.launch("bump", 1, 1)
    mean = gpu.to_device(np.zeros(1))
    module.launch("estimate<QuarterCircle, 64>", 2, 64, [bytes(1), 3, 20000, mean])
    assert np.isclose(gpu.from_device(mean)[0], np.pi, atol=0.05)
    assert module.get_symbol("finished", np.uint32)[0] == 1, "a new instance leaves the variables as they are"
