"""Columns of values as CSV or Parquet: for what has too many rows, or too many columns, for a table on a terminal."""

from __future__ import annotations

import csv
import io
from collections.abc import Collection, Mapping
from typing import Any

import numpy as np

from lockstep.sim.errors import UsageError

__all__ = ["check_parquet", "csv_text", "parquet"]

Columns = Mapping[str, Collection[Any]]
"""Arrays or lists by name, all of the same length."""


def csv_text(columns: Columns) -> str:
    """A line of names, and one for each row."""
    values = (column.tolist() if isinstance(column, np.ndarray) else column for column in columns.values())
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerows([columns, *zip(*values, strict=True)])
    return text.getvalue()


def check_parquet() -> None:
    """Raise :class:`UsageError` if Parquet cannot be written."""
    try:
        import pyarrow.parquet  # noqa: F401
    except ImportError:
        raise UsageError("Parquet needs PyArrow: pip install 'lockstep-sm[parquet]'; CSV needs nothing") from None


def parquet(columns: Columns) -> bytes:
    """The same as a Parquet file."""
    import pyarrow
    import pyarrow.parquet

    sink = pyarrow.BufferOutputStream()
    pyarrow.parquet.write_table(pyarrow.table(dict(columns)), sink)
    content: bytes = sink.getvalue().to_pybytes()
    return content
