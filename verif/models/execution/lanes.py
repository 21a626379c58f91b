"""One micro-operation on one warp, for tests of the executing functions: operands in, result out."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypedDict

import numpy as np

from lockstep.models import jit
from lockstep.models.execution.isa import (
    CONTEXT,
    INSTRUCTION,
    LANES,
    MAX_PREDICATES,
    MAX_REGISTERS,
    PT,
    RZ,
    Fetch,
    Kind,
    Write,
)
from lockstep.verif.bench import seeded

ALL = 0xFFFF_FFFF
LONG = (Fetch.PAIR, Fetch.S32, Fetch.U32, Fetch.S16_LONG, Fetch.U16_LONG, Fetch.S8_LONG, Fetch.U8_LONG)
DESTINATION = 8  # register (pair); v[0..2] are the pairs behind it
PREDICATE, COMPLEMENT = 1, 2  # pdst and pdst2
POISON = 0xDEAD_BEEF


def generator() -> np.random.Generator:
    """Random numbers whose seed is printed; ``LOCKSTEP_SEED`` repeats a run."""
    return np.random.default_rng(seeded().getrandbits(32))


class Widths(TypedDict, total=False):
    """How operands are read and results written; as words unless they say otherwise."""

    fetch: int | tuple[int, ...]
    write: int


WORDS: Widths = {}
PAIRS: Widths = {"fetch": Fetch.PAIR, "write": Write.PAIR}


class Warp:
    """Registers, predicates and a context; operand k lives in the register pair 2k."""

    def __init__(self, slot: Any) -> None:
        self.slot = slot.ctypes if jit.COMPILED else slot
        self.registers = np.full((MAX_REGISTERS + 1, LANES), POISON, np.uint32)
        self.predicates = np.zeros(MAX_PREDICATES + 1, np.uint32)
        self.context = np.zeros(1, CONTEXT)
        self.instruction = np.zeros(1, INSTRUCTION)
        self.context["lanes"] = LANES
        self.context["regs"] = self.registers.ctypes.data
        self.context["own_registers"] = MAX_REGISTERS
        self.context["preds"] = self.predicates.ctypes.data

    def set(self, index: int, values: np.ndarray) -> None:
        """Put an operand in its register (pair)."""
        values = values.view(np.uint64 if values.itemsize == 8 else np.uint32)
        self.registers[2 * index] = values.astype(np.uint64) & ALL
        if values.itemsize == 8:
            self.registers[2 * index + 1] = values >> np.uint64(32)

    def execute(
        self,
        op: int,
        operands: Sequence[np.ndarray | int | None],
        *,
        fetch: int | tuple[int, ...] = Fetch.WORD,
        write: int = Write.WORD,
        mask: int = ALL,
        predicates: tuple[int, int] = (0, 0),
        **fields: int,
    ) -> None:
        """Run an operation. An operand is 32 lanes, an immediate (int) or absent (None)."""
        instruction = self.instruction[0]
        instruction["op"], instruction["write"], instruction["dst"] = op, write, DESTINATION
        for name in ("sub", "flags", "rnd", "psrc_not", "psrc2_not"):
            instruction[name] = fields.pop(name, 0)
        for name in ("psrc", "psrc2", "pdst", "pdst2"):
            instruction[name] = fields.pop(name, PT)
        instruction["imm"][3] = fields.pop("imm3", 0)
        assert not fields
        instruction["v"][:] = [DESTINATION + 2, DESTINATION + 4, DESTINATION + 6] + [RZ] * 5
        for index in range(4):
            operand = operands[index] if index < len(operands) else None
            mode = fetch if isinstance(fetch, int) else fetch[min(index, len(fetch) - 1)]
            instruction["fetch"][index] = Fetch.NONE if operand is None else mode
            instruction["src"][index] = 2 * index
            if operand is None:
                instruction["kind"][index] = Kind.NONE
            elif isinstance(operand, int):
                instruction["kind"][index] = Kind.IMMEDIATE
                instruction["imm"][index] = operand
            else:
                instruction["kind"][index] = Kind.REGISTER
                self.set(index, operand)
        self.context["mask"] = mask
        self.predicates[10:12] = predicates
        self.slot(self.context.ctypes.data, self.instruction.ctypes.data)

    @property
    def word(self) -> np.ndarray:
        return self.registers[DESTINATION].copy()

    @property
    def long(self) -> np.ndarray:
        low, high = self.registers[DESTINATION : DESTINATION + 2].astype(np.uint64)
        return low | high << np.uint64(32)

    def map(self, op: int, operands: list[Any], **options: Any) -> np.ndarray:
        """Run an operation over long operand arrays, 32 lanes at a time; the results in one array."""
        count = max(len(o) for o in operands if isinstance(o, np.ndarray))
        padded = -(-count // LANES) * LANES
        full = [np.resize(o, padded) if isinstance(o, np.ndarray) else o for o in operands]
        results = []
        for start in range(0, padded, LANES):
            part = [o[start : start + LANES] if isinstance(o, np.ndarray) else o for o in full]
            self.execute(op, part, **options)
            results.append(self.long if options.get("write") == Write.PAIR else self.word)
        return np.concatenate(results)[:count]


def words(rng: np.random.Generator, count: int, bits: int = 32) -> np.ndarray:
    """Random integers of all magnitudes, with the boundary values."""
    kind = np.uint64 if bits == 64 else np.uint32
    values = rng.integers(0, 1 << bits, count, np.uint64) >> rng.integers(0, bits, count, np.uint64)
    values = np.where(rng.random(count) < 0.5, values, ~values)
    edge = [0, 1, 2, 31, 32, 33, 63, 64, (1 << bits - 1) - 1, 1 << bits - 1, (1 << bits) - 1, (1 << bits) - 2]
    chosen = rng.random(count) < 0.25
    return np.where(chosen, rng.choice(np.array(edge, np.uint64), count), values).astype(kind)


def floats(rng: np.random.Generator, count: int, bits: int = 32) -> np.ndarray:
    """Random floats as bit patterns: any exponent, near one, and the special values."""
    kind, precision = (np.uint64, 53) if bits == 64 else (np.uint32, 24)
    width = bits - precision
    one = ((1 << width - 1) - 1) << precision - 1
    infinity = ((1 << width) - 1) << precision - 1
    sign = 1 << bits - 1
    least = 1 << precision - 1
    special = [0, 1, least - 1, least, one, one + 1, one - 1, infinity - 1, infinity, infinity + 1, sign - 1]
    special += [one + (5 << precision - 1), one + (9 << precision - 1) - 3, least // 2, one - (1 << precision - 1)]
    anything = rng.integers(0, 1 << bits, count, np.uint64)
    near = one + rng.integers(-(6 << precision - 1), 6 << precision - 1, count)
    near = near.astype(np.uint64) ^ (rng.integers(0, 2, count, np.uint64) << np.uint64(bits - 1))
    # Few significant bits: ties and exact results.
    near = np.where(rng.random(count) < 0.3, near & ~np.uint64((1 << precision * 2 // 3) - 1), near)
    edge = rng.choice(np.array(special + [s | sign for s in special], np.uint64), count)
    choice = rng.random(count)
    return np.where(choice < 0.3, anything, np.where(choice < 0.75, near, edge)).astype(kind)
