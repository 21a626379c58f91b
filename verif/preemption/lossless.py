"""Preemption loses nothing: kernels whose SMs give up CTAs all the time, beside the same ones undisturbed.

``python -m lockstep.verif.preemption.lossless --seeds 100`` tries all kernels with as many seeds, from ``--seed`` on.
"""

from __future__ import annotations

import argparse
import random
import sys
from collections.abc import Sequence

from lockstep.sim import kernels
from lockstep.verif import combinations

RACY = ("bfs",)
"""Their instructions depend on timing; their results do not."""


def lossless(name: str, seed: int) -> list[str]:
    """What is wrong with a kernel under random preemption, a line each."""
    rng = random.Random(seed)
    settings = {
        "preemption.every": rng.randint(1000, 3000), "preemption.ctas": rng.randint(1, 8),
        "preemption.away": rng.choice((0, 100, 1000, 3000)), "preemption.context": rng.choice(("dram", "l2")),
    }  # fmt: skip
    found, calm = combinations.run(name, ["preemption"], settings=settings), combinations.run(name, [])
    errors = [found.wrong] if found.wrong else []
    if not any(sum(raw["sm.preempted"]) for raw in found.raw):
        print(f"{name}, seed {seed}: over before any CTA leaves")
    counts = ("sm.ctas", "sm.warps") + (() if name in RACY else ("sm.warp_instructions", "sm.barriers"))
    for launch, (mine, its) in enumerate(zip(found.raw, calm.raw, strict=True)):
        errors += [
            f"{name}, seed {seed}, {settings}: launch {launch}: {count}: {sum(mine[count])} against {sum(its[count])}"
            for count in counts
            if sum(mine[count]) != sum(its[count])
        ]
    return errors


def main(arguments: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(prog="lossless", description=__doc__)
    parser.add_argument("--seeds", type=int, default=1)
    parser.add_argument("--seed", type=int, default=1, help="the first one")
    parser.add_argument("--kernels", default=",".join(kernels.names()), help="names between commas")
    options = parser.parse_args(arguments)
    wrong = 0
    for name in options.kernels.split(","):
        errors = [error for k in range(options.seeds) for error in lossless(name, options.seed + k)]
        wrong += bool(errors)
        print("\n".join([f"{name}: {'wrong' if errors else 'the same'}", *errors]), flush=True)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
