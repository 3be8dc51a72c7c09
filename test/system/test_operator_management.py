"""Machines in another API server than the Nodes: what slurmlet-operator does, where it tells so, and what it does
while that server is away. Cluster API's controllers are played by the test."""
import datetime
import itertools
import os
import time

import pytest

from harness.api import node_path, repository
from harness.control_plane import ControlPlane
from harness.history import History
from harness.metric_names import one as sample
from harness.operator_site import MACHINES, Machines, Site
from harness.programs import free_port, get_page
from harness.rig import wait_until
from harness.service_account import ServiceAccount, apply, can

pytestmark = pytest.mark.slow
STATIC, OTHER, DYNAMIC = "mg001", "mg002", "mgdyn"


@pytest.fixture(scope="module")
def cluster(own_slurm):
    return own_slurm(nodes=[DYNAMIC, STATIC, OTHER], cpus=os.cpu_count(), dynamic=[DYNAMIC], cluster_name="manag",
                     slurmd_arguments={DYNAMIC: ["-Z"]}, node_hosts={STATIC: STATIC, OTHER: OTHER})


@pytest.fixture(scope="module")
def management(work):
    with ControlPlane(work / "cp-management") as running:
        running.machines = Machines(running)
        apply(running, repository() / "deploy/operator/management/rbac.yaml")
        running.account = ServiceAccount(running, "slurmlet-operator-machines", "kube-system")
        wait_until(lambda: can(running, "patch", "machines", running.account.user, api_group="cluster.x-k8s.io"),
                   what="the rights")
        yield running


@pytest.fixture
def site(plane, cluster, account, management, tmp_path):
    """Its operators take the Machines from the other server."""
    tmp_path.chmod(0o755)
    one = Site(plane, cluster, account, tmp_path)
    for name in (STATIC, OTHER, DYNAMIC):
        one.add(name, name)
    one.port = free_port()
    there = management.account.kubeconfig(tmp_path)  # made while that server is there

    def start(*flags):
        return one.start(f"--management-kubeconfig={there}", "--machine-cluster=default/c1",
                         f"--metrics-address=127.0.0.1:{one.port}", *(flags or ["--leader-elect=false"]))
    one.start_both = start
    yield one
    one.print_logs()
    for name in (STATIC, DYNAMIC):
        gate(one, name).touch()
    one.end()
    management.machines.finish_all()
    for name in (STATIC, OTHER, DYNAMIC):
        cluster.reset(name)


def gate(site, node):
    return site.directory / f"gate-{node}"


def submit(site, node):
    """A job that ends by itself once the node's gate is there."""
    script = f"until [ -e {gate(site, node)} ]; do sleep 0.2; done"
    job = site.slurm.command("sbatch", "--parsable", "--output=/dev/null", "--chdir=/", "--time=60", "--no-requeue",
                             f"--nodelist={node}", f"--wrap={script}").stdout.strip()
    wait_until(lambda: state_of(site, job) == "RUNNING", what="the job to run")
    return job


def state_of(site, job):
    shown = site.slurm.command("scontrol", "show", "job", job).stdout
    return shown.partition("JobState=")[2].split()[0]


def events(api, kind, name):
    items = api.get(f"/api/v1/events?fieldSelector=involvedObject.kind={kind},involvedObject.name={name}")["items"]
    return {item["reason"] for item in items}


def test_its_credential_there_is_for_machines_and_nothing_else(management):
    user = management.account.user
    rights = [*((verb, "machines", "cluster.x-k8s.io") for verb in ("get", "list", "watch", "patch")),
              ("create", "events", ""), ("patch", "events", "")]
    assert all(can(management, verb, resource, user, api_group=group) for verb, resource, group in rights)
    for verb, resource, group in (("get", "nodes", ""), ("patch", "nodes", ""), ("delete", "nodes", ""),
                                  ("get", "secrets", ""), ("delete", "machines", "cluster.x-k8s.io"),
                                  ("patch", "machines/status", "cluster.x-k8s.io"),
                                  ("patch", "certificatesigningrequests/approval", "certificates.k8s.io"),
                                  ("get", "leases", "coordination.k8s.io")):
        assert not can(management, verb, resource, user, api_group=group), f"{verb} {resource}"


@pytest.mark.parametrize("node", [STATIC, DYNAMIC])
def test_turn_over(plane, site, management, node):
    machines = management.machines
    machine = "only-" + node  # in no other test of this API server
    machines.add(machine, node)
    site.start_both()
    job = submit(site, node)
    machines.delete(machine)
    site.wait_drained(node)
    wait_until(lambda: "MachineWaits" in events(management.admin, "Machine", machine), what="the Event there")
    wait_until(lambda: "MachineWaits" in events(plane.admin, "Node", node), what="the Event here")
    site.wait_dumps(node, 3)
    assert machines.held(machine)
    assert state_of(site, job) == "RUNNING"
    gate(site, node).touch()
    machines.wait_released(machine)
    assert state_of(site, job) == "COMPLETED"
    wait_until(lambda: "MachineReleased" in events(management.admin, "Machine", machine), what="the Event there")
    wait_until(lambda: "MachineReleased" in events(plane.admin, "Node", node), what="the Event here")
    assert events(management.admin, "Node", node) == events(plane.admin, "Machine", machine) == set()
    assert management.admin.find(node_path(node)) is None
    assert plane.admin.find(MACHINES) is None
    assert site.node(node)["metadata"]["annotations"]["slurmlet.io/detach"] == "Detached"
    assert "DRAIN" in site.state(node)


def test_while_it_is_away_no_machine_leads_to_anything(site, management):
    """The policy would end one job meanwhile, and the other ends by itself; cordons count as ever."""
    machines = management.machines
    one = site.start_both()
    machines.add("m1", STATIC, "deadline=30s")
    machines.add("m2", DYNAMIC)
    ended, ends = submit(site, STATIC), submit(site, DYNAMIC)
    wait_until(lambda: get_page(site.port, "/readyz")[0] == 200, what="it to be ready")
    until = time.time() + 30
    for name in ("m1", "m2"):
        machines.delete(name)
    wait_until(lambda: "what is left at" in one.output() and f"1 job on Slurm node {DYNAMIC}" in one.output(),
               what="the words")
    management.ctl("stop", "kube-apiserver")
    try:
        assert time.time() < until
        wait_until(lambda: get_page(site.port, "/readyz")[0] == 503, what="it not to be ready")
        assert "\nmachines: " in get_page(site.port, "/readyz")[1]
        assert sample(get_page(site.port, "/metrics")[1], "slurmlet_operator_ready", check="machines") == 0
        assert get_page(site.port, "/healthz")[0] == 200
        wait_until(lambda: "warning Machines: " in one.output(), what="the words")
        site.cordon(OTHER)
        site.wait_drained(OTHER)
        site.cordon(OTHER, False)
        site.wait_undrained(OTHER)
        gate(site, DYNAMIC).touch()
        wait_until(lambda: state_of(site, ends) == "COMPLETED", what="the job's end")
        wait_until(lambda: time.time() > until, what="the deadline")
        site.wait_dumps(STATIC, 4)
        assert state_of(site, ended) == "RUNNING"
        assert "DRAIN" in site.state(DYNAMIC)
        one.kill()
        site.start_both()
        site.cordon(OTHER)
        site.wait_drained(OTHER)
        site.wait_dumps(STATIC, 3)
        assert get_page(site.port, "/readyz")[0] == 503
        assert state_of(site, ended) == "RUNNING"
        assert "DRAIN" in site.state(DYNAMIC)
    finally:
        management.ctl("start", "kube-apiserver")
        machines.wait_served()
    for name in ("m1", "m2"):
        machines.wait_released(name, 60)
    assert state_of(site, ended) == "CANCELLED"
    assert "DRAIN" in site.state(DYNAMIC)
    wait_until(lambda: get_page(site.port, "/readyz")[0] == 200, what="it to be ready again")
    assert sample(get_page(site.port, "/metrics")[1], "slurmlet_operator_machine_actions_total", action="release") == 2


def test_while_it_hangs_cordons_drain_and_one_operator_leads(site, management):
    """It takes connections and answers nothing; what is to be told and removed there has to wait."""
    machines = management.machines
    one = site.start_both("--leader-elect=true")
    collection, _, name = site.lease.rpartition("/")
    wait_until(lambda: site.api.find(site.lease), what="the lead")
    lease = History(site.api, collection, name)
    machines.add("m1", STATIC)
    submit(site, STATIC)
    machines.delete("m1")
    wait_until(lambda: f"1 job on Slurm node {STATIC}" in one.output(), what="the words")
    management.ctl("pause", "kube-apiserver")
    try:
        gate(site, STATIC).touch()
        wait_until(lambda: "the hook of Machine default/m1 was not removed" in one.output(), what="the words")
        site.cordon(OTHER)
        site.wait_drained(OTHER)
        site.cordon(OTHER, False)
        site.wait_undrained(OTHER)
    finally:
        management.ctl("resume", "kube-apiserver")
    machines.wait_released("m1", 90)
    renewed = [datetime.datetime.fromisoformat(item["spec"]["renewTime"]) for _, item in lease.until_now()]
    assert max(after - before for before, after in itertools.pairwise(renewed)) < datetime.timedelta(seconds=10)
    assert "this operator does not lead" not in one.output()
