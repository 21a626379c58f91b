"""Whole CUDA kernels on the golden cycle model: ``from lockstep.sim import Gpu``.

Rooms, each of which sees those before it: ``compile``, ``device``, ``kernels``, ``study``, ``cosim``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from lockstep.sim.device import description
    from lockstep.sim.errors import KernelFault, UsageError
    from lockstep.sim.gpu import Gpu, Module

__all__ = ["Gpu", "KernelFault", "Module", "UsageError", "description"]


def __getattr__(name: str) -> Any:
    # Late, because NumPy and the model take time to import, which `lockstep --version` need not spend.
    if name == "description":
        from lockstep.sim.device import description

        return description
    if name in ("KernelFault", "UsageError"):
        from lockstep.sim import errors

        return getattr(errors, name)
    if name in __all__:
        from lockstep.sim import gpu

        return getattr(gpu, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
