"""The constructor arguments of every block on a GPU."""

from __future__ import annotations

from amaranth.lib import wiring

from lockstep.rtl import registry
from lockstep.spec.mechanism import arguments_of
from lockstep.spec.parameters import Gpu
from lockstep.spec.registry import arguments


def parameters(block: str, gpu: Gpu) -> dict[str, int]:
    """Of one block, where an SM has several the first; empty, so its defaults, if it does not follow the GPU."""
    found = arguments(gpu)
    return arguments_of(found, block, 0) if {block, f"{block}[0]"} & found.keys() else {}


def build(block: str, gpu: Gpu) -> wiring.Component:
    """A block as this GPU has it. Raises ``ValueError`` where its constructor refuses the arguments."""
    return registry.component(block)(**parameters(block, gpu))
