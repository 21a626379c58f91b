"""`lockstep diff`: how two saved runs differ, and where the cycles went."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from collections.abc import Mapping, Sequence
from typing import Any

from lockstep.cli import options as shared
from lockstep.sim.errors import UsageError
from lockstep.sim.output import check_writable, say, table
from lockstep.sim.study.difference import Row, difference
from lockstep.sim.study.energy import DEFAULT
from lockstep.sim.study.saved import Saved, read
from lockstep.spec.statistics import CYCLES

SHOWN = 10  # statistics of cycles, and as many others

# What is shown of each of two kernels.
OF_A_KERNEL = (
    "issue.ipc", "issue.warp_instructions", "occupancy.warps", "l1.accesses", "l1.miss_rate", "l1.lat_rt_core_cycles",
    "l2.accesses", "l2.miss_rate", "dram.read_bytes", "dram.written_bytes", "dram.row_hit_rate", "dram.bandwidth_used",
)  # fmt: skip


def arguments(to: ArgumentParser) -> None:
    for name in ("first", "second"):
        to.add_argument(name, metavar="RUN.json", help="output of `lockstep run --json`")
    shared.json(to)


def command(options: Namespace) -> int:
    check_writable(options.json)
    found = difference(*(_only(file) for file in (options.first, options.second)))
    if options.json != "-":
        _show(found)
    shared.write(options, found)
    return 0


def _only(file: str) -> Saved:
    runs = read(file)
    if len(runs) > 1:
        raise UsageError(f"{file}: has {len(runs)} runs; diff compares files with one run (`lockstep run --json`)")
    return runs[0]


def _show(found: Mapping[str, Any]) -> None:
    for name in ("first", "second"):
        say(found[name], f"{name:6}  ", " " * 8)
    for note in found["notes"]:
        say(note, "! ", "  ")
    if rows := found["configuration"]:
        _table("Configuration:", ("first", "second", "parameter"), [
            (_or_none(row["first"]), _or_none(row["second"]), f"{row['parameter']}: {_meaning(row)}") for row in rows
        ])  # fmt: skip
    else:
        print("The configurations are equal.")
    cycles = found["cycles"]
    title = f"{cycles['first']:,} and {cycles['second']:,} cycles ({_change(cycles)}). What a mean SM did in them:"
    _show_parts(title, found["breakdown"])
    if found["stalls"]:
        _show_parts("Cycles of all warps, by what each waited for:", found["stalls"])
    if found["energy"]:
        _table(f"Energy at {DEFAULT} of what is counted (docs/energy.md), nJ:", ("first", "second", "change", ""), [
            (row["first"] / 1e6, row["second"] / 1e6, _change(row), row["part"]) for row in found["energy"]
        ])  # fmt: skip
    for kernel in found["kernels"]:
        _show_kernel(kernel)
    statistics = found["statistics"]
    if not statistics:
        print("All statistics are equal.")
        return
    of_cycles = [row for row in statistics if row["unit"] == CYCLES]
    others = [row for row in statistics if row["unit"] != CYCLES]
    chosen = [*of_cycles[:SHOWN], *others[:SHOWN]]
    _table("Statistics that differ most, core cycles of all SMs, then others:", (
        "first", "second", "change", "statistic"), [
        (row["first"], row["second"], _change(row), f"{row['statistic']}: {row['meaning']}") for row in chosen
    ])  # fmt: skip
    if left := len(statistics) - len(chosen):
        print(f"Not shown: {left} more statistics that differ (--json has all).")


def _show_kernel(kernel: Mapping[str, Any]) -> None:
    """One of two kernels at once; or a kernel that ran alone, and beside another."""
    cycles = kernel["cycles"]
    title = f"{kernel['kernel']}: {cycles['first']:,} and {cycles['second']:,} core cycles of its launches"
    chosen = [row for row in kernel["statistics"] if row["statistic"] in OF_A_KERNEL]
    if not chosen:
        say(f"{title}; what is shown of it is equal", "", "  ")
        return
    _table(f"{title} ({_change(cycles)}):", ("first", "second", "change", "statistic"), [
        (row["first"], row["second"], _change(row), f"{row['statistic']}: {row['meaning']}")
        for row in sorted(chosen, key=lambda row: OF_A_KERNEL.index(row["statistic"]))
    ])  # fmt: skip


def _show_parts(title: str, rows: list[Row]) -> None:
    _table(title, ("first", "second", "difference", ""), [
        (round(row["first"]), round(row["second"]), f"{row['difference']:+,.0f}", row["part"]) for row in rows
    ])  # fmt: skip


def _table(title: str, columns: Sequence[str], rows: list[tuple[Any, ...]]) -> None:
    print()
    table(title, columns, rows)


def _or_none(value: Any) -> Any:
    return "-" if value is None else value


def _meaning(row: Row) -> str:
    return f"{row['meaning']} ({row['unit']})" if row["unit"] else row["meaning"]


def _change(row: Row) -> str:
    left, right = row["first"], row["second"]
    if not left:
        return "from 0"
    return f"{right / left - 1:+.1%}" if right < 10 * left else f"{right / left:,.0f} times"
