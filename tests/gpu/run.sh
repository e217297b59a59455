#!/usr/bin/env bash
# The suite that needs a GPU, from an unpacked bundle (or a build directory): starts the whole
# system with device cuda, runs the demo's job with benchmark, scores the example solutions, and
# writes a report with times, floor and speedup. Needs bash, python3 with torch, and nvcc.
#
#   tests/gpu/run.sh [OUT]      OUT: folder of what comes out of it (default: gpu-test)
#
#   KMOSAIC_HOME        the bundle; default: the one that this file is in, or build/release
#   KMOSAIC_PYTHON      interpreter with torch; default: python3
#   KMOSAIC_ROWS        JSONL of further kernels to score (docs/cli.md), at full shapes
#   KMOSAIC_ROWS_LIMIT  how many of them; default: all
#   KMOSAIC_STEPS       some of "demo tasks rows"; default: all
#   KMOSAIC_TEST_DEVICE "emulated" tries the script itself where there is no GPU (no times then)
set -uo pipefail
HERE=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
for home in "${KMOSAIC_HOME:-}" "$HERE/../../.." "$HERE/../../build/release"; do
  [ -n "$home" ] && [ -x "$home/bin/kmosaic" ] && break
done
if [ ! -x "$home/bin/kmosaic" ]; then
  echo "gpu-test: there is no bin/kmosaic: set KMOSAIC_HOME to an unpacked bundle" >&2
  exit 2
fi
KMOSAIC_HOME=$(cd "$home" && pwd)
export KMOSAIC_HOME
export KMOSAIC_PYTHON=${KMOSAIC_PYTHON:-$(command -v python3)}
OUT=${1:-gpu-test}
DEVICE=${KMOSAIC_TEST_DEVICE:-cuda}
STEPS=${KMOSAIC_STEPS:-demo tasks rows}
STAGES=compile,verify,benchmark
[ "$DEVICE" = cuda ] || STAGES=compile,verify
EXAMPLES=$KMOSAIC_HOME/share/kernelmosaic/examples
kmosaic=$KMOSAIC_HOME/bin/kmosaic

rm -rf "$OUT"
mkdir -p "$OUT"
OUT=$(cd "$OUT" && pwd)
export XDG_STATE_HOME=$OUT/state
unset XDG_RUNTIME_DIR
failed=0

say() { printf '== %s (%ds)\n' "$*" "$SECONDS"; }
gpu_state() {
  command -v nvidia-smi >/dev/null || return 0
  nvidia-smi --query-gpu=name,uuid,driver_version,memory.used,clocks.sm,clocks.mem,power.draw \
    --format=csv >"$OUT/gpu-$1.csv" 2>&1
  nvidia-smi --query-compute-apps=pid,used_memory --format=csv >"$OUT/processes-$1.csv" 2>&1
}

say "self-test"
gpu_state before
if ! "$KMOSAIC_HOME/bin/kmosaic-gpu-worker" --self-test --device "$DEVICE" \
  >"$OUT/self-test.json" 2>"$OUT/self-test.log"; then
  echo "gpu-test: the self-test failed:" >&2
  tail -n 20 "$OUT/self-test.log" "$OUT/self-test.json" >&2
  exit 1
fi
cat "$OUT/self-test.json"

say "starting"
mkfifo "$OUT/log"
"$kmosaic" up --data "$OUT/data" --device "$DEVICE" >"$OUT/log" 2>&1 &
up=$!
# shellcheck disable=SC2317  # called by the trap
finish() {
  kill -TERM "$up" 2>/dev/null
  wait "$up"
}
trap finish EXIT
exec 3<"$OUT/log"
started=
while read -r line <&3; do
  printf '%s\n' "$line"
  case $line in *"is up"*)
    started=yes
    break
    ;;
  esac
done
if [ -z "$started" ]; then
  echo "gpu-test: the system did not start; logs are in $OUT/data/logs" >&2
  tail -n 20 "$OUT"/data/logs/* >&2
  exit 1
fi
# What follows on the pipe must be read, or the system would block on a full one.
cat <&3 >"$OUT/up.log" &

case " $STEPS " in *" demo "*)
  say "the demo's job"
  settings=(--set "evaluation.device=$DEVICE")
  [ "$DEVICE" = cuda ] && settings+=(--set evaluation.benchmark=true)
  "$kmosaic" submit "$EXAMPLES/jobs/demo.yaml" "${settings[@]}" --wait >"$OUT/demo.txt" 2>&1 || failed=1
  tail -15 "$OUT/demo.txt"
  job=$("$kmosaic" job list -o jsonl | "$KMOSAIC_PYTHON" -c \
    'import json, sys; print(json.loads(sys.stdin.readline())["id"])')
  for format in trajectory direct; do
    options=(--format "$format" --out "$OUT/$format")
    [ "$DEVICE" = emulated ] && options+=(--include-emulated)
    "$kmosaic" export "$job" "${options[@]}" >"$OUT/export-$format.txt" 2>&1 || failed=1
  done
  ;;
esac

case " $STEPS " in *" tasks "*)
  say "the solutions of the example tasks"
  "$KMOSAIC_PYTHON" "$HERE/solutions.py" "$EXAMPLES" "$OUT/solutions"
  : >"$OUT/tasks.jsonl"
  for folder in "$OUT"/solutions/*/; do
    task=$(basename "$folder")
    solutions=()
    for file in "$folder"*; do solutions+=(--solution "$file"); done
    # A solution that is wrong on purpose makes the exit code 1: the report compares verdicts.
    "$kmosaic" score --task "$EXAMPLES/tasks/$task" "${solutions[@]}" --device "$DEVICE" --stages "$STAGES" -o jsonl >>"$OUT/tasks.jsonl" 2>>"$OUT/tasks.log"
  done
  ;;
esac

case " $STEPS " in *" rows "*)
  if [ -n "${KMOSAIC_ROWS:-}" ]; then
    say "the kernels of $KMOSAIC_ROWS"
    begin=$SECONDS
    "$kmosaic" score "$KMOSAIC_ROWS" --limit "${KMOSAIC_ROWS_LIMIT:-0}" --device "$DEVICE" --stages "$STAGES" \
      -o jsonl >"$OUT/rows.jsonl" 2>"$OUT/rows.log"
    echo "$((SECONDS - begin))" >"$OUT/rows.seconds"
  fi
  ;;
esac

say "ending"
finish
trap - EXIT
gpu_state after
"$KMOSAIC_PYTHON" "$HERE/report.py" "$OUT" || failed=1
say "the report is in $OUT/report.md and $OUT/report.json"
exit "$failed"
