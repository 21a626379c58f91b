"""RTL in a run of the model: equal over random inputs, faults named by block, port and cycle, and replayed."""

from __future__ import annotations

import json
import re
import time
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import fields, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from lockstep.cli import synth
from lockstep.models import blocks
from lockstep.rtl import registry
from lockstep.sim.cosim import build, library, replay, report, run, shim, toolchain, verilator
from lockstep.sim.cosim.session import Session, chosen
from lockstep.sim.cosim.verilator import Program
from lockstep.sim.device.gpu import Gpu
from lockstep.sim.errors import KernelFault, UsageError
from lockstep.sim.study.job import Job
from lockstep.spec import processes
from lockstep.verif import verilated
from lockstep.verif.bench import seeded
from lockstep.verif.blocks import declaration
from lockstep.verif.conftest import partly
from lockstep.verif.levels import MUTATED
from lockstep.verif.sim.cosim.bench import OVERHEAD, WRONG, Machine, faulty

COALESCER, SCHEDULER, DISPATCHER, ACCESS = (
    "lsu.intra_warp_coalescer", "scheduling.warp_scheduler", "cta.cta_dispatcher", "sharing.share_access",
)  # fmt: skip
SMALL = {"lanes": 4, "warps": 3, "tickets": 2}
SIZES: dict[str, list[dict[str, int]]] = {
    COALESCER: [{"lanes": 32, "warps": 64, "tickets": 16}, SMALL],
    SCHEDULER: [{"warps": 64, "schedulers": 1}, {"warps": 5, "schedulers": 1}],
    DISPATCHER: [{"sms": 128}, {"sms": 3}, {"sms": 70}],
    ACCESS: [{"lanes": 32}, {"lanes": 3}],  # without registers
}
CASES = [
    pytest.param(block, parameters, marks=[pytest.mark.exhaustive] * (parameters is not sizes[-1]))
    for block, sizes in SIZES.items()
    for parameters in sizes
]


def _id(value: Any) -> str:
    return value if isinstance(value, str) else "-".join(str(number) for number in value.values())


def test_the_struct_has_the_offsets_of_the_record(tmp_path: Path) -> None:
    """Of every block, as the C++ compiler lays it out and as NumPy writes it."""
    lines = ["#include <cstddef>", "#include <cstdint>", "#include <cstdio>", "int main() {"]
    for block in registry.blocks():
        lines += ["{", shim.struct(blocks.ports(block))]
        for path, _ in library.elements(blocks.ports(block)):
            lines.append(f'std::printf("{block} {path} %zu %zu\\n", offsetof(Io, {path}), sizeof(Io::{path}));')
        lines.append("}")
    (tmp_path / "offsets.cpp").write_text(
        "\n".join([*lines, "}"]).replace("sizeof(Io::", "sizeof(((Io *)0)->"), encoding="utf-8"
    )
    toolchain.call([toolchain.compiler(), "-O0", "offsets.cpp", "-o", "offsets"], tmp_path)
    seen = 0
    for line in toolchain.call([str(tmp_path / "offsets")]).splitlines():
        block, path, offset, size = line.split()
        record = np.zeros(1, blocks.ports(block))
        _set(record[0], path)
        assert np.flatnonzero(record.view(np.uint8)).tolist() == list(range(int(offset), int(offset) + int(size)))
        seen += 1
    assert seen > 500


@pytest.mark.long
@pytest.mark.parametrize("block", partly(sorted(SIZES)))
def test_the_largest_library_drives_the_whole_record(block: str) -> None:
    lines = library.load(block, SIZES[block][0]).layout.splitlines()
    expected = {path for path, _ in library.elements(blocks.ports(block)) if not re.search(r"\bpad\d", path)}
    assert {line.split()[0] for line in lines[1:]} == expected


def _set(record: np.ndarray, path: str) -> None:
    """Set all bits of one integer."""
    found: Any = record
    parts = path.replace("]", "").replace("[", ".").split(".")
    *groups, leaf = (int(part) if part.isdigit() else part for part in parts)
    for part in groups:
        found = found[part]
    found[leaf] = ~found[leaf]


@pytest.mark.long
@pytest.mark.parametrize(("block", "parameters"), CASES, ids=_id)
def test_equal_over_random_inputs(block: str, parameters: Mapping[str, int]) -> None:
    seed = seeded().randrange(1 << 20)
    for policy in range(4 if block == SCHEDULER else 2):
        machine = Machine(block, parameters, seed=4 * seed + policy)
        session = Session(machine, machine.instances)
        for cycles in (1500, 1, 700):  # a reset in mid-run
            machine.launch(cycles)
        assert session.difference is None
        assert (session.steps, session.sms) == (4 * 2201, 2)
        session.close()


@pytest.mark.long
@pytest.mark.parametrize(("block", "parameters"), CASES, ids=_id)
def test_replacing_the_model_leaves_the_same_records(block: str, parameters: Mapping[str, int]) -> None:
    seed = seeded().randrange(1 << 20)
    alone, machine = Machine(block, parameters, seed=seed), Machine(block, parameters, seed=seed)
    session = Session(machine, machine.instances, mode="replace")
    for cycles in range(1, 40):
        alone.launch(cycles)
        machine.launch(cycles)
        assert alone.records["io"].tobytes() == machine.records["io"].tobytes()
    session.close()


COUNTS_FOR_EVER = {  # the cycles of a quantum, a window or an entry
    "warppool.request_selector",
    "sharing.dynamic_warp_execution",
    "dyncta.cta_limiter",
    "dyncore.activity_counter",
    "dyncore.core_gate",
    "scavenger.sliding_window",
}


@pytest.mark.exhaustive
@pytest.mark.long
@pytest.mark.parametrize("block", sorted(set(registry.blocks()) - synth.UNITS))
def test_hardware_without_work_comes_to_rest(block: str) -> None:
    """Else it would be evaluated in every cycle of a run; a model does not say so of registers that it has not."""
    instance = library.load(block, declaration(block).configurations[MUTATED]).instance()
    io = np.zeros((), blocks.ports(block))
    instance.reset(io)
    assert not instance.rests
    for _ in range(100):
        instance.step(io)
    assert instance.rests == (block not in COUNTS_FOR_EVER)
    instance.reset(io)
    assert not instance.rests
    instance.close()


def _gpu(machine: Machine) -> Any:
    return type("Gpu", (), {"machine": machine, "after_launch": []})()


more = partial(pytest.param, marks=pytest.mark.exhaustive)
FAULTS = [
    (COALESCER, SMALL, "line_words", 7, 123, "o.line.payload.words[1]"),
    more(COALESCER, SMALL, "request_ready", 0, 50, "c.request.ready"),
    more(SCHEDULER, {"warps": 5, "schedulers": 1}, "grant_warp", 2, 77, "c.grant.warp"),
    more(DISPATCHER, {"sms": 3}, "remaining", 39, 200, "o.remaining"),
    more(DISPATCHER, {"sms": 3}, "remaining", 5, 0, "o.remaining"),
    more(ACCESS, {"lanes": 3}, "register_lock", 0, None, "c.register_lock"),
]


@pytest.mark.long
@pytest.mark.parametrize(("block", "parameters", "port", "bit", "cycle", "path"), FAULTS)
def test_a_fault_in_the_rtl_is_reported_and_replayed(
    block: str, parameters: dict[str, int], port: str, bit: int, cycle: int | None, path: str, tmp_path: Path
) -> None:
    makes = {block: faulty(block, port, bit, cycle)}
    cycle = cycle or 0

    def execute(attach: run.Attach) -> dict[str, Any]:
        machine = Machine(block, parameters)
        attach(_gpu(machine))
        machine.launch(400)
        return {}

    result = run.shadow(execute, block, [1], tmp_path, makes, {"kernel": "none"})
    found = result["difference"]
    assert (found["block"], found["sm"], found["index"]) == (block, 1, 0)
    assert (found["port"], found["cycle"], found["core_cycle"]) == (path, cycle, OVERHEAD + cycle)
    assert result["mismatches"] == 1 and not result["checked"]
    element = replay.Differing(found["port"], found["model"], found["rtl"])
    assert element.model ^ element.rtl == 1 << (bit % 5 if port == "line_words" else bit)
    assert json.loads((tmp_path / "report.json").read_text(encoding="utf-8")) == found
    text = (tmp_path / "report.txt").read_text(encoding="utf-8")
    assert report.essentials(found) in text and str(tmp_path / "replay.npz") in text
    depends = ("policy", "request")
    head = "   ".join(["cycle", *(f"i.{name}" for name in depends), "c.grant.valid", "c.grant.warp"])
    assert (f"{head}\n" in text) == (path == "c.grant.warp")
    assert ("   0 0 0 0   " in text) == (port == "line_words")  # a word for each of four lanes

    kept = replay.load(tmp_path / "replay.npz")
    assert (kept.block, kept.parameters, kept.cycles) == (block, parameters, cycle + 1)
    assert replay.play(kept, makes[block]) == replay.Outcome(cycle, (element,))
    assert replay.play(kept).differing == ()  # the block without the fault
    waves = (tmp_path / "waves.vcd").read_text(encoding="utf-8")
    assert f"expected_{port}" in waves and f"#{10 * (OVERHEAD + cycle)}\n" in waves
    report.waves(kept, tmp_path / "again.vcd", makes[block])  # a second time in one process
    assert "#" in (tmp_path / "again.vcd").read_text(encoding="utf-8")


def test_a_report_has_the_elements_of_the_instance_with_a_column_for_each_leaf() -> None:
    """A table of maps that is smaller than the largest, with a fault beyond it too: that must be seen."""
    block = "warppool.thread_map_table"
    lines = library.load(block, {"lanes": 3, "entries": 2, "coalescers": 2, "map_per": 0}).layout.splitlines()
    elements = [line.split()[0] for line in lines[1:]]
    io = np.zeros((), blocks.ports(block))
    io["i"]["line"]["payload"]["words"][1, :3] = 1, 2, 10
    columns = report._columns(io, report._interface(elements, "i.line[1].payload.words[2]"))
    assert columns["i.line[1].words"] == "1 2 a" and columns["i.line[1].valid"] == "0"
    assert not any(name.startswith("i.line[0]") for name in columns)
    io["c"]["map"]["words"][3] = 5
    columns = report._columns(io, report._interface([*elements, "c.map.words[3]"], "c.map.words[3]"))
    assert columns == {"c.map.mask": "0", "c.map.words": "0 0 0 5"}
    assert report._interface(["i.enter", "i.enter_load"], "i.enter") == {"i.enter": "i.enter"}


def test_the_inputs_that_a_combinational_output_depends_on() -> None:
    elements = ["i.lookup", "i.line[0].ready", "i.line[1].ready", "i.line[0].payload.mask", "c.line[0].valid"]
    paths = {"line.valid": ("line.ready", "lookup"), "line": ("line.payload",), "look": ("lookup",)}
    found = report._inputs(elements, paths, "c.line[0].valid")
    assert found == {"i.lookup": "i.lookup", "i.line[0].ready": "i.line.ready", "i.line[1].ready": "i.line.ready",
                     "i.line[0].payload.mask": "i.line.mask"}  # fmt: skip
    assert list(report._inputs(elements, paths, "c.line[0].payload.last")) == ["i.line[0].payload.mask"]
    assert report._inputs(elements, paths, "o.lookup") == report._inputs(elements, paths, "c.lookup") == {}


def test_a_fault_in_the_model(tmp_path: Path) -> None:
    def execute(attach: run.Attach) -> dict[str, Any]:
        machine = Machine(COALESCER, SMALL, slots=WRONG)
        attach(_gpu(machine))
        machine.launch(30)
        machine.launch(5000)
        return {}

    found = run.shadow(execute, "warppool", None, tmp_path, None, {})["difference"]
    assert (found["port"], found["model"], found["rtl"]) == ("o.line.payload.last", 1, 0)
    kept = replay.load(tmp_path / "replay.npz")
    outcome = replay.play(kept)
    assert outcome.cycle == found["cycle"] == kept.cycles - 1 and outcome.differing[0].port == found["port"]
    assert replay.main([str(tmp_path / "replay.npz")]) == 1


def test_a_recording_holds_every_cycle() -> None:
    """Stepped one cycle at a time, the ports are those of the recording."""
    machine, other = (Machine(COALESCER, SMALL, sms=1, per_sm=1) for _ in range(2))
    session = Session(machine, machine.instances, record=True)
    for start, cycles in ((0, 40), (40, 60)):
        machine.launch(cycles, start)
    kept = session.replay()
    assert kept.cycles == 100
    outputs = [record.io["o"].tobytes() for record in kept.records() for _ in range(record.cycles)]
    assert [record.reset for record in kept.records()].count(True) == 2
    for start, cycles in ((0, 40), (40, 60)):
        for k in range(cycles):
            other.launch(k, start)
            assert other.records["io"]["o"].tobytes() == outputs[start + k], (start, k)
    session.close()


def test_a_queue_of_one_entry_is_built() -> None:
    """Its pointers are memories without bits, which Yosys cannot write."""
    names = ("lanes", "warps", "tickets", "queues", "warps_per_queue", "depth", "coalescers")
    assert library.load("warppool.instruction_queues", dict.fromkeys(names, 1)).layout


def test_a_library_is_built_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    first = library.load(COALESCER, SMALL).path
    monkeypatch.setattr("lockstep.sim.cosim.verilator._make", lambda *_: pytest.fail("was built again"))
    monkeypatch.setattr("lockstep.sim.cosim.build.generate", lambda *_: pytest.fail("was elaborated again"))
    assert library.load(COALESCER, SMALL).path == first


@pytest.mark.exhaustive
@pytest.mark.long
def test_other_verilog_is_another_library() -> None:
    paths = {
        library.load(COALESCER, SMALL).path,
        library.load(COALESCER, {**SMALL, "lanes": 5}).path,
        library.load(COALESCER, SMALL, faulty(COALESCER, "line_words", 7, 123)).path,
        library.load(COALESCER, SMALL, faulty(COALESCER, "line_words", 7, 124)).path,
    }
    assert len(paths) == 4


@pytest.mark.long
def test_programs_take_the_headers_as_they_are_precompiled(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """With another flag than the headers were compiled with, each program compiles them again, and nobody is told."""
    made = [verilator._headers(option) for option in (verilator.OPTIMISED, verilator.UNOPTIMISED)]
    for path in (*made, verilator._runtime()):
        (tmp_path / Path(path).parent.name).symlink_to(Path(path).parent)
    monkeypatch.setattr(toolchain, "folder", lambda: tmp_path)
    call, said = verilator.call, []

    def noted(command: Sequence[str], where: Path | None = None) -> str:
        if "main.cpp" in command:
            said.append(processes.run([*command, "-H"], where).stderr)
        return call(command, where)

    monkeypatch.setattr(verilator, "call", noted)
    gate = declaration("dyncore.core_gate")
    program = gate.verilog("odd"), gate.name, gate.ports("odd")
    verilated.simulator(*program)
    for coverage in (False, True):
        verilated.player(*program, coverage=coverage)
    build.libraries([build.Request(gate.block, gate.configurations["odd"], traced=traced) for traced in (False, True)])
    assert len(said) == 5 and all(re.search(r"^! \S+/headers\.h\.gch$", text, re.MULTILINE) for text in said)


def test_a_folder_is_made_as_a_whole_and_once(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(toolchain, "folder", lambda: tmp_path)
    made: list[Path] = []

    def make(where: Path) -> None:
        made.append(where)
        time.sleep(0.2)
        assert not (tmp_path / "key").exists()
        (where / "mine").touch()

    with ThreadPoolExecutor() as pool:
        found = set(pool.map(lambda _: toolchain.once("key", make), range(3)))
    assert (found, len(made)) == ({tmp_path / "key"}, 1)
    assert {path.name for path in (tmp_path / "key").iterdir()} == {"mine", toolchain.CONTENTS}
    with pytest.raises(ZeroDivisionError):
        toolchain.once("other", lambda where: (where / str(1 // 0)).touch())
    assert [path.name for path in tmp_path.iterdir() if path.is_dir()] == ["key"]


def test_everything_that_a_program_is_made_from_is_in_its_key() -> None:
    program = Program("module", "top", "main", "out", optimise="-O1")
    changes: dict[str, Any] = {
        "verilog": "other", "top": "other", "main": "other", "output": "other", "files": {"a.h": "x"},
        "optimise": "-O2", "verilate": ["--vpi"], "compile": ["-DX"], "link": ["-lx"],
    }  # fmt: skip
    assert {*changes} == {field.name for field in fields(Program)}
    keys = {program.key, *(replace(program, **{name: value}).key for name, value in changes.items())}
    assert len(keys) == 1 + len(changes)


def test_a_library_for_another_record_is_refused() -> None:
    path = library.load(COALESCER, SMALL).path
    kind = blocks.ports(COALESCER)
    with pytest.raises(library.LayoutDrift, match="size"):
        library.Library(path, blocks.ports(SCHEDULER))
    side = kind.fields["o"][0]  # type: ignore[index]
    fields = _members(kind)
    formats = [_renamed(side) if name == "o" else kind[name] for name in fields["names"]]
    swapped = np.dtype({**fields, "formats": formats})  # type: ignore[call-overload]
    with pytest.raises(library.LayoutDrift, match=r"o\.line"):
        library.Library(path, swapped)


def _members(kind: np.dtype) -> dict[str, Any]:
    fields = [kind.fields[name] for name in kind.names or ()]  # type: ignore[index]
    return {"names": list(kind.names or ()), "offsets": [field[1] for field in fields], "itemsize": kind.itemsize}


def _renamed(kind: np.dtype) -> np.dtype:
    members = _members(kind)
    members["formats"] = [kind[name] for name in members["names"]]
    members["names"] = ["lines" if name == "line" else name for name in members["names"]]
    return np.dtype(members)  # type: ignore[call-overload]


def test_what_is_not_there_is_refused() -> None:
    machine = Machine(COALESCER, SMALL)
    instances = machine.instances
    for name in ("all", "warppool", "warppool.intra_warp_coalescer", "intra_warp_coalescer", "lsu", "mrpb"):
        assert len(chosen(name, instances)) == 4
    assert [i.sm for i in chosen(COALESCER, instances, [1])] == [1, 1]
    for rtl, sms, message in (
        ("scheduling", None, "which has lsu.intra_warp_coalescer"),
        ("warp", None, "not in this configuration"),
        ("writeback", None, "it comes with --with warppool"),
        ("", None, "does not name a block"),
        ("all", [2], "--sm 2: must be 0 to 1"),
    ):
        with pytest.raises(UsageError, match=message):
            chosen(rtl, instances, sms)


@pytest.mark.parametrize("mode", ["shadow", "replace"])
def test_a_misspelt_block_is_refused_before_the_model_is_compiled(monkeypatch: pytest.MonkeyPatch, mode: str) -> None:
    monkeypatch.setattr(Gpu, "machine", None)
    with pytest.raises(UsageError, match="did you mean writeback"):
        run.cosim(Job("saxpy", mechanisms=["warppool"], size="tiny"), "writebak", mode)


def test_a_stop_that_is_no_difference_is_passed_on() -> None:
    def execute(attach: run.Attach) -> dict[str, Any]:
        attach(_gpu(Machine(COALESCER, SMALL)))
        raise KernelFault("out of bounds")

    with pytest.raises(KernelFault, match="out of bounds"):
        run.shadow(execute, "all", None, Path(), None, {})


def test_files_that_are_no_replays(tmp_path: Path) -> None:
    (tmp_path / "a.npz").write_text("nothing", encoding="utf-8")
    np.savez(tmp_path / "b.npz", x=np.zeros(1))
    for name in ("a.npz", "b.npz", "c.npz"):
        with pytest.raises(UsageError, match="not a replay file"):
            replay.load(tmp_path / name)


def test_a_replay_of_a_block_under_the_name_that_its_mechanism_gives_it(tmp_path: Path) -> None:
    arrays = {name: np.zeros(0, kind) for name, kind in replay.ARRAYS.items()}
    replay.Replay(COALESCER, SMALL, arrays).save(tmp_path / "new.npz")
    with np.load(tmp_path / "new.npz") as file:
        about = json.loads(str(file["about"])) | {"block": "warppool.intra_warp_coalescer"}
    about["digest"] = replay.digest(about, arrays)
    np.savez(tmp_path / "old.npz", **{"about": np.array(json.dumps(about)), **arrays})  # type: ignore[arg-type]
    assert replay.load(tmp_path / "old.npz").block == COALESCER


def test_a_damaged_build_is_made_anew(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(toolchain, "folder", lambda: tmp_path)
    made = []

    def make(where: Path) -> None:
        made.append(where)
        (where / "block.so").write_text("whole", encoding="utf-8")

    file = toolchain.once("key", make) / "block.so"
    for count, damage in enumerate((lambda: None, lambda: file.write_text("half", encoding="utf-8"), file.unlink), 1):
        damage()
        for _ in range(2):
            assert toolchain.once("key", make) / "block.so" == file and file.read_text(encoding="utf-8") == "whole"
        assert len(made) == count


@pytest.mark.parametrize("content", [b"", b"PK\x03\x04garbage", b"text"])
def test_what_is_no_replay_file_is_refused(tmp_path: Path, content: bytes) -> None:
    file = tmp_path / "replay.npz"
    file.write_bytes(content)
    with pytest.raises(UsageError, match="not a replay file"):
        replay.load(file)
