"""The Machine of a slurmctld goes once its backup has taken over: a real primary and a real backup of two releases, the
real API server with Cluster API's own CRD. Its controllers are played by the test."""
import re

import pytest

from harness.operator_site import MACHINES, Site
from harness.rig import wait_until

NODE = "tk001"
HOSTS = {"slurmctld": ("ctl1", "127.0.0.1"), "slurmctld-backup": ("ctl2", "127.0.0.2")}
ROLE = "slurmlet.io/slurm-role"
FLAGS = ["--leader-elect=false", "--machine-cluster=default/c1"]


@pytest.fixture(scope="module")
def cluster(slurm_root, own_slurm):
    return own_slurm(nodes=[NODE], cpus=2, cluster_name="takeo", root=slurm_root, controllers=HOSTS,
                     conf_lines=["SlurmctldTimeout=60", "MessageTimeout=2"])


def ping(slurm):
    shown = slurm.command("scontrol", "ping", check=False).stdout
    return dict(re.findall(r" at (\S+) is (UP|DOWN)", shown))


def primary_in_charge(slurm):
    """Both are started anew unless both answer: a backup that gives control back may take a while, or end."""
    if ping(slurm) != {"ctl1": "UP", "ctl2": "UP"}:
        for name in HOSTS:
            if slurm.pid(name):
                slurm.daemon("kill", name)
        for name in HOSTS:
            slurm.daemon("start", name)
    wait_until(lambda: ping(slurm) == {"ctl1": "UP", "ctl2": "UP"} and slurm.node_state(NODE), 30,
               "both controllers to be up")


@pytest.fixture
def site(plane, cluster, account, machines, tmp_path):
    primary_in_charge(cluster)
    cluster.reset(NODE)
    one = Site(plane, cluster, account, tmp_path)
    one.add(NODE, NODE)
    machines.add("worker", NODE)
    for number in (1, 2):
        add_controller(machines, number)
    yield one
    one.print_logs()
    one.end()
    machines.finish_all()
    cluster.command("scancel", "-u", "root", check=False)
    # A job whose slurmctld is killed before it has ended would be of no known end to the next one, for minutes.
    wait_until(lambda: set(cluster.node_state(NODE)) == {"IDLE"}, 60, "the end of the job")


def add_controller(machines, number):
    name = f"head{number}"
    machines.add(name, None, addresses=[("InternalIP", f"192.0.2.{number}"), ("Hostname", f"ctl{number}.site")])
    machines.api.merge(f"{MACHINES}/{name}", {"metadata": {"labels": {ROLE: "controller"}}})


def test_the_backup_takes_over_before_the_primarys_machine_goes(site, machines):
    """A job goes on, no node is drained."""
    job = site.slurm.submit(NODE)
    site.start(*FLAGS)
    machines.delete("head1")
    wait_until(lambda: ping(site.slurm)["ctl1"] == "DOWN", what="the takeover")
    machines.wait_released("head1", 60)
    assert ping(site.slurm) == {"ctl1": "DOWN", "ctl2": "UP"}
    assert site.slurm.job_state(job) == "RUNNING"
    assert "DRAIN" not in site.state(NODE)
    assert machines.held("head2") and machines.held("worker")
    wait_until(lambda: {"ControllerHandover", "MachineReleased"} <= site.events("head1"), what="the Events")


def test_without_a_live_backup_the_machine_stays(site, machines):
    site.slurm.daemon("kill", "slurmctld-backup")
    one = site.start(*FLAGS)
    machines.delete("head1")
    wait_until(lambda: "no backup slurmctld answers" in one.output(), what="the words")
    wait_until(lambda: "ControllerNotHandedOver" in site.events("head1"), what="the Event")
    site.wait_dumps(NODE, 3)
    assert machines.held("head1")
    assert ping(site.slurm)["ctl1"] == "UP"
    site.slurm.daemon("start", "slurmctld-backup")
    machines.wait_released("head1", 90)
    assert ping(site.slurm) == {"ctl1": "DOWN", "ctl2": "UP"}


def test_the_machine_of_a_standby_goes_at_once(site, machines):
    site.start(*FLAGS)
    machines.delete("head2")
    machines.wait_released("head2", 60)
    assert ping(site.slurm) == {"ctl1": "UP", "ctl2": "UP"}  # nothing was taken over
    assert machines.held("head1")


def test_both_machines_do_not_go_together(site, machines):
    one = site.start(*FLAGS)
    for name in ("head1", "head2"):
        machines.delete(name)
    wait_until(lambda: one.output().count("no backup slurmctld answers that stays") >= 2, what="the words")
    site.wait_dumps(NODE, 3)
    assert machines.held("head1") and machines.held("head2")
    assert ping(site.slurm) == {"ctl1": "UP", "ctl2": "UP"}


def test_an_operator_that_is_killed_after_the_takeover_is_followed_by_another(site, machines):
    """As where it runs on the host that goes."""
    one = site.start(*FLAGS)
    machines.delete("head1")
    wait_until(lambda: "is to take over from ctl1" in one.output(), what="the words")
    wait_until(lambda: ping(site.slurm)["ctl1"] == "DOWN", what="the takeover")
    one.kill()
    site.start(*FLAGS)
    machines.wait_released("head1", 60)
    assert ping(site.slurm)["ctl2"] == "UP"


def test_a_machine_without_the_label_is_an_ordinary_one(site, machines):
    machines.api.merge(f"{MACHINES}/head1", {"metadata": {"labels": {ROLE: None}}})
    one = site.start(*FLAGS)
    machines.delete("head1")
    wait_until(lambda: "Machine default/head1: Slurm has no node of its host" in one.output(), what="the words")
    site.wait_dumps(NODE, 3)
    assert machines.held("head1")
    assert ping(site.slurm)["ctl1"] == "UP"


def test_the_annotation_does_as_well(site, machines):
    machines.api.merge(f"{MACHINES}/head1", {"metadata": {"labels": {ROLE: None}, "annotations": {ROLE: "controller"}}})
    site.start(*FLAGS)
    machines.delete("head1")
    machines.wait_released("head1", 60)
    assert ping(site.slurm) == {"ctl1": "DOWN", "ctl2": "UP"}


def test_a_host_that_slurm_conf_does_not_name_stays(site, machines):
    machines.api.merge(f"{MACHINES}/head1/status", {"status": {"addresses": [
        {"type": "Hostname", "address": "other"}]}})
    one = site.start(*FLAGS)
    machines.delete("head1")
    wait_until(lambda: "none of slurm.conf's SlurmctldHost (ctl1, ctl2)" in one.output(), what="the words")
    site.wait_dumps(NODE, 2)
    assert machines.held("head1")


def test_a_dry_run_takes_over_nothing(site, machines):
    one = site.start(*FLAGS, "--dry-run")
    machines.delete("head1")
    wait_until(lambda: "dry run: slurmctld on ctl2 is to take over from ctl1" in one.output(), what="the words")
    site.wait_dumps(NODE, 2)
    assert machines.held("head1")
    assert ping(site.slurm) == {"ctl1": "UP", "ctl2": "UP"}
