"""Who imports whom: five floors, no circle, and no arrow upwards.

Imports inside functions, under TYPE_CHECKING and by name (``import_module``) count too.
"""

from __future__ import annotations

import ast
from collections.abc import Collection
from functools import cache

import networkx as nx
import pytest

from lockstep.models.cache import PACKAGE, ROOT

FLOORS = (("spec",), ("models", "rtl"), ("synth", "sim"), ("verif",), ("cli",))
"""From the ground up. Modules see those of their folder and of the floors below. Tests stand above all floors."""

BESIDE = {("sim", "synth")}
"""Folders of one floor, the first of which sees the second: netlists of gates run in kernels."""

FOLDERS = [name for floor in FLOORS for name in floor]

ROOMS = ("base", "compile", "device", "traces", "kernels", "study", "cosim", "gpu")
"""Of ``sim``, each of which sees those before it. Base: its loose files, but for the API's, which stands above all."""


@cache
def modules() -> dict[str, str]:
    """The source of every module of the project, by its name; a package's is that of its ``__init__``."""
    result = {}
    for folder in FOLDERS:
        for path in sorted((ROOT / folder).rglob("*.py")):
            parts = path.relative_to(ROOT).with_suffix("").parts
            result[".".join([PACKAGE, *parts]).removesuffix(".__init__")] = path.read_text(encoding="utf-8")
    return result


def imports(source: str, known: Collection[str]) -> set[str]:
    """The known modules that a source text imports. A package counts when something of its own is taken from it."""
    names: set[str] = set()
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.ImportFrom):
            assert node.module and not node.level, "relative imports are not understood here"
            members = [f"{node.module}.{alias.name}" for alias in node.names]
            names.update(member if member in known else node.module for member in members)
        elif isinstance(node, ast.Import):
            names.update(alias.name for alias in node.names)
        elif isinstance(node, ast.Call) and _name(node.func) == "import_module":
            names.add(_start(node.args[0]).rstrip("."))
    return names & set(known)


def _name(function: ast.expr) -> str:
    """A function's own name, of a module or not."""
    return function.attr if isinstance(function, ast.Attribute) else getattr(function, "id", "")


def _start(text: ast.expr) -> str:
    """What a string begins with; nothing, of what only the run shows."""
    first = text.values[0] if isinstance(text, ast.JoinedStr) else text
    return first.value if isinstance(first, ast.Constant) and isinstance(first.value, str) else ""


@cache
def graph() -> nx.DiGraph:
    """An edge from every module of the project to every one that it imports."""
    known = modules()
    return nx.DiGraph({name: imports(source, known) for name, source in known.items()})


def folder(module: str) -> str:
    return module.split(".")[1]


def is_test(module: str) -> bool:
    """Whether a module is one, or what tests need: their set-up, and the evidence for what they find."""
    return module.rpartition(".")[2].startswith(("test_", "conftest", "evidence"))


def room(module: str) -> str:
    name = module.split(".")[2]
    return name if name in ROOMS else "base"


@pytest.mark.exhaustive
@pytest.mark.long
def test_every_kind_of_import_is_seen() -> None:
    text = """
from typing import TYPE_CHECKING
import a.b
from a import c, d
from e import (
    f as g,  # a module
    h,
)
if TYPE_CHECKING:
    from i import J
def late(name):
    import k
    import_module("m.n")
    importlib.import_module(f"o.{name}")
    importlib.import_module(name)
"""
    known = {"a", "a.b", "a.c", "e", "e.f", "i", "k", "l", "m", "m.n", "o", "o.p"}
    assert imports(text, known) == {"a", "a.b", "a.c", "e", "e.f", "i", "k", "m.n", "o"}
    assert "lockstep.sim.gpu" in graph()["lockstep.sim"]  # late, for those who start without it


def test_imports_make_no_circle() -> None:
    circles = [sorted(circle) for circle in nx.strongly_connected_components(graph()) if len(circle) > 1]
    assert circles + [[module] for module in nx.nodes_with_selfloops(graph())] == []


def test_no_import_points_upwards() -> None:
    level = {name: k for k, floor in enumerate(FLOORS) for name in floor}

    def allowed(module: str, imported: str) -> bool:
        if is_test(module) or is_test(imported):
            return is_test(module)
        above, below = folder(module), folder(imported)
        return above == below or level[above] > level[below] or (above, below) in BESIDE

    assert {folder(module) for module in graph()} == {*FOLDERS}
    assert [arrow for arrow in graph().edges if not allowed(*arrow)] == []


def test_the_rooms_of_sim_stand_above_each_other() -> None:
    inside = [(a, b) for a, b in graph().edges if folder(a) == folder(b) == "sim" and "lockstep.sim" not in (a, b)]
    wrong = [(a, b) for a, b in inside if ROOMS.index(room(a)) < ROOMS.index(room(b))]
    assert {room(module) for edge in inside for module in edge} == {*ROOMS}
    assert wrong == []
