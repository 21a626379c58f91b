"""What of a CUDA program goes to the compiler."""

from __future__ import annotations

from pathlib import Path

import pytest

from lockstep.sim.compile.cuda.source import device_part

HOST = """#include <cstdio>
#include <vector>
#include "missing.h"
using namespace std;
using std::min;
#define CHECK(x) do { if (x) { printf("{"); exit(1); } } while (0)
static vector<int> sizes;
float total;
void load(const string &path, FILE *file);
"""


def cut(text: str, **options: object) -> str:
    return device_part(text, "x.cu", **options).text  # type: ignore[arg-type]


def words(text: str) -> str:
    return " ".join(text.split())


def test_every_line_stays_where_it_was() -> None:
    text = HOST + "/* one\n two */ int main() {\n return 0;\n}\n__global__ void last() {}\n"
    found = cut(text)
    assert found.count("\n") == text.count("\n")
    assert found.splitlines().index("__global__ void last() {}") == text.splitlines().index("__global__ void last() {}")
    assert not {"vector", "main", "load", "total", "include"} & set(words(found).replace("(", " ").split())


@pytest.mark.parametrize(
    "part",
    [
        "const int N = 3;",
        "enum { N = 3 };",
        "typedef int N;",
        "using N = int;",
        "struct N { int x; };",
        "template <class T> struct N { T x; };",
        "__host__ __device__ int N(int x) { return x; }",
        "constexpr int N(int x) { return x; }",
        "namespace N = other;",
    ],
)
def test_what_a_kernel_mentions_is_kept_and_nothing_else(part: str) -> None:
    kernel = "__global__ void k(int *x) {{ x[0] = {}; }}"
    assert part in cut(f"{part}\n{kernel.format('sizeof(N)')}")
    assert part not in cut(f"{part}\n{kernel.format('3')}")
    assert part in cut(f"#define USE sizeof(N)\n{part}\n{kernel.format('USE')}")


@pytest.mark.parametrize(
    "part",
    [
        "__device__ int f(int x) { return x; }",
        "__constant__ float c[3];",
        "extern __shared__ float s[];",
        "DEVICE int f(int x) { return x; }",
        "MAKE(int)",
        "#define DEVICE __device__",
        "__host__ __device__ float2 operator+(float2 a, float2 b) { return a; }",
        "template __global__ void k<int>(int *);",
        "static_cast_t __device__ x;",
    ],
)
def test_what_is_of_the_device_is_kept(part: str) -> None:
    macros = "#define DEVICE __device__ inline\n#define MAKE(T) __global__ void k_##T(T *x) {}\n"
    assert part in cut(macros + part + "\n")


@pytest.mark.parametrize(
    "part", ["int N = 3;", "extern int N;", "std::vector<int> N;", "int N(int x) { return x; }", "void N();"]
)
def test_what_is_of_the_host_is_never_kept(part: str) -> None:
    source = device_part(f"{part}\n__global__ void k(int *x) {{ x[0] = N; }}", "x.cu")
    assert part not in source.text and source.dropped == {"N": "x.cu:1"}


def test_members_of_the_host_are_cut_out() -> None:
    text = (
        "struct P { int n; float *x; P(int n_) : n{n_} { cudaMalloc(&x, n); } ~P() { cudaFree(x); } static int made;"
        " __device__ float at(int i) const { return x[i]; } friend ostream &operator<<(ostream &o, const P &p);"
        " virtual void go(); struct Q { void print() { cout << 1; } int m; } q; P() = default; enum { A, B }; };\n"
    )
    found = words(cut(text + "__global__ void k(P p) {}"))
    expected = (
        "struct P { int n; float *x; __device__ float at(int i) const { return x[i]; } virtual void go();"
        " struct Q { int m; } q; P() = default; enum { A, B }; }; __global__ void k(P p) {}"
    )
    assert found == expected


def test_preprocessor_lines_survive_in_what_is_cut() -> None:
    found = cut("void f() {\n#ifdef A\n#define N 3\n#else\n#define N 4\n#endif\n#pragma omp parallel\n}\n")
    assert "#define N 3\n#else\n#define N 4\n#endif" in found and "pragma" not in found


def test_names_that_are_asked_for_bring_their_types() -> None:
    text = "struct Add { int x; };\ntemplate <class Op> __global__ void k(int *x) {}\n"
    assert "Add" not in cut(text)
    assert "Add" in cut(text, names=["k<Add>"])


def test_instances_that_the_host_launches() -> None:
    text = (
        "const int N = 3; template <int n, class T> __global__ void k(T *x) {}\n"
        "template <class T> void run() { k<4, T><<<1, 1>>>(0); }\n"
        "int main() { const int local = 5; k<N, float><<<1, 1>>>(0); k<local, int><<<1, 1>>>(0); }\n"
    )
    assert device_part(text, "x.cu").instances == ("k < N , float >",)


def test_headers(tmp_path: Path) -> None:
    (tmp_path / "deep").mkdir()
    (tmp_path / "other").mkdir()
    (tmp_path / "deep" / "a.h").write_text(
        '#pragma once\n#include "b.h"\nvoid host();\n__device__ int a(int x);\n', encoding="utf-8"
    )
    (tmp_path / "deep" / "b.h").write_text("#define B 3\n", encoding="utf-8")
    (tmp_path / "deep" / "table.inc").write_text("1, 2,\n3\n", encoding="utf-8")
    (tmp_path / "other" / "c.h").write_text("#define C 4\n", encoding="utf-8")
    (tmp_path / "deep" / "body.inc").write_text("x[0] = 3;\n", encoding="utf-8")
    text = (
        '#include "deep/a.h"\n#include <c.h>\n#include "none.h"\n#include <stdio.h>\n#include <cuda_fp16.h>\n'
        '__constant__ int t[] = {\n#include "deep/table.inc"\n};\n'
        '__global__ void k(int *x) {\n#include "deep/body.inc"\n}\n'
    )
    source = device_part(text, "x.cu", tmp_path, (tmp_path / "other",))
    names = ("deep/a.h", "deep/b.h", "other/c.h", "deep/table.inc", "deep/body.inc")
    a, b, c, table, body = (str(tmp_path / name) for name in names)
    assert source.text.splitlines()[:5] == [f'#include "{a}"', f'#include "{c}"', "", "", "#include <cuda_fp16.h>"]
    assert source.headers == {
        a: f'#pragma once\n#include "{b}"\n\n__device__ int a(int x);\n', b: "#define B 3\n", c: "#define C 4\n",
        table: "1, 2,\n3\n", body: "x[0] = 3;\n",
    }  # fmt: skip
    assert source.missing == ("none.h",)


def test_references_become_objects() -> None:
    assert cut("surface<void, 2> s;\n") == "__constant__ lockstep_surface<void, 2> s;\n"
    assert cut("static texture<float, 2> t;\n") == "static __constant__ lockstep_texture<float, 2> t;\n"
