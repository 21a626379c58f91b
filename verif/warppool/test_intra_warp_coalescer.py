"""The intra-warp coalescer: what goes in must come out under any back-pressure; hardware against the golden model."""

from __future__ import annotations

import hashlib
import random
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pytest

from lockstep.models.blocks import FOREVER
from lockstep.models.warppool import intra_warp_coalescer
from lockstep.models.warppool.mapping import Mapping
from lockstep.rtl.warppool.intra_warp_coalescer import IntraWarpCoalescer
from lockstep.verif.bench import Bench, interpreted, mask, seeded
from lockstep.verif.simulation import compare

LANES = 32


@dataclass(frozen=True)
class Instruction:
    """A warp's memory instruction."""

    address: tuple[int, ...]
    mask: int
    size: int
    store: int = 0
    atomic: int = 0
    warp: int = 0
    ticket: int = 0

    @property
    def lanes(self) -> list[int]:
        return [lane for lane in range(LANES) if self.mask >> lane & 1]

    def word(self, lane: int, line_bytes: int) -> int:
        """The word of a lane in its line: words are as wide as the access, and at least 4 bytes."""
        return self.address[lane] % line_bytes // max(4, 1 << self.size)


@dataclass(frozen=True)
class Line:
    number: int
    mask: int
    last: int
    mapping: int
    thread: int
    word: int
    words: tuple[int, ...]
    store: int
    atomic: int
    warp: int
    ticket: int


def instruction(rng: random.Random) -> Instruction:
    """Patterns that kernels have: unit stride, other strides, broadcasts, shuffled words of few lines, divergence."""
    size = rng.choice([2, 2, 2, 0, 1, 3, 4])
    width = 1 << size
    base = rng.getrandbits(32) & -128
    if rng.random() < 0.5:
        base += rng.randrange(32) * max(4, width)
    pattern = rng.choice(["unit", "unit", "stride", "broadcast", "shuffled", "divergent", "two"])
    if pattern == "unit":
        offsets = [lane * width for lane in range(LANES)]
    elif pattern == "stride":
        offsets = [lane * width * rng.choice([2, 3, 32]) for lane in range(LANES)]
    elif pattern == "broadcast":
        offsets = [0] * LANES
    elif pattern == "shuffled":
        offsets = [rng.randrange(64) * width for _ in range(LANES)]
    elif pattern == "divergent":
        offsets = [rng.getrandbits(28) for _ in range(LANES)]
    else:  # two broadcasts
        offsets = [rng.randrange(2) * width * 17 for _ in range(LANES)]
    address = tuple((base + offset) % (1 << 32) // width * width for offset in offsets)
    active = mask(rng, LANES) or (1 << LANES) - 1
    if rng.random() < 0.4:
        active = (1 << LANES) - 1
    kind = rng.choice(["load", "load", "load", "store", "atomic"])
    return Instruction(
        address, active, size, kind == "store", kind == "atomic", rng.randrange(64), rng.randrange(16)
    )


def lines(instruction: Instruction, line_bytes: int) -> Iterator[tuple[int, list[int]]]:
    """The line numbers in the order of their lowest lane, with their lanes."""
    found: dict[int, list[int]] = {}
    for lane in instruction.lanes:
        found.setdefault(instruction.address[lane] // line_bytes, []).append(lane)
    yield from found.items()


def decoded(mapping: Mapping, thread: int, word: int, active: list[int], line_words: int) -> dict[int, int]:
    """Lane to word, from what the encoding and the load's active lanes tell alone."""
    if mapping is Mapping.SINGLE:
        return {thread: word}
    if mapping is Mapping.BROADCAST:
        return dict.fromkeys(active, word)
    if mapping is Mapping.CONSECUTIVE:
        return {lane: lane for lane in active}
    return {lane: word + lane - thread for lane in active if lane >= thread and word + lane - thread < line_words}


def check(instruction: Instruction, got: list[Line], line_bytes: int) -> None:
    """The lines of one instruction: complete, in order, mapped as tersely as possible."""
    expected = list(lines(instruction, line_bytes))
    assert [(line.number, line.mask) for line in got] == [(n, sum(1 << l for l in ls)) for n, ls in expected]
    assert [line.last for line in got] == [0] * (len(got) - 1) + [1]
    line_words = line_bytes // max(4, 1 << instruction.size)
    for line, (_, members) in zip(got, expected, strict=True):
        actual = {lane: instruction.word(lane, line_bytes) for lane in members}
        assert (line.thread, line.word) == (members[0], actual[members[0]])
        encodings = (Mapping.SINGLE, Mapping.CONSECUTIVE, Mapping.BROADCAST, Mapping.RANGE)
        right = [m for m in encodings if decoded(m, line.thread, line.word, instruction.lanes, line_words) == actual]
        assert line.mapping == (right[0] if right else Mapping.RANDOM)
        words = [0 if right else instruction.word(lane, line_bytes) for lane in range(LANES)]
        assert list(line.words) == words
        for name in ("store", "atomic", "warp", "ticket"):
            assert getattr(line, name) == getattr(instruction, name)


class Coalescer(Bench):
    """The model with its streams."""

    def __init__(self, line_shift: int = 7) -> None:
        super().__init__(intra_warp_coalescer, lanes=LANES)
        self.line_bytes = 1 << line_shift
        self.i["line_shift"], self.i["map_free"] = line_shift, 8

    def offer(self, instruction: Instruction | None) -> None:
        """Drive the request stream; without an instruction its payload stays."""
        self.i["request"]["valid"] = instruction is not None
        if instruction is not None:
            payload = self.i["request"]["payload"]
            for name, value in vars(instruction).items():
                payload[name] = value

    @property
    def accepted(self) -> bool:
        """In this cycle an instruction goes in."""
        return bool(self.i["request"]["valid"] and self.o["request"]["ready"])

    @property
    def line(self) -> Line:
        payload = self.o["line"]["payload"]
        values: dict[str, Any] = {n: int(payload[n]) for n in Line.__dataclass_fields__ if n != "words"}
        return Line(**values, words=tuple(map(int, payload["words"])))

    @property
    def left(self) -> bool:
        """In this cycle a line goes out."""
        return bool(self.o["line"]["valid"] and self.i["line"]["ready"])


@pytest.mark.parametrize("line_shift", [5, 6, 7])
@pytest.mark.parametrize("valid, ready", [(1.0, 1.0), (1.0, 0.4), (0.3, 1.0), (0.6, 0.6)])
def test_every_active_lane_is_in_one_line(line_shift: int, valid: float, ready: float) -> None:
    rng = seeded()
    bench = Coalescer(line_shift)
    waiting: list[Instruction] = []
    got: list[Line] = []
    checked = 0
    offered: Instruction | None = None
    seen: set[int] = set()
    for _ in range(1500):
        if offered is None and rng.random() < valid:
            offered = instruction(rng)
        bench.offer(offered)
        bench.i["line"]["ready"] = rng.random() < ready
        if bench.accepted:
            assert offered is not None
            waiting.append(offered)
            offered = None
        held = bench.line if bench.o["line"]["valid"] and not bench.left else None
        if bench.left:
            got.append(bench.line)
            if got[-1].last:
                check(waiting.pop(0), got, bench.line_bytes)
                checked += 1
                seen |= {line.mapping for line in got}
                got = []
        bench.step()
        if held is not None:
            assert bench.o["line"]["valid"] and bench.line == held, "a presented line must hold"
    assert len(waiting) <= 3  # two in the buffer, the last line of one in the output register
    assert checked > 50
    assert seen >= {Mapping.SINGLE, Mapping.BROADCAST, Mapping.RANDOM}


def stream(bench: Coalescer, instructions: list[Instruction], cycles: int) -> list[int]:
    """Offer instructions as fast as they are taken; the cycles in which lines leave."""
    bench.i["line"]["ready"] = 1
    left = []
    for cycle in range(cycles):
        bench.offer(instructions[0] if instructions else None)
        if bench.accepted:
            instructions.pop(0)
        if bench.left:
            left.append(cycle)
        bench.step()
    return left


def full(address: list[int], **others: int) -> Instruction:
    return Instruction(tuple(address), (1 << LANES) - 1, 2, **others)


@pytest.mark.parametrize("stride, requests", [(0, 1), (4, 1), (8, 2), (32, 8), (128, 32)])
def test_one_line_per_cycle_without_gaps(stride: int, requests: int) -> None:
    count = 10
    instructions = [full([stride * lane for lane in range(LANES)]) for _ in range(count)]
    total = count * requests
    assert stream(Coalescer(), instructions, total + 10) == list(range(2, 2 + total))


@pytest.mark.parametrize(
    "address, active, expected",
    [
        ([4 * lane for lane in range(LANES)], 0xFFFF_FFFF, [(Mapping.CONSECUTIVE, 0, 0)]),
        ([4 * lane for lane in range(LANES)], 0x0000_FFF1, [(Mapping.CONSECUTIVE, 0, 0)]),
        ([4 * lane + 16 for lane in range(LANES)], 0xFFFF_FFFF, [(Mapping.RANGE, 0, 4), (Mapping.RANGE, 28, 0)]),
        ([4 * lane - 16 for lane in range(4, 36)], 0x7FFF_FF00, [(Mapping.CONSECUTIVE, 8, 8)]),
        ([4 * lane + 8 for lane in range(LANES)], 0x0000_0FF0, [(Mapping.RANGE, 4, 6)]),
        ([64] * LANES, 0xFFFF_FFFF, [(Mapping.BROADCAST, 0, 16)]),
        ([64] * LANES, 0x0000_0030, [(Mapping.BROADCAST, 4, 16)]),
        ([64] * LANES, 0x0000_0020, [(Mapping.SINGLE, 5, 16)]),
        ([4 * (lane ^ 1) for lane in range(LANES)], 0xFFFF_FFFF, [(Mapping.RANDOM, 0, 1)]),
        ([8 * lane for lane in range(LANES)], 0xFFFF_FFFF, [(Mapping.RANDOM, 0, 0), (Mapping.RANDOM, 16, 0)]),
        ([4 * lane + 128 * (lane & 1) for lane in range(LANES)], 3, [(Mapping.SINGLE, 0, 0), (Mapping.SINGLE, 1, 1)]),
    ],
)
def test_mapping_patterns(address: list[int], active: int, expected: list[tuple[Mapping, int, int]]) -> None:
    """Figure 3.8 of the thesis, and partial warps."""
    bench = Coalescer()
    bench.i["line"]["ready"] = 1
    bench.offer(Instruction(tuple(address), active, 2))
    got = []
    for _ in range(6):
        if bench.left:
            got.append((Mapping(bench.line.mapping), bench.line.thread, bench.line.word))
        bench.step()
        bench.offer(None)
    assert got == expected


def test_random_mappings_flow_at_full_rate_while_the_table_has_room() -> None:
    rng = random.Random(1)
    words = rng.sample(range(LANES), LANES)
    instructions = [full([4 * word for word in words]) for _ in range(20)]
    assert stream(Coalescer(), instructions, 40) == list(range(2, 22))


@pytest.mark.parametrize("entries", [1, 2, 8])
def test_no_random_load_without_a_thread_map_entry(entries: int) -> None:
    """A table that allocates when a line is accepted and tells its free entries one cycle later never overflows."""
    rng = seeded()
    bench = Coalescer()
    free, most, others = entries, 0, 0
    for _ in range(3000):
        bench.i["map_free"] = free
        bench.i["line"]["ready"] = rng.random() < 0.9
        if bench.o["request"]["ready"]:
            bench.offer(instruction(rng))
        if bench.left:
            line = bench.line
            needs = line.mapping == Mapping.RANDOM and not line.store and not line.atomic
            free -= needs
            others += not needs
            assert free >= 0
            most = max(most, entries - free)
        bench.step()
        if rng.random() < 0.2 and free < entries:
            free += 1
    assert most == entries
    assert others > 200


def test_only_random_loads_wait_for_the_table() -> None:
    words = [4 * (lane ^ 5) for lane in range(LANES)]
    for instruction, lines_left in ((full(words), 0), (full(words, store=1), 1), (full(words, atomic=1), 1)):
        bench = Coalescer()
        bench.i["map_free"] = 0
        assert len(stream(bench, [instruction], 10)) == lines_left


def test_an_instruction_without_lanes_leaves_nothing() -> None:
    none, one = Instruction((0,) * LANES, 0, 2), full([0] * LANES)
    assert stream(Coalescer(), [none, one, none, none, one], 10) == [3, 6]


def test_ready_falls_only_with_two_instructions_in_the_buffer() -> None:
    bench = Coalescer()
    bench.offer(full([0] * LANES))
    taken = 0
    for _ in range(6):
        taken += bench.accepted
        bench.step()
    assert taken == 3  # one in the output register, two in the buffer


def stimulate(bench: Coalescer, rng: random.Random) -> None:
    bench.i["line"]["ready"] = rng.random() < 0.6
    bench.i["map_free"] = rng.choice([0, 1, 8])
    if bench.o["request"]["ready"] or not bench.i["request"]["valid"]:
        bench.offer(instruction(rng) if rng.random() < 0.3 else None)


def test_idle_cycles_change_nothing() -> None:
    rng = seeded()
    bench = Coalescer()
    empty = stalled = 0
    for _ in range(3000):
        stimulate(bench, rng)
        steps = min(bench.idle(), rng.randrange(1, 5))
        stepped, skipped = bench.copy(), bench.copy()
        for _ in range(steps):
            stepped.step()
        skipped.skip(steps)
        assert stepped.bytes() == skipped.bytes()
        stalled += steps > 0 and bool(bench.o["line"]["valid"])
        empty += steps > 0 and not bench.o["line"]["valid"]
        bench.step()
    assert stalled > 50
    assert empty > 50
    bench.offer(None)
    bench.i["line"]["ready"] = 1
    bench.i["map_free"] = 8
    for _ in range(100):
        bench.step()
    assert bench.idle() == FOREVER


def test_reset_in_mid_run_behaves_as_a_fresh_record() -> None:
    rng = seeded()
    bench, fresh = Coalescer(), Coalescer()
    for _ in range(300):
        stimulate(bench, rng)
        bench.step()
    bench.reset()
    for _ in range(300):
        stimulate(bench, rng)
        fresh.i[()] = bench.i
        assert bench.io.tobytes() == fresh.io.tobytes()
        bench.step()
        fresh.step()


@pytest.mark.parametrize("line_shift", [5, 6, 7])
@pytest.mark.parametrize("lanes, cycles", [(1, 200), (5, 1000), (8, 1000), (32, 250)])
def test_hardware_equals_the_model(line_shift: int, lanes: int, cycles: int) -> None:
    rng = seeded()
    component = IntraWarpCoalescer(lanes=lanes, warps=64, tickets=16)

    def narrow(bench: Bench) -> None:
        """The instruction offered, without the lanes that the hardware lacks."""
        stimulate(bench, rng)
        bench.i["request"]["payload"]["mask"] &= (1 << lanes) - 1

    compare(component, Coalescer(line_shift), narrow, cycles)


def run(seed: int) -> str:
    """A digest of all state and ports over a random run."""
    rng = random.Random(seed)
    digest = hashlib.sha256()
    bench = Coalescer(rng.choice([5, 6, 7]))
    for _ in range(800):
        stimulate(bench, rng)
        bench.step()
        digest.update(bench.bytes())
    return digest.hexdigest()


def test_interpreted_run_is_identical() -> None:
    seed = seeded().randrange(1 << 32)
    assert interpreted(run, seed) == run(seed)
