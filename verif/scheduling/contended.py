"""A kernel under each policy, in which several warps want to issue at a time."""

from lockstep.spec.parameters import SCHEDULERS

CONTENDED = tuple(("baseline", "hotspot", {"core.scheduler": policy}) for policy in SCHEDULERS)
