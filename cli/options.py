"""Options and results that several commands share."""

from __future__ import annotations

import argparse
import sys
from argparse import Namespace
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from lockstep.sim.device import description
from lockstep.sim.errors import UsageError
from lockstep.sim.output import write_json
from lockstep.sim.sizes import SIZES
from lockstep.sim.study import comparison, replayed
from lockstep.sim.study.job import Job, Result, complaint

GPU = "see `lockstep gpus` (default: gtx480)"


class Joined(argparse.Action):
    """An option that may be given several times: all of its values, with commas between them."""

    def __call__(
        self, parser: argparse.ArgumentParser, namespace: argparse.Namespace, values: Any, option: str | None = None
    ) -> None:
        before = getattr(namespace, self.dest)
        setattr(namespace, self.dest, values if before == self.default else f"{before},{values}")


def _seed(text: str) -> int:
    """A seed as NumPy's generators take it."""
    if not text.isdecimal():
        raise argparse.ArgumentTypeError(f"{text!r}: must be an integer, 0 or more")
    return int(text)


def json(to: argparse.ArgumentParser) -> None:
    to.add_argument("--json", metavar="FILE", help="write the result as JSON; - is standard output")


def gpu(to: argparse.ArgumentParser, meaning: str = GPU) -> None:
    to.add_argument("--gpu", default="gtx480", metavar="NAME|FILE.toml", help=meaning)


def mechanisms(to: argparse.ArgumentParser) -> None:
    to.add_argument("--with", dest="mechanisms", metavar="M[,M]", default="", action=Joined, help="mechanisms")


def parameters(to: argparse.ArgumentParser, meaning: str, metavar: str = "KEY=VALUE") -> None:
    to.add_argument("--set", metavar=metavar, action="append", default=[], help=meaning)


def seed(to: argparse.ArgumentParser, meaning: str) -> None:
    to.add_argument("--seed", type=_seed, default=1, help=f"{meaning} (default: 1)")


def inputs(to: argparse.ArgumentParser) -> None:
    """The input that a kernel is run with."""
    to.add_argument("--size", choices=SIZES, default="small", help="size of the input (default: small)")
    seed(to, "seed of the input")
    to.add_argument("--strict", action="store_true", help="stop at a read of memory that has never been written")


def one_gpu(to: argparse.ArgumentParser) -> None:
    """A run on one GPU."""
    gpu(to)
    mechanisms(to)
    inputs(to)
    parameters(to, "a parameter: l1.mshrs=64")


def one_kernel(to: argparse.ArgumentParser) -> None:
    to.add_argument("kernel", metavar="KERNEL|FILE.py", help="one of `lockstep kernels`, or a kernel of your own")
    one_gpu(to)


def one_kernel_or_trace(to: argparse.ArgumentParser) -> None:
    to.add_argument("kernel", nargs="?", metavar="KERNEL|FILE.py", help="one of `lockstep kernels`, or a kernel of "
                    "your own")  # fmt: skip
    one_gpu(to)
    to.add_argument("--trace", metavar="DIR", help="replay a trace in the place of a kernel: under the configuration "
                    "of its recording, as far as --gpu, --with and --set do not say otherwise")  # fmt: skip
    to.set_defaults(gpu=None, mechanisms=None)


def threads(to: argparse.ArgumentParser) -> None:
    to.add_argument("--threads", type=int, default=1, metavar="N", help="threads of the host for a run, with the same "
                    "bits; they need l1.values=lines (default: 1)")  # fmt: skip


def why_one_thread(options: Namespace, results: Sequence[Result]) -> None:
    """Say why runs that might have had several threads had one."""
    reasons = dict.fromkeys(result["one_thread"] for result in results if result.get("one_thread"))
    for reason in reasons if options.threads > 1 else ():
        print(f"lockstep: one thread: {reason}", file=sys.stderr)


def secondary(to: argparse.ArgumentParser) -> None:
    to.add_argument("--secondary", metavar="KERNEL|FILE.py", help="a second kernel, which runs at the same time")
    to.add_argument("--secondary-size", choices=SIZES, help="size of its input (default: that of the first)")
    to.add_argument("--repeat", action="store_true", help="run the second kernel again and again until the first has "
                    "ended, so that this always has company")  # fmt: skip


def many_runs(to: argparse.ArgumentParser) -> None:
    jobs(to, "runs at the same time")
    to.add_argument("--show", dest="statistics", metavar="STAT[,STAT]", default="", action=Joined,
                    help="statistics to show: l1.mpki")  # fmt: skip
    to.add_argument("--csv", metavar="FILE", help="write a row with every statistic for each run")
    to.add_argument("--parquet", metavar="FILE", help="write the same rows as Parquet; needs PyArrow")


def jobs(to: argparse.ArgumentParser, meaning: str) -> None:
    to.add_argument("--jobs", type=int, metavar="N", help=f"{meaning} (default: one per core)")


def saved_runs(to: argparse.ArgumentParser) -> None:
    to.add_argument("files", metavar="RUN.json", nargs="+", help="output of `lockstep run --json` or `lockstep "
                    "compare --json`")  # fmt: skip


def cuda(to: argparse.ArgumentParser) -> None:
    of = to.add_argument_group("CUDA C", "how a .cu file is compiled; it may be a whole program")
    of.add_argument("-I", dest="include", metavar="DIR", action="append", default=[], help="a folder of headers")
    of.add_argument("-D", dest="define", metavar="NAME[=VALUE]", action="append", default=[], help="a macro")
    of.add_argument("--std", metavar="STD", help="the standard: c++11, c++14, c++17 or c++20 (default: c++17)")
    of.add_argument("--arch", metavar="ARCH", help="architecture of the PTX (default: sm_75); --gpu says which GPU "
                    "is modelled")  # fmt: skip
    of.add_argument("--name", dest="names", metavar="NAME", action="append", default=[], help="an instance of a "
                    "kernel template, as 'f<3>', besides those that the program itself launches")  # fmt: skip
    of.add_argument("--fast-math", action="store_true", help="faster, less exact mathematics")


def blocks_of_a_gpu(to: argparse.ArgumentParser) -> None:
    to.add_argument("block", metavar="BLOCK|AREA|all", help="see `lockstep blocks`")
    gpu(to, "GPU that the sizes are for (default: gtx480)")
    parameters(to, "a size: warppool.queues=16")


# ----------------------------------------------------------------------------------------------- what options stand for


def settings(options: Namespace) -> dict[str, Any]:
    return dict(description.parse_setting(text) for text in options.set)


def job(options: Namespace, kernel: str) -> Job:
    """The job of a command that runs on one GPU."""
    selected = comparison.mechanisms(options.mechanisms)
    threads = getattr(options, "threads", 1)
    return Job(
        kernel, options.gpu, options.size, options.seed, selected, settings(options), options.strict, threads=threads
    )


def two_jobs(options: Namespace) -> Job:
    """The job of a command that may run a second kernel beside the first, or a trace."""
    if options.trace is not None:
        return _replay(options)
    if options.kernel is None:
        raise UsageError("KERNEL|FILE.py: which kernel? see `lockstep kernels`; or the --trace of one")
    options.gpu = options.gpu or description.DEFAULT
    options.mechanisms = options.mechanisms or ""
    first = job(options, options.kernel)
    if options.secondary:
        second = replace(first, kernel=options.secondary, size=options.secondary_size or options.size)
        return replace(first, secondary=second, repeat=options.repeat)
    for name in ("secondary_size", "repeat"):
        if getattr(options, name):
            raise UsageError(f"--{name.replace('_', '-')}: is for --secondary")
    return first


def _replay(options: Namespace) -> Job:
    """The job of a command that replays a trace: on the recording's GPU unless another one is named."""
    given = dict(
        kernel=options.kernel, size=options.size != "small", seed=options.seed != 1, strict=options.strict,
        secondary=options.secondary, secondary_size=options.secondary_size, repeat=options.repeat,
    )  # fmt: skip
    for name, value in given.items():
        if value:
            shown = value if name == "kernel" else f"--{name.replace('_', '-')}"
            raise UsageError(f"{shown}: the trace says what runs, and has no memory; it cannot be given with --trace")
    recorded = replayed.job(options.trace, options.gpu)
    selected = recorded.mechanisms if options.mechanisms is None else comparison.mechanisms(options.mechanisms)
    changed = {**recorded.settings, **settings(options)}
    return replace(recorded, mechanisms=selected, settings=changed, threads=options.threads)


def source(options: Namespace) -> tuple[Path, dict[str, int]]:
    """The PTX of a file or of a kernel of ours, and the registers that its folder asks for."""
    from lockstep.sim import kernels
    from lockstep.sim.compile.cuda import nvrtc
    from lockstep.sim.compile.cuda.options import Options
    from lockstep.sim.compile.ptx import program

    path = Path(options.file)
    given = {name: getattr(options, name) for name in ("include", "define", "std", "arch", "fast_math")}
    given = {name: value for name, value in given.items() if value}
    if path.suffix == ".cu":
        compiled = nvrtc.compile_file(path, Options(**given), options.names)
        if not any(".entry" in line for line in program.read(compiled.path).splitlines()):
            templates = ", ".join(sorted(compiled.kernels))
            only = f" but templates, of which --name compiles instances: {templates}" if templates else ""
            raise UsageError(f"{path}: has no kernels{only}")
        return compiled.path, {}
    if given or options.names:
        raise UsageError(f"{options.file}: not a .cu file; -I, -D, --std, --arch, --fast-math, --name are for CUDA C")
    if path.suffix == ".ptx":
        return path, {}
    kernel = kernels.find(options.file)
    return kernel.ptx, kernel.registers


# -------------------------------------------------------------------------------------------------------------- results


def write(options: Namespace, value: Any) -> None:
    """The JSON, where it is asked for."""
    if options.json:
        write_json(options.json, value)
        if options.json != "-":
            print(f"written to {options.json}")


def finish(options: Namespace, value: Any, results: list[dict[str, Any]]) -> int:
    """Write the JSON, complain about wrong results; the exit code."""
    write(options, value)
    wrong = [result for result in results if complaint(result)]
    for result in wrong:
        print(f"lockstep: {result['kernel']} on {result['gpu']}: {complaint(result)}", file=sys.stderr)
    return 1 if wrong else 0
