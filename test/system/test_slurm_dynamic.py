"""Nodes that slurm.conf does not name or names otherwise: dynamic ones, another NodeName than the
host's."""
import os
import subprocess

from harness.api import slurm_annotation, slurm_states


def topology():
    """This machine as slurm.conf writes it: a FUTURE node is taken by whom it describes."""
    printed = subprocess.run(["/usr/sbin/slurmd", "-C"], capture_output=True, text=True,
                             check=True).stdout
    words = [word for word in printed.split() if word.partition("=")[0] in (
        "SocketsPerBoard", "CoresPerSocket", "ThreadsPerCore")]
    return " ".join(words)


def start(rig):
    """The daemon learns the node's name by itself."""
    rig.start_and_know()
    return rig.node()


def test_dynamic_node_and_its_deletion(own_slurm, rig_of, slurm_root):
    """slurmd -Z; a deleted node is not in Slurm, and not called down."""
    slurm = own_slurm(nodes=["dyn7"], cpus=os.cpu_count(), root=slurm_root, dynamic=["dyn7"],
                      slurmd_arguments={"dyn7": ["-Z", "--conf", "Feature=dyn,big"]})
    rig = rig_of(slurm)
    node = start(rig)
    assert slurm_annotation(node, "node") == "dyn7"
    assert slurm_annotation(node, "features") == "dyn,big"
    assert slurm_annotation(node, "partitions") == "normal"
    assert slurm_states(node) >= {"Idle"}
    slurm.command("scontrol", "update", "nodename=dyn7", "state=drain", "reason=leaving")
    rig.wait_condition("SlurmNodeStateDrain", "True", "Drained")
    slurm.command("scontrol", "delete", "nodename=dyn7")
    rig.wait_condition("SlurmNodeStateDrain", "Unknown", "NotInSlurm")
    assert rig.condition("SlurmNodeStateDown")["status"] == "Unknown"
    assert rig.condition("SlurmdReady")["status"] == "True"
    # It joins again when its slurmd starts anew.
    slurm.daemon("restart", "slurmd:dyn7")
    rig.wait_condition("SlurmNodeStateDrain", "False")
    rig.wait_known()


def test_dynamic_future_node(own_slurm, rig_of, slurm_root):
    """slurmd -F: slurmctld gives it the name of a FUTURE node that is like it; slurm.nodeName says which."""
    slurm = own_slurm(nodes=["fut1"], cpus=os.cpu_count(), root=slurm_root,
                      node_line_extra=f"State=FUTURE Feature=dynf {topology()}",
                      slurmd_arguments={"fut1": ["-Fdynf"]})
    rig = rig_of(slurm)
    rig.start(ready=False)
    assert "-N NAME" in rig.wait_condition("SlurmdReady", "Unknown", "SlurmdUnknown")["message"]
    rig.stop()
    rig.configure(slurm={"nodeName": "fut1"})
    node = start(rig)
    assert slurm_annotation(node, "node") == "fut1"
    assert slurm_annotation(node, "features") == "dynf"
    assert slurm_states(node) >= {"Idle"}


def test_node_name_that_differs_from_the_host_name(own_slurm, rig_of):
    """slurmd -N among others on this host: the one that slurm.nodeName names."""
    slurm = own_slurm(nodes=["left", "right"], cpus=2)
    rig = rig_of(slurm)
    rig.start(ready=False)
    message = rig.wait_condition("SlurmdReady", "Unknown", "SlurmdUnknown")["message"]
    assert "left and right" in message and "slurm.nodeName" in message
    rig.stop()
    rig.configure(slurm={"nodeName": "right"})
    node = start(rig)
    assert slurm_annotation(node, "node") == "right"
    # The other one's end is not ours.
    slurm.daemon("kill", "slurmd:left")
    slurm.daemon("kill", "slurmd:right")
    rig.wait_condition("SlurmdReady", "False", "SlurmdNotRunning")
    slurm.daemon("start", "slurmd:left")
    slurm.set_state("left", "drained")
    assert rig.condition("SlurmdReady")["status"] == "False"
    slurm.daemon("start", "slurmd:right")
    rig.wait_condition("SlurmdReady", "True")
    assert rig.condition("SlurmNodeStateDrain")["status"] == "False"
