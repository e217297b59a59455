#!/usr/bin/env bash
# The suites of cheats, honest solutions and faults on a GPU, from an unpacked bundle (or a
# checkout): starts a coordinator and a worker with device cuda, judges every candidate with
# verification and benchmark, and writes OUT/report.md and OUT/report.json.
#
#   tests/gpu/cheats.sh [OUT] [OPTIONS]      OPTIONS: --suites honest,cheats,faults --only NAME...
#
#   KMOSAIC_HOME        the bundle; default: the one that this file is in, or build/release
#   KMOSAIC_PYTHON      interpreter with torch; default: python3
#   KMOSAIC_TEST_DEVICE "emulated" tries the suites where there is no GPU
set -uo pipefail
HERE=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
for parent in "$HERE" "$HERE/.."; do
  [ -f "$parent/cheats/run.py" ] && break
done
for home in "${KMOSAIC_HOME:-}" "$HERE/../../.." "$HERE/../../build/release"; do
  [ -n "$home" ] && [ -x "$home/bin/kmosaic" ] && break
done
export KMOSAIC_HOME=$home
export KMOSAIC_PYTHON=${KMOSAIC_PYTHON:-$(command -v python3)}
mkdir -p "${1:-gpu-cheats}"
OUT=$(cd "${1:-gpu-cheats}" && pwd)
[ $# -gt 0 ] && shift
cd "$parent" || exit 2
exec "$KMOSAIC_PYTHON" -m cheats.run "$OUT" --device "${KMOSAIC_TEST_DEVICE:-cuda}" "$@"
