"""Metadata words: every region comes back from its words, and words have the bits that the encoding's page gives."""

from __future__ import annotations

import random
from collections.abc import Callable

import pytest

from lockstep.sim.compile.ptx.passes.register_regions.words import Metadata, decode, encode, regions
from lockstep.spec import register_regions as spec
from lockstep.spec.register_regions import Entry, Kind
from lockstep.verif.bench import seeded

REGIONS = 4000
METADATA = 0b11


def some(rng: random.Random) -> Metadata:
    """A random region: each field over its full width, small regions as often as large ones."""
    small = rng.random() < 0.5
    count = rng.randint(1, spec.SINGLE_SLOTS if small else spec.MAX_SLOTS)
    most = rng.choice([0, 1, spec.MAX_USAGE])
    entries = rng.randint(0, rng.choice([2, 3, 8, 255]))
    return Metadata(
        tuple(rng.getrandbits(spec.SLOT_BITS) for _ in range(count)),
        tuple(rng.randint(0, most) for _ in range(spec.BANKS)),
        tuple((rng.choice(list(Entry)[1:]), rng.getrandbits(spec.REGISTER_BITS)) for _ in range(entries)),
    )


def test_decoding_gives_back_what_was_encoded() -> None:
    rng = seeded()
    for _ in range(REGIONS):
        region = some(rng)
        words = encode(region)
        assert decode(words) == region
        assert all(word >> 62 == METADATA and word < 1 << 64 for word in words)


def test_a_stream_of_regions() -> None:
    rng = seeded()
    expected = [some(rng) for _ in range(100)]
    assert list(regions(word for region in expected for word in encode(region))) == expected


def test_every_word_of_random_bits_is_refused_or_canonical() -> None:
    """So hardware and model need agree only about words that the compiler makes."""
    rng = seeded()
    accepted = 0
    for _ in range(REGIONS):
        words = [METADATA << 62 | Kind.SINGLE << 60 | rng.getrandbits(spec.PAYLOAD_BITS)]
        try:
            region = decode(words)
        except ValueError:
            continue
        accepted += 1
        assert encode(region) == words
    assert accepted


@pytest.mark.parametrize(
    ("region", "words"),
    [
        (Metadata((0,)), [METADATA << 62 | 3 << 60]),
        (
            Metadata((0b000001, 0b110000, 0, 0b001100), (1, 0, 0, 0, 0, 0, 0, 1), ((Entry.PRELOAD_LAST, 0x8F),)),
            [
                METADATA << 62
                | 3 << 60
                | 3 << 52
                | 0b10_10001111 << 32
                | 0b10000001 << 24
                | 0b001100_000000_110000_000001
            ],
        ),
        (
            Metadata((1, 2), (7, 0, 0, 0, 0, 0, 0, 2), ((Entry.PRELOAD, 1), (Entry.INVALIDATE, 254))),
            [
                METADATA << 62 | 0 << 60 | 2 << 54 | 0b11_11111110 << 34 | 0b01_00000001 << 24 | 2 << 21 | 7,
                METADATA << 62 | 2 << 60 | 2 << 6 | 1,
            ],
        ),
        (
            Metadata((63,) * 10, entries=tuple((Entry.PRELOAD, n) for n in range(4))),
            [
                METADATA << 62 | 0 << 60 | 10 << 54 | 0x102 << 44 | 0x101 << 34 | 0x100 << 24,
                METADATA << 62 | 1 << 60 | 0x103,
                METADATA << 62 | 2 << 60 | (1 << 54) - 1,
                METADATA << 62 | 2 << 60 | 63,
            ],
        ),
    ],
)
def test_bits(region: Metadata, words: list[int]) -> None:
    assert encode(region) == words


def test_the_fields_fill_the_payload() -> None:
    """Section 4.5.4: 10 of 64 bits are the opcode; 3 entries; 9 slots of 3 operands; 2 entries and 4 slots."""
    assert spec.HEADER_ENTRIES_SHIFT + 3 * spec.ENTRY_BITS == spec.PAYLOAD_BITS == 64 - 10
    assert spec.FLAGS_SLOTS * spec.SLOT_BITS == 9 * 3 * 2 == spec.PAYLOAD_BITS
    assert spec.SINGLE_COUNT_SHIFT + spec.SINGLE_COUNT_BITS == spec.PAYLOAD_BITS
    assert (spec.SINGLE_ENTRIES, spec.SINGLE_SLOTS) == (2, 4)


@pytest.mark.parametrize(
    ("region", "message"),
    [
        (lambda: Metadata(()), "a region has 1 to 63 slots, not 0"),
        (lambda: Metadata((0,) * 64), "a region has 1 to 63 slots, not 64"),
        (lambda: Metadata((64,)), "the flags of a slot have 6 bits"),
        (lambda: Metadata((0,), (8,) * 8), "uses 0 to 7 registers of each of 8 banks"),
        (lambda: Metadata((0,), (0,) * 7), "uses 0 to 7 registers of each of 8 banks"),
        (lambda: Metadata((0,), entries=((Entry.NONE, 3),)), "no entry of a metadata word"),
        (lambda: Metadata((0,), entries=((Entry.PRELOAD, 256),)), "no entry of a metadata word"),
    ],
)
def test_what_has_no_encoding_is_refused(region: Callable[[], Metadata], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        encode(region())


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ([0], "is no metadata word"),
        ([1 << 64], "is no metadata word"),
        ([3 << 62 | 2 << 60], "FLAGS without a HEADER"),
        ([3 << 62 | 1 << 60], "ENTRIES without a HEADER"),
        ([3 << 62 | 5 << 54], "the words end before those of its region do"),
        ([3 << 62 | 5 << 54, 3 << 62 | 3 << 60], "SINGLE inside a region"),
        ([3 << 62 | 4 << 54, 3 << 62 | 2 << 60], "its region has another encoding"),
        ([], "not one region but 0"),
        ([3 << 62 | 3 << 60] * 2, "not one region but 2"),
    ],
)
def test_other_words_are_refused(words: list[int], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        decode(words)
