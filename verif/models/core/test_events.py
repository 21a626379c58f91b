"""The event wheel against a sorted list."""

from __future__ import annotations

import os
import random

import numpy as np

from lockstep.models.core import events as E
from lockstep.models.jit import argument, view


def fresh():
    array = np.zeros(1, E.EVENT_WHEEL)[0:1].reshape(())
    E.reset_events(argument(array))
    return argument(array), view(array)


def test_events_come_out_at_their_time_and_sleep_ends_no_later() -> None:
    seed = int(os.environ.get("LOCKSTEP_SEED", 7))
    print(f"LOCKSTEP_SEED={seed}")
    rng = random.Random(seed)
    record, wheel = fresh()
    expected: list[tuple[int, int, int]] = []
    now = 0
    for _ in range(4000):
        for _ in range(rng.randrange(3)):
            if len(expected) < E.EVENTS - E.RESERVE:
                event = (now + 1 + rng.choice([0, 3, 20, 1000, 1023, 1024, 5000]), rng.randrange(64), rng.randrange(99))
                E.schedule(record, *event)
                expected.append(event)
        following = int(E.next_event(record, now))
        assert following > now
        assert following <= min((e[0] for e in expected), default=E.NEVER)
        if not expected:
            now += 1
            continue
        now = following if rng.random() < 0.5 else now + 1
        taken = []
        while (e := int(E.take(record, now))) >= 0:
            taken.append((now, int(wheel.event[e].warp), int(wheel.event[e].pc)))
        due = [e for e in expected if e[0] == now]
        assert sorted(taken) == sorted(due)
        expected = [e for e in expected if e[0] != now]
    assert int(wheel.count) == len(expected)
