"""The declarations of CUDA texts, found without a parser of the language."""

from __future__ import annotations

import pytest

from lockstep.sim.compile.cuda.scan import Item, Text, launches


def items(source: str) -> list[Item]:
    text = Text(source)
    return text.items(dict(text.macros()))


@pytest.mark.parametrize(
    ("source", "kind", "names"),
    [
        ("const int N = 3, M[2] = {1, 2};", "variable", {"N", "M"}),
        ("float (*table[])(float) = {f, g};", "variable", {"table"}),
        ("typedef std::map<Key, Val> M;", "typedef", {"M"}),
        ("typedef struct tag { int x; } Rec, *Pointer;", "typedef", {"tag", "Rec", "Pointer"}),
        ("using P = void (*)(int);", "using", {"P"}),
        ("struct A : B<int> { int x; };", "class", {"A"}),
        ("template <> struct Shared<double> { int x; };", "class", {"Shared"}),
        ("struct __align__(16) A { int x; } a;", "class", {"A", "a"}),
        ("struct ALIGN(16) A { int x; };", "class", {"A"}),
        ("enum class E : int { one, two = 2 };", "class", {"E", "one", "two"}),
        ("struct A;", "forward", {"A"}),
        ("struct A make(struct B b) { return {}; }", "function", {"make"}),
        ("template <class T, int N = (3 > 2)> __device__ T f(T x) { return x; }", "function", {"f"}),
        ("__device__ float4 operator+(float4 a, float4 b) { return a; }", "function", {"operator"}),
        ("ATTRIBUTE(256) static __global__ void h() {}", "function", {"ATTRIBUTE", "h"}),
        ("A::A(int x) : a{x}, b(2) { c = 3; }", "function", {"A", "a", "b"}),
        ("A::~A() = default;", "function", {"A"}),
        ("KERNEL(scale) { x[0] = 2; }", "function", {"KERNEL"}),
        ('extern "C" void gold(float *a);', "function", {"gold"}),
        ("namespace fs = std::filesystem;", "namespace", {"fs"}),
    ],
)
def test_kinds_and_names(source: str, kind: str, names: set[str]) -> None:
    (item,) = items(source)
    assert item.terminated and item.kind == kind and names <= item.names


def test_what_is_no_name() -> None:
    (item,) = items("typedef const std::map<Key, unsigned> M;")
    assert not item.names & {"Key", "std", "map", "typedef", "const", "unsigned"}


@pytest.mark.parametrize(
    "body",
    [
        'puts("}");',
        "char c = '}';",
        "// }",
        "/* }\n } */",
        'auto r = R"x( } )" )x";',
        "int n = 1'000'000; char b = '{';",
        "#define OPEN {\n",
        "#ifdef A\nif (x) {\n#else\nif (y) {\n#endif\n}",
        "// continued \\\n }\n",
        "auto f = [](int x) { return x; };",
    ],
)
def test_bodies_end_at_their_brace(body: str) -> None:
    first, second = items(f"void first() {{\n{body}\n}}\nvoid second() {{}}")
    assert (first.names, second.names) == ({"first"}, {"second"})


def test_heads_by_condition() -> None:
    first, second = items("#ifdef A\nvoid f(int a) {\n#else\nvoid f(int b) {\n#endif\n}\nint g();\n")
    assert (first.names, second.names) == ({"f"}, {"g"})


def test_what_is_switched_off_need_not_be_code() -> None:
    source = "#if 0 // off\nisn't {\n#ifdef A\n}}\n#endif\nint z;\n#else\nint x;\n#endif\n#if 0\n{\n#endif\nint y;"
    assert [set(item.names) for item in items(source)] == [{"x"}, {"y"}]


@pytest.mark.parametrize("stray", [")", "]", "}", "int a )", "f(x)); }"])
def test_brackets_that_nothing_opens(stray: str) -> None:
    assert "y" in items(f"{stray}\nint y;")[-1].names


@pytest.mark.parametrize(
    "line", ["/* a */ /* b */ # /* c */ define OPEN { /* } */", '#define OPEN "/*{" \'{\'', "#define OPEN {"]
)
def test_directives(line: str) -> None:
    first, second = items(f"int x; /* a\n */\n{line}\nint y;\nint z;")[1:]
    assert (first.names, second.names) == ({"y"}, {"z"})


def test_no_directive_begins_within_a_line() -> None:
    assert [set(item.names) for item in items("#if 0\nthe #endif\nint x;\n#endif\nint y;")] == [{"y"}]


@pytest.mark.parametrize("text", ['"a', "'a", 'R"x(a)y"', "/* a", '"a\\', "#define A /*"])
def test_what_has_no_end(text: str) -> None:
    assert "x" in items(f"int x;\n{text}")[0].names


def test_scopes_are_entered() -> None:
    source = 'namespace a { inline namespace b { int x; } }\nextern "C" {\nint y;\n}\nnamespace { int z; }'
    assert [set(item.names) for item in items(source)] == [{"x"}, {"y"}, {"z"}]


def test_macros_that_open_and_close_scopes() -> None:
    source = "#define BEGIN(name) namespace name {\n#define END }\nBEGIN(a)\nint x;\nEND\nint main() {}"
    assert [set(item.names) for item in items(source)] == [{"x"}, {"main"}]


def test_macros_that_make_declarations_stand_alone() -> None:
    source = "#define MAKE(T) __global__ void k_##T(T *x) {}\nMAKE(int)\nMAKE(float)\nint main() { return 0; }"
    assert [item.kind for item in items(source)] == ["macro", "macro", "function"]


def test_members() -> None:
    source = (
        "struct V { private: float x; V(float a) : x{a} {} float operator()(int i) const { return x; } ~V() = 0; };"
    )
    text = Text(source)
    (item,) = text.items({})
    members = text.items({}, item.body)
    assert [member.kind for member in members] == ["variable", "function", "function", "function"]
    assert [member.defaulted for member in members] == [False, False, False, True]


def test_launches() -> None:
    source = "void run() { a::f<3, T><<<1, 2>>>(x); g<<<1, 2>>>(x); if (a < b) h<(1 > 0)><<<grid, 32, 0, s>>>(); }"
    text = Text(source)
    (item,) = text.items({})
    assert launches(text, item)[0] == "a :: f < 3 , T >"
    assert not any(found.startswith("g") for found in launches(text, item))


def test_launches_in_one_statement() -> None:
    text = Text("void run() { f<a<2>><<<g<1>(), 2>>>(x), h<3><<<(1 < 2), 2>>>(x), a > <<< 1; }")
    (item,) = text.items({})
    assert launches(text, item) == ["f < a < 2 > >", "h < 3 >"]
