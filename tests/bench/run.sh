#!/usr/bin/env bash
# The figures of docs/benchmarks.md that need no GPU.
#
#   run.sh             the demo's job, and scoring
#   run.sh queue ...   the queue beside others (options of tests/bench/side_by_side.py)
#   run.sh kills ...   a coordinator killed under load, 200 times (options of queue_kills)
#   run.sh fleet ...   1,000 workers and 10,000 conversations for 10 minutes (of fleet_load)
#   run.sh extraction FILE   code extraction over labelled raw replies
#
#   KMOSAIC_BIN        directory of the programs
#   KMOSAIC_WORKLOAD   JSON Lines file of kernels to score (docs/cli.md); left out without it
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
BIN=${KMOSAIC_BIN:-$PWD/build/release/bin}

if [ "${1:-}" = extraction ]; then
  cmake --preset release -DKMOSAIC_BENCH=ON >/dev/null
  cmake --build --preset release --target extraction_agreement
  exec "$BIN/extraction_agreement" "${2:?name the JSON Lines file of labelled replies}"
fi

if [ "${1:-}" = queue ]; then
  shift
  cmake --preset release -DKMOSAIC_BENCH=ON >/dev/null
  cmake --build --preset release --target kmosaic-coordinator queue_load peer_load
  uname -srm
  nproc
  exec python3 tests/bench/side_by_side.py "$@"
fi

if [ "${1:-}" = kills ] || [ "${1:-}" = fleet ]; then
  program=queue_kills
  [ "$1" = kills ] || program=fleet_load
  shift
  cmake --preset release -DKMOSAIC_BENCH=ON >/dev/null
  cmake --build --preset release --target kmosaic-coordinator $program
  uname -srm
  nproc
  data=$(mktemp -d)
  trap 'rm -rf "$data"' EXIT
  "build/release/bin/$program" --coordinator "$BIN/kmosaic-coordinator" --data-dir "$data/store" "$@"
  exit
fi

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
