"""The Python API's classes: ``from lockstep.sim import Gpu, Module`` gives these."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from lockstep.sim.device.gpu import Gpu
from lockstep.sim.device.module import Module
from lockstep.sim.device.run import Run

if TYPE_CHECKING:
    from lockstep.sim.traces.record import DeviceRecording

__all__ = ["Gpu", "Module", "Run"]


def _report(saved: Mapping[str, Any]) -> str:
    from lockstep.sim.study import report
    from lockstep.sim.study.page import html

    return html(report.page([saved]), whole=False)


def _recorder(device: Gpu, folder: str | os.PathLike[str], provenance: Mapping[str, Any]) -> DeviceRecording:
    from lockstep.sim.study.sources import code_version
    from lockstep.sim.traces.record import started  # late, since it compiles the model

    return started(device, folder, {"code_version": code_version(), **provenance})


Run.report = _report
Gpu.recorder = _recorder
