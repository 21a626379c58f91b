"""Verilog as Yosys writes it, with a wire for each operator, made into text to read.

- Modules that differ in nothing but their names become one.
- Wires without a name in the source, which come as ``n1``, ``n2`` and so on, disappear into the expressions that use
  them, as long as these stay short. The others are named after a signal that they are made of: ``held_or`` ors ``held``
  with something.
- Ports are declared where they are listed, registers are assigned in one process, and a memory whose words begin alike
  is filled by a loop. Wires that nobody reads and that only repeat what has another name are left out.

The operands of every operator must be as wide as its context wants them, as :func:`lockstep.rtl.widths.explicit` makes
them: then it means the same inside an expression and on a wire of its own.
"""

from __future__ import annotations

import itertools
import re
import textwrap
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from graphlib import TopologicalSorter

LONGEST = 160  # characters of an expression that is written in the one place where it is used
SHORT = 24  # of one that is written wherever it is used
WIDTH = 120  # of a line

_MODULE = re.compile(r"^module (\w+)\(.*?^endmodule\n", re.MULTILINE | re.DOTALL)
_PART = re.compile(r"^  (\w+)(?= \w+ \($)", re.MULTILINE)
_ANONYMOUS = re.compile(r"\bn\d+\b")
_SELECTED = re.compile(r"\b(n\d+)\[")
_NAME = re.compile(r"(?<![\w'$])[A-Za-z_]\w*")
_DEFINITION = re.compile(r"  assign (n\d+) = (.*);")
_STATEMENT = re.compile(r"( +(?:assign )?)(.+?) (<?=) (.+);")
_CUT = re.compile(r"  assign \{ (n\d+)\[\d+(?::\d+)?\], (\w+(?:\[[\d:]+\])?) \} = (.*);")
_REPEATS = re.compile(r"  assign (\w+) = (?:\w+|\d+'\w+|\{ \w+(?:, \w+)* \});|  assign (\w+_\d+) = \w+\[[\d:]+\];")
_DECLARED = re.compile(r"  (?:wire|reg) (?:\[\d+:0\] )?(\w+)(?: = .*)?;")
_PORT = re.compile(r"  (input|output) (?:\[\d+:0\] )?(\w+);")
_CONSTANT = re.compile(r"~?\d+'[hd]0+")  # all bits are 0, or all are 1
_CLOCKED = "  always @(posedge clk)"
_FILLED = re.compile(
    r"^  initial begin\n    (\w+)\[0\] = (\S+);\n(?:    \1\[\d+\] = \2;\n)*    \1\[(\d+)\] = \2;\n  end\n", re.MULTILINE
)

_COMPARISONS = {"==": "eq", "!=": "ne", "<": "lt", "<=": "le", ">": "gt", ">=": "ge"}
_BINARY = {
    **_COMPARISONS, "&": "and", "|": "or", "^": "xor", "+": "plus", "-": "minus", "*": "times", "/": "over",
    "%": "modulo", "<<": "shifted", ">>": "shifted", ">>>": "shifted", "?": "mux", "": "bits",
}  # fmt: skip
_UNARY = {"&": "all", "|": "any", "^": "odd", "~": "not", "!": "none", "-": "negative"}


@dataclass(frozen=True)
class _Expression:
    """``operator`` is the outermost; there is none in a name, a constant, or something in brackets. A ``signed`` one
    would mean something else inside another.
    """

    text: str
    operator: str = ""
    operands: int = 1
    signed: bool = False

    @property
    def word(self) -> str:
        return (_UNARY if self.operands == 1 and self.operator else _BINARY)[self.operator]


def readable(verilog: str, top: str) -> str:
    """The same hardware, in fewer words. The ports of the top module stay in their order."""
    return _MODULE.sub(lambda found: _nested(found[0], found[1] == top), _joined(verilog))


def _joined(verilog: str) -> str:
    """Each module once, where there are several that are alike; it is called without the numbers of its place."""
    names: dict[str, str] = {}
    same = {found[1]: names.setdefault(_content(found[0]), found[1]) for found in _MODULE.finditer(verilog)}
    if len(names) == len(same):
        return verilog
    called = dict(same)
    for name, count in Counter(same.values()).items():
        plain = re.sub(r"_\d+(?=_|$)", "", name)
        if count > 1 and plain not in called.values() and not re.search(rf"\b{plain}\b", verilog):
            called |= {each: plain for each in same if same[each] == name}
    first = _MODULE.sub(lambda found: found[0] if same[found[1]] == found[1] else "", verilog)
    first = _PART.sub(lambda found: f"  {called.get(found[1], found[1])}", re.sub(r"\n{3,}", "\n\n", first))
    return _joined(_MODULE.sub(lambda found: found[0].replace(found[1], called[found[1]], 1), first))


def _content(module: str) -> str:
    """What is in a module, whatever its name and the order of its declarations, for comparison."""
    lines = module.partition(");\n")[2].split("\n")
    declared = [line for line in lines if _PORT.fullmatch(line) or _DECLARED.fullmatch(line)]
    return "\n".join([*sorted(declared), *(line for line in lines if line not in declared)])


def _nested(module: str, is_top: bool) -> str:
    lines = list(_uncut(module.split("\n")))
    definitions = {found[1]: found[2] for line in lines if (found := _DEFINITION.fullmatch(line))}
    order = _order(definitions)
    lines, definitions = _once(lines, definitions, order)
    inner, kept = _inlined(lines, definitions, [name for name in order if name in definitions])
    lines = _read([_with(line, inner, kept) for line in lines if not _defined(line) & inner.keys()])
    names = _names(kept, lines)
    text = "\n".join(
        _clocked(_ported(_ANONYMOUS.sub(lambda found: names[found[0]], "\n".join(lines)).split("\n"), is_top))
    )
    return _FILLED.sub(_loop, "\n".join(part for line in text.split("\n") for part in _broken(_repeated(line))))


def _defined(line: str) -> set[str]:
    """What a line declares or, if it has no name in the source, defines."""
    found = _DECLARED.fullmatch(line) or _DEFINITION.fullmatch(line)
    return {found[1]} if found else set()


def _uncut(lines: list[str]) -> Iterator[str]:
    """Where the upper bits of a result are not used, the whole result on a wire, of which the lower bits are taken."""
    cut = {found[2]: found[1] for line in lines if (found := _CUT.fullmatch(line))}
    whole = {}
    for line in lines:
        if (found := re.fullmatch(r"  assign ((n\d+)\[[\d:]+\]) = (.*);", line)) and cut.get(found[3]) == found[2]:
            whole[found[3]] = found[1]
    for line in lines:
        if (found := _CUT.fullmatch(line)) and found[2] in whole:
            yield f"  assign {found[1]} = {found[3]};"
            yield f"  assign {found[2]} = {whole[found[2]]};"
        elif not any(line == f"  assign {bits} = {name};" for name, bits in whole.items() if name in line):
            yield line


def _order(definitions: Mapping[str, str]) -> list[str]:
    """Each wire behind those that it is made of."""
    made_of = {name: definitions.keys() & set(_ANONYMOUS.findall(text)) for name, text in definitions.items()}
    return list(TopologicalSorter({name: sorted(used) for name, used in made_of.items()}).static_order())


def _once(lines: list[str], definitions: Mapping[str, str], order: Iterable[str]) -> tuple[list[str], dict[str, str]]:
    """Without definitions that are there twice."""
    first: dict[str, str] = {}
    same: dict[str, str] = {}

    def renamed(text: str) -> str:
        return _ANONYMOUS.sub(lambda found: same.get(found[0], found[0]), text)

    for name in order:
        same[name] = first.setdefault(renamed(definitions[name]), name)
    kept = {name: text for text, name in first.items()}
    return [renamed(line) for line in lines if _defined(line) <= kept.keys() | (_defined(line) - same.keys())], kept


def _inlined(
    lines: Iterable[str], definitions: Mapping[str, str], order: Iterable[str]
) -> tuple[dict[str, _Expression], dict[str, _Expression]]:
    """The wires that disappear, and the others, each with what it is."""
    uses: Counter[str] = Counter()
    selected: set[str] = set()
    whole: set[str] = set()  # of a statement
    for line in lines:
        if _DECLARED.fullmatch(line):
            continue
        uses.update(_ANONYMOUS.findall(line))
        selected.update(_SELECTED.findall(line))
        if found := _STATEMENT.fullmatch(line):
            whole.add(found[4])
    inner: dict[str, _Expression] = {}
    kept: dict[str, _Expression] = {}
    for name in order:
        made = _parsed(definitions[name], inner)
        once = uses[name] == 2  # its definition, too
        fits = (once and name in whole) or len(made.text) <= (LONGEST if once else SHORT)
        reads = re.search(r"\w\[(?!\d)", definitions[name])  # a memory, whose output an engineer looks for
        alone = name not in selected or re.fullmatch(r"[A-Za-z_]\w*", made.text)
        (inner if fits and alone and not made.signed and not reads else kept)[name] = made
    return inner, kept


def _parsed(text: str, inner: Mapping[str, _Expression]) -> _Expression:
    """The right side of an assignment, with other expressions in place of the names that stand for them."""
    match _split(text):
        case [whole]:
            return inner[whole] if whole in inner else _Expression(_inside(whole, inner))
        case [operator, operand]:
            made = _parsed(operand, inner)
            shown = f"({made.text})" if made.operator else made.text
            return _Expression(f"{operator}{shown}", operator, 1, operand.startswith("$signed"))
        case [left, "|" | "&" as operator, right] if (known := _known(left, right, inner)) is not None:
            other = right if known is left else left
            return _parsed(other if (operator == "|") == _is_zero(known, inner) else known, inner)
        case [left, operator, right]:
            shown = f"{_operand(left, operator, inner)} {operator} {_operand(right, operator, inner)}"
            signed = left.startswith("$signed") and operator not in _COMPARISONS
            return _Expression(shown, operator, 2, signed)
        case ["1'h0" | "1'h1" as condition, "?", then, ":", otherwise]:
            return _parsed(then if condition == "1'h1" else otherwise, inner)
        case [condition, "?", then, ":", otherwise]:
            texts = (_operand(each, "?", inner) for each in (condition, then))
            return _Expression(f"{' ? '.join(texts)} : {_parsed(otherwise, inner).text}", "?", 3)
    raise ValueError(f"not an assignment of one operator: {text}")


def _known(left: str, right: str, inner: Mapping[str, _Expression]) -> str | None:
    """That of two operands whose bits are all 0 or all 1, if one is."""
    return next((each for each in (left, right) if _CONSTANT.fullmatch(_parsed(each, inner).text)), None)


def _is_zero(text: str, inner: Mapping[str, _Expression]) -> bool:
    return not _parsed(text, inner).text.startswith("~")


def _operand(text: str, operator: str, inner: Mapping[str, _Expression]) -> str:
    """An operand as it stands in an expression, in brackets where it needs them or is easier to read with them."""
    made = _parsed(text, inner)
    chained = made.operator == operator and made.operands == 2 and operator in ("&", "|", "^")
    plain = not made.operator or (made.operator == "~" and made.operands == 1) or chained
    return made.text if plain else f"({made.text})"


def _split(text: str, between: str = " ") -> list[str]:
    """The words of a text; what is in brackets stays together."""
    words, depth = [""], 0
    for character in text:
        depth += (character in "([{") - (character in ")]}")
        if character == between and not depth:
            words.append("")
        else:
            words[-1] += character
    return words


def _inside(text: str, inner: Mapping[str, _Expression]) -> str:
    """Something whose names stand between brackets or commas."""

    def shown(found: re.Match[str]) -> str:
        made = inner.get(found[0], _Expression(found[0]))
        return f"({made.text})" if made.operator == "<=" else made.text  # which could be taken for an assignment

    return _ANONYMOUS.sub(shown, text)


def _with(line: str, inner: Mapping[str, _Expression], kept: Mapping[str, _Expression]) -> str:
    """A line with expressions in place of names."""
    if found := _DEFINITION.fullmatch(line):
        return f"  assign {found[1]} = {kept[found[1]].text};"
    if found := _STATEMENT.fullmatch(line):
        return f"{found[1]}{_inside(found[2], inner)} {found[3]} {_parsed(found[4], inner).text};"
    return _inside(line, inner)


def _read(lines: list[str]) -> list[str]:
    """Without wires that nobody reads and that only repeat something, or an element of a vector."""
    while True:
        seen = Counter(name for line in lines for name in set(_NAME.findall(line)))
        repeats = {found[1] or found[2] for line in lines if (found := _REPEATS.fullmatch(line))}
        unread = {name for name in repeats if seen[name] == 2}  # its declaration, and what it repeats
        if not unread:
            return lines
        lines = [
            line
            for line in lines
            if not _defined(line) & unread
            and not ((found := _REPEATS.fullmatch(line)) and (found[1] or found[2]) in unread)
        ]


def _names(kept: Mapping[str, _Expression], lines: list[str]) -> dict[str, str]:
    """Names for the wires that are left: of something that they are made of, and what is done to it.

    Those that nothing defines as a whole are named after what is beside them.
    """
    taken = {name for line in lines for name in _NAME.findall(line)}
    names: dict[str, str] = {}
    bases: dict[str, str] = {}

    def give(wire: str, base: str, word: str) -> None:
        name, number = f"{base}_{word}", 2
        while name in taken:
            name, number = f"{base}_{word}_{number}", number + 1
        taken.add(name)
        names[wire], bases[wire] = name, base

    for line in lines:
        if (found := _STATEMENT.fullmatch(line)) and found[3] == "<=" and _ANONYMOUS.fullmatch(found[4]):
            if found[4] not in names and _NAME.fullmatch(found[2]):
                give(found[4], found[2], "next")
    for wire, expression in kept.items():
        if wire not in names:
            made_of = [bases.get(name, name) for name in _NAME.findall(expression.text) if name not in _NOTHING]
            give(wire, (made_of or ["constant"])[-1 if expression.operator == "?" else 0], expression.word)
    for line in lines:
        if not _DECLARED.fullmatch(line):
            beside = [name for name in _NAME.findall(line) if not _ANONYMOUS.fullmatch(name) and name not in _NOTHING]
            for wire in _ANONYMOUS.findall(line):
                if wire not in names:
                    give(wire, (beside or ["unnamed"])[0], "bits")
    return names


_NOTHING = frozenset({"assign", "signed", "rst"})  # that a wire could be named after


def _ported(lines: list[str], is_top: bool) -> Iterator[str]:
    """A module with its ports declared where they are listed: inside another one, inputs first."""
    listed = [found for line in lines if (found := _PORT.fullmatch(line))]
    if not is_top:
        listed.sort(key=lambda found: (found[2] not in ("clk", "rst"), found[1], _numbered(found[2])))
    ports = {found[2]: found[1] for found in listed}
    own = {name: line.strip().rstrip(";") for line in lines for name in _defined(line) & ports.keys()}
    yield f"{lines[0].partition('(')[0]}("
    yield ",\n".join(f"  {way} {own[name]}" for name, way in ports.items())
    yield ");"
    begin = next(k for k, line in enumerate(lines) if line.endswith(");")) + 1
    body = [line for line in lines[begin:] if not _PORT.fullmatch(line) and not _defined(line) & ports.keys()]
    yield from sorted(filter(_DECLARED.fullmatch, body), key=lambda line: _numbered(*_defined(line)))
    yield from itertools.filterfalse(_DECLARED.fullmatch, body)


def _numbered(name: str) -> list[tuple[int, str]]:
    """Sorts names, and numbers in them by what they count."""
    return [(int(part), "") if part.isdigit() else (-1, part) for part in re.split(r"(\d+)", name)]


def _clocked(lines: Iterable[str]) -> Iterator[str]:
    """One process in place of several that follow each other and each assign a register."""
    pending: list[str] = []
    given = iter(lines)
    for line in given:
        if line == _CLOCKED:
            pending.append(next(given))
            if not pending[-1].startswith("    if "):
                continue
            line = f"{line}\n{pending.pop()}"
        if len(pending) > 1:
            yield "\n".join([f"{_CLOCKED} begin", *pending, "  end"])
        elif pending:
            yield f"{_CLOCKED}\n{pending[0]}"
        pending = []
        yield line


def _loop(found: re.Match[str]) -> str:
    memory, value, last = found.groups()
    return (
        f"  initial begin : fill_{memory}\n    integer k;\n"
        f"    for (k = 0; k <= {last}; k = k + 1) {memory}[k] = {value};\n  end\n"
    )


def _repeated(line: str) -> str:
    """With ``{3{a}}`` in place of ``{ a, a, a }``."""
    return re.sub(r"\{ (?:[^{}]|\{[^{}]*\})+ \}", lambda found: _counted(found[0]), line)


def _counted(concatenation: str) -> str:
    items = [item.strip() for item in _split(concatenation[2:-2], ",")]
    runs = [(item, len(list(run))) for item, run in itertools.groupby(items)]
    if all(count < 3 for _, count in runs):
        return concatenation
    texts = [f"{{{count}{{{item}}}}}" if count > 2 else ", ".join([item] * count) for item, count in runs]
    return texts[0] if len(texts) == 1 else f"{{ {', '.join(texts)} }}"


def _broken(line: str) -> list[str]:
    """A line in several if it is too long; the alternatives of a choice each begin one."""
    if len(line) <= WIDTH:
        return [line]
    indent = " " * (len(line) - len(line.lstrip()) + 2)
    begin, *others = _split(line, ":") if " ? " in line else [line]
    further = f"{indent}  " if others else indent
    pieces = []
    for part in [begin.rstrip(), *(indent + part.strip() for part in others)]:
        pieces += textwrap.wrap(part, WIDTH, subsequent_indent=further, break_long_words=False, break_on_hyphens=False)
        pieces[-1] += " :"
    pieces[-1] = pieces[-1].removesuffix(" :")
    return pieces
