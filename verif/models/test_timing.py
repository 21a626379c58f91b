"""The timing is the description: cycle counts of micro-kernels give back the configured values, at three settings each.

``docs/timing.md`` states the formulas that are checked here.
"""

from __future__ import annotations

from dataclasses import fields
from math import ceil

import pytest

from lockstep.sim.device import description
from lockstep.spec.parameters import CATEGORIES, Compiler, Gpu
from lockstep.verif.models.micro import Bench, Chased, Repeat, Settings, chain, independent, slope

FIXED = 4 + 2  # cycles of a load before the L1's look-up and after its answer

# ------------------------------------------------------------------------------------------- latencies of the pipelines

DEPENDENT = {
    "integer": "add.s32 %r3, %r3, %r3;",
    "float": "fma.rn.f32 %f3, %f3, %f3, %f3;",
    "double": "add.f64 %d3, %d3, %d3;",
    "special": "ex2.approx.f32 %f3, %f3;",
    "special_double": "rsqrt.approx.f64 %d3, %d3;",
    "logical": "xor.b32 %r3, %r3, %r3;",
    "control": "bra HERE{n};\nmov.u32 %r3, 1;\nHERE{n}:",
    "synchronization": "bar.sync 0;",
    "compare": "setp.eq.and.u32 %p2, %r3, %r3, %p2;",
    "conversion": "cvt.u32.u16 %r3, %r3;",
    "miscellaneous": "shfl.sync.idx.b32 %r3, %r3, 0, 31, -1;",
    "video": "vadd4.u32.u32.u32 %r3, %r3, %r3, %r3;",
    "multiply": "mad.lo.u32 %r3, %r3, %r3, %r3;",
    "shift": "shl.b32 %r3, %r3, %r3;",
    "divide_integer": "div.u32 %r3, %r3, %r3;",
    "divide": "div.rn.f32 %f3, %f3, %f3;",
    "divide_double": "sqrt.rn.f64 %d3, %d3;",
    "shared": "ld.shared.u32 %r3, [%r3];",
    "const": "ld.const.u64 %rd3, [%rd3];",
    "param": "@%p2 ld.param.u32 %r3, [value];\nsetp.eq.u32 %p2, %r3, 0;",
    # Without active lanes; otherwise the caches decide.
    "global": "@%p1 ld.global.u64 %rd1, [%rd1];",
    "local": "@%p1 ld.local.u64 %rd4, [%rd4];",
    "atomic": "@%p1 atom.global.exch.b64 %rd1, [%rd1], %rd1;",
    "texture": "@%p1 tex.1d.v4.u32.s32 {{%r3, %r4, %r5, %r6}}, [%rd2, {{%r3}}];",
}
"""For each category, an instruction that waits for the one before it."""

BEFORE = "mov.u32 %r3, 0;\nmov.f32 %f3, 0f3F800000;\nmov.f64 %d3, 0d3FF0000000000000;\nsetp.eq.u32 %p2, %r3, 0;"


def dependent(category: str) -> Repeat:
    before = BEFORE + ("\nst.shared.u32 [%r3], %r3;" if category == "shared" else "")
    return lambda n: "\n".join([before, *(DEPENDENT[category].format(n=k) for k in range(n))])


def test_every_category_is_measured() -> None:
    assert set(DEPENDENT) == set(INDEPENDENT) == set(CATEGORIES)


@pytest.mark.parametrize("latency", [13, 24, 47])
@pytest.mark.parametrize("category", CATEGORIES)
def test_latency_of_a_pipeline(category: str, latency: int) -> None:
    others = 10
    settings = {f"pipelines.{name}.latency": others for name in CATEGORIES if name != category}
    settings |= {f"pipelines.{category}.latency": latency, f"pipelines.{category}.interval": 1, "l1.latency": 8}
    between = others if category == "param" else 0  # its addresses are constants: the guard makes the dependence
    assert slope(dependent(category), 20, 40, settings, shared=4) == latency + between


@pytest.mark.parametrize("fetch_latency", [2, 9, 30])
def test_a_jump_refills_the_buffer(fetch_latency: int) -> None:
    settings = {"pipelines.control.latency": 11, "core.fetch_latency": fetch_latency}
    assert slope(dependent("control"), 20, 40, settings) == max(11, fetch_latency)


@pytest.mark.parametrize("fetch_latency", [2, 9, 30])
def test_a_branch_not_taken_keeps_the_buffer(fetch_latency: int) -> None:
    settings = {"pipelines.control.latency": 70, "core.fetch_latency": fetch_latency}

    def body(n: int) -> str:
        return "\n".join(f"@%p1 bra HERE{k};\nHERE{k}:" for k in range(n))

    assert slope(body, 20, 40, settings) == 70


@pytest.mark.parametrize("banks", [1, 2, 16])
@pytest.mark.parametrize("sources", [1, 2, 3])
def test_operands_in_one_bank_are_read_one_after_the_other(sources: int, banks: int) -> None:
    """Registers of neighbouring numbers: with two banks, three of them need two cycles."""
    operands = ", ".join(["%f3", "%f4", "%f5"][:sources] + ["%f3"] * (3 - sources))
    before = "".join(f"mov.f32 %f{k}, 0f00000000;\n" for k in (3, 4, 5))
    after = "\nadd.f32 %f4, %f4, %f5;"  # so that all three live side by side

    def body(n: int) -> str:
        return chain(f"fma.rn.f32 %f3, {operands};", before)(n) + after

    settings = {"core.register_banks": banks, "pipelines.float.latency": 20}
    assert slope(body, 20, 40, settings) == 20 + ceil(sources / banks) - 1


@pytest.mark.parametrize("load", ["ld.const.u32 %r4, [zeros];", "ld.param.u32 %r4, [value];"])
def test_an_operand_from_the_constant_bank_costs_nothing_when_it_is_there(load: str) -> None:
    """The first instruction that names it is fetched when its line has come, so that only the first one waits."""
    body = chain("add.s32 %r3, %r3, %r4;", f"{BEFORE}\n{load}")
    settings = {"compiler.constant_operands": 1, "pipelines.integer.latency": 13, "core.fetch_width": 1}
    assert slope(body, 20, 40, settings) == 13
    finite, perfect = (
        Bench(body(20), settings | {"constant_cache.mode": mode})(value=0).cycles for mode in ("finite", "perfect")
    )
    assert finite - perfect >= description.load("gtx480").l2.latency


# -------------------------------------------------------------------------------------------------- latencies of memory

CHASE = "ld.global.u64 %rd1, [%rd1];"
CHASE_L2 = "ld.global.cg.u64 %rd1, [%rd1];"


@pytest.mark.parametrize("latency", [30, 55, 90])
def test_latency_of_an_l1_hit(latency: int) -> None:
    settings = {"l1.latency": latency, "pipelines.global.latency": 4}
    assert slope(chain(CHASE), 10, 30, settings, stride=4096) == latency


@pytest.mark.parametrize("lines", [2, 7, 32])
def test_latency_of_several_lines(lines: int) -> None:
    """Every lane has its own line: they are looked up one after the other."""
    own = "mul.wide.u32 %rd5, %r1, 128;\nadd.s64 %rd1, %rd1, %rd5;"
    assert slope(chain(CHASE, own), 40, 60, stride=128, block=lines) == 35 + lines - 1


@pytest.mark.parametrize("data", [0, 1])
@pytest.mark.parametrize("latency", [20, 40, 100])
def test_latency_of_a_texture_hit(latency: int, data: int) -> None:
    """The larger of the texture pipeline's latency and the L1's, which textures go through also if data does not."""
    settings = {"l1.latency": 40, "pipelines.texture.latency": latency, "l1.data": data}
    fetch = chain("tex.1d.v4.u32.s32 {%r3, %r4, %r5, %r6}, [%rd2, {%r3}];", BEFORE)
    assert slope(fetch, 10, 30, settings) == max(latency, 40)


@pytest.mark.parametrize("latency", [150, 181, 240])
def test_latency_of_an_l2_hit(latency: int) -> None:
    settings = {"l2.latency": latency, "dram.latency": 500}
    assert slope(chain(CHASE_L2), 10, 30, settings, stride=4096) == latency


@pytest.mark.parametrize("clock", [350, 700, 1000])
@pytest.mark.parametrize("part", ["interconnect", "l2", "dram"])
def test_latencies_do_not_depend_on_clocks(part: str, clock: int) -> None:
    settings = {f"clocks.{part}": clock, "l2.latency": 200, "dram.latency": 400}
    assert slope(chain(CHASE_L2), 10, 30, settings, stride=4096) == 200
    bench = Bench(CHASE_L2, settings)
    assert bench().cycles - bench().cycles == 400 - 200


@pytest.mark.parametrize("active", [1, 8, 32])
@pytest.mark.parametrize("cycles", [1, 3, 10])
def test_latency_of_an_atomic(cycles: int, active: int) -> None:
    """An L2 hit whose packets hold the operands instead of a line, and L2 cycles for each lane."""
    settings = {"l2.atomics": cycles, "clocks.l2": 350, "crossbar.header_bytes": 8, "crossbar.flit_bytes": 16}
    payload = min(8 * active, 128)
    shorter = ceil((8 + 128) / 16) - ceil((8 + payload) / 16)
    longer = ceil((8 + payload) / 16) - ceil(8 / 16)
    atomic = chain("atom.global.exch.b64 %rd1, [%rd1], %rd1;")
    expected = 180 - shorter + longer + 2 * cycles * active
    assert slope(atomic, 10, 30, settings, stride=4096, block=active) == expected


# One bank, so that it is known what a row buffer holds; DRAM cycles are core cycles.
ONE_CHANNEL = {"dram.channels": 1, "l2.slices": 1, "dram.interleave": 2048, "dram.row_bytes": 2048, "clocks.dram": 700}
ONE_BANK = {**ONE_CHANNEL, "dram.banks": 1}
EACH_ITS_BANK = Chased(nbytes=16 * 2048, stride=2048)


@pytest.mark.parametrize("latency", [320, 400, 555])
def test_latency_of_dram(latency: int) -> None:
    """``dram.latency`` is that of a closed row; an open row saves tRCD, and another open row costs tRP."""
    settings = {"dram.latency": latency}
    assert slope(chain(CHASE), 4, 14, ONE_BANK | settings, nbytes=2048, stride=128) == latency - 12
    assert slope(chain(CHASE), 4, 14, ONE_CHANNEL | settings, **EACH_ITS_BANK) == latency
    assert slope(chain(CHASE), 4, 14, ONE_BANK | settings, **EACH_ITS_BANK) == latency + 12


@pytest.mark.parametrize("bus", [2, 8, 16])
@pytest.mark.parametrize("sector", [32, 64, 128])
def test_latency_of_a_sector(sector: int, bus: int) -> None:
    """A load that bypasses the L1 fetches one sector of four or two: shorter data, and a shorter reply."""
    settings = ONE_CHANNEL | {"l2.sector_bytes": sector, "dram.bus_bytes": bus, "dram.latency": 700}
    settings |= {"crossbar.header_bytes": 8, "crossbar.flit_bytes": 16}
    reply = ceil((8 + 128) / 16) - ceil((8 + sector) / 16)
    burst = max(ceil(sector / (2 * bus)), 2)  # tCCD
    assert slope(chain(CHASE_L2), 10, 30, settings, stride=4096) == 180 - reply
    assert slope(chain(CHASE_L2), 4, 14, settings, **EACH_ITS_BANK) == 700 - (128 // sector - 1) * burst - reply
    assert slope(chain(CHASE), 4, 14, settings, **EACH_ITS_BANK) == 700


@pytest.mark.parametrize("clock", [350, 924, 1400])
@pytest.mark.parametrize(("name", "value"), [("tRCD", 5), ("tRCD", 20), ("tRP", 5), ("tRP", 20), ("tCL", 30)])
def test_dram_timings_count_cycles_of_its_clock(name: str, value: int, clock: int) -> None:
    """Each sum of DRAM cycles is rounded up to core cycles."""
    timing = dict(tRCD=12, tRP=12, tCL=12) | {name: value}
    settings = ONE_BANK | {f"dram.{key}": cycles for key, cycles in timing.items()}
    settings |= {"dram.latency": 600, "clocks.dram": clock}
    burst = 128 // 32

    def core(*parts: int) -> int:
        return ceil(sum(parts) * 700 / clock)

    rest = 600 - core(timing["tRCD"], timing["tCL"], burst)
    assert slope(chain(CHASE), 4, 14, settings, nbytes=2048, stride=128) == rest + core(timing["tCL"], burst)
    conflict = rest + core(timing["tRP"], timing["tRCD"], timing["tCL"], burst)
    assert slope(chain(CHASE), 4, 14, settings, nbytes=16 * 2048, stride=2048) == conflict


# ---------------------------------------------------------------------------------------------------------- issue rates

INDEPENDENT = {
    "integer": "add.s32 %r{k}, %r1, %r1;",
    "float": "add.f32 %f{k}, %f3, %f3;",
    "double": "add.f64 %d{k}, %d3, %d3;",
    "special": "ex2.approx.f32 %f{k}, %f3;",
    "special_double": "rsqrt.approx.f64 %d{k}, %d3;",
    "logical": "xor.b32 %r{k}, %r1, %r1;",
    "control": "@%p1 bra HERE{n};\nHERE{n}:",
    "synchronization": "vote.sync.ballot.b32 %r{k}, %p1, -1;",
    "compare": "selp.b32 %r{k}, %r1, %r1, %p1;",
    "conversion": "cvt.u32.u16 %r{k}, %r1;",
    "miscellaneous": "shfl.sync.idx.b32 %r{k}, %r1, 0, 31, -1;",
    "video": "vadd4.u32.u32.u32 %r{k}, %r1, %r1, %r1;",
    "multiply": "mul.lo.u32 %r{k}, %r1, %r1;",
    "shift": "bfe.u32 %r{k}, %r1, 3, 4;",
    "divide_integer": "rem.u32 %r{k}, %r1, %r3;",
    "divide": "rcp.rn.f32 %f{k}, %f3;",
    "divide_double": "div.rn.f64 %d{k}, %d3, %d3;",
    "shared": "ld.shared.u32 %r{k}, [%r3];",
    "const": "ld.const.u32 %r{k}, [%rd3];",
    "param": "ld.param.u32 %r{k}, [value];",
    "global": "ld.global.u32 %r{k}, [%rd1];",
    "local": "ld.local.u32 %r{k}, [%rd4];",
    "atomic": "@%p1 atom.global.add.u32 %r{k}, [%rd1], %r1;",
    "texture": "tex.1d.v4.u32.s32 {{%r{k}, %r4, %r5, %r6}}, [%rd2, {{%r3}}];",
}
WARPS = 16
FAIR = {"core.scheduler": "lrr", "core.fetches": 4, "l1.latency": 8, "pipelines.texture.latency": 8}
"""Warps advance side by side, so that none is left alone at the end, and the pipeline that is measured is the limit."""


def rate(instruction: str, settings: Settings) -> float:
    """Cycles per instruction with many warps."""
    repeat = independent(instruction, before=BEFORE)
    return slope(repeat, 32, 64, FAIR | settings, block=32 * WARPS, shared=4) / WARPS


@pytest.mark.parametrize("interval", [1, 3, 8])
@pytest.mark.parametrize("category", CATEGORIES)
def test_issue_rate_of_a_pipeline(category: str, interval: int) -> None:
    """With one pipeline, an instruction starts every ``interval`` cycles."""
    settings = {f"pipelines.{category}.interval": interval, "pipes.alu": 1}
    assert rate(INDEPENDENT[category], settings) == interval


@pytest.mark.parametrize("pipes", [1, 2, 4])
@pytest.mark.parametrize(("category", "pipe"), [("float", "alu"), ("special", "sfu"), ("double", "dp")])
def test_pipelines_of_a_kind_work_in_parallel(category: str, pipe: str, pipes: int) -> None:
    settings = {f"pipelines.{category}.interval": 8, f"pipes.{pipe}": pipes}
    assert rate(INDEPENDENT[category], settings) == pytest.approx(8 / pipes, rel=0.01)


@pytest.mark.parametrize("schedulers", [1, 2, 4])
@pytest.mark.parametrize("interval", [1, 2, 5])
def test_a_scheduler_issues_once_per_interval(interval: int, schedulers: int) -> None:
    settings = {"core.schedulers": schedulers, "core.issue_interval": interval, "pipes.alu": 4}
    assert rate(INDEPENDENT["float"], settings) == interval / schedulers


@pytest.mark.parametrize("overhead", [1, 2, 3])
@pytest.mark.parametrize("interval", [1, 2])
def test_a_scheduler_looks_for_an_instruction_once_per_overhead(interval: int, overhead: int) -> None:
    """Chen figure 4-9: an overhead up to the interval costs nothing while there is always work; a warp that becomes
    ready in between waits for the next time."""
    settings = {"core.issue_interval": interval, "core.scheduler_overhead": overhead, "pipes.alu": 4}
    assert rate(INDEPENDENT["float"], settings) == max(interval, overhead) / 2
    latency = {"pipelines.integer.latency": 17}
    period = max(interval, overhead) + -(-(17 - max(interval, overhead)) // overhead) * overhead
    assert slope(chain("add.s32 %r3, %r3, %r1;"), 32, 64, settings | latency) == period


@pytest.mark.parametrize("latency", [4, 8, 16])
@pytest.mark.parametrize("width", [1, 2, 4])
def test_a_warp_fetches_once_per_latency(width: int, latency: int) -> None:
    settings = {"core.fetch_width": width, "core.fetch_latency": latency, "core.instruction_buffer": 16}
    assert slope(independent(INDEPENDENT["float"], before=BEFORE), 32, 64, settings) == latency / width


@pytest.mark.parametrize("collectors", [1, 2, 8])
def test_instructions_wait_in_the_collectors(collectors: int) -> None:
    """A slow pipeline holds warps up once its collectors are full; the first one starts at once and leaves its own."""
    interval, more = 64, 3
    settings = {"core.collectors_sfu": collectors, "pipelines.special.interval": interval}
    work = chain("add.s32 %r3, %r3, %r1;", f"{BEFORE}\nex2.approx.f32 %f4, %f3;")(150)
    bench = Bench(work, settings)
    waited = bench(block=32 * (1 + collectors + more)).cycles - bench(block=32).cycles
    assert waited == pytest.approx(more * interval, abs=1 + collectors + more)


@pytest.mark.parametrize("collectors", [1, 2, 8])
def test_memory_instructions_wait_in_the_collectors(collectors: int) -> None:
    """As above, and the unit is busy with conflicts: 32 cycles for each access."""
    more = 3
    settings = {"core.collectors_lsu": collectors}
    head = f"{BEFORE}\nand.b32 %r5, %r1, 31;\nshl.b32 %r5, %r5, 7;\nld.shared.u32 %r4, [%r5];"
    bench = Bench(chain("add.s32 %r3, %r3, %r1;", head)(150), settings)
    waited = bench(block=32 * (1 + collectors + more), shared=4096).cycles - bench(block=32, shared=4096).cycles
    assert waited == pytest.approx(more * 32, abs=1 + collectors + more)


@pytest.mark.parametrize("path", [[], ["mrpb"], ["banked-l1"]])
@pytest.mark.parametrize("near", ["ld.shared.u32 %r5, [%r4];", "ld.const.u32 %r5, [%rd3];"])
def test_memory_instructions_start_in_order(near: str, path: list[str]) -> None:
    """Behind a store of 32 lines, an access to the scratchpad or to constants waits until the last of them has gone."""
    store = "mul.wide.u32 %rd5, %r1, {bytes};\nadd.s64 %rd6, %rd1, %rd5;\nst.global.u32 [%rd6], %r1;"
    head = "mov.u32 %r4, 0;\nmov.u32 %r6, %clock;\n{store}\n{near}\nadd.s32 %r5, %r5, %r4;\nmov.u32 %r7, %clock;"
    after = "sub.s32 %r7, %r7, %r6;\nmul.wide.u32 %rd5, %r1, 4;\nadd.s64 %rd6, %rd1, %rd5;\nst.global.u32 [%rd6], %r7;"
    waited = {}
    for lines in (1, 8, 32):
        body = head.format(store=store.format(bytes=4 * lines), near=near) + f"\n{after}"
        bench = Bench(body, {"crossbar.buffers": 64, "l1.queue": 64}, nbytes=4096, mechanisms=path)
        bench(shared=4)
        waited[lines] = int(bench.words()[0])
    assert waited[8] - waited[1] == 7 and waited[32] - waited[8] == 24


def test_schedulers_share_a_pipeline() -> None:
    """Two schedulers whose warps all wait for the load/store unit: neither starves the other."""
    work = independent("ld.shared.u32 %r{k}, [%r3];", before="shl.b32 %r3, %r1, 7;\nmov.u32 %r5, %clock;")
    after = "\nmov.u32 %r6, %clock;\nmul.wide.u32 %rd5, %r1, 4;\nadd.s64 %rd6, %rd1, %rd5;\nst.global.u32 [%rd6], %r6;"
    bench = Bench(work(32) + after)
    bench(block=64, shared=1 << 15)
    first, second = sorted(map(int, bench.words()[[0, 32]]))
    assert second - first < 0.1 * first


# ----------------------------------------------------------------------------------------- scratchpad and global access


def scratchpad_cycles(addresses: list[int], banks: int, bank_bytes: int = 4) -> int:
    """Cycles of a load of a word per lane: in each group of ``banks`` lanes, the busiest bank's different words."""
    total = 0
    for first in range(0, 32, banks):
        words = {address // bank_bytes for address in addresses[first : first + banks]}
        total += max(sum(word % banks == bank for word in words) for bank in range(banks))
    return total


@pytest.mark.parametrize("banks", [8, 16, 32])
@pytest.mark.parametrize("degree", range(1, 33))
def test_scratchpad_conflicts(degree: int, banks: int) -> None:
    """So many lanes on different words of bank 0, the others on words of their own banks, cost a cycle each."""
    lanes = range(32)
    addresses = [4 * (32 * lane if lane < degree else lane) for lane in lanes]
    head = f"setp.lt.u32 %p2, %r1, {degree};\nshl.b32 %r3, %r1, 7;\nshl.b32 %r4, %r1, 2;\nselp.b32 %r3, %r3, %r4, %p2;"
    expected = scratchpad_cycles(addresses, banks)
    if banks == 32:
        assert expected == degree
    settings = {"scratchpad.banks": banks, "pipelines.shared.latency": 30}
    load = independent("ld.shared.u32 %r{k}, [%r3];", registers=32, before=head)
    assert slope(load, 32, 64, settings, shared=4096) == expected
    # The result comes as much later.
    zeros = f"{head}\nmov.u32 %r6, 0;\nst.shared.u32 [%r3], %r6;"
    wait = chain("ld.shared.u32 %r5, [%r3];\nadd.s32 %r3, %r3, %r5;", zeros)
    settings["pipelines.integer.latency"] = 10
    assert slope(wait, 4, 8, settings, shared=4096) == 10 + 30 + expected - 1


@pytest.mark.parametrize("active", [1, 5, 32])
def test_scratchpad_atomics_on_one_word_conflict(active: int) -> None:
    add = independent("atom.shared.add.u32 %r{k}, [%r3], %r1;", registers=32, before=BEFORE)
    assert slope(add, 32, 64, {"pipelines.shared.latency": 30}, shared=4, block=active) == active


@pytest.mark.parametrize(
    ("kind", "requests"), [("u32 %r{k}", 1), ("u64 %rd{k}", 2), ("v4.u32 {{%r{k}, %r4, %r5, %r6}}", 4)]
)
def test_wide_scratchpad_loads_take_a_cycle_per_128_bytes(kind: str, requests: int) -> None:
    load = independent(f"ld.shared.{kind}, [%r3];", before=f"mul.lo.u32 %r3, %r1, {4 * requests};")
    cycles = slope(load, 32, 64, FAIR | {"pipelines.shared.latency": 4}, shared=512 * 32, block=32 * WARPS)
    assert cycles / WARPS == requests


@pytest.mark.parametrize("degree", [1, 2, 7, 32])
def test_constant_addresses_are_served_one_after_the_other(degree: int) -> None:
    head = f"rem.u32 %r3, %r1, {degree};\nmul.wide.u32 %rd5, %r3, 4;\nmov.u64 %rd6, zeros;\nadd.s64 %rd6, %rd6, %rd5;"
    load = independent("ld.const.u32 %r{k}, [%rd6];", registers=32, before=head)
    assert slope(load, 32, 64) == degree


@pytest.mark.parametrize("width", [1, 4, 16, 128])
def test_constants_in_a_block_are_served_together(width: int) -> None:
    head = "and.b32 %r3, %r1, 31;\nmul.wide.u32 %rd5, %r3, 2;\nmov.u64 %rd6, zeros;\nadd.s64 %rd6, %rd6, %rd5;"
    load = independent("ld.const.u16 %r{k}, [%rd6];", registers=32, before=head)
    assert slope(load, 32, 64, {"constant_cache.width": width}) == 64 / max(2, min(width, 64))


LOADS = {1: "u8 %r{k}", 2: "u16 %r{k}", 4: "u32 %r{k}", 8: "u64 %rd{k}", 16: "v4.u32 {{%r{k}, %r4, %r5, %r6}}"}


@pytest.mark.parametrize("line", [32, 64, 128])
@pytest.mark.parametrize("width", LOADS)
def test_requests_per_load(width: int, line: int) -> None:
    """A load takes a cycle for each line that its lanes touch, for every stride from 1 to 32 elements."""
    widths = {f"{cache}.line_bytes": line for cache in ("l1", "instruction_cache", "constant_cache")}
    widths["l2.sector_bytes"] = line
    # With a collector for every warp, the order in which they get one does not matter.
    settings = FAIR | widths | {"l1.sets": 512, "l1.mshrs": 64, "l1.merges": 64, "core.collectors_lsu": WARPS}
    head = "and.b32 %r3, %r1, 31;\nmul.wide.u32 %rd5, %r3, %r0;\nadd.s64 %rd6, %rd1, %rd5;\n"
    load = f"ld.global.{LOADS[width]}, [%rd6];"
    head += f"{load.format(k=8)}\nbar.sync 0;"  # brings all lines into the L1
    low, high = (Bench(independent(load, before=head)(n), settings, nbytes=32 * 32 * 16) for n in (16, 32))
    for stride in range(1, 33):
        step = stride * width
        lines = len({lane * step // line for lane in range(32)})
        cycles = high(value=step, block=32 * WARPS).cycles - low(value=step, block=32 * WARPS).cycles
        assert cycles / (32 - 16) / WARPS == lines, f"stride {stride}"


# ------------------------------------------------------------------------------------------------ bandwidths and limits


OWN_LINES = """
shr.u32 %r3, %r1, 5;
mul.wide.u32 %rd5, %r3, 8192;
add.s64 %rd1, %rd1, %rd5;
and.b32 %r3, %r1, 31;
mul.wide.u32 %rd5, %r3, 4;
add.s64 %rd1, %rd1, %rd5;
"""
LOAD_LINES = independent("ld.global.cg.u32 %r{k}, [%rd1+128*{n}];", registers=32, before=OWN_LINES)
STORE_LINES = independent("st.global.u32 [%rd1+128*{n}], %r1;", before=OWN_LINES)
"""Every warp accesses other lines, at most 64, through the L2."""


def warm_slope(repeat: Repeat, low: int, high: int, settings: Settings, nbytes: int, **launch: int) -> float:
    """Core cycles per repetition, with all lines in the L2."""

    def cycles(n: int) -> int:
        bench = Bench(repeat(n), settings, nbytes=nbytes)
        bench(**launch)
        return bench(**launch).cycles

    return (cycles(high) - cycles(low)) / (high - low)


@pytest.mark.parametrize("mshrs", [2, 4, 8])
def test_misses_in_flight_are_limited_by_the_mshrs(mshrs: int) -> None:
    """An MSHR is taken from look-up to answer; so many lines come in that time."""
    cycles = warm_slope(LOAD_LINES, 32, 64, {"l1.mshrs": mshrs}, nbytes=8192)
    assert cycles == (180 - FIXED) / mshrs


@pytest.mark.parametrize("refusals", [0, 4, 8, 15])
def test_the_register_file_refuses_results(refusals: int) -> None:
    """Loads that hit, one line each, are written in the cycles that are left."""
    cycles = rate(INDEPENDENT["global"], {"core.write_refusals": refusals})
    assert cycles == pytest.approx(16 / (16 - refusals), rel=0.1)


@pytest.mark.parametrize("merges", [2, 5, 8])
def test_an_mshr_serves_a_limited_number_of_loads(merges: int) -> None:
    """One more waits until the line is there, which bypasses the L1, and fetches it again."""
    bench = Bench("ld.global.cg.u32 %r8, [%rd1];", {"l1.merges": merges})
    bench()
    one, full, more = (bench(block=32 * warps).cycles for warps in (1, merges, merges + 1))
    assert full - one <= merges  # they are answered one per cycle
    assert more - full == 180 - FIXED - (merges - 1)  # the line is fetched again as soon as it is there


@pytest.mark.parametrize("flit", [16, 32, 64])
@pytest.mark.parametrize("access", [LOAD_LINES, STORE_LINES], ids=["replies", "requests"])
def test_bandwidth_of_an_sm_port(access: Repeat, flit: int) -> None:
    """A packet occupies it for a header and a line."""
    settings = FAIR | {"crossbar.flit_bytes": flit, "l1.mshrs": 128, "crossbar.buffers": 64}
    cycles = warm_slope(access, 32, 64, settings, nbytes=WARPS * 8192, block=WARPS * 32) / WARPS
    assert cycles == pytest.approx(ceil((8 + 128) / flit), rel=0.01)


@pytest.mark.parametrize("clock", [70, 140, 350])
def test_rate_of_an_l2_slice(clock: int) -> None:
    """One look-up per cycle of its clock."""
    settings = FAIR | {"clocks.l2": clock, "l2.slices": 1, "dram.channels": 1, "crossbar.flit_bytes": 256}
    settings |= {"l1.mshrs": 128, "crossbar.buffers": 64}
    cycles = warm_slope(LOAD_LINES, 32, 64, settings, nbytes=8 * 8192, block=8 * 32) / 8
    assert cycles == pytest.approx(700 / clock, rel=0.01)


SMS = 15
LINES_AT_ONCE = SMS * WARPS
PLENTY = FAIR | {"core.sms": SMS, "l1.mshrs": 256, "l1.queue": 64, "crossbar.buffers": 64}
THREAD = "mad.lo.u32 %r3, %r2, 512, %r1;\nmul.wide.u32 %rd5, %r3, 4;\nadd.s64 %rd1, %rd1, %rd5;\n"


@pytest.mark.parametrize("flit", [16, 32, 64])
@pytest.mark.parametrize("direction", ["requests", "replies"])
def test_bandwidth_of_the_crossbar(direction: str, flit: int) -> None:
    """All SMs access lines that the L2 holds: the 12 slices' ports are the limit, with a header for each line."""
    access = "st.global.u32 [%rd1+{at}], %r1;" if direction == "requests" else "ld.global.cg.u32 %r{k}, [%rd1+{at}];"

    def body(n: int) -> str:  # round and round the same 16 places of each warp, every time into the same register
        rounds = (access.format(k=8 + k % 16, at=128 * LINES_AT_ONCE * (k % 16)) for k in range(n))
        return "\n".join([THREAD, *rounds, *(f"mov.b32 %r7, %r{8 + k};" for k in range(16) if direction == "replies")])

    settings = PLENTY | {"crossbar.flit_bytes": flit}
    nbytes = 16 * 128 * LINES_AT_ONCE
    cycles = warm_slope(body, 64, 192, settings, nbytes=nbytes, grid=SMS, block=32 * WARPS)
    peak = 12 / ceil((8 + 128) / flit)  # lines per cycle
    assert LINES_AT_ONCE / cycles == pytest.approx(peak, rel=0.03)


@pytest.mark.parametrize(("bus", "sector"), [(4, 128), (8, 128), (16, 128), (4, 32), (8, 64), (16, 32)])
@pytest.mark.parametrize("access", ["read", "write"])
def test_bandwidth_of_dram(access: str, bus: int, sector: int) -> None:
    """CTA after CTA walks through more than the L2 holds; rows open while others' data move."""
    each = 4  # lines of a warp, side by side
    apart = f"and.b32 %r4, %r3, 0xFFFFFFE0;\nmul.wide.u32 %rd5, %r4, {4 * (each - 1)};\nadd.s64 %rd1, %rd1, %rd5;"
    if access == "read":
        body = independent("ld.global.cg.u32 %r{k}, [%rd1+128*{n}];", each, THREAD + apart)(each)
    else:
        body = "\n".join([THREAD + apart, *(f"st.global.u32 [%rd1+{128 * k}], %r1;" for k in range(each))])

    def cycles(ctas: int) -> int:
        settings = PLENTY | {"dram.bus_bytes": bus, "l2.sector_bytes": sector}
        bench = Bench(body, settings, nbytes=ctas * WARPS * each * 128)
        return bench(grid=ctas, block=32 * WARPS).cycles

    moved = (384 - 128) * WARPS * each * 128 / (cycles(384) - cycles(128))
    burst = max(sector / (2 * bus), 2)  # tCCD: a sector of 32 bytes wastes half of what a bus of 16 moves
    assert moved == pytest.approx(6 * sector / burst * 924 / 700, rel=0.03)  # bytes per core cycle


@pytest.mark.parametrize(
    ("names", "values", "settings", "stride", "more"),
    [
        (["tRC"], (40, 60, 100), ONE_BANK, 2048, 0),  # every access opens a row of the same bank
        (["tRAS", "tRC"], (30, 50, 90), ONE_BANK, 2048, 12),  # the same, closed for tRP, which tRC leaves out
        (["tRRD"], (20, 30, 50), ONE_CHANNEL, 2048, 0),  # every access opens a row of the next bank
        (["tCCD"], (24, 30, 50), ONE_BANK | {"dram.row_bytes": 16384}, 128, 0),  # every access finds the row open
    ],
)
def test_rate_of_dram_commands(
    names: list[str], values: tuple[int, ...], settings: Settings, stride: int, more: int
) -> None:
    loads = independent(f"ld.global.cg.u32 %r{{k}}, [%rd1+{stride}*{{n}}];", registers=32)
    for value in values:
        timings = {f"dram.{name}": value for name in names}
        rate = slope(loads, 32, 96, settings | timings, nbytes=96 * stride)
        assert rate == pytest.approx(value + more, rel=0.01), timings


# -------------------------------------------------------------------------------------------------- launches, occupancy


@pytest.mark.parametrize("overhead", [0, 700, 12345])
def test_launch_overhead(overhead: int) -> None:
    body = INDEPENDENT["integer"].format(k=8)
    assert Bench(body, {"launch.overhead": overhead})().cycles - Bench(body)().cycles == overhead


@pytest.mark.parametrize("interval", [100, 170, 400])
def test_dispatch_interval(interval: int) -> None:
    bench = Bench(INDEPENDENT["integer"].format(k=8), {"launch.dispatch_interval": interval})
    assert bench(grid=8).cycles - bench(grid=3).cycles == 5 * interval


BLOCK = 96
LIMITS = {
    "ctas": ("core.ctas", (2, 5, 8), 1),
    "threads": ("core.threads", (384, 640, 1024), BLOCK),
    "warps": ("core.warps", (6, 11, 24), BLOCK // 32),
    "registers": ("core.registers", (8192, 12000, 16384), None),
    "scratchpad": ("scratchpad.bytes", (16384, 32768, 40000), 5120),  # 5000 bytes, in units of 128
}
"""For each resource: what holds it, three sizes, and what a CTA takes of it."""


@pytest.mark.parametrize(("limit", "value"), [(name, value) for name, entry in LIMITS.items() for value in entry[1]])
def test_occupancy_under_each_limit(limit: str, value: int) -> None:
    """As many CTAs as fit run side by side, so the time grows in steps."""
    parameter, _, share = LIMITS[limit]
    settings = {
        "core.ctas": 32, "core.threads": 1536, "core.warps": 48, "core.registers": 65536, "core.threads_per_cta": BLOCK,
        "scratchpad.bytes": 1 << 20, "scratchpad.bytes_per_cta": 8192, "pipelines.integer.latency": 100,
    }  # fmt: skip
    settings[parameter] = value
    if limit == "warps":
        settings["core.threads"] = 32 * value
    live = independent("add.s32 %r{k}, %r1, %r1;", registers=20, before="mov.u32 %r6, 0;")(20)
    bench = Bench(chain("add.s32 %r6, %r6, %r1;")(60) + live, settings)
    if share is None:  # registers per warp, in units of 64
        share = ceil(32 * bench.registers / 64) * 64 * (BLOCK // 32)
    resident = value // share
    shared = 5000 if limit == "scratchpad" else 0
    alone = bench(block=BLOCK, shared=shared).cycles
    for ctas in (resident - 1, resident, resident + 1, 2 * resident, 2 * resident + 1):
        together = bench(grid=ctas, block=BLOCK, shared=shared)
        assert round(together.cycles / alone) == ceil(ctas / resident), f"{ctas} CTAs"
        if ctas <= resident:
            assert together.stats["occupancy.ctas"] == pytest.approx(ctas, rel=0.02)


# ---------------------------------------------------------------------------------------------------- the descriptions


AS_IT_IS = {f"compiler.{each.name}": each.default for each in fields(Compiler)}
"""Of PTX no instruction is left out, moved or joined with another one."""


@pytest.mark.parametrize("gpu", description.names())
@pytest.mark.parametrize("category", CATEGORIES)
def test_described_latency_of_a_pipeline(gpu: str, category: str) -> None:
    described = description.load(gpu)
    expected = described.pipelines[category].latency
    if category == "param":
        expected += described.pipelines["compare"].latency
    if category == "control":
        expected = max(expected, described.core.fetch_latency)
    if category == "shared":
        expected += 32 // described.scratchpad.banks - 1  # requests of a warp
    assert slope(dependent(category), 20, 40, AS_IT_IS, gpu=gpu, shared=4) == expected


def further(described: Gpu, address: int) -> int:
    """What a load of the first SM takes longer where its slice is more than one hop away, on a square mesh."""
    mesh, clocks = described.mesh, described.clocks
    if mesh.columns == 0:
        return 0
    place = address // described.dram.interleave % described.l2.slices  # row and column; the SM is in row 0, column 1
    hops = place + abs(place - 1)
    each = (mesh.routing_delay + mesh.channel_latency) * clocks.core
    return 2 * ceil((hops - 1) * each / clocks.interconnect)


CACHED = [name for name in description.names() if description.load(name).l2.data]  # others: lsu/test_half_warps.py


@pytest.mark.parametrize("gpu", CACHED)
def test_described_latencies_of_memory(gpu: str) -> None:
    described = description.load(gpu)
    # Local memory, which every description caches in the L1; half a warp, so that a small line is enough.
    before = "cvt.u32.u64 %r3, %rd4;\nst.local.u32 [%rd4], %r3;"
    local = chain("ld.local.u32 %r3, [%rd4];\ncvt.u64.u32 %rd4, %r3;", before)
    assert slope(local, 10, 30, gpu=gpu, block=16) == described.l1.latency + described.pipelines["conversion"].latency
    clocks, dram, sector = described.clocks, described.dram, described.l2.sector_bytes

    def reply(data: int) -> int:
        flits = ceil((described.crossbar.header_bytes + data) / described.crossbar.flit_bytes)
        return ceil(flits * clocks.core / clocks.interconnect)

    def access(sectors: int) -> int:
        burst = max(ceil(sector / (2 * dram.bus_bytes)), dram.tCCD)
        return ceil((dram.tRCD + dram.tCL + sectors * burst) * clocks.core / clocks.dram)

    shorter = reply(described.l1.line_bytes) - reply(sector)
    bench = Bench(CHASE_L2, gpu=gpu)
    hit = described.l2.latency - shorter + further(described, bench.buffer.address)
    waits = 2 * (ceil(clocks.core / clocks.interconnect) - 1) if described.mesh.columns else 0  # for the mesh's clock
    assert hit <= slope(chain(CHASE_L2), 10, 30, gpu=gpu, stride=4096) <= hit + waits
    sooner = access(described.l1.line_bytes // sector) - access(1)
    longer = described.dram.latency - described.l2.latency - sooner
    assert bench().cycles - bench().cycles == pytest.approx(longer, abs=waits)
