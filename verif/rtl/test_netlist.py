"""The check of combinational paths finds every kind of undeclared path; ``verif/test_blocks.py`` checks the blocks."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from amaranth.hdl import Cat, ClockDomain, Const, Instance, Module, Signal
from amaranth.lib import data, memory, stream, wiring
from amaranth.lib.wiring import In, Out

from lockstep.rtl import export, netlist

pytestmark = pytest.mark.hardware

Body = Callable[[Module, Any], None]


class Planted(wiring.Component):
    """Inputs ``a`` and ``b`` and a stream, outputs ``x`` and ``y``, with whatever a test puts between them."""

    def __init__(self, body: Body, **combinational: tuple[str, ...]) -> None:
        record = data.StructLayout({"low": 2, "high": 2})
        super().__init__(
            {"a": In(4), "b": In(4), "x": Out(4), "y": Out(record), "taken": In(stream.Signature(4)).array(2)}
        )
        self.combinational = combinational
        self.body = body

    def elaborate(self, platform: object) -> Module:
        m = Module()
        self.body(m, self)
        return m


def check(body: Body, **combinational: tuple[str, ...]) -> list[str]:
    return [str(mismatch) for mismatch in netlist.check(Planted(body, **combinational))]


def test_registers_cut_paths() -> None:
    def body(m: Module, c: Planted) -> None:
        m.d.sync += c.x.eq(c.a + c.b)

    assert check(body) == []


def test_an_undeclared_path_names_block_output_and_input() -> None:
    def body(m: Module, c: Planted) -> None:
        m.d.sync += c.x.eq(c.a)
        m.d.comb += c.y.high.eq(c.b[:2] ^ c.x[:2])

    assert check(body) == [
        "Planted: output y_high depends combinationally on input b, which its attribute 'combinational' does not say"
    ]
    assert check(body, y=("b",)) == []


def test_a_declaration_that_is_not_used_fails() -> None:
    def body(m: Module, c: Planted) -> None:
        m.d.comb += c.x.eq(c.a)

    assert check(body, x=("a", "b")) == [
        "Planted: 'combinational' says that output x depends on input b, which it does not"
    ]


def test_ready_that_depends_on_valid_is_found() -> None:
    def body(m: Module, c: Planted) -> None:
        m.d.comb += c.taken[1].ready.eq(c.taken[1].valid & ~c.taken[0].valid)

    found = check(body)
    assert len(found) == 2 and all("output taken_1_ready" in line for line in found)
    assert check(body, **{"taken.ready": ("taken.valid",)}) == []


@pytest.mark.parametrize(
    "depends",
    [
        lambda c: c.a + 1, lambda c: -c.a, lambda c: c.a << 1, lambda c: Const(1, 4) << c.a, lambda c: c.a == 3,
        lambda c: c.a.any(), lambda c: c.a * c.x, lambda c: (c.a // 3), lambda c: Cat(c.a[3], c.x),
        lambda c: c.x.bit_select(c.a, 1),
    ],
)  # fmt: skip
def test_operators(depends: Callable[[Any], Any]) -> None:
    def body(m: Module, c: Planted) -> None:
        m.d.sync += c.x.eq(c.b)
        m.d.comb += c.y.eq(depends(c))

    assert check(body, y=("a",)) == [] and check(body)


def test_bits_are_told_apart() -> None:
    def body(m: Module, c: Planted) -> None:
        wide = Signal(8)
        total = Signal(8)
        m.d.comb += [wide.eq(Cat(c.x, c.a)), total.eq(wide + Const(3, 8)), c.y.eq(total[:4])]
        m.d.sync += c.x.eq(c.b)

    assert check(body) == [], "a carry does not run downwards"


def test_a_condition_is_a_path() -> None:
    def body(m: Module, c: Planted) -> None:
        with m.If(c.a == 2):
            m.d.comb += c.x.eq(5)

    assert "output x depends combinationally on input a" in check(body)[0]


def test_an_asynchronous_reset_is_a_path() -> None:
    def body(m: Module, c: Planted) -> None:
        m.domains.other = domain = ClockDomain(async_reset=True, local=True)
        m.d.comb += [domain.clk.eq(Const(0)), domain.rst.eq(c.a[0])]
        m.d.other += c.x.eq(c.b)

    assert "output x depends combinationally on input a" in check(body)[0]


@pytest.mark.parametrize(
    "kind, ports", [("$aldff", ("ALOAD", "AD")), ("$dffsr", ("SET", "CLR")), ("$dlatch", ("EN", "D"))]
)
def test_loads_sets_and_latches_are_paths(
    kind: str, ports: tuple[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    rtlil = export.rtlil  # Amaranth has no such cells: an instance of that name takes the place of one
    monkeypatch.setattr(export, "rtlil", lambda *arguments: rtlil(*arguments).replace(f"cell \\{kind}", f"cell {kind}"))

    def body(m: Module, c: Planted) -> None:
        known = {"i_D": c.x, "p_WIDTH": 4} | ({"p_EN_POLARITY": 1} if kind == "$dlatch" else {"p_CLK_POLARITY": 1})
        if kind != "$dlatch":
            known["i_CLK"] = Const(0, 1)
        known |= {f"p_{name}_POLARITY": 1 for name in ports if name in ("ALOAD", "SET", "CLR")}
        first = c.a[0] if ports[0] in ("ALOAD", "EN") else c.a
        output = Signal(4)
        m.submodules.cell = Instance(kind, **{**known, f"i_{ports[0]}": first, f"i_{ports[1]}": c.b, "o_Q": output})
        m.d.comb += c.y.eq(output)

    assert [line.split(", which")[0] for line in check(body)] == [
        f"Planted: output y_{part} depends combinationally on input {name}" for part in ("low", "high") for name in "ab"
    ]


@pytest.mark.parametrize("domain, path", [("comb", True), ("sync", False)])
def test_a_memory_read(domain: str, path: bool) -> None:
    def body(m: Module, c: Planted) -> None:
        m.submodules.store = store = memory.Memory(shape=4, depth=16, init=[])
        first, second, read = store.write_port(), store.write_port(), store.read_port(domain=domain)
        m.d.comb += [
            first.addr.eq(c.b), first.data.eq(c.b), first.en.eq(c.b[0]),
            second.addr.eq(c.b), second.data.eq(c.b), second.en.eq(c.b[1]),
            read.addr.eq(c.a), c.x.eq(read.data),
        ]  # fmt: skip

    assert check(body, **({"x": ("a",)} if path else {})) == []
    assert bool(check(body)) == path
    [found] = netlist.Netlist(Planted(body)).memories()
    assert found == netlist.Memory("store", 4, 16, writes=2, reads=1, asynchronous=int(path)) and found.bits == 64


def test_a_black_box_is_refused() -> None:
    def body(m: Module, c: Planted) -> None:
        m.submodules.cell = Instance("somewhere", i_a=c.a, o_x=c.x)

    with pytest.raises(ValueError, match="Planted: holds a 'somewhere', whose paths nobody knows"):
        check(body)


def test_clock_and_reset_do_not_count() -> None:
    def body(m: Module, c: Planted) -> None:
        m.d.sync += c.x.eq(c.a)
        m.domains.sync = ClockDomain(async_reset=True)

    assert check(body) == []


def test_registers_by_name() -> None:
    def body(m: Module, c: Planted) -> None:
        held = [Signal(4, name=f"held_{i}") for i in range(2)]
        m.d.sync += [held[0].eq(c.a), held[1].eq(held[0]), c.y.eq(held[1])]
        m.d.comb += c.x.eq(~held[1])

    assert netlist.Netlist(Planted(body)).registers() == [
        netlist.Register("held_0", 4, False), netlist.Register("held_1", 4, False), netlist.Register("y", 4, True),
    ]  # fmt: skip
