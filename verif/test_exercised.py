"""The bins that kernels hit."""

from __future__ import annotations

import pytest

from lockstep.verif import exercised, levels
from lockstep.verif.blocks import blocks, declaration


@pytest.mark.parametrize("block", blocks())
def test_what_kernels_must_hit_are_bins(block: str) -> None:
    declared = declaration(block)
    assert set(declared.in_kernels) <= set(declared.bins)


def test_a_bin_counts_if_it_was_hit_once_or_could_be_decided_on_everywhere() -> None:
    runs: list[exercised.Bins] = [
        {"a": {"hit": 0, "hit later": 0, "never": 0, "not always": 0}},
        {"a": {"hit": 3, "never": 0}},
        {"b": {}},
        {"a": {"hit later": 1, "never": 0}},
    ]
    assert exercised.together(runs) == {"a": {"hit": 3, "hit later": 1, "never": 0}, "b": {}}


@pytest.mark.exhaustive
@pytest.mark.parametrize(
    ("block", "few"),
    [
        ("cta.cta_dispatcher", 2),
        ("dyncta.cta_limiter", 2),
        ("regless.register_compressor", 1),
        ("scheduling.warp_scheduler", 7),
        ("sharing.share_locks", 2),
    ],
)
def test_contention_in_few_kernels(block: str, few: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Those that are there for it meet all that the bench asks for, without the runs of all kernels."""
    options = levels.Options("kernels", 1)
    planned = [(name, job) for name, job in levels._planned([block], options) if job[0].endswith(", contended")]
    monkeypatch.setattr(levels, "_planned", lambda names, options: planned)
    *runs, bins = levels.verify([block], options, jobs=1)
    assert len(runs) == few and all(run.passed for run in runs)
    assert bins.passed, bins.errors
