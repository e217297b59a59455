"""The whole system as a user without privileges."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.integration.cluster import PYTHON, Cluster
from tests.integration.endpoint import RecordedEndpoint
from tests.integration.jobs import write_job

USER = 65533


def reachable_by_others(path: str) -> bool:
    """Every folder above the file lets anybody through."""
    return all(
        folder.stat().st_mode & 0o001 for folder in Path(path).resolve().parents if folder.exists()
    )


@pytest.fixture
def unprivileged() -> Iterator[Cluster]:
    if os.geteuid() != 0:
        pytest.skip("already an ordinary user: every other test shows it")
    if not reachable_by_others(PYTHON):
        pytest.skip(f"an ordinary user cannot reach {PYTHON}")
    folder = Path(tempfile.mkdtemp(prefix="kmosaic-user-"))
    os.chown(folder, USER, USER)
    prefix = ["setpriv", f"--reuid={USER}", f"--regid={USER}", "--clear-groups", "--"]
    cluster = Cluster(folder / "cluster", prefix=prefix)
    cluster.directory.mkdir()
    os.chown(cluster.directory, USER, USER)
    yield cluster
    cluster.stop()
    shutil.rmtree(folder, ignore_errors=True)


def test_a_job_runs_as_an_ordinary_user(
    unprivileged: Cluster, endpoint: RecordedEndpoint, tmp_path: Path
) -> None:
    unprivileged.start()
    path = write_job(unprivileged.directory, endpoint.url, ["gelu-tanh"])
    job = unprivileged.json("submit", str(path))["job"]["id"]
    for _ in unprivileged.events(job):
        pass
    assert unprivileged.json("task", "conversation", job, "0")["item"]["result"]["verified"]
