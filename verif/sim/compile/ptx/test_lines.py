"""Lines of the source that PTX was made from."""

from __future__ import annotations

from lockstep.sim.compile.ptx.lines import Places

PTX = """.entry first() {
.loc 1 3 5
ret;
}
.entry k() {
ret;
.loc 1 10 2
add;
.loc 2 7 1, function_name $L1, inlined_at 1 11 4
mul;
.loc 1 12 1
.loc 3 9 1, function_name $L1, inlined_at 2 7 1
.loc 1 0 0
bar;
}
.file 1 "/own/x.cu"
.file 2 "/own/x.h"
.file 3 "/cuda/f.h"
"""


def found(line: int, *foreign: str) -> tuple[str, int] | None:
    return Places(PTX, lambda file: file not in foreign).source(line)


def test_lines() -> None:
    assert found(3) == ("/own/x.cu", 3)
    assert found(6) is None, "the places of another function say nothing"
    assert found(8) == ("/own/x.cu", 10)
    assert found(10) == ("/own/x.h", 7)
    assert Places("ret;\n", lambda _: True).source(1) is None


def test_code_of_others_is_where_it_was_inlined() -> None:
    assert found(10, "/own/x.h") == ("/own/x.cu", 11)
    assert found(12) == ("/cuda/f.h", 9)
    assert found(12, "/cuda/f.h") == ("/own/x.h", 7)
    assert found(12, "/cuda/f.h", "/own/x.h") == ("/own/x.cu", 11)
