"""PcHistogram, case by case; ``bench_pc_histogram.py`` has the random runs."""

from __future__ import annotations

from collections import Counter
from fractions import Fraction
from pathlib import Path

import pytest

from lockstep.models.scavenger import pc_histogram
from lockstep.rtl.netlist import Netlist
from lockstep.rtl.scavenger.pc_histogram import PcHistogram
from lockstep.spec.scavenger import prediction
from lockstep.verif import formal
from lockstep.verif.bench import Bench
from lockstep.verif.scavenger import formal_pc_histogram

BUCKETS, WINDOW = 128, 8192
WALK, COMPARISON = 129, 154  # cycles in which nothing is counted
THRESHOLD = 12 << 10


class Histogram(Bench):
    """The model, by parts."""

    def __init__(self, **parameters: int) -> None:
        given = dict(
            buckets=BUCKETS, minimum=20_000, maximum=200_000, window=WINDOW, large_bits=16, small_bits=12
        ) | parameters  # fmt: skip
        super().__init__(pc_histogram, **given)

    def cycle_with(self, **inputs: int) -> None:
        """A cycle with these inputs, which do not stay."""
        for name, value in inputs.items():
            self.i[name] = value
        self.step()
        for name in inputs:
            self.i[name] = 0

    def counted(self, part: int, counts: dict[int, int], run: bool = False) -> None:
        """So many samples of each bucket, in a part of a profile, or in a run."""
        self.i["profile"], self.i["run"], self.i["part"] = not run, run, part
        self.i["sample"]["valid"] = 1
        for bucket, count in counts.items():
            self.i["sample"]["payload"] = bucket
            for _ in range(count):
                self.step()
        self.i["sample"]["valid"] = 0

    def begin(self) -> None:
        """A profile, up to the end of its first walk."""
        self.i["profile"] = 1
        for _ in range(WALK + 1):
            self.step()

    def join(self, small: int) -> None:
        self.i["joining"]["payload"] = small
        self.i["joining"]["valid"] = 1
        self.step()
        self.i["joining"]["valid"] = 0
        for _ in range(WALK):
            self.step()

    def distance(self) -> tuple[int, int, int]:
        """What is found next: cycles until then, difference and total."""
        for cycle in range(1, 2 * WINDOW):
            if self.o["distance"]["valid"]:
                payload = self.o["distance"]["payload"]
                return cycle, int(payload["difference"]), int(payload["total"])
            self.step()
        raise AssertionError

    def after_profile(self) -> tuple[int, int, int]:
        self.cycle_with(stable=1)
        return self.distance()

    def in_run(self, counts: dict[int, int]) -> tuple[int, int]:
        """The distance of a window with these counts."""
        self.counted(0, counts, run=True)
        return self.distance()[1:]


def test_distributions_that_are_equal() -> None:
    """Three to one in both halves, of 400 and of 100 samples: two shifts, and no difference."""
    histogram = Histogram()
    histogram.begin()
    histogram.counted(0, {3: 300, 100: 100})
    histogram.counted(1, {3: 75})
    histogram.counted(4, {100: 25})
    assert histogram.after_profile() == (156, 0, 800)


def test_distributions_that_have_nothing_in_common() -> None:
    """100 samples and 40; 80 is nearer to 100 than 40 is: the difference is 180 of 180, all of the 64K."""
    histogram = Histogram()
    histogram.begin()
    histogram.counted(0, {0: 100})
    histogram.counted(1, {127: 40})
    assert histogram.after_profile()[1:] == (180, 180)


@pytest.mark.parametrize("samples, total", [(15, 23 + 15), (16, 23 + 16), (17, 23 + 17)])
def test_the_power_of_two_is_the_nearest(samples: int, total: int) -> None:
    """23 samples beside 16 are 23/16 as many: twice 16 is nearer. Beside 17 they are less."""
    histogram = Histogram()
    histogram.begin()
    histogram.counted(0, {1: 23})
    histogram.counted(2, {1: samples})
    twice = 16 * 23 >= 23 * samples
    found = histogram.after_profile()[1:]
    assert found == ((abs(23 - 2 * samples), 23 + 2 * samples) if twice else (23 - samples, total))


def test_of_a_window_with_more_samples_training_is_shifted() -> None:
    """Training has 10 of a bucket, the window 100 of another: 10, 20, 40, 80 (100 is 1.25 as many)."""
    histogram = Histogram()
    histogram.begin()
    histogram.counted(0, {5: 10})
    histogram.counted(1, {5: 10})
    assert histogram.after_profile()[1:] == (0, 20)
    histogram.i["profile"] = 0
    assert histogram.in_run({6: 100}) == (180, 180)
    assert histogram.in_run({5: 60, 6: 40}) == (20 + 40, 180)  # the window before has been cleared


def test_a_full_bucket_freezes_its_histogram() -> None:
    """The 4,095th sample of bucket 7 is the last one that counts: of 5,000 then no more, and no other of that part."""
    histogram = Histogram()
    histogram.begin()
    histogram.counted(1, {8: 5, 7: 5000, 9: 10})
    assert (histogram.state["interval_total_0"], histogram.state["frozen"]) == (4100, 1)
    assert Counter(histogram.state["interval_0"].tolist()) == {0: 126, 4095: 1, 5: 1}
    histogram.counted(2, {9: 1})
    histogram.join(0)
    assert (histogram.state["training_total"], histogram.state["frozen"]) == (4100, 0)
    histogram.counted(1, {9: 10})
    assert histogram.state["interval_total_0"] == 10


def test_nothing_is_counted_while_a_histogram_joins() -> None:
    histogram = Histogram()
    histogram.begin()
    histogram.counted(0, {1: 64})
    histogram.counted(1, {2: 64})
    histogram.i["joining"]["payload"] = 0
    histogram.cycle_with(part=4)
    histogram.i["joining"]["valid"] = 1
    histogram.i["sample"]["valid"], histogram.i["sample"]["payload"] = 1, 5
    histogram.i["part"] = 4
    histogram.step()  # counts: it is the last cycle before
    histogram.i["joining"]["valid"], histogram.i["part"] = 0, 1
    for _ in range(WALK + 1):  # of which the last one counts
        histogram.step()
    assert histogram.state["interval_total_3"] == histogram.state["interval_total_0"] == 1
    assert histogram.state["training_total"] == 128


def test_a_profile_that_ends_while_a_histogram_joins_waits_for_it() -> None:
    """20,126 cycles at the earliest, 126 after the join at 20,000: three cycles are left."""
    histogram = Histogram()
    histogram.begin()
    histogram.counted(0, {1: 64})
    histogram.counted(1, {1: 32, 2: 32})
    histogram.counted(2, {1: 64})
    histogram.i["joining"]["payload"] = 0
    histogram.i["joining"]["valid"] = 1
    histogram.step()
    histogram.i["joining"]["valid"] = 0
    for _ in range(125):
        histogram.step()
    assert histogram.after_profile() == (156 + 3, 64, 256)


@pytest.mark.parametrize("training, other", [({}, {2: 3}), ({2: 3}, {}), ({}, {})])
def test_an_empty_histogram_is_not_compared(training: dict[int, int], other: dict[int, int]) -> None:
    histogram = Histogram()
    histogram.begin()
    histogram.counted(0, training)
    histogram.counted(1, other)
    assert histogram.after_profile() == (156, 0, 0)


def test_windows_follow_each_other() -> None:
    """Each has 8,192 cycles, of which 154 count nothing but in the first; the distance comes 155 cycles later."""
    histogram = Histogram()
    histogram.begin()
    histogram.counted(0, {1: 9000})
    histogram.counted(1, {1: 9000})
    histogram.after_profile()
    histogram.i["profile"], histogram.i["run"] = 0, 1
    histogram.i["sample"]["valid"], histogram.i["sample"]["payload"] = 1, 1
    histogram.step()
    seen = {}
    for cycle in range(1, 3 * WINDOW):
        if histogram.o["distance"]["valid"]:
            seen[cycle] = int(histogram.o["distance"]["payload"]["total"])
        histogram.step()
    assert seen == {WINDOW - 1 + 155: 9000 + WINDOW, 2 * WINDOW - 1 + 155: 9000 + WINDOW - COMPARISON}


def test_a_run_that_ends_leaves_no_distance() -> None:
    histogram = Histogram()
    histogram.begin()
    histogram.counted(0, {1: 10})
    histogram.counted(1, {1: 10})
    histogram.after_profile()
    histogram.i["profile"] = 0
    histogram.counted(0, {1: WINDOW}, run=True)
    histogram.i["run"] = 0
    for _ in range(300):
        histogram.step()
        assert not histogram.o["distance"]["valid"]


def worst(above: int, below: int) -> Fraction:
    """How much distributions that are equal differ, of 64K, at most: all totals that one needs to look at."""
    found = Fraction(0)
    for a in range(1, 512):
        for b in range(1, a + 1):
            near = b
            while below * a >= above * near:
                near *= 2
            found = max(found, Fraction(abs(a - near), a + near))
    return found * (1 << 16)


def test_equal_distributions_differ_by_less_than_the_threshold() -> None:
    """With the nearest power of two by less than 7/39 of 64K, 11,763; rounded down it would be up to a third."""
    assert 11_500 < worst(*prediction.NEAREST) < Fraction(7 << 16, 39) < 11_764 < THRESHOLD
    assert 21_700 < worst(2, 1) < 21_846


@pytest.mark.exhaustive
@pytest.mark.hardware
@pytest.mark.parametrize("nearest", [(2, 1), (24, 16), (22, 16)], ids=str)
def test_the_proof_finds_what_is_not_the_nearest(
    nearest: tuple[int, int], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Rounded down, or up too late or too early."""
    monkeypatch.setattr(prediction, "NEAREST", nearest)
    assert not formal.prove("planted", formal_pc_histogram.PROOFS["nearest"], tmp_path).passed


def test_storage() -> None:
    """The five histograms of a profile have 1 KB, as in section 5.6.2."""
    memories = Netlist(PcHistogram()).memories()
    assert sorted(memory.bits for memory in memories) == [128 * 12] * 4 + [128 * 14, 128 * 16]
    assert 128 * (16 + 4 * 12) == 8 * 1024


def test_the_large_one_has_room_for_all_that_joins() -> None:
    """Half of the minimum, and 13 times 4,095, are 63,235."""
    lengths = prediction.intervals(prediction.MINIMUM, prediction.MAXIMUM)
    assert prediction.MINIMUM // 2 + (len(lengths) - prediction.SMALLS) * 4095 == 63_235
    with pytest.raises(ValueError, match="large_bits must be 16 to 18, not 15"):
        PcHistogram(large_bits=15)
    with pytest.raises(ValueError, match="large_bits must be 18 to 18, not 16"):
        PcHistogram(small_bits=14)


@pytest.mark.parametrize(
    "wrong, text",
    [
        ({"buckets": 100}, "buckets must be a power of two, 2 to 128, not 100"),
        ({"minimum": 20_001}, "minimum must be a multiple of 8, not 20001"),
        ({"minimum": 512}, "minimum must be 520 to 131064, not 512"),
        ({"minimum": 0}, "minimum must be 520 to 131064, not 0"),
        ({"maximum": 20_000}, "maximum must be 20008 to 262143, not 20000"),
        ({"window": 437}, "window must be 438 to 16383, not 437"),
        ({"small_bits": 1}, "small_bits must be 2 to 14, not 1"),
    ],
)
def test_parameters_are_checked(wrong: dict[str, int], text: str) -> None:
    with pytest.raises(ValueError, match=text):
        PcHistogram(**wrong)
