"""Evidence for the distances: who finds a fault, and what follows from it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from lockstep.verif import evidence, levels
from lockstep.verif.blocks import declaration
from lockstep.verif.evidence import Found

FOUND = [
    Found("a", "1", ["odd, steady", "smoke"]), Found("a", "2", ["odd, steady"]), Found("a", "3", []),
    Found("b", "4", ["large"]), Found("b", "5", ["odd", "large"]),
]  # fmt: skip


def test_shares_are_of_what_is_found_and_include_nearer_distances() -> None:
    assert list(evidence.table(FOUND)) == [
        ("a", 3, 2, 50, 100, 100), ("b", 2, 2, 0, 50, 100), ("all", 5, 4, 25, 75, 100),
    ]  # fmt: skip


def test_who_is_never_the_only_one() -> None:
    assert evidence.never_alone(FOUND, "a") == ["smoke"]
    assert evidence.never_alone(FOUND, "b") == ["odd"]


def test_every_fault_can_be_planted() -> None:
    """Else whoever changes what it names hears of it when it is planted."""
    assert len([fault.source for fault in evidence.faults()]) > 100


def test_faults_are_planted_in_blocks_of_several_areas() -> None:
    assert {fault.block.partition(".")[0] for fault in evidence.faults()} >= {"warppool", "lsu", "regless", "cta"}


def test_a_size_without_what_a_fault_takes_wrongly_does_not_find_it() -> None:
    """With one warp, its number has no bit that could be lost, and the hardware cannot be made."""
    block, mistake = "warppool.request_selector", "warps are compared without their lowest bit"
    (fault,) = (each for each in evidence.faults() if (each.block, each.mistake) == (block, mistake))
    declared = declaration(block)
    assert not evidence._seen(declared, fault, levels.runs(declared, "one", 1, 1))


@pytest.mark.exhaustive
@pytest.mark.long
def test_the_command(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    report = tmp_path / "found.json"
    assert evidence.main(["warppool.writeback", "--mutants", "8", "--json", str(report)]) == 0
    found = json.loads(report.read_text(encoding="utf-8"))
    planted = [each for each in found if each["fault"].startswith("writeback ")]
    assert len(found) == 8 + len(planted) and len(planted) >= 2
    assert all(set(each["by"]) & {"smoke", "odd"} for each in planted)
    assert sum(any(finder.startswith("kernel ") for finder in each["by"]) for each in planted) >= 2
    assert "warppool.writeback" in capsys.readouterr().out
