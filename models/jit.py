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

from __future__ import annotations

import ctypes
import os
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from lockstep.models import cache

cache.install()

from numba import carray, cfunc, njit  # noqa: E402  (the cache folder must be set first)
from numba.core import types  # noqa: E402
from numba.cpython.unsafe.numbers import leading_zeros, trailing_zeros  # noqa: E402
from numba.extending import intrinsic, register_jitable  # noqa: E402
from numba.np.numpy_support import from_dtype  # noqa: E402

COMPILED = os.environ.get("NUMBA_DISABLE_JIT", "0") in ("", "0")
_BOUNDS = os.environ.get("NUMBA_BOUNDSCHECK", "0") not in ("", "0")
_OPTIONS: dict[str, Any] = dict(cache=True, error_model="numpy", boundscheck=_BOUNDS)

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


# ------------------------------------------------------------------------------------------------- interpreted records


class Record:
    """Attribute access to the fields of one record, over the bytes of a NumPy array."""

    __slots__ = ("_array", "_scalars")
    _array: np.ndarray


def _scalar(index: int, kind: np.dtype) -> property:
    if kind.kind == "f":
        return property(lambda s: s._scalars[index][()], lambda s, v: s._scalars[index].__setitem__((), v))
    mask = (1 << 8 * kind.itemsize) - 1
    sign = 1 << 8 * kind.itemsize - 1 if kind.kind == "i" else 0

    def put(self: Any, value: Any) -> None:
        self._scalars[index][()] = ((int(value) & mask) ^ sign) - sign

    return property(lambda s: int(s._scalars[index][()]), put)


_classes: dict[np.dtype, tuple[type, list[str], list[str]]] = {}


def view(array: np.ndarray) -> Any:
    """The record (or list of records) in a structured array, as the interpreted functions take it."""
    if array.shape:
        return [view(array[i]) if array.ndim > 1 else view(array[i : i + 1].reshape(())) for i in range(len(array))]
    kind = array.dtype
    if kind not in _classes:
        names = [n for n in kind.names or () if not n.startswith("pad")]
        scalars = [n for n in names if kind[n].shape == () and kind[n].names is None]
        others = [n for n in names if n not in scalars]
        members: dict[str, Any] = {n: _scalar(i, kind[n]) for i, n in enumerate(scalars)}
        members["__slots__"] = others
        _classes[kind] = (type("Record", (Record,), members), scalars, others)
    cls, scalars, others = _classes[kind]
    result = cls()
    result._array = array
    result._scalars = [array[n] for n in scalars]
    for name in others:
        field = array[name]
        setattr(result, name, view(field) if field.dtype.names else field)
    return result


# ------------------------------------------------------------------------------------------------------- the decorators

if COMPILED:

    def jit(function: Callable) -> Any:
        """Compile a function that other compiled functions call."""
        return njit(**_OPTIONS)(function)

    def inline(function: Callable) -> Any:
        """Compile into every caller: for one-line helpers."""
        return register_jitable(function)

    entry = jit

    def slot(function: Callable) -> Any:
        """Compile ``f(int64, int64) -> int64`` for calls through its address (:func:`address`, :func:`call`)."""
        return cfunc("int64(int64, int64)", **{k: v for k, v in _OPTIONS.items() if k != "boundscheck"})(function)

    def address(function: Any) -> int:
        """The address of a slot."""
        return function.address

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

    @intrinsic
    def lanes_equal(_context: Any, _where: Any, _shift: Any, _stride: Any, _value: Any) -> Any:
        """The mask of the lanes l with ``(word[l] >> shift) - stride * l == value`` (32 bits), of 32 words at an address.

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

    import llvmlite.ir as _ir  # noqa: E402

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

    inline = entry = slot = jit

    _slots: dict[int, Callable] = {}

    def address(function: Any) -> int:
        _slots[id(function)] = function
        return id(function)

    def argument(array: np.ndarray) -> Any:
        return view(array) if array.dtype.names else array

    def i64(value: Any) -> Any:
        return ((int(value) & 0xFFFF_FFFF_FFFF_FFFF) ^ (1 << 63)) - (1 << 63)

    def u64(value: Any) -> Any:
        return np.uint64(int(value) & 0xFFFF_FFFF_FFFF_FFFF)

    def u32(value: Any) -> Any:
        return np.uint32(int(value) & 0xFFFF_FFFF)

    def i32(value: Any) -> Any:
        return np.int32(((int(value) & 0xFFFF_FFFF) ^ (1 << 31)) - (1 << 31))

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

    def addressof(item: Any) -> int:
        return item._array.ctypes.data

    _mapped: dict[tuple[int, int, Any], np.ndarray] = {}

    def _bytes(where: int, count: int) -> np.ndarray:
        return np.ctypeslib.as_array((ctypes.c_uint8 * count).from_address(int(where)))

    def _accessor(kind: Any) -> Any:
        size = np.dtype(kind).itemsize

        def words(where: int, count: int) -> np.ndarray:
            key = (int(where), int(count), kind)
            if key not in _mapped:
                if len(_mapped) > 100_000:
                    _mapped.clear()
                _mapped[key] = _bytes(where, count * size).view(kind)
            return _mapped[key]

        return words

    words_u8, words_i8 = _accessor(np.uint8), _accessor(np.int8)
    words_u16, words_i16 = _accessor(np.uint16), _accessor(np.int16)
    words_u32, words_i32 = _accessor(np.uint32), _accessor(np.int32)
    words_u64, words_i64 = _accessor(np.uint64), _accessor(np.int64)
    words_f32, words_f64 = _accessor(np.float32), _accessor(np.float64)

    def lanes_equal(where: int, shift: int, stride: int, value: int) -> int:
        words = words_u32(where, 32)
        low = 0xFFFF_FFFF
        return sum(1 << l for l in range(32) if ((int(words[l]) >> shift) - stride * l - value) & low == 0)

    def pointer_to(kind: np.dtype) -> Any:
        views: dict[int, Any] = {}

        def at(where: int) -> Any:
            where = int(where)
            if where not in views:
                if len(views) > 100_000:
                    views.clear()
                views[where] = view(_bytes(where, kind.itemsize).view(kind)[0:1].reshape(()))
            return views[where]

        return at

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
