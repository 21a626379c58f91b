"""The golden model is compiled at its first launch, and never again: the other tests find it in the cache."""

from __future__ import annotations

import pytest

from lockstep.models import session as model
from lockstep.sim import Gpu, kernels
from lockstep.spec import registry
from lockstep.verif.bench import elsewhere


def compiled() -> int:
    """Launch a kernel on every path; how many compilations of the GPU's loop the cache did not save."""
    kernel = kernels.find("saxpy")
    for mechanisms in ([], *([name] for name in registry.MECHANISMS)):
        gpu = Gpu("gtx480", mechanisms, core_sms=2)
        kernel.run(gpu, gpu.load(kernel.ptx), kernel.setup("tiny", 1))
    return sum(model.run.stats.cache_misses.values())


@pytest.mark.first
def test_a_second_process_compiles_nothing() -> None:
    compiled()
    assert elsewhere(compiled) == 0
