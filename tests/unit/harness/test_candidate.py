"""The candidate role over a stand-in for the emulation runtime (its own tests are
elsewhere), with a real shared library for the `cuda` contract."""

from __future__ import annotations

import ctypes
import json
import os
import subprocess
import types
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import torch
import trees
from harness import candidate, cpp_extension, wire

MODEL = """
import torch
from torch.utils.cpp_extension import load_inline
module = load_inline(name="x", cpp_sources="a", functions=["scale"])
class ModelNew(torch.nn.Module):
    def __init__(self, factor):
        super().__init__()
        self.weight = torch.nn.Parameter(torch.rand(3))
        self.register_buffer("calls", torch.zeros(1))
        self.factor = factor
    def forward(self, x):
        self.calls += 1
        return module.scale(x, self.factor) * self.weight * self.calls
"""
PROTOTYPE = "void scale(const float* x, float* y, int64_t n, float factor, cudaStream_t stream)"
BINDINGS = {"x": "input[0]", "y": "output[0]", "n": "input[0].numel", "factor": "init[0]"}


class FakeEmulation(types.ModuleType):
    """Plain memory, and a log of what was asked."""

    def __init__(self) -> None:
        super().__init__("emulation")
        self.configured: tuple[str, int, int] | None = None
        self.seen: list[dict[str, Any]] = []

    def configure(self, schedule: str, poison: int, report_fd: int) -> None:
        self.configured = (schedule, poison, report_fd)

    def guarded(self, tensor: torch.Tensor) -> torch.Tensor:
        return tensor.clone()

    def empty_guarded(self, shape: list[int], dtype: torch.dtype) -> torch.Tensor:
        return torch.full(shape, 7, dtype=dtype)

    def reset_counters(self) -> None:
        pass

    def counters(self) -> dict[str, int]:
        return {"launches": 3, "blocks": 4}

    def findings(self) -> list[dict[str, Any]]:
        return self.seen

    def raw_entry(self, library: str, name: str) -> Any:
        return ctypes.CDLL(library)[name]


class Loaded:
    def __init__(self, folder: Path, emulation: FakeEmulation) -> None:
        self.folder = folder
        self.emulation = emulation
        self.role = candidate.Candidate()

    def load(self, source: str = "", contract: str = "modelnew", **changes: Any) -> dict[str, Any]:
        message = {
            "contract": contract,
            "source": source,
            "artifact": str(self.folder),
            "entry": {"prototype": PROTOTYPE, "bindings": BINDINGS},
            "weight_seed": 5,
            "weights_on": "cpu",
            "device": "emulated",
            "memory": "host",
            "schedule": "reverse",
            "poison": 0xAA,
            **changes,
        }
        return self.role.load(message, [2.0], 9)

    def run(self, inputs: list[Any], outputs: Any = None) -> dict[str, Any]:
        reply, fds = self.role.run(*trees.call(inputs, outputs=outputs))
        if reply["ok"]:
            reply["outputs"] = wire.decode(reply["outputs"], fds[0])
            reply["inputs_after"] = wire.decode(reply["inputs_after"], fds[1])
        return reply


@pytest.fixture
def loaded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Loaded]:
    emulation = FakeEmulation()
    binding = types.ModuleType("binding")

    def load_extension(library: str, device: str) -> types.ModuleType:
        module = types.ModuleType(os.path.basename(library))
        module.scale = lambda x, factor: x * factor  # type: ignore[attr-defined]
        return module

    binding.load_extension = load_extension  # type: ignore[attr-defined]
    import harness

    monkeypatch.setattr(harness, "emulation", emulation, raising=False)
    monkeypatch.setattr(harness, "binding", binding, raising=False)
    monkeypatch.setitem(__import__("sys").modules, "harness.emulation", emulation)
    monkeypatch.setitem(__import__("sys").modules, "harness.binding", binding)
    request = cpp_extension.ExtensionRequest("x", ("a",), (), ("scale",), (), (), ())
    extension = {**request.to_json(), "library": "ext0.so"}
    (tmp_path / "manifest.json").write_text(json.dumps({"extensions": [extension]}))
    made = Loaded(tmp_path, emulation)
    yield made
    made.role._contexts.close()


def test_a_model_runs_with_its_built_extension(loaded: Loaded) -> None:
    assert loaded.load(MODEL) == {"ok": True}
    assert loaded.emulation.configured == ("reverse", 0xAA, 9)
    reply = loaded.run([torch.ones(3)])
    torch.manual_seed(5)
    assert torch.allclose(reply["outputs"], 2 * torch.rand(3))
    assert reply["launches"] == 3
    assert reply["work"] == {"launches": 3, "blocks": 4}
    assert reply["aliases"] == []


def test_runs_start_from_the_same_buffers(loaded: Loaded) -> None:
    loaded.load(MODEL)
    first = loaded.run([torch.ones(3)])["outputs"]
    assert torch.equal(loaded.run([torch.ones(3)])["outputs"], first)


def test_tensors_that_come_back_say_that_they_are_on_the_device(loaded: Loaded) -> None:
    loaded.load(MODEL)
    reply, _ = loaded.role.run(*trees.call([torch.ones(3)]))
    assert reply["outputs"]["device"] == "cuda:0"
    assert reply["outputs"]["stride"] == [1]


def test_a_changed_input_and_an_alias_are_shown(loaded: Loaded) -> None:
    loaded.load(
        "class ModelNew:\n    def __init__(self, f): pass\n"
        "    def __call__(self, x, y):\n        y.zero_()\n        return x[1:]\n"
    )
    reply = loaded.run([torch.ones(3), torch.ones(2)])
    assert reply["inputs_after"][1].tolist() == [0, 0]
    assert reply["aliases"] == [{"index": 0, "input": 0}]


def test_other_sources_than_those_collected_are_an_error(loaded: Loaded) -> None:
    reply = loaded.load(MODEL.replace('cpp_sources="a"', 'cpp_sources="b"'))
    assert reply["verdict"] == "LOAD_ERROR"
    assert "must not differ" in reply["error"]


TWO = """
import torch
from torch.utils.cpp_extension import load_inline
module = load_inline(name="x", cpp_sources="a", functions=["scale"])
try:
    load_inline(name="y", cpp_sources="b", functions=["other"])
except RuntimeError as error:
    told = str(error)
class ModelNew(torch.nn.Module):
    def __init__(self, factor):
        super().__init__()
        self.factor = factor
    def forward(self, x):
        return module.scale(x, self.factor), told
"""


def test_an_extension_that_does_not_compile_raises_and_the_others_are_there(
    loaded: Loaded,
) -> None:
    path = loaded.folder / "manifest.json"
    manifest = json.loads(path.read_text())
    failed = cpp_extension.ExtensionRequest("y", ("b",), (), ("other",), (), (), ())
    manifest["extensions"].append({**failed.to_json(), "error": "g++ refused the source"})
    path.write_text(json.dumps(manifest))
    assert loaded.load(TWO) == {"ok": True}
    reply = loaded.run([torch.ones(3)])
    assert reply["outputs"][0].tolist() == [2.0, 2.0, 2.0]
    assert reply["outputs"][1] == "Error building extension 'y': g++ refused the source"
    # Uncaught, it is the program's exception.
    reply = loaded.load(TWO.replace("except RuntimeError", "except ZeroDivisionError"))
    assert reply["verdict"] == "LOAD_ERROR"
    assert "g++ refused the source" in reply["error"]


def test_another_name_finds_the_same_library(loaded: Loaded) -> None:
    assert loaded.load(MODEL.replace('name="x"', 'name="y"')) == {"ok": True}


@pytest.mark.parametrize(
    ("source", "verdict", "words"),
    [
        ("raise ValueError('early')", "LOAD_ERROR", "early"),
        ("x = 1", "LOAD_ERROR", "no class ModelNew"),
        ("class ModelNew:\n    def __init__(self): pass", "RUNTIME_ERROR", "TypeError"),
    ],
)
def test_a_solution_that_does_not_load_is_typed(
    loaded: Loaded, source: str, verdict: str, words: str
) -> None:
    reply = loaded.load(source)
    assert reply["verdict"] == verdict
    assert words in reply["error"]


@pytest.mark.parametrize(
    ("body", "words"),
    [
        ("raise ValueError('in forward')", "in forward"),
        ("raise SystemExit(0)", "SystemExit"),
        ("return object()", "plain tensors"),
        ("return torch.ones(2).to_sparse()", "plain tensors"),
    ],
)
def test_a_run_that_fails_is_typed_and_carries_the_findings(
    loaded: Loaded, body: str, words: str
) -> None:
    loaded.load(
        "import torch\nclass ModelNew:\n    def __init__(self, f): pass\n"
        f"    def __call__(self, x):\n        {body}\n"
    )
    loaded.emulation.seen = [{"kind": "out_of_bounds"}]
    reply = loaded.run([torch.ones(3)])
    assert reply["verdict"] == "RUNTIME_ERROR"
    assert words in reply["error"]
    assert reply["findings"] == [{"kind": "out_of_bounds"}]


@pytest.fixture
def entry_library(tmp_path: Path) -> Callable[[str], None]:
    def build(body: str) -> None:
        source = tmp_path / "entry.cc"
        source.write_text(
            '#include <stdint.h>\nextern "C" void scale(const float* x, float* y, int64_t n, '
            "float factor, void* stream) { " + body + " }"
        )
        library = tmp_path / "ext0.so"
        subprocess.run(["g++", "-shared", "-fPIC", "-o", library, source], check=True)

    return build


def test_a_cuda_entry_gets_its_arguments_and_poisoned_outputs(
    loaded: Loaded, entry_library: Callable[[str], None]
) -> None:
    entry_library("for (int64_t i = 0; i + 1 < n; ++i) y[i] = x[i] * factor;")
    assert loaded.load(contract="cuda") == {"ok": True}
    reply = loaded.run([torch.ones(3)], [{"dtype": "float32", "shape": [3]}])
    assert reply["outputs"].tolist() == [2, 2, 7]  # the last was left as it was


def test_a_missing_entry_is_a_load_error(
    loaded: Loaded, entry_library: Callable[[str], None]
) -> None:
    entry_library("")
    entry = {"prototype": PROTOTYPE.replace("scale", "missing"), "bindings": BINDINGS}
    reply = loaded.load(contract="cuda", entry=entry)
    assert reply["verdict"] == "LOAD_ERROR"
    assert "missing" in reply["error"]


def test_a_misfit_of_entry_and_task_is_the_tasks_fault(
    loaded: Loaded, entry_library: Callable[[str], None]
) -> None:
    entry_library("")
    loaded.load(contract="cuda")
    reply = loaded.run([torch.ones(3).double()], [{"dtype": "float32", "shape": [3]}])
    assert reply["verdict"] == "INVALID_TASK"
