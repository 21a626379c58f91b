"""From Accel-Sim's traces to Lockstep's: the code that was seen, and for each warp where it went and what it touched.

Warps of SASS follow no reconvergence stack, so a replay sends them where the trace says (``models.traces.replay``). The
trace names neither predicates nor uniform registers: the scoreboard does not follow them. Device addresses have 64 bits
there, and 32 here: pages of 2 MB get their places in the order in which they are first met. Words of local memory at
one address lie beside each other, a lane's each.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping
from pathlib import Path

import numpy as np

from lockstep.models.execution.isa import (
    GLOBAL_BASE,
    INSTRUCTION,
    LANES,
    LOCAL_PHYSICAL,
    MAX_REGISTERS,
    PT,
    RZ,
    Category,
    Control,
    Group,
    Memory,
    Space,
)
from lockstep.models.traces.record import LINE, STEP
from lockstep.sim.errors import UsageError
from lockstep.sim.traces import schema
from lockstep.sim.traces.sass.opcodes import COSTS, Meaning, architecture, meaning
from lockstep.sim.traces.sass.parse import Header, Instruction, Kernel, Warp, bits, kernel_files
from lockstep.sim.traces.write import Recording, WarpsFile

__all__ = ["imported"]

PAGE = 1 << 21
MOST_PAGES = (LOCAL_PHYSICAL - GLOBAL_BASE) // PAGE
MOST_LOCAL = 1 << 16  # bytes of a thread
MOST_SHARED = 1 << 18
INSTRUCTION_BYTES = 16
LOCAL_BYTES = 1 << 24  # that the tracer's local addresses can lie behind their base
BITS = re.compile(r"\.U?(8|16|32|64|128)(?:\.|$)")
TIMING_ONLY = "SASS, timing only"


class Pages:
    """Where pages of the recorded GPU's memory lie here."""

    def __init__(self) -> None:
        self._places: dict[int, int] = {}

    def place(self, address: int) -> int:
        page = address // PAGE
        if page not in self._places:
            if len(self._places) >= MOST_PAGES:
                raise UsageError(f"the kernels touch more than {MOST_PAGES} pages of 2 MB")
            self._places[page] = GLOBAL_BASE + len(self._places) * PAGE
        return self._places[page] + address % PAGE


def width(opcode: str) -> int:
    """Bytes of a lane's access, as the modifiers of an opcode say."""
    found = BITS.search(opcode)
    return int(found.group(1)) // 8 if found else 4


def imported(path: Path, folder: Path, unknown: str | None = None) -> Recording:
    """Make a trace of a ``kernelslist.g`` or a ``.traceg``. ``unknown``: the category of opcodes that are not known.

    Raises :class:`UsageError`, which counts them, if there are any and none is given.
    """
    kernels = [_surveyed(file) for file in kernel_files(path)]
    counts: Counter[str] = sum((_unknown(kernel, used) for kernel, used in kernels), Counter())
    if counts and unknown is None:
        listed = ", ".join(f"{name} ({count})" for name, count in counts.most_common(12))
        more = f" and {len(counts) - 12} more" if len(counts) > 12 else ""
        raise UsageError(
            f"{path}: unknown opcodes: {listed}{more}; --unknown integer takes them for integer arithmetic"
        )
    told = {"kernel": path.name, "source": str(path), "unknown": dict(counts.most_common(100))}
    recording = Recording(folder, told, "accel-sim")
    pages = Pages()
    for kernel, _ in kernels:
        _convert(kernel, recording, pages)
    recording.close()
    return recording


def _surveyed(path: Path) -> tuple[Kernel, Counter[int]]:
    """A kernel that has been read, and how often each of its instructions executed."""
    kernel, used = Kernel(path), Counter[int]()
    for warp in kernel.warps():
        used.update(warp.pcs)
    header = kernel.header
    if not kernel.instructions:
        raise UsageError(f"{path}: has no instructions")
    try:
        architecture(header.binary)
    except UsageError as error:
        raise UsageError(f"{path}: {error}") from None
    if header.shared_bytes > MOST_SHARED or header.registers > MAX_REGISTERS + 1:
        raise UsageError(f"{path}: {header.registers} registers, {header.shared_bytes} bytes of scratchpad: too many")
    return kernel, used


def _unknown(kernel: Kernel, used: Mapping[int, int]) -> Counter[str]:
    of, found = architecture(kernel.header.binary), Counter[str]()
    for pc, instruction in kernel.instructions.items():
        if _meaning(instruction, of) is None:
            found[".".join(instruction.opcode.split(".")[:2])] += used[pc]
    return found


def _meaning(instruction: Instruction, of: str) -> Meaning | None:
    """What an instruction is; one that must have addresses is none without them, and the other way round."""
    found = meaning(instruction.opcode, of)
    if found is None:
        return None
    in_memory = found.group in (Group.MEMORY, Group.ATOMIC)
    return found if in_memory == instruction.is_access or not in_memory else None


def _code(kernel: Kernel) -> tuple[np.ndarray, int]:
    """The instructions, with no-ops where none was executed, and the registers that they name."""
    of, last = architecture(kernel.header.binary), max(kernel.instructions) // INSTRUCTION_BYTES
    code = np.zeros(last + 2, INSTRUCTION)
    code["guard"] = code["psrc"] = code["psrc2"] = code["pdst"] = code["pdst2"] = PT
    for name in ("dst", "src", "v", "read"):
        code[name] = RZ
    code["bytes"], code["vec"], code["data"] = 4, 1, 4
    code["group"], code["category"], code["reconverge"] = Group.CONTROL, Category.CONTROL, len(code)
    code["op"][-1] = Control.EXIT  # the end, which no trace comes to
    highest = 0
    for pc, instruction in kernel.instructions.items():
        row = code[pc // INSTRUCTION_BYTES : pc // INSTRUCTION_BYTES + 1]
        highest = max(highest, _fill(row, instruction, _meaning(instruction, of) or Meaning(Category.INTEGER)))
    return code, highest + 1


def _fill(row: np.ndarray, instruction: Instruction, found: Meaning) -> int:
    """Fill an instruction; returns the highest register that it names."""
    row["group"], row["op"], row["category"], row["space"] = found.group, found.op, found.category, found.space
    access, opcode = found.group in (Group.MEMORY, Group.ATOMIC), instruction.opcode
    size = width(opcode) if access else 4
    if access:
        row["bytes"], row["vec"] = (size, 1) if size <= 8 else (8, size // 8)
        row["data"] = max(int(row["bytes"][0]), 4)
    wide = found.pair or ".WIDE" in opcode or (not access and ".64" in opcode)
    words = max(size // 4, 1) if access else 2 if wide else 1
    store = access and found.group == Group.MEMORY and found.op == Memory.STORE
    writes = {register + k for register in instruction.writes for k in range(words) if register != RZ}
    reads = set()
    for place, register in enumerate(instruction.reads):
        is_data = store and place > 0
        count = words if is_data or found.pair else 2 if access and place == 0 and ".E" in opcode else 1
        reads |= {register + k for k in range(count) if register != RZ}
    reads, writes = ({each for each in some if each < MAX_REGISTERS} for some in (reads, writes))
    for name, registers in (("need", reads | writes), ("writes", writes)):
        for register in registers:
            row[name][0, register >> 6] |= np.uint64(1 << (register & 63))
    kept = sorted(reads)[: row["read"].shape[1]]
    row["reads"], row["registers"] = len(kept), len(reads) + len(writes)
    row["read"][0, : len(kept)] = kept
    return max(reads | writes, default=0)


def _convert(kernel: Kernel, recording: Recording, pages: Pages) -> None:
    header = kernel.header
    code, registers = _code(kernel)
    names = {instruction.opcode.partition(".")[0] for instruction in kernel.instructions.values()}
    text = ["" for _ in code]
    for pc, instruction in kernel.instructions.items():
        text[pc // INSTRUCTION_BYTES] = "".join(each for each in instruction.opcode if each.isprintable())
    local = _local_bytes(kernel, code)
    costs = {name: COSTS[name] for name in sorted(names) if name in COSTS}
    made = schema.Kernel(
        header.name or kernel.path.name, min(max(header.registers, registers, 1), MAX_REGISTERS), header.shared_bytes,
        local, 0, [], schema.columns_of(code), text, None, costs,
    )  # fmt: skip
    schema.check_code(code, made, str(kernel.path))
    grid, block = (tuple(map(int, extent)) for extent in (header.grid, header.block))
    if len(grid) != 3 or len(block) != 3:
        raise UsageError(f"{kernel.path}: has no dimensions of grid and block")
    with recording.warps_of(made, code, grid, block, 0) as warps:
        for warp in kernel.warps():
            _add(warp, warps, kernel, code, pages)
        if not warps.complete:
            raise UsageError(f"{kernel.path}: warps are missing, or threads that never exit")


def _local_bytes(kernel: Kernel, code: np.ndarray) -> int:
    """Local memory of a thread: as much as the kernel touches."""
    spaces = code["space"][[pc // INSTRUCTION_BYTES for pc in kernel.instructions]]
    accesses = np.isin(code["group"][[pc // INSTRUCTION_BYTES for pc in kernel.instructions]], (Group.MEMORY,))
    if not (accesses & np.isin(spaces, (Space.LOCAL, Space.GENERIC))).any():
        return 0
    most = 0
    for warp in kernel.warps():
        for at, addresses in warp.accesses:
            row = code[warp.pcs[at] // INSTRUCTION_BYTES]
            size = int(row["bytes"]) * int(row["vec"])
            offsets = [_local_offset(each, kernel.header, int(row["space"])) for each in addresses]
            most = max([most, *(each + size for each in offsets if each is not None)])
    if most > MOST_LOCAL:
        raise UsageError(f"{kernel.path}: {most} bytes of local memory of a thread; more than {MOST_LOCAL}")
    return -(-most // 4) * 4


def _local_offset(address: int, header: Header, space: int) -> int | None:
    """Where in a thread's local memory an address lies, if it does."""
    offset = address - header.local_base
    if space == Space.LOCAL:
        return offset if header.local_base and offset >= 0 else address
    return offset if space == Space.GENERIC and header.local_base and 0 <= offset < LOCAL_BYTES else None


def _add(warp: Warp, warps: WarpsFile, kernel: Kernel, code: np.ndarray, pages: Pages) -> None:
    """Add what a warp executed to the trace."""
    number = warp.cta * warps.per_cta + warp.number
    steps = np.zeros(len(warp.pcs), STEP)
    steps["warp"], steps["pc"] = number, np.array(warp.pcs, np.int64) // INSTRUCTION_BYTES
    steps["lanes"] = steps["active"] = warp.lanes
    ends = np.flatnonzero((code["group"][steps["pc"]] == Group.CONTROL) & (code["op"][steps["pc"]] == Control.EXIT))
    if not len(ends) or ends[-1] != len(steps) - 1:
        raise UsageError(f"{kernel.path}: CTA {warp.cta}, warp {warp.number}: does not end with EXIT")
    accesses = np.zeros(len(warp.accesses), LINE)
    accesses["warp"] = number
    for line, (at, addresses) in zip(accesses, warp.accesses, strict=True):
        _place(line, warp.lanes[at], addresses, code[steps["pc"][at]], kernel, pages)
    executed = np.array([bool(warp.lanes[at]) and _is_access(code[steps["pc"][at]]) for at, _ in warp.accesses], bool)
    warps.take(steps, accesses[executed], np.zeros(0, LINE))


def _is_access(row: np.void) -> bool:
    return bool(row["group"] in (Group.MEMORY, Group.ATOMIC))


def _place(line: np.void, lanes: int, addresses: list[int], row: np.void, kernel: Kernel, pages: Pages) -> None:
    """Where the lanes of an access lie here."""
    header, space = kernel.header, int(row["space"])
    line["lanes"] = lanes
    shared = 0
    for lane, address in zip(bits(lanes).tolist(), addresses, strict=True):
        local = _local_offset(address, header, space)
        offset = address - header.shared_base
        inside = header.shared_base and 0 <= offset < LOCAL_BYTES
        if local is not None:
            line["address"][lane] = LOCAL_PHYSICAL + (local >> 2) * 4 * LANES + 4 * lane + (local & 3)
        elif space == Space.SHARED or (space == Space.GENERIC and inside):
            offset = offset if inside else address
            if offset >= header.shared_bytes:
                raise UsageError(f"{kernel.path}: {address:#x}: beyond the {header.shared_bytes} bytes of scratchpad")
            line["address"][lane] = offset
            shared |= 1 << lane
        else:
            line["address"][lane] = pages.place(address)
    line["shared"] = shared
