"""Kernel arguments: from Python values to the parameter block, checked against the kernel's declaration."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from lockstep.sim.compile.ptx.kernel import Kernel, Parameter
from lockstep.sim.device.buffers import Buffer, Texture
from lockstep.sim.device.memory import Arena
from lockstep.sim.errors import UsageError

__all__ = ["pack"]

POINTER_BYTES = 8
# The NumPy kinds that a parameter of PTX type u, s, f or b takes. nvcc declares int as .u32, so signedness is free.
KINDS = {"u": "iub", "s": "iub", "f": "f", "b": "iubfc"}
KINDS_SHOWN = {
    "u": "an integer of {} bytes",
    "s": "an integer of {} bytes",
    "f": "a float of {} bytes",
    "b": "a number of {} bytes",
    "struct": "{} bytes, a NumPy record, or for __half np.float16 and for cuComplex a complex number",
}


def pack(memory: Arena, kernel: Kernel, args: Sequence[Any]) -> bytes:
    """The parameter block of a launch; buffers and textures must lie in ``memory``.

    Raises :class:`UsageError` when the number of arguments, or the type, size or range of one does not fit.
    """
    if not isinstance(args, Sequence):
        raise UsageError(f"{kernel.shown}: args = {type(args).__name__}: must be a list or a tuple")
    if len(args) != len(kernel.parameters):
        takes = ", ".join(_declared(parameter) for parameter in kernel.parameters) or "none"
        raise UsageError(f"{kernel.shown}: {len(args)} arguments given, it takes {len(kernel.parameters)}: {takes}")
    block = bytearray(kernel.param_bytes)
    for index, (parameter, value) in enumerate(zip(kernel.parameters, args, strict=True)):
        try:
            data = _encode(memory, parameter, value)
        except UsageError as error:
            raise UsageError(f"{kernel.shown}: argument {index} ({_declared(parameter)}): {error}") from None
        block[parameter.offset : parameter.offset + parameter.bytes] = data
    return bytes(block)


def _declared(parameter: Parameter) -> str:
    """A parameter's type as in PTX: ``.u32``, ``.b8[24]``."""
    if parameter.is_array:
        return f"struct of {parameter.bytes} bytes"
    return f".{parameter.type}"


def _encode(memory: Arena, parameter: Parameter, value: Any) -> bytes:
    if isinstance(value, Buffer | Texture):
        return _pointer(memory, parameter, value)
    if isinstance(value, bytes | bytearray | memoryview | np.void):
        data = value.tobytes() if isinstance(value, np.void | memoryview) else bytes(value)
        if len(data) != parameter.bytes:
            raise UsageError(f"{len(data)} bytes given, it has {parameter.bytes}")
        return data
    if isinstance(value, np.generic):
        return _scalar(parameter, value)
    if parameter.is_array:
        raise UsageError(f"a struct must be passed as bytes or as a NumPy record, not as {type(value).__name__}")
    if isinstance(value, bool | int):
        return _integer(parameter, int(value))
    if isinstance(value, float):
        return _float(parameter, value)
    if isinstance(value, np.ndarray):
        raise UsageError("a NumPy array is in host memory; pass gpu.to_device(array)")
    raise UsageError(f"{type(value).__name__} is not a buffer, a NumPy scalar, bytes or a texture")


def _pointer(memory: Arena, parameter: Parameter, value: Buffer | Texture) -> bytes:
    what = "a buffer" if isinstance(value, Buffer) else "a texture"
    if value.memory is not memory:
        raise UsageError(f"{what} belongs to another Gpu")
    if parameter.bytes != POINTER_BYTES or parameter.is_array or parameter.type[0] == "f":
        raise UsageError(f"{what} given, which takes {POINTER_BYTES} bytes")
    if isinstance(value, Texture):
        value.texels.require_live(memory)
        return value.handle.to_bytes(POINTER_BYTES, "little")
    value.require_live(memory)
    return value.address.to_bytes(POINTER_BYTES, "little")


def _scalar(parameter: Parameter, value: np.generic) -> bytes:
    if parameter.is_array:  # C++ has these as structs
        fits = value.dtype == np.float16 or value.dtype.kind == "c"
    else:
        fits = value.dtype.kind in KINDS[parameter.type[0]]
    if not fits or value.dtype.itemsize != parameter.bytes:
        takes = KINDS_SHOWN["struct" if parameter.is_array else parameter.type[0]].format(parameter.bytes)
        raise UsageError(f"np.{value.dtype} given, {value.dtype.itemsize} bytes; it takes {takes}")
    return value.tobytes()


def _integer(parameter: Parameter, value: int) -> bytes:
    if parameter.type[0] == "f":
        raise UsageError(f"int given; write np.float{8 * parameter.bytes}({value})")
    bits = 8 * parameter.bytes
    if not -(1 << (bits - 1)) <= value < 1 << bits:
        raise UsageError(f"{value} does not fit into {bits} bits")
    return (value % (1 << bits)).to_bytes(parameter.bytes, "little")


def _float(parameter: Parameter, value: float) -> bytes:
    if parameter.type[0] != "f":
        raise UsageError(f"float given; write np.float32({value}) or np.float64({value})")
    return np.dtype(f"f{parameter.bytes}").type(value).tobytes()
