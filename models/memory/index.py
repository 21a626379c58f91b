"""The set of the L1 that a line belongs to: its number modulo the sets, after ``l1.index`` has exchanged some bits.

``linear`` leaves the number as it is. ``fold`` adds, bit by bit and without carry, its next two fields of as many bits
as a set's number has. ``fermi`` adds bits 6, 7, 8, 10 and 12 to bits 0 to 4: what Nugteren et al. (HPCA 2014)
measured on that generation, whose lines have 128 bytes. Bits 9, 11 and from 13 on take no part there, so that lines
which are a large power of two apart share a set.
"""

from lockstep.models.jit import inline
from lockstep.spec.parameters import FERMI, FOLD


@inline
def hashed(index, set_bits, line):
    """The number whose low ``set_bits`` bits are the set of a line."""
    if index == FERMI:
        return line ^ (line >> 6 & 7 | line >> 7 & 8 | line >> 8 & 16)
    if index == FOLD:
        return line ^ line >> set_bits ^ line >> 2 * set_bits
    return line
