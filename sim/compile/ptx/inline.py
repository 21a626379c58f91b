"""Function calls: every call is replaced by the body of the function.

An indirect call compares the address, which is a small number per function, with those of all functions that are used
as data and have the signature of the prototype.
"""

from __future__ import annotations

from collections.abc import Callable

from lockstep.models.execution import isa
from lockstep.models.execution.isa import Category, Control, Fetch, Flag, Group, Predicate, System, Write
from lockstep.sim.compile.ptx import ast
from lockstep.sim.compile.ptx.micro import NONE, Micro, Source, move
from lockstep.sim.compile.ptx.operations import BITS
from lockstep.sim.compile.ptx.parameters import UNSIGNED, ParameterStorage, load_parameter, store_parameter
from lockstep.sim.compile.ptx.scope import BadOperand, Frame, Scope

MAX_DEPTH = 100  # of calls in calls
Body = Callable[[Frame], None]  # lowers the body of a frame's function


def lower_call(scope: Scope, call: ast.Call, body: Body) -> None:
    """Expand one call in the current frame; ``body`` lowers the function's."""
    code = scope.code
    after = code.label()
    guard, guard_not = scope.guard(call)
    entry = code.label()
    if guard == NONE:
        scope.emit(_jump(entry, Flag.UNIFORM))
    else:
        skip = _jump(after)
        skip.guard, skip.guard_not = guard, not guard_not
        scope.emit(skip)
    code.place(entry)
    if isinstance(call.target, ast.Register):
        _indirect(scope, call, call.target, after, body)
    else:
        function = scope.module.functions.get(call.target)
        if function is None:
            raise BadOperand(f"there is no function `{call.target}`")
        if function.defined:
            _inline(scope, call, function, after, body)
        else:
            _system_call(scope, call, function)
    code.place(after)


def _jump(target: int, flags: int = 0) -> Micro:
    """A branch of a call."""
    return Micro(Group.CONTROL, Control.BRANCH, Category.CONTROL, targets=(target,), flags=Flag.CALL | flags)


def _system_call(scope: Scope, call: ast.Call, function: ast.Function) -> None:
    if function.name == "vprintf":
        if len(call.arguments) != 2:
            raise BadOperand(f"`vprintf` takes 2 arguments, the call gives {len(call.arguments)}")
        sources = tuple(_pointer(scope, operand) for operand in call.arguments)
        result = scope.code.register(32)
        called = Micro(Group.SYSTEM, System.PRINTF, Category.MISCELLANEOUS, sources, dst=result, write=Write.WORD)
        scope.emit(called)
        for operand in call.results:
            _store_argument(scope, operand, Source(Fetch.WORD, result), 4)
    elif function.name == "__assertfail":
        scope.emit(Micro(Group.CONTROL, Control.TRAP, Category.MISCELLANEOUS, sub=1))
    elif function.name.startswith(("cudaGetParameterBuffer", "cudaLaunchDevice")):
        raise BadOperand("launches of kernels by kernels are not supported")
    elif function.name.startswith("cuda"):
        raise BadOperand(f"`{function.name}`: CUDA's runtime cannot be called on the device here")
    else:
        raise BadOperand(f"`{function.name}` has no body; of the system's functions, vprintf and __assertfail work")


def _pointer(scope: Scope, operand: ast.Operand) -> Source:
    """An argument of a system call that is a pointer."""
    storage = _parameter(scope, operand)
    if storage is None:
        return scope.source(operand, "u64")
    target = scope.code.register(64)
    scope.emit(load_parameter(storage, 0, 8, [(target, 64)], 0))
    return Source(Fetch.PAIR, target)


def _store_argument(scope: Scope, operand: ast.Operand, value: Source, size: int) -> None:
    """Give a result of a system call to the caller."""
    if isinstance(operand, ast.Register):
        scope.emit(move(32, scope.register(operand.name)[0], value))
    elif isinstance(operand, ast.Symbol):
        storage = scope.storage(operand.name)
        if not isinstance(storage, ParameterStorage):
            raise BadOperand(f"`{operand.name}` is not a .param variable of this function")
        scope.emit(store_parameter(storage, operand.offset, size, [(value, 32)]))


def _inline(scope: Scope, call: ast.Call, function: ast.Function, after: int, body: Body) -> None:
    if any(function is frame.function for frame in scope.frames):
        raise BadOperand(f"`{function.name}` calls itself; recursion is not supported")
    if len(scope.frames) > MAX_DEPTH:
        raise BadOperand(f"calls are nested more than {MAX_DEPTH} deep")
    for what, formals, actuals in (
        ("arguments", function.parameters, call.arguments),
        ("results", function.results, call.results),
    ):
        if len(formals) != len(actuals):
            raise BadOperand(f"`{function.name}` takes {len(formals)} {what}, the call gives {len(actuals)}")
    caller, leave = scope.frames[-1], scope.code.label()
    frame = Frame(function, local_base=caller.local_base + caller.local_bytes, leave=leave)
    for formal, actual in zip(function.parameters, call.arguments, strict=True):
        _pass_argument(scope, frame, formal, actual)
    outputs = [
        _pass_result(scope, frame, formal, actual)
        for formal, actual in zip(function.results, call.results, strict=True)
    ]
    body(frame)
    scope.code.place(leave)
    for output in outputs:
        if output is not None:
            scope.emit(output)
    if isinstance(call.target, ast.Register):
        scope.emit(_jump(after))


def _parameter(scope: Scope, actual: ast.Operand) -> ParameterStorage | None:
    """The ``.param`` variable of the caller that an argument names."""
    if isinstance(actual, ast.Symbol) and actual.offset == 0:
        storage = scope.find_storage(actual.name)
        if isinstance(storage, ParameterStorage):
            return storage
    return None


def _pass_argument(scope: Scope, frame: Frame, formal: ast.Variable, actual: ast.Operand) -> None:
    passed = _parameter(scope, actual)
    bits = max(BITS[formal.type], 16)
    if formal.space != "reg" and passed is not None:
        frame.storage[formal.name] = passed
    elif formal.space != "reg":
        value = scope.source(actual, formal.type)
        storage = scope.parameter_storage(formal)
        frame.storage[formal.name] = storage
        scope.emit(store_parameter(storage, 0, BITS[formal.type] // 8, [(value, bits)]))
    elif formal.type == "pred":
        register, negated = scope.predicate_source(actual)
        frame.registers[formal.name] = scope.code.register(1)
        scope.emit(
            Micro(
                Group.PREDICATE, Predicate.MOV, Category.INTEGER, psrc=register, psrc_not=negated,
                pdst=frame.registers[formal.name],
            )
        )  # fmt: skip
    else:
        frame.registers[formal.name] = scope.code.register(bits)
        target = frame.registers[formal.name]
        if passed is not None:
            scope.emit(load_parameter(passed, 0, BITS[formal.type] // 8, [(target, bits)], 0))
        else:
            scope.emit(move(bits, target, scope.source(actual, formal.type)))


def _pass_result(scope: Scope, frame: Frame, formal: ast.Variable, actual: ast.Operand) -> Micro | None:
    """Tie a result to the caller; returns what to do behind the body."""
    passed = _parameter(scope, actual)
    bits = max(BITS[formal.type], 16)
    if formal.space == "reg" and formal.type == "pred":
        raise BadOperand("a predicate as a function's result is not supported")
    if formal.space == "reg":
        frame.registers[formal.name] = scope.code.register(bits)
        value = Source(UNSIGNED[bits // 8], frame.registers[formal.name])
        if passed is not None:
            return store_parameter(passed, 0, BITS[formal.type] // 8, [(value, bits)])
        target = scope.result(actual, formal.type)
        return None if target == NONE else move(bits, target, value)
    if passed is not None:
        frame.storage[formal.name] = passed
        return None
    storage = scope.parameter_storage(formal)
    frame.storage[formal.name] = storage
    target = scope.result(actual, formal.type)
    return None if target == NONE else load_parameter(storage, 0, BITS[formal.type] // 8, [(target, bits)], 0)


def _indirect(scope: Scope, call: ast.Call, target: ast.Register, after: int, body: Body) -> None:
    code = scope.code
    address, bits = scope.register(target.name)
    if bits != 64:
        raise BadOperand(f"{target.name} has {bits} bits, the address of a function 64")
    prototype = scope.frames[-1].function.prototypes.get(call.prototype or "")
    shape = call if prototype is None else prototype
    for function, identity in scope.addresses.items():
        candidate = scope.module.functions[function]
        recursive = any(candidate is frame.function for frame in scope.frames)
        if recursive or not candidate.defined or not _matches(candidate, shape):
            continue
        hit, following = code.register(1), code.label()
        scope.emit(
            Micro(
                Group.PREDICATE, Predicate.SETP_U64, Category.COMPARE, pdst=hit, sub=isa.Compare.EQ,
                sources=(Source(Fetch.PAIR, address), Source(Fetch.PAIR, bits=identity)),
            )
        )  # fmt: skip
        skip = _jump(following)
        skip.guard, skip.guard_not = hit, True
        scope.emit(skip)
        _inline(scope, call, candidate, after, body)
        code.place(following)
    scope.emit(Micro(Group.CONTROL, Control.TRAP, Category.MISCELLANEOUS))


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
