"""Where registers have values, for a register file that gives a place to those alone: Jeon et al., MICRO 2015.

The code is that of the kernel; what the paper's compiler says in metadata instructions stands in tables here. A value
is needed where its register is warp-live (``register_regions/liveness.py``).
"""

from __future__ import annotations

import numpy as np

from lockstep.sim.compile.ptx.cfg import ControlFlowGraph
from lockstep.sim.compile.ptx.draft import Draft
from lockstep.sim.compile.ptx.passes.register_regions.liveness import liveness
from lockstep.sim.compile.ptx.passes.register_regions.operations import add_deliveries, blocks
from lockstep.spec.passes import MASK_WORDS

WORD_BITS = 64


def annotate(draft: Draft) -> None:
    """Give a kernel these tables, by instruction as masks of registers in four words of 64 bits:

    ``renaming.before``, ``renaming.after``
        Registers whose values are needed before it issues, and after.
    ``renaming.writes``
        Registers that it writes.
    ``renaming.most``
        One number: the most places that a warp has at a time.
    """
    add_deliveries(draft)
    graph = ControlFlowGraph(draft.code.successors())
    code = blocks(draft, graph)
    live = liveness(draft.code, graph, code)
    length = len(draft.code.list)
    before, after, writes = ([0] * length for _ in range(3))
    for number, operations in enumerate(code):
        for operation, needed, kept in zip(operations, live.before[number], live.after[number], strict=True):
            before[operation.pc], after[operation.pc] = needed, kept
            writes[operation.pc] = operation.writes
    most = max((needed | written).bit_count() for needed, written in zip(before, writes, strict=True))
    draft.kernel.tables |= {
        "renaming.before": _words(before),
        "renaming.after": _words(after),
        "renaming.writes": _words(writes),
        "renaming.most": np.array([most], np.int32),
    }


def _words(masks: list[int]) -> np.ndarray:
    """Masks, each in four words, the lowest first."""
    word = (1 << WORD_BITS) - 1
    return np.array([[mask >> WORD_BITS * k & word for k in range(MASK_WORDS)] for mask in masks], np.uint64)
