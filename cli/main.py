"""The command ``lockstep``. Exit codes: 0 done, 1 a run failed or its result was wrong, 2 wrong input or no place for
output, 130 interrupted, 141 whoever read the output has gone.

Everything heavy is imported inside the commands: ``lockstep --help`` needs none of it, and ``lockstep run`` neither the
RTL nor, with a module that was loaded before, the PTX parser.
"""

from __future__ import annotations

import argparse
import io
import os
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NoReturn, TextIO

from lockstep.sim.cosim import gates
from lockstep.sim.errors import UsageError, one_line
from lockstep.sim.sizes import SIZES
from lockstep.spec.words import closest

__all__ = ["main"]

_CHAPTERS = Path(__file__).parents[1] / "sim" / "study" / "reproduce" / "chapters"
CHAPTERS = tuple(sorted(file.stem for file in _CHAPTERS.glob("[!_]*.py")))
VERIFY_LEVELS = ("smoke", "random", "formal", "mutation", "kernels")
EPILOG = "See README.md for a start, and docs/statistics.md for the statistics."


class Parser(argparse.ArgumentParser):
    """Errors in one line, as all others, with a suggestion where a word was misspelt."""

    def error(self, message: str) -> NoReturn:
        raise UsageError(f"{message} (see {self.prog} --help)")

    def parse_known_args(self, args: Any = None, namespace: Any = None) -> tuple[Any, list[str]]:
        """Refuse here what is left over: the parser of the command knows its options."""
        options, rest = super().parse_known_args(args, namespace)
        if rest:
            known = self._option_string_actions if rest[0].startswith("-") else ()
            suggestion = closest(rest[0].partition("=")[0], known)
            self.error(f"unrecognized arguments: {' '.join(rest)}{suggestion}")
        return options, rest

    def _check_value(self, action: argparse.Action, value: Any) -> None:
        known = [str(choice) for choice in action.choices or ()]
        if known and value not in known:
            text = f"{value!r}: not known{closest(str(value), known)}; known are {', '.join(known)}"
            raise argparse.ArgumentError(action, text)


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


class Version(argparse.Action):
    def __call__(self, parser: argparse.ArgumentParser, *_: Any) -> NoReturn:
        from importlib.metadata import version

        print(f"lockstep {version('lockstep-sm')}")
        parser.exit()


def _parser() -> argparse.ArgumentParser:
    parser = Parser(prog="lockstep", description="Whole CUDA kernels on a cycle-level GPU model.", epilog=EPILOG)
    parser.add_argument("--version", action=Version, nargs=0, help="print the version")
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")

    def command(name: str, help: str) -> argparse.ArgumentParser:
        added = commands.add_parser(name, help=help, description=help, allow_abbrev=False)
        added.add_argument("--json", metavar="FILE", help="write the result as JSON; - is standard output")
        return added

    def run_options(
        to: argparse.ArgumentParser, size: str, setting: str = "KEY=VALUE", meaning: str = "a parameter: l1.mshrs=64"
    ) -> None:
        to.add_argument("--size", choices=SIZES, default=size, help=f"size of the input (default: {size})")
        to.add_argument("--seed", type=_seed, default=1, help="seed of the input (default: 1)")
        to.add_argument("--set", metavar=setting, action="append", default=[], help=meaning)
        to.add_argument("--strict", action="store_true", help="stop at a read of memory that has never been written")

    def one_gpu(to: argparse.ArgumentParser) -> None:
        gpus = "see `lockstep gpus` (default: gtx480)"
        to.add_argument("--gpu", default="gtx480", metavar="NAME|FILE.toml", help=gpus)
        to.add_argument("--with", dest="mechanisms", metavar="M[,M]", default="", action=Joined, help="mechanisms")
        run_options(to, "small")

    def one_kernel(to: argparse.ArgumentParser) -> None:
        to.add_argument("kernel", metavar="KERNEL|FILE.py", help="one of `lockstep kernels`, or a kernel of your own")
        one_gpu(to)

    run = command("run", "Run one kernel and check its result.")
    one_kernel(run)
    run.add_argument("--profile", action="store_true", help="show which lines of the source take the time, and why")
    run.add_argument("--timeline", metavar="FILE", help="write what happens on one SM, for Konata (.kanata, .log) or "
                     "ui.perfetto.dev (.pftrace, .perfetto-trace)")  # fmt: skip
    run.add_argument("--sm", type=int, metavar="N", help="SM of the timeline (default: 0)")
    run.add_argument("--cycles", metavar="A:B", help="core cycles of the timeline (default: from the start, up to a "
                     "million events)")  # fmt: skip
    run.add_argument("--around-stop", type=int, metavar="CYCLES", help="instead of --sm and --cycles: if a launch "
                     "stops early, the last CYCLES core cycles of the SM that it stops on")  # fmt: skip
    run.add_argument("--intervals", metavar="FILE", help="write statistics over time, a row for each interval, as .csv "
                     "or .parquet")  # fmt: skip
    run.add_argument("--every", type=int, metavar="N", help="core cycles of an interval (default: 1000, and more in "
                     "launches of over 200,000)")  # fmt: skip

    cosim = command("cosim", "Run one kernel with the RTL of blocks in it, checked against the model in every cycle.")
    one_kernel(cosim)
    cosim.add_argument("--rtl", metavar="BLOCK[,BLOCK]|AREA|all", default="all", action=Joined,
                       help="what runs as RTL (default: all)")  # fmt: skip
    cosim.add_argument("--mode", choices=("shadow", "replace"), default="shadow", help="shadow: the model drives the "
                       "run, and every output is compared; replace: the RTL drives it, and results are "
                       "(default: shadow)")  # fmt: skip
    cosim.add_argument("--sm", metavar="N[,N]", help="only on these SMs")
    cosim.add_argument("-o", dest="folder", metavar="DIR", default="cosim", help="folder for the report of a "
                       "difference (default: cosim)")  # fmt: skip
    cosim.add_argument("--record", metavar="DIR", help="keep replay files of the blocks that run as RTL (shadow only)")
    gates.add_options(cosim)

    def many_runs(to: argparse.ArgumentParser) -> None:
        to.add_argument("--jobs", type=int, metavar="N", help="runs at the same time (default: one per core)")
        to.add_argument("--show", dest="statistics", metavar="STAT[,STAT]", default="", action=Joined,
                        help="statistics to show: l1.mpki")  # fmt: skip
        to.add_argument("--csv", metavar="FILE", help="write a row with every statistic for each run")
        to.add_argument("--parquet", metavar="FILE", help="write the same rows as Parquet; needs PyArrow")

    compare = command("compare", "Run kernels in several configurations, side by side.")
    compare.add_argument("kernels", metavar="KERNEL", nargs="+")
    compare.add_argument("--with", dest="mechanisms", metavar="M[,M]", action="append",
                         help="mechanisms to run together, or baseline for none; may be given several "
                         "times")  # fmt: skip
    compare.add_argument("--gpu", metavar="NAME|FILE.toml", action="append", help="may be given several times")
    run_options(compare, "small", "KEY=VALUE[,VALUE]", "each value of a parameter: l1.mshrs=16,32,64")
    many_runs(compare)

    sweep = command("sweep", "Run what a file describes, except for what has been run before.")
    sweep.add_argument("what", nargs="?", choices=("run", "status"), default="run", help="status: show which runs are "
                       "done, missing and failed (default: run)")  # fmt: skip
    sweep.add_argument("file", metavar="FILE.toml", help="what to run: see docs/sweeps.md")
    sweep.add_argument("--scheduler", metavar="local|dask[=ADDRESS]|slurm", default="local",
                       help="where to run (default: local)")  # fmt: skip
    sweep.add_argument("--retry", action="store_true", help="repeat the runs that failed")
    many_runs(sweep)

    diff = command("diff", "Explain how two saved runs differ, and where the cycles went.")
    for name in ("first", "second"):
        diff.add_argument(name, metavar="RUN.json", help="output of `lockstep run --json`")

    energy = command("energy", "Account for the energy of saved runs, by component.")
    energy.add_argument("files", metavar="RUN.json", nargs="+", help="output of `lockstep run --json` or `lockstep "
                        "compare --json`")  # fmt: skip
    energy.add_argument("--process", metavar="NAME|FILE.toml", default="45nm", help="energies of events (default: "
                        "45nm)")  # fmt: skip

    bench = command("bench", "Measure the speed of the model.")
    bench.add_argument("kernels", metavar="KERNEL", nargs="*")
    one_gpu(bench)

    verify = command("verify", "Check the hardware of blocks against their golden models.")
    verify.add_argument("targets", metavar="BLOCK|AREA|combinations|all", nargs="*", default=["all"],
                        help="default: all; combinations: pairs of mechanisms (random)")  # fmt: skip
    verify.add_argument("--level", choices=VERIFY_LEVELS, default="smoke", help="how thoroughly (default: smoke)")
    verify.add_argument("--seeds", type=int, default=1, metavar="N", help="seeds per run (default: 1)")
    verify.add_argument("--seed", type=int, metavar="S", help="the first seed (default: LOCKSTEP_SEED, or random)")
    verify.add_argument("--mutants", type=int, default=300, metavar="N", help="mutants per block (default: 300)")
    verify.add_argument("--jobs", type=int, metavar="N", help="checks at the same time (default: one per core)")
    verify.add_argument("--replay", metavar="FILE", nargs="+", default=[], help="play replay files of `lockstep cosim` "
                        "instead; with mutation, play them to the mutants, too")  # fmt: skip
    verify.add_argument("--gpu", metavar="NAME|FILE.toml", help="with kernels: what they run on "
                        "(default: gtx480)")  # fmt: skip
    verify.add_argument("--set", metavar="KEY=VALUE", action="append", default=[], help="with kernels: a parameter: "
                        "regless.registers=128")  # fmt: skip
    verify.add_argument("--junit", metavar="FILE", help="write the result as JUnit XML")
    verify.add_argument("--coverage", metavar="DIR", help="with random: write lcov files, and the Verilog that they "
                        "are about")  # fmt: skip

    reproduce = command("reproduce", "Compare with published or independent figures: a page with tables and plots.")
    reproduce.add_argument("chapter", choices=CHAPTERS)
    reproduce.add_argument("-o", dest="folder", metavar="DIR", default="reproduce",
                           help="folder of the page (default: reproduce)")  # fmt: skip
    reproduce.add_argument("--quick", action="store_true", help="only a few of the runs")
    reproduce.add_argument("--jobs", type=int, metavar="N", help="runs at the same time (default: one per core)")

    def cuda_options(to: argparse.ArgumentParser) -> None:
        of = to.add_argument_group("CUDA C", "how a .cu file is compiled; it may be a whole program")
        of.add_argument("-I", dest="include", metavar="DIR", action="append", default=[], help="a folder of headers")
        of.add_argument("-D", dest="define", metavar="NAME[=VALUE]", action="append", default=[], help="a macro")
        of.add_argument("--std", metavar="STD", help="the standard: c++11, c++14, c++17 or c++20 (default: c++17)")
        of.add_argument("--arch", metavar="ARCH", help="architecture of the PTX (default: sm_75); --gpu says which GPU "
                        "is modelled")  # fmt: skip
        of.add_argument("--name", dest="names", metavar="NAME", action="append", default=[], help="an instance of a "
                        "kernel template, as 'f<3>', besides those that the program itself launches")  # fmt: skip
        of.add_argument("--fast-math", action="store_true", help="faster, less exact mathematics")

    ptx = command("ptx", "Show what the compiler finds in kernels.")
    ptx.add_argument("file", metavar="FILE|KERNEL", help="a .ptx or .cu file, or one of `lockstep kernels`")
    ptx.add_argument("--show", choices=("regions", "memory-regions", "hints", "registers"), default="regions",
                     help="regions for operand staging, with live registers and the metadata of operands; or memory "
                     "regions, by lines of the PTX; or the PTX itself, with the hints of region-p scheduling; or the "
                     "first use of each register, as allocated and renumbered by it (default: regions)")  # fmt: skip
    ptx.add_argument("--gpu", default="gtx480", metavar="NAME|FILE.toml", help="GPU to compile for (default: gtx480)")
    ptx.add_argument("--set", metavar="KEY=VALUE", action="append", default=[],
                     help="a parameter: core.region_warps=20")  # fmt: skip
    cuda_options(ptx)

    occupancy = command("occupancy", "Show how many CTAs an SM holds, and what limits them.")
    occupancy.add_argument("file", metavar="FILE|KERNEL", nargs="?", help="a .ptx or .cu file, or one of `lockstep "
                           "kernels`; without it, say what a CTA needs")  # fmt: skip
    occupancy.add_argument("--threads", type=int, metavar="N", help="threads of a CTA (default for a kernel: the usual "
                           "sizes)")  # fmt: skip
    occupancy.add_argument("--registers", type=int, metavar="N", help="registers per thread (of a kernel, if it needs "
                           "fewer)")  # fmt: skip
    occupancy.add_argument("--scratchpad", type=int, metavar="BYTES", default=0, help="scratchpad of a CTA (of a "
                           "kernel, the dynamic part; default: 0)")  # fmt: skip
    occupancy.add_argument("--gpu", default="gtx480", metavar="NAME|FILE.toml", help="GPU of the SM (default: gtx480)")
    occupancy.add_argument("--with", dest="mechanisms", metavar="M[,M]", default="", action=Joined, help="mechanisms")
    occupancy.add_argument("--sharing", dest="percent", metavar="PERCENT", help="pairs of CTAs share this part "
                           "of their registers: as --with register-sharing --set sharing.percent=PERCENT")  # fmt: skip
    occupancy.add_argument("--set", metavar="KEY=VALUE", action="append", default=[],
                           help="a parameter: core.registers=65536")  # fmt: skip
    cuda_options(occupancy)

    text = "Show runs on one page of HTML: where the cycles went, values over time, requests, roofline, hot lines."
    report = commands.add_parser("report", help=text, description=text, allow_abbrev=False)
    report.add_argument("files", metavar="RUN.json", nargs="+", help="output of `lockstep run --json` or `lockstep "
                        "compare --json`")  # fmt: skip
    report.add_argument("-o", dest="file", metavar="FILE.html", default="report.html",
                        help="the page (default: report.html)")  # fmt: skip

    command("kernels", "List the kernels.")
    gpus = command("gpus", "List the GPU descriptions, or explain each value of one: its meaning and its source.")
    gpus.add_argument("gpu", metavar="NAME|FILE.toml", nargs="?", help="the one to explain")
    gpus.add_argument("--with", dest="mechanisms", metavar="M[,M]", default="", action=Joined, help="mechanisms")
    gpus.add_argument("--set", metavar="KEY=VALUE", action="append", default=[], help="a parameter: l1.mshrs=64")
    command("mechanisms", "List the mechanisms.")
    completion = commands.add_parser("completion", help="Print the shell code that completes `lockstep` commands.")
    completion.add_argument("shell", choices=("bash", "zsh", "fish"), help='in its start-up file: eval "$(lockstep '
                            'completion bash)"')  # fmt: skip
    _hardware(command)
    return parser


def _hardware(command: Callable[[str, str], argparse.ArgumentParser]) -> None:
    """The commands about the RTL."""

    def of_a_gpu(to: argparse.ArgumentParser) -> None:
        to.add_argument("block", metavar="BLOCK|AREA|all", help="see `lockstep blocks`")
        to.add_argument("--gpu", default="gtx480", metavar="NAME|FILE.toml", help="GPU that the sizes are for "
                        "(default: gtx480)")  # fmt: skip
        to.add_argument("--set", metavar="KEY=VALUE", action="append", default=[], help="a size: warppool.queues=16")

    blocks = command("blocks", "List the blocks that exist as hardware.")
    blocks.add_argument("block", metavar="BLOCK|AREA|all", nargs="?", default="all")

    verilog = command("verilog", "Write blocks as Verilog, and a FuseSoC core file.")
    of_a_gpu(verilog)
    verilog.add_argument("-o", "--output", metavar="DIR", required=True, help="folder for the files, made if needed")

    synth = command("synth", "Synthesise blocks: cells, area, logic depth, and state beside the paper's.")
    of_a_gpu(synth)
    synth.add_argument("--liberty", metavar="FILE", help="standard cells to map to; otherwise generic gates")
    synth.add_argument("--period", metavar="NS", type=float, default=0.0, help="with --liberty: the clock period for "
                       "which cells are chosen (default: the shortest)")  # fmt: skip
    synth.add_argument("--build", action="store_true", help="build memories with asynchronous reads from flip-flops")


def main(arguments: Sequence[str] | None = None) -> int:
    """Entry point; returns the exit code."""
    sys.stderr = sys.stderr or open(os.devnull, "w", encoding="utf-8")  # None is a closed one, as with `2>&-`
    if sys.stdout is None:
        return _fail("standard output: closed; send it to /dev/null to have none", 2)
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="backslashreplace")  # as standard error, for what the locale has no letter
    try:
        parser = _parser()
        if "_ARGCOMPLETE" in os.environ:
            from lockstep.cli import completion

            completion.complete(parser)
        options = parser.parse_args(arguments)
        from lockstep.cli import commands

        code = _guarded(getattr(commands, options.command), options)
        sys.stdout.flush()
        return code
    except UsageError as error:
        return _fail(str(error), 2, getattr(error, "__notes__", ()))
    except KeyboardInterrupt:
        return _fail("interrupted", 130)
    except MemoryError:
        return _fail("out of memory", 2)
    except BrokenPipeError:  # the reader, as in `| head`
        _drop(sys.stdout)
        return 141
    except OSError as error:
        _drop(sys.stdout)
        return _fail(str(error) if error.errno is None else f"{error.filename or 'output'}: {error.strerror}", 2)


def _drop(stream: TextIO) -> None:
    """Let what is still buffered not fail once more at exit."""
    try:
        stream.flush()
    except OSError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())


def _guarded(command: Callable[[argparse.Namespace], int], options: argparse.Namespace) -> int:
    from lockstep.models.gpu import ModelFault

    try:
        return command(options)
    except ModelFault as fault:
        notes = getattr(fault, "__notes__", ())
        return _fail(f"internal fault: {fault}; the same command reproduces it", 1, notes)


def _fail(message: str, code: int, notes: Sequence[str] = ()) -> int:
    try:
        print(f"lockstep: {one_line(message)}", *notes, sep="\n", file=sys.stderr)
    except OSError:  # no place for the message: the code says enough
        _drop(sys.stderr)
    return code


if __name__ == "__main__":
    sys.exit(main())
