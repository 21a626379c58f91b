"""What the two solvers' ``kernel.py`` have in common: all ways to exchange boundaries, on one problem."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from lockstep.sim.kernels import Data, Outputs
from lockstep.sim.kernels.problems import Problem
from lockstep.sim.kernels.solvers import Blocks, Scheme, Session

if TYPE_CHECKING:
    from lockstep.sim.device.gpu import Gpu
    from lockstep.sim.device.module import Module

__all__ = ["CASES", "NEAR", "Case", "Kernel"]

EXACT_STEPS = 7
LAUNCH_STEPS = 20
EXACT = {
    "base": Scheme(steps=1, jacobi=True),
    "coarse": Scheme(steps=EXACT_STEPS, jacobi=True),
}
NEAR = {
    "up_down": Scheme("up-down", "stripe", LAUNCH_STEPS, 4),
    "four_way": Scheme("four-way", "stripe", LAUNCH_STEPS, 4),
    "combined": Scheme("combined", "square", LAUNCH_STEPS, 4),
}


@dataclass(frozen=True)
class Case:
    """A size: rows, columns, and how blocks part them."""

    rows: int
    columns: int
    blocks: Blocks
    communicating: int = 64


WHOLE = Blocks(32, 60, 16)
CASES = {"tiny": Case(16, 16, Blocks(8, 8, 4), 32), "small": Case(120, 64, WHOLE), "full": Case(480, 480, WHOLE)}


@dataclass(frozen=True)
class Kernel:
    """A problem's ``kernel.py``: ``problem`` makes it for a case and a seed, ``solution`` is what solves it.

    ``launches``: how many the ways to exchange need, of :data:`LAUNCH_STEPS`. They do not depend on the GPU, so that
    each runs as many instructions.
    """

    kind: Callable[[np.ndarray, np.ndarray], Problem]
    problem: Callable[[Case, int], Problem]
    solution: Callable[[Problem], np.ndarray]
    launches: Mapping[str, int]

    def setup(self, size: str, seed: int) -> Data:
        problem = self.problem(CASES[size], seed)
        return {"fields": problem.fields, "constants": problem.constants, "case": CASES[size]}

    def run(self, gpu: Gpu, module: Module, data: Data) -> Outputs:
        problem, case = self.kind(data["fields"], data["constants"]), data["case"]
        outputs = {}
        for name, scheme in {**EXACT, **NEAR}.items():
            scheme = replace(scheme, communicating=case.communicating)
            session = Session(gpu, module, problem, case.blocks, scheme)
            for _ in range(self.launches[name] if name in NEAR else EXACT_STEPS // scheme.steps):
                session.launch()
            outputs[name] = session.fields()
        return outputs

    def reference(self, data: Data) -> Outputs:
        problem, blocks = self.kind(data["fields"], data["constants"]), data["case"].blocks
        base = problem.fields
        for _ in range(EXACT_STEPS):
            base = problem.step(base)
        coarse = problem.coarse(problem.fields, blocks.width, blocks.height, EXACT_STEPS)
        solution = self.solution(problem).astype(np.float32)
        return {"base": base, "coarse": coarse, **dict.fromkeys(NEAR, solution)}
