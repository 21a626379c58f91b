"""A built block in this process: its layout is checked against the record type, and its instances can be bound."""

from __future__ import annotations

import ctypes
import functools
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import numpy as np

from lockstep.models import blocks
from lockstep.sim.cosim import build

_FUNCTIONS = {  # result (an integer or nothing), arguments
    "create": "i", "destroy": "-i", "reset": "-ii", "shadow_reset": "-ii", "golden": "-iiii", "steps": "ii",
    "rests": "ii", "difference": "ii", "own": "ii", "record": "-i", "play": "iiiii", "dump": "-iii",
    "step": "iii", "comb": "iii", "idle": "iii", "skip": "iii", "shadow_step": "iii", "shadow_comb": "iii",
    "shadow_idle": "iii",
}  # fmt: skip
_TRACED = ("dump", "trace")
REGISTERED, COMBINATIONAL = 1, 2


class LayoutDrift(Exception):
    """A library was built for another record than this process uses."""


class Library:
    """The shared library of a block. ``traced``: it can write waves."""

    def __init__(self, path: Path, kind: np.dtype) -> None:
        self.path = path
        self.kind = kind
        self._library = ctypes.CDLL(str(path))
        self.traced = hasattr(self._library, "dump")
        for name, signature in _FUNCTIONS.items():
            if self.traced or name not in _TRACED:
                function = getattr(self._library, name)
                function.restype = ctypes.c_int64 if signature[0] == "i" else None
                function.argtypes = [ctypes.c_int64] * (len(signature) - 1)
        for name in ("layout", "failed"):
            getattr(self._library, name).restype = ctypes.c_char_p
        self._library.recorded.restype = ctypes.c_int64
        self._library.recorded.argtypes = [ctypes.c_int64, ctypes.c_char_p, ctypes.c_void_p]
        if self.traced:
            self._library.trace.restype, self._library.trace.argtypes = None, [ctypes.c_int64, ctypes.c_char_p]
        self._check()

    @property
    def layout(self) -> str:
        """A line per integer: path, offset, type, port, lowest bit, width. The first one is the size of the record."""
        return self._library.layout().decode()

    def _check(self) -> None:
        size, *lines = self.layout.splitlines()
        if size != f"size {self.kind.itemsize}":
            raise LayoutDrift(f"{self.path}: {size}, this process has {self.kind.itemsize}")
        here = dict(elements(self.kind))
        for line in lines:
            path, offset, kind = line.split()[:3]
            if here.get(path) != (int(offset), kind):
                raise LayoutDrift(f"{self.path}: {path} is {kind} at {offset}, this process has {here.get(path)}")

    def function(self, name: str) -> int:
        """The address of a function, for a binding."""
        return ctypes.cast(getattr(self._library, name), ctypes.c_void_p).value or 0

    @property
    def failed(self) -> str:
        """The message with which the RTL stopped; empty while it runs."""
        return self._library.failed().decode()

    def instance(self) -> Instance:
        return Instance(self)


def elements(kind: np.dtype, path: str = "", offset: int = 0) -> Iterator[tuple[str, tuple[int, str]]]:
    """Every integer of a record type, by its path, with its offset and type."""
    base = kind.base
    for position, index in enumerate(np.ndindex(*kind.shape)):
        name = path + "".join(f"[{i}]" for i in index)
        where = offset + position * base.itemsize
        if base.names is None:
            yield name, (where, base.str[1:])
        for field in base.names or ():
            inner, start = base.fields[field][:2]  # type: ignore[index]
            yield from elements(inner, f"{name}.{field}" if name else field, where + start)


class Instance:
    """One Verilated block; lives until it is closed."""

    def __init__(self, library: Library) -> None:
        self.library = library
        self._calls = library._library
        self._handle: int | None = self._calls.create()

    @property
    def handle(self) -> int:
        """The first argument of the slots."""
        if self._handle is None:
            raise RuntimeError("this instance was closed")
        return self._handle

    def close(self) -> None:
        if self._handle is not None:
            self._calls.destroy(self._handle)
            self._handle = None

    def reset(self, io: np.ndarray) -> None:
        """Reset the flip-flops; the registered outputs after it go into ``io``."""
        self._calls.reset(self.handle, io.ctypes.data)

    def shadow_reset(self, io: np.ndarray) -> None:
        """Reset the flip-flops; the registered outputs after it are compared with the model's in ``io``."""
        self._calls.shadow_reset(self.handle, io.ctypes.data)

    def step(self, io: np.ndarray) -> None:
        self._calls.step(self.handle, io.ctypes.data)

    def comb(self, io: np.ndarray) -> None:
        self._calls.comb(self.handle, io.ctypes.data)

    def golden(self, step: int, comb: int, handle: int) -> None:
        """The addresses of the model's slots and their handle, for the shadow functions."""
        self._calls.golden(self.handle, step, comb, handle)

    @property
    def steps(self) -> int:
        """Clock edges so far, without those of resets."""
        return self._calls.steps(self.handle)

    @property
    def rests(self) -> bool:
        """The last clock edge changed nothing inside, and the next ones will not while the inputs stay."""
        return bool(self._calls.rests(self.handle))

    @property
    def difference(self) -> int:
        """0, :data:`REGISTERED` or :data:`COMBINATIONAL`."""
        return self._calls.difference(self.handle)

    @property
    def outputs(self) -> np.ndarray:
        """A copy of the record with the RTL's outputs, as compared last."""
        memory = (ctypes.c_uint8 * self.library.kind.itemsize).from_address(self._calls.own(self.handle))
        return np.frombuffer(bytes(memory), self.library.kind).reshape(())

    def record(self) -> None:
        """Keep the ports of all cycles from here on."""
        self._calls.record(self.handle)

    def recorded(self, name: str, kind: str) -> np.ndarray:
        """An array of the recorder."""
        count = ctypes.c_int64()
        address = self._calls.recorded(self.handle, name.encode(), ctypes.byref(count))
        size = count.value * np.dtype(kind).itemsize
        return np.frombuffer(ctypes.string_at(address, size) if size else b"", kind)

    def play(self, io: np.ndarray, times: int, sides: int) -> int:
        """Step ``times`` times with these ports; the cycles whose outputs were those in ``io``."""
        return self._calls.play(self.handle, io.ctypes.data, times, sides)

    def trace(self, path: Path) -> None:
        self._calls.trace(self.handle, str(path).encode())

    def dump(self, io: np.ndarray, cycle: int) -> None:
        self._calls.dump(self.handle, io.ctypes.data, cycle)


@functools.cache
def _loaded(path: Path, block: str) -> Library:
    return Library(path, blocks.ports(block))


def load(
    block: str, parameters: Mapping[str, int], make: build.Make | None = None, traced: bool = False
) -> Library:
    """Build a block unless that is done, and load it."""
    return load_all([build.Request(block, parameters, make, traced)])[0]


def load_all(requests: Sequence[build.Request]) -> list[Library]:
    """Build blocks side by side, and load them."""
    paths = build.libraries(requests)
    return [_loaded(path, request.block) for path, request in zip(paths, requests, strict=True)]
