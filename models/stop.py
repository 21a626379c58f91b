"""Why a launch stopped early, and where: read from the records of the machine."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from lockstep.models import waiting
from lockstep.models.execution.isa import Fault
from lockstep.models.progress import Watch
from lockstep.models.tenants import Tenant
from lockstep.models.waiting import Waiting
from lockstep.spec.parameters import MAX_GRIDS, MAX_WARPS


@dataclass
class Stop:
    """Why a launch stopped early, and where; -1 for what is not known."""

    code: Fault
    cycle: int
    sm: int = -1
    pc: int = -1
    cta: tuple[int, ...] = (-1, -1, -1)
    warp: int = -1  # in its CTA
    lane: int = -1
    address: int = 0
    named: int = 0  # by a line or a result, instead of the address
    waits: str = ""  # what a mechanism says the warp waits for
    waiting: tuple[Waiting, ...] = ()  # if warps wait for what never comes: all warps of the CTAs concerned
    ctas: tuple[int, ...] = ()  # of the grids that run: in all, ended, not begun
    grid: int = 0  # that it concerns


class ModelFault(RuntimeError):
    """A fault of the model, or of hardware in its place; the message says where."""

    def __init__(self, stop: Stop) -> None:
        self.stop = stop
        what = {
            Fault.MEMORY_ORDER: "the L1 accepted this warp's accesses out of order",
            Fault.LANES: "a lane's access was sent or answered twice, or a line or a result has none",
            Fault.LINE: f"lane {stop.lane} accesses {stop.address:#x}, and its line was sent as {stop.named:#x}",
            Fault.KIND: "a load, store or atomic was sent as another kind",
            Fault.WORD: f"lane {stop.lane} loads {stop.address:#x}, and its result names the word at {stop.named:#x}",
            Fault.BYTES: f"lane {stop.lane} stores to {stop.address:#x}, and the byte sent to {stop.named:#x} is wrong",
            Fault.DIFFERENCE: "hardware and model differ",
            Fault.AHEAD: "it was stepped ahead, and met a full queue to the interconnect, or had no packet to send",
            Fault.NO_ROOM: "a CTA was placed here, and there are not enough warp slots in a row",
        }[stop.code]
        where = f"CTA {stop.cta}, warp {stop.warp}, instruction {stop.pc}" if stop.pc >= 0 else "this SM"
        super().__init__(f"cycle {stop.cycle}, SM {stop.sm}, {where}: {what}")


@dataclass(frozen=True)
class Records:
    """The records of a machine that say where it has stopped."""

    run: Any  # models.dispatching.RUN
    launch: Any  # core.state.LAUNCH
    context: Any  # execution.isa.CONTEXT
    sms: np.ndarray
    tenants: Sequence[Tenant]

    def stop(self, stuck: Watch | None) -> Stop | None:
        """Why and where the launch stopped, if it did; ``stuck`` has found that it makes no progress."""
        fault, cycle, index = Fault(int(self.run["fault"])), int(self.run["now"]), int(self.run["fault_sm"])
        if fault == Fault.NONE:
            return None
        if fault == Fault.NO_PROGRESS:
            stop = self._without_progress(fault)
            stop.waiting = tuple(waiting.of_all(self.sms, stuck, self._waits))
            stop.ctas = self._ctas()
            return stop
        if fault in (Fault.DIFFERENCE, Fault.NO_ROOM, Fault.AHEAD):
            return Stop(fault, cycle, index)
        sm = self.sms[index]
        stop = self._at(fault, index, int(sm["fault_warp"]), int(sm["fault_pc"]))
        if fault in (Fault.LINE, Fault.WORD, Fault.BYTES):
            named = sm["lsu"]["fault"]
            stop.lane, stop.address, stop.named = int(named["lane"]), int(named["address"]), int(named["named"])
        else:
            stop.lane, stop.address = int(self.context["fault_lane"]), int(self.context["fault_address"])
        if fault == Fault.BARRIER_DEADLOCK:
            place = int(sm["warps"][int(sm["fault_warp"])]["cta"])
            stop.waiting = tuple(waiting.of_cta(self.sms, index, place))
            stop.ctas = self._ctas()
        return stop

    def _ctas(self) -> tuple[int, int, int]:
        """How many CTAs the grids that run have, how many have ended, and how many have not begun."""
        running = [index for index in range(MAX_GRIDS) if int(self.run["running"]) >> index & 1]
        progress, stored = self.run["grids"][running], self.launch["grids"]["stored"].reshape(-1)[running]
        total, ended = int(progress["ctas"].sum()), int(progress["ended"].sum())
        there = int(self.sms["ctas_resident"].sum() + stored.sum())
        return total, ended, total - ended - there

    def _without_progress(self, fault: Fault) -> Stop:
        """Point at a resident warp: the first that a mechanism lets wait, else the first."""
        found = Stop(fault, int(self.run["now"]))
        for index, sm in enumerate(self.sms):
            for slot in range(MAX_WARPS):
                if not int(sm["resident"]) >> slot & 1:
                    continue
                waits = self._waits(sm, index, slot)
                if waits or found.sm < 0:
                    found = self._at(fault, index, slot, int(sm["warps"][slot]["pc"]))
                    found.waits = waits
                if waits:
                    return found
        return found

    def _waits(self, sm: np.void, index: int, slot: int) -> str:
        """What mechanisms let a warp wait for; empty: nothing."""
        return "; ".join(filter(None, (tenant.waits(sm, index, slot) for tenant in self.tenants)))

    def _at(self, fault: Fault, index: int, slot: int, pc: int) -> Stop:
        sm = self.sms[index]
        warp = sm["warps"][slot]
        cta = sm["ctas"][int(warp["cta"])]
        place = tuple(int(v) for v in cta["ctaid"])
        return Stop(fault, int(self.run["now"]), index, pc, place, int(warp["index"]), grid=int(cta["grid"]))
