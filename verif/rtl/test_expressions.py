"""Verilog to read means what Verilog with a wire for each operator means, and has names where an engineer looks."""

from __future__ import annotations

import re

import pytest
from amaranth.hdl import Cat, Module, Mux, Signal
from amaranth.lib import memory, wiring
from amaranth.lib.wiring import In, Out

from lockstep.rtl import export, expressions
from lockstep.synth import equivalence
from lockstep.verif import levels
from lockstep.verif.blocks import declaration

pytestmark = pytest.mark.hardware


def equal(gold: str, gate: str, top: str) -> bool:
    """Whether two texts, whose registers have the same names, are proved to do the same."""
    found = equivalence.texts(top, gold, gate)
    assert found.points > 0
    return found.undecided == []


@pytest.mark.exhaustive
@pytest.mark.long
@pytest.mark.parametrize("block", ["cta.cta_dispatcher", "scavenger.pid_controller", "warppool.thread_map_table"])
def test_blocks_mean_the_same(block: str) -> None:
    """Without signs, with them, with a memory; the level *formal* of ``lockstep verify`` does this with all blocks."""
    assert levels._expressions(declaration(block)).errors == []


class Trees(wiring.Component):
    """Operators inside operators, signed ones, selected bits of results, and the same thing twice."""

    def __init__(self) -> None:
        super().__init__({"a": In(4), "b": In(4), "c": In(2), "o": Out(12).array(11), "held": Out(4)})

    def elaborate(self, platform: object) -> Module:
        m = Module()
        a, b, c = self.a, self.b, self.c
        x, y = a.as_signed(), b.as_signed()
        values = [
            (a & b) | (a ^ (b | c)), (a + b) * c - (a - b), Mux(Mux(c[0], a, b) == 3, Mux(c[1], a, b), ~(a & b)),
            (x >> c) + a, ((x >> c) < y) & (a <= b), (a & ~b).any() ^ (a | b).all(), (a + b)[1:4] << c,
            Cat(a <= b, a < b, (a + b)[4]), (a - b - c) - (a + (b + c)), ((a + b)[2] | (a + b)[3]) & (a + b).xor(),
            -(~(a + b)) & ~(-(a | 0)),
        ]  # fmt: skip
        m.d.comb += [port.eq(value) for port, value in zip(self.o, values, strict=True)]
        m.d.sync += self.held.eq(Mux((a + b)[0], self.held ^ (a & ~b), Mux(c[0], self.held + 1, a)))
        return m


def test_nested_operators_mean_the_same() -> None:
    gold = export.operators(Trees(), "area.trees")
    gate = expressions.readable(gold, "trees")
    assert equal(gold, gate, "trees")
    for old, new in (" & ", " | "), (" - ", " + "), (">>>", ">>"), (" ? a : b", " ? b : a"):
        wrong = gate.replace(old, new, 1)
        assert wrong != gate and not equal(gold, wrong, "trees"), old


class Held(wiring.Component):
    """Part of :class:`Twins`."""

    def __init__(self) -> None:
        super().__init__({"value": In(4), "held": Out(4)})

    def elaborate(self, platform: object) -> Module:
        m = Module()
        m.d.sync += self.held.eq(self.value + 1)
        return m


class Twins(wiring.Component):
    """Two parts that are alike, a memory, and the sum of what they hold."""

    def __init__(self) -> None:
        super().__init__({"value": In(4), "sum": Out(4), "all": Out(1), "some": Out(1)})

    def elaborate(self, platform: object) -> Module:
        m = Module()
        m.submodules.part_0 = first = Held()
        m.submodules.part_1 = second = Held()
        m.submodules.table = table = memory.Memory(shape=4, depth=3, init=[])
        write, read = table.write_port(), table.read_port(domain="comb")
        longest = Signal(4)
        m.d.comb += [
            first.value.eq(self.value), second.value.eq(first.held), write.addr.eq(self.value[:2]),
            write.data.eq(self.value), write.en.eq(1), read.addr.eq(second.held[:2]),
            longest.eq(read.data ^ first.held), self.sum.eq(first.held + second.held),
            self.all.eq((self.sum & longest).all()), self.some.eq((self.sum & longest).any()),
        ]  # fmt: skip
        return m


def test_names_and_structure() -> None:
    """One module for both parts, no wire ``n1``, ports declared once, and a loop that fills the memory."""
    gold = export.operators(Twins(), "area.twins")
    text = expressions.readable(gold, "twins")
    assert equal(gold, text, "twins")
    assert re.findall(r"^module (\w+)", text, re.MULTILINE) == ["twins", "twins_part"]
    assert re.findall(r"^  (\w+) (part_\d) \(", text, re.MULTILINE) == [
        ("twins_part", "part_0"),
        ("twins_part", "part_1"),
    ]
    assert re.search(r"\bn\d+\b", gold) and not re.search(r"\bn\d+\b", text)
    assert text.count(" sum") == 1 + text.count("assign sum") and "  output wire [3:0] sum,\n" in text
    assert "for (k = 0; k <= 2; k = k + 1) table_[k] = 4'h0;" in text


class Inverted(Held):
    """Another part."""

    def elaborate(self, platform: object) -> Module:
        m = Module()
        m.d.sync += self.held.eq(~self.value)
        return m


class Families(wiring.Component):
    """Four parts in a row: two that are alike, and two others that are."""

    def __init__(self) -> None:
        super().__init__({"value": In(4), "held": Out(4)})

    def elaborate(self, platform: object) -> Module:
        m = Module()
        value = self.value
        for k, kind in enumerate((Held, Inverted, Held, Inverted)):
            m.submodules[f"part_{k}"] = part = kind()
            m.d.comb += part.value.eq(value)
            value = part.held
        m.d.comb += self.held.eq(value)
        return m


def test_two_kinds_of_parts_that_are_alike() -> None:
    """A module for each kind."""
    gold = export.operators(Families(), "area.families")
    text = expressions.readable(gold, "families")
    assert equal(gold, text, "families")
    called = re.findall(r"^  (\w+) part_\d \(", text, re.MULTILINE)
    assert called[0] == called[2] != called[1] == called[3]


def test_long_lines_are_broken() -> None:
    for block in "sharing.share_locks", "cta.cta_dispatcher":
        code = [line for line in declaration(block).verilog(levels.MUTATED).split("\n") if not line.startswith("//")]
        assert max(map(len, code)) <= expressions.WIDTH + len(" :")
