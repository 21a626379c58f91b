"""What commands of this folder that run kernels refuse: in one line, before they run anything."""

from __future__ import annotations

import pytest

from lockstep.verif import memory_steps, threads, windows


@pytest.mark.parametrize("command", [memory_steps, threads, windows])
@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["saxpi"], "kernel 'saxpi': not known; did you mean saxpy?"),
        (["saxpy", "--size", "steady"], "saxpy: has no size 'steady'; it has tiny, small, full"),
        (["saxpy", "--set", "l1.mshr=3"], "--set: unknown parameter l1.mshr; did you mean l1.mshrs?"),
        (["saxpy", "--gpu", "gtx48"], "GPU 'gtx48': not known"),
        (["saxpy", "--with", "warpool"], "mechanism 'warpool': not known"),
    ],
)
def test_wrong_words_are_refused(
    command: object, words: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as ended:
        command.main(words)  # type: ignore[attr-defined]
    out, error = capsys.readouterr()
    assert ended.value.code == 2 and not out
    assert error.startswith(message) and error.count("\n") == 1
