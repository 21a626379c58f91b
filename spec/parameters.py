"""Every parameter of a modelled GPU: its meaning, unit, allowed range and the checks across parameters.

These classes are the frame's; mechanisms have their own of the same kind (``Mechanism.sections``). A GPU description
(``sim/gpus/*.toml``) fills them, ``--set section.key=value`` changes them, the compiled model reads the frame's as one
record (:data:`CONFIG`), and the RTL's constructors take the same values. Free of Numba and Amaranth. Latencies are
unloaded totals: from the cycle in which an instruction issues to the first in which a dependent one can issue, in core
cycles.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from typing import Any

import numpy as np

LANES = 32

# The most that the records are sized for; a description that exceeds one is refused.
MAX_THREADS = 64  # of the host, for one run
MAX_SMS = 128
MAX_WARPS = 64  # per SM
TICKETS = 16  # memory instructions in flight per warp
MAX_MAPS = 32  # thread-map entries
MAX_CTAS = 32  # per SM
MAX_GRIDS = 2  # that run at once
MAX_SCHEDULERS = 4
MAX_PATIENCE = 4095  # grants to higher classes
MAX_COLLECTORS = 32
MAX_REGISTER_BANKS = 32
MAX_L1_LINES = 2048
MAX_MSHRS = 256
MAX_MERGES = 64
MAX_READ_LINES = 512  # of an SM's instruction cache, and of its constant cache
MAX_TEXTURE_LINES = 512  # per SM
MAX_READ_MSHRS = 8
MAX_L2_SLICES = 64
MAX_CHANNELS = 32
MAX_DRAM_BANKS = 32
MAX_DRAM_QUEUE = 256
MAX_VIRTUAL_CHANNELS = 8  # of an input of a router
MAX_INPUT_SPEEDUP = 4

CATEGORIES = (
    "integer", "float", "double", "special", "special_double", "logical", "control", "synchronization", "compare",
    "conversion", "miscellaneous", "video", "multiply", "shift", "divide_integer", "divide", "divide_double",
    "shared", "global", "local", "const", "param", "atomic", "texture",
)  # fmt: skip
"""Instruction categories, in the order of ``models.execution.isa.Category``, after table 4-1 of Chen's thesis.

Of its integer and logical instructions *multiply* has multiplications, multiply-adds and sad, *shift* has shifts, bit
fields and bit counts. What *divide* and its neighbours have, GPUs do in software: integer quotients and remainders, and
f32 and f64 quotients, reciprocals and square roots that are correctly rounded.
"""

PIPES = ("alu", "sfu", "dp", "lsu")
SCHEDULERS = ("lrr", "greedy-rr", "gto", "oldest", "two-level", "simple-p", "region-p")
DISPATCHERS = ("round-robin", "load-balanced")
PLACEMENTS = ("shared", "spatial", "temporal")
READ_MODES = ("perfect", "finite")
TEXTURE_MODES = ("l1", "own")
IN_L1, OWN = range(len(TEXTURE_MODES))
L1_VALUES = ("memory", "lines")
COALESCINGS = ("warp", "half-warp")
WARP, HALF_WARP = range(len(COALESCINGS))
BROADCASTS = ("all", "one")
ALL_WORDS, ONE_WORD = range(len(BROADCASTS))
L1_INDEXES = ("linear", "fold", "fermi")
LINEAR, FOLD, FERMI = range(len(L1_INDEXES))


def integer(default: int, low: int, high: int, unit: str, doc: str) -> Any:
    return field(default=default, metadata=dict(low=low, high=high, unit=unit, doc=doc))


def choice(default: str, allowed: tuple[str, ...], doc: str) -> Any:
    return field(default=default, metadata=dict(allowed=allowed, unit="", doc=doc))


@dataclass(frozen=True, kw_only=True)
class Clocks:
    """Frequencies; only their ratios matter to the model, in exact integer arithmetic."""

    core: int = integer(1400, 1, 10_000, "MHz", "SMs and L1s")
    interconnect: int = integer(1400, 1, 10_000, "MHz", "crossbars or mesh")
    l2: int = integer(700, 1, 10_000, "MHz", "L2 slices")
    dram: int = integer(924, 1, 10_000, "MHz", "DRAM commands; data moves on both edges")


@dataclass(frozen=True, kw_only=True)
class Core:
    """One SM."""

    sms: int = integer(15, 1, MAX_SMS, "SMs", "streaming multiprocessors")
    warps: int = integer(48, 1, MAX_WARPS, "warps", "resident warps per SM")
    threads: int = integer(1536, 32, MAX_WARPS * 32, "threads", "resident threads per SM")
    ctas: int = integer(8, 1, MAX_CTAS, "CTAs", "resident CTAs per SM")
    threads_per_cta: int = integer(1024, 32, 2048, "threads", "largest CTA")
    registers: int = integer(32768, 1024, 1 << 18, "registers", "32-bit registers per SM")
    registers_per_thread: int = integer(63, 16, 255, "registers", "limit per thread; above it values spill")
    register_unit: int = integer(64, 32, 4096, "registers", "allocation granularity per warp")
    register_banks: int = integer(16, 1, MAX_REGISTER_BANKS, "banks", "single-ported register-file banks")
    collectors_alu: int = integer(6, 1, MAX_COLLECTORS, "units", "operand collectors, of all pipelines of the kind alu")
    collectors_sfu: int = integer(8, 1, MAX_COLLECTORS, "units", "operand collectors of sfu")
    collectors_dp: int = integer(8, 1, MAX_COLLECTORS, "units", "operand collectors of dp")
    collectors_lsu: int = integer(2, 1, MAX_COLLECTORS, "units", "operand collectors of lsu")
    write_refusals: int = integer(
        0, 0, 15, "of 16 core cycles", "in which the register file takes no results of memory instructions"
    )
    schedulers: int = integer(2, 1, MAX_SCHEDULERS, "schedulers", "warp w belongs to scheduler w mod schedulers")
    scheduler: str = choice("gto", SCHEDULERS, "warp scheduling policy")
    active_warps: int = integer(8, 1, MAX_WARPS, "warps", "two-level scheduler: active set per scheduler")
    patience: int = integer(
        1024, 0, MAX_PATIENCE, "grants", "to higher classes of warps, after which a ready warp is next; 0: no limit"
    )
    issue_interval: int = integer(1, 1, 16, "core cycles", "cycles from one issue of a scheduler to its next")
    scheduler_overhead: int = integer(
        1, 1, 16, "core cycles", "cycles from one search of a scheduler for an instruction to the next, found or not"
    )
    region_warps: int = integer(
        0, 0, MAX_WARPS, "warps", "region-p: warps that the compiler expects on an SM; 0: as many as it holds"
    )
    fetch_width: int = integer(2, 1, 4, "instructions", "instructions that one fetch brings for one warp")
    fetch_latency: int = integer(2, 1, 64, "core cycles", "fetch to instruction buffer, if the instruction cache hits")
    fetches: int = integer(2, 1, 4, "warps", "warps fetched for per cycle")
    instruction_buffer: int = integer(4, 1, 16, "instructions", "buffer per warp")
    reconvergence_stack: int = integer(64, 4, 64, "entries", "per warp")
    coalescing: str = choice(
        "warp", COALESCINGS, "whose lanes share a request: those of a warp, or of each half of it, by segments"
    )


@dataclass(frozen=True, kw_only=True)
class Pipeline:
    """One instruction category."""

    pipe: str = choice("alu", PIPES, "the pipeline it uses")
    latency: int = integer(18, 4, 4096, "core cycles", "issue to dependent issue")
    interval: int = integer(1, 1, 256, "core cycles", "initiation interval of the pipeline")


@dataclass(frozen=True, kw_only=True)
class Pipes:
    """How many pipelines of a kind an SM has; schedulers share them, the first free one takes the instruction.

    There is one load/store unit.
    """

    alu: int = integer(2, 1, 4, "pipelines", "integer and f32")
    sfu: int = integer(1, 1, 4, "pipelines", "special functions")
    dp: int = integer(1, 1, 4, "pipelines", "f64")


@dataclass(frozen=True, kw_only=True)
class Scratchpad:
    bytes: int = integer(49152, 1024, 1 << 20, "bytes", "per SM")
    bytes_per_cta: int = integer(49152, 1024, 1 << 20, "bytes", "largest allocation of a CTA")
    unit: int = integer(128, 1, 4096, "bytes", "allocation granularity")
    banks: int = integer(32, 1, 32, "banks", "a conflict serialises")
    bank_bytes: int = integer(4, 4, 8, "bytes", "width of a bank")
    broadcasts: str = choice("all", BROADCASTS, "words that go to several lanes in one cycle")


@dataclass(frozen=True, kw_only=True)
class L1:
    """The L1 data cache; write-through, no allocate, a hit line is evicted; write-back for local memory."""

    sets: int = integer(64, 1, MAX_L1_LINES, "sets", "power of two")
    index: str = choice("fermi", L1_INDEXES, "how a line's number chooses its set")
    ways: int = integer(4, 1, 64, "ways", "LRU")
    line_bytes: int = integer(128, 32, 128, "bytes", "line, for every level")
    mshrs: int = integer(32, 1, MAX_MSHRS, "MSHRs", "lines in flight")
    merges: int = integer(8, 1, MAX_MERGES, "requests", "requests that one MSHR serves")
    latency: int = integer(30, 8, 4096, "core cycles", "hit: issue of the load to dependent issue")
    queue: int = integer(8, 1, 64, "requests", "between the L1 and the crossbar")
    data: int = integer(1, 0, 1, "", "0: global loads bypass the L1")
    values: str = choice(
        "memory", L1_VALUES, "what a load gets: what memory has at its issue, or what its line has, which may be stale"
    )


@dataclass(frozen=True, kw_only=True)
class ReadCache:
    """A read-only cache of an SM, whose misses go to the L2."""

    mode: str = choice("finite", READ_MODES, "perfect: always hits")
    sets: int = integer(4, 1, MAX_READ_LINES, "sets", "power of two")
    ways: int = integer(4, 1, 64, "ways", "LRU")
    line_bytes: int = integer(128, 16, 128, "bytes", "line, a power of two; at most l1.line_bytes")
    mshrs: int = integer(2, 1, MAX_READ_MSHRS, "MSHRs", "lines in flight")


@dataclass(frozen=True, kw_only=True)
class InstructionCache(ReadCache):
    """Instructions; a hit takes ``core.fetch_latency``."""

    prefetch: int = integer(0, 0, MAX_READ_MSHRS - 1, "lines", "asked for behind one that misses, while MSHRs are free")
    instruction_bytes: int = integer(8, 4, 16, "bytes", "of an instruction")


@dataclass(frozen=True, kw_only=True)
class ConstantCache(ReadCache):
    """Constants and kernel parameters; a hit takes ``pipelines.const.latency``, or ``pipelines.param.latency``."""

    width: int = integer(1, 1, 128, "bytes", "lanes in such a block take one cycle together; 1: each address takes one")
    kept: int = integer(0, 0, 1, "", "1: lines stay from one launch to the next")


@dataclass(frozen=True, kw_only=True)
class TextureCache:
    """Where texture fetches look their lines up: beside the L1, with its lines, its port and its MSHRs.

    A description without this section has textures in the L1.
    """

    mode: str = choice("l1", TEXTURE_MODES, "own: texture fetches have sets of their own, which no store changes")
    sets: int = integer(32, 1, MAX_TEXTURE_LINES, "sets", "power of two")
    ways: int = integer(3, 1, 64, "ways", "LRU")


@dataclass(frozen=True, kw_only=True)
class Crossbar:
    """One crossbar per direction: SMs to L2 slices and back."""

    flit_bytes: int = integer(32, 4, 256, "bytes", "width of a port: one flit per interconnect cycle")
    latency: int = integer(8, 1, 1024, "core cycles", "port to port, beside the flits' own time")
    buffers: int = integer(8, 1, 64, "packets", "input buffer of a slice and of an SM")
    header_bytes: int = integer(8, 0, 64, "bytes", "address and command of a packet")
    concentration: int = integer(1, 1, 8, "SMs", "SMs that share one crossbar port")


@dataclass(frozen=True, kw_only=True)
class Mesh:
    """A 2-D mesh per direction in place of the crossbars; of these, all keys hold but ``crossbar.latency``.

    A description without this section has crossbars.
    """

    columns: int = integer(0, 0, 32, "nodes", "in a row; 0: the GPU has crossbars")
    rows: int = integer(0, 0, 32, "nodes", "in a column")
    virtual_channels: int = integer(4, 1, MAX_VIRTUAL_CHANNELS, "virtual channels", "of an input of a router")
    buffers: int = integer(4, 1, 64, "flits", "of a virtual channel")
    routing_delay: int = integer(2, 1, 64, "interconnect cycles", "of a flit in a router")
    channel_latency: int = integer(2, 1, 64, "interconnect cycles", "of a flit, and of a free buffer on its way back")
    input_speedup: int = integer(2, 1, MAX_INPUT_SPEEDUP, "flits", "from one input of a router per interconnect cycle")


@dataclass(frozen=True, kw_only=True)
class L2:
    """The slices together; write-back, write-allocate. A slice serves one request per L2 cycle."""

    slices: int = integer(12, 1, MAX_L2_SLICES, "slices", "a multiple of the DRAM channels")
    sets: int = integer(64, 1, 65536, "sets", "per slice, a power of two")
    ways: int = integer(8, 1, 64, "ways", "LRU")
    mshrs: int = integer(32, 1, MAX_MSHRS, "MSHRs", "per slice")
    merges: int = integer(8, 1, MAX_MERGES, "requests", "requests that one MSHR serves")
    latency: int = integer(120, 16, 4096, "core cycles", "hit: issue of the load to dependent issue")
    read_only_lead: int = integer(0, 0, 4096, "core cycles", "a line of an instruction or constant cache comes sooner")
    atomics: int = integer(1, 1, 32, "L2 cycles", "per atomic operation on one address")
    acknowledges: int = integer(0, 0, 1, "", "1: a slice answers each write with a packet that is a header")
    sector_bytes: int = integer(128, 32, 128, "bytes", "what is fetched and written back by itself; at most the line")
    data: int = integer(1, 0, 1, "", "0: global and local memory has no cache; each of its requests goes to DRAM")


@dataclass(frozen=True, kw_only=True)
class Dram:
    """Channels with banks, open rows and FR-FCFS. Timings in DRAM command cycles."""

    channels: int = integer(6, 1, MAX_CHANNELS, "channels", "each with banks and a bus of its own")
    banks: int = integer(8, 1, MAX_DRAM_BANKS, "banks", "per channel")
    row_bytes: int = integer(2048, 256, 16384, "bytes", "row buffer of one bank, a power of two")
    bus_bytes: int = integer(8, 1, 256, "bytes", "data bus of a channel, per half cycle")
    queue: int = integer(32, 1, MAX_DRAM_QUEUE, "requests", "per channel, searched by FR-FCFS")
    interleave: int = integer(256, 64, 8192, "bytes", "consecutive bytes on one channel, a power of two")
    latency: int = integer(460, 32, 8192, "core cycles", "read of a closed row: load issue to dependent issue")
    tCL: int = integer(12, 1, 255, "DRAM cycles", "read command to first data")
    tWL: int = integer(4, 1, 255, "DRAM cycles", "write command to first data")
    tRP: int = integer(12, 1, 255, "DRAM cycles", "precharge to activate")
    tRC: int = integer(40, 1, 255, "DRAM cycles", "activate to activate, same bank")
    tRAS: int = integer(28, 1, 255, "DRAM cycles", "activate to precharge")
    tRCD: int = integer(12, 1, 255, "DRAM cycles", "activate to column command")
    tRRD: int = integer(6, 1, 255, "DRAM cycles", "activate to activate, different banks")
    tCCD: int = integer(2, 1, 255, "DRAM cycles", "column command to column command, and the shortest burst")
    tCDLR: int = integer(5, 1, 255, "DRAM cycles", "last write data to read command")
    tWR: int = integer(12, 1, 255, "DRAM cycles", "last write data to precharge")


@dataclass(frozen=True, kw_only=True)
class Launch:
    overhead: int = integer(0, 0, 10_000_000, "core cycles", "from launch to the first CTA")
    dispatcher: str = choice("round-robin", DISPATCHERS, "CTA placement")
    dispatch_interval: int = integer(1, 1, 1024, "core cycles", "between two CTA dispatches")
    placement: str = choice("shared", PLACEMENTS, "of two grids at once: in the same SMs, each in its own, or in turns")
    first_sms: int = integer(0, 0, MAX_SMS, "SMs", "spatial placement: those of the first grid; 0: half, rounded up")
    slice: int = integer(200_000, 1000, 1 << 40, "core cycles", "temporal placement: a turn, once its CTAs are there")
    no_progress: int = integer(5_000_000, 1000, 1 << 40, "core cycles", "all warps only repeat themselves: stop")
    max_grid: int = integer(65535, 1, 2**31 - 1, "CTAs", "grid limit in y and z; x may have 2^31 - 1")


@dataclass(frozen=True, kw_only=True)
class Compiler:
    """What the GPU's assembler makes of PTX; as it stands, PTX is simulated as it is."""

    addresses: int = integer(64, 32, 64, "bits", "32: of a value that is only used as an address, half is dropped")
    constant_operands: int = integer(
        0, 0, 1, "operands", "of an arithmetic instruction, that can be kernel parameters or other constants"
    )
    address_offsets: int = integer(0, 0, 1, "", "1: constants in an address are the offset of the memory instruction")
    multiply_adds: int = integer(0, 0, 1, "", "1: a product or left shift and the sum with it are one instruction")
    predication: int = integer(0, 0, 1, "", "1: a branch over few instructions becomes a predicate of theirs")
    rematerialization: int = integer(0, 0, 1, "", "1: constants are made again, if that saves registers")
    scheduling: int = integer(0, 0, 1, "", "1: in a block, loads come early, with registers that cost no warp")


@dataclass(frozen=True, kw_only=True)
class Gpu:
    """A whole description, and the selected mechanisms with the frame slots that they take.

    ``pipelines`` maps every category to its pipeline; ``sections`` has the parameters of all mechanisms, selected or
    not, by section.
    """

    name: str
    source: str
    compute_capability: str
    clocks: Clocks
    core: Core
    pipes: Pipes
    pipelines: dict[str, Pipeline]
    scratchpad: Scratchpad
    l1: L1
    instruction_cache: InstructionCache
    constant_cache: ConstantCache
    texture_cache: TextureCache
    crossbar: Crossbar
    mesh: Mesh
    l2: L2
    dram: Dram
    launch: Launch
    compiler: Compiler
    sections: Mapping[str, Any] = field(default_factory=dict)
    mechanisms: tuple[str, ...] = ()
    frame_slots: frozenset[str] = frozenset()


SECTIONS: dict[str, type] = dict(
    clocks=Clocks, core=Core, pipes=Pipes, scratchpad=Scratchpad, l1=L1,
    instruction_cache=InstructionCache, constant_cache=ConstantCache, texture_cache=TextureCache, crossbar=Crossbar,
    mesh=Mesh, l2=L2, dram=Dram, launch=Launch, compiler=Compiler,
)  # fmt: skip
"""The sections of the frame, which every description has, but for those in :data:`OPTIONAL`."""

OPTIONAL = ("texture_cache", "mesh", "compiler")
OPTIONAL_KEYS = ("core.coalescing", "scratchpad.broadcasts", "l1.values", "l2.data")
"""Parameters that a description may leave out, though it has the others of their sections."""


def layout(section: type) -> np.dtype:
    """The record of a section's values for compiled code. Choices are indices."""
    return np.dtype([(f.name, "i8") for f in fields(section)], align=True)


def fill(target: np.ndarray, values: Any) -> None:
    """Write the values of a section into records of its layout."""
    for f in fields(values):
        value = getattr(values, f.name)
        target[f.name] = f.metadata["allowed"].index(value) if isinstance(value, str) else value


CONFIG = np.dtype(
    [(name, layout(section)) for name, section in SECTIONS.items()]
    + [("pipelines", layout(Pipeline), (len(CATEGORIES),))],
    align=True,
)
"""The frame's values for compiled code: ``config.l1.mshrs``, ``config.pipelines[category].latency``."""


def config(gpu: Gpu) -> np.ndarray:
    """A one-element :data:`CONFIG` array."""
    result = np.zeros(1, CONFIG)
    for name in SECTIONS:
        fill(result[name], getattr(gpu, name))
    for index, category in enumerate(CATEGORIES):
        fill(result["pipelines"][:, index], gpu.pipelines[category])
    return result


def check(gpu: Gpu) -> list[str]:
    """What contradicts itself in an SM's parameters: one line per error. ``memory.timing.check`` has the memory's."""
    core, scratchpad = gpu.core, gpu.scratchpad
    errors = []
    for name, value, limit_name, limit in (
        ("core.threads", core.threads, "32 * core.warps", 32 * core.warps),
        ("core.threads_per_cta", core.threads_per_cta, "core.threads", core.threads),
        ("core.active_warps", core.active_warps, "core.warps", core.warps),
        ("core.schedulers", core.schedulers, "core.warps", core.warps),
        ("core.registers_per_thread", core.registers_per_thread, "core.registers / 32", core.registers // LANES),
        ("core.fetch_width", core.fetch_width, "core.instruction_buffer", core.instruction_buffer),
        ("core.register_unit", core.register_unit, "core.registers", core.registers),
        ("scratchpad.bytes_per_cta", scratchpad.bytes_per_cta, "scratchpad.bytes", scratchpad.bytes),
    ):
        if value > limit:
            errors.append(f"{name} = {value}: must not exceed {limit_name} = {limit}")
    if gpu.launch.first_sms >= core.sms > 1:
        errors.append(f"launch.first_sms = {gpu.launch.first_sms}: must be less than core.sms = {core.sms}")
    if gpu.launch.placement == "temporal" and "context" not in gpu.frame_slots:
        errors.append('launch.placement = "temporal": no mechanism moves CTAs out of an SM; select preemption')
    for name, cache in (("instruction_cache", gpu.instruction_cache), ("constant_cache", gpu.constant_cache)):
        for key in ("sets", "line_bytes"):
            if (value := getattr(cache, key)) & (value - 1):
                errors.append(f"{name}.{key} = {value}: must be a power of two")
        if cache.sets * cache.ways > MAX_READ_LINES:
            errors.append(f"{name}.sets * {name}.ways = {cache.sets * cache.ways}: at most {MAX_READ_LINES} lines")
        if cache.line_bytes > gpu.l1.line_bytes:
            of_l1 = f"l1.line_bytes = {gpu.l1.line_bytes}"
            errors.append(f"{name}.line_bytes = {cache.line_bytes}: must not exceed {of_l1}")
    textures = gpu.texture_cache
    if textures.sets * textures.ways > MAX_TEXTURE_LINES:
        lines = textures.sets * textures.ways
        errors.append(f"texture_cache.sets * texture_cache.ways = {lines}: at most {MAX_TEXTURE_LINES} lines")
    for name, value in (
        ("texture_cache.sets", textures.sets),
        ("scratchpad.banks", scratchpad.banks),
        ("scratchpad.bank_bytes", scratchpad.bank_bytes),
        ("constant_cache.width", gpu.constant_cache.width),
        ("instruction_cache.instruction_bytes", gpu.instruction_cache.instruction_bytes),
    ):
        if value & (value - 1):
            errors.append(f"{name} = {value}: must be a power of two")
    if gpu.compiler.addresses not in (32, 64):
        errors.append(f"compiler.addresses = {gpu.compiler.addresses}: must be 32 or 64")
    if gpu.l1.data > gpu.l2.data:
        errors.append("l2.data = 0: nothing caches global memory then, so l1.data must be 0, too")
    for category, pipeline in gpu.pipelines.items():
        memory = CATEGORIES.index(category) >= CATEGORIES.index("shared")
        if (pipeline.pipe == "lsu") != memory:
            rule = "memory instructions use lsu" if memory else "lsu is for memory instructions"
            errors.append(f'pipelines.{category}.pipe = "{pipeline.pipe}": {rule}')
    return errors
