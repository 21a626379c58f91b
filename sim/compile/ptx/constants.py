"""Constant expressions and initial values of variables (PTX ISA 9.0, sections 4.5 and 5.4.4)."""

from __future__ import annotations

import math
import operator
import struct
from collections.abc import Callable, Iterable
from itertools import accumulate
from typing import NamedTuple

from lark import Token, Tree

from lockstep.sim.compile.ptx import ast

Node = Token | Tree[Token]

TYPE_BYTES = {
    **{f"{kind}{bits}": bits // 8 for kind in "bsu" for bits in (8, 16, 32, 64, 128)},
    **{"f16": 2, "bf16": 2, "f32": 4, "f64": 8},
    **{"b16x2": 4, "s16x2": 4, "u16x2": 4, "f16x2": 4, "bf16x2": 4, "f32x2": 8},
    **{"texref": 8, "samplerref": 8, "surfref": 8, "pred": 1},
}
ADDRESS_BYTES = 8
MAX_VARIABLE_BYTES = 1 << 32
MOST_DIGITS = 20  # of 64 bits, decimal
WARP_SIZE = 32


class SourceError(Exception):
    """Something wrong at a token of the source. The caller adds path and line."""

    def __init__(self, message: str, at: Token) -> None:
        super().__init__(message)
        self.line = at.line or 0


class Constant(NamedTuple):
    """A value as its 64 bits: ``s64``, ``u64`` or ``f64``; ``f32`` for ``0fXXXXXXXX``, which keeps its 32 bits."""

    bits: int
    type: str

    @property
    def value(self) -> int | float:
        match self.type:
            case "s64":
                return self.bits - (self.bits >> 63 << 64)
            case "u64":
                return self.bits
            case "f32":
                return struct.unpack("<f", struct.pack("<I", self.bits))[0]
            case _:
                return struct.unpack("<d", struct.pack("<Q", self.bits))[0]

    @classmethod
    def of(cls, value: int | float, type: str) -> Constant:
        if type == "f64":
            return cls(struct.unpack("<Q", struct.pack("<d", value))[0], type)
        return cls(int(value) & 0xFFFF_FFFF_FFFF_FFFF, type)

    @property
    def immediate(self) -> ast.Immediate:
        return ast.Immediate(self.bits, "int" if self.type in ("s64", "u64") else self.type)


def _quotient(left: int | float, right: int | float) -> int | float:
    if isinstance(left, float) or isinstance(right, float):
        if right == 0:
            return math.nan if left == 0 or left != left else math.copysign(math.inf, left) * math.copysign(1, right)
        return left / right
    quotient = abs(left) // abs(right)
    return quotient if (left < 0) == (right < 0) else -quotient


_ARITHMETIC: dict[str, Callable[..., int | float]] = {
    "+": operator.add,
    "-": operator.sub,
    "*": operator.mul,
    "/": _quotient,
    "%": lambda left, right: left - right * _quotient(left, right),
}
_COMPARISONS: dict[str, Callable[..., bool]] = {
    "==": operator.eq,
    "!=": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
    "&&": lambda left, right: bool(left and right),
    "||": lambda left, right: bool(left or right),
}
_BITS, _RADIX = ("0f", "0F", "0d", "0D"), ("0x", "0X", "0b", "0B")  # how numbers begin: of floats, of integers
_BITWISE: dict[str, Callable[[int, int], int]] = {"&": operator.and_, "|": operator.or_, "^": operator.xor}


def evaluate(node: Node) -> Constant:
    """The value of a constant expression."""
    if isinstance(node, Token):
        return _literal(node)
    match node.data:
        case "unary":
            sign, operand = node.children
            return _unary(token(sign), evaluate(operand))
        case "binary":
            left, sign, right = node.children
            return _binary(evaluate(left), token(sign), evaluate(right))
        case "cast":
            target, operand = node.children
            if target not in (".s64", ".u64"):
                raise SourceError(f"a constant can be cast to .s64 and .u64, not to {target}", token(target))
            value = evaluate(operand).value
            if not math.isfinite(value):
                raise SourceError(f"{value} cannot be cast to an integer", token(target))
            return Constant.of(value, str(target)[1:])
        case _:
            condition, then, otherwise = node.children
            return evaluate(then if evaluate(condition).value else otherwise)


def integer(node: Node) -> int:
    """The value of a constant expression that must be an integer."""
    constant = evaluate(node)
    if constant.type not in ("s64", "u64"):
        raise SourceError("an integer is expected here", first_token(node))
    return int(constant.value)


def displacement(node: Node) -> int:
    """The sum of an ``offset`` of the grammar: signs and products in turn."""
    assert isinstance(node, Tree)
    terms = zip(node.children[::2], node.children[1::2], strict=True)
    return sum(integer(product) if sign == "+" else -integer(product) for sign, product in terms)


def size_in_bytes(name: Token, type: str, dimensions: Iterable[int | None]) -> int:
    """The size of an array; an open dimension counts as nothing."""
    size = math.prod(extent or 0 for extent in dimensions) * TYPE_BYTES[type]
    if size > MAX_VARIABLE_BYTES:
        raise SourceError(f"{name}: {size} bytes are more than a variable can have ({MAX_VARIABLE_BYTES})", name)
    return size


def first_token(node: Node) -> Token:
    """Where a node begins, for error messages."""
    while not isinstance(node, Token):
        node = node.children[0]
    return node


def token(node: Node | None) -> Token:
    """A child that the grammar makes a token."""
    assert isinstance(node, Token)
    return node


def _literal(token: Token) -> Constant:
    return _value(token.type, token, token)


def _value(type: str, text: str, place: Token) -> Constant:
    """The value of a terminal of the grammar."""
    match type:
        case "INTEGER":
            digits = text.rstrip("U")
            octal = len(digits) > 1 and digits.isdigit() and digits[0] == "0"
            if digits.isdigit() and not octal and len(digits) > MOST_DIGITS:
                raise SourceError(f"{text} does not fit in 64 bits", place)
            try:
                value = int(digits, 8 if octal else 0)
            except ValueError:
                raise SourceError(f"{text} is not an octal number", place) from None
            if value >> 64:
                raise SourceError(f"{text} does not fit in 64 bits", place)
            return Constant(value, "u64" if text.endswith("U") or value >> 63 else "s64")
        case "FLOAT_BITS":
            return Constant(int(text[2:], 16), "f32" if text[1] in "fF" else "f64")
        case "WARP_SIZE":
            return Constant(WARP_SIZE, "s64")
        case _:
            return Constant.of(float(text), "f64")


def _unary(sign: Token, operand: Constant) -> Constant:
    if sign == "!":
        return Constant.of(not operand.value, "s64")
    if operand.type == "f32" or (sign == "~" and operand.type == "f64"):
        raise SourceError(f"{sign} does not apply to this constant", sign)
    if sign == "~":
        return Constant.of(~operand.bits, "u64")
    return Constant.of(-operand.value, operand.type) if sign == "-" else operand


def _binary(left: Constant, sign: Token, right: Constant) -> Constant:
    if "f32" in (left.type, right.type):
        raise SourceError("a number written as 0fXXXXXXXX cannot be part of an expression", sign)
    floating = "f64" in (left.type, right.type)
    if floating and (sign == "%" or sign in _BITWISE or sign in ("<<", ">>")):
        raise SourceError(f"{sign} takes integers", sign)
    if sign in _BITWISE:
        return Constant.of(_BITWISE[sign](left.bits, right.bits), "u64")
    if sign in ("<<", ">>"):
        distance = min(right.bits, 64)
        return Constant.of(int(left.value) << distance if sign == "<<" else int(left.value) >> distance, left.type)
    if floating:
        type, operands = "f64", (float(left.value), float(right.value))
    else:
        type = "u64" if "u64" in (left.type, right.type) else "s64"
        operands = Constant(left.bits, type).value, Constant(right.bits, type).value
    if sign in _COMPARISONS:
        return Constant.of(_COMPARISONS[sign](*operands), "s64")
    if sign in ("/", "%") and operands[1] == 0 and not floating:
        raise SourceError("division by zero in a constant expression", sign)
    return Constant.of(_ARITHMETIC[sign](*operands), type)


class InitialValue:
    """The bytes of a variable's initial value, as far as it says them, and the places where addresses go.

    ``dimensions``: elements in each direction, outermost first, the lanes of a vector last; None for a first one that
    the list decides. An address byte by byte (``0xFF(symbol), 0xFF00(symbol), ...``) is one relocation.
    """

    def __init__(self, name: Token, type: str, dimensions: list[int | None], value: Node) -> None:
        self._name, self._type = name, type
        inner = [extent or 0 for extent in dimensions[1:]]
        if dimensions and dimensions[0] is None:
            items = _length(value)
            nested = isinstance(value, Tree) and any(_is_list(item) for item in value.children)
            self.dimensions = [items if nested else -(-items // (math.prod(inner) or 1)), *inner]
        else:
            self.dimensions = [extent or 0 for extent in dimensions[:1]] + inner
        size_in_bytes(name, type, self.dimensions)
        self._pieces: list[tuple[int, bytearray]] = []  # a short text may be about gigabytes of zeros
        # Bytes of an element of each dimension, and of the whole before them.
        sizes = accumulate(reversed(self.dimensions), operator.mul, initial=TYPE_BYTES[type])
        self._sizes = [*sizes][::-1]
        self._relocations: dict[int, tuple[ast.Symbol, bool]] = {}
        self._address_bytes: dict[int, int] = {}  # start of an address given byte by byte -> bytes seen
        self._fill(value, 0, 0)
        if any(seen != ADDRESS_BYTES for seen in self._address_bytes.values()):
            raise SourceError(f"{name}: an address takes {ADDRESS_BYTES} bytes, lowest first", name)

    @property
    def pieces(self) -> tuple[tuple[int, bytes], ...]:
        return tuple((offset, bytes(content)) for offset, content in self._pieces)

    @property
    def relocations(self) -> tuple[tuple[int, ast.Symbol, bool], ...]:
        return tuple((offset, symbol, generic) for offset, (symbol, generic) in self._relocations.items())

    def _fill(self, node: Node, depth: int, offset: int) -> int:
        """Write a value, or a list over the dimensions from ``depth`` on, at a byte offset. Returns the next one."""
        if not _is_list(node):
            return self._write(node, offset)
        if depth == len(self.dimensions):
            raise SourceError(f"{self._name}: too many nested braces", self._name)
        start, end, stride = offset, offset + self._sizes[depth], self._sizes[depth + 1]
        assert isinstance(node, Tree)
        for item in node.children:
            nested = _is_list(item)
            if nested and offset < end and (offset - start) % stride:
                raise SourceError(f"{self._name}: a nested brace in the middle of a row", self._name)
            offset = self._fill(item, depth + 1, offset)
            if offset > end or (nested and not stride):
                raise SourceError(f"{self._name}: more initial values than elements", self._name)
        return end

    def _write(self, node: Node, offset: int) -> int:
        size = TYPE_BYTES[self._type]
        content = bytes(size)
        if isinstance(node, Token) and node.type == "NUMBERS":
            texts = str(node).split(",")
            encoded = {text: self._encode(_number(text.strip(), node)) for text in dict.fromkeys(texts)}
            content = b"".join([encoded[text] for text in texts])
        elif isinstance(node, Tree) and node.data == "address_byte":
            self._write_address_byte(node, offset)
        elif isinstance(node, Tree) and node.data in ("address_of", "generic_address"):
            if size != ADDRESS_BYTES:
                raise SourceError(f"{self._name}: an address needs elements of {8 * ADDRESS_BYTES} bits", self._name)
            names = [part for part in node.children if isinstance(part, Token) and part.type == "NAME"]
            shift = sum(displacement(part) for part in node.children if isinstance(part, Tree))
            self._relocations[offset] = ast.Symbol(str(names[0]), shift), node.data == "generic_address"
        else:
            content = self._encode(evaluate(node))
        if self._pieces and sum((self._pieces[-1][0], len(self._pieces[-1][1]))) == offset:
            self._pieces[-1][1].extend(content)
        else:
            self._pieces.append((offset, bytearray(content)))
        return offset + len(content)

    def _encode(self, constant: Constant) -> bytes:
        size = TYPE_BYTES[self._type]
        if code := {"f16": "<e", "f32": "<f", "f64": "<d"}.get(self._type):
            if constant.type == self._type:
                return constant.bits.to_bytes(size, "little")
            try:
                return struct.pack(code, constant.value)
            except OverflowError:
                return struct.pack(code, math.copysign(math.inf, constant.value))
        if constant.type not in ("s64", "u64") and size != (4 if constant.type == "f32" else 8):
            raise SourceError(f"{self._name}: a floating-point value does not fit in .{self._type}", self._name)
        return constant.bits.to_bytes(max(size, 8), "little")[:size]

    def _write_address_byte(self, node: Tree[Token], offset: int) -> None:
        mask, *form, name = map(token, node.children)
        index = max(integer(mask).bit_length() - 1, 0) // 8
        start, target = offset - index, (ast.Symbol(str(name)), bool(form))
        if TYPE_BYTES[self._type] != 1 or integer(mask) != 0xFF << 8 * index:
            raise SourceError(f"{self._name}: {mask}({name}) must choose one byte for an element of 8 bits", mask)
        if index == 0:
            self._relocations[start] = target
        elif self._relocations.get(start) != target or self._address_bytes[start] != index:
            raise SourceError(f"{self._name}: the bytes of an address must stand together, lowest first", mask)
        self._address_bytes[start] = index + 1


def _is_list(node: Node) -> bool:
    return isinstance(node, Tree) and node.data == "list"


def _length(node: Node) -> int:
    """The items of a list; what is none is its only item."""
    items = node.children if isinstance(node, Tree) and node.data == "list" else [node]
    return sum(item.count(",") + 1 if isinstance(item, Token) else 1 for item in items)


def _number(text: str, place: Token) -> Constant:
    """The value of a number with or without a sign."""
    if text[0] == "-":
        return _unary(Token("MINUS", "-", line=place.line), _number(text[1:].lstrip(), place))
    if text[:2] in _BITS:
        return _value("FLOAT_BITS", text, place)
    whole = text.isdecimal() or text[-1] == "U" or text[:2] in _RADIX
    return _value("INTEGER" if whole else "FLOAT", text, place)
