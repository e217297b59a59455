"""The real programs together: metrics, discovery, bad input, an endpoint that is down."""

from __future__ import annotations

import json
import subprocess
import urllib.request
from pathlib import Path
from typing import Any

import pytest

from tests.integration.cluster import BIN, PYTHON, Cluster
from tests.integration.endpoint import RecordedEndpoint
from tests.integration.jobs import write_job


def get(address: str, path: str) -> str:
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    with opener.open(f"http://{address}{path}", timeout=60) as reply:
        return str(reply.read().decode())


def run(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [str(BIN / "kmosaic"), *arguments], capture_output=True, text=True, timeout=120
    )


def test_a_job_is_seen_in_metrics_and_discovery(
    cluster: Cluster, endpoint: RecordedEndpoint, tmp_path: Path
) -> None:
    cluster.start()
    job = cluster.json("submit", str(write_job(tmp_path, endpoint.url, ["gelu-tanh"])))["job"]["id"]
    last: dict[str, Any] = {}
    for event in cluster.events(job):
        last = event
    assert last["job_state"] == "finished"
    assert last["counts"]["verified"] == 1
    assert last["counts"]["usage"]["completion_tokens"] > 0

    targets = {
        target
        for group in json.loads(get(cluster.coordinator.http, "/sd/prometheus"))
        for target in group["targets"]
    }
    addresses = [cluster.coordinator.http, cluster.workers[0].http, cluster.runners[0].http]
    assert set(addresses) <= targets
    for address in addresses:
        assert "kmosaic_build_info{" in get(address, "/metrics")
        assert get(address, "/healthz").strip() == "ok"
    assert "kmosaic_llm_tokens_total{" in get(cluster.runners[0].http, "/metrics")
    assert cluster.runners[0].terminate() == 0
    assert cluster.workers[0].terminate() == 0
    assert cluster.coordinator.terminate() == 0


def test_an_endpoint_that_is_down_keeps_the_task_waiting(cluster: Cluster, tmp_path: Path) -> None:
    cluster.start()
    # Nothing listens on port 9 of the loopback interface; a refusal comes at once.
    path = write_job(tmp_path, "http://127.0.0.1:9/v1", ["gelu-tanh"])
    job = cluster.json("submit", str(path))["job"]["id"]
    seen = []
    for event in cluster.events(job):
        item = event.get("item")
        if item is not None:
            seen.append((item["from"], item["to"]))
            if item["from"] == "leased" and item["to"] in ("ready", "delayed"):
                break
    detail = cluster.json("task", "conversation", job, "0")
    assert detail["item"]["state"] in ("delayed", "ready", "leased")
    assert detail["steps"] == []
    assert "127.0.0.1:9" in detail["item"]["last_error"]


def test_no_coordinator_is_exit_3_with_the_address() -> None:
    done = run("--coordinator=127.0.0.1:9", "job", "list")
    assert done.returncode == 3
    assert "127.0.0.1:9" in done.stderr


def test_a_malformed_job_is_exit_2_with_its_line(tmp_path: Path) -> None:
    path = tmp_path / "job.yaml"
    path.write_text("name: x\nkind: generate\ntsks: []\n", encoding="utf-8")
    done = run("--coordinator=127.0.0.1:9", "submit", str(path))
    assert done.returncode == 2
    assert f"{path}:3" in done.stderr
    assert "tsks" in done.stderr


def test_a_reference_that_does_not_run_is_told_with_its_error(
    cluster: Cluster, tmp_path: Path
) -> None:
    cluster.start(runners=0)
    reference = tmp_path / "reference.py"
    reference.write_text("raise ValueError('no such reference')\n", encoding="utf-8")
    solution = tmp_path / "solution.py"
    solution.write_text("class ModelNew: pass\n", encoding="utf-8")
    done = cluster.kmosaic(
        "score", "--reference", str(reference), "--solution", str(solution), "-o", "json", check=1
    )
    result = json.loads(done.stdout)
    result = result["results"][0] if "results" in result else result
    assert result["verdict"] == "INVALID_TASK", done.stdout
    assert "no such reference" in result["reason"]


@pytest.mark.parametrize("program", ["kmosaic-coordinator", "kmosaic-agent-runner"])
def test_unknown_flags_are_exit_2(program: str) -> None:
    done = subprocess.run(
        [str(BIN / program), "--no-such-flag=1"], capture_output=True, text=True, timeout=60
    )
    assert done.returncode == 2
    assert "no-such-flag" in done.stderr


def test_a_worker_whose_sandbox_cannot_work_refuses_to_start(tmp_path: Path) -> None:
    done = subprocess.run(
        [
            "unshare",
            "--user",
            "--map-root-user",
            # No further user namespaces below this one, as on machines that forbid them.
            "sh",
            "-c",
            'echo 0 >/proc/sys/user/max_user_namespaces && exec "$0" "$@"',
            str(BIN / "kmosaic-gpu-worker"),
            "--self-test",
            "--device=emulated",
            f"--cache-dir={tmp_path / 'cache'}",
            f"--python={PYTHON}",
        ],
        capture_output=True,
        text=True,
        timeout=240,
    )
    assert done.returncode != 0
    assert "sandbox" in (done.stdout + done.stderr).lower()
