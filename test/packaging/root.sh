#!/usr/bin/env bash
# A small Debian 12 for test/packaging to install slurmlet's packages into: what they depend on, systemd
# for the users, units and presets, and nothing else. Needs root and mmdebstrap.
#
#   root.sh [OUT]      OUT defaults to <repository>/build/packaging-root
#
# Does nothing when OUT was already made by this same script. The packages come from where apt here
# gets Debian's from; DEBIAN_MIRROR=URL names another place.
set -euo pipefail

SUITE=bookworm
PACKAGES=systemd,passwd,libc6,libcpp-httplib0.11,libcurl4,libgcc-s1,libssl3,libstdc++6,libyaml-0-2

die() { echo "root.sh: $*" >&2; exit 1; }

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
out=$(realpath -m -- "${1:-$here/../../build/packaging-root}")
stamp=$(sha256sum <"${BASH_SOURCE[0]}" | cut -d' ' -f1)
[ "$(cat "$out.stamp" 2>/dev/null)" = "$stamp" ] && [ -d "$out" ] && exit 0

[ "$(id -u)" = 0 ] || die "needs root"
command -v mmdebstrap >/dev/null || die "mmdebstrap is missing; on Debian: apt-get install mmdebstrap"

# Only what apt has lists of is known to be a mirror of Debian.
debian_mirror() {
  apt-get indextargets --format '$(ORIGIN) $(RELEASE) $(REPO_URI)' 'Created-By: Packages' |
    awk '$1 == "Debian" && $2 !~ /-(security|updates|backports|proposed-updates)$/ { print $3; exit }'
}
mirror=${DEBIAN_MIRROR:-$(debian_mirror)}
if [ -z "$mirror" ]; then
  apt-get update -qq
  mirror=$(debian_mirror)
fi
[ -n "$mirror" ] || die "apt here knows no mirror of Debian, so no $SUITE can be had;
set DEBIAN_MIRROR to the URL of one"

# Proxies and the like are a matter of this machine, not of the new root.
options=()
while IFS= read -r line; do options+=("--aptopt=$line"); done < <(
  apt-config dump 2>/dev/null | grep -E '^Acquire::(Check-|https?::[^ ]*(Proxy|Ca|Verify)|[^ ]*Retries)' || true)

new=$out.new
rm -rf --one-file-system "$new" "$out.stamp"
mkdir -p "$(dirname "$out")"
began=$(date +%s)
if ! mmdebstrap --quiet --mode=root --variant=essential --include="$PACKAGES" \
  --aptopt='APT::Install-Recommends "false"' "${options[@]}" "$SUITE" "$new" "$mirror" >"$out.log" 2>&1; then
  tail -5 "$out.log" >&2
  die "the packages of $SUITE could not be had from $mirror (whole output: $out.log)"
fi
rm -rf "$new"/usr/share/{doc,man,locale,info,lintian,bug,i18n} "$new"/var/cache/apt "$new"/var/lib/apt \
  "$new"/usr/lib/udev/hwdb.d "$new"/usr/lib/x86_64-linux-gnu/gconv
: >"$new/etc/machine-id"
mkdir -p "$new"/{proc,sys,dev,run,tmp}

rm -rf --one-file-system "$out"
mv "$new" "$out"
echo "$stamp" >"$out.stamp"
echo "made $out ($(du -sm "$out" | cut -f1) MB, $(($(date +%s) - began)) s)"
