"""Kernels with RegLess's blocks as RTL.

In *replace*, what instructions compute with is what the RTL's banks, its compressors and the L1 deliver.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from lockstep.sim.cosim.run import cosim
from lockstep.sim.job import Job
from lockstep.spec.regless import MECHANISM


@pytest.mark.parametrize("mode", ["shadow", "replace"])
@pytest.mark.parametrize(("kernel", "gpu", "registers"), [("hotspot", "gtx980", 512), ("nw", "gtx480", 128)])
def test_blocks_in_a_run(kernel: str, gpu: str, registers: int, mode: str, tmp_path: Path) -> None:
    settings = {"core.sms": 1, "regless.registers": registers}
    job = Job(kernel, gpu=gpu, size="tiny", mechanisms=["regless"], settings=settings)
    result = cosim(job, "regless", mode, folder=tmp_path)
    assert (result["checked"], result["mismatches"]) == (True, 0), result["message"]
    assert result["blocks"] == sorted(MECHANISM.blocks)
