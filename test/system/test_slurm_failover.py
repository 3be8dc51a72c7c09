"""Two slurmctld (SlurmctldHost twice) on hosts of their own: the backup takes over, and the daemon
goes on without a restart."""
import time

import pytest

from harness.api import condition, slurm_states
from harness.virtual_address import VirtualAddress
from slurmcluster.config import free_ports

NODE = "n1"
HOSTS = {"slurmctld": ("ctl1", "127.0.0.1"), "slurmctld-backup": ("ctl2", "127.0.0.2")}


@pytest.fixture(scope="module", name="slurm")
def slurm_of_two_controllers(slurm_root, own_slurm):
    return own_slurm(nodes=[NODE], cpus=2, root=slurm_root, controllers=HOSTS,
                     conf_lines=["SlurmctldTimeout=5", "MessageTimeout=2"])


@pytest.fixture(scope="module")
def rig(slurm, rig_of):
    return rig_beside(rig_of, slurm)


def rig_beside(rig_of, slurm):
    rig = rig_of(slurm)
    rig.configure(slurm={"staleAfter": "6s"})
    rig.start_and_know()
    return rig


def test_backup_takes_over_without_a_restart_of_ours(rig, slurm, timing):
    pid = rig.daemon.pid
    slurm.set_state(NODE, "drained", "before")
    rig.wait(lambda node: slurm_states(node) == {"Idle", "Drain"})
    # The backup hangs meanwhile, so that there is surely a time without a controller.
    slurm.daemon("pause", "slurmctld-backup")
    slurm.daemon("kill", "slurmctld")
    found = rig.wait_condition("SlurmNodeStateDrain", "Unknown")
    assert found["reason"] in ("ControllerUnreachable", "ControllerTimeout")
    began = time.monotonic()
    slurm.daemon("resume", "slurmctld-backup")
    known = rig.wait_condition("SlurmNodeStateDrain", "True", "Drained")
    timing("backup free to take over to known again (SlurmctldTimeout 5 s)",
           time.monotonic() - began)
    assert '"before"' in known["message"]
    assert "ctl2 is UP" in slurm.command("scontrol", "ping", check=False).stdout
    # What the backup is told, the Node shows.
    slurm.command("scontrol", "update", f"nodename={NODE}", "state=resume")
    rig.wait_condition("SlurmNodeStateDrain", "False")
    assert rig.daemon.pid == pid and rig.daemon.process.poll() is None
    assert condition(rig.node(), "Ready")["status"] == "True"


def test_controllers_behind_one_virtual_address(own_slurm, rig_of, timing):
    """SlurmctldAddr: clients know one address only, which moves with the active controller."""
    host = "127.0.0.9"
    port, slurmd_port = free_ports(2)
    with VirtualAddress(host, port, HOSTS["slurmctld"][1]) as address:
        slurm = own_slurm(nodes=[NODE], cpus=2, controllers=HOSTS,
                          ports={"slurmctld": port, f"slurmd.{NODE}": slurmd_port},
                          conf_lines=[f"SlurmctldAddr={host}", "SlurmctldTimeout=5",
                                      "MessageTimeout=2"])
        rig = rig_beside(rig_of, slurm)
        assert address.connections > 0
        slurm.set_state(NODE, "drained", "before")
        rig.wait(lambda node: slurm_states(node) == {"Idle", "Drain"})
        slurm.daemon("kill", "slurmctld")
        # A question that was cut off before scontrol gave up is a timeout at first.
        found = rig.wait_condition("SlurmNodeStateDrain", "Unknown", "ControllerUnreachable")
        assert f"{host}:{port}, the address of ctl1 and ctl2" in found["message"]
        began = time.monotonic()
        address.move(HOSTS["slurmctld-backup"][1])
        rig.wait_condition("SlurmNodeStateDrain", "True", "Drained")
        timing("virtual address moved to known again (SlurmctldTimeout 5 s)",
               time.monotonic() - began)
        rig.stop()


def test_both_gone_names_both(rig, slurm):
    for name in HOSTS:
        if slurm.pid(name):
            slurm.daemon("kill", name)
    found = rig.wait_condition("SlurmNodeStateDrain", "Unknown")
    assert found["reason"] in ("ControllerUnreachable", "ControllerTimeout")
    for host, _ in HOSTS.values():
        assert host in found["message"]
