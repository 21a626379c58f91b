"""The issue path, joined: the warp schedulers of an SM, and the locks that refuse what they grant.

Jatala et al., figure 4, but for the comparisons of ``share_access``, which are made before a warp requests.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import reduce
from operator import or_
from typing import ClassVar

from amaranth.hdl import Module
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from lockstep.rtl import registry
from lockstep.rtl.sharing.share_locks import SIDES
from lockstep.spec.frame import SCHEDULER
from lockstep.spec.parameters import MAX_CTAS, MAX_PATIENCE, MAX_SCHEDULERS, MAX_WARPS, SCHEDULERS
from lockstep.spec.sharing.parameters import LOCKS, parts

CONSTANT = ("policy", "active_warps", "patience")  # of the schedulers
BY_SLOT = (
    "start", "finish", "long_latency", "global_wait", "paused", "secondary", "owner", "non_owner", "request",
)  # fmt: skip
"""Ports of the schedulers with a bit for each slot, of which each sees its own."""
OF_LOCKS = ("older", "registers", "scratchpad", "refused")


class IssuePath(wiring.Component):
    """Joins the schedulers and ``share_locks``: from the requests of a cycle to what issues, and back to both.

    A warp that waits for a lock does not request, whatever ``request`` says, and the schedulers take it for one that
    waits for long latency. Which locks an instruction needs is known when its warp requests: ``share_access`` has
    looked at it in an earlier cycle, and the two bits have come with it in the instruction buffer.

    Latency: ``grant`` and ``refuse`` answer in the cycle of ``request``; all else is seen in the next one.

    Parameters are those of the parts (:func:`lockstep.spec.sharing.parameters.parts`).

    Members
    -------
    policy, active_warps, patience : In
        Of the schedulers; constant.
    start, finish, long_latency, global_wait, paused, secondary, owner, non_owner, request : In, one bit per slot
        Of the schedulers; each sees its own slots. A warp that finishes does not request.
    hint : In, one bit per scheduler
        Of the schedulers.
    older, leave, seat, registers, scratchpad : In
        Of ``share_locks``.
    refused : In, one bit per scheduler
        Another mechanism refuses what the scheduler grants.
    grant : Out, one per scheduler, combinational
        Of the schedulers.
    refuse : Out, one bit per scheduler, combinational
        Of ``share_locks``. What is granted issues unless this or ``refused`` says no.
    held, scratchpads, holds, waiting : Out
        Of ``share_locks``.
    """

    LARGEST: ClassVar = {
        "warps": MAX_WARPS, "ctas": MAX_CTAS, "schedulers": MAX_SCHEDULERS, "patience": MAX_PATIENCE,
        "policies": (1 << len(SCHEDULERS)) - 1, "rule": 1,
    }  # fmt: skip
    combinational: Mapping[str, tuple[str, ...]] = {
        "grant": ("policy", "request"),
        "refuse": ("policy", "request", "seat", "registers", "scratchpad", "older"),
    }
    constant: ClassVar = CONSTANT

    def __init__(self, **parameters: int) -> None:
        """Takes exactly the arguments in ``LARGEST``; the parts check them."""
        if parameters.keys() != self.LARGEST.keys():
            raise ValueError(f"issue_path takes {', '.join(self.LARGEST)}, all of them")
        arguments = parts(**parameters)
        self.schedulers = [
            registry.component(SCHEDULER)(**arguments[SCHEDULER]) for _ in range(parameters["schedulers"])
        ]
        self.locks = registry.component(LOCKS)(**arguments[LOCKS])
        scheduler, locks = self.schedulers[0], self.locks
        without = {"policy", "older"} - {*scheduler.combinational["grant"], *locks.combinational["refuse"]}
        self.combinational = {
            output: tuple(name for name in inputs if name not in without)
            for output, inputs in IssuePath.combinational.items()
        }
        of_scheduler, of_locks = scheduler.signature.members, locks.signature.members
        super().__init__(
            {
                **{name: of_scheduler[name] for name in (*CONSTANT, *BY_SLOT)},
                "hint": In(len(self.schedulers)),
                **{name: of_locks[name] for name in ("leave", "seat", *OF_LOCKS)},
                "grant": Out(of_scheduler["grant"].signature).array(len(self.schedulers)),
                **{name: of_locks[name] for name in ("refuse", "held", "scratchpads", "holds", "waiting")},
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        m.submodules.share_locks = locks = self.locks
        m.d.comb += [getattr(locks, name).eq(getattr(self, name)) for name in (*OF_LOCKS, "finish")]
        m.d.comb += [theirs.eq(mine) for theirs, mine in zip(locks.seat, self.seat, strict=True)]
        m.d.comb += [getattr(self, name).eq(getattr(locks, name)) for name in ("refuse", "held", "waiting")]
        for side in SIDES:
            m.d.comb += locks.leave[side].eq(self.leave[side])
            m.d.comb += [getattr(self, name)[side].eq(getattr(locks, name)[side]) for name in ("scratchpads", "holds")]
        m.d.comb += locks.granted.eq(reduce(or_, (scheduler.granted for scheduler in self.schedulers)))
        for k, scheduler in enumerate(self.schedulers):
            m.submodules[f"warp_scheduler_{k}"] = scheduler
            m.d.comb += [getattr(scheduler, name).eq(getattr(self, name)) for name in CONSTANT]
            own = sum(1 << slot for slot in range(k, len(self.request), len(self.schedulers)))
            for name in BY_SLOT:
                bits = getattr(self, name)
                if name == "request":
                    bits = bits & ~locks.waiting
                elif name in ("long_latency", "global_wait"):
                    bits = bits | locks.waiting
                m.d.comb += getattr(scheduler, name).eq(bits & own)
            m.d.comb += [
                scheduler.hint.eq(self.hint[k]),
                scheduler.refused.eq(self.refused[k] | locks.refuse[k]),
                self.grant[k].valid.eq(scheduler.grant.valid),
                self.grant[k].warp.eq(scheduler.grant.warp),
            ]
        return m
