"""Dynamic warp execution, case by case; ``bench_dynamic_warp_execution.py`` has the random runs."""

from __future__ import annotations

import pytest

from lockstep.models.sharing import dynamic_warp_execution
from lockstep.rtl.sharing.dynamic_warp_execution import DynamicWarpExecution
from lockstep.verif.bench import Bench
from lockstep.verif.sharing.bench_dynamic_warp_execution import PERIOD

WINDOW = 16
TENTHS = range(1, 10)


class Sm(Bench):
    """The model with its ports by name, while SM 0 has a pair that shares."""

    def __init__(self, window: int = WINDOW, first: int = 0) -> None:
        super().__init__(dynamic_warp_execution, window=window)
        self.i["first"], self.i["active"] = first, 1

    @property
    def stalls(self) -> int:
        return int(self.o["stalls"])

    @property
    def probability(self) -> int:
        return int(self.o["probability"])

    @property
    def allow(self) -> int:
        return int(self.o["allow"])

    def cycles(self, stalls: list[int]) -> None:
        for stall in stalls:
            self.i["stall"] = stall
            self.step()

    def against(self, stalls: int, baseline: int) -> int:
        """A window with so many stalls, and the first cycle of the next, without one: the new probability."""
        self.cycles([1] * stalls + [0] * (WINDOW - 1 - stalls))
        self.i["baseline"] = baseline
        self.cycles([0])
        return self.probability

    def lower(self, tenths: int) -> None:
        """Reach a probability, and stay there."""
        self.cycles([0])
        while self.probability > tenths:
            self.against(1, 0)
        self.i["baseline"] = 0

    def draws(self, count: int) -> list[int]:
        """What comes of so many draws at one probability, without a stall."""
        result = []
        for _ in range(count):
            self.step()
            result.append(self.allow)
        return result


def test_stalls_count_in_the_window_of_their_cycle() -> None:
    sm = Sm()
    shown = []
    for stall in [1, 0, 0, 0] * 3 + [0, 0, 0, 1] + [1] + [0] * 15 + [1] * 16 + [0] * 17:
        shown.append(sm.stalls)
        sm.cycles([stall])
    assert shown == [0] * 16 + [4] * 16 + [1] * 16 + [16] * 16 + [0]


def test_the_probability_goes_by_a_tenth_from_1_to_0_and_back() -> None:
    sm = Sm()
    sm.cycles([0])
    assert [sm.against(3, 2) for _ in range(12)] == [9, 8, 7, 6, 5, 4, 3, 2, 1, 0, 0, 0]
    assert [sm.against(5, 5) for _ in range(2)] == [0, 0]
    assert [sm.against(0, 15) for _ in range(12)] == [1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 10, 10]
    assert [sm.against(*stalls) for stalls in [(15, 0), (4, 4), (4, 5), (4, 3), (4, 4)]] == [9, 9, 10, 9, 9]


def test_stalls_are_compared_in_the_first_cycle_of_a_window_alone() -> None:
    sm = Sm()
    sm.i["baseline"] = 9  # the very first cycle has no window to compare
    sm.cycles([1] * WINDOW)
    assert (sm.stalls, sm.probability) == (16, 10)
    sm.i["baseline"] = 16
    sm.cycles([0])
    sm.i["baseline"] = 0
    sm.cycles([0] * (WINDOW - 1))
    assert (sm.stalls, sm.probability) == (0, 10)


def test_without_a_pair_on_sm_0_the_probability_stays_and_everything_is_allowed() -> None:
    sm = Sm()
    sm.lower(0)
    assert not any(sm.draws(WINDOW))
    sm.i["active"] = 0
    assert all(sm.draws(5 * WINDOW))
    assert sm.against(0, 9) == 0
    sm.i["active"] = 1
    assert not any(sm.draws(WINDOW - 1))


def test_sm_0_allows_nothing_while_it_has_a_pair_that_shares() -> None:
    sm = Sm(first=1)
    assert sm.allow == 1
    assert not any(sm.draws(4 * WINDOW))
    sm.i["active"] = 0
    assert all(sm.draws(WINDOW))
    sm.i["active"] = 1
    sm.cycles([0])
    assert [sm.against(4, 0) for _ in range(3)] == [10, 10, 10]
    assert not sm.allow


def test_an_sm_follows_sm_0() -> None:
    """Connected, with a stall in more and more of each window's cycles of the one, and in eight of the other's."""
    first, sm = Sm(first=1), Sm()
    shown = []
    for cycle in range(17 * WINDOW):
        sm.i["baseline"] = first.stalls
        window, place = divmod(cycle, WINDOW)
        if place == 1:
            shown.append(sm.probability)
        first.cycles([place < 8])
        sm.cycles([place < window])
    assert shown == [10, *[10] * 8, 10, 9, 8, 7, 6, 5, 4, 3]  # the ninth comparison is of eight with eight


@pytest.mark.parametrize("tenths", TENTHS)
def test_of_a_period_of_draws_the_probability_is_allowed_exactly(tenths: int) -> None:
    sm = Sm()
    sm.lower(tenths)
    for _ in range(2):
        assert sum(sm.draws(PERIOD)) == PERIOD * tenths // 10
    assert sm.probability == tenths


@pytest.mark.parametrize("tenths", TENTHS)
def test_a_draw_does_not_tell_the_next_one(tenths: int) -> None:
    """How many of the draws after an allowed one are allowed, too, is about the probability again."""
    sm = Sm()
    sm.lower(tenths)
    drawn = sm.draws(PERIOD + 5)
    for distance in range(1, 6):
        after = [later for now, later in zip(drawn[:PERIOD], drawn[distance:], strict=False) if now]
        assert abs(sum(after) / len(after) - tenths / 10) < 0.05


def test_the_lfsr_goes_through_all_its_numbers_and_holds_while_nothing_is_drawn() -> None:
    sm = Sm()
    sm.cycles([1] * 15)
    assert sm.state["lfsr"] == 1  # all is allowed: no draw
    sm.lower(5)
    numbers = set()
    for _ in range(PERIOD):
        numbers.add(int(sm.state["lfsr"]))
        sm.step()
    assert numbers == set(range(1, PERIOD + 1))
    kept = int(sm.state["lfsr"])
    sm.i["active"] = 0
    sm.cycles([0] * 5)
    assert sm.state["lfsr"] == kept
    sm.i["active"] = 1
    sm.step()
    assert sm.state["lfsr"] != kept


def test_it_is_idle_up_to_the_end_of_the_window() -> None:
    sm = Sm(window=1000)
    assert sm.idle() == 999
    sm.skip(700)
    assert sm.idle() == 299
    sm.i["stall"] = 1
    assert sm.idle() == 0
    sm.cycles([1])
    sm.i["stall"] = 0
    sm.skip(298)
    assert sm.idle() == 0
    sm.step()
    assert (sm.stalls, sm.idle()) == (1, 0)  # its first cycle may change the probability
    sm.step()
    assert (sm.probability, sm.idle()) == (9, 0)
    sm.i["active"] = 0
    sm.step()
    assert sm.idle() == 997


@pytest.mark.parametrize("window", [0, 15, 65536])
def test_windows_are_checked(window: int) -> None:
    with pytest.raises(ValueError, match=f"window must be 16 to 65535, not {window}"):
        DynamicWarpExecution(window=window)
