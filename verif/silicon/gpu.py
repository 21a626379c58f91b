"""A real GPU with the methods of :class:`lockstep.sim.Gpu`, so that the same code runs kernels on either.

Nothing is needed but the libraries of NVIDIA's driver, which compiles the PTX, too.
"""

from __future__ import annotations

import ctypes
import math
import os
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from lockstep.models.execution.isa import POISON
from lockstep.sim.compile.ptx import names
from lockstep.sim.device.buffers import Buffer, Texture, as_array
from lockstep.sim.device.gpu import Gpu
from lockstep.sim.device.module import extent
from lockstep.sim.errors import UsageError

LOG_BYTES = 8192
ERROR_LOG, ERROR_LOG_BYTES = 5, 6  # CU_JIT_ERROR_LOG_BUFFER and its size
SHARED_LIMIT = 8  # CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES
WITHOUT_ASKING = 48 * 1024  # bytes of shared memory
LINEAR, PITCH_2D = 2, 3  # CUresourcetype
PITCH = 32  # bytes that the rows of a texture start at a multiple of
FORMATS = {0: {1: 1, 2: 2, 4: 3}, 1: {1: 8, 2: 9, 4: 10}, 2: {2: 16, 4: 32}}  # CUarray_format by kind and bytes
ADDRESS_MODES = (1, 0, 2, 3)  # CUaddress_mode of clamp, wrap, mirror, border
AS_INTEGER, NORMALIZED = 1, 2  # CU_TRSF_...


class _Resource(ctypes.Structure):
    """CUDA_RESOURCE_DESC; linear memory has its bytes in ``width``."""

    _fields_ = (
        ("kind", ctypes.c_int), ("padding", ctypes.c_int), ("address", ctypes.c_uint64), ("format", ctypes.c_int),
        ("channels", ctypes.c_uint), ("width", ctypes.c_size_t), ("height", ctypes.c_size_t),
        ("pitch", ctypes.c_size_t), ("reserved", ctypes.c_int * 22), ("flags", ctypes.c_uint), ("end", ctypes.c_uint),
    )  # fmt: skip


class _Sampling(ctypes.Structure):
    """CUDA_TEXTURE_DESC."""

    _fields_ = (
        ("address_modes", ctypes.c_int * 3), ("filter", ctypes.c_int), ("flags", ctypes.c_uint),
        ("rest", ctypes.c_int * 23),
    )  # fmt: skip


class Driver:
    """The functions of libcuda; errors are exceptions."""

    def __init__(self) -> None:
        try:
            self._library = ctypes.CDLL("libcuda.so.1")
        except OSError:
            raise UsageError("there is no NVIDIA driver here (libcuda.so.1)") from None

    def call(self, function: str, *arguments: Any) -> None:
        code = getattr(self._library, function)(*arguments)
        if code:
            text = ctypes.c_char_p()
            self._library.cuGetErrorName(code, ctypes.byref(text))
            raise UsageError(f"{function}: {(text.value or b'').decode()} ({code})")

    def number(self, function: str, *arguments: Any) -> int:
        """The integer that a function gives through its first argument."""
        value = ctypes.c_uint64()
        self.call(function, ctypes.byref(value), *arguments)
        return value.value


class Memory:
    """The memory of a real GPU, as :class:`lockstep.sim.device.memory.Arena` has that of the model."""

    def __init__(self, driver: Driver) -> None:
        self._driver = driver
        self._textures: dict[int, list[tuple[int, int]]] = {}  # by address: objects, and memory of their own
        self._serials: dict[int, int] = {}
        self._allocated = 0

    def allocate(self, size: int) -> int:
        address = self._driver.number("cuMemAlloc_v2", ctypes.c_size_t(max(size, 1)))
        self._allocated += 1
        self._serials[address] = self._allocated
        return address

    def free(self, address: int) -> None:
        del self._serials[address]
        for texture, copy in self._textures.pop(address, []):
            self._driver.call("cuTexObjectDestroy", ctypes.c_uint64(texture))
            self.free(copy)
        self._driver.call("cuMemFree_v2", ctypes.c_uint64(address))

    def serial(self, address: int) -> int:
        return self._serials.get(address, 0)

    def view(self, address: int, size: int) -> np.ndarray:
        data = np.empty(size, np.uint8)
        if size:
            target = ctypes.c_void_p(data.ctypes.data)
            self._driver.call("cuMemcpyDtoH_v2", target, ctypes.c_uint64(address), ctypes.c_size_t(size))
        return data

    def write(self, address: int, data: np.ndarray) -> None:
        data = np.ascontiguousarray(data)
        if data.size:
            source = ctypes.c_void_p(data.ctypes.data)
            self._driver.call("cuMemcpyHtoD_v2", ctypes.c_uint64(address), source, ctypes.c_size_t(data.size))

    def poison(self, address: int, size: int) -> None:
        if size:
            self._driver.call("cuMemsetD8_v2", ctypes.c_uint64(address), ctypes.c_ubyte(POISON), ctypes.c_size_t(size))

    def add_texture(self, **fields: int) -> int:
        """A texture object on a copy of the texels whose rows are aligned as the hardware wants it."""
        if fields["dimensions"] > 2:
            raise UsageError("textures of three dimensions are not supported on a real GPU")
        flat = fields["dimensions"] == 1
        pitch = fields["pitch"] if flat else -(-fields["pitch"] // PITCH) * PITCH
        rows = np.zeros((fields["height"], pitch), np.uint8)
        texels = self.view(fields["address"], fields["pitch"] * fields["height"])
        rows[:, : fields["pitch"]] = texels.reshape(fields["height"], -1)
        copy = self.allocate(rows.size)
        self.write(copy, rows.reshape(-1))
        resource = _Resource(
            kind=LINEAR if flat else PITCH_2D, address=copy, format=FORMATS[fields["format"]][fields["bytes"]],
            channels=fields["channels"], width=rows.size if flat else fields["width"], height=fields["height"],
            pitch=pitch,
        )  # fmt: skip
        flags = (0 if fields["as_float"] else AS_INTEGER) | NORMALIZED * fields["normalized"]
        sampling = _Sampling((ctypes.c_int * 3)(*[ADDRESS_MODES[fields["wrap"]]] * 3), fields["linear"], flags)
        handle = self._driver.number("cuTexObjectCreate", ctypes.byref(resource), ctypes.byref(sampling), None)
        self._textures.setdefault(fields["address"], []).append((handle, copy))
        return handle


class Silicon(Gpu):
    """A real GPU. Buffers and textures are made and freed as on the model."""

    def __init__(self, device: int = 0) -> None:
        self.driver = Driver()
        self.driver.call("cuInit", 0)
        number = ctypes.c_int(self.driver.number("cuDeviceGet", device))
        context = self.driver.number("cuDevicePrimaryCtxRetain", number)
        self.driver.call("cuCtxSetCurrent", ctypes.c_void_p(context))
        text = ctypes.create_string_buffer(256)
        self.driver.call("cuDeviceGetName", text, len(text), number)
        self.name = f"{text.value.decode()}, driver {_driver_version()}"
        self.memory = Memory(self.driver)  # type: ignore[assignment]

    def start(self, launch: Launch) -> None:
        launch.start(self.driver)

    def load(  # type: ignore[override]
        self, path_or_text: str | os.PathLike[str], registers: Mapping[str, int] | None = None
    ) -> SiliconModule:
        is_text = isinstance(path_or_text, str) and "\n" in path_or_text
        return SiliconModule(self, str(path_or_text) if is_text else Path(path_or_text).read_text(encoding="utf-8"))


def _driver_version() -> str:
    library, text = ctypes.CDLL("libnvidia-ml.so.1"), ctypes.create_string_buffer(80)
    if library.nvmlInit_v2() or library.nvmlSystemGetDriverVersion(text, len(text)):
        return "unknown"
    return text.value.decode()


class Launch:
    """A launch that is ready to start, also again. ``threads``: of its grid."""

    def __init__(
        self, function: ctypes.c_void_p, extents: Sequence[int], shared_bytes: int, values: Sequence[bytes]
    ) -> None:
        self.threads = math.prod(extents)
        self._values = [ctypes.create_string_buffer(value) for value in values]
        pointers = (ctypes.c_void_p * len(values))(*map(ctypes.addressof, self._values))
        self._arguments = (function, *extents, shared_bytes, None, pointers, None)

    def start(self, driver: Driver) -> None:
        driver.call("cuLaunchKernel", *self._arguments)


class SiliconModule:
    """A PTX module on a real GPU."""

    def __init__(self, gpu: Silicon, text: str) -> None:
        self._gpu, self._driver = gpu, gpu.driver
        self._kernels = re.findall(r"\.entry\s+([\w$]+)", text)
        self._variables = re.findall(r"\.(?:global|const)\b[^;={]*?([\w$]+)\s*(?:\[\d*\])*\s*[=;]", text)
        log = ctypes.create_string_buffer(LOG_BYTES)
        options = (ctypes.c_int * 2)(ERROR_LOG, ERROR_LOG_BYTES)
        values = (ctypes.c_void_p * 2)(ctypes.addressof(log), LOG_BYTES)
        try:
            self._module = self._driver.number("cuModuleLoadDataEx", ctypes.c_char_p(text.encode()), 2, options, values)
        except UsageError as error:
            raise UsageError(f"{error}\n{log.value.decode()}") from None

    def set_symbol(self, name: str, value: ArrayLike | Texture | bytes, offset: int = 0) -> None:
        found = names.find(name, self._variables)
        if found is None:
            raise UsageError(f"no variable {names.unknown(name, self._variables)}")
        data = np.frombuffer(_bytes(value), np.uint8) if not isinstance(value, np.ndarray) else as_array(value)
        module = ctypes.c_void_p(self._module)
        address = self._driver.number("cuModuleGetGlobal_v2", None, module, ctypes.c_char_p(found.encode()))
        self._gpu.memory.write(address + offset, data.reshape(-1).view(np.uint8))

    def launch(
        self, name: str, grid: int | Sequence[int], block: int | Sequence[int], args: Sequence[Any] = (),
        shared_bytes: int = 0,
    ) -> None:  # fmt: skip
        """Run a kernel to its end."""
        found = names.find(name, self._kernels)
        if found is None:
            raise UsageError(f"no kernel {names.unknown(name, self._kernels)}")
        module = ctypes.c_void_p(self._module)
        number = self._driver.number("cuModuleGetFunction", module, ctypes.c_char_p(found.encode()))
        function = ctypes.c_void_p(number)
        if shared_bytes > WITHOUT_ASKING:
            self._driver.call("cuFuncSetAttribute", function, SHARED_LIMIT, shared_bytes)
        extents = [*extent(found, "grid", grid), *extent(found, "block", block)]
        self._gpu.start(Launch(function, extents, shared_bytes, [_bytes(value) for value in args]))
        self._driver.call("cuCtxSynchronize")


def _bytes(value: Any) -> bytes:
    """An argument's bytes; an integer's first ones are those of any narrower type."""
    if isinstance(value, Buffer):
        return value.address.to_bytes(8, "little")
    if isinstance(value, Texture):
        return value.handle.to_bytes(8, "little")
    if isinstance(value, int):
        return (value % (1 << 64)).to_bytes(8, "little")
    return bytes(value) if isinstance(value, bytes | bytearray) else value.tobytes()
