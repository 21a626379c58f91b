"""Register and scratchpad sharing (Jatala et al.): the machinery, and what of it shares which resource."""

from __future__ import annotations

from lockstep.spec.mechanism import Mechanism
from lockstep.spec.parameters import Gpu
from lockstep.spec.passes import Pass
from lockstep.spec.sharing import parameters, statistics, storage

_REGISTERS, _SCRATCHPAD = parameters.SHARED
_TENANT = "lockstep.models.sharing.tenant"

SHARING = Mechanism(
    name="sharing",
    doc="issues warps of owners first; the next two mechanisms say what pairs of CTAs share (Jatala et al.)",
    tenants={
        "capacity": "lockstep.models.sharing.capacity",
        "gates": _TENANT, "order": _TENANT, "claims": _TENANT, "events": _TENANT, "monitors": _TENANT,
    },
    sections={"sharing": parameters.Sharing},
    defaults={"core.scheduler": parameters.POLICY},
    blocks=parameters.BLOCKS,
    arguments=parameters.arguments,
    copies=parameters.copies,
    statistics=statistics.STATISTICS,
    laws=statistics.laws,
    storage=storage.STORAGE,
)  # fmt: skip

JOINED = Mechanism(
    name="sharing",
    doc="the schedulers and the locks (Jatala et al.) as one block: the mechanism has them side by side",
    unit=parameters.PATH,
    arguments=lambda gpu: {parameters.PATH: parameters.path(gpu)},
    parts=parameters.parts,
)


def _passes(gpu: Gpu) -> tuple[Pass, ...]:
    return parameters.NUMBERINGS[gpu.sections["sharing"].numbering]


REGISTERS = Mechanism(
    name=_REGISTERS,
    doc="lets the warps of a pair of CTAs share registers, under locks",
    requires=("sharing",),
    option=("--sharing", "sharing.percent"),
    passes=_passes,
)

SCRATCHPAD = Mechanism(
    name=_SCRATCHPAD,
    doc="lets the CTAs of a pair share scratchpad, under a lock",
    requires=("sharing",),
)
