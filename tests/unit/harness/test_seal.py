from __future__ import annotations

import gc
import signal
import sys
import time
import types
from collections.abc import Iterator

import pytest
import torch
from harness import collect, cpp_extension, errors, seal, timing, wire
from torch.overrides import TorchFunctionMode


@pytest.fixture(autouse=True)
def sealed() -> Iterator[None]:
    seal.close()
    yield
    seal.release()


def test_nothing_is_broken_by_honest_programs() -> None:
    torch.backends.cuda.matmul.allow_tf32 = False
    torch.manual_seed(1)
    torch.set_default_device("cpu")
    try:
        assert torch.allclose(torch.ones(3) + 1, torch.full((3,), 2.0))
        # What importing torch._dynamo does.
        module = types.ModuleType("more")
        sys.modules["more"] = module
        assert seal.broken() is None
    finally:
        torch.set_default_device(None)
        del sys.modules["more"]


@pytest.mark.parametrize(
    ("owner", "name"),
    [
        (time, "perf_counter_ns"),
        (torch, "allclose"),
        (torch.Tensor, "clone"),
        (torch.Tensor, "__eq__"),
        (torch.cuda, "synchronize"),
        (torch.cuda.Event, "elapsed_time"),
        (torch.testing, "assert_close"),
        (wire.TreeWriter, "encode"),
        (timing, "changed"),
        (seal, "judged"),
    ],
)
def test_a_replaced_function_is_named(
    monkeypatch: pytest.MonkeyPatch, owner: object, name: str
) -> None:
    monkeypatch.setattr(owner, name, lambda *_a, **_k: None)
    told = seal.broken()
    assert told is not None
    assert name in told
    monkeypatch.undo()
    assert seal.broken() is None


def test_exchanged_code_under_the_same_function_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    def encode(self: object, value: object, depth: int = 0) -> object:
        return None

    monkeypatch.setattr(wire.TreeWriter.encode, "__code__", encode.__code__)
    assert "code of" in (seal.broken() or "")


def test_what_is_left_in_place_is_found() -> None:
    hook = lambda _phase, _info: None  # noqa: E731
    gc.callbacks.append(hook)
    assert "garbage" in (seal.broken() or "")
    gc.callbacks.remove(hook)

    class Mode(TorchFunctionMode):
        def __torch_function__(self, func, types, args=(), kwargs=None):  # type: ignore[no-untyped-def]
            return func(*args, **(kwargs or {}))

    with Mode():
        assert "Mode" in (seal.broken() or "")

    before = signal.signal(signal.SIGALRM, lambda *_: None)
    signal.setitimer(signal.ITIMER_REAL, 1000)
    assert "timer" in (seal.broken() or "")
    signal.setitimer(signal.ITIMER_REAL, 0)
    signal.signal(signal.SIGALRM, before)
    assert seal.broken() is None


def test_an_answer_becomes_tampering_but_not_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    good = {"ok": True, "outputs": 1}
    assert seal.judged(good) is good
    monkeypatch.setattr(time, "time", lambda: 0)
    assert seal.judged(good)["verdict"] == "TAMPERING"
    sample = {"ok": True, "event_us": 1.0}
    assert seal.judged(sample) is sample


def test_a_tensor_with_methods_of_its_own_is_tampering() -> None:
    tensor = torch.ones(2)
    tensor.detach = lambda: torch.zeros(2)  # type: ignore[method-assign]
    with pytest.raises(seal.Tampered, match="detach") as raised:
        wire.TreeWriter(wire.FileStorage("x")).encode(tensor)
    assert errors.verdict_of(raised.value, "RUNTIME_ERROR") == "TAMPERING"
    plain = torch.ones(2)
    plain.note = "harmless"  # type: ignore[attr-defined]
    assert wire.TreeWriter(wire.FileStorage("x")).encode(plain)["bytes"] == 8


def test_collecting_tells_what_an_import_exchanged() -> None:
    source = (
        "import time\nfrom torch.utils.cpp_extension import load_inline\n"
        "plain = time.time\ntime.time = lambda: 0\n"
        "load_inline(name='a', cpp_sources='', cuda_sources='__global__ void k() {}')\n"
        "class ModelNew: pass\n"
    )
    plain = time.time
    try:
        answer = collect.collect(source, None, None)
    finally:
        time.time = plain
    assert answer["verdict"] == "TAMPERING"
    assert "time.time" in answer["error"]
    assert cpp_extension.install is not None
    assert seal.broken() is None
