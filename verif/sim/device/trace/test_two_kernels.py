"""Traces and profiles of two kernels at once: each instruction is its kernel's, and nothing else changes by looking."""

from __future__ import annotations

from collections import Counter
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from lockstep.cli.main import main
from lockstep.sim import Gpu, KernelFault, kernels
from lockstep.sim.device.run import Share
from lockstep.sim.device.trace import konata
from lockstep.sim.device.trace.trace import Trace

SETTINGS = {"core.sms": 2}
NAMES = ("hotspot", "spmv")


def programs(gpu: Gpu) -> list[Share]:
    """The launches of two kernels that run at once."""

    def program(name: str) -> Any:
        kernel = kernels.find(name)
        module, data = gpu.load(kernel.ptx, kernel.registers), kernel.setup("tiny", 1)
        return lambda: kernel.run(gpu, module, data)

    ran = gpu.run_programs([program(name) for name in NAMES])
    return [pending.run for one in ran for pending in one.launches]


@cache
def observed() -> tuple[list[Share], Trace]:
    gpu = Gpu("gtx480", (), SETTINGS, profile=True)
    with gpu.trace(1) as trace:
        launches = programs(gpu)
    return launches, trace


def test_looking_changes_nothing() -> None:
    plain, (launches, _) = programs(Gpu("gtx480", (), SETTINGS)), observed()
    for one, other in zip(plain, launches, strict=True):
        assert (one.began, one.ended, one.profile) == (other.began, other.ended, None)
        assert all(np.array_equal(count, other.raw[name]) for name, count in one.raw.items())


def test_a_trace_has_both_kernels() -> None:
    launches, trace = observed()
    [recorded] = trace.launches
    kernel = {code: launch for code in recorded.codes for launch in launches
              if (code.stream, code.begin) == (launch.stream, launch.began)}  # fmt: skip
    assert len(kernel) == len(launches) == 3 and recorded.several
    issued, ctas = Counter(one.warp.code for one in trace.instructions), Counter(cta.code for cta in recorded.ctas)
    for code, launch in kernel.items():
        assert (code.kernel, code.end) == (launch.kernel, launch.ended)
        stats = launch.per_sm[1]
        assert issued[code] == stats["issue.warp_instructions"] and ctas[code] == stats["sm.ctas"], code.kernel
        assert sum(line[4] is code for line in recorded.lines) == stats["lsu.requests"]
    assert min(issued.values()) > 100
    for one in trace.instructions:
        assert one.warp.code.begin <= one.issue < one.warp.code.end
        assert all(other.warp is one.warp for other in one.needs)
        assert one.done >= one.issue and not one.cut


def test_lines_of_a_warp_are_those_of_its_kernel() -> None:
    """Executed one behind the other: a program counter goes on, or goes to where a branch or a barrier leads."""
    _, trace = observed()
    for launch in trace.launches:
        for warp in launch.warps:
            length = len(warp.code.instructions)
            assert warp.issued and all(one.pc < length for one in warp.issued)
            assert warp.issued[0].pc == 0
            last = warp.code.places[warp.issued[-1].pc].ptx
            assert "ret" in last or "exit" in last


def test_profiles_are_the_launches() -> None:
    launches, _ = observed()
    for launch in launches:
        profile, stats = launch.profile, launch.stats
        assert profile is not None and profile.issues == stats["issue.warp_instructions"]
        rows = {name: int(profile.rows[name].sum()) for name in profile.rows.dtype.names or () if name != "stalls"}
        assert rows["lanes"] == stats["issue.thread_instructions"]
        found = (rows["requests"], rows["l1_hits"], rows["l1_merges"], rows["scratchpad_accesses"])
        names = ("lsu.requests", "l1.hits", "l1.merges", "scratchpad.accesses")
        assert found == tuple(stats[name] for name in names), launch.kernel
        assert profile.warp_cycles == launch.raw["sm.resident_warp_cycles"].sum() + _ends(launch)


def _ends(launch: Share) -> int:
    """Cycles in which a warp's last instruction issues: it is not resident any more when they are counted."""
    return int(launch.stats["sm.warps"])


def test_files_tell_kernels_apart(tmp_path: Path) -> None:
    from perfetto.protos.perfetto.trace import perfetto_trace_pb2

    launches, trace = observed()
    text = konata.text(trace.launches)
    for launch in launches:
        assert f"\t0\t{launch.kernel}, CTA " in text
    trace.write(tmp_path / "x.pftrace")
    file = perfetto_trace_pb2.Trace()
    file.ParseFromString((tmp_path / "x.pftrace").read_bytes())
    tracks = {packet.track_descriptor.uuid: packet.track_descriptor.name for packet in file.packet}
    shown: Counter[tuple[str, str]] = Counter()
    for packet in file.packet:
        event = packet.track_event
        if event.type == event.TYPE_SLICE_BEGIN and event.categories[0] in ("launch", "cta"):
            shown[event.categories[0], tracks[event.track_uuid] if event.categories[0] == "launch" else event.name] += 1
    assert shown["launch", "stream 0"] == 2 and shown["launch", "stream 1"] == 1
    first = {launch.kernel for launch in launches if launch.stream == 0}
    assert sum(count for (kind, name), count in shown.items() if kind == "cta" and name.split(":")[0] in first) == sum(
        launch.per_sm[1]["sm.ctas"] for launch in launches if launch.stream == 0
    )


def test_what_led_to_a_stop_is_kept(tmp_path: Path) -> None:
    source = "__global__ void f(int *p, int n) { for (int i = 0; i < 400; i++) p[i % 64] += n; if (n) p[1 << 28] = 1; }"
    gpu = Gpu("gtx480", (), SETTINGS)
    module, data = gpu.load(source), gpu.to_device(np.zeros(64, np.int32))
    with gpu.trace(around_stop=100) as trace:
        for n in (0, 1):
            module.launch("f", 2, 32, [data, np.int32(n)], stream=gpu.stream())
        with pytest.raises(KernelFault, match=r"^f\(int\*, int\)|^f"):
            gpu.synchronize()
    [launch] = trace.launches
    last = max(trace.instructions, key=lambda one: one.issue)
    assert last.warp.code.stream == 1 and launch.until - launch.first >= 100
    trace.write(tmp_path / "x.kanata")


def test_from_the_command_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file, saved = tmp_path / "x.kanata", tmp_path / "run.json"
    command = ["run", "hotspot", "--secondary", "hotspot", "--size", "tiny", "--set", "core.sms=2", "--profile"]
    assert main([*command, "--timeline", str(file), "--cycles", "0:3000", "--json", str(saved)]) == 0
    printed = capsys.readouterr().out
    assert "hotspot: calculate_temp" in printed and file.read_text(encoding="utf-8").startswith("Kanata\t0004")
    assert main(["report", str(saved), "-o", str(tmp_path / "x.html")]) == 0
    assert main(["diff", str(saved), str(saved)]) == 0
    page = (tmp_path / "x.html").read_text(encoding="utf-8")
    assert "What warps wait for" in page and "hotspot: calculate_temp" in page and "both kernels over time" in page
