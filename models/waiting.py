"""Which warps are there when a launch stops, what each waits for, and since when: read once, from the records.

``models/progress.py`` finds that a launch makes no progress; this module says which warps hold it up.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from lockstep.models.core.warp import BARRIERS
from lockstep.models.execution.isa import LANES
from lockstep.models.observe import causes
from lockstep.models.progress import Watch
from lockstep.spec.causes import CAUSES
from lockstep.spec.parameters import MAX_WARPS

NAMES = tuple(CAUSES)
ENDED, REPEATING, STARVED = "ended", "repeating", "ready, never chosen"


@dataclass(frozen=True)
class Waiting:
    """A warp of a CTA that has not ended.

    ``state`` is what it waits for; ``places`` are instructions: the one that it waits at, or those that it repeats.
    ``since`` is the core cycle in which that began, as far as it is known: the warp's last issue.
    """

    sm: int
    cta: tuple[int, ...]
    warp: int  # in its CTA
    state: str
    places: tuple[int, ...]
    since: int


def of_cta(sms: np.ndarray, index: int, place: int) -> list[Waiting]:
    """The warps of a CTA whose warps all wait at barriers, or have ended; ``place`` is where it is on its SM."""
    cta = sms[index]["ctas"][place]
    return [_of_warp(sms[index], index, slot, cta, None, "") for slot in _slots(cta["slots"])]


def of_all(sms: np.ndarray, watch: Watch | None, waits: Callable[[Any, int, int], str]) -> list[Waiting]:
    """The warps of all CTAs on the GPU.

    ``watch`` has found that they only repeat themselves; None: nothing will happen any more. ``waits`` says what
    mechanisms let a warp wait for (SM, its index, slot).
    """
    found = []
    for index, sm in enumerate(sms):
        for cta in sm["ctas"][sm["ctas"]["live"] > 0]:
            for slot in _slots(cta["slots"]):
                found.append(_of_warp(sm, index, slot, cta, watch, waits(sm, index, slot)))
    return found


def _slots(mask: Any) -> Iterator[int]:
    return (slot for slot in range(MAX_WARPS) if int(mask) >> slot & 1)


def _of_warp(sm: Any, index: int, slot: int, cta: Any, watch: Watch | None, waits: str) -> Waiting:
    warp = sm["warps"][slot]
    last, following = int(warp["issued_pc"]), int(warp["pc"])
    since = int(warp["issued"])
    places: tuple[int, ...] = (following,)
    if not int(cta["warps"]) >> slot & 1:
        state, places = ENDED, (last,)
    elif int(cta["waiting"]) >> slot & 1:
        state, places = _at_barrier(cta, slot), (last,)
    elif waits:
        state = f"waiting for {waits}"
    elif watch is not None and since >= watch.began:
        state, places, since = REPEATING, watch.places(index * MAX_WARPS + slot) or places, watch.began
    else:
        state = _not_issuing(sm, slot)
    return Waiting(index, tuple(int(v) for v in cta["ctaid"]), int(warp["index"]), state, places, since)


def _at_barrier(cta: Any, slot: int) -> str:
    which = next(b for b in range(BARRIERS) if int(cta["at"][b]) >> slot & 1)
    expected = int(cta["expected"][which]) or int(cta["live"]) * LANES
    return f"at barrier {which} ({int(cta['arrived'][which])} of {expected} threads)"


def _not_issuing(sm: Any, slot: int) -> str:
    """Why a warp that has not issued for long does not."""
    why = causes.cause(sm, slot, int(sm["last"]))
    if why == causes.MECHANISM:
        return "held back by a mechanism"
    if why in (causes.LSU, causes.PIPELINE, causes.NOT_SELECTED):
        return STARVED
    return f"waiting for {NAMES[why].replace('_', ' ')}"
