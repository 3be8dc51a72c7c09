"""Starts slurmlet for tests, as root or as an unprivileged user."""
import os
import pathlib
import pwd
import shutil
import signal
import subprocess
import time

from .api import repository

# Another build may be tested, say one with sanitizers.
BINARY = pathlib.Path(os.environ.get("SLURMLET_UNDER_TEST",
                                     repository() / "build/release/slurmlet"))


class Slurmlet:
    """One running daemon with its own state directory and log."""

    def __init__(self, directory, arguments, environment=None, user=None, program=None, sockets=()):
        self.directory = pathlib.Path(directory)
        self.directory.mkdir(parents=True, exist_ok=True)
        self.directory.chmod(0o755)
        self.log_path = self.directory / "slurmlet.log"
        command = [str(program or BINARY), *map(str, arguments)]
        if user:
            account = pwd.getpwnam(user)
            command = ["setpriv", f"--reuid={account.pw_uid}", f"--regid={account.pw_gid}",
                       "--clear-groups", "--inh-caps=-all", *command]
        env = {k: v for k, v in os.environ.items()
               if not k.startswith(("SLURM", "KUBE", "APISERVER_", "VKUBELET_"))}
        env.update(environment or {})
        fds = [each.fileno() for each in sockets]
        if fds:  # as sd_listen_fds(3) has it: from 3 on
            env["LISTEN_FDS"] = str(len(fds))
            moves = " ".join(f"{to}<&{fd} {fd}<&-" for to, fd in enumerate(fds, 3))
            command = ["bash", "-c", f'LISTEN_PID=$$ exec "$0" "$@" {moves}', *command]
        with open(self.log_path, "ab") as log:
            self.process = subprocess.Popen(command, env=env, stdout=log, stderr=log, pass_fds=fds)

    @property
    def pid(self):
        return self.process.pid

    def output(self):
        return self.log_path.read_text(errors="replace")

    def signal(self, number):
        self.process.send_signal(number)

    def stop(self, timeout=10):
        """SIGTERM; returns the seconds it took to end."""
        began = time.monotonic()
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
            try:
                self.process.wait(timeout)
            except subprocess.TimeoutExpired:
                self.process.kill()
                self.process.wait(60)
                raise
        return time.monotonic() - began

    def kill(self):
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.kill()


def readable_copy(path, directory, user):
    """A copy of a secret file that `user` alone may read."""
    target = pathlib.Path(directory) / pathlib.Path(path).name
    shutil.copyfile(path, target)
    account = pwd.getpwnam(user)
    os.chown(target, account.pw_uid, account.pw_gid)
    target.chmod(0o600)
    return target
