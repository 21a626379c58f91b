"""The listings of `lockstep ptx`: the regions of kernels for operand staging, their memory regions, their PTX with the
hints of region-p scheduling, and where their registers are first used."""

from __future__ import annotations

import shutil
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from lockstep.sim.compile import staging
from lockstep.sim.compile.ptx import program
from lockstep.sim.compile.ptx.assemble import assemble
from lockstep.sim.compile.ptx.build import drafts
from lockstep.sim.compile.ptx.draft import Draft
from lockstep.sim.compile.ptx.names import readable
from lockstep.sim.compile.ptx.parser import parse
from lockstep.sim.compile.ptx.passes.memory_regions import last, regions
from lockstep.sim.compile.ptx.passes.register_regions.regions import Bounds
from lockstep.sim.compile.staging import Staging
from lockstep.sim.errors import UsageError
from lockstep.sim.output import say, table
from lockstep.spec import registry
from lockstep.spec.frame import hidden_by
from lockstep.spec.parameters import Gpu
from lockstep.spec.passes import DECLARATION, FIRST_USE, REGISTER_NUMBERING, RENUMBERING

HINT = "  // priority shift"
PERCENTS = range(10, 100, 10)
COLUMNS = 10  # registers in a line, if it has room for them
NUMBERINGS = ("allocated", "declared", "renumbered")
ROWS = (("unshared registers", "unshared"), *((name, name) for name in NUMBERINGS))


@dataclass(frozen=True)
class MemoryRegion:
    """A memory region, by lines of the PTX file."""

    loads: list[int]
    hints: list[int]


@dataclass(frozen=True)
class Use:
    """The first use of a register: its line of the PTX file, and the micro-operations before it."""

    line: int
    before: int


@dataclass(frozen=True)
class Part:
    """A CTA that shares ``percent`` of its registers; ``unshared`` ones of each thread need no lock.

    ``allocated``, ``declared`` and ``renumbered`` count the micro-operations before the first that names another one,
    with each numbering; if none does, it is all of them.
    """

    percent: int
    unshared: int
    allocated: int
    declared: int
    renumbered: int


@dataclass(frozen=True)
class Registers:
    """The registers of a kernel as they are allocated, numbered as the PTX declares them, and renumbered by first use.

    None: nothing names the register.

    A thread may have more registers, ``per_thread``, than its code needs.
    """

    per_thread: int
    micro_operations: int
    allocated: list[Use | None]
    declared: list[Use | None]
    renumbered: list[Use | None]
    parts: list[Part]


@dataclass(frozen=True)
class Listed:
    """A kernel."""

    name: str
    ptx_instructions: int
    memory_regions: list[MemoryRegion]
    registers: Registers
    staging: Staging

    @property
    def global_loads(self) -> int:
        return sum(len(region.loads) for region in self.memory_regions)

    def json(self) -> dict[str, Any]:
        return asdict(self) | {"global_loads": self.global_loads, "staging": self.staging.json()}


@dataclass(frozen=True)
class Listing:
    """The kernels of a PTX file, compiled for a GPU: ``warps`` hide the ``latency`` (core cycles) of a load, and
    regions have ``bounds``."""

    path: str
    text: str
    latency: int
    warps: int
    bounds: Bounds
    kernels: list[Listed]
    refused: dict[str, str]  # kernels that cannot be compiled -> why

    def show(self, what: str) -> None:
        """Print ``regions``, ``memory-regions``, ``hints`` or ``registers``."""
        {
            "regions": self._regions, "memory-regions": self._memory_regions, "hints": self._hints,
            "registers": self._registers,
        }[what]()  # fmt: skip
        if what != "hints":
            show_refused(self.refused)

    def _regions(self) -> None:
        lines = self.text.splitlines()
        print(f"{self.path}: at most {self.bounds.registers} registers in a region, {self.bounds.usage} of a bank;")
        print("by instruction: line of the PTX, live registers, those by algorithm 2 of the thesis, operands")
        for kernel in self.kernels:
            print(f"{kernel.name}:")
            kernel.staging.show(lines)

    def _memory_regions(self) -> None:
        print(f"{self.path}: {self.latency} cycles for {self.warps} warps, {self.latency / self.warps:.1f} for each")
        for kernel in self.kernels:
            counts = f"PTX instructions {kernel.ptx_instructions}, global loads {kernel.global_loads}"
            print(f"{kernel.name}: {counts}, memory regions {len(kernel.memory_regions)}")
            for number, region in enumerate(kernel.memory_regions, 1):
                print(f"  region {number}: loads in lines {_numbers(region.loads)}; hints {_numbers(region.hints)}")

    def _hints(self) -> None:
        marked = {line for kernel in self.kernels for region in kernel.memory_regions for line in region.hints}
        for number, line in enumerate(self.text.splitlines(), 1):
            print(line + HINT if number in marked else line)

    def _registers(self) -> None:
        say(f"{self.path}: first uses of registers, as line of the PTX + micro-operations before")
        for kernel in self.kernels:
            found = kernel.registers
            needed = f"registers per thread {found.per_thread}, needed {len(found.allocated)}"
            print(f"{kernel.name}: {needed}, micro-operations {found.micro_operations}")
            for name in NUMBERINGS:
                uses = getattr(found, name)
                if name != "allocated" and uses == found.allocated:
                    print(f"  {name}: the same")
                else:
                    _show_uses(name, uses)
        title = "Micro-operations before the first that names a shared register, by what a CTA shares of its registers"
        table(title, ("kernel", "", *(f"{percent} %" for percent in PERCENTS)), [
            (kernel.name, label, *(getattr(part, name) for part in kernel.registers.parts))
            for kernel in self.kernels
            for label, name in ROWS
        ])  # fmt: skip

    def json(self) -> dict[str, Any]:
        return {
            "path": self.path,
            "latency_core_cycles": self.latency,
            "warps": self.warps,
            "region_registers": self.bounds.registers,
            "region_registers_of_a_bank": self.bounds.usage,
            "kernels": [kernel.json() for kernel in self.kernels],
            "refused": self.refused,
        }


def show_refused(refused: Mapping[str, str]) -> None:
    """Print the kernels of a module that cannot be compiled, and why."""
    for name, reason in refused.items():
        print(f"{readable(name)}: refused: {reason}")


def _numbers(lines: list[int]) -> str:
    return ", ".join(map(str, lines))


def _show_uses(label: str, uses: Sequence[Use | None]) -> None:
    cells = [f"{use.line}+{use.before}" if use else "-" for use in uses]
    width = max(map(len, cells))
    columns = min(COLUMNS, max(1, (shutil.get_terminal_size().columns - 17) // (width + 1)))
    for start in range(0, len(cells), columns):
        row = " ".join(cell.rjust(width) for cell in cells[start : start + columns])
        print(f"  {label if start == 0 else '':10} {start:3}: {row}")


def listing(path: Path, gpu: Gpu, registers: Mapping[str, int] | None = None) -> Listing:
    """Compile a PTX file for a GPU; ``registers`` as for ``Gpu.load``. Raises :class:`UsageError`."""
    text, limit, asked = program.read(path), gpu.core.registers_per_thread, registers or {}
    module = parse(text, str(path))
    passes = [one for one in registry.passes(gpu) if one.stage != RENUMBERING]
    if not any(function.entry for function in module.functions.values()):
        raise UsageError(f"{path}: has no kernels")
    numberings = (), (DECLARATION,), (FIRST_USE,), (REGISTER_NUMBERING,)
    compiled = [drafts(module, limit, [*passes, *chosen]) for chosen in numberings]
    (*numbered, staged), refused = [made for made, _ in compiled], compiled[0][1]
    load, bounds = hidden_by(gpu), staging.bounds(gpu.core.schedulers)
    kernels = []
    for name, draft in numbered[0].items():
        registers_of = _registers([each[name] for each in numbered], min(asked.get(name, 0), limit))
        found = staging.staging(staged[name], draft, bounds)
        kernels.append(_listed(draft, registers_of, found, **load))
    return Listing(str(path), text, **load, bounds=bounds, kernels=kernels, refused=refused)


def _registers(numbered: Sequence[Draft], least: int) -> Registers:
    """The registers of a kernel, from its drafts with each numbering. A thread gets ``least`` of them at least."""
    per_thread, end = max(numbered[0].kernel.registers, least), len(numbered[0].code.list)
    orders = allocated, declared, renumbered = [_first_uses(draft) for draft in numbered]
    parts = []
    for percent in PERCENTS:
        unshared = per_thread * (100 - percent) // 100
        counts = [min((use.before for use in uses[unshared:] if use), default=end) for uses in orders]
        parts.append(Part(percent, unshared, *counts))
    return Registers(per_thread, end, allocated, declared, renumbered, parts)


def _first_uses(draft: Draft) -> list[Use | None]:
    """The first use of every register, in the order of the list."""
    need = assemble(draft).code["need"]
    result: list[Use | None] = []
    for register in range(draft.kernel.registers):
        word, bit = divmod(register, 64)
        uses = np.flatnonzero(need[:, word] >> np.uint64(bit) & np.uint64(1))
        result.append(Use(draft.code.list[uses[0]].line, int(uses[0])) if uses.size else None)
    return result


def _listed(draft: Draft, registers: Registers, found: Staging, latency: int, warps: int) -> Listed:
    def lines(indices: list[int]) -> list[int]:
        return [draft.code.list[index].line for index in indices]

    listed = [
        MemoryRegion(lines(region), lines(last(draft.code, region))) for region in regions(draft.code, latency, warps)
    ]
    return Listed(draft.kernel.shown, draft.kernel.source_instructions, listed, registers, found)
