#!/usr/bin/env bash
# Roots of other releases and of arm64 for test_portable.py, each of a C library and a shell alone.
#
#   portable_roots.sh          build/portable-roots/{debian-11,arm64}
#
# Does nothing for one that was already made by this same script. Where the packages come from:
# test/lab/harness/debian_root.sh.
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
. "$here/../lab/harness/debian_root.sh"

into=$(realpath -m -- "$here/../../build/portable-roots")
make() { # NAME SUITE PACKAGE…, in a process of its own: debian_root_begin exits where there is nothing to do
  (
    debian_root_begin "$into/$1" "$2" extract "${@:3}"
    mkdir -p "$into/$1.new"/{proc,sys,dev,run,tmp}
    debian_root_end "$into/$1"
  )
}
make debian-11 bullseye libc6 dash coreutils
DEBIAN_ROOT_ARCH=arm64 make arm64 bookworm libc6
