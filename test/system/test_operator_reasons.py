"""The Reason that slurmlet-operator gives a node, and what the slurmctld of two releases makes of it. Nodes that go
DOWN under its drains: test_operator_evidence.py."""
import pytest

from harness.operator_site import Site
from harness.rig import wait_until

NODE = "rs001"


@pytest.fixture(scope="module")
def cluster(slurm_root, own_slurm):
    return own_slurm(nodes=[NODE], cpus=2, cluster_name="opera", root=slurm_root)


@pytest.fixture
def site(plane, cluster, account, tmp_path):
    cluster.reset(NODE)
    one = Site(plane, cluster, account, tmp_path)
    one.add(NODE)
    yield one
    one.print_logs()
    one.end()


def test_a_reason_of_ours_does_not_outlive_its_drain(site):
    """A prolog that fails would drain as a cordon does. Since 23.11 slurmctld keeps it, and takes no empty one."""
    site.start()
    site.cordon(NODE)
    site.wait_drained(NODE)
    assert site.reason(NODE) == "slurmlet: cordoned"
    site.cordon(NODE, False)
    site.wait_undrained(NODE)
    wait_until(lambda: site.reason(NODE) in ("", "slurmlet: undrained"), 20, "another Reason")


def test_a_reboot_that_an_administrator_wants_is_not_undone(site):
    """It drains with the Reason that is there."""
    site.start()
    site.cordon(NODE)
    site.wait_drained(NODE)
    site.cordon(NODE, False)
    site.wait_undrained(NODE)
    wait_until(lambda: not site.reason(NODE).startswith("slurmlet: cordoned"), 20, "another Reason")
    job = site.slurm.submit(NODE)  # so that the reboot waits
    try:
        site.slurm.command("scontrol", "reboot", "ASAP", NODE)
        site.wait_dumps(NODE, 3)
        assert "DRAIN" in site.state(NODE)
    finally:
        site.slurm.command("scontrol", "cancel_reboot", NODE)
        site.slurm.command("scancel", job)
