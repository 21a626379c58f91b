"""From a parsed PTX module to micro-operations.

Each instruction goes through a rule of the table in ``operations.py`` or a handler in ``instructions.py`` and becomes
one micro-operation over virtual registers. Extra ones are made only for immediates where the record has room for
registers alone (stores, atomics, texture coordinates), and for special registers as operands.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from lockstep.models.execution.isa import Category, Control, Group, Space, Write
from lockstep.sim.compile.ptx import ast
from lockstep.sim.compile.ptx.draft import Draft, Refused
from lockstep.sim.compile.ptx.inline import lower_call
from lockstep.sim.compile.ptx.instructions import HANDLERS, UnknownInstruction
from lockstep.sim.compile.ptx.kernel import Kernel, Parameter
from lockstep.sim.compile.ptx.micro import NONE, Micro, Storage
from lockstep.sim.compile.ptx.operations import ATTRIBUTES, FLAGS, ROUNDING, RULES, WRITE, Rule
from lockstep.sim.compile.ptx.parameters import place_parameters
from lockstep.sim.compile.ptx.scope import BadOperand, Frame, Scope
from lockstep.sim.errors import UsageError

MAX_CODE = 1_000_000  # micro-operations of a kernel: calls that multiply are stopped here


def lower(module: ast.Module, function: ast.Function, addresses: dict[str, int], limit: int) -> Draft:
    """Lower one kernel of a module for at most ``limit`` registers per thread.

    ``addresses`` are those of functions. Raises :class:`UsageError` and :class:`Refused`.
    """
    return Lowering(module, function, addresses).draft(limit)


def function_addresses(module: ast.Module) -> dict[str, int]:
    """Small numbers for the functions that are used as data."""
    candidates = {name for name, function in module.functions.items() if not function.entry}
    used = {symbol.name for v in module.variables.values() for _, symbol, _ in v.relocations}
    if candidates:
        for function in module.functions.values():
            for statement in function.body:
                if isinstance(statement, ast.Instruction):
                    used.update(_symbols(statement.operands))
    return {name: number for number, name in enumerate(module.functions, 1) if name in used & candidates}


def _symbols(operands: Iterable[ast.Operand]) -> Iterator[str]:
    for operand in operands:
        if isinstance(operand, ast.Symbol):
            yield operand.name
        elif isinstance(operand, ast.Vector):
            yield from _symbols(operand.items)


class Lowering(Scope):
    """One kernel on its way to micro-operations."""

    def __init__(self, module: ast.Module, function: ast.Function, addresses: dict[str, int]) -> None:
        super().__init__(module, addresses)
        self.function = function
        self.line = function.line
        self.text = function.name
        self.local_bytes = 0
        self.source_instructions = 0

    def draft(self, limit: int) -> Draft:
        """Lower the statements and place the variables."""
        frame = Frame(self.function)
        parameters, param_bytes = self._parameters(frame)
        self.body(frame)
        if self.asks_for_grid and any(map(_is_trap, self.code.list)):
            raise Refused("waits for all CTAs of its grid (`grid.sync()`), which is not supported")
        if not self.code.list or not self.code.list[-1].ends_path or len(self.code.list) in self.code.labels:
            self.emit(Micro(Group.CONTROL, Control.EXIT, Category.CONTROL))
        shared_bytes, dynamic = self._place_statics()
        self.local_bytes = place_parameters(self.code, self.parameters, self.local_bytes)
        kernel = Kernel(
            name=self.function.name,
            path=self.module.path,
            parameters=parameters,
            param_bytes=param_bytes,
            shared_bytes=shared_bytes,
            dynamic_shared=dynamic,
            local_bytes=self.local_bytes,
            max_block=self.function.maxntid,
            required_block=self.function.reqntid,
            source_instructions=self.source_instructions,
            line=self.function.line,
        )
        return Draft(kernel, self.code, min(limit, self.function.maxnreg or limit))

    def _parameters(self, frame: Frame) -> tuple[list[Parameter], int]:
        offset, result = 0, []
        for variable in self.function.parameters:
            offset = _aligned(offset, variable.align)
            frame.storage[variable.name] = Storage(variable.name, Space.PARAM, offset, bytes=variable.bytes)
            result.append(
                Parameter(
                    variable.name, variable.type, offset, variable.bytes, variable.align, variable.is_array,
                    variable.pointer_space,
                )
            )  # fmt: skip
            offset += variable.bytes
        return result, offset

    def _place_statics(self) -> tuple[int, bool]:
        """Lay out shared memory, dynamic arrays last. Returns the static bytes, and whether arrays follow."""
        shared, alignment, dynamic = 0, 1, []
        for storage, variable in self.statics.values():
            if storage.space == Space.LOCAL:
                self.local_bytes = _aligned(self.local_bytes, variable.align)
                storage.offset = self.local_bytes
                self.local_bytes += variable.bytes
            elif variable.extern or not variable.bytes:
                dynamic.append(storage)
                alignment = max(alignment, variable.align)
            else:
                shared = _aligned(shared, variable.align)
                storage.offset = shared
                shared += variable.bytes
        if dynamic:
            shared = _aligned(shared, alignment)
        for storage in dynamic:
            storage.offset = shared
        return shared, bool(dynamic)

    # ------------------------------------------------------------------------------------------------------- statements

    def body(self, frame: Frame) -> None:
        """Lower a function's body in its frame."""
        self.frames.append(frame)
        frame.tables = {s.name: s.labels for s in frame.function.body if isinstance(s, ast.BranchTargets)}
        frame.label_names = {s.name for s in frame.function.body if isinstance(s, ast.Label)}
        self._place_locals(frame)
        self.local_bytes = max(self.local_bytes, frame.local_base + frame.local_bytes)
        place = self.line, self.text
        for statement in frame.function.body:
            if isinstance(statement, ast.Label):
                self.code.place(self.label(statement.name))
            elif not isinstance(statement, ast.BranchTargets):
                self._statement(statement)
        self.line, self.text = place
        self.frames.pop()

    def _place_locals(self, frame: Frame) -> None:
        """Give local variables their places. Frames of functions that do not call each other overlap."""
        offset = frame.local_base = _aligned(frame.local_base, 16)
        for variable in frame.function.variables.values():
            if variable.space == "local":
                offset = _aligned(offset, variable.align)
                frame.storage[variable.name] = Storage(variable.name, Space.LOCAL, offset)
                offset += variable.bytes
        frame.local_bytes = offset - frame.local_base

    def _statement(self, statement: ast.Instruction | ast.Call) -> None:
        self.line, self.text = statement.line, statement.text
        self.source_instructions += 1
        if len(self.code.list) > MAX_CODE:
            raise Refused(f"has more than {MAX_CODE} instructions after inlining its calls")
        try:
            if isinstance(statement, ast.Call):
                lower_call(self, statement, self.body)
                return
            micro = self._instruction(statement)
            micro.guard, micro.guard_not = self.guard(statement)
            self.emit(micro)
        except UnknownInstruction:
            raise UsageError(f"{self.module.path}:{self.line}: unknown instruction `{self.text}`") from None
        except BadOperand as error:
            raise UsageError(f"{self.module.path}:{self.line}: `{self.text}`: {error}") from None

    def _instruction(self, instruction: ast.Instruction) -> Micro:
        key = (instruction.opcode, *instruction.modifiers)
        rule = RULES.get(key)
        if rule is not None and not rule.required:
            return self._by_rule(rule, [], instruction.operands)
        handler = HANDLERS.get(instruction.opcode)
        if handler is not None:
            micro = handler(self, instruction)
            if micro is not None:
                return micro
        attributes = [name for name in instruction.modifiers if name in ATTRIBUTES]
        rule = RULES.get((instruction.opcode, *(name for name in instruction.modifiers if name not in ATTRIBUTES)))
        if rule is None or len(set(attributes)) != len(attributes):
            raise UnknownInstruction
        given = {"rnd" if name in ROUNDING and "rnd" in rule.allowed else name for name in attributes}
        if not rule.required <= given <= rule.allowed or len(given) != len(attributes):
            raise UnknownInstruction
        if ("abs" in given) != ("xorsign" in given):
            raise UnknownInstruction
        return self._by_rule(rule, attributes, instruction.operands)

    def _by_rule(self, rule: Rule, attributes: list[str], operands: tuple[ast.Operand, ...]) -> Micro:
        most = len(rule.sources) + 1
        if not most - rule.optional <= len(operands) <= most:
            raise BadOperand(f"takes {most} operands, not {len(operands)}")
        flush = "ftz" in attributes
        flags, rnd, pdst = rule.flags, 0, NONE
        for name in attributes:
            flags |= FLAGS.get(name, 0)
            rnd = ROUNDING.get(name, rnd)
            if name == "cc":
                pdst = self.carry_flag()
        wide = rule.group == Group.LONG
        sources = tuple(
            self.source(operand, kind, wide=wide, flush=flush)
            for operand, kind in zip(operands[1:], rule.sources, strict=False)
        )
        return Micro(
            rule.group, rule.op, rule.category, sources, self.result(operands[0], rule.result),
            WRITE.get(rule.result, Write.WORD), rule.sub or int(flush and rule.result == "f64"), flags, rnd, pdst,
            psrc=self.carry_flag() if rule.carry_in else NONE,
        )  # fmt: skip


def _is_trap(micro: Micro) -> bool:
    return micro.group == Group.CONTROL and micro.op == Control.TRAP and micro.sub == 0


def _aligned(offset: int, alignment: int) -> int:
    return -(-offset // alignment) * alignment
