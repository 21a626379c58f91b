"""The asynchronous solvers: bit for bit where that can be, else the same place, and no schedule that hangs."""

from __future__ import annotations

import shutil
from pathlib import Path

import numpy as np
import pytest

from lockstep.sim import Gpu, KernelFault, UsageError
from lockstep.sim.kernels import FOLDER, find
from lockstep.sim.kernels.problems import (
    Poisson,
    Problem,
    ShapeFromShading,
    _eliminate,
    poisson,
    shape_from_shading,
    smallest,
)
from lockstep.sim.kernels.solvers import Blocks, Scheme, Session, order_of, solve
from lockstep.verif import solvers
from lockstep.verif.conftest import partly

FILES = {"poisson": "poisson/poisson.cu", "shading": "shape-from-shading/shading.cu"}
PTX = {"poisson": "poisson", "shading": "shape-from-shading"}
SMALL = Blocks(8, 8, 4)
KINDS = (poisson, shape_from_shading)
SCHEMES = [(e, o) for e in ("up-down", "four-way", "combined") for o in ("stripe", "square")]
SCHEMES += [("none", "stripe"), ("none", "random"), ("combined", "random"), ("four-way", "linear")]


def session(problem: Problem, scheme: Scheme, blocks: Blocks = SMALL, compiled: bool = True) -> Session:
    """With the PTX that ships, or an instance that NVRTC makes."""
    gpu = Gpu("gtx580", settings={"core.sms": 2})
    path = find(PTX[problem.FUNCTION]).ptx if compiled else FOLDER / FILES[problem.FUNCTION]
    return Session(gpu, gpu.load(path), problem, blocks, scheme)


# ---------------------------------------------------------------------------------------------------------- bit for bit


@pytest.mark.parametrize("make", KINDS)
@pytest.mark.parametrize("steps", (1, 2, 7, 40))
def test_base_and_coarse_are_the_iteration_in_numpy(make, steps: int) -> None:
    problem = make(24, 16, 3)
    base = session(problem, Scheme(steps=1, communicating=32, jacobi=True))
    want = problem.fields
    for _ in range(steps):
        base.launch()
        want = problem.step(want)
    assert np.array_equal(base.fields(), want)
    assert not np.array_equal(want, problem.fields)
    coarse = session(problem, Scheme(steps=steps, communicating=32, jacobi=True))
    coarse.launch()
    assert np.array_equal(coarse.fields(), problem.coarse(problem.fields, 8, 8, steps))


def solved_exactly(kind: str) -> Problem:
    """Fields that are linear, in numbers of few bits, solve both equations without any rounding."""
    y, x = np.mgrid[:18, :18]
    plane = (x / 64 + y / 32).astype(np.float32)
    if kind == "poisson":
        return Poisson(plane[None], np.stack([plane, plane, np.ones(plane.shape, np.float32)]))
    fields = np.stack([plane / 4, 0.25 - plane / 8]).astype(np.float32)
    return ShapeFromShading(fields, ShapeFromShading.brightness(fields)[None])


@pytest.mark.parametrize("kind", PTX)
@pytest.mark.parametrize("exchange", ("none", "up-down", "four-way", "combined"))
def test_a_field_that_solves_the_equations_stays(kind: str, exchange: str) -> None:
    problem = solved_exactly(kind)
    own = session(problem, Scheme(exchange, "square", 9, 1 if exchange == "none" else 4, 32, exchange == "none"))
    own.launch()
    assert np.array_equal(own.fields(), problem.fields)


def test_the_direct_solution_solves() -> None:
    problem = poisson(24, 16, 3)
    assert problem.residual(problem.solution()) < 1e-12
    one_free = np.zeros((6, 7), np.float32)
    one_free[2, 3] = 1
    single = poisson(4, 5, 3, one_free)
    assert single.solution()[0, 2, 3] == pytest.approx(float(single.step(single.fields)[0, 2, 3]), abs=1e-7)


# ----------------------------------------------------------------------------------------------------------- same place


def near(problem: Problem, fields: np.ndarray, epsilon: float) -> None:
    assert problem.residual(fields) < epsilon
    if isinstance(problem, Poisson):
        free = problem.constants[2, 1:-1, 1:-1] != 0
        norm = _eliminate(free, np.ones(free.shape)).max()  # of the inverse: no entry of it is negative
        assert np.abs(fields - problem.solution()).max() <= norm * epsilon


@pytest.mark.parametrize("make", KINDS)
@pytest.mark.parametrize("exchange, order", SCHEMES)
def test_all_schemes_end_at_the_same_place(make, exchange: str, order: str) -> None:
    problem, epsilon = make(24, 16, 4), 1e-4
    own = session(problem, Scheme(exchange, order, 10, 4, 32), compiled=exchange != "none")
    solved = solve(own, epsilon, 20_000)
    assert solved.converged
    near(problem, solved.fields, epsilon)


@pytest.mark.long
@pytest.mark.parametrize("interval", partly((1, 2, 4, 10), 4))
@pytest.mark.parametrize("communicating", partly((0, 32, 64), 3))
def test_all_intervals_and_threads_end_at_the_same_place(interval: int, communicating: int) -> None:
    problem, epsilon = poisson(24, 16, 5), 1e-4
    for exchange in ("up-down", "combined"):
        scheme = Scheme(exchange, "square", 11, interval, communicating)  # 11: the last phase is shorter
        solved = solve(session(problem, scheme, compiled=False), epsilon, 20_000)
        assert solved.converged
        near(problem, solved.fields, epsilon)


# ------------------------------------------------------------------------------------------------------------- progress


@pytest.mark.long
@pytest.mark.parametrize("seed", range(6))
def test_schedules_converge(seed: int) -> None:
    """``python -m lockstep.verif.solvers`` tries 300."""
    assert not (wrong := solvers.run(seed)), wrong


@pytest.mark.long
def test_another_count_of_phases_is_a_deadlock_with_lines(tmp_path: Path) -> None:
    """The communicating threads go through one phase more than the computing ones wait for."""
    for name in ("solver.cuh", "poisson"):
        copy = shutil.copytree if (FOLDER / name).is_dir() else shutil.copy
        copy(FOLDER / name, tmp_path / name)
    text = (tmp_path / "solver.cuh").read_text(encoding="utf-8")
    planted = text.replace("phase = phases(steps); phase > 0", "phase = phases(steps); phase > 1")
    assert planted != text
    (tmp_path / "solver.cuh").write_text(planted, encoding="utf-8")
    gpu = Gpu("gtx580")
    own = Session(
        gpu,
        gpu.load(tmp_path / "poisson" / "poisson.cu"),
        poisson(16, 16, 1),
        SMALL,
        Scheme("combined", "square", 8, 4, 32),
    )
    with pytest.raises(KernelFault, match="barrier deadlock") as fault:
        own.launch()
    assert fault.value.source


# ---------------------------------------------------------------------------------------------------------------- shape


@pytest.mark.parametrize(
    ("width", "height", "threads", "communicating", "scratchpad", "boundary"),
    ((32, 60, 1024, 64, 42_160, 184), (32, 20, 352, 32, 14_960, 104)),
)
@pytest.mark.parametrize("kind", PTX)
def test_what_a_cta_takes_is_the_thesis_s(
    kind: str, width: int, height: int, threads: int, communicating: int, scratchpad: int, boundary: int
) -> None:
    module = Gpu("gtx580").load(FOLDER / FILES[kind])
    for exchange in ("none", "up-down", "four-way", "combined"):
        function = Scheme(exchange, "square", 4, 4, communicating).function(kind, Blocks(width, height, 1))
        kernel = module.kernel(function)
        assert kernel.shared_bytes == scratchpad
        assert kernel.registers <= 32
    assert width * height // 2 + communicating == threads
    assert 2 * (width + height) == boundary


def test_orders() -> None:
    """Stripes go down, squares are as wide and high as what is resident, ragged at the edge."""
    assert order_of("stripe", (3, 2), 4, 1).tolist() == [0, 2, 4, 1, 3, 5]
    assert order_of("linear", (3, 2), 4, 1).tolist() == list(range(6))
    assert order_of("square", (3, 3), 4, 1).tolist() == [0, 1, 3, 4, 2, 5, 6, 7, 8]
    wide = order_of("square", (24, 15), 30, 1)
    assert {(block % 15, block // 15) for block in wide[:30].tolist()} == {(x, y) for x in range(5) for y in range(6)}
    for order in ("stripe", "square", "linear", "random"):
        assert sorted(order_of(order, (8, 15), 16, 2).tolist()) == list(range(120))
    assert order_of("random", (8, 15), 16, 2).tolist() != order_of("random", (8, 15), 16, 3).tolist()


# ------------------------------------------------------------------------------------------------------------ bad input


def test_what_blocks_do_not_divide_is_refused() -> None:
    with pytest.raises(UsageError, match="20 x 24 nodes: blocks of 8 x 8 do not fill them"):
        session(poisson(24, 20, 1), Scheme("combined", "square", 8, 4, 32))


def test_an_epsilon_below_what_single_precision_reaches_is_refused() -> None:
    problem = poisson(16, 16, 1)
    own = session(problem, Scheme("combined", "square", 8, 4, 32))
    for epsilon in (smallest(problem) * 0.99, 0.0, float("nan")):
        with pytest.raises(UsageError, match=r"epsilon = .*: must be at least 9\.5e-07"):
            solve(own, epsilon)


def test_a_limit_of_steps_that_is_reached_is_no_success() -> None:
    solved = solve(session(poisson(16, 16, 1), Scheme("combined", "square", 8, 4, 32)), 1e-5, 20)
    assert (solved.converged, solved.steps, len(solved.residuals)) == (False, 24, 3)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"exchange": "five-way"}, "exchange = 'five-way': must be one of none"),
        ({"order": "round"}, "order = 'round'"),
        ({"steps": 0}, "steps = 0: must be at least 1"),
        ({"communicating": 33}, "communicating = 33: must be a multiple of 32"),
        ({"exchange": "combined", "jacobi": True}, "jacobi: nothing can be exchanged"),
    ],
)
def test_schemes_that_cannot_be_are_refused(given, message: str) -> None:
    with pytest.raises(UsageError, match=message):
        Scheme(**given)
