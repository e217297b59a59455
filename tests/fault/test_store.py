"""Backups while the coordinator serves, restore drills, dead letters: the real programs."""

from __future__ import annotations

import json
from pathlib import Path

from tests.integration.cluster import Cluster
from tests.integration.jobs import write_job

# Nobody listens there: conversations begin and wait for their first reply.
NOWHERE = "http://127.0.0.1:9/v1"


def submit(cluster: Cluster, tmp_path: Path, tasks: list[str]) -> str:
    job = write_job(tmp_path, NOWHERE, tasks)
    return str(cluster.json("submit", str(job))["job"]["id"])


def test_a_backup_restores_what_was_acknowledged_when_it_was_made(
    cluster: Cluster, tmp_path: Path
) -> None:
    cluster.start(workers=0, runners=0)
    kept = submit(cluster, tmp_path, ["gelu-tanh", "row-softmax"])
    backup = tmp_path / "backup"
    made = cluster.json("store", "backup", str(backup))
    assert made["files"] > 3
    # Refused where something is, and after it the store serves on.
    cluster.kmosaic("store", "backup", str(backup), check=2)
    cluster.kmosaic("job", "cancel", kept)
    lost = submit(cluster, tmp_path, ["layer-norm"])
    cluster.coordinator.kill()

    for directory in (cluster.directory / "data", backup):
        found = cluster.json("store", "check", str(directory))
        assert found["jobs"] == (1 if directory == backup else 2), found
    restored = tmp_path / "restored"
    drill = cluster.json("store", "restore", str(backup), str(restored))
    assert (drill["jobs"], drill["items"]) == (1, 2)
    cluster.kmosaic("store", "restore", str(backup), str(restored), check=1)

    data = f"--data-dir={cluster.directory / 'data'}"
    arguments = cluster.coordinator.arguments
    arguments[arguments.index(data)] = f"--data-dir={restored}"
    cluster.coordinator.start()
    jobs = {job["id"]: job for job in cluster.json("job", "list")}
    assert set(jobs) == {kept}
    assert jobs[kept]["state"] == "running", jobs[kept]
    assert lost not in jobs


def test_a_damaged_store_is_found(cluster: Cluster, tmp_path: Path) -> None:
    cluster.start(workers=0, runners=0)
    submit(cluster, tmp_path, ["gelu-tanh", "row-softmax"])
    cluster.coordinator.terminate()
    # A restart writes what was in the log to table files.
    cluster.coordinator.start()
    cluster.coordinator.terminate()
    store = cluster.directory / "data" / "store"
    tables = sorted(store.glob("*.sst"), key=lambda path: path.stat().st_size)
    damaged = tables[-1]
    content = bytearray(damaged.read_bytes())
    for at in range(20, len(content) - 100, 50):
        content[at] ^= 0x55
    damaged.write_bytes(bytes(content))
    done = cluster.kmosaic("store", "check", str(cluster.directory / "data"), check=1)
    assert "checksum" in done.stderr or "Corruption" in done.stderr, done.stderr


def test_items_whose_holders_die_are_dead_letters_and_come_back(
    cluster: Cluster, tmp_path: Path
) -> None:
    cluster.start(workers=0, runners=1)
    runner = cluster.runners[0]
    job = submit(cluster, tmp_path, ["gelu-tanh"])
    deaths = 0
    for event in cluster.events(job):
        item = event.get("item")
        if item is not None and item["to"] == "leased":
            runner.kill()
            deaths += 1
            if deaths < 3:
                runner.start()
    assert deaths == 3
    letters = cluster.json("dlq", "list")
    assert [(letter["id"]["job"], letter["state"]) for letter in letters] == [(job, "dead")]
    shown = cluster.json("dlq", "show", job, "0")
    assert len(shown["history"]) == 3, json.dumps(shown)
    assert all("not heard of" in attempt["outcome"] for attempt in shown["history"])
    assert cluster.json("dlq", "replay", job, "0")["retried"] == 1
    assert cluster.json("dlq", "list") == []
    assert cluster.json("job", "show", job)["counts"]["ready"] == 1
