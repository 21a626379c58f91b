"""What `lockstep ptx` shows: the memory regions of kernels, and their PTX with the hints of region-p scheduling."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from lockstep.sim.ptx import program
from lockstep.sim.ptx.build import drafts
from lockstep.sim.ptx.draft import Draft
from lockstep.sim.ptx.parser import parse
from lockstep.sim.ptx.passes.memory_regions import last, regions
from lockstep.spec import registry
from lockstep.spec.frame import hidden_by
from lockstep.spec.parameters import Gpu

HINT = "  // priority shift"


@dataclass(frozen=True)
class Region:
    """A memory region, by lines of the PTX file."""

    loads: list[int]
    hints: list[int]


@dataclass(frozen=True)
class Listed:
    """A kernel."""

    name: str
    ptx_instructions: int
    regions: list[Region]

    @property
    def global_loads(self) -> int:
        return sum(len(region.loads) for region in self.regions)


@dataclass(frozen=True)
class Listing:
    """The kernels of a PTX file, compiled for a GPU: ``warps`` hide the ``latency`` (core cycles) of a load."""

    path: str
    text: str
    latency: int
    warps: int
    kernels: list[Listed]

    def show(self, what: str) -> None:
        """Print ``regions`` or ``hints``."""
        if what == "hints":
            marked = {line for kernel in self.kernels for region in kernel.regions for line in region.hints}
            for number, line in enumerate(self.text.splitlines(), 1):
                print(line + HINT if number in marked else line)
            return
        print(f"{self.path}: {self.latency} cycles for {self.warps} warps, {self.latency / self.warps:.1f} for each")
        for kernel in self.kernels:
            counts = f"PTX instructions {kernel.ptx_instructions}, global loads {kernel.global_loads}"
            print(f"{kernel.name}: {counts}, memory regions {len(kernel.regions)}")
            for number, region in enumerate(kernel.regions, 1):
                print(f"  region {number}: loads in lines {_numbers(region.loads)}; hints {_numbers(region.hints)}")

    def json(self) -> dict[str, Any]:
        kernels = [asdict(kernel) | {"global_loads": kernel.global_loads} for kernel in self.kernels]
        return {"path": self.path, "latency_core_cycles": self.latency, "warps": self.warps, "kernels": kernels}


def _numbers(lines: list[int]) -> str:
    return ", ".join(map(str, lines))


def listing(path: Path, gpu: Gpu) -> Listing:
    """Compile a PTX file for a GPU. Raises :class:`UsageError`."""
    text = program.read(path)
    made = drafts(parse(text, str(path)), gpu.core.registers_per_thread, registry.passes(gpu))
    load = hidden_by(gpu)
    kernels = [_listed(draft, **load) for draft in made.values()]
    return Listing(str(path), text, **load, kernels=kernels)


def _listed(draft: Draft, latency: int, warps: int) -> Listed:
    def lines(indices: list[int]) -> list[int]:
        return [draft.code.list[index].line for index in indices]

    found = regions(draft.code, latency, warps)
    listed = [Region(lines(region), lines(last(draft.code, region))) for region in found]
    return Listed(draft.kernel.name, draft.kernel.source_instructions, listed)
