"""Function calls: every call is replaced by the body of the function.

A :class:`Frame` is one instance of a function in a kernel. ``.param`` variables of call sequences are not memory: where
all their accesses agree on offsets and sizes, each piece becomes a virtual register, and stores and loads become moves.
Otherwise, or when their address is taken, the variable lies in the thread's local memory.

An indirect call compares the address, which is a small number per function, with those of all functions that are used
as data and have the signature of the prototype.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from lockstep.models.execution import isa
from lockstep.models.execution.isa import Category, Control, Fetch, Flag, Group, Memory, Predicate, Space
from lockstep.sim.ptx import ast
from lockstep.sim.ptx.micro import NONE, Code, Micro, Source, Storage, move
from lockstep.sim.ptx.operations import BITS

if TYPE_CHECKING:
    from lockstep.sim.ptx.lower import Lowering


@dataclass(slots=True)
class Frame:
    """A function being lowered: what its names stand for."""

    function: ast.Function
    local_base: int = 0  # bytes of local memory below it
    local_bytes: int = 0  # of its own variables
    leave: int | None = None  # the label behind the inlined body; None in a kernel, where ``ret`` ends the thread
    registers: dict[str, int] = field(default_factory=dict)
    labels: dict[str, int] = field(default_factory=dict)
    storage: dict[str, Storage] = field(default_factory=dict)
    label_names: set[str] = field(default_factory=set)  # all of the body's
    tables: dict[str, tuple[str, ...]] = field(default_factory=dict)  # branch targets


@dataclass(slots=True, eq=False)
class ParameterStorage(Storage):
    """A ``.param`` variable of a call sequence, with all that happens to it."""

    bytes: int = 0
    align: int = 4
    address_taken: bool = False
    accesses: list[ParameterAccess] = field(default_factory=list)


@dataclass(slots=True, eq=False)
class ParameterAccess(Micro):
    """``ld.param`` or ``st.param`` of such a variable: a memory operation until :func:`place_parameters` decides."""

    values: tuple[Source, ...] = ()  # what is stored, one per element
    widths: tuple[int, ...] = ()  # bits of the registers on the other side


def load_parameter(storage: ParameterStorage, offset: int, size: int, targets: Sequence[tuple[int, int]], flags: int):
    """An ``ld.param`` into ``targets``, pairs of a register and its bits."""
    access = ParameterAccess(
        Group.MEMORY, Memory.LOAD, Category.LOCAL, space=Space.LOCAL, bytes=size, vec=len(targets), flags=flags,
        data=max(bits for _, bits in targets) // 8, results={i: r for i, (r, _) in enumerate(targets)},
        offset=offset, storage=storage, widths=tuple(bits for _, bits in targets),
    )  # fmt: skip
    storage.accesses.append(access)
    return access


def store_parameter(storage: ParameterStorage, offset: int, size: int, values: Sequence[tuple[Source, int]]):
    """An ``st.param`` of ``values``, pairs of a source and its bits."""
    access = ParameterAccess(
        Group.MEMORY, Memory.STORE, Category.LOCAL, space=Space.LOCAL, bytes=size, vec=len(values),
        data=max(bits for _, bits in values) // 8, offset=offset, storage=storage,
        values=tuple(value for value, _ in values), widths=tuple(bits for _, bits in values),
    )  # fmt: skip
    storage.accesses.append(access)
    return access


def place_parameters(code: Code, storages: Sequence[ParameterStorage], local_bytes: int) -> int:
    """Turn parameter accesses into moves, or into accesses to local memory above ``local_bytes``. Returns its size."""
    pieces: dict[ParameterStorage, dict[int, int] | None] = {}
    for storage in storages:
        pieces[storage] = None if storage.address_taken else _pieces(storage, code)
        if pieces[storage] is None:
            local_bytes = -(-local_bytes // storage.align) * storage.align
            storage.offset = local_bytes
            local_bytes += storage.bytes
    expansions = []
    for micro in code.list:
        if isinstance(micro, ParameterAccess):
            assert isinstance(micro.storage, ParameterStorage)
            registers = pieces[micro.storage]
            expansion = _access_memory(micro, code) if registers is None else _access_registers(micro, registers)
            for part in expansion:
                part.line, part.guard, part.guard_not = micro.line, micro.guard, micro.guard_not
            expansions.append(expansion)
        else:
            expansions.append([micro])
    code.replace(expansions)
    return local_bytes


def _pieces(storage: ParameterStorage, code: Code) -> dict[int, int] | None:
    """A register for every offset, or None when accesses overlap in part or stores differ in size from the whole."""
    sizes: dict[int, int] = {}
    for access in storage.accesses:
        for element in range(access.vec):
            offset = access.offset + element * access.bytes
            sizes[offset] = max(sizes.get(offset, 0), access.bytes)
    end = 0
    for offset, size in sorted(sizes.items()):
        if offset < end:
            return None
        end = offset + size
    for access in storage.accesses:
        for element in range(access.vec):
            if access.op == Memory.STORE and access.bytes != sizes[access.offset + element * access.bytes]:
                return None
    return {offset: code.register(64 if size == 8 else 32) for offset, size in sizes.items()}


_UNSIGNED = {1: Fetch.U8, 2: Fetch.U16, 4: Fetch.WORD, 8: Fetch.PAIR}
_SIGNED = _UNSIGNED | {1: Fetch.S8, 2: Fetch.S16}
_UNSIGNED_LONG = {1: Fetch.U8_LONG, 2: Fetch.U16_LONG, 4: Fetch.U32, 8: Fetch.PAIR}
_SIGNED_LONG = {1: Fetch.S8_LONG, 2: Fetch.S16_LONG, 4: Fetch.S32, 8: Fetch.PAIR}


def _access_registers(access: ParameterAccess, registers: dict[int, int]) -> list[Micro]:
    moves = []
    for element in range(access.vec):
        register = registers[access.offset + element * access.bytes]
        if access.op == Memory.STORE:
            source = access.values[element]
            if source.register != NONE:
                source = source._replace(fetch=_UNSIGNED[access.bytes])
            moves.append(move(64 if access.bytes == 8 else 32, register, source))
        elif access.results[element] != NONE:
            bits = access.widths[element]
            signed = bool(access.flags & Flag.SIGNED)
            fetches = (_SIGNED_LONG if signed else _UNSIGNED_LONG) if bits == 64 else (_SIGNED if signed else _UNSIGNED)
            moves.append(move(bits, access.results[element], Source(fetches[access.bytes], register)))
    return moves


def _access_memory(access: ParameterAccess, code: Code) -> list[Micro]:
    operands, moves = {}, []
    for element, (value, bits) in enumerate(zip(access.values, access.widths, strict=False)):
        if value.register == NONE:
            operands[element] = code.register(bits)
            moves.append(move(bits, operands[element], value))
        else:
            operands[element] = value.register
    return [
        *moves,
        Micro(
            access.group, access.op, access.category, space=access.space, bytes=access.bytes, vec=access.vec,
            data=access.data, flags=access.flags, offset=access.offset, storage=access.storage, results=access.results,
            operands=operands,
        ),
    ]  # fmt: skip


# ---------------------------------------------------------------------------------------------------------------- calls


def lower_call(lowering: Lowering, call: ast.Call) -> None:
    """Expand one call in the current frame."""
    code = lowering.code
    after = code.label()
    guard, guard_not = lowering.guard(call)
    entry = code.label()
    if guard == NONE:
        lowering.emit(Micro(Group.CONTROL, Control.BRANCH, Category.CONTROL, targets=(entry,), flags=Flag.UNIFORM))
    else:
        skip = Micro(Group.CONTROL, Control.BRANCH, Category.CONTROL, targets=(after,))
        skip.guard, skip.guard_not = guard, not guard_not
        lowering.emit(skip)
    code.place(entry)
    if isinstance(call.target, ast.Register):
        _indirect(lowering, call, call.target, after)
    else:
        function = lowering.module.functions.get(call.target)
        if function is None:
            raise lowering.bad(f"there is no function `{call.target}`")
        if function.defined:
            _inline(lowering, call, function, after)
        else:
            _system_call(lowering, call, function)
    code.place(after)


def _system_call(lowering: Lowering, call: ast.Call, function: ast.Function) -> None:
    if function.name == "vprintf":
        for operand in call.results:
            _store_argument(lowering, operand, Source(Fetch.WORD), 4)
    elif function.name == "__assertfail":
        lowering.emit(Micro(Group.CONTROL, Control.TRAP, Category.MISCELLANEOUS, sub=1))
    else:
        raise lowering.bad(f"`{function.name}` has no body; of the system's functions, vprintf and __assertfail work")


def _store_argument(lowering: Lowering, operand: ast.Operand, value: Source, size: int) -> None:
    """Give a result of a system call to the caller."""
    if isinstance(operand, ast.Register):
        lowering.emit(move(32, lowering.register(operand.name)[0], value))
    elif isinstance(operand, ast.Symbol):
        storage = lowering.storage(operand.name)
        if not isinstance(storage, ParameterStorage):
            raise lowering.bad(f"`{operand.name}` is not a .param variable of this function")
        lowering.emit(store_parameter(storage, operand.offset, size, [(value, 32)]))


def _inline(lowering: Lowering, call: ast.Call, function: ast.Function, after: int) -> None:
    if any(function is frame.function for frame in lowering.frames):
        raise lowering.bad(f"`{function.name}` calls itself; recursion is not supported")
    for what, formals, actuals in (
        ("arguments", function.parameters, call.arguments),
        ("results", function.results, call.results),
    ):
        if len(formals) != len(actuals):
            raise lowering.bad(f"`{function.name}` takes {len(formals)} {what}, the call gives {len(actuals)}")
    caller, leave = lowering.frames[-1], lowering.code.label()
    frame = Frame(function, local_base=caller.local_base + caller.local_bytes, leave=leave)
    for formal, actual in zip(function.parameters, call.arguments, strict=True):
        _pass_argument(lowering, frame, formal, actual)
    outputs = [
        _pass_result(lowering, frame, formal, actual)
        for formal, actual in zip(function.results, call.results, strict=True)
    ]
    lowering.body(frame)
    lowering.code.place(leave)
    for output in outputs:
        if output is not None:
            lowering.emit(output)
    if isinstance(call.target, ast.Register):
        lowering.emit(Micro(Group.CONTROL, Control.BRANCH, Category.CONTROL, targets=(after,)))


def _parameter(lowering: Lowering, actual: ast.Operand) -> ParameterStorage | None:
    """The ``.param`` variable of the caller that an argument names."""
    if isinstance(actual, ast.Symbol) and actual.offset == 0:
        storage = lowering.find_storage(actual.name)
        if isinstance(storage, ParameterStorage):
            return storage
    return None


def _pass_argument(lowering: Lowering, frame: Frame, formal: ast.Variable, actual: ast.Operand) -> None:
    passed = _parameter(lowering, actual)
    bits = max(BITS[formal.type], 16)
    if formal.space != "reg" and passed is not None:
        frame.storage[formal.name] = passed
    elif formal.space != "reg":
        value = lowering.source(actual, formal.type)
        storage = lowering.parameter_storage(formal)
        frame.storage[formal.name] = storage
        lowering.emit(store_parameter(storage, 0, BITS[formal.type] // 8, [(value, bits)]))
    elif formal.type == "pred":
        register, negated = lowering.predicate_source(actual)
        frame.registers[formal.name] = lowering.code.register(1)
        lowering.emit(
            Micro(
                Group.PREDICATE, Predicate.MOV, Category.INTEGER, psrc=register, psrc_not=negated,
                pdst=frame.registers[formal.name],
            )
        )  # fmt: skip
    else:
        frame.registers[formal.name] = lowering.code.register(bits)
        target = frame.registers[formal.name]
        if passed is not None:
            lowering.emit(load_parameter(passed, 0, BITS[formal.type] // 8, [(target, bits)], 0))
        else:
            lowering.emit(move(bits, target, lowering.source(actual, formal.type)))


def _pass_result(lowering: Lowering, frame: Frame, formal: ast.Variable, actual: ast.Operand) -> Micro | None:
    """Tie a result to the caller; returns what to do behind the body."""
    passed = _parameter(lowering, actual)
    bits = max(BITS[formal.type], 16)
    if formal.space == "reg" and formal.type == "pred":
        raise lowering.bad("a predicate as a function's result is not supported")
    if formal.space == "reg":
        frame.registers[formal.name] = lowering.code.register(bits)
        value = Source(_UNSIGNED[bits // 8], frame.registers[formal.name])
        if passed is not None:
            return store_parameter(passed, 0, BITS[formal.type] // 8, [(value, bits)])
        target = lowering.result(actual, formal.type)
        return None if target == NONE else move(bits, target, value)
    if passed is not None:
        frame.storage[formal.name] = passed
        return None
    storage = lowering.parameter_storage(formal)
    frame.storage[formal.name] = storage
    target = lowering.result(actual, formal.type)
    return None if target == NONE else load_parameter(storage, 0, BITS[formal.type] // 8, [(target, bits)], 0)


def _indirect(lowering: Lowering, call: ast.Call, target: ast.Register, after: int) -> None:
    code = lowering.code
    address, bits = lowering.register(target.name)
    if bits != 64:
        raise lowering.bad(f"{target.name} has {bits} bits, the address of a function 64")
    prototype = lowering.frames[-1].function.prototypes.get(call.prototype or "")
    shape = call if prototype is None else prototype
    for function, identity in lowering.addresses.items():
        candidate = lowering.module.functions[function]
        recursive = any(candidate is frame.function for frame in lowering.frames)
        if recursive or not candidate.defined or not _matches(candidate, shape):
            continue
        hit, following = code.register(1), code.label()
        lowering.emit(
            Micro(
                Group.PREDICATE, Predicate.SETP_U64, Category.COMPARE, pdst=hit, sub=isa.Compare.EQ,
                sources=(Source(Fetch.PAIR, address), Source(Fetch.PAIR, bits=identity)),
            )
        )  # fmt: skip
        skip = Micro(Group.CONTROL, Control.BRANCH, Category.CONTROL, targets=(following,), guard=hit, guard_not=True)
        lowering.emit(skip)
        _inline(lowering, call, candidate, after)
        code.place(following)
    lowering.emit(Micro(Group.CONTROL, Control.TRAP, Category.MISCELLANEOUS))


def _matches(function: ast.Function, shape: ast.Prototype | ast.Call) -> bool:
    if len(function.results) != len(shape.results):
        return False
    actual = shape.parameters if isinstance(shape, ast.Prototype) else shape.arguments
    if len(function.parameters) != len(actual):
        return False
    if isinstance(shape, ast.Call):
        return True
    pairs = zip((*function.parameters, *function.results), (*shape.parameters, *shape.results), strict=True)
    return all(a.bytes == b.bytes for a, b in pairs)


