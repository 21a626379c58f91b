"""`lockstep synth`: cells, area, depth and clock of blocks, on an FPGA too, and their state beside the papers'."""

from __future__ import annotations

import math
from argparse import ArgumentParser, ArgumentTypeError, Namespace
from collections.abc import Iterator
from dataclasses import asdict
from typing import Any

from lockstep.cli import options as shared
from lockstep.cli.blocks import build, chosen
from lockstep.rtl import configuration, yosys
from lockstep.sim.cosim.liberty import read
from lockstep.sim.device import description
from lockstep.sim.errors import UsageError
from lockstep.sim.output import Display, check_writable, say, table
from lockstep.spec.mechanism import Mechanism
from lockstep.spec.parameters import Gpu
from lockstep.spec.processes import side_by_side
from lockstep.spec.registry import DECLARATIONS, MECHANISMS
from lockstep.synth import fpga, paper
from lockstep.synth.liberty import Library
from lockstep.synth.paper import Row
from lockstep.synth.synthesis import Margins, Synthesis, synthesise

UNITS = frozenset(each.unit for each in DECLARATIONS)  # which have other blocks inside


def arguments(to: ArgumentParser) -> None:
    shared.blocks_of_a_gpu(to)
    to.add_argument("--liberty", metavar="FILE", help="standard cells to map to; otherwise generic gates")
    to.add_argument("--period", metavar="NS", type=_amount, default=0.0, help="with --liberty: the clock period for "
                    "which cells are chosen (default: the shortest)")  # fmt: skip
    to.add_argument("--wires", metavar="PERCENT", type=_amount, default=0.0, help="with --liberty: what wires add to "
                    "the delay of each cell (default: 0)")  # fmt: skip
    to.add_argument("--uncertainty", metavar="NS", type=_amount, default=0.0, help="with --liberty: of the clock; the "
                    "critical path includes it (default: 0)")  # fmt: skip
    to.add_argument("--slow", metavar="FILE|FACTOR", help="with --liberty: the library at its slow corner, or how much "
                    "longer delays are there, such as 1.6; also times the block so")  # fmt: skip
    to.add_argument("--fpga", choices=fpga.FAMILIES, metavar="FAMILY", help=f"also place and route on an FPGA, ecp5: "
                    f"{fpga.DEVICE}; tables, memories, and MHz with wires")  # fmt: skip
    to.add_argument("--build", action="store_true", help="build memories with asynchronous reads from flip-flops")
    to.add_argument("--ports", action="store_true", help="with --liberty: the slowest paths from, to and between ports")
    shared.json(to)


def _amount(text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = -1
    if not 0 <= value < math.inf:
        raise ArgumentTypeError(f"{text!r}: must be a number, 0 or more")
    return value


def command(options: Namespace) -> int:
    check_writable(options.json)
    names = chosen(options.block)
    gpu = description.load(options.gpu, shared.settings(options))
    library = read(options.liberty) if options.liberty else None
    margins = _margins(options, library)
    if options.fpga and not fpga.installed():
        raise UsageError(f"--fpga {options.fpga} needs nextpnr: pip install 'lockstep-sm[fpga]'")
    components = {block: (build(block, gpu), build(block, gpu)) for block in names}
    with Display() as watch:
        watch.phase(f"synthesis of {', '.join(names)}")
        try:
            results = side_by_side(
                lambda both: synthesise(*both, library, options.period, options.build, margins, options.ports),
                components.values(),
            )
            done = dict(zip(components, results, strict=True))
        except yosys.YosysError as error:
            raise UsageError(f"synthesis{f' with {options.liberty}' if options.liberty else ''}: {error}") from None
        placed = dict(zip(names, _placed(names, gpu), strict=True)) if options.fpga else {}
    shares = _shares(gpu, done)
    states = {block: (result.registers, result.memories) for block, result in done.items()}
    tables = [(mechanism, paper.table(mechanism, gpu, states)) for mechanism in MECHANISMS.values()]
    if options.json != "-":
        _show_synthesis(gpu, options, done, placed)
        _show_ports(done)
        _show_shares(shares, next(iter(done.values())).area_unit)
        for mechanism, rows in tables:
            _show_paper(mechanism, rows)
    blocks = [
        {"block": block, "parameters": configuration.parameters(block, gpu), **result.json(),
         "fpga": asdict(placed[block]) if block in placed else None}
        for block, result in done.items()
    ]  # fmt: skip
    asked = {"period_nanoseconds": options.period, "wires_percent": options.wires,
             "uncertainty_nanoseconds": options.uncertainty, "slow": options.slow, "built": options.build}  # fmt: skip
    result = {"gpu": gpu.name, "liberty": options.liberty, **asked, "blocks": blocks, "shares": shares}
    shared.write(options, {**result, "paper": [row.json() for _, rows in tables for row in rows]})
    return 0


def _margins(options: Namespace, library: Library | None) -> Margins:
    if library is None:
        for name in ("period", "wires", "uncertainty", "slow"):
            if value := getattr(options, name):
                raise UsageError(f"--{name} {value}: needs --liberty, the cells that it is for")
        if options.ports:
            raise UsageError("--ports: needs --liberty, the cells that paths are timed in")
    if options.period and options.uncertainty >= options.period:
        raise UsageError(f"--uncertainty {options.uncertainty}: leaves nothing of --period {options.period}")
    slow = _slow(options.slow, library) if options.slow and library else None
    return Margins(options.wires / 100, options.uncertainty, slow)


def _slow(text: str, library: Library) -> Library | float:
    try:
        factor = float(text)
    except ValueError:
        slow = read(text, "--slow")
        if missing := sorted(library.areas.keys() - slow.areas.keys()):
            raise UsageError(f"--slow {text}: has no cell {missing[0]}, which --liberty has") from None
        return slow
    if not 1 <= factor < math.inf:
        raise UsageError(f"--slow {text}: must be a file, or a factor of 1 or more")
    return factor


def _placed(names: list[str], gpu: Gpu) -> Iterator[fpga.Placed]:
    try:
        yield from side_by_side(fpga.place, [build(block, gpu) for block in names])
    except (yosys.YosysError, fpga.PlaceError) as error:
        raise UsageError(f"--fpga: {error}") from None


def _show_synthesis(gpu: Gpu, options: Namespace, done: dict[str, Synthesis], placed: dict[str, fpga.Placed]) -> None:
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
        if options.slow:
            columns += ["at the slow corner, ns"]
            for row, result in zip(rows, done.values(), strict=True):
                row += [result.slow_path.nanoseconds if result.slow_path else ""]
    if placed:
        columns += ["FPGA LUTs", "FPGA flip-flops", "FPGA block RAMs", "FPGA MHz"]
        for row, on in zip(rows, placed.values(), strict=True):
            clock = ("" if on.megahertz is None else round(on.megahertz)) if on.fits else "does not fit"
            row += [on.luts, on.flip_flops, on.block_rams, clock]
    table(f"synthesis for {gpu.name}, {liberty or 'generic gates'}", columns, rows)
    apart = "memories that are read with the clock" if options.build else "memories"
    say(f"Area: logic and flip-flops, without wires, clock tree and {apart}. Levels: cells on the longest path, where "
        "an asynchronous read of a memory that is not made of flip-flops counts log2(words).")  # fmt: skip
    if timed:
        wires = f"with {options.wires:g} % more delay of each cell for its wire" if options.wires else (
            "with wires that have no delay")  # fmt: skip
        clock = f" and {options.uncertainty:g} ns for the clock's uncertainty" if options.uncertainty else ""
        say(f"Critical path: by OpenSTA, {wires}{clock}, between flip-flops, ports and memories' ports; "
            f"it includes neither the reset nor the access times of {apart}.")  # fmt: skip
    elif liberty:
        say("No critical path: OpenSTA (`sta`) is not installed.")
    if placed:
        say(f"FPGA: {fpga.DEVICE}, speed grade 6, by Yosys and nextpnr, with wires but without pins and clock network. "
            "LUTs: tables of four inputs, also those of carries and small memories.")  # fmt: skip
    memories = [(block, memory) for block, result in done.items() if block not in UNITS for memory in result.memories]
    if memories:
        columns = ["block", "memory", "words", "bits each", "write ports", "read ports", "of these asynchronous"]
        table("memories, counted once each however many ports they have", columns, [
            (block, memory.name, memory.depth, memory.width, memory.writes, memory.reads, memory.asynchronous)
            for block, memory in memories
        ], keys=2)  # fmt: skip


def _show_ports(done: dict[str, Synthesis]) -> None:
    rows = [
        (block, path.start, path.end, path.nanoseconds) for block, result in done.items() for path in result.ports
    ]  # fmt: skip
    if rows:
        table("slowest paths of ports, from or to flip-flops (state) with their setup time, or to a port", [
            "block", "from", "to", "ns"
        ], rows, keys=3)  # fmt: skip


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
            say(f"{row.title}: {row.reason}.", others="  ")
            continue
        say(f"{row.title}: {row.reason}", others="  ")
        for difference in row.differences:
            say(difference.what, f"  {difference.bits / 8:+10,.1f} B  ", " " * 16)


_BITS = ("rtl_bits", "memory_bits")


def _bytes(bits: int) -> float:
    return round(bits / 8, 1)


def _percent(part: float, whole: float) -> float:
    return round(100 * part / whole, 1) if whole else 0.0
