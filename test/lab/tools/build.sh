#!/usr/bin/env bash
# Builds other people's programs from their published Go modules, what ../go.mod names as `tool`, into
# <repository>/build/tools.
#
# Does nothing when they were already built from the same modules with the same Go.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")"
out=$(realpath -m ../../../build/tools)
. ../go_settings.sh

helm=$(awk '$1 == "helm.sh/helm/v4" { print $2 }' ../go.mod)
stamp=$( (
	go version
	go env GOOS GOARCH
	LC_ALL=C sha256sum ../go.mod ../go.sum ../go_settings.sh build.sh
) | sha256sum | cut -d' ' -f1)
if [ "$(cat "$out/stamp" 2>/dev/null)" = "$stamp" ] && [ -x "$out/core" ] && [ -x "$out/helm" ] &&
	[ -x "$out/metrics-server" ]; then
	echo "up to date: $out"
	exit 0
fi
rm -rf "$out" "$out.new"
go build -ldflags "-s -w -X helm.sh/helm/v4/internal/version.version=$helm" -o "$out.new/" tool
echo "$stamp" >"$out.new/stamp"
mv "$out.new" "$out"
echo "built $out ($SECONDS s)"
