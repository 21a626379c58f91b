"""Files that are written as a whole or not at all; what is no file is written into."""

from __future__ import annotations

import os
import secrets
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

__all__ = ["is_stream", "replacing", "writable", "write"]

MOST_LINKS = 40  # one after the other, as Linux has it


def _descriptor(path: Path) -> int | None:
    """The descriptor of this process that a path names, as ``/dev/stdout`` does."""
    for _ in range(MOST_LINKS):
        if path.name.isdecimal() and os.path.realpath(path.parent) == os.path.realpath("/proc/self/fd"):
            return int(path.name)
        if not path.is_symlink():
            return None
        path = path.parent / os.readlink(path)
    return None


def is_stream(path: Path) -> bool:
    """Whether a path names a pipe, a device or a descriptor: what is written into, and cannot be replaced."""
    return _descriptor(path) is not None or (path.exists() and not path.is_file() and not path.is_dir())


def writable(path: Path) -> bool:
    """Whether :func:`replacing` can be expected to work."""
    if _descriptor(path) is not None:
        return path.exists()
    path = Path(os.path.realpath(path))
    if path.exists() and not path.is_file():
        return not path.is_dir() and os.access(path, os.W_OK)
    return path.parent.is_dir() and os.access(path.parent, os.W_OK) and (not path.exists() or os.access(path, os.W_OK))


@contextmanager
def replacing(path: Path) -> Iterator[IO[bytes]]:
    """A file to write, which takes the place of ``path``, or of what it links to, at the end of the block.

    When the block is left by an error or an interrupt, ``path`` stays as it was. What is not a file (a pipe, a
    terminal, a descriptor such as ``/dev/stdout``) is written to directly, since nothing can take its place. An OSError
    names the path.
    """
    try:
        with _opened(path) as file:
            yield file
    except BrokenPipeError:
        raise
    except OSError as error:
        raise OSError(error.errno, error.strerror, str(path)) from None


@contextmanager
def _opened(path: Path) -> Iterator[IO[bytes]]:
    if (number := _descriptor(path)) is not None:
        with os.fdopen(os.dup(number), "wb") as file:  # opened anew, a file would begin again
            yield file
        return
    path = Path(os.path.realpath(path))
    if path.exists() and not path.is_file():
        with path.open("wb") as file:
            yield file
        return
    fresh = path.with_name(f".{secrets.token_hex(8)}")
    try:
        with fresh.open("xb") as file:
            yield file
        if path.exists():
            fresh.chmod(stat.S_IMODE(path.stat().st_mode))
        os.replace(fresh, path)
    except BaseException:
        fresh.unlink(missing_ok=True)
        raise


def write(path: Path, content: str | bytes) -> None:
    """Make ``content`` all that is in ``path``; a text as UTF-8, names of files in it as their bytes."""
    with replacing(path) as file:
        file.write(content.encode(errors="surrogateescape") if isinstance(content, str) else content)
