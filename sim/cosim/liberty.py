"""Standard-cell libraries that a user names."""

from __future__ import annotations

import bz2
import gzip
import lzma
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lockstep.sim.errors import UsageError

if TYPE_CHECKING:
    from lockstep.synth.liberty import Library

_COMPRESSED: dict[bytes, Callable[..., Any]] = {  # what opens a file, by how it begins
    b"\x1f\x8b": gzip.open, b"BZh": bz2.open, b"\xfd7zXZ": lzma.open,
}  # fmt: skip
_MOST = 1 << 30  # bytes of a library


def read(path: str, option: str = "--liberty") -> Library:
    """A Liberty file that an option names, also one compressed by gzip, bzip2 or xz.

    Raises :class:`UsageError` for one that cannot be read, is larger than a GiB, or has no flip-flops.
    """
    from lockstep.synth.liberty import Library

    try:
        content = _content(Path(path))
        if len(content) > _MOST:
            raise UsageError(f"{option} {path}: has more than {_MOST:,} bytes")
        library = Library.parse(content.decode())
    except (OSError, EOFError, ValueError, lzma.LZMAError, zlib.error) as error:
        raise UsageError(f"{option} {path}: cannot be read: {error}") from None
    if not library.sequential:
        raise UsageError(f"{option} {path}: has no flip-flops, so it is not a library of standard cells")
    return library


def _content(path: Path) -> bytes:
    """What a file has, decompressed; of more than a library can be, no more than shows that."""
    with path.open("rb") as file:
        start = file.read(max(map(len, _COMPRESSED)))
        file.seek(0)
        for known, opened in _COMPRESSED.items():
            if start.startswith(known):
                with opened(file, "rb") as inside:
                    content: bytes = inside.read(_MOST + 1)
                    return content
        return file.read(_MOST + 1)
