"""The chapter on ptxas: what is read out of its listing and of our code, what outliers are told, and the recording."""

from __future__ import annotations

import importlib.metadata
import json
from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from itertools import pairwise
from pathlib import Path
from types import MappingProxyType
from typing import Any

import pytest

from lockstep.cli import main as cli
from lockstep.models import cache
from lockstep.sim import kernels
from lockstep.sim.compile.ptx.build import drafts
from lockstep.sim.compile.ptx.parser import parse
from lockstep.sim.device import description
from lockstep.sim.errors import UsageError
from lockstep.sim.study.page import markdown
from lockstep.sim.study.reproduce.chapters import compiler
from lockstep.sim.study.reproduce.chapters.compiler import __main__ as recorder
from lockstep.sim.study.reproduce.chapters.compiler import ours, recording, witness
from lockstep.sim.study.reproduce.chapters.compiler.ours import Compilation, figures
from lockstep.sim.watch import Watch
from lockstep.spec import registry
from lockstep.spec.frame import free_registers
from lockstep.spec.parameters import Compiler
from lockstep.spec.passes import machine
from lockstep.verif.sim.study.reproduce.tables import Results, rows

DOCUMENT = cache.ROOT / "docs" / "compiler.md"
LIVE = ("saxpy", "spmv", "BlackScholes", "reduction")  # nothing, constants, subroutines, barriers of warps

table = partial(rows, compiler.CHAPTER)


# -------------------------------------------------------------------------------------------------- what ptxas has made


LISTING = """
//--------------------- .text.f                  --------------------------
	.section	.text.f,"ax",@progbits
                                                              // +-------+--------+--------+
                                                              // | GPR   | PRED   | UGPR   |
                                                              // |   #   |   #    |    #   |
f:                                                            // |       |        |        |
.text.f:                                                      // |       |        |        |
        /*0000*/                   MOV R1, c[0x0][0x28] ;     // |   1   |        |        |
        /*0010*/                   ULDC.64 UR4, c[0x0][0x160] ; // |   1   |        |    2   |
        /*0020*/                   IMAD.MOV.U32 R0, RZ, RZ, UR4 ; // |   2   |   1    |    2   |
.L_x_0:                                                       // |   2   |   1    |        |
        /*0030*/                   LDG.E.128.SYS R4, [R0] ;   // |   6   |   1    |        |
        /*0040*/                   LDG.E.SYS R2, [R0+0x10] ;  // |   7   |   1    |        |
        /*0050*/              @!P0 FADD R3, R5, c[0x0][0x168] ; // |   5   |   1    |        |
        /*0060*/                   FADD R3, R4, R2 ;          // |   4   |   1    |        |
        /*0070*/              @!P1 BRA `(.L_x_0) ;            // |   2   |   1    |        |
        /*0080*/                   CALL.REL.NOINC `($__internal_0_$__cuda_sm3x_div) ; // |   2   |        |        |
        /*0090*/                   EXIT ;                     // |   1   |        |        |
        .type           $__internal_0_$__cuda_sm3x_div,@function // |       |        |        |
$__internal_0_$__cuda_sm3x_div:                               // |       |        |        |
        /*00a0*/                   MUFU.RCP R2, R2 ;          // |   2   |        |        |
        /*00b0*/                   RET.REL.NODEC R6 `(f) ;    // |   2   |        |        |
.L_x_1:                                                       // +.......+........+........+
        /*00c0*/                   BRA `(.L_x_1);             // |   1   |        |        |
        /*00d0*/                   NOP;                       // |   1   |        |        |
//--------------------- .text.g                  --------------------------
                                                              // | GPR   | PRED   |
g:                                                            // |       |        |
        /*0000*/                   EXIT ;                     // |   1   |        |
.L_x_2:                                                       // +.......+........+
        /*0010*/                   BRA `(.L_x_2);             // |   1   |        |
"""  # fmt: skip


def test_what_is_counted_in_a_listing() -> None:
    found = {name: witness.figures(code) for name, code in witness.instructions(LISTING)}
    assert found["f"] == {
        "live": 7,
        "live_with_uniform": 7,
        "in_flight": 5,
        "instructions": 12,
        "in_subroutines": 2,
        "calls": 1,
        "constant_operands": 2,
        "moves": 2,
        "constants": 1,
        "memory": 2,
        "special": 1,
        "control": 4,
        "arithmetic": 2,
    }
    assert (found["g"]["instructions"], found["g"]["live"], found["g"]["live_with_uniform"]) == (1, 1, 1)


def test_uniform_registers_count_where_they_have_values() -> None:
    ((_, code),) = witness.instructions(
        LISTING.replace("|    2   |", "|    9   |").partition("//--------------------- .text.g")[0]
    )
    assert witness.figures(code)["live_with_uniform"] == 11


def test_what_ptxas_says_of_registers() -> None:
    said = """ptxas info    : Compiling entry function 'f' for 'sm_75'
ptxas info    : Function properties for f
    8 bytes stack frame, 12 bytes spill stores, 16 bytes spill loads
ptxas info    : Used 28 registers, used 0 barriers, 396 bytes cmem[0]
ptxas info    : Compiling entry function 'g' for 'sm_75'
    0 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads
ptxas info    : Used 6 registers
"""
    assert witness.resources(said) == {
        "f": {"registers": 28, "spill_bytes": 12},
        "g": {"registers": 6, "spill_bytes": 0},
    }


@pytest.mark.parametrize(
    ("line", "single"),
    [
        ("@%p1 div.rn.f32 \t%f1, %f2, %f3;", "@%p1 mul.rn.f32 \t%f1, %f2, %f3;"),
        ("div.full.ftz.f32 %f1, %f2, %f3;", "mul.rn.f32 %f1, %f2, %f3;"),
        ("div.rn.f64 %fd1, %fd2, %fd3;", "mul.rn.f64 %fd1, %fd2, %fd3;"),
        ("div.s32 %r1, %r2, %r3;", "min.s32 %r1, %r2, %r3;"),
        ("rem.u64 %rd1, %rd2, %rd3;", "max.u64 %rd1, %rd2, %rd3;"),
        ("sqrt.rn.f32 %f1, %f2;", "rsqrt.approx.ftz.f32 %f1, %f2;"),
        ("rcp.rn.f64 %fd1, %fd2;", "rcp.approx.ftz.f64 %fd1, %fd2;"),
        ("ex2.approx.f32 %f1, %f2;", "ex2.approx.ftz.f32 %f1, %f2;"),
        ("bar.warp.sync \t-1;", "bar.sync 1;"),
        ("call.uni div.s32, (%r1);", "call.uni div.s32, (%r1);"),
    ],
)
def test_what_is_not_inlined(line: str, single: str) -> None:
    text = f".version 9.0\n.address_size 64\n\t{line}\n"
    assert witness.VARIANTS["rolled"].edit(text) == f'.version 9.0\n.address_size 64\n.pragma "nounroll";\n\t{line}\n'
    assert witness.VARIANTS["plain"].edit(text).splitlines()[-1] == f"\t{single}"
    assert witness.VARIANTS["whole"].edit(text) == text


def test_a_text_that_has_no_place_for_the_directive_is_refused() -> None:
    with pytest.raises(UsageError, match=r"no place for \.pragma"):
        witness.VARIANTS["plain"].edit(".version 9.0\n")


# ----------------------------------------------------------------------------------------------------------------- ours


PTX = """.version 9.0
.target sm_75
.address_size 64
.visible .entry f(.param .u64 p, .param .u32 n)
{
    .reg .b64 %rd<4>;
    .reg .b32 %r<6>;
    ld.param.u64 %rd1, [p];
    ld.param.u32 %r1, [n];
    cvta.to.global.u64 %rd2, %rd1;
    mul.wide.u32 %rd3, %r1, 4;
    ld.global.u32 %r2, [%rd2];
    ld.global.u32 %r3, [%rd2+4];
    add.s32 %r4, %r2, %r3;
    ld.global.u32 %r5, [%rd2+8];
    div.s32 %r5, %r4, %r5;
    st.global.u32 [%rd3], %r5;
    ret;
}
"""


def test_what_is_counted_in_our_code() -> None:
    """Before the second load, the pointer, n, the product and the first value: six registers, and three without the two
    parameters; the product takes one if 64 bits take one."""
    made, _ = drafts(parse(PTX, "it.ptx"), 63)
    assert figures(made["f"]) == {
        "registers": 6,
        "spill_bytes": 0,
        "live": 6,
        "live_without_parameters": 4,
        "live_in_words": 3,
        "in_flight": 2,
        "instructions": 11,
        "constant_operands": 0,
        "parameter_loads": 2,
        "moves": 1,
        "constants": 2,
        "memory": 4,
        "special": 0,
        "control": 1,
        "arithmetic": 3,
    }


def test_constant_operands_are_counted() -> None:
    made, _ = drafts(parse(PTX, "it.ptx"), 63, [machine(Compiler(constant_operands=1), 0)])
    found = figures(made["f"])
    assert (found["constant_operands"], found["parameter_loads"], found["moves"]) == (2, 0, 2)


def test_passes_and_the_limit_are_those_of_the_gpu(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = []

    def noted(module: Any, *arguments: Any) -> Any:
        asked.append(arguments)
        return {}, {}

    monkeypatch.setattr(ours, "drafts", noted)
    Compilation("saxpy", "gtx480", ["regless"], {"regless.registers": 256}).run()
    gpu = description.load("gtx480", {"regless.registers": 256}, ["regless"])
    assert asked == [(63, registry.passes(gpu))] and registry.passes(gpu)


# ------------------------------------------------------------------------------------------------------------- outliers


OURS = {
    "registers": 20, "spill_bytes": 0, "live": 20, "live_without_parameters": 20, "live_in_words": 20, "in_flight": 2,
    "instructions": 60, "parameter_loads": 6, "moves": 6,
}  # fmt: skip
THEIRS = {
    "registers": 20, "spill_bytes": 0, "live": 18, "live_with_uniform": 18, "in_flight": 2, "instructions": 60,
    "in_subroutines": 0, "calls": 0, "constant_operands": 6, "moves": 0, "constants": 0, "memory": 0, "special": 0,
    "control": 0, "arithmetic": 0,
}  # fmt: skip


def made_up(
    monkeypatch: pytest.MonkeyPatch,
    ours: Mapping[str, int],
    theirs: Mapping[str, Mapping[str, int]],
    compilers: Mapping[str, Mapping[str, int]] = MappingProxyType({}),
) -> Results:
    """Results of one function, and what is recorded of it: :data:`OURS` and :data:`THEIRS`, but for some figures: of
    all compilers and of some."""
    variants = {name: THEIRS | dict(theirs.get(name, {})) for name in witness.VARIANTS}
    monkeypatch.setattr(recording, "recorded", lambda kernel: {"f": variants})
    return {
        f"k, {name}": {"kernel": "k", "functions": {"f": OURS | dict(ours) | dict(compilers.get(name, {}))}}
        for name in compiler.COMPILERS
    }


def test_a_function_is_fair_if_neither_unrolling_nor_inlining_changes_it(monkeypatch: pytest.MonkeyPatch) -> None:
    assert table(made_up(monkeypatch, {}, {"calm": {"registers": 5}}), "registers")["k: f"][0] is True
    for variant in ("rolled", "plain"):
        results = made_up(monkeypatch, {}, {variant: {"control": 5}})
        assert table(results, "registers")["k: f"][0] is False and "fair" not in table(results, "summary")


FEWER: list[tuple[dict[str, dict[str, int]], tuple[Any, ...], str]] = [
    ({"whole": {"registers": 40}}, (0.5, 1.0, None, None, None), "ptxas unrolls loops"),
    ({name: {"registers": 40} for name in ("whole", "rolled")}, (0.5, 0.5, 1.0, None, None), "ptxas inlines divisions"),
    (
        {name: {"registers": 40, "in_flight": 30} for name in ("whole", "rolled", "plain")},
        (0.5, 0.5, 0.5, 1.0, None),
        "ptxas moves loads up: registers that wait for them at a time 30, at `-O1` 2, ours 2",
    ),
    (
        {name: {"registers": 40, "live": 30} for name in ("whole", "rolled", "plain")},
        (0.5, 0.5, 0.5, 1.0, None),
        "ptxas moves instructions: registers with values at a time 30, at `-O1` 18, ours 20",
    ),
    (
        {name: {"registers": 40} for name in witness.VARIANTS},
        (0.5, 0.5, 0.5, 0.5, 20 / 18),
        "ptxas leaves registers out: it gives 40, and 18 have values at a time",
    ),
    ({name: {"registers": 40, "live": 40} for name in witness.VARIANTS}, (0.5, 0.5, 0.5, 0.5, 0.5), "not known"),
]


@pytest.mark.parametrize(("theirs", "ratios", "cause"), FEWER)
def test_why_ours_has_fewer_registers(
    theirs: dict[str, dict[str, int]], ratios: tuple[Any, ...], cause: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    (found,) = table(made_up(monkeypatch, {}, theirs), "fewer-registers").values()
    assert found[:-1] == ratios and found[-1].startswith(cause) and ";" not in found[-1]


MORE: list[tuple[dict[str, int], dict[str, int], tuple[Any, ...], str]] = [
    ({}, {"live_with_uniform": 28}, (2.0, 1.0, None, None), "ptxas has what is the same for a warp in 10 uniform"),
    ({"live_without_parameters": 12}, {}, (2.0, 2.0, 1.2, None), "ours keeps parameters in 8 registers; 6 operands"),
    (
        {"live_without_parameters": 18, "live_in_words": 10},
        {},
        (2.0, 2.0, 1.8, 1.0),
        "ours keeps parameters in 2 registers; 6 operands of ptxas's are in the constant bank; ours keeps 8 values of",
    ),
    ({}, {}, (2.0, 2.0, 2.0, 2.0), "not known"),
]


@pytest.mark.parametrize(("ours", "theirs", "ratios", "cause"), MORE)
def test_why_ours_has_more_registers(
    ours: dict[str, int],
    theirs: dict[str, int],
    ratios: tuple[Any, ...],
    cause: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    variants = {name: {"registers": 10, **theirs} for name in witness.VARIANTS}
    ours = {"live_without_parameters": 20, "live_in_words": ours.get("live_without_parameters", 20), **ours}
    (found,) = table(made_up(monkeypatch, ours, variants), "more-registers").values()
    assert found[:-1] == ratios and found[-1].startswith(cause)


def test_why_ours_has_more_or_fewer_instructions(monkeypatch: pytest.MonkeyPatch) -> None:
    theirs = {
        "whole": {"instructions": 120, "in_subroutines": 30},
        "rolled": {"instructions": 90, "in_subroutines": 30},
    }
    (found,) = table(made_up(monkeypatch, {}, theirs), "fewer-instructions").values()
    assert found[:-1] == (0.5, 60 / 90, None) and found[-1] == "ptxas unrolls loops: 120 instructions in place of 90"
    theirs = {name: {"instructions": 36, "moves": 2} for name in witness.VARIANTS}
    (found,) = table(made_up(monkeypatch, {}, theirs), "more-instructions").values()
    assert found[:-1] == (60 / 36, 1.5, None) and found[-1].startswith("ours loads parameters, 6 times")
    theirs = {name: {"instructions": 34, "moves": 1} for name in witness.VARIANTS}
    (found,) = table(made_up(monkeypatch, {}, theirs), "more-instructions").values()
    assert found[:-1] == (60 / 34, 54 / 34, 48 / 33) and "ours has 6 moves" in found[-1]


PASSES: list[tuple[dict[str, dict[str, int]], dict[str, dict[str, int]], tuple[Any, ...], str, str]] = [
    (
        {compiler.WITH_ALL: {"registers": 12}},
        {},
        (0.6, 1.0, None, None, None, None, None),
        "addresses of 64 bits: 20 registers in place of 12",
        compiler.WIDE,
    ),
    (
        {compiler.WITH_ALL: {"registers": 13}, compiler.WIDE: {"registers": 13}, compiler.ALIKE: {"registers": 14}},
        {"whole": {"registers": 20}},
        (0.65, 0.65, 0.7, None, None, None, None),
        "an SM for 1,024 threads: 14 registers in place of 13",
        compiler.ALIKE,
    ),
    (
        {compiler.WITH_ALL: {"registers": 26}, compiler.WIDE: {"registers": 27}},
        {"whole": {"registers": 40}},
        (0.65, 0.675, None, None, None, None, None),
        "addresses of 64 bits: 27 registers in place of 26",  # the last one, though of less than 5%
        compiler.WIDE,
    ),
    (
        {name: {"registers": 12} for name in (compiler.WITH_ALL, compiler.WIDE)} | {compiler.ALIKE: {"in_flight": 9}},
        {},
        (0.6, 0.6, 1.0, None, None, None, None),
        "an SM for 1,024 threads: 20 registers in place of 12, and 9 in place of 2 wait for loads at a time",
        compiler.ALIKE,
    ),
    (
        {compiler.OURS: {"registers": 1}},
        {name: {"registers": 40} for name in witness.VARIANTS},
        (0.5, 0.5, 0.5, 0.5, 0.5, 20 / 18, None),
        "ptxas leaves registers out: it gives 40, and 18 have values at a time",
        "only live ones",
    ),
    (
        {},
        {name: {"registers": 40, "live": 38, "in_flight": 20} for name in ("whole", "rolled", "plain")},
        (0.5, 0.5, 0.5, 0.5, 0.5, 20 / 38, 20 / 18),
        "ptxas leaves registers out: it gives 40, and 38 have values at a time; ptxas moves loads up: registers that "
        "wait for them at a time 20, at `-O1` 2, ours 2",
        "only live ones, at -O1",
    ),
    (
        {},
        {name: {"registers": 40, "live": 40} for name in witness.VARIANTS},
        (0.5, 0.5, 0.5, 0.5, 0.5, 0.5, 0.5),
        compiler.UNKNOWN,
        compiler.UNKNOWN,
    ),
]


@pytest.mark.parametrize(("compilers", "theirs", "ratios", "cause", "end"), PASSES)
def test_why_ours_has_fewer_registers_with_all_passes(
    compilers: dict[str, dict[str, int]],
    theirs: dict[str, dict[str, int]],
    ratios: tuple[Any, ...],
    cause: str,
    end: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    results = made_up(monkeypatch, {}, theirs, compilers)
    (found,) = table(results, "fewer-registers-passes").values()
    assert found == (*ratios, cause)
    assert table(results, "ends") == {end: (1, 0)}


def test_outliers_that_need_fewer_steps_are_first(monkeypatch: pytest.MonkeyPatch) -> None:
    results = made_up(monkeypatch, {}, {})
    theirs = THEIRS | {"instructions": 120}
    variants = {
        "late": dict.fromkeys(witness.VARIANTS, THEIRS) | {"whole": theirs, "rolled": theirs},
        "soon": dict.fromkeys(witness.VARIANTS, THEIRS) | {"whole": theirs},
    }
    monkeypatch.setattr(recording, "recorded", lambda kernel: variants)
    for result in results.values():
        result["functions"] = dict.fromkeys(variants, OURS)
    for key in ("fewer-instructions", "fewer-instructions-passes"):
        assert list(table(results, key)) == ["k: soon", "k: late"]
    assert table(results, "ends") == {"not unrolled": (0, 1), "not inlined": (0, 1)}


def test_how_far_ptxas_fills_the_registers_of_a_full_sm(monkeypatch: pytest.MonkeyPatch) -> None:
    registers = {"whole": 62, "sm_86": 40, "sm_80": 33}
    found = table(made_up(monkeypatch, {}, {name: {"registers": count} for name, count in registers.items()}), "full")
    assert found == {"sm_75": (1024, 64, 1, 1, 0), "sm_86": (1536, 40, 1, 1, 0), "sm_80": (2048, 32, 0, 0, 1)}


def test_each_row_has_one_pass_more(monkeypatch: pytest.MonkeyPatch) -> None:
    results = made_up(monkeypatch, {}, {})
    for k, name in enumerate(compiler.COMPILERS):
        results[f"k, {name}"]["functions"]["f"] |= {"registers": 20 - k, "live": 19, "instructions": 60 - 2 * k}
    found = table(results, "passes")
    assert list(found) == ["PTX as it is", *compiler.PASSES, *compiler.LIKE_THEIRS]
    assert [row[0] for row in found.values()] == [20 - k for k in range(len(found))]
    assert found["scheduling"] == pytest.approx((13, 13 / 20, 13 / 20, 19, 19 / 18, 19 / 18, 46, 46 / 60, 46 / 60))
    settings = [dict(each["settings"]) for each in compiler.COMPILERS.values()]
    assert not any(value for key, value in settings[0].items() if key != "compiler.addresses")
    changed = [{key for key in after if after[key] != before.get(key)} for before, after in pairwise(settings[:-1])]
    assert all(len(keys) == 1 for keys in changed)


def test_the_last_compiler_has_what_the_target_of_ptxas_has() -> None:
    shipped, all_passes, fair = (
        description.load(compiler.GPU, settings)
        for settings in ({}, *(compiler.COMPILERS[name]["settings"] for name in (compiler.WITH_ALL, compiler.ALIKE)))
    )
    assert all_passes.compiler == shipped.compiler and all_passes.core == shipped.core
    assert fair.compiler == replace(shipped.compiler, addresses=64)
    assert (fair.core.threads, free_registers(fair.core)) == (1024, 64)


# ---------------------------------------------------------------------------------------------- the page, the recording


@pytest.fixture(scope="module")
def full() -> Results:
    return compiler.run(compiler.jobs(False), Watch())


@pytest.mark.exhaustive
@pytest.mark.long
def test_the_documentation_shows_what_the_compilers_do(full: Results) -> None:
    again = "lockstep reproduce compiler; its compiler.md and compiler-scatter.svg belong to docs/"
    assert DOCUMENT.read_text(encoding="utf-8") == markdown(compiler.page(full), "compiler"), again


@pytest.mark.exhaustive
@pytest.mark.long
def test_every_outlier_has_a_reason(full: Results) -> None:
    text = markdown(compiler.page(full), "compiler")
    assert "not known" not in text
    for reason in compiler.REASONS.values():
        assert reason in text, "a reason that is not needed"


@pytest.mark.long
def test_the_command(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    target = tmp_path / "it.json"
    assert cli.main(["reproduce", "compiler", "--quick", "-o", str(tmp_path / "page"), "--json", str(target)]) == 0
    assert "Ratios of registers and instructions" in capsys.readouterr().out
    assert (tmp_path / "page" / "compiler-scatter.svg").is_file()
    titles = [each["title"] for each in json.loads(target.read_text(encoding="utf-8"))]
    assert "Registers" in titles and any(title.startswith("Fewer instructions") for title in titles)


def test_ptx_that_has_changed_must_be_recorded_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(recording.program, "read", lambda path: "// changed\n")
    with pytest.raises(
        UsageError, match=r"^saxpy: its PTX is not what .* were recorded for: python -m .*compiler saxpy$"
    ):
        recording.recorded("saxpy")


def test_every_function_of_every_kernel_is_recorded() -> None:
    assert {row["kernel"] for row in recording.rows()} == set(kernels.names())
    assert len(recording.versions()) == 1


def test_rows_of_the_same_kernels_are_replaced(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(recording, "DATA", tmp_path / "it.csv")
    recording.write([{"kernel": "b", "function": "f", "live": 1}, {"kernel": "A", "function": "f", "live": 2}])
    recording.write([{"kernel": "b", "function": "g, h", "live": 3}])
    assert [tuple(row.values()) for row in recording.rows()] == [("A", "f", "2"), ("b", "g, h", "3")]


def test_without_ptxas_the_recorder_says_what_to_install(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(witness, "PACKAGES", dict.fromkeys(witness.PACKAGES, "no-such-package"))
    monkeypatch.setattr("sys.argv", ["it", "saxpy"])
    assert recorder.main() == 2
    assert capsys.readouterr().err == "ptxas and nvdisasm are not installed: pip install 'lockstep-sm[ptxas]'\n"
    monkeypatch.setattr("sys.argv", ["it", "saxpi"])
    assert recorder.main() == 2
    assert "did you mean" in capsys.readouterr().err


NO_PTXAS = "needs ptxas, an extra of 75 MB; how its absence and its messages are told is tested everywhere"
NOT_RECORDED = "needs the ptxas that was recorded, an extra of 75 MB; the page is made from the recording everywhere"


def _installed() -> str | None:
    try:
        return importlib.metadata.version(witness.PACKAGES["ptxas"])
    except importlib.metadata.PackageNotFoundError:
        return None


@pytest.mark.skipif([_installed()] != recording.versions(), reason=NOT_RECORDED)
@pytest.mark.parametrize("kernel", LIVE)
def test_the_recording_is_what_ptxas_makes(kernel: str) -> None:
    recorded = [row for row in recording.rows() if row["kernel"] == kernel]
    fresh = [{name: str(value) for name, value in row.items()} for row in recording.record(kernel)]
    assert recorded == fresh


@pytest.mark.skipif(_installed() is None, reason=NO_PTXAS)
def test_ptx_that_ptxas_refuses_is_one_line() -> None:
    with pytest.raises(UsageError, match=r"^ptxas: ptxas .*[^\n]$"):
        witness.assemble(".version 9.0\n.target sm_75\n.address_size 64\nnonsense\n", witness.VARIANTS["whole"])


@pytest.mark.skipif([_installed()] != recording.versions(), reason=NOT_RECORDED)
def test_what_the_reason_for_sto_says() -> None:
    text = kernels.find("STO").ptx.read_text(encoding="utf-8")
    hurried = witness.assemble(text, replace(witness.VARIANTS["whole"], options=("-Ofc", "max")))
    assert (
        f"gives {hurried['sha1_overlap']['registers']} registers"
        in compiler.REASONS["STO", "sha1_overlap", "registers"]
    )
