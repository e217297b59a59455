"""Kills each process many times during GPU jobs, drains a worker under load, and counts.

    python3 -m tests.gpu.kills [--rounds 10] [--device cuda] [--scale 0.25] [--out FILE]

From a checkout, with KMOSAIC_BIN naming the programs (a bundle's bin/) and KMOSAIC_PYTHON an
interpreter with torch; needs nothing but the standard library itself. The demo's job runs again
and again while coordinator, runner and worker are killed in turns (SIGKILL) at random moments and
started again. Then a second worker joins, and the first one is drained in mid-job. Exit code 1,
and what was wrong, when an item was lost, doubled or failed for the system's sake, or when a
process or memory of the GPU stayed behind.
"""

from __future__ import annotations

import argparse
import json
import random
import shutil
import subprocess
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path
from typing import Any

from tests.integration.cluster import BIN, Cluster, Daemon

VICTIMS = ("runner", "coordinator", "worker")


def gpu_memory_mib() -> int | None:
    """None where there is no GPU."""
    if shutil.which("nvidia-smi") is None:
        return None
    query = ["nvidia-smi", "--query-gpu=memory.used", "--format=csv,noheader,nounits"]
    out = subprocess.run(query, capture_output=True, text=True, check=True).stdout
    return sum(int(line) for line in out.split())


def command_lines() -> list[str]:
    out = subprocess.run(["ps", "-eo", "args"], capture_output=True, text=True, check=True).stdout
    return out.splitlines()


class Trial:
    def __init__(self, options: argparse.Namespace, directory: Path) -> None:
        self.options = options
        self.cluster = Cluster(directory, device=options.device)
        examples = [BIN.parent / "share/kernelmosaic/examples", Path("examples")]
        self.job_file = next(e for e in examples if e.is_dir()) / "jobs/demo.yaml"
        self.jobs: list[str] = []
        self.pids: set[int] = set()  # of all daemons that ever were
        self.faults: list[str] = []
        self.report: dict[str, Any] = {"device": options.device, "scale": options.scale}

    def submit(self) -> str:
        device, scale = self.options.device, self.options.scale
        sets = [f"evaluation.device={device}", f"evaluation.scale={scale}"]
        if device == "cuda":
            sets.append("evaluation.benchmark=true")
        flags = [flag for value in sets for flag in ("--set", value)]
        job = str(self.cluster.json("submit", str(self.job_file), *flags)["job"]["id"])
        self.jobs.append(job)
        return job

    def is_running(self, job: str) -> bool:
        state = self.cluster.json("job", "show", job)["state"]
        return str(state).lower() not in ("finished", "done", "cancelled", "failed")

    def kill_rounds(self) -> None:
        dice = random.Random(self.options.seed)
        victims = {
            "runner": self.cluster.runners[0],
            "coordinator": self.cluster.coordinator,
            "worker": self.cluster.workers[0],
        }
        order = [name for name in VICTIMS for _ in range(self.options.rounds)]
        dice.shuffle(order)
        job = self.submit()
        downtime: Counter[str] = Counter()
        started = time.monotonic()
        for victim in order:
            if not self.is_running(job):
                job = self.submit()
            # Random moments of a working system.
            time.sleep(dice.uniform(0.5, self.options.pause))
            daemon: Daemon = victims[victim]
            daemon.kill()
            before = time.monotonic()
            daemon.start()
            self.remember()
            downtime[victim] += time.monotonic() - before  # type: ignore[assignment]
            elapsed = time.monotonic() - started
            print(f"{victim} killed and started again ({elapsed:.0f} s)", flush=True)
        self.report["kills"] = dict(Counter(order))
        self.report["restart_seconds"] = {k: round(v, 1) for k, v in downtime.items()}
        print("waiting for the last job", flush=True)
        self.finish(job)
        self.report["kill_seconds"] = round(time.monotonic() - started, 1)

    def remember(self) -> None:
        cluster = self.cluster
        for daemon in (cluster.coordinator, *cluster.workers, *cluster.runners):
            if daemon.process is not None:
                self.pids.add(daemon.process.pid)

    def processes(self) -> list[str]:
        """Command lines of our daemons, of their zygotes and what those forked."""
        marks = [str(self.cluster.directory), *(f"--parent {pid} " for pid in self.pids)]
        return [line for line in command_lines() if any(mark in line for mark in marks)]

    def drain(self) -> None:
        self.cluster.add_worker()
        self.remember()
        first = self.cluster.workers[0]
        names = [w["id"] for w in self.cluster.json("worker", "list")["workers"]]
        job = self.submit()
        for event in self.cluster.events(job):
            if event.get("item") is not None and event["item"]["to"] == "leased":
                break
        mine = self.worker_at(first.grpc)
        started = time.monotonic()
        self.cluster.kmosaic("worker", "drain", mine)
        print("draining one of two workers", flush=True)
        self.finish(job)
        code = first.terminate()
        self.report["drain"] = {
            "workers": len(names),
            "seconds": round(time.monotonic() - started, 1),
            "exit_code": code,
        }
        if code != 0:
            self.faults.append(f"the drained worker ended with {code}")

    def worker_at(self, endpoint: str) -> str:
        for worker in self.cluster.json("worker", "list")["workers"]:
            if worker["endpoint"] == endpoint:
                return str(worker["id"])
        raise AssertionError(f"no worker at {endpoint}")

    def finish(self, job: str) -> None:
        deadline = time.monotonic() + self.options.patience
        while self.is_running(job):
            if time.monotonic() > deadline:
                self.faults.append(f"job {job} is stuck")
                return
            time.sleep(0.5)

    def judge(self) -> None:
        """Every item of every job is there once, done, with a gapless record of its steps."""
        items = verified = charged = 0
        for job in self.jobs:
            total = len(self.cluster.json("job", "show", job)["items"])
            for number in range(total):
                detail = self.cluster.json("task", "conversation", job, str(number))
                item, steps = detail["item"], detail["steps"]
                items += 1
                charged += int(item.get("charged_attempts", 0))
                where = f"job {job} item {number}"
                if item["state"] != "done":
                    self.faults.append(f"{where} is {item['state']}: {item.get('error', '')}")
                elif item["result"]["verified"]:
                    verified += 1
                else:
                    self.faults.append(f"{where} is not verified: {item['result']}")
                if [step["number"] for step in steps] != list(range(len(steps))):
                    self.faults.append(f"{where} has a gap in its steps")
                if "INFRASTRUCTURE" in json.dumps(steps):
                    self.faults.append(f"{where} holds a verdict about the machine")
        self.report |= {"jobs": len(self.jobs), "items": items, "verified": verified}
        self.report["charged_attempts"] = charged

    def leftovers(self, memory_before: int | None) -> None:
        deadline = time.monotonic() + 20
        while (left := self.processes()) and time.monotonic() < deadline:
            time.sleep(0.2)
        memory = gpu_memory_mib()
        # The driver takes a moment to tear down what was killed.
        while memory is not None and memory_before is not None and memory > memory_before + 64:
            if time.monotonic() > deadline:
                break
            time.sleep(0.2)
            memory = gpu_memory_mib()
        if left:
            self.faults.append(f"processes stayed behind: {left}")
        if memory is not None and memory_before is not None and memory > memory_before + 64:
            self.faults.append(f"GPU memory stayed in use: {memory} MiB, before {memory_before}")
        self.report["memory_mib"] = {"before": memory_before, "after": memory}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--rounds", type=int, default=10, help="kills of each process")
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--scale", type=float, default=0.25)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--pause", type=float, default=8, help="most seconds between kills")
    parser.add_argument("--patience", type=float, default=180, help="seconds for a job to end")
    parser.add_argument("--out", help="file for the report, JSON")
    options = parser.parse_args()
    memory = gpu_memory_mib()
    with tempfile.TemporaryDirectory(prefix="kmosaic-kills-") as folder:
        trial = Trial(options, Path(folder))
        try:
            trial.cluster.start()
            trial.remember()
            trial.kill_rounds()
            trial.drain()
            trial.judge()
        finally:
            trial.cluster.stop()
        trial.leftovers(memory)
    trial.report["faults"] = trial.faults
    text = json.dumps(trial.report, indent=1)
    print(text)
    if options.out:
        Path(options.out).write_text(text + "\n")
    return 1 if trial.faults else 0


if __name__ == "__main__":
    sys.exit(main())
