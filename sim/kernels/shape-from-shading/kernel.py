"""shape-from-shading: Chen's 3-D shape from shading, solved by blocks whose CTAs exchange boundaries without waiting.

Base and Coarse exchange nothing; they are run with two buffers and a barrier after each step, and compared bit for bit.
What exchanges rows, all sides, or all sides with packed columns updates in place and is launched as often as the
equations need. The surface is one whose gradient is linear, so that the solution is known; at first, the gradient is
wrong where four blocks meet. full has the thesis's 480 x 480 nodes.
"""

from __future__ import annotations

from lockstep.sim.kernels import Close
from lockstep.sim.kernels.asynchronous import CASES, NEAR, Case, Kernel
from lockstep.sim.kernels.problems import ShapeFromShading, curved, linear, patches

TITLE = "3-D shape from shading by asynchronous blocks"
SUITE = "Chen"
PTX = "shading.ptx"
TOLERANCE = dict.fromkeys(NEAR, Close(atol=0.02, reason="the residual is below 1e-3 after the launches"))

RADIUS = 3  # of the discs


def _problem(case: Case, seed: int) -> ShapeFromShading:
    disturbed = patches(case.rows, case.columns, case.blocks.height, case.blocks.width, RADIUS)
    return curved(case.rows, case.columns, seed, disturbed)


KERNEL = Kernel(
    ShapeFromShading,
    _problem,
    linear,
    {"up_down": 20, "four_way": 10, "combined": 10},
)
SIZES = tuple(CASES)
setup, run, reference = KERNEL.setup, KERNEL.run, KERNEL.reference
