"""Memory regions and their hints: Chen section 4.4, on kernels of a few instructions."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from lockstep.models.execution.isa import Flag
from lockstep.sim import kernels
from lockstep.sim.compile import listing
from lockstep.sim.compile.ptx.build import build, drafts
from lockstep.sim.compile.ptx.names import readable
from lockstep.sim.compile.ptx.parser import parse
from lockstep.sim.compile.ptx.passes.memory_regions import hints, last, regions
from lockstep.sim.device import description
from lockstep.sim.study.job import Job, execute
from lockstep.spec import registry
from lockstep.spec.parameters import Gpu
from lockstep.verif.cli.test_cli import lockstep
from lockstep.verif.conftest import partly

HEAD = """.version 8.7
.target sm_90
.address_size 64
.entry k(.param .u64 p)
{
.reg .b32 %r<32>; .reg .b64 %rd<4>; .reg .pred %p<4>;
ld.param.u64 %rd1, [p];
mov.u32 %r31, %tid.x;
"""
LATENCY = 60


def found(body: str, warps: int) -> tuple[list[list[str]], list[str]]:
    """The regions, and the loads with hints: by the names of the registers that they load."""
    (draft,) = drafts(parse(HEAD + body + "\nret;\n}\n", "test.ptx"), 63)[0].values()
    lines = (HEAD + body).splitlines()

    def name(index: int) -> str:
        return lines[draft.code.list[index].line - 1].split()[1].strip(",%")

    result = regions(draft.code, LATENCY, warps)
    marked = [name(load) for region in result for load in last(draft.code, region)]
    return [[name(load) for load in region] for region in result], marked


def load(register: int) -> str:
    return f"ld.global.u32 %r{register}, [%rd1];"


def use(register: int) -> str:
    return f"add.s32 %r30, %r{register}, 1;"


def other(count: int) -> str:
    return "add.s32 %r29, %r31, 1;\n" * count


def lines(*parts: str) -> str:
    return "\n".join(parts)


def test_loads_whose_results_are_needed_at_once_and_that_are_near_form_a_region() -> None:
    body = lines(load(1), use(1), other(2), load(2), use(2))
    assert found(body, 12) == ([["r1", "r2"]], ["r2"])  # 4 instructions apart, of 60 / 12 = 5
    assert found(body, 15) == ([["r1"], ["r2"]], ["r1", "r2"])  # not less than 60 / 15 = 4
    assert found(body, 14) == ([["r1", "r2"]], ["r2"])  # 4 is less than 60 / 14


def test_a_load_whose_result_is_needed_late_is_a_region_of_its_own() -> None:
    body = lines(load(1), load(2), other(2), use(2), use(1))
    assert found(body, 11) == ([["r1", "r2"]], ["r2"])  # needed 5 and 3 instructions later
    assert found(body, 12) == ([["r1"], ["r2"]], ["r1", "r2"])
    assert found(lines(load(1), use(1), load(2), other(4), use(2)), 12) == ([["r1"], ["r2"]], ["r1", "r2"])
    assert found(lines(load(1), load(2), use(2)), 2) == ([["r1"], ["r2"]], ["r1", "r2"])  # nobody needs r1


def test_overwriting_a_result_waits_for_it() -> None:
    body = lines(load(1), load(2), use(2), "mov.u32 %r1, 0;")
    assert found(body, 2) == ([["r1", "r2"]], ["r2"])


def test_a_region_reaches_over_a_branch_but_not_over_the_end_of_a_loop() -> None:
    guarded = lines(
        load(1), use(1), "setp.eq.u32 %p1, %r31, 0;", "@%p1 bra AFTER;", load(2), use(2), "AFTER:", load(3), use(3)
    )
    assert found(guarded, 2) == ([["r1", "r2", "r3"]], ["r3"])
    loop = lines(
        load(1), use(1), "AGAIN:", load(2), use(2), load(3), use(3), "setp.eq.u32 %p1, %r3, 0;", "@%p1 bra AGAIN;",
        load(4), use(4),
    )  # fmt: skip
    assert found(loop, 2) == ([["r1"], ["r2", "r3"], ["r4"]], ["r1", "r3", "r4"])


def test_ways_that_part_have_a_hint_each() -> None:
    body = lines(
        "setp.eq.u32 %p1, %r31, 0;", load(1), use(1), "@%p1 bra OTHER;", load(2), use(2), "bra AFTER;",
        "OTHER:", load(3), use(3), "AFTER:",
    )  # fmt: skip
    assert found(body, 2) == ([["r1", "r2", "r3"]], ["r2", "r3"])


def test_only_what_may_be_global_memory_counts() -> None:
    body = lines(
        load(1), use(1), "ld.shared.u32 %r2, [%r31];", use(2), "ld.const.u32 %r4, [%r31];", use(4),
        "st.global.u32 [%rd1], %r31;", "atom.global.add.u32 %r5, [%rd1], 1;", "ld.u32 %r3, [%rd1];", use(3),
    )  # fmt: skip
    assert found(body, 2) == ([["r1", "r3"]], ["r3"])


def region_p(**settings: int) -> Gpu:
    return description.load("gtx580", {"core.scheduler": "region-p", **settings})


@pytest.mark.parametrize("kernel", partly(kernels.names()))
def test_every_kernel_gets_its_hints_once(kernel: str) -> None:
    """They are on loads alone, as many as the listing shows; and nothing else of the code is different."""
    gpu = region_p()
    path = kernels.find(kernel).ptx
    module = parse(path.read_text(encoding="utf-8"), str(path))
    plain, marked = build(module, 63).kernels, build(module, 63, registry.passes(gpu)).kernels
    for name, listed in zip(plain, listing.listing(path, gpu).kernels, strict=True):
        assert listed.name == readable(name)
        flags = plain[name].code["flags"] ^ marked[name].code["flags"]
        assert set(np.unique(flags)) <= {0, int(Flag.HINT)}
        assert np.count_nonzero(flags) == sum(len(region.hints) for region in listed.memory_regions)
        assert np.count_nonzero(flags) >= len(listed.memory_regions)
        without = marked[name].code.copy()
        without["flags"] ^= flags
        assert np.array_equal(without, plain[name].code)


def test_the_pass_changes_nothing_when_it_runs_again() -> None:
    (draft,) = drafts(parse(kernels.find("gemm").ptx.read_text(encoding="utf-8"), "gemm.ptx"), 63)[0].values()
    hints(draft, latency=600, warps=48)
    once = [micro.flags for micro in draft.code.list]
    hints(draft, latency=600, warps=48)
    assert any(flags & Flag.HINT for flags in once) and [micro.flags for micro in draft.code.list] == once


def test_hints_come_with_region_p_and_follow_the_warps_that_are_expected() -> None:
    assert registry.passes(description.load("gtx580")) == ()
    for settings, warps in (({}, 48), ({"core.region_warps": 20}, 20)):
        (one,) = registry.passes(region_p(**settings))
        assert one.parameters == (("latency", 600), ("warps", warps))


def test_hints_reach_the_scheduler_and_change_no_result(monkeypatch: pytest.MonkeyPatch) -> None:
    job = Job("reduction", "gtx580", "tiny", settings={"core.scheduler": "region-p"})
    hinted = execute(job)
    monkeypatch.setattr(registry, "passes", lambda gpu: ())
    plain = execute(job)
    assert hinted["checked"] and plain["checked"] and hinted["cycles"] != plain["cycles"]
    assert hinted["warp_instructions"] == plain["warp_instructions"]


def test_a_listing_shows_memory_regions_or_hints(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    file = tmp_path / "k.ptx"
    text = HEAD + lines(load(1), use(1), load(2), use(2)) + "\nret;\n}\n"
    file.write_text(text, encoding="utf-8")
    code, shown, _ = lockstep(capsys, "ptx", file, "--show", "memory-regions")
    assert code == 0 and "global loads 2, memory regions 1" in shown
    assert "region 1: loads in lines 9, 11; hints 11" in shown
    code, shown, _ = lockstep(capsys, "ptx", file, "--show", "hints", "--set", "core.region_warps=64")
    marked = [number for number, line in enumerate(shown.splitlines(), 1) if line.endswith(listing.HINT)]
    assert code == 0 and marked == [11] and shown.replace(listing.HINT, "") == text
    code, shown, _ = lockstep(capsys, "ptx", file, "--json", "-")
    assert code == 0 and '"global_loads": 2' in shown


@pytest.mark.parametrize(
    "arguments, words",
    [(("none.ptx",), "none.ptx: cannot read"), (("nothing",), "nothing"), (("saxpy", "--show", "all"), "--show")],
)
def test_a_wrong_file_is_one_line(capsys: pytest.CaptureFixture[str], arguments: tuple[str, ...], words: str) -> None:
    code, _, error = lockstep(capsys, "ptx", *arguments)
    assert code == 2 and words in error and error.count("\n") == 1
