"""The golden model of the line crossbar, case by case; ``bench_line_crossbar.py`` has the random runs."""

from __future__ import annotations

import numpy as np
import pytest

from lockstep.models.lsu import line_crossbar
from lockstep.rtl.lsu.line_crossbar import LineCrossbar
from lockstep.spec.mapping import Mapping
from lockstep.verif.bench import Bench

LANES = 32
BYTES = np.arange(128, dtype=np.uint8) + 0x60  # from 0x80 on they are negative


def crossbar() -> Bench:
    bench = Bench(line_crossbar, lanes=LANES)
    bench.i["line_shift"] = 7
    return bench


def moved(**load: object) -> tuple[int, np.ndarray]:
    """The lanes and registers of one load of the line that holds ``BYTES``."""
    bench = crossbar()
    bench.i["load"]["valid"] = 1
    for name, value in {"active": 0xFFFF_FFFF, "size": 2, **load}.items():
        bench.i["load"]["payload"][name] = value
    bench.step()
    bench.i["load"]["valid"] = 0
    bench.i["line"] = BYTES.view(np.uint32)
    assert not bench.o["write"]["valid"]
    bench.step()
    assert bench.o["write"]["valid"]
    return int(bench.o["write"]["payload"]["lanes"]), bench.o["write"]["payload"]["registers"].copy()


def test_consecutive_words_are_the_line() -> None:
    lanes, registers = moved(mapping=Mapping.CONSECUTIVE)
    assert lanes == 0xFFFF_FFFF and registers[0].tobytes() == BYTES.tobytes() and not registers[1:].any()


def test_sixteen_bytes_fill_four_registers() -> None:
    lanes, registers = moved(mapping=Mapping.RANGE, size=4, thread=5, word=6)
    assert lanes == 0b11 << 5  # the line ends after the eighth word of 16 bytes
    assert registers[:, 5:7].T.tobytes() == BYTES[96:].tobytes()


def test_bytes_keep_their_sign() -> None:
    words, offset = np.arange(LANES)[::-1], np.arange(LANES) % 4
    for sign, kind in ((0, np.uint8), (1, np.int8)):
        _, registers = moved(mapping=Mapping.RANDOM, mask=0xFFFF_FFFF, words=words, offset=offset, size=0, sign=sign)
        assert (registers[0].view(np.int32) == BYTES.view(kind)[4 * words + offset]).all()


def test_loads_follow_each_other_without_a_gap() -> None:
    bench = crossbar()
    bench.i["load"]["valid"] = 1
    written = []
    for cycle in range(6):
        bench.i["load"]["payload"]["mapping"] = Mapping.SINGLE
        bench.i["load"]["payload"]["thread"] = cycle
        bench.step()
        if bench.o["write"]["valid"]:
            written.append(int(bench.o["write"]["payload"]["lanes"]))
    assert written == [1 << lane for lane in range(5)]


def test_sizes_out_of_range_are_refused() -> None:
    with pytest.raises(ValueError, match="lanes must be 1 to 32, not 33"):
        LineCrossbar(lanes=33)
