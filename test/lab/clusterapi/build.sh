#!/usr/bin/env bash
# Builds the core manager of Cluster API from its published Go module.
#
#   build.sh [OUT]      OUT defaults to <repository>/build/clusterapi/manager
#
# Does nothing when OUT was already built from the same module with the same Go.
# FORCE=1 builds anyway (Go's build cache still applies).
set -euo pipefail

case "${1:-}" in
-h | --help)
	sed -n '2,7s/^# \{0,1\}//p' "$0"
	exit 0
	;;
esac

start=$PWD
cd "$(dirname "${BASH_SOURCE[0]}")"
out=${1:-$PWD/../../../build/clusterapi/manager}
case $out in /*) ;; *) out=$start/$out ;; esac
out=$(realpath -m -- "$out")

export CGO_ENABLED=0
export GOWORK=off

package=$(awk '$1 == "tool" { print $2; exit }' go.mod)
version=$(awk '$2 == "sigs.k8s.io/cluster-api" { print $3; exit }
	$1 == "sigs.k8s.io/cluster-api" { print $2; exit }' go.mod)
[ -n "$package" ] && [ -n "$version" ] ||
	{ echo "build.sh: go.mod does not name cluster-api" >&2; exit 1; }

stamp=$( (
	go version
	go env GOOS GOARCH
	LC_ALL=C sha256sum go.mod go.sum build.sh
) | sha256sum | cut -d' ' -f1)
if [ -z "${FORCE:-}" ] && [ -x "$out" ] && [ "$(cat "$out.stamp" 2>/dev/null)" = "$stamp" ]; then
	echo "up to date: $out"
	exit 0
fi

mkdir -p "$(dirname "$out")"
began=$(date +%s)
rm -f "$out.stamp"
go build -mod=readonly -trimpath -buildvcs=false -ldflags "-s -w" \
	-o "$out.new" "$package"
mv -f "$out.new" "$out"
echo "$stamp" >"$out.stamp"
echo "built $out ($version, $(($(date +%s) - began)) s)"
