"""Generated tasks through the whole system, answered by the scripted teacher.

    python3 teacher.py OUT [--count 2000] [--device cuda] [--minutes 10] [--seed 1]

From an unpacked bundle (or a checkout with build/release): generates tasks, starts the teacher and
the system, submits one job over all of them, waits for its end or for so many minutes, and writes
OUT/teacher.json: share verified, turns for each conversation, conversations for each hour, all by
family. Needs nothing but the standard library itself; the system needs torch and, for a GPU, nvcc.
Exit code 1 where fewer than --goal of the conversations that ended are verified.
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
# How often the job's state is read.
POLL_SECONDS = 2.0
# How long the system may take to end.
STOP_SECONDS = 60.0
VIEWS = (
    "[[description], [reference], [spec], [description, reference], [description, spec], "
    "[reference, spec], [description, reference, spec]]"
)


def find_kmosaic() -> Path:
    homes = [Path(os.environ["KMOSAIC_HOME"])] if os.environ.get("KMOSAIC_HOME") else []
    homes += [HERE.parents[2], HERE.parents[1] / "build/release"]
    for home in homes:
        if (home / "bin/kmosaic").exists():
            return home / "bin/kmosaic"
    sys.exit("teacher: there is no bin/kmosaic: set KMOSAIC_HOME to an unpacked bundle")


class Trial:
    """One run. Everything it makes is below `out`; what it starts has ended after `stop`."""

    def __init__(self, options: argparse.Namespace) -> None:
        self.options = options
        self.out: Path = options.out.resolve()
        self.kmosaic = find_kmosaic()
        self.env = {**os.environ, "XDG_STATE_HOME": str(self.out / "state")}
        self.env.pop("XDG_RUNTIME_DIR", None)
        self.started: list[subprocess.Popen[str]] = []

    def run(self, *arguments: str) -> str:
        done = subprocess.run(
            [str(self.kmosaic), *arguments], env=self.env, capture_output=True, text=True
        )
        if done.returncode != 0:
            sys.exit(f"teacher: kmosaic {' '.join(arguments)}: {done.stderr or done.stdout}")
        return done.stdout

    def start(self, ready: str, *arguments: str) -> str:
        """Starts a command that goes on; its first line that holds `ready`."""
        with (self.out / f"{arguments[0]}.log").open("w") as log:
            process = subprocess.Popen(
                [str(self.kmosaic), *arguments],
                env=self.env,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT if ready == "is up" else log,
                text=True,
            )
        self.started.append(process)
        assert process.stdout is not None
        for line in process.stdout:
            if ready in line:
                return line
        sys.exit(f"teacher: kmosaic {arguments[0]} ended before it was ready")

    def stop(self) -> None:
        for process in reversed(self.started):
            process.send_signal(signal.SIGTERM)
        for process in self.started:
            try:
                process.communicate(timeout=STOP_SECONDS)
            except subprocess.TimeoutExpired:
                process.kill()
                process.communicate()

    def job_file(self, url: str) -> Path:
        benchmark = "true" if self.options.device == "cuda" else "false"
        path = self.out / "job.yaml"
        path.write_text(
            f"""name: teacher
kind: generate
tasks: [tasks/*]
views: {VIEWS}
assign: round-robin
endpoint:
  kind: openai
  url: {url}
  model: kernelmosaic-teacher
  max_concurrency: 32
budget: {{turns: 8, optimise_turns: {self.options.optimise}}}
evaluation:
  device: {self.options.device}
  benchmark: {benchmark}
  scale: {self.options.scale}
  public_seeds: {self.options.public_seeds}
  secret_seeds: {self.options.secret_seeds}
guidance: false
""",
            encoding="utf-8",
        )
        return path

    def wait(self, job: str) -> float:
        """Until the job ends or the minutes are over; seconds that passed."""
        began = time.monotonic()
        limit = self.options.minutes * 60
        while True:
            passed = time.monotonic() - began
            state = json.loads(self.run("job", "show", job, "-o", "json"))
            counts = state["counts"]
            ended = sum(int(counts[k]) for k in ("done", "failed", "cancelled", "dead"))
            if sys.stderr.isatty():
                print(f"\r{ended} of {counts['total']}, {passed:.0f} s", end="", file=sys.stderr)
            if ended == int(counts["total"]):
                return passed
            if limit and passed >= limit:
                self.run("job", "cancel", job)
                return passed
            time.sleep(POLL_SECONDS)


def figures(rows: list[dict[str, Any]], seconds: float) -> dict[str, Any]:
    """Of exported rows, unverified ones included."""
    families: dict[str, Counter[str]] = {}
    verdicts: Counter[str] = Counter()
    stops: Counter[str] = Counter()
    turns = []
    first_verified = []
    for row in rows:
        if row["stop_reason"] == "cancelled":
            continue
        family = families.setdefault(row["task"]["id"].rsplit("-", 2)[0], Counter())
        family["ended"] += 1
        family["verified"] += bool(row["verified"])
        stops[row["stop_reason"]] += 1
        turns.append(len(row["turns"]))
        verdicts.update(turn["verdict"] or "NO_VERSION" for turn in row["turns"])
        passed = [turn["turn"] for turn in row["turns"] if turn["verdict"] == "PASSED"]
        if passed:
            first_verified.append(passed[0] + 1)
    ended = sum(f["ended"] for f in families.values())
    verified = sum(f["verified"] for f in families.values())
    return {
        "conversations": ended,
        "verified": verified,
        "share_verified": round(verified / ended, 4) if ended else None,
        "turns_per_conversation": round(sum(turns) / ended, 2) if ended else None,
        "turns_to_first_verified": round(sum(first_verified) / len(first_verified), 2)
        if first_verified
        else None,
        "seconds": round(seconds, 1),
        "conversations_per_hour": round(ended * 3600 / seconds),
        "verdicts": dict(verdicts.most_common()),
        "stop_reasons": dict(stops.most_common()),
        "not_all_verified": {
            name: f"{f['verified']} of {f['ended']}"
            for name, f in sorted(families.items())
            if f["verified"] < f["ended"]
        },
        "families": len(families),
    }


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("out", type=Path)
    parser.add_argument("--count", type=int, default=2000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--families", default="")
    parser.add_argument("--device", default="cuda", choices=["cuda", "emulated"])
    parser.add_argument("--minutes", type=float, default=0, help="0: until the job ends")
    parser.add_argument("--scale", type=float, default=0, help="0: the device's default")
    parser.add_argument("--optimise", type=int, default=1, help="turns after the first right one")
    parser.add_argument("--public-seeds", type=int, default=0)
    parser.add_argument("--secret-seeds", type=int, default=0)
    parser.add_argument("--workers", type=int, default=1)
    parser.add_argument("--goal", type=float, default=0.95)
    trial = Trial(parser.parse_args())
    options = trial.options
    trial.out.mkdir(parents=True)
    made = trial.run(
        "task",
        "generate",
        str(trial.out / "tasks"),
        f"--count={options.count}",
        f"--seed={options.seed}",
        *([f"--families={options.families}"] if options.families else []),
    )
    print(made, end="")
    try:
        line = trial.start(" at ", "teacher", str(trial.out / "tasks"))
        url = line.rsplit(" at ", 1)[1].strip()
        up = [f"--data={trial.out / 'data'}", f"--device={options.device}"]
        trial.start("is up", "up", *up, f"--workers={options.workers}")
        submitted = json.loads(trial.run("submit", str(trial.job_file(url)), "-o", "json"))
        job = submitted["job"]["id"]
        seconds = trial.wait(job)
        export = ["export", job, f"--out={trial.out / 'dataset'}", "--include-unverified"]
        trial.run(*export, "--include-emulated")
    finally:
        trial.stop()
    rows = [
        json.loads(text)
        for path in sorted((trial.out / "dataset").glob("*.jsonl"))
        for text in path.read_text(encoding="utf-8").splitlines()
    ]
    report = {"device": options.device, "count": options.count, **figures(rows, seconds)}
    text = json.dumps(report, indent=2)
    (trial.out / "teacher.json").write_text(text + "\n", encoding="utf-8")
    print(text)
    return 0 if (report["share_verified"] or 0) >= options.goal else 1


if __name__ == "__main__":
    sys.exit(main())
