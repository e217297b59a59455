"""Loading Python text as a module."""

from __future__ import annotations

import inspect
import os
import subprocess
import sys
from pathlib import Path

import pytest
from harness import program


def test_a_program_has_a_file_that_inspect_reads() -> None:
    loaded = program.load("def f():\n    return 7\n", "solution")
    assert loaded.module.f() == 7
    assert inspect.getsource(loaded.module.f) == "def f():\n    return 7\n"
    assert loaded.module.__file__ == loaded.path


def test_what_the_text_raises_is_the_cause() -> None:
    with pytest.raises(program.LoadFailed) as caught:
        program.load("raise SystemExit(3)\n", "solution")
    assert isinstance(program.cause(caught.value), SystemExit)
    assert Path(caught.value.path).read_text() == "raise SystemExit(3)\n"


def test_a_process_leaves_no_files_behind(tmp_path: Path) -> None:
    lines = [
        "from harness import program",
        "loaded = program.load('x = 1', 'reference')",
        "try: program.load('1 / 0', 'solution')",
        "except program.LoadFailed: pass",
        "import os",
        "print(len(os.listdir(os.environ['TMPDIR'])), os.path.exists(loaded.path))",
    ]
    result = subprocess.run(
        [sys.executable, "-c", "\n".join(lines)],
        env={
            **os.environ,
            "TMPDIR": str(tmp_path),
            "PYTHONPATH": str(Path(program.__file__).parents[1]),
        },
        capture_output=True,
        text=True,
        check=True,
    )
    assert result.stdout == "2 True\n"
    assert list(tmp_path.iterdir()) == []
