"""From a PTX file or text to a program.

The result is kept on disk under a hash of the text, the register limit, the passes and the sources of the front end and
of the passes, so a module is parsed and lowered once.
"""

from __future__ import annotations

import hashlib
import os
import pickle
from collections.abc import Iterable, Sequence
from pathlib import Path

from lockstep.models import cache
from lockstep.models.execution import isa
from lockstep.sim.compile.ptx.kernel import Program
from lockstep.sim.compile.ptx.passes import ordered, source
from lockstep.sim.errors import UsageError
from lockstep.spec.passes import Pass


def load(
    path_or_text: str | os.PathLike[str], registers_per_thread: int = 63, passes: Iterable[Pass] = ()
) -> Program:
    """Parse, lower and transform a PTX module: a path, or its text (recognised by a line break).

    Raises :class:`UsageError` for a missing file, for PTX that is not understood, for kernels that cannot be compiled
    under the limit, and for passes that do not exist.
    """
    if isinstance(path_or_text, str) and "\n" in path_or_text:
        path, text = "<text>", path_or_text
    else:
        path = os.fspath(path_or_text)
        text = read(path)
    if not 16 <= registers_per_thread <= isa.MAX_REGISTERS:
        raise UsageError(f"registers per thread: {registers_per_thread} is outside 16..{isa.MAX_REGISTERS}")
    chosen = ordered(passes)
    key = "\n".join([_sources(chosen), *map(repr, chosen), str(registers_per_thread), path, text])
    digest = hashlib.sha256(key.encode(errors="surrogateescape"))
    kept = cache.kept(f"ptx/{digest.hexdigest()}", lambda: _build(text, path, registers_per_thread, chosen))
    return pickle.loads(kept)


def _build(text: str, path: str, registers_per_thread: int, passes: Sequence[Pass]) -> bytes:
    # Late, because a kept program needs neither Lark nor NetworkX, which take a fifth of a second to import.
    from lockstep.sim.compile.ptx.build import build
    from lockstep.sim.compile.ptx.parser import parse

    return pickle.dumps(build(parse(text, path), registers_per_thread, passes), protocol=5)


def read(path: str | os.PathLike[str]) -> str:
    """The text of a PTX file. Raises :class:`UsageError`."""
    try:
        return Path(path).read_text(encoding="utf-8")
    except OSError as error:
        raise UsageError(f"{os.fspath(path)}: cannot read the PTX file: {error.strerror}") from None
    except UnicodeDecodeError:
        raise UsageError(f"{os.fspath(path)}: not a PTX file: it is not UTF-8 text") from None


def _sources(passes: Sequence[Pass]) -> str:
    """A hash of everything that decides what a program looks like: all that the front end and the passes import."""
    digest = hashlib.sha256()
    modules = cache.closure(Path(__file__), *map(source, passes))
    for path in (*modules, Path(__file__).with_name("ptx.lark")):
        digest.update(str(path.relative_to(cache.ROOT)).encode() + path.read_bytes())
    return digest.hexdigest()
