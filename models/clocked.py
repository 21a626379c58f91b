"""Clock edges of a block whose inputs are held: those of its model that would change nothing are passed over."""

from __future__ import annotations

from lockstep.models.jit import call, i64, jit


@jit
def clock(binding, io, cycles):
    """So many edges, the first of them in any case; ``io`` is an address. Returns whether hardware and model differ.

    The block's model has a ``skip``. Hardware is never idle.
    """
    different = i64(0)
    while cycles > 0:
        different |= call(binding.step, binding.handle, io)
        passed = min(call(binding.idle, binding.handle, io), cycles - 1)
        if passed > 0:
            call(binding.skip, binding.handle, passed)
        cycles -= 1 + passed
    return different
