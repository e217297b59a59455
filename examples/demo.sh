#!/usr/bin/env bash
# A real job on this machine: starts the whole system, submits examples/jobs/demo.yaml,
# waits for it, exports what came of it, and ends the system again. In a checkout and in a bundle.
#
#   KMOSAIC_BIN     directory of the programs (default: the bundle's, or build/release/bin)
#   KMOSAIC_DEMO    where the data and the exports go (default: build/demo; of a bundle,
#                   kmosaic-demo in the current folder)
#   KMOSAIC_PYTHON  interpreter with torch (default: .venv/bin/python; of a bundle, python3)
set -euo pipefail
HERE=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd -P)
if [ -x "$HERE/../../../bin/kmosaic" ]; then
  BIN=$(cd "$HERE/../../../bin" && pwd)
  OUT=$PWD/kmosaic-demo
  PYTHON=python3
else
  BIN=$(dirname "$HERE")/build/release/bin
  OUT=$(dirname "$HERE")/build/demo
  PYTHON=$(dirname "$HERE")/.venv/bin/python
fi
BIN=${KMOSAIC_BIN:-$BIN}
OUT=${KMOSAIC_DEMO:-$OUT}
PYTHON=${KMOSAIC_PYTHON:-$PYTHON}
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
started=
while read -r line <&3; do
  printf '%s\n' "$line"
  case $line in *"is up"*)
    started=yes
    break
    ;;
  esac
done
[ -n "$started" ] || exit 1
# What follows on the pipe must be read, or the system would block on a full one.
cat <&3 >"$OUT/up.log" &

status=0
"$BIN/kmosaic" submit "$HERE/jobs/demo.yaml" --wait || status=$?
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
