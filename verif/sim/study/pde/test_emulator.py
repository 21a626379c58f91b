"""The emulator of blocks: NumPy's iteration where that is exact, the model where both run."""

from __future__ import annotations

from collections.abc import Callable
from itertools import islice

import numpy as np
import pytest

from lockstep.sim import Gpu, UsageError
from lockstep.sim.kernels import find
from lockstep.sim.kernels.problems import Problem, poisson, shape_from_shading
from lockstep.sim.kernels.solvers import Blocks, Scheme, Session, solve
from lockstep.sim.study.pde import emulator
from lockstep.sim.study.pde.emulator import emulate, launches

SMALL = Blocks(8, 8, 2)
KINDS: dict[str, Callable[[int, int, int], Problem]] = {"poisson": poisson, "shape-from-shading": shape_from_shading}


@pytest.mark.parametrize("make", KINDS.values())
@pytest.mark.parametrize("steps", (1, 2, 7, 40))
def test_jacobi_steps_are_numpy_s_bit_for_bit(make, steps: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(emulator, "TESTED", 1)
    problem = make(24, 16, 6)
    fields, residual = next(launches(problem, SMALL, Scheme(steps=steps, jacobi=True)))
    assert np.array_equal(fields, problem.coarse(problem.fields, 8, 8, steps))
    assert residual == pytest.approx(problem.residual(fields), rel=1e-12)


@pytest.mark.parametrize("make", KINDS.values())
def test_base_is_a_step_of_the_whole(make) -> None:
    problem = make(24, 16, 6)
    fields, _ = next(launches(problem, SMALL, Scheme(steps=1, jacobi=True)))
    want = problem.fields
    for _ in range(emulator.TESTED):
        want = problem.step(want)
    assert np.array_equal(fields, want)


def test_a_wave_sees_what_the_one_before_it_has_left() -> None:
    """Three blocks in a row, one at a time, one step each: the last sees the second, which sees the first."""
    problem = poisson(8, 24, 6)
    scheme = Scheme("none", "linear", 10)
    fields, _ = next(launches(problem, Blocks(8, 8, 1), scheme, parts=1))
    want = problem.fields.copy()
    for x in (0, 8, 16):
        window = np.s_[:, :, x : x + 10]
        block = want[window].copy()
        for _ in range(10):
            block[:, 1:-1, 1:-1] = problem.update(block, problem.constants[window])
        want[window][:, 1:-1, 1:-1] = block[:, 1:-1, 1:-1]
    assert np.array_equal(fields, want)


def test_up_and_down_leave_the_columns_alone() -> None:
    """Two blocks side by side exchange nothing then, and with all four sides they do."""
    problem = poisson(8, 16, 6)
    fields = {}
    for exchange in ("none", "up-down", "four-way"):
        fields[exchange], _ = next(launches(problem, SMALL, Scheme(exchange, "linear", 12, 4)))
    assert np.array_equal(fields["none"], fields["up-down"])
    assert not np.array_equal(fields["none"], fields["four-way"])


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("exchange", ("none", "up-down", "four-way", "combined"))
def test_steps_are_the_model_s(kind: str, exchange: str) -> None:
    """On two SMs of one CTA each: within a launch, and the same fields but for what arrives a step earlier or later."""
    problem, scheme = KINDS[kind](24, 16, 7), Scheme(exchange, "square", 10, 4, 32)
    gpu = Gpu("gtx580", settings={"core.sms": 2, "core.ctas": 1, "l1.data": 0})
    path = find(kind).ptx if exchange != "none" else find(kind).ptx.with_suffix(".cu")
    solved = solve(Session(gpu, gpu.load(path), problem, SMALL, scheme), 1e-3)
    found = emulate(problem, SMALL, scheme, 1e-3)
    assert solved.converged and found.converged
    assert abs(solved.steps - found.steps) <= max(scheme.steps, 0.1 * solved.steps)
    assert np.abs(solved.fields - found.fields).max() < 0.02


def test_a_limit_is_no_success_and_epsilon_is_checked() -> None:
    problem = poisson(24, 16, 6)
    found = emulate(problem, SMALL, Scheme("four-way", "square", 10, 4), 1e-5, 25)
    assert (found.converged, found.steps, len(found.residuals)) == (False, 30, 3)
    with pytest.raises(UsageError, match="epsilon"):
        emulate(problem, SMALL, Scheme("four-way", "square", 10, 4), 1e-8)


def test_residuals_fall() -> None:
    problem = shape_from_shading(24, 16, 8)
    residuals = [residual for _, residual in islice(launches(problem, SMALL, Scheme("four-way", "square", 20, 4)), 8)]
    assert residuals[-1] < residuals[0] / 2, residuals
