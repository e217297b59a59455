"""Lifecycles a second of the coordinator's queue beside other queues on the same machine.

A lifecycle: a task is put, taken and acknowledged. Servers are started one at a time on
empty directories of one volume, each with the durability that its row names; load generator
and server share the machine. Runs are interleaved over the systems, so that a slow minute
meets all of them. Prints a table of medians with their ranges, and writes every run as JSON.

Peers are the programs of the distribution (redis-server, beanstalkd, postgresql with
pgbench); what is not in PATH is left out, and said so.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import signal
import socket
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

POSTGRES_SCHEMA = """
CREATE TABLE task (id bigserial PRIMARY KEY, payload text, taken boolean DEFAULT false);
CREATE INDEX waiting ON task (id) WHERE NOT taken;
INSERT INTO task (payload) SELECT 'waits' FROM generate_series(1, 1000);
"""
# Put, take and acknowledge, each a transaction of its own. A take that finds every row locked
# would end the client, so some rows wait from the beginning.
POSTGRES_SCRIPT = """
INSERT INTO task (payload) VALUES (repeat('x', {payload}));
UPDATE task SET taken = true WHERE id = (SELECT id FROM task WHERE NOT taken ORDER BY id
  FOR UPDATE SKIP LOCKED LIMIT 1) RETURNING id AS taken_id, payload \\gset
DELETE FROM task WHERE id = :taken_id;
"""


@dataclass(frozen=True)
class Run:
    clients: int
    payload: int
    seconds: int


@dataclass(frozen=True)
class System:
    name: str
    # "fsync before the reply", "fsync every 50 ms".
    durability: str
    measure: Callable[[Run], dict[str, Any]]


def find(name: str, *folders: str) -> str | None:
    path = os.pathsep.join([*folders, os.environ.get("PATH", "")])
    return shutil.which(name, path=path)


def bindir() -> Path:
    root = Path(__file__).resolve().parents[2]
    return Path(os.environ.get("KMOSAIC_BIN", str(root / "build/release/bin")))


def output_of(argv: list[str]) -> dict[str, Any]:
    done = subprocess.run(argv, check=True, capture_output=True, text=True, timeout=600)
    parsed: dict[str, Any] = json.loads(done.stdout)
    return parsed


@contextmanager
def scratch(parent: Path) -> Iterator[Path]:
    folder = Path(tempfile.mkdtemp(prefix="queue-bench-", dir=parent))
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


@contextmanager
def server(argv: list[str], port: int, cwd: Path) -> Iterator[int]:
    """The process id of a running server that accepts connections on `port`."""
    process = subprocess.Popen(
        argv, cwd=cwd, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True
    )
    try:
        deadline = time.monotonic() + 30
        while True:
            try:
                socket.create_connection(("127.0.0.1", port), timeout=1).close()
                break
            except OSError:
                if process.poll() is not None or time.monotonic() > deadline:
                    raise RuntimeError(f"{argv[0]} does not serve on port {port}") from None
                time.sleep(0.05)
        yield process.pid
    finally:
        process.send_signal(signal.SIGTERM)
        try:
            process.wait(timeout=30)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def ours(batch: int, parent: Path) -> Callable[[Run], dict[str, Any]]:
    def measure(run: Run) -> dict[str, Any]:
        with scratch(parent) as folder:
            report = output_of(
                [
                    str(bindir() / "queue_load"),
                    *("--coordinator", str(bindir() / "kmosaic-coordinator")),
                    *("--data-dir", str(folder / "data")),
                    *("--clients", str(run.clients), "--batch", str(batch)),
                    *("--payload", str(run.payload), "--seconds", str(run.seconds)),
                ]
            )
            load: dict[str, Any] = report["load"]
            return load

    return measure


def peer(
    name: str, argv: Callable[[int], list[str]], parent: Path
) -> Callable[[Run], dict[str, Any]]:
    def measure(run: Run) -> dict[str, Any]:
        port = free_port()
        with scratch(parent) as folder, server(argv(port), port, folder) as pid:
            return output_of(
                [
                    str(bindir() / "peer_load"),
                    *("--peer", name, "--port", str(port), "--server-pid", str(pid)),
                    *("--clients", str(run.clients), "--payload", str(run.payload)),
                    *("--seconds", str(run.seconds)),
                ]
            )

    return measure


def postgres(programs: dict[str, str], parent: Path) -> Callable[[Run], dict[str, Any]]:
    def measure(run: Run) -> dict[str, Any]:
        with scratch(parent) as folder:
            # It refuses to run as root.
            user = ["runuser", "-u", "nobody", "--"] if os.geteuid() == 0 else []
            folder.chmod(0o755)
            data = folder / "data"
            data.mkdir()
            if user:
                shutil.chown(data, "nobody")
            init = [*user, programs["initdb"], "-D", str(data), "-A", "trust", "-U", "bench"]
            subprocess.run(init, check=True, capture_output=True, cwd=data)
            port = free_port()
            settings = ["-c", f"port={port}", "-c", "listen_addresses=127.0.0.1"]
            settings += ["-c", f"unix_socket_directories={data}", "-c", "max_connections=100"]
            argv = [*user, programs["postgres"], "-D", str(data), *settings]
            where = ["-h", "127.0.0.1", "-p", str(port), "-U", "bench"]
            script = folder / "script.sql"
            script.write_text(POSTGRES_SCRIPT.format(payload=run.payload))
            with server(argv, port, data):
                psql = [programs["psql"], *where, "-q", "-c", POSTGRES_SCHEMA, "postgres"]
                # It accepts connections a moment before it takes statements.
                deadline = time.monotonic() + 30
                while subprocess.run(psql, capture_output=True).returncode != 0:
                    if time.monotonic() > deadline:
                        raise RuntimeError("Postgres takes no statements")
                    time.sleep(0.2)
                bench = [programs["pgbench"], *where, "-n", "-M", "prepared", "-f", str(script)]
                bench += ["-c", str(run.clients), "-j", "1", "-T", str(run.seconds), "postgres"]
                done = subprocess.run(bench, check=True, capture_output=True, text=True)
            for line in done.stdout.splitlines():
                if line.startswith("tps = "):
                    return {"lifecycles_per_second": float(line.split()[2])}
            raise RuntimeError(f"pgbench printed no rate:\n{done.stdout}")

    return measure


def systems(parent: Path) -> tuple[list[System], list[str]]:
    """What can be measured here, and what is missing."""
    before, missing = "fsync before the reply", []
    found = [
        System("kmosaic, one by one", before, ours(1, parent)),
        System("kmosaic, 64 in a message", before, ours(64, parent)),
    ]
    if redis := find("redis-server"):
        for mode, durability in (("always", before), ("everysec", "fsync every second")):

            def argv(port: int, redis: str = redis, mode: str = mode) -> list[str]:
                flags = ["--appendonly", "yes", "--appendfsync", mode, "--save", ""]
                return [redis, "--port", str(port), "--bind", "127.0.0.1", *flags]

            found.append(System(f"redis, AOF {mode}", durability, peer("redis", argv, parent)))
    else:
        missing.append("redis-server")
    if beanstalkd := find("beanstalkd"):
        options = {"-f0": ("0", before), "default": ("50", "fsync every 50 ms")}
        for name, (interval, durability) in options.items():

            def serve(port: int, program: str = beanstalkd, ms: str = interval) -> list[str]:
                return [program, "-l", "127.0.0.1", "-p", str(port), "-b", ".", "-f", ms]

            measure = peer("beanstalkd", serve, parent)
            found.append(System(f"beanstalkd, {name}", durability, measure))
    else:
        missing.append("beanstalkd")
    folders = [str(path) for path in Path("/usr/lib/postgresql").glob("*/bin")]
    programs = {
        name: path
        for name in ("initdb", "postgres", "psql", "pgbench")
        if (path := find(name, *folders)) is not None
    }
    if len(programs) == 4:
        found.append(System("Postgres, SKIP LOCKED", before, postgres(programs, parent)))
    else:
        missing.append("postgresql")
    return found, missing


def figure(values: list[float]) -> str:
    return f"{statistics.median(values):,.0f} ({min(values):,.0f}-{max(values):,.0f})"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seconds", type=int, default=4)
    parser.add_argument("--clients", type=int, nargs="+", default=[1, 16, 64])
    parser.add_argument("--payload", type=int, nargs="+", default=[120, 4096])
    parser.add_argument("--directory", type=Path, default=Path("build"), help="for the data")
    parser.add_argument("--out", type=Path, default=Path("build/queue-bench.json"))
    arguments = parser.parse_args()
    found, missing = systems(arguments.directory.resolve())
    for name in missing:
        print(f"{name} is not installed and is left out", file=sys.stderr)
    runs = [
        Run(clients, payload, arguments.seconds)
        for payload in arguments.payload
        for clients in arguments.clients
    ]
    results: list[dict[str, Any]] = []
    for _ in range(arguments.rounds):
        for run in runs:
            for system in found:
                report = system.measure(run)
                results.append(
                    {"system": system.name, "clients": run.clients, "payload": run.payload}
                    | {"load_average": os.getloadavg()[0]}
                    | report
                )
                print(f"{results[-1]}", file=sys.stderr)
                arguments.out.write_text(json.dumps(results, indent=1))
    for payload in arguments.payload:
        print(f"\nlifecycles a second, {payload} bytes: median (range) of {arguments.rounds}\n")
        heads = [f"{clients} client" + "s" * (clients > 1) for clients in arguments.clients]
        print("| queue | durability | " + " | ".join(heads) + " |")
        print("|---|---|" + "---|" * len(heads))
        for system in found:
            cells = []
            for clients in arguments.clients:
                values = [
                    result["lifecycles_per_second"]
                    for result in results
                    if (result["system"], result["clients"], result["payload"])
                    == (system.name, clients, payload)
                ]
                cells.append(figure(values))
            print(f"| {system.name} | {system.durability} | " + " | ".join(cells) + " |")
    return 0


if __name__ == "__main__":
    sys.exit(main())
