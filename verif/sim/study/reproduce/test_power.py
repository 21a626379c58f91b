"""The chapter on power: its kernels, its marks, and the documentation."""

from __future__ import annotations

import numpy as np
import pytest

from lockstep.models import cache
from lockstep.sim import kernels
from lockstep.sim.device import description, statistics
from lockstep.sim.study import page
from lockstep.sim.study.power import models
from lockstep.sim.study.power.sample import MODELLED, read, text
from lockstep.sim.study.reproduce import run
from lockstep.sim.study.reproduce.chapters import power
from lockstep.sim.watch import Watch

SAMPLE = cache.ROOT / "sim" / "study" / "power" / "modelled.csv"
DOCUMENT = cache.ROOT / "docs" / "reproduce" / "power.md"


def test_every_kernel_of_the_thesis_has_a_line() -> None:
    """Two lines have five kernels."""
    assert len(power.THESIS) + 8 == 52
    assert {name for name in power.THESIS.values() if name} <= set(kernels.names())


def test_the_sample_that_ships_is_marked() -> None:
    assert read(str(SAMPLE)).origin.startswith(MODELLED)


def test_pairs_by_hand() -> None:
    near = np.array([[1, 0.9, 0.8, 0], [0.9, 1, 0.95, 0.1], [0.8, 0.95, 1, 0.2], [0, 0.1, 0.2, 1]])
    assert power.pairs(near) == [(1, 2), (0, 3)]


def test_the_page_is_marked(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its errors are those of modelled watts, and the thesis's are not on it."""
    monkeypatch.setattr(models, "TREES", 3)
    monkeypatch.setattr(power, "SEEDS", range(1, 2))
    random = np.random.default_rng(1)
    results = {}
    for name in power.jobs(True):
        stats = {each: float(random.integers(1, 1000)) for each in statistics.STATISTICS}
        results[name] = {
            "kernel": name, "size": power.SIZE, "cycles": 1000, "mechanisms": [], "stats": stats,
            "configuration": description.values(description.load(power.GPU)),
        }  # fmt: skip
    shown = page.markdown(power.page(results), "power")
    assert "modelled from events at 45 nm: errors say nothing about a real GPU" in shown
    assert not [figure for figure in ("7.77", "11.68", "11.70", "302.6", "637.8", "2548") if figure in shown]


@pytest.mark.exhaustive
@pytest.mark.long
def test_the_sample_that_ships_is_what_the_model_counts() -> None:
    """Of every eighth kernel."""
    jobs = dict(sorted(power.jobs(False).items())[::8])
    lines = text(power.sample_of(run.run(jobs, Watch(), 1))).splitlines()
    assert {*lines} <= {*SAMPLE.read_text(encoding="utf-8").splitlines()}, "lockstep reproduce power makes it again"


@pytest.mark.exhaustive
@pytest.mark.long
def test_the_documentation_shows_what_the_sample_says() -> None:
    """All but the spread over ten seeds, which takes three minutes."""
    shown = page.markdown(power.page_of(read(str(SAMPLE)), range(1, 2)), "power")
    lines = DOCUMENT.read_text(encoding="utf-8").splitlines()
    spread = next(k for k, line in enumerate(lines) if line.startswith("Over 10 seeds"))
    del lines[spread : spread + 2]
    assert lines == shown.splitlines(), "lockstep reproduce power; its power.md and plots belong to docs/reproduce/"
