"""Instruction and constant caches: what hits, what misses cost, and what stays."""

from __future__ import annotations

import pytest

from lockstep.models.memory.timing import transfer
from lockstep.sim import Gpu
from lockstep.sim.device import description
from lockstep.sim.device.run import Run
from lockstep.verif.models.micro import WARM, Bench, Settings, chain, independent

FINITE = {"instruction_cache.mode": "finite", "constant_cache.mode": "finite"}
ADD = "add.s32 %r3, %r3, %r1;"


def finite(body: str, settings: Settings | None = None, *, constants: int = 64, nbytes: int = 4096) -> Bench:
    """A bench whose caches miss, unless the settings say otherwise."""
    return Bench(body, {**FINITE, **(settings or {})}, constants=constants, nbytes=nbytes)


def code(run: Run) -> tuple[int, ...]:
    """Hits, misses and fetches of the instruction cache."""
    return tuple(int(run.raw[f"instruction_cache.{name}"].sum()) for name in ("hits", "misses", "requests"))


def loop(instructions: int, turns: int) -> str:
    """So many instructions again and again; the rest of the kernel is less than a line."""
    body = "\n".join([ADD] * instructions)
    end = f"add.s32 %r6, %r6, 1;\nsetp.lt.u32 %p2, %r6, {turns};\n@%p2 bra LOOP;"
    return f"mov.u32 %r3, 0;\nmov.u32 %r6, 0;\nLOOP:\n{body}\n{end}"


@pytest.mark.parametrize("line", [32, 64, 128])
@pytest.mark.parametrize("width", [4, 8])
def test_code_is_fetched_once(line: int, width: int) -> None:
    """Of a kernel that fits, each line misses once; a second launch finds all of them."""
    bench = finite(loop(64, 5), {"instruction_cache.line_bytes": line, "instruction_cache.instruction_bytes": width,
                                "instruction_cache.sets": 64, "core.fetch_width": 1})  # fmt: skip
    first, second = bench(), bench()
    lines = -(-len(bench.module.kernel("k").code) * width // line)
    assert code(first)[1:] == (lines, lines)
    assert code(second)[1:] == (0, 0) and code(second)[0] >= sum(code(first)[:2]) - lines
    assert second.cycles < first.cycles


def test_a_loop_that_does_not_fit_thrashes() -> None:
    """LRU: one line more than the cache has, in a circle, and none is found again."""
    settings = {"instruction_cache.sets": 1, "instruction_cache.ways": 4, "core.fetch_width": 1}
    turns = 10
    for lines, again in ((4, 0), (6, 1)):
        found = code(finite(loop(16 * (lines - 1), turns), settings)())
        assert (found[2] > turns * (lines - 1)) == bool(again), found


def test_the_line_used_last_stays() -> None:
    """Of two lines in a set, the one that was found again outlives the one that came after it."""

    def misses(offsets: list[int]) -> int:
        reads = "\n".join(f"ld.const.u64 %rd5, [%rd6+{at}];\nadd.s64 %rd6, %rd6, %rd5;" for at in offsets)
        settings = {"constant_cache.sets": 1, "constant_cache.ways": 2, "constant_cache.line_bytes": 64}
        body = f"mov.u64 %rd6, many;\n{reads}\nst.global.u64 [%rd1], %rd6;"
        return int(finite(body, settings, constants=256)().raw["constant_cache.misses"].sum())

    a, b, c = 0, 64, 128
    before = misses([])
    for offsets, expected in (([a, b, a, c], 3), ([a, b, a, c, a], 3), ([a, b, a, c, b], 4)):
        assert misses(offsets) - before == expected


@pytest.mark.parametrize("width", [8, 16])
def test_a_fetch_ends_with_its_line(width: int) -> None:
    settings = {"instruction_cache.line_bytes": 32, "instruction_cache.instruction_bytes": width,
                "instruction_cache.sets": 64, "core.fetch_width": 3, "core.instruction_buffer": 4}  # fmt: skip
    bench = finite(chain(ADD, "mov.u32 %r3, 0;")(100), settings)
    hits, misses, _ = code(bench())
    instructions = len(bench.module.kernel("k").code)
    lines, rest = divmod(instructions, 32 // width)
    fetches = {8: 2 * lines + (rest > 0), 16: lines + rest}  # of 3 and 1 instructions, or of 2
    assert (hits + misses, misses) == (fetches[width], lines + (rest > 0))


def test_each_kernel_has_its_own_lines() -> None:
    """What a kernel misses, the one that ran before it has not brought."""
    kernels = "".join(
        f".visible .entry k{n}()\n{{ .reg .u32 %r<2>; mov.u32 %r1, 0; {f'add.u32 %r1, %r1, {n};' * 100} ret; }}\n"
        for n in range(3)
    )
    gpu = Gpu("gtx480", [], {"core.sms": 1, "instruction_cache.sets": 64, **FINITE})
    module = gpu.load(f".version 7.8\n.target sm_75\n.address_size 64\n{kernels}")
    lines = -(-len(module.kernel("k0").code) * 8 // 128)
    for expected in (lines, 0):
        assert [code(module.launch(f"k{n}", 1, 32, []))[1] for n in range(3)] == [expected] * 3


def test_a_perfect_cache_has_no_misses() -> None:
    run = finite(loop(64, 5) + "\nld.const.u64 %rd5, [%rd3];", WARM)()
    assert code(run) == (0, 0, 0)
    assert run.stats["constant_cache.misses"] == 0 < run.stats["constant_cache.hits"]
    assert run.cycles < finite(loop(64, 5) + "\nld.const.u64 %rd5, [%rd3];")().cycles


@pytest.mark.parametrize("warps", [1, 8])
def test_warps_that_miss_a_line_wait_for_one_fetch(warps: int) -> None:
    run = finite(loop(40, 1))(block=32 * warps)
    lines = -(-len(finite(loop(40, 1)).module.kernel("k").code) * 8 // 128)
    assert code(run)[2] == lines


def test_prefetching_hides_latency() -> None:
    """The lines behind one that misses come with it; as many are asked for, but for some behind the end."""
    body = chain(ADD, "mov.u32 %r3, 0;")(400)
    settings = {"instruction_cache.sets": 32, "instruction_cache.mshrs": 8}
    plain, ahead = (finite(body, settings | {"instruction_cache.prefetch": n})() for n in (0, 3))
    assert code(plain)[1] == code(plain)[2]
    assert code(ahead)[1] < code(plain)[1] / 2 and code(plain)[2] <= code(ahead)[2] <= code(plain)[2] + 3
    assert ahead.cycles < 0.8 * plain.cycles


@pytest.mark.parametrize("mshrs", [1, 2, 8])
def test_misses_need_an_mshr(mshrs: int) -> None:
    """Lanes on different lines: more than MSHRs at once, and all are read in the end."""
    head = "and.b32 %r3, %r1, 31;\nmul.wide.u32 %rd5, %r3, 64;\nmov.u64 %rd6, many;\nadd.s64 %rd6, %rd6, %rd5;"
    tail = "mul.wide.u32 %rd5, %r1, 4;\nadd.s64 %rd7, %rd1, %rd5;\nst.global.u32 [%rd7], %r5;"
    bench = finite(f"{head}\nld.const.u32 %r5, [%rd6];\n{tail}", {"constant_cache.mshrs": mshrs}, constants=2048)
    run = bench()
    assert (bench.words()[:32] == 0).all()
    assert run.raw["constant_cache.requests"].sum() >= 32


@pytest.mark.parametrize("lead", [0, 7, 100])
@pytest.mark.parametrize("line", [32, 64, 128])
def test_latency_of_constants(line: int, lead: int) -> None:
    """Cold they come from DRAM; in a later launch from the L2; then from the cache."""

    def read(register: int, at: int) -> str:
        use = f"ld.const.u32 %r{register}, [zeros+{at}];\nadd.s32 %r{register + 1}, %r{register}, %r{register};"
        return f"mov.u32 %r6, %clock;\n{use}\nmov.u32 %r{register + 2}, %clock;"

    def cycles(bench: Bench) -> int:
        bench()
        return int(bench.words()[0])

    settings = {"constant_cache.line_bytes": line, "pipelines.const.latency": 20, "instruction_cache.mode": "perfect"}
    settings["l2.read_only_lead"] = lead
    gpu = description.load("gtx480", settings)
    parameters = "add.s32 %r8, %r0, %r1;\nadd.s32 %r8, %r8, %r8;"  # have come when this issues
    before = f"{parameters}\nld.const.u32 %r9, [zeros];\nadd.s32 %r9, %r9, %r9;"
    # The sums, which are zero, live on, so that no instruction waits for a register to be free.
    end = "sub.s32 %r7, %r22, %r6;\nadd.s32 %r7, %r7, %r21;\nst.global.u32 [%rd1], %r7;"
    once = finite(f"{parameters}\n{read(20, 0)}\n{end}", settings)
    twice = finite(f"{before}\n{read(20, 4)}\nadd.s32 %r22, %r22, %r9;\n{end}", settings)
    less = 3 + transfer(gpu, gpu.l1.line_bytes) - transfer(gpu, line) + lead
    from_dram, from_l2, hit = cycles(once), cycles(once), cycles(twice)
    assert hit == 1 + 20 + 1
    assert from_l2 - hit == gpu.l2.latency - less - 20
    assert from_dram - hit == gpu.dram.latency - less - 20


ONE_SLICE = {"l2.slices": 1, "dram.channels": 1}


@pytest.mark.parametrize("lead", [10, 40])
@pytest.mark.parametrize(("instruction", "share"), [(ADD, 1), ("ld.global.cg.u32 %r{k}, [%rd1+128*{n}];", 0.8)])
def test_lines_of_code_come_sooner(instruction: str, share: float, lead: int) -> None:
    """By the lead for each, one after the other; beside loads by about as much, though these take the same ports."""
    body = independent(instruction, registers=32, before="mov.u32 %r3, 0;")(96)
    settings = {"constant_cache.mode": "perfect", "instruction_cache.sets": 1, "instruction_cache.ways": 1, **ONE_SLICE}
    runs = []
    for cycles in (0, lead):
        bench = finite(body, settings | {"l2.read_only_lead": cycles}, nbytes=96 * 128)
        bench()  # brings all into the L2
        runs.append(bench())
    late, soon = runs
    assert code(late) == code(soon) and code(late)[2] > 5
    assert lead * code(late)[2] * share <= late.cycles - soon.cycles <= lead * code(late)[2] / share**2


@pytest.mark.parametrize("kept", [0, 1])
def test_constants_stay_if_the_description_says_so(kept: int) -> None:
    bench = finite("ld.const.u64 %rd5, [%rd3];", {"constant_cache.kept": kept})
    first, second = (int(bench().raw["constant_cache.misses"].sum()) for _ in range(2))
    assert second == (0 if kept else first) != first * kept


def test_statistics_of_constants_count_lines() -> None:
    """Two addresses of a line are one access; another line is another one."""
    head = "and.b32 %r3, %r1, 1;\nmul.wide.u32 %rd5, %r3, {stride};\nmov.u64 %rd6, zeros;\nadd.s64 %rd6, %rd6, %rd5;"
    for stride, lines in ((4, 1), (128, 2)):
        before = finite(head.format(stride=stride))().raw
        after = finite(independent("ld.const.u32 %r{k}, [%rd6];", before=head.format(stride=stride))(16))().raw
        found = {name: int(after[f"constant_cache.{name}"].sum() - before[f"constant_cache.{name}"].sum())
                 for name in ("hits", "misses")}  # fmt: skip
        assert sum(found.values()) == 16 * lines
        assert found["misses"] >= lines
