"""Holds slurmlet-operator at one step, so that a test may end it there: a proxy before the API server and Slurm's
programs, each replaced by a script. A step is a request, or the command line of a program, that has this text; it is
held before it is done, or after, when whoever asked has no answer yet."""
import os
import pathlib
import shlex
import shutil
import types

from .slow_front import SlowFront

NEVER = 3600  # seconds
PROGRAMS = ["scontrol", "sinfo", "squeue", "scancel"]
# Whoever is held waits for a writer of the FIFO, who never comes, until its caller's end or time limit.
SCRIPT = """#!/bin/sh
read -r when text < {stop}
case "$*" in *"$text"*) ;; *) when= ;; esac
[ "$when" != before ] || {{ : > {reached}; read -r _ < {held}; exit 1; }}
{program} "$@"
code=$?
[ "$when" != after ] || {{ : > {reached}; read -r _ < {held}; }}
exit $code
"""


class Turnstile(SlowFront):
    """`account`, whose requests go through it, as a context; also an account for a Site. Give the Site's operators
    --slurm-bin-dir=`programs`."""

    def __init__(self, plane, account, directory):
        directory = pathlib.Path(directory)
        directory.mkdir()
        client = types.SimpleNamespace(plane=plane, directory=directory, kubeconfig=account.kubeconfig(directory))
        super().__init__(client)
        self._kubeconfig_path = client.kubeconfig
        self._stop, self._reached = directory / "stop", directory / "reached"
        self._when = self._text = None
        self.let_all()
        self.programs = directory / "bin"
        self._replace_programs(directory / "held")

    def _replace_programs(self, held):
        os.mkfifo(held)
        self.programs.mkdir()
        for name in PROGRAMS:
            program = self.programs / name
            program.write_text(SCRIPT.format(program=shutil.which(name), **{
                key: shlex.quote(str(path))
                for key, path in {"stop": self._stop, "reached": self._reached, "held": held}.items()}))
            program.chmod(0o755)

    def kubeconfig(self, _):
        return self._kubeconfig_path

    def stop_at(self, when, text):
        """`when`: "before" or "after"."""
        self._reached.unlink(missing_ok=True)
        self._when, self._text = when, text.encode()
        new = self._stop.with_suffix(".new")
        new.write_text(f"{when} {text}\n")
        new.rename(self._stop)  # who reads it meanwhile has the old one

    def let_all(self):
        self.stop_at("never", "")

    def is_reached(self):
        return self._reached.exists()

    def wait_of(self, request):
        if self._when != "before" or self._text not in request:
            return 0
        self._reached.touch()
        return NEVER

    def keeps_answer(self, request):
        if self._when != "after" or self._text not in request:
            return False
        self._reached.touch()
        return True
