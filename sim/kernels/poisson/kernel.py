"""poisson: Chen's Poisson image editing, solved by blocks whose CTAs exchange boundaries without waiting.

Base and Coarse exchange nothing; they are run with two buffers and a barrier after each step, and compared bit for bit.
What exchanges rows, all sides, or all sides with packed columns updates in place and is launched as often as the
equations need, so that the values are near the solution. Only discs where four blocks meet are unknown, so that all
depends on what other CTAs store. full has the thesis's 480 x 480 nodes.
"""

from __future__ import annotations

import numpy as np

from lockstep.sim.kernels import Close
from lockstep.sim.kernels.asynchronous import CASES, NEAR, Case, Kernel
from lockstep.sim.kernels.problems import Poisson, Problem, patches, poisson

TITLE = "Poisson image editing by asynchronous blocks"
SUITE = "Chen"
PTX = "poisson.ptx"
TOLERANCE = dict.fromkeys(
    NEAR, Close(atol=1e-4, reason="the residual ends below 2e-5, and a disc's inverse has a norm below 5")
)

RADIUS = 4  # of the discs


def _problem(case: Case, seed: int) -> Poisson:
    free = patches(case.rows, case.columns, case.blocks.height, case.blocks.width, RADIUS)
    return poisson(case.rows, case.columns, seed, free)


def _solution(problem: Problem) -> np.ndarray:
    assert isinstance(problem, Poisson)
    return problem.solution()


KERNEL = Kernel(
    Poisson,
    _problem,
    _solution,
    {"up_down": 26, "four_way": 14, "combined": 14},
)
SIZES = tuple(CASES)
setup, run, reference = KERNEL.setup, KERNEL.run, KERNEL.reference
