"""`lockstep run`: one kernel on one GPU, or two at once, their results checked."""

from __future__ import annotations

import sys
from argparse import ArgumentParser, Namespace
from contextlib import ExitStack
from dataclasses import replace
from typing import TYPE_CHECKING

from lockstep.cli import options as shared
from lockstep.models.stop import ModelFault
from lockstep.sim.device.gpu import Gpu
from lockstep.sim.device.profile import hot_lines
from lockstep.sim.device.run import Run
from lockstep.sim.device.statistics import STATISTICS
from lockstep.sim.device.trace import intervals, target
from lockstep.sim.errors import KernelFault, UsageError
from lockstep.sim.output import Display, check_writable, table
from lockstep.sim.sizes import SIZES
from lockstep.sim.study import pair
from lockstep.sim.study.job import execute

if TYPE_CHECKING:
    from lockstep.sim.device.trace.trace import Trace  # it compiles the model, which the run will say

# What `run` shows of the statistics; `--json` has all of them.
HIGHLIGHTS = (
    "occupancy.ratio", "issue.lanes", "issue.stall_core_cycles", "issue.idle_core_cycles",
    "lsu.requests_per_instruction", "lsu.stalled", "l1.accesses", "l1.miss_rate", "l1.lat_rt_core_cycles",
    "l2.accesses", "l2.miss_rate", "dram.read_bytes", "dram.written_bytes", "dram.row_hit_rate", "dram.bandwidth_used",
)  # fmt: skip


def arguments(to: ArgumentParser) -> None:
    shared.one_kernel(to)
    shared.json(to)
    to.add_argument("--secondary", metavar="KERNEL|FILE.py", help="a second kernel, which runs at the same time")
    to.add_argument("--secondary-size", choices=SIZES, help="size of its input (default: that of the first)")
    to.add_argument("--repeat", action="store_true", help="run the second kernel again and again until the first has "
                    "ended, so that this always has company")  # fmt: skip
    to.add_argument("--profile", action="store_true", help="show which lines of the source take the time, and why")
    to.add_argument("--energy", action="store_true", help="keep in --json what takes energy, by launch and interval, "
                    "for `lockstep energy`")  # fmt: skip
    to.add_argument("--timeline", metavar="FILE", help="write what happens on one SM, for Konata (.kanata, .log) or "
                    "ui.perfetto.dev (.pftrace, .perfetto-trace)")  # fmt: skip
    to.add_argument("--sm", type=int, metavar="N", help="SM of the timeline (default: 0)")
    to.add_argument("--cycles", metavar="A:B", help="core cycles of the timeline (default: from the start, up to a "
                    "million events)")  # fmt: skip
    to.add_argument("--around-stop", type=int, metavar="CYCLES", help="instead of --sm and --cycles: if a launch "
                    "stops early, the last CYCLES core cycles of the SM that it stops on")  # fmt: skip
    to.add_argument("--intervals", metavar="FILE", help="write statistics over time, a row for each interval, as .csv "
                    "or .parquet")  # fmt: skip
    to.add_argument("--every", type=int, metavar="N", help="core cycles of an interval (default: 1000, and more in "
                    "launches of over 200,000)")  # fmt: skip


def _check_files(options: Namespace) -> None:
    if options.energy and not options.json:
        raise UsageError("--energy: is kept in the file of --json, and there is none")
    check_writable(options.json)
    intervals.check(options.intervals, options.every)


def command(options: Namespace) -> int:
    if options.secondary:
        return _pair(options)
    for name in ("secondary_size", "repeat"):
        if getattr(options, name):
            raise UsageError(f"--{name.replace('_', '-')}: is for --secondary")
    _check_files(options)
    window = target.check(options.timeline, options.cycles, options.sm, options.around_stop)
    job = replace(shared.job(options, options.kernel), profile=options.profile, energy=options.energy)
    runs: list[Run] = []
    traces: list[Trace] = []

    def attach(gpu: Gpu) -> None:
        gpu.every = options.every
        gpu.after_launch.append(runs.append)
        if options.timeline:
            trace = gpu.trace(options.sm or 0, window, around_stop=options.around_stop)
            traces.append(stack.enter_context(trace))

    with Display(options.json) as watch, ExitStack() as stack:
        try:
            result = execute(job, watch, attach)
        except (KernelFault, ModelFault) as stop:
            for trace in traces:
                if trace.launches:
                    trace.write(options.timeline)
                    stop.add_note(f"{options.timeline}: {trace.span}")
            raise
    for trace in traces:
        if options.around_stop is not None and not trace.launches:
            print(f"lockstep: {options.timeline}: not written, since no launch stopped early", file=sys.stderr)
            continue
        trace.write(options.timeline)
        if trace.full is not None:
            print(f"lockstep: {options.timeline}: full; it ends before cycle {trace.full:,}", file=sys.stderr)
    if options.intervals:
        intervals.write(options.intervals, runs)
    if options.json != "-":
        rows = [(key, result[key], "") for key in ("cycles", "warp_instructions", "thread_instructions", "ipc")]
        rows += [(key, result["stats"][key], STATISTICS[key].doc) for key in HIGHLIGHTS]
        rows += [("wall_seconds", result["wall_seconds"], ""), ("kwips", result["kwips"], "simulation speed")]
        table(f"{result['kernel']}, {result['size']}, on {result['gpu']}", ("", "value", ""), rows)
        for function in result["profile"]["functions"] if options.profile else ():
            table(*hot_lines(function))
        print(f"checked: {result['message']}" if result["checked"] else "WRONG RESULT")
    return shared.finish(options, result, [result])


ALONE = ("profile", "timeline", "sm", "cycles", "around_stop")


def _pair(options: Namespace) -> int:
    """Two kernels at once."""
    for name in ALONE:
        if getattr(options, name) not in (None, False):
            raise UsageError(f"--{name.replace('_', '-')}: is for one kernel, not with --secondary")
    _check_files(options)
    first = replace(shared.job(options, options.kernel), energy=options.energy)
    second = replace(first, kernel=options.secondary, size=options.secondary_size or options.size)
    runs: list[Run] = []

    def attach(gpu: Gpu) -> None:
        gpu.every = options.every
        gpu.after_launch.append(runs.append)

    with Display(options.json) as watch:
        result = pair.execute([first, second], watch, attach, options.repeat)
    kernels = result["kernels"]
    if options.intervals:
        intervals.write(options.intervals, runs, [each["kernel"] for each in kernels])
    if options.json != "-":
        names = ("size", "launches", "cycles", "warp_instructions", "thread_instructions", "ipc")
        both = {"cycles", "warp_instructions", "ipc"}
        rows = [(name, *(each[name] for each in kernels), result[name] if name in both else "") for name in names]
        if options.repeat:
            rows.insert(1, ("repetitions", *(len(each["repetitions"]) for each in kernels), ""))
        if both := result["both"]:
            rows.append(("ipc while both run", *both["ipc"], sum(both["ipc"])))
        rows.append(("core cycles", *(f"{each['spans'][0][0]:,} to {each['spans'][-1][1]:,}" for each in kernels), ""))
        rows += [(key, *(each["stats"].get(key, "") for each in kernels), result["stats"][key]) for key in HIGHLIGHTS]
        table(f"two kernels at once on {result['gpu']}", ("", *(each["kernel"] for each in kernels), "both"), rows)
        print(f"checked: {result['message']}" if result["checked"] else "WRONG RESULT")
    return shared.finish(options, result, [{**each, "gpu": result["gpu"]} for each in kernels])


