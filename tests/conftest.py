from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.integration.cluster import ROOT, Cluster
from tests.integration.endpoint import RecordedEndpoint, load_recordings, reply_by_task


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[Cluster]:
    """Not started yet; all of its processes are killed at the end."""
    cluster = Cluster(tmp_path / "cluster")
    yield cluster
    cluster.stop()


@pytest.fixture
def endpoint() -> Iterator[RecordedEndpoint]:
    recordings = load_recordings(ROOT / "examples/recordings/demo.jsonl")
    marks = {}
    for folder in sorted((ROOT / "examples/tasks").iterdir()):
        title = next(
            line.removeprefix("title: ")
            for line in (folder / "task.yaml").read_text().splitlines()
            if line.startswith("title: ")
        )
        marks[title.strip().strip("\"'")] = folder.name

    def task_of(prompt: str) -> str:
        found = [task for title, task in marks.items() if title in prompt]
        assert len(found) == 1, f"the prompt names {found}"
        return found[0]

    endpoint = RecordedEndpoint(reply_by_task(recordings, task_of))
    yield endpoint
    endpoint.close()
