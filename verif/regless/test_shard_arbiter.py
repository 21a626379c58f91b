"""The shard arbiter, case by case; ``bench_shard_arbiter.py`` has the random runs."""

from __future__ import annotations

from lockstep.models.regless import shard_arbiter
from lockstep.verif.bench import Bench
from lockstep.verif.regless.bench_shard_arbiter import CONFIGURATIONS


def test_a_refused_access_gives_way() -> None:
    made = Bench(shard_arbiter, **CONFIGURATIONS["paper"])
    for shard in (0, 2, 3):
        made.i["request"][shard]["valid"] = 1
    seen = []
    for _ in range(6):
        made.comb()
        seen.append(int(made.c["access"]["payload"]["shard"]))
        assert not any(made.c["request"]["ready"])
        made.step()
    assert seen == [0, 2, 3, 0, 2, 3]
    made.i["accepted"] = 1
    made.comb()
    assert made.c["request"]["ready"].tolist() == [1, 0, 0, 0]
