#!/usr/bin/env bash
# Builds other people's programs from their published Go modules, what ../go.mod names as `tool`, into
# <repository>/build/tools.
#
#   build.sh [PROGRAM]      only that one: core, helm or metrics-server
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
[ "$(cat "$out/stamp" 2>/dev/null)" = "$stamp" ] || rm -rf "$out"
missing=()
for program in ${1:-core helm metrics-server}; do
	[ -x "$out/$program" ] || missing+=("$(awk -v end="/$program" '$1 ~ end "$" && NF == 1 { print $1 }' ../go.mod)")
done
if [ ${#missing[@]} = 0 ]; then
	echo "up to date: $out"
	exit 0
fi
rm -rf "$out.new"
go build -ldflags "-s -w -X helm.sh/helm/v4/internal/version.version=$helm" -o "$out.new/" "${missing[@]}"
mkdir -p "$out"
mv "$out.new"/* "$out/"
rmdir "$out.new"
echo "$stamp" >"$out/stamp"
echo "built $out ($SECONDS s)"
