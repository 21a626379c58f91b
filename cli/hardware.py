"""The commands about the RTL behind :mod:`lockstep.cli.main`: ``blocks``, ``verilog`` and ``synth``."""

from __future__ import annotations

import importlib
import inspect
from argparse import Namespace
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lockstep.rtl import registry
from lockstep.sim.cosim.liberty import read
from lockstep.sim.device import description
from lockstep.sim.errors import UsageError
from lockstep.sim.output import Display, check_writable, table, write_json
from lockstep.spec.files import write
from lockstep.spec.mechanism import Mechanism
from lockstep.spec.parameters import Gpu
from lockstep.spec.processes import side_by_side
from lockstep.spec.registry import DECLARATIONS, MECHANISMS
from lockstep.spec.words import closest

if TYPE_CHECKING:
    from lockstep.synth.paper import Row
    from lockstep.synth.synthesis import Synthesis

UNITS = frozenset(each.unit for each in DECLARATIONS)  # which have other blocks inside


def chosen(name: str) -> list[str]:
    """The blocks that a name stands for (:func:`lockstep.rtl.registry.select`)."""
    every = registry.blocks()
    found = registry.select(name, every)
    if not found:
        suggestion = closest(name, registry.selectable(every))
        raise UsageError(f"block {name!r}: not known{suggestion}; see `lockstep blocks`")
    return found


def _gpu(options: Namespace) -> Gpu:
    return description.load(options.gpu, dict(description.parse_setting(text) for text in options.set))


def _build(block: str, gpu: Gpu) -> Any:
    from lockstep.rtl import configuration

    try:
        return configuration.build(block, gpu)
    except ValueError as error:
        raise UsageError(f"{block} on {gpu.name}: {error}") from None


# --------------------------------------------------------------------------------------------------------------- blocks


def blocks(options: Namespace) -> int:
    check_writable(options.json)
    rows = [_describe(block) for block in chosen(options.block)]
    if options.json != "-":
        columns = ("block", "port bits", "checks", "purpose")
        table("blocks; parameters and ports of one by its name, or all with --json", columns, [
            (row["block"], sum(port["width"] * port["count"] for port in row["ports"]), ", ".join(_checks(row)),
             row["purpose"])
            for row in rows
        ])  # fmt: skip
        if len(rows) == 1:
            [row] = rows
            print(row["latency"])
            table("parameters", ("name", "default", "largest"), [
                (key, value, row["largest"][key]) for key, value in row["parameters"].items()
            ])  # fmt: skip
            for proof, doc in row["proofs"].items():
                print(f"proof {proof}: {doc}")
            table("ports, beside clk and rst", ("port", "direction", "elements", "bits of each"), [
                (port["name"], port["direction"], port["count"], port["width"]) for port in row["ports"]
            ])  # fmt: skip
    _write(options, rows)
    return 0


def _checks(row: dict[str, Any]) -> list[str]:
    proofs = len(row["proofs"])
    kinds = [kind for kind in row["verification"] if kind != "formal"]
    return [*kinds, *([f"{proofs} proof{'s' if proofs > 1 else ''}"] if proofs else [])]


def _describe(block: str) -> dict[str, Any]:
    from lockstep.rtl import configuration
    from lockstep.rtl.export import Documentation
    from lockstep.rtl.flat import flat_ports

    area, _, name = block.partition(".")
    cls = registry.component(block)
    documentation = Documentation.of(cls)
    defaults = {name: argument.default for name, argument in inspect.signature(cls).parameters.items()}
    if defaults.keys() != cls.LARGEST.keys():  # type: ignore[attr-defined]
        defaults = configuration.parameters(block, description.load(description.DEFAULT))
    ports = [
        {"name": port.name, "direction": _direction(port.path), "count": port.count, "width": port.width}
        for port in flat_ports(registry.largest(block))
    ]
    folder = registry.FOLDER.parent / "verif" / area
    files = {kind: folder / f"{kind}_{name}.py" for kind in ("test", "bench", "formal")}
    return {
        "block": block,
        "area": area,
        "purpose": documentation.purpose,
        "latency": documentation.latency,
        "parameters": defaults,
        "largest": cls.LARGEST,  # type: ignore[attr-defined]
        "ports": ports,
        "combinational": getattr(cls, "combinational", {}),
        "verification": {kind: str(file) for kind, file in files.items() if file.exists()},
        "proofs": _proofs(area, name) if files["formal"].exists() else {},
    }


def _direction(path: tuple[str | int, ...]) -> str:
    return {"i": "in", "o": "out", "c": "out, combinational"}[str(path[0])]


def _proofs(area: str, name: str) -> dict[str, str]:
    """What is proved, by name, with its first sentence."""
    module = importlib.import_module(f"lockstep.verif.{area}.formal_{name}")
    return {proof: " ".join(item.doc.split()) for proof, item in module.PROOFS.items()}


# -------------------------------------------------------------------------------------------------------------- verilog


def verilog(options: Namespace) -> int:
    from lockstep.rtl import configuration, export

    check_writable(options.json)
    names = chosen(options.block)
    gpu = _gpu(options)
    folder = Path(options.output)
    if folder.exists() and not folder.is_dir():
        raise UsageError(f"-o {folder}: is not a folder")
    files = {}
    with Display() as watch:
        for block in names:
            watch.phase(f"Verilog of {block}")
            parameters = configuration.parameters(block, gpu)
            try:
                text = export.verilog(_build(block, gpu), block, parameters)
            except export.ExportError as error:
                raise UsageError(str(error)) from None
            files[f"{block.partition('.')[2]}.v"] = text
    title = f"lockstep_{options.block.replace('.', '_')}.core"
    files[title] = export.core(names, options.block.rpartition(".")[2])
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for name, text in files.items():
            write(folder / name, text)
    except OSError as error:
        raise UsageError(f"-o {folder}: {error.strerror}") from None
    if options.json != "-":
        print(f"{len(names)} block{'s' if len(names) > 1 else ''} of {gpu.name} and {title} written to {folder}")
    _write(options, {"gpu": gpu.name, "blocks": names, "files": [str(folder / name) for name in files]})
    return 0


# ---------------------------------------------------------------------------------------------------------------- synth


def synth(options: Namespace) -> int:
    from lockstep.rtl import configuration, yosys
    from lockstep.synth import paper
    from lockstep.synth.synthesis import synthesise

    check_writable(options.json)
    names = chosen(options.block)
    gpu = _gpu(options)
    library = read(options.liberty) if options.liberty else None
    if options.period < 0 or (options.period and library is None):
        raise UsageError(f"--period {options.period}: needs --liberty, the cells that it is for")
    components = {block: (_build(block, gpu), _build(block, gpu)) for block in names}
    with Display() as watch:
        watch.phase(f"synthesis of {', '.join(names)}")
        aims = library, options.period, options.build
        try:
            results = side_by_side(lambda both: synthesise(*both, *aims), components.values())
            done = dict(zip(components, results, strict=True))
        except yosys.YosysError as error:
            raise UsageError(f"synthesis{f' with {options.liberty}' if options.liberty else ''}: {error}") from None
    shares = _shares(gpu, done)
    states = {block: (result.registers, result.memories) for block, result in done.items()}
    tables = [(mechanism, paper.table(mechanism, gpu, states)) for mechanism in MECHANISMS.values()]
    if options.json != "-":
        _show_synthesis(gpu, options, done)
        _show_shares(shares, next(iter(done.values())).area_unit)
        for mechanism, rows in tables:
            _show_paper(mechanism, rows)
    blocks = [
        {"block": block, "parameters": configuration.parameters(block, gpu), **result.json()}
        for block, result in done.items()
    ]
    asked = {"period_nanoseconds": options.period, "built": options.build}
    result = {"gpu": gpu.name, "liberty": options.liberty, **asked, "blocks": blocks, "shares": shares}
    _write(options, {**result, "paper": [row.json() for _, rows in tables for row in rows]})
    return 0


def _show_synthesis(gpu: Gpu, options: Namespace, done: dict[str, Synthesis]) -> None:
    liberty = options.liberty
    unit = next(iter(done.values())).area_unit
    columns = ["block", "cells", f"area, {unit}", "flip-flops' %", "register bits", "memory bits", "levels"]
    rows: list[list[Any]] = [
        [block, result.cells, round(result.area), _percent(result.sequential_area, result.area), result.register_bits,
         result.memory_bits, result.levels]
        for block, result in done.items()
    ]  # fmt: skip
    timed = any(result.critical_path for result in done.values())
    if timed:
        columns += ["critical path, ns", "MHz"]
        for row, result in zip(rows, done.values(), strict=True):
            period = result.critical_path.nanoseconds if result.critical_path else 0
            row += [period, round(1000 / period)] if period else ["", ""]
    table(f"synthesis for {gpu.name}, {liberty or 'generic gates'}", columns, rows)
    apart = "memories that are read with the clock" if options.build else "memories"
    print(f"Area: logic and flip-flops, without wires, clock tree and {apart}. Levels: cells on the longest path,")
    print("where an asynchronous read of a memory that is none of flip-flops counts log2(words).")
    if timed:
        print("Critical path: OpenSTA's, with wires of no delay, from and to flip-flops, ports and memories' ports;")
        print(f"the reset and the access times of {apart} are not in it.")
    elif liberty:
        print("No critical path: OpenSTA (`sta`) is not installed.")
    memories = [(block, memory) for block, result in done.items() if block not in UNITS for memory in result.memories]
    if memories:
        columns = ["block", "memory", "words", "bits each", "write ports", "read ports", "of these asynchronous"]
        table("memories, counted once each however many ports they have", columns, [
            (block, memory.name, memory.depth, memory.width, memory.writes, memory.reads, memory.asynchronous)
            for block, memory in memories
        ])  # fmt: skip


def _show_shares(shares: list[dict[str, Any]], unit: str) -> None:
    columns = ("block", "instances", f"area, {unit}", "% of the area", "% of the state in memories")
    for name in dict.fromkeys(share["mechanism"] for share in shares):
        of = "on the GPU" if MECHANISMS[name].whole else "per SM"
        table(f"{name} {of}: where its area is, without wires and memories", columns, [
            (share["block"], share["instances"], round(share["area"]), share["area_percent"], share["memory_percent"])
            for share in shares if share["mechanism"] == name
        ])  # fmt: skip


def _shares(gpu: Gpu, done: dict[str, Synthesis]) -> list[dict[str, Any]]:
    """Each block's part of its mechanism, largest first, where several blocks of one were synthesised.

    It is that in an SM, or, if the GPU has one of some block, that in the GPU.
    """
    return [share for mechanism in MECHANISMS.values() for share in _shares_of(mechanism, gpu, done)]


def _shares_of(mechanism: Mechanism, gpu: Gpu, done: dict[str, Synthesis]) -> Iterator[dict[str, Any]]:
    own = [block for block in mechanism.blocks if block in done]
    if len(own) < 2:
        return
    sms = gpu.core.sms if mechanism.whole else 1
    copies = {block: mechanism.instances(block, gpu) * (1 if block in mechanism.whole else sms) for block in own}
    areas = {block: copies[block] * done[block].area for block in own}
    for block in sorted(own, key=lambda block: -areas[block]):
        yield {
            "mechanism": mechanism.name, "block": block, "instances": copies[block], "area": areas[block],
            "area_percent": _percent(areas[block], sum(areas.values())),
            "memory_percent": _percent(done[block].memory_bits, done[block].memory_bits + done[block].register_bits),
        }  # fmt: skip


def _show_paper(mechanism: Mechanism, rows: list[Row]) -> None:
    if not rows or mechanism.storage is None:
        return
    counted = [row for row in rows if row.paper_bits is not None]
    lines = [(row.title, row.paper_bits, row.rtl_bits, row.memory_bits) for row in rows]
    sums = (sum(row.paper_bits or 0 for row in counted), *(sum(getattr(row, key) for row in counted) for key in _BITS))
    columns = ("structure", "paper", "RTL", "difference", "of the RTL in memories")
    table(f"state of {mechanism.name} per SM beside {mechanism.storage.source}, in bytes", columns, [
        (title, "" if paper is None else _bytes(paper), _bytes(rtl), "" if paper is None else _bytes(rtl - paper),
         _bytes(memory))
        for title, paper, rtl, memory in [*lines, ("sum of the table's", *sums)]
    ])  # fmt: skip
    for row in rows:
        if row.paper_bits is None:
            print(f"{row.title}: {row.reason}.")
            continue
        print(f"{row.title}: {row.reason}")
        for difference in row.differences:
            print(f"  {difference.bits / 8:+10,.1f} B  {difference.what}")


_BITS = ("rtl_bits", "memory_bits")


def _bytes(bits: int) -> float:
    return round(bits / 8, 1)


def _percent(part: float, whole: float) -> float:
    return round(100 * part / whole, 1) if whole else 0.0


def _write(options: Namespace, value: Any) -> None:
    if options.json:
        write_json(options.json, value)
        if options.json != "-":
            print(f"written to {options.json}")
