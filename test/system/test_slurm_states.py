"""What a Slurm state says in messages, annotations and events, and how it goes; made with a real
slurmctld. Every state there is: test_slurm_all_states.py."""
import getpass
import re

import pytest

from harness.api import condition, slurm_states
from harness.rig import GENERAL_WAIT

SLURM_NODE = "nid000001"
REASON = 'dimm 3 of "cpu1" is bad'

# state of test/lab/slurmcluster: (conditions that are True, the raw words)
STATES = {
    "idle": ({"Idle"}, "IDLE"),
    "draining": ({"Mixed", "Drain"}, r"(MIXED|ALLOCATED)\+DRAIN"),
    "drained": ({"Idle", "Drain"}, r"IDLE\+DRAIN"),
    "down": ({"Down"}, "DOWN"),
    "fail": ({"Idle", "Fail"}, r"IDLE\+FAIL"),
    "maintenance": ({"Idle", "Maintenance", "Reserved"}, r"IDLE\+MAINTENANCE\+RESERVED"),
    "reserved": ({"Idle", "Reserved"}, r"IDLE\+RESERVED"),
}
CORE = {"Idle", "Mixed", "Allocated", "Completing", "Drain", "Down", "Fail", "Maintenance",
        "NotResponding", "InvalidReg"}


@pytest.fixture(scope="module", autouse=True)
def idle_again(slurm):
    yield
    slurm.reset(SLURM_NODE)


@pytest.fixture(scope="module", name="seen")
def seen_states():
    """The Node of each state, for the tests after it: {state: Node}."""
    return {}


def reach(rig, state):
    """Brings the Slurm node into the state; returns the Node when it shows it."""
    rig.slurm.set_state(SLURM_NODE, state, REASON)
    return rig.wait(lambda node: node and slurm_states(node) == STATES[state][0])


@pytest.mark.parametrize("state", STATES)
def test_state(shared_rig, seen, state):
    node = seen[state] = reach(shared_rig, state)
    for name in CORE:
        expected = "True" if name in STATES[state][0] else "False"
        assert condition(node, "SlurmNodeState" + name).get("status") == expected, name
    raw = node["metadata"]["annotations"]["slurmlet.io/slurm-state"]
    assert re.fullmatch(STATES[state][1], raw)


@pytest.mark.parametrize("state,type_name,reason", [
    ("drained", "SlurmNodeStateDrain", "Drained"), ("draining", "SlurmNodeStateDrain", "Draining"),
    ("down", "SlurmNodeStateDown", "Down"), ("fail", "SlurmNodeStateFail", "Fail")])
def test_message_says_why_and_who(seen, state, type_name, reason):
    found = condition(seen[state], type_name)
    assert found["reason"] == reason
    assert f'"{REASON}"' in found["message"]
    assert " by " + getpass.getuser() in found["message"]
    assert re.search(r"since \d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ", found["message"])
    assert seen[state]["metadata"]["annotations"]["slurmlet.io/slurm-reason"] == REASON


def test_draining_says_that_jobs_are_running_and_drained_that_none_is(seen):
    assert condition(seen["draining"], "SlurmNodeStateDrain")["message"].endswith(
        "; 1 job is still running")
    assert condition(seen["drained"], "SlurmNodeStateDrain")["message"].endswith(
        "; no jobs are running")


def test_reason_goes_with_its_state(shared_rig):
    node = reach(shared_rig, "idle")
    for name in ("Drain", "Down", "Fail"):
        assert REASON not in condition(node, "SlurmNodeState" + name)["message"]


def test_flags_that_are_over_leave_no_condition(shared_rig, seen):
    assert condition(seen["reserved"], "SlurmNodeStateReserved")["status"] == "True"
    node = reach(shared_rig, "idle")
    for name in ("Reserved", "RebootRequested", "RebootIssued", "Unknown"):
        assert not condition(node, "SlurmNodeState" + name)


def test_drain_shows_within_seconds(shared_rig, timing):
    reach(shared_rig, "idle")
    shared_rig.slurm.command("scontrol", "update", f"nodename={SLURM_NODE}", "state=drain",
                             "reason=now")
    _, seconds = shared_rig.admin.wait(
        "/api/v1/nodes",
        lambda node, _: condition(node, "SlurmNodeStateDrain").get("status") == "True",
        GENERAL_WAIT, f"metadata.name={shared_rig.name}")
    timing("scontrol drain to condition (pollInterval 2 s)", seconds)


def test_job_shows_in_counts(shared_rig):
    reach(shared_rig, "idle")
    job = shared_rig.slurm.submit(SLURM_NODE, "--ntasks=1", "--gres=gpu:2")

    def busy(node):
        annotations = node["metadata"]["annotations"]
        return (annotations.get("slurmlet.io/slurm-jobs") == "1" and
                annotations.get("slurmlet.io/slurm-gres-used") == "gpu:a100:2")
    shared_rig.wait(busy)
    shared_rig.slurm.command("scancel", job)
    shared_rig.wait(lambda node: node["metadata"]["annotations"]["slurmlet.io/slurm-jobs"] == "0"
                    and slurm_states(node) == {"Idle"})


@pytest.mark.parametrize("reason", ["SlurmDraining", "SlurmDrained", "SlurmUndrained",
                                    "SlurmDown", "SlurmUp", "SlurmFailing", "SlurmMaintenance"])
def test_events_of_the_changes(shared_rig, reason):
    shared_rig.wait_event(reason)


def test_kubectl_describe_shows_the_drain(shared_rig):
    described = shared_rig.plane.kubectl_output("describe", "node", shared_rig.name)
    assert re.search(r"Warning\s+SlurmDrain(ed|ing)\s.*slurmlet", described)
