#!/usr/bin/env bash
# A real job on this machine: starts the whole system, submits examples/jobs/demo.yaml,
# waits for it, exports what came of it, and ends the system again.
#
#   KMOSAIC_BIN   directory of the programs (default: build/release/bin)
#   KMOSAIC_DEMO  where the data and the exports go (default: build/demo)
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
BIN=${KMOSAIC_BIN:-$PWD/build/release/bin}
OUT=${KMOSAIC_DEMO:-$PWD/build/demo}
PYTHON=${KMOSAIC_PYTHON:-$PWD/.venv/bin/python}
export XDG_STATE_HOME=$OUT/state
unset XDG_RUNTIME_DIR

rm -rf "$OUT"
mkdir -p "$OUT"
mkfifo "$OUT/log"
"$BIN/kmosaic" up --data "$OUT/data" --device emulated >"$OUT/log" 2>&1 &
up=$!
# shellcheck disable=SC2317  # called by the trap
finish() {
  kill -TERM "$up" 2>/dev/null || true
  wait "$up" || true
}
trap finish EXIT
exec 3<"$OUT/log"
while read -r line <&3; do
  printf '%s\n' "$line"
  case $line in *"is up"*) break ;; esac
done
# What follows on the pipe must be read, or the system would block on a full one.
cat <&3 >"$OUT/up.log" &

status=0
"$BIN/kmosaic" submit examples/jobs/demo.yaml --wait || status=$?
job=$("$BIN/kmosaic" job list -o jsonl | "$PYTHON" -c 'import json, sys; print(json.loads(sys.stdin.readline())["id"])')
for format in trajectory direct; do
  "$BIN/kmosaic" export "$job" --format "$format" --include-emulated --out "$OUT/$format"
done
"$PYTHON" - "$OUT" <<'EOF'
import json, pathlib, sys

for path in sorted(pathlib.Path(sys.argv[1]).glob("*/t*.jsonl")):
    rows = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
    print(f"{path}: {len(rows)} rows, read with Python's json")
EOF
exit "$status"
