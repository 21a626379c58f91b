"""ShareOwner, case by case; ``bench_share_owner.py`` has the random runs."""

from __future__ import annotations

from typing import Any

import pytest

from lockstep.models.jit import view
from lockstep.models.sharing import share_owner
from lockstep.models.time import NEVER
from lockstep.rtl import netlist
from lockstep.rtl.sharing.share_owner import ShareOwner
from lockstep.spec.sharing.storage import mode_bits
from lockstep.verif.bench import Bench
from lockstep.verif.sharing.bench_share_owner import CONFIGURATIONS

SHIPPED = CONFIGURATIONS["shipped"]


class Owner(Bench):
    """The model, with what happens to pair 1 in a cycle: the sides that start, that finish and that hold locks."""

    PAIR = 1

    def __init__(self, **parameters: int) -> None:
        super().__init__(share_owner, **parameters)
        self.ports: Any = view(self.io)

    def apply(self, start: tuple[int, ...] = (), finish: tuple[int, ...] = (), holds: tuple[int, ...] = ()) -> None:
        for port, sides in (("start", start), ("finish", finish), ("holds", holds)):
            for side in range(2):
                getattr(self.ports.i, port)[side] = (side in sides) << self.PAIR

    def clock(self, **sides: tuple[int, ...]) -> tuple[set[int], int, int]:
        """The pair's sides that are present, its owner and its older side after a cycle; no other pair changes."""
        self.apply(**sides)
        self.step()
        o = self.ports.o
        assert (o.present[0] | o.present[1] | o.owner | o.older) & ~(1 << self.PAIR) == 0
        assert o.sharing == ((o.present[0] & o.present[1]) != 0)
        present = {side for side in range(2) if o.present[side]}
        return present, o.owner >> self.PAIR, o.older >> self.PAIR


@pytest.mark.parametrize("side", [0, 1])
def test_the_older_owns_until_it_ends(side: int) -> None:
    bench, other = Owner(**SHIPPED), 1 - side
    assert bench.clock(start=(side,)) == ({side}, side, side)
    assert bench.clock(start=(other,)) == ({0, 1}, side, side)
    assert bench.clock(finish=(side,)) == ({other}, other, other)
    assert bench.clock(start=(side,)) == ({0, 1}, other, other)
    assert bench.clock(finish=(0, 1)) == (set(), 0, 0)


@pytest.mark.parametrize("side", [0, 1])
def test_what_takes_the_owner_s_place_does_not_own(side: int) -> None:
    bench, other = Owner(**SHIPPED), 1 - side
    bench.clock(start=(side,))
    bench.clock(start=(other,))
    assert bench.clock(finish=(side,), start=(side,), holds=(side,)) == ({0, 1}, other, other)
    assert bench.clock(finish=(side,), start=(side,)) == ({0, 1}, other, other)


@pytest.mark.parametrize("side", [0, 1])
def test_whoever_takes_the_first_lock_owns(side: int) -> None:
    bench, other = Owner(**SHIPPED), 1 - side
    bench.clock(start=(side,))
    bench.clock(start=(other,))
    assert bench.clock(holds=(other,)) == ({0, 1}, other, side)
    assert bench.clock() == ({0, 1}, other, side)
    assert bench.clock(holds=(0, 1)) == ({0, 1}, other, side)
    assert bench.clock(holds=(side,)) == ({0, 1}, side, side)
    assert bench.clock(holds=(other,), finish=(other,)) == ({side}, side, side)


def test_ctas_that_come_together() -> None:
    bench = Owner(**SHIPPED)
    assert bench.clock(start=(0, 1)) == ({0, 1}, 0, 0)
    assert bench.clock(holds=(1,)) == ({0, 1}, 1, 0)
    assert bench.clock(finish=(0, 1), start=(0, 1), holds=(1,)) == ({0, 1}, 0, 0)
    assert bench.clock(finish=(0,)) == ({1}, 1, 1)
    assert bench.clock(finish=(1,), start=(0, 1)) == ({0, 1}, 0, 0)
    assert bench.clock(finish=(0, 1), start=(1,)) == ({1}, 1, 1)


def test_the_model_rests_unless_a_cta_comes_or_ends_or_a_lock_makes_an_owner() -> None:
    bench = Owner(**SHIPPED)
    assert bench.idle() == NEVER
    for side in range(2):
        bench.apply(start=(side,))
        assert bench.idle() == 0
        bench.clock(start=(side,))
    for holds, steps in (((), NEVER), ((0,), NEVER), ((0, 1), NEVER), ((1,), 0)):
        bench.apply(holds=holds)
        assert bench.idle() == steps
    bench.apply(finish=(0,))
    assert bench.idle() == 0


@pytest.mark.parametrize("ctas, pairs", [(1, 1), (2, 1), (7, 3), (8, 4), (32, 16)])
def test_its_state_is_four_flip_flops_for_each_pair(ctas: int, pairs: int) -> None:
    """The paper counts 129 bits for 8 CTAs and 48 warps."""
    component = ShareOwner(ctas=ctas)
    assert component.pairs == pairs
    found = netlist.Netlist(component)
    assert sum(register.bits for register in found.registers()) == 4 * pairs and not found.memories()
    assert mode_bits(8, 48) == 129


def test_sizes_are_checked() -> None:
    for ctas in (0, 33):
        with pytest.raises(ValueError, match=f"ctas must be 1 to 32, not {ctas}"):
            ShareOwner(ctas=ctas)
