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
