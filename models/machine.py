"""The records of a GPU's golden model, and the resets that a run begins with.

How grids begin and end in a run is in ``models/session.py``, what is computed in each cycle in ``models/run.py``.
"""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from lockstep.models import cache, laws, tenants
from lockstep.models import jit as J
from lockstep.models.core.sm import ZEROED
from lockstep.models.core.state import LAUNCH, SM
from lockstep.models.dispatching import RUN
from lockstep.models.execution.isa import CODE_BASE, CODE_END, CONTEXT, GRANULE, Flag, Group
from lockstep.models.launch import Kernel
from lockstep.models.memory import system
from lockstep.models.observe import Observer
from lockstep.models.observe.intervals import Recorder
from lockstep.models.occupancy import round_up
from lockstep.models.run import begin, enter, run, settle
from lockstep.models.storage import Storage, predicates
from lockstep.models.team import Team
from lockstep.models.tenants import Instance
from lockstep.spec import registry
from lockstep.spec.frame import FRAME
from lockstep.spec.mechanism import Mechanism
from lockstep.spec.parameters import MAX_GRIDS, Gpu, config


def _one(kind: np.dtype) -> np.ndarray:
    return np.zeros(1, kind)[0:1].reshape(())


@contextmanager
def _second_compiler() -> Iterator[None]:
    """While this process compiles the run loop, let another one compile the executing functions into the cache."""
    functions = Path(__file__).parent / "execution" / "execute.py"
    done = cache.folder() / "compiled" / cache.stamp(functions)
    if not J.COMPILED or done.exists():
        yield
        return
    ends = "from lockstep.spec.processes import end_with; end_with(int(sys.argv[1]))"
    command = [sys.executable, "-c", f"import sys; {ends}; import lockstep.models.execution.execute", str(os.getpid())]
    child = subprocess.Popen(command, stderr=subprocess.DEVNULL)
    try:
        yield
        child.wait()  # should it fail, this process compiles them itself
    finally:
        child.kill()
    with cache.costs_only_time():
        done.parent.mkdir(exist_ok=True)
        done.touch()


class Model:
    """The records of one GPU, and how they are reset. ``skip`` = False steps every SM in every cycle."""

    def __init__(self, gpu: Gpu, skip: bool = True) -> None:
        self.gpu = gpu
        self.skip = skip
        self.grids = 0
        self.memory = system.memory_create(gpu)
        self.sms = np.zeros(gpu.core.sms, SM)
        self._settings = config(gpu)[0:1].reshape(())
        self.context = _one(CONTEXT)
        self.launch_record = _one(LAUNCH)
        self.state = _one(RUN)
        self.team = Team(gpu)
        self.storage = [Storage(gpu, index) for index in range(MAX_GRIDS)]
        self.predicates = predicates(gpu)
        self._code_places: dict[bytes, int] = {}
        self._code_end = CODE_BASE
        self.on_launch: Callable[[], None] | None = None  # called when all has been reset
        self.given: dict[str, np.ndarray] = {}  # tables of the user's for tenants, in launches that begin
        chosen = registry.configuration(gpu)
        with _second_compiler():
            self.tenants = [tenant for mechanism in chosen for tenant in tenants.tenants(mechanism, gpu)]
            for tenant in self.tenants:
                tenant.bind(self.sms, self.state)
            self.raw = laws.raw_counts(self.state, self.sms, self.memory, self.tenants)
            """The raw counts, as they stand in the records."""
            self.shares = laws.shares(self.sms, self.memory)
            """What grid 1 has of them."""
            self.rows = Recorder(self.raw, self._gauges(), self.shares)
            self._compile()
        from lockstep.models.execution.execute import SLOTS
        from lockstep.models.execution.printf import Printer

        self.slots: Mapping[Group, Any] = SLOTS
        self.guide: Any = None  # a slot that sees each issue (``models/traces``)
        self.trace = 0  # host address that the slots find in the context
        self.printer = Printer(self.context)
        brought = [(mechanism, instance) for mechanism in chosen for instance in self._instances(mechanism)]
        self.instances = [instance for _, instance in brought]
        # Those of the frame and of paths are reset by ``begin``.
        self._reset_here = [
            one for mechanism, one in brought if mechanism is not FRAME and "path" not in mechanism.tenants
        ]
        for each in self.instances:
            each.bind_model()
        places = self.sms["frame"], self.sms["lsu"]["clients"], self.sms["tenants"]
        self._bound = [(part, part.copy()) for part in map(J.as_bytes, places)]
        self._monitors = int(self.state["monitors"])
        self._observers: dict[str, tenants.Tenant] = {}

    def _instances(self, mechanism: Mechanism) -> Iterator[Instance]:
        """The blocks that a mechanism, or the frame, brings."""
        own = [tenant for tenant in self.tenants if tenant.mechanism is mechanism]
        whole, per_sm = [tenant.whole for tenant in own], [tenant.states for tenant in own]
        if mechanism is FRAME:
            whole, per_sm = [self.state], [self.sms]
        return tenants.instances(mechanism, self.gpu, whole, per_sm)

    def _compile(self) -> None:
        """Compile the run loop, or load it from the cache, so that no launch is charged for it."""
        system.memory_launch(self.memory)
        state, sms, _, launch, settings, _, _ = self.arguments
        begin(state, sms, launch, settings)
        enter(state, launch, settings, 0)
        settle(state, sms, 0)
        run(self.team.argument, 0, *self.arguments, 0)

    @property
    def arguments(self) -> tuple[Any, Any, Any, Any, Any, Any, Any]:
        """The arguments of :func:`~lockstep.models.run.run`, but for the team and the last."""
        state, sms = J.argument(self.state), J.argument(self.sms)
        launch, settings = J.argument(self.launch_record), J.argument(self._settings)
        context, rows = J.argument(self.context), J.argument(self.rows.record)
        return state, sms, self.memory.argument, launch, settings, context, rows

    def grid(self, index: int) -> np.ndarray:
        """The record of a grid (``execution.isa.GRID``)."""
        return self.launch_record["grids"][index : index + 1].reshape(())

    def settle(self, to: int) -> None:
        """Count the SMs' cycles before ``to`` that are not counted yet; monitors see them."""
        settle(J.argument(self.state), J.argument(self.sms), to)

    def reset(self, kernel: Kernel, observers: Sequence[Observer]) -> None:
        """Reset everything that a run begins with; ``kernel`` is its first. Each step relies on those before it."""
        system.memory_launch(self.memory)
        self._reset_records()
        # Tenants read the tables of the kernel; observers stand behind the mechanisms' tenants in their stacks.
        for tenant in self.tenants:
            tenant.begin(kernel.tables, self.given)
        for observer in observers:
            self._observe(observer, kernel)
        # All resets from here on call what plays a block. Hardware is reset by ``on_launch``; until then, models play.
        if self.on_launch:
            for each in self.instances:
                each.bind_model()
        for each in self._reset_here:
            each.reset()
        # SMs are reset with their paths and schedulers, and remember whether anybody listens to their events.
        state, sms, _, launch, settings, _, _ = self.arguments
        begin(state, sms, launch, settings)
        # Every SM is stepped once in the first cycle; hardware in it is then stepped in every one.
        self.memory.record["sm_wake"][0, : len(self.sms)] = self.gpu.launch.overhead
        if self.on_launch:
            self.on_launch()

    def _reset_records(self) -> None:
        """The SMs' records and that of the run, with the tenants of the configuration alone."""
        J.as_bytes(self.sms)[:, :ZEROED] = 0
        for part, bound in self._bound:
            part[...] = bound
        self._place_values()
        state = self.state
        for name in RUN.names or ():
            if name not in ("cta_dispatcher", "monitor", "placement"):
                state[name] = np.zeros((), RUN[name])
        state["monitors"] = self._monitors
        state["monitor"]["wake"] = 0
        state["sm"] = self.sms.ctypes.data
        state["sms"], state["skip"] = self.gpu.core.sms, self.skip
        state["dispatcher_next"] = state["dispatcher_wake"] = state["now"] = self.gpu.launch.overhead

    def _place_values(self) -> None:
        """Tell the SMs where the values of lines are; 0 if they have none."""
        values, lsu = self.memory.values, self.sms["lsu"]
        for record, name, of_lines in (
            (lsu["l1"], "contents", "lines"),
            (lsu["l1"], "brought", "brought"),
            (lsu, "carried", "carried"),
            (lsu, "answers", "answers"),
        ):
            array = getattr(values, of_lines, None)
            record[name] = 0 if array is None else array.ctypes.data + np.arange(len(self.sms)) * array[0].nbytes

    def _observe(self, observer: Observer, kernel: Kernel) -> None:
        """Let an observer fill its frame slots for the run that begins."""
        name = observer.declaration.name
        if name not in self._observers:
            [self._observers[name]] = tenants.tenants(observer.declaration, self.gpu)
        tenant = self._observers[name]
        tenant.bind(self.sms, self.state)
        tenant.begin(kernel.tables, {})
        observer.begin(tenant.states)

    def place_code(self, code: np.ndarray, words: np.ndarray) -> int:
        """The device address of a kernel's instructions and metadata words, one kernel behind the other.

        What a launch puts into operands from the constant bank is no part of the code.
        """
        code = code.copy()
        code["imm"][(code["flags"] & Flag.CONSTANT) != 0] = 0
        digest = hashlib.sha256(code.tobytes() + words.tobytes()).digest()
        if digest not in self._code_places:
            size = round_up((len(code) + int(words[-1:].sum())) * self.gpu.instruction_cache.instruction_bytes, GRANULE)
            if self._code_end + size > CODE_END:
                self._code_places.clear()
                self._code_end = CODE_BASE
                if not self.state["running"]:
                    self.cool()
            place = self._code_end
            self._code_end += size  # first: an interrupt leaves a gap at most
            self._code_places[digest] = place
        return self._code_places[digest]

    def cool(self) -> None:
        """Let no cache hold anything, and nothing be on its way."""
        system.memory_reset(self.memory)
        self.sms["code"]["lines"] = 0

    @property
    def printed(self) -> str:
        """What the last launch in the first place has printed, or the one under way has so far."""
        return self.printer.text(self.grid(0))

    def _gauges(self) -> dict[str, np.ndarray]:
        return {name: value for tenant in self.tenants for name, value in tenant.gauges.items()}
