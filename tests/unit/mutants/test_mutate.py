"""What a mutant is: one place of one device function, and nothing else."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

from mutants.mutate import mutants

KERNEL = """
int host(int n) { return n + 1; }  // i < n + 2
template <typename T>
__global__ void scale(const T* x, T* y, int n) {
  __shared__ float tile[64];
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  // tile[i + 1] < n;
  if (i < n) tile[threadIdx.x] = x[i];
  __syncthreads();
  y[i] = tile[threadIdx.x] * 2.0f;
}
"""


def test_kinds_and_places() -> None:
    made = mutants(KERNEL)
    kinds = Counter(mutant.kind for mutant in made)
    assert kinds["race"] == 1
    assert kinds["constant"] == 1
    assert {"index", "arithmetic", "tail", "bound", "precision", "stale read"} <= set(kinds)
    # Neither the host's code, nor comments, nor declarations.
    assert {mutant.line for mutant in made} == {6, 8, 9, 10}
    assert len({mutant.source for mutant in made}) == len(made)


def test_a_mutant_differs_in_its_line_alone() -> None:
    before = KERNEL.splitlines()
    for mutant in mutants(KERNEL):
        if mutant.kind == "precision":  # brings a function with it
            assert mutant.source.count("kmosaic_less(") == 3
            continue
        after = mutant.source.splitlines()
        changed = [n for n, (a, b) in enumerate(zip(before, after, strict=True), 1) if a != b]
        assert len(changed) == 1, mutant


def test_a_template_head_stays_with_its_function() -> None:
    (precise, *_) = [m for m in mutants(KERNEL) if m.kind == "precision"]
    assert "template <typename T>\n__global__ void scale" in precise.source


def test_every_example_that_passes_has_many() -> None:
    from mutants.run import originals

    examples = Path(__file__).resolve().parents[3] / "examples"
    found = originals(examples)
    assert len(found) >= 15
    assert all(len(mutants(original.source)) >= 10 for original in found)
