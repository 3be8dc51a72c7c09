#!/usr/bin/env bash
# A small Debian 12 for test/packaging to install slurmlet's packages into: what they depend on, systemd
# for the users, units and presets, and nothing else.
#
#   root.sh [OUT]      OUT defaults to <repository>/build/packaging-root
#
# Does nothing when OUT was already made by this same script. What it needs, and where the packages come
# from: test/lab/harness/debian_root.sh.
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
. "$here/../lab/harness/debian_root.sh"

out=$(realpath -m -- "${1:-$here/../../build/packaging-root}")
new=$out.new
debian_root_begin "$out" bookworm essential \
  systemd passwd libc6 libcpp-httplib0.11 libcurl4 libfmt9 libgcc-s1 libssl3 libstdc++6 libyaml-0-2

rm -rf "$new"/usr/share/{doc,man,locale,info,lintian,bug,i18n} "$new"/var/cache/apt "$new"/var/lib/apt \
  "$new"/usr/lib/udev/hwdb.d "$new"/usr/lib/x86_64-linux-gnu/gconv
: >"$new/etc/machine-id"
mkdir -p "$new"/{proc,sys,dev,run,tmp}

debian_root_end "$out"
