"""PhaseDetector, case by case; ``bench_phase_detector.py`` has the random runs."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import pytest

from lockstep.models.scavenger import phase_detector
from lockstep.rtl.scavenger.phase_detector import PhaseDetector
from lockstep.verif.bench import Bench

INTERVAL, ABOVE, LONGEST = 100, 5, 262_144
LANES, REQUESTS, PCS, LENGTH = range(4)
DECIDED = {LANES: 22, REQUESTS: 43, PCS: 64}  # cycles from the last one of an interval
KNOWN, LIMITED = 127, 25  # cycles until means and the limit are known
RANGE = 1 << 16
MEMORY = 256  # memory instructions of a window
Mean = tuple[int, int]


class Detector(Bench):
    """The model, by profiles and runs."""

    def __init__(self, **parameters: int) -> None:
        given = dict(
            maximum=200_000, interval=INTERVAL, above=ABOVE, longest=LONGEST, lanes=8, requests=2, share=12 << 10
        ) | parameters  # fmt: skip
        super().__init__(phase_detector, **given)

    def profile(self, training: Mean = (20, 4), validation: Mean = (20, 4), cycles: int = 0) -> None:
        """One whose halves have 100 instructions each, with so many lanes and requests, and wait for its means."""
        i = self.i
        i["profile"], i["instructions"], i["memory_instructions"] = 1, 1, 1
        for part, (i["lanes"], i["requests"]) in enumerate((training, validation)):
            i["part"] = part
            for cycle in range(100):
                i["stable"] = part == 1 and cycle == 99
                self.step()
        i["stable"], i["cycles"] = 0, cycles // 8
        self.steps(KNOWN)
        i["profile"] = 0

    def told(self, difference: int, total: int, run: bool = True) -> None:
        """A distance in the next cycle, without ``run`` that of the profile."""
        distance = self.i["distance"]
        distance["payload"]["difference"], distance["payload"]["total"] = difference, total
        distance["valid"], distance["payload"]["run"] = 1, run
        self.step()
        distance["valid"] = 0

    def steps(self, count: int) -> None:
        for _ in range(count):
            self.step()

    def means(self, lanes: Mean, requests: Mean = (4 * MEMORY, MEMORY)) -> None:
        """Amounts and counts of the run's windows, from the next cycle on."""
        self.i["window_lanes"], self.i["window_instructions"] = lanes
        self.i["window_requests"], self.i["window_memory_instructions"] = requests

    def until(self, cycles: int) -> tuple[int, int] | None:
        """The cycle of the run, and the reason, with which it ends; none within so many cycles."""
        self.i["run"] = 1
        for cycle in range(1, cycles + 1):
            self.step()
            if self.o["ends"]["valid"]:
                return cycle + 1, int(self.o["ends"]["payload"])
        return None

    def intervals(self, means: Iterable[Mean]) -> tuple[int, int] | None:
        """The same, in a run whose intervals have these lanes and instructions, and a cycle more."""
        for number, lanes in enumerate(means):
            self.means(lanes)
            if found := self.until(INTERVAL):
                return number * INTERVAL + found[0], found[1]
        return self.until(INTERVAL - 1)


def _in_run(
    lanes: Mean, requests: Mean, training: Mean = (20, 4), validation: Mean = (20, 4)
) -> tuple[int, int] | None:
    """How a run ends that has these means throughout, in six intervals."""
    detector = Detector()
    detector.profile(training, validation)
    detector.means(lanes, requests)
    return detector.until(6 * INTERVAL)


LAST = ABOVE * INTERVAL  # of five comparisons
USUAL = 20 * MEMORY, MEMORY  # lanes and instructions
USUAL_REQUESTS = 4 * MEMORY, MEMORY


@pytest.mark.parametrize("lanes, ends", [(28 * 256, 0), (28 * 256 + 1, 1), (12 * 256, 0), (12 * 256 - 1, 1)])
def test_more_than_eight_lanes_from_the_mean(lanes: int, ends: bool) -> None:
    """20 in the profile: 28 and 12 are not outside; one lane more or fewer of all is."""
    assert _in_run((lanes, 256), USUAL_REQUESTS) == ((LAST + DECIDED[LANES], LANES) if ends else None)


@pytest.mark.parametrize("requests, ends", [(6 * 256, 0), (6 * 256 + 1, 1), (2 * 256, 0), (2 * 256 - 1, 1)])
def test_more_than_two_requests_from_the_mean(requests: int, ends: bool) -> None:
    assert _in_run(USUAL, (requests, 256)) == ((LAST + DECIDED[REQUESTS], REQUESTS) if ends else None)


@pytest.mark.parametrize("lanes, ends", [(6660, 0), (6661, 1), (1020, 0), (1019, 1)])
def test_a_tenth_more_than_the_halves_differ(lanes: int, ends: bool) -> None:
    """20 and 10 lanes: 10 x 282/256 is 11.015625 from the mean of 15, of 256 instructions 3840 +- 2820 lanes."""
    found = _in_run((lanes, 256), USUAL_REQUESTS, training=(20, 4), validation=(10, 4))
    assert found == ((LAST + DECIDED[LANES], LANES) if ends else None)


@pytest.mark.parametrize("requests, ends", [(2510, 0), (2511, 1), (818, 0), (817, 1)])
def test_a_tenth_more_than_the_halves_differ_in_requests(requests: int, ends: bool) -> None:
    """8 and 5: 3 x 282/256 is 3.3046875 from the mean of 6.5, of 256 memory instructions 1664 +- 846 requests."""
    found = _in_run(USUAL, (requests, 256), training=(20, 8), validation=(20, 5))
    assert found == ((LAST + DECIDED[REQUESTS], REQUESTS) if ends else None)


@pytest.mark.parametrize("difference, ends", [(12_288, 0), (12_289, 1)])
def test_a_distance_of_more_than_12k(difference: int, ends: bool) -> None:
    """One is enough, and its run ends with the next interval."""
    detector = Detector()
    detector.profile()
    detector.means(USUAL)
    assert detector.until(50) is None
    detector.told(difference, RANGE)
    assert detector.until(3 * INTERVAL) == ((INTERVAL - 51 + DECIDED[PCS], PCS) if ends else None)


@pytest.mark.parametrize("difference, ends", [(18_048, 0), (18_049, 1)])
def test_a_tenth_more_than_the_distance_of_the_halves(difference: int, ends: bool) -> None:
    """A quarter of 64K is 16,384; 282/256 of that are 18,048."""
    detector = Detector()
    detector.profile()
    detector.told(1000, 4000, run=False)
    detector.means(USUAL)
    assert detector.until(64) is None
    detector.told(difference, RANGE)
    found = detector.until(3 * INTERVAL)
    assert found == ((INTERVAL - 65 + DECIDED[PCS], PCS) if ends else None)


FAR, NEAR, NONE = (29 * 256, 256), (28 * 256, 256), (29 * 256, 0)


@pytest.mark.parametrize(
    "pattern, end",
    [
        ([FAR] * 4, None),
        ([FAR] * 5, 5),
        ([FAR] * 4 + [NEAR] + [FAR] * 4, None),
        ([FAR] * 4 + [NONE] + [FAR] * 4, None),
        ([FAR] * 4 + [NEAR] + [FAR] * 5, 10),
        ([NEAR, FAR, FAR, FAR, (11 * 256, 256), FAR], 6),
    ],
)
def test_five_in_a_row_and_not_four(pattern: Sequence[Mean], end: int | None) -> None:
    """Whichever side each is on."""
    detector = Detector()
    detector.profile()
    found = detector.intervals([*pattern, NEAR])
    assert found == (None if end is None else (end * INTERVAL + DECIDED[LANES], LANES))


@pytest.mark.parametrize("cycles, first", [(20_000, 200), (20_008, 201), (20_112, 202)])
def test_nothing_counts_before_a_run_is_as_long_as_its_profile(cycles: int, first: int) -> None:
    """``first``: the interval from which on means count."""
    detector = Detector()
    detector.profile(cycles=cycles)
    detector.means(FAR)
    assert detector.until(cycles + 10 * INTERVAL) == ((first + ABOVE - 1) * INTERVAL + DECIDED[LANES], LANES)


@pytest.mark.parametrize("cycle, ends", [(19_942, 0), (19_943, 1), (20_042, 1)])
def test_a_distance_before_a_run_is_as_long_as_its_profile(cycle: int, ends: bool) -> None:
    """Up to the 42nd cycle after an interval it is compared with that: that of 19,900 does not count, 20,000 does."""
    detector = Detector()
    detector.profile(cycles=20_000)
    detector.means(USUAL)
    assert detector.until(cycle - 1) is None
    detector.told(RANGE, RANGE)
    assert detector.until(300) == ((20_000 - cycle + DECIDED[PCS], PCS) if ends else None)


def test_the_longest_run() -> None:
    detector = Detector()
    detector.profile()
    detector.means(USUAL)
    assert detector.until(LONGEST + 1) == (LONGEST + 1, LENGTH)
    assert detector.until(3 * INTERVAL) is None  # once
    detector.i["run"] = 0
    detector.step()
    detector.means(FAR)
    assert detector.until(LONGEST) == (LAST + DECIDED[LANES], LANES)


@pytest.mark.parametrize("requests", [(32 * 256, 0), (0, 0)])
def test_without_memory_instructions_in_the_run(requests: Mean) -> None:
    assert _in_run(USUAL, requests) is None


def test_without_memory_instructions_in_the_profile() -> None:
    detector = Detector()
    detector.i["profile"] = 1
    detector.i["instructions"], detector.i["lanes"] = 1, 20
    for detector.i["part"] in (0, 1):
        detector.steps(100)
    detector.i["stable"] = 1
    detector.step()
    detector.i["stable"] = 0
    detector.steps(KNOWN)
    detector.i["profile"] = 0
    detector.means(USUAL, (32 * MEMORY, MEMORY))
    assert detector.until(9 * INTERVAL) is None


def test_training_without_memory_instructions_leaves_the_least_threshold() -> None:
    """The mean is that of validation."""
    detector = Detector()
    detector.i["profile"], detector.i["part"] = 1, 0
    detector.steps(100)
    detector.i["part"], detector.i["stable"] = 1, 1
    detector.i["memory_instructions"], detector.i["requests"] = 1, 10
    detector.step()
    detector.i["stable"] = 0
    detector.steps(KNOWN)
    detector.i["profile"] = 0
    detector.means((0, 0), (12 * MEMORY + 1, MEMORY))
    assert detector.until(9 * INTERVAL) == (LAST + DECIDED[REQUESTS], REQUESTS)


@pytest.mark.parametrize("early, ends", [(0, True), (1, False)])
def test_when_the_means_are_known(early: int, ends: bool) -> None:
    """A comparison is the first that counts if its interval ends 127 cycles after ``stable``."""
    detector = Detector(above=1)
    detector.profile()
    detector.step()
    detector.i["profile"] = 1  # again, with a run right behind
    detector.step()
    detector.i["stable"] = 1
    detector.step()
    detector.i["stable"] = detector.i["profile"] = 0
    detector.steps(KNOWN - INTERVAL - early)
    detector.means((0, 256))
    found = detector.until(INTERVAL + 50)
    assert found == ((INTERVAL + DECIDED[LANES], LANES) if ends else None)


def test_parts_that_join_are_training() -> None:
    """A small interval of 100 instructions with 32 lanes joins 100 with 16: 24, and validation has 8.

    The mean is 18 2/3, in 256ths 4779; they differ by 16, of which 282/256 are 17.625: 4512.
    """
    detector = Detector()
    i = detector.i
    i["profile"], i["instructions"] = 1, 1
    for i["part"], i["lanes"] in ((0, 16), (1, 32), (2, 8)):
        for cycle in range(100):
            i["joining"]["valid"], i["joining"]["payload"] = i["part"] == 2 and cycle == 50, 0
            i["stable"] = i["part"] == 2 and cycle == 99
            detector.step()
    detector.steps(KNOWN)
    assert (detector.state["least"][0], detector.state["most"][0]) == (4779 - 4512, 4779 + 4512)


@pytest.mark.parametrize(
    "wrong, text",
    [
        ({"interval": 69}, "interval must be 70 to 1023, not 69"),
        ({"above": 0}, "above must be 1 to 16, not 0"),
        ({"maximum": 15}, "maximum must be 16 to 262143, not 15"),
        ({"longest": 262_145}, "longest must be 1 to 262144, not 262145"),
        ({"lanes": 33}, "lanes must be 1 to 32, not 33"),
        ({"share": 65_536}, "share must be 1 to 65535, not 65536"),
    ],
)
def test_parameters_are_checked(wrong: dict[str, int], text: str) -> None:
    with pytest.raises(ValueError, match=text):
        PhaseDetector(**wrong)
