"""slurmd's life and death, seen by a real daemon beside it."""
import os
import signal
import time

import pytest

from harness.api import condition, wait_condition
from harness.rig import GENERAL_WAIT

SLURM_NODE = "nid000001"
SLURMD = "slurmd:" + SLURM_NODE


@pytest.fixture(autouse=True)
def slurm_after(idle_slurm):
    """Every test begins and ends with a running slurmd and an idle node."""
    return idle_slurm


def seconds_until(rig, type_name, status):
    return wait_condition(rig.admin, rig.name, type_name, status, GENERAL_WAIT)[1]


def test_killed_slurmd_shows_within_seconds_and_ready_follows_after_the_grace(shared_rig, timing):
    began = time.monotonic()
    os.kill(shared_rig.slurm.pid(SLURMD), signal.SIGKILL)
    seconds = seconds_until(shared_rig, "SlurmdReady", "False")
    timing("kill -9 slurmd to SlurmdReady=False", seconds)
    assert seconds < 5
    assert shared_rig.condition("SlurmdReady")["reason"] == "SlurmdNotRunning"

    ready = shared_rig.wait_condition("Ready", "False")
    passed = time.monotonic() - began
    timing("kill -9 slurmd to Ready=False (grace 2 s)", passed)
    assert ready["reason"] == "SlurmdNotRunning"
    assert passed > 1.9


def test_quick_restart_leaves_ready_true(rig):
    rig.configure(node={"notReadyGracePeriod": "20s"})  # quick for a busy machine
    rig.start_and_know()
    before = rig.condition("Ready")["lastTransitionTime"]
    pid = rig.slurm.pid(SLURMD)
    rig.slurm.daemon("kill", SLURMD)
    rig.wait_condition("SlurmdReady", "False")
    rig.slurm.daemon("start", SLURMD)
    rig.wait_condition("SlurmdReady", "True")
    ready = rig.wait_condition("Ready", "True", "SlurmdRunning")
    assert rig.slurm.pid(SLURMD) != pid
    assert ready["lastTransitionTime"] == before


def test_stopped_slurmd_is_told_from_a_dead_one(shared_rig, timing):
    began = time.monotonic()
    shared_rig.slurm.daemon("pause", SLURMD)
    found = shared_rig.wait_condition("SlurmdReady", "False", "SlurmdStopped")
    timing("SIGSTOP of slurmd to SlurmdStopped", time.monotonic() - began)
    assert "SIGSTOP" in found["message"]
    shared_rig.wait_condition("Ready", "False", "SlurmdStopped")
    # Its end is seen at once again.
    shared_rig.slurm.daemon("kill", SLURMD)
    shared_rig.wait_condition("SlurmdReady", "False", "SlurmdNotRunning")
    shared_rig.slurm.daemon("start", SLURMD)
    shared_rig.wait_condition("Ready", "True")


@pytest.mark.parametrize("reason", ["SlurmdNotRunning", "SlurmdRunning", "NodeNotReady",
                                    "NodeReady"])
def test_events_of_slurmd_s_life(shared_rig, reason):
    shared_rig.wait_event(reason)


# -- node.readyFollows ---------------------------------------------------------------


def test_ready_follows_slurm_down(rig):
    rig.configure(node={"readyFollows": "slurm"})
    rig.start_and_know()
    rig.slurm.set_state(SLURM_NODE, "down", "psu")
    ready = rig.wait_condition("Ready", "False", "SlurmDown")
    assert '"psu"' in ready["message"]
    rig.slurm.set_state(SLURM_NODE, "drained", "later")
    rig.wait_condition("SlurmNodeStateDrain", "True")
    assert rig.condition("Ready")["status"] == "True"


def test_restart_of_the_daemon_keeps_slurm_s_verdict(rig):
    """It must not make a DOWN node ready for the moment until slurmctld has answered."""
    rig.configure(node={"readyFollows": "slurm"})
    rig.slurm.set_state(SLURM_NODE, "down", "psu")
    rig.start_and_know(ready=False)
    before = rig.wait_condition("Ready", "False", "SlurmDown")
    rig.stop()
    rig.start(ready=False)
    rig.slurm.command("scontrol", "update", f"nodename={SLURM_NODE}", "reason=fan")

    def answered(node):  # with Ready False up to here
        assert condition(node, "Ready")["status"] == "False"
        return '"fan"' in condition(node, "Ready")["message"]
    after = condition(rig.wait(answered), "Ready")
    assert after["lastTransitionTime"] == before["lastTransitionTime"]


def test_ready_follows_daemon_without_slurmd(rig):
    rig.configure(node={"readyFollows": "daemon", "notReadyGracePeriod": "0s"})
    rig.start_and_know()
    rig.slurm.daemon("kill", SLURMD)
    rig.wait_condition("SlurmdReady", "False")
    assert rig.condition("Ready")["status"] == "True"
    assert rig.condition("Ready")["reason"] == "SlurmletRunning"


def test_node_started_without_slurmd_is_registered_but_not_ready(rig):
    rig.slurm.daemon("kill", SLURMD)
    rig.start(ready=False)
    rig.wait_condition("Ready", "False", "SlurmdNotRunning")
    rig.slurm.daemon("start", SLURMD)
    rig.wait_condition("Ready", "True")
