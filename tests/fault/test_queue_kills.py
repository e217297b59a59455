"""The coordinator killed again and again under load: what it acknowledged stays true.

A few rounds; `./dev bench kills` does hundreds.
"""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

from tests.integration.cluster import BIN, PATIENCE_SECONDS

ROUNDS = 6


def test_nothing_acknowledged_is_lost_or_doubled(tmp_path: Path) -> None:
    done = subprocess.run(
        [
            str(BIN / "queue_kills"),
            f"--coordinator={BIN / 'kmosaic-coordinator'}",
            f"--data-dir={tmp_path / 'data'}",
            f"--rounds={ROUNDS}",
            "--clients=4",
            "--longest-ms=600",
        ],
        capture_output=True,
        text=True,
        timeout=PATIENCE_SECONDS,
    )
    assert done.returncode == 0, f"{done.stdout}\n{done.stderr}"
    report = json.loads(done.stdout.splitlines()[-1])
    assert report["rounds"] == ROUNDS
    assert report["completions_acknowledged"] > 0, report
