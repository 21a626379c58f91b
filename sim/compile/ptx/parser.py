"""PTX text to :class:`ast.Module`: scopes resolved, constants evaluated, initial values laid out.

The grammar is ``ptx.lark``; lark makes the tree, this file gives it meaning. Names are resolved here, so that no later
pass needs to know about scopes: registers, variables and labels of nested blocks get names that are unique in their
function (``name@1``) or, in global memory, in the module (``name@function``), vector registers become their elements,
and a name that is declared nowhere is an error. What an opcode means, and which operands it takes, is for lowering.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Container, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cache

from lark import Lark, Token, Tree, UnexpectedInput, UnexpectedToken

from lockstep.sim.compile.ptx import ast
from lockstep.sim.compile.ptx.constants import (
    TYPE_BYTES,
    InitialValue,
    Node,
    SourceError,
    displacement,
    evaluate,
    first_token,
    integer,
    size_in_bytes,
    token,
)
from lockstep.sim.errors import UsageError

_COMMENT = re.compile(r"//[^\n]*|/\*.*?\*/", re.DOTALL)
_VECTOR_SPECIAL = re.compile(r"%n?(tid|ctaid|clusterid)|%cluster_n?ctaid")
_SCALAR_SPECIAL = re.compile(
    r"%(laneid|n?warpid|n?smid|gridid|is_explicit_cluster|cluster_n?ctarank|lanemask_(eq|le|lt|ge|gt)"
    r"|clock|clock_hi|clock64|pm[0-7](_64)?|envreg([12]?\d|3[01])|globaltimer(_lo|_hi)?|current_graph_exec"
    r"|reserved_smem_offset_(begin|end|cap|[01])|(total|aggr|dynamic)_smem_size)"
)
_LABELLED = ("label", "branch_targets", "call_targets", "prototype")
_ELEMENTS = {".x": 0, ".y": 1, ".z": 2, ".w": 3, ".r": 0, ".g": 1, ".b": 2, ".a": 3}
_MAX_REGISTERS = 1 << 20
_OPAQUE = ("texref", "samplerref", "surfref")


def parse(text: str, path: str) -> ast.Module:
    """Read one PTX module. Raises :class:`UsageError` with path and line for text that is not PTX."""
    if not text.strip():
        raise UsageError(f"{path}: not a PTX module: the file is empty")
    try:
        return _ModuleReader(text, path).read(_grammar().parse(text))
    except UnexpectedInput as error:
        if isinstance(error, UnexpectedToken) and error.token.type == "$END":
            raise UsageError(f"{path}: the PTX ends in the middle of a statement or block") from None
        near = text[error.pos_in_stream :].split("\n", 1)[0].strip()
        raise UsageError(f"{path}:{error.line}: cannot be parsed as PTX, near '{near[:60]}'") from None
    except RecursionError:
        raise UsageError(f"{path}: blocks or expressions are nested too deeply") from None
    except SourceError as error:
        near = " ".join(text.split("\n")[error.line - 1].split())
        raise UsageError(f"{path}:{error.line}: {error}, near '{near[:60]}'") from None


@cache
def _grammar() -> Lark:
    return Lark.open("ptx.lark", rel_to=__file__, parser="lalr", start="module", maybe_placeholders=True)


@dataclass(slots=True)
class _Scope:
    """The meanings of names between two braces."""

    parent: _Scope | None = None
    names: dict[str, ast.Operand] = field(default_factory=dict)

    def declare(self, name: Token, meaning: ast.Operand) -> None:
        if name in self.names:
            raise SourceError(f"{name} is declared twice", name)
        self.names[str(name)] = meaning

    def find(self, name: str) -> ast.Operand | None:
        scope: _Scope | None = self
        while scope is not None:
            if meaning := scope.names.get(name):
                return meaning
            scope = scope.parent
        return None


@dataclass(slots=True)
class _Placement:
    """The part of a declaration before the name."""

    space: str = ""
    type: str = ""
    align: int = 0  # bytes; 0: natural
    lanes: int = 1
    pointer_space: str | None = None

    @classmethod
    def read(cls, tree: Tree[Token]) -> _Placement:
        placement = cls()
        for child in tree.children:
            match child:
                case Token(type="SPACE" | "REG"):
                    placement.space = child[1:]
                case Token(type="TYPE"):
                    placement.type = child[1:]
                case Token(type="VECTOR"):
                    placement.lanes = int(child[2:])
                case Tree(data="align"):
                    placement.align = integer(child.children[0])
                    if placement.align <= 0 or placement.align & (placement.align - 1):
                        raise SourceError("an alignment must be a power of two", first_token(child))
                case Tree(data="pointer"):
                    spaces = [part[1:] for part in child.children if isinstance(part, Token)]
                    placement.pointer_space = spaces[0] if spaces else "generic"
        return placement

    def variable(self, name: Token, dimensions: Sequence[Node], value: Node | None, extern: bool) -> ast.Variable:
        """The variable that a declarator makes."""
        extents = [self._extent(name, dimension) for dimension in dimensions]
        if None in extents[1:]:
            raise SourceError(f"{name}: only the first dimension of an array can be left open", name)
        if self.lanes > 1:
            extents.append(self.lanes)
        initial = None
        if value is not None:
            if self.type in _OPAQUE:
                raise SourceError(f"{name}: the state of a {self.type} is set by the host, not in PTX", name)
            initial = InitialValue(name, self.type, extents, value)
            extents = [*initial.dimensions]
        size = size_in_bytes(name, self.type, extents)
        space = self.space
        if space != "param" and (self.type in _OPAQUE or space == "tex"):
            space = self.type if self.type in _OPAQUE else "texref"  # .tex .u32 t is the old form of .global .texref t
        return ast.Variable(
            name=str(name),
            space=space,
            type=self.type,
            align=self.align or TYPE_BYTES[self.type] * self.lanes,
            count=size // TYPE_BYTES[self.type],
            bytes=size,
            is_array=bool(dimensions),
            extern=extern,
            pointer_space=self.pointer_space,
            pieces=initial.pieces if initial else None,
            relocations=initial.relocations if initial else (),
            line=name.line or 0,
        )

    @staticmethod
    def _extent(name: Token, dimension: Node) -> int | None:
        """Elements in one direction; None where the brackets are empty."""
        extent = dimension.children[0] if isinstance(dimension, Tree) else None
        elements = None if extent is None else integer(extent)
        if elements is not None and elements < 0:
            raise SourceError(f"{name}: an array cannot have a negative size", name)
        return elements


class _Names:
    """The names of a function: one that is taken, there or in the collections given, gets a number behind it."""

    def __init__(self, *others: Container[str]) -> None:
        self._others = others
        self._again: dict[str, int] = {}  # how often a name was asked for again

    def unique(self, name: str) -> str:
        unique = name
        while unique in self._again or any(unique in names for names in self._others):
            self._again[name] = self._again.get(name, 0) + 1
            unique = f"{name}@{self._again[name]}"
        self._again[unique] = 0
        return unique


class _ModuleReader:
    """Everything at module scope; :class:`_FunctionReader` does the bodies."""

    def __init__(self, text: str, path: str) -> None:
        self.text = text
        self.module = ast.Module(path, version=(0, 0), target="", address_size=64, variables={}, functions={})
        self.scope = _Scope()
        self._bodies: list[tuple[ast.Function, Tree[Token]]] = []
        self._registers = 0  # declared so far

    def count_registers(self, name: Token, count: Node | None) -> None:
        """Refuse registers that would take all memory: each is an object, and a range of them takes a few letters."""
        self._registers += 1 if count is None else int(token(count)[1:-1])
        if self._registers > _MAX_REGISTERS:
            raise SourceError(f"{self._registers} registers are more than a module can have ({_MAX_REGISTERS})", name)

    def read(self, tree: Tree[Token]) -> ast.Module:
        for item in tree.children:
            assert isinstance(item, Tree)
            match item.data:
                case "version":
                    major, minor = str(item.children[0]).split(".")
                    self.module.version = int(major), int(minor)
                case "target":
                    self.module.target = str(item.children[0])
                case "address_size":
                    if item.children[0] != "64":
                        raise SourceError("only .address_size 64 is supported", first_token(item))
                case "variable":
                    self._variables(item)
                case "function":
                    self._function(item)
        for item in _subtrees(tree, "alias"):
            self._alias(item)
        if not self.module.target or self.module.version == (0, 0):
            raise UsageError(f"{self.module.path}: not a PTX module: it must begin with .version and .target")
        for function, block in self._bodies:  # once all names at module scope are known
            _FunctionReader(self, function).read(block)
        for variable in self.module.variables.values():
            for _, symbol, _ in variable.relocations:
                if symbol.name not in self.scope.names:
                    at = Token("NAME", variable.name, line=variable.line)
                    raise SourceError(f"{symbol.name}, in the initial value of {variable.name}, is not declared", at)
        return self.module

    def _variables(self, tree: Tree[Token]) -> None:
        for name, variable in _declared(tree):
            if variable.space in ("local", "param"):
                raise SourceError(f"a .{variable.space} variable must be declared in a function", name)
            known = self.module.variables.get(variable.name)
            if known and not known.extern and not variable.extern:
                raise SourceError(f"{name} is declared twice", name)
            if not known or known.extern:
                self.module.variables[variable.name] = variable
                self.scope.names[variable.name] = ast.Symbol(variable.name)

    def _function(self, tree: Tree[Token]) -> None:
        children = [child for child in tree.children if not (isinstance(child, Token) and child.type == "LINKAGE")]
        kind, results, name, parameters, *_ = children
        assert isinstance(name, Token)
        block = next(_subtrees(tree, "block"), None)
        function = ast.Function(
            name=str(name),
            entry=kind == ".entry",
            parameters=_parameters(parameters),
            results=_parameters(results),
            registers={},
            variables={},
            defined=block is not None,
            line=name.line or 0,
        )
        for tuning in _subtrees(tree, "tuning"):
            self._tune(function, tuning)
        known = self.module.functions.get(function.name)
        if known and known.defined and function.defined:
            raise SourceError(f"{name} is defined twice", name)
        if not known or not known.defined:
            self.module.functions[function.name] = function
            self.scope.names[function.name] = ast.Symbol(function.name)
        if block is not None:
            self._bodies.append((function, block))

    @staticmethod
    def _tune(function: ast.Function, tree: Tree[Token]) -> None:
        directive, *numbers = tree.children
        values = [integer(number) for number in numbers if number is not None]
        if directive in (".maxntid", ".reqntid", ".minnctapersm", ".maxnreg") and not values:
            raise SourceError(f"{directive} takes a number", first_token(tree))
        block = (*values, 1, 1)[:3]
        match str(directive):
            case ".maxntid":
                function.maxntid = (block[0], block[1], block[2])
            case ".reqntid":
                function.reqntid = (block[0], block[1], block[2])
            case ".minnctapersm":
                function.minnctapersm = values[0]
            case ".maxnreg":
                function.maxnreg = values[0]

    def _alias(self, tree: Tree[Token]) -> None:
        name, target = map(str, tree.children)
        if target not in self.module.functions:
            raise SourceError(f"{target} is not a function", first_token(tree))
        self.module.functions[name] = self.module.functions[target]
        self.scope.names[name] = ast.Symbol(name)


class _FunctionReader:
    """One function's body. Nested blocks disappear: what they declare is renamed where names would clash."""

    def __init__(self, reader: _ModuleReader, function: ast.Function) -> None:
        self._reader, self._function = reader, function
        self._module, self._text = reader.module, reader.text
        self._root = _Scope(reader.scope)
        own = (part.name for part in function.results + function.parameters)
        self._names = _Names(reader.scope.names, reader.module.variables, frozenset(own))
        for variable in function.results + function.parameters:
            if variable.space == "reg":
                function.registers[variable.name] = variable.type
                self._root.names[variable.name] = ast.Register(variable.name)
            else:
                self._root.names[variable.name] = ast.Symbol(variable.name)
        self._statements: dict[str, Callable[[Tree[Token], _Scope], None]] = {
            "registers": self._registers,
            "variable": self._variables,
            "block": self._block,
            "instruction": self._instruction,
            "call": self._call,
            "label": self._label,
            "branch_targets": self._branch_targets,
            "call_targets": self._call_targets,
            "prototype": self._prototype,
        }
        self._operands: dict[str, Callable[[Tree[Token], _Scope], ast.Operand]] = {
            "immediate": lambda tree, scope: evaluate(tree.children[0]).immediate,
            "element": self._element,
            "displaced": self._displaced,
            "negation": self._negation,
            "pair": self._pair,
            "vector": self._vector,
            "address": self._address,
        }

    def read(self, block: Tree[Token]) -> None:
        self._block(block, self._root)

    # ---- Declarations

    def _block(self, tree: Tree[Token], parent: _Scope) -> None:
        scope = _Scope(parent)
        for statement in tree.children:  # labels can be used before they stand
            if isinstance(statement, Tree) and statement.data in _LABELLED:
                name = first_token(statement)
                scope.declare(name, ast.Symbol(self._names.unique(name)))
        for statement in tree.children:
            if isinstance(statement, Tree):
                self._statements[statement.data](statement, scope)

    def _registers(self, tree: Tree[Token], scope: _Scope) -> None:
        _, vector, type, *registers = tree.children
        axes = "" if vector is None else "xyzw"[: int(token(vector)[2:])]
        for register in registers:
            assert isinstance(register, Tree)
            name, count = register.children
            self._reader.count_registers(token(name), count)
            for instance in _instances(token(name), count):
                unique = self._names.unique(instance)
                elements = [f"{unique}.{axis}" for axis in axes] or [unique]
                self._function.registers.update(dict.fromkeys(elements, token(type)[1:]))
                parts = tuple(map(ast.Register, elements))
                scope.declare(instance, ast.Vector(parts) if axes else parts[0])

    def _variables(self, tree: Tree[Token], scope: _Scope) -> None:
        for name, variable in _declared(tree):
            own = variable.space in ("shared", "local", "param")
            if not own and variable.name in self._module.variables:
                variable.name += f"@{self._function.name}"
            variable.name = self._names.unique(variable.name)
            scope.declare(name, ast.Symbol(variable.name))
            if own:
                if variable.pieces is not None:
                    raise SourceError(f"{name}: .{variable.space} variables have no initial value", name)
                self._function.variables[variable.name] = variable
            else:
                self._module.variables[variable.name] = variable

    def _prototype(self, tree: Tree[Token], scope: _Scope) -> None:
        label, results, _, parameters, *_ = tree.children
        name = self._symbol(label, scope).name
        self._function.prototypes[name] = ast.Prototype(name, _parameters(results), _parameters(parameters))

    def _call_targets(self, tree: Tree[Token], scope: _Scope) -> None:
        """A list of possible callees tells what a prototype does: they all have the same signature."""
        label, *targets = tree.children
        name = self._symbol(label, scope).name
        callee = self._callee(targets[0], scope)
        self._function.prototypes[name] = ast.Prototype(name, callee.results, callee.parameters)

    # ---- Statements

    def _label(self, tree: Tree[Token], scope: _Scope) -> None:
        name = first_token(tree)
        self._function.body.append(ast.Label(self._symbol(name, scope).name, name.line or 0))

    def _branch_targets(self, tree: Tree[Token], scope: _Scope) -> None:
        name, *labels = (self._symbol(part, scope).name for part in tree.children)
        self._function.body.append(ast.BranchTargets(name, tuple(labels), first_token(tree).line or 0))

    def _instruction(self, tree: Tree[Token], scope: _Scope) -> None:
        children = tree.children
        opcode, *modifiers = _split(children[1])
        self._function.body.append(
            ast.Instruction(
                opcode,
                tuple(modifiers),
                tuple([self._operand(node, scope) for node in children[2:-1]]),
                token(children[1]).line or 0,
                self._source(tree),
                *self._guard(children[0], scope),
            )
        )

    def _call(self, tree: Tree[Token], scope: _Scope) -> None:
        guard, _, results, target, arguments, prototype, _ = tree.children
        callee = self._operand(target, scope)
        self._function.body.append(
            ast.Call(
                self._arguments(results, scope),
                callee if isinstance(callee, ast.Register) else self._callee(target, scope).name,
                self._arguments(arguments, scope),
                None if prototype is None else self._symbol(prototype, scope).name,
                token(tree.children[1]).line or 0,
                self._source(tree),
                *self._guard(guard, scope),
            )
        )

    def _arguments(self, tree: Node | None, scope: _Scope) -> tuple[ast.Operand, ...]:
        return tuple(self._operand(node, scope) for node in tree.children) if isinstance(tree, Tree) else ()

    def _guard(self, tree: Node | None, scope: _Scope) -> tuple[ast.Register | None, bool]:
        if not isinstance(tree, Tree):
            return None, False
        _, negated, name = tree.children
        return self._register(name, scope), negated is not None

    def _source(self, tree: Tree[Token]) -> str:
        start, end = first_token(tree.children[0] or tree.children[1]), token(tree.children[-1])
        source = self._text[start.start_pos : end.end_pos]
        if "//" in source or "/*" in source:
            source = _COMMENT.sub(" ", source)
        return " ".join(source.split())

    # ---- Operands

    def _operand(self, node: Node, scope: _Scope) -> ast.Operand:
        if isinstance(node, Tree):
            return self._operands[node.data](node, scope)
        if meaning := scope.find(node):
            return meaning
        if node == "_":
            return ast.Sink()
        if _SCALAR_SPECIAL.fullmatch(node):
            return ast.Special(str(node))
        if _VECTOR_SPECIAL.fullmatch(node):
            return ast.Vector((*(ast.Special(f"{node}.{axis}") for axis in "xyz"), ast.Immediate(0, "int")))
        raise SourceError(f"{node} is not declared", node)

    def _register(self, node: Node, scope: _Scope) -> ast.Register:
        operand = self._operand(node, scope)
        if not isinstance(operand, ast.Register):
            raise SourceError(f"{first_token(node)} is not a register", first_token(node))
        return operand

    def _symbol(self, node: Node, scope: _Scope) -> ast.Symbol:
        operand = self._operand(node, scope)
        if not isinstance(operand, ast.Symbol):
            raise SourceError(f"{first_token(node)} is not a label or an address", first_token(node))
        return operand

    def _callee(self, node: Node, scope: _Scope) -> ast.Function:
        operand = self._operand(node, scope)
        function = self._module.functions.get(operand.name) if isinstance(operand, ast.Symbol) else None
        if function is None:
            raise SourceError(f"{first_token(node)} is not a function", first_token(node))
        return function

    def _element(self, tree: Tree[Token], scope: _Scope) -> ast.Operand:
        name, selector = map(token, tree.children)
        whole = self._operand(name, scope)
        if isinstance(whole, ast.Vector) and _ELEMENTS.get(selector, 4) < len(whole.items):
            return whole.items[_ELEMENTS[selector]]
        if isinstance(whole, ast.Register) and selector not in _ELEMENTS:
            return ast.Element(whole, str(selector)[1:])
        raise SourceError(f"{name} has no element {selector}", first_token(tree))

    def _displaced(self, tree: Tree[Token], scope: _Scope) -> ast.Symbol:
        base, offset = tree.children
        return replace(self._symbol(base, scope), offset=displacement(offset))

    def _negation(self, tree: Tree[Token], scope: _Scope) -> ast.Not:
        return ast.Not(self._register(tree.children[1], scope))

    def _pair(self, tree: Tree[Token], scope: _Scope) -> ast.Pair:
        first, second = (self._operand(node, scope) for node in tree.children)
        return ast.Pair(first, second)

    def _vector(self, tree: Tree[Token], scope: _Scope) -> ast.Vector:
        return ast.Vector(tuple([self._operand(node, scope) for node in tree.children]))

    def _address(self, tree: Tree[Token], scope: _Scope) -> ast.Operand:
        node, *more = tree.children
        if more:
            texture, *sampler, coordinates = (self._operand(child, scope) for child in tree.children)
            if len(sampler) > 1:
                raise SourceError("more than [texture, sampler, coordinates]", first_token(tree))
            points = coordinates.items if isinstance(coordinates, ast.Vector) else (coordinates,)
            return ast.Texel(texture, sampler[0] if sampler else None, points)
        start, offset = node, 0
        if isinstance(node, Tree) and node.data == "displaced":
            start, offset = node.children[0], displacement(node.children[1])
        base = self._operand(start, scope)
        if not isinstance(base, ast.Register | ast.Symbol | ast.Immediate):
            raise SourceError("an address is [register], [symbol] or [number], plus an offset", first_token(tree))
        return ast.Address(base, offset)


def _subtrees(tree: Tree[Token], rule: str) -> Iterator[Tree[Token]]:
    return (child for child in tree.children if isinstance(child, Tree) and child.data == rule)


def _declared(tree: Tree[Token]) -> Iterator[tuple[Token, ast.Variable]]:
    """The variables of a declaration, with the tokens of their names."""
    placement, extern = _Placement.read(next(_subtrees(tree, "placement"))), ".extern" in tree.children
    for declarator in _subtrees(tree, "declarator"):
        name, *dimensions, value = declarator.children
        yield token(name), placement.variable(token(name), dimensions, value, extern)


def _parameters(tree: Node | None) -> tuple[ast.Variable, ...]:
    """Parameters or results of a function or prototype."""
    variables = []
    for parameter in _subtrees(tree, "parameter") if isinstance(tree, Tree) else ():
        placement, name, *dimensions = parameter.children
        assert isinstance(placement, Tree)
        variables.append(_Placement.read(placement).variable(token(name), dimensions, None, extern=False))
    return tuple(variables)


def _instances(name: Token, count: Node | None) -> Iterator[Token]:
    """The registers of ``%r<3>``: %r0, %r1 and %r2."""
    if count is None:
        yield name
        return
    for index in range(int(token(count)[1:-1])):
        yield name.update(value=f"{name}{index}")


@cache
def _split(opcode: str) -> list[str]:
    """An opcode and its modifiers; ``::`` stays with what it qualifies (``shared::cta``)."""
    return str(opcode).split(".")
