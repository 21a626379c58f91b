"""Copies between records, and slots: the same compiled, interpreted and from the cache."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from numba.core.codegen import JITCodeLibrary

from lockstep.models import cache, jit
from lockstep.models.jit import (
    argument,
    assign,
    clear,
    ctz,
    entry,
    i64,
    inline,
    inline_once,
    moves,
    record,
    without_lowest,
)
from lockstep.verif.bench import elsewhere

INNER = record([("a", "u1"), ("b", "u1"), ("c", "i2"), ("x", "u1", (3,))])
WIDER = record([("x", "i8", (3,)), ("b", "i8"), ("a", "i2")])
TARGET = record(
    [
        ("c", "i8"),
        ("d", "u8"),
        ("e", "i2"),
        ("f", "u1"),
        ("own", "u4"),
        ("same", INNER),
        ("row", INNER, (2,)),
        ("words", "i4", (2, 3)),
        ("after", "u1"),
    ]
)
SOURCE = record(
    [
        ("f", "u8"),
        ("after", "u1"),
        ("mine", "i4"),
        ("c", "i2"),
        ("d", "u4"),
        ("e", "i8"),
        ("same", INNER),
        ("row", WIDER, (2,)),
        ("words", "u1", (2, 3)),
    ]
)


@entry
def _assign(target, source):
    assign(target, source)


@entry
def _clear(target):
    clear(target.same)


def _filled(kind: np.dtype, seed: int) -> np.ndarray:
    found = np.zeros((), kind)
    found.reshape(1).view("u1")[:] = np.random.default_rng(seed).integers(0, 256, kind.itemsize)
    return found


def _expect(target: np.ndarray, source: np.ndarray) -> None:
    """What the names say, field by field."""
    for name in set(target.dtype.names or ()) & set(source.dtype.names or ()):
        if re.match(r"pad\d", name):
            continue
        if target.dtype[name].base.names:
            _expect(target[name], source[name])
        else:
            target[name] = source[name].astype(target.dtype[name].base)


def outcome(seed: int) -> list[int]:
    """The bytes of a record after a copy into it, and after a part of it has been cleared."""
    target, source = _filled(TARGET, seed), _filled(SOURCE, seed + 1000)
    _assign(argument(target), argument(source))
    copied = target.tobytes()
    _clear(argument(target))
    return [*copied, *target.tobytes()]


@pytest.mark.parametrize("seed", range(20))
def test_fields_of_the_same_name_are_copied(seed: int) -> None:
    expected, source = _filled(TARGET, seed), _filled(SOURCE, seed + 1000)
    _expect(expected, source)
    expected["same"] = source["same"]  # padding too: the types are equal
    before = expected.tobytes()
    expected["same"] = np.zeros((), INNER)
    assert outcome(seed) == [*before, *expected.tobytes()]


def test_interpreted_copies_are_the_same() -> None:
    assert elsewhere(outcome, 7, NUMBA_DISABLE_JIT="1") == outcome(7)


def test_adjacent_fields_are_one_move() -> None:
    kind = record([(name, "u1") for name in "pqrst"])
    longer = record([("p", "i8"), *((name, "u1") for name in "qrst")])
    assert [(move.to, move.at, move.count) for move in moves(kind, kind)] == [(0, 0, 5)]
    assert [(move.to, move.at, move.count) for move in moves(kind, longer)] == [(0, 0, 1), (1, 8, 4)]


@pytest.mark.parametrize(
    "source",
    [
        record([("z", "i8")]),  # nothing in common
        record([("words", "i4", (3, 2))]),
        record([("words", "i4")]),
        record([("row", INNER)]),
        record([("same", "i8")]),
        record([("c", "f8")]),
    ],
)
def test_what_does_not_fit_is_refused(source: np.dtype) -> None:
    with pytest.raises(TypeError, match=r"no field in common|cannot be assigned"):
        moves(TARGET, source)
    with pytest.raises(TypeError, match=r"no field in common|cannot be assigned"):
        _assign(argument(np.zeros((), TARGET)), argument(np.zeros((), source)))


_LEAF = """
from lockstep.models.jit import jit


@jit
def add(x):
    return x + 1
"""
_MODEL = """
import numpy as np
from lockstep.models.jit import address, addressof, argument, assign, call, entry, i64, jit, record, slots
from lockstep.models.leaf import add

STATE = record([("count", "i8")])
PORTS = record([("x", "u1"), ("count", "i2")])


@jit
def step(state, io):
    state.count = add(state.count)
    assign(io, state)
    return i64(0)


@jit
def skip(state, steps):
    state.count += steps
    return i64(0)


SLOTS = slots(STATE, PORTS, step=step, skip=skip)


@entry
def cycle(step, skip, state, io):
    call(step, addressof(state), addressof(io))
    call(skip, addressof(state), 100)
    call(step, addressof(state), addressof(io))
    return io.count


def run():
    state, io = argument(np.zeros((), STATE)), argument(np.zeros((), PORTS))
    return cycle(address(SLOTS["step"]), address(SLOTS["skip"]), state, io)
"""


@pytest.mark.exhaustive
def test_slots_come_from_the_cache_and_see_edits(tmp_path: Path) -> None:
    models = tmp_path / "lockstep" / "models"
    models.mkdir(parents=True)
    for name in ("__init__", "jit", "cache"):
        (models / f"{name}.py").write_text(
            (cache.ROOT / "models" / f"{name}.py").read_text(encoding="utf-8"), encoding="utf-8"
        )
    (models / "leaf.py").write_text(_LEAF, encoding="utf-8")
    for name, step in (("one", 1), ("two", 2)):  # alike but for a word
        (models / f"{name}.py").write_text(_MODEL.replace("+= steps", f"+= {step} * steps"), encoding="utf-8")

    def result(**environment: str) -> str:
        variables = {**os.environ, "PYTHONPATH": str(tmp_path), "LOCKSTEP_CACHE": str(tmp_path / "cache")}
        variables.pop("NUMBA_CACHE_DIR", None)
        variables["PYTHONDONTWRITEBYTECODE"] = "1"  # Python would not see an edit in the same second
        code = (
            "from lockstep.models import one, two; print(one.run(), two.run(),"
            "*(getattr(slot, 'cache_hits', 0) for m in (one, two) for slot in m.SLOTS.values()))"
        )
        done = subprocess.run(
            [sys.executable, "-c", code],
            env=variables | environment,
            check=True,
            stdout=subprocess.PIPE,
            encoding="utf-8",
        )
        return done.stdout.strip()

    assert result() == "102 202 0 0 0 0"
    assert result() == "102 202 1 1 1 1"
    assert result(NUMBA_DISABLE_JIT="1") == "102 202 0 0 0 0"
    (models / "leaf.py").write_text(_LEAF.replace("+ 1", "+ 2"), encoding="utf-8")
    assert result() == "104 204 0 0 0 0"


@entry
def _lowest_bits(mask):
    """The indices of a mask's bits, in six bits of a number each, the first in the highest."""
    found = 1
    while mask != 0:
        found = found * 64 + ctz(mask)
        mask = without_lowest(mask)
    return found


def lowest_bits(mask: int) -> int:
    return int(_lowest_bits(np.int64(mask)))


@pytest.mark.parametrize("bits", [(), (0,), (63,), (0, 62, 63), (5, 40)])
def test_a_loop_over_a_mask_ends_after_its_highest_bit(bits: tuple[int, ...]) -> None:
    mask, expected = sum(1 << bit for bit in bits), 1
    for bit in bits:
        expected = expected * 64 + bit
    mask -= (mask >> 63) << 64
    assert lowest_bits(mask) == elsewhere(lowest_bits, mask, NUMBA_DISABLE_JIT="1") == expected


@inline
def more(x: int) -> int:
    return i64(x + 1)


@inline_once
def twice(x: int) -> int:
    return i64(2 * more(more(x)))


def test_what_is_inlined_has_no_machine_code_of_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    made = []
    monkeypatch.setattr(JITCodeLibrary, "_finalize_specific", lambda library: made.append(library.name))
    monkeypatch.setitem(vars(jit)["_INTERNAL"], "cache", False)

    @jit.jit
    def caller(x: int) -> int:
        return i64(twice(x) + more(x))

    assert caller(3) == 14
    assert made[-1].endswith("caller") and not {"more", "twice"} & {*made}
