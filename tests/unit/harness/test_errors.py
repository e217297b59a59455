import errno

import pytest
from harness import errors, program


@pytest.mark.parametrize(
    ("error", "verdict"),
    [
        (MemoryError(), "HOST_MEMORY"),
        (RuntimeError("[x] DefaultCPUAllocator: can't allocate memory: you tried"), "HOST_MEMORY"),
        (OSError(errno.ENOSPC, "full"), "DISK_LIMIT"),
        (BlockingIOError(errno.EAGAIN, "fork"), "PROCESS_LIMIT"),
        (RuntimeError("can't start new thread"), "PROCESS_LIMIT"),
        (ValueError("x"), "RUNTIME_ERROR"),
    ],
)
def test_resources_that_ran_out_have_their_own_verdict(error: Exception, verdict: str) -> None:
    assert errors.verdict_of(error, "RUNTIME_ERROR") == verdict


def caught(source: str) -> str:
    try:
        program.load(source, "solution")
    except program.LoadFailed as error:
        return errors.describe(program.cause(error), error.path)
    raise AssertionError("it did not fail")


def test_a_long_message_keeps_its_start_and_its_end() -> None:
    text = caught("raise ValueError('start' + 'x' * 100000 + 'end')")
    assert len(text) <= errors.MAX_TEXT + 200
    assert "start" in text
    assert text.endswith("end")


def test_deep_recursion_is_described_briefly() -> None:
    text = caught("def f(n):\n    return f(n + 1)\nf(0)")
    assert "RecursionError" in text
    assert len(text) < errors.MAX_TEXT


def test_an_exception_whose_text_cannot_be_made_is_described_all_the_same() -> None:
    text = caught("class E(Exception):\n    def __str__(self): raise KeyError(1)\nraise E()")
    assert "E" in text
