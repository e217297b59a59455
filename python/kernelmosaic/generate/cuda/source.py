"""The parts of a host function and its kernels."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from kernelmosaic.generate.values import Value

THREADS = 256


@dataclass(frozen=True)
class Element:
    """How kernels hold one dtype. Arithmetic is in float for all floating types."""

    dtype: str
    c: str
    at: str
    to_float: str = ""
    from_float: str = ""

    def load(self, place: str) -> str:
        return f"{self.to_float}({place})" if self.to_float else place

    def store(self, value: str) -> str:
        return f"{self.from_float}({value})" if self.from_float else value

    def pointer(self, tensor: str, writable: bool = False) -> str:
        if self.c == self.at:
            return f"{tensor}.data_ptr<{self.c}>()"
        const = "" if writable else "const "
        return f"reinterpret_cast<{const}{self.c}*>({tensor}.data_ptr<{self.at}>())"


ELEMENTS = {
    "float32": Element("float32", "float", "float"),
    "float16": Element("float16", "__half", "at::Half", "__half2float", "__float2half"),
    "bfloat16": Element(
        "bfloat16", "__nv_bfloat16", "at::BFloat16", "__bfloat162float", "__float2bfloat16"
    ),
    "int64": Element("int64", "int64_t", "int64_t"),
}


@dataclass(frozen=True)
class Argument:
    """What a host function is given: a tensor, a float or an integer.

    `source` is a value of the graph, or the Python expression that `forward` passes.
    """

    kind: str  # "tensor", "float", "int"
    name: str
    source: Value | str
    dtype: str = "float32"

    @property
    def host(self) -> str:
        types = {"tensor": "torch::Tensor", "float": "double", "int": "int64_t"}
        return f"{types[self.kind]} {self.name}"

    @property
    def kernel(self) -> str:
        if self.kind == "tensor":
            return f"const {ELEMENTS[self.dtype].c}* __restrict__ {self.name}"
        return f"{'float' if self.kind == 'float' else 'int'} {self.name}"

    @property
    def launch(self) -> str:
        if self.kind == "tensor":
            return ELEMENTS[self.dtype].pointer(self.name)
        return f"({'float' if self.kind == 'float' else 'int'}){self.name}"


@dataclass(frozen=True)
class Extent:
    """An integer that the host computes and kernels are given."""

    name: str
    host: str


@dataclass(frozen=True)
class HostFunction:
    """Kernels with the function that launches them, `torch::Tensor NAME(ARGUMENTS)`."""

    name: str
    arguments: tuple[Argument, ...]
    device: str
    body: tuple[str, ...]
    helpers: tuple[str, ...] = ()

    @property
    def prototype(self) -> str:
        return f"torch::Tensor {self.name}({', '.join(a.host for a in self.arguments)})"

    @property
    def text(self) -> str:
        return f"{self.device.strip()}\n\n{self.prototype} {{\n{indent(self.body, 1)}}}\n"


@dataclass
class Launch:
    """Collects what one host function needs, and writes kernels that all take the same."""

    name: str
    out: Value
    arguments: list[Argument]
    extents: list[Extent]
    # Computed from the output `y`, for operations that end the kernel.
    late: list[Extent] = field(default_factory=list)
    threads: int = THREADS
    helpers: list[str] = field(default_factory=list)
    # Integers that the host function alone needs: name, and what `forward` passes.
    host_only: list[tuple[str, str]] = field(default_factory=list)

    @property
    def element(self) -> Element:
        return ELEMENTS[self.out.dtype]

    @property
    def parameters(self) -> str:
        """Of a kernel: inputs, the output `y`, extents, numbers."""
        tensors = [a.kernel for a in self.arguments if a.kind == "tensor"]
        numbers = [a.kernel for a in self.arguments if a.kind != "tensor"]
        extents = [f"int {e.name}" for e in [*self.extents, *self.late]]
        return ", ".join([*tensors, f"{self.element.c}* __restrict__ y", *extents, *numbers])

    @property
    def passed(self) -> str:
        tensors = [a.launch for a in self.arguments if a.kind == "tensor"]
        numbers = [a.launch for a in self.arguments if a.kind != "tensor"]
        extents = [e.name for e in [*self.extents, *self.late]]
        output = self.element.pointer("y", writable=True)
        return ", ".join([*tensors, output, *extents, *numbers])

    def prologue(self) -> list[str]:
        """Host lines that make inputs dense and compute the extents."""
        dense = [f"{a.name} = {a.name}.contiguous();" for a in self.arguments if a.kind == "tensor"]
        return dense + [f"const int {e.name} = {e.host};" for e in self.extents]

    def allocate(self, output: str) -> list[str]:
        """Host lines that make `y` by the expression `output`."""
        return [f"auto y = {output};", *[f"const int {e.name} = {e.host};" for e in self.late]]

    def finish(self, device: str, body: Sequence[str]) -> HostFunction:
        extra = [Argument("int", name, source) for name, source in self.host_only]
        arguments = (*self.arguments, *extra)
        return HostFunction(self.name, arguments, device, tuple(body), tuple(self.helpers))


def indent(lines: Sequence[str], depth: int) -> str:
    return "".join("    " * depth + line + "\n" if line else "\n" for line in lines)


def grid_lines() -> list[str]:
    """Host lines for one thread per element of the output `y`."""
    return [
        "const int64_t n = y.numel();",
        f"const int threads = {THREADS};",
        "const int64_t blocks = (n + threads - 1) / threads;",
    ]
