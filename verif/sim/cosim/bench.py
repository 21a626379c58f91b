"""A machine small enough for tests: some instances of one block on a few SMs, driven from a table of random inputs."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any

import numpy as np
from amaranth.hdl import Const, Module, Signal, Value
from amaranth.lib import wiring

from lockstep.models import blocks
from lockstep.models.jit import address, argument, call, entry, i64, pointer_to, slot, words_i64, words_u8
from lockstep.models.lsu import intra_warp_coalescer
from lockstep.rtl import registry
from lockstep.rtl.flat import _value, flat_ports
from lockstep.sim.cosim import library
from lockstep.sim.cosim.drive import random_inputs
from lockstep.sim.errors import KernelFault

STIMULI = 1009
OVERHEAD = 1000  # core cycles before a launch begins

_state, _ports = pointer_to(intra_warp_coalescer.STATE), pointer_to(intra_warp_coalescer.PORTS)


@slot
def _coalescer_wrong(state, io):
    """The model with a fault: it says that a line is the last one which has lane 1 alone."""
    ports = _ports(io)
    intra_warp_coalescer.step(_state(state), ports)
    if ports.o.line.valid != 0 and ports.o.line.payload.mask == 2:
        ports.o.line.payload.last = 1
    return i64(0)


WRONG = {"step": _coalescer_wrong}


def stimuli(block: str, parameters: Mapping[str, int], seed: int) -> np.ndarray:
    """Random inputs that keep to the block's contract where a random one would not."""
    inputs = random_inputs(library.load(block, parameters), STIMULI, seed)
    rng = np.random.default_rng(seed)
    if block == "lsu.intra_warp_coalescer":
        inputs["line_shift"] = 7
        payload = inputs["request"]["payload"]
        payload["size"] = 2
        payload["address"] &= rng.choice([0x0FFF_FFFC, 0x0000_00FC], (STIMULI, 1)).astype(np.uint32)
    elif block == "cta.cta_dispatcher":
        inputs["policy"] = seed % 2
        inputs["room"][:, -(-parameters["sms"] // 64) - 1] &= np.uint64((1 << (parameters["sms"] - 1) % 64 + 1) - 1)
        inputs["interval"] = rng.integers(1, 4)
        inputs["launch"] = rng.integers(0, 50, STIMULI) == 0
    elif block.endswith(".share_access"):
        inputs["own_bytes"] = np.minimum(inputs["own_bytes"], 1 << 20)
        inputs["size"] = np.clip(inputs["size"], 1, 64)
    elif block == "scheduling.warp_scheduler":
        inputs["policy"] = seed % 4
        for name in ("start", "finish"):
            inputs[name][rng.integers(0, 8, STIMULI) != 0] = 0
    return inputs


@entry
def _run(table, count, stimuli, size, start, until):
    """Step ``count`` instances; the table has the addresses of their bindings and ports. The cycle of a stop, or -1."""
    where = words_i64(table, 2 * count)
    for now in range(start, until):
        for k in range(count):
            binding, io = words_i64(where[2 * k], 5), i64(where[2 * k + 1])
            source = words_u8(stimuli + ((now + 11 * k) % STIMULI) * size, size)
            into = words_u8(io, size)
            for byte in range(size):
                into[byte] = source[byte]
            if binding[1] != 0 and call(i64(binding[1]), i64(binding[4]), io) != 0:
                return i64(now)
            if call(i64(binding[0]), i64(binding[4]), io) != 0:
                return i64(now)
    return i64(-1)


@dataclass
class Instance:
    block: str
    parameters: Mapping[str, int]
    sm: int
    index: int
    record: np.ndarray
    inside: str = ""


class Machine:
    """``per_sm`` instances of a block on each of ``sms`` SMs."""

    def __init__(
        self,
        block: str,
        parameters: Mapping[str, int],
        sms: int = 2,
        per_sm: int = 2,
        seed: int = 1,
        slots: Mapping[str, Any] | None = None,
    ) -> None:
        self.block = block
        self.model = importlib.import_module(f"lockstep.models.{block}")
        self.slots = {**self.model.SLOTS, **(slots or {})}
        kind = blocks.instance(block, self.model.STATE)
        self.records = np.zeros((sms, per_sm), kind)
        for name in set(parameters) & set(self.model.STATE.names):
            self.records["state"][name] = parameters[name]
        self.instances = [
            Instance(block, parameters, sm, k, self.records[sm, k, ...]) for sm in range(sms) for k in range(per_sm)
        ]
        for instance in self.instances:
            binding = instance.record["binding"]
            for name in ("step", "comb"):
                binding[name] = address(self.slots[name]) if name in self.slots else 0
            binding["handle"] = instance.record["state"].ctypes.data
        self._inputs = stimuli(block, parameters, seed)
        self.gpu: Any = SimpleNamespace(launch=SimpleNamespace(overhead=OVERHEAD))
        self.on_launch: Callable[[], None] | None = None

    def launch(self, cycles: int, start: int = 0) -> None:
        """Reset everything and run, from input ``start`` on."""
        for instance in self.instances:
            self.model.reset(argument(instance.record["state"]), argument(instance.record["io"]))
        if self.on_launch:
            self.on_launch()
        records = [instance.record for instance in self.instances]
        table = np.array([[r["binding"].ctypes.data, r["io"].ctypes.data] for r in records])
        inputs, size = self._inputs.ctypes.data, self._inputs.itemsize
        if _run(table.ctypes.data, len(records), inputs, size, start, start + cycles) >= 0:
            raise KernelFault("stopped by a block")


class Faulty(wiring.Component):
    """A component of which one output bit is wrong in one cycle after every reset, or always."""

    def __init__(self, inner: wiring.Component, port: str, bit: int, cycle: int | None) -> None:
        self.combinational = getattr(inner, "combinational", {})
        super().__init__(inner.signature)
        self.inner, self.port, self.bit, self.cycle = inner, port, bit, cycle

    def elaborate(self, platform: object) -> Module:
        m = Module()
        m.submodules.inner = self.inner
        now: Value = Const(1)
        if self.cycle is not None:
            count = Signal(32)
            m.d.sync += count.eq(count + 1)
            now = count == self.cycle
        for port in flat_ports(self):
            mine, its = _value(self, port.path), _value(self.inner, port.path)
            if port.is_input:
                m.d.comb += its.eq(mine)
            else:
                wrong = now << self.bit if port.name == self.port else 0
                m.d.comb += mine.eq(its ^ wrong)
        return m


def faulty(block: str, port: str, bit: int, cycle: int | None) -> Callable[..., Faulty]:
    """A maker of the block's component with a fault."""
    return lambda **parameters: Faulty(registry.component(block)(**parameters), port, bit, cycle)
