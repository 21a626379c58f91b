"""A block's hardware beside its golden model, clock by clock, in Amaranth's own simulator."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import numpy as np
from amaranth.hdl import Value
from amaranth.lib import wiring
from amaranth.sim import Simulator

from lockstep.rtl.ports import Field, layout
from lockstep.verif.bench import Bench

Leaf = tuple[str, Value, int, Callable[[], int]]


def _read(record: np.ndarray, name: str, index: tuple[int, ...]) -> int:
    return int(record[name][index])


def _leaves(fields: list[Field], ports: Any, record: np.ndarray, path: str = "") -> Iterator[Leaf]:
    """Name, signal, width and the model's value of each scalar below a list of fields."""
    for field in fields:
        for index in np.ndindex(*field["shape"]):
            port, name = getattr(ports, field["name"]), path + field["name"]
            for i in index:
                port, name = port[i], f"{name}[{i}]"
            inner = record[field["name"]][index] if index else record[field["name"]]
            if "fields" in field:
                yield from _leaves(field["fields"], port, inner, name + ".")
            else:
                yield name, Value.cast(port), field["width"], partial(_read, record, field["name"], index)


def compare(component: wiring.Component, bench: Bench, stimulate: Callable[[Bench], None], cycles: int) -> None:
    """Drive both with what ``stimulate`` puts into ``bench.i`` and assert that every output is equal in every cycle."""
    sides = layout(component)
    inputs, outputs, combinational = (
        list(_leaves(sides[side], component, bench.io[side])) if side in sides else [] for side in "ioc"
    )

    async def process(ctx: Any) -> None:
        def check(leaves: list[Leaf], cycle: int) -> None:
            for name, signal, _, expected in leaves:
                got = ctx.get(signal)
                assert got == expected(), f"cycle {cycle}: {name}: RTL {got}, model {expected()}"

        for cycle in range(cycles):
            stimulate(bench)
            for name, signal, width, value in inputs:
                assert value() >> width == 0, f"{name} has {width} bits"
                ctx.set(signal, value())
            bench.comb()
            check(combinational, cycle)
            check(outputs, cycle)  # the new inputs do not reach them
            await ctx.tick()
            bench.step()

    simulator = Simulator(component)
    simulator.add_clock(1e-6)
    simulator.add_testbench(process)
    simulator.run()
