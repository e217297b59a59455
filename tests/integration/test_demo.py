"""`./dev demo` as a newcomer runs it: the table, the seven view combinations, the exports."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path

import datasets
import pytest

from tests.integration.cluster import BIN, PYTHON, ROOT

pytestmark = pytest.mark.filterwarnings("ignore")


@pytest.fixture(scope="module")
def demo(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, str]:
    """Folder of the demo's data and exports, and what it printed."""
    folder = tmp_path_factory.mktemp("demo") / "out"
    done = subprocess.run(
        ["bash", str(ROOT / "examples/demo.sh")],
        env={
            **os.environ,
            "KMOSAIC_BIN": str(BIN),
            "KMOSAIC_DEMO": str(folder),
            "KMOSAIC_PYTHON": PYTHON,
        },
        capture_output=True,
        text=True,
        timeout=1500,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return folder, done.stdout


def test_every_task_is_verified_in_all_view_combinations(demo: tuple[Path, str]) -> None:
    rows = [line.split() for line in demo[1].splitlines() if " PASSED " in line]
    assert len(rows) == 16
    assert len({row[1] for row in rows}) == 16
    assert len({row[2] for row in rows}) == 7
    assert "16 verified, 0 not" in demo[1]


def test_recordings_show_errors_repairs_and_a_roll_back(demo: tuple[Path, str]) -> None:
    verdicts: set[str] = set()
    rolled_back = improved = 0
    for path in (demo[0] / "trajectory").glob("*.jsonl"):
        for line in path.read_text(encoding="utf-8").splitlines():
            for turn in json.loads(line)["turns"]:
                verdicts.add(turn["verdict"])
                rolled_back += bool(turn["rolled_back"])
                improved += turn["stage"] == "optimise" and bool(turn["best"])
    assert {"PASSED", "COMPILE_ERROR", "WRONG_OUTPUT"} <= verdicts
    assert rolled_back >= 1
    assert improved >= 1


@pytest.mark.parametrize("form", ["trajectory", "direct"])
def test_exports_load_with_json_and_datasets(
    demo: tuple[Path, str], form: str, tmp_path: Path
) -> None:
    files = sorted((demo[0] / form).glob("*.jsonl"))
    rows = [
        json.loads(line) for file in files for line in file.read_text(encoding="utf-8").splitlines()
    ]
    assert len(rows) == 16
    assert all(row["format"] == form for row in rows)
    assert len({tuple(row) for row in rows}) == 1, "every row has the same keys"
    assert all(row["emulated"] is True for row in rows)
    for order in (files, files[::-1]):
        loaded = datasets.load_dataset(
            "json",
            data_files=[str(file) for file in order],
            split="train",
            cache_dir=str(tmp_path / "cache"),
        )
        assert loaded.num_rows == 16
        roles = [message["role"] for message in loaded[0]["messages"]]
        assert roles[:2] == ["system", "user"]
        assert roles[-1] == "assistant"
