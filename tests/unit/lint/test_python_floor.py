"""What the check of the oldest Python finds, and what it leaves alone."""

from __future__ import annotations

import pytest

from tests.lint import python_floor

FUTURE = "from __future__ import annotations\n"


@pytest.mark.parametrize(
    "source",
    [
        "match x:\n  case 1:\n    pass\n",
        "try:\n  pass\nexcept* ValueError:\n  pass\n",
        "type X = int\n",
        "def f[T](x: T): pass\n",
        "def f(x: int | None): pass\n",
        "Either = int | str\n",
        FUTURE + "Either = int | str\n",
        FUTURE + "isinstance(x, list | tuple)\n",
        FUTURE + "isinstance(x, torch.Tensor | torch.Size)\n",
        FUTURE + "cast(dict[str, int] | None, x)\n",
        FUTURE + "def f(x: int = zip(a, b, strict=True)): pass\n",
        "zip(a, b, strict=False)\n",
        "@dataclass(frozen=True, slots=True)\nclass A: pass\n",
        "traceback.format_exception_only(error)\n",
        "import tomllib\n",
        "from typing import Self\n",
        "import itertools as it\nit.pairwise(x)\n",
        "(7).bit_count()\n",
        "raise ExceptionGroup('', [])\n",
    ],
)
def test_what_is_too_new_is_named(source: str) -> None:
    assert python_floor.problems_of(source) != []


@pytest.mark.parametrize(
    "source",
    [
        FUTURE + "def f(x: int | None) -> list[int] | None: pass\n",
        FUTURE + "class A:\n  x: int | None = None\n",
        "flags = os.O_RDONLY | os.O_CLOEXEC\n",
        "isinstance(x, (list, tuple))\n",
        "zip(a, b)\n",
        "@dataclass(frozen=True)\nclass A: pass\n",
        "traceback.format_exception_only(type(error), error)\n",
        "import itertools\nitertools.chain(x)\n",
        "class A:\n  __slots__ = ('a',)\n",
    ],
)
def test_what_the_floor_has_passes(source: str) -> None:
    assert python_floor.problems_of(source) == []


def test_a_problem_has_its_line() -> None:
    assert python_floor.problems_of("x = 1\nzip(a, b, strict=True)\n") == [
        python_floor.Problem(2, "parameter strict of zip")
    ]


def test_what_a_bundle_runs_needs_nothing_newer() -> None:
    files = python_floor.checked_files()
    assert {"zygote.py", "report.py", "reference.py"} <= {path.name for path in files}
    found = {
        path.name: problems
        for path in files
        if (problems := python_floor.problems_of(path.read_text(encoding="utf-8")))
    }
    assert found == {}
