"""CtaBalancer, case by case: the three rules, the quarter and what is carried, on pairs written by hand."""

from __future__ import annotations

import pytest

from lockstep.models.scavenger import cta_balancer
from lockstep.rtl.scavenger.cta_balancer import CtaBalancer
from lockstep.verif.bench import Bench
from lockstep.verif.scavenger.bench_cta_balancer import CONFIGURATIONS

WINDOW, PAIRS = 8192, 31
EIGHTS = [(1, 7), (2, 6), (3, 5), (4, 4), (5, 3), (6, 2), (7, 1)]  # CTAs of 8 warps each in 64 warp contexts


class Balancer(Bench):
    """The model with a table, by windows."""

    def __init__(self, pairs: list[tuple[int, int]], sizes: tuple[int, int] = (8, 8), **parameters: int) -> None:
        super().__init__(cta_balancer, **CONFIGURATIONS["shipped"] | parameters)
        self.i["primary_warps"], self.i["secondary_warps"] = sizes
        self.load(pairs)

    def load(self, pairs: list[tuple[int, int]]) -> None:
        self.i["run"], self.i["clear"] = 0, 1
        self.step()
        self.i["clear"], self.i["load"]["valid"] = 0, 1
        for pair in pairs:
            self.i["load"]["payload"]["primary"], self.i["load"]["payload"]["secondary"] = pair
            self.step()
        self.i["load"]["valid"] = 0

    @property
    def pair(self) -> tuple[int, int]:
        return int(self.o["primary"]), int(self.o["secondary"])

    def settled(self) -> tuple[int, int]:
        """The pair that a window, or the begin of a run, leads to."""
        ahead = self.copy()
        for _ in range(PAIRS + 6):
            ahead.step()
        return int(ahead.o["primary"]), int(ahead.o["secondary"])

    def run(self) -> tuple[int, int]:
        """Begin a run, after the last pair of the one before is there: its pair. It has had one cycle by then."""
        for _ in range(PAIRS + 6):
            self.step()
        self.i["run"] = 0
        self.step()
        self.i["run"], self.i["issued"] = 1, 0
        self.step()
        self.first = True
        return self.settled()

    def window(self, primary: int, secondary: int) -> tuple[int, int]:
        """A window in which so many of the kernels' 32 warps each did not issue: the pair after it."""
        low, high = (1 << 32) - 1, (1 << 32) - 1 << 32
        self.i["primary_resident"], self.i["secondary_resident"] = low, high
        self.i["issued"] = (low >> primary) | (high >> secondary) & high
        for _ in range(WINDOW - self.first):
            self.step()
        self.first = False
        return self.settled()


def started(pairs: list[tuple[int, int]], at: tuple[int, int]) -> Balancer:
    """A run whose pair is ``at``, since the secondary was given what it could have up to it."""
    balancer = Balancer(pairs)
    balancer.run()
    for _ in range(4 * len(pairs)):
        if balancer.settled() == at:
            return balancer
        balancer.window(4 + 16, 0)
    raise AssertionError(f"{at} is not reached")


def test_the_first_run_begins_with_one_cta_of_the_secondary() -> None:
    balancer = Balancer(EIGHTS)
    assert not balancer.pair[0] and balancer.run() == (7, 1)
    assert Balancer([(2, 6), (5, 3)]).run() == (5, 3)


def test_a_later_run_begins_with_half() -> None:
    assert started(EIGHTS, (3, 5)).run() == (6, 2)
    assert started(EIGHTS, (2, 6)).run() == (5, 3)
    assert started([(1, 7), (4, 3), (6, 2)], (1, 7)).run() == (4, 3)
    assert started([(1, 7), (3, 5), (6, 2)], (1, 7)).run() == (6, 2)
    assert Balancer(EIGHTS).run() == (7, 1)


def test_a_primary_with_too_little_slack_gets_one_cta() -> None:
    balancer = started(EIGHTS, (3, 5))
    assert [balancer.window(3, 32), balancer.window(0, 0)] == [(4, 4), (5, 3)]
    assert balancer.window(4, 8) == (5, 3), "neither rule at the thresholds"
    for _ in range(3):
        last = balancer.window(3, 0)
    assert last == (7, 1), "there is no pair beyond the last"


def test_what_the_primary_does_not_need_goes_to_the_secondary() -> None:
    """A quarter of the difference, 32, is 8 warps: one CTA; the excess is more."""
    balancer = Balancer(EIGHTS)
    balancer.run()
    assert balancer.window(32, 0) == (6, 2)
    assert balancer.window(31, 0) == (6, 2)
    assert balancer.window(32, 7) == (5, 3), "7.75 of the window before and 6.25"


def test_what_is_carried_counts_once_and_for_one_rule() -> None:
    balancer = Balancer(EIGHTS)
    balancer.run()
    assert [balancer.window(20, 0) for _ in range(4)] == [(7, 1), (6, 2), (6, 2), (5, 3)], "5 warps each"
    balancer.window(8, 0)
    balancer.window(4, 8)
    assert balancer.window(24, 0) == (5, 3), "6 warps; what was carried is lost"
    assert balancer.window(8, 0) == (4, 4), "and 2"


def test_without_a_carry_a_secondary_hardly_ever_gets_a_second_cta() -> None:
    balancer = Balancer(EIGHTS, carry=0)
    balancer.run()
    assert {balancer.window(31, 0) for _ in range(5)} == {(7, 1)}
    assert balancer.window(32, 0) == (6, 2)


def test_the_excess_may_be_less_than_the_quarter() -> None:
    """Slack 5 is one warp too many, whatever the difference; with CTAs of one warp that is one CTA."""
    ones = [(a, 12 - a) for a in range(1, 12)]
    balancer = Balancer(ones, sizes=(1, 1))
    balancer.run()
    assert balancer.window(5, 0) == (10, 2)
    assert balancer.window(6, 0) == (9, 3), "a quarter of 6 is 1.5"
    assert balancer.window(6, 0) == (7, 5), "which were half a warp too few for two, and are enough with the next"


def test_what_the_secondary_does_not_need_goes_back() -> None:
    balancer = started(EIGHTS, (2, 6))
    assert balancer.window(4, 8) == (2, 6)
    assert balancer.window(5, 9) == (2, 6), "one warp"
    assert balancer.window(4, 32) == (3, 5), "and a quarter of 28"
    assert balancer.window(32, 10) == (3, 5), "two warps, although the primary has more slack"
    assert balancer.window(8, 32) == (4, 4), "two, and a quarter of 24"


def test_the_rules_are_tried_in_their_order() -> None:
    """Both kernels with too little slack: the primary first; the primary at its threshold gives nothing."""
    balancer = started(EIGHTS, (4, 4))
    assert balancer.window(3, 7) == (5, 3)
    assert balancer.window(4, 0) == (5, 3)


def test_several_ctas_at_once_and_pairs_that_are_missing() -> None:
    """Sixteen warps of a quarter: of the pairs that give the secondary two CTAs of 8 at most, the one with the most."""
    pairs = [(1, 9), (2, 7), (3, 4), (5, 2), (8, 1)]
    balancer = Balancer(pairs, sizes=(4, 5))
    balancer.run()
    assert balancer.window(32, 0) == (5, 2), "8 warps: 5 for one CTA"
    assert balancer.window(32, 0) == (3, 4), "with the 3 that are left, 11: 10 for two"
    assert balancer.window(32, 0) == (3, 4), "9 are too few for three, 15"
    assert balancer.window(32, 0) == (2, 7), "17 are enough"


def test_warps_that_start_in_a_window_are_not_slack() -> None:
    balancer = Balancer(EIGHTS)
    balancer.run()
    balancer.i["started"] = (1 << 29) - 1
    assert balancer.window(32, 0) == (7, 1), "slack 3"
    balancer.i["started"] = 0
    assert balancer.window(32, 0) == (6, 2)


def test_latency() -> None:
    balancer = Balancer(EIGHTS)
    balancer.i["run"] = 1
    for cycle in range(PAIRS + 6):
        assert balancer.pair == (0, 0), cycle
        balancer.step()
    assert balancer.pair == (7, 1)


def test_other_kernels_begin_anew() -> None:
    balancer = started(EIGHTS, (3, 5))
    balancer.load([(1, 3), (2, 1)])
    assert balancer.pair == (0, 0) and balancer.run() == (2, 1)
    balancer.load([])
    assert not balancer.o["shares"]


def test_arguments_are_checked() -> None:
    for wrong, text in (
        ({"warps": 65}, "warps must be 2 to 64, not 65"),
        ({"window": 37}, "window must be 38 to 65535, not 37"),
        ({"pairs": 32}, "pairs must be 1 to 31, not 32"),
    ):
        with pytest.raises(ValueError, match=text):
            CtaBalancer(**wrong)
