"""RTL bound into a machine: who plays which block on which SM, and the first difference.

In *replace* the RTL's functions take the model's place. In *shadow* the model drives the run, and the RTL gets the same
inputs in every cycle; the first output that differs ends the run loop.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from lockstep.models.jit import COMPILED
from lockstep.rtl.registry import select, selectable
from lockstep.sim.cosim import build, library
from lockstep.sim.cosim.replay import SIDES, Differing, Replay, differing, recorded
from lockstep.sim.errors import UsageError
from lockstep.spec.parameters import Gpu
from lockstep.spec.registry import MECHANISMS
from lockstep.spec.words import closest

MODES = ("shadow", "replace")
GLOBAL = -1  # the SM of a block that there is once


class Instance(Protocol):
    """A block in a machine's records. ``record`` is ``{binding, state, io}`` (``models.blocks.instance``)."""

    @property
    def block(self) -> str: ...

    @property
    def parameters(self) -> Mapping[str, int]: ...

    @property
    def sm(self) -> int:
        """-1: there is one for the whole GPU."""

    @property
    def index(self) -> int:
        """Which of several in an SM."""

    @property
    def inside(self) -> str:
        """The joined unit that it is part of."""

    @property
    def record(self) -> np.ndarray: ...


class Machine(Protocol):
    """The part of ``models.gpu.Machine`` that a session needs."""

    on_launch: Callable[[], None] | None  # called at every launch, when all has been reset

    @property
    def gpu(self) -> Gpu: ...

    @property
    def instances(self) -> Sequence[Instance]: ...


class Mismatch(RuntimeError):
    """The model and the RTL differ: raised where the run loop cannot be asked to stop."""


def named(text: str, there: Iterable[str], joined: Collection[str] = ()) -> set[str]:
    """The blocks that ``--rtl`` means: blocks, areas, mechanisms, or all (``rtl.registry.select``).

    All but a block's name mean the finest blocks: one of ``joined``, a unit that joins others, is meant by its own name
    alone.

    Raises
    ------
    UsageError
        for a name of nothing that is ``there``.
    """
    there = sorted(there)
    fine = [block for block in there if block not in joined]
    meant: set[str] = set()
    for name in filter(None, text.split(",")):
        blocks = select(name, fine) or select(name, there)
        if not blocks:
            raise UsageError(f"--rtl {name}: not in this configuration{_hint(name, there)}")
        meant |= {*blocks}
    if not meant:
        raise UsageError(f"--rtl {text}: does not name a block")
    return meant


def _hint(name: str, there: Sequence[str]) -> str:
    """The mechanisms that would bring what a name means; or what the configuration has."""
    bringing = [each.name for each in MECHANISMS.values() if select(name, each.blocks)]
    if bringing:
        return f"; it comes with --with {' or '.join(bringing)}"
    return f"{closest(name, selectable(there))}, which has {', '.join(there) or 'none'}"


def chosen(text: str, instances: Sequence[Instance], sms: Sequence[int] | None = None) -> list[Instance]:
    """The instances that ``--rtl`` and ``--sm`` mean. Raises :class:`UsageError` for what is not there."""
    meant = named(text, {instance.block for instance in instances}, {instance.inside for instance in instances})
    found = [instance for instance in instances if instance.block in meant]
    if sms is not None:
        present = {instance.sm for instance in instances} - {GLOBAL}
        if absent := set(sms) - present:
            raise UsageError(f"--sm {min(absent)}: must be 0 to {max(present, default=GLOBAL)}")
        found = [instance for instance in found if instance.sm in sms]
    return found


@dataclass
class Bound:
    """An instance and its RTL."""

    instance: Instance
    rtl: library.Instance
    model: np.ndarray  # its binding to the model
    before: int = 0  # cycles of the launches before this one

    @property
    def where(self) -> str:
        place = "" if self.instance.sm == GLOBAL else f", SM {self.instance.sm}"
        return f"{self.instance.block}[{self.instance.index}]{place}"


@dataclass(frozen=True)
class Difference:
    """The first difference.

    ``cycle`` counts the block's own since it was made, ``core_cycle`` those of the launch; the values are seen in it.
    """

    block: str
    parameters: dict[str, int]
    sm: int
    index: int
    launch: int
    core_cycle: int
    cycle: int
    side: str  # "o": registered outputs, seen in the cycle after the edge; "c": combinational ones
    ports: tuple[Differing, ...]


def _kind(instance: Instance) -> tuple[str, tuple[tuple[str, int], ...]]:
    """What instances have in common that are the same hardware."""
    return instance.block, tuple(sorted(instance.parameters.items()))


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
        if mode == "replace" and (both := {i.inside for i in instances} & {i.block for i in instances}):
            raise UsageError(f"--rtl: {min(both)} and blocks inside it cannot both be replaced")
        self.mode = mode
        self.machine = machine
        self.launches = 0
        self.bound: list[Bound] = []
        first = {_kind(instance): instance for instance in instances}
        requests = [build.Request(i.block, i.parameters, (makes or {}).get(i.block)) for i in first.values()]
        libraries = dict(zip(first, library.load_all(requests), strict=True))
        for instance in instances:
            rtl = libraries[_kind(instance)].instance()
            self.bound.append(Bound(instance, rtl, instance.record["binding"].copy()))
            if record:
                rtl.record()
        machine.on_launch = self._bind

    def _bind(self) -> None:
        """Reset the RTL, compare its outputs after reset, and put it into the bindings."""
        self.launches += 1
        for one in self.bound:
            binding, model = one.instance.record["binding"], one.model
            one.before = one.rtl.steps
            one.rtl.golden(int(model["step"]), int(model["comb"]), int(model["handle"]))
            one.rtl.shadow_reset(one.instance.record["io"])
            prefix = "shadow_" if self.mode == "shadow" else ""
            for name in ("step", "comb"):
                if int(model[name]):
                    binding[name] = one.rtl.library.function(prefix + name)
            binding["idle"] = one.rtl.library.function(prefix + "idle")
            binding["skip"] = one.rtl.library.function("skip")
            binding["handle"] = one.rtl.handle
        if found := self.difference:
            raise Mismatch(f"{found.block}: outputs after reset differ")

    @property
    def blocks(self) -> list[str]:
        return sorted({one.instance.block for one in self.bound})

    @property
    def steps(self) -> int:
        """Cycles of blocks that the RTL was stepped in."""
        return sum(one.rtl.steps for one in self.bound)

    @property
    def sms(self) -> int:
        """SMs that have RTL in them; a block that there is once counts as one if there are no others."""
        return len({one.instance.sm for one in self.bound} - {GLOBAL}) or 1

    @property
    def difference(self) -> Difference | None:
        """The first difference, if there has been one."""
        found = [self._difference(one) for one in self.bound if one.rtl.difference]
        return min(found, key=lambda difference: (difference.core_cycle, difference.sm), default=None)

    def _difference(self, one: Bound) -> Difference:
        instance, side = one.instance, SIDES[one.rtl.difference]
        ports = differing(np.asarray(instance.record["io"]), one.rtl.outputs, side)
        core_cycle = self.machine.gpu.launch.overhead + one.rtl.steps - one.before
        where = instance.sm, instance.index, self.launches - 1, core_cycle, one.rtl.steps
        return Difference(instance.block, dict(instance.parameters), *where, side, ports)

    @property
    def failure(self) -> str:
        """The message of an RTL that could not go on; empty if there is none."""
        return next((f"{one.where}: {one.rtl.library.failed}" for one in self.bound if one.rtl.library.failed), "")

    def replay(self) -> Replay:
        """The ports of the instance that differs, or else of the first one."""
        return self._replay(next((one for one in self.bound if one.rtl.difference), self.bound[0]))

    def replays(self) -> Iterator[Replay]:
        """The ports of every instance."""
        return map(self._replay, self.bound)

    def _replay(self, one: Bound) -> Replay:
        instance, side = one.instance, SIDES.get(one.rtl.difference, "")
        core_cycle = self._difference(one).core_cycle if side else -1
        where = instance.sm, instance.index, core_cycle
        return Replay(instance.block, dict(instance.parameters), recorded(one.rtl), side, *where)

    def close(self) -> None:
        """Give the blocks back to their models."""
        self.machine.on_launch = None
        for one in self.bound:
            one.instance.record["binding"] = one.model
            one.rtl.close()
