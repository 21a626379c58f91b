"""The declaration of a mechanism: what it fills of the SM's frame, and everything that is its own.

A mechanism is one folder per tree. ``spec/<area>`` has its declaration, ``models/<area>`` what fills its frame slots
and the golden models of its blocks, ``rtl/<area>`` the blocks and ``verif/<area>`` their benches; the area is its name
with underscores. :mod:`lockstep.spec.registry` lists the mechanisms; no other file names one.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from lockstep.spec.energy import Use
from lockstep.spec.parameters import Gpu
from lockstep.spec.passes import Pass
from lockstep.spec.statistics import Counts, Statistic
from lockstep.spec.storage import Storage

Parameters = dict[str, dict[str, int]]
"""Constructor arguments, by block; where instances of a block differ, their number follows its name: ``a.b[2]``."""

Law = tuple[str, int, int]
"""A conservation law: what is conserved, and two counts that are equal after every launch."""

FRAME_SLOTS = {
    "gates": "which warps may issue, by kind of instruction",
    "claims": "whether the instructions that a cycle grants may issue together",
    "order": "classes of warps that issue before others",
    "operands": "the place where values live",
    "path": "the path from the load/store unit to the L1",
    "l1_clients": "requests to the L1 beside the path's",
    "capacity": "the plan of how many CTAs an SM can hold",
    "limits": "how many CTAs an SM may hold now",
    "context": "how CTAs leave an SM before they have ended, and come back",
    "placement": "which CTA of the grid is placed next",
    "events": "issue, write-back, requests, warps and CTAs, as they happen",
    "monitors": "the outcome of every cycle",
}
"""The slots of the SM's frame, and what their tenants are."""

ONE_TENANT = frozenset({"operands", "path", "capacity", "context", "placement"})
"""The frame slots that mechanisms exclude each other from; the tenants of the others stand beside each other."""


def arguments_of(parameters: Parameters, block: str, index: int) -> dict[str, int]:
    """The arguments of an instance of a block."""
    return parameters.get(f"{block}[{index}]") or parameters[block]


def _nothing(gpu: Gpu) -> dict[str, dict[str, int]]:
    return {}


@dataclass(frozen=True, kw_only=True)
class Mechanism:
    """One mechanism.

    Parameters
    ----------
    name : str
        For ``--with``; with hyphens.
    doc : str
        What it does, and whose it is.
    tenants : mapping
        The module that fills a frame slot (:mod:`lockstep.models.tenants` says what it holds), by slot.
    requires : names
        Mechanisms that are selected with it.
    sections : mapping
        Classes of parameters (:mod:`lockstep.spec.parameters`), by the name of their section in a description.
    option : name and parameter
        An option of `lockstep occupancy` that selects it, and the parameter that the option sets.
    defaults : mapping
        Values of parameters, by full name, that a description has with it unless the user overrides them.
    check : function
        What contradicts itself in a description, one line per error.
    blocks, unit : names
        The RTL blocks that come with it, and the unit that joins them, or those of them that ``parts`` names, if there
        is one.
    arguments : function
        The constructor arguments of those blocks, and of the unit, on a GPU.
    parts : function
        The same of the blocks, from the arguments of the unit.
    whole : names
        The blocks of which the GPU has one; an SM has none of these.
    copies : function
        How many instances of a block an SM has, where it is not one.
    conflicts : mapping
        Why it cannot be combined with another mechanism, by that one's name; declared by one of the two.
    passes : function
        What it does to kernels on a GPU (``sim/compile/ptx/passes``).
    statistics : rows
        Over raw counts: those of the frame, and its own, which are called ``<area>.<count>``.
    shown : names
        Statistics that `lockstep run` shows.
    laws : function
        Conservation laws, beside those of the frame.
    measures : mapping
        Statistics that runs are compared by (``sim/study/comparison.py``), by the name of the measure.
    published : mapping
        What its paper found, by measure.
    energy : uses
        What takes energy in it (:mod:`lockstep.spec.energy`).
    storage : table
        The state that its paper counts.
    grids : int
        How many grids at a time it can handle.
    values : str
        What it does with values, if that decides about cycles: it cannot take part in the replay of a trace.
    """

    name: str
    doc: str
    tenants: Mapping[str, str] = field(default_factory=dict)
    requires: tuple[str, ...] = ()
    sections: Mapping[str, type] = field(default_factory=dict)
    option: tuple[str, str] = ("", "")
    defaults: Mapping[str, int | str] = field(default_factory=dict)
    check: Callable[[Gpu], list[str]] = lambda gpu: []
    blocks: tuple[str, ...] = ()
    unit: str = ""
    arguments: Callable[[Gpu], Parameters] = _nothing
    parts: Callable[..., Parameters] = lambda **arguments: {}
    whole: tuple[str, ...] = ()
    copies: Callable[[Gpu], Mapping[str, int]] = lambda gpu: {}
    conflicts: Mapping[str, str] = field(default_factory=dict)
    passes: Callable[[Gpu], tuple[Pass, ...]] = lambda gpu: ()
    statistics: tuple[Statistic, ...] = ()
    shown: tuple[str, ...] = ()
    laws: Callable[[Counts], list[Law]] = lambda counts: []
    measures: Mapping[str, str] = field(default_factory=dict)
    published: Mapping[str, float] = field(default_factory=dict)
    energy: tuple[Use, ...] = ()
    storage: Storage | None = None
    grids: int = 1
    values: str = ""

    def __post_init__(self) -> None:
        if unknown := self.tenants.keys() - FRAME_SLOTS.keys():
            raise ValueError(f"{self.name}: there is no frame slot {min(unknown)!r}")

    @property
    def area(self) -> str:
        """The name of its folders, and the first part of its raw counts."""
        return self.name.replace("-", "_")

    def instances(self, block: str, gpu: Gpu) -> int:
        """How many of a block an SM has; of one in ``whole``, the GPU."""
        return self.copies(gpu).get(block, 1)

    @property
    def all_blocks(self) -> tuple[str, ...]:
        """Its blocks, and the unit."""
        return (*self.blocks, self.unit) if self.unit else self.blocks
