"""Operands: corner values, crossed, and random ones, from raw bits of a generator that never changes."""

from __future__ import annotations

from fractions import Fraction
from itertools import product
from typing import Any

import numpy as np

from lockstep.models.execution.isa import Round
from lockstep.sim.compile.ptx.operations import BITS
from lockstep.verif.models.execution.rationals import BF16, F16, F32, F64, Format

WARP = 32
FORMATS = {"f16": F16, "bf16": BF16, "f32": F32, "f64": F64}
WIDTHS = BITS | {
    **dict.fromkeys(("u8", "s8", "b8"), 16),  # in registers of 16 bits, whose upper half does not count
    **dict.fromkeys(("bit", "byte", "offset", "rare", "few32", "one32", "lane", "clamp", "mask"), 32),
    **dict.fromkeys(("few64", "one64"), 64),
}
"""Bits of the registers of each kind of operand."""
NUMPY: dict[str, Any] = {"f16": np.float16, "f32": np.float32, "f64": np.float64}


def operands(kinds: tuple[str, ...], count: int, seed: int) -> list[np.ndarray]:
    """For each kind, ``count`` values in u64: in the first half corners in all combinations, or as many as fit."""
    source = np.random.PCG64([seed, *("".join(kinds).encode())])
    arrays = [_random(kind, count, source) for kind in kinds]
    corners = [_corners(kind) for kind in kinds]
    if all(corners):
        half = count // 2
        total = int(np.prod([len(each) for each in corners]))
        chosen = np.arange(half) if total <= half else _raw(source, half) >> np.uint64(1)
        chosen = chosen.astype(np.int64) % total
        for array, values in zip(reversed(arrays), reversed(corners), strict=True):
            array[:half] = np.array(values, np.uint64)[chosen % len(values)]
            chosen //= len(values)
    if len(kinds) > 1 and kinds[0] == kinds[1] and kinds[0] in NUMPY:
        _meet_least_normal(arrays, kinds[0], source)
    return arrays


def _meet_least_normal(arrays: list[np.ndarray], kind: str, source: np.random.PCG64) -> None:
    """Make products of the last pairs of operands fall within some units of the least normal number, then quotients."""
    form, dtype, count = FORMATS[kind], NUMPY[kind], len(arrays[0]) // 16
    least = np.float64(np.finfo(dtype).smallest_normal)
    raw = _raw(source, 2 * count)
    below = np.uint64(form.bias) - raw % np.uint64(min(40, form.bias // 2)) - np.uint64(1)
    first = (raw >> np.uint64(8) & np.uint64((1 << form.precision - 1) - 1)) | below << np.uint64(form.precision - 1)
    values = _as_values(first, dtype)
    second = _as_bits((least / values[:count]).astype(dtype))
    arrays[0][-count:], arrays[1][-count:] = first[:count], second
    first[count:] = _as_bits((values[count:] ** -1).astype(dtype))
    second = _as_bits((least * _as_values(first[count:], dtype)).astype(dtype))
    arrays[0][-2 * count : -count], arrays[1][-2 * count : -count] = second, first[count:]
    shift = np.roll(raw, 1) >> np.uint64(60)
    arrays[0][-2 * count :] += shift % np.uint64(3)
    arrays[1][-2 * count :] -= shift // np.uint64(8)
    arrays[1][-2 * count :] ^= (shift >> np.uint64(2) & np.uint64(1)) * np.uint64(form.sign)


def _as_values(bits: np.ndarray, dtype: type) -> np.ndarray:
    return bits.astype(f"u{np.dtype(dtype).itemsize}").view(dtype).astype(np.float64)


def _as_bits(values: np.ndarray) -> np.ndarray:
    return values.view(f"u{values.itemsize}").astype(np.uint64)


def _raw(source: np.random.PCG64, count: int) -> np.ndarray:
    return np.asarray(source.random_raw(count), np.uint64)


def _random(kind: str, count: int, source: np.random.PCG64) -> np.ndarray:
    if kind.endswith("x2"):
        low, high = (_random(kind[:-2], count, source) for _ in range(2))
        return low | high << np.uint64(16)
    raw, form = _raw(source, count), _raw(source, count)
    if kind in FORMATS:
        return _floats(FORMATS[kind], raw, form)
    lanes = np.arange(count, dtype=np.uint64) // np.uint64(WARP)
    if kind == "bit":
        return raw & np.uint64(1)
    if kind == "byte":
        return np.where(form & np.uint64(1), raw % np.uint64(70), raw & np.uint64(255))
    if kind == "offset":  # of a bit, in either direction
        return raw % np.uint64(81) - np.uint64(40) & np.uint64(0xFFFF_FFFF)
    if kind == "rare":  # mostly the same in a warp
        odd = form % np.uint64(29) == 0
        return (lanes ^ odd) & np.uint64(1)
    if kind.startswith("few"):
        return raw % np.uint64(5) * np.uint64(0x4000_0000_8000_0001 if kind == "few64" else 0x4000_0001)
    if kind.startswith("one"):
        value = lanes * np.uint64(0x1_0000_0001 if kind == "one64" else 1)
        return np.where(form % np.uint64(97) == 0, value ^ np.uint64(1 << 31), value)
    if kind == "lane":
        return raw % np.uint64(36)
    if kind == "clamp":  # segments of 8, 16 or 32 lanes, with 0 or the last lane
        segment = np.array([0x0000, 0x1000, 0x1800, 0x0700, 0x1C00], np.uint64)[(raw % np.uint64(5)).astype(int)]
        return segment | np.array([0, 31, 15, 7], np.uint64)[(form % np.uint64(4)).astype(int)]
    if kind == "mask":
        masks = np.where(form % np.uint64(3) == 0, raw >> np.uint64(32), raw & form) & np.uint64(0xFFFF_FFFF)
        masks = np.where(form % np.uint64(5) == 0, np.uint64(0xFFFF_FFFF), masks)
        return np.repeat(np.where(masks == 0, np.uint64(1), masks)[::WARP], WARP)[:count]
    return _integers(WIDTHS[kind], raw, form)


def _integers(bits: int, raw: np.ndarray, form: np.ndarray) -> np.ndarray:
    """Of all sizes, positive and negative, and small ones."""
    short = raw >> (form & np.uint64(63))
    small = raw % np.uint64(80)
    values = np.where(form & np.uint64(64), np.uint64(0) - short, short)
    values = np.where(form & np.uint64(0x300), values, small)
    return values & np.uint64((1 << bits) - 1)


def _floats(form: Format, raw: np.ndarray, choice: np.ndarray) -> np.ndarray:
    """Any bits; or numbers around one, many of them with few digits."""
    mantissa = np.uint64((1 << form.precision - 1) - 1)
    digits = mantissa << (choice >> np.uint64(8)) % np.uint64(form.precision) & mantissa
    spread = min(48, form.bias)
    exponent = np.uint64(form.bias - spread // 4) + (choice >> np.uint64(24)) % np.uint64(spread)
    near = raw & (digits | np.uint64(form.sign)) | exponent << np.uint64(form.precision - 1)
    return np.where(choice & np.uint64(3), near, raw) & np.uint64((form.sign << 1) - 1)


def _corners(kind: str) -> list[int]:
    """Values that instructions treat in a way of their own, or might; none for kinds without."""
    if kind.endswith("x2"):
        values = _corners(kind[:-2])
        return [low | high << 16 for low, high in zip(values, values[7:] + values[:7], strict=True)]
    if kind in FORMATS:
        return _float_corners(FORMATS[kind])
    if kind == "byte":
        return [0, 1, 2, 7, 8, 31, 32, 33, 62, 63, 64, 65, 127, 128, 254, 255]
    if kind not in BITS:
        return []
    bits = 8 if kind[1:] == "8" else BITS[kind]
    top = 1 << bits - 1
    values = [0, 1, 2, 3, 5, 7, 8, 15, 16, 24, 31, 32, 33, 63, 64, 65, 127, 128, 255, 256, 257, 0x7FFF, 0x8000, 0xFFFF]
    values += [0x1_0000, 0x7F_FFFF, 0x80_0000, 0x55AA_33CC, 0x7FFF_FFFF, 0x8000_0000, 0xFFFF_FFFF, 0x1_0000_0000]
    values += [top - 1, top, top + 1, 3 * top >> 1, -1, -2, -3, -7, -32, -33, -256]
    garbage = 0xA500 if bits == 8 else 0
    return sorted({value % (2 * top) | garbage for value in values})


def _float_corners(form: Format) -> list[int]:
    one = form.bias << form.precision - 1
    normal, quiet = 1 << form.precision - 1, 1 << form.precision - 2
    numbers = [2.0**-126 * (1 - 2.0**-n) for n in (24, 25, 26)] if form is F64 else []
    numbers += [0.5, 1.5, 2.0, 2.5, 3.0, 127.5, 128.0, 255.5, 32767.5, 65504.0, 2.0**31, 2.0**32, 2.0**63]
    numbers += [2.0**126 * (1 + 2.0**-n) for n in (23, 60)] if form is not F16 else []
    positive = [0, 1, normal - 1, normal, one - 1, one, one + 1, form.infinity - 1, form.infinity]
    positive += [form.infinity | 1, form.infinity | quiet, form.infinity | quiet | 5]
    positive += [form.round(Fraction(number), Round.RN) for number in numbers]
    return sorted({sign | value for value, sign in product(positive, (0, form.sign)) if value & form.sign == 0})
