"""Files that are written as a whole or not at all."""

from __future__ import annotations

import os
import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

__all__ = ["replacing", "write"]


@contextmanager
def replacing(path: Path) -> Iterator[IO[bytes]]:
    """A file to write, which takes the place of ``path`` at the end of the block.

    When the block is left by an error or an interrupt, ``path`` stays as it was. What is not a file (a pipe, a
    terminal) is written to directly, since nothing can take its place.
    """
    if path.exists() and not path.is_file():
        with path.open("wb") as file:
            yield file
        return
    fresh = path.with_name(f".{path.name}.{secrets.token_hex(8)}")
    try:
        with fresh.open("xb") as file:
            yield file
        os.replace(fresh, path)
    except BaseException:
        fresh.unlink(missing_ok=True)
        raise


def write(path: Path, content: str | bytes) -> None:
    """Make ``content`` all that is in ``path``; a text as UTF-8."""
    with replacing(path) as file:
        file.write(content.encode() if isinstance(content, str) else content)
