"""The published table of plants is what the study gives."""

from __future__ import annotations

import pytest

from lockstep.models.cache import ROOT
from lockstep.verif.scavenger import plants


@pytest.mark.parametrize("plant", [plants.PLANTS[8]], ids=str)
def test_the_page_has_the_row(plant: plants.Plant) -> None:
    assert plants.row(plant) in (ROOT / "docs" / "scavenger.md").read_text(encoding="utf-8")


@pytest.mark.exhaustive
@pytest.mark.long
def test_the_page_has_the_table() -> None:
    assert "\n".join(plants.table()) in (ROOT / "docs" / "scavenger.md").read_text(encoding="utf-8")
