"""`lockstep trace`: traces of what warps execute, for `lockstep run --trace` and `lockstep cosim --trace`."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from pathlib import Path

from lockstep.cli import options as shared
from lockstep.sim.errors import UsageError
from lockstep.sim.output import Display, table
from lockstep.sim.study.execution import execute
from lockstep.sim.study.job import complaint


def arguments(to: ArgumentParser) -> None:
    steps = to.add_subparsers(dest="step", required=True, metavar="STEP")

    def step(name: str, meaning: str) -> ArgumentParser:
        return steps.add_parser(name, help=meaning, description=meaning, allow_abbrev=False)

    record = step("record", "Run a kernel, check its result, and record what its warps execute.")
    shared.one_kernel(record)
    record.add_argument("-o", dest="output", metavar="DIR", required=True, help="the trace: a new or empty folder")

    sass = step("import", "Make a trace of one that Accel-Sim's tracer wrote: SASS, timing only.")
    sass.add_argument("file", metavar="FILE", help="kernelslist.g, or a kernel's .traceg or .traceg.xz")
    sass.add_argument("-o", dest="output", metavar="DIR", required=True, help="the trace: a new or empty folder")
    sass.add_argument("--unknown", choices=("integer",), help="take opcodes that Lockstep does not know for integer "
                      "arithmetic (default: refuse them)")  # fmt: skip

    show = step("show", "Show what is in a trace; what has been written, if it is still being recorded.")
    show.add_argument("trace", metavar="DIR", help="of `lockstep trace record`")


def command(options: Namespace) -> int:
    return {"record": _record, "import": _import, "show": _show}[options.step](options)


def _record(options: Namespace) -> int:
    from lockstep.sim.device.gpu import Gpu
    from lockstep.sim.traces.record import DeviceRecording, started

    job = shared.job(options, options.kernel)
    recordings: list[DeviceRecording] = []

    def attach(gpu: Gpu) -> None:
        from lockstep.sim import kernels
        from lockstep.sim.study.sources import code_version

        told = {
            "code_version": code_version(),
            "command": job.command,
            "kernel": kernels.name_of(kernels.file_of(job.kernel)),
            "size": job.size,
            "seed": job.seed,
            "settings": dict(job.settings),
            "mechanisms": list(job.mechanisms),
        }
        recordings.append(started(gpu, options.output, told))
        gpu.recording_to = recordings[-1]

    with Display(None) as watch:
        result = execute(job, watch, attach)
    if wrong := complaint(result):
        raise UsageError(f"{result['kernel']} on {result['gpu']}: {wrong}; the trace in {options.output} is unfinished")
    recordings[-1].close()
    return _show(Namespace(trace=options.output))


def _import(options: Namespace) -> int:
    from lockstep.sim.traces.sass.convert import imported

    imported(Path(options.file), Path(options.output), options.unknown)
    return _show(Namespace(trace=options.output))


def _show(options: Namespace) -> int:
    from lockstep.sim.traces.read import Trace, notes

    trace = Trace(options.trace, whole=False)
    finished = trace.manifest.finished
    rows, marks = [], []
    for launch in trace.manifest.launches:
        kernel = trace.code(launch).kernel
        size = sum(f.stat().st_size for f in [Path(options.trace) / launch.kernel]) + launch.bytes
        each = launch.bytes / launch.instructions if launch.instructions else 0.0
        grid, block = ("x".join(map(str, extent)) for extent in (launch.grid, launch.block))
        rows.append((kernel.name, grid, block, launch.instructions, launch.accesses, size, each))
        marks += [(kernel.name, mark) for mark in launch.marks]
    told = trace.manifest.provenance
    what = f"{told.get('kernel', options.trace)} on {told.get('gpu', 'another machine')}"
    columns = ("kernel", "grid", "block", "warp instructions", "accesses", "bytes", "bytes per warp instruction")
    table(f"trace of {what}{'' if finished else ', unfinished'}", columns, rows)
    for name, mark in dict.fromkeys((name, (mark.line, mark.why)) for name, mark in marks):
        print(f"{name}: PTX line {mark[0]}: {mark[1]}; the trace cannot be replayed")
    for line in notes(trace):
        print(line)
    return 0
