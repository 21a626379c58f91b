"""What a trace says of a kernel, and of the device that it is recorded on."""

from __future__ import annotations

import os
from collections.abc import Mapping
from contextlib import AbstractContextManager
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lockstep.sim.compile.ptx.kernel import Kernel
from lockstep.sim.compile.ptx.lines import Places
from lockstep.sim.device import description
from lockstep.sim.errors import UsageError
from lockstep.sim.traces import schema
from lockstep.sim.traces.write import Extent, Recording
from lockstep.spec import registry
from lockstep.spec.frame import free_registers
from lockstep.spec.parameters import Gpu as Description

if TYPE_CHECKING:
    from lockstep.sim.device.device import Device

__all__ = ["DeviceRecording", "started"]


def started(device: Device, folder: str | os.PathLike[str], provenance: Mapping[str, Any]) -> DeviceRecording:
    """Begin a trace. Raises :class:`UsageError` where something would be in it that is the configuration's."""
    gpu = device.description
    if device.memory.marks:
        raise UsageError("strict: a trace has no memory to check; record it without")
    if gpu.l1.values == "lines":
        raise UsageError("l1.values = lines: stores take effect later than races are looked for; record it without")
    for mechanism in registry.selected(gpu):
        if "operands" in mechanism.tenants or mechanism.passes(gpu):
            why = "changes the code, or when it executes; record without it, and replay with it"
            raise UsageError(f"{mechanism.name}: {why}")
    told = {
        "gpu": gpu.name, "mechanisms": sorted(gpu.mechanisms),
        "configuration": description.values(gpu), **provenance,
    }  # fmt: skip
    return DeviceRecording(Path(folder), told)


class DeviceRecording(Recording):
    """A trace of what a device runs."""

    def launch_of(
        self, device: Device, kernel: Kernel, ptx: str, places: Places, grid: Extent, block: Extent, dynamic_bytes: int,
        param_bytes: int,
    ) -> AbstractContextManager[None]:  # fmt: skip
        """Records the launch inside of the ``with``."""
        found = self._kernel_of(kernel, ptx, device.description, places, param_bytes)
        return self.launch(device.machine, found, kernel.code, grid, block, dynamic_bytes, device.memory.contents)

    def _kernel_of(self, kernel: Kernel, ptx: str, gpu: Description, places: Places, param_bytes: int) -> schema.Kernel:
        """A kernel as a trace has it."""
        number = schema.digest(ptx.encode(errors="surrogateescape"))[:12]
        file = f"module-{number}.ptx"
        compiler = asdict(gpu.compiler) | {"free_registers": free_registers(gpu.core)}
        digest = self.add_text(file, ptx)
        source = schema.Source(file, kernel.name, gpu.core.registers_per_thread, compiler, digest)
        text = [" ".join(places.text(line).split())[:500] for line in kernel.code["line"].tolist()]
        text = ["".join(each for each in line if each.isprintable()) for line in text]
        return schema.Kernel(
            kernel.name, kernel.registers, kernel.shared_bytes, kernel.local_bytes, param_bytes,
            list(kernel.branch_table), schema.columns_of(kernel.code), text, source,
        )  # fmt: skip
