"""The constructor arguments of every block on a GPU."""

from __future__ import annotations

from amaranth.lib import wiring

from lockstep.models.parameters import Gpu
from lockstep.models.warppool import parameters as warppool
from lockstep.rtl import registry


def parameters(block: str, gpu: Gpu) -> dict[str, int]:
    """Of one block; empty, which means its defaults, if it does not follow the GPU."""
    every = {
        "cta.cta_dispatcher": {"sms": gpu.core.sms},
        "scheduling.warp_scheduler": {"warps": gpu.core.warps},
        **warppool.parameters(gpu),
    }
    return every.get(block, {})


def build(block: str, gpu: Gpu) -> wiring.Component:
    """A block as this GPU has it. Raises ``ValueError`` where its constructor refuses the arguments."""
    return registry.component(block)(**parameters(block, gpu))
