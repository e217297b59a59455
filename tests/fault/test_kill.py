"""Each process killed in mid-job: nothing lost, nothing doubled, no reply bought again."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.integration.cluster import Cluster
from tests.integration.endpoint import RecordedEndpoint
from tests.integration.jobs import write_job

TASKS = ["broadcast-affine", "gelu-tanh", "row-softmax", "layer-norm"]


def submit(cluster: Cluster, job: Path) -> str:
    return str(cluster.json("submit", str(job))["job"]["id"])


def check_finished(cluster: Cluster, job: str, items: int) -> list[dict[str, Any]]:
    """Every item DONE and verified, steps without gap, replies and results in turns."""
    details = []
    for number in range(items):
        detail = cluster.json("task", "conversation", job, str(number))
        assert detail["item"]["state"] == "done", detail["item"]
        assert detail["item"]["result"]["verified"], detail["item"]["result"]
        steps = detail["steps"]
        assert [step["number"] for step in steps] == list(range(len(steps)))
        kinds = ["reply" if "reply" in step else "result" for step in steps]
        assert kinds == ["reply", "result"] * (len(steps) // 2)
        details.append(detail)
    return details


def check_calls(endpoint: RecordedEndpoint, deaths: int, conversations: int) -> None:
    """No reply that was received is asked for again; one call in flight per conversation may be."""
    again = {key: count for key, count in endpoint.asked.items() if count > 1}
    assert all(count <= 1 + deaths for count in again.values()), again
    assert sum(count - 1 for count in again.values()) <= deaths * conversations


def replies(cluster: Cluster, job: str) -> Any:
    """Yields after each further recorded step of the job."""
    for event in cluster.events(job):
        item = event.get("item")
        if item is not None and item["from"] == item["to"] == "leased":
            yield event


@pytest.mark.parametrize("victim", ["runner", "coordinator", "worker"])
def test_killed_in_mid_job(
    cluster: Cluster, endpoint: RecordedEndpoint, tmp_path: Path, victim: str
) -> None:
    cluster.start(workers=1, runners=1)
    processes = {
        "runner": cluster.runners[0],
        "coordinator": cluster.coordinator,
        "worker": cluster.workers[0],
    }
    job = submit(cluster, write_job(tmp_path, endpoint.url, TASKS))
    deaths = 0
    for seen, _ in enumerate(replies(cluster, job)):
        if seen in (1, 6):
            processes[victim].kill()
            deaths += 1
            processes[victim].start()
    assert deaths == 2
    for detail in check_finished(cluster, job, len(TASKS)):
        # The worker's death is nobody's verdict and charges at most one attempt.
        assert "INFRASTRUCTURE" not in json.dumps(detail["steps"])
        if victim == "worker":
            assert detail["item"]["charged_attempts"] <= 1
    # Only a runner that dies takes calls in flight with it.
    check_calls(endpoint, deaths if victim == "runner" else 0, len(TASKS))


def test_several_runners_share_a_job(
    cluster: Cluster, endpoint: RecordedEndpoint, tmp_path: Path
) -> None:
    tasks = [*TASKS, "cross-entropy", "batched-transpose"]
    cluster.conversations = 2
    cluster.start(workers=1, runners=3)
    job = submit(cluster, write_job(tmp_path, endpoint.url, tasks))
    for _ in cluster.events(job):
        pass
    details = check_finished(cluster, job, len(tasks))
    check_calls(endpoint, 0, len(tasks))
    runners = {step["runner"] for detail in details for step in detail["steps"]}
    assert len(runners) >= 2, runners
