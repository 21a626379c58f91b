"""What the chapter about solvers needs: times from the cycle model, step counts from the emulator, both side by side.

A result is kept by what it depends on, so that a chapter that was interrupted goes on where it was.
"""

from __future__ import annotations

import hashlib
import json
import multiprocessing
from collections.abc import Mapping
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from lockstep.models import cache
from lockstep.sim.device.gpu import Gpu
from lockstep.sim.device.module import Module
from lockstep.sim.kernels import FOLDER
from lockstep.sim.kernels.breadth_first import graph, search
from lockstep.sim.kernels.problems import Problem, poisson, shape_from_shading
from lockstep.sim.kernels.solvers import Scheme, Session, Solved, solve
from lockstep.sim.study.job import Result
from lockstep.sim.study.pde import ages
from lockstep.sim.study.pde.emulator import Emulated, emulate
from lockstep.sim.study.pde.machines import GTX580, MACHINES, Machine
from lockstep.sim.study.sources import code_version
from lockstep.sim.study.sweep.schedulers import cores
from lockstep.sim.watch import Watch

__all__ = ["AGED", "EPSILONS", "Aging", "Agreement", "Emulation", "Image", "Search", "Solving", "Task", "Thresholds",
           "Timing", "problem_of", "run", "session_of"]  # fmt: skip

POISSON, SHADING = "Poisson", "3DShape"  # as the thesis calls them
AGED = "ages"
FILES = {
    POISSON: FOLDER / "poisson" / "poisson.cu",
    SHADING: FOLDER / "shape-from-shading" / "shading.cu",
    AGED: ages.SOURCE,
}
EPSILONS = {POISSON: 2e-4, SHADING: 1e-5}
"""One for all schemes; the fields are between 0 and about 1."""

MOST_STEPS = 200_000
COUNTED = ("l2.accesses", "l2.miss_rate", "lsu.requests_per_instruction", "dram.read_bytes", "sm.util")
WAY = 100  # residuals of an emulation that are kept, at most


def problem_of(name: str, machine: Machine, extent: tuple[int, int]) -> Problem:
    if name == AGED:
        return ages.ages(*extent, machine.blocks.height, machine.blocks.width)
    return poisson(*extent, 1) if name == POISSON else shape_from_shading(*extent, 1)


def session_of(problem: str, machine: Machine, extent: tuple[int, int], scheme: Scheme, sms: int = 0) -> Session:
    """The problem on the model of a GPU, of fewer SMs if ``sms`` says so."""
    settings = {**machine.settings, **({"core.sms": sms} if sms else {})}
    gpu = Gpu(machine.gpu, settings=settings)
    blocks = replace(machine.blocks, resident=sms) if sms else machine.blocks
    module: Module = gpu.load(FILES[problem])
    return Session(gpu, module, problem_of(problem, machine, extent), blocks, scheme)


def first_step(session: Session) -> None:
    """A launch of one step, which brings what is used often into the L2."""
    asked = session.scheme
    session.scheme = replace(asked, steps=1)
    session.launch()
    session.scheme = asked


@dataclass(frozen=True)
class Task:
    """A part of the chapter: ``problem`` on ``machine``."""

    problem: str
    machine: str
    scheme: Scheme
    extent: tuple[int, int] = (480, 480)

    MODEL: ClassVar[bool] = False  # whether the result depends on the cycle model

    def result(self) -> Result:
        raise NotImplementedError

    def on_model(self, sms: int = 0) -> Session:
        """On the model of the GPU, of fewer SMs if ``sms`` says so."""
        return session_of(self.problem, MACHINES[self.machine], self.extent, self.scheme, sms)

    def emulated(self, epsilon: float, most_steps: int = MOST_STEPS) -> tuple[Problem, Emulated]:
        machine = MACHINES[self.machine]
        problem = problem_of(self.problem, machine, self.extent)
        return problem, emulate(problem, machine.blocks, self.scheme, epsilon, most_steps)

    @property
    def key(self) -> str:
        files = [FOLDER / "problems.py", FOLDER / "solvers.py", *sorted(Path(__file__).parent.glob("*.py"))]
        if self.MODEL:
            files += [FOLDER / "solver.cuh", FILES[self.problem]]
        digest = hashlib.sha256(f"{self!r} {code_version() if self.MODEL else np.__version__}".encode())
        for file in files:
            digest.update(file.read_bytes())
        return digest.hexdigest()


@dataclass(frozen=True)
class Timing(Task):
    """Cycles of a launch in the model, after one of a step."""

    MODEL: ClassVar[bool] = True

    def result(self) -> Result:
        session = self.on_model()
        first_step(session)
        run = session.launch()
        return {"cycles": run.cycles, "instructions": run.warp_instructions,
                **{name: float(run.stats[name]) for name in COUNTED}}  # fmt: skip


@dataclass(frozen=True)
class Emulation(Task):
    """Steps until the residual is below the problem's epsilon, in the emulator."""

    def result(self) -> Result:
        problem, found = self.emulated(EPSILONS[self.problem])
        every = max(1, len(found.residuals) // WAY)
        return {"steps": found.steps, "converged": found.converged, "seconds": found.seconds,
                "residual": problem.residual(found.fields), "way": found.residuals[::every],
                "way_steps": found.steps // len(found.residuals) * every}  # fmt: skip


@dataclass(frozen=True)
class Thresholds(Task):
    """Steps in the emulator until the residual is below each of ``epsilons``, which fall."""

    epsilons: tuple[float, ...] = ()
    most_steps: int = 0

    def result(self) -> Result:
        _, found = self.emulated(self.epsilons[-1], self.most_steps)
        tested = found.steps // len(found.residuals)
        first = (next((k for k, left in enumerate(found.residuals, 1) if left < each), None) for each in self.epsilons)
        return {"steps": [k and k * tested for k in first]}


@dataclass(frozen=True)
class Solving(Task):
    """Steps in the model, on few SMs, until the residual is below ``epsilon``."""

    sms: int = 2
    epsilon: float = 1e-3
    MODEL: ClassVar[bool] = True

    def result(self) -> Result:
        session = self.on_model(self.sms)
        solved: Solved = solve(session, self.epsilon, MOST_STEPS)
        stale = sum(int(run.stats["l1.stale_hits"]) for run in solved.runs)
        return {"steps": solved.steps, "converged": solved.converged, "cycles": solved.cycles, "stale": stale}


@dataclass(frozen=True)
class Aging(Task):
    """How old the values are that CTAs read of their neighbours, in a launch of the model that follows another."""

    MODEL: ClassVar[bool] = True

    def result(self) -> Result:
        session = self.on_model()
        first_step(session)
        before = ages.seen(session.fields())
        run = session.launch()
        counts = ages.seen(session.fields()) - before
        return {"counts": counts.tolist(), "cycles": run.cycles, "stale": int(run.stats["l1.stale_hits"])}


@dataclass(frozen=True)
class Agreement(Task):
    """The model, on few SMs, until the residual is below ``epsilon``, and the emulator with as many CTAs at a time."""

    sms: int = 2
    epsilon: float = 1e-3
    MODEL: ClassVar[bool] = True

    def result(self) -> Result:
        session = self.on_model(self.sms)
        solved: Solved = solve(session, self.epsilon, MOST_STEPS)
        found = emulate(session.problem, session.blocks, self.scheme, self.epsilon, MOST_STEPS)
        apart = np.abs(solved.fields - found.fields).max()
        return {"model": solved.steps, "emulator": found.steps, "converged": solved.converged, "cycles": solved.cycles,
                "apart": float(apart), "residual": solved.residuals[-1]}  # fmt: skip


@dataclass(frozen=True)
class Image(Task):
    """What the emulator makes of the images, every ``coarser``-th pixel."""

    coarser: int = 2

    def result(self) -> Result:
        problem, solved = self.emulated(EPSILONS[self.problem])
        parts = np.s_[:, 1 : -1 : self.coarser, 1 : -1 : self.coarser]
        images = {"constants": problem.constants[parts], "fields": solved.fields[parts]}
        return {name: np.round(planes.astype(float), 3).tolist() for name, planes in images.items()}


@dataclass(frozen=True)
class Search:
    """Breadth-first search by one CTA, in the model: cycles with barriers, and with a launch for each level."""

    degree: float
    vertices: int = 3072

    @property
    def key(self) -> str:
        files = [FOLDER / "breadth_first.py", FOLDER / "bfs-levels" / "bfs_levels.ptx", Path(__file__)]
        digest = hashlib.sha256(f"{self!r} {code_version()}".encode())
        for file in files:
            digest.update(file.read_bytes())
        return digest.hexdigest()

    def result(self) -> Result:
        data = graph(self.vertices, self.degree, 1)
        found = {}
        for barriers in (True, False):
            gpu = Gpu(GTX580.gpu, settings=dict(GTX580.settings))
            module = gpu.load(FOLDER / "bfs-levels" / "bfs_levels.ptx")
            cost, runs = search(gpu, module, data, barriers)
            found["barriers" if barriers else "launches"] = sum(run.cycles for run in runs)
        return {**found, "levels": len(runs), "reached": int((cost >= 0).sum()), "edges": len(data["target"])}


def _made(task: Task | Search) -> Result:
    found: Result = json.loads(cache.kept(f"pde/{task.key}", lambda: json.dumps(task.result()).encode()))
    return found


def run(tasks: Mapping[str, Any], watch: Watch, processes: int | None = None) -> dict[str, Result]:
    """The results by the tasks' names, made in several processes; the longest begin first."""
    watch.phase("solvers: times from the model, step counts from the emulator")
    found: dict[str, Result] = {}
    count = processes or cores()
    if count == 1:
        for name, task in tasks.items():
            found[name] = _made(task)
            watch.runs(len(found), len(tasks), 0)
        return found
    with ProcessPoolExecutor(count, multiprocessing.get_context("spawn")) as pool:
        futures = {pool.submit(_made, task): name for name, task in tasks.items()}
        try:
            for future in as_completed(futures):
                found[futures[future]] = future.result()
                watch.runs(len(found), len(tasks), 0)
        except BaseException:
            for process in list((pool._processes or {}).values()):
                process.terminate()
            pool.shutdown(wait=False, cancel_futures=True)
            raise
    return {name: found[name] for name in tasks}
