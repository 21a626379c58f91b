"""The parameters of RegLess's hardware, what its blocks call things, and their constructor arguments."""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum

from lockstep.spec.mechanism import Parameters
from lockstep.spec.parameters import LANES, MAX_SCHEDULERS, MAX_WARPS, Gpu, choice, integer
from lockstep.spec.register_regions import BANKS

POISON = 0xDEAD_BEEF
"""Of a register that nobody has written."""

STATE_BITS, VALUE_BITS = 3, 64  # of a compressed register (section 4.5.3)
MAX_REGISTERS = 256  # of a warp
MAX_LINES = 16  # compressed lines that a shard keeps
MAX_LOOSE = 3  # fetches of compressed registers that take no place and are not answered


def per_line(line_bytes: int) -> int:
    """Compressed registers in a line, which has room for their states."""
    return 8 * line_bytes // (STATE_BITS + VALUE_BITS)


def groups(warps: int, registers: int, per_line: int) -> int:
    """Compressed lines of all registers of a shard."""
    return -(-warps * registers // per_line)


PER_LINE = per_line(128)
SMALLEST_LINE = 64  # of the L1; a register needs two then
LINES_OF_SM = MAX_REGISTERS * MAX_WARPS + max(
    shards * groups(-(-MAX_WARPS // shards), MAX_REGISTERS, per_line(SMALLEST_LINE))
    for shards in range(1, MAX_SCHEDULERS + 1)
)
"""Of registers and, behind them, of compressed registers, which lie in the memory hierarchy."""

MAX_BANK_LINES = 256  # of a staging unit: an SM's with one scheduler

WORDS, MAX_WORDS = 8, 16  # metadata words of a warp that are stored
MAX_PATIENCE = 255  # starts from the top of a stack, before one from the bottom

LEAVES = ("in-turn", "first-released")
IN_TURN, FIRST_RELEASED = range(len(LEAVES))
COMPRESSED_BY = ("number", "warp")
BY_NUMBER, BY_WARP = range(len(COMPRESSED_BY))

METADATA = "regless.region_metadata"
COMPRESSOR = "regless.register_compressor"
STAGING = "regless.operand_staging_unit"
MANAGER = "regless.capacity_manager"
ARBITER = "regless.shard_arbiter"
SHARD = "regless.regless_shard"
BLOCKS = METADATA, MANAGER, STAGING, COMPRESSOR, ARBITER


class State(IntEnum):
    """Where the copy of a register below the staging unit is. From ``CONSTANT`` on, in a compressed line."""

    NONE = 0
    RAW = 1  # in a line of its own
    CONSTANT = 2  # all lanes alike
    STRIDE_1 = 3  # one more in each lane
    STRIDE_4 = 4
    HALF_1 = 5  # likewise, in each half of the warp
    HALF_4 = 6


class Request(IntEnum):
    """From the staging unit to the compressor."""

    FETCH = 0
    FETCH_LAST = 1  # the copy is dropped
    STORE = 2
    DROP = 3
    FINISH = 4  # the warp has ended


class Access(IntEnum):
    """From the compressor to the L1: of a register's own line, or of a compressed one."""

    FETCH = 0
    FETCH_LAST = 1  # the line is invalid from then on
    STORE = 2
    DROP = 3
    FETCH_LINE = 4
    STORE_LINE = 5


@dataclass(frozen=True, kw_only=True)
class Regless:
    """Operand staging in place of the register file."""

    registers: int = integer(512, 128, 2048, "registers", "of a warp's width, that all staging units of an SM hold")
    compressor_lines: int = integer(
        12, 0, MAX_LINES, "lines", "of compressed registers that a shard keeps; 0: registers are stored as they are"
    )
    patience: int = integer(
        15, 0, MAX_PATIENCE, "starts",
        "from the top of a stack while warps are below, after which the warp at the bottom is next; 0: no limit",
    )  # fmt: skip
    leaves: str = choice("in-turn", LEAVES, "which line of a staging unit's list leaves before the others")
    compressed_by: str = choice(
        "number", COMPRESSED_BY, "registers in a compressed line: those next to each other by number, or by warp"
    )


def bank_lines(gpu: Gpu) -> int:
    """Lines of a bank of a shard's staging unit."""
    return int(gpu.sections["regless"].registers) // gpu.core.schedulers // BANKS


def check(gpu: Gpu) -> list[str]:
    """What contradicts itself: one line per error."""
    errors = []
    registers, banks = gpu.sections["regless"].registers, gpu.core.schedulers * BANKS
    if registers % banks:
        errors.append(f"regless.registers = {registers}: must be a multiple of {banks}, the banks of all schedulers")
    if gpu.l1.line_bytes < SMALLEST_LINE:
        errors.append(f"l1.line_bytes = {gpu.l1.line_bytes}: must be {SMALLEST_LINE} or {4 * LANES} with regless")
    return errors


def copies(gpu: Gpu) -> dict[str, int]:
    """How many of a block an SM has, where it is not one."""
    return dict.fromkeys((METADATA, MANAGER, STAGING, COMPRESSOR), gpu.core.schedulers)


def parts(
    *,
    lanes: int,
    warps: int,
    registers: int,
    banks: int,
    lines: int,
    words: int,
    patience: int,
    leaves: int,
    compressor_lines: int,
    per_line: int,
    compressed_by: int,
) -> Parameters:
    """Of the blocks that a ``regless_shard`` with these arguments joins, in the order in which registers pass them."""
    named = dict(warps=warps, registers=registers)
    return {
        METADATA: dict(**named, banks=banks, words=words),
        MANAGER: dict(**named, banks=banks, lines=lines, patience=patience),
        STAGING: dict(lanes=lanes, **named, banks=banks, lines=lines, leaves=leaves),
        COMPRESSOR: dict(lanes=lanes, **named, lines=compressor_lines, per_line=per_line, compressed_by=compressed_by),
    }


def shard(gpu: Gpu) -> dict[str, int]:
    """Constructor arguments of the unit that joins the blocks of a shard."""
    return dict(
        lanes=LANES,
        warps=-(-gpu.core.warps // gpu.core.schedulers),
        registers=gpu.core.registers_per_thread,
        banks=BANKS,
        lines=bank_lines(gpu),
        words=WORDS,
        patience=gpu.sections["regless"].patience,
        leaves=LEAVES.index(gpu.sections["regless"].leaves),
        compressor_lines=gpu.sections["regless"].compressor_lines,
        per_line=per_line(gpu.l1.line_bytes),
        compressed_by=COMPRESSED_BY.index(gpu.sections["regless"].compressed_by),
    )


def arguments(gpu: Gpu) -> Parameters:
    """Constructor arguments of the blocks."""
    joined = shard(gpu)
    shared = {name: joined[name] for name in ("lanes", "warps", "registers", "per_line")}
    return {**parts(**joined), ARBITER: dict(**shared, shards=gpu.core.schedulers)}
