"""Timed calls, with a clock that moves only when a call says so."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from harness import timing


class FakeClock:
    """`now` moves by hand; what is queued on another stream ends with the next join."""

    def __init__(self) -> None:
        self.now = 1000.0
        self.elsewhere = 0.0
        self.events: dict[int, float] = {}
        self.log: list[str] = []

    def empty_cache(self) -> None:
        self.log.append("empty")

    def join(self) -> None:
        self.log.append("join")
        self.now += self.elsewhere
        self.elsewhere = 0.0

    def record(self, event: int) -> None:
        self.log.append(f"record {event}")
        self.events[event] = self.now

    def elapsed_us(self, start: int, end: int) -> float:
        return self.events[end] - self.events[start]

    def now_us(self) -> float:
        return self.now


def session(
    clock: FakeClock, call: Callable[[list[Any]], Any], inputs: list[Any], fresh: list[int]
) -> timing.Session:
    def bind(copies: list[Any]) -> Callable[[], Any]:
        clock.log.append("bind")
        return lambda: call(copies)

    return timing.Session(clock, bind, inputs, fresh)


def test_a_sample_holds_the_call_and_nothing_else() -> None:
    clock = FakeClock()

    def call(copies: list[Any]) -> Any:
        clock.log.append("call")
        clock.now += 42
        return copies[0] * 2

    made = session(clock, call, [torch.ones(4)], [])
    assert made.sample(1) == timing.Sample(event_us=42, joined_us=42, host_us=42)
    order = ["bind", "empty", "join", "record 0", "call", "record 1", "join", "record 2", "join"]
    assert clock.log == order
    assert torch.equal(made.outputs(), torch.full((4,), 2.0))


def test_work_on_another_stream_counts_for_the_join() -> None:
    clock = FakeClock()

    def call(copies: list[Any]) -> Any:
        clock.now += 3
        clock.elsewhere = 500
        return copies[0]

    made = session(clock, call, [torch.ones(4)], []).sample(1)
    assert made == timing.Sample(event_us=3, joined_us=503, host_us=503)


def test_every_call_gets_its_own_content_and_memory() -> None:
    inputs: list[Any] = [torch.randn(64, 64), {"mask": torch.arange(10)}]
    seen: list[Any] = []

    def call(copies: list[Any]) -> Any:
        seen.append(copies)
        return copies[0]

    made = session(FakeClock(), call, inputs, [0])
    for key in (5, 6, 5):
        made.sample(key)
    first, second, again = (copies[0] for copies in seen)
    assert not torch.equal(first, inputs[0])
    assert not torch.equal(first, second)
    assert torch.equal(first, again)
    assert first.data_ptr() != second.data_ptr()
    assert torch.equal(seen[0][1]["mask"], inputs[1]["mask"])


def test_outputs_are_those_of_the_moment_the_time_was_taken() -> None:
    late: list[torch.Tensor] = []

    def call(copies: list[Any]) -> tuple[torch.Tensor, ...]:
        late.append(torch.zeros(3))
        return (late[-1], copies[0])

    made = session(FakeClock(), call, [torch.ones(3)], [])
    made.sample(1)
    late[-1].fill_(7)
    outputs = made.outputs()
    assert isinstance(outputs, tuple)
    assert torch.equal(outputs[0], torch.zeros(3))


def test_a_call_that_writes_to_its_inputs_does_not_change_the_next() -> None:
    inputs = [torch.ones(8)]
    made = session(FakeClock(), lambda copies: copies[0].add_(1), inputs, [])
    made.sample(1)
    made.sample(2)
    assert torch.equal(made.outputs(), torch.full((8,), 2.0))
    assert torch.equal(inputs[0], torch.ones(8))


def test_a_change_keeps_values_zeros_and_strides() -> None:
    base = torch.randn(100, 40).t().tril()
    (changed,) = timing.changed([base], [0], key=9)
    assert changed.stride() == base.stride()
    assert torch.equal(changed == 0, base == 0)
    same = base * (1 - 9 / 4096)
    assert set(changed.flatten().tolist()) <= set(same.flatten().tolist())
    different = int((changed != same).sum())
    assert 5 < different <= base.numel() // 8


def test_a_sum_over_all_inputs_tells_keys_apart() -> None:
    base = torch.rand(1 << 20)
    means = [float(timing.changed([base], [0], key)[0].double().mean()) for key in range(0, 512, 8)]
    nearest = min(abs(a - b) for a, b in zip(sorted(means), sorted(means)[1:]))
    assert nearest > 5e-4  # against about 6e-5 that a loss of this size is allowed
    assert max(means) / min(means) < 8 / 7 * 1.001


def test_a_change_does_not_depend_on_strides() -> None:
    plain = torch.randn(30, 50)
    other = torch.empty_strided((30, 50), (1, 30)).copy_(plain)
    assert torch.equal(*[timing.changed([t], [0], key=3)[0] for t in (plain, other)])


@pytest.mark.parametrize(
    "dtype", [torch.float16, torch.bfloat16, torch.float64, torch.complex64, torch.int64]
)
def test_every_numeric_type_can_change(dtype: torch.dtype) -> None:
    base = (torch.randn(1000) * 100).to(dtype)
    (changed,) = timing.changed([base], [0], key=3)
    assert changed.dtype is dtype
    assert not torch.equal(changed, base)


def test_nested_inputs_count_their_leaves_in_order() -> None:
    inputs: list[Any] = [[torch.randn(64), torch.randn(64)], 3, {"a": torch.randn(64)}]
    changed = timing.changed(inputs, [1, 2], key=4)
    assert torch.equal(changed[0][0], inputs[0][0])
    assert not torch.equal(changed[0][1], inputs[0][1])
    assert not torch.equal(changed[2]["a"], inputs[2]["a"])
    assert changed[1] == 3


@pytest.mark.parametrize(
    ("tensor", "may"),
    [
        (torch.randn(200), True),
        (torch.randn(20, 20) + torch.randn(20, 20), True),
        (torch.randint(0, 1000, (64,)), True),
        (torch.randn(20, 20) @ torch.eye(20) + 0, True),
        (torch.arange(64), False),  # offsets
        (torch.softmax(torch.randn(8, 32), -1), False),
        (torch.ones(200), False),
        (torch.rand(200) > 0.5, False),
        (torch.randn(1), False),
        ((lambda m: m + m.t())(torch.randn(30, 30)), False),
    ],
)
def test_structure_is_left_alone(tensor: torch.Tensor, may: bool) -> None:
    assert timing.changeable([tensor]) == ([0] if may else [])
