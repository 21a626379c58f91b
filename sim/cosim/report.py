"""Writes what belongs to the first difference: the report, the waveform around it, and the replay file."""

from __future__ import annotations

import json
import re
from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from lockstep.rtl import registry
from lockstep.sim.cosim import build, library
from lockstep.sim.cosim.gates import Gates
from lockstep.sim.cosim.replay import Record, Replay
from lockstep.sim.cosim.session import GLOBAL, Difference
from lockstep.spec import files

WAVES = 500  # cycles in the waveform, up to the difference
ROWS = 16  # cycles in the table
WIDTH = 24  # characters of a value in it
CONTROL = (".valid", ".ready")  # shown even if they stay
MOST = 12  # ports that differ, in the text; the JSON has all


def write(folder: Path, difference: Difference, replay: Replay, make: build.Make | None = None) -> dict[str, Any]:
    """Write ``report.txt``, ``report.json``, ``waves.vcd`` and ``replay.npz``; what the JSON holds is returned.

    ``make`` gives the component that the run used in place of the block's own.
    """
    folder.mkdir(parents=True, exist_ok=True)
    places = {name: folder / f"{name}.{kind}" for name, kind in dict(replay="npz", waves="vcd", report="txt").items()}
    replay.save(places["replay"])
    first = difference.ports[0]
    report = {
        "block": difference.block,
        "parameters": difference.parameters,
        "sm": difference.sm,
        "index": difference.index,
        "launch": difference.launch,
        "core_cycle": difference.core_cycle,
        "cycle": difference.cycle,
        "port": first.port,
        "model": first.model,
        "rtl": first.rtl,
        "combinational": difference.side == "c",
        "differing": [vars(port) for port in difference.ports],
        "files": {name: str(path) for name, path in places.items()},
        "again": " ".join(["python -m lockstep.sim.cosim.replay", str(places["replay"]), *_options(make)]),
    }
    with files.replacing(places["waves"]) as file:
        waves(replay, Path(file.name), make)
    _, *layout = library.load(replay.block, replay.parameters, make).layout.splitlines()
    files.write(places["report"], text(report, replay, [line.split()[0] for line in layout]))
    files.write(folder / "report.json", json.dumps(report, indent=2) + "\n")
    return report


def _options(make: build.Make | None) -> list[str]:
    """The settings with which a replay runs what the kernel did."""
    return [make.options] if isinstance(make, Gates) else []


def essentials(report: dict[str, Any]) -> str:
    """The difference in one line."""
    place = "" if report["sm"] == GLOBAL else f", SM {report['sm']}"
    cycle = f"launch {report['launch']}, core cycle {report['core_cycle']}"
    values = f"model {report['model']:#x}, RTL {report['rtl']:#x}"
    return f"{report['block']}[{report['index']}]{place}, {cycle}: {report['port']}: {values}"


def text(report: dict[str, Any], replay: Replay, elements: Sequence[str]) -> str:
    """The report as a page of text; ``elements`` are those of the record that the instance has."""
    settings = ", ".join(f"{name}={value}" for name, value in report["parameters"].items())
    differing = report["differing"]
    beside = " and the inputs that it depends on" if report["combinational"] else ""
    lines = [
        f"First difference: {essentials(report)}",
        "",
        f"block       {report['block']}({settings})",
        f"instance    {report['index']}" + ("" if report["sm"] == GLOBAL else f" of SM {report['sm']}"),
        f"cycle       {report['cycle']} of the block, core cycle {report['core_cycle']} of launch {report['launch']}",
        f"kind        {'combinational output' if report['combinational'] else 'registered output'}",
        "",
        f"{'port':40} {'model':>18} {'RTL':>18}",
        *(f"{p['port']:40} {p['model']:>#18x} {p['rtl']:>#18x}" for p in differing[:MOST]),
        *([f"and {len(differing) - MOST} more in report.json"] if len(differing) > MOST else []),
        "",
        f"The cycles before, of {_group(report['port'])}{beside}, in hexadecimal.",
        "The values are the model's, which the RTL's were until the last row.",
        "",
        *_table(elements, replay, report["port"], report["cycle"]),
        "",
        f"waveform    {report['files']['waves']} (expected_...: the model's outputs; time: 10 x core cycle)",
        f"again       {report['again']}",
    ]
    return "\n".join(lines) + "\n"


def _group(port: str) -> str:
    """The interface or port at the top of a path: ``line[0]`` of ``o.line[0].payload.words[3]``."""
    top, *below = port.split(".")[1:]
    return top if below else top.split("[")[0]


def last_cycles(replay: Replay, count: int) -> Iterator[tuple[int, Record]]:
    """The last cycles with their numbers, one record each; a reset belongs to the first of its record."""
    kept: deque[tuple[int, Record]] = deque(maxlen=count)
    cycle = 0
    for record in replay.records():
        first = max(0, record.cycles - count)  # the others would be dropped again
        kept.extend(
            (cycle + k, Record(record.io, 1, record.reset and k == 0)) for k in range(first, record.cycles)
        )
        cycle += record.cycles
    yield from kept


def _interface(elements: Sequence[str], port: str) -> dict[str, str]:
    """The elements of the interface that a port belongs to, on all sides, with their columns."""
    top = _group(port)
    inside = {element: element[2:].removeprefix(top) for element in elements if element[2:].startswith(top)}
    return {
        element: f"{element[0]}.{top}{_plain(rest)}" for element, rest in inside.items() if rest[:1] in ("", ".", "[")
    }


def _inputs(elements: Sequence[str], paths: Mapping[str, Sequence[str]], port: str) -> dict[str, str]:
    """The inputs that a port depends on in the same cycle, by a component's ``combinational``, with their columns."""
    output = _without_indices(port)
    tops = [f"i.{name}" for top, inputs in paths.items() if _below(output, f"c.{top}") for name in inputs]
    return {each: _plain(each) for each in elements if any(_below(_without_indices(each), top) for top in tops)}


def _below(path: str, top: str) -> bool:
    return f"{path}.".startswith(f"{top}.")


def _without_indices(path: str) -> str:
    return re.sub(r"\[\d+\]", "", path)


def _plain(path: str) -> str:
    """The name of a column, which holds all elements of arrays."""
    return re.sub(r"\.payload\b", "", _without_indices(path))


def _table(elements: Sequence[str], replay: Replay, port: str, cycle: int) -> Iterator[str]:
    """The last cycles of a port, or an interface, on all sides; what has not changed is left out.

    A combinational output has the inputs beside it that it depends on.
    """
    paths = getattr(registry.component(replay.block), "combinational", {})
    interface, inputs = _interface([*elements, port], port), _inputs(elements, paths, port)
    shown = inputs | interface
    always = {interface[port], *(shown[element] for element in inputs)}
    rows = [(number, _columns(record.io, shown)) for number, record in last_cycles(replay, ROWS * 16)]
    rows = [row for k, row in enumerate(rows) if k == 0 or row[1] != rows[k - 1][1] or row[0] == cycle][-ROWS:]
    names = [name for name in rows[0][1] if name.endswith(CONTROL) or len({row[name] for _, row in rows}) > 1
             or name in always]
    widths = [max(len(name), *(len(row[name]) for _, row in rows)) for name in names]
    yield "   ".join([f"{'cycle':>10}", *(f"{name:>{width}}" for name, width in zip(names, widths, strict=True))])
    for number, row in rows:
        values = (f"{row[name]:>{width}}" for name, width in zip(names, widths, strict=True))
        yield "   ".join([f"{number:>10}", *values])


def _columns(io: np.ndarray, shown: Mapping[str, str]) -> dict[str, str]:
    """The values of elements as short texts, by column."""
    columns: dict[str, list[str]] = {}
    for element, column in shown.items():
        value: Any = io
        for part in re.findall(r"\w+", element):
            value = value[int(part) if part.isdecimal() else part]
        columns.setdefault(column, []).append(f"{int(value):x}")
    return {column: _short(" ".join(values)) for column, values in columns.items()}


def _short(text: str) -> str:
    return text if len(text) <= WIDTH else f"{text[: WIDTH - 2]}.."


def waves(replay: Replay, path: Path, make: build.Make | None = None) -> None:
    """Play a replay with waves of its last cycles: a VCD file with the RTL's signals and the model's outputs.

    Time is ten times the core cycle, the rising edge at its start; without a core cycle, the block's own.
    """
    rtl = library.load(replay.block, replay.parameters, make, traced=True).instance()
    total = replay.cycles
    offset = replay.core_cycle - (total - 1) if replay.core_cycle >= 0 else 0
    try:
        cycle, start = 0, max(0, total - WAVES)
        for record in replay.records():
            if record.reset:
                rtl.shadow_reset(record.io)
            before = min(record.cycles, max(0, start - cycle))
            rtl.play(record.io, before, 3)
            for number in range(cycle + before, cycle + record.cycles):
                if number == start:
                    rtl.trace(path)
                rtl.dump(record.io, number + offset)
                if number < total - 1:
                    rtl.step(np.array(record.io))
            cycle += record.cycles
    finally:
        rtl.close()
