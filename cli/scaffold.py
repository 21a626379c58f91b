"""What `lockstep new-mechanism` and `lockstep new-block` write: files to start from, which work as they are.

They are those of ``verif/trial/odd_gate``, the example of ``docs/add-a-mechanism.md``, under other names.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from contextlib import ExitStack
from pathlib import Path

from lockstep.rtl import registry
from lockstep.rtl.ports import PortError, check_name
from lockstep.sim.errors import UsageError
from lockstep.spec.files import write
from lockstep.spec.registry import MECHANISMS

ROOT = Path(__file__).parents[1]
EXAMPLE = ROOT / "verif" / "trial" / "odd_gate"
AREA, BLOCK = "odd_gate", "turnstile"
TREES = ("models", "rtl", "spec", "verif")
LONGEST = 24  # letters of a name, for which lines of the example are short enough


def example() -> list[Path]:
    """The files of the example."""
    files = sorted(EXAMPLE.rglob("*.py"))
    if not files:
        raise UsageError("this is an installed copy of Lockstep; clone the repository, and `pip install -e .` there")
    return files


def checked(name: str) -> str:
    """A name of an area or a block."""
    if not re.fullmatch("[a-z][a-z0-9_]*", name) or len(name) > LONGEST:
        rule = f"lower-case letters, digits and underscores, a letter first, {LONGEST} at most"
        raise UsageError(f"{name!r}: must be {rule}")
    try:
        check_name(name)
    except PortError as error:
        raise UsageError(str(error)) from None
    return name


def require_free(name: str, taken: Iterable[str]) -> None:
    """That nothing else has the name: no block, no mechanism, none of those ``taken``."""
    names = registry.selectable(registry.blocks()) | {mechanism.area for mechanism in MECHANISMS.values()}
    if name in names or name in taken:
        raise UsageError(f"{name!r}: there is a block, a mechanism, a section or a file of this name")
    if name in {word for path in example() for word in re.findall(r"\w+", path.read_text(encoding="utf-8"))}:
        raise UsageError(f"{name!r}: the files to start from use this name for something else")


def renamed(paths: Iterable[Path], area: str, block: str) -> dict[Path, str]:
    """Files of the example with other names of area and block, by the place where they belong."""
    words = {AREA: area, AREA.replace("_", "-"): area.replace("_", "-"), _camel(AREA): _camel(area),
             BLOCK: block, _camel(BLOCK): _camel(block)}  # fmt: skip
    pattern = re.compile("|".join(words))

    def rename(text: str) -> str:
        return pattern.sub(lambda found: words[found[0]], text)

    return {
        ROOT / rename(str(path.relative_to(EXAMPLE))): _sorted_imports(rename(path.read_text(encoding="utf-8")))
        for path in paths
    }


def _camel(name: str) -> str:
    return "".join(part.capitalize() for part in name.split("_"))


def _sorted_imports(text: str) -> str:
    """The project's own imports in the order of their modules."""
    return re.sub(r"(?:from lockstep\S* import .+\n)+", lambda block: "".join(sorted(block[0].splitlines(True))), text)


def registered(text: str, area: str) -> str:
    """The registry with another mechanism, the last one."""
    found = re.search(r"from lockstep\.spec import \(\n((?:    \w+,\n)+)\)\n", text)
    mechanisms = re.search(r"    for mechanism in \(\n(?:        \S+,\n)+", text)
    if not found or not mechanisms:
        raise UsageError("spec/registry.py: has no list of imports and of mechanisms, one in a line, to add to")
    imports = "".join(sorted([*found[1].splitlines(True), f"    {area},\n"]))
    text = text.replace(mechanisms[0], f"{mechanisms[0]}        {area}.MECHANISM,\n")
    return text.replace(found[1], imports)


def write_all(files: Mapping[Path, str]) -> None:
    """Write all of the files, or none."""
    with ExitStack() as undo:
        for path, text in files.items():
            for folder in reversed(path.parents):
                if not folder.exists():
                    folder.mkdir()
                    undo.callback(folder.rmdir)
            if path.exists():
                undo.callback(write, path, path.read_bytes())
            else:
                undo.callback(path.unlink, missing_ok=True)
            write(path, text)
        undo.pop_all()


def tell(files: Iterable[Path], *following: str) -> None:
    for path in files:
        print(f"written: {path.relative_to(ROOT)}")
    print("next:", *following, sep="\n  ")
