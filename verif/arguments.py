"""Arguments that commands of this folder share."""

from __future__ import annotations

import argparse


def _names(text: str) -> list[str]:
    return [each for each in text.split(",") if each]


def runs(to: argparse.ArgumentParser) -> None:
    """Kernels, the size of their input, and the GPU with mechanisms that they run on."""
    to.add_argument("kernels", nargs="*", metavar="KERNEL")
    to.add_argument("--size", default="small")
    to.add_argument("--gpu", default="gtx480")
    to.add_argument("--with", dest="mechanisms", metavar="M,...", type=_names, default=[])
