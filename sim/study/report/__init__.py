"""Reports: one page of plots and tables about one run or several, from what `lockstep run --json` has written."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import accumulate, groupby
from string import ascii_uppercase
from typing import Any

from lockstep.sim.device.profile import hot_lines
from lockstep.sim.errors import UsageError
from lockstep.sim.study import saved
from lockstep.sim.study.comparison import BASELINE
from lockstep.sim.study.energy import Process, account, load, parts
from lockstep.sim.study.page import Command, Page, Plot, Table, Text
from lockstep.sim.study.report import plots
from lockstep.sim.study.saved import Saved, outcomes

MOST = len(ascii_uppercase)  # runs of one page
HOT = 12  # lines of a function
CHECKED = {True: "right", False: "WRONG", None: "not checked"}


@dataclass(frozen=True)
class Subject:
    """One run of a report, ``letter`` in plots and tables; ``name`` says what it is, as far as the runs differ."""

    letter: str
    name: str
    result: Saved

    def __getitem__(self, statistic: str) -> float:
        return float(self.result["stats"][statistic])

    @property
    def kernel(self) -> str:
        return str(self.result["kernel"])

    @property
    def label(self) -> str:
        return f"{self.letter}: {self.name}"

    def value(self, parameter: str) -> float:
        """A parameter of its GPU."""
        return float(self.result["configuration"][parameter])

    @property
    def microseconds(self) -> float:
        """Simulated time."""
        return float(self.result["cycles"]) / self.value("clocks.core")


def read(files: Sequence[str]) -> list[Saved]:
    """The runs in some files. Raises :class:`UsageError`."""
    found = [run for file in files for run in saved.read(file)]
    if len(found) > MOST:
        raise UsageError(f"{len(found)} runs: a report shows at most {MOST}")
    return found


def page(results: Sequence[Saved]) -> Page:
    """The report of some runs."""
    named = zip(ascii_uppercase, _names(results), results, strict=False)
    runs = [Subject(letter, name, result) for letter, name, result in named]
    kernels = list(dict.fromkeys(run.kernel for run in runs))
    title = f"{', '.join(kernels[:4])}{' and others' if len(kernels) > 4 else ''}: {len(runs)} run"
    blocks: list[Text | Table | Plot | Command] = [
        _runs(runs),
        *_cycles(runs),
        *_over_time(runs),
        *_beside(runs),
        *_requests(runs),
        *_scratchpad(runs),
        *_roofline(runs),
        *_energy(runs),
        *_hot(runs),
        *_reproduction(runs),
    ]
    return Page(title + ("s" if len(runs) > 1 else ""), blocks)


def _names(results: Sequence[Saved]) -> list[str]:
    """The kernel of each run, and what else not all runs have in common."""

    def parts(result: Saved) -> dict[str, str]:
        settings = " ".join(f"{key}={value}" for key, value in result["settings"].items())
        return {"kernel": result["kernel"], "size": result["size"], "gpu": result["gpu"],
                "with": "+".join(result["mechanisms"]) or BASELINE, "settings": settings}  # fmt: skip

    every = [parts(result) for result in results]
    shown = [key for key in every[0] if key == "kernel" or len({each[key] for each in every}) > 1]
    return [", ".join(filter(None, (each[key] for key in shown))) for each in every]


# ----------------------------------------------------------------------------------------------------------- what it h


def _runs(runs: Sequence[Subject]) -> Table:
    first = {run.kernel: run for run in reversed(runs)}
    columns = ("", "run", "core cycles", "microseconds", "speed-up", "IPC", "lanes", "occupancy", "L1 misses",
               "L2 misses", "DRAM used", "result")  # fmt: skip
    rows = [
        (run.letter, run.name, run.result["cycles"], run.microseconds,
         run.microseconds and first[run.kernel].microseconds / run.microseconds, run.result["ipc"], run["issue.lanes"],
         run["occupancy.ratio"], run["l1.miss_rate"], run["l2.miss_rate"], run["dram.bandwidth_used"],
         CHECKED[None if "trace" in run.result else run.result["checked"]])
        for run in runs
    ]  # fmt: skip
    return Table("runs", "Runs; speed-up in time, against the kernel's first run", columns, rows)


def _cycles(runs: Sequence[Subject]) -> Iterator[Text | Table | Plot]:
    yield Text("Where the cycles go", 2)
    yield Text(
        "Cycles of all SMs, by what each SM did. *issued*: at least one instruction; *memory*: all warps wait for "
        "memory or at a barrier; *memory, blocked*: likewise, or the load/store unit does not accept their accesses; "
        "*pipelines*: ready warps find no free pipeline, or an issue takes several cycles; *other*: warps wait for "
        "other results, barriers, fetches or mechanisms; *no CTA*: the SM has no work yet, or none left."
    )
    done = {run.label: outcomes(run.result) for run in runs}
    scale = {run.label: _first(runs, run)["gpu.core_cycles"] * run.value("core.sms") for run in runs}
    yield Plot("cycles", "Cycles of the SMs, relative to the kernel's first run", partial(plots.stacked, done, scale))
    yield _stacked_table("cycles", "Cycles of all SMs", done)
    waits = {run.label: _warp_cycles(run) for run in runs if "profile" in run.result}
    if waits:
        yield Text("What warps wait for", 2)
        yield Text("Cycles of all warps, by whether they issued or what they waited for (docs/profiles.md).")
        totals = {label: sum(each.values()) for label, each in waits.items()}
        yield Plot("waits", "Share of each run's warp cycles, by cause", partial(plots.stacked, waits, totals))
        yield _stacked_table("waits", "Warp cycles", waits)


def _first(runs: Sequence[Subject], run: Subject) -> Subject:
    return next(each for each in runs if each.kernel == run.kernel)


GROUPS = {
    "memory": ("memory",),
    "LSU full": ("lsu",),
    "scratchpad": ("scratchpad",),
    "constants": ("constants", "constant_cache"),
    "arithmetic": ("arithmetic", "operands", "pipeline"),
    "barriers": ("barrier",),
    "branches, fetch": ("branch", "fetch", "instruction_cache"),
    "register staging": ("capacity", "preloads", "metadata", "draining"),
    "not selected": ("not_selected", "mechanism", "share"),
}
"""Causes of a profile that are shown as one."""


def _grouped(issues: float, stalls: Mapping[str, float]) -> dict[str, float]:
    return {"issued": issues} | {name: sum(stalls.get(cause, 0) for cause in group) for name, group in GROUPS.items()}


def _warp_cycles(run: Subject) -> dict[str, float]:
    functions = run.result["profile"]["functions"]
    each = [_grouped(function["issues"], function["stalls"]) for function in functions]
    return {name: sum(one[name] for one in each) for name in _grouped(0, {})}


def _stacked_table(key: str, title: str, values: Mapping[str, Mapping[str, float]]) -> Table:
    names = list(next(iter(values.values())))
    rows = [(label, *(int(each[name]) for name in names)) for label, each in values.items()]
    return Table(key, title, ("run", *names), rows)


OVER_TIME = {"ipc": "IPC", "occupancy.warps": "occupancy", "dram.bandwidth_used": "DRAM used"}
"""The values shown over time, by their keys in a timeline."""


def _over_time(runs: Sequence[Subject]) -> Iterator[Text | Plot]:
    yield Text("Over time", 2)
    yield Text(
        "Instructions per core cycle of the whole GPU; occupancy, the share of its warp slots that an SM uses while it "
        "has a CTA; and the share of the time in which the DRAM's data buses are busy. Each value is the mean of an "
        "interval; launches follow each other."
    )
    grouped = groupby(sorted(runs, key=lambda run: run.kernel), key=lambda run: run.kernel)
    for number, (kernel, own) in enumerate(grouped):
        series = {run.letter: _series(run) for run in own}
        yield Plot(f"time-{number}", f"{kernel} over time", partial(plots.over_time, series, OVER_TIME))


def _series(run: Subject) -> plots.Series:
    """A run's timeline, its launches one behind the other; the scale of each value makes it what the table shows."""
    end, series = 0.0, plots.Series([], {name: [] for name in OVER_TIME})
    for launch in run.result["timeline"]:
        series.cycles += [end + cycle for cycle in launch["core_cycle"]]
        end += launch["core_cycle"][-1] if launch["core_cycle"] else 0
        for name, values in series.values.items():
            scale = run.value("core.warps") if name == "occupancy.warps" else 1
            values += [value / scale for value in launch[name]]
    return series


PARTS = {
    "warp instructions": ("issue.warp_instructions",),
    "resident warps": ("occupancy.warps", "sm.active_core_cycles"),
    "L1 accesses": ("l1.accesses",),
    "L2 accesses": ("l2.accesses",),
    "crossbar bytes": ("crossbar.requests_bytes", "crossbar.replies_bytes"),
    "DRAM bytes": ("dram.read_bytes", "dram.written_bytes"),
}
"""What two kernels divide among them; of resident warps, their number times how long they are there."""

PRODUCTS = ("resident warps",)


def _beside(runs: Sequence[Subject]) -> Iterator[Text | Table | Plot]:
    pairs = [run for run in runs if run.result.get("kernels")]
    if not pairs:
        return
    yield Text("Two kernels at once", 2)
    yield Text(
        "When each kernel's launches ran, and what each has of the GPU: its instructions per core cycle, the share of "
        "all warp slots that its warps hold, and the share of the time in which the DRAM's data buses are busy for it. "
        "A miss, a fetch or a line that is written back counts for the kernel whose request causes it. *IPC beside* is "
        "up to the end of the kernel that ends first; *of alone* compares it with a run of the kernel alone, if one of "
        "the same size, seed and GPU is here."
    )
    alone = {_input(run.result): float(run.result["ipc"]) for run in reversed(runs) if "kernels" not in run.result}
    for run in pairs:
        kernels = {f"{number}: {each['kernel']}": each for number, each in enumerate(run.result["kernels"], 1)}
        spans = {label: each["spans"] for label, each in kernels.items()}
        series = {label: _of_kernel(each) for label, each in kernels.items()}
        drawn = partial(plots.beside, spans, series, {"ipc": "IPC", "occupancy": "warp slots", "dram": "DRAM used"})
        yield Plot(f"beside-{run.letter}", f"{run.label}: both kernels over time", drawn)
        parts = {name: {label: _product(each["stats"], names, name) for label, each in kernels.items()}
                 for name, names in PARTS.items()}  # fmt: skip
        used = {name: each for name, each in parts.items() if any(each.values())}
        if used:
            drawn = partial(plots.stacked, used, {name: sum(each.values()) for name, each in used.items()})
            yield Plot(f"parts-{run.letter}", f"{run.label}: what each kernel has", drawn)
        columns = ("kernel", "size", "repetitions", "launches", "core cycles", "from", "to", "IPC", "IPC beside",
                   "of alone", "warps of an SM", "L1 misses", "L2 misses", "DRAM bytes", "DRAM used",
                   "result")  # fmt: skip
        beside = (run.result.get("both") or {}).get("ipc", (None, None))
        rows = []
        for (label, each), ipc in zip(kernels.items(), beside, strict=True):
            usual = alone.get(_input({**each, "gpu": run.result["gpu"]}))
            rows.append(_row(label, each, (ipc, ipc / usual if ipc is not None and usual else None)))
        title = f"{run.letter}: each kernel; core cycles and IPC of its launches"
        yield Table(f"beside-{run.letter}", title, columns, rows)


def _input(run: Saved) -> tuple[Any, ...]:
    """What ran, and on which GPU."""
    return tuple(run.get(key) for key in ("kernel", "size", "seed", "gpu"))


def _row(label: str, kernel: Saved, beside: tuple[float | None, float | None]) -> tuple[Any, ...]:
    stats, spans = kernel["stats"], kernel["spans"]
    ends = (spans[0][0], spans[-1][1]) if spans else (None, None)
    names = ("occupancy.warps", "l1.miss_rate", "l2.miss_rate")
    moved = [sum(stats[name] for name in PARTS["DRAM bytes"]), stats["dram.bandwidth_used"]] if spans else [None, None]
    values = [stats[name] if spans else None for name in names]
    return (label, kernel["size"], len(kernel.get("repetitions", [1])), kernel["launches"], kernel["cycles"], *ends,
            kernel["ipc"], *beside, *values, *moved, CHECKED[kernel["checked"]])  # fmt: skip


def _product(stats: Mapping[str, float], names: Sequence[str], what: str) -> float:
    values = [stats[name] if stats else 0.0 for name in names]
    return values[0] * values[1] if what in PRODUCTS else sum(values)


def _of_kernel(kernel: Saved) -> plots.Series:
    """A kernel's timeline, the runs in which it was one behind the other."""
    names = {"ipc": "ipc", "occupancy": "occupancy", "dram": "dram.bandwidth_used"}
    end, series = 0.0, plots.Series([], {name: [] for name in names})
    for launch in kernel["timeline"]:
        series.cycles += [end + cycle for cycle in launch["core_cycle"]]
        end += launch["core_cycle"][-1] if launch["core_cycle"] else 0
        for name, key in names.items():
            series.values[name] += launch[key]
    return series


LEVELS = {
    "memory instructions": ("lsu.instructions",),
    "coalescer": ("lsu.requests",),
    "path to the L1": ("l1.accesses",),
    "L1 to L2": ("crossbar.requests_packets",),
    "L2 to DRAM": ("dram.reads", "dram.writes"),
}
"""The requests that leave each level, by its statistics."""


def _requests(runs: Sequence[Subject]) -> Iterator[Text | Table | Plot]:
    yield Text("Requests that survive each level", 2)
    yield Text(
        "Warp instructions that need the L1; the lines that the coalescer makes of them; those that remain after "
        "merging on the path to the L1; the requests that L1s, instruction and constant caches send to the L2; "
        "the sectors that the L2 reads from DRAM and writes to it."
    )
    levels = {run.label: {name: sum(run[each] for each in parts) for name, parts in LEVELS.items()} for run in runs}
    if any(each["coalescer"] for each in levels.values()):
        yield Plot(
            "requests", "Requests, relative to the lines of the coalescer", partial(plots.levels, levels, "coalescer")
        )
    yield _stacked_table("requests", "Requests", levels)


def _scratchpad(runs: Sequence[Subject]) -> Iterator[Text | Table]:
    used = [run for run in runs if run["scratchpad.accesses"]]
    if used:
        yield Text("Scratchpad", 2)
        columns = ("run", "accesses", "conflict cycles", "cycles per access")
        yield Table("scratchpad", "Bank conflicts; an access without one takes a cycle", columns, [
            (run.label, int(run["scratchpad.accesses"]), int(run["scratchpad.conflict_core_cycles"]),
             1 + run["scratchpad.conflict_core_cycles"] / run["scratchpad.accesses"]) for run in used
        ])  # fmt: skip


def _energy(runs: Sequence[Subject]) -> Iterator[Text | Table | Plot]:
    process = load()
    accounts = {run.label: account(run.result, process) for run in runs}
    names = dict.fromkeys(name for found in accounts.values() for name in found.energies)
    joules = {label: {name: float(found.energies.get(name, 0)) for name in names} for label, found in accounts.items()}
    yield Text("Energy", 2)
    yield Text(
        f"What the events of each run take at {process.node_nm:g} nm and {process.voltage:g} V, as in `lockstep "
        "energy`. It is not the energy of a GPU, since many events have none (docs/energy.md): compare a component "
        "across runs."
    )
    scale = {run.label: float(accounts[_first(runs, run).label].total) for run in runs}
    yield Plot("energy", "Energy, relative to the kernel's first run", partial(plots.stacked, joules, scale))
    yield Table("energy", "Energy, nanojoules", ("run", *names, "total"), [
        (label, *(energy / 1e6 for energy in each.values()), accounts[label].total / 1e6)
        for label, each in joules.items()
    ])  # fmt: skip
    recorded = [run for run in runs if run.result.get("events")]
    if recorded:
        series = {run.letter: _milliwatts(run, process) for run in recorded}
        drawn = partial(plots.over_time, series, {"milliwatts": "mW"})
        yield Plot("power", "Mean power of what is counted, in each interval; launches follow each other", drawn)


def _milliwatts(run: Subject, process: Process) -> plots.Series:
    found = parts(run.result, process, "interval")
    ends = accumulate(float(part.cycles) for part in found)
    return plots.Series([*ends], {"milliwatts": [part.milliwatts(run.value("clocks.core")) for part in found]})


def _roofline(runs: Sequence[Subject]) -> Iterator[Text | Table | Plot]:
    used = (run for run in runs if run.result["warp_instructions"])
    points = {run.label: _point(run) for run in used if run["dram.read_bytes"] + run["dram.written_bytes"]}
    if not points:
        return
    yield Text("Roofline", 2)
    yield Text(
        "Warp instructions per second over warp instructions per byte of DRAM. No run can be above its GPU's "
        "roof: on the slope all data buses are busy; on the level part all schedulers issue whenever they can."
    )
    roofs = {run.result["gpu"]: _roof(run) for run in reversed(runs)}
    yield Plot("roofline", "Roofline", partial(plots.roofline, points, roofs))
    columns = ("run", "instructions per byte", "billion instructions per second", "of the roof")
    yield Table("roofline", "Roofline: warp instructions", columns, [
        (run.label, *points[run.label], points[run.label][1] / _under(_roof(run), points[run.label][0]))
        for run in runs if run.label in points
    ])  # fmt: skip


def _point(run: Subject) -> tuple[float, float]:
    """Warp instructions per byte of DRAM, and billions of them per second."""
    instructions = float(run.result["warp_instructions"])
    return instructions / (run["dram.read_bytes"] + run["dram.written_bytes"]), instructions / run.microseconds / 1000


def _roof(run: Subject) -> tuple[float, float]:
    """Thousand million bytes, and warp instructions, per second at most."""
    interval = max(run.value("core.issue_interval"), run.value("core.scheduler_overhead"))
    issue = run.value("core.sms") * run.value("core.schedulers") / interval * run.value("clocks.core") / 1000
    return 2 * run.value("dram.channels") * run.value("dram.bus_bytes") * run.value("clocks.dram") / 1000, issue


def _under(roof: tuple[float, float], intensity: float) -> float:
    return min(roof[0] * intensity, roof[1])


def _hot(runs: Sequence[Subject]) -> Iterator[Text | Table | Plot]:
    profiled = [run for run in runs if "profile" in run.result]
    if not profiled:
        return
    yield Text("Hot lines", 2)
    yield Text("The lines of the source that take the most warp cycles, and what their warps wait for.")
    for run in profiled:
        for number, function in enumerate(run.result["profile"]["functions"]):
            key = f"hot-{run.letter}-{number}"
            title, columns, rows = hot_lines(function, HOT)
            text = columns.index("text")
            lines = {
                f"{row[0]}  {row[text]}": _grouped(line["issues"], line["stalls"])
                for row, line in zip(rows, function["lines"], strict=False)
            }
            yield Plot(key, f"{run.label}: {function['kernel']}, share of its warp cycles",
                       partial(plots.stacked, lines,
                               dict.fromkeys(lines, function["warp_cycles"]), code=True))  # fmt: skip
            yield Table(key, f"{run.letter}: {title}", columns, rows)


def _reproduction(runs: Sequence[Subject]) -> Iterator[Text | Table | Command]:
    yield Text("Reproducing the runs", 2)
    for run in runs:
        if run.result["command"]:
            yield Command(f"{run.label} (Lockstep {run.result['code_version']})", run.result["command"])
    configurations = [run.result["configuration"] for run in runs]
    names = list(dict.fromkeys(name for each in configurations for name in each))
    letters = [run.letter for run in runs]
    rows = [(name, *(each.get(name) for each in configurations)) for name in names]
    different = [row for row in rows if len(set(map(str, row[1:]))) > 1]
    if different:
        yield Table("different", "Parameters in which the runs differ", ("parameter", *letters), different)
    yield Table("configuration", "All parameters", ("parameter", *letters), rows, folded=True)
