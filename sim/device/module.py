"""A loaded PTX module on a GPU: its variables in device memory, and the launch of its kernels."""

from __future__ import annotations

import math
import os
import re
import time
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace
from functools import partial
from pathlib import Path
from types import NoneType
from typing import TYPE_CHECKING, Any, overload

import numpy as np
from numpy.typing import ArrayLike

from lockstep.models.execution.isa import GRANULE, LANES, LOCAL_BYTES
from lockstep.models.occupancy import Occupancy, local_rows, plan
from lockstep.models.waiting import STARVED
from lockstep.sim.compile.cuda import headers
from lockstep.sim.compile.cuda.options import Options
from lockstep.sim.compile.ptx import names, program
from lockstep.sim.compile.ptx.kernel import Kernel, Program
from lockstep.sim.compile.ptx.lines import Places
from lockstep.sim.device import diagnosis
from lockstep.sim.device.arguments import POINTER_BYTES, pack
from lockstep.sim.device.buffers import Extent, Texture, as_array, as_dtype
from lockstep.sim.device.device import Device
from lockstep.sim.device.profile import Place, Profile
from lockstep.sim.device.run import Run
from lockstep.sim.device.streams import HostProgram, Pending, Stream, Work, profiler
from lockstep.sim.errors import FAULTS, WITH_ADDRESS, KernelFault, UsageError, of_type, path_text
from lockstep.spec import registry
from lockstep.spec.parameters import MAX_GRIDS

if TYPE_CHECKING:
    from lockstep.models.stop import Stop
    from lockstep.sim.compile.cuda.program import Cuda

__all__ = ["Module"]

IN_MEMORY = ("global", "const")
BOUND = ("tex", "texref", "surfref", "samplerref")
OWN_HEADERS = ("prelude.h", "__nv_nvrtc_builtin_header.h")
IS_TEXT = re.compile(r"[\n{]")
IS_PTX = re.compile(r"^\s*\.version\b", re.MULTILINE)
MAX_BLOCK = (1024, 1024, 64)  # threads in x, y and z (CUDA C Programming Guide, all compute capabilities from 2.0)
MAX_GRID_X = 2**31 - 1


class Module:
    """The kernels and variables of one PTX or CUDA file. Made by ``Gpu.load``.

    Instances of kernel templates that are launched by name, ``"f<3>"``, are compiled when they are first asked for.
    """

    def __init__(
        self,
        gpu: Device,
        path_or_text: str | os.PathLike[str],
        registers: Mapping[str, int] | None = None,
        options: Options | None = None,
    ) -> None:
        of_type((Mapping, NoneType), "registers", registers, "a dict, a number by kernel")
        self.gpu = gpu
        self._text: str | None = None
        self._cuda: Cuda | None = None
        self._registers: dict[str, int] = {}
        self._addresses: dict[str, int] = {}
        self._textures: dict[str, Texture] = {}
        self._loaded = True
        self.program = self._compiled(self._as_ptx(path_or_text, options or Options()))
        if not self.program.kernels and not (self._cuda and self._cuda.kernels):
            raise UsageError(f"{self._shown_path()}: has no kernels")
        for name, count in (registers or {}).items():
            self.kernel(name)  # which may be an instance of a template, to be compiled
            if not isinstance(count, int | np.integer) or count < 1:
                raise UsageError(f"registers: {name}: {count!r}: must be an integer, 1 or more")
            self._registers[name] = int(count)
        self._reserve_registers()
        self._place_variables()

    def _as_ptx(self, path_or_text: str | os.PathLike[str], options: Options) -> str | os.PathLike[str]:
        text = path_or_text if isinstance(path_or_text, str) and IS_TEXT.search(path_or_text) else None
        path = Path(path_text("path_or_text", path_or_text)) if text is None else None
        if (path is not None and path.suffix == ".cu") or (text is not None and not IS_PTX.search(text)):
            from lockstep.sim.compile.cuda.program import Cuda

            self._cuda = Cuda(text, path, options)
            return self._cuda.compile()
        if options != Options():
            raise UsageError(f"{path or '<text>'}: is PTX; include, define, std, arch and fast_math are for CUDA C")
        self._text = text
        return path_or_text

    def _compiled(self, ptx: str | os.PathLike[str]) -> Program:
        description = self.gpu.description
        return program.load(ptx, description.core.registers_per_thread, registry.passes(description))

    def _reserve_registers(self) -> None:
        """Give kernels the registers that the user asks for."""
        limit = self.gpu.description.core.registers_per_thread
        for name, count in self._registers.items():
            kernel = self.kernel(name)
            kernel.registers = max(kernel.registers, min(count, limit))

    def _shown_path(self) -> str:
        return self._cuda.name if self._cuda else self.program.path

    def __repr__(self) -> str:
        return f"<Module {self._shown_path()}: {names.listed(self.program.kernels | self.program.refused)}>"

    # -------------------------------------------------------------------------------------------------------- variables

    def _place_variables(self) -> None:
        """Allocate and initialise the module-scope variables that have no place yet."""
        memory, addresses = self.gpu.memory, self._addresses
        variables = {
            name: v for name, v in self.program.variables.items() if v.space in IN_MEMORY and name not in addresses
        }
        addresses.update({name: memory.allocate(v.bytes) for name, v in variables.items()})
        for name, variable in variables.items():
            data = np.zeros(variable.bytes, np.uint8)
            for offset, content in variable.pieces or ():
                data[offset : offset + len(content)] = np.frombuffer(content, np.uint8)
            for offset, symbol, _generic in variable.relocations:  # generic and global addresses are the same
                target = addresses.get(symbol.name, self.program.functions.get(symbol.name))
                if target is None:
                    raise UsageError(f"{self.program.path}: {name}: initialised with the unknown symbol {symbol.name}")
                pointer = (target + symbol.offset).to_bytes(POINTER_BYTES, "little")
                data[offset : offset + POINTER_BYTES] = np.frombuffer(pointer, np.uint8)
            memory.write(addresses[name], data)

    def unload(self) -> None:
        """Give the memory of the variables back; the module cannot be used any more."""
        self._require_loaded()
        self.gpu.synchronize()
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
        self.gpu.synchronize()
        if variable.space in BOUND:
            if not isinstance(value, Texture) or value.memory is not self.gpu.memory:
                raise UsageError(f"{name}: is a texture reference; set it to a gpu.texture(...) of this Gpu")
            self._textures[variable.name] = value
            return
        if isinstance(value, Texture):
            value = value.handle.to_bytes(POINTER_BYTES, "little")
        data = np.frombuffer(value, np.uint8) if isinstance(value, bytes) else as_array(value)
        of_type((int, np.integer), f"{name}: offset", offset, "a number of bytes")
        if not 0 <= offset <= variable.bytes - data.nbytes:
            raise UsageError(f"{name}: has {variable.bytes} bytes; {data.nbytes} bytes at offset {offset} do not fit")
        self.gpu.memory.write(self._addresses[variable.name] + offset, data.reshape(-1).view(np.uint8))

    def get_symbol(self, name: str, dtype: Any = np.uint8) -> np.ndarray:
        """A copy of a module-scope variable."""
        variable = self._variable(name)
        self.gpu.synchronize()
        if variable.space in BOUND:
            raise UsageError(f"{name}: is a texture reference and has no value")
        kind = as_dtype(dtype)
        if variable.bytes % kind.itemsize:
            raise UsageError(f"{name}: has {variable.bytes} bytes, not a multiple of the {kind.itemsize} of {kind}")
        return self.gpu.memory.view(self._addresses[variable.name], variable.bytes).copy().view(kind)

    def _variable(self, name: str) -> Any:
        self._require_loaded()
        found = names.find(name, self.program.variables)
        if found is None:
            unknown, known = names.unknown(name, self.program.variables), names.listed(self.program.variables)
            raise UsageError(f"{self._shown_path()}: no variable {unknown}; it has {known}")
        return self.program.variables[found]

    # ---------------------------------------------------------------------------------------------------------- kernels

    def kernel(self, name: str) -> Kernel:
        """A kernel by its name: PTX's, or the C++ name ("f", "a::f", "f<3>") if it is clear which one is meant."""
        known = self.program.kernels | self.program.refused
        found = names.find(name, known) or self._instance(name)
        if found is None:
            templates = ""
            if self._cuda and (open := self._cuda.templates(known)):
                templates = f"; templates, to be launched as name<arguments>: {', '.join(open)}"
            unknown, listed = names.unknown(name, known), names.listed(known)
            raise UsageError(f"{self._shown_path()}: no kernel {unknown}; the module has {listed}{templates}")
        if found in self.program.refused:
            raise UsageError(self.program.refused[found])
        return self.program.kernels[found]

    def _instance(self, name: str) -> str | None:
        """The PTX's name of an instance of a kernel template, compiled if need be."""
        if self._cuda is None or not self._cuda.has_template(name):
            return None
        if not self._cuda.knows(name):
            self.program = self._compiled(self._cuda.compile(name))
            self._reserve_registers()
            self._place_variables()
        return self._cuda.lowered(name)

    @overload
    def launch(
        self, name: str, grid: Extent, block: Extent, args: Sequence[Any] = ..., shared_bytes: int = ..., *,
        profile: bool | None = ..., stream: None = ...,
    ) -> Run: ...  # fmt: skip

    @overload
    def launch(
        self, name: str, grid: Extent, block: Extent, args: Sequence[Any] = ..., shared_bytes: int = ..., *,
        stream: Stream,
    ) -> Pending: ...  # fmt: skip

    def launch(
        self,
        name: str,
        grid: Extent,
        block: Extent,
        args: Sequence[Any] = (),
        shared_bytes: int = 0,
        *,
        profile: bool | None = None,
        stream: Stream | None = None,
    ) -> Run | Pending:
        """Run a kernel to its end, or let it wait in a stream (``gpu.stream()``).

        ``shared_bytes`` is dynamic shared memory. With ``profile``, the run has a
        :class:`~lockstep.sim.device.profile.Profile` (default: as the ``Gpu`` says); nothing else about it differs.
        Raises :class:`UsageError` for what cannot be launched, and :class:`KernelFault` for what the kernel does wrong.
        Whatever ends it early, the next launch works (:class:`lockstep.sim.Gpu`).
        """
        self._require_loaded()
        of_type((Stream, NoneType), "launch: stream", stream, "what gpu.stream() has returned")
        host = HostProgram.here()
        later = partial(self.gpu.streams.add, stream) if stream is not None else host.launch if host else None
        if later is None:
            self.gpu.synchronize()
        kernel = self.kernel(name)
        grid, block = extent(name, "grid", grid), extent(name, "block", block)
        self._check_extents(kernel, grid, block)
        grids = MAX_GRIDS if later else 1
        self._check_resources(kernel, math.prod(grid), math.prod(block), shared_bytes, grids)
        params = pack(self.gpu.memory, kernel, args)
        ready = self._with_constants(self._relocated(kernel), params)
        told = partial(self._fault, kernel), partial(self._places_of, kernel)
        profiled = self.gpu.profile if profile is None else profile
        work = Work(kernel.name, kernel.shown, ready, grid, block, params, shared_bytes, *told, profiled)
        if later:
            if self.gpu.recording_to:
                raise UsageError(f"{kernel.shown}: launches in streams cannot be recorded as a trace")
            if profiled and not self.gpu.profile:
                raise UsageError(f"{kernel.shown}: a profile in a stream is that of all launches: Gpu(profile=True)")
            return later(work)
        machine = self.gpu.machine
        from lockstep.models.gpu import Busy  # late, since it compiles the model
        from lockstep.models.stop import ModelFault

        observer = profiler() if profiled else None
        tracing = self.gpu.tracing
        tracer = tracing.observer(self.gpu.description) if tracing else None

        def traced(cycles: int, stop: int | None = None) -> None:
            if tracing:
                tracing.add(tracer, [work.code()], self.gpu.description, cycles, stop)

        start = time.perf_counter()
        memory, progress = self.gpu.memory, self.gpu.progress
        try:
            observers = [each for each in (observer, tracer) if each]
            what = ready, grid, block, params, shared_bytes, memory
            with self._recorded(ready, grid, block, shared_bytes, len(params)):
                result = machine.launch(*what, progress, observers, self.gpu.every)
        except Busy as error:
            raise UsageError(f"{kernel.shown}: {error}") from None
        except BaseException as error:
            self.gpu.show(machine.printed)
            if isinstance(error, ModelFault):
                traced(error.stop.cycle + 1, error.stop.sm)
            raise
        wall = time.perf_counter() - start
        if result.fault is not None:
            self.gpu.show(result.printed)
            traced(result.fault.cycle + 1, result.fault.sm)
            raise self._fault(kernel, result.fault)
        found = Profile(kernel.shown, observer.rows, work.places) if observer else None
        found_out = result.raw, result.intervals, wall, result.printed, found
        run = Run(kernel.name, grid, block, self.gpu.description, *found_out, one_thread=result.one_thread)
        traced(run.cycles)
        self.gpu.record(run)
        self.gpu.show(run.printed)
        return run

    def _recorded(
        self, kernel: Kernel, grid: tuple[int, int, int], block: tuple[int, int, int], dynamic_bytes: int, params: int
    ) -> AbstractContextManager[None]:
        """Records a launch, if that is asked for."""
        recording = self.gpu.recording_to
        if recording is None:
            return nullcontext()
        ptx = self._text if self._text is not None else program.read(self.program.path)
        return recording.launch_of(self.gpu, kernel, ptx, self._places(), grid, block, dynamic_bytes, params)

    def _check_extents(self, kernel: Kernel, grid: tuple[int, int, int], block: tuple[int, int, int]) -> None:
        description = self.gpu.description
        limit, threads = description.core.threads_per_cta, math.prod(block)
        if threads > limit:
            raise UsageError(f"{kernel.shown}: block {block} has {threads} threads; {description.name} allows {limit}")
        others = description.launch.max_grid
        for what, extent, most in (("block", block, MAX_BLOCK), ("grid", grid, (MAX_GRID_X, others, others))):
            if any(value > maximum for value, maximum in zip(extent, most, strict=True)):
                raise UsageError(f"{kernel.shown}: {what} {extent}: beyond the limit {most}")
        if kernel.required_block and block != kernel.required_block:
            raise UsageError(f"{kernel.shown}: block {block}: the kernel requires {kernel.required_block} (.reqntid)")
        if kernel.max_block and threads > math.prod(kernel.max_block):
            most_threads = math.prod(kernel.max_block)
            raise UsageError(f"{kernel.shown}: block {block}: the kernel allows {most_threads} threads (.maxntid)")

    def occupancy(self, name: str, block: Extent, shared_bytes: int = 0) -> Occupancy:
        """How many CTAs of a kernel an SM holds, and what limits them. With none, a launch is refused."""
        kernel, threads = self.kernel(name), extent(name, "block", block)
        self._check_extents(kernel, (1, 1, 1), threads)
        return self._fit(kernel, math.prod(threads), shared_bytes)

    def _fit(self, kernel: Kernel, threads: int, shared_bytes: int) -> Occupancy:
        description = self.gpu.description
        if not isinstance(shared_bytes, int | np.integer) or shared_bytes < 0:
            raise UsageError(f"{kernel.shown}: shared_bytes = {shared_bytes!r}: must be an integer, 0 or more")
        shared, limit = kernel.shared_bytes + shared_bytes, description.scratchpad.bytes_per_cta
        if shared > limit:
            text = f"{shared} bytes of shared memory ({kernel.shared_bytes} static, {shared_bytes} dynamic)"
            raise UsageError(f"{kernel.shown}: {text}; {description.name} allows {limit} per CTA")
        return plan(description, threads, kernel.registers, shared)

    def _check_resources(self, kernel: Kernel, ctas: int, threads: int, shared_bytes: int, grids: int) -> None:
        description = self.gpu.description
        fit = self._fit(kernel, threads, shared_bytes)
        if fit.ctas == 0:
            shared = kernel.shared_bytes + shared_bytes
            need = f"a CTA of {threads} threads, {kernel.registers} registers each, {shared} bytes of shared memory"
            why = fit.why_none or f"too many {' and '.join(fit.limited_by)}"
            raise UsageError(f"{kernel.shown}: {need} does not fit on an SM: {why}")
        warps = description.core.sms * local_rows(description, fit, kernel.local_bytes, ctas, grids)
        if warps * LANES * kernel.local_bytes > LOCAL_BYTES // grids:
            need = f"{kernel.local_bytes} bytes of local memory per thread, of {warps} warps at a time,"
            raise UsageError(f"{kernel.shown}: {need} do not fit")

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

    def _with_constants(self, kernel: Kernel, params: bytes) -> Kernel:
        """The kernel with what stands in the constant bank now among its operands."""
        if not kernel.constants:
            return kernel
        code = kernel.code.copy()
        for one in kernel.constants:
            if one.symbol is None:
                found = params[one.offset : one.offset + one.bytes]
            else:
                address = self._symbol_value(kernel, one.symbol) + one.offset
                found = self.gpu.memory.view(address, one.bytes).tobytes()
            code["imm"][one.pc, one.source] = int.from_bytes(found, "little", signed=True)
        return replace(kernel, code=code)

    def _symbol_value(self, kernel: Kernel, symbol: str) -> int:
        if symbol in self._addresses:
            return self._addresses[symbol]
        if symbol in self._textures:
            self._textures[symbol].texels.require_live(self.gpu.memory)
            return self._textures[symbol].handle
        if symbol in self.program.variables:
            raise UsageError(f"{kernel.shown}: the texture reference {symbol} is not set; use module.set_symbol")
        raise UsageError(f"{self._shown_path()}: {kernel.shown}: unknown symbol {symbol}")

    # ----------------------------------------------------------------------------------------------------------- faults

    def _fault(self, kernel: Kernel, stop: Stop) -> KernelFault:
        """One line: what happened, in which instruction, CTA, warp and lane, at which address."""
        text = self._places()
        lines = diagnosis.Lines(kernel, text)
        ptx, source = lines.ptx(stop.pc), lines.source(stop.pc)
        place = kernel.path
        if ptx:
            place = f"{kernel.path}:{ptx[1]}: {text.text(ptx[1])!r}"
        if source:
            place = f"{self._source_place(*source)} ({place})"
        where = f"CTA {stop.cta}, warp {stop.warp}"
        if stop.lane >= 0:
            where += f", lane {stop.lane}"
        if stop.code.name in WITH_ADDRESS:
            where += f", address {stop.address:#x}{self._nearest(stop.address)}"
        waits = f", which waits for {stop.waits}" if stop.waits else ""
        message = f"{kernel.shown}: {FAULTS[stop.code.name]} at {place}, {where}{waits}, cycle {stop.cycle}"
        if starved := sum(warp.state == STARVED for warp in stop.waiting):
            policy = self.gpu.description.core.scheduler
            message += f"; warps that are ready and never chosen: {starved} (core.scheduler = {policy} starves them)"
        fault = KernelFault(message, ptx, source, diagnosis.stuck_warps(stop, lines))
        for line in diagnosis.lines(fault.warps, stop.ctas) if stop.waiting else ():
            fault.add_note(line)
        return fault

    def _places(self) -> Places:
        try:
            text = self._text if self._text is not None else Path(self.program.path).read_text(encoding="utf-8")
        except OSError:
            text = ""
        return Places(text, _is_users)

    def _places_of(self, kernel: Kernel) -> list[Place]:
        """Where each instruction of a kernel comes from."""
        ptx = self._places()
        sources: dict[str, list[str]] = {}

        def place(line: int) -> Place:
            file, number = ptx.source(line) or (kernel.path, line)
            text = ptx.text(line)
            if file != kernel.path and file not in sources:
                sources[file] = self._source(file)
            return Place(file, number, _line(sources[file], number) if file in sources else text, line, text)

        lines = kernel.code["line"].tolist()
        known = {line: place(line) for line in set(lines)}
        return [known[line] for line in lines]

    def _source_place(self, file: str, line: int) -> str:
        """A line of the CUDA text, as far as it can be read."""
        found = _line(self._source(file), line)
        return f"{file}:{line}" + (f": {found!r}" if found else "")

    def _source(self, file: str) -> list[str]:
        """The lines of a CUDA text; none if it cannot be read."""
        if self._cuda is not None and Path(file).name == "<text>":
            return self._cuda.text.splitlines()
        try:
            return Path(file).read_text(encoding="utf-8", errors="replace").splitlines()
        except (OSError, ValueError):  # or no name of a file
            return []

    def _nearest(self, address: int) -> str:
        """How an address lies to the allocation before it."""
        found = self.gpu.memory.before(address)
        if found is None or address >= found[0] + found[1] + GRANULE:
            return ""
        base, size = found
        return f" (byte {address - base} of an allocation of {size})"


def _line(lines: Sequence[str], line: int) -> str:
    return lines[line - 1].strip() if 0 < line <= len(lines) else ""


def _is_users(file: str) -> bool:
    """Whether a source file is the user's, and no part of CUDA."""
    path = Path(file)
    return path.name not in OWN_HEADERS and not any(path.is_relative_to(folder) for folder in headers.folders())


def extent(kernel: str, what: str, value: Extent) -> tuple[int, int, int]:
    """A launch's grid or block in three dimensions."""
    items = tuple(value) if isinstance(value, tuple | list) else (value,)
    if not 1 <= len(items) <= 3 or not all(isinstance(i, int | np.integer) and i >= 1 for i in items):
        raise UsageError(f"{kernel}: {what} = {value}: must be one to three positive integers")
    x, y, z = (*(int(i) for i in items), 1, 1)[:3]
    return x, y, z
