#!/usr/bin/env bash
# Both programs for every Linux with glibc 2.28 or newer, and what brings them there: a tarball, DEB and RPM of each
# architecture from the same build. Called by ./dev portable.
#
#   build.sh [--update] [amd64] [arm64]        build/portable/
#
# --update takes the newest source packages and writes their versions to sources.lock (fetch.sh).
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
update= archs=()
for word in "$@"; do
  case $word in
  --update) update=$word ;;
  amd64 | arm64) archs+=("$word") ;;
  *) echo "portable: unknown argument \"$word\"; amd64, arm64 or --update" >&2; exit 2 ;;
  esac
done
[ ${#archs[@]} -gt 0 ] || archs=(amd64 arm64)
into=$PWD/build/portable
mkdir -p "$into"
rm -f "$into"/slurmlet*.{tar.gz,deb,rpm,spdx.json} # of other commits
step() { printf '==> [%d s] %s\n' "$SECONDS" "$1"; }

# Of any clone: neither the compiler's nor the sources' place counts.
export CCACHE_COMPILERTYPE=clang CCACHE_BASEDIR=$PWD CCACHE_NOHASHDIR=1
step "sources"
packaging/portable/fetch.sh "$into/sources" $update
CCACHE_COMPILERCHECK="string:$(cat "$into"/sources/*.version)"
export CCACHE_COMPILERCHECK
for arch in "${archs[@]}"; do
  case $arch in amd64) machine=x86_64 ;; arm64) machine=aarch64 ;; esac
  step "$arch: libraries"
  packaging/portable/libraries.sh $machine "$into/sources" "$into/libraries-$arch"
  step "$arch: slurmlet"
  # -s: no symbols; linked as a whole, a tenth smaller. Paths are mapped: two builds of one commit have the same bytes, wherever they are made.
  cmake -S . -B "$into/build-$arch" -G Ninja --toolchain "$PWD/packaging/portable/toolchain.cmake" \
    -DSLURMLET_PORTABLE="$into/libraries-$arch" -DSLURMLET_MACHINE=$machine -DCMAKE_BUILD_TYPE=Release \
    -DCMAKE_INSTALL_PREFIX=/usr "-DCMAKE_CXX_FLAGS_RELEASE=-Os -DNDEBUG -fPIE -flto=thin -ffile-prefix-map=$PWD=." \
    "-DCMAKE_EXE_LINKER_FLAGS=-pie -s" -DSLURMLET_TESTS=OFF -DSLURMLET_TOGETHER=24 -DSLURMLET_WERROR=ON \
    >"$into/build-$arch.log"
  cmake --build "$into/build-$arch" -j "${JOBS:-$(nproc)}" --target slurmlet slurmlet-operator
  step "$arch: packages"
  packaging/portable/pack.sh "$arch"
done
cd "$into"
sha256sum -- *.tar.gz *.deb *.rpm *.spdx.json >SHA256SUMS
step "done: $into"
cat SHA256SUMS
