"""DYNCORE (Kayiran et al.): some SMs are turned off while the memory can't feed all."""

from __future__ import annotations

from lockstep.spec.dyncore import parameters
from lockstep.spec.mechanism import Mechanism
from lockstep.spec.statistics import counted

_TENANT = "lockstep.models.dyncore.tenant"

MECHANISM = Mechanism(
    name="dyncore",
    doc="turns some SMs off while all SMs together issue little (Kayiran et al.; theirs includes dyncta)",
    tenants=dict.fromkeys(("limits", "monitors"), _TENANT),
    sections={"dyncore": parameters.Dyncore},
    check=parameters.check,
    blocks=(parameters.COUNTER, parameters.GATE),
    whole=(parameters.GATE,),
    arguments=parameters.arguments,
    statistics=(
        counted("dyncore.drained", "windows", "dyncore.drained", "windows after which SMs were to take no more CTAs"),
        counted("dyncore.returned", "windows", "dyncore.returned", "windows after which SMs were allowed CTAs again"),
        counted("dyncore.turned_off", "windows", "dyncore.turned_off", "windows after which SMs were turned off"),
    ),
    laws=lambda c: [("cycles of N_act", c("dyncore.active_cycles") + c("dyncore.beyond"), c("sm.active_cycles"))],
)
