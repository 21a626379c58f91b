"""What WarpPool is told by its surroundings."""

from __future__ import annotations

import pytest

from lockstep.verif.models.micro import Bench

LINES = 64
LOADS = """
mov.u64 %rd6, %rd1;
mov.u32 %r6, 0;
LOOP:
ld.global.u32 %r5, [%rd6];
{again}add.s64 %rd6, %rd6, 128;
add.s32 %r6, %r6, 1;
setp.lt.u32 %p2, %r6, {lines};
@%p2 bra LOOP;
"""
AGAIN = """
cvt.u64.u32 %rd7, %r5;
add.s64 %rd7, %rd6, %rd7;
ld.global.u32 %r7, [%rd7+4];
"""  # the first load's value is zero


@pytest.mark.parametrize("policy_changes", [False, True])
def test_a_load_that_joins_an_mshr_counts_as_a_miss(policy_changes: bool) -> None:
    """All warps walk along the same lines: beyond what WarpPool merges, they join the MSHR, and next to none hits.

    One warp alone that reads each line twice has as many hits as misses.
    """
    settings = {"warppool.quantum": 2048, "warppool.merges": 1, "l1.merges": 64}
    body = LOADS.format(again="" if policy_changes else AGAIN, lines=LINES)
    block = 32 * 24 if policy_changes else 32
    run = Bench(body, settings, nbytes=128 * (LINES + 1), mechanisms=["warppool"])(block=block)
    merges, misses = (int(run.raw[f"l1.{name}"].sum()) for name in ("merges", "misses"))
    assert (merges > 2 * misses > 0) == policy_changes
    assert (run.stats["warppool.by_warp"] > 0) == policy_changes
