"""Standard-cell libraries that a user names."""

from __future__ import annotations

import bz2
import gzip
import lzma
import zlib
from pathlib import Path
from typing import TYPE_CHECKING

from lockstep.sim.errors import UsageError

if TYPE_CHECKING:
    from lockstep.synth.liberty import Library


_COMPRESSED = {b"\x1f\x8b": gzip.decompress, b"BZh": bz2.decompress, b"\xfd7zXZ": lzma.decompress}  # by how they begin


def read(path: str) -> Library:
    """A Liberty file, also one compressed by gzip, bzip2 or xz.

    Raises :class:`UsageError` for one that cannot be read, or has no flip-flops.
    """
    from lockstep.synth.liberty import Library

    try:
        content = Path(path).read_bytes()
        for start, decompress in _COMPRESSED.items():
            if content.startswith(start):
                content = decompress(content)
                break
        library = Library.parse(content.decode())
    except (OSError, EOFError, ValueError, lzma.LZMAError, zlib.error) as error:
        raise UsageError(f"--liberty {path}: cannot be read: {error}") from None
    if not library.sequential:
        raise UsageError(f"--liberty {path}: has no flip-flops, so it is not a library of standard cells")
    return library
