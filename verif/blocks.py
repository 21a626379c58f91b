"""What the files ``bench_<block>.py`` and ``formal_<block>.py`` declare, with everything optional filled in.

A bench declares::

    BLOCK = "lsu.intra_warp_coalescer"
    CONFIGURATIONS = {"paper": {...}, "one": {...}, "odd": {...}}   # constructor arguments of the hardware
    SHAPES = ("steady", "stalled", ...)                             # shapes of the stimulus
    class Environment: ...                                          # see below
    BINS = {"two lines of one instruction": lambda parameters, i, o, c: ...}   # functional coverage

and, if need be, ``IN_KERNELS`` (bins that kernels must hit, too: :mod:`.exercised`), ``UNREACHABLE`` (bin to a
predicate on the parameters: where it cannot be hit), ``CYCLES`` per run, ``WAIVERS`` (:class:`Waiver`: code coverage
that cannot be reached), and ``protocol(m, parameters, ports)``: a value that is 1 in the cycles whose inputs are legal,
given the signals of all ports by their flat names; it may add registers to ``m``. Every configuration must hit each bin
that it can. Code coverage is measured, and must be complete, in the first configuration and in those that ``MEASURED``
names, with the seeds that each takes. ``TRANSITIONS`` are those that registers with an enumeration make. The
configuration ``odd`` is the one that is mutated.

``OWN_CODE = True``: of a unit that joins others, code coverage counts its own code alone; its parts reach theirs in
their own benches.

``GATES = True``: ``lockstep verify --level gates`` proves that synthesis keeps the block's meaning.

``i``, ``o`` and ``c`` are the records of the ports, with Python's integers. ``CYCLES`` may be an attribute of the
environment or of the module.

One configuration has the parameters that ship: those of the default GPU. What it would take too long to reach there, an
environment may ``preset`` in a simulator: a method that is called before each cycle and returns values of state by its
name, the same in the hardware and in the model's record (``request_selector.cycle`` is inside a part). In this
configuration, cycles that the model calls idle must leave the hardware's state as it is, but for registers that
``IDLE_CHANGES`` of the bench names (regular expressions). An environment may leave on ``o`` what a bin needs to know of
the cycles before, and on ``c`` when it observes.
"""

from __future__ import annotations

import importlib
import inspect
import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any, Protocol

from amaranth.hdl import Const, Module, Signal, ValueLike
from amaranth.lib import wiring

from lockstep.rtl import contract, export, registry
from lockstep.rtl.configuration import parameters as parameters_of
from lockstep.rtl.flat import FlatPort, flat_ports
from lockstep.sim.cosim import build
from lockstep.sim.device import description
from lockstep.verif import transitions

if TYPE_CHECKING:
    from lockstep.verif.formal import Proof

CYCLES = 2000
FOLDER = Path(__file__).resolve().parent

Parameters = dict[str, int]
Bin = Callable[[Parameters, Any, Any, Any], bool]


class Environment(Protocol):
    """What surrounds a block: drives its inputs within the protocol, and checks it end to end without the model."""

    def __init__(self, parameters: Parameters, shape: str, rng: random.Random) -> None: ...

    def drive(self, i: Any, o: Any) -> None:
        """Set every input of this cycle; ``o`` are the registered outputs of this cycle."""

    def observe(self, i: Any, o: Any, c: Any) -> None:
        """Look at all ports of this cycle; ``AssertionError`` if something is wrong."""

    def finish(self) -> None:
        """What must hold after the last cycle."""


@dataclass(frozen=True)
class Waiver:
    """Points of code coverage that cannot be reached: a regular expression that matches their names, and no other.

    ``where``: in which configurations, by a rule on the parameters.

    ``lockstep verify --level formal`` proves it of each (:mod:`lockstep.verif.waivers`).
    """

    points: str
    reason: str
    where: Callable[[Parameters], bool] = lambda parameters: True


@dataclass(frozen=True)
class Declaration:
    """Everything that verification knows about one block."""

    block: str
    configurations: Mapping[str, Parameters]
    shapes: Sequence[str]
    environment: type[Environment]
    bins: Mapping[str, Bin]
    unreachable: Mapping[str, Callable[[Parameters], bool]]
    waivers: Sequence[Waiver]
    cycles: int
    protocol: Callable[[Module, Parameters, Mapping[str, Signal]], ValueLike]
    idle_changes: Sequence[str] = ()
    gates: bool = False
    own_code: bool = False
    in_kernels: Sequence[str] = ()
    measured: Mapping[str, int] = field(default_factory=dict)
    """Seeds for each configuration whose code coverage is to be complete."""
    transitions: Mapping[str, Mapping[str, Sequence[str]]] = field(default_factory=dict)
    """Of registers that hold an enumeration, by a regular expression of their names: what may follow each member."""

    @property
    def constant(self) -> Sequence[str]:
        """Inputs that do not change between resets."""
        return getattr(registry.component(self.block), "constant", ())

    @property
    def shipped(self) -> str:
        """The configuration with the parameters of the default GPU; empty if there is none."""
        ships = complete(self.block, parameters_of(self.block, description.load(description.DEFAULT)))
        return next((name for name, mine in self.configurations.items() if mine == ships), "")

    @property
    def first(self) -> str:
        """The first configuration: it is small, so that short runs reach everything."""
        return next(iter(self.configurations))

    def alone(self, configuration: str) -> Declaration:
        """The same block with one configuration, and the waivers that concern it."""
        parameters = self.configurations[configuration]
        waivers = [waiver for waiver in self.waivers if waiver.where(parameters)]
        return replace(self, configurations={configuration: parameters}, waivers=waivers, measured={configuration: 1})

    @property
    def name(self) -> str:
        """The block's name without its area: that of its Verilog module."""
        return self.block.rpartition(".")[2]

    def able(self, configuration: str) -> list[str]:
        """The bins that a configuration can hit, and must."""
        parameters = self.configurations[configuration]
        return [name for name in self.bins if name not in self.unreachable or not self.unreachable[name](parameters)]

    def component(self, configuration: str) -> wiring.Component:
        """A new instance of the hardware, which may remain unused."""
        made = registry.component(self.block)(**self.configurations[configuration])
        made._MustUse__used = True
        return made

    def ports(self, configuration: str) -> list[FlatPort]:
        return flat_ports(self.component(configuration))

    def verilog(self, configuration: str) -> str:
        """What ``lockstep verilog`` writes."""
        parameters = self.configurations[configuration]

        def make() -> str:
            return export.verilog(self.component(configuration), self.block, parameters)

        return build.kept(self.block, parameters, "verilog", make, Path(export.__file__))

    def contract(self, configuration: str) -> str:
        """The contract of the block's ports in SystemVerilog."""
        parameters = self.configurations[configuration]

        def make() -> str:
            legal = protocol(self.block)
            return contract.systemverilog(self.component(configuration), self.block, parameters, legal)

        files = Path(contract.__file__), _file(self.block, "bench")
        return build.kept(self.block, parameters, "contract", make, *files)

    def operators(self, configuration: str) -> str:
        """The same with a wire for each operator, each of which a simulator computes and counts in every cycle."""

        def make() -> str:
            return export.operators(self.component(configuration), self.block)

        parameters = self.configurations[configuration]
        return build.kept(self.block, parameters, "operators", make, Path(export.__file__))

    def counted(self, configuration: str) -> str:
        """The same, which also tells of the transitions of enumerations: what code coverage counts."""

        def make() -> str:
            rtlil = export.rtlil(self.component(configuration), self.name)
            return transitions.told(self.operators(configuration), rtlil)

        parameters = self.configurations[configuration]
        return build.kept(self.block, parameters, "counted", make, Path(export.__file__), Path(transitions.__file__))

    def model(self) -> ModuleType:
        return importlib.import_module(f"lockstep.models.{self.block}")


def complete(block: str, parameters: Parameters) -> Parameters:
    """All constructor arguments of a block, the defaults among them."""
    arguments = inspect.signature(registry.component(block)).parameters.items()
    return {name: each.default for name, each in arguments if each.default is not each.empty} | parameters


def blocks() -> list[str]:
    """The blocks that have a bench."""
    return [block for block in registry.blocks() if _file(block, "bench").is_file()]


def declaration(block: str) -> Declaration:
    """What a block's bench declares."""
    bench = _module(block, "bench")
    configurations = bench.CONFIGURATIONS
    return Declaration(
        block=bench.BLOCK,
        configurations=configurations,
        shapes=bench.SHAPES,
        environment=bench.Environment,
        bins=bench.BINS,
        unreachable=getattr(bench, "UNREACHABLE", {}),
        waivers=getattr(bench, "WAIVERS", ()),
        cycles=getattr(bench, "CYCLES", getattr(bench.Environment, "CYCLES", CYCLES)),
        protocol=getattr(bench, "protocol", lambda m, parameters, ports: Const(1)),
        idle_changes=getattr(bench, "IDLE_CHANGES", ()),
        gates=getattr(bench, "GATES", False),
        own_code=getattr(bench, "OWN_CODE", False),
        in_kernels=getattr(bench, "IN_KERNELS", ()),
        measured={next(iter(configurations)): 1, **getattr(bench, "MEASURED", {})},
        transitions=getattr(bench, "TRANSITIONS", {}),
    )


def protocol(block: str) -> contract.Protocol | None:
    """What the inputs of a block must keep to, beside the rules of its ports; none if its bench declares nothing."""
    return getattr(_module(block, "bench"), "protocol", None) if _file(block, "bench").is_file() else None


def proofs(block: str) -> dict[str, Proof]:
    """The proofs of a block; none if it has no file of them."""
    return _module(block, "formal").PROOFS if _file(block, "formal").is_file() else {}


def _file(block: str, kind: str) -> Path:
    area, name = block.split(".")
    return FOLDER / area / f"{kind}_{name}.py"


def _module(block: str, kind: str) -> ModuleType:
    area, name = block.split(".")
    return importlib.import_module(f"lockstep.verif.{area}.{kind}_{name}")
