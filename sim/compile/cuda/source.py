"""The device's part of a whole CUDA program: the text that NVRTC compiles, with every line where it was.

A program's device part is what its kernels and device variables reach by name. Host functions and host variables never
belong to it; types, constants, aliases and functions for both sides do where something of the device mentions them.
What does not belong is blanked. Headers of the user are treated alike; headers that are only for the host are dropped.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

from lockstep.sim.compile.cuda import headers
from lockstep.sim.compile.cuda.scan import CONSTANT, DEVICE, Item, Macro, Text, Token, directive, launches, macro
from lockstep.sim.errors import UsageError

REFERENCES = frozenset({"texture", "surface"})
FUNCTIONS_FOR_BOTH = frozenset({"constexpr", "consteval"})
KEPT_DIRECTIVES = frozenset("if ifdef ifndef elif elifdef elifndef else endif define undef".split())
SPECIFIERS = DEVICE | REFERENCES | CONSTANT | {"__host__", "operator", "static", "virtual"}  # they decide what is kept
CLASS_DEPTH = 32  # of classes in classes; members of those further inside are kept
BUILTIN_WORDS = frozenset("bool char const double false float int long short signed true unsigned void".split())


@dataclass(frozen=True)
class Source:
    """The text that goes to NVRTC, and what is known of the rest."""

    text: str
    headers: dict[str, str]  # by the name with which the text includes them
    instances: tuple[str, ...]  # of kernel templates, as the program launches them
    dropped: dict[str, str]  # host functions and variables: name -> place
    missing: tuple[str, ...]  # headers that were nowhere found and may be more than the C library
    kernels: frozenset[str]  # names of all kernels, templates included
    lambdas: frozenset[str]  # names that are initialised with one


@dataclass
class _File:
    name: str
    text: Text
    folder: Path | None
    items: list[Item] = field(default_factory=list)
    edits: list[tuple[int, int, str]] = field(default_factory=list)  # start, end, what stands there instead
    whole: bool = False  # included within a declaration, or not of declarations at all
    includes: list[tuple[int, str, Path | None]] = field(default_factory=list)  # token, name, file of the user

    @cached_property
    def _breaks(self) -> list[int]:
        return [found.start() for found in re.finditer("\n", self.text.text)]

    def place(self, token: int) -> str:
        return f"{self.name}:{bisect_left(self._breaks, self.text.tokens[token].start) + 1}"


def device_part(
    text: str,
    name: str,
    folder: Path | None = None,
    include: tuple[Path, ...] = (),
    define: Iterable[str] = (),
    names: Iterable[str] = (),
) -> Source:
    """Cut a program whose headers lie in ``folder`` or ``include``. ``names``: instances of templates, asked for."""
    return _Cutter(include, define).cut(text, name, folder, names)


class _Cutter:
    def __init__(self, include: tuple[Path, ...], define: Iterable[str]) -> None:
        self.include = include
        self.macros: dict[str, Macro] = {}
        for definition in define:
            word, _, value = definition.partition("=")
            self.macros[word] = macro(value)
        self.files: dict[str, _File] = {}
        self.missing: dict[str, None] = {}

    def cut(self, text: str, name: str, folder: Path | None, names: Iterable[str]) -> Source:
        main = self._read(text, name, folder)
        for file in self.files.values():
            file.items = [] if file.whole else file.text.items(self.macros)
        self._mark_whole()
        everything = [(file, item) for file in self.files.values() for item in file.items]
        asked = {word for each in names for word in Text(each).words(0, 1 << 30)}
        instances = self._instances(everything)
        asked.update(word for each in instances for word in Text(each).words(0, 1 << 30))
        kept, mentioned = self._reach(everything, asked)
        dropped: dict[str, str] = {}
        for file, item in everything:
            if id(item) not in kept:
                self._blank(file, item)
                if item.kind in ("function", "variable"):
                    dropped.update(dict.fromkeys(item.names, file.place(item.first)))
        for _, item in everything:
            if id(item) in kept:
                for each in item.names:
                    dropped.pop(each, None)
        self._make_constexpr((file, item) for file, item in everything if id(item) in kept)
        for file in self.files.values():
            self._include(file, mentioned)
        return Source(
            text=_edited(main),
            headers={file.name: _edited(file) for file in self.files.values() if file is not main},
            instances=tuple(instances),
            dropped=dropped,
            missing=tuple(self.missing),
            kernels=self._kernels(everything),
            lambdas=frozenset().union(*(file.text.lambdas() for file in self.files.values())),
        )

    # ------------------------------------------------------------------------------------------------------------ files

    def _read(self, text: str, name: str, folder: Path | None) -> _File:
        """A file and all that it includes, with the macros of all."""
        main = self.files[name] = _File(name, Text(text), folder)
        waiting = [main]
        while waiting:
            file = waiting.pop()
            self.macros.update(file.text.macros())
            for index, kind, rest in file.text.directives():
                if kind != "include" or rest[:1] not in ('"', "<"):
                    continue
                header = rest[1:].partition('"' if rest[0] == '"' else ">")[0]
                path = headers.find(header, file.folder if rest[0] == '"' else None, self.include)
                file.includes.append((index, header, path))
                if path is None and headers.device_header(header) is None and not headers.for_host(header):
                    self.missing[header] = None
                if path is not None and str(path) not in self.files:
                    self.files[str(path)] = _File(str(path), Text(source_text(path)), path.parent)
                    waiting.append(self.files[str(path)])
        return main

    def _mark_whole(self) -> None:
        """Leave a file alone that is included within a declaration, or that is a piece of one."""
        for file in list(self.files.values()):
            starts = [item.first for item in file.items]
            for index, _, path in file.includes:
                around = bisect_left(starts, index) - 1
                if path is not None and around >= 0 and index < file.items[around].last:
                    self.files[str(path)].whole = True
        for file in self.files.values():
            if file.whole:
                file.items = []

    def _include(self, file: _File, mentioned: set[str]) -> None:
        for index, header, path in file.includes:
            token = file.text.tokens[index]
            device = headers.device_header(header)
            own = headers.standard(header)
            if path is not None:
                with_ = f'#include "{path}"'
            elif device is not None:
                if not device[1] or device[1] in mentioned:
                    continue
                with_ = ""
            elif own is not None and "std" in mentioned:
                with_ = f"#include <{own}>"
            else:
                with_ = ""
            file.edits.append((token.start, token.end, with_ + "\n" * token.text.count("\n")))

    # ------------------------------------------------------------------------------------------------------------ reach

    @cached_property
    def _stands_for(self) -> dict[str, set[str]]:
        """Which specifiers a macro stands for, by way of others too."""
        users: dict[str, list[str]] = {}
        for name, each in self.macros.items():
            for word in each.words:
                users.setdefault(word, []).append(name)
        found: dict[str, set[str]] = {name: set() for name in self.macros}
        for specifier in SPECIFIERS:
            waiting = [specifier]
            while waiting:
                for name in users.get(waiting.pop(), ()):
                    if specifier not in found[name]:
                        found[name].add(specifier)
                        waiting.append(name)
        return found

    def _expanded(self, words: Iterable[str]) -> set[str]:
        """Words, and the specifiers that they stand for if they are macros."""
        words = set(words)
        return words.union(*(self._stands_for[word] for word in words if word in self.macros))

    def _role(self, file: _File, item: Item) -> str:
        """ "root": of the device; "host": never of it; "reached": of it where something of the device mentions it."""
        head = self._expanded(item.head)
        if not item.terminated:
            return "root"
        if item.kind in ("function", "variable", "macro") and head & DEVICE:
            for_both = "__host__" in head and "__global__" not in head and "operator" not in head
            return "reached" if for_both and item.kind == "function" else "root"
        match item.kind:
            case "function":
                return "reached" if head & FUNCTIONS_FOR_BOTH else "host"
            case "variable":
                if head & REFERENCES:
                    return "root"
                return "reached" if head & CONSTANT else "host"
            case "using" if self._of_standard(file, item):
                return "host"
            case "using" if "namespace" in head:
                return "root"
            case "macro" | "static_assert":
                return "host"
        return "reached"

    @staticmethod
    def _of_standard(file: _File, item: Item) -> bool:
        """``using std::min``, which device code has under its own name."""
        first, second = (file.text.tokens[item.first + offset].text for offset in (1, 2))
        return first == "std" and second == "::"

    def _reach(self, everything: list[tuple[_File, Item]], asked: set[str]) -> tuple[set[int], set[str]]:
        """The items to be kept, and all words that they mention."""
        by_name: dict[str, list[tuple[_File, Item]]] = {}
        kept: set[int] = set()
        mentioned: set[str] = set()
        waiting = list(asked)
        for file in self.files.values():
            if file.whole:
                waiting += file.text.words(0, len(file.text.tokens))
        for file, item in everything:
            match self._role(file, item):
                case "root":
                    kept.add(id(item))
                    waiting += self._keep(file, item)
                case "reached":
                    for name in item.names:
                        by_name.setdefault(name, []).append((file, item))
        while waiting:
            word = waiting.pop()
            if word in mentioned:
                continue
            mentioned.add(word)
            if word in self.macros:
                waiting += self.macros[word].words
            for file, item in by_name.get(word, ()):
                if id(item) not in kept:
                    kept.add(id(item))
                    waiting += self._keep(file, item)
        return kept, mentioned

    def _keep(self, file: _File, item: Item) -> Iterator[str]:
        """Take the host's members out of a declaration that is kept; returns the words of the rest."""
        text = file.text
        dropped = list(self._host_members(file, item))
        for member in dropped:
            self._blank(file, member)
        if item.kind == "using" and "namespace" in item.head:
            return self._known_namespace(file, item)
        if item.kind == "variable" and self._expanded(item.head) & REFERENCES:
            self._reference(file, item)
        gone = {index for member in dropped for index in range(member.first, member.last)}
        kept = [index for index in range(item.first, item.last) if index not in gone]
        file.edits += ((text.tokens[index].start, text.tokens[index].end, "") for index in text.annotations(kept))
        return (word for index in kept for word in text.words(index, index + 1))

    def _host_members(self, file: _File, item: Item, depth: int = 0) -> Iterator[Item]:
        if depth == CLASS_DEPTH or item.kind not in ("class", "typedef") or item.body is None or "enum" in item.head:
            return
        for member in file.text.items(self.macros, item.body):
            head = self._expanded(member.head)
            if head & DEVICE or not member.terminated:
                continue
            if member.kind == "function" and not (member.defaulted or head & FUNCTIONS_FOR_BOTH or "virtual" in head):
                yield member
            elif member.kind == "variable" and "static" in head and not head & CONSTANT:
                yield member
            else:
                yield from self._host_members(file, member, depth + 1)

    def _known_namespace(self, file: _File, item: Item) -> Iterator[str]:
        """Declare the namespace of a using-directive, which may have been the host's alone."""
        tokens = file.text.tokens[item.first + 2 : item.last - 1]
        name = "".join(token.text for token in tokens).removeprefix("::")
        start = file.text.tokens[item.first].start
        file.edits.append((start, start, f"namespace {name} {{}} "))
        return (token.text for token in tokens if token.kind == "word" and name != "std")

    @staticmethod
    def _reference(file: _File, item: Item) -> None:
        """A reference to a texture or surface becomes a constant that holds an object."""
        for token in file.text.tokens[item.first : item.last]:
            if token.text in REFERENCES:
                file.edits.append((token.start, token.end, f"__constant__ lockstep_{token.text}"))
                return

    @staticmethod
    def _make_constexpr(everything: Iterable[tuple[_File, Item]]) -> None:
        """Say ``constexpr`` where a constant initialises others: nvcc computes them, NVRTC does so only then."""
        constants: dict[str, list[tuple[_File, Token]]] = {}
        used: set[str] = set()
        for file, item in everything:
            if item.kind != "variable":
                continue
            if word := _constant(file.text.tokens[item.first : item.last]):
                for name in item.names:
                    constants.setdefault(name, []).append((file, word))
            counts = Counter(file.text.words(item.first, item.last))
            used.update(word for word, count in counts.items() if count > (word in item.names))
        edits = {(file.name, word): file for name in used for file, word in constants.get(name, ())}
        for (_, word), file in edits.items():
            file.edits.append((word.start, word.end, "constexpr"))

    def _kernels(self, everything: list[tuple[_File, Item]]) -> frozenset[str]:
        found = (item.names for _, item in everything if "__global__" in self._expanded(item.head))
        return frozenset().union(*found) - self.macros.keys()

    def _instances(self, everything: list[tuple[_File, Item]]) -> list[str]:
        """The instances of kernel templates that the host launches with arguments that have a meaning everywhere."""
        known = {name for _, item in everything if item.kind != "function" for name in item.names}
        known |= self.macros.keys() | BUILTIN_WORDS
        kernels = self._kernels(everything)
        found: dict[str, None] = {}
        for file, item in everything:
            if item.kind == "function" and not self._expanded(item.head) & DEVICE:
                for instance in launches(file.text, item):
                    name, _, arguments = instance.partition("<")
                    words = set(Text(arguments).words(0, 1 << 30))
                    if name.split("::")[-1].strip() in kernels and words <= known:
                        found[instance] = None
        return list(found)

    # ------------------------------------------------------------------------------------------------------------- text

    @staticmethod
    def _blank(file: _File, item: Item) -> None:
        """Blank a declaration but for the preprocessor lines that may matter elsewhere."""
        tokens = file.text.tokens
        start = tokens[item.first].start
        for token in tokens[item.first : item.last]:
            if token.kind == "directive" and directive(token)[0] in KEPT_DIRECTIVES:
                _blank(file, start, token.start)
                start = token.end
        _blank(file, start, tokens[item.last - 1].end)


def _constant(tokens: Iterable[Token]) -> Token | None:
    """The word ``const`` of a variable that could be ``constexpr``: no pointer or reference, with an initial value."""
    found: Token | None = None
    for token in tokens:
        if token.text in ("=", "{"):
            return found
        if token.text in ("*", "&", "(", ";") or token.text in DEVICE | {"volatile", "extern", "constexpr"}:
            return None
        if token.text == "const":
            found = found or token
    return None


def _blank(file: _File, start: int, end: int) -> None:
    """The line breaks of a range are all that is left of it."""
    file.edits.append((start, end, "\n" * file.text.text.count("\n", start, end)))


def _edited(file: _File) -> str:
    pieces, at = [], 0
    for start, end, text in sorted(file.edits):
        if start >= at:  # not within what is gone
            pieces += [file.text.text[at:start], text]
            at = end
    return "".join(pieces) + file.text.text[at:]


def source_text(path: Path) -> str:
    """The text of a CUDA file or header; what is not UTF-8, as in old comments, becomes question marks."""
    try:
        text = path.read_bytes().decode("utf-8-sig", errors="replace")
    except OSError as error:
        raise UsageError(f"{path}: cannot read the CUDA file: {error.strerror}") from None
    if "\0" in text:
        raise UsageError(f"{path}: not a CUDA file: it is not text")
    return text.replace("\r\n", "\n")
