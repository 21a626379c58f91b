"""What a block's ports carry in one run: recorded from the golden model, played to any other body of the block.

Hardware that equals the model in every cycle so far behaves to its environment as the model does. So the environment
meets the model alone, and the run is a table of inputs and expected outputs: the cocotb bench, the coverage build and
the mutants all play the same table. A replay file of a co-simulation becomes such a table too (:func:`replayed`).
"""

from __future__ import annotations

import random
import traceback
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from lockstep.models.blocks import instances, ports
from lockstep.models.jit import view
from lockstep.rtl.flat import FlatPort
from lockstep.sim.cosim.replay import Replay
from lockstep.sim.errors import UsageError
from lockstep.verif.bench import Bench
from lockstep.verif.blocks import Declaration, Parameters

LARGEST = 1 << 33  # bytes of a replay file's cycles


@dataclass(frozen=True)
class Run:
    """One random run. The seed, the configuration's name and the shape's name determine it."""

    configuration: str
    shape: str
    seed: int

    def __str__(self) -> str:
        return f"{self.configuration}, {self.shape}, seed {self.seed}"

    def rng(self) -> random.Random:
        return random.Random(str(self))


@dataclass(frozen=True)
class Trace:
    """``io``: the ports in each cycle, after ``comb`` and before ``step``. ``reset``: the cycles that end with a reset.

    ``presets``: by cycle, values that state has been given before it. ``idle``: the cycles that the model calls idle,
    where it was asked. ``bins`` counts the cycles that hit each bin of functional coverage.
    """

    name: str
    parameters: Parameters
    io: np.ndarray
    reset: np.ndarray
    bins: Counter[str] = field(default_factory=Counter)
    presets: Mapping[int, Mapping[str, int]] = field(default_factory=dict)
    idle: np.ndarray = field(default_factory=lambda: np.zeros(0, bool))

    def __len__(self) -> int:
        return len(self.io)

    def packed(self, port: FlatPort) -> np.ndarray:
        """A port's bits in each cycle, as rows of bytes, lowest first.

        Raises
        ------
        ValueError
            for a value that the port is too narrow for: the environment (or the model) exceeds the configuration.
        """
        leaf = self.io
        for part in port.path:
            leaf = leaf[part] if isinstance(part, str) else leaf[:, part]
        leaf = leaf[:, *(slice(size) for size in port.shape)]
        words = leaf.reshape(len(leaf), -1).astype(np.uint64)
        if port.width < 64 and (words >> np.uint64(port.width)).any():
            cycle = int((words >> np.uint64(port.width)).any(axis=1).argmax())
            raise ValueError(f"{self.name}, cycle {cycle}: {port.name} has {port.width} bits, not {words[cycle]}")
        octets = np.ascontiguousarray(words.astype("<u8")).view(np.uint8).reshape(len(leaf), port.count, 8)
        if port.count == 1:
            return octets[:, 0, : -(-port.width // 8)]
        bits = np.unpackbits(octets, axis=2, bitorder="little")[:, :, : port.width]
        return np.packbits(bits.reshape(len(leaf), -1), axis=1, bitorder="little")


class Session:
    """A golden model in its environment, from a reset on. ``i``, ``o`` and ``c`` are its ports.

    With ``presets`` the environment may give state other values before a cycle.
    """

    def __init__(self, declared: Declaration, run: Run, rng: random.Random, presets: bool = False) -> None:
        self.declared, self.parameters = declared, declared.configurations[run.configuration]
        self.environment = declared.environment(self.parameters, run.shape, rng)
        self.bench = Bench(declared.model(), **self.parameters)
        self.presets = presets and hasattr(self.environment, "preset")
        self.preset: Mapping[str, int] = {}  # in this cycle
        ports = view(self.bench.io)
        self.i, self.o, self.c = ports.i, getattr(ports, "o", None), getattr(ports, "c", None)

    def settle(self) -> None:
        """A cycle, up to the clock edge."""
        if self.presets:
            self.preset = self.environment.preset()  # type: ignore[attr-defined]
            for name, value in self.preset.items():
                self.bench.preset(name, value)
        self.environment.drive(self.i, self.o)
        self.bench.comb()
        self.environment.observe(self.i, self.o, self.c)

    def hits(self) -> list[str]:
        """The bins that this cycle hits."""
        return [name for name, hit in self.declared.bins.items() if hit(self.parameters, self.i, self.o, self.c)]


def record(declared: Declaration, run: Run, cycles: int | None = None, simulated: bool = False) -> Trace:
    """Run a block's environment with its golden model; ``AssertionError`` if the environment finds fault with it.

    For a simulator (``simulated``), which reaches all state, with presets and the cycles that the model calls idle.

    The first shape resets the block at random in the third quarter: hardware then meets a fresh model and a fresh
    environment, which have the last quarter to themselves.
    """
    rng, count = run.rng(), cycles or declared.cycles
    io, reset, bins = np.zeros(count, declared.model().PORTS), np.zeros(count, bool), Counter[str]()
    idle = np.zeros(count, bool)
    if run.shape == declared.shapes[0]:
        reset[rng.randrange(count // 2, count - count // 4)] = True
    session = Session(declared, run, rng, simulated)
    rested = Bench(declared.model(), **session.parameters)
    constant = declared.constant
    joins = any(instances(declared.model().STATE))  # such a model may put off what its states need
    presets: dict[int, Mapping[str, int]] = {}
    cycle = 0
    try:
        for cycle in range(count):
            session.settle()
            if session.preset:
                presets[cycle] = session.preset
            io[cycle] = session.bench.io
            if cycle and not reset[cycle - 1]:
                for name in constant:
                    assert io[cycle]["i"][name] == io[cycle - 1]["i"][name], f"the constant input {name} changes"
            bins.update(session.hits())
            idle[cycle] = rests = simulated and session.bench.idle() > 0
            if rests and not joins:
                rested.assign(session.bench)
                rested.skip(1)
            session.bench.step()
            assert not rests or joins or session.bench.bytes() == rested.bytes(), "state changes in a cycle called idle"
            if reset[cycle]:
                session.environment.finish()
                session = Session(declared, run, rng, simulated)
        session.environment.finish()
    except AssertionError as error:
        told = str(error) or traceback.extract_tb(error.__traceback__)[-1].line
        raise AssertionError(f"{declared.block}, {run}, cycle {cycle}: {told}") from error
    return Trace(str(run), session.parameters, io, reset, bins, presets, idle)


def replayed(declared: Declaration, name: str, parameters: Parameters, cycles: Iterable[Cycle]) -> Trace:
    """The trace of the golden model with these inputs."""
    bench = Bench(declared.model(), **parameters)
    rows: list[np.ndarray] = []
    reset: list[bool] = []
    for inputs, after_reset in cycles:
        if after_reset and rows:
            bench.reset()
            reset[-1] = True
        bench.i[()] = inputs
        bench.comb()
        rows.append(bench.io.copy())
        reset.append(False)
        bench.step()
    return Trace(name, parameters, np.array(rows, bench.io.dtype), np.array(reset))


Cycle = tuple[np.ndarray, bool]
"""The inputs of a cycle (side ``i`` of the ports), and whether a reset comes before it."""


def kept(replay: Replay) -> Iterator[Cycle]:
    """The cycles in a replay file of a co-simulation. Raises :class:`UsageError` if they are too many for a trace."""
    size = replay.cycles * ports(replay.block).itemsize
    if size > LARGEST:
        raise UsageError(
            f"{replay.block}: a bench would need {size:,} bytes for the {replay.cycles:,} cycles of the recording, and "
            f"has at most {LARGEST:,}; `python -m lockstep.sim.cosim.replay` plays it"
        )
    for record in replay.records():
        for repeat in range(record.cycles):
            yield record.io["i"], record.reset and repeat == 0


def joined(traces: Sequence[Trace]) -> Trace:
    """Traces of one configuration behind each other, with a reset at the end of each."""
    resets = [trace.reset.copy() for trace in traces]
    for reset in resets:
        reset[-1:] = True
    bins = sum((trace.bins for trace in traces), Counter[str]())
    io, reset = np.concatenate([trace.io for trace in traces]), np.concatenate(resets)
    starts = np.cumsum([0, *(len(trace) for trace in traces)])
    presets = {
        int(start) + cycle: values
        for start, trace in zip(starts, traces, strict=False)
        for cycle, values in trace.presets.items()
    }
    return Trace("; ".join(trace.name for trace in traces), traces[0].parameters, io, reset, bins, presets)
