#!/usr/bin/env bash
# Slurm 24.11 beside the machine's own: Debian 13's packages unpacked into a directory of their own,
# for SlurmCluster's `root` (see README.md). Needs root and mmdebstrap.
#
#   root-24.11.sh [OUT]      OUT defaults to <repository>/build/slurm-24.11
#
# Does nothing when OUT was already made by this same script. The packages come from where apt here
# gets Debian's from; DEBIAN_MIRROR=URL names another place.
set -euo pipefail

SUITE=trixie
PACKAGES=slurmctld,slurmd,slurm-client,slurmrestd,slurm-wlm-jwt-plugin,munge,bash,coreutils,dash

die() { echo "root-24.11.sh: $*" >&2; exit 1; }

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
out=$(realpath -m -- "${1:-$here/../../build/slurm-24.11}")
stamp=$(sha256sum <"${BASH_SOURCE[0]}" | cut -d' ' -f1)
[ "$(cat "$out/.stamp" 2>/dev/null)" = "$stamp" ] && exit 0

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
[ -n "$mirror" ] || die "apt here knows no mirror of Debian, so Slurm 24.11 ($SUITE) cannot be had;
set DEBIAN_MIRROR to the URL of one"

# Proxies and the like are a matter of this machine, not of the new root.
options=()
while IFS= read -r line; do options+=("--aptopt=$line"); done < <(
  apt-config dump 2>/dev/null | grep -E '^Acquire::(Check-|https?::[^ ]*(Proxy|Ca|Verify)|[^ ]*Retries)' || true)

new=$out.new
rm -rf --one-file-system "$new"
mkdir -p "$(dirname "$out")"
began=$(date +%s)
# Unpacked only: no script of a package runs, so no service and no user is made.
if ! mmdebstrap --quiet --mode=root --variant=extract --include="$PACKAGES" \
  --aptopt='APT::Install-Recommends "false"' "${options[@]}" "$SUITE" "$new" "$mirror" >"$out.log" 2>&1; then
  tail -5 "$out.log" >&2
  die "the packages of Slurm 24.11 ($SUITE) could not be had from $mirror (whole output: $out.log)"
fi

# What the packages' scripts would have linked.
for program in slurmctld slurmd slurmstepd; do ln -sf "$program-wlm" "$new/usr/sbin/$program"; done
rm -rf "$new"/usr/share/{doc,man,locale,info,lintian,bug} "$new"/var/cache/apt "$new"/var/lib/apt
mkdir -p "$new"/{proc,sys,dev,run,tmp} "$new/etc/slurm"
# Mount points for the machine's own files of these names.
for name in passwd group hosts nsswitch.conf resolv.conf; do
  rm -f "$new/etc/$name"
  : >"$new/etc/$name"
done
chroot "$new" /usr/sbin/slurmd -V | grep -q ' 24\.11\.' || die "what $SUITE has is no Slurm 24.11"

echo "$stamp" >"$new/.stamp"
rm -rf --one-file-system "$out"
mv "$new" "$out"
echo "made $out ($(du -sm "$out" | cut -f1) MB, $(($(date +%s) - began)) s)"
