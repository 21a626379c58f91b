"""Which blocks there are: one per file, ``rtl/<area>/<block>.py``, whose component has the block's name in CamelCase.

A block is named ``<area>.<block>``, as in ``scheduling.warp_scheduler``. Files that begin with an underscore are none.
The component's class attribute ``LARGEST`` holds the constructor arguments of the largest instance, from which the
record types of the ports are derived, so that a smaller one needs no other record.
"""

from __future__ import annotations

import importlib
import re
import warnings
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING

from lockstep.spec.registry import MECHANISMS

if TYPE_CHECKING:
    from amaranth.lib import wiring

FOLDER = Path(__file__).resolve().parent


def blocks() -> list[str]:
    """The names of all blocks, sorted."""
    return sorted(f"{path.parent.name}.{path.stem}" for path in FOLDER.glob("*/*.py") if not path.stem.startswith("_"))


def select(name: str, known: Iterable[str]) -> list[str]:
    """Those of the ``known`` blocks that a name stands for, sorted; none if it stands for nothing.

    A name is a block's, with or without its area; an area or a mechanism, which is everything in it and everything that
    the mechanism brings; or ``all``. A block that a mechanism brings is also called as if it stood in its area: so
    ``warppool.intra_warp_coalescer`` is ``lsu.intra_warp_coalescer``.
    """
    return sorted(block for block in known if {name, name.replace("-", "_")} & _names(block))


def selectable(known: Iterable[str]) -> set[str]:
    """All names by which :func:`select` finds something."""
    return {name for block in known for name in _names(block)}


def _names(block: str) -> set[str]:
    area, own = block.partition(".")[0], block.rpartition(".")[2]
    areas = {area, *(mechanism.area for mechanism in MECHANISMS.values() if block in mechanism.all_blocks)}
    return {"all", own, *areas, *(f"{area}.{own}" for area in areas)}


def component(block: str) -> type[wiring.Component]:
    """The class of a block; imports Amaranth."""
    from amaranth.hdl import UnusedElaboratable

    # Blocks are also made for their ports alone.
    warnings.filterwarnings("ignore", category=UnusedElaboratable, module=re.escape(str(FOLDER.parent)))
    name = "".join(part.capitalize() for part in block.split(".")[1].split("_"))
    return getattr(importlib.import_module(f"{__package__}.{block}"), name)


def largest(block: str) -> wiring.Component:
    """The largest instance of a block."""
    cls = component(block)
    return cls(**cls.LARGEST)
