#!/usr/bin/env bash
# Builds the Virtual Kubelet program that the benchmarks compare slurmlet with.
#
#   build.sh [OUT]      OUT defaults to <repository>/build/bench/virtualkubelet
set -euo pipefail

case "${1:-}" in
-h | --help)
	sed -n '2,4s/^# \{0,1\}//p' "$0"
	exit 0
	;;
esac

start=$PWD
cd "$(dirname "${BASH_SOURCE[0]}")"
out=${1:-$PWD/../../build/bench/virtualkubelet}
case $out in /*) ;; *) out=$start/$out ;; esac
out=$(realpath -m -- "$out")

mkdir -p "$(dirname "$out")"
. ../../test/lab/go_settings.sh
# What slurmlet is compared with is optimised as Go does by default.
go build -gcflags=all=-dwarf=false -ldflags "-s -w" -o "$out" .
echo "built $out"
