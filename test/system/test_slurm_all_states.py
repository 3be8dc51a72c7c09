"""Every state that a real Slurm can be driven into, of the machine's own release and of others: the
conditions, their reasons, Slurm's own words and Events. (With jobs: test_state_matrix.py.)"""
import getpass
import re

import pytest

from harness.api import SLURM_CORE, condition, slurm_states

NODE = "n1"
REASON = 'fan 2 of "psu1" is loud'
FALSE = {"Fail": "NotFailing", "Drain": "NotDrained", "Maintenance": "NotInMaintenance",
         "NotResponding": "Responding", "InvalidReg": "ValidRegistration"}  # others: Not and the name

# state of test/lab/slurmcluster: ({condition that is True: its reason}, Slurm's words)
STATES = {
    "idle": ({"Idle": "Idle"}, "IDLE"),
    # Before all that have a reason: 24.11 keeps an old one and does not say its own then.
    "inval": ({"Unknown": "Unknown", "Drain": "Drained", "InvalidReg": "InvalidReg"},
              r"UNKNOWN\+DRAIN\+INVALID_REG"),
    "allocated": ({"Allocated": "Allocated"}, "ALLOCATED"),
    "draining": ({"Mixed": "Mixed", "Drain": "Draining"}, r"(MIXED|ALLOCATED)\+DRAIN"),
    "drained": ({"Idle": "Idle", "Drain": "Drained"}, r"IDLE\+DRAIN"),
    "down": ({"Down": "Down"}, "DOWN"),
    "fail": ({"Idle": "Idle", "Fail": "Fail"}, r"IDLE\+FAIL"),
    "maintenance": ({"Idle": "Idle", "Maintenance": "Maintenance", "Reserved": "Reserved"},
                    r"IDLE\+MAINTENANCE\+RESERVED"),
    "reserved": ({"Idle": "Idle", "Reserved": "Reserved"}, r"IDLE\+RESERVED"),
    "planned": ({"Idle": "Idle"}, r"IDLE\+PLANNED"),  # no condition: it flips at each backfill
    "reboot_requested": ({"Mixed": "Mixed", "RebootRequested": "RebootRequested"},
                         r"(MIXED|ALLOCATED)\+REBOOT_REQUESTED"),
    "reboot_issued": ({"Down": "Down", "Drain": "Drained", "RebootIssued": "RebootIssued"},
                      r"DOWN\+DRAIN\+REBOOT_ISSUED"),
    "not_responding": ({"Idle": "Idle", "NotResponding": "NotResponding"},
                       r"IDLE\+NOT_RESPONDING"),
    # One way there is through the others: in this order each is met once.
    "powering_down": ({"Idle": "Idle", "PoweringDown": "PoweringDown"}, r"IDLE\+POWERING_DOWN"),
    "powered_down": ({"Idle": "Idle", "PoweredDown": "PoweredDown"}, r"IDLE\+POWERED_DOWN"),
    "powering_up": ({"Idle": "Idle", "NotResponding": "NotResponding",
                     "PoweringUp": "PoweringUp"}, r"IDLE\+NOT_RESPONDING\+POWERING_UP"),
}
# Where the reason stands, and how the message ends.
WITH_REASON = {"draining": ("Drain", "; 1 job is still running"), "drained": ("Drain", "; no jobs are running"),
               "down": ("Down", ""), "fail": ("Fail", "")}


@pytest.fixture(scope="module", name="rig")
def rig_of_release(slurm_root, own_slurm, rig_of):
    """A node of a cluster of two (planned needs the second), its daemon running."""
    slurm = own_slurm(nodes=[NODE, "n2"], cpus=2, gpus="a100:4", cluster_name="alps", root=slurm_root,
                      power_save=True)
    rig = rig_of(slurm)
    rig.configure(slurm={"nodeName": NODE})
    rig.start_and_know()
    return rig


@pytest.mark.parametrize("state", STATES)
def test_state(rig, state):
    conditions, words = STATES[state]
    reach(rig, state)
    node = rig.wait(lambda node: node and slurm_states(node) == set(conditions) and re.fullmatch(
        words, node["metadata"]["annotations"]["slurmlet.io/slurm-state"]))
    for name, reason in conditions.items():
        assert condition(node, "SlurmNodeState" + name)["reason"] == reason
    for name in set(SLURM_CORE) - set(conditions):
        found = condition(node, "SlurmNodeState" + name)
        assert (found["status"], found["reason"]) == ("False", FALSE.get(name, "Not" + name))
        assert REASON not in found["message"]
    # Of the others none stays that is not so.
    shown = {entry["type"] for entry in node["status"]["conditions"] if entry["type"].startswith("SlurmNodeState")}
    assert shown == {"SlurmNodeState" + name for name in {*SLURM_CORE, *conditions}}
    # Ready follows slurmd, whatever Slurm says; not_responding is made by stopping it, and that it
    # goes on is seen later than by slurmctld.
    if state != "not_responding":
        rig.wait_condition("Ready", "True")
    if state == "inval":  # "gres/gpu count reported lower than configured (3 < 4)"
        message = condition(node, "SlurmNodeStateInvalidReg")["message"]
        assert re.search(r"gres/gpu count .*\(3 < 4\)", message)
    if state in WITH_REASON:
        name, end = WITH_REASON[state]
        message = condition(node, "SlurmNodeState" + name)["message"]
        assert f'"{REASON}"' in message and " by " + getpass.getuser() in message and message.endswith(end)
        assert re.search(r"since \d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ", message)
        assert node["metadata"]["annotations"]["slurmlet.io/slurm-reason"] == REASON


def reach(rig, state):
    """Brings Slurm's node into the state; one on its way through the power states goes on."""
    now = rig.slurm.node_state(NODE)
    if state == "powered_down" and "POWERING_DOWN" in now:
        return
    if state == "powering_up" and "POWERED_DOWN" in now:
        rig.slurm.command("scontrol", "update", f"nodename={NODE}", "state=power_up")
        return
    if rig.slurm.node_state("n2") != ["IDLE"]:
        rig.slurm.reset("n2")  # planned has made it busy
    rig.slurm.set_state(NODE, state, REASON)


def test_future_node_is_not_in_slurm(rig):
    rig.slurm.set_state(NODE, "future")
    rig.wait_condition("SlurmNodeStateDrain", "Unknown", "NotInSlurm")
    rig.wait_condition("Ready", "True")
    rig.slurm.reset(NODE)
    rig.wait(lambda node: slurm_states(node) == {"Idle"})


def test_job_shows_in_counts(rig):
    rig.slurm.submit(NODE, "--ntasks=1", "--gres=gpu:2")
    rig.wait(lambda node: slurm_states(node) == {"Mixed"} and
             node["metadata"]["annotations"].get("slurmlet.io/slurm-jobs") == "1" and
             node["metadata"]["annotations"].get("slurmlet.io/slurm-gres-used") == "gpu:a100:2")
    rig.slurm.reset(NODE)
    rig.wait(lambda node: node["metadata"]["annotations"]["slurmlet.io/slurm-jobs"] == "0"
             and slurm_states(node) == {"Idle"})


def test_events_of_the_changes(rig):
    for reason in ("SlurmDraining", "SlurmDrained", "SlurmUndrained", "SlurmDown", "SlurmUp", "SlurmFailing",
                   "SlurmMaintenance"):
        rig.wait_event(reason)
    described = rig.plane.kubectl_output("describe", "node", rig.name)
    assert re.search(r"Warning\s+SlurmDrain(ed|ing)\s.*slurmlet", described)
