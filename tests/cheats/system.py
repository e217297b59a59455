"""A coordinator and one GPU worker, started for a suite."""

from __future__ import annotations

import json
import os
import subprocess
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any


class System:
    """Use as a context manager. `limits` are further options of the worker."""

    def __init__(self, home: Path, python: str, device: str, folder: Path, cache: Path) -> None:
        self._bin = home / "bin"
        self._python = python
        self._device = device
        self._folder = folder
        self._cache = cache
        self._programs: list[subprocess.Popen[bytes]] = []
        self.coordinator = ""
        self.worker_pid = 0

    def start(self, limits: Sequence[str] = ()) -> System:
        self._folder.mkdir(parents=True, exist_ok=True)
        coordinator = self._run(
            "kmosaic-coordinator",
            [
                "--listen=127.0.0.1:0",
                "--http-listen=127.0.0.1:0",
                f"--data-dir={self._folder / 'data'}",
            ],
        )
        self.coordinator = str(coordinator["grpc"])
        self._run(
            "kmosaic-gpu-worker",
            [
                f"--coordinator={self.coordinator}",
                "--listen=127.0.0.1:0",
                "--http-listen=127.0.0.1:0",
                f"--device={self._device}",
                f"--cache-dir={self._cache}",
                f"--python={self._python}",
                *limits,
            ],
        )
        self.worker_pid = self._programs[-1].pid
        return self

    def __enter__(self) -> System:
        return self

    def __exit__(self, *_: object) -> None:
        for program in reversed(self._programs):
            program.terminate()
            try:
                program.wait(timeout=60)
            except subprocess.TimeoutExpired:
                program.kill()
                program.wait()
        self._programs.clear()

    def _run(self, name: str, arguments: list[str]) -> dict[str, Any]:
        log_path = self._folder / f"{name}.log"
        with log_path.open("ab") as log:
            program = subprocess.Popen(
                [str(self._bin / name), *arguments],
                stdout=subprocess.PIPE,
                stderr=log,
                # Looked for by a candidate.
                env={**os.environ, "KMOSAIC_CHEATS_SECRET": "canary-of-the-daemon"},
            )
        self._programs.append(program)
        assert program.stdout is not None
        line = program.stdout.readline()
        if not line:
            self.__exit__()
            tail = log_path.read_text(errors="replace")[-3000:]
            raise RuntimeError(f"{name} ended before it was ready:\n{tail}")
        ready: dict[str, Any] = json.loads(line)
        return ready

    def score(
        self, rows: list[dict[str, object]], stages: str, timeout: float
    ) -> tuple[list[dict[str, Any]], float]:
        """Results in the order of `rows`, and the seconds that all took."""
        path = self._folder / "rows.jsonl"
        path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
        start = time.monotonic()
        # A file and no pipe: it can be looked at while the rows run.
        told = self._folder / "results.jsonl"
        with told.open("wb") as results_file, (self._folder / "score.log").open("wb") as log:
            code = subprocess.run(
                [
                    str(self._bin / "kmosaic"),
                    f"--coordinator={self.coordinator}",
                    "-o",
                    "jsonl",
                    "score",
                    str(path),
                    "--device",
                    self._device,
                    "--scale",
                    "1",
                    "--stages",
                    stages,
                ],
                stdout=results_file,
                stderr=log,
                timeout=timeout,
                check=False,
            ).returncode
        seconds = time.monotonic() - start
        errors = (self._folder / "score.log").read_text(errors="replace")
        if code not in (0, 1):
            raise RuntimeError(f"kmosaic score ended with {code}:\n{errors}")
        results = {}
        for line in told.read_text(encoding="utf-8").splitlines():
            result = json.loads(line)
            results[result["id"]] = result
        missing = [row["id"] for row in rows if row["id"] not in results]
        if missing:
            raise RuntimeError(f"no result for {missing}:\n{errors}")
        return [results[row["id"]] for row in rows], seconds

    def worker_lives(self) -> bool:
        return self._programs[-1].poll() is None

    def worker_memory_mib(self) -> tuple[float, float]:
        """Of the daemon: now, and at most so far."""
        fields = {}
        for line in Path(f"/proc/{self.worker_pid}/status").read_text().splitlines():
            name, _, value = line.partition(":")
            fields[name] = value
        return tuple(float(fields[name].split()[0]) / 1024 for name in ("VmRSS", "VmHWM"))  # type: ignore[return-value]

    def descendants(self) -> dict[int, str]:
        """Processes below the worker."""
        parents, names = {}, {}
        for entry in os.listdir("/proc"):
            if not entry.isdigit():
                continue
            try:
                stat = Path(f"/proc/{entry}/stat").read_text()
            except OSError:
                continue
            name, _, rest = stat.partition("(")[2].rpartition(")")
            parents[int(entry)] = int(rest.split()[1])
            names[int(entry)] = name
        found: dict[int, str] = {}
        edge = {self.worker_pid}
        while edge:
            edge = {pid for pid, parent in parents.items() if parent in edge}
            found.update({pid: names[pid] for pid in edge})
        return found
