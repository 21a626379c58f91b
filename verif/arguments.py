"""Arguments that commands of this folder share."""

from __future__ import annotations

import argparse
from collections.abc import Sequence

from lockstep.sim import kernels
from lockstep.sim.device import description
from lockstep.sim.errors import UsageError


def _names(text: str) -> list[str]:
    return [each for each in text.split(",") if each]


def runs(to: argparse.ArgumentParser) -> None:
    """Kernels, the size of their input, and the GPU with mechanisms and settings that they run on."""
    to.add_argument("kernels", nargs="*", metavar="KERNEL")
    to.add_argument("--size", default="small")
    to.add_argument("--gpu", default="gtx480")
    to.add_argument("--with", dest="mechanisms", metavar="M,...", type=_names, default=[])
    to.add_argument("--set", dest="settings", metavar="KEY=VALUE", action="append", default=[])


def parsed(parser: argparse.ArgumentParser, words: Sequence[str] | None) -> argparse.Namespace:
    """Those of a command that ``runs`` kernels, ``settings`` as a dictionary; what is wrong ends it in one line."""
    options = parser.parse_args(words)
    try:
        options.settings = dict(map(description.parse_setting, options.settings))
        description.load(options.gpu, options.settings, options.mechanisms)
        for name in options.kernels:
            kernels.find(name, options.size)
    except UsageError as error:
        parser.exit(2, f"{error}\n")
    return options
