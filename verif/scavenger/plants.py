"""PidController on plants of known gain and dead time: how long it takes to settle, and how far it swings then.

``python -m lockstep.verif.scavenger.plants`` prints the table of ``docs/scavenger.md``.

A plant's IPC is its gain times the primary's active warps of some cycles ago. Half of what the primary has is unused.
The long-term error is that of 16 windows of 512 cycles, of which those before the run have none.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass

from lockstep.models.scavenger import pid_controller
from lockstep.spec.scavenger import control
from lockstep.spec.scavenger.fixed import ERROR, IPC, SHARE, nearest
from lockstep.verif.bench import Bench

CYCLES = 200_000
WARPS, FIRST = 64, 60
WINDOW, WINDOWS = 512, 16
SETTLED = 0.05  # of the target: the IPC of a beat is no farther from it
BEAT = control.INTERVAL


@dataclass(frozen=True)
class Plant:
    """``gain``: instructions per cycle and warp. ``dead``: cycles until a warp shows. ``target``: in warps."""

    gain: float
    dead: int
    target: int = 30


@dataclass(frozen=True)
class Response:
    """``settled``: the beat from which on the IPC stays near the target, or None. ``swing``: of the last quarter,
    between the largest and the smallest IPC of a beat, as a share of the target.
    """

    settled: int | None
    swing: float

    def __str__(self) -> str:
        """Thousands of cycles, and a percentage."""
        settled = "never" if self.settled is None else f"{self.settled * BEAT / 1000:.1f}"
        return f"{settled} / {100 * self.swing:.0f} %"


def response(plant: Plant, **parameters: int) -> Response:
    """How the controller meets the plant's target, from nearly all warps on."""
    arguments = dict(
        most=WARPS, interval=BEAT, proportional=control.PROPORTIONAL, integral=control.INTEGRAL, scale=1, relative=0,
        reciprocal=0,
    )  # fmt: skip
    bench = Bench(pid_controller, **{**arguments, **parameters})
    target = IPC.code(plant.gain * plant.target)
    bench.i["first"], bench.i["target"], bench.i["slack"] = FIRST, target, SHARE.one // 2
    bench.step()
    bench.i["run"] = 1
    before = deque([FIRST] * (plant.dead + 1), plant.dead + 1)  # warps
    errors = deque([0] * WINDOWS, WINDOWS)
    share, window, beat = 0.0, 0, 0
    beats: list[float] = []
    for cycle in range(CYCLES):
        before.append(int(bench.o["primary"]))
        share += plant.gain * before[0]
        issued = int(share)
        share -= issued
        bench.i["issued"] = issued
        bench.i["long_term"] = ERROR.port(nearest(sum(errors), WINDOW * WINDOWS))
        bench.step()
        window += target - (issued << IPC.fraction)
        beat += issued
        if cycle % WINDOW == WINDOW - 1:
            errors.append(window)
            window = 0
        if cycle % BEAT == BEAT - 1:
            beats.append(beat / BEAT)
            beat = 0
    return _judged(beats, float(IPC.number(target)))


def _judged(beats: list[float], target: float) -> Response:
    far = [number for number, ipc in enumerate(beats) if abs(ipc - target) > SETTLED * target]
    settled = far[-1] + 1 if far else 0
    last = beats[-len(beats) // 4 :]
    return Response(settled if settled < 3 * len(beats) // 4 else None, (max(last) - min(last)) / target)


READINGS = {
    "literal": {},
    "relative, scale 1": {"relative": 1},
    "relative, scale 4": {"relative": 1, "scale": 4},
}
PLANTS = [Plant(gain, dead) for gain in (0.01, 0.04, 0.1) for dead in (0, 200, 500, 1000, 2000)]


def row(plant: Plant) -> str:
    """A line of the table."""
    found = [str(response(plant, **parameters)) for parameters in READINGS.values()]
    return f"| {' | '.join([f'{plant.gain * plant.target:g}', str(plant.dead), *found])} |"


def table() -> Iterator[str]:
    """Markdown."""
    yield f"| target | dead time | {' | '.join(READINGS)} |"
    yield f"|{'---|' * (2 + len(READINGS))}"
    for plant in PLANTS:
        yield row(plant)


if __name__ == "__main__":
    print("\n".join(table()))
