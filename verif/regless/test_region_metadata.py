"""The metadata of regions, case by case, with the encoder's words; ``bench_region_metadata.py`` has the random runs."""

from __future__ import annotations

from collections.abc import Sequence

from lockstep.models.regless import region_metadata
from lockstep.sim.compile.ptx.passes.register_regions.words import Metadata, encode
from lockstep.spec.register_regions import KIND_BITS, KIND_SHIFT, PAYLOAD_BITS, SLOTS_BITS, SLOTS_SHIFT, Entry
from lockstep.verif.bench import Bench
from lockstep.verif.regless.bench_region_metadata import CONFIGURATIONS

WARP = 3


def bench() -> Bench:
    made = Bench(region_metadata, **CONFIGURATIONS["paper"])
    made.i["preload"]["ready"] = 1
    return made


def tell(made: Bench, port: str, **fields: int) -> bool:
    """An event of the warp, in a cycle of its own; returns whether the region ends with it."""
    there = made.i[port]
    there["valid"], there["payload"]["warp"] = 1, WARP
    for name, value in fields.items():
        there["payload"][name] = value
    made.comb()
    last = bool(made.c["last"]["valid"])
    made.step()
    there["valid"] = 0
    return last


def give(made: Bench, words: Sequence[int]) -> None:
    for word in words:
        assert int(made.o["room"]) >> WARP & 1
        there = made.i["word"]["payload"]["word"]
        there["payload"] = word & (1 << PAYLOAD_BITS) - 1
        there["slots"] = word >> SLOTS_SHIFT & (1 << SLOTS_BITS) - 1
        there["kind"] = word >> KIND_SHIFT & (1 << KIND_BITS) - 1
        tell(made, "word")


def announce(made: Bench) -> list[int]:
    """What the next region needs of each bank; empty if none is announced."""
    made.i["wanted"] = 1 << WARP
    for _ in range(3):
        made.cycle()
        if made.o["region"]["valid"]:
            made.i["wanted"] = 0
            usage: list[int] = made.o["region"]["payload"]["usage"].tolist()
            made.cycle()  # a start is some cycles later
            return usage
    return []


def send(made: Bench) -> tuple[list[list[tuple[Entry, int]]], int]:
    """After a start, the entries of each cycle with some, and the cycle in which the last are said to be sent."""
    found = []
    tell(made, "start")
    for cycle in range(1, 20):
        ports = made.o["preload"]
        valid = ports[ports["valid"] != 0]["payload"]
        some = [(Entry(int(payload["action"])), int(payload["number"])) for payload in valid]
        found += [some] if some else []
        if made.o["sent"]["valid"] and made.o["sent"]["payload"]["last"]:
            return found, cycle
        made.cycle()
    raise AssertionError("the last entries are not sent")


def issue(made: Bench, slots: int) -> tuple[list[int], bool]:
    """The flags of an instruction, and whether it is the last of its region."""
    last = tell(made, "issue", slots=slots)
    assert made.o["flags"]["valid"] and made.o["flags"]["payload"]["warp"] == WARP
    return made.o["flags"]["payload"]["slots"].tolist(), last


def test_a_region_in_one_word() -> None:
    made = bench()
    give(made, encode(Metadata((0b11, 0b100101), (1, 0, 0, 1) * 2, ((Entry.PRELOAD, 4), (Entry.INVALIDATE, 5)))))
    assert announce(made) == [1, 0, 0, 1] * 2
    assert send(made) == ([[(Entry.INVALIDATE, 5), (Entry.PRELOAD, 4)]], 3)  # by bank: 0 and 7
    assert issue(made, 1) == ([0b11, 0, 0, 0, 0, 0], False)
    assert issue(made, 1) == ([0b100101, 0, 0, 0, 0, 0], True)
    assert announce(made) == []


def test_entries_in_several_words_and_an_instruction_across_two() -> None:
    made = bench()
    slots = tuple(range(1, 12))
    entries = tuple((Entry.PRELOAD_LAST, number) for number in (0, 1, 8, 16, 2, 3, 4))
    words = encode(Metadata(slots, (7, 1) * 4, entries))
    assert len(words) == 4
    give(made, words)
    assert announce(made) == [7, 1] * 4
    sent, _ = send(made)
    numbers = [[number for _, number in some] for some in sent]
    assert numbers == [[0, 1], [8], [16, 2, 3, 4]], "one to a bank in a cycle, and words in order"
    assert issue(made, 6) == ([1, 2, 3, 4, 5, 6], False)
    assert issue(made, 4) == ([7, 8, 9, 10, 0, 0], False)
    assert issue(made, 1) == ([11, 0, 0, 0, 0, 0], True)


def test_a_word_with_room_for_an_entry_ends_them() -> None:
    """Otherwise the next word of the warp has to be looked at, two cycles later."""
    for entries, cycles in ((0, 3), (2, 3), (3, 5), (7, 5), (8, 7)):
        made = bench()
        give(made, encode(Metadata((1,) * 5, (7,) * 8, tuple((Entry.PRELOAD, number) for number in range(entries)))))
        announce(made)
        sent, cycle = send(made)
        assert (sum(map(len, sent)), cycle) == (entries, cycles)
    assert issue(made, 5) == ([1] * 5 + [0], True)


def test_words_ahead_are_kept_and_dropped_when_the_warp_jumps() -> None:
    made = bench()
    one, two, three = (encode(Metadata((number,), (0,) * 8, ((Entry.PRELOAD, number),))) for number in (1, 2, 3))
    give(made, one + two)
    assert announce(made) and send(made)[0] == [[(Entry.PRELOAD, 1)]]
    assert issue(made, 1) == ([1, 0, 0, 0, 0, 0], True)
    assert announce(made) and send(made)[0] == [[(Entry.PRELOAD, 2)]]
    give(made, one)
    assert issue(made, 1) == ([2, 0, 0, 0, 0, 0], True)
    tell(made, "flush")
    assert announce(made) == []
    give(made, three)
    assert announce(made) and send(made)[0] == [[(Entry.PRELOAD, 3)]]
