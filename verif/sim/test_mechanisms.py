"""Selecting mechanisms, and what is said about them."""

from __future__ import annotations

import copy
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from lockstep.models.blocks import instances
from lockstep.models.core import sm
from lockstep.sim import comparison, description
from lockstep.sim.errors import UsageError
from lockstep.spec.mechanisms import MECHANISMS
from lockstep.verif.models.micro import Bench


@pytest.mark.parametrize(
    ("selected", "settings", "words"),
    [
        (["warpool"], {}, "mechanism 'warpool': not known; known are banked-l1, mrpb, warppool"),
        (["warppool", "mrpb"], {}, "warppool and mrpb exclude each other"),
        (["warppool"], {"warppool.queues": 24}, "warppool.queues = 24: must be a power of two"),
        (["warppool"], {"warppool.queues": 64}, "tags = 128: at most 64 tags"),
        (["warppool"], {"l1.sets": 16}, "warppool.queues = 32: must not exceed l1.sets = 16"),
        (["warppool"], {"warppool.maps": 7}, "warppool.maps = 7: must be a multiple of warppool.coalescers = 2"),
        (["warppool"], {"l1.mshrs": 256, "l1.merges": 16}, "l1.mshrs * l1.merges = 4096: WarpPool has at most 2048"),
    ],
)
def test_refused(selected: list[str], settings: dict[str, int], words: str) -> None:
    with pytest.raises(UsageError) as caught:
        description.load("gtx480", settings, selected)
    assert words in str(caught.value)


def test_sizes_that_nobody_uses_are_not_checked() -> None:
    assert description.load("gtx480", {"warppool.maps": 7}).warppool.maps == 7


def test_a_description_may_set_a_mechanism(tmp_path: Path) -> None:
    text = (description.FOLDER / "gtx480.toml").read_text() + "\n[warppool]\nqueues = 16\n"
    (tmp_path / "mine.toml").write_text(text)
    gpu = description.load(tmp_path / "mine.toml", selected=["warppool"])
    assert (gpu.warppool.queues, gpu.warppool.tags, gpu.mechanisms) == (16, 2, ("warppool",))


@pytest.mark.parametrize("gpu", description.names())
@pytest.mark.parametrize("mechanism", MECHANISMS)
def test_every_gpu_takes_every_mechanism(mechanism: str, gpu: str) -> None:
    assert description.load(gpu, selected=[mechanism]).mechanisms == (mechanism,)


def test_every_block_of_a_mechanism_is_in_the_records() -> None:
    found = {block for block, _ in instances(sm.SM)}
    for mechanism in MECHANISMS.values():
        assert {*mechanism.blocks, *filter(None, [mechanism.unit])} <= found


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
    found = {mechanism: chain(mechanism, settings) for mechanism in MECHANISMS}
    assert found == {"warppool": latency + 8, "mrpb": latency + 1, "banked-l1": latency}


# --------------------------------------------------------------------------------------------------------- comparisons

STATS = {"lsu.waiting": 0.95, "l1.mpki": 100.0, "warppool.lines_per_request": 0.0, "banked_l1.lines_per_cycle": 0.0}


def result(mechanism: str, *functions: dict[str, Any], kernel: str = "k") -> dict[str, Any]:
    parts = [{"name": str(n), "cycles": f.pop("cycles"), "stats": STATS | f} for n, f in enumerate(functions)]
    return dict(
        kernel=kernel, gpu="g", size="tiny", seed=1, mechanisms=[mechanism] if mechanism else [], functions=parts
    )


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
