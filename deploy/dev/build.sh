# Builds, tests, lints. Sourced by ./dev.
# shellcheck shell=bash

build() {
  local preset=$1
  say "building ($preset)"
  cmake --preset "$preset" -DKMOSAIC_PYTHON="${TOOLS:-${PYTHON:-}}" >"build-$preset.log" 2>&1 || {
    cat "build-$preset.log"
    die "cmake could not configure"
  }
  rm -f "build-$preset.log"
  cmake --build --preset "$preset"
}

run_tests() {
  local preset=$1
  shift
  say "testing ($preset)"
  # Read by programs that are built with the sanitizer.
  export TSAN_OPTIONS="suppressions=$ROOT/tests/testing/tsan.supp ignore_noninstrumented_modules=1 halt_on_error=1"
  export ASAN_OPTIONS="detect_leaks=1 halt_on_error=1"
  (cd "build/$preset" && ctest --output-on-failure --parallel 2 "$@")
}

lint() {
  ensure_packages "${LINT_PACKAGES[@]}"
  local failed=0
  say "clang-format"
  git ls-files '*.cc' '*.h' '*.c' '*.cu' | grep -v -E '^gpu_worker/(emulation|torch_abi)/include/' |
    xargs clang-format-16 --dry-run --Werror || failed=1
  say "layering"
  "$TOOLS" tests/lint/layering.py || failed=1
  say "oldest Python"
  "$TOOLS" tests/lint/python_floor.py || failed=1
  say "ruff and mypy"
  "$TOOLS" -m ruff check . || failed=1
  "$TOOLS" -m ruff format --check . || failed=1
  "$TOOLS" -m mypy || failed=1
  say "shellcheck"
  git ls-files dev .ci/run '*.sh' | xargs shellcheck -x || failed=1
  if [ "${1:-}" = --tidy ]; then
    say "clang, thread-safety analysis, clang-tidy"
    build tidy || failed=1
  fi
  [ "$failed" = 0 ] || die "lint found something (above)"
}
