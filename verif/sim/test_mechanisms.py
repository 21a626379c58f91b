"""Selecting mechanisms, and what is said about them."""

from __future__ import annotations

import copy
import dataclasses
import sys
import types
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from lockstep.cli import compare
from lockstep.models import blocks, tenants
from lockstep.models.gpu import Machine
from lockstep.sim.device import description
from lockstep.sim.errors import UsageError
from lockstep.sim.study import comparison
from lockstep.spec import registry
from lockstep.spec.mechanism import Mechanism, Parameters
from lockstep.spec.registry import MECHANISMS
from lockstep.spec.statistics import Counts
from lockstep.verif.models.micro import Bench


@pytest.mark.parametrize(
    ("selected", "settings", "words"),
    [
        (["warpool"], {}, f"did you mean warppool?; known are {', '.join(sorted(MECHANISMS))}"),
        (["warppool", "mrpb"], {}, "warppool and mrpb exclude each other"),
        (["warppool"], {"warppool.queues": 24}, "warppool.queues = 24: must be a power of two"),
        (["warppool"], {"warppool.queues": 64}, "tags = 128: at most 64 tags"),
        (["warppool"], {"l1.sets": 16}, "warppool.queues = 32: must not exceed l1.sets = 16"),
        (["warppool"], {"warppool.map_per": "warp"}, "warppool.map_per"),
        (["warppool"], {"l1.mshrs": 256, "l1.merges": 16}, "l1.mshrs * l1.merges = 4096: WarpPool has at most 2048"),
        (["scavenger"], {"scavenger.target": 0}, "scavenger.target = 0: must be 1 to 100 %"),
        (["scavenger"], {"scavenger.target": 101}, "scavenger.target = 101: must be 1 to 100 %"),
        (["scavenger"], {"scavenger.minimum": 20_004}, "scavenger.minimum = 20004: must be a multiple of 8"),
        (["scavenger"], {"scavenger.maximum": 20_127}, "scavenger.maximum = 20127: must be 20128 at least"),
        (["scavenger"], {"scavenger.entries": 24}, "scavenger.entries = 24: must be a power of two"),
        (["scavenger"], {"scavenger.relative": 1, "scavenger.reciprocal": 1}, "scavenger.reciprocal = 1: must be 0"),
        (["scavenger"], {"scavenger.longest": 32_767}, "scavenger.duration = 32768: must not exceed"),
        (["scavenger"], {"launch.placement": "spatial"}, "launch.placement = spatial: must be shared"),
        (["scavenger"], {"core.ctas": 1}, "core.ctas = 1: must be 2 at least"),
        (["scavenger", "regless"], {}, "regless and preemption exclude each other"),
        (["scavenger", "register-sharing"], {}, "sharing and preemption exclude each other"),
    ],
)
def test_refused(selected: list[str], settings: dict[str, int], words: str) -> None:
    with pytest.raises(UsageError) as caught:
        description.load("gtx480", settings, selected)
    assert words in str(caught.value)


def test_sizes_that_nobody_uses_are_not_checked() -> None:
    assert description.load("gtx480", {"warppool.queues": 24}).sections["warppool"].queues == 24


def test_a_description_may_set_a_mechanism(tmp_path: Path) -> None:
    text = (description.FOLDER / "gtx480.toml").read_text(encoding="utf-8") + "\n[warppool]\nqueues = 16\n"
    (tmp_path / "mine.toml").write_text(text, encoding="utf-8")
    gpu = description.load(tmp_path / "mine.toml", selected=["warppool"])
    pool = gpu.sections["warppool"]
    assert (pool.queues, pool.tags, gpu.mechanisms) == (16, 2, ("warppool",))
    assert description.values(gpu)["warppool.queues"] == 16


@pytest.mark.parametrize("gpu", description.names())
@pytest.mark.parametrize("mechanism", MECHANISMS)
def test_every_gpu_takes_every_mechanism(mechanism: str, gpu: str) -> None:
    if gpu == "gtx280" and mechanism in ("warppool", "banked-l1"):
        with pytest.raises(UsageError, match=f"half-warp.*{mechanism} merges the lanes of whole warps"):
            description.load(gpu, selected=[mechanism])
        return
    assert description.load(gpu, selected=[mechanism]).mechanisms == (*MECHANISMS[mechanism].requires, mechanism)


PAIRS = {
    "one": Mechanism(name="one", doc="", tenants={"path": "", "gates": ""}),
    "two": Mechanism(name="two", doc="", tenants={"path": ""}),
    "three": Mechanism(name="three", doc="", tenants={"gates": ""}, conflicts={"four": "there is no file left"}),
    "four": Mechanism(name="four", doc="", tenants={"operands": ""}),
}


@pytest.mark.parametrize(
    "names, reason",
    [("one two", "one and two exclude each other: both are the path"), ("three four", "there is no file left")],
)
def test_conflicts_are_declared_once_and_refused_both_ways(names: str, reason: str) -> None:
    found = set()
    for order in (names.split(), names.split()[::-1]):
        with pytest.raises(ValueError, match=reason) as caught:
            registry.resolve(order, PAIRS)
        found.add(str(caught.value))
    assert len(found) == 1


def test_the_order_of_naming_does_not_matter() -> None:
    assert registry.resolve(["three", "one"], PAIRS) == registry.resolve(["one", "three", "one"], PAIRS)
    assert registry.resolve(["four", "one"], PAIRS) == ("one", "four")


def test_what_a_mechanism_requires_is_selected_with_it() -> None:
    known = PAIRS | {"five": Mechanism(name="five", doc="", requires=("four",))}
    assert registry.resolve(["five"], known) == registry.resolve(["five", "four"], known) == ("four", "five")
    with pytest.raises(ValueError, match="there is no file left"):
        registry.resolve(["five", "three"], known)


@pytest.mark.parametrize(("settings", "scheduler"), [({}, "oldest"), ({"core.scheduler": "lrr"}, "lrr")])
def test_a_mechanism_chooses_what_the_user_does_not(settings: dict[str, Any], scheduler: str) -> None:
    assert description.load("gtx480", settings, ["register-sharing"]).core.scheduler == scheduler
    assert description.load("gtx480").core.scheduler == "gto"


def test_a_frame_slot_that_there_is_not() -> None:
    with pytest.raises(ValueError, match="five: there is no frame slot 'gate'"):
        Mechanism(name="five", doc="", tenants={"gate": ""})


# ---------------------------------------------------------------------------------------------------------- the machine


def machine(*selected: str) -> Machine:
    return Machine(description.load("gtx480", {"core.sms": 2}, selected))


@pytest.mark.parametrize("selected", [[], *([name] for name in MECHANISMS)], ids=lambda selected: "".join(selected))
def test_every_block_of_a_configuration_is_bound(selected: list[str]) -> None:
    made = machine(*selected)
    found = {each.block for each in made.instances}
    assert found == registry.blocks(made.gpu)
    for each in made.instances:
        assert int(each.record["binding"]["step"]) and int(each.record["binding"]["handle"])


def test_instances_by_sm_and_copies() -> None:
    blocks = [(each.block, each.sm, each.index, each.inside) for each in machine("warppool").instances]
    assert [b for b in blocks if b[0] == "lsu.intra_warp_coalescer"] == [
        ("lsu.intra_warp_coalescer", sm, index, "warppool.warp_pool") for sm in range(2) for index in range(2)
    ]
    assert [b for b in blocks if b[0] == "cta.cta_dispatcher"] == [("cta.cta_dispatcher", -1, k, "") for k in (0, 1)]
    assert sum(b[0] == "scheduling.warp_scheduler" for b in blocks) == 4


def test_a_block_that_nobody_binds_is_named() -> None:
    gpu = description.load("gtx480", selected=["mrpb"])
    [tenant] = tenants.tenants(MECHANISMS["mrpb"], gpu)
    more = dataclasses.replace(MECHANISMS["mrpb"], blocks=("lsu.intra_warp_coalescer", "warppool.writeback"))
    with pytest.raises(RuntimeError, match=r"warppool\.writeback: mrpb brings this block"):
        list(tenants.instances(more, gpu, [], [tenant.states]))
    none = dataclasses.replace(MECHANISMS["mrpb"], blocks=())
    with pytest.raises(RuntimeError, match=r"lsu\.intra_warp_coalescer: mrpb has an instance"):
        list(tenants.instances(none, gpu, [], [tenant.states]))
    whole = dataclasses.replace(MECHANISMS["mrpb"], whole=("lsu.intra_warp_coalescer",))
    with pytest.raises(RuntimeError, match=r"lsu\.intra_warp_coalescer: mrpb must say in `whole`"):
        list(tenants.instances(whole, gpu, [], [tenant.states]))


def test_a_block_is_not_called_as_the_tenant_s_entry(monkeypatch: pytest.MonkeyPatch) -> None:
    state = np.dtype([("gate", np.dtype([("binding", "i8"), ("state", np.dtype([("x", "i8")]))]))])
    monkeypatch.setitem(sys.modules, "trial", types.SimpleNamespace(STATE=state, TENANTS={}))
    monkeypatch.setattr(blocks, "layouts", lambda: {"odd_gate.gate": {}})
    with pytest.raises(RuntimeError, match="'gate' is the tenant's entry"):
        tenants.Tenant(MECHANISMS["mrpb"], "trial", description.load("gtx480"))


def test_a_tenant_has_the_values_of_its_sections() -> None:
    gpu = description.load("gtx480", {"mrpb.requests": 5}, ["mrpb"])
    [tenant] = tenants.tenants(MECHANISMS["mrpb"], gpu)
    assert tenant.states["mrpb"]["requests"].tolist() == [5] * gpu.core.sms


LOADS = "ld.global.u32 %r1, [%rd1];\n" * 4


@pytest.mark.parametrize("count", ["merged", "mappings"])
def test_a_law_of_a_mechanism_that_is_broken_stops_the_run(count: str, monkeypatch: pytest.MonkeyPatch) -> None:
    Bench(LOADS, {}, nbytes=128, mechanisms=["warppool"])()
    right = tenants.Tenant.counts.fget  # type: ignore[attr-defined]

    def wrong(tenant: tenants.Tenant) -> dict[str, np.ndarray]:
        return {name: array + name.endswith(count) for name, array in right(tenant).items()}

    monkeypatch.setattr(tenants.Tenant, "counts", property(wrong))  # which a machine asks for when it is made
    with pytest.raises(RuntimeError, match=r"conservation is broken .* WarpPool's lines by mapping"):
        Bench(LOADS, {}, nbytes=128, mechanisms=["warppool"])()


def _blocks(arguments: Parameters) -> set[str]:
    """Without the numbers of instances that differ."""
    return {block.partition("[")[0] for block in arguments}


def test_what_mechanisms_declare_fits_together() -> None:
    gpu = description.load("gtx480")
    for name, mechanism in MECHANISMS.items():
        assert mechanism.conflicts.keys() | {*mechanism.requires} <= MECHANISMS.keys() - {name}
        assert mechanism.defaults.keys() <= description.PARAMETERS.keys()
        assert _blocks(mechanism.arguments(gpu)) == {*mechanism.all_blocks}
        assert mechanism.copies(gpu).keys() <= {*mechanism.blocks}
        if mechanism.unit:
            assert _blocks(mechanism.parts(**mechanism.arguments(gpu)[mechanism.unit])) <= {*mechanism.blocks}
        for structure in mechanism.storage.structures if mechanism.storage else ():
            assert structure.block in mechanism.blocks
        assert {*mechanism.shown} <= {statistic.name for statistic in mechanism.statistics}
        assert {*mechanism.measures.values()} <= {statistic.name for statistic in mechanism.statistics}
        assert mechanism.published.keys() <= {*comparison.MEASURES}
        empty = Counts({}, gpu, absent=[mechanism.area, "gpu", "lsu", "sm"])
        assert not any(statistic.formula(empty) for statistic in mechanism.statistics)
        assert all(left == right == 0 for _, left, right in mechanism.laws(empty))


@pytest.mark.parametrize("warps", [1, 63, 64])
def test_an_instruction_queue_for_any_number_of_warps(warps: int) -> None:
    bench = Bench(LOADS, {"warppool.warps_per_queue": warps}, mechanisms=["warppool"])
    assert bench(grid=2, block=24 * 32).stats["warppool.merged"] > 0


def chain(mechanism: str, settings: dict[str, Any]) -> float:
    """Core cycles per load of a chain of loads that hit in the L1."""

    def cycles(loads: int) -> int:
        bench = Bench("ld.global.u64 %rd1, [%rd1];\n" * loads, settings, nbytes=128, stride=8, mechanisms=[mechanism])
        return bench().cycles

    return (cycles(48) - cycles(32)) / 16


@pytest.mark.parametrize("latency", [30, 45])
def test_latency_of_a_hit_through_each_path(latency: int) -> None:
    """``docs/warppool.md``: 6 cycles more before the look-up, 2 more after the answer. MRPB adds its queue."""
    settings = {"l1.latency": latency}
    expected = {"warppool": latency + 8, "mrpb": latency + 1, "banked-l1": latency}
    assert {mechanism: chain(mechanism, settings) for mechanism in expected} == expected


# --------------------------------------------------------------------------------------------------------- comparisons

STATS = {"lsu.waiting": 0.95, "l1.mpki": 100.0, "warppool.lines_per_request": 0.0, "banked_l1.lines_per_cycle": 0.0}


def result(mechanism: str, *functions: dict[str, Any], kernel: str = "k") -> dict[str, Any]:
    parts = [{"name": str(n), "cycles": f.pop("cycles"), "stats": STATS | f} for n, f in enumerate(functions)]
    asked = dict(kernel=kernel, gpu="g", size="tiny", seed=1, settings={})
    return {**asked, "mechanisms": [mechanism] if mechanism else [], "functions": parts}


def test_only_functions_that_memory_limits_are_compared() -> None:
    results = [
        result("", {"cycles": 100}, {"cycles": 100, "lsu.waiting": 0.5}),
        result("warppool", {"cycles": 50, "l1.mpki": 50.0, "warppool.lines_per_request": 2.0}, {"cycles": 10}),
        result("", {"cycles": 200}, kernel="other"),
        result("warppool", {"cycles": 400, "warppool.lines_per_request": 0.5}, kernel="other"),
        result("mrpb", {"cycles": 100}, kernel="other"),
    ]
    rows = comparison.limited(copy.deepcopy(results))
    assert [(label, mechanism) for label, mechanism, _, _ in rows] == [
        ("k_1", "warppool"), ("other", "warppool"), ("other", "mrpb"),
    ]  # fmt: skip
    assert rows[0][3] == {"speed-up": 2.0, "lines per request": 2.0, "misses": 0.5}
    means = {name: (count, measures) for name, count, measures in comparison.means(rows)}
    assert means["warppool"][0] == 2
    assert np.isclose(means["warppool"][1]["speed-up"], 1.0)
    assert np.isclose(means["warppool"][1]["misses"], 0.5**0.5)
    assert means["mrpb"] == (1, {"speed-up": 2.0, "lines per request": 1.0, "misses": 1.0})


def test_published_figures() -> None:
    assert comparison.published("warppool", "speed-up") == 1.38
    assert comparison.published("mrpb", "speed-up") == comparison.published("a,b", "misses") == ""


@pytest.mark.parametrize(("size", "shown"), [("steady", True), ("small", False)])
def test_published_means_stand_beside_the_benchmarks_own_dimensions_alone(
    size: str, shown: bool, capsys: pytest.CaptureFixture[str]
) -> None:
    compare._limited([result("", {"cycles": 100}), result("warppool", {"cycles": 50})], size)
    printed = capsys.readouterr().out
    assert "geometric mean of 1" in printed
    assert ("published" in printed) == ("1.38" in printed) == shown
