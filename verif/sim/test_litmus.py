"""Litmus tests: no outcome occurs that PTX forbids, stale ones do occur, and faults of the hierarchy are found."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from lockstep.cli.main import main
from lockstep.sim.device.description import names
from lockstep.sim.study.litmus import SHAPES, SOURCE, Laboratory, rows
from lockstep.sim.study.litmus.shapes import ACCESSES, FENCES, PLACES, Variant
from lockstep.verif.bench import elsewhere
from lockstep.verif.sim.litmus_faults import PLANTS, found

INTERPRETED = {"NUMBA_DISABLE_JIT": "1"}


def test_sources_agree() -> None:
    """Kernels, kinds of access and fences have the same names, in the same order, in CUDA and in Python."""
    text = SOURCE.with_suffix(".cu").read_text(encoding="utf-8")
    entries = re.findall(r"\.entry (\w+)", SOURCE.read_text(encoding="utf-8"))
    assert sorted(entries) == sorted(shape.kernel for shape in SHAPES.values())
    for name, kinds in (("Access", ACCESSES), ("Fence", FENCES)):
        found = re.search(rf"enum {name} {{ (.*) }};", text)
        assert found and tuple(kind.strip("_") for kind in found[1].split(", ")) == kinds


def test_what_is_forbidden() -> None:
    """PTX's memory model, section by section: a table of what each test must not show."""
    ordered = {("volatile", "gpu"), ("atomic", "gpu")}
    for name, shape in SHAPES.items():
        for variant in shape.variants:
            told = [outcome.forbidden(variant) for outcome in shape.outcomes]
            kind = variant.access, variant.fence
            in_cta = variant.place == "cta" and variant.fence == "cta" and variant.access != "plain"
            if name in ("sb", "lb", "w2", "iriw"):
                assert told == [kind in ordered or in_cta], (name, variant)
            elif name == "mp":
                also = variant.access == "acquire" or kind == ("mixed", "gpu")
                assert told == [kind in ordered or in_cta or also], variant
            elif name in ("corr", "see"):
                assert told == [variant.access in ("volatile", "atomic")], (name, variant)
            elif name in ("corw", "cowr"):
                assert told == [True, variant.access != "plain"], (name, variant)
            else:
                assert told == [True], (name, variant)


@pytest.mark.long
@pytest.mark.parametrize("name", SHAPES)
def test_nothing_forbidden_occurs(name: str) -> None:
    for run in Laboratory("gtx480", (), {}).run(SHAPES[name], [1]):
        assert not run.wrong, run.as_json()


@pytest.mark.long
@pytest.mark.exhaustive
@pytest.mark.parametrize("gpu", names())
@pytest.mark.parametrize("name", SHAPES)
def test_nothing_forbidden_occurs_anywhere(name: str, gpu: str) -> None:
    for run in Laboratory(gpu, (), {"l1.values": "lines"}).run(SHAPES[name], [2, 3]):
        assert not run.wrong, run.as_json()


@pytest.mark.long
@pytest.mark.exhaustive
@pytest.mark.parametrize("mechanisms", [("warppool",), ("mrpb",), ("banked-l1",), ("regless",), ("preemption",)])
@pytest.mark.parametrize("name", SHAPES)
def test_nothing_forbidden_occurs_with_mechanisms(name: str, mechanisms: tuple[str, ...]) -> None:
    for run in Laboratory("gtx480", mechanisms, {"l1.values": "lines"}).run(SHAPES[name], [4]):
        assert not run.wrong, run.as_json()


@pytest.mark.long
@pytest.mark.parametrize(
    ("name", "variant"),
    [
        ("mp", Variant("mixed", "none", "sms")),
        ("mp", Variant("volatile", "none", "sms")),
        ("sb", Variant("plain", "cta", "sms")),
        ("corr", Variant("mixed", "none", "sms")),
        ("see", Variant("plain", "none", "sms")),
    ],
    ids=str,
)
def test_what_lines_let_happen(name: str, variant: Variant) -> None:
    """Where nothing forbids them, outcomes occur with lines that have values which do not occur otherwise."""
    laboratory, shape = Laboratory("gtx480", (), {}), SHAPES[name]
    runs = [laboratory.one(shape, variant, values, range(1, 5)) for values in ("memory", "lines")]
    [row] = rows(runs)
    assert not row.forbidden and row.counts["memory"] == 0 < row.counts["lines"]


@pytest.mark.long
@pytest.mark.exhaustive
@pytest.mark.parametrize("name", ["mp", "cowr", "inc"])
def test_idle_cycles_do_not_matter(name: str) -> None:
    def all_counts(skip: bool) -> list[Any]:
        laboratory = Laboratory("gtx480", (), {"l1.values": "lines"})
        laboratory.skip = skip
        return [run.as_json() for run in laboratory.run(SHAPES[name], [5])]

    assert all_counts(False) == all_counts(True)


# Where each fault is found: test, access, fence, GPU, its SMs, and a seed.
FOUND = {
    "a fence does nothing": ("mp", "mixed", "gpu", "gtx480", 4, 3),
    "a fence does not invalidate": ("mp", "mixed", "gpu", "gtx480", 4, 3),
    "a fence does not wait": ("sb", "volatile", "gpu", "dyncta56", 56, 3),
    "a volatile load hits": ("see", "volatile", "none", "gtx480", 4, 1),
    "an atomic in the L1": ("inc", "atomic", "none", "gtx480", 4, 1),
    "a store leaves its line": ("cowr", "plain", "none", "gtx480", 4, 1),
    "packets overtake": ("corw", "plain", "none", "dyncta56", 12, 1),
}
SOON = ("a fence does nothing", "a volatile load hits", "an atomic in the L1")


@pytest.mark.long
@pytest.mark.parametrize(
    "plant", [pytest.param(name, marks=[] if name in SOON else pytest.mark.exhaustive) for name in FOUND]
)
def test_faults_are_found(plant: str) -> None:
    assert sum(elsewhere(planted, plant, *FOUND[plant], **INTERPRETED)) > 0


@pytest.mark.long
@pytest.mark.exhaustive
@pytest.mark.parametrize("plant", FOUND)
def test_they_are_found_because_of_the_fault(plant: str) -> None:
    assert sum(elsewhere(planted, "", *FOUND[plant], **INTERPRETED)) == 0


def planted(*arguments: Any) -> list[int]:
    return found(*arguments)


def test_every_fault_is_looked_for() -> None:
    assert FOUND.keys() == PLANTS.keys()


@pytest.mark.long
def test_command(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "found.json"
    assert main(["litmus", "cowr", "--seeds", "1", "--json", str(file)]) == 0
    runs = json.loads(file.read_text(encoding="utf-8"))
    assert {run["l1_values"] for run in runs} == {"memory", "lines"}
    assert {run["place"] for run in runs} == PLACES.keys()
    assert all(sum(end["count"] for end in run["ends"]) == run["instances"] > 0 for run in runs)
    assert "a = 0" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["mq"], "mq: no litmus test; known are mp, sb"),
        (["--seeds", "0"], "--seeds 0: must be 1 or more"),
        (["--set", "l1.values=line"], "l1.values = 'line': must be one of memory, lines"),
        (["--set", "core.sms=1"], "core.sms = 1: litmus tests need 4 SMs"),
    ],
)
def test_bad_input(arguments: list[str], message: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["litmus", *arguments]) == 2
    assert message in capsys.readouterr().err


