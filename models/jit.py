"""The two ways in which the golden model's source runs: compiled by Numba, or interpreted.

Everything in ``models/`` is written against the handful of names below, so that one source has one meaning:

* compiled (the default): ``jit`` and ``entry`` are Numba decorators, records are NumPy structured scalars;
* interpreted (``NUMBA_DISABLE_JIT=1``): plain Python over the same bytes;
* compiled with bounds checks (``NUMBA_BOUNDSCHECK=1``).

A *slot* is a compiled function called through its address. It keeps compilation modular (Numba would otherwise
optimise a callee again inside each of its callers) and is how a Verilated block takes the place of a model.

Types in compiled code: Numba widens ``uint32 + uint32`` to ``uint64`` and makes ``uint64 + int64`` a float. Records
therefore hold signed integers except where all bits matter; wrap with ``i64``, ``u32``, ``u64`` at every boundary.
"""

# mypy: disable-error-code="misc, assignment, call-arg, return-value"
# A name has two types, compiled and interpreted; the compiler itself passes the first argument of an intrinsic.

from __future__ import annotations

import ctypes
import functools
import math
import re
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

from lockstep.models import cache

cache.install()

from numba import _dynfunc, carray, cfunc, njit  # noqa: E402  (the cache folder must be set first)
from numba.core import cgutils, types  # noqa: E402
from numba.core.codegen import JITCodeLibrary  # noqa: E402
from numba.core.compiler import Compiler  # noqa: E402
from numba.core.compiler_machinery import register_pass  # noqa: E402
from numba.core.typed_passes import NativeLowering  # noqa: E402
from numba.cpython.unsafe.numbers import leading_zeros, trailing_zeros  # noqa: E402
from numba.extending import intrinsic, register_jitable  # noqa: E402
from numba.np.numpy_support import as_dtype, from_dtype  # noqa: E402

COMPILED = not cache.is_set("NUMBA_DISABLE_JIT")
_BOUNDS = cache.is_set("NUMBA_BOUNDSCHECK")
_OPTIONS: dict[str, Any] = dict(cache=True, error_model="numpy", boundscheck=_BOUNDS)
_INTERNAL = _OPTIONS | dict(no_cfunc_wrapper=True)

Field = tuple[str, Any] | tuple[str, Any, tuple[int, ...]]


def record(fields: Sequence[Field]) -> np.dtype:
    """An aligned record type. Every padding byte becomes a named field, so that equal records have equal bytes."""
    aligned = np.dtype(list(fields), align=True)
    padded: list[Field] = []
    end = 0
    for name in aligned.names or ():
        kind, offset = aligned.fields[name][:2]  # type: ignore[index]
        if offset > end:
            padded.append((f"pad{end}", "u1", (offset - end,)))
        base, shape = kind.subdtype if kind.subdtype else (kind, ())
        padded.append((name, base, shape) if shape else (name, base))
        end = offset + kind.itemsize
    if aligned.itemsize > end:
        padded.append((f"pad{end}", "u1", (aligned.itemsize - end,)))
    return np.dtype(padded, align=True)


def as_bytes(records: np.ndarray) -> np.ndarray:
    """The bytes of records, along a last axis. NumPy copies them at once, but goes through records field by field."""
    return records[..., None].view(np.uint8)


def zero(records: np.ndarray, *names: str) -> None:
    """Set these fields of records to zero."""
    for name in names:
        as_bytes(records[name])[...] = 0


# ------------------------------------------------------------------------------------------------------ copied records


class Move(NamedTuple):
    """One step of a copy between records: ``count`` values from offset ``at`` to offset ``to``, and their types."""

    to: int
    at: int
    count: int
    type: np.dtype
    source: np.dtype


_BYTE = np.dtype("u1")


def _moves(target: np.dtype, source: np.dtype, to: int, at: int) -> Iterator[Move]:
    """Every value of the same name; as bytes, where nothing is converted."""
    kinds = target.base.kind + source.base.kind
    if target == source:
        yield Move(to, at, target.itemsize, _BYTE, _BYTE)
    elif target.shape != source.shape or kinds not in ("VV", "ii", "iu", "ui", "uu"):
        raise TypeError(f"{source} cannot be assigned to {target}")
    elif kinds != "VV":
        if target.itemsize == source.itemsize:
            yield Move(to, at, target.itemsize, _BYTE, _BYTE)
        else:
            yield Move(to, at, math.prod(target.shape), target.base, source.base)
    elif target.shape:
        for k in range(math.prod(target.shape)):
            yield from _moves(target.base, source.base, to + k * target.base.itemsize, at + k * source.base.itemsize)
    else:
        for name in target.names or ():
            if name in (source.names or ()) and not re.fullmatch(r"pad\d+", name):
                into, origin = target.fields[name], source.fields[name]  # type: ignore[index]
                yield from _moves(into[0], origin[0], to + into[1], at + origin[1])


@functools.cache
def moves(target: np.dtype, source: np.dtype) -> tuple[Move, ...]:
    """How :func:`assign` copies a record of one type to one of another; adjacent bytes are one move.

    Raises
    ------
    TypeError
        when the types have no field in common, or one of which the value cannot be converted.
    """
    found: list[Move] = []
    for move in _moves(target, source, 0, 0):
        last = found[-1] if found else move
        end = (last.to + last.count, last.at + last.count, _BYTE, _BYTE)
        if end == (move.to, move.at, move.type, move.source) and last.type == last.source == _BYTE:
            found[-1] = last._replace(count=last.count + move.count)
        else:
            found.append(move)
    if not found:
        raise TypeError(f"{source} and {target} have no field in common")
    return tuple(found)


# ------------------------------------------------------------------------------------------------- interpreted records

# Integers in records and memories are read as Python's. What is stored wraps to the width of its field.
_INTEGERS: dict[np.dtype, Any] = {
    np.dtype(f"{sign}{size}"): getattr(ctypes, f"c_{'u' * (sign == 'u')}int{8 * size}")
    for sign in "iu"
    for size in (1, 2, 4, 8)
}


class Record(ctypes.Structure):
    """One record in memory. What it contains, arrays and records, is looked up once and kept as an attribute."""

    _kind: np.dtype
    _nested: dict[str, tuple[np.dtype, int]]
    _array: np.ndarray

    def __getattr__(self, name: str) -> Any:
        try:
            kind, offset = self._nested[name]
        except KeyError:
            raise AttributeError(name) from None
        found = _at(kind, ctypes.addressof(self) + offset)
        setattr(self, name, found)
        return found


class _Table:
    """A two-dimensional array in a record."""

    def __init__(self, rows: list[Any]) -> None:
        self.rows = rows

    def __getitem__(self, index: tuple[int, int]) -> int:
        return self.rows[index[0]][index[1]]

    def __setitem__(self, index: tuple[int, int], value: int) -> None:
        self.rows[index[0]][index[1]] = value


@functools.cache
def _class(kind: np.dtype) -> Any:
    """The record type with the layout of ``kind``. Since all padding has names, ctypes adds none."""
    fields: list[tuple[str, Any]] = []
    nested = {}
    for name in kind.names or ():
        field, offset = kind.fields[name][:2]  # type: ignore[index]
        if field in _INTEGERS:
            fields.append((name, _INTEGERS[field]))
        else:
            fields.append((f"_{name}", ctypes.c_uint8 * field.itemsize))
            nested[name] = field, offset
    return type("Record", (Record,), {"_fields_": fields, "_nested": nested, "_kind": kind})


def _at(kind: np.dtype, where: int) -> Any:
    """What lies at an address: a record, an array of integers, or a list of records."""
    if kind.subdtype is None:
        return _class(kind).from_address(where)
    base, shape = kind.subdtype
    if len(shape) > 1:
        row = np.dtype((base, shape[1:]))
        return _Table([_at(row, where + k * row.itemsize) for k in range(shape[0])])
    if base.names:
        end = where + shape[0] * base.itemsize
        return [*map(_class(base).from_address, range(where, end, base.itemsize))]
    return (_INTEGERS[base] * shape[0]).from_address(where)


def view(array: np.ndarray) -> Any:
    """The record (or list of records) in a structured array, as the interpreted functions take it.

    The array must outlive what is taken out of the record.
    """
    if array.shape:
        return [view(array[i, ...]) for i in range(len(array))]
    result = _at(array.dtype, array.ctypes.data)
    result._array = array
    return result


# ------------------------------------------------------------------------------------------------------- the decorators


class _Part(JITCodeLibrary):
    """Code of which machine code is made in its callers only; Numba would make it here, too."""

    def _finalize_final_module(self) -> None:
        self._finalized = True


class _PartOfOne(_Part):
    """Code that is optimised in its one caller only."""

    def _optimize_final_module(self) -> None: ...


@register_pass(mutates_CFG=True, analysis_only=False)
class _PartLowering(NativeLowering):
    _name = "lowering_of_a_part"

    def run_pass(self, state: Any) -> bool:
        state.flags.no_compile = state.flags.no_cpython_wrapper = state.flags.no_cfunc_wrapper = True
        super().run_pass(state)
        name = state.func_id.func_qualname
        entry = _dynfunc.make_function(state.cr.fndesc.lookup_module(), name, "", 0, state.cr.env, (state.library,))
        state.targetctx.insert_user_function(entry, state.cr.fndesc, [state.library])
        state.cr = state.cr._replace(cfunc=entry)  # callers find the code by it; Python never calls it
        return True


class _IntoCallers(Compiler):
    """Numba's compiler, for functions that are always inlined."""

    library: type[_Part] = _Part

    def define_pipelines(self) -> Any:
        self.state.library = self.library(self.state.targetctx.codegen(), self.state.func_id.func_qualname)
        pipelines = super().define_pipelines()
        for pipeline in pipelines:
            pipeline.passes = [(_PartLowering if p is NativeLowering else p, name) for p, name in pipeline.passes]
            pipeline.finalize()
        return pipelines


class _IntoOneCaller(_IntoCallers):
    library = _PartOfOne


if COMPILED:

    def jit(function: Callable) -> Any:
        """Compile a function that other compiled functions call."""
        return njit(**_INTERNAL)(function)

    def inline(function: Callable) -> Any:
        """Compile into every caller: for what is short, or called at one place that runs often."""
        return register_jitable(forceinline=True, pipeline_class=_IntoCallers)(function)

    def inline_once(function: Callable) -> Any:
        """The same for what is long and called at one place: it compiles in less time."""
        return register_jitable(forceinline=True, pipeline_class=_IntoOneCaller)(function)

    def entry(function: Callable) -> Any:
        """Compile a function that Python calls; other threads go on meanwhile."""
        return njit(**_INTERNAL, nogil=True)(function)

    def slot(function: Callable) -> Any:
        """Compile ``f(int64, int64) -> int64`` for calls through its address (:func:`address`, :func:`call`)."""
        return cfunc("int64(int64, int64)", **_OPTIONS)(function)

    def slots(state: np.dtype, ports: np.dtype, **functions: Any) -> dict[str, Any]:
        """Compile a block model's functions for calls through their addresses, on records: by name.

        ``skip`` takes the state and a number of cycles, the others take the state and the ports; all return an integer.
        """
        first, second = from_dtype(state), from_dtype(ports)
        return {
            name: cfunc(types.int64(first, types.int64 if name == "skip" else second), **_OPTIONS)(function.py_func)
            for name, function in functions.items()
        }

    def address(function: Any) -> int:
        """The address of a slot."""
        return function.address

    def called(function: Any) -> Callable[[int, int], int]:
        """A slot as Python calls it, with addresses and integers."""
        return ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.c_int64, ctypes.c_int64)(function.address)

    def hosted(function: Callable[[int, int], int]) -> Any:
        """A slot that Python plays. It is to be kept as long as it may be called, and must not raise."""
        found = ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.c_int64, ctypes.c_int64)(function)
        found.address = ctypes.cast(found, ctypes.c_void_p).value  # type: ignore[attr-defined]
        return found

    def argument(array: np.ndarray) -> Any:
        """A record or an array of records as an entry function takes it."""
        return array if array.shape else array[()]

    i64, u64, u32, i32, f32, f64 = np.int64, np.uint64, np.uint32, np.int32, np.float32, np.float64

    @register_jitable
    def ctz(word: int) -> int:
        """Index of the lowest set bit; ``word`` is not zero."""
        return np.int64(trailing_zeros(np.uint64(word)))

    @register_jitable
    def clz64(word: int) -> int:
        """Number of leading zeros of a 64-bit word; ``word`` is not zero."""
        return np.int64(leading_zeros(np.uint64(word)))

    @intrinsic
    def popcount(_context: Any, word: Any) -> Any:
        """Number of set bits of a 64-bit word."""

        def codegen(_ctx: Any, builder: Any, _sig: Any, args: Any) -> Any:
            return builder.ctpop(args[0])

        return types.int64(types.int64), codegen

    @intrinsic
    def call(_context: Any, _function: Any, _a: Any, _b: Any) -> Any:
        """Call the slot at an address."""

        def codegen(_ctx: Any, builder: Any, _sig: Any, args: Any) -> Any:
            word = args[1].type
            kind = _ir.FunctionType(word, [word, word])
            return builder.call(builder.inttoptr(args[0], kind.as_pointer()), args[1:])

        return types.int64(types.int64, types.int64, types.int64), codegen

    def symbol(name: str, where: int) -> Any:
        """A function that returns an address of this process, which code that has been cached finds by a name."""
        _llvm.add_symbol(name, where)

        @intrinsic
        def place(_context: Any) -> Any:
            def codegen(_ctx: Any, builder: Any, _sig: Any, _args: Any) -> Any:
                word = _ir.IntType(64)
                found = builder.module.globals.get(name) or _ir.GlobalVariable(builder.module, word, name)
                return builder.ptrtoint(found, word)

            return types.int64(), codegen

        return place

    @intrinsic
    def put(_context: Any, _where: Any, _value: Any) -> Any:
        """Store a word at an address, at this place of the code, and return what was there."""

        def codegen(_ctx: Any, builder: Any, _sig: Any, args: Any) -> Any:
            place = builder.inttoptr(args[0], _ir.IntType(64).as_pointer())
            before = builder.load_atomic(place, "monotonic", 8)
            builder.store_atomic(args[1], place, "monotonic", 8)
            return before

        return types.int64(types.int64, types.int64), codegen

    @intrinsic
    def _pointer(_context: Any, _address: Any) -> Any:
        def codegen(_ctx: Any, builder: Any, _sig: Any, args: Any) -> Any:
            return builder.inttoptr(args[0], _ir.IntType(8).as_pointer())

        return types.voidptr(types.int64), codegen

    @intrinsic
    def addressof(_context: Any, item: Any) -> Any:
        """The address of a record."""

        def codegen(_ctx: Any, builder: Any, _sig: Any, args: Any) -> Any:
            return builder.ptrtoint(args[0], _ir.IntType(64))

        return types.int64(item), codegen

    def _integer(kind: np.dtype, count: int) -> Any:
        word = _ir.IntType(8 * kind.itemsize)
        return word if count == 1 else _ir.VectorType(word, count)

    def _convert(builder: Any, move: Move, to: Any, at: Any) -> None:
        """Store integers in the width of their field."""
        wanted, found = _integer(move.type, move.count), _integer(move.source, move.count)
        value = builder.load(builder.bitcast(at, found.as_pointer()), align=move.source.itemsize)
        if move.type.itemsize < move.source.itemsize:
            value = builder.trunc(value, wanted)
        else:
            value = builder.sext(value, wanted) if move.source.kind == "i" else builder.zext(value, wanted)
        builder.store(value, builder.bitcast(to, wanted.as_pointer()), align=move.type.itemsize)

    @intrinsic
    def assign(_context: Any, target: Any, source: Any) -> Any:
        """Copy the fields that two records have in common, nested records and arrays too, as the target has them.

        Fields of only one of the two are left alone. See :func:`moves` for what is refused.
        """
        steps = moves(as_dtype(target), as_dtype(source))

        def codegen(ctx: Any, builder: Any, _sig: Any, args: Any) -> Any:
            for move in steps:
                to = cgutils.pointer_add(builder, args[0], move.to, cgutils.voidptr_t)
                at = cgutils.pointer_add(builder, args[1], move.at, cgutils.voidptr_t)
                if move.type == move.source:
                    cgutils.raw_memcpy(builder, to, at, ctx.get_constant(types.intp, move.count), 1)
                else:
                    _convert(builder, move, to, at)
            return ctx.get_dummy_value()

        return types.void(target, source), codegen

    @intrinsic
    def clear(_context: Any, target: Any) -> Any:
        """Set all of a record to zero."""
        size = as_dtype(target).itemsize

        def codegen(ctx: Any, builder: Any, _sig: Any, args: Any) -> Any:
            cgutils.memset(builder, args[0], ctx.get_constant(types.intp, size), 0)
            return ctx.get_dummy_value()

        return types.void(target), codegen

    @intrinsic
    def load_acquire(_context: Any, _where: Any) -> Any:
        """Read a word that another thread writes; what comes later in the program is read later."""

        def codegen(_ctx: Any, builder: Any, _sig: Any, args: Any) -> Any:
            return builder.load_atomic(builder.inttoptr(args[0], args[0].type.as_pointer()), "acquire", 8)

        return types.int64(types.int64), codegen

    @intrinsic
    def store_release(_context: Any, _where: Any, _value: Any) -> Any:
        """Write a word that another thread reads; what comes earlier in the program is written before it."""

        def codegen(ctx: Any, builder: Any, _sig: Any, args: Any) -> Any:
            builder.store_atomic(args[1], builder.inttoptr(args[0], args[0].type.as_pointer()), "release", 8)
            return ctx.get_dummy_value()

        return types.void(types.int64, types.int64), codegen

    @intrinsic
    def compare_exchange(_context: Any, _where: Any, _expected: Any, _value: Any) -> Any:
        """Write a word that several threads write, if it is what is expected; returns whether it was."""

        def codegen(_ctx: Any, builder: Any, _sig: Any, args: Any) -> Any:
            where = builder.inttoptr(args[0], args[0].type.as_pointer())
            return builder.extract_value(builder.cmpxchg(where, args[1], args[2], "acq_rel", "acquire"), 1)

        return types.boolean(types.int64, types.int64, types.int64), codegen

    @intrinsic
    def lanes_equal(_context: Any, _where: Any, _shift: Any, _stride: Any, _value: Any) -> Any:
        """The mask of the lanes l with ``(word[l] >> shift) - stride * l == value`` (32 bits), for 32 words in memory.

        A vector comparison to a mask, which LLVM does not find in a loop over the lanes (5 ns against 14).
        """

        def codegen(_ctx: Any, builder: Any, _sig: Any, args: Any) -> Any:
            word = _ir.IntType(32)
            vector = _ir.VectorType(word, 32)
            empty = _ir.Constant(vector, _ir.Undefined)

            def splat(value: Any) -> Any:
                first = builder.insert_element(empty, builder.trunc(value, word), _ir.Constant(word, 0))
                return builder.shuffle_vector(first, empty, _ir.Constant(vector, [0] * 32))

            words = builder.load(builder.inttoptr(args[0], vector.as_pointer()), align=4)
            slope = builder.mul(splat(args[2]), _ir.Constant(vector, list(range(32))))
            found = builder.sub(builder.lshr(words, splat(args[1])), slope)
            equal = builder.icmp_unsigned("==", found, splat(args[3]))
            return builder.zext(builder.bitcast(equal, word), _ir.IntType(64))

        return types.int64(*[types.int64] * 4), codegen

    def _accessor(kind: Any) -> Any:
        @register_jitable
        def words(where: int, count: int) -> Any:
            return carray(_pointer(where), (count,), kind)

        return words

    words_u8, words_i8 = _accessor(np.uint8), _accessor(np.int8)
    words_u16, words_i16 = _accessor(np.uint16), _accessor(np.int16)
    words_u32, words_i32 = _accessor(np.uint32), _accessor(np.int32)
    words_u64, words_i64 = _accessor(np.uint64), _accessor(np.int64)
    words_f32, words_f64 = _accessor(np.float32), _accessor(np.float64)

    def pointer_to(kind: np.dtype) -> Any:
        """A function from an address to the record of type ``kind`` there."""
        record_type = from_dtype(kind)

        @intrinsic
        def at(context: Any, _address: Any) -> Any:
            def codegen(ctx: Any, builder: Any, _sig: Any, args: Any) -> Any:
                return builder.inttoptr(args[0], ctx.get_value_type(record_type))

            return record_type(types.int64), codegen

        return at

    import llvmlite.binding as _llvm
    import llvmlite.ir as _ir

    def _bits(source: Any, target: Any) -> Any:
        @intrinsic
        def cast(_context: Any, _value: Any) -> Any:
            def codegen(ctx: Any, builder: Any, _sig: Any, args: Any) -> Any:
                return builder.bitcast(args[0], ctx.get_value_type(target))

            return target(source), codegen

        return cast

    f32_bits, bits_f32 = _bits(types.float32, types.uint32), _bits(types.uint32, types.float32)
    f64_bits, bits_f64 = _bits(types.float64, types.uint64), _bits(types.uint64, types.float64)

    def _fma(kind: Any) -> Any:
        @intrinsic
        def fused(_context: Any, _a: Any, _b: Any, _c: Any) -> Any:
            def codegen(_ctx: Any, builder: Any, _sig: Any, args: Any) -> Any:
                return builder.fma(*args)

            return kind(kind, kind, kind), codegen

        return fused

    fma32, fma64 = _fma(types.float32), _fma(types.float64)

else:
    np.seterr(all="ignore")

    def jit(function: Callable) -> Any:
        return function

    inline = inline_once = entry = slot = jit

    def slots(state: np.dtype, ports: np.dtype, **functions: Any) -> dict[str, Any]:
        at_state, at_ports = pointer_to(state), pointer_to(ports)

        def called(name: str, function: Callable) -> Callable:
            if name == "skip":
                return lambda handle, steps: function(at_state(handle), steps)
            return lambda handle, io: function(at_state(handle), at_ports(io))

        return {name: called(name, function) for name, function in functions.items()}

    def called(function: Any) -> Callable[[int, int], int]:
        return function

    hosted = called

    _slots: dict[int, Callable] = {}

    def address(function: Any) -> int:
        _slots[id(function)] = function
        return id(function)

    def argument(array: np.ndarray) -> Any:
        return view(array) if array.dtype.names else array

    def i64(value: Any) -> Any:
        if value.__class__ is int and -0x8000_0000_0000_0000 <= value <= 0x7FFF_FFFF_FFFF_FFFF:
            return value
        return ((int(value) & 0xFFFF_FFFF_FFFF_FFFF) ^ (1 << 63)) - (1 << 63)

    def u64(value: Any) -> Any:
        return np.uint64(int(value) & 0xFFFF_FFFF_FFFF_FFFF)

    def u32(value: Any) -> Any:
        return int(value) & 0xFFFF_FFFF

    def i32(value: Any) -> Any:
        return ((int(value) & 0xFFFF_FFFF) ^ (1 << 31)) - (1 << 31)

    f32, f64 = np.float32, np.float64

    def ctz(word: int) -> int:
        word = int(word)
        return (word & -word).bit_length() - 1

    def clz64(word: int) -> int:
        return 64 - (int(word) & 0xFFFF_FFFF_FFFF_FFFF).bit_length()

    def popcount(word: int) -> int:
        return (int(word) & 0xFFFF_FFFF_FFFF_FFFF).bit_count()

    _FOREIGN = ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.c_int64, ctypes.c_int64)

    def call(function: int, a: int, b: int) -> int:
        if function not in _slots:
            _slots[function] = _FOREIGN(function)
        return _slots[function](a, b)

    addressof = ctypes.addressof

    def assign(target: Record, source: Record) -> None:
        for move in moves(target._kind, source._kind):
            to, at = ctypes.addressof(target) + move.to, ctypes.addressof(source) + move.at
            if move.type == move.source:
                ctypes.memmove(to, at, move.count)
            else:
                values = (_INTEGERS[move.source] * move.count).from_address(at)
                (_INTEGERS[move.type] * move.count).from_address(to)[:] = values[:]

    def clear(target: Record) -> None:
        ctypes.memset(addressof(target), 0, ctypes.sizeof(target))

    def load_acquire(where: int) -> int:
        return words_i64(where, 1)[0]

    def store_release(where: int, value: int) -> None:
        words_i64(where, 1)[0] = value

    def compare_exchange(where: int, expected: int, value: int) -> bool:
        word = words_i64(where, 1)
        found = word[0] == expected
        if found:
            word[0] = value
        return found

    _KEPT = 100_000  # views of memory, of every type

    def _floats(kind: Any) -> Any:
        def array(where: int, count: int) -> np.ndarray:
            return np.ctypeslib.as_array((ctypes.c_uint8 * (count * kind.itemsize)).from_address(where)).view(kind)

        return array

    def _integers(kind: Any) -> Any:
        return lambda where, count: (_INTEGERS[kind] * count).from_address(where)

    def _accessor(kind: Any) -> Any:
        kind = np.dtype(kind)
        make = _floats(kind) if kind.kind == "f" else _integers(kind)
        return functools.lru_cache(_KEPT)(make)

    words_u8, words_i8 = _accessor(np.uint8), _accessor(np.int8)
    words_u16, words_i16 = _accessor(np.uint16), _accessor(np.int16)
    words_u32, words_i32 = _accessor(np.uint32), _accessor(np.int32)
    words_u64, words_i64 = _accessor(np.uint64), _accessor(np.int64)
    words_f32, words_f64 = _accessor(np.float32), _accessor(np.float64)

    def lanes_equal(where: int, shift: int, stride: int, value: int) -> int:
        words, low = words_u32(where, 32)[:], 0xFFFF_FFFF
        return sum([1 << l for l, word in enumerate(words) if not ((word >> shift) - stride * l - value) & low])

    def pointer_to(kind: np.dtype) -> Any:
        return functools.lru_cache(_KEPT)(_class(kind).from_address)

    def f32_bits(value: Any) -> Any:
        return np.float32(value).view(np.uint32)

    def bits_f32(value: Any) -> Any:
        return np.uint32(value).view(np.float32)

    def f64_bits(value: Any) -> Any:
        return np.float64(value).view(np.uint64)

    def bits_f64(value: Any) -> Any:
        return np.uint64(value).view(np.float64)

    _libm = ctypes.CDLL("libm.so.6")
    _libm.fma.restype, _libm.fma.argtypes = ctypes.c_double, [ctypes.c_double] * 3
    _libm.fmaf.restype, _libm.fmaf.argtypes = ctypes.c_float, [ctypes.c_float] * 3

    def fma32(a: Any, b: Any, c: Any) -> Any:
        return np.float32(_libm.fmaf(a, b, c))

    def fma64(a: Any, b: Any, c: Any) -> Any:
        return np.float64(_libm.fma(a, b, c))


@inline
def without_lowest(mask: int) -> int:
    """A mask of up to 64 bits, not empty, without its lowest bit. It is signed: without bit 63, too."""
    return i64(mask & (mask - 1))
