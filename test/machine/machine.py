"""Machines that boot: a root file system under systemd-nspawn, with a network of its own, a config
drive as Ironic would write it, and the power in our hands. See docs/contributors/testing-machine.md."""
import contextlib
import itertools
import json
import os
import pathlib
import select
import shutil
import signal
import socket
import subprocess
import threading
import time

from harness.rig import wait_until
from namespaces import Cgroup, Namespaces, Relay, die_with_us, run

BOOT_WAIT = 120  # seconds; the machine below may be busy
# The API server's certificate names this address, which no test cluster uses for anything else.
SERVER = ("10.96.0.1", 6443)
ADDRESS = "10.96.0.2"
NETMASK = "255.255.255.0"
MAC = "02:00:5e:10:00:02"
_SEED = "var/lib/cloud/seed/config_drive/openstack/latest"
_REBOOT = 133  # systemd-nspawn --keep-unit leaves it to its own unit to start it again
_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"


def why_not():
    """Why machines cannot boot here, or "" if they can."""
    if os.geteuid() != 0:
        return "booting a machine needs root"
    for program in ("systemd-nspawn", "unshare", "nsenter", "ip"):
        if not shutil.which(program, path=_PATH):
            return f"booting a machine needs {program}"
    try:
        Namespaces("net", "mount").close()
    except RuntimeError as error:
        return f"no namespaces here: {error}"
    return ""


class Workshop:
    """Where root file systems are made and mounted: a mount namespace of its own with a tmpfs."""

    def __init__(self, directory):
        self.directory = pathlib.Path(directory)
        self.directory.mkdir(parents=True, exist_ok=True)
        self.space = Namespaces("mount")
        self.space.run("mount", "-t", "tmpfs", "-o", "size=2g,mode=0755", "workshop", self.directory)
        # What systemd-nspawn notes about its machines.
        self.space.run("mkdir", "-p", "/run/systemd")
        self.space.run("mount", "-t", "tmpfs", "-o", "mode=0755", "run", "/run/systemd")

    def file(self, path):
        """How a file of ours is reached from outside the mount namespace."""
        return self.space.path(path)

    def new_root(self, name, below):
        """A root file system over those of `below` (the topmost first). Returns its directory and the
        one with what is written to it."""
        home = self.directory / name
        for part in ("upper", "work", "root"):
            self.file(home / part).mkdir(parents=True)
        lower = ":".join(map(str, below))
        self.space.run("mount", "-t", "overlay", "-o",
                       f"lowerdir={lower},upperdir={home}/upper,workdir={home}/work", name,
                       home / "root")
        return home / "root", home / "upper"

    def remove_root(self, name):
        self.space.run("umount", "--lazy", self.directory / name / "root")
        self.space.run("rm", "-rf", self.directory / name)

    def image(self, name, below, *commands, files=(), rpms=()):
        """What `below` becomes when those files (source, path) are copied to it, those RPMs installed and
        those commands ran in it; to be given as `below` again."""
        root, upper = self.new_root(name, below)
        for source, path in files:
            target = self.file(root / path)
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(source, target)
        for rpm in rpms:
            # By the rpm of the machine below; their requirements have Rocky's names.
            self.space.run("rpm", "--root", root, "--force-debian", "--nodeps", "--noplugins", "-i", rpm)
        for command in commands:
            # No service manager runs there, as in any image that is being built.
            self.space.run("env", "-i", f"PATH={_PATH}", "DEBIAN_FRONTEND=noninteractive", "LANG=C",
                           "chroot", root, *command)
        self.space.run("umount", root)
        return [upper, *below]

    def close(self):
        self.space.close()
        with contextlib.suppress(OSError):
            self.directory.rmdir()


class Notifications:
    """What systemd-nspawn tells of its machine (NOTIFY_SOCKET of sd_notify(3)). Read all the time: while
    nobody reads, the machine's own PID 1 stands still in its next message."""

    def __init__(self, path):
        self.path = path
        self.leader, self.booted = None, False
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self._socket.bind(str(path))
        self._news, self._ring = os.pipe()
        os.set_blocking(self._ring, False)
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def _read(self):
        while message := self._socket.recv(4096).decode():
            for line in message.splitlines():
                key, _, value = line.partition("=")
                if key == "X_NSPAWN_LEADER_PID":
                    self.leader, self.booted = int(value), False
                elif key == "READY":
                    self.booted = value == "1"
            with contextlib.suppress(BlockingIOError):
                os.write(self._ring, b"!")

    def forget(self):
        self.leader, self.booted = None, False

    def wait(self, done, process, timeout):
        """Until done(); False when the time is over, an error when the process ended."""
        deadline = time.monotonic() + timeout
        pidfd = os.pidfd_open(process.pid)
        try:
            while not done():
                left = deadline - time.monotonic()
                ready, _, _ = select.select([self._news, pidfd], [], [], max(0, left))
                if self._news in ready:
                    os.read(self._news, 4096)
                elif pidfd in ready:
                    raise RuntimeError("the machine ended")
                else:
                    return False
            return True
        finally:
            os.close(pidfd)

    def close(self):
        with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as last:
            last.sendto(b"", str(self.path))
        self._reader.join()
        self._socket.close()
        os.close(self._news)
        os.close(self._ring)
        self.path.unlink()


_numbers = itertools.count(1)


class Machine:
    """One machine: its disk, its network and what runs on it. Off at first."""

    def __init__(self, workshop, below, directory, server_port):
        self.label = f"machine{next(_numbers)}"
        self.workshop = workshop
        self.directory = pathlib.Path(directory)
        self.directory.mkdir(parents=True, exist_ok=True)
        self.root, _ = workshop.new_root(self.label, below)
        self._cgroup = Cgroup(f"slurmlet-test-{os.getpid()}-{self.label}")
        # Two network namespaces, joined by one cable: the machine's, and the site's with the server.
        self._site, self._net = Namespaces("net"), Namespaces("net")
        run("ip", "link", "add", "eth0", "netns", self._net.pid, "address", MAC, "type", "veth",
            "peer", "name", "site0", "netns", self._site.pid)
        self._site.run("ip", "address", "add", SERVER[0] + "/24", "dev", "site0")
        for space in (self._site, self._net):
            space.run("ip", "link", "set", "lo", "up")
        self.server = Relay(self._site.net, SERVER, server_port)
        self._told = Notifications(self.directory / "notify")
        self._process = None
        self.powered_on_at = None

    # -- outside: cable, server, disk, config drive ----------------------------

    def plug(self, connected=True):
        """Connects the machine's cable, or pulls it."""
        self._site.run("ip", "link", "set", "site0", "up" if connected else "down")

    def file(self, path):
        """A file on the machine's disk."""
        return self.workshop.file(self.root / path.lstrip("/"))

    def write(self, path, text, mode=0o644):
        target = self.file(path)
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(text)
        target.chmod(mode)

    def provision(self, meta_data, user_data):
        """Writes the config drive, as Ironic does before it starts a machine."""
        network = {"links": [{"id": "eth0", "type": "phy", "ethernet_mac_address": MAC, "mtu": 1500}],
                   "networks": [{"id": "net0", "link": "eth0", "type": "ipv4", "ip_address": ADDRESS,
                                 "netmask": NETMASK, "network_id": "net0", "routes": []}],
                   "services": []}
        self.write(f"{_SEED}/meta_data.json", json.dumps(meta_data))
        self.write(f"{_SEED}/network_data.json", json.dumps(network))
        self.write(f"{_SEED}/user_data", user_data)

    # -- power -------------------------------------------------------------------

    @property
    def is_on(self):
        return self._process is not None and self._process.poll() is None

    def power_on(self, connected=True, reachable=True):
        """Returns when its service manager runs. `connected`: the cable; `reachable`: the API server."""
        self.plug(connected)
        if reachable:
            self.server.open()
        self.powered_on_at = time.monotonic()
        self._start()

    def _start(self):
        # Told nothing about a network, it uses the one it is started in, and its /sys shows that.
        command = ["nsenter", f"--net={self._net.net}", "systemd-nspawn", "--quiet", "--boot",
                   "--register=no", "--keep-unit", f"--directory={self.root}",
                   f"--machine={self.label}", "--settings=no", "--capability=CAP_NET_ADMIN",
                   "--resolv-conf=off", "--timezone=off", "--link-journal=no", "--notify-ready=yes"]
        self._told.forget()  # it may have powered itself off
        with open(self.directory / "console.log", "ab") as console:
            self._process = subprocess.Popen(
                self.workshop.space.enter(*command), stdin=subprocess.DEVNULL, stdout=console,
                stderr=console, env={"PATH": _PATH, "NOTIFY_SOCKET": str(self._told.path)},
                preexec_fn=self._begin, start_new_session=True)
        self._wait_told(lambda: self._leader)
        manager = pathlib.Path(f"/proc/{self._leader}/root/run/systemd/private")
        wait_until(lambda: manager.exists() or self._process.poll() is not None,
                   what=f"the service manager of {self.label}")

    def _begin(self):
        # SIGTERM, with which it powers the machine off: killed, it would leave the machine running.
        die_with_us(signal.SIGTERM)
        self._cgroup.join()

    def wait_booted(self, timeout=BOOT_WAIT):
        """Until all jobs of the boot are done; returns the seconds since power-on."""
        self._wait_told(lambda: self._told.booted, timeout)
        return time.monotonic() - self.powered_on_at

    @property
    def _leader(self):
        """The machine's PID 1, as a PID of ours."""
        return self._told.leader

    def _wait_told(self, done, timeout=BOOT_WAIT):
        try:
            in_time = self._told.wait(done, self._process, timeout)
        except RuntimeError as error:
            raise RuntimeError(f"{self.label}: {error}:\n{self.console()[-3000:]}") from None
        if not in_time:
            raise TimeoutError(f"{self.label}: not within {timeout} s; console:\n"
                               f"{self.console()[-3000:]}")

    def reboot(self):
        """As an administrator does; returns when the new boot has begun."""
        self.run("systemctl", "--no-block", "reboot")
        self.powered_on_at = time.monotonic()
        status = self._process.wait(BOOT_WAIT)
        assert status == _REBOOT, f"{self.label} ended with {status}:\n{self.console()[-3000:]}"
        self._start()

    def power_off(self, timeout=BOOT_WAIT):
        """As an administrator does; returns the seconds until it was off."""
        began = time.monotonic()
        self.run("systemctl", "--no-block", "poweroff")
        self._process.wait(timeout)
        self._end()
        return time.monotonic() - began

    def pull_plug(self):
        """Off, at once."""
        if self.is_on:
            # The machine's PID 1, and with it all its processes. systemd-nspawn sees it end; killed
            # itself, it would leave the machine running.
            if self._leader is None:
                with contextlib.suppress(TimeoutError, RuntimeError):
                    self._wait_told(lambda: self._leader)
            if self._leader is not None:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(self._leader, signal.SIGKILL)
            try:
                self._process.wait(20)
            except subprocess.TimeoutExpired:
                self._process.kill()
                self._process.wait()
        self._end()

    def _end(self):
        self._told.forget()
        self.server.shut()

    def remove(self):
        self.pull_plug()
        self.server.close()
        self._told.close()
        for space in (self._site, self._net):
            space.close()
        self.workshop.remove_root(self.label)
        self._cgroup.remove()

    # -- inside ------------------------------------------------------------------

    def enter(self, *command):
        """The words that run a program on the machine as root."""
        return ["nsenter", "-t", str(self._leader), "--mount", "--uts", "--ipc", "--net", "--pid",
                "--", "env", "-i", f"PATH={_PATH}", "LANG=C.UTF-8", "SYSTEMD_PAGER=",
                *map(str, command)]

    def run(self, *command):
        """The program's standard output; failure is an error."""
        return run(*self.enter(*command), timeout=BOOT_WAIT)

    def attempt(self, *command):
        """(status, standard output and error together)."""
        done = subprocess.run(self.enter(*command), stdout=subprocess.PIPE, text=True,
                              stderr=subprocess.STDOUT, timeout=BOOT_WAIT, check=False)
        return done.returncode, done.stdout

    def unit(self, name, *properties):
        """Properties of a unit: {name: text}."""
        shown = self.run("systemctl", "show", f"--property={','.join(properties)}", name)
        return dict(line.partition("=")[::2] for line in shown.splitlines())

    def journal(self, *arguments):
        """What the journal has of this boot, one message a line."""
        words = ("journalctl", "--quiet", "--no-pager", "-o", "cat", *arguments)
        if self._leader:
            return self.run(*words, "-b")
        return self.workshop.space.run(*words, f"--directory={self.root}/var/log/journal")

    def console(self):
        path = self.directory / "console.log"
        return path.read_text(errors="replace") if path.exists() else ""
