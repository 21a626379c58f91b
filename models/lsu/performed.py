"""What an SM's memory instructions have not done yet, for fences, where lines have values (``memory.values``).

An instruction of global memory is *performed* when its answers are there, and what it stores when the slices have
looked it up. A fence whose scope is beyond the CTA waits for all that its SM has issued before it, since other threads
of its CTA may have left that to it at a barrier. Time is counted in *epochs*: a fence that begins to wait ends one.
"""

from __future__ import annotations

from lockstep.models.jit import addressof, i64, inline, jit, record
from lockstep.spec.parameters import MAX_WARPS

EPOCHS = 2 * MAX_WARPS  # more than fences that wait

COUNT = record([("left", "i8")])

PERFORMED = record(
    [
        ("epoch", "i8"),  # the present one
        ("oldest", "i8"),  # the first one of which something is left, or the present one
        ("waits", "i8"),  # warps that have come to a fence ...
        ("until", "i8", (MAX_WARPS,)),  # ... for which this epoch and those before it must be over
        ("count", COUNT, (EPOCHS,)),  # what is left of an epoch: instructions, and requests of stores
    ]
)


@inline
def begun(performed):
    """An instruction has issued; returns its epoch."""
    epoch = i64(performed.epoch) % EPOCHS
    performed.count[epoch].left += 1
    return epoch


@inline
def answered(performed, epoch):
    """An instruction has been answered, or all its lines have been sent."""
    performed.count[epoch].left -= 1


@inline
def counter_of(performed, epoch):
    """A request of an instruction is sent; returns the host address of the count that has it."""
    performed.count[epoch].left += 1
    return addressof(performed.count[epoch])


@inline
def advance(performed):
    """Find the oldest epoch that is not over."""
    while performed.oldest < performed.epoch and performed.count[performed.oldest % EPOCHS].left == 0:
        performed.oldest += 1


@jit
def all_performed(performed, warp):
    """Whether all that the SM had issued when a warp came to its fence has been performed."""
    if (i64(performed.waits) >> warp) & 1 == 0:
        performed.waits = i64(i64(performed.waits) | i64(1) << warp)
        performed.until[warp] = performed.epoch
        if performed.epoch + 1 < performed.oldest + EPOCHS:
            performed.epoch += 1
    advance(performed)
    return performed.until[warp] < performed.oldest


@inline
def nothing_left(performed):
    """Whether all that the SM has issued has been performed."""
    advance(performed)
    return performed.oldest == performed.epoch and performed.count[performed.epoch % EPOCHS].left == 0


@inline
def leave_fence(performed, warp):
    """A warp has issued its fence, or is another one."""
    performed.waits &= ~(i64(1) << warp)
