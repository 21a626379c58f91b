"""Tells which locks an instruction needs: beside each warp scheduler, before its warp requests.

Jatala et al., figure 4: a warp that shares nothing goes on, and so does an access to what is the warp's own; only the
rest asks for a lock. The paper counts registers from 1, and has two comparators, (b) and (c). Scratchpad is decided in
the same way for every lane, with all the bytes that it accesses.
"""

from __future__ import annotations

from typing import ClassVar

from amaranth.hdl import Cat, Module, Signal, signed
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from lockstep.spec.parameters import LANES

REGISTER_BITS = 8  # of a register's number, and of how many a thread has
ADDRESS_BITS = 20  # of an address in a CTA's scratchpad
MAX_SIZE = 64  # bytes that a lane accesses


class ShareAccess(wiring.Component):
    """Compares what one instruction accesses with what is its warp's and its CTA's own.

    Of a thread's registers, and of a CTA's scratchpad, a first part is its own; what follows is shared with the other
    CTA of the pair. An access of which a single byte is shared needs the lock. Addresses do not wrap: bytes from
    2 ** 20 on, if an access has any, are shared.

    Latency: none. Both outputs belong to the cycle of the inputs, and there is no state.

    Parameters
    ----------
    lanes : int
        Threads of a warp, 1 to 32.

    Members
    -------
    shared : In
        The warp belongs to a CTA of a pair.
    own_registers : In
        Registers of a thread that are the warp's own, 0 to 255; with 255 all are.
    own_bytes : In
        Bytes of the CTA's scratchpad that are its own, 0 to 2 ** 20; with 2 ** 20 all that there can be are.
    names : In
        The instruction names a register.
    highest : In
        The highest register that it names, source or destination, 0 to 254; of a pair of 64 bits, the upper one.
    touched : In
        Lanes that access the scratchpad.
    address : In, one per lane
        The first byte that the lane accesses, counted from the beginning of its CTA's scratchpad.
    size : In
        Bytes that each of these lanes accesses, 1 to 64; 0 only if there are none.
    register_lock : Out, combinational
        The instruction needs the lock of its warp's shared registers.
    scratchpad_lock : Out, combinational
        It needs the lock of its CTA's shared scratchpad.

    Raises
    ------
    ValueError
        for a size out of range.
    """

    LARGEST: ClassVar = {"lanes": LANES}
    combinational: ClassVar = {
        "register_lock": ("shared", "own_registers", "names", "highest"),
        "scratchpad_lock": ("shared", "own_bytes", "touched", "address", "size"),
    }

    def __init__(self, *, lanes: int = LANES) -> None:
        if not 1 <= lanes <= LANES:
            raise ValueError(f"lanes must be 1 to {LANES}, not {lanes}")
        super().__init__(
            {
                "shared": In(1),
                "own_registers": In(REGISTER_BITS),
                "own_bytes": In(ADDRESS_BITS + 1),
                "names": In(1),
                "highest": In(REGISTER_BITS),
                "touched": In(lanes),
                "address": In(ADDRESS_BITS).array(lanes),
                "size": In(range(MAX_SIZE + 1)),
                "register_lock": Out(1),
                "scratchpad_lock": Out(1),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        # The highest address from which an access has own bytes alone. It is below 2 ** 20, as the access has a byte,
        # and negative if that has more bytes than are own. So one subtractor serves all lanes.
        limit = Signal(signed(ADDRESS_BITS + 1))
        beyond = Signal.like(self.touched)
        m.d.comb += [
            limit.eq(self.own_bytes - self.size),
            beyond.eq(Cat(address > limit for address in self.address)),
            self.register_lock.eq(self.shared & self.names & (self.highest >= self.own_registers)),
            self.scratchpad_lock.eq(self.shared & (self.touched & beyond).any()),
        ]
        return m
