"""One warp with all its memories, for tests of what reads and writes them. Bytes are accessed one by one, in Python."""

from __future__ import annotations

import hashlib
import random
from collections.abc import Callable
from typing import Any

import numpy as np

from lockstep.models import jit
from lockstep.models.execution.isa import (
    CONTEXT,
    GLOBAL_BASE,
    GRANULE,
    GRID,
    INSTRUCTION,
    LANES,
    LOCAL_PHYSICAL,
    LOCAL_WINDOW,
    MAX_PREDICATES,
    MAX_REGISTERS,
    PARAM_WINDOW,
    PT,
    RZ,
    SHARED_WINDOW,
    Fetch,
    Kind,
    Space,
)

ALL = 0xFFFF_FFFF
WINDOWS = {
    Space.GLOBAL: GLOBAL_BASE,
    Space.CONST: GLOBAL_BASE,
    Space.SHARED: SHARED_WINDOW,
    Space.LOCAL: LOCAL_WINDOW,
    Space.PARAM: PARAM_WINDOW,
}
PHYSICAL = LOCAL_PHYSICAL + 0x1_0000  # of the warp's local memory
_MEMORIES = ("registers", "predicates", "memory", "shared", "local", "param")


def _bytes(rng: np.random.Generator, count: int) -> np.ndarray:
    """Random bytes in memory that is aligned to words."""
    words = rng.integers(0, 1 << 32, count // 4 + 1, dtype=np.uint32)
    return words.view(np.uint8)[:count]


class Machine:
    """Memories are NumPy arrays of bytes; ``registers`` is u32[register][lane]. ``marks`` are kept where asked for."""

    def __init__(self, function: Any, rng: random.Random) -> None:
        numbers = np.random.default_rng(rng.getrandbits(32))
        self.function = function.ctypes if jit.COMPILED else function
        self.registers = numbers.integers(0, 1 << 32, (MAX_REGISTERS, LANES), dtype=np.uint32)
        self.predicates = numbers.integers(0, 1 << 32, MAX_PREDICATES + 1, dtype=np.uint32)
        self.memory = _bytes(numbers, 64 * GRANULE)
        self.valid = np.array(rng.choices([GRANULE, 0, 100, 4], [8, 1, 1, 1], k=64), np.int16)
        self.shared = _bytes(numbers, 2048)
        self.local = _bytes(numbers, 48 * LANES)
        self.param = _bytes(numbers, 94)
        self.marks: dict[str, np.ndarray] = {}  # of memories, by their names
        self.grid = np.zeros((), GRID)
        self.context = np.zeros((), CONTEXT)
        self.x = jit.view(self.context)
        for name, value in dict(
            lanes=LANES, mask=ALL, active=ALL, present=ALL, grid=self.grid.ctypes.data, memory_bytes=len(self.memory),
            local_physical=PHYSICAL, regs=self.registers.ctypes.data, own_registers=MAX_REGISTERS,
            preds=self.predicates.ctypes.data, memory=self.memory.ctypes.data, valid=self.valid.ctypes.data,
            shared=self.shared.ctypes.data, own_shared=2048, local=self.local.ctypes.data,
        ).items():  # fmt: skip
            self.context[name] = value
        for name, value in dict(
            shared_bytes=2048, local_bytes=48, param=self.param.ctypes.data, param_bytes=94
        ).items():  # fmt: skip
            self.grid[name] = value

    def keep_marks(self) -> None:
        """Let the model keep marks of written bytes; of none so far."""
        for name in ("memory", "shared", "local"):
            memory = getattr(self, name)
            self.marks[name] = np.zeros(memory.size // 4 + 1, np.uint32).view(np.uint8)[: memory.size]
            self.context[f"{name}_marks"] = self.marks[name].ctypes.data - memory.ctypes.data

    def written(self, space: Space, address: int, lane: int) -> bool:
        """Whether a byte has its mark; ``address`` counts from the start of the space."""
        memory, index = self.place(space, address, lane)
        names = [name for name in self.marks if getattr(self, name) is memory]
        return not names or bool(self.marks[names[0]][index])

    def run(self, mask: int, **fields: Any) -> int:
        """Execute an instruction; returns the fault. Registers that are not named are RZ, predicates PT."""
        instruction = np.zeros((), INSTRUCTION)
        for name, value in dict(v=RZ, dst=RZ, pdst=PT, pdst2=PT, psrc=PT, psrc2=PT, vec=1, bytes=4, data=4).items():
            instruction[name] = value
        for name, value in fields.items():
            if name == "v":
                for index, register in value.items():
                    instruction["v"][index] = register
            else:
                instruction[name] = value
        self.context["mask"] = mask
        self.context["fault"], self.context["fault_lane"], self.context["fault_address"] = 0, -1, 0
        return int(self.function(self.context.ctypes.data, instruction.ctypes.data))

    def set_long(self, register: int, values: list[int]) -> None:
        """Write a register pair in all lanes."""
        for lane, value in enumerate(values):
            self.registers[register, lane] = value & ALL
            self.registers[register + 1, lane] = (value >> 32) & ALL

    def place(self, space: Space, address: int, lane: int) -> tuple[np.ndarray, int]:
        """Where a byte of a space lies."""
        if space == Space.LOCAL:
            return self.local, address // 4 * 4 * LANES + lane * 4 + address % 4
        return {Space.SHARED: self.shared, Space.PARAM: self.param}.get(space, self.memory), address

    def read(self, space: Space, address: int, count: int, lane: int) -> int:
        """A little-endian number of ``count`` bytes; ``address`` counts from the start of the space."""
        places = [self.place(space, address + k, lane) for k in range(count)]
        return sum(int(memory[index]) << 8 * k for k, (memory, index) in enumerate(places))

    def write(self, space: Space, address: int, count: int, lane: int, value: int) -> None:
        for k in range(count):
            memory, index = self.place(space, address + k, lane)
            memory[index] = (value >> 8 * k) & 0xFF

    def physical(self, space: Space, address: int, lane: int) -> int:
        """What the context calls an address."""
        if space == Space.LOCAL:
            return PHYSICAL + self.place(space, address, lane)[1]
        return address if space == Space.SHARED else WINDOWS[space] + address

    def copy(self) -> dict[str, np.ndarray]:
        return {name: getattr(self, name).copy() for name in _MEMORIES}

    def restore(self, saved: dict[str, np.ndarray]) -> None:
        for name, array in saved.items():
            getattr(self, name)[...] = array

    def differences(self, expected: dict[str, np.ndarray]) -> list[str]:
        return [name for name in _MEMORIES if not np.array_equal(getattr(self, name), expected[name])]

    def digest(self) -> bytes:
        """Everything that an instruction may change."""
        state = hashlib.sha256()
        for name in _MEMORIES:
            state.update(getattr(self, name).tobytes())
        for marks in self.marks.values():
            state.update(marks.tobytes())
        touched = int(self.context["touched"])
        addresses = [int(a) if touched >> lane & 1 else 0 for lane, a in enumerate(self.context["address"])]
        names = ("touched", "touched_shared", "fault", "fault_lane", "fault_address")
        state.update(repr(([int(self.context[name]) for name in names], addresses)).encode())
        return state.digest()


def source(register: int | None = None, immediate: int = 0, fetch: Fetch = Fetch.PAIR) -> dict[str, Any]:
    """Fields of source a alone."""
    kind = Kind.IMMEDIATE if register is None else Kind.REGISTER
    return dict(
        kind=[kind, 0, 0, 0], src=[register or 0, 0, 0, 0], fetch=[fetch, 0, 0, 0], imm=[immediate, 0, 0, 0]
    )


def chain(machine: Machine, steps: int, step: Callable[[], Any]) -> str:
    """The digest of a series of instructions: equal for compiled and interpreted runs."""
    total = hashlib.sha256()
    for _ in range(steps):
        step()
        total.update(machine.digest())
    return total.hexdigest()
