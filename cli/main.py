"""The command ``lockstep``. Exit codes: 0 done, 1 a run failed or its result was wrong, 2 wrong input or no place for
output, 130 interrupted, 141 whoever read the output has gone, 143 terminated.

Only the file of the command that is used is loaded: ``lockstep --help`` needs none, and ``lockstep run`` neither the
RTL nor, with a module that was loaded before, the PTX parser.
"""

from __future__ import annotations

import argparse
import ctypes
import importlib
import io
import os
import signal
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from types import FrameType
from typing import Any, NoReturn, TextIO

from lockstep.sim.errors import UsageError, one_line
from lockstep.spec.words import closest

__all__ = ["main", "program"]

EPILOG = "See README.md for a start, and docs/statistics.md for the statistics."

COMMANDS = {
    "run": "Run one kernel and check its result.",
    "cosim": "Run one kernel with the RTL of blocks in it, checked against the model in every cycle.",
    "trace": "Record what the warps of a kernel execute, show a trace, or import one of Accel-Sim's.",
    "compare": "Run kernels in several configurations, side by side.",
    "sweep": "Run what a file describes, except for what has been run before.",
    "diff": "Explain how two saved runs differ, and where the cycles went.",
    "energy": "Account for the energy of saved runs, by component.",
    "power": "Predict the power of kernels from characteristics of their runs, by statistical models.",
    "litmus": "Run racing programs: which outcomes occur, and whether PTX forbids one of them.",
    "bench": "Measure the speed of the model.",
    "verify": "Check the hardware of blocks against their golden models.",
    "reproduce": "Compare with published or independent figures: a page with tables and plots.",
    "ptx": "Show what the compiler finds in kernels.",
    "occupancy": "Show how many CTAs an SM holds, and what limits them.",
    "report": "Show runs on one page of HTML: where the cycles went, values over time, requests, roofline, hot lines.",
    "kernels": "List the kernels.",
    "gpus": "List the GPU descriptions, or explain each value of one: its meaning and its source.",
    "mechanisms": "List the mechanisms.",
    "completion": "Print the shell code that completes `lockstep` commands.",
    "blocks": "List the blocks that exist as hardware.",
    "verilog": "Write blocks as Verilog, with constraints, contract, testbench and a FuseSoC core.",
    "synth": "Synthesise blocks: cells, area, logic depth, and state beside the paper's.",
    "new-mechanism": "Start a mechanism: files that work as they are.",
    "new-block": "Start a block of a mechanism: files that work as they are.",
}
"""The commands, and what each does; a file has the command's name, with underscores, and is loaded when it is used."""


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


class Version(argparse.Action):
    def __call__(self, parser: argparse.ArgumentParser, *_: Any) -> NoReturn:
        from importlib.metadata import version

        print(f"lockstep {version('lockstep-sm')}")
        parser.exit()


def _file(command: str) -> Any:
    """The module of a command: ``arguments`` declares its options, ``command`` does its work and returns the code."""
    return importlib.import_module(f"lockstep.cli.{command.replace('-', '_')}")


def _parser(words: Sequence[str]) -> argparse.ArgumentParser:
    """The parser of a command line; of the commands it knows the options of the one that is used."""
    parser = Parser(prog="lockstep", description="Whole CUDA kernels on a cycle-level GPU model.", epilog=EPILOG)
    parser.add_argument("--version", action=Version, nargs=0, help="print the version")
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")
    for name, text in COMMANDS.items():
        added = commands.add_parser(name, help=text, description=text, allow_abbrev=False)
        if name in words[:1]:
            _file(name).arguments(added)
    return parser


def program() -> NoReturn:
    """The program `lockstep`. Once its work is done, an interrupt has nothing left to end."""
    code = main()
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    # Had the interrupt, which has been caught since, ended code that an extension ran, as some imports do, Python would
    # kill itself in place of returning the exit code. Code that comes to its end makes it forget that.
    ctypes.pythonapi.PyRun_SimpleString(b"")
    sys.exit(code)


def main(arguments: Sequence[str] | None = None) -> int:
    """Do what a command line says; returns the exit code."""
    sys.stderr = sys.stderr or open(os.devnull, "w", encoding="utf-8")  # None is a closed one, as with `2>&-`
    if sys.stdout is None:
        return _fail("standard output: closed; send it to /dev/null to have none", 2)
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="backslashreplace")  # as standard error, for what the locale has no letter
    with _signals() as came:
        return _done(arguments, came)


@contextmanager
def _signals() -> Iterator[list[int]]:
    """Let SIGTERM end a command as an interrupt does, also where one is put off; the list has the signals that came."""
    came: list[int] = []

    def interrupt(number: int, frame: FrameType | None) -> None:
        came.append(number)
        signal.default_int_handler(number, frame)

    def terminate(number: int, _frame: object) -> None:
        came.append(number)
        if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:  # as in a shell's background job
            signal.signal(signal.SIGINT, interrupt)
        signal.raise_signal(signal.SIGINT)

    def unraisable(dropped: sys.UnraisableHookArgs) -> None:
        """Who calls Python from compiled code raises an interrupt again that was dropped there."""
        if not (came and issubclass(dropped.exc_type, KeyboardInterrupt)):
            sys.__unraisablehook__(dropped)

    if threading.current_thread() is not threading.main_thread():
        yield came
        return
    before = {number: signal.getsignal(number) for number in (signal.SIGTERM, signal.SIGINT)}
    signal.signal(signal.SIGTERM, terminate)
    if before[signal.SIGINT] is signal.default_int_handler:
        signal.signal(signal.SIGINT, interrupt)
    hook, sys.unraisablehook = sys.unraisablehook, unraisable
    try:
        yield came
    finally:
        sys.unraisablehook = hook
        for number, handler in before.items():
            signal.signal(number, handler)


def _done(arguments: Sequence[str] | None, came: Sequence[int]) -> int:
    """Do what a command line says; ``came``: the signals to end it that have come."""
    try:
        try:
            return _command(arguments)
        except Exception:
            if came:  # imports make other errors of an interrupt
                raise KeyboardInterrupt from None
            raise
    except UsageError as error:
        return _fail(str(error), 2, getattr(error, "__notes__", ()))
    except KeyboardInterrupt:
        return _fail("terminated", 143) if signal.SIGTERM in came else _fail("interrupted", 130)
    except MemoryError:
        return _fail("out of memory", 2)
    except BrokenPipeError:  # the reader, as in `| head`
        _drop(sys.stdout)
        return 141
    except OSError as error:
        _drop(sys.stdout)
        return _fail(str(error) if error.errno is None else f"{error.filename or 'output'}: {error.strerror}", 2)


def _command(arguments: Sequence[str] | None) -> int:
    if "_ARGCOMPLETE" in os.environ:
        from lockstep.cli.completion import complete

        complete(_parser(os.environ["COMP_LINE"].split()[1:]))
    words = sys.argv[1:] if arguments is None else arguments
    options = _parser(words).parse_args(words)
    code = _guarded(_file(options.command).command, options)
    sys.stdout.flush()
    return code


def _drop(stream: TextIO) -> None:
    """Let what is still buffered not fail once more at exit."""
    try:
        stream.flush()
    except OSError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())


def _guarded(command: Callable[[argparse.Namespace], int], options: argparse.Namespace) -> int:
    from lockstep.models.stop import ModelFault

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
