"""Which part of a count is whose, where two grids run: beside a record of counts stands the *share* of grid 1 in it.

The rest is grid 0's, so a grid alone has nothing to count twice. What is done for grid 1 stands between
:func:`exclude` and :func:`include`; its share then has what was counted in between. A record's first fields are those
that a share has.
"""

from __future__ import annotations

import numpy as np

from lockstep.models.jit import inline, record, words_i64


def share_of(counts: np.dtype, last: str) -> np.dtype:
    """The share in a record of counts: its fields up to ``last``."""
    names = list(counts.names or ())
    kinds = [(name, counts[name]) for name in names[: names.index(last) + 1]]
    return record([(name, kind.base, kind.shape) if kind.shape else (name, kind) for name, kind in kinds])


def words_of(kind: np.dtype) -> int:
    """How many counts a share has."""
    return kind.itemsize // 8


@inline
def exclude(share, counts, words):
    """Take out of a share what stands in the counts by now. Both are addresses."""
    own, all_of_them = words_i64(share, words), words_i64(counts, words)
    for k in range(words):
        own[k] -= all_of_them[k]


@inline
def include(share, counts, words):
    """Add what stands in them now."""
    own, all_of_them = words_i64(share, words), words_i64(counts, words)
    for k in range(words):
        own[k] += all_of_them[k]
