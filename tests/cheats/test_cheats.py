"""The suites of cheats, honest solutions and faults on the emulated device."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.cheats import run

ROOT = Path(__file__).resolve().parents[2]
# ctest sets it; by hand the dev build is used.
HOME = Path(os.environ.get("KMOSAIC_BIN", ROOT / "build/dev/bin")).parent
# Outlives the test: what is in it is found by content, and compiling takes most of the time.
CACHE = HOME / "cheats-cache"
# On the emulated device (docs/integrity.md, what is not caught).
KNOWN_GAPS = {"breaks-the-seal", "torch-then-copied-by-a-kernel"}


@pytest.fixture(autouse=True)
def interpreter(monkeypatch: pytest.MonkeyPatch) -> None:
    if "KMOSAIC_PYTHON" not in os.environ:
        monkeypatch.setenv("KMOSAIC_PYTHON", str(ROOT / ".venv/bin/python"))


@pytest.mark.parametrize("suite", ["honest", "cheats", "faults"])
def test_every_verdict_is_a_right_one(suite: str, tmp_path: Path) -> None:
    report = run.run(tmp_path, HOME, "emulated", [suite], cache=CACHE)
    assert [o.line() for o in report.wrong()] == []
    assert report.problems == []
    gaps = {o.candidate.name for o in report.outcomes if o.gap}
    assert gaps == (KNOWN_GAPS if suite == "cheats" else set())


def test_the_suites_are_as_large_as_they_say() -> None:
    cheats = run.select(run.CHEATS, "emulated", [])
    assert len(cheats) >= 100
    assert len({c.kind for c in cheats}) >= 10
    assert len(run.select(run.HONEST, "emulated", [])) >= 25
    assert len(run.select(run.FAULTS, "emulated", [])) >= 20
    for candidates in (run.CHEATS, run.HONEST, run.FAULTS):
        names = [c.name for c in candidates]
        assert len(set(names)) == len(names)
