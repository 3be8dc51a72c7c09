"""What a service manager hears of the daemon, and what it gives it."""
import contextlib
import ctypes
import json
import os
import pathlib
import re
import shutil
import signal
import subprocess
import time

import pytest

from harness.api import condition
from harness.rig import GENERAL_WAIT, wait_until
from harness.service_manager import ServiceManager

SLURMD = "slurmd:nid000001"


@pytest.fixture(name="manager")
def listening_manager(rig):
    with ServiceManager(rig.directory / "notify") as listening:
        os.chmod(listening.path, 0o777)
        rig.environment.update(listening.environment())
        yield listening


def past_the_start(message):
    """The lease thread, which is first, may have said that it starts."""
    return message.get("STATUS") != "slurmlet: starting"


def test_ready_comes_before_the_api_server_answers(rig, manager):
    """An API server that is away must not hold up the boot; the line says what is missing."""
    text, count = re.subn(r"server: \S+", "server: https://127.0.0.1:1", rig.kubeconfig.read_text())
    assert count == 1
    away = rig.directory / "away"
    away.write_text(text)
    away.chmod(0o644)
    arguments = rig.arguments()
    arguments[1] = away
    rig.start(arguments, ready=False)
    assert manager.wait(past_the_start, GENERAL_WAIT) == {"READY": "1"}
    line = manager.wait_status("does not answer")["STATUS"]
    assert line.startswith(f"{rig.name}: not registered: API server https://127.0.0.1:1 does not "
                           "answer (connection refused); ")


def test_without_an_api_server_it_waits_for_one(rig, manager):
    """As the package is installed: no failure, and what is written later is taken up at once."""
    arguments = [each for each in rig.arguments() if each not in ("--kubeconfig", rig.kubeconfig)]
    rig.start(arguments, ready=False)
    line = manager.wait_status("waiting for configuration")
    assert line["READY"] == "1" and "slurmlet join" in line["STATUS"]
    site = rig.config_path.with_suffix(".d") / "10-site.yaml"
    site.parent.mkdir()
    site.write_text("kubernetes: {}\nkind: SlurmletConfiguration\n")
    assert "READY" in manager.wait_status(f"{site}")  # named, and waited out
    site.write_text(json.dumps({"apiVersion": rig.config["apiVersion"], "kind": rig.config["kind"],
                                "kubernetes": {"kubeconfig": str(rig.kubeconfig)}}))
    rig.wait_condition("Ready", "True")
    assert rig.log().count("no API server is configured") == 1


def test_it_stops_while_it_waits_for_configuration(rig, manager):
    arguments = [each for each in rig.arguments() if each not in ("--kubeconfig", rig.kubeconfig)]
    rig.start(arguments, ready=False)
    manager.wait_status("waiting for configuration")
    rig.daemon.signal(signal.SIGTERM)
    assert rig.daemon.process.wait(GENERAL_WAIT) == 0


def test_the_line_tells_the_life_of_the_node(rig, manager):
    # A line beyond the third in a minute waits for the next ping.
    rig.environment.update(manager.environment(watchdog_seconds=5))
    rig.start_and_know()
    assert manager.wait(past_the_start, GENERAL_WAIT) == {"READY": "1"}
    line = manager.wait_status("Slurm IDLE")["STATUS"]
    assert line.startswith(f"{rig.name}: Ready, Slurm IDLE, lease ")
    rig.daemon.signal(signal.SIGTERM)
    assert manager.wait(lambda message: "STOPPING" in message) == {"STOPPING": "1"}
    assert rig.daemon.process.wait(GENERAL_WAIT) == 0


def test_a_refused_configuration_is_the_status(rig, manager):
    rig.configure(slurm={"polInterval": "1s"})
    rig.start(ready=False)
    line = manager.wait_status("unknown key")["STATUS"]
    assert str(rig.config_path) in line and "slurm.pollInterval" in line
    assert rig.daemon.process.wait(GENERAL_WAIT) == 2
    assert all("READY" not in message for message in manager.seen)


def test_children_inherit_nothing_of_the_manager(rig, manager):
    """scontrol must not speak for the daemon."""
    programs = rig.directory / "bin"
    programs.mkdir()
    seen = rig.directory / "seen"
    seen.mkdir()
    seen.chmod(0o777)
    script = programs / "scontrol"
    script.write_text(f'#!/bin/sh\nenv > {seen}/$$ && mv {seen}/$$ {seen}/done\n'
                      f'exec {shutil.which("scontrol")} "$@"\n')
    script.chmod(0o755)
    rig.configure(slurm={"binDir": str(programs), "source": "scontrol"})
    rig.environment.update(manager.environment(watchdog_seconds=60),
                           CREDENTIALS_DIRECTORY=str(rig.directory))
    rig.start_and_know()
    names = {line.split("=", 1)[0] for line in (seen / "done").read_text().splitlines()}
    assert "PATH" in names
    assert not names & {"NOTIFY_SOCKET", "WATCHDOG_USEC", "WATCHDOG_PID", "CREDENTIALS_DIRECTORY"}


def test_a_kubeconfig_may_come_as_a_credential(rig):
    credentials = rig.directory / "credentials"
    credentials.mkdir(mode=0o755)
    shutil.copy(rig.kubeconfig, credentials / "slurmlet.kubeconfig")
    shutil.chown(credentials / "slurmlet.kubeconfig", rig.user or "root")
    rig.environment["CREDENTIALS_DIRECTORY"] = str(credentials)
    rig.start(rig.arguments()[2:])
    assert condition(rig.node(), "Ready")["status"] == "True"


@contextlib.contextmanager
def frozen(thread):
    """One thread of a process held still, as a hang would, while the others run (ptrace(2))."""
    libc = ctypes.CDLL(None, use_errno=True)
    libc.ptrace.argtypes = [ctypes.c_ulong, ctypes.c_ulong, ctypes.c_void_p, ctypes.c_void_p]
    seize, interrupt, detach = 0x4206, 0x4207, 17

    def call(request):
        if libc.ptrace(request, thread, None, None) != 0:
            raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))

    try:
        call(seize)
    except PermissionError:
        pytest.skip("threads of others may not be traced here")
    call(interrupt)
    os.waitpid(thread, 0x40000000)  # __WALL
    try:
        yield
    finally:
        call(detach)


def threads(pid):
    return sorted(int(entry.name) for entry in pathlib.Path(f"/proc/{pid}/task").iterdir())


@pytest.mark.slow
@pytest.mark.parametrize("which", ["main", "lease"])
def test_a_loop_that_hangs_ends_the_pings(rig, manager, which):
    """Whichever of the two loops it is: the other one is alive and does not cover for it."""
    rig.environment.update(manager.environment(watchdog_seconds=3))
    rig.configure(kubernetes={"leaseDuration": "10s"})
    rig.start_and_know()
    pinged = {"WATCHDOG": "1"}.items() <= manager.wait(lambda m: "WATCHDOG" in m).items()
    assert pinged
    own = threads(rig.daemon.pid)  # the lease thread is the first of the others, which come and go
    with frozen(own[0] if which == "main" else own[1]):
        quiet_since = time.monotonic()
        deadline = quiet_since + 2 * GENERAL_WAIT
        while time.monotonic() - quiet_since < 12:
            message = manager.next(1)
            if message and "WATCHDOG" in message:
                quiet_since = time.monotonic()
            assert time.monotonic() < deadline, manager.seen[-10:]
    manager.wait(lambda message: "WATCHDOG" in message)


def test_all_threads_allocate_from_one_arena(rig, idle_slurm):
    """glibc gives a second thread its own arena unless M_ARENA_MAX is set before it starts."""
    rig.start_and_know()
    alignment = 64 << 20  # of every arena but the first, which is [heap]
    maps = pathlib.Path(f"/proc/{rig.daemon.pid}/maps").read_text()
    # The used part of an arena, and behind it what it may grow into.
    arenas = re.findall(r"^(\w+)-(\w+) rw-p .*\n\2-\w+ ---p", maps, re.M)
    assert "[heap]" in maps and [at for at, _ in arenas if int(at, 16) % alignment == 0] == []
