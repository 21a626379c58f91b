"""Metadata words from the annotations of a region, and back. The layout is in ``spec/register_regions.py``."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from lockstep.spec import register_regions as spec
from lockstep.spec.register_regions import Entry, Kind


@dataclass(frozen=True)
class Metadata:
    """The contents of the words of one region.

    ``slots``: the flags of three operands each, 6 bits; at least one, at most ``MAX_SLOTS``.
    ``usage``: registers of each bank, at most ``MAX_USAGE``.
    ``entries``: what to do at the start, with which register; none of them ``Entry.NONE``.
    """

    slots: tuple[int, ...]
    usage: tuple[int, ...] = (0,) * spec.BANKS
    entries: tuple[tuple[Entry, int], ...] = ()

    @property
    def fits_single(self) -> bool:
        """Whether one ``SINGLE`` says it all."""
        few = len(self.slots) <= spec.SINGLE_SLOTS and len(self.entries) <= spec.SINGLE_ENTRIES
        return few and max(self.usage) < 1 << spec.SINGLE_USAGE_BITS


def encode(region: Metadata) -> list[int]:
    """The words of a region, in order. Raises ValueError for what has no encoding."""
    _check(region)
    entries = [action << spec.REGISTER_BITS | register for action, register in region.entries]
    if region.fits_single:
        payload = _pack(region.slots, spec.SLOT_BITS)
        payload |= _pack(region.usage, spec.SINGLE_USAGE_BITS) << spec.SINGLE_USAGE_SHIFT
        payload |= _pack(entries, spec.ENTRY_BITS) << spec.SINGLE_ENTRIES_SHIFT
        payload |= len(region.slots) - 1 << spec.SINGLE_COUNT_SHIFT
        return [_word(Kind.SINGLE, payload)]
    first, others = entries[: spec.HEADER_ENTRIES], entries[spec.HEADER_ENTRIES :]
    payload = _pack(region.usage, spec.HEADER_USAGE_BITS) | _pack(first, spec.ENTRY_BITS) << spec.HEADER_ENTRIES_SHIFT
    return [
        _word(Kind.HEADER, payload, len(region.slots)),
        *(_word(Kind.ENTRIES, _pack(some, spec.ENTRY_BITS)) for some in _split(others, spec.ENTRIES)),
        *(_word(Kind.FLAGS, _pack(some, spec.SLOT_BITS)) for some in _split(region.slots, spec.FLAGS_SLOTS)),
    ]


def decode(words: Sequence[int]) -> Metadata:
    """The annotations of one region. Raises ValueError for words that :func:`encode` would not make."""
    found = list(regions(words))
    if len(found) != 1:
        raise ValueError(f"{len(words)} metadata words: not one region but {len(found)}")
    return found[0]


def regions(words: Iterable[int]) -> Iterator[Metadata]:
    """The annotations of all regions in a stream of words. Raises ValueError, as :func:`decode` does."""
    stream = iter(words)
    for word in stream:
        taken = [word]
        kind = _kind(word)
        if kind == Kind.SINGLE:
            region = _single(word)
        elif kind == Kind.HEADER:
            region = _several(word, stream, taken)
        else:
            raise ValueError(f"metadata word {word:#018x}: {kind.name} without a HEADER")
        if encode(region) != taken:
            raise ValueError(f"metadata word {word:#018x}: its region has another encoding")
        yield region


def _single(word: int) -> Metadata:
    count = _field(word, spec.SINGLE_COUNT_SHIFT, spec.SINGLE_COUNT_BITS) + 1
    slots = _unpack(word, spec.SLOT_BITS, count)
    usage = _unpack(word >> spec.SINGLE_USAGE_SHIFT, spec.SINGLE_USAGE_BITS, spec.BANKS)
    return Metadata(slots, usage, _entries(word >> spec.SINGLE_ENTRIES_SHIFT, spec.SINGLE_ENTRIES))


def _several(header: int, stream: Iterator[int], taken: list[int]) -> Metadata:
    """The region of a header; the other words of it are taken from the stream."""
    count = _field(header, spec.SLOTS_SHIFT, spec.SLOTS_BITS)
    entries = _entries(header >> spec.HEADER_ENTRIES_SHIFT, spec.HEADER_ENTRIES)
    slots: tuple[int, ...] = ()
    while len(slots) < count:
        word = next(stream, None)
        if word is None:
            raise ValueError(f"metadata word {header:#018x}: the words end before those of its region do")
        taken.append(word)
        kind = _kind(word)
        if kind == Kind.FLAGS:
            slots += _unpack(word, spec.SLOT_BITS, min(spec.FLAGS_SLOTS, count - len(slots)))
        elif kind == Kind.ENTRIES:
            entries += _entries(word, spec.ENTRIES)
        else:
            raise ValueError(f"metadata word {word:#018x}: {kind.name} inside a region")
    return Metadata(slots, _unpack(header, spec.HEADER_USAGE_BITS, spec.BANKS), entries)


def _check(region: Metadata) -> None:
    if not 1 <= len(region.slots) <= spec.MAX_SLOTS:
        raise ValueError(f"a region has 1 to {spec.MAX_SLOTS} slots, not {len(region.slots)}")
    if any(not 0 <= flags < 1 << spec.SLOT_BITS for flags in region.slots):
        raise ValueError(f"the flags of a slot have {spec.SLOT_BITS} bits: {region.slots}")
    if len(region.usage) != spec.BANKS or any(not 0 <= count <= spec.MAX_USAGE for count in region.usage):
        raise ValueError(f"a region uses 0 to {spec.MAX_USAGE} registers of each of {spec.BANKS} banks: {region.usage}")
    for action, register in region.entries:
        if action not in tuple(Entry)[1:] or not 0 <= register < 1 << spec.REGISTER_BITS:
            raise ValueError(f"no entry of a metadata word: {action} of register {register}")


def _word(kind: Kind, payload: int, slots: int = 0) -> int:
    return spec.MARK << spec.MARK_SHIFT | kind << spec.KIND_SHIFT | slots << spec.SLOTS_SHIFT | payload


def _kind(word: int) -> Kind:
    if not 0 <= word < 1 << spec.WORD_BITS or _field(word, spec.MARK_SHIFT, spec.MARK_BITS) != spec.MARK:
        raise ValueError(f"{word:#018x} is no metadata word")
    return Kind(_field(word, spec.KIND_SHIFT, spec.KIND_BITS))


def _entries(fields: int, count: int) -> tuple[tuple[Entry, int], ...]:
    found = []
    for entry in _unpack(fields, spec.ENTRY_BITS, count):
        action, register = divmod(entry, 1 << spec.REGISTER_BITS)
        if action != Entry.NONE:
            found.append((Entry(action), register))
    return tuple(found)


def _field(word: int, shift: int, bits: int) -> int:
    return word >> shift & (1 << bits) - 1


def _split(values: Sequence[int], size: int) -> list[Sequence[int]]:
    return [values[start : start + size] for start in range(0, len(values), size)]


def _pack(values: Iterable[int], bits: int) -> int:
    return sum(value << bits * place for place, value in enumerate(values))


def _unpack(fields: int, bits: int, count: int) -> tuple[int, ...]:
    return tuple(_field(fields, bits * place, bits) for place in range(count))
