"""Fixed delays of the memory system, derived from a GPU description.

Latencies in a description are unloaded totals, from the issue of a load to the first issue of a dependent instruction.
Each part's own delay is what its total leaves when all other parts on the way are taken off:

=============  ======================================================================================================
part           core cycles
=============  ======================================================================================================
LSU            :data:`FRONT_END` from issue to the L1, :data:`BACK_END` from the L1's answer to a dependent issue
L1 hit         ``l1.latency - FRONT_END - BACK_END``
request        1 + ceil(flits of the header) + ``crossbar.latency``; on a mesh 1 + ceil(``mesh.cycles``) for one hop
L2 slice       ``l2.latency`` - LSU - request - reply, for each reply, whether it comes from a hit or from DRAM;
               ``l2.read_only_lead`` less for instruction and constant caches
reply          ceil(flits of header and line) + ``crossbar.latency``; on a mesh as the request, without the 1
DRAM, way in   1
DRAM           ceil(tRCD + tCL + data), a row hit ceil(tCL + data), a conflict ceil(tRP + tRCD + tCL + data)
DRAM, way out  ``dram.latency - l2.latency - 1 - ceil(tRCD + tCL + data)``
=============  ======================================================================================================

The data of a line are a burst for each of its sectors. ceil converts from the part's clock, once for each term. So the
unloaded totals are exact whatever the clocks are, and a description whose total is smaller than its parts is refused
(:func:`check`).
"""

from lockstep.models.memory import mesh
from lockstep.models.memory.clock import core_cycles
from lockstep.spec.parameters import MAX_L1_LINES, Gpu

FRONT_END = 4  # core cycles from the issue of a load to its first look-up in the L1
BACK_END = 2  # core cycles from the L1's answer to the first issue of a dependent instruction


HOPS = 1  # of a mesh, between the SM and the slice for which a description's totals hold


def flits(gpu: Gpu, payload: int) -> int:
    """Flits of a packet with ``payload`` bytes beside its header."""
    return max(1, -(-(gpu.crossbar.header_bytes + payload) // gpu.crossbar.flit_bytes))


def transfer(gpu: Gpu, payload: int, hops: int = HOPS) -> int:
    """Core cycles that a packet takes through an idle crossbar, or over some hops of an idle mesh."""
    size = flits(gpu, payload)
    if gpu.mesh.columns:
        return core_cycles(gpu.clocks.core, gpu.clocks.interconnect, mesh.cycles(gpu, size, hops))
    return core_cycles(gpu.clocks.core, gpu.clocks.interconnect, size) + gpu.crossbar.latency


def hit_delay(gpu: Gpu) -> int:
    """Core cycles from the look-up of an L1 hit to the L1's answer."""
    return gpu.l1.latency - FRONT_END - BACK_END


def slice_delay(gpu: Gpu) -> int:
    """Core cycles from the look-up of an L2 hit, or from the arrival of a line, to its reply."""
    return gpu.l2.latency - FRONT_END - 1 - transfer(gpu, 0) - transfer(gpu, gpu.l1.line_bytes) - BACK_END


def read_only_delay(gpu: Gpu) -> int:
    """The same for a line of an instruction or constant cache."""
    return slice_delay(gpu) - gpu.l2.read_only_lead


def sectors(gpu: Gpu) -> int:
    """Sectors of a line."""
    return gpu.l1.line_bytes // gpu.l2.sector_bytes


def burst(gpu: Gpu) -> int:
    """DRAM cycles for which one sector takes the data bus: column commands follow each other no closer than tCCD."""
    return max(-(-gpu.l2.sector_bytes // (2 * gpu.dram.bus_bytes)), gpu.dram.tCCD)


def dram_access(gpu: Gpu, row: str = "closed") -> int:
    """Core cycles from the first command to the last data of a line in a ``closed`` row, ``hit`` or ``conflict``."""
    dram = gpu.dram
    before = dict(hit=0, closed=dram.tRCD, conflict=dram.tRP + dram.tRCD)[row]
    return core_cycles(gpu.clocks.core, gpu.clocks.dram, before + dram.tCL + sectors(gpu) * burst(gpu))


def return_delay(gpu: Gpu) -> int:
    """Core cycles from the last data of a read to the arrival of the line in its slice."""
    return gpu.dram.latency - gpu.l2.latency - 1 - dram_access(gpu)


def dram_latency(gpu: Gpu, row: str = "closed") -> int:
    """The unloaded total of a read from DRAM: ``dram.latency`` for a closed row."""
    return gpu.l2.latency + 1 + dram_access(gpu, row) + return_delay(gpu)


def atomic_latency(gpu: Gpu, lanes: int, size: int) -> int:
    """The unloaded total of an atomic on a line that the L2 holds: ``lanes`` on one address, ``size`` bytes of data."""
    parts = FRONT_END + 1 + transfer(gpu, size) + slice_delay(gpu) + transfer(gpu, size) + BACK_END
    return parts + core_cycles(gpu.clocks.core, gpu.clocks.l2, lanes * gpu.l2.atomics)


def check(gpu: Gpu) -> list[str]:
    """What is wrong with the memory system of a description: one line per error."""
    l1, l2, dram = gpu.l1, gpu.l2, gpu.dram
    errors = mesh.check(gpu)
    for name, value in (
        ("l1.sets", l1.sets), ("l1.line_bytes", l1.line_bytes), ("l2.sets", l2.sets),
        ("l2.sector_bytes", l2.sector_bytes), ("dram.row_bytes", dram.row_bytes), ("dram.interleave", dram.interleave),
    ):  # fmt: skip
        if value & (value - 1):
            errors.append(f"{name} = {value}: must be a power of two")
    if l1.sets * l1.ways > MAX_L1_LINES:
        errors.append(f"l1.sets * l1.ways = {l1.sets * l1.ways}: at most {MAX_L1_LINES} lines")
    if l2.slices % dram.channels:
        errors.append(f"l2.slices = {l2.slices}: must be a multiple of dram.channels = {dram.channels}")
    for name, value in (("dram.interleave", dram.interleave), ("dram.row_bytes", dram.row_bytes)):
        if value < l1.line_bytes:
            errors.append(f"{name} = {value}: must be at least l1.line_bytes = {l1.line_bytes}")
    if l2.sector_bytes > l1.line_bytes:
        errors.append(f"l2.sector_bytes = {l2.sector_bytes}: must not exceed l1.line_bytes = {l1.line_bytes}")
    for name, value in (("l1.queue", l1.queue), ("dram.queue", dram.queue)):
        if value < 2:
            errors.append(f"{name} = {value}: must be at least 2, for a miss and the dirty line that it evicts")
    for name, part, whole_name, whole in (
        ("dram.tRAS", dram.tRAS, "dram.tRC", dram.tRC),
        ("dram.tRP", dram.tRP, "dram.tRC", dram.tRC),
        ("dram.tRCD", dram.tRCD, "dram.tRAS", dram.tRAS),
    ):
        if part > whole:
            errors.append(f"{name} = {part}: is a part of {whole_name} = {whole}, and must not exceed it")
    for name, total, least in (
        ("l1.latency", l1.latency, l1.latency - hit_delay(gpu) + 1),
        ("l2.latency", l2.latency, l2.latency - slice_delay(gpu) + 1),
        ("dram.latency", dram.latency, dram.latency - return_delay(gpu)),
    ):
        if total < least:
            errors.append(f"{name} = {total}: the parts on the way take {least} core cycles (models/memory/timing.py)")
    if read_only_delay(gpu) < 1 <= slice_delay(gpu):
        most = slice_delay(gpu) - 1
        errors.append(f"l2.read_only_lead = {l2.read_only_lead}: at most {most} (models/memory/timing.py)")
    return errors
