#!/bin/sh
# Gathers into DIR what slurmlet-operator needs of this Debian: the program, the commands of Slurm that it runs,
# their plugins, the libraries of all, trusted certificates, and two accounts. For
# packaging/container/Containerfile.
#
#   rootfs.sh DIR [PROGRAM]      PROGRAM defaults to the installed slurmlet-operator
set -eu
root=$1
program=${2:-/usr/sbin/slurmlet-operator}

commands=
for name in scontrol squeue scancel sacctmgr; do
  command=$(command -v "$name") || { echo "rootfs.sh: there is no $name here; install slurm-client" >&2; exit 1; }
  commands="$commands $command"
done

# What clients load of Slurm's plugins, of all its releases.
plugins=
slurm=$(dirname "$(ldd $commands | awk '/libslurmfull/ { print $3; exit }')")
for kind in auth cred hash select gres tls certgen certmgr topology serializer; do
  for plugin in "$slurm/$kind"_*.so; do
    [ ! -e "$plugin" ] || plugins="$plugins $plugin"
  done
done

# take FILE…: with the directories and links on the way to it.
take() {
  for file in "$@"; do
    mkdir -p "$root$(dirname "$file")"
    cp -L "$file" "$root$file"
  done
}

mkdir -p "$root"/etc/slurm "$root"/etc/slurmlet "$root"/run "$root"/tmp "$root"/usr/sbin "$root"/usr/lib "$root"/usr/lib64 "$root"/var
chmod 1777 "$root/tmp"
ln -sfn usr/lib "$root/lib"
ln -sfn usr/lib64 "$root/lib64"
ln -sfn /run "$root/var/run"
cp "$program" "$root/usr/sbin/slurmlet-operator"
take $commands $plugins /etc/ssl/certs/ca-certificates.crt
# Each "NAME => PATH (…)" and the loader, "PATH (…)". getaddrinfo(3) loads the resolver by itself.
ldd "$program" $commands $plugins | awk '$2 == "=>" { print $3 } $1 ~ /^\// && NF == 2 { print $1 }' |
  sort -u | while read -r library; do take "$library"; done
printf 'hosts: files dns\npasswd: files\ngroup: files\n' >"$root/etc/nsswitch.conf"
printf 'root:x:0:0::/:/nonexistent\nslurm:x:64030:64030::/:/nonexistent\n' >"$root/etc/passwd"
printf 'root:x:0:\nslurm:x:64030:\n' >"$root/etc/group"
