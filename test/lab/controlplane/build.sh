#!/usr/bin/env bash
# Builds the control plane binary (etcd, kube-apiserver, kube-controller-manager,
# kube-scheduler and kubectl in one file) and, beside it, "kubeconfig".
#
#   build.sh [RELEASE]      1.35, 1.37: go-RELEASE.mod, into <repository>/build/controlplane-RELEASE.
#                           Without: ../go.mod, into <repository>/build/controlplane
#
# Does nothing when it was already built from the same sources with the same Go.
# FORCE=1 builds anyway (Go's build cache still applies).
set -euo pipefail

case "${1:-}" in
-h | --help)
	sed -n '2,9s/^# \{0,1\}//p' "$0"
	exit 0
	;;
esac

cd "$(dirname "${BASH_SOURCE[0]}")"
release=${1:-}
mod=../go.mod
[ -z "$release" ] || mod=go-$release.mod
[ -f "$mod" ] || { echo "build.sh: no release $release: $mod is missing" >&2; exit 2; }
out=$(realpath -m -- "../../../build/controlplane${release:+-$release}/controlplane")
helper=$(dirname "$out")/kubeconfig

. ../go_settings.sh
export GOFLAGS="$GOFLAGS -modfile=$(realpath "$mod")"

version=$(awk '$1 == "k8s.io/kubernetes" { print $2; exit }' "$mod")
[ -n "$version" ] || { echo "build.sh: $mod does not name k8s.io/kubernetes" >&2; exit 1; }
major=${version#v}
major=${major%%.*}
minor=${version#v*.}
minor=${minor%%.*}

stamp=$( (
	go version
	go env GOOS GOARCH
	LC_ALL=C sha256sum "$mod" "${mod%.mod}.sum" ../go_settings.sh build.sh $(LC_ALL=C ls ./*.go kubeconfig/*.go internal/*/*.go | grep -v _test.go)
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
