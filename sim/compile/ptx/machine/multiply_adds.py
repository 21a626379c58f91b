"""Products and left shifts that are used in a sum alone: one instruction for both.

Machine code multiplies and adds at the cost of the product. It adds what has been shifted to the left at that of the
shift, by a distance that has a field of its own beside the operands: ISCADD, in Fermi's instruction set and its
successors', LEA from Maxwell on. A product with a power of two is a shift.
"""

from __future__ import annotations

from lockstep.models.execution.isa import Category, Fetch, Group, Int, Long, Write
from lockstep.sim.compile.ptx.machine.values import Values
from lockstep.sim.compile.ptx.micro import NONE, Code, Micro, Source


def fuse(code: Code) -> None:
    """Make shifts of products with powers of two, and one instruction of a product or shift and the sum with it."""
    for micro in code.list:
        _shift(micro)
    values = Values(code)
    gone = set()
    for index, micro in enumerate(code.list):
        if _is_sum(micro):
            for which in range(len(micro.sources)):
                product = _product(code, values, index, which)
                if product is not None and _join(micro, which, code.list[product]):
                    gone.add(product)
                    break
    code.replace([[] if index in gone else [micro] for index, micro in enumerate(code.list)])


def _is_plain(micro: Micro, group: Group, *operations: int) -> bool:
    """Whether it is one of the operations, on whole registers, without carry."""
    write = Write.PAIR if group == Group.LONG else Write.WORD
    known = micro.group == group and micro.op in operations and micro.write == write and not micro.sub
    return known and micro.pdst == micro.psrc == NONE


def _shift(micro: Micro) -> None:
    """Replace a product with a power of two."""
    if not _is_plain(micro, Group.INT, Int.MUL):
        return
    for factor, other in (micro.sources, micro.sources[::-1]):
        if _is_literal(factor) and factor.bits.bit_count() == 1 and other.register != NONE:
            distance = Source(Fetch.WORD, bits=factor.bits.bit_length() - 1)
            micro.op, micro.category, micro.sources = Int.SHL, Category.SHIFT, (other, distance)
            return


def _is_literal(source: Source) -> bool:
    return source.register == NONE and source.storage is None


def _is_sum(micro: Micro) -> bool:
    return _is_plain(micro, Group.INT, Int.ADD, Int.SUB) or _is_plain(micro, Group.LONG, Long.ADD)


def _product(code: Code, values: Values, index: int, which: int) -> int | None:
    """The product or shift that makes a source of a sum, and nothing else; its own sources still there."""
    register = code.list[index].sources[which].register
    found = values.only_definition(register) if register != NONE else None
    if found is None or values.uses[register] != [index] or not values.is_single(register):
        return None
    product = code.list[found]
    known = _is_plain(product, Group.INT, Int.MUL, Int.SHL) or _is_plain(product, Group.LONG, Long.MUL)
    if not known or product.guard != NONE or product.group != code.list[index].group:
        return None
    return found if all(map(values.is_single, product.registers_read())) else None


def _join(micro: Micro, which: int, product: Micro) -> bool:
    """Make one instruction of a sum and a product, if there is one."""
    a, b = product.sources
    addend = micro.sources[1 - which]
    operations = Int if micro.group == Group.INT else Long
    if product.op == operations.SHL and product.group == Group.INT:
        if not _is_literal(b) or b.bits >= 32 or (micro.op == Int.SUB and which == 0):
            return False
        factor = -1 << b.bits if micro.op == Int.SUB else 1 << b.bits
        b, category = Source(Fetch.WORD, bits=factor & 0xFFFF_FFFF), Category.SHIFT
    else:
        constants = sum(one.register == NONE for one in (a, b, addend))
        if micro.op == operations.SUB or constants > 1:
            return False
        category = Category.MULTIPLY
    micro.op, micro.category, micro.sources = operations.MAD, category, (a, b, addend)
    return True
