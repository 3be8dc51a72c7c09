#!/usr/bin/env bash
# The root file system of the machines that test/machine boots: Debian 12 with systemd, cloud-init,
# munge and Slurm, and what slurmlet's package depends on, but not that package.
#
#   root.sh [OUT]      OUT defaults to <repository>/build/machine-root
#
# Does nothing when OUT was already made by this same script. What it needs, and where the packages come
# from: test/lab/harness/debian_root.sh. Machines never write to OUT: each has an overlay of its own above it.
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
. "$here/../lab/harness/debian_root.sh"

PACKAGES=(
  systemd systemd-sysv dbus udev iproute2 procps
  cloud-init
  munge slurmd slurmctld slurm-client
  # What slurmlet's package depends on, so that a machine without a mirror can install it.
  libbrotli1 libc6 libcpp-httplib0.11 libcurl4 libfmt9 libgcc-s1 libssl3 libstdc++6 libyaml-0-2 zlib1g adduser
)

out=$(realpath -m -- "${1:-$here/../../build/machine-root}")
new=$out.new
debian_root_begin "$out" bookworm apt "${PACKAGES[@]}"

# What an image does not carry: the identity of a machine, and where its packages came from.
rm -f "$new"/etc/{machine-id,hostname,resolv.conf} "$new/etc/apt/sources.list" "$new"/etc/apt/sources.list.d/*
: >"$new/etc/machine-id"
printf '127.0.0.1 localhost\n::1 localhost\n' >"$new/etc/hosts"
rm -f "$new"/etc/apt/apt.conf.d/99mmdebstrap "$new"/var/lib/apt/lists/*Packages*
rm -rf "$new"/usr/share/{doc,man,locale,info,lintian,bug} "$new"/var/cache/apt/*.bin
# Kept over reboots, and read by the tests.
mkdir -p "$new/var/log/journal"
# No SSH server is here, no locale but C, and nobody to ask who the host is but /etc/hosts.
cat >"$new/etc/cloud/cloud.cfg.d/90-machine.cfg" <<'CFG'
locale: C.UTF-8
no_ssh_fingerprints: true
manage_etc_hosts: localhost
datasource_list: [ConfigDrive, None]
CFG
# Nobody here routes IPv6; waiting for who does would take the network 13 s.
mkdir "$new/etc/systemd/network/10-cloud-init-eth0.network.d"
printf '[Network]\nLinkLocalAddressing=no\nIPv6AcceptRA=no\n' \
  >"$new/etc/systemd/network/10-cloud-init-eth0.network.d/ipv4.conf"
# Timers and consoles that nobody waits for here.
for unit in apt-daily.timer apt-daily-upgrade.timer dpkg-db-backup.timer e2scrub_all.timer fstrim.timer \
  console-getty.service getty.target systemd-timesyncd.service; do
  ln -sf /dev/null "$new/etc/systemd/system/$unit"
done
# The network is systemd's, configured by cloud-init from the config drive.
chroot "$new" systemctl --quiet enable systemd-networkd.service munge.service slurmctld.service slurmd.service

debian_root_end "$out"
