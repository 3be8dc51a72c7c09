"""Starting, finding and ending the processes of one cluster.

A daemon runs in the foreground mode of its own, in a session of its own; its
pid is in DIR/pids/NAME.pid and its start time in DIR/pids/NAME.start, so that
a reused pid is never taken for the daemon.
"""

import contextlib
import os
import pathlib
import re
import signal
import subprocess
import time

from .config import ClusterError

# In the environment of all we start; job processes inherit it.
MARKER = "SLURMCLUSTER_DIR"

# Popen objects of daemons started by this very process: they are to be reaped.
_children = {}


class StillWaiting(ClusterError, TimeoutError):
    pass


def wait_for(what, seconds, condition):
    """Poll `condition` until it is true; its value is returned. `what` may be a function: what there
    was instead."""
    began = time.monotonic()
    while True:
        value = condition()
        if value:
            return value
        waited = time.monotonic() - began
        if waited > seconds:
            raise StillWaiting(f"waited {seconds} s for {what() if callable(what) else what}")
        time.sleep(min(0.03 + waited / 20, 0.2))  # many looks start a program


def _stat_fields(pid):
    """Command and, from the state on, the fields of proc(5); OSError if it is gone."""
    with open(f"/proc/{pid}/stat", encoding="utf-8", errors="replace") as stat:
        head, _, rest = stat.read().rpartition(")")
    return head.partition("(")[2], rest.split()


def process_stat(pid):
    """(command, state letter, parent pid, start time), or None if gone."""
    try:
        command, fields = _stat_fields(pid)
    except OSError:
        return None
    return command, fields[0], int(fields[1]), fields[19]


def cpu_seconds(pid):
    """User and system time of a process, all its threads and its ended children."""
    return sum(map(int, _stat_fields(pid)[1][11:15])) / os.sysconf("SC_CLK_TCK")


def sleeps(pid):
    """{thread: how often it has slept}. Each turn of a loop ends in one, each call in some."""
    counts = {}
    for status in pathlib.Path(f"/proc/{pid}/task").glob("*/status"):
        with contextlib.suppress(OSError):  # it has ended
            found = re.search(r"^voluntary_ctxt_switches:\s*(\d+)", status.read_text(), re.M)
            counts[status.parent.name] = int(found[1])
    return counts


def is_alive(pid, start_time=None):
    """True unless the process is gone, a zombie, or another one by now."""
    child = _children.get(pid)
    if child is not None and child.poll() is not None:
        del _children[pid]
    try:
        _, fields = _stat_fields(pid)
    except OSError:
        return False
    # Killed, the first thread may be a zombie while others still hold the process's files and locks.
    has_ended = fields[0] in "ZX" and int(fields[17]) <= 1
    return not has_ended and start_time in (None, fields[19])


class ProcessTable:
    """The daemons of one cluster, by name."""

    def __init__(self, layout):
        self._layout = layout

    def _file(self, name, kind):
        return os.path.join(self._layout.pids, f"{name}.{kind}")

    def recorded(self):
        """Names of all daemons that have a pid file."""
        try:
            return sorted(entry[:-4] for entry in os.listdir(self._layout.pids) if entry.endswith(".pid"))
        except FileNotFoundError:
            return []

    def pid(self, name):
        """Pid of a living daemon, or None."""
        try:
            with open(self._file(name, "pid"), encoding="ascii") as stored:
                pid = int(stored.read())
            with open(self._file(name, "start"), encoding="ascii") as stored:
                start_time = stored.read().strip()
        except (FileNotFoundError, ValueError):
            return None
        return pid if is_alive(pid, start_time) else None

    def spawn(self, name, command, environment, user=None):
        """Start a daemon; its output goes to DIR/log/NAME.out."""
        running = self.pid(name)
        if running:
            raise ClusterError(f"{name} is already running (pid {running})")
        identity = {} if user is None else {"user": user.pw_uid, "group": user.pw_gid, "extra_groups": []}
        with open(os.path.join(self._layout.log, f"{name}.out"), "ab") as output:
            child = subprocess.Popen(  # pylint: disable=consider-using-with
                command, stdin=subprocess.DEVNULL, stdout=output, stderr=output, cwd=self._layout.root,
                env=environment, start_new_session=True, **identity)
        _children[child.pid] = child
        found = process_stat(child.pid)
        with open(self._file(name, "start"), "w", encoding="ascii") as out:
            out.write((found[3] if found else "gone") + "\n")
        with open(self._file(name, "pid"), "w", encoding="ascii") as out:
            out.write(f"{child.pid}\n")
        return child.pid

    def log_tail(self, name, lines=5):
        """The last lines a daemon printed, for error messages."""
        try:
            with open(os.path.join(self._layout.log, f"{name}.out"), encoding="utf-8", errors="replace") as log:
                return " / ".join(line.strip() for line in log.readlines()[-lines:])
        except FileNotFoundError:
            return "(no output)"

    def signal(self, name, number):
        """Send a signal to a living daemon; its pid is returned."""
        pid = self.pid(name)
        if pid is None:
            raise ClusterError(f"{name} is not running")
        os.kill(pid, number)
        return pid

    def stop(self, name, seconds=60, force=False):
        """SIGTERM and wait (slurmd waits for its own threads, up to two minutes); with `force` SIGKILL
        after `seconds`."""
        if self.pid(name) is None:
            self.forget(name)
            return
        pid = self.signal(name, signal.SIGTERM)
        self.signal_quietly(pid, signal.SIGCONT)
        try:
            wait_for(f"{name} (pid {pid}) to end after SIGTERM", seconds, lambda: self.pid(name) is None)
        except ClusterError:
            if not force:
                raise
            self.kill(name)
        self.forget(name)

    def kill(self, name):
        """SIGKILL and wait."""
        pid = self.signal(name, signal.SIGKILL)
        wait_for(f"{name} (pid {pid}) to end after SIGKILL", 10, lambda: self.pid(name) is None)
        self.forget(name)

    def pause(self, name):
        """SIGSTOP, until the kernel says stopped."""
        pid = self.signal(name, signal.SIGSTOP)
        wait_for(f"{name} to be stopped", 5, lambda: (process_stat(pid) or "  ")[1] in "TZX")

    def resume(self, name):
        """SIGCONT, until the kernel no longer says stopped."""
        pid = self.signal(name, signal.SIGCONT)
        wait_for(f"{name} to continue", 5, lambda: (process_stat(pid) or "  ")[1] != "T")

    @staticmethod
    def signal_quietly(pid, number):
        """Send a signal to a process that may be gone already."""
        try:
            os.kill(pid, number)
        except ProcessLookupError:
            pass

    def forget(self, name):
        """Remove the record of an ended daemon."""
        for kind in ("pid", "start"):
            try:
                os.unlink(self._file(name, kind))
            except FileNotFoundError:
                pass

    def strays(self):
        """Living processes of this cluster: {pid: start time}.

        Daemons and jobs carry our marker. slurmstepd has an environment of
        one variable only, SLURM_CONF, and outlives slurmd as a child of init.
        A job submitted by somebody else has SLURM_CONF and SLURM_JOB_ID.
        Their descendants count too, whatever environment they have.
        """
        marker = f"{MARKER}={self._layout.root}".encode()
        conf = f"SLURM_CONF={self._layout.conf}".encode()
        table, ours = {}, set()
        for entry in os.listdir("/proc"):
            if not entry.isdigit():
                continue
            found = process_stat(int(entry))
            if found is None or found[1] in "ZX":
                continue
            table[int(entry)] = found
            try:
                with open(f"/proc/{entry}/environ", "rb") as stored:
                    environment = stored.read().split(b"\0")
            except OSError:
                continue
            in_job = any(variable.startswith(b"SLURM_JOB_ID=") for variable in environment)
            if marker in environment or (conf in environment and (in_job or found[0] == "slurmstepd")):
                ours.add(int(entry))
        grown = True
        while grown:
            children = {pid for pid, found in table.items() if found[2] in ours} - ours
            ours |= children
            grown = bool(children)
        me = os.getpid()
        while me > 1 and me in table:  # never ourselves or our parents
            ours.discard(me)
            me = table[me][2]
        return {pid: table[pid][3] for pid in ours if is_alive(pid)}

    def kill_strays(self):
        """SIGKILL what is left, until nothing is."""
        def none_left():
            left = self.strays()
            for pid, start_time in left.items():
                if is_alive(pid, start_time):
                    self.signal_quietly(pid, signal.SIGKILL)
            return not left
        wait_for("the cluster's last processes to end", 15, none_left)
