"""Sharing in whole kernels: the plan, locks that exclude, deadlock, and what sharing must leave as it is."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from lockstep.cli import main as cli
from lockstep.models.jit import i64, jit, slots
from lockstep.models.occupancy import plan
from lockstep.models.sharing import share_access
from lockstep.rtl import registry
from lockstep.sim import Gpu, kernels
from lockstep.sim.cosim import report
from lockstep.sim.cosim.run import cosim
from lockstep.sim.device import description
from lockstep.sim.study.job import Job
from lockstep.spec.sharing import storage
from lockstep.verif import combinations, exercised
from lockstep.verif.sharing import deadlock

BOTH = ("register-sharing", "scratchpad-sharing")


def scratchpad(size: int) -> dict[str, int]:
    return {"scratchpad.bytes": size, "scratchpad.bytes_per_cta": size}


PAIRED: dict[str, tuple[str, str, dict[str, int]]] = {
    "hotspot, registers": ("hotspot", "register-sharing", {"core.registers": 13824}),
    "stencil, registers": ("stencil", "register-sharing", {"core.registers": 21504}),
    "MUM, registers": ("MUM", "register-sharing", {"core.registers": 10752}),
    "stencil, scratchpad": ("stencil", "scratchpad-sharing", scratchpad(6144)),
    "srad_v2, scratchpad": ("srad_v2", "scratchpad-sharing", scratchpad(9216)),
    "hotspot, scratchpad": ("hotspot", "scratchpad-sharing", scratchpad(4608)),
}
"""Kernels whose CTAs share, on SMs with room for one and a half: kernel, mechanism, settings."""


def load(percent: int, names: tuple[str, ...], **settings: Any) -> Any:
    changed = {key.replace("_", ".", 1): value for key, value in settings.items()}
    return description.load("gtx480", {"sharing.percent": percent, **changed}, names)


# ------------------------------------------------------------------------------------------------------------- the plan


def test_the_paper_s_example() -> None:
    """Figure 3: 35K registers, CTAs that need 10K; three without sharing, and a fourth beside the last of them."""
    gpu = load(50, ("register-sharing",), core_registers=35 * 1024)
    fit = plan(gpu, 320, 32, 0)
    assert (fit.ctas, fit.pairs, fit.own_registers) == (4, 1, 16)


def test_what_is_not_shared_limits_all_ctas_together() -> None:
    gpu = load(90, ("register-sharing",), core_registers=35 * 1024, core_ctas=3)
    assert (plan(gpu, 320, 32, 0).ctas, plan(gpu, 320, 32, 0).pairs) == (3, 0)
    gpu = load(90, ("register-sharing",), core_registers=35 * 1024)
    assert plan(gpu, 128, 32, 12288).limited_by == ("scratchpad",)


def test_a_cta_has_one_partner() -> None:
    """Registers for 1 CTA and 7/8 at 99 %: far more than one partner would fit."""
    fit = plan(load(99, ("register-sharing",), core_registers=35 * 1024), 320, 60, 0)
    assert (fit.ctas, fit.pairs) == (2, 1)


def test_two_shared_resources_have_the_same_pairs() -> None:
    """Scratchpad for 2 CTAs and 3.5, registers for 3 and 3.5: two make progress, one pair is possible for each."""
    few = dict(core_registers=35 * 1024, scratchpad_bytes=30 * 1024, scratchpad_bytes_per_cta=30 * 1024)
    fits = {names: plan(load(50, names, **few), 320, 32, 12 * 1024) for names in (*((name,) for name in BOTH), BOTH)}
    found = {names: (fit.ctas, fit.pairs) for names, fit in fits.items()}
    assert found == {("register-sharing",): (2, 0), ("scratchpad-sharing",): (3, 1), BOTH: (3, 1)}
    assert fits[BOTH].own_scratchpad_bytes == 6 * 1024 and fits[BOTH].own_registers == 16
    assert fits[("scratchpad-sharing",)].own_registers == 32


def test_storage_of_the_paper_s_gpu() -> None:
    assert storage.bits(storage.CTAS, storage.WARPS) == 273
    assert sum(structure.bits for structure in storage.STORAGE.structures) == 273
    assert storage.scratchpad_bits(storage.CTAS) == 12


# ------------------------------------------------------------------------------------------------------------- kernels


@pytest.mark.parametrize("scheduler", ["lrr", "gto"])
@pytest.mark.parametrize("name", ["saxpy", "bfs", "reduction"])
def test_without_pairs_nothing_changes(name: str, scheduler: str) -> None:
    """Jatala et al., set 2: not a cycle, not a count."""
    settings = {"core.scheduler": scheduler, "sharing.numbering": "allocated"}
    alone, shared = (combinations.run(name, names, settings=settings) for names in ((), BOTH))
    assert not shared.wrong
    for before, after in zip(alone.raw, shared.raw, strict=True):
        assert after == before | {key: count for key, count in after.items() if key.startswith("sharing.")}


@pytest.mark.parametrize("case", PAIRED)
def test_kernels_that_share(case: str) -> None:
    """Right results; the same with and without skipping; locks are taken, refused and given back."""
    name, mechanism, settings = PAIRED[case]
    one, other = (combinations.run(name, [mechanism], skip, {"core.sms": 1, **settings}) for skip in (True, False))
    assert not one.wrong and one.raw == other.raw
    kind = mechanism.split("-")[0]
    counts = (f"{kind}_locks", "released", f"{kind}_refusals")
    taken, released, refused = (sum(sum(raw[f"sharing.{count}"]) for raw in one.raw) for count in counts)
    assert taken == released > 0 < refused


def test_options_reach_the_schedulers() -> None:
    """On SM 0, dynamic warp execution holds non-owners back at their accesses to memory; owners go first."""
    name, mechanism, settings = PAIRED["srad_v2, scratchpad"]
    common = {"core.sms": 1, "core.scheduler": "lrr", "sharing.percent": 20, **settings}

    def observed(**options: int) -> tuple[int, int]:
        chosen = {f"sharing.{option}": value for option, value in options.items()}
        raw = combinations.run(name, [mechanism], settings=common | chosen).raw
        return sum(sum(one["sm.gated_cycles"]) for one in raw), sum(sum(one["gpu.cycles"]) for one in raw)

    (held, with_both), (free, _), (_, unordered) = observed(), observed(dynamic=0), observed(owf=0)
    assert held > 5 * free and with_both < unordered


def test_classes_are_those_of_owners_and_their_partners() -> None:
    """One CTA that shares nothing, and a pair: looked at every thousand cycles."""
    gpu = Gpu("gtx480", ["register-sharing"], {"core.sms": 1, "core.registers": 17920, "sharing.percent": 60})
    [tenant] = gpu.machine.tenants[-1:]
    sides = set()

    def look(*_: int) -> None:
        grid, sm = gpu.machine.grid(0), gpu.machine.sms[0]
        out, classes = tenant.states["share_owner"][0]["io"]["o"], sm["frame"]["classes"]
        assert (grid["pairs"], grid["per_sm"]) == (1, 3)
        if out["present"].all():
            side = int(out["owner"])
            owner, partner = (sm["ctas"][1 + which] for which in (side, 1 - side))
            assert (classes["owner"], classes["non_owner"]) == (owner["slots"], partner["slots"])
            sides.add(side)
        else:
            assert not classes["owner"] and not classes["non_owner"]

    gpu.progress = look
    kernel = kernels.find("hotspot")
    kernel.run(gpu, gpu.load(kernel.ptx), kernel.setup("small", 1))
    assert sides == {0, 1}


def test_dynamic_warp_execution_without_skipping() -> None:
    """SMs that draw, beside SM 0."""
    name, mechanism, settings = PAIRED["srad_v2, scratchpad"]
    common = {"core.sms": 3, "sharing.window": 50, "sharing.percent": 20, "core.scheduler": "lrr"}
    one, other = (combinations.run(name, [mechanism], skip, common | settings) for skip in (True, False))
    assert not one.wrong and one.raw == other.raw
    throttled = [sum(cycles) for cycles in zip(*(raw["sharing.throttled_cycles"] for raw in one.raw), strict=True)]
    assert throttled[0] > max(throttled[1:]) > 0


@jit
def _no_locks(state, io):
    """Forget that anything needs a lock."""
    io.c.register_lock = 0
    io.c.scratchpad_lock = 0
    return i64(0)


@pytest.fixture
def without_locks(monkeypatch: pytest.MonkeyPatch) -> None:
    functions = slots(share_access.STATE, share_access.PORTS, comb=_no_locks)
    monkeypatch.setitem(share_access.SLOTS, "comb", functions["comb"])


@pytest.mark.usefixtures("without_locks")
def test_registers_without_a_lock_are_wrong() -> None:
    """What a pair of warps shares has one place."""
    assert deadlock.search(range(20)).wrong == 20


@pytest.mark.usefixtures("without_locks")
def test_scratchpad_without_a_lock_is_wrong() -> None:
    """What a pair of CTAs shares has one place."""
    name, mechanism, settings = PAIRED["srad_v2, scratchpad"]
    assert combinations.run(name, [mechanism], settings={"core.sms": 1, **settings}).wrong


# ------------------------------------------------------------------------------------------------------------- deadlock


@pytest.mark.exhaustive
@pytest.mark.long
def test_no_deadlock_whatever_the_order() -> None:
    """``python -m lockstep.verif.sharing.deadlock`` searches further."""
    found = deadlock.search(range(80))
    assert (found.right, found.deadlocks) == (80, 0)
    assert found.refusals > 80


@pytest.mark.long
def test_without_the_rule_there_are_deadlocks() -> None:
    """They are reported, with the lock."""
    found = deadlock.search(range(60), deadlock.OFF)
    assert found.deadlocks > 0 and found.wrong == 0
    assert found.both_wait > 0, "what the conservation law counts"
    assert found.longest < 10_000, "warps with registers of a pair are seen to come back to states, too"
    assert "which waits for a lock: its partner, CTA (" in found.message and "a deadlock" in found.message


# ------------------------------------------------------------------------------------------------------------- hardware


@pytest.mark.long
@pytest.mark.parametrize("mode", ["shadow", "replace"])
@pytest.mark.parametrize("case", ["hotspot, registers", "srad_v2, scratchpad"])
def test_blocks_in_a_run(case: str, mode: str, tmp_path: Path) -> None:
    name, mechanism, settings = PAIRED[case]
    values = [word for key, value in settings.items() for word in ("--set", f"{key}={value}")]
    options = ["--size", "tiny", "--with", mechanism, "--rtl", "sharing", "--mode", mode, "--set", "core.sms=1"]
    report = tmp_path / "report.json"
    where = ["-o", str(tmp_path / "cosim"), "--json", str(report)]
    assert cli.main(["cosim", name, *options, *values, *where]) == 0
    result = json.loads(report.read_text(encoding="utf-8"))
    assert (result["checked"], result["mismatches"]) == (True, 0)
    assert result["stats"]["sharing.register_refusals"] + result["stats"]["sharing.scratchpad_refusals"] > 0


@pytest.mark.exhaustive
@pytest.mark.long
def test_a_kernel_shows_that_hardware_lacks_the_rule(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Only where CTAs contend: with two SMs, the first kernel's locks are taken, and nobody is refused."""
    monkeypatch.setattr(report, "waves", lambda *_: None)  # a build of its own, which has its own tests
    block = "sharing.share_locks"
    [(kernel, settings, _)] = exercised.contended("register-sharing", [block])
    locks = registry.component(block)
    makes = {block: lambda **parameters: locks(**parameters | {"rule": 0})}
    job = Job(kernel, size="tiny", mechanisms=["register-sharing"], settings=settings)
    found = cosim(job, block, folder=tmp_path, makes=makes)["difference"]
    assert found["port"] == "c.refuse" and found["model"] & ~found["rtl"]


READS_WHAT_NOBODY_WROTE = """.version 8.7
.target sm_90
.address_size 64
.entry k(.param .u64 out)
{
.reg .b32 %r<6>; .reg .b64 %rd<4>;
mov.u32 %r1, %r0;
mov.u32 %r2, %tid.x;
mov.u32 %r3, %ctaid.x;
mov.u32 %r4, %ntid.x;
mad.lo.u32 %r5, %r3, %r4, %r2;
ld.param.u64 %rd1, [out];
mul.wide.u32 %rd2, %r5, 4;
add.s64 %rd3, %rd1, %rd2;
st.global.u32 [%rd3], %r1;
ret;
}
"""
POISON = 0xCBCBCBCB  # bytes that nobody has written


def test_whoever_takes_a_register_lock_finds_poison_behind_it(tmp_path: Path) -> None:
    """Each CTA reads a shared register before it writes it, and not what its partner left there."""
    file = tmp_path / "k.ptx"
    file.write_text(READS_WHAT_NOBODY_WROTE, encoding="utf-8")
    settings = {"core.sms": 1, "core.registers": 6144, "sharing.percent": 99}  # none of 16 is a warp's own
    gpu = Gpu("gtx480", mechanisms=["register-sharing"], settings=settings)
    module = gpu.load(file, registers={"k": 16})
    assert module.occupancy("k", (256,)).pairs == 1
    out = gpu.to_device(np.zeros(4 * 256, np.uint32))
    run = module.launch("k", grid=(4,), block=(256,), args=[out])
    assert run.stats["sharing.register_locks"] == 4 * 256 / 32
    assert run.stats["sharing.handovers"] == 3, "each CTA but the last hands its pair over when it ends"
    assert gpu.from_device(out).tolist() == [POISON] * 4 * 256
