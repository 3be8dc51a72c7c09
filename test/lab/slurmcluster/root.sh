#!/usr/bin/env bash
# Another Slurm beside the machine's own: Debian's packages unpacked into a directory of their own, for
# SlurmCluster's `root` (see README.md).
#
#   root.sh RELEASE [OUT]      24.11, 26.05; OUT defaults to <repository>/build/slurm-RELEASE
#
# Does nothing when OUT was already made by this same script. What it needs, and where the packages come
# from: test/lab/harness/debian_root.sh.
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
. "$here/../harness/debian_root.sh"

release=${1:-}
case $release in
24.11) suite=trixie ;;
26.05) suite=forky ;; # not released: its Slurm moves on some day
*) die "which release? 24.11 or 26.05" ;;
esac
out=$(realpath -m -- "${2:-$here/../../../build/slurm-$release}")
new=$out.new
# Unpacked only: no script of a package runs, so no service and no user is made.
debian_root_begin "$out" "$suite" extract \
  slurmctld slurmd slurm-client slurmrestd slurm-wlm-jwt-plugin munge bash coreutils dash

# What the packages' scripts would have linked.
for program in slurmctld slurmd slurmstepd; do ln -sf "$program-wlm" "$new/usr/sbin/$program"; done
rm -rf "$new"/usr/share/{doc,man,locale,info,lintian,bug} "$new"/var/cache/apt "$new"/var/lib/apt
mkdir -p "$new"/{proc,sys,dev,run,tmp} "$new/etc/slurm"
# Mount points for the machine's own files of these names.
for name in passwd group hosts nsswitch.conf resolv.conf; do
  rm -f "$new/etc/$name"
  : >"$new/etc/$name"
done
found=$(chroot "$new" /usr/sbin/slurmd -V)
[[ "$found" == *" $release."* ]] ||
  die "$suite has $found, not $release: name the suite that has $release, or test what there is now"

debian_root_end "$out"
