#!/usr/bin/env bash
# Slurm 24.11 beside the machine's own: Debian 13's packages unpacked into a directory of their own,
# for SlurmCluster's `root` (see README.md).
#
#   root-24.11.sh [OUT]      OUT defaults to <repository>/build/slurm-24.11
#
# Does nothing when OUT was already made by this same script. What it needs, and where the packages come
# from: test/lab/harness/debian_root.sh.
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
. "$here/../harness/debian_root.sh"

out=$(realpath -m -- "${1:-$here/../../../build/slurm-24.11}")
new=$out.new
# Unpacked only: no script of a package runs, so no service and no user is made.
debian_root_begin "$out" trixie extract \
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
chroot "$new" /usr/sbin/slurmd -V | grep -q ' 24\.11\.' || die "what trixie has is no Slurm 24.11"

debian_root_end "$out"
