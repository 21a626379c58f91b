"""A modelled GPU as a user sees it: device memory, modules, launches.

::

    gpu = Gpu("gtx480", l1_mshrs=64)
    module = gpu.load("saxpy.ptx")
    x, y = gpu.to_device(xs), gpu.to_device(ys)
    run = module.launch("saxpy", grid=(64,), block=(256,), args=[x, y, np.float32(2), np.int32(n)])
    ys = gpu.from_device(y)
    run.cycles, run.stats["l1.misses"]
"""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Mapping, Sequence
from types import NoneType
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, DTypeLike

from lockstep.sim.compile.cuda.options import DEFAULT_ARCHITECTURE, DEFAULT_STANDARD, Options
from lockstep.sim.device import description
from lockstep.sim.device.buffers import Buffer, Extent, Texture, as_array, as_dtype, as_shape
from lockstep.sim.device.device import Device
from lockstep.sim.device.module import Module
from lockstep.sim.device.streams import HostProgram, Stream
from lockstep.sim.errors import UsageError, of_type
from lockstep.spec.parameters import MAX_THREADS

__all__ = ["Gpu"]

FILTERS = ("point", "linear")
ADDRESS_MODES = ("clamp", "wrap", "mirror", "border")
FORMATS = {"u": 0, "i": 1, "f": 2}


class Gpu(Device):
    """One device.

    ``gpu`` is the name of a description or the path of a TOML file. Parameters of the description are overridden by
    ``settings`` (``{"l1.mshrs": 64}``) or as keywords, with an underscore for the dot (``l1_mshrs=64``). ``progress``
    is called now and then during a launch with the CTAs that have ended, the CTAs in all, and the core cycle.

    ``strict`` stops a launch with a :class:`KernelFault` when it reads memory that nobody has written: global memory
    since it was allocated, scratchpad since the CTA started, local memory since the warp started. Without it, such
    bytes read as 0xCB. What kernels print goes to standard output, or where ``on_print`` puts it, when a launch ends.

    With ``threads``, launches may have so many threads of the host, with the same bits. They use them where the
    description says ``l1.values = "lines"``, and nothing else is in the way, which ``run.one_thread`` then names.

    With ``profile``, runs say what each instruction and each line of the source cost (``run.profile``); cycles and
    statistics are those of a run without.

    Memory keeps its contents between launches. L1s are invalidated at a launch, the L2 is not. A launch that does not
    come to its end (a fault, Ctrl-C, an exception of a callback) counts nowhere. Allocations, symbols and textures stay
    as they were; what the kernel had stored by then is in memory, to look at. The launch after it begins with cold
    caches, as the first one does.

    ``runs`` has the last :data:`~lockstep.sim.device.device.KEPT` launches, ``stats`` counts all.
    """

    def __init__(
        self,
        gpu: str | os.PathLike[str] = "gtx480",
        mechanisms: str | Sequence[str] = (),
        settings: Mapping[str, Any] | None = None,
        progress: Callable[[int, int, int], None] | None = None,
        *,
        strict: bool = False,
        profile: bool = False,
        threads: int = 1,
        **keywords: Any,
    ) -> None:
        of_type((Mapping, NoneType), "settings", settings, "a dict")
        of_type((Callable, NoneType), "progress", progress, "a function")  # type: ignore[arg-type]
        of_type((int, np.integer), "threads", threads, "an integer")
        if not 1 <= threads <= MAX_THREADS:
            raise UsageError(f"threads = {threads}: must be 1 to {MAX_THREADS}")
        dotted = {key.replace(".", "_"): key for key in description.PARAMETERS}
        named = {dotted.get(key, key): value for key, value in keywords.items()}
        loaded = description.load(gpu, {**(settings or {}), **named}, mechanisms)
        super().__init__(loaded, progress, strict, profile, int(threads))

    # ----------------------------------------------------------------------------------------------------------- memory

    def to_device(self, array: ArrayLike) -> Buffer:
        """Copy an array of any dtype and shape into fresh device memory."""
        host = as_array(array)
        buffer = self._allocate(host.shape, host.dtype)
        self.memory.write(buffer.base, host.reshape(-1).view(np.uint8))
        return buffer

    def empty(self, shape: Extent, dtype: DTypeLike) -> Buffer:
        """Fresh device memory filled with a pattern that shows what a kernel leaves unwritten."""
        buffer = self._allocate(as_shape(shape), as_dtype(dtype))
        self.memory.poison(buffer.base, buffer.nbytes)
        return buffer

    def from_device(self, buffer: Buffer) -> np.ndarray:
        """A copy of a buffer, with the dtype and shape that went in; of a pointer into one, the elements from there."""
        of_type(Buffer, "from_device: buffer", buffer, "what to_device or empty has returned")
        self.synchronize()
        buffer.require_live(self.memory)
        if buffer.offset == 0:
            return self._bytes(buffer).copy().view(buffer.dtype).reshape(buffer.shape)
        count = (buffer.nbytes - buffer.offset) // buffer.dtype.itemsize
        if not 0 <= buffer.offset <= buffer.nbytes:
            raise UsageError(f"{buffer}: points outside its {buffer.nbytes} bytes")
        return self.memory.view(buffer.address, count * buffer.dtype.itemsize).copy().view(buffer.dtype)

    def free(self, what: Buffer | Texture) -> None:
        """Give the memory of a buffer or a texture back."""
        buffer = what.texels if isinstance(what, Texture) else what
        of_type(Buffer, "free: what", buffer, "a buffer or a texture")
        self.synchronize()
        buffer.require_live(self.memory)
        if buffer.offset:
            where = f"points into a buffer, {buffer.offset} bytes from its start"
            raise UsageError(f"{buffer}: {where}; free the buffer itself")
        self.memory.free(buffer.base)

    def _allocate(self, shape: tuple[int, ...], dtype: np.dtype[Any]) -> Buffer:
        base = self.memory.allocate(dtype.itemsize * math.prod(shape))
        if host := HostProgram.here():
            host.allocated(base, self.memory.serial(base))
        return Buffer(self.memory, base, self.memory.serial(base), dtype, shape)

    def _bytes(self, buffer: Buffer) -> np.ndarray:
        return self.memory.view(buffer.base, buffer.nbytes)

    def texture(
        self,
        image: ArrayLike,
        *,
        filter: str = "point",
        address: str = "clamp",
        normalized: bool = False,
        channels: int = 1,
        as_float: bool = False,
    ) -> Texture:
        """A texture of a copy of ``image``: 1-D, 2-D (row, column) or 3-D; with ``channels``, the last axis holds them.

        ``filter`` is "point" or "linear", ``address`` "clamp", "wrap", "mirror" or "border". ``normalized``:
        coordinates run from 0 to 1. ``as_float``: integer texels are read as numbers in [0, 1] or [-1, 1].
        """
        for name, value, allowed in (("filter", filter, FILTERS), ("address", address, ADDRESS_MODES)):
            if not isinstance(value, str) or value not in allowed:
                raise UsageError(f"texture: {name} = {value!r}: must be one of {', '.join(allowed)}")
        of_type(int, "texture: channels", channels, "1, 2 or 4")
        of_type(bool, "texture: normalized", normalized, "True or False")
        of_type(bool, "texture: as_float", as_float, "True or False")
        texels = as_array(image)
        if channels not in (1, 2, 4) or (channels > 1 and texels.shape[-1:] != (channels,)):
            raise UsageError(f"texture: {channels} channels: must be 1, 2 or 4, and the length of the last axis")
        shape = texels.shape[:-1] if channels > 1 else texels.shape
        if texels.dtype.kind not in FORMATS or texels.dtype.itemsize > 4 or not 1 <= len(shape) <= 3 or 0 in shape:
            rule = "must be integers or floats of up to 32 bits, 1-D to 3-D, and not empty"
            raise UsageError(f"texture: {texels.dtype}{list(shape)}: {rule}")
        depth, height, width = (1,) * (3 - len(shape)) + shape
        buffer = self.to_device(texels)
        handle = self.memory.add_texture(
            address=buffer.address,
            width=width,
            height=height,
            depth=depth,
            dimensions=len(shape),
            channels=channels,
            bytes=texels.dtype.itemsize,
            format=FORMATS[texels.dtype.kind],
            pitch=width * channels * texels.dtype.itemsize,
            linear=FILTERS.index(filter),
            wrap=ADDRESS_MODES.index(address),
            normalized=int(normalized),
            as_float=int(as_float),
        )
        return Texture(self.memory, handle, buffer)

    # -------------------------------------------------------------------------------------------------------- execution

    def stream(self) -> Stream:
        """A stream: launches in it run one after the other, beside those of another stream (``sim.device.streams``).

        They wait until :meth:`synchronize`, or until something needs them to have run.
        """
        return self.streams.stream()

    def load(
        self,
        path_or_text: str | os.PathLike[str],
        registers: Mapping[str, int] | None = None,
        *,
        include: Sequence[str | os.PathLike[str]] = (),
        define: Sequence[str] = (),
        std: str = DEFAULT_STANDARD,
        arch: str = DEFAULT_ARCHITECTURE,
        fast_math: bool = False,
    ) -> Module:
        """Load a module: a path to ``.ptx`` or ``.cu``, or the text of either (recognised by line breaks or braces).

        ``registers`` says by kernel how many registers each thread gets at least, up to the GPU's limit, when it needs
        fewer here: as many as with another compiler, for the same occupancy.

        The other arguments are for CUDA C (:class:`~lockstep.sim.compile.cuda.options.Options`). It may be a whole
        program: what is for the host alone is cut away.
        """
        return Module(self, path_or_text, registers, Options(include, define, std, arch, fast_math))
