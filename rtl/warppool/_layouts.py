"""Payloads that several blocks of WarpPool share."""

from __future__ import annotations

from amaranth.lib import data
from amaranth.utils import bits_for

from lockstep.rtl.lsu.intra_warp_coalescer import ADDRESS_BITS, LINE_SHIFTS
from lockstep.spec.mapping import LINE_WORDS, Mapping

NUMBER_BITS = ADDRESS_BITS - LINE_SHIFTS[0]  # of a line


def slot_layout(*, lanes: int, warps: int, tickets: int) -> data.StructLayout:
    """One load's part of a request: the instruction, and how the line's words map to its threads."""
    return data.StructLayout(
        {
            "warp": bits_for(warps - 1),
            "ticket": bits_for(tickets - 1),
            "mapping": Mapping,
            "thread": bits_for(lanes - 1),
            "word": range(LINE_WORDS),
        }
    )


def slots_layout(merges: int, slot: data.StructLayout) -> dict[str, object]:
    """The loads that a request serves: the first ``count`` of its slots."""
    return {"count": range(merges + 1), "slots": data.ArrayLayout(slot, merges)}
