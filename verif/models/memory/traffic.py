"""Scripted traffic for the memory system: every SM offers accesses in order, and notes what became of each."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from lockstep.models.jit import argument, i64, jit, record
from lockstep.models.memory import system
from lockstep.models.memory.l1 import L1, LOAD, MERGED, l1_access, l1_answer, l1_fill, l1_reset, l1_wake
from lockstep.models.memory.masks import BYTES, span
from lockstep.models.memory.timing import BACK_END, FRONT_END
from lockstep.models.time import NEVER
from lockstep.spec import parameters

BASE = 0x1000_0000

ACCESS = record(
    [
        ("at", "i8"),  # not before this core cycle
        ("address", "i8"),
        ("grid", "i8"),
        ("kind", "i4"),
        ("size", "i4"),  # bytes from the address on ...
        ("lanes", "i4"),
        ("code", "i4"),  # what the L1 said when it accepted
        ("mask", BYTES),  # ... or, if any is here, these bytes of the line
        ("accepted", "i8"),  # core cycle
        ("done", "i8"),  # core cycle of the answer; -1: none
    ]
)

SOURCE = record([("next", "i8"), ("outstanding", "i8"), ("window", "i8")])


@jit
def drive(l1s, memory, config, sources, script, length, skip, now, limit):
    """Run until all is done or ``limit`` is reached; returns the cycle. ``script``: ``length`` accesses of each SM."""
    while now < limit:
        for s in range(memory.sms):
            source = sources[s]
            if skip and memory.sm_wake[s] > now:
                continue
            memory.sm_wake[s] = NEVER
            l1, port = l1s[s], memory.ports[s]
            l1_fill(l1, port, now)
            token = i64(l1_answer(l1, now))
            if token >= 0:
                script[s * length + token].done = now
                source.outstanding -= 1
            wake = min(i64(l1_wake(l1, port, config, now)), memory.sm_wake[s])
            if source.next < length and source.outstanding < source.window:
                access = script[s * length + source.next]
                if access.at > now:
                    wake = min(wake, access.at)
                else:
                    kind, size, lanes = i64(access.kind), i64(access.size), i64(access.lanes)
                    low, high = access.mask.low, access.mask.high
                    if low | high == 0:
                        low, high = span(access.address & l1.line_bytes - 1, size)
                    address, token, grid = access.address, source.next, i64(access.grid)
                    code = i64(l1_access(l1, port, config, now, kind, address, low, high, size, lanes, token, grid))
                    if code >= 0:
                        access.code = code
                        access.accepted = now
                        source.next += 1
                        source.outstanding += 1 if code <= MERGED else 0
                        wake = now + 1
            memory.sm_wake[s] = wake
        system.memory_step(memory, config, now)
        following = i64(system.memory_wake(memory, now))
        for s in range(memory.sms):
            following = min(following, memory.sm_wake[s])
        if following == NEVER:
            return now
        now = following if skip else now + 1
        if not skip and _finished(sources, memory, length):
            return now
    return now


@jit
def _finished(sources, memory, length):
    for s in range(memory.sms):
        if sources[s].next < length or sources[s].outstanding != 0:
            return False
    return memory.packets == 0


def gpu(**changes: Any) -> parameters.Gpu:
    """The default GPU with changes: ``l1__mshrs=4``."""
    sections = {name: cls() for name, cls in parameters.SECTIONS.items()}
    for name, value in changes.items():
        section, key = name.split("__")
        sections[section] = replace(sections[section], **{key: value})
    pipelines = {category: parameters.Pipeline() for category in parameters.CATEGORIES}
    return parameters.Gpu(name="test", source="", compute_capability="2.0", pipelines=pipelines, **sections)


class Traffic:
    """A memory system with its L1s, and runs of scripts on it."""

    def __init__(self, description: parameters.Gpu) -> None:
        self.gpu = description
        self.memory = system.memory_create(description)
        self.l1 = np.zeros(description.core.sms, L1)
        self.config = parameters.config(description)
        self._config = argument(self.config[0:1].reshape(()))
        self.launch()

    def launch(self) -> None:
        """Invalidate the L1s, keep the L2, start at cycle 0."""
        self.now = self.cycles = 0
        system.memory_launch(self.memory)
        for one in range(len(self.l1)):
            l1_reset(argument(self.l1[one : one + 1].reshape(())), self._config, 1)

    def run(self, script: np.ndarray, *, window: int = 1 << 30, skip: bool = True, limit: int = 1 << 40) -> np.ndarray:
        """Run ACCESS records, an array per SM (idle SMs may be left out); returns them with the results.

        Times are counted from the start of this run, which is ``cycles`` long.
        """
        sms, length = self.gpu.core.sms, script.shape[1]
        whole = np.zeros((sms, length), ACCESS)
        whole["at"] = NEVER
        whole[: len(script)] = script
        whole["at"][: len(script)] += self.now
        whole["done"] = whole["accepted"] = -1
        self.sources = np.zeros(sms, SOURCE)
        self.sources["window"] = window
        self.sources["next"][len(script) :] = length
        flat = whole.reshape(-1)
        self.memory.record["sm_wake"] = self.now
        end = int(drive(
            argument(self.l1), self.memory.argument, self._config, argument(self.sources), argument(flat), length, skip,
            self.now, self.now + limit,
        ))  # fmt: skip
        for name in ("at", "accepted", "done"):
            whole[name] -= np.where(whole[name] < 0, 0, self.now)
        self.cycles = end - self.now
        self.now = end + 1
        return whole[: len(script)]

    def broken(self) -> list[str]:
        return system.conservation(self.memory, self.l1)


def script(addresses: Any, *, kind: int = LOAD, size: int = 4, lanes: int = 1, at: Any = 0) -> np.ndarray:
    """Accesses of one kind, in the shape of ``addresses``: an SM per row."""
    result = np.zeros(np.shape(np.atleast_2d(addresses)), ACCESS)
    result["address"], result["kind"], result["size"], result["lanes"], result["at"] = addresses, kind, size, lanes, at
    return result


def words(mask: int) -> tuple[int, int]:
    """The two words of a mask of bytes (``models/memory/masks.py``)."""
    low, high = np.array([mask & (1 << 64) - 1, mask >> 64], np.uint64).view(np.int64)
    return int(low), int(high)


def mask_of(words: np.void) -> int:
    """The mask of two words."""
    return int(words["low"]) & (1 << 64) - 1 | (int(words["high"]) & (1 << 64) - 1) << 64


def place(description: parameters.Gpu, address: int) -> tuple[int, int, int, int]:
    """Slice, channel, bank and row of an address."""
    l2, dram = description.l2, description.dram
    chunk, offset = divmod(address, dram.interleave)
    local, target = divmod(chunk, l2.slices)
    spread = l2.slices // dram.channels
    rows = ((local * spread + target // dram.channels) * dram.interleave + offset) // dram.row_bytes
    row = rows // dram.banks
    return target, target % dram.channels, (rows + row) % dram.banks, row


def lines(description: parameters.Gpu, count: int, **wanted: int) -> list[int]:
    """Addresses of lines with a given ``slice``, ``channel``, ``bank`` or ``row``."""
    dram = description.dram
    found: list[int] = []
    address = max(BASE, wanted.get("row", 0) * dram.banks * dram.row_bytes * dram.channels)
    while len(found) < count:
        at = dict(zip(("slice", "channel", "bank", "row"), place(description, address), strict=True))
        if all(at[name] == value for name, value in wanted.items()):
            found.append(address)
        address += description.l1.line_bytes
    return found


def latencies(results: np.ndarray) -> np.ndarray:
    """Core cycles from issue to dependent issue."""
    return results["done"] - results["accepted"] + FRONT_END + BACK_END


def sequence(addresses: list[int], gap: int = 2000, **how: Any) -> np.ndarray:
    """One SM's accesses, each long after the one before."""
    return script([addresses], at=[[gap * n for n in range(len(addresses))]], **how)
