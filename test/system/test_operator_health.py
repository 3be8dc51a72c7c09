"""drainOn of slurmlet-operator with a real slurmctld and a real API server: conditions as node-problem-detector sets
them drain the Slurm node, and only what was drained for them is undrained."""
import datetime

import pytest

from harness.api import node_path
from harness.operator_site import Site
from harness.rig import wait_until

NODES = ["he001", "he002"]
FLAGS = ["--drain-on=KernelDeadlock=True:1m,GPUHealthy=False:2m", "--leader-elect=false"]


@pytest.fixture(scope="module")
def cluster(slurm_root, own_slurm):
    return own_slurm(nodes=NODES, cpus=2, cluster_name="healt", root=slurm_root)


@pytest.fixture
def site(plane, cluster, account, tmp_path):
    for name in NODES:
        cluster.reset(name)
    one = Site(plane, cluster, account, tmp_path)
    for name in NODES:
        one.add(name)
        set_condition(one, name, "KernelDeadlock", "False", 60)
    yield one
    one.print_logs()
    one.end()
    cluster.command("scancel", "-u", "root")
    for name in NODES:
        cluster.reset(name)


def set_condition(site, name, kind, status, minutes, message="kernel has no deadlock"):
    """As node-problem-detector does, for so long already; and the Node is Ready."""
    now = datetime.datetime.now(datetime.timezone.utc)
    since, now = ((now - datetime.timedelta(minutes=ago)).strftime("%Y-%m-%dT%H:%M:%SZ") for ago in (minutes, 0))
    conditions = [{"type": kind, "status": status, "reason": "DockerHung" if status == "True" else "KernelHasNoDeadlock",
                   "message": message, "lastHeartbeatTime": now, "lastTransitionTime": since},
                  {"type": "Ready", "status": "True", "reason": "Ready", "message": "", "lastHeartbeatTime": now,
                   "lastTransitionTime": since}]
    site.api.call("PATCH", node_path(name) + "/status", {"status": {"conditions": conditions}},
                  "application/strategic-merge-patch+json")


def sicken(site, name, minutes=2):
    set_condition(site, name, "KernelDeadlock", "True", minutes, "task docker:7 blocked for more than 120 seconds.")


def reason_of(site, name):
    uid = site.node(name)["metadata"]["uid"]
    return f"slurmlet: KernelDeadlock: task docker:7 blocked for more than 120 seconds. [{uid}]"


def test_a_sick_node_is_drained_until_it_has_been_well_for_ten_minutes(site):
    """Its job goes on; the operator may be killed meanwhile."""
    one = site.start(*FLAGS)
    job = site.slurm.submit("he001")
    sicken(site, "he001", minutes=0)
    site.wait_dumps("he001", 3)
    assert "DRAIN" not in site.state("he001")  # not bad for long enough
    sicken(site, "he001")
    site.wait_drained("he001")
    assert site.reason("he001") == reason_of(site, "he001")
    assert "DRAIN" not in site.state("he002")
    assert site.slurm.job_state(job) == "RUNNING"
    wait_until(lambda: "SlurmNodeDrained" in site.events("he001"), what="the Event")
    one.kill()
    site.start(*FLAGS)
    set_condition(site, "he001", "KernelDeadlock", "False", 9)
    site.wait_dumps("he001", 3)
    assert "DRAIN" in site.state("he001")
    set_condition(site, "he001", "KernelDeadlock", "False", 11)
    site.wait_undrained("he001")
    wait_until(lambda: not site.reason("he001").startswith("slurmlet: K"), 20, "another Reason")
    wait_until(lambda: "KernelDeadlock has been False for ten minutes" in site.operators[-1].output(), what="the words")


def test_a_bad_probe_empties_no_partition(site):
    """Of two nodes one is drained, whichever has been bad for longest."""
    sicken(site, "he001", minutes=3)
    sicken(site, "he002", minutes=5)
    one = site.start(*FLAGS)
    site.wait_drained("he002")
    wait_until(lambda: "UnhealthyNotDrained" in site.events("he001"), what="the Event")
    assert "maxUnhealthy is 10%" in one.output()
    site.wait_dumps("he001", 3)
    assert "DRAIN" not in site.state("he001")
    set_condition(site, "he002", "KernelDeadlock", "False", 11)
    site.wait_drained("he001")
    assert "DRAIN" not in site.state("he002")


def test_what_an_administrator_drained_or_took_over_stays(site):
    site.slurm.command("scontrol", "update", "nodename=he001", "state=drain", "reason=bad dimm")
    sicken(site, "he001")
    sicken(site, "he002")
    site.start(*FLAGS)
    site.wait_drained("he002")
    assert site.reason("he001") == "bad dimm"
    site.slurm.command("scontrol", "update", "nodename=he002", "state=drain", "reason=ticket 7")
    for name in NODES:
        set_condition(site, name, "KernelDeadlock", "False", 11)
    site.wait_dumps("he001", 4)
    assert [site.reason(name) for name in NODES] == ["bad dimm", "ticket 7"]
    assert all("DRAIN" in site.state(name) for name in NODES)


def test_the_end_of_a_cordon_puts_no_job_on_a_sick_node(site):
    site.start(*FLAGS)
    site.cordon("he001")
    site.wait_drained("he001")
    sicken(site, "he001")
    site.wait_dumps("he001", 2)
    assert site.reason("he001") == "slurmlet: cordoned"
    job = site.slurm.command("sbatch", "--parsable", "--output=/dev/null", "--chdir=/", "--nodelist=he001",
                             "--wrap=sleep 600").stdout.strip()
    site.cordon("he001", False)
    wait_until(lambda: site.reason("he001") == reason_of(site, "he001"), 20, "the Reason")
    assert "DRAIN" in site.state("he001")
    assert site.slurm.job_state(job) == "PENDING"
    set_condition(site, "he001", "KernelDeadlock", "False", 11)
    site.wait_undrained("he001")
    wait_until(lambda: site.slurm.job_state(job) == "RUNNING", what="the job to run")
