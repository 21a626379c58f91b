"""Which blocks there are: one per file, ``rtl/<area>/<block>.py``, whose component has the block's name in CamelCase.

A block is named ``<area>.<block>``, as in ``scheduling.warp_scheduler``. Files that begin with an underscore are none.
The component's class attribute ``LARGEST`` holds the constructor arguments of the largest instance, from which the
record types of the ports are derived, so that a smaller one needs no other record.
"""

from __future__ import annotations

import importlib
import re
import warnings
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from amaranth.lib import wiring

FOLDER = Path(__file__).resolve().parent


def blocks() -> list[str]:
    """The names of all blocks, sorted."""
    return sorted(f"{path.parent.name}.{path.stem}" for path in FOLDER.glob("*/*.py") if not path.stem.startswith("_"))


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
    return cls(**cls.LARGEST)  # type: ignore[attr-defined]
