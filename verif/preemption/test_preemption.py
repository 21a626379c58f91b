"""Preemption loses nothing, whenever CTAs leave and come back; and what it costs, in lines and cycles."""

from __future__ import annotations

import random
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import pytest

from lockstep.models.execution.isa import UNCACHED_PHYSICAL
from lockstep.models.memory.l1 import QUEUE_FULL
from lockstep.sim import Gpu, KernelFault, UsageError
from lockstep.verif import combinations
from lockstep.verif.levels import base_seed
from lockstep.verif.preemption.cases import LOOPS, TRAFFIC, VOTES, Case, Context, stopped
from lockstep.verif.preemption.lossless import lossless
from lockstep.verif.trial.mechanisms import registered

CASES: dict[str, tuple[str, dict[str, Any]]] = {
    "loops": (LOOPS, dict(grid=3, block=64)),
    "votes": (VOTES, dict(grid=3, block=128, shared=512)),
    "traffic": (TRAFFIC, dict(grid=3, block=64)),
}


def case(name: str, **settings: Any) -> Case:
    body, launch = CASES[name]
    return Case(body, **launch, **settings)


def schedule(rng: random.Random, cycles: int, rows: int, ctas: int) -> list[tuple[int, int, int, int]]:
    """Rows for one SM, within as many cycles as it takes undisturbed."""
    found = []
    for _ in range(rows):
        cycle = rng.randrange(cycles)
        found.append((cycle, 0, rng.randint(1, ctas), cycle + rng.randrange(2 * cycles)))
    return found


# ------------------------------------------------------------------------------------------------ nothing is lost, ever


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("kept", ["dram", "l2"])
def test_nothing_is_lost(name: str, kept: str) -> None:
    """One CTA, two or all, at random cycles, once and several times."""
    seed = base_seed()
    print(f"LOCKSTEP_SEED={seed}")
    rng, tried = random.Random(seed), case(name, preemption_context=kept)
    for _ in range(12):
        tried.disturb(*schedule(rng, tried.cycles, rng.randint(1, 4), 3))


@pytest.mark.exhaustive
@pytest.mark.parametrize("name", CASES)
def test_nothing_is_lost_in_any_cycle(name: str) -> None:
    """The last CTA, or all, leave in any cycle of the run; of those that are many, every few are tried."""
    tried = case(name)
    step = -(-tried.cycles // 700)
    preempted = [
        tried.disturb((cycle, 0, ctas, cycle + 300)).raw["sm.preempted"].sum()
        for cycle in range(base_seed() % step, tried.cycles, step)
        for ctas in (1, 3)
    ]
    assert max(preempted) == 3 and sum(preempted) > tried.cycles // step


KERNELS = ("reduction", "spmv", "histogram-atomics", "transpose-tiled", "hotspot", "nw", "scalarProd", "bfs")


@pytest.mark.parametrize("name", ["reduction", "histogram-atomics"])
def test_kernels_are_right_all_the_same(name: str) -> None:
    assert lossless(name, 1) == []


@pytest.mark.exhaustive
@pytest.mark.parametrize("name", KERNELS)
def test_many_kernels_are_right_all_the_same(name: str) -> None:
    seed = base_seed()
    print(f"LOCKSTEP_SEED={seed}")
    assert [error for k in range(3) for error in lossless(name, seed + k)] == []


# ------------------------------------------------------------------------------------------------------- directed cases


def test_an_sm_that_gives_up_nothing_is_as_ever() -> None:
    """With the mechanism, and with rows of another SM or after the end, to the cycle."""
    settings = {"core.sms": 2}
    before = combinations.run("reduction", [], settings=settings).raw
    after = combinations.run("reduction", ["preemption"], settings=settings).raw
    for one, other in zip(before, after, strict=True):
        assert {name: other[name] for name in one} == one
    tried = case("loops", core_sms=2)
    for rows in ([(0, 1, 8, 5)], [(tried.cycles + 10, 0, 1, tried.cycles + 20)]):
        assert tried.disturb(*rows).cycles == tried.cycles


@pytest.mark.parametrize("skip", [True, False])
def test_who_is_assigned_last_leaves_first(skip: bool) -> None:
    """Three CTAs, two leave; the older of them comes back first, into the lowest warp slots that are free."""
    tried = case("loops")
    tried.gpu.machine.skip = skip
    slots = []

    def look(machine: Any) -> None:
        ctas = machine.sms["ctas"][0]
        slots.append({int(cta["index"]): int(cta["slots"]) for cta in ctas if cta["live"]})

    for at in (100, 700, 2500):
        with stopped(at, look):
            run = tried.disturb((100, 0, 2, 2000))
    assert slots[0] == {0: 0b11, 1: 0b1100, 2: 0b110000}
    assert slots[1] == {0: 0b11}
    assert run.raw["sm.preempted"].sum() == 2


def test_a_cta_comes_back_into_other_slots() -> None:
    """All three leave, and come back into the lowest slots that are free."""
    tried = case("votes")
    begun = {0: 0b1111, 1: 0b1111_0000, 2: 0b1111_0000_0000}
    seen: list[tuple[int, int]] = []

    def look(machine: Any) -> None:
        found = {int(c["index"]): int(c["slots"]) for c in machine.sms["ctas"][0] if c["live"] and c["warps"]}
        seen.extend(found.items())

    with stopped(100, look):
        tried.disturb((150, 0, 3, 1500))
    assert dict(seen) == begun
    for at in range(1600, 3600, 100):
        with stopped(at, look):
            assert tried.disturb((150, 0, 3, 1500)).raw["sm.preempted"].sum() == 3
    assert any(begun[index] != slots for index, slots in seen)


def test_a_cta_that_ends_while_it_should_leave_is_over() -> None:
    """In its last cycles: it leaves, or has ended; both happen."""
    tried = Case(LOOPS)
    found = {int(tried.disturb((cycle, 0, 1, cycle)).raw["sm.preempted"].sum())
             for cycle in range(tried.cycles - 60, tried.cycles)}  # fmt: skip
    assert found == {0, 1}


def test_a_cta_leaves_again_while_it_comes_back() -> None:
    tried = Case(LOOPS)
    once = tried.disturb((200, 0, 1, 400))
    back = 400 + once.stats["preemption.in_core_cycles"]
    for cycle in (404, 410, *(int(back) + k for k in range(6))):
        run = tried.disturb((200, 0, 1, 400), (cycle, 0, 1, cycle + 50))
        assert run.raw["sm.preempted"].sum() == 2 and run.raw["preemption.lines_read"].sum() > 0


def _under_way(seen: list[int], machine: Any) -> None:
    """Note how many memory instructions a CTA has whose context moves."""
    sm = machine.sms[0]
    if moving := int(sm["frame"]["context"]["moving"]):
        slots = int(sm["ctas"]["warps"][moving.bit_length() - 1])
        seen.append(sum(int(warp["outstanding"]) for k, warp in enumerate(sm["warps"]) if slots >> k & 1))


def test_a_cta_leaves_in_the_thick_of_its_traffic() -> None:
    """With loads, stores and atomics under way, and the queue to the crossbar full: all of it ends before."""
    tried = case("traffic", l1_queue=2, crossbar_flit_bytes=8)
    thick: list[int] = []

    def look(machine: Any) -> None:
        sm = machine.sms[0]
        if sm["lsu"]["l1"]["refusal"] == QUEUE_FULL and (sm["warps"]["outstanding"][:6] > 1).sum() > 1:
            thick.append(int(machine.state["now"]))

    with stopped(range(50, tried.cycles, 3), look):
        tried.disturb()
    for cycle in thick[:: len(thick) // 8]:
        under_way: list[int] = []
        with stopped(range(cycle, cycle + 2000, 10), partial(_under_way, under_way)):
            assert tried.disturb((cycle, 0, 3, cycle + 4000)).raw["sm.preempted"].sum() > 0
        assert under_way and not any(under_way)


def test_the_last_of_64_slots() -> None:
    """Slot 63 is the sign of a mask."""
    tried = Case(LOOPS, grid=32, block=64, core_warps=64, core_threads=2048, core_ctas=32)
    for ctas in (1, 32):
        assert tried.disturb((300, 0, ctas, 1500)).raw["sm.preempted"].sum() == ctas


def test_lines_of_an_l1_with_shorter_ones() -> None:
    """A line of a context is two of them."""
    settings: dict[str, Any] = {"instruction_cache.line_bytes": 64, "l2.sector_bytes": 64}
    whole, halves = (Case(LOOPS, l1_line_bytes=size, **settings) for size in (128, 64))
    assert 2 * whole.disturb((300, 0, 1, 900)).stats["preemption.lines_read"] == (
        halves.disturb((300, 0, 1, 900)).stats["preemption.lines_read"]
    )


def test_skipping_changes_nothing() -> None:
    for name in CASES:
        tried = case(name)
        rows = schedule(random.Random(name), tried.cycles, 4, 3)
        found = []
        for skip in (True, False):
            tried = case(name)  # with the same L2
            tried.gpu.machine.skip = skip
            found.append({count: values.tolist() for count, values in tried.disturb(*rows).raw.items()})
        assert found[0] == found[1]
        assert sum(found[0]["sm.preempted"]) > 0


def test_marks_come_back() -> None:
    tried = case("votes", strict=True)
    tried.disturb((150, 0, 3, 600))


# ----------------------------------------------------------------------------------------------------- lines and cycles


def test_lines_are_those_of_the_context() -> None:
    """A CTA has three; each of its two warps one, its predicates, its registers, its stack; and the scratchpad."""
    tried = Case(LOOPS, block=64, shared=300)
    depth: list[int] = []

    def look(machine: Any) -> None:
        depth.extend(len(warp["stack"]) for warp in Context(machine).warps)

    with stopped(900, look):
        run = tried.disturb((200, 0, 1, 950))
    assert len(depth) == 2 and all(0 < each <= 8 for each in depth)
    lines = 3 + 2 * (1 + 1 + 1 + tried.bench.registers) + 3
    assert run.raw["preemption.lines_written"].sum() == run.raw["preemption.lines_read"].sum() == lines
    assert run.raw["lsu.client_lines"].sum() == 2 * lines
    assert run.raw["l1.stores"].sum() == tried.calm.raw["l1.stores"].sum() + lines
    assert run.raw["l1.bypass_loads"].sum() == tried.calm.raw["l1.bypass_loads"].sum() + lines


@pytest.mark.parametrize("kept", ["dram", "l2"])
def test_where_contexts_are_kept(kept: str) -> None:
    """In DRAM: each line is written and read there, and no line of the L2 names one."""
    tried = Case(LOOPS, preemption_context=kept)
    run = tried.disturb((200, 0, 1, 2000))
    lines = run.raw["preemption.lines_read"].sum()
    more = {name: int(run.raw[name].sum() - tried.calm.raw[name].sum()) for name in ("dram.writes", "dram.reads")}
    assert more["dram.writes"] >= lines if kept == "dram" else more["dram.writes"] < lines
    assert more["dram.reads"] >= lines - 30 if kept == "dram" else more["dram.reads"] <= 0
    memory = tried.gpu.machine.memory
    assert UNCACHED_PHYSICAL // 6 // 256 * 256 >= int(memory.record["uncached"][0]) > 1 << 29
    assert memory.lines.max() >> 20 < int(memory.record["uncached"][0]) >> 7


def test_leaving_takes_a_cycle_for_each_line_at_least() -> None:
    tried = Case(LOOPS)
    run = tried.disturb((200, 0, 1, 2000))
    lines = run.stats["preemption.lines_written"]
    assert lines <= run.stats["preemption.out_core_cycles"] <= 4 * lines + 40
    assert run.stats["preemption.in_core_cycles"] > tried.gpu.description.dram.latency
    assert tried.cycles + 1700 < run.cycles


def test_an_sm_gives_up_ctas_of_its_own_accord() -> None:
    """Whenever none has been out for 1000 cycles; of a run of one CTA, each time that one."""
    tried = Case(LOOPS, preemption_every=1000, preemption_away=100)
    assert tried.calm.raw["sm.preempted"].sum() >= tried.cycles // 2000 > 0


def test_no_new_cta_of_its_grid_starts_while_one_waits() -> None:
    """Of eight CTAs, of which an SM holds two, both leave: the two come back before the third starts."""
    tried = Case(LOOPS, grid=8, core_ctas=2)
    seen: list[int] = []

    def look(machine: Any) -> None:
        seen.append(int(machine.sms["ctas_resident"][0]))

    with stopped(1900, look):
        run = tried.disturb((100, 0, 2, 2000))
    assert seen == [0] and run.raw["sm.preempted"].sum() == 2


def test_other_sms_go_on() -> None:
    """While one SM has a CTA out, the other one takes what is left of the grid."""
    tried = Case(LOOPS, grid=40, core_sms=2, core_ctas=2)
    run = tried.disturb((100, 0, 2, 3 * tried.cycles))
    assert run.raw["sm.ctas"][0] < run.raw["sm.ctas"][1]
    assert run.raw["sm.ctas"].sum() == 40 and run.cycles > 3 * tried.cycles


# -------------------------------------------------------------------------------------------------------------- planted


def _register(found: Context) -> None:
    found.warps[0]["registers"] += 1


def _predicate(found: Context) -> None:
    found.warps[0]["predicates"][:] = 0xCBCBCBCB


def _pc(found: Context) -> None:
    found.warps[0]["top"]["pc"] = 0


def _entry(found: Context) -> None:
    assert len(found.warps[0]["stack"]) > 1
    found.warps[0]["stack"]["mask"][-1] = 0


def _arrived(found: Context) -> None:
    found.cta["arrived"] = 0


def _votes(found: Context) -> None:
    found.cta["votes"] = 0


def _waiters(found: Context) -> None:
    found.cta["at"] = 0


def _scratchpad(found: Context) -> None:
    found.scratchpad[:] = 0xCBCBCBCB


def _in_the_loop(cta: Any, warp: Any) -> bool:
    return bool(warp["pc"] > 12 and warp["depth"] > 1)


def _voting(cta: Any, warp: Any) -> bool:
    return bool(cta["votes"].any())


def _exchanging(cta: Any, warp: Any) -> bool:
    return bool(cta["arrived"][0])


SPOILED: dict[str, tuple[str, Callable[[Any, Any], bool], Callable[[Context], None]]] = {
    "a register": ("loops", _in_the_loop, _register),
    "a predicate": ("loops", _in_the_loop, _predicate),
    "a program counter": ("loops", _in_the_loop, _pc),
    "a stack entry": ("loops", _in_the_loop, _entry),
    "who has arrived": ("votes", _voting, _arrived),
    "votes": ("votes", _voting, _votes),
    "waiting warps": ("votes", _voting, _waiters),
    "the scratchpad": ("votes", _exchanging, _scratchpad),
}


@pytest.mark.parametrize("what", SPOILED)
def test_what_does_not_come_back_is_missed(what: str) -> None:
    """A CTA goes on with what is in memory alone: spoiled there while the CTA is out, it shows."""
    name, when, spoil = SPOILED[what]
    tried = case(name, launch_no_progress=2000)
    moments: list[int] = []

    def look(machine: Any) -> None:
        sm = machine.sms[0]
        moments.extend(
            int(machine.state["now"])
            for cta in sm["ctas"]
            if cta["live"] and cta["index"] == 2
            if when(cta, next(warp for k, warp in enumerate(sm["warps"]) if int(cta["slots"]) >> k & 1))
        )

    with stopped(range(100, tried.cycles, 10), look):
        tried.disturb()
    cycle = moments[len(moments) // 3]
    tried.disturb((cycle, 0, 1, cycle + 1000))
    with stopped(cycle + 900, lambda machine: spoil(Context(machine, home=2))):
        try:
            wrong = tried.wrong([(cycle, 0, 1, cycle + 1000)])[1]
        except (KernelFault, RuntimeError, StopIteration) as fault:  # a warp waits, but at no barrier
            wrong = repr(fault)
    assert wrong


def test_another_ctas_context_is_missed() -> None:
    tried = case("loops", launch_no_progress=2000)

    def mix_up(machine: Any) -> None:
        Context(machine, home=1).bytes[:] = Context(machine, home=2).bytes

    with stopped(1100, mix_up):
        assert tried.wrong([(150, 0, 2, 1200)])[1]


# ------------------------------------------------------------------------------------------------------------ two grids


def pair(rows: list[tuple[int, int, int, int]], skip: bool = True, **settings: Any) -> tuple[list[Any], Any]:
    """Two kernels that count on in their own words, in two streams."""
    gpu = Gpu("gtx480", ["preemption"], **{"core_sms": 2, "core_ctas": 4, **settings})
    gpu.machine.skip = skip
    module = gpu.load(PAIR)
    data = [gpu.to_device(np.zeros(2048, np.uint32)) for _ in range(2)]
    streams = [gpu.stream(), gpu.stream()]
    with gpu.preempting(rows):
        pending = [
            module.launch("count", 16, 128, [buffer, np.uint32(value)], stream=stream)
            for buffer, value, stream in zip(data, (3, 5), streams, strict=True)
        ]
        gpu.synchronize()
    return [gpu.from_device(buffer) for buffer in data], pending


PAIR = """
.version 7.8
.target sm_75
.address_size 64
.visible .entry count(.param .u64 data, .param .u32 value)
{
    .reg .pred %p<2>;
    .reg .b32 %r<8>;
    .reg .b64 %rd<4>;
    ld.param.u64 %rd1, [data];
    ld.param.u32 %r2, [value];
    mov.u32 %r1, 20;
    mov.u32 %r3, %tid.x;
    mov.u32 %r4, %ctaid.x;
    mov.u32 %r5, %ntid.x;
    mad.lo.u32 %r3, %r4, %r5, %r3;
    mad.wide.u32 %rd1, %r3, 4, %rd1;
again:
    ld.global.u32 %r6, [%rd1];
    mad.lo.u32 %r6, %r6, 3, %r2;
    st.global.u32 [%rd1], %r6;
    sub.u32 %r1, %r1, 1;
    setp.ne.u32 %p1, %r1, 0;
    @%p1 bra again;
    ret;
}
"""


def test_ctas_of_two_grids_leave() -> None:
    calm, _ = pair([])
    rng = random.Random(3)
    for _ in range(4):
        rows = [(cycle := rng.randrange(6000), rng.randrange(2), rng.randint(1, 4), cycle + rng.randrange(4000))
                for _ in range(4)]  # fmt: skip
        values, pending = pair(rows)
        assert all((mine == its).all() for mine, its in zip(values, calm, strict=True))
        together = pending[0].run.together
        assert together.raw["sm.preempted"].sum() > 0
        shares = sum(each.run.raw["sm.preempted"].sum() for each in pending)
        assert shares == together.raw["sm.preempted"].sum() == together.raw["preemption.resumed"].sum()
    other = pair(rows, skip=False)[1][0].run.together
    assert {name: count.tolist() for name, count in other.raw.items()} == {
        name: count.tolist() for name, count in together.raw.items()
    }


def test_others_that_make_ctas_leave() -> None:
    """A tenant that knows nothing of contexts says who is to leave."""
    with registered():
        run = Case(LOOPS, grid=60, mechanisms=("preemption", "trial-preempt")).calm
    values = Case(LOOPS, grid=60).calm
    assert run.raw["sm.preempted"].sum() > 0 and run.cycles > values.cycles
    assert run.warp_instructions == values.warp_instructions


OTHERS = [name for pair in combinations.pairs() if "preemption" in pair for name in pair if name != "preemption"]


@pytest.mark.parametrize("other", OTHERS)
def test_beside_other_mechanisms(other: str) -> None:
    """Each with its laws; results are right, and the same with and without skipping."""
    settings = {"preemption.every": 1500, "preemption.ctas": 2}
    for kernel in ("reduction", "spmv"):
        found, stepped = (combinations.run(kernel, ["preemption", other], skip, settings) for skip in (True, False))
        assert not found.wrong and found.raw == stepped.raw
        assert sum(sum(raw["sm.preempted"]) for raw in found.raw) > 0


def taken(placement: str, skip: bool = True) -> list[tuple[set[int], ...]]:
    """Which grids have warps that may issue in each of two SMs, in each of four slices."""
    seen: list[tuple[set[int], ...]] = []

    def look(machine: Any) -> None:
        sms = machine.sms
        seen.append(tuple({int(cta["grid"]) for cta in one["ctas"] if cta["live"] and cta["warps"]} for one in sms))

    for cycle in (2900, 6000, 9500, 12_500):
        with stopped(cycle, look):
            pair([], skip, launch_placement=placement, launch_slice=3000, core_ctas=2)
    return seen


@pytest.mark.parametrize("skip", [True, False])
def test_grids_take_turns(skip: bool) -> None:
    assert taken("temporal", skip) == [({0}, {0}), ({1}, {1}), ({0}, {0}), ({1}, {1})]


def test_turns_lose_nothing() -> None:
    calm, _ = pair([])
    for overhead in (0, 700):
        found = []
        for skip in (True, False):
            values, pending = pair([], skip, launch_placement="temporal", launch_slice=3000, launch_overhead=overhead)
            assert all((mine == its).all() for mine, its in zip(values, calm, strict=True))
            together = pending[0].run.together
            assert together.raw["sm.preempted"].sum() > 8
            found.append({name: count.tolist() for name, count in together.raw.items()})
        assert found[0] == found[1]


def test_turns_need_a_mechanism() -> None:
    with pytest.raises(UsageError, match=r"temporal.*select preemption"):
        Gpu("gtx480", launch_placement="temporal")


# ------------------------------------------------------------------------------------------------------------ nonsense


@pytest.mark.parametrize(
    ("row", "message"),
    [
        ((100, 0, 1), "must be four integers"),
        ((100, 15, 1, 200), "SM 15: gtx480 has SMs 0 to 14"),
        ((100, 0, 0, 200), "0 CTAs: must be 1 to 32"),
        ((100, 0, 1, 50), "must not be back before it leaves"),
        ((-1, 0, 1, 50), "nor leave before cycle 0"),
        ((0, 0, 1, 6_000_000), "must be less than launch.no_progress = 5000000 core cycles"),
    ],
)
def test_nonsense_is_refused(row: Any, message: str) -> None:
    with pytest.raises(UsageError, match=message), Gpu("gtx480", ["preemption"]).preempting([row]):
        pass


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"preemption.every": 999}, "preemption.every = 999: must be 0, or 1000 at least"),
        ({"preemption.every": 1000, "preemption.away": 10**7}, "preemption.away = 10000000: must be less than launch"),
        ({"preemption.context": "l3"}, "preemption.context"),
    ],
)
def test_settings_without_sense_are_refused(settings: dict[str, Any], message: str) -> None:
    with pytest.raises(UsageError, match=message):
        Gpu("gtx480", ["preemption"], settings)


def test_without_a_mechanism_none_leaves() -> None:
    with pytest.raises(UsageError, match="select preemption"), Gpu("gtx480").preempting([(0, 0, 1, 9)]):
        pass
