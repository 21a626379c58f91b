"""What one thread could save where the L1 is the limit: bounds, from times of an SM's steps. In Markdown.

::

    $ python -m lockstep.verif.memory_steps [KERNEL...] [--size small] [--gpu GPU] [--with M,...] [--set KEY=VALUE]

The run loop is the model's own, compiled once more with a clock around its parts, as in ``windows.py``. Two ways to be
sooner are bounded:

at once
    An SM serves several lines of its load/store unit in one step, as long as nothing else in it has anything to do. At
    best this saves all *followers*: steps with nothing but the memory side of the SM, in the cycle after another such
    step.
through
    A packet goes through crossbar and slice in one visit, when both are idle. At best this saves all of the time of the
    memory system.
"""

# mypy: disable-error-code="call-arg, var-annotated"
# The compiler passes the first argument of an intrinsic.

from __future__ import annotations

import argparse
from collections.abc import Sequence

import numpy as np

from lockstep.models import run as model
from lockstep.models.core.events import next_event
from lockstep.models.core.frame import STEPPED
from lockstep.models.jit import i64, inline_once, pointer_to, record
from lockstep.models.lsu.queue import near_start
from lockstep.models.memory.system import memory_step
from lockstep.spec.parameters import MAX_SMS
from lockstep.verif import arguments
from lockstep.verif.windows import INTERRUPTED, calibrated, run_kernel, tick, ticks, uncached, with_parts

OTHER, LONE, FOLLOWERS, MEMORY, LOOP = PARTS = range(5)
"""Steps of SMs in which more than the memory side has something to do, other lone ones, those that follow one in the
cycle before, steps of the memory system, and all else."""

LOG = record(
    [
        ("at", "i8"),  # when the clock was read last
        ("cost", "i8"),  # ticks of reading it
        ("limit", "i8"),  # ticks: what takes longer was interrupted, and is left out
        ("ticks", "i8", (len(PARTS),)),
        ("steps", "i8", (len(PARTS),)),
        ("lone", "i8", (MAX_SMS,)),  # the cycle after the last lone step of each SM
    ]
)
_log = np.zeros(1, LOG)
_LOG = int(_log.ctypes.data)
_log_at = pointer_to(LOG)


@uncached
def _passed(part):
    """What has passed since the clock was read last goes to a part."""
    log = _log_at(_LOG)
    now = ticks()
    if now - log.at < log.limit:
        log.ticks[part] += now - log.at - log.cost
    log.steps[part] += 1
    log.at = now


@uncached
def is_lone(sm, port, now):
    """Whether nothing but its memory side makes an SM's step due, which begins."""
    others = sm.select_wake <= now or port.reply_ready <= now or near_start(sm.lsu) <= now or sm.want_fetch != 0
    if others or sm.tenants & STEPPED != 0 or sm.lsu.performed.waits != 0 or next_event(sm.wheel, now - 1) <= now:
        return False
    return sm.fetch_count == 0 or sm.fetch[sm.fetch_head].time > now


@inline_once
def _step(state, sm, memory, index, launch, settings, context, now):
    _passed(LOOP)
    log, lone = _log_at(_LOG), is_lone(sm, memory.ports[index], now)
    wanted = model._step(state, sm, memory, index, launch, settings, context, now)
    if not lone:
        _passed(OTHER)
        return wanted
    _passed(FOLLOWERS if log.lone[index] == now else LONE)
    log.lone[index] = now + 1
    return wanted


@inline_once
def _memory_step(memory, settings, now):
    _passed(LOOP)
    memory_step(memory, settings, now)
    _passed(MEMORY)


_advance = with_parts(model._advance, _step=_step, memory_step=_memory_step)
_run = with_parts(model._run, _advance=_advance)


@uncached
def timed(team, _member, state, sms, memory, launch, settings, context, rows, until):
    """``models.run.run`` with a clock around its parts."""
    _log_at(_LOG).at = ticks()
    _run(team, state, sms, memory, launch, settings, context, rows, i64(until))


def measured(name: str, options: argparse.Namespace) -> np.ndarray:
    """Microseconds and steps of the parts in a kernel's launches: a row each."""
    microseconds = tick()
    _log[:] = 0
    _log["cost"], _log["limit"] = calibrated(1000)[0], INTERRUPTED / microseconds
    run_kernel(timed, name, options)
    return np.stack([_log["ticks"][0] * microseconds, _log["steps"][0]])


def bounds(times: np.ndarray) -> dict[str, float]:
    """How many times as fast a run is, at most."""
    total = times.sum()
    ways = {"at once": times[FOLLOWERS], "through": times[MEMORY], "both": times[FOLLOWERS] + times[MEMORY]}
    return {name: float(total / (total - saved)) for name, saved in ways.items()}


HEAD = ("kernel", "seconds", "steps of SMs", "ns each", "followers", "ns each", "of the time", "memory system",
        "at once", "through", "both")  # fmt: skip


def line(name: str, found: np.ndarray) -> str:
    """A kernel's line of the table."""
    times, steps = found
    own = [OTHER, LONE, FOLLOWERS]
    total, count = times.sum(), steps[own].sum()
    cells = [f"{total / 1e6:.2f}", f"{int(count):,}", f"{1000 * times[own].sum() / count:.0f}"]
    cells += [f"{steps[FOLLOWERS] / count:.2f}", f"{1000 * times[FOLLOWERS] / max(steps[FOLLOWERS], 1):.0f}"]
    cells += [f"{times[part] / total:.2f}" for part in (FOLLOWERS, MEMORY)]
    return f"| {' | '.join([name, *cells, *(f'{bound:.2f}' for bound in bounds(times).values())])} |"


def main(words: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(prog="python -m lockstep.verif.memory_steps", description="Bounds on one thread.")
    arguments.runs(parser)
    options = arguments.parsed(parser, words)
    print(f"| {' | '.join(HEAD)} |\n|{'---|' * len(HEAD)}")
    for name in options.kernels:
        print(line(name, measured(name, options)), flush=True)


if __name__ == "__main__":
    main()
