"""Every kernel on every GPU gives the right result, and all its warps' instructions are the same everywhere."""

from __future__ import annotations

import pytest

from lockstep.sim import description, kernels
from lockstep.sim.job import Job, execute


@pytest.mark.parametrize("kernel", kernels.names())
def test_results(kernel: str) -> None:
    runs = [execute(Job(kernel, gpu, "tiny")) for gpu in description.names()]
    for run in runs:
        assert run["checked"], f"{kernel} on {run['gpu']}: {run['message']}"
        assert run["compared"] > 0
    assert len({(run["warp_instructions"], run["thread_instructions"]) for run in runs}) == 1


def test_the_transposes_of_the_case_study() -> None:
    """A line per element where loads walk columns; 32 lanes on one bank without padding, on 32 banks with it."""
    names = ("transpose-columns", "transpose-tiled", "transpose-padded")
    columns, tiled, padded = (execute(Job(name, "gtx480", "tiny")) for name in names)
    height, width = kernels.find("transpose-columns").setup("tiny", 1)["input"].shape
    assert columns["stats"]["l1.loads"] == height * width
    assert columns["stats"]["scratchpad.accesses"] == 0
    spans = [min(32, height - first) for first in range(0, height, 32)]  # lanes that read a column of a tile
    assert tiled["stats"]["scratchpad.conflict_core_cycles"] == width * sum(lanes - 1 for lanes in spans)
    assert padded["stats"]["scratchpad.conflict_core_cycles"] == 0
