"""`kmosaic up` and a worker that are told to end while they still start."""

from __future__ import annotations

import ctypes
import os
import select
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.integration.cluster import BIN, PATIENCE_SECONDS

_PR_SET_CHILD_SUBREAPER = 36
# What runs then, a Python that never imports torch, would live for longer.
AT_ONCE_SECONDS = 30.0
FOREVER_SECONDS = 600


@pytest.fixture
def adopted() -> Iterator[None]:
    """Inside, whatever a child of ours leaves behind becomes ours, and so is seen."""
    prctl = ctypes.CDLL(None).prctl
    assert prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) == 0
    yield
    prctl(_PR_SET_CHILD_SUBREAPER, 0, 0, 0, 0)


@pytest.fixture
def slow_python(tmp_path: Path) -> tuple[Path, Path]:
    """An interpreter that never gets anywhere, and a pipe that it writes a line to first."""
    started = tmp_path / "started"
    os.mkfifo(started)
    python = tmp_path / "python3"
    python.write_text(f"#!/bin/sh\necho here > {started}\nexec sleep {FOREVER_SECONDS}\n")
    python.chmod(0o755)
    return python, started


def children() -> list[int]:
    """Process ids of this process's own children."""
    own = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                fields = (entry / "stat").read_text().rpartition(")")[2].split()
            except OSError:
                continue  # it has ended meanwhile
            if int(fields[1]) == os.getpid():
                own.append(int(entry.name))
    return own


def await_end(process: int) -> bool:
    """Whether it ends at once; it is reaped then, and killed otherwise."""
    descriptor = os.pidfd_open(process)
    try:
        poll = select.poll()
        poll.register(descriptor, select.POLLIN)
        ended = bool(poll.poll(AT_ONCE_SECONDS * 1000))
        if not ended:
            signal.pidfd_send_signal(descriptor, signal.SIGKILL)
        os.waitpid(process, 0)
        return ended
    finally:
        os.close(descriptor)


@pytest.mark.parametrize("how", [signal.SIGTERM, signal.SIGINT, signal.SIGKILL])
def test_up_that_is_ended_while_it_starts_leaves_nothing(
    how: signal.Signals, adopted: None, slow_python: tuple[Path, Path], tmp_path: Path
) -> None:
    before = set(children())
    python, started = slow_python
    up = subprocess.Popen(
        [str(BIN / "kmosaic"), "up", "--device=emulated", f"--data={tmp_path / 'data'}"],
        env={**os.environ, "KMOSAIC_PYTHON": str(python), "XDG_STATE_HOME": str(tmp_path)},
        stderr=subprocess.DEVNULL,
    )
    assert started.read_text() == "here\n"  # the coordinator serves, the worker starts
    up.send_signal(how)
    code = up.wait(timeout=AT_ONCE_SECONDS)
    assert code == (-signal.SIGKILL if how == signal.SIGKILL else 4)
    assert [process for process in set(children()) - before if not await_end(process)] == []


def test_a_worker_that_is_ended_while_it_starts_leaves_nothing(
    adopted: None, slow_python: tuple[Path, Path], tmp_path: Path
) -> None:
    before = set(children())
    python, started = slow_python
    worker = subprocess.Popen(
        [
            str(BIN / "kmosaic-gpu-worker"),
            "--self-test",
            "--device=emulated",
            f"--python={python}",
            f"--cache-dir={tmp_path / 'cache'}",
        ],
        stderr=subprocess.DEVNULL,
    )
    assert started.read_text() == "here\n"
    worker.send_signal(signal.SIGTERM)
    assert worker.wait(timeout=PATIENCE_SECONDS) == 4
    assert [process for process in set(children()) - before if not await_end(process)] == []
