"""Scavenger in whole runs: who gets what of an SM, what a target does, and that nothing is lost or waits for ever."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from statistics import mode
from typing import Any

import numpy as np
import pytest

from lockstep.models import jit as J
from lockstep.models.core.frame import LOAD
from lockstep.models.core.state import LAUNCH, SM
from lockstep.models.execution.isa import LANES
from lockstep.models.scavenger.pairs import PAIRS, find_pairs
from lockstep.models.scavenger.shares import outstanding, window
from lockstep.models.scavenger.tenant import STATE, _look_on
from lockstep.sim import Gpu, kernels
from lockstep.sim.cosim.run import cosim
from lockstep.sim.device import description
from lockstep.sim.study.job import Job
from lockstep.spec.parameters import MAX_CTAS, config
from lockstep.spec.scavenger.control import State
from lockstep.spec.scavenger.statistics import ENDS
from lockstep.verif.levels import base_seed

SHORT: dict[str, Any] = {"core.sms": 2, "scavenger.minimum": 520, "scavenger.maximum": 4000}
"""Two SMs, and profiles that tiny kernels live to see the end of."""

KERNEL = """
.version 7.8
.target sm_75
.address_size 64
.visible .entry {name}(.param .u64 data, .param .u32 rounds)
{{
    .reg .pred %p<4>;
    .reg .b32 %r<12>;
    .reg .b64 %rd<4>;
    .shared .align 4 .b8 room[{shared}];
    ld.param.u64 %rd1, [data];
    ld.param.u32 %r1, [rounds];
    mov.u32 %r2, %tid.x;
    mov.u32 %r3, %ctaid.x;
    mov.u32 %r4, %ntid.x;
    mov.u32 %r5, %nctaid.x;
    mad.lo.u32 %r6, %r3, %r4, %r2;
    mul.wide.u32 %rd2, %r6, 4;
    add.u64 %rd2, %rd2, %rd1;
    mov.u32 %r7, 0;
{body}
    st.global.u32 [%rd2], %r7;
    ret;
}}
"""
COMPUTE = """
again:
    mad.lo.u32 %r7, %r7, 5, 1;
    xor.b32 %r8, %r7, %r6;
    mad.lo.u32 %r8, %r8, 3, 1;
    sub.u32 %r1, %r1, 1;
    setp.ne.u32 %p1, %r1, 0;
    @%p1 bra again;
"""
BARRIERS = """
again:
    bar.sync 0;
    add.u32 %r7, %r7, 1;
    sub.u32 %r1, %r1, 1;
    setp.ne.u32 %p1, %r1, 0;
    @%p1 bra again;
"""
LOADS = """
again:
    ld.volatile.global.u32 %r8, [%rd2];
    add.u32 %r7, %r8, 1;
    st.volatile.global.u32 [%rd2], %r7;
    sub.u32 %r1, %r1, 1;
    setp.ne.u32 %p1, %r1, 0;
    @%p1 bra again;
"""
# Half of the iterations are of another kind: with one lane, with lines apart, or of other instructions.
PHASES = """
    mov.u32 %r9, %r1;
again:
    shr.u32 %r10, %r9, 1;
    setp.lt.u32 %p2, %r1, %r10;
    and.b32 %r11, %r2, 31;
    {kind}
next:
    sub.u32 %r1, %r1, 1;
    setp.ne.u32 %p1, %r1, 0;
    @%p1 bra again;
"""
LANES_DIFFER = """
    mov.u32 %r8, 1;
    @%p2 mov.u32 %r8, 40;
    setp.lt.u32 %p3, %r11, %r8;
""" + "    @%p3 mad.lo.u32 %r7, %r7, 5, 1;\n" * 40
REQUESTS_DIFFER = """
    selp.u32 %r8, 512, 4, %p2;
    mul.lo.u32 %r8, %r8, %r11;
    cvt.u64.u32 %rd3, %r8;
    add.u64 %rd3, %rd3, %rd1;
    ld.volatile.global.u32 %r10, [%rd3];
    add.u32 %r7, %r7, %r10;
"""
INSTRUCTIONS_DIFFER = (
    "    @%p2 bra other;\n"
    + "    mad.lo.u32 %r7, %r7, 5, 1;\n" * 50
    + "    bra next;\nother:\n"
    + "    mad.lo.u32 %r7, %r7, 5, 1;\n" * 40
)
# The last warp of a CTA lets the others go. They look at a word of their CTA's beyond the results.
SPIN_ON_WARP = """
    mul.wide.u32 %rd3, %r3, 4;
    add.u64 %rd3, %rd3, %rd1;
    sub.u32 %r8, %r4, 32;
    setp.ge.u32 %p1, %r2, %r8;
    @!%p1 bra look;
again:
    add.u32 %r7, %r7, 1;
    sub.u32 %r1, %r1, 1;
    setp.ne.u32 %p2, %r1, 0;
    @%p2 bra again;
    st.volatile.global.u32 [%rd3+65536], 1;
    bra done;
look:
    ld.volatile.global.u32 %r8, [%rd3+65536];
    setp.eq.u32 %p2, %r8, 0;
    @%p2 bra look;
done:
    mov.u32 %r7, 7;
"""
# Every CTA counts itself, and waits until as many as ``rounds`` have.
SPIN_ON_CTAS = """
    setp.ne.u32 %p1, %r2, 0;
    @%p1 bra look;
    atom.global.add.u32 %r8, [%rd1+65536], 1;
look:
    ld.volatile.global.u32 %r8, [%rd1+65536];
    setp.lt.u32 %p2, %r8, %r1;
    @%p2 bra look;
    mov.u32 %r7, 7;
"""
BYTES = 1 << 17
ALL = (1 << 64) - 1


class Pair:
    """Two kernels of one launch each, on a GPU with Scavenger."""

    def __init__(self, mechanisms: Sequence[str] = ("scavenger",), **settings: Any) -> None:
        values = SHORT | {name.replace("__", "."): value for name, value in settings.items()}
        self.gpu = Gpu("gtx480", mechanisms, values)
        self.data = [self.gpu.to_device(np.zeros(BYTES, np.uint8)) for _ in range(2)]
        self.streams: list[Any] = []
        self.waits: list[Any] = []

    def add(self, body: str, rounds: int, ctas: int = 16, block: int = 128, shared: int = 4, which: int = -1) -> None:
        """A launch of the next kernel, or of ``which``."""
        if which < 0:
            which = len(self.streams)
            self.streams.append(self.gpu.stream())
        module = self.gpu.load(KERNEL.format(name="k", body=body, shared=shared))
        arguments = [self.data[which], np.uint32(rounds)]
        self.waits.append(module.launch("k", ctas, block, arguments, stream=self.streams[which]))

    def run(self) -> list[Any]:
        """What both have done, and what is true of both."""
        self.gpu.synchronize()
        return [each.run for each in self.waits]

    def words(self, which: int, count: int) -> np.ndarray:
        return np.frombuffer(self.gpu.from_device(self.data[which]).tobytes(), np.uint32)[:count]

    @property
    def state(self) -> np.void:
        """Of the mechanism in the first SM."""
        [tenant] = [each for each in self.gpu.machine.tenants if each.mechanism.name == "scavenger"]
        return tenant.states[0]

    def look(self, seen: Callable[[], None], every: int = 3) -> None:
        """Run, and look on every few cycles."""
        self.gpu.progress = lambda *_: seen()
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr("lockstep.models.session.between_looks", lambda _: every)
            self.gpu.synchronize()


def program(gpu: Gpu, name: str) -> Callable[[], tuple[Any, Any, Any]]:
    kernel = kernels.find(name)
    module, data = gpu.load(kernel.ptx, kernel.registers), kernel.setup("tiny", 1)
    return lambda: (kernel, kernel.run(gpu, module, data), data)


def run_pair(names: Sequence[str], skip: bool = True, **settings: Any) -> Gpu:
    """Two kernels of ours on a GPU with Scavenger, which must be right."""
    gpu = Gpu("gtx480", ["scavenger"], SHORT | {name.replace("__", "."): value for name, value in settings.items()})
    gpu.machine.skip = skip
    for one in gpu.run_programs([program(gpu, name) for name in names]):
        kernel, outputs, data = one.result
        checked = kernels.check(kernel, outputs, data)
        assert checked.passed, f"{names}: {kernel.name}: {checked.message}"
    return gpu


# ----------------------------------------------------------------------------------------------- pairs, warps, requests


def random_launch(rng: random.Random, gpu: Any) -> np.ndarray:
    """Two grids of random needs, each of which fits alone."""
    launch = np.zeros((), LAUNCH)
    for grid in launch["grids"]:
        grid["warps"] = rng.randint(1, rng.choice([4, gpu.core.warps]))
        grid["allocated_registers"] = rng.randint(1, gpu.core.registers // rng.choice([1, 2, 8]))
        grid["allocated_shared"] = rng.choice([0, rng.randint(1, gpu.scratchpad.bytes)])
        grid["total"] = rng.choice([1, 3, 1000])
    for index, grid in enumerate(launch["grids"]):
        alone = [(number, 0)[:: 1 if index == 0 else -1] for number in range(1, gpu.core.ctas + 1)]
        grid["per_sm"] = max([1, *(max(pair) for pair in alone if fits(launch, gpu, *pair))])
    return launch


def fits(launch: np.ndarray, gpu: Any, primary: int, secondary: int) -> bool:
    one, two = launch["grids"]
    need = {name: primary * int(one[name]) + secondary * int(two[name])
            for name in ("warps", "allocated_registers", "allocated_shared")}  # fmt: skip
    return (
        primary + secondary <= gpu.core.ctas
        and need["warps"] <= gpu.core.warps
        and need["warps"] * LANES <= gpu.core.threads
        and need["allocated_registers"] <= gpu.core.registers
        and need["allocated_shared"] <= gpu.scratchpad.bytes
    )


@pytest.mark.parametrize("name", ["gtx480", "gtx980"])
def test_pairs_are_all_that_leave_no_room(name: str) -> None:
    seed = base_seed()
    print(f"LOCKSTEP_SEED={seed}")
    rng, gpu = random.Random(seed), description.load(name)
    settings, pairs, found = config(gpu)[0:1].reshape(()), np.zeros((), PAIRS), 0
    for _ in range(400):
        launch = random_launch(rng, gpu)
        one, two = launch["grids"]
        most = min(int(one["per_sm"]), int(one["total"])), min(int(two["per_sm"]), int(two["total"]))

        def room(primary: int, secondary: int) -> bool:
            within = primary <= most[0] and secondary <= most[1]  # noqa: B023
            return within and fits(launch, gpu, primary, secondary)  # noqa: B023

        expected = [
            (p, s) for p in range(1, most[0] + 1) for s in range(1, most[1] + 1)
            if room(p, s) and not room(p + 1, s) and not room(p, s + 1)
        ]  # fmt: skip
        before = [tuple(map(int, pair)) for pair in pairs["pair"][: int(pairs["count"])]]
        others = find_pairs(J.argument(pairs), J.argument(launch), J.argument(settings))
        assert [tuple(map(int, pair)) for pair in pairs["pair"][: int(pairs["count"])]] == expected
        assert bool(others) == (before != expected)
        assert not find_pairs(J.argument(pairs), J.argument(launch), J.argument(settings))
        found += len(expected)
    assert found > 150


def test_the_oldest_warps_are_active() -> None:
    seed = base_seed()
    print(f"LOCKSTEP_SEED={seed}")
    rng, sm = random.Random(seed), np.zeros((), SM)
    for _ in range(500):
        size = rng.choice([1, 3, 8, 20])
        places = rng.sample(range(MAX_CTAS), min(64 // size, rng.randint(1, 8)))
        sm["ctas"]["live"] = 0
        ages = rng.sample(range(100), len(places))
        for number, (place, age) in enumerate(zip(places, ages, strict=True)):
            sm["ctas"][place]["live"], sm["ctas"][place]["assigned"] = size, age
            sm["ctas"][place]["slots"] = np.uint64((1 << size) - 1 << number * size).astype(np.int64)
        here = rng.getrandbits(len(places) * size) | 1
        warps = [slot for slot in range(64) if here >> slot & 1]
        warps.sort(key=lambda slot: (ages[slot // size], slot))
        first, most = rng.randrange(200), rng.randint(0, 64)
        turned = warps[first % len(warps) :] + warps[: first % len(warps)]
        expected = sum(1 << slot for slot in turned[:most])
        signed = int(np.uint64(here).astype(np.int64))
        assert int(window(J.argument(sm), signed, most, first)) & (1 << 64) - 1 == expected


def test_outstanding_requests_are_those_of_the_l1() -> None:
    """What it has accepted and not answered, an instruction that still has lines to send, and stores on their way."""
    pair, most, way = Pair((), core__sms=1), [0, 0], [0]
    pair.add(LOADS, 6)
    pair.add(LOADS, 9, block=64)

    def seen() -> None:
        sm = pair.gpu.machine.sms[0]
        found = outstanding(J.argument(pair.gpu.machine.sms[0:1].reshape(())))
        stats, tickets = sm["lsu"]["l1"]["stats"], sm["lsu"]["tickets"]["used"]
        tokens = sm["lsu"]["token"].reshape(len(tickets), -1)
        sending = sum(
            int(tokens[warp, ticket]["unsent"] != 0)
            for warp in range(len(tickets)) for ticket in range(16) if tickets[warp] >> ticket & 1
        )  # fmt: skip
        stores = int(stats["stores"]) - int(pair.gpu.machine.memory.slices["stats"]["writes"].sum())
        assert sum(found) == int(stats["tokens_in"] - stats["tokens_out"]) + sending + stores
        way[0] = max(way[0], stores)
        most[:] = map(max, most, found)

    pair.look(seen)
    assert min(most) > 8 and way[0] > 4


def test_another_warp_becomes_active_when_nothing_new_is_reached() -> None:
    """Every ``patience`` cycles the buckets that were reached are compared with those of the time before."""
    state = np.zeros((), STATE)
    state["scavenger"]["patience"], state["since"] = 1000, 50
    moves = []
    for now, reached in ((1049, [3, 0]), (1050, [3, 0]), (2050, [1, 0]), (2051, [9, 9]), (3050, [0, 1 << 62]),
                         (4050, [0, 1 << 62]), (5050, [0, 0])):  # fmt: skip
        state["reached"] = reached
        due = _look_on(J.argument(state), now)
        moves.append((int(state["first"]), int(due)))
    assert moves == [(0, 1050), (0, 2050), (1, 3050), (1, 3050), (1, 4050), (2, 5050), (3, 6050)]


# ------------------------------------------------------------------------------------------------------------ in a run


ALONE = ("hotspot", "bfs", "histogram-atomics")


@pytest.mark.parametrize("name", ALONE)
def test_without_a_secondary_nothing_changes(name: str) -> None:
    """Every count but Scavenger's and preemption's own, in every launch."""
    counts = []
    for mechanisms in ((), ("scavenger",)):
        gpu = Gpu("gtx480", mechanisms, {"core.sms": 2})
        program(gpu, name)()
        counts.append([run.raw for run in gpu.runs])
    for before, after in zip(*counts, strict=True):
        assert all(np.array_equal(before[count], after[count]) for count in before)


PAIRS_OF_KERNELS = (("hotspot", "spmv"), ("sgemm", "histogram-atomics"), ("spmv", "reduction"))


@pytest.mark.parametrize("names", PAIRS_OF_KERNELS, ids="+".join)
def test_skipping_changes_nothing(names: tuple[str, str]) -> None:
    found = [
        [{name: count.tolist() for name, count in run.raw.items()} for run in run_pair(names, skip).runs]
        for skip in (True, False)
    ]
    assert found[0] == found[1]
    assert sum(sum(run["scavenger.profiles"]) for run in found[0]) > 0


@pytest.mark.exhaustive
@pytest.mark.long
def test_many_pairs_are_right() -> None:
    """Whatever the target, the profile and the readings; every fourth pair also without skipping."""
    seed = base_seed()
    print(f"LOCKSTEP_SEED={seed}")
    rng = random.Random(seed)
    for number in range(40):
        names, settings = [rng.choice(kernels.names()) for _ in range(2)], random_settings(rng)
        gpu = run_pair(names, **settings)
        if number % 4 == 0:
            other = run_pair(names, False, **settings)
            for mine, its in zip(gpu.runs, other.runs, strict=True):
                assert [name for name in mine.raw if not np.array_equal(mine.raw[name], its.raw[name])] == [], names


def random_settings(rng: random.Random) -> dict[str, Any]:
    relative = rng.randint(0, 1)
    return dict(
        scavenger__target=rng.choice([1, 50, 90, 100]), scavenger__minimum=rng.choice([520, 1024, 4096]),
        scavenger__maximum=rng.choice([4400, 9000]), scavenger__relative=relative,
        scavenger__reciprocal=rng.randint(0, 1 - relative), scavenger__scale=rng.choice([1, 16]),
        scavenger__gated_slack=rng.randint(0, 1), scavenger__longest=rng.choice([1024, 20_000]),
        scavenger__duration=rng.choice([1, 700]), scavenger__limit=rng.choice([0, 4096]),
        scavenger__alone=rng.choice([1, 3000]), scavenger__window=1024, scavenger__patience=1024,
    )  # fmt: skip


@pytest.mark.long
def test_a_lower_target_leaves_more_to_the_secondary() -> None:
    """Two kernels that compute: the primary's speed is its target, within a tenth; controllers begin from above."""
    spent = []
    for target in (90, 60, 30):
        pair = Pair(scavenger__target=target, scavenger__minimum=2048, core__scheduler="lrr")
        pair.add(COMPUTE, 100, ctas=64, block=192)
        pair.add(COMPUTE, 800, ctas=64)
        first, _ = pair.run()
        stats = pair.gpu.runs[-1].stats
        wanted, had = stats["scavenger.target_ipc"], stats["scavenger.primary_ipc"]
        assert wanted == pytest.approx(stats["scavenger.predicted_ipc"] * target / 100, rel=0.05)
        assert had == pytest.approx(wanted, rel=0.1), target
        spent.append(first.cycles)
    assert spent == sorted(spent) and spent[2] > 1.8 * spent[0]


@pytest.mark.long
@pytest.mark.parametrize("target", [40, 100])
def test_each_kernel_has_at_most_its_ctas_and_warps(target: int) -> None:
    """Every seven cycles: CTAs that are not told to leave, but for those that a dispatcher had found room for."""
    pair = Pair(scavenger__target=target, scavenger__window=1024, scavenger__longest=32_768, core__sms=1)
    pair.add(COMPUTE, 150, ctas=16 if target == 100 else 8, block=192)
    pair.add(LOADS, 20, ctas=24, block=64)
    over, states, closed, filled, left = [0, 0], set(), 0, [0, 0], [0, 0]

    def seen() -> None:
        nonlocal closed
        sm = pair.gpu.machine.sms[0]
        state = pair.state
        o, i = (state["scavenger_unit"]["io"][side] for side in "oi")
        states.add(State(int(o["state"])))
        leaving, now = int(sm["frame"]["leaving"]), int(pair.gpu.machine.state["now"])
        for grid, most in enumerate((o["primary_limit"], o["secondary_limit"])):
            stays = sum(
                int(cta["live"] > 0 and cta["grid"] == grid and not leaving >> place & 1)
                for place, cta in enumerate(sm["ctas"])
            )  # fmt: skip
            over[grid] = over[grid] + 1 if stays > int(most) and state["company"] else 0
            assert over[grid] <= 1, (pair.gpu.machine.state["now"], grid, stays, most)
        gate = state["active"]
        second = int(sm["second"])
        assert o["state"] not in (State.PROFILING, State.TARGETING) or not sm["ctas_of"][1]
        going = sum(int(cta["slots"]) for place, cta in enumerate(sm["ctas"]) if leaving >> place & 1)
        if state["shared"]:
            closed += 1
            assert not (int(gate[0]) | int(gate[1])) & going
            assert (int(gate[0]) & ~second).bit_count() <= int(o["primary_warps"])
            assert (int(gate[1]) & second).bit_count() <= int(o["secondary_warps"])
            loads = int(sm["frame"]["gate"][int(state["gate"])]["closed"][LOAD])
            both = int(i["primary_outstanding"]) + int(i["secondary_outstanding"])
            full = both >= 256, i["secondary_outstanding"] >= o["secondary_requests"]
            filled[bool(full[1])] += 1
            for grid in range(2):
                waits = int(state["chosen_from"][grid])
                assert not full[grid] or loads & waits == waits
                assert full[grid] or not loads & waits & int(gate[grid])
        primary = [(place, int(cta["assigned"])) for place, cta in enumerate(sm["ctas"])
                   if cta["live"] > 0 and cta["grid"] == 0]  # fmt: skip
        ages = [[age for place, age in primary if leaving >> place & 1 == leaves] for leaves in (0, 1)]
        assert not all(ages) or max(ages[0]) < min(ages[1])
        out, left_over = int(sm["frame"]["context"]["out"]) & 1, pair.gpu.machine.launch_record["grids"][0]["left"]
        assert not state["began"] or sm["wake"] <= now or int(i["left"]) == int(left_over != 0 or out)
        left[0] += len(ages[1])
        left[1] += out

    pair.look(seen, 7)
    assert states == {State.FREE, State.CLEARING, State.PROFILING, State.TARGETING, State.RUNNING} and closed > 100
    assert min(left) > 0 and (target == 40 or min(filled) > 10)


@pytest.mark.long
def test_what_the_unit_sees_adds_up() -> None:
    """In every cycle: instructions, lanes, warps and requests, to what the SM and the L1 count of the kernels."""
    pair, sums = Pair(core__sms=1, launch__overhead=600), dict.fromkeys(("issued", "started", "sample"), 0)
    before, turns = {"moving": 0, "resident": 0, "now": 0}, set()
    pair.gpu.machine.skip, pair.gpu.every = False, 1 << 20  # an interval's end counts cycles, too
    pair.add(LOADS, 2, ctas=1, block=32)
    pair.add(COMPUTE, 40, ctas=16, block=96)
    pair.add(LOADS, 12, ctas=6, block=80, which=0)

    def seen() -> None:
        i = pair.state["scavenger_unit"]["io"]["i"]
        for name in ("instructions", "lanes", "memory_instructions", "requests", "begins", "clear"):
            sums[name] = sums.get(name, 0) + int(i[name])
        for name in ("issued", "started"):
            sums[name] += int(i[name]).bit_count()
        sm = pair.gpu.machine.sms[0]
        second, active = int(sm["second"]), int(pair.state["active"][0])
        assert bool(i["stalled"]) == bool(sm["lsu"]["refused"]) and int(i["writing"]) == before["moving"]
        now = int(pair.gpu.machine.state["now"])  # twice the same when a grid has ended
        if not i["issued"] and before["resident"] == int(sm["resident"]) and before["now"] != now:
            assert int(i["primary_resident"]) == int(sm["resident"]) & ~second & ALL
            assert int(i["secondary_resident"]) == int(sm["resident"]) & second
            assert int(i["ready"]) == (active & int(sm["ready"]) & ALL).bit_count()
        assert int(i["active"]) == (active & ALL).bit_count()
        before["moving"] = int(sm["frame"]["context"]["moving"] != 0)
        before["resident"], before["now"] = int(sm["resident"]), now
        turns.add(int(pair.state["sampler"]))
        sums["sample"] += int(i["sample"]["valid"]) + int(pair.state["sampled"] != 0)
        assert int(pair.state["sampled"]).bit_count() == int(i["instructions"])

    pair.look(seen, 1)
    first = {
        name: pair.waits[0].run.raw[name] + pair.waits[2].run.raw[name] for name in ("sm.warp_instructions", "sm.lanes")
    }
    stats, whole = pair.gpu.machine.sms[0]["lsu"]["l1"]["stats"], pair.gpu.runs[-1].raw
    contexts = int(whole["preemption.lines_written"][0] + whole["preemption.lines_read"][0])
    lines = int(stats["loads"] + stats["bypass_loads"] + stats["stores"]) - contexts
    assert sums["instructions"] == first["sm.warp_instructions"][0]
    assert sums["lanes"] == first["sm.lanes"][0].sum()
    assert sums["issued"] == whole["sm.warp_instructions"][0]
    resumed = sums["started"] - int(whole["sm.warps"][0])
    assert 0 < resumed <= 3 * int(whole["sm.preempted"][0]) and whole["sm.preempted"][0] > 0
    assert (sums["begins"], sums["clear"]) == (2, 2)
    stores = 16 * 3  # of the secondary, a line for each of its warps
    assert sums["requests"] == lines - stores  # of CTAs of 80 threads some warps need two
    assert sums["memory_instructions"] == 1 * (2 * 2 + 1) + 6 * 3 * (2 * 12 + 1)
    assert 0 < sums["sample"] <= sums["instructions"] and turns == {0, 1}


@pytest.mark.parametrize("gated", [0, 1])
def test_slack_is_of_active_warps_or_of_all(gated: int) -> None:
    pair, differ = Pair(core__sms=1, scavenger__target=40, scavenger__gated_slack=gated), [0]
    pair.add(COMPUTE, 100, ctas=8, block=192)
    pair.add(COMPUTE, 100)

    def seen() -> None:
        if pair.state["shared"]:
            active, here = (int(pair.state[name][0]).bit_count() for name in ("active", "chosen_from"))
            assert int(pair.state["scavenger_unit"]["io"]["i"]["active"]) == (here if gated else active)
            differ[0] += active != here

    pair.look(seen, 10)
    assert differ[0] > 10


@pytest.mark.parametrize(
    ("kind", "end"), [(LANES_DIFFER, "lanes"), (REQUESTS_DIFFER, "requests"), (INSTRUCTIONS_DIFFER, "pcs")],
    ids=["lanes", "requests", "instructions"],
)  # fmt: skip
def test_a_primary_that_does_something_else_ends_the_run(kind: str, end: str) -> None:
    window, rounds = {"lanes": (8192, 100), "requests": (8192, 800), "pcs": (1024, 120)}[end]
    profile: dict[str, Any] = {"scavenger.minimum": 4096, "scavenger.maximum": 20_000}
    pair = Pair(core__sms=1, scavenger__window=window, scavenger__entries=128, scavenger__target=50, **profile)
    first: list[str] = []
    pair.add(PHASES.format(kind=kind), rounds, ctas=8, block=32)
    pair.add(COMPUTE, 4000, ctas=8, block=32)

    def seen() -> None:
        counts = pair.state["counts"]
        first[:] = first or [each.name.lower() for each in ENDS if counts[f"ended_{each.name.lower()}"]]

    pair.look(seen, 100)
    assert first == [end]


def test_a_profile_predicts_what_the_primary_does_alone() -> None:
    """It begins when no further CTA of the primary fits, and counts nothing of the secondary."""
    pair = Pair(core__sms=1, scavenger__minimum=2048, scavenger__maximum=60_000)
    profiled: list[tuple[int, int]] = []  # cycles, and instructions by then
    pair.add(COMPUTE, 150, ctas=8, block=192)
    pair.add(LOADS, 50, ctas=8)

    def seen() -> None:
        if pair.state["scavenger_unit"]["io"]["o"]["state"] == State.PROFILING:
            assert list(pair.gpu.machine.sms[0]["ctas_of"]) == [8, 0]
            issued = pair.gpu.machine.sms[0]["counters"]["warp_instructions"]
            profiled.append((int(pair.gpu.machine.state["now"]), int(issued)))

    pair.look(seen, 10)
    (began, before), (ended, after) = profiled[0], profiled[-1]
    stats, ipc = pair.gpu.runs[-1].stats, (after - before) / (ended - began)
    assert stats["scavenger.profiles"] == 1 and ended - began > 2000
    assert stats["scavenger.predicted_ipc"] == pytest.approx(ipc, rel=0.01)


def test_an_sm_without_the_primary_is_the_secondarys() -> None:
    """As soon as all of the primary's CTAs have started elsewhere; the SM has nothing to do until then."""
    pair = Pair()
    pair.add(COMPUTE, 2000, ctas=1, block=1024)
    pair.add(LOADS, 5, ctas=6)
    first, second = pair.run()
    assert list(first.raw["sm.ctas"]) == [1, 0] and second.raw["sm.ctas"][1] >= 5
    assert second.ended < first.ended / 4


def test_the_primary_has_all_when_the_secondary_has_ended() -> None:
    """Also in a run: its CTAs come back."""
    pair = Pair(core__sms=1, scavenger__target=50)
    alone: list[int] = []
    pair.add(COMPUTE, 100, ctas=60, block=192)
    pair.add(COMPUTE, 100, ctas=8)

    def seen() -> None:
        if pair.state["scavenger_unit"]["io"]["o"]["state"] == State.RUNNING and not pair.state["company"]:
            alone.append(int(pair.gpu.machine.sms[0]["ctas_of"][0]))

    pair.look(seen, 20)
    assert mode(alone) == 8 and len(alone) > 100


def test_kernels_that_cannot_share_an_sm_do_not() -> None:
    """The secondary waits until the primary has gone, and its CTAs keep what they have done."""
    pair = Pair()
    pair.add(COMPUTE, 100, ctas=8, block=1024, shared=30_000)
    pair.add(BARRIERS, 50, ctas=4, block=1024, shared=30_000)
    first, second = pair.run()
    stats = pair.gpu.runs[-1].stats
    assert stats["scavenger.profiles"] == stats["scavenger.shared_core_cycles"] == 0
    assert stats["scavenger.clearing_core_cycles"] > first.cycles and second.ended > first.ended
    assert (pair.words(1, 4096) == 50).all()


# ------------------------------------------------------------------------------------------------ nobody waits for ever


@pytest.mark.parametrize("target", [1, 100])
@pytest.mark.parametrize("first", [BARRIERS, LOADS], ids=["barriers", "loads"])
def test_one_warp_or_one_request_is_enough(first: str, target: int) -> None:
    """At a target of 1 % the primary soon has one active warp and one request, at 100 % the secondary."""
    least = [64, 256]
    pair = Pair(scavenger__target=target, scavenger__scale=64, core__sms=1)
    pair.add(first, 150, ctas=6, block=256)
    pair.add(LOADS, 60, ctas=12)

    def seen() -> None:
        o, i = (pair.state["scavenger_unit"]["io"][side] for side in "oi")
        if pair.state["shared"] and not i["issued"]:
            active = int(pair.state["active"][0]) | int(pair.state["active"][1])
            assert not active & int(pair.gpu.machine.sms[0]["at_barrier"])
        if o["state"] == State.RUNNING:
            least[0] = min(least[0], int(o["primary_warps"]))
            least[1] = min(least[1], int(o["primary_requests"]))

    pair.look(seen, 17)
    assert (pair.words(0, 6 * 256) == 150).all() and (pair.words(1, 12 * 128) == 60).all()
    assert target == 100 or least[0] == 1


def test_a_warp_that_waits_for_one_that_is_held_back() -> None:
    """All warps but the last spin, with one of them active; the window moves on until the last one is."""
    pair = Pair(
        scavenger__target=1, scavenger__scale=64, scavenger__patience=1024, scavenger__longest=262_144, core__sms=1
    )
    pair.add(SPIN_ON_WARP, 3000, ctas=2, block=256)
    pair.add(COMPUTE, 4000, ctas=12)
    pair.run()
    assert (pair.words(0, 512) == 7).all()


@pytest.mark.parametrize("which", [0, 1])
def test_ctas_that_wait_for_one_that_has_left(which: int) -> None:
    """CTAs of one kernel wait for each other, and some of them are out: they come back."""
    pair = Pair(scavenger__target=50, scavenger__longest=4096, scavenger__duration=4096, scavenger__window=1024)
    waiting, other = (SPIN_ON_CTAS, 12), (COMPUTE, 3000)
    for number in range(2):
        body, rounds = waiting if number == which else other
        pair.add(body, rounds, ctas=12, block=64)
    pair.run()
    assert (pair.words(which, 12 * 64) == 7).all()


# ---------------------------------------------------------------------------------------------------------- as hardware


@pytest.mark.long
@pytest.mark.parametrize(
    ("rtl", "mode"), [("scavenger", "shadow"), ("scavenger", "replace"), ("scavenger.scavenger_unit", "shadow")]
)
def test_its_blocks_as_hardware(rtl: str, mode: str) -> None:
    job = Job("sgemm", "gtx480", "tiny", 1, ["scavenger"], SHORT, secondary=Job("spmv", size="tiny"))
    result = cosim(job, rtl, mode)
    assert result["checked"] and result["mismatches"] == 0
