from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Iterator
from typing import Any

import pytest
import torch
from harness import families, reference, wire

LINEAR = """
import torch
class Model(torch.nn.Module):
    def __init__(self, features):
        super().__init__()
        self.linear = torch.nn.Linear(features, 2 * features)
        self.norm = torch.nn.BatchNorm1d(2 * features)
    def forward(self, x):
        return torch.relu(self.norm(self.linear(x)))
batch_size = 512
features = 4096
def get_inputs():
    return [torch.rand(batch_size, features)]
def get_init_inputs():
    return [features]
"""


class Loaded:
    def __init__(self, source: str, scale: float = 0.05, scaled: dict[str, int] | None = None):
        self.role = reference.Reference()
        reply, fds = self.role.load(
            {
                "source": source,
                "device": "emulated",
                "memory": "host",
                "scale": scale,
                "scaled_shapes": scaled or {},
                "weight_seed": 7,
                "weights_on": "auto",
            }
        )
        self.reply = reply
        self.init = wire.decode(reply["init"], fds[0]) if reply["ok"] else None

    def case(self, seed: int = 1, family: str = "native", **more: Any) -> dict[str, Any]:
        reply, fds = self.role.case(
            {"seed": seed, "family": family, "want_parameters": True, **more}
        )
        assert reply["ok"], reply
        names = ["inputs", "expected", "expected64", "parameters"]
        present = [n for n in names if reply[n] is not None]
        assert len(present) == len(fds)
        return {
            **reply,
            **{n: wire.decode(reply[n], fd) for n, fd in zip(present, fds)},
        }

    def close(self) -> None:
        self.role._contexts.close()


Load = Callable[..., Loaded]


@pytest.fixture
def load() -> Iterator[Load]:
    made: list[Loaded] = []

    def make(*args: Any, **kwargs: Any) -> Loaded:
        made.append(Loaded(*args, **kwargs))
        return made[-1]

    yield make
    for loaded in reversed(made):
        loaded.close()


def test_shapes_are_reduced_within_the_budget_and_reported(load: Load) -> None:
    loaded = load(LINEAR)
    assert loaded.reply["ok"], loaded.reply
    shapes = loaded.reply["shapes"]
    assert 16 <= shapes["features"] < 4096
    assert loaded.init == [shapes["features"]]
    case = loaded.case()
    assert case["inputs"][0].shape == (shapes["batch_size"], shapes["features"])


def test_full_scale_changes_nothing(load: Load) -> None:
    loaded = load(LINEAR.replace("4096", "24").replace("512", "3"), scale=1.0)
    assert loaded.reply["shapes"] == {}
    assert loaded.case()["inputs"][0].shape == (3, 24)


def test_sizes_given_by_the_task_win(load: Load) -> None:
    loaded = load(LINEAR, scaled={"batch_size": 5, "features": 37})
    assert loaded.reply["shapes"] == {"batch_size": 5, "features": 37}


def test_a_given_size_that_does_not_exist_is_named(load: Load) -> None:
    loaded = load(LINEAR, scaled={"rows": 5})
    assert loaded.reply["verdict"] == "INVALID_TASK"
    assert "rows" in loaded.reply["error"]


def test_the_same_seed_gives_the_same_case_whatever_ran_before(load: Load) -> None:
    loaded = load(LINEAR, scaled={"batch_size": 4, "features": 16})
    first = loaded.case(seed=3)
    loaded.case(seed=4)
    again = loaded.case(seed=3)
    assert torch.equal(first["inputs"][0], again["inputs"][0])
    assert torch.equal(first["expected"], again["expected"])
    assert not torch.equal(loaded.case(seed=4)["inputs"][0], again["inputs"][0])


def test_float64_values_agree_with_the_programs_own(load: Load) -> None:
    case = load(LINEAR, scaled={"batch_size": 4, "features": 16}).case()
    assert case["expected64"].dtype is torch.float64
    assert torch.allclose(case["expected64"].float(), case["expected"], atol=1e-4)


def test_the_reduction_is_the_longest_sum(load: Load) -> None:
    case = load(LINEAR, scaled={"batch_size": 4, "features": 300}).case()
    assert case["reduction"] == 300


def test_parameters_are_the_models_state(load: Load) -> None:
    case = load(LINEAR, scaled={"batch_size": 4, "features": 16}).case()
    assert case["parameters"]["linear.weight"].shape == (32, 16)


def test_weights_follow_the_weight_seed(load: Load) -> None:
    case = load(LINEAR, scaled={"batch_size": 4, "features": 16}).case()
    torch.manual_seed(7)
    assert torch.equal(case["parameters"]["linear.weight"], torch.nn.Linear(16, 32).weight)


def test_a_program_that_rounds_inside_has_no_float64_values_and_says_so(load: Load) -> None:
    source = LINEAR.replace("return torch.relu(", "return torch.relu(1 * ").replace(
        "(x)))", "(x))).float()"
    )
    case = load(source, scaled={"batch_size": 4, "features": 16}).case()
    assert case["expected64"] is None
    assert any("float64" in note for note in case["notes"])


def test_integer_inputs_stay_as_they_are(load: Load) -> None:
    source = """
import torch
class Model(torch.nn.Module):
    def forward(self, table, index): return table[index]
rows = 4000
def get_inputs(): return [torch.rand(rows, 8), torch.randint(0, rows, (12,))]
def get_init_inputs(): return []
"""
    case = load(source).case(family="sparse")
    assert case["inputs"][1].dtype is torch.int64
    assert case["expected"].shape == (12, 8)


def test_a_program_with_fixed_extents_keeps_them(load: Load) -> None:
    source = """
import torch
class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = torch.nn.Conv2d(3, 4, 3)
        self.fc = torch.nn.Linear(4 * 62 * 62, 10)
    def forward(self, x): return self.fc(self.conv(x).flatten(1))
batch_size = 256
image_size = 64
def get_inputs(): return [torch.rand(batch_size, 3, image_size, image_size)]
def get_init_inputs(): return []
"""
    loaded = load(source)
    assert loaded.reply["ok"], loaded.reply
    assert "image_size" not in loaded.reply["shapes"]
    assert loaded.reply["shapes"]["batch_size"] < 256


@pytest.mark.parametrize(
    ("source", "verdict", "words"),
    [
        ("class Model(:\n  pass", "INVALID_TASK", "SyntaxError"),
        ("x = 1", "INVALID_TASK", "no Model"),
        ("import no_such_package_anywhere", "UNSUPPORTED", "no_such_package_anywhere"),
        (LINEAR.replace("self.linear(x)", "self.missing(x)"), "INVALID_TASK", "missing"),
        (LINEAR.replace("return [features]", "return object()"), "INVALID_TASK", "not a list"),
        (LINEAR.replace("return torch.relu", "return str"), "INVALID_TASK", "no tensor"),
    ],
)
def test_a_program_that_does_not_run_is_refused_with_the_reason(
    load: Load, source: str, verdict: str, words: str
) -> None:
    reply = load(source).reply
    assert reply["verdict"] == verdict
    assert words in reply["error"]
    assert "/tmp" not in reply["error"]


def test_init_values_that_cannot_travel_are_unsupported(load: Load) -> None:
    source = LINEAR.replace("return [features]", "return [Big()]").replace(
        "class Model",
        "class Big:\n    def __rmul__(self, o): return 32\n"
        "    def __index__(self): return 16\nclass Model",
    )
    reply = load(source, scaled={"features": 16}).reply
    assert not reply["ok"]


@pytest.mark.parametrize("family", families.NAMES)
def test_every_family_gives_a_case(load: Load, family: str) -> None:
    loaded = load(LINEAR, scaled={"batch_size": 4, "features": 16})
    case = loaded.case(family=family)
    assert case["inputs"][0].shape == (4, 16)
    assert bool(torch.isfinite(case["expected"]).all())


def test_descriptors_are_not_leaked(load: Load) -> None:
    loaded = load(LINEAR, scaled={"batch_size": 4, "features": 16})
    loaded.case()
    before = len(os.listdir("/proc/self/fd"))
    loaded.case()
    assert len(os.listdir("/proc/self/fd")) == before


def test_a_case_with_other_weights_leaves_the_own_ones_alone(load: Load) -> None:
    loaded = load(LINEAR)
    own = loaded.case(3)
    other = loaded.case(3, weight_seed=8)
    again = loaded.case(3)
    torch.testing.assert_close(other["inputs"], own["inputs"], rtol=0, atol=0)
    name = "linear.weight"
    assert not torch.equal(other["parameters"][name], own["parameters"][name])
    assert not torch.equal(other["expected"], own["expected"])
    torch.testing.assert_close(again["expected"], own["expected"], rtol=0, atol=0)
    torch.testing.assert_close(other["expected64"].float(), other["expected"])
    # As a program that is loaded with that seed.
    torch.manual_seed(8)
    features = loaded.reply["shapes"]["features"]
    expected = torch.nn.Linear(features, 2 * features).weight
    assert torch.equal(other["parameters"][name], expected)


def test_a_case_that_is_too_large_to_hand_over_is_unsupported(load: Load) -> None:
    loaded = load(LINEAR, scaled={"batch_size": 4, "features": 16})
    assert loaded.reply["case_bytes"] > 0
    message = {"seed": 1, "family": "native", "max_bytes": 100}
    reply, fds = loaded.role.case(message)
    assert reply["verdict"] == "UNSUPPORTED"
    assert "this worker takes up to 100" in reply["error"]
    assert fds == []


def test_values_in_float64_that_are_too_large_are_left_out(load: Load) -> None:
    loaded = load(LINEAR, scaled={"batch_size": 4, "features": 16})
    outputs = 4 * 2 * 16 * 4
    reply, fds = loaded.role.case({"seed": 1, "family": "native", "max_bytes": outputs})
    assert reply["ok"], reply
    assert reply["expected64"] is None
    assert any("too large" in note for note in reply["notes"])
    for descriptor in fds:
        os.close(descriptor)


def test_where_float64_is_slow_it_is_for_the_cases_that_need_it(load: Load) -> None:
    loaded = load(LINEAR)
    loaded.role._quick = 0.0
    assert loaded.case(seed=1)["expected64"] is not None
    again = loaded.case(seed=2)
    assert again["expected64"] is None
    assert again["notes"] == ["expected values in float64 for the public seeds only: it is slow"]
    assert loaded.case(seed=3, float64="always")["expected64"] is not None


@pytest.mark.parametrize("works", [True, False])
def test_weights_of_a_slow_constructor_are_drawn_on_the_gpu_where_that_works(
    monkeypatch: pytest.MonkeyPatch, works: bool
) -> None:
    loaded = Loaded(LINEAR)
    assert loaded.reply["weights_on"] == "cpu"
    drawn: list[str] = []

    def drawing_on(device: str) -> contextlib.AbstractContextManager[object]:
        drawn.append(device)
        if device == "cuda" and not works:
            raise TypeError("numpy needs the CPU")
        return contextlib.nullcontext()

    monkeypatch.setattr("harness.program.drawing_on", drawing_on)
    monkeypatch.setattr(reference, "SLOW_CONSTRUCTION_SECONDS", -1.0)
    loaded.role._weights_on = "auto"
    instance = loaded.role._instance
    assert instance is not None
    module, init = instance.loaded.module, instance.init
    _, weights_on = loaded.role._first_model(module, init, 7)
    assert drawn == ["cpu", "cuda"]
    assert weights_on == ("cuda" if works else "cpu")
    loaded.role._weights_on = "cpu"  # as the daemon has decided
    assert loaded.role._first_model(module, init, 7)[1] == "cpu"
