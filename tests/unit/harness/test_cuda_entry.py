import ctypes

import pytest
import torch
from harness import cuda_entry

PROTOTYPE = """void scale(const float* __restrict__ x, float *y, const int64_t rows, int cols,
  float factor, unsigned long long n, const int32_t* index, cudaStream_t stream);"""
BINDINGS = {
    "x": "input[0]",
    "y": "output[0]",
    "rows": "input[0].shape[0]",
    "cols": "output[0].shape[-1]",
    "factor": "init[0]",
    "n": "input[0].numel",
    "index": "param[table.index]",
}


def values() -> cuda_entry.Values:
    return cuda_entry.Values(
        inputs=[torch.ones(2, 3)],
        outputs=[torch.zeros(2, 3)],
        init=[2.5],
        parameters={"table.index": torch.zeros(4, dtype=torch.int32)},
    )


def test_every_kind_of_binding_is_passed_in_order() -> None:
    entry = cuda_entry.parse(PROTOTYPE, BINDINGS)
    v = values()
    passed = cuda_entry.arguments(entry, v, stream=77)
    assert [a.value for a in passed] == [
        v.inputs[0].data_ptr(),
        v.outputs[0].data_ptr(),
        2,
        3,
        2.5,
        6,
        v.parameters["table.index"].data_ptr(),
        77,
    ]
    assert [type(a) for a in passed[2:6]] == [
        ctypes.c_int64,
        ctypes.c_int32,
        ctypes.c_float,
        ctypes.c_uint64,
    ]


def test_a_function_is_called_and_its_error_code_is_an_error() -> None:
    entry = cuda_entry.parse("int f(float* y)", {"y": "output[0]"})
    seen = []

    @ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p)  # type: ignore[untyped-decorator]
    def function(pointer: int) -> int:
        seen.append(pointer)
        return 3

    v = values()
    with pytest.raises(RuntimeError, match="f returned 3"):
        cuda_entry.call(function, entry, cuda_entry.arguments(entry, v, 0))
    assert seen == [v.outputs[0].data_ptr()]


@pytest.mark.parametrize(
    ("prototype", "bindings", "words"),
    [
        ("float f(float* x)", {"x": "input[0]"}, "not of the form"),
        ("nonsense", {}, "not of the form"),
        ("void f(float* x)", {}, "bound to nothing"),
        ("void f(float* x)", {"x": "input[0]", "y": "input[1]"}, "no such parameters"),
        ("void f(float* x)", {"x": "input[zero]"}, "none of"),
        ("void f(float** x)", {"x": "input[0]"}, "cannot be passed"),
        ("void f(struct s x)", {"x": "input[0]"}, "cannot be passed"),
        ("void f(half x)", {"x": "input[0]"}, "by pointer only"),
        ("void f(float*)", {}, "no type or no name"),
    ],
)
def test_what_cannot_be_understood_is_named(
    prototype: str, bindings: dict[str, str], words: str
) -> None:
    with pytest.raises(cuda_entry.EntryError, match=words):
        cuda_entry.parse(prototype, bindings)


@pytest.mark.parametrize(
    ("parameter", "binding", "words"),
    [
        ("double* x", "input[0]", "points to double"),
        ("float* x", "input[3]", "there are 1"),
        ("float* x", "init[0]", "no tensor"),
        ("int x", "input[0]", "is a number"),
        ("int x", "input[0].shape[2]", "2 dimensions"),
        ("float* x", "param[none]", "no such parameter"),
    ],
)
def test_a_misfit_of_value_and_type_is_named(parameter: str, binding: str, words: str) -> None:
    entry = cuda_entry.parse(f"void f({parameter})", {"x": binding})
    with pytest.raises(cuda_entry.EntryError, match=words):
        cuda_entry.arguments(entry, values(), 0)
