#!/usr/bin/env python3
"""Conversations with a model behind a server of yours, and whether they were counted right.

Starts `kmosaic up` on the emulated device, holds one conversation per task and sample with the
model, and puts what was recorded beside what the server itself said: every call goes through a
meter that passes all bytes on and reads usage and finish reason from them.

    python3 tests/bench/real_llm.py --url http://127.0.0.1:8000/v1 --model NAME

Exit code 1 when a conversation did not end with a stop reason, when tokens differ, or when a
reply was asked for twice. Whether anything is verified depends on the model and is no failure.
Needs nothing but the standard library and the built programs (KMOSAIC_BIN, default
build/release/bin).
"""

from __future__ import annotations

import argparse
import http.client
import json
import os
import signal
import subprocess
import sys
import tempfile
import threading
import urllib.parse
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
SCAFFOLD = Path(__file__).resolve().parent / "scaffold_task"
BIN = Path(os.environ.get("KMOSAIC_BIN", ROOT / "build/release/bin"))

# (prompt tokens, completion tokens, finish reason)
Count = tuple[int, int, str]


@dataclass
class Meter:
    """A pass-through to `target` that notes what the server answers. Thread-safe."""

    target: str
    bodies: Counter[str] = field(default_factory=Counter)
    statuses: Counter[int] = field(default_factory=Counter)
    refusals: list[str] = field(default_factory=list)
    counts: Counter[Count | None] = field(default_factory=Counter)
    streamed: int = 0
    lock: threading.Lock = field(default_factory=threading.Lock)

    def __post_init__(self) -> None:
        meter = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["Content-Length"]))
                with meter.lock:
                    meter.bodies[body.decode()] += 1
                answer = meter.forward(self.path, body, dict(self.headers))
                self.send_response(answer.status)
                for name in ("Content-Type", "Retry-After"):
                    if (value := answer.getheader(name)) is not None:
                        self.send_header(name, value)
                self.end_headers()
                seen = b""
                while piece := answer.read1(65536):
                    seen += piece
                    self.wfile.write(piece)
                    self.wfile.flush()
                meter.note(answer.status, answer.getheader("Content-Type", ""), seen)

            def log_message(self, format: str, *args: Any) -> None:
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.server.daemon_threads = True
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server.server_address[1]}"

    def forward(self, path: str, body: bytes, headers: dict[str, str]) -> http.client.HTTPResponse:
        target = urllib.parse.urlsplit(self.target)
        secure = target.scheme == "https"
        make = http.client.HTTPSConnection if secure else http.client.HTTPConnection
        connection = make(target.netloc)
        kept = {k: v for k, v in headers.items() if k.lower() not in ("host", "connection")}
        connection.request("POST", target.path.rstrip("/") + path, body, kept)
        return connection.getresponse()

    def note(self, status: int, content_type: str, body: bytes) -> None:
        text = body.decode(errors="replace")
        stream = content_type.startswith("text/event-stream")
        with self.lock:
            self.statuses[status] += 1
            if status != 200:
                self.refusals.append(f"{status}: {text[:300]}")
                return
            self.streamed += 1 if stream else 0
            self.counts[count_of(objects(text) if stream else [json.loads(text)])] += 1


def objects(stream: str) -> list[dict[str, Any]]:
    """The JSON objects of an event stream."""
    lines = (line.removeprefix("data:").strip() for line in stream.splitlines() if "{" in line)
    return [json.loads(line) for line in lines]


def count_of(parts: list[dict[str, Any]]) -> Count | None:
    """The last usage and finish reason that an answer holds; None where it holds no usage."""
    usage = [part["usage"] for part in parts if part.get("usage")]
    choices = [choice for part in parts for choice in part.get("choices") or []]
    finish = [choice["finish_reason"] for choice in choices if choice.get("finish_reason")]
    if not usage:
        return None
    last = finish[-1] if finish else ""
    return usage[-1]["prompt_tokens"], usage[-1]["completion_tokens"], last


class System:
    """A running `kmosaic up`."""

    def __init__(self, process: subprocess.Popen[str], coordinator: str) -> None:
        self.process = process
        self.coordinator = coordinator

    def kmosaic(self, *arguments: str, ok: tuple[int, ...] = (0,)) -> str:
        command = [str(BIN / "kmosaic"), f"--coordinator={self.coordinator}", *arguments]
        done = subprocess.run(command, stdout=subprocess.PIPE, text=True)
        if done.returncode not in ok:
            raise SystemExit(f"kmosaic {' '.join(arguments)} ended with {done.returncode}")
        return done.stdout

    def json(self, *arguments: str) -> Any:
        return json.loads(self.kmosaic(*arguments, "-o", "json"))


@contextmanager
def system(data: Path) -> Iterator[System]:
    process = subprocess.Popen(
        [str(BIN / "kmosaic"), "up", "--device=emulated", f"--data={data}"],
        stdout=subprocess.PIPE,
        text=True,
    )
    try:
        assert process.stdout is not None
        for line in process.stdout:
            words = line.split()
            if words[:1] == ["coordinator"]:
                yield System(process, words[1])
                return
        raise SystemExit("kmosaic up ended before it was ready")
    finally:
        process.send_signal(signal.SIGINT)
        process.communicate()


def folder_of(task: str) -> Path:
    """A task's folder from its path or from the name of an example."""
    return Path(task).resolve() if "/" in task else ROOT / "examples/tasks" / task


def job_of(options: argparse.Namespace, url: str) -> dict[str, Any]:
    """JSON is YAML."""
    endpoint = {
        "name": "real",
        "kind": "openai",
        "url": url,
        "model": options.model,
        "stream": not options.no_stream,
        "timeout": "20m",
        "max_concurrency": options.concurrency,
    }
    if options.api_key_env:
        endpoint["api_key_env"] = options.api_key_env
    sampling = {"temperature": options.temperature, "max_tokens": options.max_tokens}
    budget = {"turns": options.turns, "optimise_turns": 2, "context_tokens": options.context}
    return {
        "name": "real-llm",
        "kind": "generate",
        "tasks": [str(folder_of(task)) for task in options.tasks],
        "views": [options.views],
        "samples": options.samples,
        "endpoint": endpoint,
        "sampling": sampling,
        "budget": budget,
        "evaluation": {"device": "emulated"},
        "guidance": options.guidance,
    }


def outcome_of(result: dict[str, Any]) -> str:
    error = str(result["extraction_error"])
    return error.partition(":")[0] if error else str(result["report"]["verdict"])


def counts_of(steps: list[dict[str, Any]]) -> list[Count]:
    """What was recorded of each reply."""
    return [
        (
            reply["usage"]["prompt_tokens"],
            reply["usage"]["completion_tokens"],
            reply["finish_reason"],
        )
        for reply in (step["reply"] for step in steps if "reply" in step)
    ]


def report(details: list[dict[str, Any]], meter: Meter) -> list[str]:
    """Prints what happened; returns what was wrong."""
    wrong = []
    ours: Counter[Count | None] = Counter()
    print("| task | turns | what came of each | stopped by | prompt | completion |")
    print("|---|---|---|---|---|---|")
    for detail in details:
        item, steps = detail["item"], detail["steps"]
        counts = counts_of(steps)
        ours.update(counts)
        stop = (item["result"] or {}).get("stop_reason")
        if item["state"] != "done" or not stop:
            wrong.append(f"{item['task']} is {item['state']}, stopped by {stop}")
        came = ", ".join(outcome_of(step["result"]) for step in steps if "result" in step)
        prompt, completion = sum(c[0] for c in counts), sum(c[1] for c in counts)
        print(f"| {item['task']} | {len(counts)} | {came} | {stop} | {prompt} | {completion} |")
    print(f"\nreplies: {ours.total()} recorded, {meter.counts.total()} from the server")
    print(f"streamed: {meter.streamed}, without usage: {meter.counts[None]}")
    for name, all_counts in (("recorded", ours), ("server", meter.counts)):
        known = [count for count in all_counts.elements() if count is not None]
        prompt, completion = sum(c[0] for c in known), sum(c[1] for c in known)
        print(f"{name}: {prompt} prompt tokens, {completion} completion tokens")
    print(f"statuses: {dict(meter.statuses)}")
    for refusal in sorted(set(meter.refusals)):
        print(f"  {refusal}")
    if ours != meter.counts:
        wrong.append("what was recorded is not what the server counted")
    twice = [body for body, times in meter.bodies.items() if times > 1]
    if twice:
        # Two samples of one task begin with the same request.
        first = {body for body in twice if not any_assistant(body)}
        if len(twice) > len(first):
            wrong.append(f"{len(twice) - len(first)} requests were sent twice")
    return wrong


def any_assistant(body: str) -> bool:
    roles = [str(message["role"]) for message in json.loads(body)["messages"]]
    return "assistant" in roles


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--url", required=True, help="base URL, with /v1 where the server has it")
    parser.add_argument("--model", required=True)
    parser.add_argument("--api-key-env", default="", help="name of the variable with the key")
    parser.add_argument(
        "--tasks",
        nargs="+",
        default=[str(SCAFFOLD), "gelu-tanh"],
        metavar="TASK",
        help="folders of tasks, or names of examples; the default begins with one that shows "
        "nearly the whole answer, so that small models hand in something to run",
    )
    parser.add_argument("--views", nargs="+", default=["description"])
    parser.add_argument("--samples", type=int, default=1)
    parser.add_argument("--turns", type=int, default=5)
    parser.add_argument("--temperature", type=float, default=0.7)
    parser.add_argument("--max-tokens", type=int, default=1024)
    parser.add_argument("--context", type=int, default=8192, help="window in tokens; 0: none")
    parser.add_argument("--concurrency", type=int, default=1)
    parser.add_argument("--no-stream", action="store_true")
    parser.add_argument("--guidance", action="store_true")
    parser.add_argument("--keep", type=Path, help="folder for job file, data and export")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="kmosaic-real-llm-") as temporary:
        folder = options.keep or Path(temporary)
        folder.mkdir(parents=True, exist_ok=True)
        meter = Meter(options.url)
        job_file = folder / "job.yaml"
        job_file.write_text(json.dumps(job_of(options, meter.url), indent=2) + "\n")
        with system(folder / "data") as up:
            job = up.json("submit", str(job_file))["job"]["id"]
            up.kmosaic("job", "watch", job, ok=(0, 1))
            items = len(options.tasks) * options.samples
            details = [up.json("task", "conversation", job, str(i)) for i in range(items)]
            up.kmosaic(
                *("export", job, "--out", str(folder / "export")),
                *("--include-emulated", "--include-unverified"),
            )
        wrong = report(details, meter)
        rows = sum(len(f.read_text().splitlines()) for f in (folder / "export").glob("*.jsonl"))
    print(f"exported rows: {rows} of {items}")
    if rows != items:
        wrong.append(f"{items - rows} conversations were not exported")
    for line in wrong:
        print(f"WRONG: {line}", file=sys.stderr)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
