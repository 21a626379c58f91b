"""DYNCTA (Kayiran et al.): as many CTAs on an SM as its memory serves, the others paused."""

from __future__ import annotations

from lockstep.spec.dyncta import parameters, statistics, storage
from lockstep.spec.mechanism import Mechanism

_TENANT = "lockstep.models.dyncta.tenant"

MECHANISM = Mechanism(
    name="dyncta",
    doc="limits the CTAs of an SM by what its warps wait for, and pauses those beyond the limit (Kayiran et al.)",
    tenants=dict.fromkeys(("limits", "order", "events", "monitors"), _TENANT),
    sections={"dyncta": parameters.Dyncta},
    check=parameters.check,
    blocks=(parameters.LIMITER,),
    arguments=parameters.arguments,
    statistics=statistics.STATISTICS,
    laws=statistics.laws,
    storage=storage.STORAGE,
)
