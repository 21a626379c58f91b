"""Traces of one SM: what they hold agrees with the statistics and the profile, and with the files for viewers."""

from __future__ import annotations

from collections import Counter, defaultdict
from functools import cache
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from lockstep.cli import main as cli
from lockstep.models.memory.l1 import REFUSALS
from lockstep.models.observe.trace import QUEUED
from lockstep.sim import Gpu, kernels
from lockstep.sim.device.trace import konata, perfetto
from lockstep.sim.device.trace.trace import Trace
from lockstep.spec.causes import CAUSES


def traced(name: str, sm: int = 0, sms: int = 2, skip: bool = True, **window: object) -> tuple[Gpu, Trace]:
    """A kernel at size tiny, with a trace of one SM, and profiles."""
    kernel = kernels.find(name)
    gpu = Gpu("gtx480", core_sms=sms, profile=True)
    gpu.machine.skip = skip
    module, data = gpu.load(kernel.ptx), kernel.setup("tiny", 1)
    with gpu.trace(sm, **window) as trace:  # type: ignore[arg-type]
        kernel.run(gpu, module, data)
    return gpu, trace


whole = cache(traced)


def seen(trace: Trace) -> list[tuple[int, ...]]:
    """What a trace says of its instructions."""
    return [
        (one.issue, one.warp.slot, one.warp.cta, one.warp.index, one.pc, one.lanes, one.fetched, one.start, one.done)
        for one in trace.instructions
    ]


@pytest.mark.parametrize("name", ["bfs", "transpose-padded"])
def test_every_instruction_of_the_sm_is_there_once(name: str) -> None:
    for sm in (0, 1):
        gpu, trace = whole(name, sm)
        assert len(trace.instructions) == gpu.per_sm[sm]["issue.warp_instructions"]
        lanes = sum(one.lanes.bit_count() for one in trace.instructions)
        assert lanes == gpu.per_sm[sm]["issue.thread_instructions"]
        assert trace.full is None and not any(one.cut for one in trace.instructions)
        assert sum(len(launch.lines) for launch in trace.launches) == gpu.per_sm[sm]["lsu.requests"]


def test_cycles_and_statistics_are_those_without_a_trace() -> None:
    gpu, _ = whole("bfs", 0)
    kernel = kernels.find("bfs")
    plain = Gpu("gtx480", core_sms=2)
    kernel.run(plain, plain.load(kernel.ptx), kernel.setup("tiny", 1))
    for one, other in zip(gpu.runs, plain.runs, strict=True):
        assert all(np.array_equal(one.raw[name], other.raw[name]) for name in one.raw)


def test_skipping_changes_nothing() -> None:
    assert seen(whole("bfs", 0)[1]) == seen(traced("bfs", 0, skip=False)[1])


def test_waits_are_those_of_the_profile() -> None:
    """With one SM: warp cycles by cause."""
    gpu, trace = whole("transpose-padded", 0, 1)
    cycles: Counter[str] = Counter()
    for launch in trace.launches:
        for warp in launch.warps:
            for (begin, why), (end, _) in pairwise([*warp.states, (warp.end, "")]):
                cycles[why] += (1 if why == "issues" else end - begin) if end > begin else 0
    profile = gpu.runs[0].profile
    assert profile is not None
    stalls = dict(zip(CAUSES, profile.rows["stalls"].sum(axis=0).tolist(), strict=True))
    assert {why: cycles[why] for why in CAUSES} == stalls


def test_stages_follow_each_other() -> None:
    _, trace = whole("bfs", 0)
    for launch in trace.launches:
        for one in launch.instructions:
            found = konata.stages(launch, one)
            assert all(begin < end for begin, end, _ in found)
            assert all(end == begin for (_, end, _), (begin, _, _) in pairwise(found))
            assert (one.issue, "I") in [(begin, name) for begin, _, name in found]
            assert one.fetched <= one.issue < one.start < one.done and one.next <= one.issue
            assert all(other.done <= one.issue for other in one.needs), "its sources were written when it issued"


def test_a_window_holds_what_issues_in_it() -> None:
    _, tiled = whole("transpose-tiled", 0, 15)
    levels = [(level, cycle) for cycle, which, level in tiled.launches[0].levels if which == QUEUED]
    busy = min(cycle for level, cycle in levels if level == max(levels)[0]) + 1
    windows = [("bfs", 2, first, last) for first, last in ((700, 1500), (0, 900), (1000, None))]
    for name, sms, first, last in [*windows, ("transpose-tiled", 15, busy, None)]:
        _, trace = whole(name, 0, sms)
        _, part = traced(name, 0, sms, cycles=(first, last))
        inside = [one for one in trace.instructions if first <= one.issue < (last or 1 << 60)]
        assert inside and [(o.issue, o.warp.slot, o.warp.cta, o.pc) for o in part.instructions] == [
            (o.issue, o.warp.slot, o.warp.cta, o.pc) for o in inside
        ]
        assert all(one.done <= (last or 1 << 60) for one in part.instructions)
        for one, other in zip(inside, part.instructions, strict=True):
            assert other.start in (one.start, -1) if other.cut else (other.start, other.done) == (one.start, one.done)


@pytest.mark.long
def test_nothing_ends_before_it_starts(tmp_path: Path) -> None:
    """Windows that end between an issue and the start of the pipeline, which is known at the issue."""
    _, trace = whole("bfs", 0)
    late = [one for one in trace.instructions if one.start > one.issue + 1]
    assert late
    for last in {one.issue + 1 for one in late[:: len(late) // 5 + 1]}:
        _, part = traced("bfs", 0, cycles=(0, last))
        assert any(one.cut for one in part.instructions)
        assert all(one.start <= one.done == last for one in part.instructions if one.cut)
        Log(konata.text(part.launches))
        part.write(tmp_path / "x.pftrace")
        _, notes = packets(tmp_path / "x.pftrace")
        assert all(note["start"] <= note["done"] for note in notes if "start" in note)


def test_a_full_record_ends_early() -> None:
    _, trace = whole("bfs", 0)
    _, part = traced("bfs", 0, events=500)
    assert part.full is not None
    inside = [one for one in trace.instructions if one.issue < part.full]
    assert inside and len(part.instructions) == len(inside) < len(trace.instructions)


def test_the_documented_stall_is_there() -> None:
    """The page says how long stages of ``ld.shared`` last with conflicts and without."""
    page = " ".join((Path(__file__).parents[4] / "docs" / "timelines.md").read_text(encoding="utf-8").split())
    found = {}
    for name in ("transpose-tiled", "transpose-padded"):
        _, trace = whole(name, 0, 15)
        (launch,) = trace.launches
        places = launch.codes[0].places
        cycles: defaultdict[str, list[int]] = defaultdict(list)
        waits: Counter[str] = Counter()
        for one in launch.instructions:
            for (begin, why), (end, _) in pairwise([*one.waits, (one.issue, "")]):
                waits[why] += end - begin
            for begin, end, stage in konata.stages(launch, one) if "ld.shared" in places[one.pc].ptx else ():
                cycles[stage].append(end - begin)
        found[name] = max(cycles["M"]), max(cycles["I"]), waits
    (m, i, waits), (padded_m, padded_i, padded_waits) = found.values()
    assert f"`M` lasts {m} cycles. The rows of other warps below it have a long `I`, up to {i} cycles" in page
    assert f"`M` lasts {padded_m} cycles and `I` at most {padded_i}" in page
    assert all(waits[why] > 20 * padded_waits[why] for why in ("lsu", "scratchpad"))
    assert abs(waits["memory"] / padded_waits["memory"] - 1) < 0.05


class Log:
    """A reader of Kanata 0004 that takes nothing but what the format allows."""

    def __init__(self, text: str) -> None:
        lines = [line.split("\t") for line in text.splitlines()]
        assert lines[0] == ["Kanata", "0004"] and lines[1][0] == "C="
        self.now = int(lines[1][1])
        self.begin: list[int] = []
        self.threads: list[int] = []
        self.labels: defaultdict[int, list[str]] = defaultdict(list)
        self.stages: defaultdict[tuple[int, str], list[tuple[str, int, int]]] = defaultdict(list)
        self.open: dict[tuple[int, str], tuple[str, int]] = {}
        self.retired: dict[int, int] = {}
        self.arrows: list[tuple[int, int, int]] = []
        for command, *words in lines[2:]:
            getattr(self, f"_{command.lower()}")(*words)
        assert not self.open and len(self.retired) == len(self.begin)

    def alive(self, text: str) -> int:
        number = int(text)
        assert 0 <= number < len(self.begin) and number not in self.retired
        return number

    def _c(self, cycles: str) -> None:
        assert int(cycles) > 0
        self.now += int(cycles)

    def _i(self, number: str, _: str, thread: str) -> None:
        assert int(number) == len(self.begin) and int(thread) >= 0
        self.begin.append(self.now)
        self.threads.append(int(thread))

    def _l(self, number: str, kind: str, text: str) -> None:
        assert kind in "01" and text
        self.labels[self.alive(number)].append(text)

    def _s(self, number: str, lane: str, stage: str) -> None:
        key = self.alive(number), lane
        assert key not in self.open and lane in "01"
        self.open[key] = stage, self.now

    def _e(self, number: str, lane: str, stage: str) -> None:
        name, begin = self.open.pop((self.alive(number), lane))
        assert name == stage and begin < self.now
        self.stages[int(number), lane].append((stage, begin, self.now))

    def _r(self, number: str, order: str, kind: str) -> None:
        assert int(order) == len(self.retired) and kind == "0"
        self.retired[self.alive(number)] = self.now

    def _w(self, consumer: str, producer: str, kind: str) -> None:
        assert 0 <= int(producer) < len(self.begin) and kind == "0"
        self.arrows.append((self.now, self.alive(consumer), int(producer)))


@pytest.mark.parametrize("window", [(0, None), (700, 1500)])
def test_konata(window: tuple[int, int | None]) -> None:
    _, trace = traced("bfs", 0, cycles=window)
    log = Log(konata.text(trace.launches))
    issues = [begin for key, parts in log.stages.items() for stage, begin, _ in parts if (key[1], stage) == ("0", "I")]
    assert Counter(issues) == Counter(one.issue for one in trace.instructions)
    place = {"F": 0, "D": 1, "W": 2, "I": 3, "X": 4, "M": 4, "Wb": 5}
    for number in range(len(log.begin)):
        own = log.stages[number, "0"]
        ranks = [place[stage] for stage, _, _ in own]
        assert ranks == sorted(set(ranks)) and own[-1][2] == log.retired[number]
        assert all(end == begin for (_, _, end), (_, begin, _) in pairwise(own))
        assert {stage for stage, _, _ in log.stages[number, "1"]} <= set(CAUSES)
        assert len(log.labels[number]) == 2
    assert log.arrows
    assert any("ld.global" in label for labels in log.labels.values() for label in labels)


def test_konata_names_each_instruction_and_what_it_needed() -> None:
    _, trace = whole("bfs", 0, 1)
    log = Log(konata.text(trace.launches))
    issues = {key[0]: begin for key, parts in log.stages.items() for stage, begin, _ in parts if stage == "I"}
    issued = {(one.issue, one.warp.slot): one for one in trace.instructions}
    ones = [issued[issues[number], log.threads[number]] for number in range(len(log.begin))]
    for number, one in enumerate(ones):
        first, second = log.labels[number]
        assert first.startswith(f"CTA {one.warp.cta} warp {one.warp.index}: {one.pc}: ")
        assert f"warp slot {one.warp.slot}, {one.lanes.bit_count()} lanes ({one.lanes:08x})" in second
    arrows = Counter((cycle, id(ones[consumer]), id(ones[producer])) for cycle, consumer, producer in log.arrows)
    assert arrows == Counter((one.issue, id(one), id(other)) for one in ones for other in one.needs)


def test_a_guarded_instruction_needs_what_sets_its_predicate() -> None:
    _, trace = whole("bfs", 0)
    places = trace.launches[0].codes[0].places
    guarded = [one for one in trace.launches[0].instructions if places[one.pc].ptx.lstrip().startswith("@")]
    assert any("setp" in places[other.pc].ptx for one in guarded for other in one.needs)


def test_ctas_last_until_their_last_warp_has_ended() -> None:
    for launch in whole("bfs", 0)[1].launches:
        ends: defaultdict[int, int] = defaultdict(int)
        for warp in launch.warps:
            ends[warp.cta] = max(ends[warp.cta], warp.end)
        assert {cta.number: cta.end for cta in launch.ctas} == ends


def test_a_branch_is_done_after_the_latency_of_its_pipeline() -> None:
    for launch in whole("bfs", 0)[1].launches:
        places, latency = launch.codes[0].places, launch.gpu.pipelines["control"].latency
        branches = [one for one in launch.instructions if " bra" in " " + places[one.pc].ptx and not one.cut]
        assert latency > 2 and {one.done - one.start for one in branches} == {latency - 1}


def packets(path: Path) -> tuple[Counter[str], list[dict[str, Any]]]:
    """How many slices of each category a file for Perfetto has, and the notes of each that begins.

    Refuses what is not balanced, or ends before it starts.
    """
    from perfetto.protos.perfetto.trace import perfetto_trace_pb2 as messages

    file = messages.Trace()
    file.ParseFromString(path.read_bytes())
    tracks = {p.track_descriptor.uuid: p.track_descriptor for p in file.packet if p.HasField("track_descriptor")}
    assert all(not each.parent_uuid or each.parent_uuid in tracks for each in tracks.values())
    open_slices: defaultdict[int, list[int]] = defaultdict(list)
    slices: Counter[str] = Counter()
    notes: list[dict[str, Any]] = []
    for packet in file.packet:
        event, cycle = packet.track_event, packet.timestamp
        stack = open_slices[event.track_uuid]
        if not packet.HasField("track_event"):
            continue
        if event.type == event.TYPE_SLICE_BEGIN:
            stack.append(cycle)
            slices[event.categories[0]] += 1
            notes.append({note.name: note.int_value or note.string_value for note in event.debug_annotations})
        elif event.type == event.TYPE_SLICE_END:
            assert stack.pop() < cycle
        else:
            assert event.type == event.TYPE_COUNTER and tracks[event.track_uuid].HasField("counter")
    assert not any(open_slices.values())
    return slices, notes


def test_perfetto(tmp_path: Path) -> None:
    gpu, trace = whole("bfs", 0)
    trace.write(tmp_path / "x.pftrace")
    slices, _ = packets(tmp_path / "x.pftrace")
    stats = gpu.per_sm[0]
    assert slices["issue"] == slices["scheduler"] == stats["issue.warp_instructions"]
    assert slices["cta"] == stats["sm.ctas"] and slices["warp"] == stats["sm.warps"]
    assert slices["line"] == stats["lsu.requests"] and slices["launch"] == len(gpu.runs)


def tracks(path: Path) -> dict[str, list[tuple[int, int, str, float]]]:
    """What the tracks of a file for Perfetto hold, by their names: begin, end, name and value."""
    from perfetto.protos.perfetto.trace import perfetto_trace_pb2 as messages

    file = messages.Trace()
    file.ParseFromString(path.read_bytes())
    names = {p.track_descriptor.uuid: p.track_descriptor.name for p in file.packet}
    found: defaultdict[str, list[tuple[int, int, str, float]]] = defaultdict(list)
    open_slices: defaultdict[int, list[tuple[int, str]]] = defaultdict(list)
    for packet in file.packet:
        event, cycle = packet.track_event, packet.timestamp
        if event.type == event.TYPE_SLICE_BEGIN:
            open_slices[event.track_uuid].append((cycle, event.name))
        elif event.type == event.TYPE_SLICE_END:
            begin, name = open_slices[event.track_uuid].pop()
            found[names[event.track_uuid]].append((begin, cycle, name, 0))
        elif event.type == event.TYPE_COUNTER:
            found[names[event.track_uuid]].append((cycle, cycle, "", event.double_counter_value))
    return found


def test_tracks_of_perfetto(tmp_path: Path) -> None:
    gpu, trace = whole("transpose-tiled", 0, 1)
    trace.write(tmp_path / "x.pftrace")
    found = tracks(tmp_path / "x.pftrace")
    per_window = [value for *_, value in found["instructions per cycle"]]
    assert 100 * sum(per_window) == pytest.approx(len(trace.instructions))
    waits: Counter[str] = Counter()
    for name, slices in found.items():
        for begin, end, why, _ in slices if name.startswith("warp slot") else ():
            waits[why] += end - begin
    profile = gpu.runs[0].profile
    assert profile is not None
    assert {why: waits[why] for why in CAUSES} == profile.stalls
    refused: Counter[str] = Counter()
    for begin, end, why, _ in found["lines that the L1 refuses"]:
        refused[why] += end - begin
    assert refused and {why: refused[why] for why in REFUSALS} == {
        why: gpu.per_sm[0][f"l1.stall_{why}_core_cycles"] for why in REFUSALS
    }


def test_schedulers_of_perfetto_have_what_their_slots_issue(tmp_path: Path) -> None:
    """CTAs of three warps: a warp's scheduler goes by its slot, not by its place in the CTA."""
    gpu = Gpu("gtx480", core_sms=1)
    module = gpu.load("__global__ void store(int *out) { out[blockIdx.x * 96 + threadIdx.x] = 1; }")
    with gpu.trace() as trace:
        module.launch("store", 3, 96, [gpu.empty(288, np.int32)])
    trace.write(tmp_path / "x.pftrace")
    found = tracks(tmp_path / "x.pftrace")
    for number in (0, 1):
        issues = [one.issue for one in trace.instructions if one.warp.slot % 2 == number]
        assert [begin for begin, *_ in found[f"scheduler {number}"]] == issues != []


def test_perfetto_names_sms_and_opcodes() -> None:
    assert b"SM 3" in perfetto.content(3, [])
    assert [perfetto._name(ptx, 7) for ptx in ("@!%p1 bra $on;", "ret;", "")] == ["bra", "ret", "instruction 7"]


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--timeline", "x.txt"], ["x.txt", ".kanata", ".pftrace"]),
        (["--timeline", "x.log", "--cycles", "9:3"], ["--cycles 9:3", "A < B"]),
        (["--timeline", "x.log", "--cycles", f"1:{1 << 70}", "--sm", "99"], ["SM 99"]),
        (["--timeline", "x.log", "--cycles", f"{1 << 70}:"], ["--cycles", "A < B"]),
        (["--timeline", "x.log", "--around-stop", f"{1 << 70}"], ["--around-stop", "2^62"]),
        (["--intervals", "x.csv", "--every", f"{1 << 70}"], ["--every", "2^62"]),
        (["--timeline", "x.log", "--cycles", "a"], ["--cycles a", "A:B"]),
        (["--timeline", "x.log", "--sm", "15"], ["SM 15", "0 to 14"]),
        (["--cycles", "1:2"], ["--cycles", "--timeline"]),
        (["--around-stop", "9"], ["--around-stop 9", "--timeline"]),
        (["--timeline", "x.log", "--around-stop", "0"], ["--around-stop 0", "1 core cycle"]),
        (["--timeline", "x.log", "--around-stop", "9", "--sm", "9"], ["--sm 9", "sets it with --around-stop"]),
        (["--timeline", "x.log", "--around-stop", "9", "--cycles", "1:2"], ["--cycles 1:2", "sets it with"]),
    ],
)
def test_mistakes(options: list[str], words: list[str], capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    options = [str(tmp_path / word) if word.startswith("x.") else word for word in options]
    assert cli.main(["run", "saxpy", "--size", "tiny", *options]) == 2
    *_, error = capsys.readouterr().err.splitlines()  # what is before tells of progress
    assert error.startswith("lockstep: ") and all(word in error for word in words)
    assert not any(tmp_path.iterdir())


def test_the_span_is_from_the_first_to_the_last_cycle() -> None:
    _, trace = traced("bfs", 0, cycles=(700, 1500))
    assert trace.span == "timeline of SM 0, cycles 700 to 1,499"


def test_the_command_line(tmp_path: Path) -> None:
    for ending in ("kanata", "pftrace"):
        place = tmp_path / f"x.{ending}"
        assert cli.main(["run", "saxpy", "--size", "tiny", "--timeline", str(place), "--cycles", "0:2000"]) == 0
        assert place.stat().st_size > 1000
