#!/usr/bin/env python3
"""Holds the rules on who may include whom (docs/architecture.md).

Exits 1 and names file, line and rule for each include that breaks one.
"""

from __future__ import annotations

import re
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PROCESSES = ("coordinator", "gpu_worker", "agent_runner", "cli")
# Inside the coordinator a file may include its own folder and folders further right.
COORDINATOR_ORDER: dict[str, set[str]] = {
    "store": set(),
    "queue": {"store"},
    "placement": set(),
    "dataset": {"queue", "store"},
    "http": {"queue", "placement"},
    "service": {"queue", "placement", "dataset"},
}
INCLUDE = re.compile(r'^\s*#\s*include\s*([<"])([^>"]+)[>"]')


@dataclass(frozen=True)
class Include:
    file: str
    line: int
    path: str

    @property
    def process(self) -> str:
        return self.file.split("/")[0]

    @property
    def folder(self) -> str:
        parts = self.file.split("/")
        return parts[1] if len(parts) > 2 else ""


def broken_rule(include: Include) -> str | None:
    """The rule that this include breaks, in words, or None."""
    target = include.path.split("/")[0]
    if target in PROCESSES and target != include.process:
        return f"{include.process} may not include {target}: they share common/ and proto/ alone"
    if include.process == "common" and target in PROCESSES:
        return "common/ may not include a process"
    if include.path.startswith("rocksdb/") and not include.file.startswith("coordinator/store/"):
        return "RocksDB headers only in coordinator/store/"
    if re.match(r"(cuda|nvml|cupti|nvrtc)[\w.]*$", include.path) and not re.match(
        r"gpu_worker/(device|harness|emulation|torch_abi)/", include.file
    ):
        return "CUDA headers only in gpu_worker/{device,harness,emulation,torch_abi}/"
    if include.path.endswith(".grpc.pb.h") and re.match(
        r"(coordinator/(store|queue|placement|dataset|http)/|gpu_worker/(compile|evaluate|sandbox|"
        r"device|emulation|torch_abi)/|agent_runner/(agent|llm|guidance)/|common/(?!rpc/))",
        include.file,
    ):
        return "gRPC stubs only in service/, rpc/, servers and clients"
    if include.path.endswith("kernelmosaic/v1/storage.pb.h") and not re.match(
        r"coordinator/(store|queue)/", include.file
    ):
        return "storage.proto is for the disk: only coordinator/{store,queue}/"
    if include.process == "coordinator" and include.folder in COORDINATOR_ORDER:
        parts = include.path.split("/")
        if parts[0] == "coordinator" and len(parts) > 2 and parts[1] != include.folder:
            allowed = COORDINATOR_ORDER[include.folder]
            if parts[1] not in allowed:
                return f"coordinator/{include.folder} may include {sorted(allowed) or 'no sibling'}"
            if parts[2].startswith("rocksdb_"):
                return "only server and main choose the RocksDB store"
    return None


def includes_of(file: str) -> list[Include]:
    text = (ROOT / file).read_text(encoding="utf-8")
    found = []
    for number, line in enumerate(text.splitlines(), start=1):
        if match := INCLUDE.match(line):
            found.append(Include(file, number, match.group(2)))
    return found


def main() -> int:
    listing = subprocess.run(
        ["git", "ls-files", "--cached", "--others", "--exclude-standard"],
        cwd=ROOT,
        check=True,
        capture_output=True,
        text=True,
    )
    sources = [
        name
        for name in listing.stdout.splitlines()
        if name.endswith((".h", ".cc", ".c", ".cu"))
        and name.split("/")[0] in (*PROCESSES, "common")
        # Headers that candidates are compiled against, not this project's programs.
        and "/include/" not in name
    ]
    failures = 0
    for file in sources:
        for include in includes_of(file):
            if rule := broken_rule(include):
                print(f"{include.file}:{include.line}: includes {include.path}: {rule}")
                failures += 1
    print(f"layering: {len(sources)} files, {failures} broken rules")
    return 1 if failures or not sources else 0


if __name__ == "__main__":
    sys.exit(main())
