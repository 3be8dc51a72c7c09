#!/usr/bin/env bash
# Brings the CustomResourceDefinitions that the manifests of deploy/ are written for, from the Go
# modules that carry them, checked against the Go checksum database or, where that does not know one, the
# checksum below.
#
#   fetch.sh [OUT]      OUT defaults to <repository>/build/crds; one directory OUT/NAME-VERSION each
#
# Does nothing where they are there already. A module that the Go proxy does not have leaves
# OUT/NAME-VERSION.missing with its answer, and is not asked for again; FORCE=1 asks for all anew.
set -euo pipefail

case "${1:-}" in
-h | --help)
	sed -n '2,10s/^# \{0,1\}//p' "$0"
	exit 0
	;;
esac

out=$(realpath -m -- "${1:-$(dirname "${BASH_SOURCE[0]}")/../../../build/crds}")
mkdir -p "$out"

# name  module  version  directory of the CRDs in it  its checksum, where the database has none
modules() {
	cat <<-'END'
		cluster-api sigs.k8s.io/cluster-api v1.14.2 core/config/crd/bases -
		cluster-api sigs.k8s.io/cluster-api v1.13.6 config/crd/bases -
		keda github.com/kedacore/keda/v2 v2.21.0 config/crd/bases -
		baremetal-operator github.com/metal3-io/baremetal-operator v0.13.2 config/base/crds/bases h1:XSkyBv4l1OvCL66b7T0FEUaGeS0zOjQKhot9V8zeZQc=
		metal3 github.com/metal3-io/cluster-api-provider-metal3 v1.13.2 config/crd/bases h1:qYIXaHZp3Tcn2Taf+LZZ7rjATyKLVjguMS39pC640pw=
	END
}

empty=$(mktemp -d)
trap 'rm -rf "$empty"' EXIT
export GOWORK=off GOFLAGS=-mod=mod

modules | while read -r name module version directory sum; do
	to=$out/$name-$version
	if [ -z "${FORCE:-}" ] && { [ -d "$to" ] || [ -f "$to.missing" ]; }; then
		continue
	fi
	rm -rf "$to" "$to.new" "$to.missing"
	unlisted=
	[ "$sum" = - ] || unlisted=$module
	answer=$(cd "$empty" && GONOSUMDB=$unlisted go mod download -json "$module@$version" 2>&1 </dev/null) || true
	from=$(sed -n 's/^\t"Dir": "\(.*\)",*$/\1/p' <<<"$answer")
	if [ -z "$from" ]; then
		echo "$answer" >"$to.missing"
		echo "not to be had: $module $version (see $to.missing)"
		continue
	fi
	if [ "$sum" != - ] && ! grep -qF "\"Sum\": \"$sum\"" <<<"$answer"; then
		echo "$module $version is not what it was: its checksum is not $sum" >&2
		exit 1
	fi
	mkdir -p "$to.new"
	cp "$from/$directory"/*.yaml "$to.new/"
	chmod u+w "$to.new"/*
	mv "$to.new" "$to"
	echo "$name $version: $(ls "$to" | wc -l) CRDs"
done
