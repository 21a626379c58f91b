"""The issue path, case by case; ``bench_issue_path.py`` has the random runs."""

from __future__ import annotations

from typing import Any

import pytest

from lockstep.models.jit import view
from lockstep.models.sharing import issue_path
from lockstep.rtl import registry
from lockstep.spec.parameters import SCHEDULERS
from lockstep.spec.sharing.parameters import POLICY
from lockstep.verif.bench import Bench
from lockstep.verif.sharing.bench_issue_path import CONFIGURATIONS

PER_CTA = 6


class Path(Bench):
    """The model with one pair: slot 2 n + side has warp n of that side, and so each scheduler has one of the CTAs."""

    def __init__(self) -> None:
        super().__init__(issue_path, **CONFIGURATIONS["shipped"])
        self.ports: Any = view(self.io)
        i = self.ports.i
        i.policy, i.patience = SCHEDULERS.index(POLICY), 1024
        for slot in range(2 * PER_CTA):
            i.seat[slot].side, i.seat[slot].lock = slot % 2, slot // 2
        i.start = (1 << 2 * PER_CTA) - 1
        self.cycle()
        i.start = 0

    def request(self, *slots: int, registers: int = -1) -> tuple[list[int], int]:
        """The slots granted in a cycle, -1 for none, and the schedulers that are refused."""
        i, c = self.ports.i, self.ports.c
        i.request = sum(1 << slot for slot in slots)
        i.registers = i.request & registers
        self.cycle()
        return [int(grant.warp) if grant.valid else -1 for grant in c.grant[:2]], int(c.refuse)


def test_in_one_cycle_the_younger_gives_way_and_waits() -> None:
    path = Path()
    assert path.request(0, 1) == ([0, 1], 0b10)
    assert (int(path.ports.o.held), int(path.ports.o.waiting)) == (1, 2)
    assert path.request(1) == ([-1, -1], 0), "who waits does not request"
    assert path.request(1, 3, registers=0) == ([-1, 3], 0), "nor keep others from it"


def test_what_one_holds_is_in_the_others_way_from_the_next_cycle_until_its_end() -> None:
    path = Path()
    assert path.request(4) == ([4, -1], 0)
    assert path.request(3) == ([-1, 3], 0b10)
    path.ports.i.finish = 1 << 4
    assert path.request(3) == ([-1, -1], 0)
    path.ports.i.finish = 0
    assert path.request(3) == ([-1, 3], 0)
    assert int(path.ports.o.held) == 1 << 3


def test_a_refused_grant_leaves_the_turn_as_it_was() -> None:
    path = Path()
    path.ports.i.refused = 0b01
    assert path.request(0) == ([0, -1], 0) and not path.ports.o.held
    path.ports.i.refused = 0
    assert path.request(0, 2) == ([0, -1], 0) and int(path.ports.o.held) == 1


def test_a_slots_new_warp_does_not_wait_for_what_its_last_one_waited() -> None:
    path = Path()
    path.request(0)
    path.request(1)
    assert int(path.ports.o.waiting) == 1 << 1
    path.ports.i.start = path.ports.i.finish = 1 << 1
    path.request()
    path.ports.i.start = path.ports.i.finish = 0
    assert path.request(1, registers=0) == ([-1, 1], 0)


def test_arguments_are_those_of_the_parts() -> None:
    with pytest.raises(ValueError, match=r"issue_path takes warps, .*, all of them"):
        registry.component("sharing.issue_path")(warps=4)
    with pytest.raises(ValueError, match="rule must be 0 to 1, not 2"):
        registry.component("sharing.issue_path")(**{**CONFIGURATIONS["shipped"], "rule": 2})
