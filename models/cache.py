"""What is kept on disk between runs: Numba's cache, made to see edits in imported modules, and entries of other kinds.

Numba recompiles a cached function when its own file changes, but not when a function that it calls has changed in
another file: the stale machine code would be loaded silently. The locator here stamps a function with the contents of
its module and of every project module that it imports, directly or not, with the versions of Numba and NumPy and with
the settings that change what is compiled. Files live in one folder per user, outside the source tree.

An entry has a seal: one that is damaged is made anew. What several processes want at once is made by one of them.
"""

from __future__ import annotations

import ast
import errno
import fcntl
import functools
import hashlib
import os
import pickle
import re
import signal
import threading
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from types import FrameType
from typing import Any

from lockstep.spec import files

PACKAGE = "lockstep"
# The folders that the import names stand for; the tree is mapped by setuptools, so it is not found by name.
ROOT = Path(__file__).resolve().parent.parent
FOLDERS = ("models", "rtl", "sim", "spec", "verif")


class Unusable(OSError):
    """Nothing can be kept; the message says where, and what to do."""


def is_set(variable: str) -> bool:
    """Whether the environment turns something on, as Numba reads its own variables."""
    return os.environ.get(variable, "0") not in ("", "0")


def folder() -> Path:
    """Where compiled code and derived layouts are kept; ``LOCKSTEP_CACHE`` overrides it. Raises :class:`Unusable`."""
    chosen, shared = os.environ.get("LOCKSTEP_CACHE"), os.environ.get("XDG_CACHE_HOME", "")
    caches = Path(shared) if os.path.isabs(shared) else Path.home() / ".cache"
    base = Path(chosen) if chosen else caches / PACKAGE
    try:
        base.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise _unusable(base, error.strerror) from None
    if not os.access(base, os.W_OK | os.X_OK):
        raise _unusable(base, "cannot be written to")
    return base


def _unusable(place: Path | str, why: str | None) -> Unusable:
    return Unusable(f"the cache folder {place}: {why}; LOCKSTEP_CACHE can name another")


# ------------------------------------------------------------------------------------------------------------- entries


@functools.cache
def _locks(base: Path) -> int:
    """A file each byte of which is a lock; it stays open, since closing it would give up all locks of the process."""
    return os.open(base / "locks", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)


@contextmanager
def alone(name: str) -> Iterator[None]:
    """Keep other processes out of what has this name; where a file system has no locks, work is done twice."""
    place = int.from_bytes(hashlib.sha256(os.fsencode(name)).digest()[:7])
    with suppress(OSError):
        fcntl.lockf(_locks(folder()), fcntl.LOCK_EX, 1, place)
    try:
        yield
    finally:
        with suppress(OSError):
            fcntl.lockf(_locks(folder()), fcntl.LOCK_UN, 1, place)


def _sealed(content: bytes, key: str = "") -> bytes:
    return hashlib.sha256(key.encode() + content).digest() + content


def _unsealed(content: bytes, key: str = "") -> bytes:
    """Raises OSError for what is not as it was written."""
    seal = hashlib.sha256().digest_size
    if _sealed(content[seal:], key) != content:
        raise OSError("damaged")
    return content[seal:]


FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)


@contextmanager
def costs_only_time() -> Iterator[None]:
    """On a disk that is full, nothing is kept, and what is needed again is made again."""
    try:
        yield
    except OSError as error:
        if error.errno not in FULL:
            raise


def kept(name: str, make: Callable[[], bytes]) -> bytes:
    """The contents of an entry, made unless it is there and whole. A full disk costs time, not the run."""
    place = folder() / name
    with suppress(OSError):
        return _unsealed(place.read_bytes())
    with alone(name):
        with suppress(OSError):
            return _unsealed(place.read_bytes())
        content = make()
        with suppress(OSError):
            place.parent.mkdir(parents=True, exist_ok=True)
            files.write(place, _sealed(content))
        return content


# ------------------------------------------------------------------------------------------------------------- sources


def module_file(dotted: list[str]) -> Path | None:
    """The file of the project's module with this name, in parts; None if there is none."""
    if len(dotted) < 2 or dotted[0] != PACKAGE or dotted[1] not in FOLDERS:
        return None
    path = ROOT.joinpath(*dotted[1:])
    for candidate in (path.with_suffix(".py"), path / "__init__.py"):
        if candidate.is_file():
            return candidate
    return None


# Parsing whole files would take a third of a start. What only looks like an import is found too: harmless.
_IMPORT = re.compile(
    r"^[ \t]*((?:from[ \t]+[\w.]+[ \t]+)?import\b[ \t]*(?:\((?:[^)#]|#[^\n]*)*\)|(?:[^\n\\]|\\\n)*))", re.MULTILINE
)


def import_statements(source: str) -> Iterator[ast.Import | ast.ImportFrom]:
    """The import statements of a source text, one to a line."""
    for text in _IMPORT.findall(source):
        try:
            yield from (node for node in ast.parse(text).body if isinstance(node, ast.Import | ast.ImportFrom))
        except SyntaxError:
            continue


@functools.cache
def _imports(path: Path) -> tuple[Path, ...]:
    """The files of the project's modules that a file imports, packages included."""
    package = [PACKAGE, *path.relative_to(ROOT).with_suffix("").parts][:-1]
    names: list[list[str]] = []
    for node in import_statements(path.read_text(encoding="utf-8")):
        if isinstance(node, ast.ImportFrom):
            base = package[: len(package) - node.level + 1] if node.level else []
            base = base + (node.module.split(".") if node.module else [])
            names += [base, *([*base, alias.name] for alias in node.names)]
        else:
            names += [alias.name.split(".") for alias in node.names]
    return tuple(found for found in map(module_file, names) if found)


def closure(*paths: Path, without: Collection[Path] = ()) -> list[Path]:
    """The files of modules and of all project modules that they import, sorted; those of ``without`` end the search."""
    todo, seen = [path.resolve() for path in paths], set[Path]()
    while todo:
        current = todo.pop()
        if current not in seen and current not in without:
            seen.add(current)
            todo += _imports(current)
    return sorted(seen)


_derived: dict[Path, dict[str, bytes]] = {}


def derived(path: Path, contents: dict[str, bytes]) -> None:
    """Say what a module gives by name, beside its source: part of the stamp of all that import it and name that."""
    _derived[path.resolve()] = contents


@functools.cache
def stamp(path: Path) -> str:
    """A hash of everything that the compiled code of a module depends on; how it is kept, this module, is not in it."""
    import numba
    import numpy

    digest = hashlib.sha256(f"{numba.__version__} {numpy.__version__}".encode())
    for variable in ("NUMBA_BOUNDSCHECK", "LOCKSTEP_MARKS"):
        digest.update(os.environ.get(variable, "").encode())
    texts = {source: source.read_bytes() for source in closure(path, without=[Path(__file__).resolve()])}
    for source, text in texts.items():
        digest.update(str(source.relative_to(ROOT)).encode() + text)
        for name, content in _derived.get(source, {}).items():
            if any(f'"{name}"'.encode() in other for other in texts.values()):
                digest.update(content)
    return digest.hexdigest()


# --------------------------------------------------------------------------------------------------------------- Numba


def _is_ours(file: str) -> bool:
    path = Path(file).resolve()
    return path.is_relative_to(ROOT) and path.relative_to(ROOT).parts[0] in FOLDERS


@contextmanager
def _no_interrupt_lost() -> Iterator[None]:
    """While LLVM compiles, it calls Python, and drops what that raises: raise it again when it has ended."""
    before = signal.getsignal(signal.SIGINT)
    if not callable(before) or threading.current_thread() is not threading.main_thread():
        yield  # none can come here
        return
    raised: list[BaseException] = []

    def note(number: int, frame: FrameType | None) -> None:
        try:
            before(number, frame)
        except BaseException as error:
            raised.append(error)
            raise

    signal.signal(signal.SIGINT, note)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)
        if raised:
            raise raised[0] from None


def _compiled_alone(compile: Callable[..., Any], function: str) -> Callable[..., Any]:
    """A method that compiles, for one process at a time: the others find in the cache what it has made."""
    from numba.core.compiler_lock import global_compiler_lock

    @functools.wraps(compile)
    def compile_alone(self: Any, *arguments: Any) -> Any:
        code = getattr(self, function).__code__
        if not _is_ours(code.co_filename):
            return compile(self, *arguments)
        # Callees are compiled inside: processes wait for each other along calls only, threads for the compiler.
        name = f"{code.co_filename} {code.co_qualname} {code.co_firstlineno}"
        with global_compiler_lock, alone(name), _no_interrupt_lost():
            return compile(self, *arguments)

    return compile_alone


def install() -> None:
    """Make Numba use this cache for the functions of this project."""
    os.environ["NUMBA_CACHE_DIR"] = os.environ.get("NUMBA_CACHE_DIR") or str(folder() / "numba")
    from numba.core import caching, ccallback, config, dispatcher

    # Numba has read the variable already if it was imported before.
    setattr(config, "CACHE_DIR", os.environ["NUMBA_CACHE_DIR"])  # noqa: B010 (the module makes its names itself)
    if any(c.__name__ == "ImportAwareLocator" for c in caching.CacheImpl._locator_classes):
        return

    class ImportAwareLocator(caching.UserProvidedCacheLocator):
        def __init__(self, function, file):
            super().__init__(function, file)
            # One index per variant: runs with and without bounds checks or marks must not evict each other's code.
            variant = "checked" if is_set("NUMBA_BOUNDSCHECK") else "plain"
            marked = "-marked" if is_set("LOCKSTEP_MARKS") else ""
            self._cache_path = os.path.join(self._cache_path, variant + marked)

        def get_source_stamp(self):
            return stamp(Path(self._py_file).resolve())

        @classmethod
        def get_suitable_cache_subpath(cls, file):
            """The same in every locale."""
            return super().get_suitable_cache_subpath(os.fsencode(file).decode(errors="replace"))

        def ensure_cache_path(self):
            with costs_only_time():
                super().ensure_cache_path()

        @classmethod
        def from_function(cls, function, file):
            if not _is_ours(file):
                return None
            found = super().from_function(function, str(Path(file).resolve()))
            if found is None:  # another locator would not see edits in imported modules
                raise _unusable(os.environ["NUMBA_CACHE_DIR"], "cannot be written to")
            return found

    class SealedFile(caching.IndexDataCacheFile):
        """Numba writes the index before the code that it names: between the two, the code there is of another source.

        So the seal has the source's stamp in it.
        """

        def _load_index(self):
            try:
                return super()._load_index()
            except Exception:  # whatever unpickling a damaged file raises
                return {}

        def _load_data(self, name):
            return pickle.loads(_unsealed(Path(self._data_path(name)).read_bytes(), str(self._source_stamp)))

        def save(self, key, data):
            with suppress(OSError):  # the folder may not be there, either
                super().save(key, data)

        def _save_data(self, name, data):
            files.write(Path(self._data_path(name)), _sealed(self._dump(data), str(self._source_stamp)))

        def _open_for_write(self, filepath):
            return files.replacing(Path(filepath))

    caching.CacheImpl._locator_classes.insert(0, ImportAwareLocator)
    caching.IndexDataCacheFile = SealedFile  # type: ignore[misc]
    for cls, function in ((dispatcher.Dispatcher, "py_func"), (ccallback.CFunc, "_pyfunc")):
        cls.compile = _compiled_alone(cls.compile, function)  # type: ignore[method-assign]
