"""The register compressor, case by case; ``bench_register_compressor.py`` has the random runs."""

from __future__ import annotations

from typing import Any

import pytest

from lockstep.models.regless import register_compressor
from lockstep.rtl import registry
from lockstep.spec.regless.parameters import BY_WARP, POISON, Access, Request, State, per_line
from lockstep.verif.bench import Bench
from lockstep.verif.regless.bench_register_compressor import CONFIGURATIONS

LANES = range(32)


def bench(**parameters: int) -> Bench:
    made = Bench(register_compressor, **CONFIGURATIONS["paper"] | parameters)
    made.i["access"]["ready"] = made.i["fill"]["ready"] = 1
    return made


def ask(made: Bench, kind: Request, number: int, words: Any = 0, warp: int = 3) -> tuple[str, int, Any]:
    """A request: what comes of it first, and after how many cycles."""
    request = made.i["request"]
    request["valid"] = 1
    request["payload"]["kind"], request["payload"]["warp"], request["payload"]["number"] = kind, warp, number
    request["payload"]["words"] = words
    made.comb()
    assert made.c["request"]["ready"]
    found: tuple[str, int, Any] = ("", 0, None)
    for cycle in range(12):
        made.cycle()
        request["valid"] = 0
        for name in ("fill", "access"):
            if made.o[name]["valid"] and not found[0]:
                found = (name, cycle + 1, made.o[name]["payload"].copy())
    return found


def test_fifteen_registers_in_a_line() -> None:
    """Section 4.5.3: eight bytes and three bits each."""
    assert (per_line(128), per_line(64)) == (15, 7)
    assert CONFIGURATIONS["paper"]["per_line"] == 15
    block = registry.component("regless.register_compressor")()
    assert block._kept.depth == 12 and block._kept.shape.length == 15


def test_latencies() -> None:
    made = bench()
    where, cycles, payload = ask(made, Request.FETCH, 7)
    assert (where, cycles) == ("fill", 2) and set(payload["words"]) == {POISON}, "no copy"
    assert ask(made, Request.STORE, 7, [lane * lane for lane in LANES])[:2] == ("access", 2)
    where, cycles, payload = ask(made, Request.FETCH, 7)
    assert (where, cycles, payload["kind"]) == ("access", 2, Access.FETCH)
    assert ask(made, Request.STORE, 8, [5 * 4 + 4 * lane for lane in LANES])[0] == "", "it stays here"
    where, cycles, payload = ask(made, Request.FETCH, 8)
    assert (where, cycles) == ("fill", 4) and list(payload["words"]) == [20 + 4 * lane for lane in LANES]
    made = bench(lines=1)
    ask(made, Request.STORE, 8, [1] * 32)
    where, cycles, payload = ask(made, Request.STORE, 9, [2] * 32)
    assert (where, cycles, payload["kind"]) == ("access", 3, Access.STORE_LINE), "in the cycle that finds the place"


@pytest.mark.parametrize(
    "pattern, words",
    [
        (State.CONSTANT, [7] * 32),
        (State.STRIDE_1, [(0xFFFF_FFF0 + k) & 0xFFFF_FFFF for k in LANES]),
        (State.STRIDE_4, [100 + 4 * k for k in LANES]),
        (State.HALF_1, [k if k < 16 else 900 + k for k in LANES]),
        (State.HALF_4, [4 * k if k < 16 else 8 + 4 * k for k in LANES]),
        (State.RAW, [7] * 16 + [8] * 16),
        (State.RAW, [2 * k for k in LANES]),
        (State.RAW, [4 * k for k in range(31)] + [0]),
    ],
)
def test_patterns(pattern: State, words: list[int]) -> None:
    made = bench()
    where, _, payload = ask(made, Request.STORE, 9, words)
    assert (where == "access") == (pattern == State.RAW)
    assert made.state["code"][3, 9] == pattern
    if where:
        assert payload["kind"] == Access.STORE and list(payload["words"]) == words
    else:
        where, _, payload = ask(made, Request.FETCH_LAST, 9)
        assert where == "fill" and list(payload["words"]) == words
        assert made.state["code"][3, 9] == State.NONE


def test_without_lines_registers_are_stored_as_they_are() -> None:
    made = bench(lines=0)
    where, cycles, payload = ask(made, Request.STORE, 9, [7] * 32)
    assert (where, cycles, payload["kind"]) == ("access", 2, Access.STORE) and list(payload["words"]) == [7] * 32
    where, cycles, payload = ask(made, Request.FETCH, 9)
    assert (where, cycles, payload["kind"]) == ("access", 2, Access.FETCH)


def test_what_changes_its_form_is_dropped() -> None:
    made = bench()
    ask(made, Request.STORE, 9, [k * k for k in LANES])
    where, _, payload = ask(made, Request.STORE, 9, [1] * 32)
    assert (where, payload["kind"], payload["number"]) == ("access", Access.DROP, 9)


def answer(made: Bench, number: int, expand: int = 1) -> None:
    """The L1 answers the fetch of a register's line, which takes a place, with zeros."""
    there = made.i["answer"]
    there["valid"], there["payload"]["line"], there["payload"]["warp"], there["payload"]["number"] = 1, 1, 3, number
    there["payload"]["install"], there["payload"]["expand"] = 1, expand
    there["payload"]["pattern"] = State.CONSTANT
    made.cycle()
    there["valid"] = 0
    for _ in range(4):
        made.cycle()


def test_a_line_has_neighbours_by_number_then_by_warp() -> None:
    """Section 4.5.2.3: R0 of every warp, then R1; of 16 warps, the last one's R0 is the first in the second line."""
    made = bench(lines=1)
    for warp in range(15):
        assert ask(made, Request.STORE, 0, [100 + warp] * 32, warp)[0] == ""
    where, _, payload = ask(made, Request.STORE, 0, [7] * 32, 15)
    assert (where, payload["kind"], payload["group"]) == ("access", Access.STORE_LINE, 0)
    assert list(payload["words"][:30:2]) == [100 + warp for warp in range(15)]
    for warp in range(14):
        assert ask(made, Request.STORE, 1, [200 + warp] * 32, warp)[0] == ""
    where, _, payload = ask(made, Request.STORE, 254, [8] * 32, 15)
    assert (where, payload["kind"], payload["group"]) == ("access", Access.STORE_LINE, 1)
    assert list(payload["words"][:30:2]) == [7, *(200 + warp for warp in range(14))]
    where, _, payload = ask(made, Request.STORE, 0, [9] * 32)
    assert (payload["kind"], payload["group"]) == (Access.STORE_LINE, 16 * 255 // 15 - 1)


def test_a_line_can_have_neighbours_by_warp_then_by_number() -> None:
    """The 255 registers of a warp fill 17 lines."""
    made = bench(lines=1, compressed_by=BY_WARP)
    for number in range(240, 255):
        assert ask(made, Request.STORE, number, [number] * 32, 2)[0] == ""
    where, _, payload = ask(made, Request.STORE, 0, [7] * 32, 3)
    assert (where, payload["kind"], payload["group"]) == ("access", Access.STORE_LINE, 3 * 17 - 1)
    assert list(payload["words"][:30:2]) == [*range(240, 255)]


def test_a_warp_ends_and_its_lines_stay() -> None:
    made = bench(lines=1)
    ask(made, Request.STORE, 0, [5] * 32)
    ask(made, Request.STORE, 0, [6] * 32, 4)
    assert ask(made, Request.FINISH, 0)[0] == ""
    where, _, payload = ask(made, Request.FETCH, 0)
    assert where == "fill" and set(payload["words"]) == {POISON}
    where, cycles, payload = ask(made, Request.FETCH, 0, warp=4)
    assert (where, cycles) == ("fill", 4) and set(payload["words"]) == {6}
    assert ask(made, Request.STORE, 9, [7] * 32)[2]["kind"] == Access.STORE_LINE, "with the other warp's value"


def test_a_line_that_has_left_is_fetched_for_a_store() -> None:
    """Even if no register in it has a copy."""
    made = bench(lines=1)
    ask(made, Request.STORE, 0, [5] * 32)
    assert ask(made, Request.STORE, 15, [6] * 32)[2]["kind"] == Access.STORE_LINE
    for number in 0, 15:
        ask(made, Request.DROP, number)
    assert ask(made, Request.STORE, 0, [7] * 32)[2]["kind"] == Access.STORE_LINE
    assert made.state["line"][0]["pending"] == 1 and made.state["line"][0]["present"][3] == 1
    answer(made, 0, expand=0)
    where, cycles, payload = ask(made, Request.FETCH, 0)
    assert (where, cycles) == ("fill", 4) and set(payload["words"]) == {7}, "not what was fetched"


def test_what_a_fetch_without_a_place_reads_stays_below() -> None:
    """A store into its line, which is not here, does not begin a line that might leave before the fetch is answered."""
    made = bench(lines=1)
    ask(made, Request.STORE, 0, [5] * 32)
    ask(made, Request.STORE, 15, [6] * 32)
    assert ask(made, Request.FETCH, 0)[2]["kind"] == Access.STORE_LINE, "of register 15; the place waits for the other"
    where, _, payload = ask(made, Request.FETCH_LAST, 15)
    assert (where, payload["kind"], payload["install"]) == ("access", Access.FETCH_LINE, 0)
    answer(made, 0)
    where, _, payload = ask(made, Request.STORE, 15, [7] * 32, 4)
    assert (where, payload["kind"], payload["install"]) == ("access", Access.FETCH_LINE, 1)


def test_sizes_out_of_range_are_refused() -> None:
    cls = registry.component("regless.register_compressor")
    for name, value in (("lines", 17), ("per_line", 16), ("per_line", 0), ("warps", 65)):
        with pytest.raises(ValueError, match=f"{name} must be 1 to"):
            cls(**{name: value})
    with pytest.raises(ValueError, match="compressed_by must be 0 to 1, not 2"):
        cls(compressed_by=2)
