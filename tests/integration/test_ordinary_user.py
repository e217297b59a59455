"""The whole system as a user without privileges."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.integration import opened_homes
from tests.integration.cluster import BIN, PYTHON, ROOT, Cluster
from tests.integration.endpoint import RecordedEndpoint
from tests.integration.jobs import write_job

USER = 65533


@pytest.fixture
def unprivileged() -> Iterator[Cluster]:
    if os.geteuid() != 0:
        pytest.skip("already an ordinary user: every other test shows it")
    folder = Path(tempfile.mkdtemp(prefix="kmosaic-user-"))
    os.chown(folder, USER, USER)
    stage = folder / "stage"
    stage.mkdir()
    toolkit = os.environ.get("CUDA_HOME")
    needed: list[str | Path] = [PYTHON, BIN, ROOT, *([toolkit] if toolkit else [])]
    prefix = opened_homes.prefix(needed, stage)
    prefix += ["setpriv", f"--reuid={USER}", f"--regid={USER}", "--clear-groups", "--"]
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
