"""PidController, case by case and by hand, and against floats; ``bench_pid_controller.py`` has the random runs."""

from __future__ import annotations

import pytest

from lockstep.models.scavenger import pid_controller
from lockstep.rtl.scavenger.pid_controller import PidController
from lockstep.spec.scavenger.fixed import ERROR, GAIN, IPC, SHARE, WARPS
from lockstep.verif.bench import Bench, seeded
from lockstep.verif.scavenger.bench_pid_controller import CONFIGURATIONS

INTERVAL = 100
UNIT = 1 / WARPS.one


class Controller(Bench):
    """The model in a run, by beats."""

    def __init__(self, first: int = 32, **parameters: int) -> None:
        super().__init__(pid_controller, **CONFIGURATIONS["shipped"] | parameters)
        self.i["first"] = first
        self.step()
        self.i["run"] = 1

    @property
    def allocation(self) -> float:
        """Between two beats, with what the last one changes."""
        ahead = self.copy()
        for _ in range(self.parameters["interval"] - 1):
            ahead.step()
        return float(ahead.o["allocation"]) / WARPS.one

    def beat(self, target: float, issued: list[int], long_term: float, slack: float) -> float:
        """What a beat changes of the allocation; ``issued`` is repeated over its cycles."""
        before = self.allocation
        self.i["target"], self.i["long_term"] = IPC.code(target), ERROR.port(ERROR.code(long_term))
        self.i["slack"] = SHARE.code(slack)
        for cycle in range(self.parameters["interval"]):
            self.i["issued"] = issued[cycle % len(issued)]
            self.step()
        return self.allocation - before


def test_a_step_of_the_error() -> None:
    """One instruction per cycle too few or too many: 1.5 + 1.0 warps per beat, times the slack or what it leaves."""
    controller = Controller()
    assert [controller.beat(2, [1], 1, 0.75) for _ in range(3)] == [0.625] * 3
    assert [controller.beat(1, [2], -1, 0.75) for _ in range(3)] == [-1.875] * 3
    assert controller.beat(2, [1], 0, 0) == 1.5 and controller.beat(1, [1], 1, 0) == 1
    assert controller.beat(2, [1, 2], 0, 0) == 0.75


def test_a_ramp_of_the_long_term_error() -> None:
    """From -1 up in steps of a quarter, slack 1/4: a quarter of what is negative, the rest of what is positive."""
    controller = Controller()
    changes = [controller.beat(1, [1], quarter / 4, 0.25) for quarter in range(-4, 5)]
    assert changes == [-64 / 256, -48 / 256, -32 / 256, -16 / 256, 0, 48 / 256, 96 / 256, 144 / 256, 192 / 256]


def test_the_errors_are_added_before_the_weight_is_chosen() -> None:
    """Too slow in the last beat, too fast for long: the sum decides."""
    controller = Controller()
    assert controller.beat(2, [1], -2, 0.25) == -0.125
    assert controller.beat(2, [1], -1, 0.25) == 0.375


def test_latency() -> None:
    """54 cycles from the last one of a beat, as the hardware says."""
    assert PidController().latency == 54
    controller = Controller()
    controller.i["target"] = IPC.code(1)
    seen = []
    for _ in range(INTERVAL + 60):
        controller.step()
        seen.append(int(controller.o["allocation"]))
    assert seen.index(WARPS.code(33.5)) + 1 == INTERVAL - 1 + 54


@pytest.mark.parametrize(
    ("code", "slack", "moved"),
    [(127, 0, 0), (128, 0, 1), (383, 0, 1), (384, 0, 2), (-127, 1, 0), (-128, 1, -1), (-383, 1, -1), (-384, 1, -2)],
)
def test_the_dead_band_and_ties(code: int, slack: int, moved: int) -> None:
    """At weight 1 a long-term error of 128 / 65536 is half of 1/256; the mean of the beat is the target."""
    assert Controller().beat(1, [1], code / 65536, slack) == moved / 256


def test_nothing_drifts() -> None:
    """Ties of both signs by turns: an arithmetic shift would go down by 1/256 each time."""
    controller = Controller()
    for _ in range(20):
        controller.beat(1, [1], 128 / 65536, 0)
        controller.beat(1, [1], -128 / 65536, 1)
    assert controller.beat(1, [1], 0, 0) == 0 and controller.allocation == 32


def test_the_weights_at_their_ends() -> None:
    """Nothing is given to a kernel that uses nothing of what it has, and nothing taken from one that uses all."""
    controller = Controller()
    assert controller.beat(4, [0], 4, 1) == 0
    assert controller.beat(0.5, [4], -3, 0) == 0
    controller.i["slack"] = 400
    assert controller.beat(4, [0], 4, 1) == 0


def test_saturation_without_wind_up() -> None:
    """Forty beats beyond each end; the first beat of the other sign leaves it."""
    controller = Controller()
    for _ in range(40):
        controller.beat(4, [0], 4, 0.5)
    assert controller.allocation == 64
    assert controller.beat(1, [2], 0, 0.5) == -0.75
    for _ in range(40):
        controller.beat(0.5, [4], -4, 0.5)
    assert controller.allocation == 1 and int(controller.o["secondary"]) == 63
    assert controller.beat(2, [1], 0, 0.5) == 0.75


def test_relative_errors() -> None:
    """A quarter below the target: a quarter of the gains, whatever the target, times the scale."""
    for target, issued in ((4, [3]), (2, [1, 2])):
        controller = Controller(relative=1, scale=8)
        assert controller.beat(target, issued, target / 4, 0) == 8 * 2.5 / 4


def test_the_reciprocal_weight() -> None:
    controller = Controller(reciprocal=1)
    assert controller.beat(2, [1], 1, 0.25) == 10
    assert controller.beat(1, [2], -1, 0.25) == -0.625
    assert controller.beat(1, [1], 1 / 256, 0) == 1  # as at a slack of 1/256


def test_a_run_begins_with_its_own_beat() -> None:
    controller = Controller(first=5)
    controller.i["target"] = IPC.code(4)
    for _ in range(INTERVAL // 2):
        controller.step()
    controller.i["run"], controller.i["first"] = 0, 7
    controller.step()
    controller.i["run"] = 1
    assert controller.allocation == 7
    assert controller.beat(1, [1], 0, 0) == 0


@pytest.mark.parametrize(
    "parameters",
    [
        {}, {"most": 256}, {"relative": 1, "scale": 5}, {"reciprocal": 1}, CONFIGURATIONS["odd"],
    ],
    ids=str,
)  # fmt: skip
def test_beats_against_floats(parameters: dict[str, int]) -> None:
    """Each change is within half of 1/256 of what floats say, from the counted instructions on."""
    rng = seeded()
    controller = Controller(**parameters)
    p = controller.parameters
    most = p["most"]
    controller.i["run"] = 0
    controller.i["first"] = rng.randint(1, most)
    controller.step()
    controller.i["run"] = 1
    for _ in range(60):
        target, long_term = IPC.number(rng.randint(1, IPC.most)), ERROR.number(rng.randint(ERROR.least, ERROR.most))
        if rng.random() < 0.7:
            long_term /= 1 << rng.randint(1, 9)
        slack = rng.choice([0, 256, rng.randint(0, 256)]) / SHARE.one
        issued = [rng.choice([int(target), rng.randint(0, 7)]) for _ in range(p["interval"])]
        long_term = ERROR.number(ERROR.code(long_term))
        before = controller.allocation
        change = controller.beat(float(target), issued, float(long_term), slack)
        errors = float(target) - sum(issued) / p["interval"], float(long_term)
        wanted = float(GAIN.number(p["proportional"])) * errors[0] + float(GAIN.number(p["integral"])) * errors[1]
        if p["relative"]:
            wanted /= float(target)
        weight = slack if wanted < 0 else 1 / max(slack, UNIT) if p["reciprocal"] else 1 - slack
        after = min(max(before + weight * p["scale"] * wanted, 1), most)
        assert abs(before + change - after) <= UNIT / 2 + 1e-9


def test_arguments_are_checked() -> None:
    for wrong, text in (
        ({"most": 257}, "most must be 1 to 256, not 257"),
        ({"scale": 0}, "scale must be 1 to 64, not 0"),
        ({"interval": 51}, "interval must be at least 52 with these arguments, not 51"),
        ({"relative": 1, "reciprocal": 1}, "relative and reciprocal exclude each other"),
    ):
        with pytest.raises(ValueError, match=text):
            PidController(**wrong)
