"""An empty Debian 12 to install packages into, and what is seen in it."""
import os
import pathlib
import shutil
import stat
import subprocess

HERE = pathlib.Path(__file__).resolve().parent
REPOSITORY = HERE.parent.parent
BASE = REPOSITORY / "build/packaging-root"

# What installing any package leaves in a system: the package manager's own records, and accounts,
# which stay so that their numbers go to nobody else. /etc/machine-id and caches are not touched.
RECORDS = ("/var/lib/dpkg", "/var/lib/rpm", "/var/log/dpkg.log", "/etc/passwd", "/etc/group",
           "/etc/shadow", "/etc/gshadow", "/etc/subuid", "/etc/subgid", "/etc/.pwd.lock",
           "/var/cache/debconf", "/root/.rpmdb")


class Root:
    """A copy of the base of its own, on the same file system."""

    def __init__(self, path):
        self.path = pathlib.Path(path)
        self.path.mkdir()
        for entry in BASE.iterdir():
            # Package managers replace files and never write into them: /usr may share them.
            how = "-al" if entry.name == "usr" else "-a"
            subprocess.run(["cp", how, str(entry), str(self.path)], check=True)

    def discard(self):
        shutil.rmtree(self.path)

    def run(self, *command, user=None, check=True):
        """Runs in the root, with a /proc of its own; nothing stays mounted."""
        chroot = ["chroot", *([f"--userspec={user}"] if user else []), str(self.path)]
        return subprocess.run(
            ["unshare", "--mount", "--pid", "--fork", "sh", "-ec",
             'mount -t proc proc "$1/proc"; shift; exec "$@"', "sh", str(self.path),
             *chroot, "env", "-i", "PATH=/usr/sbin:/usr/bin:/sbin:/bin",
             "DEBIAN_FRONTEND=noninteractive", *map(str, command)],
            stdin=subprocess.DEVNULL, capture_output=True, text=True, check=check, timeout=120)

    def dpkg(self, *arguments, packages=()):
        """dpkg of the root itself, on packages from outside."""
        inside = []
        for package in packages:
            shutil.copy(package, self.path / "tmp")
            inside.append(f"/tmp/{pathlib.Path(package).name}")
        done = self.run("dpkg", "--force-unsafe-io", *arguments, *inside)
        for name in inside:
            (self.path / name[1:]).unlink()
        return done.stdout + done.stderr

    def rpm(self, *arguments, check=True):
        """The rpm of this machine, on the root. Requires have Rocky's names: --nodeps."""
        return subprocess.run(
            ["rpm", "--root", str(self.path), "--force-debian", "--nodeps", "--noplugins",
             *map(str, arguments)], capture_output=True, text=True, check=check, timeout=120)

    def file(self, name):
        return self.path / name.lstrip("/")

    def owner(self, name):
        """(mode, "user:group") by the root's own names."""
        status = self.file(name).lstat()
        users = {line.split(":")[2]: line.split(":")[0] for line in self.lines("/etc/passwd")}
        groups = {line.split(":")[2]: line.split(":")[0] for line in self.lines("/etc/group")}
        return (oct(stat.S_IMODE(status.st_mode)),
                f"{users[str(status.st_uid)]}:{groups[str(status.st_gid)]}")

    def lines(self, name):
        return self.file(name).read_text().splitlines()

    def account(self, name):
        """The fields of a user in /etc/passwd, None if there is none."""
        for line in self.lines("/etc/passwd"):
            if line.split(":")[0] == name:
                return line.split(":")
        return None

    def enabled(self, unit):
        """As `systemctl is-enabled` says it."""
        return self.run("systemctl", "is-enabled", unit, check=False).stdout.strip()

    def files(self):
        """All paths, without the records of package managers."""
        found = set()
        for directory, directories, names in os.walk(self.path):
            for name in directories + names:
                path = "/" + str((pathlib.Path(directory) / name).relative_to(self.path))
                if not path.rstrip("-").startswith(RECORDS):
                    found.add(path)
        return found

