"""Whole CUDA kernels on the golden cycle model: ``from lockstep.sim import Gpu``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from lockstep.sim.errors import KernelFault, UsageError
    from lockstep.sim.gpu import Gpu

__all__ = ["Gpu", "KernelFault", "UsageError"]


def __getattr__(name: str) -> Any:
    # Late, because NumPy and the model take time to import, which `lockstep --version` need not spend.
    if name == "Gpu":
        from lockstep.sim.gpu import Gpu

        return Gpu
    if name in ("KernelFault", "UsageError"):
        from lockstep.sim import errors

        return getattr(errors, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
