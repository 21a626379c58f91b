"""A loaded PTX module on a GPU: its variables in device memory, and the launch of its kernels."""

from __future__ import annotations

import math
import os
import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

from lockstep.models.execution.isa import GRANULE, LOCAL_PHYSICAL
from lockstep.models.occupancy import Occupancy, plan
from lockstep.sim.arguments import POINTER_BYTES, pack
from lockstep.sim.buffers import Texture, as_array, as_dtype
from lockstep.sim.device import Device
from lockstep.sim.errors import FAULTS, WITH_ADDRESS, KernelFault, UsageError
from lockstep.sim.ptx import program
from lockstep.sim.ptx.kernel import Kernel
from lockstep.sim.run import Run
from lockstep.spec import registry
from lockstep.spec.parameters import MAX_WARPS

if TYPE_CHECKING:
    from lockstep.models.gpu import Stop

__all__ = ["Module"]

IN_MEMORY = ("global", "const")
BOUND = ("tex", "texref", "surfref", "samplerref")
MAX_BLOCK = (1024, 1024, 64)  # threads in x, y and z (CUDA C Programming Guide, all compute capabilities from 2.0)
MAX_GRID_X = 2**31 - 1

Extent = int | Sequence[int]


class Module:
    """The kernels and variables of one PTX or CUDA file. Made by ``Gpu.load``."""

    def __init__(
        self, gpu: Device, path_or_text: str | os.PathLike[str], registers: Mapping[str, int] | None = None
    ) -> None:
        self.gpu = gpu
        self._text: str | None = None
        source = self._as_ptx(path_or_text)
        description = gpu.description
        limit = description.core.registers_per_thread
        self.program = program.load(source, limit, registry.passes(description))
        for name, count in (registers or {}).items():
            kernel = self.kernel(name)
            kernel.registers = max(kernel.registers, min(count, limit))
        self._addresses = self._place_variables()
        self._textures: dict[str, Texture] = {}
        self._loaded = True

    def _as_ptx(self, path_or_text: str | os.PathLike[str]) -> str | os.PathLike[str]:
        from lockstep.sim import nvrtc

        if isinstance(path_or_text, str) and "\n" in path_or_text:
            if ".version" not in path_or_text:
                return nvrtc.compile_text(path_or_text)
            self._text = path_or_text
            return path_or_text
        path = Path(path_or_text)
        return nvrtc.compile_file(path) if path.suffix == ".cu" else path

    # -------------------------------------------------------------------------------------------------------- variables

    def _place_variables(self) -> dict[str, int]:
        """Allocate and initialise the module-scope variables; returns their device addresses."""
        memory = self.gpu.memory
        variables = {name: v for name, v in self.program.variables.items() if v.space in IN_MEMORY}
        addresses = {name: memory.allocate(v.bytes) for name, v in variables.items()}
        for name, variable in variables.items():
            data = np.zeros(variable.bytes, np.uint8)
            if variable.initial is not None:
                data[: len(variable.initial)] = np.frombuffer(variable.initial, np.uint8)
            for offset, symbol, _generic in variable.relocations:  # generic and global addresses are the same
                target = addresses.get(symbol.name, self.program.functions.get(symbol.name))
                if target is None:
                    raise UsageError(f"{self.program.path}: {name}: initialised with the unknown symbol {symbol.name}")
                pointer = (target + symbol.offset).to_bytes(POINTER_BYTES, "little")
                data[offset : offset + POINTER_BYTES] = np.frombuffer(pointer, np.uint8)
            memory.write(addresses[name], data)
        return addresses

    def unload(self) -> None:
        """Give the memory of the variables back; the module cannot be used any more."""
        self._require_loaded()
        self._loaded = False
        for address in self._addresses.values():
            self.gpu.memory.free(address)

    def _require_loaded(self) -> None:
        if not self._loaded:
            raise UsageError(f"{self.program.path}: the module was unloaded")

    def set_symbol(self, name: str, value: ArrayLike | Texture | bytes, offset: int = 0) -> None:
        """Copy an array into a module-scope ``.const`` or ``.global`` variable, from byte ``offset`` on.

        A texture or surface reference is bound to a texture instead; a texture object is stored as its handle.
        """
        variable = self._variable(name)
        if variable.space in BOUND:
            if not isinstance(value, Texture) or value.memory is not self.gpu.memory:
                raise UsageError(f"{name}: is a texture reference; set it to a gpu.texture(...) of this Gpu")
            self._textures[variable.name] = value
            return
        if isinstance(value, Texture):
            value = value.handle.to_bytes(POINTER_BYTES, "little")
        data = np.frombuffer(value, np.uint8) if isinstance(value, bytes) else as_array(value)
        if not 0 <= offset <= variable.bytes - data.nbytes:
            raise UsageError(f"{name}: {data.nbytes} bytes at offset {offset} do not fit into its {variable.bytes}")
        self.gpu.memory.write(self._addresses[variable.name] + offset, data.reshape(-1).view(np.uint8))

    def get_symbol(self, name: str, dtype: Any = np.uint8) -> np.ndarray:
        """A copy of a module-scope variable."""
        variable = self._variable(name)
        if variable.space in BOUND:
            raise UsageError(f"{name}: is a texture reference and has no value")
        kind = as_dtype(dtype)
        if variable.bytes % kind.itemsize:
            raise UsageError(f"{name}: has {variable.bytes} bytes, no multiple of the {kind.itemsize} of {kind}")
        return self.gpu.memory.view(self._addresses[variable.name], variable.bytes).copy().view(kind)

    def _variable(self, name: str) -> Any:
        self._require_loaded()
        found = _unmangled(name, self.program.variables)
        if found is None:
            known = ", ".join(self.program.variables) or "none"
            raise UsageError(f"{self.program.path}: no variable {name!r}; it has {known}")
        return self.program.variables[found]

    # ---------------------------------------------------------------------------------------------------------- kernels

    def kernel(self, name: str) -> Kernel:
        """A kernel by its name, in C++ also without the mangling when it is unambiguous."""
        found = _unmangled(name, self.program.kernels)
        if found is None:
            known = ", ".join(self.program.kernels) or "none"
            raise UsageError(f"{self.program.path}: no kernel {name!r}; it has {known}")
        return self.program.kernels[found]

    def launch(self, name: str, grid: Extent, block: Extent, args: Sequence[Any] = (), shared_bytes: int = 0) -> Run:
        """Run a kernel to its end.

        ``shared_bytes`` is dynamic shared memory. Raises :class:`UsageError` for what cannot be launched, and
        :class:`KernelFault` for what the kernel does wrong. Whatever ends it early, the next launch works
        (:class:`lockstep.sim.Gpu`).
        """
        self._require_loaded()
        kernel = self.kernel(name)
        grid, block = _extent(name, "grid", grid), _extent(name, "block", block)
        self._check_extents(kernel, grid, block)
        self._check_resources(kernel, math.prod(block), shared_bytes)
        params = pack(self.gpu.memory, kernel, args)
        ready = self._relocated(kernel)
        machine = self.gpu.machine
        from lockstep.models.gpu import Busy  # late, since it compiles the model

        start = time.perf_counter()
        memory, progress = self.gpu.memory, self.gpu.progress
        try:
            result = machine.launch(ready, grid, block, params, shared_bytes, memory, progress)
        except Busy as error:
            raise UsageError(f"{kernel.name}: {error}") from None
        except BaseException:
            self.gpu.show(machine.printed)
            raise
        wall = time.perf_counter() - start
        if result.fault is not None:
            self.gpu.show(result.printed)
            raise KernelFault(self._fault_text(kernel, result.fault))
        over_time = result.timeline, result.gauges
        run = Run(kernel.name, grid, block, self.gpu.description, result.raw, *over_time, wall, result.printed)
        self.gpu.record(run)
        self.gpu.show(run.printed)
        return run

    def _check_extents(self, kernel: Kernel, grid: tuple[int, int, int], block: tuple[int, int, int]) -> None:
        description = self.gpu.description
        limit, threads = description.core.threads_per_cta, math.prod(block)
        if threads > limit:
            raise UsageError(f"{kernel.name}: block {block} has {threads} threads; {description.name} allows {limit}")
        others = description.launch.max_grid
        for what, extent, most in (("block", block, MAX_BLOCK), ("grid", grid, (MAX_GRID_X, others, others))):
            if any(value > maximum for value, maximum in zip(extent, most, strict=True)):
                raise UsageError(f"{kernel.name}: {what} {extent}: beyond the limit {most}")
        if kernel.required_block and block != kernel.required_block:
            raise UsageError(f"{kernel.name}: block {block}: the kernel requires {kernel.required_block} (.reqntid)")
        if kernel.max_block and threads > math.prod(kernel.max_block):
            most_threads = math.prod(kernel.max_block)
            raise UsageError(f"{kernel.name}: block {block}: the kernel allows {most_threads} threads (.maxntid)")

    def occupancy(self, name: str, block: Extent, shared_bytes: int = 0) -> Occupancy:
        """How many CTAs of a kernel an SM holds, and what limits them. With none, a launch is refused."""
        kernel, extent = self.kernel(name), _extent(name, "block", block)
        self._check_extents(kernel, (1, 1, 1), extent)
        return self._fit(kernel, math.prod(extent), shared_bytes)

    def _fit(self, kernel: Kernel, threads: int, shared_bytes: int) -> Occupancy:
        description = self.gpu.description
        if not isinstance(shared_bytes, int | np.integer) or shared_bytes < 0:
            raise UsageError(f"{kernel.name}: shared_bytes = {shared_bytes!r}: must be an integer, not negative")
        shared, limit = kernel.shared_bytes + shared_bytes, description.scratchpad.bytes_per_cta
        if shared > limit:
            text = f"{shared} bytes of shared memory ({kernel.shared_bytes} static, {shared_bytes} dynamic)"
            raise UsageError(f"{kernel.name}: {text}; {description.name} allows {limit} per CTA")
        return plan(description, threads, kernel.registers, shared)

    def _check_resources(self, kernel: Kernel, threads: int, shared_bytes: int) -> None:
        description = self.gpu.description
        fit = self._fit(kernel, threads, shared_bytes)
        if fit.ctas == 0:
            shared = kernel.shared_bytes + shared_bytes
            need = f"a CTA of {threads} threads, {kernel.registers} registers each, {shared} bytes of shared memory"
            raise UsageError(f"{kernel.name}: {need} does not fit on an SM: too many {' and '.join(fit.limited_by)}")
        local = description.core.sms * MAX_WARPS * 32 * kernel.local_bytes
        if local > 2**32 - LOCAL_PHYSICAL:
            raise UsageError(f"{kernel.name}: {kernel.local_bytes} bytes of local memory per thread do not fit")

    def _relocated(self, kernel: Kernel) -> Kernel:
        """The kernel with the addresses of variables and the handles of textures in its code."""
        if not kernel.relocations:
            return kernel
        code = kernel.code.copy()
        for relocation in kernel.relocations:
            value = self._symbol_value(kernel, relocation.symbol) + relocation.addend
            if relocation.field == "offset":
                code["offset"][relocation.pc] += value
            else:
                code["imm"][relocation.pc, int(relocation.field.removeprefix("imm"))] += value
        return replace(kernel, code=code)

    def _symbol_value(self, kernel: Kernel, symbol: str) -> int:
        if symbol in self._addresses:
            return self._addresses[symbol]
        if symbol in self._textures:
            self._textures[symbol].texels.require_live(self.gpu.memory)
            return self._textures[symbol].handle
        if symbol in self.program.variables:
            raise UsageError(f"{kernel.name}: the texture reference {symbol} is not set; use module.set_symbol")
        raise UsageError(f"{self.program.path}: {kernel.name}: unknown symbol {symbol}")

    # ----------------------------------------------------------------------------------------------------------- faults

    def _fault_text(self, kernel: Kernel, stop: Stop) -> str:
        """One line: what happened, in which instruction, CTA, warp and lane, at which address."""
        line = int(kernel.code["line"][stop.pc]) if 0 <= stop.pc < len(kernel.code) else 0
        place = f"{kernel.path}:{line}: {self._source_line(line)!r}" if line else kernel.path
        where = f"CTA {stop.cta}, warp {stop.warp}"
        if stop.lane >= 0:
            where += f", lane {stop.lane}"
        if stop.code.name in WITH_ADDRESS:
            where += f", address {stop.address:#x}{self._nearest(stop.address)}"
        waits = f", which waits for {stop.waits}" if stop.waits else ""
        return f"{kernel.name}: {FAULTS[stop.code.name]} at {place}, {where}{waits}, cycle {stop.cycle}"

    def _source_line(self, line: int) -> str:
        try:
            lines = (self._text if self._text is not None else Path(self.program.path).read_text()).splitlines()
        except OSError:
            return ""
        return lines[line - 1].strip() if 0 < line <= len(lines) else ""

    def _nearest(self, address: int) -> str:
        """How an address lies to the allocation before it."""
        found = self.gpu.memory.before(address)
        if found is None or address >= found[0] + found[1] + GRANULE:
            return ""
        base, size = found
        return f" (byte {address - base} of an allocation of {size})"


def _extent(kernel: str, what: str, value: Extent) -> tuple[int, int, int]:
    items = tuple(value) if isinstance(value, tuple | list) else (value,)
    if not 1 <= len(items) <= 3 or not all(isinstance(i, int | np.integer) and i >= 1 for i in items):
        raise UsageError(f"{kernel}: {what} = {value}: must be one to three positive integers")
    x, y, z = (*(int(i) for i in items), 1, 1)[:3]
    return x, y, z


def _unmangled(name: str, known: Any) -> str | None:
    """``name`` itself, or the only C++ name that it is short for."""
    if not isinstance(name, str):
        raise UsageError(f"{name!r}: must be a name")
    if name in known:
        return name
    prefix = f"{len(name)}{name}"
    found = [k for k in known if k.startswith((f"_Z{prefix}", f"_ZL{prefix}"))]
    return found[0] if len(found) == 1 else None
