"""A view of the file system in which an ordinary user reaches what lies in closed homes.

Interpreters and checkouts often live below a root's home of mode 0700. A program that is
started through this prefix sees, in a mount namespace of its own, each such folder replaced by
an open one that holds only what is needed.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterable
from pathlib import Path


def _closed(folder: Path) -> bool:
    return not folder.stat().st_mode & 0o001


def _replace(folder: Path, needed: set[Path], stage: Path) -> list[str]:
    """Shell lines; `needed` lie below `folder`."""
    children = sorted({path.relative_to(folder).parts[0] for path in needed})
    at, staged = shlex.quote(str(folder)), shlex.quote(str(stage))
    lines = [f"mount --bind {at} {staged}", f"mount -t tmpfs -o mode=0755 tmpfs {at}"]
    for child in map(shlex.quote, children):
        lines += [f"mkdir {at}/{child}", f"mount --bind {staged}/{child} {at}/{child}"]
    return [*lines, f"umount {staged}"]


def prefix(paths: Iterable[str | Path], stage: Path) -> list[str]:
    """Arguments to put before a command that root starts; empty when nothing is closed.

    `stage` is an empty folder. Every closed folder above the paths, and above what their links
    lead to, is opened.
    """
    needed = set()
    for path in map(Path, paths):
        needed |= {path.absolute(), path.resolve()}
        # Links on the way, each with a place of its own.
        while path.is_symlink():
            path = path.parent / path.readlink()
            needed.add(path.absolute())
    closed = sorted({folder for path in needed for folder in path.parents if _closed(folder)})
    lines = ["set -e"]
    for folder in closed:
        below = {path for path in needed if folder in path.parents}
        lines += _replace(folder, below, stage)
    if not closed:
        return []
    lines.append('exec "$@"')
    return ["unshare", "--mount", "--", "sh", "-c", "\n".join(lines), "sh"]
