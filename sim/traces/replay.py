"""Replaying a trace on a device: its launches, one after the other, with execution off."""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from lockstep.models.execution.isa import PT, Control, Flag, Group
from lockstep.sim.compile.ptx import kernel as compiled
from lockstep.sim.compile.ptx import program
from lockstep.sim.device.device import Device
from lockstep.sim.device.memory import Arena
from lockstep.sim.device.run import Run
from lockstep.sim.errors import FAULTS, UsageError
from lockstep.sim.traces import schema
from lockstep.sim.traces.read import Trace
from lockstep.spec import registry
from lockstep.spec.parameters import Compiler
from lockstep.spec.passes import MACHINE, Pass, machine

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
    if gpu.l1.values == "lines":
        raise UsageError("l1.values = lines: lines carry values, and a trace has none")


def replay(trace: Trace, device: Device) -> list[Run]:
    """Replay all launches of a trace. Raises :class:`UsageError`."""
    check(trace, device)
    return [_launch(trace, launch, device) for launch in trace.manifest.launches]


SAME = ("group", "op", "category", "space", "bytes", "vec", "kind")
"""What an instruction has in common with the recorded one, whatever passes have done to the code."""


def _kernel(trace: Trace, launch: schema.Launch, device: Device) -> tuple[Kernel, np.ndarray]:
    """The kernel of a launch as it is replayed, and the number of each instruction in the recorded code; -1: none."""
    code = trace.code(launch)
    recorded, registers, tables = code.kernel, code.kernel.registers, {}
    instructions, pcs = code.instructions, np.arange(len(code.instructions))
    if passes := [each for each in registry.passes(device.description) if each.stage != MACHINE]:
        made = _compiled(trace.folder, recorded, passes)
        instructions, pcs = _matched(recorded.name, code.instructions, made.code, passes)
        registers, tables = max(registers, made.registers), made.tables
    guided_code = guided(instructions)
    what = recorded.branch_table, registers, recorded.shared_bytes, recorded.local_bytes, tables
    if passes:
        what = made.branch_table, *what[1:]
    return Kernel(guided_code, *what), pcs


def _compiled(folder: Path, kernel: schema.Kernel, passes: list[Pass]) -> compiled.Kernel:
    """The kernel, compiled again as it was, and with passes of the replay's configuration."""
    source, named = kernel.source, ", ".join(each.function.rpartition(".")[2] for each in passes)
    if source is None:
        raise UsageError(f"{folder}: {kernel.name}: {named}: passes need the kernel's source, and this trace has none")
    data = schema.contents(folder / source.file)
    if schema.digest(data) != source.digest:
        raise UsageError(f"{folder / source.file}: damaged: does not have the digest that the kernel's file says")
    settings = dict(source.compiler)
    free = settings.pop("free_registers", 0)
    try:
        compiler = Compiler(**settings)
    except TypeError:
        raise UsageError(
            f"{folder}: {kernel.name}: source.compiler: has settings that Lockstep does not know"
        ) from None
    as_recorded = [machine(compiler, free)] if compiler != Compiler() else []
    text = data.decode(errors="surrogateescape") + "\n"
    found = program.load(text, source.registers, [*as_recorded, *passes])
    if source.entry not in found.kernels:
        raise UsageError(f"{folder / source.file}: {source.entry}: {found.refused.get(source.entry, 'is not there')}")
    return found.kernels[source.entry]


def _matched(name: str, recorded: np.ndarray, made: np.ndarray, passes: list[Pass]) -> tuple[np.ndarray, np.ndarray]:
    """The instructions that passes have made, with the recording's addresses; each one's number in the recorded code.

    Raises :class:`UsageError` if they have changed others than those that they have added.
    """
    own = np.flatnonzero(made["flags"] & Flag.ADDED == 0)
    same = len(own) == len(recorded) and all((made[each][own] == recorded[each]).all() for each in SAME)
    if not same or ((made["guard"][own] != PT) != (recorded["guard"] != PT)).any():
        named = ", ".join(each.function.rpartition(".")[2] for each in passes)
        raise UsageError(f"{name}: {named}: changes the code, and the trace is one of the code as it was")
    pcs = np.full(len(made), -1)
    pcs[own] = np.arange(len(own))
    code = made.copy()
    for column in ("offset", "imm"):
        code[column][own] = recorded[column]
    return code, pcs


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
    run = Run(recorded.name, launch.grid, launch.block, device.description, result.raw, result.intervals, wall, "",
              one_thread=result.one_thread)  # fmt: skip
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
        raise UsageError(
            f"{kernel.name}: {shared} bytes of scratchpad; {gpu.name} allows {gpu.scratchpad.bytes_per_cta}"
        )
    if kernel.registers > gpu.core.registers_per_thread:
        most = gpu.core.registers_per_thread
        raise UsageError(f"{kernel.name}: {kernel.registers} registers of a thread; {gpu.name} allows {most}")
    if plan(gpu, threads, kernel.registers, shared).ctas == 0:
        raise UsageError(f"{kernel.name}: a CTA does not fit on an SM of {gpu.name}")
