"""The instruction queues, case by case; ``bench_instruction_queues.py`` has the random runs."""

from __future__ import annotations

from typing import Any

import pytest

from lockstep.models.jit import view
from lockstep.models.time import NEVER
from lockstep.models.warppool import instruction_queues
from lockstep.rtl.warppool.instruction_queues import InstructionQueues
from lockstep.verif.bench import Bench
from lockstep.verif.warppool.bench_instruction_queues import (
    CONFIGURATIONS,
)


class Queues(Bench):
    """The model with its ports as plain records, and one instruction to enter at a time."""

    def __init__(self, **parameters: int) -> None:
        super().__init__(instruction_queues, **parameters)
        self.ports: Any = view(self.io)

    def enter(self, warp: int, **fields: int) -> None:
        self.ports.i.enter.valid = 1
        for name, value in {"mask": 1, "warp": warp, **fields}.items():
            setattr(self.ports.i.enter.payload, name, value)

    def ready(self, *ports: int) -> None:
        """These coalescers are ready, the others are not."""
        for port in range(self.parameters["coalescers"]):
            self.ports.i.instruction[port].ready = port in ports

    def clock(self) -> None:
        self.step()
        self.ports.i.enter.valid = 0

    @property
    def presented(self) -> list[int | None]:
        """The warps of the instructions presented, by coalescer."""
        streams = list(self.ports.o.instruction)[: self.parameters["coalescers"]]
        return [stream.payload.warp if stream.valid else None for stream in streams]

    @property
    def inside(self) -> list[int]:
        """Instructions in each queue."""
        return [self.parameters["depth"] - free for free in list(self.ports.o.free)[: self.parameters["queues"]]]


PAPER = CONFIGURATIONS["paper"]


def test_an_instruction_is_presented_two_cycles_after_it_entered() -> None:
    bench = Queues(**PAPER)
    bench.ready(0, 1)
    bench.enter(5, mask=0xA5A5_A5A5, size=4, store=1, bypass=1, ticket=9)
    bench.clock()
    assert bench.presented == [None, None] and bench.inside[1] == 1
    bench.clock()
    assert bench.presented == [5, None] and bench.inside[1] == 0
    payload = bench.ports.o.instruction[0].payload
    assert (payload.mask, payload.size, payload.store, payload.atomic, payload.bypass, payload.ticket) == (
        0xA5A5_A5A5, 4, 1, 0, 1, 9
    )  # fmt: skip


def test_low_warps_first_and_in_order_within_a_queue() -> None:
    bench = Queues(**PAPER)
    bench.ready()
    for warp in (47, 3, 10, 5, 0, 4, 2):  # queues 15, 1, 3, 1, 0, 1, 0
        bench.enter(warp)
        bench.clock()
    assert [sum(bench.inside[queue:]) for queue in (0, 1, 3, 15)] == [7, 5, 2, 1]
    bench.ready(0)
    order = []
    for _ in range(20):
        if bench.presented[0] is not None:
            order.append(bench.presented[0])
        bench.clock()
    assert order == [0, 2, 3, 5, 4, 10, 47]


@pytest.mark.parametrize("coalescers, cycles", [(1, 16), (2, 8), (4, 8)])
def test_one_instruction_per_cycle_and_every_other_one_to_a_coalescer(coalescers: int, cycles: int) -> None:
    bench = Queues(**{**PAPER, "coalescers": coalescers})
    bench.ready()
    for _ in range(8):
        bench.enter(0)
        bench.clock()
    bench.ready(*range(coalescers))
    for cycle in range(cycles):
        assert bench.inside[0] == 8 - (cycle + (coalescers == 1)) // (2 if coalescers == 1 else 1)
        bench.clock()
    assert bench.inside[0] == 0


def test_a_coalescer_that_is_not_ready_is_given_nothing() -> None:
    bench = Queues(**PAPER)
    bench.enter(0)
    bench.ready(1)
    for _ in range(3):
        bench.clock()
        assert bench.presented[0] is None
    bench.enter(1)
    bench.ready()
    for _ in range(3):
        bench.clock()
    assert bench.presented == [None, None] and bench.inside[0] == 1


def test_a_stalled_instruction_holds() -> None:
    bench = Queues(**PAPER)
    bench.ready(0)
    bench.enter(7)
    bench.clock()
    bench.clock()
    bench.ready(1)
    bench.enter(0)
    for _ in range(4):
        assert bench.presented[0] == 7
        bench.clock()
    bench.ready(0)
    bench.clock()
    assert bench.presented[0] is None


def test_an_empty_block_is_idle_for_ever() -> None:
    bench = Queues(**PAPER)
    assert bench.idle() == NEVER
    bench.enter(0)
    assert bench.idle() == 0


@pytest.mark.parametrize(
    "arguments, message",
    [
        (dict(lanes=33), "lanes must be 1 to 32, not 33"),
        (dict(depth=0), "depth must be 1 to 16, not 0"),
        (dict(coalescers=5), "coalescers must be 1 to 4, not 5"),
        (dict(warps=49), "16 queues of 3 warps cannot hold 49 warps"),
    ],
)
def test_wrong_arguments_are_named(arguments: dict[str, int], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        InstructionQueues(**arguments)
