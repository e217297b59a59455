#!/usr/bin/env bash
# The figures of docs/benchmarks.md that need no GPU.
#
#   KMOSAIC_BIN        directory of the programs
#   KMOSAIC_WORKLOAD   JSON Lines file of kernels to score (docs/cli.md); left out without it
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
BIN=${KMOSAIC_BIN:-$PWD/build/release/bin}

uname -srm
nproc
cat /proc/loadavg
echo "== the demo's job"
time KMOSAIC_BIN=$BIN KMOSAIC_DEMO=$PWD/build/bench-demo bash examples/demo.sh
if [ -n "${KMOSAIC_WORKLOAD:-}" ]; then
  echo "== scoring $KMOSAIC_WORKLOAD"
  # Exit code 1 says that some candidate failed, which is no failure of the benchmark.
  time "$BIN/kmosaic" score "$KMOSAIC_WORKLOAD" --local --device emulated --scale 0.05 || [ $? = 1 ]
else
  echo "KMOSAIC_WORKLOAD is not set: scoring was not measured"
fi
