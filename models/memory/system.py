"""The memory system behind the L1s: crossbar, L2 slices and DRAM channels, joined.

In a core cycle the SMs come first (:func:`~lockstep.models.memory.l1.l1_step`, ``l1_access``), then
:func:`memory_step`. What an SM sends in a cycle is seen in the next one, and the other way round.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from lockstep.models.jit import argument, inline, jit
from lockstep.models.memory.clock import core_cycles, ratio
from lockstep.models.memory.crossbar import request_step
from lockstep.models.memory.dram import CHANNEL, channel_step
from lockstep.models.memory.fabric import CHANNELS, FOREVER, MEMORY, PACKET, REQUESTS, SLICES, TIMINGS
from lockstep.models.memory.l2 import SLICE, slice_step
from lockstep.models.memory.timing import burst, return_delay, slice_delay
from lockstep.models.parameters import Gpu


@inline
def _soonest(memory):
    """The least wake time."""
    wakes = memory.wakes
    soonest = FOREVER
    for part in range(CHANNELS, CHANNELS + memory.channels):
        soonest = min(soonest, wakes[part])
    for part in range(SLICES, SLICES + memory.slices):
        soonest = min(soonest, wakes[part])
    for part in range(REQUESTS, REQUESTS + memory.groups):
        soonest = min(soonest, wakes[part])
    return soonest


@jit
def memory_step(memory, config, now):
    """Do what is due in this core cycle. Calls in cycles without anything due change nothing."""
    if memory.wake > now:
        return
    wakes = memory.wakes
    for index in range(memory.channels):
        if wakes[CHANNELS + index] <= now:
            channel_step(memory, index, now)
    for index in range(memory.slices):
        if wakes[SLICES + index] <= now:
            slice_step(memory, index, now)
    for index in range(memory.groups):
        if wakes[REQUESTS + index] <= now:
            request_step(memory, index, now)
    memory.wake = _soonest(memory)


@inline
def memory_wake(memory, now):
    """The next core cycle after ``now`` in which :func:`memory_step` has something to do, or FOREVER."""
    return max(memory.wake, now + 1)


@dataclass
class Memory:
    """The arrays that hold a memory system. They must stay alive as long as ``record`` is in use."""

    gpu: Gpu
    record: np.ndarray  # one MEMORY
    slices: np.ndarray
    channels: np.ndarray
    pool: np.ndarray
    lines: dict[str, np.ndarray]  # tags, stamps, owners, valid, dirty: a row per slice

    @property
    def argument(self) -> Any:
        """The record as compiled functions take it."""
        return argument(self.record[0:1].reshape(()))


def memory_create(gpu: Gpu) -> Memory:
    """Allocate the memory system of a GPU and reset it."""
    sms, l1, l2, dram = gpu.core.sms, gpu.l1, gpu.l2, gpu.dram
    # Every read or atomic in flight has an L1 MSHR; what else there is stands in a queue of known size.
    packets = sms * (l1.mshrs + l1.queue) + l2.slices * (gpu.crossbar.buffers + l2.mshrs) + dram.channels * dram.queue
    lines = (l2.slices, l2.sets * l2.ways)
    memory = Memory(
        gpu=gpu,
        record=np.zeros(1, MEMORY),
        slices=np.zeros(l2.slices, SLICE),
        channels=np.zeros(dram.channels, CHANNEL),
        pool=np.zeros(packets + 1, PACKET),
        lines={
            name: np.zeros(lines, kind)
            for name, kind in dict(tags="i8", stamps="i8", owners="i2", valid="u1", dirty="u1").items()
        },
    )
    memory_reset(memory)
    return memory


def memory_reset(memory: Memory) -> None:
    """Cold start: empty L2, closed rows."""
    gpu = memory.gpu
    for array in (memory.record, memory.slices, memory.channels, *memory.lines.values()):
        array.view("u1")[...] = 0
    memory.lines["tags"][...] = -1
    memory.channels["row"] = -1
    _configure(memory)
    slices = memory.slices
    slices["index"] = np.arange(gpu.l2.slices)
    slices["channel"] = slices["index"] % gpu.dram.channels
    slices["sets"], slices["ways"], slices["lines"] = gpu.l2.sets, gpu.l2.ways, gpu.l2.sets * gpu.l2.ways
    depth = -(-slice_delay(gpu) * gpu.clocks.l2 // gpu.clocks.core)
    slices["pipeline"] = depth + gpu.crossbar.buffers
    for name, array in memory.lines.items():
        slices[name] = array.ctypes.data + np.arange(gpu.l2.slices) * array[0].nbytes
    memory.channels["limit"] = gpu.dram.queue
    memory.channels["spread"] = gpu.l2.slices // gpu.dram.channels
    memory_launch(memory)


def _configure(memory: Memory) -> None:
    """Fill in what the record takes from the description."""
    gpu, clocks = memory.gpu, memory.gpu.clocks
    record = memory.record[0]
    record["sms"] = gpu.core.sms
    record["concentration"] = gpu.crossbar.concentration
    record["groups"] = -(-gpu.core.sms // gpu.crossbar.concentration)
    record["slices"], record["channels"] = gpu.l2.slices, gpu.dram.channels
    record["pool"], record["slice_base"] = memory.pool.ctypes.data, memory.slices.ctypes.data
    record["channel_base"] = memory.channels.ctypes.data
    record["header_bytes"], record["flit_bytes"] = gpu.crossbar.header_bytes, gpu.crossbar.flit_bytes
    record["line_bytes"] = gpu.l1.line_bytes
    record["line_shift"] = gpu.l1.line_bytes.bit_length() - 1
    record["chunk_shift"] = gpu.dram.interleave.bit_length() - 1
    record["row_shift"] = gpu.dram.row_bytes.bit_length() - 1
    record["banks"] = gpu.dram.banks
    record["crossbar_latency"] = gpu.crossbar.latency
    record["slice_delay"], record["return_delay"] = slice_delay(gpu), return_delay(gpu)
    record["atomic"], record["merges"] = gpu.l2.atomics, gpu.l2.merges
    for name, frequency in dict(interconnect=clocks.interconnect, l2=clocks.l2, dram=clocks.dram).items():
        record[name] = ratio(clocks.core, frequency)
    for name in TIMINGS:
        cycles = burst(gpu) if name == "burst" else getattr(gpu.dram, name)
        record[name] = cycles * record["dram"]["core"]
    ports = record["ports"]
    ports["memory"] = memory.record.ctypes.data
    ports["sm"] = np.arange(len(ports))
    ports["group"] = np.arange(len(ports)) // gpu.crossbar.concentration


def _zero(array: np.ndarray, *names: str) -> None:
    for name in names:
        array[name] = np.zeros((), array.dtype[name].base)


def memory_launch(memory: Memory) -> None:
    """Begin a launch at core cycle 0 with all statistics 0. L2 contents and open rows stay; nothing is in flight."""
    record, slices, channels = memory.record, memory.slices, memory.channels
    assert record["packets"][0] == 0, "requests in flight at a launch"
    _zero(record, "requests", "replies", "flight", "inputs", "waiting", "returns", "wants_dram", "chosen")
    _zero(record["ports"], "requests", "replies", "full")
    _zero(slices, "next_free", "stalled_at", "last_reply", "stall", "in_flight", "stats", "outbox", "served", "requests")
    _zero(channels, "busy_banks", "command_free", "read_free", "write_free", "activate_free", "queue", "stats")
    _zero(channels, "column_at", "activate_at", "precharge_at", "found", "waiting")
    record["requests"]["credits"] = record["replies"]["credits"] = memory.gpu.crossbar.buffers
    for name in ("wakes", "sm_wake", "wake"):
        record[name] = FOREVER
    record["ports"]["reply_ready"] = FOREVER
    record["free"] = 1
    memory.pool["next"] = np.arange(1, len(memory.pool) + 1) % len(memory.pool)
    slices["free_count"] = memory.gpu.l2.mshrs
    slices["free"][:, : memory.gpu.l2.mshrs] = np.arange(memory.gpu.l2.mshrs)[::-1]
    channels["pick"] = -1


def conservation(memory: Memory, l1: np.ndarray) -> list[str]:
    """The conservation laws that a finished launch has broken: none, unless the model is wrong.

    ``l1`` are the SMs' L1 records. Nothing may be in flight any more.
    """
    record, gpu = memory.record[0], memory.gpu
    inner, cache, dram = l1["stats"], memory.slices["stats"], memory.channels["stats"]
    requests, replies = record["requests"], record["replies"]
    line = gpu.l1.line_bytes
    header = gpu.crossbar.header_bytes

    def total(array: np.ndarray, *names: str) -> int:
        return int(sum(array[name].sum() for name in names))

    loads = ("loads", "bypass_loads", "local_loads", "local_stores")
    pairs: list[tuple[str, int, int]] = [
        ("packets in flight", int(record["packets"]), 0),
        ("accesses to the L1s", total(inner, *loads), total(inner, "hits", "misses", "merges")),
        ("answers of the L1s", total(inner, "tokens_in"), total(inner, "tokens_out")),
        ("requests out of the L1s", total(inner, "requests_out"), int(requests["packets"])),
        ("fetches, stores and write-backs out of the L1s", total(inner, "requests_out"),
         total(inner, "fetches", "stores", "atomics", "write_backs")),
        ("bytes out of the L1s", total(inner, "bytes_out") + header * total(inner, "requests_out"),
         int(requests["bytes"])),
        ("replies to the L1s", total(inner, "replies_in"), total(inner, "fetches", "atomics")),
        ("bytes into the L1s", total(inner, "bytes_in") + header * total(inner, "replies_in"), int(replies["bytes"])),
        ("requests into the slices", total(cache, "reads", "writes", "atomics"), int(requests["packets"])),
        ("bytes into the slices", total(cache, "bytes_in"), total(inner, "bytes_out")),
        ("look-ups of the slices", total(cache, "reads", "writes", "atomics"), total(cache, "hits", "misses", "merges")),
        ("replies of the slices", total(cache, "replies"), total(cache, "reads", "atomics")),
        ("replies through the crossbar", int(replies["packets"]), total(inner, "replies_in")),
        ("bytes out of the slices", total(cache, "bytes_out"), total(inner, "bytes_in")),
        ("lines from DRAM", total(cache, "fetches"), total(cache, "fills")),
        ("reads of DRAM", total(dram, "reads"), total(cache, "fetches")),
        ("writes of DRAM", total(dram, "writes"), total(cache, "write_backs")),
        ("bytes of DRAM", total(dram, "bytes_read", "bytes_written"), line * total(dram, "reads", "writes")),
        ("rows of DRAM", total(dram, "rows"), total(dram, "reads", "writes")),
        ("data bus of DRAM", total(dram, "busy"), int(record["burst"]) * total(dram, "reads", "writes")),
    ]  # fmt: skip
    for name, occupancy in (
        ("the L1s' MSHRs", l1["in_flight"]),
        ("requests in flight", memory.record["flight"]),
        ("the slices' inputs", record["waiting"][: gpu.l2.slices]),
        ("the slices' MSHRs", memory.slices["in_flight"]),
        ("the DRAM queues", memory.channels["queue"]),
    ):
        pairs.append((f"left in {name}", total(occupancy, "count"), 0))
        # Per instance, so that two errors cannot cancel.
        wrong = int((occupancy["integral"] != occupancy["residence"]).sum())
        pairs.append((f"Little's law for {name}", wrong, 0))
    return [f"{name}: {left} against {right}" for name, left, right in pairs if left != right]
