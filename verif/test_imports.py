"""Who imports whom: no circles, and every folder sees only those below it.

Imports inside functions and under TYPE_CHECKING count too.
"""

from __future__ import annotations

import ast
from collections.abc import Collection
from functools import cache

import networkx as nx
import pytest

from lockstep.models.cache import PACKAGE, ROOT

FOLDERS = ("spec", "models", "rtl", "synth", "sim", "verif", "cli")
BELOW = {
    "spec": {"spec"},
    "models": {"spec", "models"},
    "rtl": {"spec", "rtl"},
    "synth": {"spec", "rtl", "synth"},
    "sim": {"spec", "models", "rtl", "synth", "sim"},
    "verif": {"spec", "models", "rtl", "synth", "sim", "verif"},
}
"""What the modules of a folder may import; those of ``cli``, and the tests themselves, everything."""

ROOMS = ("base", "compile", "device", "kernels", "study", "cosim", "gpu")
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
    return names & set(known)


@cache
def graph() -> nx.DiGraph:
    """An edge from every module of the project to every one that it imports."""
    known = modules()
    return nx.DiGraph({name: imports(source, known) for name, source in known.items()})


def folder(module: str) -> str:
    return module.split(".")[1]


def is_test(module: str) -> bool:
    return module.rpartition(".")[2].startswith(("test_", "conftest"))


def room(module: str) -> str:
    name = module.split(".")[2]
    return name if name in ROOMS else "base"


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
def late():
    import k
"""
    known = {"a", "a.b", "a.c", "e", "e.f", "i", "k", "l"}
    assert imports(text, known) == {"a", "a.b", "a.c", "e", "e.f", "i", "k"}
    assert "lockstep.sim.gpu" in graph()["lockstep.sim"]  # late, for those who start without it


@pytest.mark.parametrize("name", FOLDERS)
def test_imports_make_no_circle(name: str) -> None:
    inside = graph().subgraph(module for module in graph() if folder(module) == name)
    circles = [sorted(circle) for circle in nx.strongly_connected_components(inside) if len(circle) > 1]
    assert circles + [[module] for module in nx.nodes_with_selfloops(inside)] == []


@pytest.mark.parametrize("name", BELOW)
def test_a_folder_imports_only_those_below_it(name: str) -> None:
    found = {
        (module, imported)
        for module, imported in graph().edges
        if folder(module) == name and folder(imported) not in BELOW[name] and not is_test(module)
    }
    assert found == set()


def test_the_rooms_of_sim_stand_above_each_other() -> None:
    inside = [(a, b) for a, b in graph().edges if folder(a) == folder(b) == "sim" and "lockstep.sim" not in (a, b)]
    wrong = [(a, b) for a, b in inside if ROOMS.index(room(a)) < ROOMS.index(room(b))]
    assert {room(module) for edge in inside for module in edge} == {*ROOMS}
    assert wrong == []
