"""The declarations of a CUDA C++ text, found by its outer shape alone: tokens, brackets and preprocessor lines.

Nothing is expanded or evaluated. A parser of the whole language would be of no help: before macros are expanded and
conditions decided, a text is not C++ yet (a function may have one head in ``#ifdef`` and another one in ``#else``).
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import NamedTuple

DEVICE = frozenset({"__global__", "__device__", "__constant__", "__shared__", "__managed__", "__grid_constant__"})
CLASS_KEYS = frozenset({"struct", "class", "union", "enum"})
CONSTANT = frozenset({"const", "constexpr", "constinit", "consteval"})

# What has begun as a comment, a string or a directive ends with the line or the text at the latest. So no alternative
# fails behind its first characters, and nothing is scanned twice.
_TOKEN = re.compile(
    r"""
      (?P<directive>\#(?:/\*.*?(?:\*/|\Z)|//(?:\\\r?\n|[^\n])*|"(?:\\.|[^"\\\n])*|'(?:\\.|[^'\\\n])*|\\\r?\n|[^\n])*)
    | (?P<blank>[^\S\n]+|\n|\\\r?\n|//(?:\\\r?\n|[^\n])*|/\*.*?(?:\*/|\Z))
    | (?P<raw>(?:u8|[uUL])?R"(?P<tag>[^()\\\s]{0,16})\((?:.*?\)(?P=tag)"|.*))
    | (?P<string>(?:u8|[uUL])?"(?:\\.|[^"\\\n])*"?|'(?:\\.|[^'\\\n])*'?)
    | (?P<number>\.?\d(?:[eEpP][+-]|'\w|[\w.])*)
    | (?P<word>[A-Za-z_$]\w*)
    | (?P<symbol>::|->|.)
    """,
    re.DOTALL | re.VERBOSE,
)
_DIRECTIVE = re.compile(r"#\s*(\w*)\s*(.*)", re.DOTALL)
_MACRO = re.compile(r"(\w+)(\(?)(.*)", re.DOTALL)
_WORD = re.compile(r"[A-Za-z_$]\w*")
_NEVER = re.compile(r"(0|false)\s*(//.*|/\*.*)?$", re.DOTALL)
_DEPTH = {"if": 1, "ifdef": 1, "ifndef": 1, "endif": -1}
_BRANCHES = ("else", "elif", "elifdef", "elifndef")
_CLOSES = {")": "(", "]": "[", "}": "{"}
# Words before brackets that do not make a declaration a function.
_ATTRIBUTES = frozenset(
    "__align__ alignas __attribute__ __declspec __launch_bounds__ __maxnreg__ __cluster_dims__ __block_size__ "
    "decltype noexcept throw explicit requires".split()
)
# Words that stand where a name could.
_KEYWORDS = frozenset(
    "auto bool char const double enum extern final float friend inline int long noexcept override register short "
    "signed static struct typedef typename union unsigned using void volatile".split()
)


class Token(NamedTuple):
    """A piece of the text; ``kind`` is "directive", "string", "number", "word" or "symbol"."""

    kind: str
    text: str
    start: int
    end: int


class Macro(NamedTuple):
    """The contents of a ``#define``."""

    words: frozenset[str]  # of its body
    takes_arguments: bool
    whole: bool  # makes declarations: has a block or a semicolon in it
    bracket: bool  # only opens a scope, or only closes it


@dataclass
class Item:
    """One declaration: tokens ``first`` to ``last`` (exclusive) of the text.

    ``body`` are the tokens inside the braces of a class or a function. ``head`` are the words outside all brackets.
    """

    first: int
    last: int
    kind: str  # "function", "class", "variable", "macro", or the word that it begins with: "using", "typedef", ...
    head: frozenset[str] = frozenset()
    names: frozenset[str] = frozenset()  # what it declares, as far as this can be seen
    body: tuple[int, int] | None = None
    terminated: bool = True  # False: the text ends within it
    defaulted: bool = False  # ``= default``, ``= delete``, ``= 0``


@dataclass
class Text:
    """A source text and its tokens."""

    text: str
    tokens: list[Token] = field(default_factory=list)

    def __post_init__(self) -> None:
        switched_off = 0  # depth of conditions, from an #if 0 on
        first = True  # on its line: only there can a # begin a directive
        for match in _TOKEN.finditer(self.text):
            token = Token(match.lastgroup or "", match.group(), *match.span())
            if token.kind == "blank":
                first = first or token.text == "\n"
                continue
            begins, first = first, False
            if token.kind == "directive":
                if not begins:
                    continue
                name, rest = directive(token)
                if switched_off:
                    ends = switched_off == 1 and name in (*_BRANCHES, "endif")
                    switched_off = 0 if ends else switched_off + _DEPTH.get(name, 0)
                    if not ends:
                        continue
                elif name == "if" and _NEVER.match(rest):
                    switched_off = 1
            if not switched_off or token.kind == "directive":
                self.tokens.append(token)

    def directives(self) -> Iterator[tuple[int, str, str]]:
        """Index, name and rest of every preprocessor line."""
        for index, token in enumerate(self.tokens):
            if token.kind == "directive":
                yield index, *directive(token)

    def macros(self) -> Iterator[tuple[str, Macro]]:
        """The macros that are defined anywhere."""
        for _, name, rest in self.directives():
            found = _MACRO.match(rest) if name == "define" else None
            if found:
                yield found[1], macro(found[3], bool(found[2]))

    def words(self, first: int, last: int) -> Iterator[str]:
        """The words of a range of tokens, those of its preprocessor lines included."""
        for token in self.tokens[first:last]:
            if token.kind == "word":
                yield token.text
            elif token.kind == "directive":
                yield from _WORD.findall(token.text)

    def lambdas(self) -> Iterator[str]:
        """The names that are initialised with a lambda."""
        for name, equals, bracket in zip(self.tokens, self.tokens[1:], self.tokens[2:], strict=False):
            if (name.kind, equals.text, bracket.text) == ("word", "=", "["):
                yield name.text

    def annotations(self, tokens: Iterable[int]) -> Iterator[int]:
        """Which of some tokens say behind the captures of a lambda for which side it is: NVRTC knows one side."""
        run: list[int] = []
        for index in tokens:
            word, before = self.tokens[index].text, self.tokens[index - 1].text
            if word in ("__device__", "__host__") and (run or before == "]"):
                run.append(index)
                continue
            if word in ("(", "{", "mutable"):  # else they belong to a declaration behind an attribute
                yield from run
            run = []

    def items(self, macros: dict[str, Macro], inside: tuple[int, int] | None = None) -> list[Item]:
        """The declarations at namespace scope, or those of a class whose body is ``inside``."""
        first, last = inside or (0, len(self.tokens))
        return list(_Scanner(self.tokens, last, macros).items(first))


def directive(token: Token) -> tuple[str, str]:
    """The name of a preprocessor line, and what follows."""
    found = _DIRECTIVE.search(token.text)
    return (found[1], found[2]) if found else ("", "")


def macro(body: str, takes_arguments: bool = False) -> Macro:
    bracket = body.count("{") != body.count("}")
    whole = not bracket and any(mark in body for mark in "{;")
    return Macro(frozenset(_WORD.findall(body)), takes_arguments, whole, bracket)


class _Scanner:
    """Goes through one scope."""

    def __init__(self, tokens: list[Token], last: int, macros: dict[str, Macro]) -> None:
        self.tokens, self.last, self.macros = tokens, last, macros

    def text(self, index: int) -> str:
        return self.tokens[index].text if 0 <= index < self.last else ""

    def items(self, index: int) -> Iterator[Item]:
        while index < self.last:
            opened = self._opens_scope(index)
            if opened:
                index = opened
            elif self.tokens[index].kind == "directive" or self.text(index) in (*_CLOSES, ";"):
                index += 1
            elif (found := self.macros.get(self.text(index))) and found.bracket:
                index += 1
                index = self.behind_brackets(index) if found.takes_arguments and self.text(index) == "(" else index
            elif self.text(index) in ("public", "private", "protected") and self.text(index + 1) == ":":
                index += 2
            else:
                item = self._macro(index) or _Declaration(self, index).item
                yield item
                index = item.last

    def _opens_scope(self, index: int) -> int:
        """The index behind the brace of a namespace or of a linkage; 0 if none is opened here."""
        if self.text(index) == "extern" and self.text(index + 1).startswith('"'):
            return index + 3 if self.text(index + 2) == "{" else 0
        start = index + (self.text(index) == "inline")
        if self.text(start) != "namespace":
            return 0
        while start < self.last and self.text(start) not in ("{", ";", "="):
            start += 1
        return start + 1 if self.text(start) == "{" else 0

    def _macro(self, index: int) -> Item | None:
        """A macro that makes whole declarations. Another one is part of the declaration that it begins."""
        found = self.macros.get(self.text(index))
        if found is None or not found.whole:
            return None
        end = index + 1
        if found.takes_arguments:
            if self.text(end) != "(":
                return None
            end = self.behind_brackets(end)
        if self.text(end) == ";":
            end += 1
        return Item(index, end, "macro", frozenset({self.text(index)}))

    def behind_brackets(self, index: int) -> int:
        """The index behind the bracket that closes the one at ``index``."""
        opening = self.text(index)
        closing = {"(": ")", "[": "]", "{": "}", "<": ">"}[opening]
        depth = 0
        while index < self.last:
            text = self.text(index)
            if text == opening:
                depth += 1
            elif text == closing:
                depth -= 1
                if depth == 0:
                    return index + 1
            elif opening == "<" and text in "([{":
                index = self.behind_brackets(index)
                continue
            index += 1
        return index


class _Bracket(NamedTuple):
    """One that is open, in those around it."""

    text: str
    around: _Bracket | None


class _Declaration:
    """One declaration, from its first token on."""

    def __init__(self, scanner: _Scanner, first: int) -> None:
        self.scanner, self.tokens, self.first = scanner, scanner.tokens, first
        self.open: _Bracket | None = None
        self.conditions: list[_Bracket | None] = []  # what was open at each #if
        self.head: list[str] = []
        self.names: set[str] = set()
        self.angles = 0  # of templates' arguments
        self.key = ""  # struct, class, union or enum
        self.key_at = -1
        self.keyed = False  # the name behind it was seen
        self.assigned = self.called = self.initialisers = self.defaulted = False
        self.braces: tuple[int, int] | None = None  # behind the first one, at its end
        self.is_body = False
        self.named = ""
        self.item = self._read()

    def _read(self) -> Item:
        index, last = self.first, self.scanner.last
        while index < last:
            token = self.tokens[index]
            if token.kind == "directive":
                self._condition(token)
                index += 1
            elif not self.open and token.text == "template" and self.scanner.text(index + 1) == "<":
                index = self.scanner.behind_brackets(index + 1)
            elif not self.open and token.text == "operator":
                index = self._operator(index)
            elif token.text in ("(", "[", "{"):
                self._opening(index)
                self.open = _Bracket(token.text, self.open)
                index += 1
            elif token.text in _CLOSES:
                if not self.open:  # the end of an enclosing scope
                    return self._made(index, terminated=False)
                self.open = self.open.around
                index += 1
                if token.text == "}" and not self.open:
                    if self.braces and self.braces[1] < 0:
                        self.braces = self.braces[0], index - 1
                    if self._ends(index):
                        return self._made(index)
            elif self.open:
                if self.key == "enum" and self.open == ("{", None) and token.kind == "word" and not self.called:
                    self.names.add(token.text)
                index += 1
            elif token.text == ";":
                return self._made(index + 1)
            else:
                self._outer(index, token)
                index += 1
        return self._made(index, terminated=False)

    def _condition(self, token: Token) -> None:
        """A text has all branches; only one of them opens and closes brackets."""
        name, _ = directive(token)
        if _DEPTH.get(name) == 1:
            self.conditions.append(self.open)
        elif name in _BRANCHES:
            self.open = self.conditions[-1] if self.conditions else None
        elif name == "endif" and self.conditions:
            self.conditions.pop()

    def _operator(self, index: int) -> int:
        self.named = "operator"
        self.head.append("operator")
        index += 1
        if self.scanner.text(index) == "(":  # operator()
            return index + 2
        while index < self.scanner.last and self.scanner.text(index) != "(":
            index += 1
        return index

    def _outer(self, index: int, token: Token) -> None:
        """A token outside of all brackets."""
        if token.kind == "word":
            self.head.append(token.text)
        if self.assigned and token.text != ",":
            return
        if token.text in "<>":
            self.angles = max(0, self.angles + (1 if token.text == "<" else -1))
        if self.angles:
            return
        if token.kind == "word":
            self._word(index, token.text)
        elif token.text == "=":
            self._declares()
            self.assigned = True
            self.defaulted = self.called and self.scanner.text(index + 1) in ("default", "delete", "0")
        elif token.text == ":":
            self._declares()
            self.initialisers = self.called
        elif token.text == ",":
            self._declares()
            self.assigned = False

    def _word(self, index: int, word: str) -> None:
        if word in CLASS_KEYS and not self.called:
            self.key, self.key_at, self.keyed = self.key or word, index, False
        elif self.key and not self.keyed and word not in _ATTRIBUTES and self.scanner.text(index + 1) != "(":
            self.names.add(word)
            self.keyed = True
        else:
            self.named = word

    def _declares(self) -> None:
        """The last word was a name."""
        if not self.assigned and self.named and not (self.key and not self.braces):
            self.names.add(self.named)

    def _opening(self, index: int) -> None:
        """A bracket outside of all others decides what this is."""
        if self.open or self.angles:
            return
        before = self.scanner.text(index - 1)
        text = self.tokens[index].text
        if text == "(" and not self.assigned and not self.initialisers:
            if before in _ATTRIBUTES or (self.key and not self.braces and index - 2 == self.key_at):
                return
            self.names.add(self.named)
            if self.scanner.text(index + 1) == "*":  # a pointer to functions
                self.names.add(self.scanner.text(index + 2))
            self.called = True
        elif text == "[":
            self._declares()
        elif text == "{" and not self.braces:
            self._declares()
            initialised = self.initialisers and (self.tokens[index - 1].kind == "word" or before == ">")
            if not self.assigned and not initialised:
                self.braces = index + 1, -1
                self.is_body = self.called

    def _ends(self, index: int) -> bool:
        """Whether a closing brace ends the declaration: it does not where more names or a semicolon must follow."""
        if self.is_body:
            return True
        return not self.key and not self.assigned and not self.called and self.scanner.text(index) not in (";", ",")

    def _made(self, last: int, terminated: bool = True) -> Item:
        self._declares()
        first_word = self.scanner.text(self.first)
        if first_word in ("using", "typedef", "static_assert", "namespace", "concept"):
            kind = first_word
        elif self.called and (self.is_body or self.defaulted or not self.assigned):
            kind = "function"
        elif self.key and self.braces:
            kind = "class"
        elif self.key and not self.assigned and not self.named:
            kind = "forward"  # struct X;
        else:
            kind = "variable"
        names = frozenset(self.names - _KEYWORDS - _ATTRIBUTES - {""})
        return Item(self.first, last, kind, frozenset(self.head), names, self.braces, terminated, self.defaulted)


def launches(text: Text, item: Item) -> list[str]:
    """The instances of templates that launches in a declaration name: ``a::f<3>`` of ``a::f<3><<<...>>>``."""
    found: dict[str, None] = {}
    tokens = text.tokens[item.first : item.last]
    texts = [token.text for token in tokens]
    angles: list[int] = []  # those that are open
    opening = -1  # of the one that was closed last
    for index, each in enumerate(texts):
        if each in (";", "{", "}"):
            angles.clear()
        elif each == ">":
            opening = angles.pop() if angles else -1
        elif each == "<" and texts[index + 1 : index + 3] == ["<", "<"]:
            if index and texts[index - 1] == ">" and opening > 0 and tokens[opening - 1].kind == "word":
                start = opening - 1
                while start > 1 and texts[start - 1] == "::" and tokens[start - 2].kind == "word":
                    start -= 2
                found[" ".join(texts[start:index])] = None
            angles.clear()  # no launch is part of an argument
        elif each == "<":
            angles.append(index)
    return list(found)
