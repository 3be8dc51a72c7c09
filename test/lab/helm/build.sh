#!/usr/bin/env bash
# Builds helm, as its users run it, from its published Go module, for the tests of deploy/charts.
#
#   build.sh [OUT]      OUT defaults to <repository>/build/helm/helm
#
# Does nothing when OUT was already built from the same module with the same Go. Another version:
# go get -tool helm.sh/helm/v4/cmd/helm@VERSION && go mod tidy
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
out=$(realpath -m -- "${1:-$here/../../../build/helm/helm}")
cd "$here"
export CGO_ENABLED=0 GOWORK=off

version=$(awk '$1 == "helm.sh/helm/v4" { print $2 }' go.mod)
stamp=$( (
	go version
	LC_ALL=C sha256sum go.mod go.sum build.sh
) | sha256sum | cut -d' ' -f1)
if [ -x "$out" ] && [ "$(cat "$out.stamp" 2>/dev/null)" = "$stamp" ]; then
	echo "up to date: $out"
	exit 0
fi
mkdir -p "$(dirname "$out")"
rm -f "$out.stamp"
go build -mod=readonly -trimpath -buildvcs=false \
	-ldflags "-s -w -X helm.sh/helm/v4/internal/version.version=$version" -o "$out" helm.sh/helm/v4/cmd/helm
echo "$stamp" >"$out.stamp"
echo "built $out ($version, $SECONDS s)"
