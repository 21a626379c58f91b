"""Proofs about which instructions need a lock, with two lanes; registers and bytes are as many as they can be."""

from __future__ import annotations

from amaranth.hdl import Assert, Assume, Cat, Const, Cover, Elaboratable, Module, Signal, Value

from lockstep.rtl.flat import flat_ports
from lockstep.rtl.sharing.share_access import ADDRESS_BITS, MAX_SIZE, REGISTER_BITS, ShareAccess
from lockstep.verif.formal import Proof
from lockstep.verif.sharing.bench_share_access import protocol

LANES = 2


def legal(m: Module, dut: ShareAccess) -> None:
    """Any instruction that the contract allows."""
    ports = {port.name: getattr(dut, port.name) for port in flat_ports(dut) if not port.shape}
    m.d.comb += Assume(protocol(m, {}, ports))


class Bytes(Elaboratable):
    """Looks at one byte of one lane, any of them, and at the last byte of each lane."""

    def elaborate(self, platform: object) -> Module:
        m = Module()
        m.submodules.dut = dut = ShareAccess(lanes=LANES)
        legal(m, dut)
        lane, offset = Signal(range(LANES)), Signal(range(MAX_SIZE))
        byte = Signal(ADDRESS_BITS + 1)
        m.d.comb += [
            Assume(lane < LANES),
            Assume(offset < dut.size),
            byte.eq(Cat(dut.address).word_select(lane, ADDRESS_BITS) + offset),
        ]
        with m.If(dut.shared & dut.touched.bit_select(lane, 1) & (byte >= dut.own_bytes)):
            m.d.comb += Assert(dut.scratchpad_lock)
        lasts = [self.last(dut, lane) for lane in range(LANES)]
        with m.If(dut.scratchpad_lock):
            m.d.comb += Assert(dut.shared & (dut.touched & Cat(last >= dut.own_bytes for last in lasts)).any())
        return m

    @staticmethod
    def last(dut: ShareAccess, lane: int) -> Value:
        return dut.address[lane] + (dut.size - 1)[: len(dut.size)]


class Registers(Elaboratable):
    """A mask of all registers, in which those that are shared are set."""

    def elaborate(self, platform: object) -> Module:
        m = Module()
        m.submodules.dut = dut = ShareAccess(lanes=LANES)
        legal(m, dut)
        every = Const(-1, 1 << REGISTER_BITS)
        shared = Signal(1 << REGISTER_BITS)
        m.d.comb += [
            shared.eq(every << dut.own_registers),
            Assert(dut.register_lock == (dut.shared & dut.names & shared.bit_select(dut.highest, 1))),
        ]
        return m


class More(Elaboratable):
    """The same instruction twice, the second time with less of its own, or with more lanes."""

    def elaborate(self, platform: object) -> Module:
        m = Module()
        m.submodules.one = one = ShareAccess(lanes=LANES)
        m.submodules.other = other = ShareAccess(lanes=LANES)
        for dut in (one, other):
            legal(m, dut)
        m.d.comb += [
            Assume(getattr(one, name) == getattr(other, name)) for name in ("shared", "names", "highest", "size")
        ]
        m.d.comb += [
            Assume(Cat(one.address) == Cat(other.address)),
            Assume((one.touched & ~other.touched) == 0),
            Assume((one.own_registers >= other.own_registers) & (one.own_bytes >= other.own_bytes)),
            Assert(~one.register_lock | other.register_lock),
            Assert(~one.scratchpad_lock | other.scratchpad_lock),
        ]
        return m


class Borders(Elaboratable):
    """What must be reachable."""

    def elaborate(self, platform: object) -> Module:
        m = Module()
        m.submodules.dut = dut = ShareAccess(lanes=LANES)
        legal(m, dut)
        ends = [address + dut.size for address in dut.address]
        own = Cat(end <= dut.own_bytes for end in ends)
        over = ends[LANES - 1] == dut.own_bytes + 1
        m.d.comb += [
            Cover(dut.scratchpad_lock & own[: LANES - 1].all() & over & (dut.size == MAX_SIZE)),
            Cover(dut.scratchpad_lock & (dut.own_bytes == 1 << ADDRESS_BITS)),
            Cover(dut.shared & dut.touched.all() & ~dut.scratchpad_lock & (dut.own_bytes == dut.size)),
            Cover(dut.register_lock & (dut.highest == dut.own_registers)),
            Cover(dut.shared & dut.names & ~dut.register_lock & (dut.highest + 1 == dut.own_registers)),
        ]
        return m


_SIZE = f"{LANES} lanes"
PROOFS = {
    "bytes": Proof(
        Bytes, "prove", 1, f"the scratchpad lock if any byte of any touched lane is shared, and only then: {_SIZE}",
        long=True,
    ),
    "registers": Proof(Registers, "prove", 1, "the register lock if the highest register is shared, and only then"),
    "more of one's own": Proof(
        More, "prove", 1, f"who has more of its own, or touches fewer lanes, needs no lock that others do not: {_SIZE}"
    ),
    "borders": Proof(
        Borders, "cover", 1,
        f"the last byte of one lane alone is shared, also beyond the last address; all bytes and registers up to the "
        f"border, and a register behind it: {_SIZE}",
    ),
}  # fmt: skip
