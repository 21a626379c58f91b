"""Shares of counts: what was counted between the two calls is added, whatever was there before."""

from __future__ import annotations

import numpy as np

from lockstep.models.jit import addressof, argument, jit, record
from lockstep.models.share import exclude, include, share_of, words_of
from lockstep.verif.bench import elsewhere, seeded

COUNTS = record([("a", "i8"), ("b", "i8", (3,)), ("c", "i8"), ("d", "i8")])
SHARE = share_of(COUNTS, "c")
WORDS = words_of(SHARE)
BOTH = record([("counts", COUNTS), ("share", SHARE)])


@jit
def count(both, amounts, grids):
    for k in range(len(grids)):
        if grids[k] != 0:
            exclude(addressof(both.share), addressof(both.counts), WORDS)
        counts = both.counts
        counts.a += amounts[k]
        counts.b[k % 3] += 2 * amounts[k]
        counts.c += 1
        counts.d += amounts[k]
        if grids[k] != 0:
            include(addressof(both.share), addressof(both.counts), WORDS)


def counted(amounts: list[int], grids: list[int]) -> list[int]:
    both = np.zeros(1, BOTH)
    record = argument(both[0:1].reshape(()))
    count(record, argument(np.array(amounts)), argument(np.array(grids)))
    return both.view(np.int64).tolist()


def test_a_share_has_the_first_fields() -> None:
    assert SHARE.names == ("a", "b", "c") and WORDS == 5
    assert [SHARE.fields[name][1] for name in SHARE.names] == [COUNTS.fields[name][1] for name in SHARE.names]  # type: ignore[index]


def test_what_is_done_for_a_grid_is_its() -> None:
    rng = seeded()
    amounts = [rng.randrange(-5, 100) for _ in range(40)]
    grids = [rng.randrange(2) for _ in amounts]
    whole, part = [0] * 6, [0] * 5
    for k, (amount, grid) in enumerate(zip(amounts, grids, strict=True)):
        for counts in (whole, part) if grid else (whole,):
            counts[0] += amount
            counts[1 + k % 3] += 2 * amount
            counts[4] += 1
        whole[5] += amount
    assert counted(amounts, grids) == whole + part
    assert elsewhere(counted, amounts, grids, NUMBA_DISABLE_JIT="1") == whole + part
