# Makes the relocatable archive. Sourced by ./dev.
# shellcheck shell=bash

PROGRAMS=(kmosaic kmosaic-coordinator kmosaic-agent-runner kmosaic-gpu-worker)

# Copies a program's shared libraries, loader and C library included, into DIR.
copy_libraries() {
  local program=$1 dir=$2
  ldd "$program" | awk '$2 == "=>" && $3 ~ /^\// {print $3} $1 ~ /^\/.*ld-linux/ {print $1}' |
    while read -r library; do cp -Lu "$library" "$dir/"; done
}

# A program starts under the bundle's own loader, so that the machine's C library may be
# older or newer than the one it was built against.
write_launcher() {
  cat >"$2/bin/$1" <<'EOF'
#!/bin/sh
home=$(dirname "$(dirname "$(readlink -f "$0")")")
export KMOSAIC_HOME="$home"
exec "$home/lib/ld-linux-x86-64.so.2" --library-path "$home/lib" "$home/libexec/$(basename "$0")" "$@"
EOF
  chmod 755 "$2/bin/$1"
}

bundle() {
  local version name stage archive program part
  version=$(sed -n 's/^project(KernelMosaic VERSION \([0-9.]*\).*/\1/p' CMakeLists.txt)
  name=kernelmosaic-$version-linux-x86_64
  stage=build/bundle/$name
  archive=dist/$name.tar.zst
  ensure_packages zstd
  say "bundling into $archive"
  rm -rf build/bundle
  mkdir -p "$stage"/{bin,lib,libexec,share/kernelmosaic} dist
  for program in "${PROGRAMS[@]}"; do
    cp "build/release/bin/$program" "$stage/libexec/"
    strip --strip-unneeded "$stage/libexec/$program"
    copy_libraries "build/release/bin/$program" "$stage/lib"
    write_launcher "$program" "$stage"
  done
  cp "$(command -v bwrap)" "$stage/libexec/bwrap"
  copy_libraries "$stage/libexec/bwrap" "$stage/lib"
  write_launcher bwrap "$stage"
  cp build/release/lib/libkmosaic_*.so "$stage/lib/"
  strip --strip-unneeded "$stage"/lib/*.so*
  for part in build/release/share/kernelmosaic/*; do
    cp -rL "$part" "$stage/share/kernelmosaic/"
  done
  mkdir "$stage/share/kernelmosaic/gpu-test"
  cp tests/gpu/*.sh tests/gpu/*.py "$stage/share/kernelmosaic/gpu-test/"
  mkdir "$stage/share/kernelmosaic/gpu-test/cheats"
  cp tests/cheats/*.py "$stage/share/kernelmosaic/gpu-test/cheats/"
  [ -f "$stage/share/kernelmosaic/device/kernels.fatbin" ] ||
    die "the worker's own kernels were not built: there was no nvcc when cmake ran"
  find "$stage" -name __pycache__ -prune -exec rm -rf {} +
  cp LICENSE README.md "$stage/"
  tar -C build/bundle --sort=name --owner=0 --group=0 --mtime=@0 -cf - "$name" | zstd -q -19 -T0 -f -o "$archive"
  # For machines without zstd.
  zstd -q -dc "$archive" | gzip -9n >"dist/$name.tar.gz"
  (cd dist && sha256sum "$name".tar.*) >"dist/$name.sha256"
  say "$(du -h --apparent-size "$archive" "dist/$name.tar.gz")"
}

# Runs the suite that needs a GPU from an unpacked bundle, made first where there is none.
gpu_test() {
  local archive home=build/gpu-test
  archive=$(find dist -name 'kernelmosaic-*.tar.gz' | sort -V | tail -1)
  rm -rf "$home"
  mkdir -p "$home"
  tar -xzf "$archive" -C "$home"
  exec env KMOSAIC_PYTHON="${KMOSAIC_PYTHON:-$PYTHON}" bash \
    "$home"/kernelmosaic-*/share/kernelmosaic/gpu-test/run.sh "$@"
}
