"""CtaLimiter, case by case; ``bench_cta_limiter.py`` has the random runs."""

from __future__ import annotations

import pytest

from lockstep.models.dyncta import cta_limiter
from lockstep.rtl.dyncta.cta_limiter import CtaLimiter
from lockstep.rtl.netlist import Netlist
from lockstep.verif.bench import Bench
from lockstep.verif.dyncta.bench_cta_limiter import CONFIGURATIONS

WINDOW = CONFIGURATIONS["shipped"]["window"]
PLACES = 8


class Limiter(Bench):
    """The model after a launch, by windows: how many cycles of each kind one has, the last cycle not among them."""

    def __init__(self, most: int = PLACES, **parameters: int) -> None:
        super().__init__(cta_limiter, **CONFIGURATIONS["shipped"] | parameters)
        self.i["launch"], self.i["most"] = 1, most
        self.step()
        self.i["launch"] = 0

    @property
    def limit(self) -> int:
        return int(self.o["limit"])

    @property
    def paused(self) -> set[int]:
        return {place for place in range(PLACES) if int(self.o["paused"]) >> place & 1}

    def clock(self, start: set[int] | None = None, finish: set[int] | None = None) -> set[int]:
        """A cycle in which CTAs come and go; the places that are paused in the next one."""
        for port, places in (("start", start), ("finish", finish)):
            self.i[port] = sum(1 << place for place in places or ())
        self.step()
        return self.paused

    def window(self, idle: int, memory: int) -> int:
        """A window's decision: the limit after it."""
        for cycle in range(WINDOW):
            self.i["idle"], self.i["memory"] = cycle < idle, idle <= cycle < idle + memory
            self.clock()
        return self.limit


def test_the_paper_s_thresholds() -> None:
    """Section 4.1, with counts on both sides of 16, 128 and 384; N = 8, from 4."""
    limiter = Limiter()
    assert limiter.limit == 4
    decided = [
        (0, 0, 5), (16, 384, 6), (15, 127, 7), (15, 128, 7), (0, 383, 7), (15, 384, 6), (0, 2047, 5), (0, 200, 5),
        (16, 2000, 6), (2047, 0, 7), (0, 0, 8), (0, 127, 8), (16, 0, 8), (0, 384, 7),
    ]  # fmt: skip
    assert [limiter.window(idle, memory) for idle, memory, _ in decided] == [limit for *_, limit in decided]


def test_the_limit_stays_at_1() -> None:
    limiter = Limiter(most=2)
    assert [limiter.window(0, 500) for _ in range(3)] == [1, 1, 1]


@pytest.mark.parametrize(("first", "most", "limit"), [(0, 7, 3), (0, 1, 1), (0, 8, 4), (1, 8, 1), (2, 5, 5)])
def test_the_limit_of_a_launch(first: int, most: int, limit: int) -> None:
    assert Limiter(most=most, first=first).limit == limit


def test_counters_stay_at_their_largest() -> None:
    """2048 cycles of C_mem are 2047; with one bit fewer they would be 1023, and with none to spare 0."""
    assert Limiter(memory_low=2047, memory_high=2047, first=2).window(0, 2048) == 7
    assert Limiter(memory_low=2047, memory_high=2047, first=2).window(0, 2046) == 8


def test_the_paper_s_example_of_pausing() -> None:
    """Section 4.1: N = 4, n = 3. CTA 3 is paused, then CTA 2; CTA 2 goes on first."""
    limiter = Limiter(most=4)
    limiter.window(0, 0)
    for place in (5, 0, 3):
        limiter.clock(start={place})
    assert (limiter.limit, limiter.paused) == (3, set())
    assert limiter.window(0, 2047) == 2 and limiter.paused == {3}
    assert limiter.window(0, 2047) == 1 and limiter.paused == {0, 3}
    assert limiter.window(0, 0) == 2 and limiter.paused == {3}
    assert limiter.window(0, 0) == 3 and limiter.paused == set()


def test_a_cta_that_ends_resumes_the_one_that_came_first() -> None:
    limiter = Limiter(most=2)
    assert limiter.limit == 1
    assert limiter.clock(start={2}) == set()
    assert limiter.clock(start={7}) == {7}
    assert limiter.clock(start={1}) == {1, 7}
    assert limiter.clock(finish={2}) == {1}
    assert limiter.clock(finish={1}) == set()


def test_what_takes_a_place_at_once_came_last() -> None:
    limiter = Limiter(most=4)
    limiter.clock(start={0})
    limiter.clock(start={1, 2})
    assert limiter.paused == {2}
    assert limiter.clock(start={0}, finish={0}) == {0}


def test_a_launch_begins_anew() -> None:
    limiter = Limiter()
    limiter.clock(start={0, 1, 2, 3, 4})
    assert limiter.paused == {4}
    limiter.i["launch"], limiter.i["most"] = 1, 2
    assert limiter.clock(start={6}) == set() and limiter.limit == 1
    limiter.i["launch"] = 0
    assert limiter.clock(start={3}) == set()


def test_sizes_are_checked() -> None:
    for wrong, text in (
        ({"ctas": 33}, "ctas must be 1 to 32, not 33"),
        ({"window": 15}, "window must be 16 to 65535, not 15"),
        ({"memory_high": 2048}, "memory_high must be 0 to 2047, not 2048"),
        ({"first": 3}, "first must be 0 to 2, not 3"),
    ):
        with pytest.raises(ValueError, match=text):
            CtaLimiter(**wrong)


def test_two_counters_of_eleven_bits() -> None:
    """Section 4.3 has these; docs/dyncta.md says what else there is."""
    bits = {register.name: register.bits for register in Netlist(CtaLimiter()).registers()}
    assert bits["idles"] == bits["memories"] == 11
