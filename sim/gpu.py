"""The Python API's classes: ``from lockstep.sim import Gpu, Module`` gives these."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from lockstep.sim.device.gpu import Gpu
from lockstep.sim.device.module import Module
from lockstep.sim.device.run import Run

__all__ = ["Gpu", "Module", "Run"]


def _report(saved: Mapping[str, Any]) -> str:
    from lockstep.sim.study import report
    from lockstep.sim.study.page import html

    return html(report.page([saved]), whole=False)


Run.report = _report
