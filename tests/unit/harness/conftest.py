"""Tests of the harness run it in this process; a role's process is the C++ tests' matter."""

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[3] / "gpu_worker"))
pytest.importorskip("torch", reason="the harness needs a Python with torch")

import driver_stand_in


@pytest.fixture(autouse=True)
def no_seal() -> Iterator[None]:
    """A role is one process and stays sealed; the tests share theirs."""
    from harness import seal

    yield
    seal.release()


@pytest.fixture
def stand_in(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> "driver_stand_in.StandIn":
    return driver_stand_in.install(tmp_path, monkeypatch)
