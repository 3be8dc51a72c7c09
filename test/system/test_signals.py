"""SIGTERM, SIGHUP and restarts."""
import os
import signal
import time

import pytest

from harness.api import condition
from harness.rig import GENERAL_WAIT


def test_sigterm_ends_at_once_and_writes_nothing(rig, timing):
    """On a busy machine it waits two seconds for systemctl, which tells whether the host stops."""
    rig.start_and_know()
    stopped_at = time.time()
    process, seconds = rig.daemon.process, rig.stop()
    timing("SIGTERM to end", seconds)
    assert process.returncode == 0
    assert seconds < 4
    assert rig.audit.object_writes(stopped_at) == []
    assert condition(rig.node(), "Ready")["status"] == "True"


def test_sigterm_while_the_api_server_hangs(rig, plane, timing):
    rig.start_and_know()
    plane.ctl("pause", "kube-apiserver")
    try:
        # A change, so that the daemon is in the middle of a call.
        rig.slurm.daemon("kill", "slurmd:nid000001")
        seconds = rig.stop()
    finally:
        plane.ctl("resume", "kube-apiserver")
        rig.slurm.daemon("start", "slurmd:nid000001")
    timing("SIGTERM to end, API server paused", seconds)
    assert seconds < 2


def test_sigterm_at_once_after_the_start(rig):
    rig.start(ready=False)
    rig.daemon.signal(signal.SIGTERM)
    assert rig.daemon.process.wait(GENERAL_WAIT) in (0, -signal.SIGTERM)


@pytest.fixture(name="stopping_host")
def systemctl_that_says_stopping(rig):
    """A host whose systemd is shutting down, as far as systemctl tells."""
    programs = rig.directory / "bin"
    programs.mkdir()
    script = programs / "systemctl"
    script.write_text('#!/bin/sh\n[ "$1" = is-system-running ] || exit 9\necho stopping\nexit 1\n')
    script.chmod(0o755)
    rig.environment["PATH"] = f"{programs}:{os.environ['PATH']}:/usr/sbin"
    return rig


def test_shutdown_of_the_host_is_told(stopping_host, timing):
    stopping_host.start_and_know()
    seconds = stopping_host.stop()
    ready = stopping_host.condition("Ready")
    timing("SIGTERM on host shutdown to end", seconds)
    assert (ready["status"], ready["reason"]) == ("False", "NodeShuttingDown")
    assert ready["message"] == "node is shutting down"
    assert seconds < 3
    # The next boot takes it back.
    del stopping_host.environment["PATH"]
    stopping_host.start()


def test_shutdown_of_the_host_while_the_api_server_hangs(stopping_host, plane):
    stopping_host.start_and_know()
    plane.ctl("pause", "kube-apiserver")
    try:
        assert stopping_host.stop() < 5
    finally:
        plane.ctl("resume", "kube-apiserver")
    assert "the Node could not be updated" in stopping_host.log()


# -- restart instead of reload ---------------------------------------------------------------


def test_sighup_is_logged_and_changes_nothing(rig):
    """A logrotate may send it to whatever runs."""
    rig.start_and_know()
    pid, before = rig.daemon.pid, rig.node()["metadata"]["uid"]
    rig.configure(node={"labels": {"site.example/rack": "r8"}})
    rig.daemon.signal(signal.SIGHUP)
    rig.wait_log("SIGHUP is ignored: the configuration is read at the start only; restart this program")
    rig.wait_next_renewal()
    assert rig.daemon.pid == pid and rig.daemon.process.poll() is None
    assert "site.example/rack" not in rig.node()["metadata"]["labels"]
    assert rig.node()["metadata"]["uid"] == before


def test_a_restart_brings_another_configuration(rig):
    rig.configure(node={"labels": {"site.example/rack": "r7"}})
    rig.start_and_know()
    before = rig.node()
    lease = rig.wait_renewed()
    rig.configure(node={"labels": {"site.example/rack": "r8"}, "readyFollows": "daemon"})
    rig.restart()
    node = rig.wait(lambda node: node["metadata"]["labels"]["site.example/rack"] == "r8" and
                    condition(node, "Ready").get("reason") == "SlurmletRunning")
    assert node["metadata"]["uid"] == before["metadata"]["uid"]
    assert condition(node, "Ready")["lastTransitionTime"] == condition(
        before, "Ready")["lastTransitionTime"]
    renewed = rig.wait_renewed(lease["spec"]["renewTime"])
    assert renewed["metadata"]["uid"] == lease["metadata"]["uid"]
