#!/usr/bin/env bash
# Builds the control plane binary (etcd, kube-apiserver, kube-controller-manager,
# kube-scheduler and kubectl in one file) and, beside it, "kubeconfig".
#
#   build.sh [OUT]      OUT defaults to <repository>/build/controlplane/controlplane
#
# Does nothing when OUT was already built from the same sources with the same Go.
# FORCE=1 builds anyway (Go's build cache still applies).
set -euo pipefail

case "${1:-}" in
-h | --help)
	sed -n '2,8s/^# \{0,1\}//p' "$0"
	exit 0
	;;
esac

start=$PWD
cd "$(dirname "${BASH_SOURCE[0]}")"
here=$PWD
out=${1:-$here/../../../build/controlplane/controlplane}
case $out in /*) ;; *) out=$start/$out ;; esac
out=$(realpath -m -- "$out")
helper=$(dirname "$out")/kubeconfig

. ../go_settings.sh

version=$(awk '$1 == "k8s.io/kubernetes" { print $2; exit }' ../go.mod)
[ -n "$version" ] || { echo "build.sh: ../go.mod does not name k8s.io/kubernetes" >&2; exit 1; }
major=${version#v}
major=${major%%.*}
minor=${version#v*.}
minor=${minor%%.*}

stamp=$( (
	go version
	go env GOOS GOARCH
	LC_ALL=C sha256sum ../go.mod ../go.sum ../go_settings.sh build.sh $(LC_ALL=C ls ./*.go kubeconfig/*.go internal/*/*.go | grep -v _test.go)
) | sha256sum | cut -d' ' -f1)
if [ -z "${FORCE:-}" ] && [ -x "$out" ] && [ -x "$helper" ] && [ "$(cat "$out.stamp" 2>/dev/null)" = "$stamp" ]; then
	echo "up to date: $out"
	exit 0
fi

ldflags="-s -w"
for package in k8s.io/component-base/version k8s.io/client-go/pkg/version; do
	ldflags+=" -X $package.gitVersion=$version"
	ldflags+=" -X $package.gitMajor=$major -X $package.gitMinor=$minor"
	ldflags+=" -X $package.gitTreeState=clean"
done

mkdir -p "$(dirname "$out")"
began=$(date +%s)
rm -f "$out.stamp"
go build -ldflags "-s -w" -o "$helper.new" ./kubeconfig
mv -f "$helper.new" "$helper"
go build -ldflags "$ldflags" -o "$out.new" .
mv -f "$out.new" "$out"
echo "$stamp" >"$out.stamp"
echo "built $out ($version, $(($(date +%s) - began)) s)"
