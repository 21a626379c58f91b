"""Payloads that several blocks of RegLess share."""

from __future__ import annotations

from collections.abc import Mapping

from amaranth.lib import data
from amaranth.utils import bits_for

from lockstep.rtl import ranges
from lockstep.spec.register_regions import (
    BANKS,
    ENTRIES,
    FLAG_BITS,
    HEADER_USAGE_BITS,
    PAYLOAD_BITS,
    SLOTS_BITS,
    Entry,
    Kind,
)
from lockstep.spec.regless.parameters import Access, Request, State

WORD = 32


def named(warps: int, registers: int) -> dict[str, object]:
    """A register of a warp, by its number."""
    return {"warp": bits_for(warps - 1), "number": bits_for(registers - 1)}


METADATA = data.StructLayout({"payload": PAYLOAD_BITS, "slots": SLOTS_BITS, "kind": Kind})
"""A metadata word, below its mark."""


def region_of(warps: int, banks: int = BANKS) -> data.StructLayout:
    """From the metadata to the capacity manager: what a region needs of each bank, by register numbers."""
    return data.StructLayout({"warp": bits_for(warps - 1), "usage": data.ArrayLayout(HEADER_USAGE_BITS, banks)})


def sent_of(warps: int) -> data.StructLayout:
    """From the metadata to the capacity manager: so many entries were sent, and the ``last`` ones are among them."""
    return data.StructLayout({"warp": bits_for(warps - 1), "entries": range(ENTRIES + 1), "last": 1})


def values(count: int) -> data.ArrayLayout:
    return data.ArrayLayout(WORD, count)


def access_of(warps: int, registers: int) -> data.StructLayout:
    """To a bank: an operand to be read, with its flags, or a line to be reserved for a result."""
    return data.StructLayout({**named(warps, registers), "result": 1, "flags": FLAG_BITS})


def preload_of(warps: int, registers: int) -> data.StructLayout:
    """To a bank: what a region begins with."""
    return data.StructLayout({**named(warps, registers), "action": Entry})


def write_of(lanes: int, warps: int, registers: int) -> data.StructLayout:
    """To a bank: a result."""
    return data.StructLayout({**named(warps, registers), "flags": FLAG_BITS, "mask": lanes, "words": values(lanes)})


def request_layout(*, lanes: int, warps: int, registers: int) -> data.StructLayout:
    """From the staging unit to the compressor; words of a store."""
    return data.StructLayout({"kind": Request, **named(warps, registers), "words": values(lanes)})


def fill_layout(*, lanes: int, warps: int, registers: int) -> data.StructLayout:
    """From the compressor to the staging unit."""
    return data.StructLayout({**named(warps, registers), "words": values(lanes)})


def _fetched(warps: int, registers: int) -> dict[str, object]:
    """What a fetch says of itself, and its answer says again."""
    return {**named(warps, registers), "pattern": State, "expand": 1, "install": 1}


def access_layout(*, words: int, group: int, warps: int, registers: int) -> data.StructLayout:
    """From the compressor to the L1; ``group``, of so many bits, tells a compressed line of the shard."""
    return data.StructLayout({"kind": Access, **_fetched(warps, registers), "group": group, "words": values(words)})


def answer_layout(*, words: int, warps: int, registers: int) -> data.StructLayout:
    """From the L1 to the compressor."""
    return data.StructLayout({"line": 1, **_fetched(warps, registers), "words": values(words)})


def check(given: Mapping[str, int], largest: Mapping[str, int], least: int = 1) -> None:
    """Refuse arguments out of range: the least to the largest."""
    for what, value in given.items():
        ranges.check(what, value, least, largest[what])
