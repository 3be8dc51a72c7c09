#!/bin/sh
# The arm64 slurmlet on this machine, as SLURMLET_UNDER_TEST: by qemu, with arm64's C library. Not by qemu's -L, with which
# "/" is the directory of that library.
here=$(dirname "$(realpath "$0")")
root=$here/../../build/portable-roots/arm64
exec qemu-aarch64-static "$root/lib/ld-linux-aarch64.so.1" --library-path "$root/lib/aarch64-linux-gnu" \
  "$here/../../build/portable/build-arm64/slurmlet" "$@"
