"""The kernels' protocol, the check of results, and every reference against plain loops over the same inputs."""

from __future__ import annotations

import math
import os
from pathlib import Path

import numpy as np
import pytest

from lockstep.sim.compile.ptx import program
from lockstep.sim.device import description
from lockstep.sim.errors import UsageError
from lockstep.sim.kernels import Close, Data, Exact, Kernel, Outputs, check, find, load, names
from lockstep.spec import registry
from lockstep.verif.conftest import partly

SEED = int(os.environ.get("LOCKSTEP_SEED", "20"))

FIRST_FOURTEEN = {
    "BlackScholes",
    "backprop-adjust-weights",
    "backprop-layerforward",
    "bfs",
    "gemm",
    "histogram",
    "hotspot",
    "mri-q",
    "reduction",
    "saxpy",
    "sgemm",
    "spmv",
    "transpose-naive",
    "transpose-tiled",
}


def same(name: str, got: Outputs) -> None:
    """Compare outputs that a plain loop computed with the kernel's reference, by the kernel's own check."""
    kernel = find(name)
    data = kernel.setup("tiny", SEED)
    result = check(kernel, got, data)
    assert result.passed, f"LOCKSTEP_SEED={SEED} {name}: {result.message}"
    assert result.compared == sum(array.size for array in got.values())


def tiny(name: str) -> Data:
    return find(name).setup("tiny", SEED)


# ----------------------------------------------------------------------------------------------------------- protocol


def test_all_kernels_are_found() -> None:
    assert set(names()) >= FIRST_FOURTEEN


@pytest.mark.parametrize("name", partly(names(), 4))
def test_protocol(name: str) -> None:
    kernel = find(name)
    assert kernel.name == name
    assert kernel.title and "\n" not in kernel.title
    assert kernel.suite
    text = kernel.ptx.read_text(encoding="utf-8")
    assert ".entry" in text
    assert text.count(".target sm_75") == 1
    assert not any(path in text for path in ("/home", "/tmp", "/root", "/usr"))
    assert kernel.ptx.with_suffix(".cu").is_file()
    functions = program.load(kernel.ptx, passes=registry.passes(description.load("tesla-c2050"))).kernels
    assert all(count >= functions[function].registers for function, count in kernel.registers.items())
    inputs = {size: kernel.setup(size, SEED) for size in kernel.sizes if size != "full"}
    outputs = kernel.reference(inputs["tiny"])
    assert outputs and all(isinstance(array, np.ndarray) and array.size for array in outputs.values())
    assert set(kernel.tolerance) <= set(outputs)
    for output, array in outputs.items():
        if isinstance(kernel.tolerance.get(output, Exact()), Close):
            assert array.dtype.kind == "f"
            assert np.isfinite(array).all()


@pytest.mark.parametrize("name", names())
def test_setup_is_reproducible_and_reference_leaves_it_alone(name: str) -> None:
    kernel = find(name)
    first, second = kernel.setup("tiny", SEED), kernel.setup("tiny", SEED)
    kernel.reference(first)
    for key, value in second.items():
        assert np.array_equal(first[key], value)
    other = kernel.setup("tiny", SEED + 1)
    assert any(not np.array_equal(other[key], value) for key, value in second.items())


def test_names_ignore_case_and_files_load(tmp_path: Path) -> None:
    assert find("blackscholes").name == "BlackScholes"
    folder = find("saxpy").ptx.parent
    (tmp_path / "saxpy.ptx").write_text((folder / "saxpy.ptx").read_text(encoding="utf-8"), encoding="utf-8")
    (tmp_path / "mine.py").write_text((folder / "kernel.py").read_text(encoding="utf-8"), encoding="utf-8")
    assert find(tmp_path / "mine.py").name == "mine"


@pytest.mark.parametrize(
    ("source", "message"),
    [
        ("TITLE = 'x'", "does not define SUITE, PTX, setup, run, reference"),
        ("def", "mine.py:1:"),
        ("import no_such_module", "no_such_module"),
        (
            "TITLE = SUITE = 'x'\nPTX = 'none.ptx'\ndef setup(): ...\ndef run(): ...\ndef reference(): ...",
            "no such file beside it",
        ),
    ],
)
def test_bad_files_are_refused(tmp_path: Path, source: str, message: str) -> None:
    (tmp_path / "mine.py").write_text(source, encoding="utf-8")
    with pytest.raises(UsageError, match=message):
        load(tmp_path / "mine.py")


def test_unknown_kernel_names_the_known() -> None:
    with pytest.raises(UsageError, match=r"gemn.*gemm"):
        find("gemn")
    with pytest.raises(UsageError, match=r"none\.py: no such file"):
        find("none.py")


# -------------------------------------------------------------------------------------------------------------- check


def made_up(reference: Outputs, **tolerance: Exact | Close) -> Kernel:
    def none(*_: object) -> dict[str, np.ndarray]:
        return {}

    return Kernel("x", "x", "x", Path("x.ptx"), ("tiny",), dict(tolerance), none, none, lambda _: reference)


def test_check_reports_the_first_difference() -> None:
    want = np.arange(12).reshape(3, 4)
    got = want.copy()
    got[1, 2] = got[2, 0] = -1
    result = check(made_up({"y": want}), {"y": got}, {})
    assert not result.passed
    assert result.message == "y[1, 2]: got -1, expected 6; 2 of 12 differ"
    assert check(made_up({"y": want}), {"y": want.copy()}, {}).passed


def test_check_of_nothing_does_not_pass() -> None:
    for outputs in ({}, {"y": np.empty(0)}):
        result = check(made_up(outputs), outputs, {})
        assert (result.passed, result.compared, result.message) == (False, 0, "nothing was compared")


@pytest.mark.parametrize(
    "got",
    [
        {},
        {"z": np.zeros(3)},
        {"y": np.zeros(4)},
        {"y": np.zeros(3, np.float32)},
        {"y": np.zeros(3), "z": np.zeros(3)},
    ],
)
def test_check_refuses_other_names_shapes_and_types(got: Outputs) -> None:
    assert not check(made_up({"y": np.zeros(3)}), got, {}).passed


def test_close() -> None:
    close = Close(rtol=0.01, atol=0.001, reason="test")
    want = np.array([100.0, 100.0, 0.0, 0.0, math.inf, 1.0, math.inf, math.nan], np.float32)
    got = np.array([100.9, 101.1, 0.0009, 0.0011, math.inf, math.nan, 1.0, math.nan], np.float32)
    assert close.agrees(got, want).tolist() == [True, False, True, False, True, False, False, False]
    with pytest.raises(UsageError, match="reason"):
        Close(rtol=0.01)


@pytest.mark.parametrize("name", names())
def test_poison_fails_every_output(name: str) -> None:
    kernel = find(name)
    data = kernel.setup("tiny", SEED)
    expected = kernel.reference(data)
    assert check(kernel, {key: array.copy() for key, array in expected.items()}, data).passed
    for output in expected:
        poisoned = {key: array.copy() for key, array in expected.items()}
        poisoned[output].reshape(-1)[-1:].view(np.uint8)[:] = 0xA5
        assert not check(kernel, poisoned, data).passed


# --------------------------------------------------------------------------------------- references against plain loops


def test_saxpy() -> None:
    data = tiny("saxpy")
    y = [np.float32(float(data["a"]) * float(x) + float(y)) for x, y in zip(data["x"], data["y"], strict=True)]
    same("saxpy", {"y": np.array(y, np.float32)})


def test_reduction() -> None:
    values = [int(value) for value in tiny("reduction")["input"]]
    ctas = -(-len(values) // 512)
    sums = [0] * ctas
    for i, value in enumerate(values):
        sums[i // 512 % ctas] += value
    wrapped = [(value + 2**31) % 2**32 - 2**31 for value in (*sums, sum(values))]
    same("reduction", {"partial": np.array(wrapped[:-1], np.int32), "total": np.array(wrapped[-1:], np.int32)})


def test_gemm() -> None:
    data = tiny("gemm")
    a, b, c = data["a"], data["b"], data["c"].astype(np.float64)
    for i, j in np.ndindex(c.shape):
        total = sum(float(a[i, k]) * float(b[k, j]) for k in range(a.shape[1]))
        c[i, j] = 1.5 * total + 1.25 * c[i, j]
    same("gemm", {"c": c.astype(np.float32)})


def test_sgemm() -> None:
    data = tiny("sgemm")
    a, b = data["a"].ravel(), data["b"].ravel()  # column-major: element (row, k) stands at row + k * rows
    (k, m), n = data["a"].shape, data["b"].shape[1]
    c = data["c"].astype(np.float64).ravel()
    for row in range(m):
        for column in range(n):
            total = sum(float(a[row + step * m]) * float(b[column + step * n]) for step in range(k))
            c[row + column * m] = 0.5 * c[row + column * m] + total
    same("sgemm", {"c": c.reshape(n, m).astype(np.float32)})


def test_hotspot() -> None:
    data = tiny("hotspot")
    capacitance, rx, ry, rz, time_step = (float(value) for value in data["constants"])
    old = data["temperature"].astype(np.float64)
    rows, columns = old.shape
    for _ in range(data["steps"]):
        new = old.copy()
        for y, x in np.ndindex(old.shape):
            vertical = old[max(y - 1, 0), x] + old[min(y + 1, rows - 1), x] - 2 * old[y, x]
            horizontal = old[y, max(x - 1, 0)] + old[y, min(x + 1, columns - 1)] - 2 * old[y, x]
            flow = data["power"][y, x] + vertical / ry + horizontal / rx + (80 - old[y, x]) / rz
            new[y, x] = old[y, x] + time_step / capacitance * flow
        old = new
    assert np.abs(old - data["temperature"]).max() > 0.01  # more than the tolerance: the steps matter
    same("hotspot", {"temperature": old.astype(np.float32)})


def test_spmv() -> None:
    data = tiny("spmv")
    result = np.full(data["vector"].size, np.nan, np.float32)
    for row, original in enumerate(data["permutation"]):
        total = 0.0
        for k in range(data["warp_diagonals"][row // 32]):
            entry = data["diagonal_start"][k] + row
            total += float(data["values"][entry]) * float(data["vector"][data["columns"][entry]])
        result[original] = total
    same("spmv", {"result": result})


@pytest.mark.exhaustive
@pytest.mark.long
@pytest.mark.parametrize("size", ["steady", "scattered"])
def test_spmv_has_the_structure_of_dubcova3(size: str) -> None:
    """The figures of the SuiteSparse Matrix Collection, whose file has six zeros among the entries."""
    data = find("spmv").setup(size, SEED)
    rows = data["vector"].size
    widths = np.diff(data["diagonal_start"], append=data["values"].size)
    used = data["values"] != 0
    row = data["permutation"][np.concatenate([np.arange(width) for width in widths])][used].astype(np.int64)
    column = data["columns"][used].astype(np.int64)
    assert (rows, row.size) == (146_689, 3_636_643 + 6)
    assert np.array_equal(np.unique(row * rows + column), np.sort(column * rows + row))
    lengths = np.bincount(row)
    assert lengths[:81_153].min() > lengths[81_153:].max() == 16
    assert lengths.max() == 49


def test_spmv_scattered_gathers_from_more_lines() -> None:
    """Of the vector, for a warp's first diagonal."""

    def lines(size: str) -> float:
        data = find("spmv").setup(size, SEED)
        columns = data["columns"][: data["vector"].size // 32 * 32].reshape(-1, 32)
        return float(np.mean([np.unique(warp // 32).size for warp in columns]))

    assert lines("scattered") > 5 * lines("steady")


def test_bfs() -> None:
    data = tiny("bfs")
    cost = np.full(len(data["nodes"]), -1, np.int32)
    queue = [data["source"]]
    cost[queue[0]] = 0
    for node in queue:
        first, count = data["nodes"][node]
        for neighbour in data["edges"][first : first + count]:
            if cost[neighbour] < 0:
                cost[neighbour] = cost[node] + 1
                queue.append(neighbour)
    same("bfs", {"cost": cost})


def test_mri_q() -> None:
    data = tiny("mri-q")
    voxels, samples = data["x"].size, data["kx"].size
    phi = zip(data["phi_real"], data["phi_imaginary"], strict=True)
    magnitude = np.array([float(re) ** 2 + float(im) ** 2 for re, im in phi])
    real, imaginary = np.zeros(voxels, np.float32), np.zeros(voxels, np.float32)
    for voxel in range(voxels):
        position = [float(data[axis][voxel]) for axis in "xyz"]
        angles = [
            2 * math.pi * sum(float(data["k" + axis][k]) * at for axis, at in zip("xyz", position, strict=True))
            for k in range(samples)
        ]
        real[voxel] = sum(m * math.cos(angle) for m, angle in zip(magnitude, angles, strict=True))
        imaginary[voxel] = sum(m * math.sin(angle) for m, angle in zip(magnitude, angles, strict=True))
    same("mri-q", {"magnitude": magnitude.astype(np.float32), "q_real": real, "q_imaginary": imaginary})


@pytest.mark.parametrize("name", ["transpose-naive", "transpose-columns", "transpose-tiled", "transpose-padded"])
def test_transpose(name: str) -> None:
    source = tiny(name)["input"]
    target = np.empty(source.shape[::-1], np.float32)
    for y, x in np.ndindex(source.shape):
        target[x, y] = source[y, x]
    same(name, {"output": target})


def test_backprop_layerforward() -> None:
    data = tiny("backprop-layerforward")
    weights = data["weights"].copy()
    ctas = (data["input"].size - 1) // 16
    sums = np.empty((ctas, 16), np.float32)
    for cta in range(ctas):
        for unit in range(1, 17):
            column = [weights[cta * 16 + i, unit] * data["input"][cta * 16 + i] for i in range(1, 17)]
            for step in (2, 4, 8, 16):
                for i in range(0, 16, step):
                    column[i] = column[i] + column[i + step // 2]
            for i in range(16):
                weights[cta * 16 + 1 + i, unit] = column[i]
            sums[cta, unit - 1] = column[0]
    same("backprop-layerforward", {"weights": weights, "partial_sums": sums})


def test_backprop_adjust_weights() -> None:
    data = tiny("backprop-adjust-weights")
    weights, old = data["weights"].copy(), data["old_change"].copy()
    for i in range(data["layer"].size):
        value = 1.0 if i == 0 else float(data["layer"][i])
        for unit in range(1, 17):
            change = 0.3 * float(data["delta"][unit]) * value + 0.3 * float(data["old_change"][i, unit])
            weights[i, unit] = float(data["weights"][i, unit]) + change
            old[i, unit] = change
    same("backprop-adjust-weights", {"weights": weights, "old_change": old})


@pytest.mark.parametrize("name", ["histogram", "histogram-atomics"])
def test_histogram(name: str) -> None:
    counts = [0] * 256
    for value in tiny(name)["data"]:
        counts[value] += 1
    same(name, {"histogram": np.array(counts, np.uint32)})


def test_black_scholes() -> None:
    """Against the normal distribution itself: the kernel's polynomial errs by 7.5e-8."""
    data = tiny("BlackScholes")
    call, put = [], []
    for s, x, t in zip(data["price"], data["strike"], data["years"], strict=True):
        s, x, t = float(s), float(x), float(t)
        d1 = (math.log(s / x) + (0.02 + 0.3**2 / 2) * t) / (0.3 * math.sqrt(t))
        d2 = d1 - 0.3 * math.sqrt(t)
        n1, n2 = (math.erfc(-d / math.sqrt(2)) / 2 for d in (d1, d2))
        discounted = x * math.exp(-0.02 * t)
        call.append(s * n1 - discounted * n2)
        put.append(discounted * (1 - n2) - s * (1 - n1))
    same("BlackScholes", {"call": np.array(call, np.float32), "put": np.array(put, np.float32)})


def test_stencil() -> None:
    data = tiny("stencil")
    old = data["grid"].astype(np.float64)
    for _ in range(data["iterations"]):
        new = old.copy()
        for z, y, x in np.ndindex(old.shape):
            if 0 in (z, y, x) or any(i == n - 1 for i, n in zip((z, y, x), old.shape, strict=True)):
                continue
            total = old[z - 1, y, x] + old[z + 1, y, x] + old[z, y - 1, x] + old[z, y + 1, x]
            new[z, y, x] = (total + old[z, y, x - 1] + old[z, y, x + 1]) / 36 - old[z, y, x] / 6
        old = new
    assert np.abs(old - data["grid"]).max() > 0.1
    same("stencil", {"grid": old.astype(np.float32)})


def test_convolution() -> None:
    data = tiny("convolutionSeparable")
    height, width = data["image"].shape
    image, coefficients = data["image"].astype(int).tolist(), data["coefficients"].astype(int).tolist()
    assert coefficients != coefficients[::-1]
    rows, columns = ([[0] * width for _ in range(height)] for _ in range(2))
    for y, x in np.ndindex(height, width):
        for away in range(-8, 9):
            if 0 <= x + away < width:
                rows[y][x] += coefficients[8 - away] * image[y][x + away]
    for y, x in np.ndindex(height, width):
        for away in range(-8, 9):
            if 0 <= y + away < height:
                columns[y][x] += coefficients[8 - away] * rows[y + away][x]
    same("convolutionSeparable", {"rows": np.array(rows, np.float32), "columns": np.array(columns, np.float32)})
