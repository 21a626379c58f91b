"""Kernels with register regions, and what the checker and the interpreter say of them."""

from __future__ import annotations

import random
from collections.abc import Sequence
from pathlib import Path

from lockstep.sim.compile.ptx.build import build
from lockstep.sim.compile.ptx.kernel import Kernel
from lockstep.sim.compile.ptx.parser import parse
from lockstep.spec.passes import REGISTER_NUMBERING, Pass, register_regions
from lockstep.spec.register_regions import REGION_REGISTERS
from lockstep.verif.regless.checker import check
from lockstep.verif.regless.code import Staged, staged
from lockstep.verif.regless.staging import Violation, Warp

LINES = 16  # of a bank, with 512 registers and four schedulers
STEPS = 1200
WARPS = 12


def compiled(
    text: str, path: str = "test.ptx", /, *, registers: int = REGION_REGISTERS, lines: int = LINES, limit: int = 63
) -> dict[str, Kernel]:
    """The kernels of a module, with regions."""
    passes: Sequence[Pass] = REGISTER_NUMBERING, register_regions(registers, lines)
    return build(parse(text, path), limit, passes).kernels


def kernels_of(path: Path, **options: int) -> dict[str, Kernel]:
    return compiled(path.read_text(encoding="utf-8"), str(path), **options)


def faults(kernel: Kernel, rng: random.Random, warps: int = WARPS) -> list[str]:
    """What the checker finds wrong with a kernel, and what warps that run find."""
    regions = staged(kernel)
    return [f"checker: {error}" for error in check(regions)] + executed(regions, rng, warps)


def executed(regions: Sequence[Staged], rng: random.Random, warps: int = WARPS) -> list[str]:
    """What warps find that run with staged registers."""
    found = []
    for _ in range(warps):
        try:
            Warp(regions, random.Random(rng.getrandbits(32))).run(STEPS)
        except Violation as violation:
            found.append(f"executed: {violation}")
    return found
