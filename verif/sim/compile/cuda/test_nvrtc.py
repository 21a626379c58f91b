"""CUDA C through NVRTC: compiled, kept, with options, instances of templates, wrong, and without the packages."""

from __future__ import annotations

import ctypes
import errno
from pathlib import Path

import numpy as np
import pytest

from lockstep.cli import main as cli
from lockstep.models import cache
from lockstep.sim import Gpu, KernelFault, UsageError
from lockstep.sim.compile.cuda import headers, nvrtc
from lockstep.sim.compile.cuda.options import Options

SOURCE = """
__global__ void twice(float *x, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) x[i] *= 2.0f;
}
"""


@pytest.fixture(autouse=True)
def own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """For what comes from CUDA C; it knows that the model is compiled, so that no launch looks whether it is."""
    compiled = cache.folder() / "compiled"
    compiled.mkdir(exist_ok=True)
    (tmp_path / "cache").mkdir()
    (tmp_path / "cache" / "compiled").symlink_to(compiled)
    monkeypatch.setenv("LOCKSTEP_CACHE", str(tmp_path / "cache"))


def test_a_cuda_file_runs(tmp_path: Path) -> None:
    file = tmp_path / "twice.cu"
    file.write_text(SOURCE, encoding="utf-8")
    gpu = Gpu("gtx480", core_sms=2)
    x = gpu.to_device(np.arange(100, dtype=np.float32))
    gpu.load(file).launch("twice", 4, 32, [x, 100])
    assert (gpu.from_device(x) == 2 * np.arange(100)).all()


def test_text_is_recognised(tmp_path: Path) -> None:
    assert "_Z5twicePfi" in Gpu("gtx480").load(SOURCE).program.kernels


def test_compiled_once(monkeypatch: pytest.MonkeyPatch) -> None:
    first = nvrtc.compile_text(SOURCE).path
    assert ".entry _Z5twicePfi" in first.read_text(encoding="utf-8")
    monkeypatch.setattr(nvrtc, "_compile", lambda *_: pytest.fail("compiled again"))
    assert nvrtc.compile_text(SOURCE).path == first
    whole = first.read_text(encoding="utf-8")
    first.write_text(whole[:100], encoding="utf-8")
    assert nvrtc.compile_text(SOURCE).path.read_text(encoding="utf-8") == whole, "a damaged file is written anew"


def test_a_full_disk_costs_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write = nvrtc.files.write

    def full(path: Path, content: bytes) -> None:
        if path.is_relative_to(tmp_path):
            raise OSError(errno.ENOSPC, "full")
        write(path, content)

    monkeypatch.setattr(nvrtc.files, "write", full)
    assert "_Z5twicePfi" in Gpu("gtx480").load(SOURCE).program.kernels
    assert not list(tmp_path.rglob("*.ptx"))


def test_headers_may_change(tmp_path: Path) -> None:
    (tmp_path / "factor.h").write_text("#define FACTOR 3.0f\n", encoding="utf-8")
    file = tmp_path / "scaled.cu"
    file.write_text('#include "factor.h"\n' + SOURCE.replace("2.0f", "FACTOR"), encoding="utf-8")
    assert "0f40400000" in nvrtc.compile_file(file).path.read_text(encoding="utf-8")
    (tmp_path / "factor.h").write_text("#define FACTOR 5.0f\n", encoding="utf-8")
    assert "0f40A00000" in nvrtc.compile_file(file).path.read_text(encoding="utf-8")


def test_an_error_names_file_and_line(tmp_path: Path) -> None:
    file = tmp_path / "wrong.cu"
    file.write_text(SOURCE.replace("x[i]", "y[i]"), encoding="utf-8")
    with pytest.raises(UsageError, match=r"wrong\.cu\(4\): error.*\"y\" is undefined"):
        nvrtc.compile_file(file)


def test_no_library(monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(*_: object) -> None:
        raise OSError

    monkeypatch.setattr(ctypes, "CDLL", missing)
    with pytest.raises(UsageError, match=r"pip install 'lockstep-sm\[cuda\]'"):
        Gpu("gtx480").load(SOURCE)


def test_texts_of_all_ages(tmp_path: Path) -> None:
    file = tmp_path / "old.cu"
    file.write_bytes(
        "\ufeff".encode() + b"// \xa9 1999\r\n#define A \\\r\n 3\r\n__global__ void k(int *x) { x[0] = A; }\r\n"
    )
    assert ".entry" in nvrtc.compile_file(file).path.read_text(encoding="utf-8")
    assert Gpu("gtx480").load("// see p.version\n__global__ void k() {}").kernel("k")
    file.write_bytes(b"\x7fELF\0\0")
    with pytest.raises(UsageError, match=r"old\.cu: not a CUDA file"):
        nvrtc.compile_file(file)


# -------------------------------------------------------------------------------------------------------------- options

OPTIONAL = """
#include <factor.h>
#if __cplusplus > 201703L
#define LATEST 1
#else
#define LATEST 0
#endif
__global__ void k(float *x) { x[0] = FACTOR; x[1] = LATEST; x[2] = sinf(x[3]); x[4] = ADDED; x[5] = __CUDA_ARCH__; }
"""


def compiled(**options: object) -> str:
    return nvrtc.compile_text(OPTIONAL, options=Options(**options)).path.read_text(encoding="utf-8")  # type: ignore[arg-type]


def test_options(tmp_path: Path) -> None:
    (tmp_path / "factor.h").write_text("#define FACTOR 3.0f\n", encoding="utf-8")
    plain = compiled(include=[tmp_path], define=["ADDED"])
    assert ".target sm_75" in plain and "sin.approx" not in plain
    changed = compiled(include=[str(tmp_path)], define=["ADDED=6"], std="c++20", arch="sm_80", fast_math=True)
    assert ".target sm_80" in changed and "sin.approx" in changed
    for value in (3.0, 1.0, 6.0, 800.0):
        assert (
            f"0f{np.float32(value).view(np.uint32):08X}" in changed or str(np.float32(value).view(np.uint32)) in changed
        )
    with pytest.raises(UsageError, match=r"FACTOR.*headers not found \(-I\): factor\.h"):
        compiled()


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"include": "folder"}, "include = 'folder': must be a list"),
        ({"include": ["/nowhere"]}, "include: /nowhere: no such folder"),
        ({"define": "N=3"}, "define = 'N=3': must be a list"),
        ({"define": ["3N"]}, "define: '3N': must be NAME or NAME=VALUE"),
        ({"std": "c++98"}, r"std = 'c\+\+98': must be one of c\+\+11"),
        ({"arch": "fermi"}, "arch = 'fermi': must be like sm_75"),
        ({"arch": "sm_20"}, "arch = 'sm_20': this NVRTC supports sm_75"),
    ],
)
def test_wrong_options(options: dict[str, object], words: str) -> None:
    with pytest.raises(UsageError, match=words):
        Gpu("gtx480").load(SOURCE, **options)  # type: ignore[arg-type]


def test_options_are_for_cuda_alone() -> None:
    ptx = nvrtc.compile_text(SOURCE).path
    with pytest.raises(UsageError, match="is PTX; include"):
        Gpu("gtx480").load(ptx, define=["N=3"])


# ------------------------------------------------------------------------------------------------- names of kernels

TEMPLATES = """
__device__ int counter;
template <int N> __global__ void f(int *x) { x[threadIdx.x] = N; counter++; }
template <class T, int N> __global__ void g(T *x) { x[0] = N; }
namespace a { __global__ void h(int *x) { x[0] = 7; } }
int main() { f<3><<<1, 1>>>(0); }
"""


def test_templates_by_name() -> None:
    gpu = Gpu("gtx480", core_sms=1)
    module = gpu.load(TEMPLATES)
    x = gpu.to_device(np.zeros(1, np.int32))
    for name, value in (("f<3>", 3), ("f< 2+2 >", 4), ("h", 7), ("g<int, 5>", 5), ("a::h", 7), ("f<4>", 4)):
        module.launch(name, 1, 1, [x])
        assert gpu.from_device(x)[0] == value, name
    assert module.get_symbol("counter", np.int32)[0] == 3
    assert module.kernel("f<4>").shown == "f<4>"


def test_unknown_names() -> None:
    module = Gpu("gtx480").load(TEMPLATES)
    with pytest.raises(UsageError, match=r"no kernel 'k'; the module has f<3>, a::h; templates, .*: g$"):
        module.launch("k", 1, 1)
    with pytest.raises(UsageError, match=r"^g<int>: .*g"):
        module.launch("g<int>", 1, 1)
    module.kernel("f<4>")
    with pytest.raises(UsageError, match=r"'f' is ambiguous: it may be f<3>\(int\*\) or f<4>\(int\*\)"):
        module.launch("f", 1, 1)


def test_registers_of_an_instance() -> None:
    module = Gpu("gtx480").load(TEMPLATES, registers={"f<4>": 40})
    module.kernel("f<5>")
    assert module.kernel("f<4>").registers == 40


def test_no_kernels() -> None:
    with pytest.raises(UsageError, match="<text>: has no kernels"):
        Gpu("gtx480").load("int main() {\n}\n")


def test_a_text_of_one_line_is_a_text() -> None:
    module = Gpu("gtx480").load("__global__ void f(int *x) { x[0] = 1; }")
    assert module.kernel("f") and repr(module) == "<Module <text>: f>"


# --------------------------------------------------------------------------------------------------- what goes wrong


def test_one_kernel_that_cannot_be_compiled() -> None:
    gpu = Gpu("gtx480", core_sms=1)
    module = gpu.load(
        "__global__ void bad(int **x) { x[0] = (int *)malloc(4); }\n__global__ void good(int *x) { x[0] = 3; }"
    )
    x = gpu.to_device(np.zeros(1, np.int32))
    module.launch("good", 1, 1, [x])
    assert gpu.from_device(x)[0] == 3
    with pytest.raises(UsageError, match="malloc"):
        module.launch("bad", 1, 1, [x])


CALLS = """
__global__ void child(int *x) { x[0] = 4; }
__global__ void allocates(int **x) { cudaMalloc(&x[0], 16); }
__global__ void launches(int *x) { child<<<1, 1>>>(x); cudaDeviceSynchronize(); }
__global__ void asks(int *x) { cudaGetDevice(x); }
"""


@pytest.mark.parametrize(
    ("kernel", "reason"),
    [
        ("allocates", "`cudaMalloc`: CUDA's runtime cannot be called on the device here"),
        ("launches", "launches of kernels by kernels are not supported"),
        ("asks", "`cudaGetDevice`: CUDA's runtime cannot be called on the device here"),
    ],
)
def test_the_runtime_on_the_device(kernel: str, reason: str) -> None:
    gpu = Gpu("gtx480", core_sms=1)
    module, x = gpu.load(CALLS), gpu.to_device(np.zeros(1, np.int32))
    with pytest.raises(UsageError, match=reason):
        module.launch(kernel, 1, 1, [x])
    module.launch("child", 1, 1, [x])
    assert gpu.from_device(x)[0] == 4


GRID = """
#include <cooperative_groups.h>
namespace cg = cooperative_groups;
__global__ void meets(float *x) { cg::this_grid().sync(); x[0] = 1; }
__global__ void asks(float *x) { x[0] = cg::this_grid().is_valid() ? 1 : cg::this_grid().size(); }
"""


@pytest.mark.long
def test_grids_that_meet(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    gpu = Gpu("gtx480", core_sms=1)
    module, x = gpu.load(GRID), gpu.to_device(np.zeros(1, np.float32))
    for look in (lambda: module.occupancy("meets", 32), lambda: module.launch("meets", 1, 32, [x])):
        with pytest.raises(UsageError, match=r"waits for all CTAs of its grid \(`grid\.sync\(\)`\), which is not supp"):
            look()
    module.launch("asks", 2, 32, [x])
    assert gpu.from_device(x)[0] == 64
    file = tmp_path / "grid.cu"
    file.write_text(GRID, encoding="utf-8")
    assert cli.main(["occupancy", str(file), "--threads", "32"]) == 0
    assert "grid.sync" in capsys.readouterr().out
    file.write_text(GRID.partition("__global__ void asks")[0], encoding="utf-8")
    assert cli.main(["occupancy", str(file)]) == 2


def test_a_fault_names_the_source(tmp_path: Path) -> None:
    (tmp_path / "inner.h").write_text(
        "#pragma once\n__device__ void store(int *x) {\n    x[1 << 28] = 1;\n}\n", encoding="utf-8"
    )
    file = tmp_path / "far.cu"
    text = '#include <cstdio>\n#include "inner.h"\nint main() {}\n\n__global__ void outer(int *x) { x[1 << 28] = 1; }\n'
    file.write_text(text + "__global__ void calls(int *x) { store(x); }\n", encoding="utf-8")
    gpu = Gpu("gtx480", core_sms=1)
    module, x = gpu.load(file), gpu.to_device(np.zeros(1, np.int32))
    for kernel, place, line in (("outer", file, 5), ("calls", tmp_path / "inner.h", 3)):
        with pytest.raises(
            KernelFault, match=rf"{place.name}:{line}: '.*x\[1 << 28\] = 1;.*' \(.*\.ptx:\d+: 'st\."
        ) as caught:
            module.launch(kernel, 1, 1, [x])
        assert caught.value.source == (str(place), line)
        assert (
            caught.value.ptx
            and "st." in Path(caught.value.ptx[0]).read_text(encoding="utf-8").splitlines()[caught.value.ptx[1] - 1]
        )
    with pytest.raises(KernelFault, match=r"<text>:2: 'x\[1 << 28\] = 1;"):
        gpu.load("__global__ void k(int *x) {\n    x[1 << 28] = 1;\n}").launch("k", 1, 1, [x])


def test_a_function_of_the_host() -> None:
    with pytest.raises(UsageError, match=r"\"f\" is undefined: <text>:1 has it for the host alone"):
        Gpu("gtx480").load("int f(int x) { return x; }\n__global__ void k(int *x) { x[0] = f(3); }")


def test_a_package_that_is_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(headers, "installed", lambda: ())
    for header, package in (("cuda_fp16.h", r"'lockstep-sm\[cuda\]'"), ("curand_kernel.h", "nvidia-curand")):
        with pytest.raises(UsageError, match=rf"<text>\(1\): <{header}> comes with .*: pip install {package}$"):
            nvrtc.compile_text(f"#include <{header}>\n{SOURCE}")
        nvrtc.compile_text(f"#ifdef NEVER\n#include <{header}>\n#endif\n{SOURCE}")


# ---------------------------------------------------------------------------------------------- CUDA's own headers


def test_halves_as_arguments() -> None:
    gpu = Gpu("gtx480", core_sms=1)
    module = gpu.load("#include <cuda_fp16.h>\n__global__ void k(__half *x, __half a) { x[0] = a; }")
    x = gpu.to_device(np.zeros(1, np.float16))
    module.launch("k", 1, 1, [x, np.float16(1.5)])
    assert gpu.from_device(x)[0] == 1.5
    for value in (np.float32(1), np.int16(1)):
        with pytest.raises(UsageError, match=rf"np\.{value.dtype} given, .*; it takes 2 bytes.*np\.float16"):
            module.launch("k", 1, 1, [x, value])


def test_what_the_host_compiler_has_included() -> None:
    text = (
        "__global__ void k(uint64_t *x, float *y) { x[0] = UINT_MAX + offsetof(int2, y); y[0] = M_PI * FLT_EPSILON; }"
    )
    assert nvrtc.compile_text(text).path.is_file()


def test_constants_of_constants() -> None:
    """nvcc computes them."""
    gpu = Gpu("gtx480", core_sms=1)
    text = """
    typedef double real;
    namespace q { const float a = 2.0f; const float b = 1.0 / a; static float const c = -a, d = c * 3; }
    namespace q { const int e = d; }
    const real inf = HUGE_VAL, less = -inf;
    __constant__ float table[3] = {q::b, q::c, 2 * q::d};
    const float huge = -INFINITY, none = NAN;
    const int n = 3, *const nowhere = 0;
    __global__ void k(float *x) {
        x[0] = q::b; x[1] = q::d; x[2] = q::e; x[3] = table[threadIdx.x + 2]; x[4] = less; x[5] = huge; x[6] = none;
        x[7] = nowhere == 0 ? n : 0;
    }
    """
    module, x = gpu.load(text), gpu.to_device(np.zeros(8, np.float32))
    module.launch("k", 1, 1, [x])
    assert np.array_equal(gpu.from_device(x), [0.5, -6, -6, -12, -np.inf, -np.inf, np.nan, 3], equal_nan=True)


def test_constants_and_pointers_in_structs() -> None:
    gpu = Gpu("gtx480", core_sms=1)
    weights = ", ".join(map(str, range(1, 29)))
    text = f"""
    __device__ int x[4] = {{5, 6}};
    struct Row {{ long long weight[28]; int *where; }};
    __device__ Row rows[2] = {{{{{{{weights}}}, x}}, {{{{9}}, x + 1}}}};
    __global__ void k(int i, long long *o) {{ o[0] = rows[i].weight[27 * (1 - i)] + *rows[i].where; }}
    """
    module, o = gpu.load(text), gpu.to_device(np.zeros(1, np.int64))
    for row, value in enumerate((28 + 5, 9 + 6)):
        module.launch("k", 1, 1, [row, o])
        assert gpu.from_device(o)[0] == value


def test_what_the_host_is() -> None:
    text = """
    #include <unistd.h>
    #if !defined(__linux__) || !defined(__unix__) || _POSIX_VERSION < 200112L
    #error
    #endif
    """
    assert nvrtc.compile_text(text + SOURCE).path.is_file()


def test_texture_references() -> None:
    gpu = Gpu("gtx480", core_sms=1)
    text = """
    texture<uchar4, 2, cudaReadModeNormalizedFloat> image;
    texture<float> line;
    surface<void, cudaSurfaceType2D> plane;
    __global__ void k(float *x) {
        float4 t = tex2D(image, 1, 0); x[0] = t.y; x[1] = tex1Dfetch(line, 2); surf2Dwrite(3.0f, plane, 4, 0);
    }
    """
    module, x = gpu.load(text), gpu.to_device(np.zeros(2, np.float32))
    module.set_symbol("line", gpu.texture(np.arange(4, dtype=np.float32)))
    texels = np.zeros((1, 2, 4), np.uint8)
    texels[0, 1, 1] = 255
    module.set_symbol("image", gpu.texture(texels, channels=4, as_float=True))
    plane = gpu.texture(np.zeros((1, 2), np.float32))
    module.set_symbol("plane", plane)
    module.launch("k", 1, 1, [x])
    assert gpu.from_device(x).tolist() == [1, 2] and gpu.from_device(plane.texels)[0].tolist() == [0, 3]


@pytest.mark.exhaustive
@pytest.mark.long
def test_the_parts_of_cub_for_blocks() -> None:
    gpu = Gpu("gtx480", core_sms=1)
    text = """
    #include <cub/cub.cuh>
    __global__ void k(const int *x, int *sum) {
        using Reduce = cub::BlockReduce<int, 64>;
        __shared__ Reduce::TempStorage storage;
        int total = Reduce(storage).Sum(x[threadIdx.x]);
        if (threadIdx.x == 0) *sum = total;
    }
    """
    module, x = gpu.load(text), gpu.to_device(np.zeros(1, np.int32))
    module.launch("k", 1, 64, [gpu.to_device(np.arange(64, dtype=np.int32)), x])
    assert gpu.from_device(x)[0] == 64 * 63 // 2


@pytest.mark.long
def test_groups_of_several_warps_meet_in_reserved_memory() -> None:
    gpu = Gpu("gtx480", core_sms=1)
    text = """
    #include <cooperative_groups.h>
    #include <cooperative_groups/reduce.h>
    namespace cg = cooperative_groups;
    __global__ void k(int *x) {
        __shared__ int own[128];
        auto block = cg::this_thread_block();
        auto tile = cg::tiled_partition<64>(block);
        own[threadIdx.x] = x[threadIdx.x];
        int sum = cg::reduce(tile, own[threadIdx.x], cg::plus<int>());
        tile.sync();
        x[threadIdx.x] = sum + own[threadIdx.x];
    }
    """
    module = gpu.load(text, arch="sm_80")
    values = np.arange(128, dtype=np.int32)
    x = gpu.to_device(values)
    module.launch("k", 1, 128, [x])
    assert (gpu.from_device(x) == values + np.repeat(values.reshape(2, 64).sum(1), 64)).all()
    assert module.kernel("k").shared_bytes == 128 * 4 + 1024


def test_layered_textures() -> None:
    gpu = Gpu("gtx480", core_sms=1)
    text = """
    __global__ void k(cudaTextureObject_t rows, cudaTextureObject_t planes, int layer, float *x) {
        x[0] = tex1DLayered<float>(rows, 1.5f, layer);
        x[1] = tex2DLayered<float>(planes, 2.5f, 1.5f, layer);
        x[2] = tex2DLayered<float>(planes, 2.0f, 1.0f, 0);
    }
    """
    rows, planes = np.arange(12, dtype=np.float32).reshape(3, 4), np.arange(24, dtype=np.float32).reshape(2, 3, 4)
    module, x = gpu.load(text), gpu.to_device(np.zeros(3, np.float32))
    textures = gpu.texture(rows), gpu.texture(planes, filter="linear")
    for layer in (0, 1, 2, -1):
        module.launch("k", 1, 1, [*textures, np.int32(layer), x])
        row, plane = (range(count)[layer if -1 <= layer < count else -1] for count in (3, 2))
        corners = planes[0, 0:2, 1:3].mean()
        assert gpu.from_device(x).tolist() == [rows[row, 1], planes[plane, 1, 2], corners], layer


def test_cubes() -> None:
    gpu = Gpu("gtx480", core_sms=1)
    text = """
    __global__ void k(cudaTextureObject_t cube, cudaTextureObject_t cubes, float *x) {
        x[0] = texCubemap<float>(cube, 2.0f, 0.5f, -1.0f);
        x[1] = texCubemap<float>(cube, 0.1f, 0.3f, -0.4f);
        x[2] = texCubemapLayered<float>(cubes, 2.0f, 0.5f, -1.0f, 1);
        x[3] = texCubemapLod<float>(cube, 0.0f, -4.0f, 1.0f, 0.0f);
    }
    """
    cubes = np.arange(2 * 6 * 4 * 4, dtype=np.float32).reshape(12, 4, 4)
    module, x = gpu.load(text), gpu.to_device(np.zeros(4, np.float32))
    module.launch("k", 1, 1, [gpu.texture(cubes[:6]), gpu.texture(cubes), x])
    # Right and down, from -1 to 1, in the faces +x, -z, and -y.
    found = [cubes[0, 1, 3], cubes[5, 0, 1], cubes[6, 1, 3], cubes[3, 1, 2]]
    assert gpu.from_device(x).tolist() == found


def test_layered_surfaces() -> None:
    """Also the faces of a cube."""
    gpu = Gpu("gtx480", core_sms=1)
    text = """
    __global__ void k(cudaSurfaceObject_t rows, cudaSurfaceObject_t planes, cudaSurfaceObject_t cube) {
        int x = threadIdx.x, y = threadIdx.y;
        float value = surf1DLayeredread<float>(rows, 4 * x, y);
        surf1DLayeredwrite(value + 1, rows, 4 * x, y);
        surf2DLayeredwrite(value, planes, 4 * x, y, 1);
        surfCubemapwrite(value + surfCubemapread<float>(cube, 4 * x, y, 2), cube, 4 * x, y, 5);
        surfCubemapLayeredwrite(value, cube, 4 * x, y, 4);
    }
    """
    rows, planes = np.arange(16, dtype=np.float32).reshape(4, 4), np.zeros((2, 4, 4), np.float32)
    cube = np.arange(96, dtype=np.float32).reshape(6, 4, 4)
    textures = [gpu.texture(each) for each in (rows, planes, cube)]
    gpu.load(text).launch("k", 1, (4, 4), textures)
    found = [gpu.from_device(texture.texels) for texture in textures]
    assert (found[0] == rows + 1).all() and (found[1] == [np.zeros((4, 4)), rows]).all()
    assert (found[2] == [*cube[:4], rows, rows + cube[2]]).all()


LAMBDAS = """
template <class F> __global__ void apply(F f, float *x) { x[threadIdx.x] = f(x[threadIdx.x]); }
[[nodiscard]] __device__ float half_of(float v) { return v / 2; }
__device__ auto times(float a) { return [=] __host__ __device__ (float v) { return half_of(a * v); }; }
__device__ auto twice = [](float v) { return v + v; };
__global__ void within(float *x) {
    auto own = [=] __device__ (float v) { return v + x[0]; };
    x[threadIdx.x] = own(x[threadIdx.x]);
}
int main() {
    float a = 3, *x = nullptr;
    auto thrice = [=] __device__ (float v) { return a * v; };
    apply<<<1, 32>>>(thrice, x);
}
"""


def test_lambdas_of_the_device() -> None:
    gpu = Gpu("gtx480", core_sms=1)
    module, values = gpu.load(LAMBDAS), np.arange(1, 33, dtype=np.float32)
    x = gpu.to_device(values)
    module.launch("apply<decltype(times(1.f))>", 1, 32, [np.float32(6).tobytes(), x])
    assert (gpu.from_device(x) == 3 * values).all()
    module.launch("within", 1, 32, [x])
    assert (gpu.from_device(x) == 3 * values + 3).all()


@pytest.mark.parametrize("name", ["thrice", "twice"])
def test_lambdas_of_the_host(name: str) -> None:
    """One that captures, and one at namespace scope, which is no type for a kernel either."""
    with pytest.raises(UsageError, match=r"<text>: a kernel's template argument cannot be a lambda of the host; let a"):
        Gpu().load(LAMBDAS).launch(f"apply<decltype({name})>", 1, 32, [])
