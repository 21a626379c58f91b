"""The renamed register file: places counted by hand, and kernels that end right however few there are."""

from __future__ import annotations

from typing import Any

import pytest

from lockstep.models.jit import i64, jit, slots
from lockstep.models.rfv import tenant
from lockstep.sim import Gpu
from lockstep.sim.errors import UsageError
from lockstep.sim.study.job import Job, execute
from lockstep.verif.models.micro import Bench

WARP_REGISTERS = 1024  # of an SM of the gtx480


def run(kernel: str, *mechanisms: str, **settings: Any) -> dict[str, Any]:
    named = {key.replace("__", "."): value for key, value in settings.items()}
    result = execute(Job(kernel, size="tiny", mechanisms=mechanisms, settings=named))
    assert result["checked"], result["message"]
    return result


@pytest.mark.parametrize("kernel", ["hotspot", "lavaMD", "reduction", "bfs"])
def test_a_whole_file_changes_nothing(kernel: str) -> None:
    """Not a cycle: no kernel needs more places than it has registers."""
    base, whole = run(kernel), run(kernel, "rfv", rfv__percent=100)
    assert whole["cycles"] == base["cycles"]
    assert whole["stats"]["rfv.refusals"] == 0
    assert 0 < whole["stats"]["rfv.held"] <= WARP_REGISTERS


@pytest.mark.parametrize(("kernel", "least"), [("hotspot", 29), ("lud", 10), ("reduction", 11), ("sgemm", 19)])
def test_the_fewest_places(kernel: str, least: int) -> None:
    """Room for one CTA: others are refused, and all end right. With less it does not start."""
    base = run(kernel, core__sms=1)
    few = run(kernel, "rfv", core__sms=1, rfv__percent=least)
    assert few["stats"]["rfv.refusals"] > 0
    assert few["warp_instructions"] == base["warp_instructions"]
    with pytest.raises(UsageError, match=rf"the renamed file has \d+; rfv\.percent={least} or a smaller block helps"):
        run(kernel, "rfv", core__sms=1, rfv__percent=least - 1)


def many(count: int = 40) -> str:
    """A body that holds so many values at a time."""
    sums = "".join(f"add.s32 %r{k}, %r1, {k};\n" for k in range(10, 10 + count))
    uses = "".join(f"add.s32 %r9, %r9, %r{k};\n" for k in range(10, 10 + count))
    return f"{sums}{uses}cvt.u64.u32 %rd9, %r9;\nst.global.u64 [%rd1], %rd9;"


def test_places_by_hand() -> None:
    """Each value takes one, and gives it back; a sum that replaces the one before takes none."""
    long, short = (Bench(many(count), mechanisms=["rfv"])() for count in (40, 25))
    assert long.stats["rfv.taken"] - short.stats["rfv.taken"] == 15
    assert long.raw["rfv.freed"].sum() == long.stats["rfv.taken"]


def test_warps_are_refused() -> None:
    """Eight CTAs of two warps, and places for two of them and a half; all that fit are resident."""
    few, whole = (
        Bench(many(), {"rfv.percent": percent}, mechanisms=["rfv"])(grid=8, block=64) for percent in (20, 100)
    )
    assert few.stats["rfv.refusals"] > 0
    assert few.stats["rfv.held"] <= 0.2 * WARP_REGISTERS
    assert whole.stats["rfv.refusals"] == 0
    assert few.stats["occupancy.ctas"] > 5
    assert few.cycles > whole.cycles


@jit
def _greedy(state, sm):
    """A fault: nothing is refused."""
    return i64(0)


def test_more_places_than_there_are_is_an_internal_fault(monkeypatch: pytest.MonkeyPatch) -> None:
    claims = slots(tenant.STATE, tenant.SM, ask=_greedy, commit=tenant.commit)
    monkeypatch.setitem(tenant.TENANTS, "claims", claims)
    bench = Bench(many(), {"rfv.percent": 20}, mechanisms=["rfv"])
    with pytest.raises(RuntimeError, match="places beyond those of the file"):
        bench(grid=8, block=64)


def test_it_excludes_what_places_registers_elsewhere() -> None:
    with pytest.raises(UsageError, match="exclude each other: both are the plan of how many CTAs"):
        Gpu("gtx480", ["rfv", "register-sharing"])
