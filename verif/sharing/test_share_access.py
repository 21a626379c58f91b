"""ShareAccess, case by case; ``bench_share_access.py`` has the random runs."""

from __future__ import annotations

from typing import Any

import pytest

from lockstep.models.jit import view
from lockstep.models.sharing import share_access
from lockstep.models.time import NEVER
from lockstep.rtl import netlist
from lockstep.rtl.sharing.share_access import ShareAccess
from lockstep.verif.bench import Bench

LANES = 4


class Access(Bench):
    """The model, for one instruction at a time."""

    def __init__(self, shared: int = 1) -> None:
        super().__init__(share_access, lanes=LANES)
        self.ports: Any = view(self.io)
        self.ports.i.shared = shared

    def register(self, highest: int, own: int, names: int = 1) -> int:
        """Whether the register lock is needed."""
        i = self.ports.i
        i.names, i.highest, i.own_registers = names, highest, own
        self.comb()
        return int(self.ports.c.register_lock)

    def scratchpad(self, addresses: dict[int, int], size: int, own: int) -> int:
        """Whether the scratchpad lock is needed; addresses by lane, those of the others are beyond all."""
        i = self.ports.i
        i.touched, i.size, i.own_bytes = sum(1 << lane for lane in addresses), size, own
        for lane in range(LANES):
            i.address[lane] = addresses.get(lane, (1 << 20) - 1)
        self.comb()
        return int(self.ports.c.scratchpad_lock)


def test_registers_from_the_number_of_own_ones_on_are_shared() -> None:
    bench = Access()
    assert [bench.register(highest, own=3) for highest in range(6)] == [0, 0, 0, 1, 1, 1]
    assert bench.register(0, own=0) == 1 and bench.register(254, own=255) == 0
    assert bench.register(200, own=3, names=0) == 0


@pytest.mark.parametrize("size", [1, 4, 64])
def test_an_access_is_shared_if_its_last_byte_is(size: int) -> None:
    bench = Access()
    for lane in range(LANES):
        found = [bench.scratchpad({lane: 1000 - size + beyond}, size, own=1000) for beyond in (-1, 0, 1, size)]
        assert found == [0, 0, 1, 1]


def test_one_lane_over_is_enough_and_others_do_not_count() -> None:
    bench = Access()
    assert bench.scratchpad({0: 0, 1: 96, 3: 50}, size=4, own=100) == 0
    assert bench.scratchpad({0: 0, 1: 97, 3: 50}, size=4, own=100) == 1
    assert bench.scratchpad({}, size=0, own=0) == 0


def test_the_ends_of_the_scratchpad() -> None:
    bench = Access()
    assert bench.scratchpad({0: 0}, size=8, own=7) == 1 and bench.scratchpad({0: 0}, size=8, own=8) == 0
    assert bench.scratchpad({0: 0}, size=1, own=0) == 1
    assert bench.scratchpad({0: (1 << 20) - 8}, size=8, own=1 << 20) == 0
    assert bench.scratchpad({0: (1 << 20) - 7}, size=8, own=1 << 20) == 1, "it does not wrap"


def test_a_warp_that_shares_nothing_needs_no_lock() -> None:
    bench = Access(shared=0)
    assert bench.register(200, own=3) == 0 and bench.scratchpad({0: 500}, size=4, own=100) == 0
    assert bench.idle() == NEVER


def test_it_has_no_state() -> None:
    found = netlist.Netlist(ShareAccess())
    assert not found.registers() and not found.memories()


def test_sizes_are_checked() -> None:
    for lanes in (0, 33):
        with pytest.raises(ValueError, match=f"lanes must be 1 to 32, not {lanes}"):
            ShareAccess(lanes=lanes)
