"""The schema of a trace's JSON files (``docs/traces.md``), and the kernel's code as a table of columns."""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass, field
from enum import IntEnum
from pathlib import Path
from typing import Annotated, Any, Literal

import numpy as np
from annotated_types import Ge, Le, Predicate

from lockstep.models.execution import isa
from lockstep.models.execution.isa import INSTRUCTION, LANES, MAX_REGISTERS, PT, RZ, Category, Control, Flag, Group
from lockstep.sim.errors import UsageError
from lockstep.sim.schema import Count, Name, parse

__all__ = ["FORMAT", "VERSION", "Kernel", "Launch", "Manifest", "Mark", "check_code", "code_of", "columns_of", "read"]

FORMAT, VERSION = "lockstep-trace", 1
MOST_TEXT = 1 << 26  # bytes of a JSON file
MOST_INSTRUCTIONS = 1 << 20
MOST_WARPS = 1 << 24
RULE = "it must be what `lockstep trace` writes"


def _plain(name: str) -> bool:
    """Whether a name is that of a file in the trace's own folder."""
    return name not in ("", ".", "..") and not set(name) & {"/", "\\", "\0"} and not name.startswith(".")


File = Annotated[Name, Predicate(_plain)]
Digest = Annotated[str, Predicate(lambda text: len(text) == 64 and set(text) <= set("0123456789abcdef"))]
Extent = tuple[Annotated[int, Ge(1), Le(2**31 - 1)], Annotated[int, Ge(1), Le(65535)], Annotated[int, Ge(1), Le(65535)]]
Small = Annotated[int, Ge(0), Le(2**31 - 1)]
Integer = Annotated[int, Ge(-(2**63)), Le(2**64 - 1)]
Column = list[Integer] | list[list[Integer]]


@dataclass
class Mark:
    """An instruction by whose values the path of warps depended on the timing of the recorded run."""

    pc: Small
    line: Small  # of the PTX
    why: Name


@dataclass
class Launch:
    """A launch of a kernel, and the file of its warps."""

    kernel: File
    warps: File
    grid: Extent
    block: Extent
    dynamic_bytes: Small  # of the scratchpad, beside the kernel's
    instructions: Count  # of warps
    accesses: Count
    bytes: Count  # of the file of warps ...
    digest: Digest  # ... and its SHA-256
    marks: list[Mark] = field(default_factory=list)

    @property
    def warps_per_cta(self) -> int:
        return -(-self.block[0] * self.block[1] * self.block[2] // LANES)

    @property
    def ctas(self) -> int:
        return self.grid[0] * self.grid[1] * self.grid[2]

    def __post_init__(self) -> None:
        if self.ctas * self.warps_per_cta > MOST_WARPS:
            raise ValueError(f"grid: has more than {MOST_WARPS} warps")
        if self.warps_per_cta > 64:
            raise ValueError("block: has more than 2048 threads")


@dataclass
class Manifest:
    """``trace.json``."""

    format: Literal["lockstep-trace"]
    version: int
    origin: Literal["lockstep", "accel-sim"]
    finished: bool
    provenance: dict[Name, Any]
    launches: list[Launch]


@dataclass
class Source:
    """What the compiler made the kernel of, so that passes can work on it."""

    file: File
    entry: Name
    registers: Small  # that a thread may have
    compiler: dict[Name, int]
    digest: Digest


@dataclass
class Kernel:
    """``kernel-N.json``: the kernel's trace."""

    name: Name
    registers: Annotated[int, Ge(1), Le(MAX_REGISTERS)]
    shared_bytes: Small
    local_bytes: Small
    param_bytes: Annotated[int, Ge(0), Le(isa.PARAM_BYTES)]
    branch_table: list[Small]
    code: dict[Name, Column]
    text: list[Name]  # what each instruction does, for people
    source: Source | None = None
    costs: dict[Name, Name] = field(default_factory=dict)  # of categories that descriptions lack


def columns_of(code: np.ndarray) -> dict[str, list[Any]]:
    """A kernel's instructions as columns, by the names of ``models.execution.isa.INSTRUCTION``."""
    names = [name for name in INSTRUCTION.names or () if not name.startswith("pad")]
    return {name: code[name].tolist() for name in names}


def code_of(kernel: Kernel, place: str) -> np.ndarray:
    """The instructions of a kernel's trace, checked. Raises :class:`UsageError`."""
    wanted = columns_of(np.zeros(0, INSTRUCTION))
    if kernel.code.keys() != wanted.keys():
        other = sorted(kernel.code.keys() ^ wanted.keys())[0]
        raise UsageError(f"{place}: code: {other!r}: is {'missing' if other in wanted else 'no column'}")
    length = len(kernel.code["op"])
    if not 1 <= length <= MOST_INSTRUCTIONS or len(kernel.text) != length:
        raise UsageError(f"{place}: code: has {length} instructions and {len(kernel.text)} texts")
    code = np.zeros(length, INSTRUCTION)
    for name, column in kernel.code.items():
        kind = INSTRUCTION[name]
        try:
            values = np.array(column, object).reshape(length, *kind.shape)
            low, high = np.iinfo(kind.base).min, np.iinfo(kind.base).max
            if not all(type(each) is int and low <= each <= high for each in values.flat):
                raise ValueError
            code[name] = values.astype(kind.base)
        except (ValueError, TypeError):
            raise UsageError(f"{place}: code.{name}: must have {length} numbers that fit {kind.base}") from None
    check_code(code, kernel, place)
    return code


OPERATIONS: dict[int, type[IntEnum]] = {
    Group.CONTROL: Control, Group.INT: isa.Int, Group.LONG: isa.Long, Group.FLOAT: isa.Float,
    Group.DOUBLE: isa.Double, Group.CONVERT: isa.Convert, Group.PREDICATE: isa.Predicate, Group.MEMORY: isa.Memory,
    Group.ATOMIC: isa.Atomic, Group.TEXTURE: isa.Texture, Group.WARP: isa.Warp, Group.PACKED: isa.Packed,
    Group.SYSTEM: isa.System,
}  # fmt: skip


def check_code(code: np.ndarray, kernel: Kernel, place: str) -> None:
    """Refuse instructions that compiled code could not have: it trusts its numbers. Raises :class:`UsageError`."""

    def need(good: Any, what: str) -> None:
        if not good.all():
            raise UsageError(f"{place}: code: instruction {int(np.argmin(good))}: {what}")

    length, count = len(code), kernel.registers
    operations = np.zeros(256, np.int64)
    for group, kind in OPERATIONS.items():
        operations[group] = len(kind)
    need(code["op"] < operations[code["group"]], "no such operation")
    need(code["category"] < len(Category), "no such category")
    need(code["space"] < len(isa.Space), "no such space")
    for name in ("guard", "psrc", "psrc2", "pdst", "pdst2"):
        need(code[name] <= PT, "no such predicate")
    for name in ("dst", "src", "v", "read"):
        registers = code[name].reshape(length, -1)
        need(((registers < count) | (registers == RZ)).all(axis=1), f"a register that the kernel has not ({name})")
    pairs = code["bytes"] == 8
    wide = code["v"].astype(np.int64)
    need(~pairs | ((wide + 1 < count) | (wide == RZ)).all(axis=1), "half of a register pair that the kernel has not")
    wide_data = code["data"] == 8
    need(
        ~wide_data | ((wide + 1 < count) | (wide == RZ)).all(axis=1), "half of a register pair that the kernel has not"
    )
    for name in ("need", "writes"):
        bits = np.unpackbits(code[name].astype("<u8").view(np.uint8), bitorder="little").reshape(length, 256)
        need(~bits[:, count:].any(axis=1), f"a register that the kernel has not ({name})")
    for name in ("target", "reconverge"):
        need((code[name] >= 0) & (code[name] <= length), "a target beyond the kernel")
    control = code["group"] == Group.CONTROL
    branches = control & (code["op"] == Control.BRANCH)
    need(~branches | (code["target"] < length), "a target beyond the kernel")
    indexed = control & (code["op"] == Control.INDEXED)
    entries, first = code["imm"][:, 3], code["target"].astype(np.int64)
    table = len(kernel.branch_table)
    need(~indexed | ((entries >= 0) & (entries <= table) & (first + entries <= table)), "a table beyond the kernel's")
    need(~indexed | (code["kind"][:, 0] == isa.Kind.REGISTER), "an indexed branch without an index")
    need(~indexed | (code["src"][:, 0] < count), "an indexed branch without an index")
    need(code["kind"].max(axis=1) <= max(isa.Kind), "no such kind of source")
    sources = (code["kind"] == isa.Kind.REGISTER) & (code["src"] == RZ)
    need(~(control & sources.any(axis=1)), "a control instruction that reads no register")
    need(code["reads"] <= code["read"].shape[1], "too many registers read")
    access = np.isin(code["group"], (Group.MEMORY, Group.ATOMIC, Group.TEXTURE))
    need(~access | np.isin(code["bytes"], (1, 2, 4, 8, 16)), "an access of no width")
    need(~access | np.isin(code["vec"], (1, 2, 4, 8)), "an access of no elements")
    size = code["bytes"].astype(np.int64) * code["vec"]
    need(~access | (size <= 16) | (code["space"] == isa.Space.PARAM), "an access of more than 16 bytes")
    need((code["flags"] >= 0) & (code["flags"] < 2 * max(Flag)), "no such flag")
    constant = code["flags"] & Flag.CONSTANT != 0
    need(~constant | ((code["offset"] >= 0) & (code["offset"] < isa.LOCAL_PHYSICAL)), "a constant that lies nowhere")
    if not all(0 <= each < length for each in kernel.branch_table):
        raise UsageError(f"{place}: branch_table: has a target beyond the kernel")
    last = code[-1]
    ends = last["group"] == Group.CONTROL and last["op"] in (
        Control.EXIT,
        Control.BRANCH,
        Control.TRAP,
        Control.INDEXED,
    )
    if not ends:
        raise UsageError(f"{place}: code: its end can be passed")


def digest(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def text(value: Any) -> str:
    """A dataclass of the schema as JSON."""
    from pydantic import TypeAdapter

    return json.dumps(TypeAdapter(type(value)).dump_python(value, mode="json"), separators=(",", ":"))


def contents(path: Path, most: int = MOST_TEXT) -> bytes:
    """What is in a file. Raises :class:`UsageError` if that is more than it may be, or no file of its own."""
    try:
        if path.is_symlink() or not path.is_file():
            raise UsageError(f"{path}: must be a file")
        if path.stat().st_size > most:
            raise UsageError(f"{path}: has more than {most} bytes")
        return path.read_bytes()
    except OSError as error:
        raise UsageError(f"{path}: {error.strerror}") from None


def read(schema: Any, path: Path) -> Any:
    """What a JSON file of a trace describes. Raises :class:`UsageError`."""
    return parse(schema, contents(path), str(path), RULE)


@dataclass
class Versioned:
    """What every version has: other keys are not looked at."""

    format: Literal["lockstep-trace"]
    version: int


def read_manifest(folder: Path) -> Manifest:
    """A trace's ``trace.json``. Raises :class:`UsageError`, also for a version that this Lockstep does not read."""
    path = folder / "trace.json"
    version: int = read(Versioned, path).version
    if version != VERSION:
        raise UsageError(f"{path}: version {version}: this Lockstep reads version {VERSION}; record the trace again")
    manifest: Manifest = read(Manifest, path)
    return manifest
