"""The memory system behind the L1s: interconnect, L2 slices and DRAM channels, joined.

In a core cycle the SMs come first (``l1.l1_fill``, ``l1_answer`` and ``l1_access``), then
:func:`memory_step`. What an SM sends in a cycle is seen in the next one, and the other way round.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from lockstep.models.execution.atomic import operate
from lockstep.models.execution.isa import UNCACHED_PHYSICAL
from lockstep.models.jit import address, addressof, argument, as_bytes, call, ctz, inline, jit, zero
from lockstep.models.marks import Part, mark
from lockstep.models.memory import mesh
from lockstep.models.memory.clock import ratio
from lockstep.models.memory.crossbar import visit_port
from lockstep.models.memory.dram import CHANNEL, visit_channel
from lockstep.models.memory.fabric import MEMORY, NETWORKS, PACKET, TIMINGS, WHEEL, WORD
from lockstep.models.memory.l2 import SLICE, visit_slice
from lockstep.models.memory.masks import BYTES, span
from lockstep.models.memory.timing import burst, read_only_delay, return_delay, sectors, slice_delay
from lockstep.models.memory.values import Values, values_create
from lockstep.models.time import NEVER
from lockstep.spec.parameters import Gpu


@inline
def _next(memory, now):
    """The next occupied cycle of the timing wheel after ``now``."""
    slot = (now + 1) % WHEEL
    ahead = now + 1
    bits = memory.occupied[slot // WORD] >> slot % WORD
    if bits != 0:
        return ahead + ctz(bits)
    ahead += WORD - slot % WORD
    for word in range(slot // WORD + 1, slot // WORD + 1 + WHEEL // WORD):
        bits = memory.occupied[word % (WHEEL // WORD)]
        if bits != 0:
            return ahead + ctz(bits)
        ahead += WORD
    return NEVER


@jit
def memory_step(memory, config, now):
    """Do what is due in this core cycle. Calls in cycles without anything due change nothing."""
    if memory.wake > now:
        return
    memory.now = now
    where = addressof(memory)
    channels, slices = memory.channels, memory.slices
    slot = now % WHEEL
    for word in range(memory.words):
        at = slot * memory.words + word
        while memory.wheel[at] != 0:  # a visit may add parts that come later
            bit = ctz(memory.wheel[at])
            memory.wheel[at] &= ~(1 << bit)
            part = word * WORD + bit
            if part < channels:
                mark(Part.DRAM)
                call(memory.visit_channel, where, part)
            elif part < channels + slices:
                mark(Part.L2)
                call(memory.visit_slice, where, part - channels)
            else:
                mark(Part.NETWORKS)
                call(memory.visit_port, where, part - channels - slices)
    mark(Part.LOOP)
    memory.occupied[slot // WORD] &= ~(1 << slot % WORD)
    memory.wake = _next(memory, now)


@inline
def memory_wake(memory, now):
    """The next core cycle after ``now`` in which :func:`memory_step` has something to do, or NEVER."""
    return max(memory.wake, now + 1)


@dataclass
class Memory:
    """The arrays that hold a memory system. They must stay alive as long as ``record`` is in use."""

    gpu: Gpu
    record: np.ndarray  # one MEMORY
    slices: np.ndarray
    channels: np.ndarray
    pool: np.ndarray
    lines: np.ndarray  # the L2's lines: a row per slice
    valid: np.ndarray  # their valid bytes
    mesh: mesh.Mesh | None
    values: Values | None  # of lines and requests

    @property
    def argument(self) -> Any:
        """The record as compiled functions take it."""
        return argument(self.record[0:1].reshape(()))


def _aligned(length: int, kind: np.dtype) -> np.ndarray:
    """Zeros that begin at a cache line of the host."""
    space = np.zeros(length * kind.itemsize + 64, "u1")
    start = -space.ctypes.data % 64
    return space[start : start + length * kind.itemsize].view(kind)


def memory_create(gpu: Gpu) -> Memory:
    """Allocate the memory system of a GPU and reset it."""
    sms, l1, l2, dram = gpu.core.sms, gpu.l1, gpu.l2, gpu.dram
    # Every read or atomic in flight has an MSHR of its SM; what else there is stands in a queue of known size.
    mshrs = l1.mshrs + gpu.instruction_cache.mshrs + gpu.constant_cache.mshrs
    packets = sms * (mshrs + l1.queue) + dram.channels * dram.queue
    packets += l2.slices * (gpu.crossbar.buffers + l2.mshrs * sectors(gpu))
    if l2.acknowledges:
        packets += l2.slices * _pipeline(gpu) + sms * gpu.crossbar.buffers
    if gpu.mesh.columns:
        packets += mesh.packets(gpu)
    packets += sms * most_sent(gpu)  # that SMs have to spare
    memory = Memory(
        gpu=gpu,
        record=np.zeros(1, MEMORY),
        slices=np.zeros(l2.slices, SLICE),
        channels=np.zeros(dram.channels, CHANNEL),
        pool=_aligned(packets + 1, PACKET),
        lines=_aligned(l2.slices * l2.sets * l2.ways, np.dtype("i8")).reshape(l2.slices, -1),
        valid=_aligned(l2.slices * l2.sets * l2.ways, BYTES).reshape(l2.slices, -1),
        mesh=mesh.mesh_create(gpu) if gpu.mesh.columns else None,
        values=values_create(gpu, packets + 1),
    )
    memory_reset(memory)
    return memory


def memory_reset(memory: Memory) -> None:
    """Cold start: empty L2, closed rows."""
    gpu = memory.gpu
    for array in (memory.record, memory.slices, memory.channels, memory.valid):
        array.view("u1")[...] = 0
    memory.lines[...] = np.arange(memory.lines.shape[1]) % gpu.l2.ways
    if memory.values:
        memory.values.cargo["waits"] = 0
    memory.channels["banks"]["row"] = -1
    _configure(memory)
    slices = memory.slices
    slices["index"] = np.arange(gpu.l2.slices)
    slices["channel"] = slices["index"] % gpu.dram.channels
    slices["sets"], slices["ways"] = gpu.l2.sets, gpu.l2.ways
    for name, array in (("lines", memory.lines), ("valid", memory.valid)):
        slices[name] = array.ctypes.data + np.arange(gpu.l2.slices) * array[0].nbytes
    slices["pipeline"] = _pipeline(gpu)
    memory.channels["limit"] = gpu.dram.queue
    memory.channels["spread"] = gpu.l2.slices // gpu.dram.channels
    memory_launch(memory)


def most_sent(gpu: Gpu) -> int:
    """Requests that an SM can send while it is not known what has left its queue."""
    return gpu.l1.queue + gpu.instruction_cache.mshrs + gpu.constant_cache.mshrs


def _pipeline(gpu: Gpu) -> int:
    """Replies that fit between a slice's look-up and the crossbar."""
    return -(-slice_delay(gpu) * gpu.clocks.l2 // gpu.clocks.core) + gpu.crossbar.buffers


def _configure(memory: Memory) -> None:
    """Fill in what the record takes from the description."""
    gpu, clocks = memory.gpu, memory.gpu.clocks
    record = memory.record[0]
    record["sms"] = gpu.core.sms
    record["concentration"] = gpu.crossbar.concentration
    record["groups"] = -(-gpu.core.sms // gpu.crossbar.concentration)
    record["slices"], record["channels"] = gpu.l2.slices, gpu.dram.channels
    networks = 0
    record["visit_port"] = address(visit_port)
    if memory.mesh:
        networks = NETWORKS
        record["mesh"], record["visit_port"] = memory.mesh.networks.ctypes.data, address(mesh.visit_mesh)
    record["words"] = -(-(record["channels"] + record["slices"] + record["groups"] + networks) // WORD)
    record["visit_channel"], record["visit_slice"] = address(visit_channel), address(visit_slice)
    record["pool"], record["slice_base"] = memory.pool.ctypes.data, memory.slices.ctypes.data
    record["channel_base"] = memory.channels.ctypes.data
    record["header_bytes"], record["flit_bytes"] = gpu.crossbar.header_bytes, gpu.crossbar.flit_bytes
    record["line_bytes"] = gpu.l1.line_bytes
    record["line_shift"] = gpu.l1.line_bytes.bit_length() - 1
    record["sector_shift"] = gpu.l2.sector_bytes.bit_length() - 1
    record["line"] = span(0, gpu.l1.line_bytes)
    record["chunk_shift"] = gpu.dram.interleave.bit_length() - 1
    record["uncached"] = UNCACHED_PHYSICAL // gpu.dram.interleave // gpu.l2.slices * gpu.dram.interleave
    record["data"] = gpu.l2.data
    record["row_shift"] = gpu.dram.row_bytes.bit_length() - 1
    record["banks"] = gpu.dram.banks
    record["crossbar_latency"] = gpu.crossbar.latency
    record["slice_delay"], record["read_only_delay"] = slice_delay(gpu), read_only_delay(gpu)
    record["return_delay"] = return_delay(gpu)
    record["acknowledges"] = gpu.l2.acknowledges
    record["atomic"], record["merges"] = gpu.l2.atomics, gpu.l2.merges
    for name, frequency in dict(interconnect=clocks.interconnect, l2=clocks.l2, dram=clocks.dram).items():
        record[name] = ratio(clocks.core, frequency)
    for name in TIMINGS:
        cycles = burst(gpu) if name == "burst" else getattr(gpu.dram, name)
        record[name] = cycles * record["dram"]["core"]
    if memory.values:
        record["cargo"], record["brought"] = memory.values.cargo.ctypes.data, memory.values.brought.ctypes.data
        record["mshrs"], record["operate"] = gpu.l1.mshrs, address(operate)
    ports = record["ports"]
    ports["memory"] = memory.record.ctypes.data
    ports["sm"] = np.arange(len(ports))
    ports["group"] = np.arange(len(ports)) // gpu.crossbar.concentration


def memory_launch(memory: Memory) -> None:
    """Begin a launch at core cycle 0 with all statistics 0. L2 contents and open rows stay; nothing is in flight."""
    record, slices, channels = memory.record, memory.slices, memory.channels
    assert _in_use(record) == 0, "requests in flight at a launch"
    zero(record, "packets", "requests", "replies", "gates", "now", "occupied", "wheel")
    ports = ("requests", "replies", "full", "chosen", "grid", "stores", "told", "first_sent", "last_sent")
    zero(record["ports"], *ports, "flight", "spare", "ahead", "taken", "renewed", "early")
    zero(slices, "next_free", "stalled_at", "last_reply", "stall", "in_flight", "stats", "share", "outbox", "served")
    zero(channels, "first", "busy_banks", "free_command", "free", "queue", "stats", "share")
    zero(channels["banks"], "column_at", "activate_at", "precharge_at", "found", "waiting")
    for direction in ("requests", "replies"):
        record[direction]["receivers"]["credits"] = memory.gpu.crossbar.buffers
    for name in ("sm_wake", "wake"):
        record[name] = NEVER
    record["ports"]["reply_ready"] = NEVER
    record["free"] = 1
    memory.pool["next"] = np.arange(1, len(memory.pool) + 1) % len(memory.pool)
    slices["free_count"] = memory.gpu.l2.mshrs
    slices["free"][:, : memory.gpu.l2.mshrs] = np.arange(memory.gpu.l2.mshrs)[::-1]
    channels["pick"] = -1
    if memory.mesh:
        mesh.mesh_reset(memory.mesh)


def _in_use(record: np.ndarray) -> int:
    """The packets that are on their way."""
    return int(record["packets"].sum() - record["ports"]["spare"]["count"].sum())


def _sums(records: np.ndarray) -> dict[str, int]:
    """Records of counts, added up: over all records, and over the elements of each count."""
    words = as_bytes(records).view(np.int64).sum(axis=0).tolist()
    fields = (records.dtype.fields or {}).items()
    return {name: sum(words[at // 8 : (at + kind.itemsize) // 8]) for name, (kind, at, *_) in fields}


Law = tuple[str, int, int]  # its name, and two counts that agree


def _total(counts: dict[str, int], *names: str) -> int:
    return sum(counts[name] for name in names)


def _flow(
    memory: Memory, inner: dict[str, int], beside: list[dict[str, int]], cache: dict[str, int], dram: dict[str, int],
    requests: np.void, replies: np.void,
) -> list[Law]:  # fmt: skip
    """What one part of the memory system sends, the next one receives: for all requests, and for those of one grid.

    ``inner`` are counts of the L1s, ``beside`` of the other caches of the SMs.
    """
    gpu, total = memory.gpu, _total
    header = gpu.crossbar.header_bytes
    loads = ("loads", "bypass_loads", "local_loads", "local_stores")
    read = sum(total(each, "requests") for each in beside)
    out, back = total(inner, "requests_out") + read, total(inner, "replies_in") + read
    acknowledged = total(cache, "writes") if gpu.l2.acknowledges else 0
    bytes_back = total(inner, "bytes_in") + sum(total(each, "bytes_in") for each in beside)
    return [
        ("accesses to the L1s", total(inner, *loads), total(inner, "hits", "misses", "merges")),
        ("requests out of the SMs", out, int(requests["packets"])),
        ("fetches, stores and write-backs out of the L1s", total(inner, "requests_out"),
         total(inner, "fetches", "stores", "atomics", "write_backs")),
        ("bytes out of the SMs", total(inner, "bytes_out") + header * out, int(requests["bytes"])),
        ("replies to the L1s", total(inner, "replies_in"), total(inner, "fetches", "atomics")),
        ("bytes into the SMs", bytes_back + header * (back + acknowledged), int(replies["bytes"])),
        ("requests into the slices", total(cache, "reads", "writes", "atomics"), int(requests["packets"])),
        ("bytes into the slices", total(cache, "bytes_in"), total(inner, "bytes_out")),
        ("look-ups of the slices", total(cache, "reads", "writes", "atomics"),
         total(cache, "hits", "misses", "merges")),
        ("replies of the slices", total(cache, "replies"), total(cache, "reads", "atomics") + acknowledged),
        ("replies through the interconnect", int(replies["packets"]), back + acknowledged),
        ("bytes out of the slices", total(cache, "bytes_out"), bytes_back),
        ("sectors from DRAM", total(cache, "fetches"), total(cache, "fills")),
        ("reads of DRAM", total(dram, "reads"), total(cache, "fetches")),
        ("writes of DRAM", total(dram, "writes"), total(cache, "written")),
        ("bytes of DRAM", total(dram, "bytes_read", "bytes_written"),
         gpu.l2.sector_bytes * total(dram, "reads", "writes")),
        ("rows of DRAM", total(dram, "rows"), total(dram, "reads", "writes")),
        ("data bus of DRAM", total(dram, "busy"), int(memory.record[0]["burst"]) * total(dram, "reads", "writes")),
    ]  # fmt: skip


def conservation(memory: Memory, l1: np.ndarray, *others: np.ndarray) -> list[str]:
    """The conservation laws that a finished launch has broken: none, unless the model is wrong.

    ``l1`` are the SMs' L1 records, ``others`` those of the caches beside. Nothing may be in flight any more.
    """
    record, gpu = memory.record[0], memory.gpu
    requests, replies = record["requests"], record["replies"]
    laws = {}
    for whose, what in (("", "stats"), (" of the second grid", "share")):
        counts = _sums(l1[what]), [_sums(each[what]) for each in others], _sums(memory.slices[what])
        sent = (requests, replies) if what == "stats" else (requests["share"], replies["share"])
        laws[whose] = _flow(memory, *counts, _sums(memory.channels[what]), *sent)
    inner = _sums(l1["stats"])
    pairs = [(f"{name}{whose}", left, right) for whose, flow in laws.items() for name, left, right in flow]
    pairs += [
        ("packets in flight", _in_use(record), 0),
        ("answers of the L1s", inner["tokens_in"], inner["tokens_out"]),
    ]
    if memory.mesh:
        pairs += mesh.conservation(memory.mesh, record)
    for name, occupancy in (
        ("the L1s' MSHRs", l1["in_flight"]),
        ("requests in flight", record["ports"]["flight"]),
        ("the slices' inputs", record["gates"]["waiting"][: gpu.l2.slices]),
        ("the slices' MSHRs", memory.slices["in_flight"]),
        ("the DRAM queues", memory.channels["queue"]),
    ):
        pairs.append((f"left in {name}", int(occupancy["count"].sum()), 0))
        # Per instance, so that two errors cannot cancel.
        wrong = int((occupancy["integral"] != occupancy["residence"]).sum())
        pairs.append((f"Little's law for {name}", wrong, 0))
    return [f"{name}: {left} against {right}" for name, left, right in pairs if left != right]
