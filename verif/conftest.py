"""How the test suite shares work between its processes: what is long begins first, what is costly is done once."""

from __future__ import annotations

import fcntl
import importlib
import json
import os
import signal
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from lockstep.models import cache
from lockstep.sim import output

collect_ignore = ["trial/odd_gate"]  # its tests run in the tree that ``test_add_a_mechanism.py`` makes

Shared = Callable[[str, Callable[[], Any]], Any]


def pytest_configure(config: pytest.Config) -> None:
    """Let two workers compile the blocks' functions from both ends; each finds in the cache what the other has done."""
    worker = getattr(config, "workerinput", None)
    if worker is not None:
        odd = int(worker["workerid"].removeprefix("gw")) % 2 == 1
        for file in sorted((cache.ROOT / "models").glob("*/*.py"), reverse=odd):
            importlib.import_module(f"lockstep.models.{file.parent.name}.{file.stem}")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Begin with what is long, and let one of two workers compile the GPU's loop while the other tests hardware.

    Each worker begins with its half of the list, and then takes over what the other has not come to.
    """
    items.sort(key=lambda item: [item.get_closest_marker(name) is None for name in ("first", "long")])
    hardware = [item for item in items if item.get_closest_marker("hardware")]
    others = [item for item in items if not item.get_closest_marker("hardware")]
    half = len(items) // 2
    items[:] = [*others[:half], *hardware, *others[half:]]


@pytest.fixture(autouse=True)
def interruptible() -> Iterator[None]:
    """Interrupts are exceptions, also in programs that a test starts. A shell's background job would ignore them."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.fixture(autouse=True)
def quiet(monkeypatch: pytest.MonkeyPatch) -> None:
    """No progress on standard error: a test that finds the model uncompiled would find a line more there."""
    monkeypatch.setattr(output, "PATIENCE", 3600)


@pytest.fixture(scope="session")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Shared:
    """Give what a function returns, through JSON, computed by one worker for all of them."""
    own = tmp_path_factory.getbasetemp()
    folder = own.parent if "PYTEST_XDIST_WORKER" in os.environ else own
    known: dict[str, Any] = {}

    def get(name: str, make: Callable[[], Any]) -> Any:
        path = folder / f"{name}.json"
        if name not in known:
            with path.with_suffix(".lock").open("w") as lock:
                fcntl.flock(lock, fcntl.LOCK_EX)
                if not path.exists():
                    path.write_text(json.dumps(make()), encoding="utf-8")
            known[name] = json.loads(path.read_text(encoding="utf-8"))
        return known[name]

    return get
