"""Every CUDA sample of the guidance documents compiles and, where the emulated device has what it
uses, gives the right values there. test_samples_gpu.py runs all of them on a GPU."""

from __future__ import annotations

import concurrent.futures
import json
import os
import pathlib
import re
import sys
import types
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from guidance_documents import Block, blocks
from nvcc import find_nvcc
from sample_builds import (
    BuildError,
    EmulatedDevice,
    UnsupportedError,
    compile_with_nvcc,
    emulated_device,
)

pytest.importorskip("torch", reason="NOT CHECKED: the samples' references need torch")

# Its import registers the cases.
import sample_cases  # noqa: F401
import torch
from harness import binding, cpp_extension, cuda_entry, cuda_on_cpu, emulation
from sample_case import CASES, FILE_CASES, Call, Case, compare, entry_of

BLOCKS = blocks("cuda")
FILES = blocks("python")
RUN = [block for block in BLOCKS if block.run]
REST = [block for block in BLOCKS if not block.run]
# A right kernel gives the same result whatever the order of blocks and threads.
SCHEDULES = ("forward", "reverse", "random:5")
POISON = 0xFF

NVCC = find_nvcc()
DEVICE = emulated_device(NVCC)
needs_nvcc = pytest.mark.skipif(
    NVCC is None, reason="NOT COMPILED: no nvcc (CUDA_HOME, PATH or the nvidia-cuda-nvcc package)"
)
needs_device = pytest.mark.skipif(
    DEVICE.missing is not None, reason=f"NOT RUN on the emulated device: {DEVICE.missing}"
)


def each(chosen: list[Block]) -> pytest.MarkDecorator:
    return pytest.mark.parametrize("block", chosen, ids=lambda block: block.id)


class Builds:
    """Compiles what the collected tests ask for, two at a time, once each."""

    def __init__(self, folder: pathlib.Path, tests: list[pytest.Item]) -> None:
        self._pool = concurrent.futures.ThreadPoolExecutor(2)
        self._futures: dict[tuple[str, str], concurrent.futures.Future[Any]] = {}
        if DEVICE.missing is None:
            (folder / "support").mkdir()
            self._support = self._pool.submit(DEVICE.prepare, folder / "support")
        for test in tests:
            # The name of a test that asks is what it asks for.
            block = test.callspec.params.get("block")  # type: ignore[attr-defined]
            name = test.originalname  # type: ignore[attr-defined]
            if name == "test_it_compiles" and NVCC:
                self._submit(name, block, compile_with_nvcc, NVCC, block, folder)
            elif DEVICE.missing is not None or block is None:
                continue
            elif name == "test_it_gives_the_right_values":
                self._submit(name, block, self._build_sample, block, folder / block.id)
            elif name == "test_a_python_files_extension_compiles" and NVCC:
                request = json.dumps(request_of(block).to_json())
                self._submit(name, block, DEVICE.compile_light, request, folder / name / block.id)
            elif name == "test_a_python_file_gives_the_right_values":
                request = json.dumps(request_of(block).to_json())
                self._submit(name, block, self._build, "torch", request, folder / name / block.id)

    def _submit(self, name: str, block: Block, function: Callable[..., Any], *values: Any) -> None:
        self._futures[name, block.id] = self._pool.submit(function, *values)

    def _build_sample(self, block: Block, folder: pathlib.Path) -> str:
        return self._build("cuda", CASES[block.run or ""].source(block.code), folder)

    def _build(self, kind: str, source: str, folder: pathlib.Path) -> str:
        return str(DEVICE.build(kind, source, self.support(), folder))

    def support(self) -> pathlib.Path:
        return pathlib.Path(self._support.result())

    def result(self, test: str, block: Block) -> Any:
        """Of the build for a test; a failed one fails it with the compiler's words."""
        try:
            return self._futures[test, block.id].result()
        except (BuildError, UnsupportedError) as error:
            pytest.fail(str(error), pytrace=False)

    def close(self) -> None:
        self._pool.shutdown(cancel_futures=True)


@pytest.fixture(scope="module")
def builds(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Builds]:
    tests = [item for item in request.session.items if "builds" in item.fixturenames]  # type: ignore[attr-defined]
    builds = Builds(tmp_path_factory.mktemp("samples"), tests)
    yield builds
    builds.close()


def test_every_run_names_one_case_and_every_case_is_run() -> None:
    assert sorted(block.run or block.gpu or "" for block in BLOCKS) == sorted(CASES)


@each(BLOCKS)
def test_its_words_are_known(block: Block) -> None:
    known = re.compile(r"(run|gpu)=[a-z0-9_]+|arch=sm_90a")
    assert all(known.fullmatch(word) for word in block.words), block.words
    assert (block.run is None) != (block.gpu is None)


@needs_nvcc
@each(BLOCKS)
def test_it_compiles(block: Block, builds: Builds) -> None:
    builds.result("test_it_compiles", block)


@needs_device
@each(REST)
def test_it_is_run_unless_the_device_cannot(block: Block, tmp_path: pathlib.Path) -> None:
    """gpu=NAME is for samples that the emulated device refuses."""
    with pytest.raises(UnsupportedError):
        DEVICE.build("cuda", block.code, tmp_path, tmp_path / "build")


@needs_device
@each(RUN)
def test_it_gives_the_right_values(block: Block, builds: Builds) -> None:
    library = builds.result("test_it_gives_the_right_values", block)
    evaluate(CASES[block.run or ""], library)


def evaluate(case: Case, library: str) -> None:
    emulation.load_runtime(str(DEVICE.runtime))
    function = emulation.raw_entry(library, case.entry)
    for call in case.calls():
        entry = entry_of(case, call)
        for schedule in SCHEDULES:
            emulation.configure(schedule, POISON, -1)
            inputs = [emulation.guarded(x) for x in (call.inputs | call.scratch).values()]
            outputs = [
                emulation.empty_guarded(tuple(y.shape), y.dtype) for y in call.outputs.values()
            ]
            values = cuda_entry.Values(inputs, outputs, list(call.numbers.values()), {})
            cuda_entry.call(function, entry, cuda_entry.arguments(entry, values, 0))
            assert emulation.findings() == []
            assert emulation.take_error() is None
            assert emulation.counters()["launches"] > 0
            compare(call, outputs, schedule)
            for (name, before), after in zip(call.inputs.items(), inputs, strict=False):
                assert torch.equal(before, after), f"{schedule}: input {name} was changed"


# ---- whole Python files


class Recorder:
    """Takes the place of load_inline: keeps what it is called with, and gives `extension`."""

    def __init__(self, extension: types.ModuleType | None = None) -> None:
        self.requests: list[cpp_extension.ExtensionRequest] = []
        self._extension = extension or types.ModuleType("not_built")

    def __call__(self, request: cpp_extension.ExtensionRequest) -> types.ModuleType:
        self.requests.append(request)
        return self._extension


def run_file(block: Block, recorder: Recorder) -> dict[str, Any]:
    """The file's names after running it."""
    module = sys.modules.get("torch.utils.cpp_extension")
    cpp_extension.install(recorder)
    names: dict[str, Any] = {}
    try:
        with cuda_on_cpu.emulated():
            exec(compile(block.code, block.id, "exec"), names)
    finally:
        del sys.modules["torch.utils.cpp_extension"]
        if module is not None:
            sys.modules["torch.utils.cpp_extension"] = module
    return names


def request_of(block: Block) -> cpp_extension.ExtensionRequest:
    """Of the file's one extension."""
    recorder = Recorder()
    run_file(block, recorder)
    assert len(recorder.requests) == 1, "the file does not call load_inline once"
    return recorder.requests[0]


def test_every_python_file_has_one_case() -> None:
    assert sorted(block.run or "" for block in FILES) == sorted(FILE_CASES)


@needs_nvcc
@needs_device
@each(FILES)
def test_a_python_files_extension_compiles(block: Block, builds: Builds) -> None:
    builds.result("test_a_python_files_extension_compiles", block)


@needs_device
@each(FILES)
def test_a_python_file_gives_the_right_values(block: Block, builds: Builds) -> None:
    library = builds.result("test_a_python_file_gives_the_right_values", block)
    emulation.load_runtime(str(DEVICE.runtime))
    names = run_file(block, Recorder(binding.load_extension(library, "emulated")))
    for schedule in SCHEDULES:
        emulation.configure(schedule, POISON, -1)
        with cuda_on_cpu.emulated(), torch.no_grad():
            FILE_CASES[block.run or ""](names)
        assert emulation.findings() == []
        assert emulation.counters()["launches"] > 0


# ---- the test itself can fail

WRONG = {
    "no guard": ("if (i < n) y[i] = -x[i];", "y[i] = -x[i];"),
    "wrong value": ("-x[i]", "x[i]"),
    "tail left out": ("(n + 255) / 256", "n / 256"),
}
NEGATE = """
#include <cstdint>
#include <cuda_runtime.h>
__global__ void negate_all(const float* x, float* y, int64_t n) {
  const int64_t i = static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
  if (i < n) y[i] = -x[i];
}
extern "C" void negate(const float* x, float* y, int64_t n) {
  negate_all<<<static_cast<unsigned>((n + 255) / 256), 256>>>(x, y, n);
}
"""


def negate_calls() -> list[Call]:
    x = torch.randn(300)
    return [Call({"x": x}, {"y": -x}, {"n": 300})]


@needs_device
@pytest.mark.parametrize("fault", [None, *WRONG])
def test_a_broken_sample_is_noticed(
    fault: str | None, builds: Builds, tmp_path: pathlib.Path
) -> None:
    source = NEGATE.replace(*WRONG[fault]) if fault else NEGATE
    case = Case("negate", "void negate(const float* x, float* y, int64_t n)", None, negate_calls)
    library = DEVICE.build("cuda", case.source(source), builds.support(), tmp_path / "build")
    if fault is None:
        evaluate(case, library)
    else:
        with pytest.raises(AssertionError):
            evaluate(case, library)


def test_a_python_file_that_builds_nothing_is_noticed() -> None:
    with pytest.raises(AssertionError, match="load_inline once"):
        request_of(Block("broken", 0, "python", (), "x = 1\n"))


@needs_nvcc
def test_a_sample_with_a_warning_does_not_compile(tmp_path: pathlib.Path) -> None:
    block = Block("broken", 0, "cuda", (), "__global__ void f(float* y) { int unused; *y = 1; }\n")
    with pytest.raises(BuildError, match="unused"):
        compile_with_nvcc(NVCC or "", block, tmp_path)


def test_a_missing_device_is_named(monkeypatch: pytest.MonkeyPatch, tmp_path: pathlib.Path) -> None:
    monkeypatch.setitem(os.environ, "KMOSAIC_BIN", str(tmp_path))
    device: EmulatedDevice = emulated_device(NVCC)
    assert device.missing is not None
