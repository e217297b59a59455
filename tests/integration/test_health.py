"""A worker whose machine breaks while it serves, and is mended."""

from __future__ import annotations

import json
import subprocess
import time
import urllib.error
import urllib.request
from pathlib import Path
from typing import Any

from tests.integration.cluster import BIN, PATIENCE_SECONDS, Cluster

REFERENCE = """
import torch
class Model(torch.nn.Module):
    def forward(self, x):
        return x + NUMBER
def get_inputs():
    return [torch.randn(64)]
def get_init_inputs():
    return []
"""
SOLUTION = """
import torch
from torch.utils.cpp_extension import load_inline
cuda = r'''
#include <torch/extension.h>
__global__ void add(const float* x, float* y, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) y[i] = x[i] + NUMBER;
}
torch::Tensor add_forward(torch::Tensor x) {
  auto y = torch::empty_like(x);
  int n = x.numel();
  add<<<(n + 255) / 256, 256>>>(x.data_ptr<float>(), y.data_ptr<float>(), n);
  return y;
}
'''
module = load_inline(name="add", cpp_sources="torch::Tensor add_forward(torch::Tensor x);",
                     cuda_sources=cuda, functions=["add_forward"])
class ModelNew(torch.nn.Module):
    def forward(self, x):
        return module.add_forward(x)
"""


def start_score(cluster: Cluster, folder: Path, numbers: range) -> subprocess.Popen[str]:
    rows = folder / "rows.jsonl"
    with rows.open("w") as file:
        for number in numbers:
            row = {
                "id": str(number),
                "reference": REFERENCE.replace("NUMBER", str(number)),
                "solution": SOLUTION.replace("NUMBER", str(number)),
            }
            file.write(json.dumps(row) + "\n")
    target = f"--coordinator={cluster.coordinator.grpc}"
    return subprocess.Popen(
        [BIN / "kmosaic", target, "score", rows, "--device=emulated", "-o", "jsonl"],
        stdout=subprocess.PIPE,
        text=True,
    )


def verdicts(process: subprocess.Popen[str]) -> list[str]:
    output, _ = process.communicate(timeout=PATIENCE_SECONDS)
    rows = [json.loads(line) for line in output.splitlines()]
    return [row["verdict"] for row in rows if "verdict" in row]


def await_state(cluster: Cluster, state: str) -> dict[str, Any]:
    deadline = time.monotonic() + PATIENCE_SECONDS
    while True:
        worker: dict[str, Any] = cluster.json("worker", "list")["workers"][0]
        if worker["state"] == state:
            return worker
        assert time.monotonic() < deadline, worker


def healthz(address: str) -> int:
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    try:
        with opener.open(f"http://{address}/healthz", timeout=60) as reply:
            return int(reply.status)
    except urllib.error.HTTPError as error:
        return error.code


def test_a_worker_that_spoils_evaluations_takes_no_work_until_it_is_mended(
    cluster: Cluster, tmp_path: Path
) -> None:
    cluster.start(workers=1, runners=0)
    await_state(cluster, "ready")
    worker = cluster.workers[0]

    # Nothing can be built where the cache's folder is none.
    cache = cluster.directory / "cache0"
    aside = cluster.directory / "aside"
    cache.rename(aside)
    cache.write_text("not a folder")
    scored = start_score(cluster, tmp_path, range(3))
    sick = await_state(cluster, "sick")
    assert "failed" in sick["health_reason"]
    assert healthz(worker.http) == 503

    cache.unlink()
    aside.rename(cache)
    await_state(cluster, "ready")
    assert healthz(worker.http) == 200
    # What was tried too often meanwhile says so; the others waited.
    seen = verdicts(scored)
    assert len(seen) == 3
    assert set(seen) <= {"PASSED", "INFRASTRUCTURE"}
    assert verdicts(start_score(cluster, tmp_path, range(3))) == ["PASSED"] * 3
    assert worker.terminate() == 0
