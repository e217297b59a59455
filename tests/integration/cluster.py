"""The real programs, started and stopped as an operator would, for tests."""

from __future__ import annotations

import json
import os
import signal
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
# ctest sets both; by hand the dev build and the checkout's own environment are used.
BIN = Path(os.environ.get("KMOSAIC_BIN", ROOT / "build/dev/bin"))
PYTHON = os.environ.get("KMOSAIC_PYTHON", str(ROOT / ".venv/bin/python"))
# Long enough for a loaded two-core machine; nothing waits that long when all is well.
PATIENCE_SECONDS = 240.0


class Daemon:
    """One program that prints a ready line; it can be killed and started again in place."""

    def __init__(
        self, program: str, arguments: list[str], log: Path, prefix: list[str] | None = None
    ) -> None:
        self.program = program
        self.arguments = arguments
        self.log = log
        self.prefix = prefix or []
        self.ready: dict[str, Any] = {}
        self.process: subprocess.Popen[bytes] | None = None

    def start(self, extra_env: dict[str, str] | None = None) -> Daemon:
        """Returns when it serves. Raises with the end of its log when it ends first."""
        with self.log.open("ab") as log:
            self.process = subprocess.Popen(
                [*self.prefix, str(BIN / self.program), *self.arguments],
                stdout=subprocess.PIPE,
                stderr=log,
                env={**os.environ, **(extra_env or {})},
            )
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        if not line:
            code = self.process.wait()
            tail = self.log.read_text(errors="replace")[-3000:]
            raise AssertionError(f"{self.program} ended with {code} before it was ready:\n{tail}")
        self.ready = json.loads(line)
        return self

    @property
    def grpc(self) -> str:
        return str(self.ready["grpc"])

    @property
    def http(self) -> str:
        return str(self.ready["http"])

    def kill(self) -> None:
        """As the kernel or an operator's kill -9 would end it."""
        if self.process is not None:
            self.process.kill()
            self.process.wait()

    def terminate(self) -> int:
        """SIGTERM: drains; the exit code."""
        assert self.process is not None
        self.process.send_signal(signal.SIGTERM)
        return self.process.wait(timeout=PATIENCE_SECONDS)


@dataclass
class Cluster:
    """Coordinator, workers and runners with a data directory of their own."""

    directory: Path
    prefix: list[str] = field(default_factory=list)
    # Conversations that one runner holds at most.
    conversations: int = 64
    device: str = "emulated"
    coordinator: Daemon = field(init=False)
    workers: list[Daemon] = field(default_factory=list)
    runners: list[Daemon] = field(default_factory=list)

    def start(self, workers: int = 1, runners: int = 1) -> Cluster:
        self.directory.mkdir(parents=True, exist_ok=True)
        self.coordinator = Daemon(
            "kmosaic-coordinator",
            [
                "--listen=127.0.0.1:0",
                "--http-listen=127.0.0.1:0",
                f"--data-dir={self.directory / 'data'}",
                "--lease-ttl=3s",
            ],
            self.directory / "coordinator.log",
            self.prefix,
        ).start()
        # From now on it comes back at the same addresses.
        self.coordinator.arguments[0] = f"--listen={self.coordinator.grpc}"
        self.coordinator.arguments[1] = f"--http-listen={self.coordinator.http}"
        for _ in range(workers):
            self.add_worker()
        for _ in range(runners):
            self.add_runner()
        return self

    def add_worker(self) -> Daemon:
        number = len(self.workers)
        worker = Daemon(
            "kmosaic-gpu-worker",
            [
                f"--coordinator={self.coordinator.grpc}",
                "--listen=127.0.0.1:0",
                "--http-listen=127.0.0.1:0",
                f"--device={self.device}",
                f"--gpu={number}",
                f"--cache-dir={self.directory / f'cache{number}'}",
                f"--python={PYTHON}",
            ],
            self.directory / f"worker{number}.log",
            self.prefix,
        )
        self.workers.append(worker.start())
        return worker

    def add_runner(self) -> Daemon:
        number = len(self.runners)
        runner = Daemon(
            "kmosaic-agent-runner",
            [
                f"--coordinator={self.coordinator.grpc}",
                "--http-listen=127.0.0.1:0",
                f"--name=runner-{number}",
                f"--max-conversations={self.conversations}",
                "--endpoint-patience=3s",
            ],
            self.directory / f"runner{number}.log",
            self.prefix,
        )
        self.runners.append(runner.start())
        return runner

    def kmosaic(self, *arguments: str, check: int | None = 0) -> subprocess.CompletedProcess[str]:
        """Runs the command line against this cluster; `check` is the exit code wanted."""
        done = subprocess.run(
            [
                *self.prefix,
                str(BIN / "kmosaic"),
                f"--coordinator={self.coordinator.grpc}",
                *arguments,
            ],
            capture_output=True,
            text=True,
            timeout=PATIENCE_SECONDS * 2,
        )
        if check is not None:
            assert done.returncode == check, (
                f"kmosaic {' '.join(arguments)} -> {done.returncode}\n{done.stdout}\n{done.stderr}"
            )
        return done

    def json(self, *arguments: str) -> Any:
        return json.loads(self.kmosaic(*arguments, "-o", "json").stdout)

    def events(self, job: str) -> Iterator[dict[str, Any]]:
        """The job's events from its beginning, as they happen, until it is finished.

        Survives the coordinator's death: the command line resumes the stream.
        """
        with subprocess.Popen(
            [
                *self.prefix,
                str(BIN / "kmosaic"),
                f"--coordinator={self.coordinator.grpc}",
                *("job", "watch", job, "-o", "jsonl"),
            ],
            stdout=subprocess.PIPE,
            text=True,
        ) as process:
            assert process.stdout is not None
            try:
                for line in process.stdout:
                    yield json.loads(line)
            finally:
                process.kill()

    def stop(self) -> None:
        for daemon in [*self.runners, *self.workers, self.coordinator]:
            daemon.kill()
