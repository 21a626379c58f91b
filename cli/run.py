"""`lockstep run`: one kernel on one GPU, or two at once, their results checked; or the trace of one."""

from __future__ import annotations

import sys
from argparse import ArgumentParser, Namespace
from collections.abc import Sequence
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
from lockstep.sim.study.execution import execute
from lockstep.sim.study.job import Result
from lockstep.spec.registry import MECHANISMS, resolve

if TYPE_CHECKING:
    from lockstep.sim.device.trace.trace import Trace  # it compiles the model, which the run will say

# What `run` shows of the statistics; `--json` has all of them.
HIGHLIGHTS = (
    "occupancy.ratio", "issue.lanes", "issue.stall_core_cycles", "issue.idle_core_cycles",
    "lsu.requests_per_instruction", "lsu.stalled", "l1.accesses", "l1.miss_rate", "l1.lat_rt_core_cycles",
    "l2.accesses", "l2.miss_rate", "dram.read_bytes", "dram.written_bytes", "dram.row_hit_rate", "dram.bandwidth_used",
)  # fmt: skip


def arguments(to: ArgumentParser) -> None:
    shared.one_kernel_or_trace(to)
    shared.json(to)
    shared.secondary(to)
    shared.threads(to)
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


class _Watched:
    """What is to be recorded of a run beside its result: launches, and a timeline."""

    def __init__(self, options: Namespace, stack: ExitStack) -> None:
        self._options, self._stack = options, stack
        self._window = target.check(options.timeline, options.cycles, options.sm, options.around_stop)
        self.runs: list[Run] = []
        self._traces: list[Trace] = []

    def attach(self, gpu: Gpu) -> None:
        """See what a GPU does."""
        options = self._options
        gpu.every = options.every
        gpu.after_launch.append(self.runs.append)
        if options.timeline:
            trace = gpu.trace(options.sm or 0, self._window, around_stop=options.around_stop)
            self._traces.append(self._stack.enter_context(trace))

    def stopped(self, stop: Exception) -> None:
        """Keep what led to a stop."""
        for trace in self._traces:
            if trace.launches:
                trace.write(self._options.timeline)
                stop.add_note(f"{self._options.timeline}: {trace.span}")

    def write(self, kernels: Sequence[str] = ()) -> None:
        """Write the files; ``kernels`` are the names of two."""
        timeline = self._options.timeline
        for trace in self._traces:
            if self._options.around_stop is not None and not trace.launches:
                print(f"lockstep: {timeline}: not written, since no launch stopped early", file=sys.stderr)
                continue
            trace.write(timeline)
            if trace.full is not None:
                print(f"lockstep: {timeline}: full; it ends before cycle {trace.full:,}", file=sys.stderr)
        if self._options.intervals:
            intervals.write(self._options.intervals, self.runs, kernels)


def command(options: Namespace) -> int:
    if options.energy and not options.json:
        raise UsageError("--energy: is kept in the file of --json, and there is none")
    if options.trace and (options.timeline or options.profile):
        what = "--timeline" if options.timeline else "--profile"
        raise UsageError(f"{what}: shows a kernel's source; it cannot be given with --trace")
    check_writable(options.json)
    intervals.check(options.intervals, options.every)
    job = replace(shared.two_jobs(options), profile=options.profile, energy=options.energy)
    with ExitStack() as stack:
        watched = _Watched(options, stack)
        with Display(options.json) as watch:
            try:
                result = execute(job, watch, watched.attach)
            except (KernelFault, ModelFault) as stop:
                watched.stopped(stop)
                raise
    shared.why_one_thread(options, [result])
    kernels = result.get("kernels", [])
    watched.write([each["kernel"] for each in kernels])
    if options.json != "-":
        if kernels:
            _show_both(result, options.repeat)
        else:
            _show(result)
        for function in result["profile"]["functions"] if options.profile else ():
            table(*hot_lines(function))
        print(outcome(result))
    return shared.finish(options, result, [{**each, "gpu": result["gpu"]} for each in kernels] or [result])


def outcome(result: Result) -> str:
    """Whether the result is right, in a line."""
    if "trace" in result:
        return "\n".join([f"not checked: {result['message']}", *result["notes"]])
    return f"checked: {result['message']}" if result["checked"] else "WRONG RESULT"


def _highlights(result: Result) -> list[str]:
    """The statistics that are shown, with those of the run's mechanisms."""
    return [*HIGHLIGHTS, *(name for each in resolve(result["mechanisms"]) for name in MECHANISMS[each].shown)]


def _show(result: Result) -> None:
    rows = [(key, result[key], "") for key in ("cycles", "warp_instructions", "thread_instructions", "ipc")]
    rows += [(key, result["stats"][key], STATISTICS[key].doc) for key in _highlights(result)]
    rows += [("wall_seconds", result["wall_seconds"], ""), ("kwips", result["kwips"], "simulation speed")]
    what = "trace" if "trace" in result else result["size"]
    table(f"{result['kernel']}, {what}, on {result['gpu']}", ("", "value", ""), rows)


def _show_both(result: Result, repeat: bool) -> None:
    """Two kernels at once."""
    kernels = result["kernels"]
    names = ("size", "launches", "cycles", "warp_instructions", "thread_instructions", "ipc")
    both = {"cycles", "warp_instructions", "ipc"}
    rows = [(name, *(each[name] for each in kernels), result[name] if name in both else "") for name in names]
    if repeat:
        rows.insert(1, ("repetitions", *(len(each["repetitions"]) for each in kernels), ""))
    if together := result["both"]:
        rows.append(("ipc while both run", *together["ipc"], sum(together["ipc"])))
    spans = [each["spans"] for each in kernels]
    rows.append(("core cycles", *(f"{own[0][0]:,} to {own[-1][1]:,}" if own else "" for own in spans), ""))
    for key in _highlights(result):
        rows.append((key, *(each["stats"].get(key, "") for each in kernels), result["stats"][key]))
    table(f"two kernels at once on {result['gpu']}", ("", *(each["kernel"] for each in kernels), "both"), rows)
