"""C++ names of kernels, as people write them."""

from __future__ import annotations

import pytest

from lockstep.sim import UsageError
from lockstep.sim.compile.ptx import names

KNOWN = [
    "_Z1fILi3EEvPf",
    "_ZN1a1hEPf",
    "plain",
    "_Z5twicePf",
    "_Z5twicePd",
    "_ZN12_GLOBAL__N_14anonEPi",
    "_ZL6staticPi",
]


@pytest.mark.parametrize(
    ("mangled", "shown", "signature"),
    [
        ("_Z1fILi3EEvPf", "f<3>", "f<3>(float*)"),
        ("_ZN1a1hEPf", "a::h", "a::h(float*)"),
        ("_ZN12_GLOBAL__N_14anonEPi", "anon", "anon(int*)"),
        ("plain", "plain", "plain"),
        ("_Zwrong", "_Zwrong", "_Zwrong"),
    ],
)
def test_readable(mangled: str, shown: str, signature: str) -> None:
    assert (names.readable(mangled), names.signature(mangled)) == (shown, signature)


@pytest.mark.parametrize(
    ("name", "found"),
    [
        ("f<3>", 0), ("f< 3 >", 0), ("f", 0), ("f<4>", None), ("a::h", 1), ("h", 1), ("b::h", None), ("plain", 2),
        ("twice(float *)", 3), ("_Z5twicePd", 4), ("anon", 5), ("static", 6), ("stat", None),
    ],
)  # fmt: skip
def test_find(name: str, found: int | None) -> None:
    assert names.find(name, KNOWN) == (None if found is None else KNOWN[found])


def test_ambiguous() -> None:
    with pytest.raises(UsageError, match=r"'twice' is ambiguous: it may be twice\(float\*\) or twice\(double\*\)"):
        names.find("twice", KNOWN)


def test_names_that_double_in_length() -> None:
    """Each type is a pair of the one before it: 200 letters stand for gigabytes."""
    digits = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ"
    pairs = ["_Z1f1PIiiE" + "".join(f"S_IS{digit}_S{digit}_E" for digit in digits[:count]) for count in (3, 30)]
    assert names.signature(pairs[0]).startswith("f(P<int, int>, P<P<int, int>, P<int, int> >")
    assert names.readable(pairs[1]) == pairs[1]
    assert names.signature("_Z1fPKf" + 40 * "S0_") == "f(" + ", ".join(["float const*"] * 41) + ")"
