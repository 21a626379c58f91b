"""The golden model of the store crossbar, case by case; ``bench_store_crossbar.py`` has the random runs."""

from __future__ import annotations

import numpy as np
import pytest

from lockstep.models.lsu import store_crossbar
from lockstep.rtl.lsu.store_crossbar import StoreCrossbar
from lockstep.verif.bench import Bench

LANES = 32
ALL = 0xFFFF_FFFF
VALUES = np.random.default_rng(1).integers(0, 1 << 32, (4, LANES), np.uint32)


def crossbar() -> Bench:
    bench = Bench(store_crossbar, lanes=LANES)
    bench.i["line_shift"] = 7
    return bench


def moved(**store: object) -> tuple[np.ndarray, np.ndarray]:
    """The bytes that one store of ``VALUES`` gives its line, and which of them it stores."""
    bench = crossbar()
    bench.i["store"]["valid"] = 1
    for name, value in {"mask": ALL, **store}.items():
        bench.i["store"]["payload"][name] = value
    bench.step()
    bench.i["store"]["valid"] = 0
    bench.i["registers"] = VALUES
    assert not bench.o["write"]["valid"]
    bench.step()
    assert bench.o["write"]["valid"]
    write = bench.o["write"]["payload"]
    enabled = np.unpackbits(write["bytes"][:, None].astype(np.uint8), axis=1, bitorder="little")[:, :4]
    return write["line"].view(np.uint8).copy(), enabled.reshape(-1).astype(bool)


def test_words_in_a_row_are_the_line() -> None:
    line, stored = moved(size=2, place=4 * np.arange(LANES))
    assert line.tobytes() == VALUES[0].tobytes() and stored.all()


def test_sixteen_bytes_of_a_lane_stand_together() -> None:
    line, stored = moved(size=4, mask=0b1111_1111 << 3, place=16 * (np.arange(LANES) - 3 & 7))
    assert line.tobytes() == VALUES[:, 3:11].T.tobytes() and stored.all()


def test_a_byte_stands_anywhere() -> None:
    place = np.random.default_rng(2).permutation(128)[:LANES]
    line, stored = moved(size=0, place=place)
    assert (line[place] == (VALUES[0] & 255)).all() and (np.flatnonzero(stored) == np.sort(place)).all()
    assert not line[~stored].any()


def test_the_highest_lane_wins() -> None:
    line, stored = moved(size=1, mask=ALL >> 5, place=6)
    assert line[6:8].tobytes() == VALUES[0, 26].astype(np.uint16).tobytes() and stored.sum() == 2


def test_bits_of_an_address_that_say_nothing() -> None:
    bench = crossbar()
    bench.i["line_shift"] = 5
    bench.i["store"]["valid"] = 1
    bench.i["store"]["payload"]["mask"] = 1
    bench.i["store"]["payload"]["size"] = 3
    bench.i["store"]["payload"]["place"] = 0b11_11_111  # beyond a line of 32 bytes; place 24; inside the access
    bench.step()
    bench.i["registers"] = VALUES
    bench.step()
    write = bench.o["write"]["payload"]
    assert (write["line"][6:8] == VALUES[:2, 0]).all() and list(np.flatnonzero(write["bytes"])) == [6, 7]


def test_stores_follow_each_other_without_a_gap() -> None:
    bench = crossbar()
    bench.i["store"]["valid"] = 1
    stored = []
    for cycle in range(6):
        bench.i["store"]["payload"]["mask"] = 1
        bench.i["store"]["payload"]["place"] = cycle
        bench.step()
        if bench.o["write"]["valid"]:
            stored.append(int(bench.o["write"]["payload"]["bytes"][0] | bench.o["write"]["payload"]["bytes"][1] << 4))
    assert stored == [1 << byte for byte in range(5)]


def test_sizes_out_of_range_are_refused() -> None:
    with pytest.raises(ValueError, match="lanes must be 1 to 32, not 0"):
        StoreCrossbar(lanes=0)
