"""``python -m lockstep.verif.solvers``: seeded schedules of a small grid, of which none may hang or fail to converge.

A seed says the equation, how blocks exchange boundaries and in which order they are given to CTAs, the GPU, its warp
scheduler, its latencies, and mechanisms. A launch that makes no progress is a fault of its own.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from lockstep.sim import Gpu, UsageError
from lockstep.sim.kernels import find
from lockstep.sim.kernels.problems import Problem, poisson, shape_from_shading
from lockstep.sim.kernels.solvers import EXCHANGES, ORDERS, Blocks, Scheme, Session, solve
from lockstep.spec import registry

__all__ = ["COUNT", "Trial", "run", "trial"]

COUNT = 300
EXTENT, BLOCKS = (16, 16), (8, 8)
EPSILON, MOST_STEPS = 1e-3, 4000
SCHEDULERS = ("lrr", "gto", "oldest", "greedy-rr", "two-level")
GPUS = ("gtx580", "gtx480", "tesla-c2050", "dyncta30")
PROBLEMS: dict[str, Callable[[int, int, int], Problem]] = {"poisson": poisson, "shape-from-shading": shape_from_shading}


@dataclass(frozen=True)
class Trial:
    """What a seed stands for."""

    kernel: str
    gpu: str
    mechanisms: tuple[str, ...]
    settings: dict[str, Any]
    scheme: Scheme
    resident: int

    def problem(self, seed: int) -> Problem:
        return PROBLEMS[self.kernel](*EXTENT, seed)


def trial(seed: int) -> Trial:
    random = np.random.default_rng(seed)

    def one(choices: Any) -> Any:
        return choices[int(random.integers(len(choices)))]

    scheme = Scheme(one(EXCHANGES[1:]), one(ORDERS), int(random.integers(4, 24)), 4, 32, seed=seed)
    kernel, resident = one(list(PROBLEMS)), int(random.integers(1, 9))
    while True:
        names = random.choice(list(registry.MECHANISMS), int(random.integers(3)), replace=False)
        gpu, mechanisms, settings = one(GPUS), tuple(map(str, names)), _settings(random)
        try:
            Gpu(gpu, mechanisms, settings)
        except (UsageError, ValueError):  # what does not go together
            continue
        return Trial(kernel, gpu, mechanisms, settings, scheme, resident)


def _settings(random: np.random.Generator) -> dict[str, Any]:
    return {
        "core.sms": int(random.integers(1, 5)),
        "core.ctas": int(random.integers(1, 4)),
        "core.scheduler": SCHEDULERS[int(random.integers(len(SCHEDULERS)))],
        "l1.data": int(random.integers(2)),
        "l2.latency": int(random.integers(60, 300)),
        "dram.latency": int(random.integers(400, 900)),
        "launch.dispatch_interval": int(random.integers(1, 200)),
    }


def run(seed: int) -> str:
    """What is wrong with a schedule, in a line; empty if it converges."""
    how = trial(seed)
    kernel, gpu = find(how.kernel), Gpu(how.gpu, how.mechanisms, how.settings)
    session = Session(gpu, gpu.load(kernel.ptx), how.problem(seed), Blocks(*BLOCKS, how.resident), how.scheme)
    try:
        solved = solve(session, EPSILON, MOST_STEPS)
    except UsageError as error:  # a fault of a kernel is one, too
        return f"seed {seed}: {how}: {error}"
    if not solved.converged:
        return f"seed {seed}: {how}: the residual is {solved.residuals[-1]:g} after {solved.steps} steps"
    return ""


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m lockstep.verif.solvers", description=__doc__)
    parser.add_argument("--first", type=int, default=0, help="first seed (default: 0)")
    parser.add_argument("--count", type=int, default=COUNT, help=f"how many seeds (default: {COUNT})")
    options = parser.parse_args()
    wrong = [message for seed in range(options.first, options.first + options.count) if (message := run(seed))]
    print("\n".join([*wrong, f"{options.count - len(wrong)} of {options.count} schedules converge"]))
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
