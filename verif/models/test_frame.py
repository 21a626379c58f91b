"""The SM's frame: a trial tenant in every frame slot has the effect that is counted by hand, alone and in pairs."""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any
from unittest.mock import patch

import numpy as np
import pytest

from lockstep.cli.main import main
from lockstep.models.core import frame
from lockstep.models.core.state import SM
from lockstep.models.execution.isa import POISON
from lockstep.models.jit import i64, jit, slots
from lockstep.sim import Gpu, kernels
from lockstep.sim.errors import UsageError
from lockstep.spec import registry
from lockstep.spec.parameters import SCHEDULERS
from lockstep.verif import combinations
from lockstep.verif.models.micro import Bench
from lockstep.verif.trial import claim, client, monitor, preempt, segments, watcher
from lockstep.verif.trial.mechanisms import TRIALS, registered

STEPS = 16
SETTINGS = {"core.schedulers": 1, "core.scheduler": "oldest"}


@pytest.fixture(autouse=True)
def trials() -> Iterator[None]:
    with registered():
        yield


def chain(count: int) -> str:
    """Additions that depend on each other."""
    return "add.s32 %r3, %r3, %r1;\n" * count


def independent(count: int) -> str:
    return "".join(f"add.s32 %r{10 + k % 40}, %r1, %r1;\n" for k in range(count))


def states(gpu: Gpu, name: str) -> np.ndarray:
    """The states of a trial tenant after the last launch, one of each SM."""
    [tenant] = [tenant for tenant in gpu.machine.tenants if tenant.mechanism.name == name]
    return tenant.states


def slope(body: Callable[[int], str], names: Sequence[str], settings: dict[str, Any], **launch: int) -> float:
    """Core cycles per repetition."""
    long, short = (Bench(body(n), settings, mechanisms=names)(**launch).cycles for n in (64, 64 - STEPS))
    return (long - short) / STEPS


# ----------------------------------------------------------------------------------------------------- effects, by hand


@pytest.mark.parametrize(("names", "period"), [([], 17), (["trial-gate"], 18)])
def test_a_gate_holds_warps_back(names: list[str], period: int) -> None:
    """Every 17 cycles is an odd cycle every other time, and then the warp waits for one more."""
    assert slope(chain, names, {"pipelines.integer.latency": 17}, block=64) == period


def test_a_gate_is_never_passed() -> None:
    bench = Bench(independent(100), SETTINGS, mechanisms=["trial-gate", "trial-monitor"])
    run = bench(block=256)
    seen = states(bench.gpu, "trial-monitor")
    assert seen["odd_in_odd"].sum() == 0
    assert run.raw["sm.gated_cycles"].sum() > 0
    free = Bench(independent(100), SETTINGS, mechanisms=["trial-monitor"])
    assert free(block=256).raw["sm.gated_cycles"].sum() == 0
    assert states(free.gpu, "trial-monitor")["odd_in_odd"].sum() > 0


@jit
def _nothing(state, sm):
    return i64(0)


@pytest.mark.parametrize("scheduler", ["lrr", "gto"])
@pytest.mark.parametrize("name", ["saxpy", "hotspot"])
def test_a_claim_that_refuses_nothing_changes_nothing(
    name: str, scheduler: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Not a count, though all schedulers choose before the first of them issues."""
    tenants = {"claims": slots(claim.STATE, SM, ask=_nothing, commit=_nothing)}
    monkeypatch.setattr(claim, "TENANTS", tenants)
    settings = {"core.scheduler": scheduler}
    one, other = (combinations.run(name, names, settings=settings) for names in ([], ["trial-claim"]))
    assert one.raw == other.raw


@pytest.mark.parametrize("count", [7, 8, 30])
def test_a_claim_refuses_every_third_grant(count: int) -> None:
    """Of a single warp: granted, granted, refused, and so on, to the last one, which is granted."""
    run = Bench(independent(count), SETTINGS, mechanisms=["trial-claim"])()
    assert run.raw["sm.refused_grants"].sum() == (run.warp_instructions - 1) // 2


def test_who_is_refused_asks_again_when_the_claim_lets_it() -> None:
    """Each warp but the first asks once in vain, and again when the one before it has ended."""
    bench = Bench(chain(5), SETTINGS, mechanisms=["trial-turn", "trial-monitor"])
    run = bench(block=128)
    assert run.raw["sm.refused_grants"].sum() == 3
    assert states(bench.gpu, "trial-monitor")["turns"].sum() == 3
    free = Bench(chain(5), SETTINGS, mechanisms=["trial-monitor"])
    free(block=128)
    assert states(free.gpu, "trial-monitor")["turns"].sum() > 3


@pytest.mark.parametrize(("names", "period"), [([], 18), (["trial-elsewhere"], 19)])
def test_registers_that_live_elsewhere_come_a_cycle_later(names: list[str], period: int) -> None:
    assert slope(chain, names, {"pipelines.integer.latency": 18}) == period


def test_a_client_of_the_l1_gets_back_what_it_wrote() -> None:
    lines = client.LINES * client.ROUNDS
    bench = Bench("ld.global.u64 %rd1, [%rd1];\n" * 60, nbytes=4096, stride=128, mechanisms=["trial-client"])
    run = bench()
    state = states(bench.gpu, "trial-client")
    assert (state["written"].sum(), state["read"].sum(), state["wrong"].sum()) == (lines, lines, 0)
    assert (state["reads"] == client.ROUNDS).all()  # each answer with the token of its own request
    assert run.raw["lsu.client_lines"].sum() == 2 * lines
    assert run.raw["l1.local_loads"].sum() == run.raw["l1.local_stores"].sum() == lines


def test_a_client_without_requests_costs_nothing() -> None:
    """After the client's last request, a load takes as long as without a client; before, the two take turns."""
    before = "ld.global.u64 %rd1, [%rd1];\n" * 32
    after = chain(400)  # longer than the client is busy
    body = "add.u64 %rd1, %rd1, 0;\n" + before
    found = {}
    for names in ([], ["trial-client"]):
        long, short = (
            Bench(text, nbytes=128, stride=8, mechanisms=names)().cycles for text in (after + body, after + body[:23])
        )
        found[len(names)] = long - short
    assert found[0] == found[1]
    lines = "mul.wide.u32 %rd5, %r1, 128;\nadd.u64 %rd5, %rd5, %rd1;\n" + "ld.global.u32 %r3, [%rd5];\n" * 4
    taken = [Bench(lines, nbytes=1 << 15, mechanisms=names)(block=256).cycles for names in ([], ["trial-client"])]
    assert taken[0] < taken[1]


def test_a_tenant_finds_the_tables_of_the_kernel() -> None:
    """And the words that stand before each region in the code are fetched, in their order."""
    bench = Bench(independent(90), mechanisms=["trial-tables"])
    tables = bench.module.kernel("k").tables
    regions, words = (tables["regions.first"] >= 0).sum(), len(tables["regions.words"])
    bench(block=64)
    state = states(bench.gpu, "trial-tables")
    assert (state["started"].sum(), state["words"].sum(), state["wrong"].sum()) == (2 * regions, 2 * words, 0)
    assert regions > 1


@pytest.mark.parametrize(("width", "buffer"), [(2, 4), (1, 4), (3, 3)])
def test_metadata_words_are_fetched_again_after_a_jump(width: int, buffer: int) -> None:
    settings = {"core.fetch_width": width, "core.instruction_buffer": buffer}
    bench = Bench(LOOP, settings, mechanisms=["trial-tables"])
    bench(block=64)
    state = states(bench.gpu, "trial-tables")
    assert (state["wrong"].sum(), bench.words()[:64].tolist()) == (0, [k % 7 * 10 for k in range(64)])
    plain = Bench(LOOP, settings)
    assert plain(block=64).cycles < bench(block=64).cycles  # words take fetch bandwidth


LOOP = """
    rem.u32 %r3, %r1, 7;
    mov.u32 %r4, 0;
more:
    setp.eq.u32 %p2, %r3, 0;
    @%p2 bra done;
    add.u32 %r4, %r4, 10;
    sub.u32 %r3, %r3, 1;
    bra more;
done:
    mul.wide.u32 %rd5, %r1, 4;
    add.u64 %rd5, %rd5, %rd1;
    st.global.u32 [%rd5], %r4;
"""


def test_a_table_that_no_pass_has_made_is_named() -> None:
    without = replace(registry.MECHANISMS["trial-tables"], passes=lambda gpu: ())
    with patch.dict(registry.MECHANISMS, {without.name: without}):
        bench = Bench("", mechanisms=["trial-tables"])
        with pytest.raises(RuntimeError, match="trial-tables: no pass has made the table 'regions_first'"):
            bench()


ORDER = """
    ld.global.u32 %r3, [%rd1];
    add.s32 %r4, %r3, 1;
    st.global.u32 [%rd1], %r4;
    mul.wide.u32 %rd5, %r2, 4;
    add.u64 %rd5, %rd5, %rd1;
    st.global.u32 [%rd5+256], %r3;
"""


@pytest.mark.parametrize("names", [[], ["trial-one-cta"]])
def test_one_cta_at_a_time_from_the_last_on(names: list[str]) -> None:
    """Each CTA takes the next number from memory; two at a time take the same."""
    bench = Bench(ORDER, {"launch.dispatch_interval": 1}, mechanisms=names)
    run = bench(grid=6)
    numbers = bench.gpu.memory.view(bench.buffer.address + 256, 24).view(np.uint32).tolist()
    assert (numbers == [5, 4, 3, 2, 1, 0]) == bool(names)
    assert (run.raw["sm.resident_cta_cycles"] <= run.raw["sm.cycles"]).all() == bool(names)


SCRATCHPAD = """
    shl.b32 %r5, %r1, 2;
    st.shared.u32 [%r5], %r1;
    st.shared.u32 [%r5+128], %r1;
    atom.shared.add.u32 %r6, [%r5], 100;
    ld.shared.u32 %r7, [%r5+128];
    sub.s32 %r8, 124, %r5;
    ld.shared.u32 %r9, [%r8];
    add.u32 %r9, %r9, %r6;
    add.u32 %r9, %r9, %r7;
    cvt.u64.u32 %rd5, %r5;
    add.u64 %rd5, %rd5, %rd1;
    st.global.u32 [%rd5], %r9;
"""


def test_registers_and_scratchpad_have_two_segments() -> None:
    """Half of the lanes access the pair's segment, or all of them; results and cycles stay."""
    thread = np.arange(32)
    found = []
    for names in ([], ["trial-segments"]):
        bench = Bench(SCRATCHPAD, mechanisms=names)
        found.append(bench(shared=512).raw)
        values = bench.gpu.memory.view(bench.buffer.address, 128).view(np.uint32)
        assert (values == 31 - thread + 100 + 2 * thread).all()
    assert all((found[0][name] == found[1][name]).all() for name in found[0])
    own, state = segments.OWN_BYTES // 4, states(bench.gpu, "trial-segments")[0]
    pair = state["ctas"][0]["words"]
    unwritten = POISON * 0x0101_0101
    assert (bench.gpu.machine.storage[0].scratchpad.view(np.uint32)[own : 512 // 4] == unwritten).all()
    assert (pair[:own] == unwritten).all() and (pair[64:] == unwritten).all()
    assert (pair[own:32] == thread[own:] + 100).all() and (pair[32:64] == thread).all()
    registers = state["warps"][0]["words"].reshape(-1, 32)
    used = range(segments.OWN_REGISTERS + 1, bench.registers)  # the first is the upper half of an address, and 0
    assert np.flatnonzero(registers.any(axis=1)).tolist() == list(used) and len(used) > 1


WIDE = """
    cvt.u64.u32 %rd5, %r1;
    shl.b64 %rd9, %rd5, 3;
    add.u64 %rd9, %rd9, %rd1;
    shl.b64 %rd6, %rd5, 40;
    add.u64 %rd7, %rd6, %rd5;
    mul.lo.u64 %rd8, %rd7, %rd6;
    add.u64 %rd8, %rd8, %rd7;
    st.global.u64 [%rd9], %rd8;
"""


def test_the_halves_of_a_register_pair_may_lie_in_two_segments() -> None:
    thread = np.arange(32, dtype=np.uint64)
    upper = thread << np.uint64(40)
    bench = Bench(WIDE, mechanisms=["trial-segments"])
    bench()
    values = bench.gpu.memory.view(bench.buffer.address, 256).view(np.uint64)
    assert (values == (upper + thread) * upper + upper + thread).all()
    registers = states(bench.gpu, "trial-segments")[0]["warps"][0]["words"].reshape(-1, 32)
    assert segments.OWN_REGISTERS % 2 and registers[segments.OWN_REGISTERS].any()


KEEPS = (
    """
    mov.u32 %r3, 0;
    setp.lt.u32 %p2, %r1, %r2;
    shl.b32 %r7, %r1, 2;
    mul.lo.u32 %r8, %r1, %r2;
    st.local.u32 [%rd4], %r2;
    st.shared.u32 [%r7], %r8;
"""
    + chain(150)
    + """
    and.b32 %r9, %r2, 3;
    setp.eq.u32 %p3, %r9, 3;
    @%p3 bra end;
"""
    + chain(250)
    + """
end:
    ld.local.u32 %r5, [%rd4];
    add.u32 %r3, %r3, %r5;
    ld.shared.u32 %r5, [%r7];
    add.u32 %r3, %r3, %r5;
    @%p2 add.u32 %r3, %r3, 100000;
    mad.lo.u32 %r6, %r2, 32, %r1;
    mul.wide.u32 %rd5, %r6, 4;
    add.u64 %rd5, %rd5, %rd1;
    st.global.u32 [%rd5], %r3;
"""
)
"""What a register, a predicate, local memory and the scratchpad hold must survive a long chain of additions."""


@pytest.mark.parametrize(("ctas", "alone"), [(1, True), (24, False)])
def test_preempted_ctas_leave_in_time_and_resume(ctas: int, alone: bool) -> None:
    """One CTA leaves and comes back every 400 cycles; of more than the SM holds, too, and each ends."""
    found = []
    for names in ([], ["trial-preempt"]):
        bench = Bench(KEEPS, mechanisms=names)
        run = bench(grid=ctas, shared=128)
        values = bench.gpu.memory.view(bench.buffer.address, 128 * ctas).view(np.uint32).reshape(ctas, 32)
        thread, cta = np.arange(32), np.arange(ctas)[:, None]
        added = np.where(cta % 4 == 3, 150, 400)
        assert (values == added * thread + cta + cta * thread + 100_000 * (thread < cta)).all()
        found.append(run)
    state = states(bench.gpu, "trial-preempt")[0]
    assert state["left"] == state["resumed"] == found[1].raw["sm.preempted"].sum() > 0
    assert found[0].raw["sm.ctas"].sum() == found[1].raw["sm.ctas"].sum() == ctas
    if alone:
        assert state["left"] == (found[1].cycles - state["begin"]) // preempt.PERIOD
        assert found[1].cycles > found[0].cycles


@pytest.mark.parametrize("count", range(20, 44, 2))
def test_others_start_as_soon_as_the_preempted_ones_are_back(count: int) -> None:
    """Many short CTAs: now and then one ends while another leaves, and there is room for two."""
    found = []
    for skip in (True, False):
        bench = Bench(chain(count), mechanisms=["trial-preempt"])
        bench.gpu.machine.skip = skip
        found.append({name: values.tolist() for name, values in bench(grid=400).raw.items()})
    assert found[0] == found[1]


UNEVEN = (
    """
    mov.u32 %r3, 0;
    setp.gt.u32 %p2, %r2, 1;
    @%p2 bra late;
    setp.eq.u32 %p2, %r2, 1;
    @%p2 bra soon;
    setp.ge.u32 %p2, %r1, 128;
    @%p2 bra done;
"""
    + chain(100)
    + "soon:\n"
    + chain(20)
    + "bra done;\nlate:\n"
    + chain(400)
    + "done:\n"
)


def test_a_cta_keeps_its_slots_until_it_ends() -> None:
    """Half of the first CTA's warps end at once, then the second CTA of six, then the first; the others end late.

    If the seventh took slots of both, no eight in a row would be left for the eighth when the first ends.
    """
    run = Bench(UNEVEN)(grid=8, block=256)
    assert run.raw["sm.ctas"].sum() == 8


@pytest.mark.parametrize(("names", "most"), [([], 8), (["trial-half"], 4), (["trial-half", "trial-one-cta"], 1)])
def test_the_plan_says_how_many_ctas_an_sm_can_hold(names: list[str], most: int) -> None:
    """Eight of a warp each; of a limit and the plan the smaller counts."""
    run = Bench(chain(400), mechanisms=names)(grid=16)
    mean = run.raw["sm.resident_cta_cycles"].sum() / run.raw["sm.cycles"].sum()
    assert 0.9 * most < mean <= most


def test_classes_decide_before_the_policy() -> None:
    """Warps in even slots are secondary: none of them issues in a cycle in which another one could."""
    passed = {}
    for names in (["trial-monitor"], ["trial-classes", "trial-monitor"]):
        bench = Bench(independent(100), SETTINGS | {"core.collectors_alu": 32}, mechanisms=names)
        bench(block=512)
        passed[len(names)] = int(states(bench.gpu, "trial-monitor")["passed_over"].sum())
    assert passed[2] == 0 < passed[1]


@pytest.mark.parametrize("policy", SCHEDULERS)
def test_a_scheduler_that_sees_no_change_is_not_needed(policy: str) -> None:
    """Of two schedulers, all warps of one are secondary: no order changes, but both are called in every cycle."""
    settings = {"core.scheduler": policy, "core.active_warps": 2}
    for kernel, others in (("reduction", []), ("spmv", []), ("spmv", ["trial-preempt"])):
        called = combinations.run(kernel, ["trial-classes", *others], settings=settings)
        assert not called.wrong and called.raw == combinations.run(kernel, others, settings=settings).raw


@pytest.mark.parametrize("kernel", ["saxpy", "reduction", "bfs"])
def test_monitors_see_every_cycle_and_events_everything(kernel: str) -> None:
    gpu = combinations.run(kernel, ["trial-monitor", "trial-watcher"]).gpu
    last = gpu.runs[-1]
    seen, raw = states(gpu, "trial-monitor"), last.raw
    assert (seen["cycles"] == last.cycles).all()
    assert (seen["busy"] == raw["sm.cycles"]).all()
    assert (seen["issued"] == raw["sm.issued_cycles"]).all()
    assert seen["late"].sum() == 0
    assert (seen["windows"] == last.cycles // monitor.WINDOW).all()
    assert last.cycles < monitor.WINDOW * monitor.WINDOWS
    assert (seen["busy_of"].sum(axis=1) == raw["sm.cycles"]).all() and seen["busy_of"].max() == monitor.WINDOW
    events = {kind: seen["events"][:, getattr(frame, kind)] for kind in (
        "ISSUE", "SENT", "ANSWERED", "CTA_START", "CTA_END", "WARP_START", "WARP_END", "ARRIVED")}  # fmt: skip
    assert (events["ISSUE"] == raw["sm.warp_instructions"]).all()
    assert (seen["lanes"] == raw["sm.lanes"].sum(axis=1)).all()
    assert (events["SENT"] == raw["lsu.lines"]).all()
    assert (events["ANSWERED"] == raw["lsu.line_instructions"]).all()
    assert (events["CTA_START"] == raw["sm.ctas"]).all() and (events["CTA_END"] == raw["sm.ctas"]).all()
    assert (events["WARP_START"] == raw["sm.warps"]).all() and (events["WARP_END"] == raw["sm.warps"]).all()
    assert (events["ARRIVED"] == raw["sm.barriers"]).all()
    whole = states(gpu, "trial-watcher")
    assert whole["beats"][0] == -(-last.cycles // watcher.BEAT)
    assert whole["uneven"][0] == 0


# --------------------------------------------------------------------------------------- alone and in pairs, on kernels


KERNELS = ("saxpy", "spmv", "reduction", "histogram-atomics", "transpose-naive", "bfs")
NO_BARRIERS = tuple(name for name in KERNELS if name != "reduction")


def kernels_for(names: Sequence[str]) -> tuple[str, ...]:
    """A CTA whose warps run one after the other can't pass a barrier."""
    return NO_BARRIERS if "trial-turn" in names else KERNELS


@pytest.mark.parametrize("name", TRIALS)
def test_skipping_changes_nothing(name: str) -> None:
    for kernel in kernels_for([name]):
        skipped, stepped = combinations.run(kernel, [name]), combinations.run(kernel, [name], skip=False)
        assert not skipped.wrong and not stepped.wrong
        assert skipped.raw == stepped.raw, kernel
        assert_same_states(skipped.gpu, stepped.gpu)


def assert_same_states(one: Gpu, other: Gpu) -> None:
    for mine, its in zip(one.machine.tenants, other.machine.tenants, strict=True):
        if mine.mechanism.name in TRIALS:
            assert (mine.states == its.states).all(), mine.mechanism.name


PAIRS = [
    pytest.param(pair, id="+".join(pair), marks=[pytest.mark.exhaustive] * bool({*TRIALS} & {*pair}))
    for pair in itertools.combinations((*TRIALS, *registry.MECHANISMS), 2)
]


@pytest.mark.parametrize("names", PAIRS)
def test_every_pair_that_may_be_combined(names: tuple[str, str]) -> None:
    """Results are right, and the order of naming does not matter; two tenants of one place are refused."""
    try:
        registry.resolve(names)
    except ValueError as error:
        with pytest.raises(UsageError, match="exclude each other"):
            Gpu("gtx480", names)
        with pytest.raises(UsageError, match=str(error)):
            Gpu("gtx480", names[::-1])
        return
    for kernel in kernels_for(names)[1::2]:
        one, other = combinations.run(kernel, names), combinations.run(kernel, names[::-1])
        assert not one.wrong and not other.wrong
        assert one.raw == other.raw, kernel
        assert_same_states(one.gpu, other.gpu)


def test_verify_finds_pairs_and_what_is_wrong_with_them(monkeypatch: pytest.MonkeyPatch) -> None:
    """As ``lockstep verify combinations --level random`` does, on all kernels."""
    names = ["mrpb", "trial-gate", "warppool"]
    assert combinations.pairs(names) == [("mrpb", "trial-gate"), ("trial-gate", "warppool")]
    assert not combinations.differences("saxpy", ("mrpb", "trial-gate"))
    left = iter([({"a": 1, "b": 2}, "wrong"), ({"a": 1, "b": 3}, "")])

    def observed(*_: object, **_settings: object) -> combinations.Observed:
        raw, wrong = next(left)
        return combinations.Observed(Gpu("gtx480"), [raw], wrong)

    monkeypatch.setattr(combinations, "run", observed)
    assert combinations.differences("k", ("x", "y")) == ["wrong", "k with x, y: the order of naming changes b"]


def test_verify_runs_the_pairs(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(combinations, "pairs", lambda: [("trial-gate", "warppool")])
    monkeypatch.setattr(kernels, "names", lambda: ["saxpy"])
    given, run = [], combinations.run

    def noted(name: str, order: Sequence[str], settings: Mapping[str, Any]) -> combinations.Observed:
        given.append(settings)
        return run(name, order, settings=settings)

    monkeypatch.setattr(combinations, "run", noted)
    assert main(["verify", "combinations", "--level", "random", "--set", "l1.values=lines"]) == 0
    told = capsys.readouterr().out
    assert "trial-gate+warppool" in told and re.search(r"1 of \d+ pairs", told)
    assert given == [{"l1.values": "lines"}] * 2
    assert main(["verify", "combinations", "--level", "random", "--set", "core.sms=0"]) == 2
    assert capsys.readouterr().err == "lockstep: core.sms = 0: must be 1 to 128 SMs\n"
    assert main(["verify", "combinations", "lsu", "--level", "random", "--set", "core.sms=1"]) == 2
    assert "--set works with --level kernels, combinations and modes only" in capsys.readouterr().err
