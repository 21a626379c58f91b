"""The table of statistics: every raw count exists in the model, units are in the names, sums and ratios are right."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from lockstep.models.core import state
from lockstep.models.lsu import unit
from lockstep.models.memory import dram, fabric, l1, l2, read_cache
from lockstep.models.tenants import tenants
from lockstep.sim.device import description, statistics
from lockstep.sim.device.statistics import STATISTICS
from lockstep.spec import registry
from lockstep.spec.parameters import CATEGORIES, Gpu
from lockstep.spec.registry import MECHANISMS

GPU = description.load("gtx480")
WITH = [description.load("gtx480", selected=[name] if name else []) for name in ("", *MECHANISMS)]
DOCUMENT = Path(__file__).parents[3] / "docs" / "statistics.md"
PARTS = {
    "sm": (state.COUNTERS, GPU.core.sms),
    "lsu": (unit.COUNTS, GPU.core.sms),
    "l1": (l1.L1_STATISTICS, GPU.core.sms),
    "instruction_cache": (read_cache.READ_STATISTICS, GPU.core.sms),
    "constant_cache": (read_cache.READ_STATISTICS, GPU.core.sms),
    "l2": (l2.SLICE_STATISTICS, GPU.l2.slices),
    "dram": (dram.CHANNEL_STATISTICS, GPU.dram.channels),
    "requests": (fabric.DIRECTION, 1),
    "replies": (fabric.DIRECTION, 1),
    **{
        tenant.mechanism.area: (tenant.states.dtype["counts"], GPU.core.sms)
        for gpu in WITH
        for mechanism in registry.selected(gpu)
        for tenant in tenants(mechanism, gpu)
        if "counts" in tenant.fields
    },
}


class Recorder(dict):
    """Raw counts made up on demand, with the shapes of the model's records; remembers what was asked for."""

    def __missing__(self, name: str) -> np.ndarray:
        prefix, field = name.split(".")
        if name == "gpu.cycles":
            shape: tuple[int, ...] = (1,)
        else:
            record, instances = PARTS[prefix]
            shape = (instances, *record[field].shape)  # KeyError: the model has no such counter
        self[name] = 1 + np.arange(np.prod(shape)).reshape(shape) % 7
        return self[name]


def raw(gpu: Gpu = GPU) -> Recorder:
    made = Recorder()
    statistics.compute(made, gpu)
    return made


@pytest.mark.parametrize("gpu", WITH, ids=lambda gpu: "".join(gpu.mechanisms))
def test_every_raw_count_exists_in_the_model(gpu: Gpu) -> None:
    assert len(raw(gpu)) > 50


@pytest.mark.parametrize("name", MECHANISMS)
def test_a_mechanism_that_is_not_selected_has_counted_nothing(name: str) -> None:
    own = {statistic.name for statistic in MECHANISMS[name].statistics}
    for gpu in WITH:
        made = statistics.compute(raw(gpu), gpu)
        assert made.keys() == STATISTICS.keys()
        assert all(bool(made[key]) == (name in gpu.mechanisms) for key in own)


def test_the_counters_of_an_sm_are_all_used() -> None:
    assert {name.split(".")[1] for name in raw() if name.startswith("sm.")} == set(state.COUNTERS.names or ())


def test_names_carry_units() -> None:
    for name, statistic in STATISTICS.items():
        suffix = {"core cycles": "_core_cycles", "DRAM cycles": "_dram_cycles", "bytes": "_bytes"}.get(statistic.unit)
        if suffix and not name.startswith("chen."):
            assert name.endswith((suffix, f".{suffix[1:]}")), name
        assert statistic.doc and "." in name


def test_the_paper_s_22_characteristics() -> None:
    assert sum(name.startswith("chen.") for name in STATISTICS) == 22


def test_sums_over_sms() -> None:
    made = raw()
    whole = statistics.compute(made, GPU)
    per_sm = [statistics.compute(made, GPU, index) for index in range(GPU.core.sms)]
    for name, statistic in STATISTICS.items():
        assert (name in per_sm[0]) == statistic.per_sm
        means = statistic.unit in ("ratio", "lanes") or name.startswith(("occupancy.", "l1.lat_rt"))
        if statistic.per_sm and not means:
            assert whole[name] == sum(one[name] for one in per_sm), name
    assert whole["l1.hits"] == made["l1.hits"].sum()
    assert whole["instructions.float"] == made["sm.categories"][:, CATEGORIES.index("float")].sum()


def test_ratios_are_of_sums() -> None:
    made = raw()
    whole = statistics.compute(made, GPU)
    cycles, warps = made["sm.cycles"].sum(), made["sm.resident_warp_cycles"].sum()
    assert whole["occupancy.ratio"] == warps / (cycles * 48)
    assert whole["issue.ipc"] == made["sm.warp_instructions"].sum() / made["gpu.cycles"].sum()
    assert whole["issue.ract"] == made["sm.active_cycles"].sum() / (15 * made["gpu.cycles"].sum())
    requests = made["dram.reads"].sum() + made["dram.writes"].sum()
    # A line of 128 bytes takes a channel 4 DRAM cycles: 32 bytes each.
    busy = 4 * requests * 700 / 924
    assert whole["dram.bandwidth_used"] == pytest.approx(busy / (6 * made["gpu.cycles"].sum()))
    assert whole["l2.mpki"] == 1000 * made["l2.misses"].sum() / made["sm.warp_instructions"].sum()


def test_nothing_ran() -> None:
    made = {name: np.zeros_like(array) for name, array in raw().items()}
    assert set(statistics.compute(made, GPU).values()) == {0}


def test_launches_add_up() -> None:
    made = raw()
    once = statistics.accumulate({}, made)
    twice = statistics.accumulate(once, made)
    assert all((twice[name] == 2 * made[name]).all() for name in made)
    once["l1.hits"][:] = 0
    assert made["l1.hits"].any(), "the first launch is copied"
    single, double = statistics.compute(made, GPU), statistics.compute(twice, GPU)
    assert double["l1.hits"] == 2 * single["l1.hits"] and double["issue.ipc"] == single["issue.ipc"]


def test_the_document_is_current() -> None:
    again = "run python -m lockstep.sim.device.statistics > docs/statistics.md"
    assert DOCUMENT.read_text(encoding="utf-8") == statistics.markdown(), again


def test_an_unknown_statistic_is_named() -> None:
    found = statistics.compute(raw(), GPU)
    with pytest.raises(KeyError, match=r"no statistic 'l1\.mises'; did you mean l1\.misses\?"):
        found["l1.mises"]
    assert found.get("l1.mises") is None and "l1.mises" not in found
