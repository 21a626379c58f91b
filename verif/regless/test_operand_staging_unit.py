"""The operand staging unit, case by case; ``bench_operand_staging_unit.py`` has the random runs."""

from __future__ import annotations

from typing import Any

import pytest

from lockstep.models.regless import operand_staging_unit
from lockstep.rtl import registry
from lockstep.spec.register_regions import ERASE, LAST, Entry
from lockstep.spec.regless.parameters import FIRST_RELEASED, IN_TURN, POISON, Request
from lockstep.verif.bench import Bench
from lockstep.verif.regless.bench_operand_staging_unit import CONFIGURATIONS

BANK = 3  # of warp 1 and register 2


def bench(lines: int = 32, leaves: int = IN_TURN) -> Bench:
    made = Bench(operand_staging_unit, **CONFIGURATIONS["gtx480"] | {"lines": lines, "leaves": leaves})
    made.i["request"]["ready"] = 1
    return made


def send(made: Bench, port: str, sees: str, number: int = 2, **fields: Any) -> tuple[int, Any]:
    """Transfer something about a register of warp 1: after how many cycles ``sees`` is valid, and its payload."""
    bank = (1 + number) % 8
    there = made.i[port] if port in ("fill", "finish") else made.i[port][bank]
    there["valid"] = 1
    for name, value in {"warp": 1, "number": number, **fields}.items():
        there["payload"][name] = value
    for cycle in range(8):
        made.cycle()
        there["valid"] = 0
        found = made.o[sees] if sees == "request" else made.o[sees][bank]
        if found["valid"]:
            return cycle + 1, found["payload"].copy()
    return 0, None


def test_latencies() -> None:
    made = bench()
    cycles, request = send(made, "preload", "request", action=Entry.PRELOAD)
    assert (cycles, request["kind"], request["number"]) == (3, Request.FETCH, 2)
    assert send(made, "fill", "answered", words=range(32))[0] == 1
    cycles, operand = send(made, "access", "operand", flags=LAST)
    assert cycles == 2 and list(operand["words"]) == list(range(32))
    assert send(made, "preload", "answered", action=Entry.PRELOAD)[0] == 2, "the line is still there"


def result(made: Bench, number: int, flags: int, mask: int, word: int) -> None:
    cycles, operand = send(made, "access", "operand", number, result=1, flags=0)
    assert cycles == 2 and operand["result"]
    send(made, "write", "answered", number, flags=flags, mask=mask, words=word)


def test_lanes_that_a_new_register_was_not_given_are_poison() -> None:
    made = bench()
    result(made, 2, 0, 0xFF, 5)
    result(made, 2, 0, 0xF000, 6)
    _, operand = send(made, "access", "operand", result=0, flags=0)
    assert list(operand["words"]) == [5] * 8 + [POISON] * 4 + [6] * 4 + [POISON] * 16


def test_a_dirty_line_is_stored_when_its_place_is_needed_and_an_erased_one_is_not() -> None:
    for flags, kinds in ((LAST, [Request.STORE, Request.FETCH]), (LAST | ERASE, [Request.FETCH])):
        made = bench(lines=1)
        result(made, 2, flags, 0xFFFF_FFFF, 9)
        preload, seen = made.i["preload"][BANK], []
        preload["valid"] = 1
        preload["payload"]["warp"], preload["payload"]["number"], preload["payload"]["action"] = 2, 1, Entry.PRELOAD
        for _ in range(12):
            made.cycle()
            preload["valid"] = 0
            if made.o["request"]["valid"]:
                seen.append(int(made.o["request"]["payload"]["kind"]))
        assert seen == kinds


@pytest.mark.parametrize("lines", [3, 64, 90])
def test_lines_leave_in_turn(lines: int) -> None:
    """The first ones are dirty, and are stored in the order in which they came."""
    made = bench(lines)
    registers = [(warp, number) for number in range(63) for warp in range(24) if (warp + number) % 8 == BANK]
    access, write, preload = (made.i[port][BANK] for port in ("access", "write", "preload"))
    access["payload"]["result"] = 1
    for warp, number in registers[:lines]:
        for event, seen in ((access, "operand"), (write, "")):
            event["valid"] = 1
            event["payload"]["warp"], event["payload"]["number"] = warp, number
            event["payload"]["flags"] = LAST if event is write else 0
            made.cycle()
            event["valid"] = 0
            made.cycle()
            assert not seen or made.o[seen][BANK]["valid"]
    stored = []
    for warp, number in registers[lines : 2 * lines]:
        preload["valid"] = 1
        preload["payload"]["warp"], preload["payload"]["number"] = warp, number
        preload["payload"]["action"] = Entry.PRELOAD
        for _ in range(8):
            made.cycle()
            preload["valid"] = 0
            request = made.o["request"]
            if request["valid"] and request["payload"]["kind"] == Request.STORE:
                stored.append((int(request["payload"]["warp"]), int(request["payload"]["number"])))
    assert stored == registers[:lines]


@pytest.mark.parametrize("leaves", [IN_TURN, FIRST_RELEASED])
def test_lines_leave_in_turn_or_as_they_were_released(leaves: int) -> None:
    """Of four dirty lines, the second is given back last, and the third is used and given back again."""
    made = bench(4, leaves)
    numbers = [number for number in range(63) if (1 + number) % 8 == BANK]
    for number in numbers[:4]:
        assert send(made, "access", "operand", number, result=1, flags=0)[0]
    for number in numbers[0], numbers[2], numbers[3], numbers[1]:
        send(made, "write", "answered", number, flags=LAST, mask=0xFFFF_FFFF, words=number)
    assert send(made, "preload", "answered", numbers[2], action=Entry.PRELOAD)[0]
    assert send(made, "access", "operand", numbers[2], result=0, flags=LAST)[0]
    stored = []
    for number in numbers[4:]:
        _, request = send(made, "preload", "request", number, action=Entry.PRELOAD)
        stored += [int(request["number"])] if request["kind"] == Request.STORE else []
        for _ in range(8):
            made.cycle()
    order = (0, 1, 2, 3) if leaves == IN_TURN else (0, 3, 1, 2)
    assert stored == [numbers[place] for place in order]


def test_banks_are_a_power_of_two() -> None:
    with pytest.raises(ValueError, match="banks must be a power of two, not 3"):
        registry.component("regless.operand_staging_unit")(banks=3)


def test_lines_leave_in_one_of_two_ways() -> None:
    with pytest.raises(ValueError, match="leaves must be 0 to 1, not 2"):
        registry.component("regless.operand_staging_unit")(leaves=2)
