"""Replaying a trace on a device: its launches, one after the other, with execution off."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np

from lockstep.models.execution.isa import PT, Control, Group
from lockstep.sim.device.device import Device
from lockstep.sim.device.memory import Arena
from lockstep.sim.device.run import Run
from lockstep.sim.errors import FAULTS, UsageError
from lockstep.sim.traces import schema
from lockstep.sim.traces.read import Trace
from lockstep.spec import registry
from lockstep.spec.passes import MACHINE

__all__ = ["check", "replay"]


@dataclass(frozen=True)
class Kernel:
    """A kernel, as a launch needs it (``models.launch``)."""

    code: np.ndarray
    branch_table: list[int]
    registers: int
    shared_bytes: int
    local_bytes: int
    tables: dict[str, np.ndarray] = field(default_factory=dict)


def guided(code: np.ndarray) -> np.ndarray:
    """The code in which the guide says where guarded instructions execute: in predicate 0."""
    code = code.copy()
    guarded = code["guard"] != PT
    code["guard"][guarded] = 0
    code["guard_not"] = 0
    reductions = (code["group"] == Group.CONTROL) & (code["op"] == Control.REDUCE)
    code["pdst"][reductions] = PT
    return code


def check(trace: Trace, device: Device) -> None:
    """Refuse what a trace cannot say. Raises :class:`UsageError`."""
    for launch in trace.manifest.launches:
        if launch.marks:
            mark = launch.marks[0]
            name = trace.code(launch).kernel.name
            raise UsageError(f"{trace.folder}: {name}: PTX line {mark.line}: {mark.why}; only an execution can say")
    gpu = device.description
    for mechanism in registry.selected(gpu):
        if mechanism.values:
            raise UsageError(f"{mechanism.name}: {mechanism.values}, and a trace has no values")
    if getattr(gpu.l1, "values", "memory") == "lines":
        raise UsageError("l1.values = lines: lines carry values, and a trace has none")


def replay(trace: Trace, device: Device, progress: Callable[[str], None] = lambda text: None) -> list[Run]:
    """Replay all launches of a trace. Raises :class:`UsageError`."""
    check(trace, device)
    return [_launch(trace, launch, device) for launch in trace.manifest.launches]


def _kernel(trace: Trace, launch: schema.Launch, device: Device) -> tuple[Kernel, np.ndarray]:
    """The kernel of a launch as it is replayed, and the number of each instruction in the recorded code."""
    code = trace.code(launch)
    if passes := [each for each in registry.passes(device.description) if each.stage != MACHINE]:
        raise UsageError(f"{trace.folder}: {passes[0].function.rpartition(':')[0]}: needs the kernel's source")
    kernel = code.kernel
    made = Kernel(
        guided(code.instructions), kernel.branch_table, kernel.registers, kernel.shared_bytes, kernel.local_bytes
    )
    return made, np.arange(len(made.code))


def _launch(trace: Trace, launch: schema.Launch, device: Device) -> Run:
    from lockstep.models.traces import taking_part  # late: they compile the model
    from lockstep.models.traces.replay import Replay
    from lockstep.sim.traces.load import Loader

    recorded = trace.code(launch).kernel
    kernel, pcs = _kernel(trace, launch, device)
    _check_fit(recorded, launch, device)
    warps = trace.warps(launch)
    loader = Loader(warps)
    total = launch.ctas * launch.warps_per_cta
    steers = trace.manifest.origin != "lockstep"
    part = Replay(device.description.core.sms, total, pcs, steers, loader.load)
    loader.first = part.first
    params, memory = bytes(recorded.param_bytes), Arena(256)
    start = time.perf_counter()
    try:
        with taking_part(device.machine, part):
            what = kernel, launch.grid, launch.block, params, launch.dynamic_bytes, memory
            result = device.machine.launch(*what, device.progress, (), device.every)
    finally:
        warps.close()
    wall = time.perf_counter() - start
    if part.error is not None:
        raise part.error
    if result.fault is not None:
        stop = result.fault
        where = f"instruction {stop.pc}, CTA {stop.cta}, warp {stop.warp}, cycle {stop.cycle}"
        raise UsageError(f"{trace.folder}: {recorded.name}: {FAULTS[stop.code.name]} at {where}")
    if part.unfinished or part.issued != launch.instructions:
        counted = f"{part.issued} of {launch.instructions} warp instructions"
        raise UsageError(f"{trace.folder}: {recorded.name}: the trace goes on behind the end of the kernel: {counted}")
    run = Run(recorded.name, launch.grid, launch.block, device.description, result.raw, result.intervals, wall, "")
    device.record(run)
    return run


def _check_fit(kernel: schema.Kernel, launch: schema.Launch, device: Device) -> None:
    """Refuse a launch that the device cannot hold."""
    from lockstep.models.occupancy import plan

    gpu, (x, y, z) = device.description, launch.block
    shared = kernel.shared_bytes + launch.dynamic_bytes
    threads = x * y * z
    if threads > gpu.core.threads_per_cta:
        raise UsageError(f"{kernel.name}: {threads} threads in a CTA; {gpu.name} allows {gpu.core.threads_per_cta}")
    if shared > gpu.scratchpad.bytes_per_cta:
        raise UsageError(f"{kernel.name}: {shared} bytes of scratchpad; {gpu.name} allows {gpu.scratchpad.bytes_per_cta}")
    if kernel.registers > gpu.core.registers_per_thread:
        most = gpu.core.registers_per_thread
        raise UsageError(f"{kernel.name}: {kernel.registers} registers of a thread; {gpu.name} allows {most}")
    if plan(gpu, threads, kernel.registers, shared).ctas == 0:
        raise UsageError(f"{kernel.name}: a CTA does not fit on an SM of {gpu.name}")
