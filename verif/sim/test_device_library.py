"""CUDA's device library in kernels: mathematics against Python's, copies of memory, assertions, and what is refused."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import pytest

from lockstep.sim import Gpu, KernelFault, UsageError

# Functions of one and two numbers, and the numbers: nowhere near a zero of a function that has an error there.
ONE: dict[str, float] = {
    "sin": 0.7, "cos": 12.3, "tan": -1.1, "asin": 0.3, "acos": -0.4, "atan": 5.5, "sinh": 1.9, "cosh": -2.3,
    "tanh": 0.6, "asinh": 7.0, "acosh": 3.0, "atanh": -0.7, "exp": 2.2, "exp2": -3.5, "expm1": 0.01, "log": 9.1,
    "log2": 0.03, "log10": 77.0, "log1p": 0.002, "sqrt": 2.0, "cbrt": -27.5, "erf": 0.4, "erfc": 1.3, "lgamma": 4.6,
    "gamma": 5.5, "floor": -2.5, "ceil": 2.5, "trunc": -7.9, "fabs": -3.25,
}  # fmt: skip
TWO: dict[str, tuple[float, float]] = {
    "pow": (2.5, 3.25), "atan2": (-1.5, -2.5), "hypot": (3.5, 4.5), "fmod": (17.25, 3.5), "remainder": (17.25, 3.5),
    "copysign": (2.5, -1.0),
}  # fmt: skip
IN_C = {"gamma": "tgamma"}


def _call(name: str, suffix: str, *arguments: str) -> str:
    return f"{IN_C.get(name, name)}{suffix}({', '.join(arguments)})"


@pytest.mark.parametrize(("kind", "suffix", "tolerance"), [(np.float32, "f", 2e-6), (np.float64, "", 2e-14)])
def test_mathematics(kind: type, suffix: str, tolerance: float) -> None:
    inputs = [*((x, 0.0) for x in ONE.values()), *TWO.values()]
    lines = [f"z[{k}] = {_call(name, suffix, f'x[{k}]')};" for k, name in enumerate(ONE)]
    lines += [f"z[{k}] = {_call(name, suffix, f'x[{k}]', f'y[{k}]')};" for k, name in enumerate(TWO, len(ONE))]
    name = "float" if suffix else "double"
    gpu, body = Gpu("gtx480", core_sms=1), "\n".join(lines)
    module = gpu.load(f"__global__ void all(const {name} *x, const {name} *y, {name} *z) {{\n{body}\n}}")
    x, y = np.array(inputs, kind).T.copy()
    z = gpu.empty(len(inputs), kind)
    module.launch("all", 1, 1, [gpu.to_device(x), gpu.to_device(y), z])
    functions: list[Callable[..., float]] = [getattr(math, each) for each in (*ONE, *TWO)]
    arguments = [(float(a), float(b))[: 1 if k < len(ONE) else 2] for k, (a, b) in enumerate(zip(x, y, strict=True))]
    expected = [function(*given) for function, given in zip(functions, arguments, strict=True)]
    for each, got, want in zip((*ONE, *TWO), gpu.from_device(z), expected, strict=True):
        assert got == pytest.approx(want, rel=tolerance), each


def test_copies_of_memory() -> None:
    """Lengths that are known when the kernel runs."""
    gpu = Gpu("gtx480", core_sms=1, strict=True)
    module = gpu.load("""
        __global__ void copies(unsigned char *to, const unsigned char *from, int n) {
            memset(to + 100 * threadIdx.x, 7, 100);
            memcpy(to + 100 * threadIdx.x + 3, from + n, n);
        }
    """)
    source = np.arange(200, dtype=np.uint8)
    to = gpu.empty((3, 100), np.uint8)
    module.launch("copies", 1, 3, [to, gpu.to_device(source), 90])
    assert (gpu.from_device(to) == [7, 7, 7, *range(90, 180), 7, 7, 7, 7, 7, 7, 7]).all()


@pytest.mark.parametrize(("name", "use"), [("malloc", "*x = *(int *)malloc(4);"), ("free", "free(x);")])
def test_there_is_no_heap(name: str, use: str) -> None:
    with pytest.raises(UsageError, match=rf"^\S+\.ptx:\d+: .*`{name}` has no body; .*vprintf and __assertfail work$"):
        Gpu("gtx480").load(f"__global__ void k(int *x) {{\n{use}\n}}\n")


def test_kernels_launch_no_kernels() -> None:
    text = """.version 7.0\n.target sm_75\n.address_size 64
        .extern .func (.param .b32 r) cudaLaunchDeviceV2 (.param .b64 a, .param .b64 b);
        .visible .entry k() {
          .param .b64 a; .param .b64 b; .param .b32 r;
          call.uni (r), cudaLaunchDeviceV2, (a, b);
          ret;
        }
    """
    with pytest.raises(UsageError, match=r"<text>:7: .*launches of kernels by kernels are not supported$"):
        Gpu("gtx480").load(text)


def test_an_assertion_stops_the_launch() -> None:
    declared = 'extern "C" __device__ void __assertfail(const char *, const char *, unsigned, const char *, size_t);\n'
    gpu = Gpu("gtx480", core_sms=1)
    use = '__global__ void k(int *x) { if (x[threadIdx.x] == 5) __assertfail("x", "file", 1, "k", 1); }\n'
    module = gpu.load(declared + use)
    module.launch("k", 1, 64, [gpu.to_device(np.zeros(64, np.int32))])
    with pytest.raises(KernelFault, match=r"assertion failed at .*CTA \(0, 0, 0\), warp 1"):
        module.launch("k", 1, 64, [gpu.to_device(np.arange(64, dtype=np.int32) - 32 - 3)])
