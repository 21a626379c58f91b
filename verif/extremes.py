"""Every mechanism at the extremes of its parameters: a run in which SMs sleep, and the same run in which none does.

Each parameter of a mechanism, and of those that it requires, has each end of its range, or each of its choices. Where
an end contradicts the defaults of the others, these have their low ends, or their high ends; where it contradicts those
too, or leaves no room for the kernel, a value halfway to the default is tried, and so on.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import Field, fields
from typing import Any

from lockstep.sim.errors import KernelFault, UsageError
from lockstep.spec import registry
from lockstep.verif import combinations

KERNELS = ("bfs", "histogram-atomics", "reduction", "spmv")
"""Many launches, atomics, barriers, long waits."""

Settings = dict[str, Any]


def extremes(mechanism: str) -> Iterator[list[Settings]]:
    """The settings to run a mechanism with; of each list the first that is possible. The defaults come first."""
    parameters = {
        f"{section}.{parameter.name}": parameter
        for each in registry.resolve([mechanism])
        for section, cls in registry.MECHANISMS[each].sections.items()
        for parameter in fields(cls)
    }
    low, high = ({key: _ends(each)[index] for key, each in parameters.items()} for index in (0, -1))
    yield [{}]
    for key, parameter in parameters.items():
        for end in _ends(parameter):
            nearer = ({key: value} for value in _towards(parameter.default, end))
            yield [{key: end}, low | {key: end}, high | {key: end}, *nearer, {}]
    if len(parameters) > 1:
        yield [low, {}]
        yield [high, {}]


def _ends(parameter: Field[Any]) -> Sequence[Any]:
    return parameter.metadata.get("allowed") or (parameter.metadata["low"], parameter.metadata["high"])


def _towards(default: Any, end: Any) -> Iterator[int]:
    """Values from an end to the default, each halfway between the one before and the default."""
    while isinstance(end, int) and end != default:
        end = default + int((end - default) / 2)
        yield end


def differences(kernel: str, mechanism: str, possible: Sequence[Settings]) -> list[str]:
    """What is wrong with a kernel's results, and what skipping changes, a line each."""
    for chosen in possible:
        try:
            return _differences(kernel, mechanism, chosen)
        except KernelFault as fault:
            return [f"{_where(kernel, mechanism, chosen)}: {fault}"]
        except UsageError:  # the values contradict each other, or the kernel does not fit
            continue
    return [f"{kernel} with {mechanism}: none of {list(possible)} is possible"]


def _differences(kernel: str, mechanism: str, chosen: Settings) -> list[str]:
    asleep, stepped = (combinations.run(kernel, [mechanism], skip, chosen) for skip in (True, False))
    errors = [observed.wrong for observed in (asleep, stepped) if observed.wrong]
    errors += [
        f"launch {launch}: {count}: {mine[count]} with skipping, {its[count]} without"
        for launch, (mine, its) in enumerate(zip(asleep.raw, stepped.raw, strict=True))
        for count in mine
        if mine[count] != its[count]
    ]
    if asleep.gpu.memory.contents.tobytes() != stepped.gpu.memory.contents.tobytes():
        errors.append("with skipping, memory holds something else")
    return [f"{_where(kernel, mechanism, chosen)}: {error}" for error in errors]


def _where(kernel: str, mechanism: str, chosen: Settings) -> str:
    return " ".join([kernel, "with", mechanism, *(f"{key}={value}" for key, value in chosen.items())])
