"""The roles' side of timing, over a stand-in for the GPU: tensors stay on the CPU."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import torch
import trees
from harness import candidate, device_kernels, reference, timing, wire

from tests.unit.harness.test_timing import FakeClock

REFERENCE = """
import torch
class Model(torch.nn.Module):
    def __init__(self, features):
        super().__init__()
        self.fc = torch.nn.Linear(features, 3)
        self.norm = torch.nn.BatchNorm1d(3)
    def forward(self, x):
        return self.norm(self.fc(x))
def get_inputs(): return [torch.randn(32, 24)]
def get_init_inputs(): return [24]
"""
SOLUTION = REFERENCE.replace("class Model(", "class ModelNew(")


class StandIn:
    """candidate.Device without a GPU."""

    def __init__(self, poison: int, ablated: bool) -> None:
        self.fake = FakeClock()

    def place(self, tensor: torch.Tensor) -> torch.Tensor:
        return tensor.clone()

    def adopt(self, model: torch.nn.Module) -> None: ...

    def empty(self, shape: list[int], dtype: torch.dtype) -> torch.Tensor:
        return torch.full(shape, 7, dtype=dtype)

    def entry(self, library: str, name: str) -> Callable[..., Any]:
        raise NotImplementedError

    def loading(self, library: str) -> None: ...

    def stream(self) -> int:
        return 0

    def before_run(self, shapes: list[dict[str, Any]] | None) -> None: ...

    def after_run(self) -> None: ...

    def between_runs(self) -> None: ...

    def clock(self) -> timing.Clock:
        return self.fake

    def notes(self) -> list[str]:
        return ["stand-in"]

    def launches(self) -> int | None:
        return None

    def work(self) -> dict[str, int] | None:
        return None

    def findings(self, raised: bool) -> list[dict[str, Any]]:
        return []


@pytest.fixture
def solution(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[candidate.Candidate]:
    monkeypatch.setattr(candidate, "CudaDevice", StandIn)
    (tmp_path / "manifest.json").write_text('{"extensions": []}')
    role = candidate.Candidate()
    message = {
        "contract": "modelnew",
        "source": SOLUTION,
        "artifact": str(tmp_path),
        "entry": None,
        "weight_seed": 42,
        "weights_on": "cpu",
        "device": "cuda",
        "memory": "host",
        "schedule": "forward",
        "poison": 255,
    }
    assert role.load(message, [24], -1) == {"ok": True}
    yield role
    role._contexts.close()


@pytest.fixture
def task(monkeypatch: pytest.MonkeyPatch) -> Iterator[reference.Reference]:
    # cuda_on_cpu takes "cuda" to the CPU; the clock does the same for time.
    monkeypatch.setattr(device_kernels, "load_kernels", lambda driver: None)
    monkeypatch.setattr(device_kernels, "CudaClock", lambda driver, kernels: FakeClock())
    role = reference.Reference()
    message = {
        "source": REFERENCE,
        "device": "emulated",
        "memory": "host",
        "scale": 1.0,
        "scaled_shapes": {},
        "weight_seed": 42,
        "weights_on": "auto",
    }
    reply, _ = role.load(message)
    assert reply["ok"], reply
    assert reply["multiply_adds"] == 32 * 24 * 3
    assert reply["parameter_bytes"] == 4 * (24 * 3 + 3 + 4 * 3) + 8
    role._driver = object()  # type: ignore[assignment]
    yield role
    role._contexts.close()


def case(task: reference.Reference, key: int | None) -> Any:
    message: dict[str, Any] = {"seed": 11, "family": "native"}
    if key is not None:
        message["key"] = key
    reply, fds = task.case(message)
    for name, descriptor in zip(("inputs", "expected", "expected64"), fds):
        reply[name] = wire.decode(reply[name], descriptor)
    return reply


def test_a_timed_call_gives_what_the_reference_expects_for_its_key(
    solution: candidate.Candidate, task: reference.Reference
) -> None:
    base = case(task, None)
    assert base["fresh"] == [0]
    outputs = [{"dtype": "float32", "shape": [32, 3]}]
    begun = solution.time_begin(
        *trees.call(base["inputs"], outputs=outputs, seed=11, fresh=base["fresh"])
    )
    assert begun == {"ok": True, "notes": ["stand-in"]}
    for key in (123, 2**63 - 1):
        assert solution.time_sample(key)["ok"]
        reply, (descriptor,) = solution.time_outputs()
        given = wire.decode(reply["outputs"], descriptor)
        assert torch.equal(given, case(task, key)["expected"])
        assert not torch.equal(given, base["expected"])


def test_a_reference_is_timed_and_then_gives_the_same_cases(task: reference.Reference) -> None:
    before = case(task, 5)
    begun = task.time_begin({"seed": 11, "compiled": False})
    assert begun["ok"], begun
    assert begun["launch_us"] == 0  # of a clock that nobody moves
    assert begun["tf32"]["matmul"] is False
    assert len(begun["notes"]) == 1
    assert task.time_sample({"key": 5})["ok"]
    assert torch.equal(case(task, 5)["expected"], before["expected"])


def test_an_emulated_device_has_no_times(solution: candidate.Candidate) -> None:
    def none() -> timing.Clock:
        raise timing.NoTimes("an emulated device has no times")

    assert solution._solution is not None
    solution._solution.device.clock = none  # type: ignore[method-assign]
    reply = solution.time_begin(*trees.call([], fresh=[]))
    assert reply["verdict"] == "UNSUPPORTED"
    role = reference.Reference()
    role._instance = object()  # type: ignore[assignment]
    assert role.time_begin({"seed": 1, "compiled": False})["verdict"] == "UNSUPPORTED"


def test_a_call_that_raises_while_it_is_timed_is_typed(solution: candidate.Candidate) -> None:
    assert solution.time_begin(*trees.call([torch.ones(32, 5)], fresh=[]))["ok"]
    reply = solution.time_sample(1)
    assert reply["verdict"] == "RUNTIME_ERROR"
    assert "shapes cannot be multiplied" in reply["error"]


@pytest.mark.parametrize(
    ("text", "verdict"),
    [
        ("CUDA error: an illegal memory access was encountered", "ILLEGAL_ACCESS"),
        ("kernel failed: invalid configuration argument", "ILLEGAL_LAUNCH"),
        ("CUDA error: out of memory", "DEVICE_MEMORY"),
        ("something else", "RUNTIME_ERROR"),
    ],
)
def test_errors_of_the_device_are_typed(text: str, verdict: str) -> None:
    from harness import errors

    assert errors.verdict_of(RuntimeError(text), "RUNTIME_ERROR") == verdict
