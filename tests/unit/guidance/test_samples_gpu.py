"""Every CUDA sample of the guidance documents gives the right values on a GPU of compute capability
9.0. Skipped, with the reason, where there is none."""

from __future__ import annotations

import concurrent.futures
import ctypes
import os
import pathlib
from collections.abc import Iterator

import pytest
from guidance_documents import Block, blocks
from nvcc import find_nvcc
from sample_builds import BuildError, build_for_gpu

pytest.importorskip("torch", reason="NOT RUN on a GPU: the samples' references need torch")

# Its import registers the cases.
import sample_cases  # noqa: F401
import torch
from harness import cuda_entry
from sample_case import CASES, compare, entry_of

BLOCKS = blocks("cuda")
NVCC = find_nvcc()


def missing() -> str | None:
    if NVCC is None:
        return "no nvcc"
    if not torch.cuda.is_available():
        return "no GPU that torch can use"
    capability = torch.cuda.get_device_capability()
    return None if capability == (9, 0) else f"the GPU's compute capability is {capability}"


pytestmark = pytest.mark.skipif(missing() is not None, reason=f"NOT RUN on a GPU: {missing()}")


@pytest.fixture(scope="module")
def libraries(
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[dict[str, concurrent.futures.Future[str]]]:
    """All samples as libraries, by the block's id."""
    folder = tmp_path_factory.mktemp("gpu")

    def build(block: Block) -> str:
        source = CASES[block.run or block.gpu or ""].source(block.code)
        return str(build_for_gpu(NVCC or "", source, pathlib.Path(folder, block.id)))

    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        yield {block.id: pool.submit(build, block) for block in BLOCKS}


@pytest.mark.parametrize("block", BLOCKS, ids=lambda block: block.id)
def test_it_gives_the_right_values_on_a_gpu(
    block: Block, libraries: dict[str, concurrent.futures.Future[str]]
) -> None:
    try:
        library = libraries[block.id].result()
    except BuildError as error:
        pytest.fail(str(error), pytrace=False)
    case = CASES[block.run or block.gpu or ""]
    function = getattr(ctypes.CDLL(library), case.entry)
    for call in case.calls():
        entry = entry_of(case, call)
        inputs = [x.cuda() for x in (call.inputs | call.scratch).values()]
        outputs = [
            torch.empty(y.shape, dtype=y.dtype, device="cuda") for y in call.outputs.values()
        ]
        for y in outputs:
            y.view(-1).view(torch.uint8).fill_(0xFF)
        torch.cuda.synchronize()
        values = cuda_entry.Values(inputs, outputs, list(call.numbers.values()), {})
        cuda_entry.call(function, entry, cuda_entry.arguments(entry, values, 0))
        torch.cuda.synchronize()
        compare(call, [y.cpu() for y in outputs], "GPU")
        for (name, before), after in zip(call.inputs.items(), inputs, strict=False):
            assert torch.equal(before, after.cpu()), f"input {name} was changed"
