"""Starts many programs on one machine as if each had a node of its own: a PID namespace with a /proc
of its own (else programs that look for slurmd scan each other), in the network of the machine. Process
1 of each is a sleeping process of the name slurmd, as most nodes have one."""
import ctypes
import os
import pathlib
import signal

from cpu_clock import cpu_seconds

LIBC = ctypes.CDLL(None, use_errno=True)
CLONE_NEWNS, CLONE_NEWPID = 0x00020000, 0x20000000
MS_REC_PRIVATE, PR_SET_CHILD_SUBREAPER = 0x4000 | (1 << 18), 36
NO_FLAGS = 0
PATIENCE = 20  # seconds, with processes that were sent a signal
TICK = os.sysconf("SC_CLK_TCK")


def must(result, what):
    if result != 0:
        number = ctypes.get_errno()
        raise OSError(number, f"{what}: {os.strerror(number)}")


def adopt_orphans():
    """The parents of the namespaces' first processes end at once; those become children of ours."""
    must(LIBC.prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0), "prctl")


def start_node(slurmd):
    """The pid, as seen from here, of the sleeping `slurmd`: process 1 of a new PID namespace."""
    def enter():
        must(LIBC.unshare(CLONE_NEWPID | CLONE_NEWNS), "unshare")

    def mount_proc():
        must(LIBC.mount(b"none", b"/", None, MS_REC_PRIVATE, None), "mount --make-rprivate /")
        must(LIBC.mount(b"proc", b"/proc", b"proc", NO_FLAGS, None), "mount /proc")
    return start_in(enter, mount_proc, [slurmd, "infinity"], {}, os.devnull)


def start(node, command, environment, log):
    """The pid, as seen from here, of `command` in the namespaces of the process `node`."""
    def enter():
        for kind in ("pid", "mnt"):
            must(LIBC.setns(os.open(f"/proc/{node}/ns/{kind}", os.O_RDONLY), 0), f"setns {kind}")
    return start_in(enter, lambda: None, command, environment, log)


def start_in(enter, prepare, command, environment, log):
    """`enter` is called in the parent: who enters a PID namespace is not in it, but its children."""
    reader, writer = os.pipe()
    middle = os.fork()
    if middle == 0:
        try:
            enter()
            inner = os.fork()
            if inner == 0:
                become(prepare, command, environment, log)
            os.write(writer, str(inner).encode())
        finally:
            os._exit(0)
    os.close(writer)
    os.waitpid(middle, 0)
    pid = os.read(reader, 20)
    os.close(reader)
    if not pid:
        raise RuntimeError("no PID namespace: is this root?")
    return int(pid)


def become(prepare, command, environment, log):
    try:
        prepare()
        output = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
        os.dup2(output, 1)
        os.dup2(output, 2)
        os.closerange(3, 256)
        os.execve(command[0], command, environment)
    except BaseException as error:  # whatever it was, this is a child: it must not go on
        os.write(2, f"{error}\n".encode())
    os._exit(127)


class Usage:
    """CPU seconds, context switches and memory of one process."""

    def __init__(self, pid):
        proc = pathlib.Path(f"/proc/{pid}")
        fields = (proc / "stat").read_text().rpartition(")")[2].split()
        self.children = (int(fields[13]) + int(fields[14])) / TICK
        self.own, self.switches = cpu_seconds(pid), 0
        for task in (proc / "task").iterdir():
            for line in (task / "status").read_text().splitlines():
                if "voluntary_ctxt_switches" in line:
                    self.switches += int(line.split()[1])
        status = dict(line.split(":", 1) for line in (proc / "status").read_text().splitlines())
        self.rss = int(status["VmRSS"].split()[0]) / 1024
        self.private = int(status["RssAnon"].split()[0]) / 1024


def end(pids, signals=(signal.SIGTERM, signal.SIGKILL)):
    """One signal after the other for what is left, and waits for all. (Process 1 of a PID namespace
    does not obey SIGTERM.)"""
    for number in signals:
        for pid in pids:
            os.kill(pid, number)
        pids = wait_all(pids, PATIENCE)
        if not pids:
            return


def wait_all(pids, seconds):
    left = set(pids)
    signal.signal(signal.SIGALRM, lambda *_: (_ for _ in ()).throw(TimeoutError()))
    signal.alarm(seconds)
    try:
        while left:
            left.discard(os.wait()[0])
    except (TimeoutError, ChildProcessError):
        pass
    finally:
        signal.alarm(0)
    return left
