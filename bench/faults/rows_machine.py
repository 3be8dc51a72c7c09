"""The machine: its clock, its disk, a shared file system."""
import contextlib
import pathlib
import shutil
import subprocess
import sys
import threading
import time

import clock
from harness.api import node_path
from harness.rig import wait_until
from harness.service_manager import ServiceManager
from lab import OLD_NODES
from registry import row
from rows_slurm import SLURM, SLURMD, slurmd
from watcher import seconds as seconds_of

UUID = "2f6c0f9e-5a0b-4c7d-9e1f-3b2a1c0d4e5f"
HOUR = 3600
WATCHDOG = 60  # seconds, as the unit has it
LONG = 150  # seconds; more than the watchdog's patience
STAY = 75  # seconds; the controller manager gives up on a Node after 50
HERE = pathlib.Path(__file__).resolve().parent


def renewed_at(node):
    return seconds_of(node.lease()["spec"]["renewTime"])


def stepped(trial, seconds):
    if not clock.available():
        raise RuntimeError("libfaketime is missing (Debian package libfaketime)")
    lab = trial.lab
    name = OLD_NODES[0 if seconds > 0 else 1]
    file = lab.work / name
    clock.step(file, 0)
    with lab.slurm() as slurm, lab.node(slurm, name,
                                        credential=lab.old_credentials[name]) as node:
        node.prefix, node.inside = clock.prefix(), clock.inside(file)
        trial.adopt(node)
        node.start()
        trial.prepare()
        with trial.fault():
            clock.step(file, seconds)
            time.sleep(STAY)
            ahead = renewed_at(node) - trial.since
            # Behind, renewTime waits for the clock to come back.
            trial.require(ahead > HOUR if seconds > 0 else ahead < STAY / 2,
                          f"the clock was not stepped: renewTime {ahead:+.0f} s")
            clock.step(file, 0)
        trial.back(within=20)
        time.sleep(STAY)  # the way back is a step as well
        trial.wait_right()
        trial.finish()


@row("clock stepped by +1 h", own_nodes=True,
     done=f"daemon's time of day (libfaketime) ahead for {STAY} s, then right", must="no late lease")
def clock_ahead(trial):
    stepped(trial, HOUR)


@row("clock stepped by -1 h", own_nodes=True,
     done=f"behind for {STAY} s, then right", must="no late lease")
def clock_behind(trial):
    stepped(trial, -HOUR)


@contextlib.contextmanager
def small_disk(path, uid):
    """A file system of 128 KiB there; full() fills it."""
    subprocess.run(["mount", "-t", "tmpfs", "-o", f"size=128k,mode=0755,uid={uid},gid={uid}",
                    "state", str(path)], check=True)
    try:
        yield
    finally:
        subprocess.run(["umount", "-l", str(path)], check=True)


def fill(path):
    ballast = path / "ballast"
    with open(ballast, "wb", buffering=0) as out, contextlib.suppress(OSError):
        while True:
            out.write(bytes(4096))
    return ballast


@row("disk full", own_nodes=True, may=("DiskPressure",),
     done="state directory full; Node deleted, daemon killed and started; space again after 30 s",
     must="no late lease, Node within 10 s, state files whole")
def disk_full(trial):
    lab = trial.lab
    trial.same_node = trial.same_process = False
    with lab.slurm() as slurm, lab.node(slurm) as node, small_disk(node.state_dir, node.uid):
        node.provision(UUID)
        trial.adopt(node)
        node.start()
        trial.prepare()
        with trial.fault():
            ballast = fill(node.state_dir)
            node.admin.delete(node_path(node.name))
            node.wait(lambda one: one and one["metadata"]["uid"] != trial.uid)
            trial.seen("Node", within=10)
            node.daemon.kill()
            began = time.time()
            node.start()
            trial.wait_renewed_after(began)
            trial.seen("lease after restart", within=15, since=began)
            time.sleep(30)
            ballast.unlink()
        trial.back(within=20)
        node.stop()
        began = time.time()
        node.start()
        trial.wait_renewed_after(began)
        trial.finish()
        empty = [path.name for path in node.state_dir.rglob("*")
                 if path.is_file() and path.stat().st_size == 0]
        trial.require(not empty, f"empty files in the state directory: {empty}")


class SharedFiles:
    """slurm.conf, gres.conf and Slurm's commands on a file system that can hang."""

    def __init__(self, directory, slurm):
        self.source, self.path = directory / "origin", directory / "shared"
        for one in (self.source, self.path):
            one.mkdir()
        etc = pathlib.Path(slurm.conf_path).parent
        for name in ("slurm.conf", "gres.conf"):
            shutil.copy(etc / name, self.source / name)
        for name in ("scontrol",):
            script = self.source / name
            script.write_text(f'#!/bin/sh\nexec {shutil.which(name)} "$@"\n')
            script.chmod(0o755)
        self.server = subprocess.Popen(
            [sys.executable, HERE / "hung_files.py", self.source, self.path], text=True,
            stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        self.server.stdout.readline()

    def say(self, word):
        self.server.stdin.write(word + "\n")
        self.server.stdin.flush()
        self.server.stdout.readline()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.server.stdin.close()
        self.server.wait(20)


class Pings(threading.Thread):
    """systemd's side of the watchdog: when the daemon said that it works, as a context."""

    def __init__(self, path):
        super().__init__(daemon=True)
        self.manager, self.at, self.over = ServiceManager(path), [], threading.Event()
        path.chmod(0o777)

    def run(self):
        while not self.over.is_set():
            message = self.manager.next(0.5)
            if message and message.get("WATCHDOG") == "1":
                self.at.append(time.time())

    def longest_pause(self, since):
        times = [since, *(at for at in self.at if at > since), time.time()]
        return max(later - earlier for earlier, later in zip(times, times[1:]))

    def __enter__(self):
        self.start()
        return self

    def __exit__(self, *_):
        self.over.set()
        self.join()
        self.manager.close()


@contextlib.contextmanager
def node_with_shared_files(trial):
    lab = trial.lab
    with lab.slurm() as slurm, lab.node(slurm) as node:
        with SharedFiles(node.directory, slurm) as files, Pings(node.directory / "notify") as pings:
            trial.pings = pings
            node.environment.update(pings.manager.environment(WATCHDOG))
            node.environment["SLURM_CONF"] = str(files.path / "slurm.conf")
            node.configure(slurm={"binDir": str(files.path)})
            trial.adopt(node)
            node.start()
            trial.prepare()
            try:
                yield node, files
            finally:
                node.daemon.kill()


def hang(trial, meanwhile):
    """For LONG seconds, of which systemd is told that the daemon works."""
    with node_with_shared_files(trial) as (node, files):
        with trial.fault():
            files.say("hang")
            began = time.time()
            meanwhile(node)
            time.sleep(max(0, LONG - (time.time() - began)))
            pause = trial.pings.longest_pause(began)
            trial.note(f"longest time between watchdog pings: {pause:.0f} s")
            trial.require(pause < WATCHDOG,
                          f"systemd would have ended it: no ping for {pause:.0f} s")
            files.say("go")
        trial.back(within=60)
        trial.finish()


@row("shared file system hung", own_nodes=True, may=SLURM,
     done=f"slurm.conf and scontrol on a FUSE file system that hangs for {LONG} s",
     must="no late lease, Node Ready, watchdog fed; known within 60 s of its end")
def files_hung(trial):
    def meanwhile(node):
        found = node.wait_condition("SlurmNodeStateIdle", "Unknown", timeout=STAY)
        trial.seen(f"Unknown ({found['reason']})", within=STAY)
    hang(trial, meanwhile)


@row("shared file system hung, slurmd restarted", own_nodes=True, may=SLURMD,
     done="the same; slurmd killed and started",
     must="no late lease, watchdog fed, SlurmdReady False within 15 s")
def files_hung_without_slurmd(trial):
    def meanwhile(node):
        slurmd(trial, "kill")
        began = time.time()
        with contextlib.suppress(TimeoutError):
            node.wait_condition("SlurmdReady", "False", timeout=STAY)
        trial.seen("SlurmdReady", within=15, since=began)
        slurmd(trial, "start")
    hang(trial, meanwhile)


@row("shared file system hung, daemon restarted", own_nodes=True, may=SLURMD,
     done=f"the same for {STAY} s; daemon killed and started",
     must="lease within 15 s of the start, SlurmdReady Unknown without slurm.conf")
def files_hung_at_start(trial):
    trial.same_process = False
    with node_with_shared_files(trial) as (node, files):
        with trial.fault():
            files.say("hang")
            node.daemon.kill()
            began = time.time()
            node.start(ready=False)
            try:
                wait_until(lambda: [at for at in node.audit.renewals(trial.mark) if at > began],
                           STAY, "a lease")
                trial.seen("lease", within=15, since=began)
            except TimeoutError:
                trial.require(False, f"no lease within {STAY} s of the start")
            time.sleep(max(0, STAY - (time.time() - began)))
            files.say("go")
        trial.back(within=60)
        trial.finish()
