"""The golden model of the CTA dispatcher, case by case; ``bench_cta_dispatcher.py`` has the random runs."""

from __future__ import annotations

import pytest

from lockstep.models.cta import cta_dispatcher
from lockstep.spec.parameters import DISPATCHERS
from lockstep.verif.bench import Bench


class Gpu(Bench):
    """The model with SMs that take CTAs and end them at random; they tell their room a cycle later, as registers do."""

    def __init__(self, policy: str, sms: int, slots: int, interval: int = 1) -> None:
        super().__init__(cta_dispatcher)
        self.i["policy"], self.i["interval"] = DISPATCHERS.index(policy), interval
        self.slots = slots
        self.resident: list[list[int]] = [[] for _ in range(sms)]
        self.tell()

    def tell(self) -> None:
        room = sum(1 << sm for sm, ctas in enumerate(self.resident) if len(ctas) < self.slots)
        self.i["room"] = room & (1 << 64) - 1, room >> 64
        self.i["load"][: len(self.resident)] = [len(ctas) for ctas in self.resident]

    def launch(self, ctas: int) -> None:
        self.i["launch"], self.i["ctas"] = 1, ctas
        self.step()
        self.i["launch"] = 0

    def clock(self) -> tuple[int, int] | None:
        """One clock of everything; the dispatch that the SMs saw, as (SM, CTA)."""
        seen = (int(self.o["dispatch"]["sm"]), int(self.o["dispatch"]["cta"])) if self.o["dispatch"]["valid"] else None
        self.step()
        if seen:
            self.resident[seen[0]].append(seen[1])
            assert len(self.resident[seen[0]]) <= self.slots
        self.tell()
        return seen


def test_round_robin_fills_the_sms_in_turn() -> None:
    gpu = Gpu("round-robin", 4, 2)
    gpu.launch(20)
    seen = [gpu.clock() for _ in range(12)]
    assert seen == [None, None, *((n % 4, n) for n in range(8)), None, None]


def test_load_balanced_fills_the_emptiest_sm() -> None:
    gpu = Gpu("load-balanced", 4, 8)
    gpu.resident = [[-1] * n for n in (3, 1, 2, 1)]
    gpu.tell()
    gpu.launch(7)
    seen = [dispatch[0] for dispatch in (gpu.clock() for _ in range(20)) if dispatch]
    assert seen[:2] == [1, 3]
    assert [len(resident) for resident in gpu.resident] in ([4, 3, 4, 3], [4, 4, 3, 3], [3, 4, 4, 3], [3, 4, 3, 4])


def test_the_fewest_ctas_are_followed_by_one_a_cycle() -> None:
    gpu = Gpu("load-balanced", 2, 8)
    gpu.resident = [[-1] * n for n in (5, 3)]
    gpu.tell()
    gpu.launch(4)
    seen = [gpu.clock() for _ in range(13)]
    rises = [None] * 3  # from 0 to 3
    assert seen == [*rises, None, None, (1, 0), None, None, (1, 1), None, None, (0, 2), (1, 3)]


@pytest.mark.parametrize("interval", [1, 2, 5, 1024])
def test_dispatches_are_an_interval_apart(interval: int) -> None:
    gpu = Gpu("round-robin", 8, 8, interval)
    gpu.launch(4)
    cycles = [cycle for cycle in range(4 * interval + 5) if gpu.clock()]
    assert cycles == [2 + interval * n for n in range(4)]
