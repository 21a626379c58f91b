"""Whole kernels on a real GPU and on Lockstep: the same PTX, inputs and launches; every bit of the outputs compared.

Two things make results differ that are both right: compilers fuse products and sums that name no rounding, and
approximations have errors of their own. So the PTX is first made exact: every rounding is named, approximate quotients
and roots become rounded ones, and other functions become products. What the kernels then compute means nothing, but
there is only one right result.
"""

from __future__ import annotations

import re
from typing import Any

from lockstep.sim import kernels

SEED = 1
REWRITTEN = (
    (r"\b(add|sub|mul)\.((?:ftz\.)?(?:sat\.)?f(?:32|64))\b", r"\1.rn.\2"),
    (r"\b(div)\.(?:approx|full)\.", r"\1.rn."),
    (r"\b(rcp|sqrt)\.approx\.((?:ftz\.)?f32)\b", r"\1.rn.\2"),
    (r"\b(?:rsqrt|ex2|lg2|sin|cos|tanh)\.approx\.((?:ftz\.)?f32)\b([^;]*);", r"mul.rn.\1\2, 0f3F000000;"),
)


def exact(text: str) -> str:
    """PTX whose results are the same on every GPU."""
    for pattern, replacement in REWRITTEN:
        text = re.sub(pattern, replacement, text)
    return text


def names(size: str) -> list[str]:
    """The kernels that have a size."""
    return [name for name in kernels.names() if size in kernels.find(name).sizes]


def run(gpu: Any, name: str, size: str) -> tuple[kernels.Data, kernels.Outputs]:
    """A kernel's inputs, and what it computes on ``gpu`` when it is made exact."""
    kernel = kernels.find(name)
    module = gpu.load(exact(kernel.ptx.read_text(encoding="utf-8")), kernel.registers)
    data = kernel.setup(size, SEED)
    return data, kernel.run(gpu, module, data)
