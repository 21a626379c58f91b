"""A search for deadlocks of the locks, on a kernel whose warps meet at barriers between their accesses.

    python -m lockstep.verif.sharing.deadlock [--seeds N] [--first SEED] [--without-rule]

Every seed shuffles the schedulers' choices in another way (``shuffle.py``). A CTA has three warps, which use registers
that it shares, or scratchpad that it shares, in orders of their own. One pair of CTAs is resident. Every result is
compared with what NumPy says.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from unittest.mock import patch

import numpy as np

from lockstep.sim import Gpu
from lockstep.sim.errors import FAULTS, KernelFault
from lockstep.spec import registry, sharing
from lockstep.spec.mechanism import Mechanism

WARPS, CTAS, ROUNDS = 3, 6, 4
THREADS = 32 * WARPS
VALUES = 9  # live at once where a warp uses many registers
REGISTERS, TILE = 16, 768  # of a thread; bytes of a CTA
PERCENT = 66
RULE, OFF = 1, 0

SHUFFLE = Mechanism(
    name="shuffle", doc="warps issue in random order", tenants={"gates": "lockstep.verif.sharing.shuffle"}
)


def _many(n: int) -> str:
    """Use many registers: the sum of ``%v`` times 3, 5, 7, ..."""
    values = [f"mul.lo.u32 %m{k}, %v, {2 * k + 3};" for k in range(VALUES)]
    sums = [f"add.u32 %v, %v, %m{k};" for k in range(VALUES)]
    return "\n".join([*values, *sums])


def _round(n: int) -> str:
    """Some warps use many registers, others scratchpad of the pair; all meet at a barrier."""
    return f"""
      add.u32 %k, %w, {n}; add.u32 %k, %k, %c; and.b32 %k, %k, 3;
      setp.ne.u32 %p, %k, 0; @%p bra more{n};
      {_many(n)}
    more{n}:
      setp.ne.u32 %p, %k, 1; @%p bra on{n};
      st.shared.u32 [%s+{TILE - 4 * THREADS}], %v;
      ld.shared.u32 %k, [%s+{TILE - 4 * THREADS}];
      add.u32 %v, %k, {n};
    on{n}:
      bar.sync 0;
    """


PTX = f"""
.version 7.0
.target sm_75
.address_size 64
.visible .entry k(.param .u64 out)
{{
  .shared .align 4 .b8 tile[{TILE}];
  .reg .u64 %o, %d; .reg .u32 %t, %v, %w, %c, %k, %s; .reg .u32 %m<{VALUES}>; .reg .pred %p;
  ld.param.u64 %o, [out];
  mov.u32 %t, %tid.x; mov.u32 %c, %ctaid.x;
  mad.lo.u32 %v, %c, {THREADS}, %t;
  mul.wide.u32 %d, %v, 4; add.u64 %o, %o, %d;
  shr.u32 %w, %t, 5;
  mov.u32 %s, tile; shl.b32 %k, %t, 2; add.u32 %s, %s, %k;
  {"".join(_round(n) for n in range(ROUNDS))}
  st.global.u32 [%o], %v;
  ret;
}}
"""


def expected() -> np.ndarray:
    """What the kernel stores."""
    number = np.arange(CTAS * THREADS, dtype=np.uint64)
    cta, warp, value = number // THREADS, number % THREADS // 32, number
    for n in range(ROUNDS):
        kind = (warp + cta + n) % 4
        many = value * np.uint64(1 + sum(2 * k + 3 for k in range(VALUES)))
        found = np.where(kind == 0, many, np.where(kind == 1, value + np.uint64(n), value))
        value = found & np.uint64(0xFFFF_FFFF)
    return value.astype(np.uint32)


@dataclass
class Found:
    """What some seeds have led to."""

    right: int = 0
    wrong: int = 0  # results, or the kernel went astray
    deadlocks: int = 0
    message: str = ""  # of the last fault
    refusals: int = 0
    both_wait: int = 0  # cycles in which warps of both CTAs wait for locks
    longest: int = 0  # core cycles of a launch


@contextmanager
def gpu(rule: int = RULE, **settings: int) -> Iterator[Gpu]:
    """One SM that has room for a CTA and a third, so for a pair that shares two thirds."""
    with patch.dict(registry.MECHANISMS, {SHUFFLE.name: SHUFFLE}):
        sizes = {"core.sms": 1, "core.registers": 2304, "scratchpad.bytes": 1152, "scratchpad.bytes_per_cta": 1024}
        shared = {"sharing.percent": PERCENT, "sharing.rule": rule, "launch.no_progress": 1000}
        yield Gpu("gtx480", ["register-sharing", "scratchpad-sharing", "shuffle"], sizes | shared | settings)


def search(seeds: range, rule: int = RULE) -> Found:
    """Launch the kernel once for each seed."""
    found, right = Found(), expected()
    with gpu(rule) as device:
        module = device.load(PTX, registers={"k": REGISTERS})
        [shuffle] = [tenant for tenant in device.machine.tenants if tenant.mechanism is SHUFFLE]
        [shared] = [tenant for tenant in device.machine.tenants if tenant.mechanism is sharing.SHARING]
        out = device.empty(right.size, np.uint32)
        for seed in seeds:

            def begin(seed: int = seed) -> None:
                shuffle.states["seed"] = seed

            device.machine.on_launch = begin
            try:
                run = module.launch("k", grid=CTAS, block=THREADS, args=[out])
            except KernelFault as fault:
                found.both_wait += int(shared.states["counts"]["both_wait"].sum())
                found.longest = max(found.longest, int(str(fault).rpartition(" ")[2]))
                found.message = f"seed {seed}: {fault}"
                stuck = FAULTS["NO_PROGRESS"] in str(fault)
                found.deadlocks += stuck
                found.wrong += not stuck
                continue
            same = bool((device.from_device(out) == right).all())
            found.right += same
            found.wrong += not same
            found.refusals += int(run.stats["sharing.register_refusals"] + run.stats["sharing.scratchpad_refusals"])
    return found


def main() -> int:
    parser = argparse.ArgumentParser(description="Search for deadlocks of locks.")
    parser.add_argument("--seeds", type=int, default=10_000)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--without-rule", action="store_true")
    options = parser.parse_args()
    found = search(range(options.first, options.first + options.seeds), OFF if options.without_rule else RULE)
    print(f"{options.seeds} seeds: {found.right} right, {found.wrong} wrong, {found.deadlocks} deadlocks; "
          f"{found.refusals} refusals")  # fmt: skip
    if found.message:
        print(found.message)
    return int(found.wrong + found.deadlocks != 0)


if __name__ == "__main__":
    raise SystemExit(main())
