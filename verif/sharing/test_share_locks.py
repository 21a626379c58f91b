"""The locks, case by case; ``bench_share_locks.py`` has the random runs."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from lockstep.models.jit import view
from lockstep.models.sharing import share_locks
from lockstep.models.time import NEVER
from lockstep.rtl.netlist import Netlist
from lockstep.rtl.sharing.share_locks import ShareLocks
from lockstep.spec.parameters import MAX_WARPS
from lockstep.spec.sharing.parameters import MAX_PAIRS
from lockstep.verif import formal
from lockstep.verif.bench import Bench
from lockstep.verif.blocks import declaration
from lockstep.verif.formal import Proof
from lockstep.verif.sharing.bench_share_locks import BLOCK, CONFIGURATIONS
from lockstep.verif.sharing.formal_share_locks import NoDeadlock

SHIPPED = CONFIGURATIONS["shipped"]
PER_CTA = 6
REGISTERS, SCRATCHPAD, BOTH = (1, 0), (0, 1), (1, 1)  # what an instruction needs

Locks = set[int]


class Pairs(Bench):
    """The model, whose warps are called by side, pair and number; the CTAs of side 0 are older."""

    def __init__(self, rule: int = 1, schedulers: int = 2, per_cta: int = PER_CTA) -> None:
        super().__init__(share_locks, **{**SHIPPED, "rule": rule, "schedulers": schedulers})
        self.ports: Any = view(self.io)
        self.per_cta = per_cta
        self.slots: dict[tuple[int, int], int] = {}  # by side and lock

    def slot(self, port: int, side: int, warp: int, pair: int) -> int:
        """The slot of a warp, which it gets from a scheduler when it first asks."""
        lock = pair * self.per_cta + warp
        if (side, lock) not in self.slots:
            slots = range(port, self.parameters["warps"], self.parameters["schedulers"])
            self.slots[side, lock] = min({*slots} - {*self.slots.values()})
        seat = self.ports.i.seat[self.slots[side, lock]]
        seat.pair, seat.side, seat.lock = pair, side, lock
        return self.slots[side, lock]

    def ask(self, port: int, side: int, warp: int, need: tuple[int, int] = REGISTERS, pair: int = 0) -> None:
        i, slot = self.ports.i, self.slot(port, side, warp, pair)
        assert slot % self.parameters["schedulers"] == port
        i.granted |= 1 << slot
        i.registers |= need[0] << slot
        i.scratchpad |= need[1] << slot

    def end(self, side: int, warp: int, pair: int = 0, last: bool = False) -> None:
        """A warp ends; ``last``: and its CTA."""
        self.ports.i.finish |= 1 << self.slot(0, side, warp, pair)
        self.ports.i.leave[side] |= last << pair

    def clock(self, others: int = 0) -> int:
        """One cycle, in which the instructions of some ports are refused for other reasons; what the block refuses."""
        i = self.ports.i
        i.refused = others
        self.cycle()
        i.granted = i.registers = i.scratchpad = i.finish = 0
        for side in range(2):
            i.leave[side] = 0
        return self.ports.c.refuse

    def alone(self, side: int, warp: int, need: tuple[int, int] = REGISTERS, pair: int = 0) -> bool:
        """Whether the only instruction of a cycle issues."""
        port = self.slot(0, side, warp, pair) % self.parameters["schedulers"]
        self.ask(port, side, warp, need, pair)
        return not self.clock()

    def held(self, side: int) -> Locks:
        return self._locks(side, self.ports.o.held)

    def scratchpads(self, side: int) -> Locks:
        return _members(self.ports.o.scratchpads[side])

    def holds(self, side: int) -> Locks:
        return _members(self.ports.o.holds[side])

    def waiting(self, side: int) -> Locks:
        return self._locks(side, self.ports.o.waiting)

    def _locks(self, side: int, mask: int) -> Locks:
        return {lock for (of, lock), slot in self.slots.items() if of == side and mask >> slot & 1}


def _members(mask: int) -> Locks:
    return {bit for bit in range(mask.bit_length()) if mask >> bit & 1}


def test_a_register_lock_is_held_until_its_warp_ends() -> None:
    bench = Pairs()
    assert bench.alone(0, 3, pair=2)
    assert (bench.held(0), bench.scratchpads(0), bench.holds(0)) == ({15}, set(), {2})
    bench.end(0, 2, pair=2)
    bench.clock()
    assert bench.held(0) == {15}
    bench.end(0, 3, pair=2)
    assert bench.held(0) == {15}, "the lock is free in the next cycle"
    bench.clock()
    assert bench.held(0) == bench.holds(0) == set()


def test_a_scratchpad_lock_is_held_until_its_cta_ends() -> None:
    bench = Pairs()
    assert bench.alone(1, 3, SCRATCHPAD, pair=1)
    assert (bench.held(1), bench.scratchpads(1), bench.holds(1)) == (set(), {1}, {1})
    bench.end(1, 3, pair=1)
    bench.clock()
    assert bench.scratchpads(1) == {1}, "its warp has ended, the CTA has not"
    bench.end(1, 0, pair=1, last=True)
    bench.clock()
    assert bench.scratchpads(1) == bench.holds(1) == set()


def test_an_instruction_takes_both_locks_or_none() -> None:
    bench = Pairs()
    assert bench.alone(0, 1, BOTH) and (bench.held(0), bench.scratchpads(0)) == ({1}, {0})
    assert not bench.alone(1, 1, BOTH) and (bench.held(1), bench.scratchpads(1)) == (set(), set())
    bench = Pairs(rule=0)
    assert bench.alone(0, 1, SCRATCHPAD) and not bench.alone(1, 2, BOTH)
    assert (bench.held(1), bench.scratchpads(1)) == (set(), set())


@pytest.mark.parametrize("theirs", [REGISTERS, SCRATCHPAD])
@pytest.mark.parametrize("need", [REGISTERS, SCRATCHPAD, BOTH])
def test_under_the_rule_any_lock_of_the_partner_is_in_the_way(need: tuple[int, int], theirs: tuple[int, int]) -> None:
    bench = Pairs()
    assert bench.alone(0, 5, theirs)
    assert not bench.alone(1, 2, need)
    assert bench.alone(0, 2, need), "of its own CTA"
    assert bench.alone(1, 2, need, pair=1), "of another pair"
    assert bench.alone(1, 3, (0, 0)), "without a need"


def test_without_the_rule_only_the_lock_itself_is_in_the_way() -> None:
    bench = Pairs(rule=0)
    assert bench.alone(0, 5) and not bench.alone(1, 5)
    assert bench.alone(1, 2) and bench.alone(1, 3, SCRATCHPAD)
    assert not bench.alone(0, 4, SCRATCHPAD)
    assert bench.holds(0) == bench.holds(1) == {0}


@pytest.mark.parametrize("port", [0, 1])
@pytest.mark.parametrize("older", [0, 1])
def test_of_two_ctas_in_one_cycle_the_older_goes(older: int, port: int) -> None:
    bench = Pairs()
    bench.ports.i.older = older << 1
    bench.ask(port, older, 1, pair=1)
    bench.ask(1 - port, 1 - older, 4, SCRATCHPAD, pair=1)
    assert bench.clock() == 1 << 1 - port
    assert bench.held(older) == {7} and bench.waiting(1 - older) == {10} and bench.holds(1 - older) == set()


def test_the_younger_gives_way_to_an_instruction_that_others_refuse_and_does_not_wait_for_it() -> None:
    bench = Pairs()
    bench.ask(0, 0, 1)
    bench.ask(1, 1, 1)
    assert bench.clock(others=0b01) == 0b10
    assert bench.waiting(1) == bench.holds(0) == bench.holds(1) == set()
    assert bench.alone(1, 1)


def test_one_of_two_older_instructions_is_enough_to_wait_for() -> None:
    bench = Pairs(schedulers=3)
    bench.ask(0, 0, 1)
    bench.ask(1, 1, 1)
    bench.ask(2, 0, 2)
    assert bench.clock(others=0b001) == 0b010
    assert bench.held(0) == {2} and bench.waiting(1) == {1}


def test_who_holds_goes_before_the_older() -> None:
    bench = Pairs()
    assert bench.alone(1, 0)
    bench.ask(0, 0, 1)
    bench.ask(1, 1, 2)
    assert bench.clock() == 0b01
    assert bench.held(1) == {0, 2} and bench.waiting(0) == {1}


def test_two_warps_of_a_cta_take_their_locks_together() -> None:
    bench = Pairs()
    bench.ask(0, 1, 1)
    bench.ask(1, 1, 2, BOTH)
    assert bench.clock() == 0 and bench.held(1) == {1, 2} and bench.scratchpads(1) == {0}


def test_without_the_rule_two_ctas_compete_for_one_lock_alone() -> None:
    bench = Pairs(rule=0)
    for warp, need, refused in ((1, REGISTERS, 0), (0, REGISTERS, 0b10), (2, BOTH, 0)):
        bench.reset()
        bench.ask(0, 0, 0)
        bench.ask(1, 1, warp, need)
        assert bench.clock() == refused
    bench.reset()
    bench.ask(0, 0, 0, BOTH)
    bench.ask(1, 1, 1, SCRATCHPAD)
    assert bench.clock() == 0b10


@pytest.mark.parametrize("rule", [0, 1])
def test_any_release_of_the_pair_wakes_and_no_other(rule: int) -> None:
    bench = Pairs(rule)
    for pair in (0, 1):
        assert bench.alone(0, 2, pair=pair) and bench.alone(0, 3, pair=pair)
        assert not bench.alone(1, 2, pair=pair) and not bench.alone(1, 3, pair=pair)
    assert bench.waiting(1) == {2, 3, 8, 9}
    bench.end(0, 0)
    bench.clock()
    assert bench.waiting(1) == {2, 3, 8, 9}, "nothing was released"
    bench.end(0, 2)
    bench.clock()
    assert bench.waiting(1) == {8, 9}
    assert not bench.alone(1, 3) and bench.waiting(1) == {3, 8, 9}
    bench.end(1, 3)
    bench.clock()
    assert bench.waiting(1) == {8, 9}, "a warp that ends does not wait"


def test_the_end_of_a_cta_wakes_who_waits_for_scratchpad() -> None:
    bench = Pairs()
    assert bench.alone(0, 0, SCRATCHPAD) and not bench.alone(1, 4, SCRATCHPAD)
    bench.end(0, 0, last=True)
    bench.clock()
    assert bench.waiting(1) == set() and bench.alone(1, 4, SCRATCHPAD)


def test_who_is_refused_in_the_cycle_of_a_release_asks_again() -> None:
    bench = Pairs()
    assert bench.alone(0, 0) and bench.alone(0, 1)
    bench.end(0, 0)
    assert not bench.alone(1, 0), "what is held in this cycle counts"
    assert bench.waiting(1) == set() and bench.held(0) == {1}
    assert not bench.alone(1, 0) and bench.waiting(1) == {0}


def figure_5(rule: int) -> Pairs:
    """The paper's figure 5: W1 and W2 of one CTA, W3 and W4 of another, where W2 and W3 have locks and are at barriers.

    W1, for whom W2 waits, now wants the lock of W3; W4, for whom W3 waits, that of W2.
    """
    bench = Pairs(rule, per_cta=2)
    bench.ask(0, 0, 1)  # W2
    bench.ask(1, 1, 0)  # W3
    bench.clock()
    bench.ask(0, 0, 0)  # W1
    bench.ask(1, 1, 1)  # W4
    bench.clock()
    return bench


def test_the_rule_breaks_the_deadlock_of_figure_5() -> None:
    bench = figure_5(rule=0)
    assert (bench.waiting(0), bench.waiting(1)) == ({0}, {1})
    bench = figure_5(rule=1)
    assert (bench.waiting(0), bench.waiting(1)) == (set(), {0, 1})
    assert bench.held(0) == {0, 1}, "W1 goes on, and with it W2"


@pytest.mark.hardware
def test_without_the_rule_the_proof_that_there_is_no_deadlock_fails(tmp_path: Path) -> None:
    outcome = formal.prove("no deadlock", Proof(lambda: NoDeadlock(rule=0), "bmc", 8, ""), tmp_path)
    assert not outcome.passed and "Assert failed" in outcome.counterexample


@pytest.mark.parametrize("per_cta, pair, locks", [(1, 3, {3}), (7, 2, {14, 20}), (24, 0, {0, 23})])
def test_the_locks_of_a_pair_follow_from_the_warps_of_a_cta(per_cta: int, pair: int, locks: Locks) -> None:
    bench = Pairs(per_cta=per_cta)
    for warp in {0, per_cta - 1}:
        assert bench.alone(1, warp, pair=pair)
    assert bench.held(1) == locks and bench.holds(1) == {pair}
    assert not bench.alone(0, per_cta // 2, pair=pair)


def test_idle_while_nobody_asks_for_a_lock() -> None:
    bench = Pairs()
    assert bench.idle() == NEVER
    bench.ask(0, 0, 0, (0, 0))
    assert bench.idle() == NEVER
    bench.ask(0, 0, 0)
    assert bench.idle() == 0
    bench.clock()
    assert bench.idle() == NEVER, "held locks change nothing"
    bench.end(0, 0)
    assert bench.idle() == 0


@pytest.mark.long
def test_the_state_is_a_bit_by_side_of_each_lock_warp_and_pair() -> None:
    bits: Counter[str] = Counter()
    for register in Netlist(ShareLocks(**SHIPPED)).registers():
        bits[register.name.partition("__")[0].rstrip("$0123456789")] += register.bits
    assert bits == {"held": 48, "waiting": 48, "scratchpads": 8, "holds": 8}


def test_the_largest_has_the_most_warps_and_pairs() -> None:
    largest: Any = declaration(BLOCK).component("largest")
    assert (len(largest.held), len(largest.scratchpads[0])) == (MAX_WARPS, MAX_PAIRS)


@pytest.mark.parametrize(
    "arguments, message",
    [
        (dict(warps=65), "warps must be 1 to 64, not 65"),
        (dict(ctas=0), "ctas must be 1 to 32, not 0"),
        (dict(schedulers=5), "schedulers must be 1 to 4, not 5"),
        (dict(rule=2), "rule must be 0 to 1, not 2"),
    ],
)
def test_wrong_arguments_are_named(arguments: dict[str, int], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        ShareLocks(**arguments)
