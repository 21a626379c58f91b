"""C++ names of kernels and variables, as people write them: ``a::f<3>`` for ``_ZN1a1fILi3EEEvPf``."""

from __future__ import annotations

import ctypes
import math
import re
from collections import Counter
from collections.abc import Iterable
from functools import cache

from lockstep.sim.errors import UsageError
from lockstep.spec.words import closest

_BLANK = re.compile(r"\s*([<>,:*&()])\s*")
_REFERENCE = re.compile(r"[ST][0-9A-Z]*_|Dp")
_HIDDEN = re.compile(r"(?:\(anonymous namespace\)|_INTERNAL_\w+|_GLOBAL__N_\w+)::")


MOST_EXPANDED = 1 << 26


def _expanded(name: str) -> int:
    """The most characters that a mangled name can stand for: a reference in it repeats what stood before it."""
    return len(name) * math.prod(1 + count for count in Counter(_REFERENCE.findall(name)).values())


@cache
def _demangle() -> object:
    function = ctypes.CDLL("libstdc++.so.6").__cxa_demangle
    function.argtypes = (ctypes.c_char_p, ctypes.c_void_p, ctypes.c_void_p, ctypes.POINTER(ctypes.c_int))
    function.restype = ctypes.c_void_p
    return function


@cache
def signature(name: str) -> str:
    """A name with its parameters: ``a::f<3>(float*)``; itself, if it is not mangled, or could be of any length."""
    if not name.startswith("_Z") or _expanded(name) > MOST_EXPANDED:
        return name
    status = ctypes.c_int()
    try:
        text = _demangle()(name.encode(), None, None, ctypes.byref(status))  # type: ignore[operator]
    except OSError:  # no C++ library
        return name
    if not text:
        return name
    found = ctypes.string_at(text).decode()
    ctypes.CDLL(None).free(ctypes.c_void_p(text))
    return _HIDDEN.sub("", found).removeprefix("void ")


@cache
def readable(name: str) -> str:
    """The same without the parameters."""
    text, depth = signature(name), 0
    for index, character in enumerate(text):
        depth += (character == "<") - (character == ">")
        if character == "(" and depth == 0:
            return text[:index]
    return text


def normal(name: str) -> str:
    """A name without the blanks that mean nothing."""
    return _BLANK.sub(r"\1", name.strip())


def base(name: str) -> str:
    """A name without namespaces and template arguments."""
    return normal(name).partition("<")[0].rpartition("::")[2]


def _unqualified(name: str) -> str:
    """A name without namespaces."""
    head, less, arguments = name.partition("<")
    return head.rpartition("::")[2] + less + arguments


def find(name: str, known: Iterable[str]) -> str | None:
    """The only one of the known names that ``name`` is or stands for: without parameters, namespaces or template
    arguments, as far as it is clear which one is meant. Raises :class:`UsageError` where it is not."""
    if not isinstance(name, str):
        raise UsageError(f"{name!r}: must be a name")
    known = list(known)
    if name in known:
        return name
    wanted = normal(name)
    by_name = {each: normal(readable(each)) for each in known}
    for form in (
        {each: normal(signature(each)) for each in known},
        by_name,
        {each: _unqualified(text) for each, text in by_name.items()},
        {each: text.partition("<")[0] for each, text in by_name.items()},
        {each: base(text) for each, text in by_name.items()},
    ):
        found = [each for each, text in form.items() if text == wanted]
        if len(found) > 1:
            raise UsageError(f"{name!r} is ambiguous: it may be {' or '.join(signature(each) for each in found)}")
        if found:
            return found[0]
    return None


def listed(names: Iterable[str]) -> str:
    """Names for a message."""
    return ", ".join(dict.fromkeys(map(readable, names))) or "none"


def unknown(name: str, known: Iterable[str]) -> str:
    """A name that is not among the ``known``, for a message."""
    return f"{name!r}{closest(name, map(readable, known))}"
