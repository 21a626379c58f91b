"""Which tests each distance runs, and how processes share the work: what is long begins first, what costs is done once.

================= =================================================================================================
``make check``    what is neither ``long`` nor ``exhaustive``; of a test with several parameters every value of each,
                  not every combination
``make test``     also what is ``long``
``make test-all`` everything
================= =================================================================================================

The marks ``long`` and ``exhaustive`` stand at the tests. Combinations of parameters get the latter here, and the rest
the mark ``check``, so that a new test that is quick runs at every distance. The summary says how much processor time
each distance takes beyond the one before, and which tests have become slow for theirs.
"""

from __future__ import annotations

import fcntl
import gc
import importlib
import itertools
import json
import os
import resource
import signal
from collections import defaultdict
from collections.abc import Callable, Container, Generator, Iterable, Iterator
from typing import Any

import pytest

from lockstep.models import cache
from lockstep.sim import output

collect_ignore = ["trial/odd_gate"]  # its tests run in the tree that ``test_add_a_mechanism.py`` makes

Shared = Callable[[str, Callable[[], Any]], Any]


def pytest_configure(config: pytest.Config) -> None:
    """Let two workers compile the blocks' functions from both ends; each finds in the cache what the other has done.

    Most objects stay, so that the garbage collector need not go through all of them as often as it does.
    """
    gc.set_threshold(*gc.get_threshold()[:2], 100)
    worker = getattr(config, "workerinput", None)
    if worker is not None:
        odd = int(worker["workerid"].removeprefix("gw")) % 2 == 1
        for file in sorted((cache.ROOT / "models").glob("*/*.py"), reverse=odd):
            importlib.import_module(f"lockstep.models.{file.parent.name}.{file.stem}")


# ------------------------------------------------------------------------------------------------------------ distances


@pytest.hookimpl(wrapper=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> Iterator[None]:
    """Mark what ``make check`` runs, and combinations, before marks select; then order what they have selected.

    What is long begins. One of two workers compiles the GPU's loop while the other tests hardware: each begins with its
    half of the list, and then takes over what the other has not come to.
    """
    quick = [item for item in items if not any(map(item.get_closest_marker, ("long", "exhaustive")))]
    chosen = set(covering(quick))
    for item in quick:
        item.add_marker("check" if item in chosen else "exhaustive")
    yield
    items.sort(key=lambda item: [item.get_closest_marker(name) is None for name in ("first", "long")])
    hardware = [item for item in items if item.get_closest_marker("hardware")]
    others = [item for item in items if not item.get_closest_marker("hardware")]
    half = len(items) // 2
    items[:] = [*others[:half], *hardware, *others[half:]]


def covering(items: list[pytest.Item]) -> list[pytest.Item]:
    """A few of the items that have every value of every parameter of every test."""
    values = [_values(item) for item in items]
    chosen, seen = [], set[tuple[object, ...]]()
    for new in range(max(map(len, values), default=0), 0, -1):  # first those that bring most
        for item, own in zip(items, values, strict=True):
            if len(own - seen) >= new:
                chosen.append(item)
                seen |= own
    return chosen


def partly(values: Iterable[Any], share: int = 4) -> list[Any]:
    """Parameters of which one in ``share`` is tried at every distance, and the others in ``make test-all``.

    A tuple is one value for each of a test's parameters.
    """
    each = [value if isinstance(value, tuple) else (value,) for value in values]
    return [pytest.param(*own, marks=[pytest.mark.exhaustive] * (k % share > 0)) for k, own in enumerate(each)]


def _values(item: pytest.Item) -> set[tuple[object, ...]]:
    """The test, and each value of its parameters; those that one mark gives together are one."""
    test, parameters = item.nodeid.partition("[")[0], dict(item.callspec.params if hasattr(item, "callspec") else {})
    together = [mark.args[0] for mark in item.iter_markers("parametrize")]
    names = [[name.strip() for name in each.split(",")] if isinstance(each, str) else each for each in together]
    values = {(test, *own, *(id(parameters.pop(name, None)) for name in own)) for own in names}
    return values | {(test, name, id(value)) for name, value in parameters.items()} or {(test,)}


def distance(keywords: Container[str]) -> str:
    """The first distance at which a test with these marks runs."""
    return "check" if "check" in keywords else "test-all" if "exhaustive" in keywords else "test"


SLOW = {"check": 5, "test": 60, "test-all": 120}  # seconds of a processor that no test of a distance should exceed
PROCESSOR = "processor time"
_since = 0.0


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport() -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Note the processor time since the last report, that of programs which have ended included."""
    global _since
    report, until = (yield), _processor_seconds()
    report.user_properties.append((PROCESSOR, until - _since))
    _since = until
    return report


def pytest_collection_finish() -> None:
    global _since
    gc.collect()
    gc.freeze()
    _since = _processor_seconds()


def pytest_unconfigure() -> None:
    """Nothing is held back from the collector any more, which would seem to be leaked."""
    gc.unfreeze()


def _processor_seconds() -> float:
    used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(each.ru_utime + each.ru_stime for each in used)


def pytest_terminal_summary(terminalreporter: Any) -> None:
    seconds: dict[str, dict[str, float]] = {name: defaultdict(float) for name in SLOW}
    for report in itertools.chain(*terminalreporter.stats.values()):
        if isinstance(report, pytest.TestReport):
            own = dict(report.user_properties).get(PROCESSOR, 0.0)  # a worker that has crashed tells nothing
            assert isinstance(own, float)
            seconds[distance(report.keywords)][report.nodeid] += own
    terminalreporter.section(PROCESSOR)
    for name, tests in seconds.items():
        if tests:
            terminalreporter.write_line(f"{name:8} {len(tests):6,} tests {sum(tests.values()):8,.0f} s")
    slow = [(own, test, name) for name, tests in seconds.items() for test, own in tests.items() if own > SLOW[name]]
    for own, test, name in sorted(slow, reverse=True):
        terminalreporter.write_line(f"slow for {name}: {own:4.0f} s {test}")


# ----------------------------------------------------------------------------------------------------------- fixtures


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
