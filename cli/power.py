"""`lockstep power`: statistical models of the power of kernels."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace

from lockstep.cli import options as shared
from lockstep.sim.errors import UsageError
from lockstep.sim.output import Display, check_writable, say, table, write_json, write_text
from lockstep.sim.study import page
from lockstep.sim.study.energy import DEFAULT
from lockstep.sim.study.energy import load as load_process
from lockstep.sim.study.power import models
from lockstep.sim.study.power.characteristics import read_recorded
from lockstep.sim.study.power.characteristics import sample as sample_of
from lockstep.sim.study.power.report import report
from lockstep.sim.study.power.sample import Sample, large_enough, note, read, text
from lockstep.sim.study.saved import read as read_runs

SEEDS = 10


def arguments(to: ArgumentParser) -> None:
    steps = to.add_subparsers(dest="step", required=True, metavar="STEP")

    def step(name: str, meaning: str) -> ArgumentParser:
        return steps.add_parser(name, help=meaning, description=meaning, allow_abbrev=False)

    features = step("features", "Write the characteristics and watts of saved runs as a sample, a CSV file.")
    shared.saved_runs(features)
    features.add_argument("-o", dest="output", metavar="FILE.csv", default="-", help="the sample (default: -, standard "
                          "output)")  # fmt: skip
    features.add_argument("--watts", metavar="FILE.csv", help="watts that `python -m lockstep.verif.silicon power` "
                          "recorded (default: of the event model)")  # fmt: skip
    features.add_argument("--process", metavar="NAME|FILE.toml", default=DEFAULT, help="energies of the event model "
                          f"(default: {DEFAULT})")  # fmt: skip
    features.add_argument("--per-second", action="store_true", help="counts per second in place of totals")

    fit = step("fit", "Fit a forest, a tree and a linear model to a sample.")
    _sample(fit)
    fit.add_argument("-o", dest="output", metavar="FILE.json", default="power.json", help="the models (default: "
                     "power.json)")  # fmt: skip
    _forest(fit)

    predict = step("predict", "Predict the watts of kernels from their characteristics.")
    predict.add_argument("model", metavar="MODEL.json", help="of `lockstep power fit`")
    predict.add_argument("sample", metavar="SAMPLE.csv", help="characteristics; watts, if there are any, are shown")
    shared.json(predict)

    found = step("report", "Show how good the models of a sample are, and what they say, on a page.")
    _sample(found)
    found.add_argument("-o", dest="output", metavar="FILE.html", default="power.html", help="the page (default: "
                       "power.html)")  # fmt: skip
    _forest(found)
    found.add_argument("--seeds", type=int, default=SEEDS, metavar="N", help="seeds over which the forest's error is "
                       f"given (default: {SEEDS})")  # fmt: skip
    found.add_argument("--at-mean", action="store_true", help="partial dependence with all other characteristics at "
                       "their means, in place of a mean over the kernels")  # fmt: skip
    shared.json(found)


def _sample(to: ArgumentParser) -> None:
    to.add_argument("sample", metavar="SAMPLE.csv", help="kernels, watts and characteristics: see docs/power.md")


def _forest(to: ArgumentParser) -> None:
    to.add_argument("--trees", type=int, default=models.TREES, metavar="N",
                    help=f"of the forest (default: {models.TREES})")  # fmt: skip
    shared.seed(to, "seed of the forest")


def command(options: Namespace) -> int:
    return {"features": _features, "fit": _fit, "predict": _predict, "report": _report}[options.step](options)


def _features(options: Namespace) -> int:
    check_writable(options.output)
    process = load_process(options.process)
    recorded = read_recorded(options.watts) if options.watts else None
    runs = [run for file in options.files for run in read_runs(file)]
    _write(options.output, text(sample_of(runs, process, recorded, options.per_second)))
    return 0


def _read(options: Namespace) -> Sample:
    check_writable(options.output)
    if options.trees < 1:
        raise UsageError("--trees must be at least 1")
    return large_enough(options.sample, read(options.sample))


def _fit(options: Namespace) -> int:
    sample = _read(options)
    fitted = models.fit(sample, options.trees, options.seed)
    write_json(options.output, fitted.as_json())
    if options.output != "-":
        say(f"{len(sample.kernels)} kernels, {options.trees} trees, seed {options.seed}. {sample.note}")
        print(f"written to {options.output}")
    return 0


def _predict(options: Namespace) -> int:
    check_writable(options.json)
    fitted = models.load(options.model)
    sample = read(options.sample, watts=False)
    if missing := [name for name in fitted.characteristics if name not in sample.characteristics]:
        raise UsageError(f"{options.sample}: has no column {missing[0]!r}, which {options.model} was fitted to")
    places = [sample.characteristics.index(name) for name in fitted.characteristics]
    predicted = fitted.predict(sample.values[:, places])
    columns = {"kernel": list(sample.kernels), **{name: each.tolist() for name, each in predicted.items()}}
    if sample.watts is not None:
        columns["watts"] = sample.watts.tolist()
    rows = [list(row) for row in zip(*columns.values(), strict=True)]
    if options.json != "-":
        table("Watts", [*columns], rows)
        say(f"Models of {fitted.kernels} kernels. {note(fitted.origin)}")
    result = [dict(zip(columns, row, strict=True)) for row in rows]
    shared.write(options, {"origin": fitted.origin, "kernels": result})
    return 0


def _report(options: Namespace) -> int:
    check_writable(options.json)
    if options.seeds < 1:
        raise UsageError("--seeds must be at least 1")
    sample = _read(options)
    with Display() as watch:
        seeds = range(options.seed, options.seed + options.seeds)
        found = report(sample, options.trees, seeds, options.at_mean, watch)
    tables = [block for block in found.blocks if isinstance(block, page.Table)]
    if "-" not in (options.json, options.output):
        say(sample.note)
        for block in tables:
            if not block.folded:
                table(block.title, block.columns, block.rows)
    _write(options.output, page.html(found))
    result = [{"title": each.title, "columns": each.columns, "rows": each.rows} for each in tables]
    shared.write(options, {"origin": sample.origin, "tables": result})
    return 0


def _write(target: str, content: str) -> None:
    write_text(target, content)
    if target != "-":
        print(f"written to {target}")
