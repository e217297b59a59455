# shellcheck disable=SC2034  # TOOLS, LINT_PACKAGES and friends are used by the other parts
# Installs what building and running need. Sourced by ./dev.
# shellcheck shell=bash

# What is slow and can be used again lives outside the checkout.
CACHE=${XDG_CACHE_HOME:-$HOME/.cache}/kernelmosaic

# Package -> what for. Debian 12 is the reference; Ubuntu 24.04 has the same names.
SYSTEM_PACKAGES=(
  g++ cmake ninja-build pkg-config ccache lld
  libgrpc++-dev protobuf-compiler protobuf-compiler-grpc libprotobuf-dev
  libabsl-dev librocksdb-dev prometheus-cpp-dev libcurl4-openssl-dev libssl-dev libre2-dev
  nlohmann-json3-dev libyaml-cpp-dev libcli11-dev libcpp-httplib-dev catch2
  bubblewrap libseccomp-dev
  python3 python3-venv python3-dev
)
LINT_PACKAGES=(clang-16 clang-format-16 clang-tidy-16 shellcheck)

say() { printf '\033[1m==>\033[0m %s\n' "$*"; }
die() {
  printf './dev: %s\n' "$*" >&2
  exit 1
}

as_root() {
  if [ "$(id -u)" = 0 ]; then
    "$@"
  elif command -v sudo >/dev/null; then
    sudo "$@"
  else
    die "needs root for: $* (run it as root, or install sudo)"
  fi
}

ensure_packages() {
  local missing=() package
  command -v dpkg-query >/dev/null || die "this set-up knows Debian's packages only; install by hand: $*"
  for package in "$@"; do
    [ "$(dpkg-query -W -f='${db:Status-Status}' "$package" 2>/dev/null)" = installed ] || missing+=("$package")
  done
  [ ${#missing[@]} = 0 ] && return
  say "installing from the distribution: ${missing[*]}"
  as_root apt-get update -qq
  as_root env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "${missing[@]}" >/dev/null
}

ensure_system() { ensure_packages "${SYSTEM_PACKAGES[@]}"; }

has_torch() { [ -x "$1" ] && "$1" -c 'import torch, numpy' 2>/dev/null; }

# Name of a cache entry that these files and this interpreter give.
venv_key() {
  { cat "$@"; "$BASE_PYTHON" -c 'import sys; print(sys.version, sys.base_prefix)'; } | sha256sum | cut -c1-16
}

# make_venv DIR REQUIREMENTS...: the marker is written last, so that a half-made one is
# made again.
make_venv() {
  local dir=$1
  shift
  [ -f "$dir/.complete" ] && "$dir/bin/python" -c 'import sys' 2>/dev/null && return
  rm -rf "$dir"
  mkdir -p "$(dirname "$dir")"
  "$BASE_PYTHON" -m venv "$dir"
  local file arguments=()
  for file in "$@"; do arguments+=(-r "$file"); done
  "$dir/bin/pip" install --quiet --disable-pip-version-check "${arguments[@]}"
  link_toolkit "$dir"
  touch "$dir/.complete"
}

# The toolkit's wheels lack two names that nvcc looks for.
link_toolkit() {
  local home
  for home in "$1"/lib/python*/site-packages/nvidia/cu13; do
    [ -d "$home/lib" ] || continue
    ln -sfn lib "$home/lib64"
    [ -e "$home/lib/libcudart.so" ] || ln -s libcudart.so.13 "$home/lib/libcudart.so"
  done
}

# PYTHON: an interpreter with torch. TOOLKIT: what serves as CUDA_HOME.
ensure_python() {
  local requirements=python/requirements dir
  if [ -n "${KMOSAIC_PYTHON:-}" ]; then
    has_torch "$KMOSAIC_PYTHON" || die "KMOSAIC_PYTHON=$KMOSAIC_PYTHON cannot import torch and numpy"
    PYTHON=$KMOSAIC_PYTHON
  elif [ -n "${VIRTUAL_ENV:-}" ] && has_torch "$VIRTUAL_ENV/bin/python"; then
    PYTHON=$VIRTUAL_ENV/bin/python
  fi
  BASE_PYTHON=${PYTHON:-python3}
  if [ -z "${PYTHON:-}" ]; then
    dir=$CACHE/venv-$(venv_key $requirements/runtime.txt $requirements/cuda.txt)
    if ! { [ -f "$dir/.complete" ] && has_torch "$dir/bin/python"; }; then
      rm -f "$dir/.complete"
      say "installing torch and a CUDA compiler into $dir (about 5 GB; set KMOSAIC_PYTHON to use your own torch)"
      make_venv "$dir" $requirements/runtime.txt $requirements/cuda.txt
      has_torch "$dir/bin/python" || die "torch was installed into $dir but does not import there"
    fi
    ln -sfn "$dir" .venv
    PYTHON=$ROOT/.venv/bin/python
  elif ! command -v nvcc >/dev/null && [ ! -x "${CUDA_HOME:-}/bin/nvcc" ]; then
    dir=$CACHE/toolkit-$(venv_key $requirements/cuda.txt)
    [ -f "$dir/.complete" ] || say "installing a CUDA compiler into $dir (no nvcc in PATH or CUDA_HOME)"
    make_venv "$dir" $requirements/cuda.txt
    ln -sfn "$dir" .venv
  fi
  export KMOSAIC_PYTHON=$PYTHON
  if [ -x "${CUDA_HOME:-}/bin/nvcc" ]; then
    TOOLKIT=$CUDA_HOME
  elif command -v nvcc >/dev/null; then
    TOOLKIT=$(dirname "$(dirname "$(readlink -f "$(command -v nvcc)")")")
  else
    TOOLKIT=$(echo .venv/lib/python*/site-packages/nvidia/cu13)
    TOOLKIT=$ROOT/$TOOLKIT
  fi
  export CUDA_HOME=$TOOLKIT
}

# TOOLS: an interpreter with pytest, ruff, mypy and datasets that also sees torch.
ensure_tools() {
  local dir site
  dir=$CACHE/tools-$(venv_key python/requirements/dev.txt <(echo "$PYTHON"))
  if [ ! -f "$dir/.complete" ]; then
    say "installing test and lint tools into $dir"
    make_venv "$dir" python/requirements/dev.txt
  fi
  site=$("$PYTHON" -c 'import sysconfig; print(sysconfig.get_path("purelib"))')
  echo "$site" >"$(echo "$dir"/lib/python*/site-packages)/kernelmosaic-torch.pth"
  TOOLS=$dir/bin/python
}

ensure_all() {
  ensure_system
  ensure_python
}
