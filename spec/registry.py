"""The mechanisms that there are, and what a selection of them amounts to.

This is the one file that names mechanisms: a new one is added to :data:`MECHANISMS`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from lockstep.spec import (
    banked_l1,
    dyncore,
    dyncta,
    mrpb,
    preemption,
    regless,
    rfh,
    rfv,
    scavenger,
    sharing,
    warppool,
    working_set,
)
from lockstep.spec.energy import USES, Use
from lockstep.spec.frame import DEFAULTS, FRAME
from lockstep.spec.mechanism import FRAME_SLOTS, ONE_TENANT, Mechanism, Parameters
from lockstep.spec.parameters import Gpu
from lockstep.spec.passes import Pass
from lockstep.spec.words import closest

MECHANISMS: dict[str, Mechanism] = {
    mechanism.name: mechanism
    for mechanism in (
        warppool.MECHANISM,
        mrpb.MECHANISM,
        banked_l1.MECHANISM,
        sharing.SHARING,
        sharing.REGISTERS,
        sharing.SCRATCHPAD,
        dyncta.MECHANISM,
        dyncore.MECHANISM,
        regless.MECHANISM,
        rfv.MECHANISM,
        rfh.MECHANISM,
        working_set.MECHANISM,
        preemption.MECHANISM,
        scavenger.MECHANISM,
    )
}
"""By name. This order decides between tenants of one frame slot, whatever the order in which a user names them."""

UNSELECTABLE = (regless.JOINED, sharing.JOINED)
"""Blocks that no tenant has in its SM: they have sizes on a GPU, and are verified by themselves."""

DECLARATIONS = (FRAME, *DEFAULTS, *UNSELECTABLE, *MECHANISMS.values())

SECTIONS: dict[str, type] = {name: cls for m in MECHANISMS.values() for name, cls in m.sections.items()}
"""The mechanisms' sections of a description, which it may leave out."""


def resolve(names: Iterable[str], known: Mapping[str, Mechanism] = MECHANISMS) -> tuple[str, ...]:
    """The mechanisms called ``names`` and those that they require, in the order of ``known``.

    Raises ValueError, in one line, for unknown ones and for two that exclude each other.
    """
    wanted = set(names)
    if unknown := wanted - known.keys():
        name = min(unknown)
        raise ValueError(f"mechanism {name!r}: not known{closest(name, known)}; known are {', '.join(sorted(known))}")
    wanted |= {required for name in wanted for required in known[name].requires}
    chosen = [mechanism for name, mechanism in known.items() if name in wanted]
    for position, second in enumerate(chosen):
        for first in chosen[:position]:
            if reason := _conflict(first, second):
                raise ValueError(f"mechanisms {first.name} and {second.name} exclude each other: {reason}")
    return tuple(mechanism.name for mechanism in chosen)


def _conflict(one: Mechanism, other: Mechanism) -> str:
    """Why two mechanisms cannot be combined; empty if they can."""
    both = one.tenants.keys() & other.tenants.keys() & ONE_TENANT
    if both:
        return f"both are {FRAME_SLOTS[min(both)]}"
    return one.conflicts.get(other.name) or other.conflicts.get(one.name) or ""


def selected(gpu: Gpu) -> list[Mechanism]:
    """The mechanisms of a configuration."""
    return [mechanism for name, mechanism in MECHANISMS.items() if name in gpu.mechanisms]


def frame_slots(names: Iterable[str]) -> frozenset[str]:
    """The frame slots that the mechanisms called ``names`` take."""
    return frozenset(slot for name in names for slot in MECHANISMS[name].tenants)


def configuration(gpu: Gpu) -> list[Mechanism]:
    """The declarations that make a configuration: the frame's, and those of all tenants."""
    defaults = (default for default in DEFAULTS if not gpu.frame_slots & default.tenants.keys())
    return [FRAME, *defaults, *selected(gpu)]


def blocks(gpu: Gpu) -> set[str]:
    """The names of the blocks of a configuration."""
    return {block for each in configuration(gpu) for block in each.all_blocks}


def arguments(gpu: Gpu) -> Parameters:
    """The constructor arguments of every block there is, as this GPU would have it."""
    return {block: found for each in DECLARATIONS for block, found in each.arguments(gpu).items()}


def passes(gpu: Gpu) -> tuple[Pass, ...]:
    """The passes of a configuration."""
    return tuple(each for mechanism in configuration(gpu) for each in mechanism.passes(gpu))


def defaults(names: Iterable[str]) -> dict[str, int | str]:
    """What the mechanisms called ``names`` change of a description, unless the user does."""
    return {key: value for name in names for key, value in MECHANISMS[name].defaults.items()}


def option(name: str) -> tuple[str, str]:
    """The mechanism that an option of `lockstep occupancy` selects, and the parameter that it sets."""
    return next((m.name, m.option[1]) for m in MECHANISMS.values() if m.option[0] == name)


def check(gpu: Gpu) -> list[str]:
    """What the selected mechanisms find wrong with a description: one line per error."""
    return [error for mechanism in selected(gpu) for error in mechanism.check(gpu)]


def energy(names: Iterable[str]) -> list[Use]:
    """What takes energy in a run with the mechanisms called ``names``; those of other versions have nothing."""
    own = [use for name in names if name in MECHANISMS for use in MECHANISMS[name].energy]
    replaced = {use.component for use in own}
    return [use for use in USES if use.component not in replaced] + own


def of_area(area: str) -> Mechanism:
    """The mechanism with this area."""
    return next(each for each in (*UNSELECTABLE, *MECHANISMS.values()) if each.area == area)
