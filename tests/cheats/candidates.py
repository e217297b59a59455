"""What the suites are made of: tasks, solutions for them, and what has to come of each.

Standard library only: everything in this folder also runs where the bundle is tested.
"""

from __future__ import annotations

import textwrap
from dataclasses import dataclass

EMULATED = "emulated"
CUDA = "cuda"
BOTH = (EMULATED, CUDA)


@dataclass(frozen=True)
class Task:
    """`reference` with $NAME for each size; a GPU gets larger ones, so that its times say
    something."""

    name: str
    reference: str
    sizes: dict[str, tuple[int, int]]  # on the emulated device, on a GPU
    entry: dict[str, object] | None = None  # of a `cuda` solution
    mutable_inputs: tuple[int, ...] = ()

    def text(self, device: str) -> str:
        text = self.reference
        for name, (small, large) in self.sizes.items():
            text = text.replace(f"${name}", str(small if device == EMULATED else large))
        return text


@dataclass(frozen=True)
class Candidate:
    """A solution. `verdicts`: the right ones, the best first. `twin`: an honest candidate
    that does the same work; PASSED is right too when no less time is reported than for it."""

    name: str
    kind: str
    task: Task
    source: str
    verdicts: tuple[str, ...]
    why: str
    contract: str = "modelnew"
    devices: tuple[str, ...] = BOTH
    twin: str | None = None
    # What has to be built before this is found; the suite tells it apart and does not fail.
    gap: str = ""
    gap_devices: tuple[str, ...] = BOTH

    def row(self, device: str) -> dict[str, object]:
        """As `kmosaic score` takes it."""
        row: dict[str, object] = {
            "id": self.name,
            "reference": self.task.text(device),
            "solution": self.source,
            "contract": self.contract,
        }
        if self.contract == "cuda":
            row["entry"] = self.task.entry
        if self.task.mutable_inputs:
            row["mutable_inputs"] = list(self.task.mutable_inputs)
        return row


def _indented(text: str, by: int) -> str:
    return textwrap.indent(textwrap.dedent(text).strip("\n"), " " * by)


def model(
    body: str,
    *,
    cuda: str,
    functions: str,
    head: str = "",
    init: str = "",
    signature: str = "x",
    arguments: str = "",
    options: str = "",
) -> str:
    """A file with one extension `kernels`; `functions` are declarations of C++."""
    names = [part.split("(")[0].split()[-1] for part in functions.split(";") if part.strip()]
    text = "import torch\nfrom torch.utils.cpp_extension import load_inline\n"
    text += textwrap.dedent(head).strip("\n")
    text += f'\n\ncuda_source = r"""\n{textwrap.dedent(cuda).strip()}\n"""\n'
    text += (
        f'kernels = load_inline(name="solution", cpp_sources="{functions}", '
        f"cuda_sources=cuda_source, functions={names!r}{options})\n\n\n"
    )
    text += "class ModelNew(torch.nn.Module):\n"
    if init or arguments:
        text += f"    def __init__(self{', ' if arguments else ''}{arguments}):\n"
        text += "        super().__init__()\n" + _indented(init or "pass", 8) + "\n\n"
    text += f"    def forward(self, {signature}):\n" + _indented(body, 8) + "\n"
    return text
