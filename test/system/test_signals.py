"""SIGTERM and SIGHUP."""
import json
import os
import signal
import subprocess
import time

import pytest

from harness.api import condition
from harness.daemon import BINARY
from harness.rig import GENERAL_WAIT, wait_until


def test_sigterm_ends_at_once_and_writes_nothing(rig, timing):
    """On a busy machine it waits two seconds for systemctl, which tells whether the host stops."""
    rig.start_and_know()
    stopped_at = time.time()
    seconds = rig.stop()
    timing("SIGTERM to end", seconds)
    assert seconds < 4
    assert rig.audit.object_writes(stopped_at) == []
    assert condition(rig.node(), "Ready")["status"] == "True"


def test_sigterm_exits_with_zero(rig):
    rig.start()
    rig.daemon.signal(signal.SIGTERM)
    assert rig.daemon.process.wait(GENERAL_WAIT) == 0


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


# -- SIGHUP --------------------------------------------------------------------------------


def test_sighup_reads_the_configuration_again(rig):
    rig.configure(node={"labels": {"site.example/rack": "r7"}})
    rig.start_and_know()
    before = rig.node()
    pid, lease = rig.daemon.pid, rig.wait_renewed()
    rig.configure(node={"labels": {"site.example/rack": "r8"}, "readyFollows": "daemon"})
    rig.daemon.signal(signal.SIGHUP)
    node = rig.wait(lambda node: node["metadata"]["labels"]["site.example/rack"] == "r8" and
                    condition(node, "Ready").get("reason") == "SlurmletRunning")
    assert node["metadata"]["uid"] == before["metadata"]["uid"]
    assert condition(node, "Ready")["lastTransitionTime"] == condition(
        before, "Ready")["lastTransitionTime"]
    renewed = rig.wait_renewed(lease["spec"]["renewTime"])
    assert renewed["metadata"]["uid"] == lease["metadata"]["uid"]
    assert rig.daemon.pid == pid and rig.daemon.process.poll() is None
    assert "SIGHUP: configuration reloaded" in rig.log()


def test_sighup_with_a_broken_configuration_changes_nothing(rig, idle_slurm):
    rig.start_and_know()
    good = rig.config_path.read_text()
    rig.config_path.write_text(good.replace('"pollInterval"', '"polInterval"'))
    rig.daemon.signal(signal.SIGHUP)
    rig.wait_log("SIGHUP: the new configuration is rejected; the old one stays in use")
    assert 'unknown key "slurm.polInterval"; did you mean "slurm.pollInterval"?' in rig.log()
    idle_slurm.set_state("nid000001", "drained", "goes on")
    rig.wait_condition("SlurmNodeStateDrain", "True")
    assert rig.daemon.process.poll() is None


def test_sighup_with_a_configuration_that_does_not_start_changes_nothing(rig):
    """Well written, but of this machine it is not true; so not known before it is tried."""
    rig.start_and_know()
    pid, renewed = rig.daemon.pid, rig.wait_renewed()["spec"]["renewTime"]
    rig.configure(node={"name": "somebody-else"})
    rig.daemon.signal(signal.SIGHUP)
    rig.wait_log("slurmlet cannot start with the new configuration; the old one stays in use")
    rig.wait_renewed(renewed)
    assert rig.daemon.pid == pid and rig.daemon.process.poll() is None


def test_sighup_on_a_machine_with_another_name_keeps_the_nodes(rig):
    """As a kubelet does until it is restarted; and the credential may name no node that could tell."""
    def reload(name, rack):
        rig.config["node"]["labels"] = {"site.example/rack": rack}
        rig.config_path.write_text(json.dumps(rig.config))
        rig.metadata_path.write_text(metadata.replace(rig.name, name))
        rig.daemon.signal(signal.SIGHUP)
        return rig.wait(lambda node: node["metadata"]["labels"].get("site.example/rack") == rack)
    del rig.config["node"]["name"]
    rig.config_path.write_text(json.dumps(rig.config))
    rig.provision("5d1f0c4e-signals", with_provider_id=False)
    metadata = rig.metadata_path.read_text()
    rig.start_and_know()
    pid, uid = rig.daemon.pid, rig.node()["metadata"]["uid"]
    node = reload("renamed", "r7")
    assert f"Node {rig.name} keeps its name until slurmlet is restarted" in rig.log()
    assert node["metadata"]["uid"] == uid
    rig.wait_next_renewal()
    reload(rig.name, "r8")
    assert rig.daemon.pid == pid and rig.daemon.process.poll() is None
    assert rig.admin.find("/api/v1/nodes/renamed") is None


def test_sighup_while_the_api_server_hangs_is_obeyed_between_two_calls(rig, plane):
    """A call takes ten seconds; the configuration is looked at before the next one."""
    rig.start_and_know()
    plane.ctl("pause", "kube-apiserver")
    try:
        rig.daemon.signal(signal.SIGHUP)
        rig.wait_log("SIGHUP: configuration reloaded")
        rig.config_path.write_text("{")
        began = time.monotonic()
        rig.daemon.signal(signal.SIGHUP)
        rig.wait_log("SIGHUP: the new configuration is rejected; the old one stays in use")
        assert time.monotonic() - began < 5
    finally:
        plane.ctl("resume", "kube-apiserver")
    rig.wait_next_renewal()


def test_the_state_directory_stays_locked_however_a_reload_writes_its_path(rig):
    arguments = ["--kubeconfig", rig.kubeconfig, "--config", rig.config_path, "--metadata",
                 rig.metadata_path]
    link = rig.directory / "link"
    link.symlink_to(rig.state_dir)
    rig.configure(stateDir=str(rig.state_dir))
    rig.start(arguments)
    for count, path in enumerate((f"{rig.state_dir}/", link, rig.state_dir), start=2):
        rig.configure(stateDir=str(path))
        rig.daemon.signal(signal.SIGHUP)
        wait_until(lambda: rig.log().count(f"node {rig.name}, API server ") >= count)
        second = subprocess.run([BINARY, *arguments[:2], "--nodename", "another", "--state-dir", rig.state_dir],
                                capture_output=True, text=True, timeout=GENERAL_WAIT, check=False)
        assert second.returncode == 1
        assert "slurmlet is already running with the state directory" in second.stderr


def test_sighup_leaves_nothing_behind(rig):
    """Descriptors and threads do not grow with reloads. A few come and go: two watches that open
    after the Node is adopted, the pipes of a sinfo."""
    def resources():
        process = f"/proc/{rig.daemon.pid}"
        return len(os.listdir(process + "/fd")), len(os.listdir(process + "/task"))

    def reload(count):
        rig.daemon.signal(signal.SIGHUP)
        wait_until(lambda: rig.log().count("belongs to this machine; adopted") >= count)
        renewals = rig.wait_renewed()["spec"]["renewTime"]
        assert renewals
    rig.start_and_know()
    reload(1)
    descriptors, threads = resources()
    for count in range(2, 12):
        reload(count)
    wait_until(lambda: resources()[0] <= descriptors + 5 and resources()[1] == threads,
               what=f"{resources()} to be about {descriptors, threads}")
