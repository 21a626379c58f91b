"""`lockstep completion`, and the words that options and arguments take in shells; argcomplete does the rest."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import argcomplete


def arguments(to: argparse.ArgumentParser) -> None:
    to.add_argument("shell", choices=("bash", "zsh", "fish"), help='in its start-up file: eval "$(lockstep completion '
                    'bash)"')  # fmt: skip


def command(options: argparse.Namespace) -> int:
    """Print the code by which a shell completes `lockstep`."""
    print(argcomplete.shellcode(["lockstep"], shell=options.shell))
    return 0


def complete(parser: argparse.ArgumentParser) -> None:
    """Answer the shell, and exit, if it is one that asks."""
    for action in _actions(parser):
        if words := WORDS.get(action.dest):
            action.completer = _Words(words)  # type: ignore[attr-defined]
    argcomplete.autocomplete(parser)


def _actions(parser: argparse.ArgumentParser) -> Iterator[argparse.Action]:
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            for command in action.choices.values():
                yield from _actions(command)
        else:
            yield action


class _Words:
    """Completes the last of several words with commas between them."""

    def __init__(self, words: Callable[[], Iterable[str]]) -> None:
        self._words = words

    def __call__(self, prefix: str, **_: Any) -> list[str]:
        before, comma, last = prefix.rpartition(",")
        return [f"{before}{comma}{word}" for word in self._words() if word.startswith(last)]


def _kernels() -> Iterable[str]:
    from lockstep.sim import kernels

    return kernels.names()


def _gpus() -> Iterable[str]:
    from lockstep.sim.device import description

    return description.names()


def _parameters() -> Iterable[str]:
    from lockstep.sim.device import description

    return (f"{key}=" for key in description.PARAMETERS)


def _mechanisms() -> Iterable[str]:
    from lockstep.spec import registry

    return registry.MECHANISMS


def _statistics() -> Iterable[str]:
    from lockstep.sim.device import statistics

    return statistics.STATISTICS


def _blocks() -> Iterable[str]:
    from lockstep.rtl import registry

    return sorted(registry.selectable(registry.blocks()))


WORDS: dict[str, Callable[[], Iterable[str]]] = {
    "kernel": _kernels, "kernels": _kernels, "gpu": _gpus, "set": _parameters, "mechanisms": _mechanisms,
    "block": _blocks, "rtl": _blocks, "targets": _blocks,
    "statistics": _statistics,
}  # fmt: skip
"""The words of an option or an argument, by its name in the parsed options."""
