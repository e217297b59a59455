"""A worker that is drained in mid-job: nothing lost, nothing done twice, and it goes by itself."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from tests.fault.test_kill import check_calls, check_finished, replies, submit
from tests.integration.cluster import PATIENCE_SECONDS, Cluster, Daemon
from tests.integration.endpoint import RecordedEndpoint
from tests.integration.jobs import write_job

TASKS = ["broadcast-affine", "gelu-tanh", "row-softmax", "layer-norm", "cross-entropy", "swiglu"]


def workers(cluster: Cluster) -> dict[str, dict[str, Any]]:
    """What `worker list` shows, by endpoint."""
    return {worker["endpoint"]: worker for worker in cluster.json("worker", "list")["workers"]}


def used(worker: dict[str, Any]) -> int:
    return sum(slots.get("used", 0) for slots in worker["slots"])


def drain_one_at_work(cluster: Cluster) -> Daemon | None:
    """Drains a worker that has a slot in use; None when none has."""
    fleet = workers(cluster)
    for daemon in cluster.workers:
        worker = fleet[daemon.grpc]
        if used(worker) > 0:
            assert worker["state"] == "busy"
            cluster.kmosaic("worker", "drain", worker["id"])
            return daemon
    return None


def test_a_worker_drained_under_load_ends_by_itself_and_loses_nothing(
    cluster: Cluster, endpoint: RecordedEndpoint, tmp_path: Path
) -> None:
    cluster.start(workers=2, runners=1)
    job = submit(cluster, write_job(tmp_path, endpoint.url, TASKS))
    drained: Daemon | None = None
    for seen, _ in enumerate(replies(cluster, job)):
        if seen >= 2 and drained is None:
            drained = drain_one_at_work(cluster)
            if drained is not None:
                assert workers(cluster)[drained.grpc]["state"] == "draining"
                assert "draining" in cluster.kmosaic("worker", "list").stdout
    assert drained is not None, "no worker was ever seen at work"
    assert drained.process is not None
    assert drained.process.wait(timeout=PATIENCE_SECONDS) == 0
    (other,) = [worker for worker in cluster.workers if worker is not drained]
    assert other.process is not None
    assert other.process.poll() is None
    assert workers(cluster)[other.grpc]["state"] in ("ready", "busy")

    for detail in check_finished(cluster, job, len(TASKS)):
        assert detail["item"]["attempts"] == 1
        assert "INFRASTRUCTURE" not in json.dumps(detail["steps"])
    # Every version was judged once.
    counts = cluster.json("job", "show", job)["counts"]
    assert counts["done"] == counts["verified"] == len(TASKS)
    check_calls(endpoint, 0, len(TASKS))


def test_a_worker_with_nothing_to_do_ends_when_it_is_drained(cluster: Cluster) -> None:
    cluster.start(workers=1, runners=0)
    (worker,) = workers(cluster).values()
    assert worker["state"] == "ready"
    cluster.kmosaic("worker", "drain", worker["id"])
    process = cluster.workers[0].process
    assert process is not None
    assert process.wait(timeout=PATIENCE_SECONDS) == 0
