from typing import Any

import pytest
import torch
from harness import collect

LOAD = """
import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline
"""
CUDA = "__global__ void k(float* x) { x[0] = 1; }"


def extensions(source: str, init: object = None, inputs: object = None) -> list[dict[str, Any]]:
    reply = collect.collect(source, init, inputs)
    assert reply["ok"], reply
    found: list[dict[str, Any]] = reply["extensions"]
    return found


def refused(source: str, init: object = None, inputs: object = None) -> tuple[str, str]:
    reply = collect.collect(source, init, inputs)
    assert not reply["ok"], reply
    return reply["verdict"], reply["error"]


def test_sources_given_as_text_or_lists_and_flags_are_recorded() -> None:
    found = extensions(
        LOAD
        + f"""
m = load_inline("one", ["int f();", "int g();"], {CUDA!r}, functions=["f", "g"],
                extra_cflags=["-O2"], extra_cuda_cflags=["-use_fast_math"],
                extra_ldflags=["-lcublas"], verbose=True)
class ModelNew(nn.Module): pass
"""
    )
    assert len(found) == 1
    assert found[0]["name"] == "one"
    assert list(found[0]["cpp_sources"]) == ["int f();", "int g();"]
    assert list(found[0]["cuda_sources"]) == [CUDA]
    assert list(found[0]["functions"]) == ["f", "g"]
    assert list(found[0]["cflags"]) == ["-O2"]
    assert list(found[0]["cuda_cflags"]) == ["-use_fast_math"]
    assert list(found[0]["ldflags"]) == ["-lcublas"]


@pytest.mark.parametrize(
    "functions", ['"f"', '["f"]', '{"f": "docs"}'], ids=["text", "list", "dictionary"]
)
def test_functions_may_be_text_list_or_dictionary(functions: str) -> None:
    found = extensions(
        LOAD + f"m = load_inline(name='x', cpp_sources='', functions={functions})\n"
        "class ModelNew: pass"
    )
    assert list(found[0]["functions"]) == ["f"]


@pytest.mark.parametrize(
    "way",
    [
        "import torch.utils.cpp_extension\ntorch.utils.cpp_extension.load_inline",
        "from torch.utils import cpp_extension\ncpp_extension.load_inline",
        "import torch.utils.cpp_extension as e\ne.load_inline",
    ],
)
def test_every_way_to_import_load_inline_is_seen(way: str) -> None:
    source = (
        f"import torch\n{way}(name='x', cpp_sources='a', functions=['f'])\nclass ModelNew: pass"
    )
    assert len(extensions(source)) == 1


def test_load_reads_files_that_the_program_wrote() -> None:
    found = extensions(
        """
import os, tempfile
from torch.utils.cpp_extension import load
folder = tempfile.mkdtemp()
for name, text in {"a.cpp": "host", "b.cu": "device"}.items():
    open(os.path.join(folder, name), "w").write(text)
m = load(name="x", sources=[os.path.join(folder, "a.cpp"), os.path.join(folder, "b.cu")])
class ModelNew: pass
"""
    )
    assert list(found[0]["cpp_sources"]) == ["host"]
    assert list(found[0]["cuda_sources"]) == ["device"]


def test_the_key_does_not_depend_on_the_name() -> None:
    keys = {
        extensions(LOAD + f"m = load_inline(name={n!r}, cpp_sources='a')\nclass ModelNew: pass")[0][
            "key"
        ]
        for n in ("one", "two")
    }
    assert len(keys) == 1


def test_the_same_sources_twice_are_one_extension_and_others_are_more() -> None:
    source = (
        LOAD
        + """
for text in ("a", "b", "a"):
    load_inline(name="x", cpp_sources=text)
class ModelNew: pass
"""
    )
    assert len(extensions(source)) == 2


def test_an_extension_made_in_the_constructor_is_found() -> None:
    source = (
        LOAD
        + """
class ModelNew(nn.Module):
    def __init__(self, n):
        super().__init__()
        self.m = load_inline(name="x", cpp_sources=f"const int n = {n};")
"""
    )
    found = extensions(source, init=[5])
    assert list(found[0]["cpp_sources"]) == ["const int n = 5;"]


def test_an_extension_made_in_forward_is_found() -> None:
    source = (
        LOAD
        + """
class ModelNew(nn.Module):
    def forward(self, x):
        return load_inline(name="x", cpp_sources="a", functions=["f"]).f(x)
"""
    )
    assert len(extensions(source, init=[], inputs=[torch.ones(2)])) == 1


def test_calling_an_extension_while_importing_is_no_fault_of_the_file() -> None:
    source = (
        LOAD
        + """
m = load_inline(name="x", cpp_sources="a", functions=["f"])
table = m.f(torch.ones(3).cuda())
class ModelNew(nn.Module): pass
"""
    )
    assert len(extensions(source)) == 1


def test_code_that_asks_for_cuda_goes_on() -> None:
    source = (
        LOAD
        + """
if torch.cuda.is_available():
    m = load_inline(name=f"x{torch.cuda.get_device_capability()[0]}", cpp_sources="a")
class ModelNew(nn.Module): pass
"""
    )
    assert extensions(source)[0]["name"] == "x9"


def test_a_syntax_error_is_a_load_error_with_its_line() -> None:
    verdict, error = refused("import torch\nclass ModelNew(:\n    pass")
    assert verdict == "LOAD_ERROR"
    assert "line 2" in error
    assert "SyntaxError" in error
    assert "/tmp" not in error


def test_an_exception_while_importing_is_a_load_error_with_the_programs_frames() -> None:
    verdict, error = refused("def f():\n    raise ValueError('bad weights')\nf()")
    assert verdict == "LOAD_ERROR"
    assert 'File "solution.py", line 2, in f' in error
    assert "ValueError: bad weights" in error
    assert "harness" not in error


def test_a_file_that_exits_is_a_load_error() -> None:
    assert refused("import sys\nsys.exit(0)")[0] == "LOAD_ERROR"


def test_a_file_without_the_class_is_a_load_error() -> None:
    verdict, error = refused("x = 1")
    assert verdict == "LOAD_ERROR"
    assert "ModelNew" in error


def test_a_constructor_that_fails_is_a_runtime_error() -> None:
    source = "class ModelNew:\n    def __init__(self):\n        raise KeyError('weight')"
    assert refused(source, init=[])[0] == "RUNTIME_ERROR"


def test_a_program_without_any_extension_has_no_custom_kernel() -> None:
    source = "import torch\nclass ModelNew(torch.nn.Module):\n    def forward(self, x): return x"
    assert refused(source, init=[], inputs=[torch.ones(2)])[0] == "NO_CUSTOM_KERNEL"


def test_the_files_main_block_is_not_run() -> None:
    source = LOAD + (
        "m = load_inline(name='x', cpp_sources='a')\nclass ModelNew: pass\n"
        "if __name__ == '__main__':\n    raise SystemExit(1)"
    )
    assert len(extensions(source)) == 1


RETRY = (
    LOAD
    + """
def build(flags):
    return load_inline("x", "int f();", extra_cflags=flags)
try:
    m = build(["-DFAST"])
except RuntimeError as error:
    assert "Error building extension 'x'" in str(error)
    m = build([])
class ModelNew(nn.Module): pass
"""
)


def test_an_extension_that_failed_raises_and_the_handler_s_own_is_found() -> None:
    first = extensions(RETRY)
    assert [list(e["cflags"]) for e in first] == [["-DFAST"]]
    reply = collect.collect(RETRY, None, None, [first[0]["key"]])
    assert [list(e["cflags"]) for e in reply["extensions"]] == [[]]


def test_a_failed_extension_that_nobody_catches_is_the_file_s_error() -> None:
    source = LOAD + "m = load_inline('x', 'int f();')\nclass ModelNew(nn.Module): pass"
    key = extensions(source)[0]["key"]
    reply = collect.collect(source, None, None, [key])
    assert reply["verdict"] == "LOAD_ERROR"
    assert "Error building extension 'x'" in reply["error"]
