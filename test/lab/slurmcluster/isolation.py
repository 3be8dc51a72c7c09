"""Running a program in another root, host name or /run, as a list of words to put before it.

Each uses a private mount (or UTS) namespace of the process alone: nothing stays mounted, and the
process keeps the pid it was started with. Needs root.
"""

import functools
import os
import tempfile

from .config import ClusterError, write_script

# $0 is the new root, $1 the table of what is mounted in it; the rest is the program.
_ENTER_ROOT = """set -e
mount --all --fstab "$1"
shift
exec chroot {user}"$0" "$@"
"""
# $0 is where munge's socket lies.
_OWN_RUN = """set -e
mount -t tmpfs run /run
mkdir /run/slurm
ln -s "$0" /run/munge
exec "$@"
"""
# $0 is the host's name, then a hosts file that knows it and the directory of pid files: slurmctld
# ends the one whose pid it finds there.
_AS_HOST = """set -e
hostname "$0"
mount --bind "$1" /etc/hosts
mount -t tmpfs run "$2"
shift 2
exec "$@"
"""
_OWN_MOUNTS = ["unshare", "--mount", "--propagation", "private", "/bin/sh", "-c"]
_IN_ROOT = "/usr/sbin:/usr/bin"


def in_root(root, user=None):
    """Runs the program in that root, with the machine's own /proc, /dev, /run and /tmp."""
    account = f"--userspec={user.pw_uid}:{user.pw_gid} --groups= " if user else ""
    return [*_OWN_MOUNTS, _ENTER_ROOT.format(user=account), root, _mount_table(root)]


@functools.cache
def _mount_table(root):
    """One mount(8) for all, since tests start thousands of programs. The root's own files of these
    names are empty."""
    path = os.path.join(root, "mounts")
    target = root.replace(" ", r"\040")
    lines = [f"/{name} {target}/{name} none rbind" for name in ("proc", "sys", "dev", "run", "tmp")]
    lines += [f"/etc/{name} {target}/etc/{name} none bind"
              for name in ("passwd", "group", "hosts", "nsswitch.conf", "resolv.conf")]
    # Others may be reading it.
    with tempfile.NamedTemporaryFile("w", dir=root, delete=False) as out:
        out.write("\n".join(lines) + "\n")
    os.rename(out.name, path)
    return path


def program_in_root(root, name):
    """Absolute path, inside the root, of a program there."""
    for directory in _IN_ROOT.split(":"):
        if os.access(root + os.path.join(directory, name), os.X_OK):
            return os.path.join(directory, name)
    raise ClusterError(f"program '{name}' not found in {root}; test/lab/slurmcluster/root.sh makes it")


def own_run(munge_directory):
    """Gives the program an empty /run with only munge's socket: configless Slurm writes there."""
    return [*_OWN_MOUNTS, _OWN_RUN, munge_directory]


def as_host(name, hosts_file, run_directory):
    """Lets the program see itself on a host of that name, and finds that name's address."""
    return ["unshare", "--uts", *_OWN_MOUNTS[1:], _AS_HOST, name, hosts_file, run_directory]


def write_wrappers(directory, root, names):
    """Programs of these names in `directory` that run those of the root."""
    for name in names:
        words = [*in_root(root), program_in_root(root, name)]
        quoted = " ".join("'" + word.replace("'", "'\\''") + "'" for word in words)
        write_script(os.path.join(directory, name), f'#!/bin/sh\nexec {quoted} "$@"\n')
