"""Linux namespaces that live as long as the process that made them: nothing gets a name outside, so
nothing is left when the tests end, however they end."""
import asyncio
import contextlib
import ctypes
import os
import pathlib
import signal
import socket
import subprocess
import threading

_LIBC = ctypes.CDLL(None, use_errno=True)
_PR_SET_PDEATHSIG = 1
_CLONE_NEWNET = 0x40000000
_CGROUPS = pathlib.Path("/sys/fs/cgroup")


def die_with_us(how=signal.SIGKILL):
    """For preexec_fn: the kernel ends this child when the thread that started it ends."""
    _LIBC.prctl(_PR_SET_PDEATHSIG, how)


def run(*command, **options):
    """The standard output of a program; its failure is an error with what it said."""
    done = subprocess.run(list(map(str, command)), capture_output=True, text=True, **options)
    if done.returncode != 0:
        raise RuntimeError(f"{' '.join(map(str, command))}: status {done.returncode}: "
                           f"{done.stderr.strip() or done.stdout.strip()}")
    return done.stdout


class Namespaces:
    """New namespaces ("net", "mount"), held by a process that ends with us."""

    def __init__(self, *kinds):
        flags = [f"--{kind}" for kind in kinds]
        if "mount" in kinds:
            flags += ["--propagation", "private"]
        self._holder = subprocess.Popen(
            ["unshare", *flags, "sh", "-c", "echo; exec cat"], stdin=subprocess.PIPE,
            stdout=subprocess.PIPE, preexec_fn=die_with_us,
            start_new_session=True)  # Ctrl-C is for us: we end it
        if not self._holder.stdout.readline():
            raise RuntimeError(f"unshare {' '.join(flags)} failed")
        self._kinds = kinds
        self.pid = self._holder.pid

    @property
    def net(self):
        return f"/proc/{self.pid}/ns/net"

    def path(self, path):
        """How a path of the mount namespace is reached from outside of it."""
        return pathlib.Path(f"/proc/{self.pid}/root{path}")

    def enter(self, *command):
        """The words that run a program inside."""
        return ["nsenter", "-t", str(self.pid), *(f"--{kind}" for kind in self._kinds), "--",
                *map(str, command)]

    def run(self, *command, **options):
        return run(*self.enter(*command), **options)

    def close(self):
        self._holder.stdin.close()
        self._holder.stdout.close()
        self._holder.wait()


def listener_in(net, address):
    """A listening socket in that network namespace. Only a thread of its own changes namespaces."""
    made = []

    def listen():
        with open(net, "rb") as namespace:
            if _LIBC.setns(namespace.fileno(), _CLONE_NEWNET) != 0:
                made.append(OSError(ctypes.get_errno(), f"setns {net}"))
                return
        try:
            made.append(socket.create_server(address))
        except OSError as error:
            made.append(error)
    thread = threading.Thread(target=listen)
    thread.start()
    thread.join()
    if isinstance(made[0], OSError):
        raise made[0]
    return made[0]


class Relay:
    """Carries connections from an address in a network namespace to a port of 127.0.0.1 here."""

    def __init__(self, net, address, port):
        self._net, self._address, self._port = net, address, port
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)
        self._thread.start()
        self._server = None
        self._tasks = set()

    def open(self):
        """From now on somebody listens."""
        if self._server is None:
            self._call(self._open(listener_in(self._net, self._address)))

    def shut(self):
        """From now on nobody does: connections are refused, and those there are end."""
        self._call(self._shut())

    def close(self):
        self.shut()
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    def _call(self, coroutine):
        asyncio.run_coroutine_threadsafe(coroutine, self._loop).result()

    async def _open(self, listener):
        self._server = await asyncio.start_server(self._serve, sock=listener)

    async def _shut(self):
        if self._server:
            self._server.close()
            self._server = None
        tasks = list(self._tasks)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def _serve(self, reader, writer):
        task = asyncio.current_task()
        self._tasks.add(task)
        try:
            with contextlib.suppress(OSError):
                await self._carry(reader, writer)
        finally:
            self._tasks.discard(task)
            writer.transport.abort()

    async def _carry(self, reader, writer):
        far_reader, far_writer = await asyncio.open_connection("127.0.0.1", self._port)
        ways = [asyncio.create_task(_copy(reader, far_writer)),
                asyncio.create_task(_copy(far_reader, writer))]
        try:
            await asyncio.wait(ways, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for way in ways:
                way.cancel()
            far_writer.transport.abort()


async def _copy(reader, writer):
    while data := await reader.read(65536):
        writer.write(data)
        await writer.drain()


class Cgroup:
    """A cgroup of that name below our own, in each hierarchy that systemd uses. Where none can be made
    (read-only), the processes stay where they are."""

    def __init__(self, name):
        self._groups = []
        for line in pathlib.Path("/proc/self/cgroup").read_text().splitlines():
            _, controllers, path = line.split(":", 2)
            base = {"": _unified(), "name=systemd": _CGROUPS / "systemd"}.get(controllers)
            if base and (base / "cgroup.procs").exists():
                self._groups.append(base / path.lstrip("/") / name)
        for group in self._groups:
            with contextlib.suppress(OSError):
                group.mkdir()

    def join(self):
        """For preexec_fn."""
        for group in self._groups:
            with contextlib.suppress(OSError):
                (group / "cgroup.procs").write_text("0")

    def remove(self):
        """With what was made below; its processes have ended."""
        for group in self._groups:
            for below, _, _ in os.walk(group, topdown=False):
                with contextlib.suppress(OSError):
                    os.rmdir(below)


def _unified():
    hybrid = _CGROUPS / "unified"
    return hybrid if hybrid.exists() else _CGROUPS
