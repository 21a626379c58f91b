"""RTL bound into a machine: who plays which block on which SM, and the first difference.

In *replace* the RTL's functions take the model's place. In *shadow* the model drives the run, and the RTL gets the same
inputs in every cycle; the first output that differs ends the run loop.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from lockstep.models.jit import COMPILED
from lockstep.sim.cosim import build, library
from lockstep.sim.cosim.replay import SIDES, Differing, Replay, differing, recorded
from lockstep.sim.errors import UsageError

MODES = ("shadow", "replace")
GLOBAL = -1  # the SM of a block that there is once
ALL = "all"


class Instance(Protocol):
    """A block in a machine's records. ``record`` is ``{binding, state, io}`` (``models.blocks.instance``)."""

    block: str
    parameters: Mapping[str, int]
    sm: int  # -1: there is one for the whole GPU
    index: int  # which of several in an SM
    record: np.ndarray


class Machine(Protocol):
    """What a session needs of ``models.gpu.Machine``."""

    def instances(self) -> Sequence[Instance]: ...

    @property
    def now(self) -> int: ...

    on_reset: Callable[[], None] | None
    """Called at every launch, when the blocks have been reset and are bound to their models."""


class Mismatch(Exception):
    """The model and the RTL differ: raised in a launch where the run loop cannot be asked to stop."""


def chosen(text: str, instances: Sequence[Instance], sms: Sequence[int] | None = None) -> list[Instance]:
    """The instances that ``--rtl`` and ``--sm`` mean: blocks, areas, or all.

    Raises
    ------
    UsageError
        for a name that the configuration does not have, or an SM.
    """
    there = sorted({instance.block for instance in instances})
    names = [name for name in text.split(",") if name]
    for name in names:
        if name != ALL and not any(_means(name, block) for block in there):
            raise UsageError(f"--rtl {name}: not in this configuration, which has {', '.join(there) or 'none'}")
    found = [i for i in instances if any(name == ALL or _means(name, i.block) for name in names)]
    if sms is not None:
        present = {instance.sm for instance in instances} - {GLOBAL}
        if absent := set(sms) - present:
            raise UsageError(f"--sm {min(absent)}: there are SMs 0 to {max(present, default=GLOBAL)}")
        found = [instance for instance in found if instance.sm in sms]
    if not found:
        raise UsageError(f"--rtl {text}: names no block")
    return found


def _means(name: str, block: str) -> bool:
    return name == block or block.startswith(f"{name}.")


@dataclass
class Bound:
    """An instance and its RTL."""

    instance: Instance
    rtl: library.Instance

    @property
    def where(self) -> str:
        place = "" if self.instance.sm == GLOBAL else f", SM {self.instance.sm}"
        return f"{self.instance.block}[{self.instance.index}]{place}"


@dataclass(frozen=True)
class Difference:
    """The first difference. ``cycle`` counts the block's own since it was made; the values are seen in it."""

    block: str
    parameters: dict[str, int]
    sm: int
    index: int
    cycle: int
    side: str  # "o": registered outputs, seen in the cycle after the edge; "c": combinational ones
    ports: tuple[Differing, ...]


class Session:
    """The RTL of some instances of a machine, from its making to :meth:`close`.

    ``makes`` gives other components than the blocks' own, by block: with a fault in them, for tests. ``record`` keeps
    the ports of all instances over time.
    """

    def __init__(
        self,
        machine: Machine,
        instances: Sequence[Instance],
        mode: str = "shadow",
        makes: Mapping[str, build.Make] | None = None,
        record: bool = False,
    ) -> None:
        if not COMPILED:
            raise UsageError("RTL runs with the compiled model only: unset NUMBA_DISABLE_JIT")
        self.mode = mode
        self.bound: list[Bound] = []
        self.started = 0.0
        self.in_reset = False  # where the difference was
        for instance in instances:
            make = (makes or {}).get(instance.block)
            rtl = library.load(instance.block, instance.parameters, make).instance()
            self.bound.append(Bound(instance, rtl))
            if record:
                rtl.record()
        machine.on_reset = self._bind

    def _bind(self) -> None:
        """Reset the RTL and put it into the bindings, which the machine has just set to the models."""
        self.started = self.started or time.perf_counter()
        for one in self.bound:
            binding, io = one.instance.record["binding"], one.instance.record["io"]
            if int(binding["handle"]) != one.rtl.handle:
                one.rtl.golden(int(binding["step"]), int(binding["comb"]), int(binding["handle"]))
            one.rtl.shadow_reset(io)
            prefix = "shadow_" if self.mode == "shadow" else ""
            for name in ("step", "comb"):
                if int(binding[name]):
                    binding[name] = one.rtl.library.function(prefix + name)
            for name in ("idle", "skip"):
                binding[name] = one.rtl.library.function(name)
            binding["handle"] = one.rtl.handle
        if found := self.difference:
            self.in_reset = True
            raise Mismatch(f"{found.block}: outputs after reset differ")

    @property
    def seconds(self) -> float:
        """Since the first launch."""
        return time.perf_counter() - self.started

    @property
    def blocks(self) -> list[str]:
        return sorted({one.instance.block for one in self.bound})

    @property
    def steps(self) -> int:
        """Cycles of blocks that the RTL was stepped in."""
        return sum(one.rtl.steps for one in self.bound)

    @property
    def sm_cycles(self) -> int:
        """SMs times core cycles that had RTL in them."""
        cycles: dict[int, int] = {}
        for one in self.bound:
            cycles[one.instance.sm] = max(cycles.get(one.instance.sm, 0), one.rtl.steps)
        return sum(cycles.values())

    @property
    def difference(self) -> Difference | None:
        """The first difference, if there has been one."""
        for one in self.bound:
            if one.rtl.difference:
                instance, side = one.instance, SIDES[one.rtl.difference]
                ports = differing(np.asarray(instance.record["io"]), one.rtl.outputs, side)
                return Difference(
                    instance.block, dict(instance.parameters), instance.sm, instance.index, one.rtl.steps, side, ports
                )
        return None

    @property
    def failure(self) -> str:
        """What an RTL said when it could not go on; empty if none did."""
        return next((f"{one.where}: {one.rtl.library.failed}" for one in self.bound if one.rtl.library.failed), "")

    def replay(self, core_cycle: int = -1) -> Replay:
        """The ports of the instance that differs, or else of the first one."""
        one = next((one for one in self.bound if one.rtl.difference), self.bound[0])
        last = SIDES.get(one.rtl.difference, "")
        arrays = recorded(one.rtl)
        instance = one.instance
        return Replay(
            instance.block, dict(instance.parameters), arrays, last, instance.sm, instance.index, core_cycle
        )

    def close(self) -> None:
        for one in self.bound:
            one.rtl.close()


