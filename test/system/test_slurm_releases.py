"""Other releases of Slurm, whose programs lie in roots of their own: facts, and what goes away and comes
back. Their states are in test_slurm_all_states.py."""
import pathlib
import time
import warnings

import pytest

from harness.api import condition, slurm_states
from harness.rig import wait_until

NODE = "nid000007"


@pytest.fixture(scope="module", name="slurm")
def slurm_of_release(own_slurm, other_slurm_root):
    return own_slurm(nodes=[NODE], cpus=2, gpus="a100:4", cluster_name="santis", root=other_slurm_root,
                     node_line_extra="Feature=a100,nvlink",
                     conf_lines=["MessageTimeout=2"])


@pytest.fixture(scope="module", name="rig")
def rig_beside_it(slurm, rig_of):
    rig = rig_of(slurm)
    # Time enough for scontrol to say why: it gives up after two seconds.
    rig.configure(slurm={"pollInterval": "3s", "commandTimeout": "2900ms", "staleAfter": "7s",
                         "maxBackoff": "3s"})
    rig.start_and_know()
    return rig


@pytest.fixture(autouse=True)
def all_is_well_again(slurm, rig):
    yield
    for name in ("munged", "slurmctld", "slurmd"):
        if slurm.pid(name) is None:
            slurm.daemon("start", name)
    slurm.reset(NODE)
    rig.wait(lambda node: slurm_states(node) == {"Idle"} and
             condition(node, "Ready")["status"] == "True")


def test_facts(rig, slurm):
    node = rig.node()
    release = "{}.{:02}.".format(*slurm.release)
    assert node["status"]["nodeInfo"]["containerRuntimeVersion"].startswith("slurm://" + release)
    assert node["metadata"]["labels"]["slurmlet.io/slurm-version"].startswith(release)
    annotations = node["metadata"]["annotations"]
    assert annotations["slurmlet.io/slurm-node"] == NODE
    assert annotations["slurmlet.io/slurm-partitions"] == "normal"
    assert annotations["slurmlet.io/slurm-features"] == "a100,nvlink"
    assert annotations["slurmlet.io/slurm-gres"] == "gpu:a100:4"
    assert node["status"]["capacity"]["nvidia.com/gpu"] == "4"
    assert node["status"]["capacity"]["cpu"] == "2"


def reconfigure(slurm):
    """It may take longer than scontrol waits, and now and then slurmctld 24.11 hangs in it for ever
    (docs/explanation/slurm-state.md)."""
    slurm.command("scontrol", "reconfigure", check=False)
    try:
        wait_until(lambda: slurm.succeeds("scontrol", "ping"), 20)
    except TimeoutError:
        warnings.warn("slurmctld hung in a reconfiguration and was started again")
        slurm.daemon("kill", "slurmctld")
        slurm.daemon("start", "slurmctld")
        reconfigure(slurm)


def test_reconfigured_slurmd_is_no_crash(rig, slurm):
    """Since 23.11 slurmd executes itself anew, and may have another pid."""
    before = rig.condition("Ready")["lastTransitionTime"]
    log = pathlib.Path(slurm.layout.at("log", f"slurmd.{NODE}.log"))
    starts = log.read_text().count("slurmd started on ")
    reconfigure(slurm)
    wait_until(lambda: log.read_text().count("slurmd started on ") > starts,
               what="slurmd to execute itself anew")
    wait_until(lambda: slurm.sinfo("-h", "-N", "-n", NODE, "-o", "%T", check=False) == "idle\n",
               what="the node to be idle after the reconfiguration")
    ready = rig.wait_condition("Ready", "True", "SlurmdRunning")
    assert rig.condition("SlurmdReady")["status"] == "True"
    assert ready["lastTransitionTime"] == before


@pytest.mark.parametrize("action,undo,daemon,reasons", [
    ("kill", "start", "slurmctld", {"ControllerUnreachable"}),
    ("pause", "resume", "slurmctld", {"ControllerUnreachable", "ControllerTimeout"}),
    ("stop", "start", "munged", {"MungeUnavailable"})])
def test_outage_and_its_end(rig, slurm, action, undo, daemon, reasons, timing):
    began = time.monotonic()
    slurm.daemon(action, daemon)
    node = rig.wait(lambda node: condition(node, "SlurmNodeStateIdle")["status"] == "Unknown" and
                    condition(node, "SlurmNodeStateIdle")["reason"] in reasons)
    timing(f"{action} {daemon} to Unknown (staleAfter 7 s)", time.monotonic() - began)
    assert condition(node, "Ready")["status"] == "True"
    assert condition(node, "SlurmdReady")["status"] == "True"
    assert "last answer at 20" in condition(node, "SlurmNodeStateDrain")["message"]
    slurm.daemon(undo, daemon)
    rig.wait_known()
