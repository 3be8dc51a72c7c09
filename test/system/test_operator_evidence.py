"""slurmlet-operator where not knowing could be taken for nothing there: another cluster's nodes, a frozen watch, hosts
that were silent or run several nodes, answers that are filtered. Real slurmctld and slurmd with jobs, the real API
server with Cluster API's own CRD, whose controllers are played by the test."""
import os
import re
import shutil
import subprocess
import time
import types

import pytest

from harness.api import node_path
from harness.metric_names import one as sample
from harness.operator_site import HOOK, MACHINES, OPERATOR, Site
from harness.programs import free_port, get_page
from harness.rig import wait_until
from harness.slow_front import SlowFront
from slurmcluster import states
from slurmcluster.config import write_slurm_conf

NODES = ["ev001", "ev002", "ev003", "ev004"]
HOSTS = {"ev001": "ev001", "ev002": "ev002", "ev003": "evhost", "ev004": "evhost"}
NODE_LEASES = "/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases"
SILENT = 6  # seconds, until slurmctld takes a slurmd for gone


@pytest.fixture(scope="module")
def cluster(own_slurm):
    return own_slurm(nodes=NODES, cpus=2, cluster_name="evida", node_hosts=HOSTS)


@pytest.fixture(name="site_of")
def sites(plane, account, machines, tmp_path):
    """make(cluster, nodes, …): a Site with these Nodes; the last one made ends first."""
    made = []

    def make(slurm, nodes, its_account=account, parent=tmp_path):
        directory = parent / f"site{len(made)}"
        directory.mkdir(mode=0o755)
        made.append(Site(plane, slurm, its_account, directory))
        for name in nodes:
            made[-1].add(name, name)
        return made[-1]
    yield make
    for one in reversed(made):
        one.print_logs()
        one.end()
    machines.finish_all()
    for one in made:
        one.slurm.command("scancel", "-u", "root")
        for name in one.slurm.nodes:
            one.slurm.reset(name)


@pytest.fixture(name="site")
def site_of_the_first(site_of, cluster):
    return site_of(cluster, NODES)


def is_running(slurm, job):
    return slurm.job_state(job) == "RUNNING"


def next_machine(site, machines, node):
    """The host of the Machine m1 becomes that of m2."""
    machines.finish("m1")
    site.api.delete(node_path(node))
    site.add(node, node)
    machines.add("m2", node)


def test_an_operator_of_another_cluster_releases_nothing(site_of, cluster, own_slurm, machines):
    """Its cluster has an idle node of the same name; the operator whose Machine it is has ended."""
    site = site_of(cluster, NODES)
    alien = site_of(own_slurm(nodes=["ev001"], cpus=2, cluster_name="evidb"), [])
    first = site.start()
    site.wait_record("ev001", lambda r: r["text"])
    alien.start()
    job = cluster.submit("ev001")
    machines.add("m1", "ev001")
    first.kill()
    machines.delete("m1")
    alien.wait_dumps("ev001", 4)
    assert machines.held("m1") and is_running(cluster, job)
    assert alien.state("ev001") == ["IDLE"]
    assert site.record("ev001")["cluster"] == "evida"
    site.start()
    site.wait_drained("ev001")
    site.wait_dumps("ev001", 3)
    assert machines.held("m1") and is_running(cluster, job)
    cluster.command("scancel", job)
    machines.wait_released("m1")


def test_a_record_that_cannot_be_read_may_be_of_the_same_host(site, cluster, machines):
    """Only such a record names its host. Here ev004's is doubled by what an administrator sets on another node."""
    job = cluster.submit("ev004")
    cluster.command("scontrol", "update", "nodename=ev001",
                    "availablefeatures=a\nNodeName=ev004 Arch=x CoresPerSocket=1 CPUAlloc=0 CPUTot=2 z")
    try:
        operator = site.start()
        site.wait_record("ev003", lambda r: r["text"])
        machines.add("m1", "ev003")
        machines.delete("m1")
        site.wait_dumps("ev003", 4)
        assert machines.held("m1") and is_running(cluster, job), operator.output()[-2000:]
    finally:
        cluster.command("scontrol", "update", "nodename=ev001", "availablefeatures=", "activefeatures=")
    cluster.command("scancel", job)
    machines.wait_released("m1")


class Front(SlowFront):
    """Before the API server; an account for a Site."""

    def __init__(self, account, directory):
        directory.mkdir()
        self.client = types.SimpleNamespace(directory=directory, kubeconfig=account.kubeconfig(directory))
        super().__init__(self.client)

    def kubeconfig(self, _):
        return self.client.kubeconfig


@pytest.mark.parametrize("role", ["leader", "standby"])
def test_an_operator_whose_connections_are_frozen_ends_no_drain(site_of, cluster, account, tmp_path, role):
    """New ones pass. What it knows of the Node is of before the cordon."""
    site = site_of(cluster, ["ev001", "ev002"])
    with Front(account, tmp_path / "front") as front:
        behind = site_of(cluster, [], front)
        if role == "leader":
            frozen = behind.start("--leader-elect=false")
            site.wait_record("ev001", lambda r: r["text"])
            wait_until(lambda: any("watch=" in path and "/nodes" in path for _, path in front.requests), what="its watch")
            front.freeze()
            site.cordon("ev001")
            cluster.command("scontrol", "update", "nodename=ev001", "state=drain", "reason=slurmlet: cordoned")
        else:
            first = site.start()
            wait_until(lambda: "this operator leads" in first.output(), what="a leader")
            asked = len(front.requests)
            frozen = behind.start()
            wait_until(lambda: len(front.requests) > asked, what="the standby to look")
            front.freeze()
            site.cordon("ev001")
            site.wait_drained("ev001")
            first.kill()
            wait_until(lambda: "this operator leads" in frozen.output(), 90, "the standby to lead")
            site.cordon("ev002")  # by which it is seen to act
            site.wait_drained("ev002")
        site.wait_dumps("ev001", 4)
        assert "DRAIN" in site.state("ev001")
        assert "undrained Slurm node ev001" not in frozen.output()


def test_two_slurm_nodes_on_one_host_go_together(site, machines):
    """The Machine is that of one of them; the job is on the other."""
    site.start()
    machines.add("m1", "ev003")
    job = site.slurm.submit("ev004")
    machines.delete("m1")
    site.wait_drained("ev003")
    site.wait_drained("ev004")
    site.wait_dumps("ev003", 4)
    assert machines.held("m1") and is_running(site.slurm, job)
    assert "DRAIN" not in site.state("ev001") + site.state("ev002")
    site.slurm.command("scancel", job)
    machines.wait_released("m1")
    site.api.delete(node_path("ev004"))  # which may be no Node's
    site.names.remove("ev004")
    next_machine(site, machines, "ev003")
    for name in ("ev003", "ev004"):
        site.wait_undrained(name)


def provisioned_without_a_node(machines, addresses):
    """m1, whose providerID is written in another form than its Node's: no nodeRef."""
    machines.add("m1", None, addresses=addresses)
    machines.api.merge(f"{MACHINES}/m1", {"spec": {"providerID": "metal3://2d55eb75-ed44-431e-9898-e26241198918"}})


@pytest.mark.parametrize("kind, address", [("Hostname", "ev002.cluster.local"), ("InternalIP", "127.0.0.2")])
def test_a_machine_without_a_node_is_found_by_its_addresses(site_of, cluster, machines, kind, address):
    site = site_of(cluster, ["ev001"])
    site.start("--machine-cluster=default/c1")
    job = site.slurm.submit("ev002")
    if kind == "InternalIP":
        site.slurm.command("scontrol", "update", "nodename=ev002", f"nodeaddr={address}")
    try:
        provisioned_without_a_node(machines, [(kind, address)])
        machines.delete("m1")
        site.wait_drained("ev002")
        site.wait_dumps("ev002", 4)
        assert machines.held("m1") and is_running(site.slurm, job)
        assert all("DRAIN" not in site.state(name) for name in NODES if name != "ev002")
    finally:
        site.slurm.command("scontrol", "update", "nodename=ev002", "nodeaddr=127.0.0.1")
    site.slurm.command("scancel", job)
    if kind == "Hostname":
        machines.wait_released("m1")


def test_a_machine_without_a_node_may_be_of_another_slurm_cluster(site_of, cluster, own_slurm, machines):
    """Both have a host of its name; its job is on that of the other."""
    other = own_slurm(nodes=["ev002"], cpus=2, cluster_name="other", node_hosts={"ev002": "ev002"})
    job = other.submit("ev002")
    site = site_of(cluster, ["ev001"])
    site.start()
    provisioned_without_a_node(machines, [("Hostname", "ev002")])
    machines.delete("m1")
    wait_until(lambda: "machineCluster" in site.operators[0].output(), what="the words")
    site.wait_dumps("ev001", 4)
    assert machines.held("m1") and is_running(other, job)
    assert "DRAIN" not in site.state("ev002")
    other.command("scancel", job)


def test_a_machine_whose_host_is_a_node_that_is_not_its_own_waits_for_a_person(site, machines):
    """For all that is known another Machine's job runs there: nothing is drained."""
    site.start()
    provisioned_without_a_node(machines, [("Hostname", "ev002")])
    machines.delete("m1")
    wait_until(lambda: "Machine default/m1: Slurm node ev002 belongs to Node ev002" in site.operators[0].output(),
               what="the words")
    site.wait_dumps("ev002", 3)
    assert machines.held("m1") and "DRAIN" not in site.state("ev002")


def test_a_machine_whose_host_slurm_does_not_show_waits_for_a_person(site, machines):
    site.start()
    provisioned_without_a_node(machines, [])
    machines.delete("m1")
    wait_until(lambda: f"kubectl annotate machine {HOOK}-" in site.operators[0].output(), what="the words")
    wait_until(lambda: "MachineWaits" in site.events("m1"), what="the Event")
    site.wait_dumps("ev001", 3)
    assert machines.held("m1")


@pytest.mark.parametrize("flags", [[], ["--leader-elect=false"]], ids=["elected", "alone"])
def test_nodes_that_wait_for_slurmctld_say_so(site, timing, flags):
    """Whoever looks why nothing is drained, looks at the Node."""
    site.start(*flags)
    waiting = ["ev001", "ev002"]
    for name in waiting:
        site.wait_record(name, lambda r: r["text"])
    site.slurm.daemon("pause", "slurmctld")
    try:
        began = time.monotonic()
        for name in waiting:
            site.cordon(name)
        wait_until(lambda: all("SlurmNodeNotChanged" in site.events(name) for name in waiting), 30, "the Events")
        seconds = time.monotonic() - began
    finally:
        site.slurm.daemon("resume", "slurmctld")
    timing("cordon to the Event that slurmctld is slow", seconds)
    assert seconds < 20  # bench/operator/cordons.py has the goal
    assert "SlurmNodeNotChanged" not in site.events("ev003")
    for name in waiting:
        site.wait_drained(name)


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root, to be another user")
def test_answers_that_are_filtered_release_nothing(site_of, own_slurm, machines, work):
    """PrivateData: squeue shows no job of others. SlurmUser sees them."""
    slurm = own_slurm(nodes=["ev001"], cpus=2, cluster_name="evidp", conf_lines=["PrivateData=jobs"],
                      node_hosts={"ev001": "ev001"})
    site = site_of(slurm, ["ev001"], parent=work)
    kubeconfig = site.account.kubeconfig(site.directory)
    shutil.chown(kubeconfig, "nobody")
    arguments = [f"--kubeconfig={kubeconfig}", f"--slurm-conf={slurm.conf_path}"]
    job = slurm.submit("ev001")
    slurm.command("scontrol", "suspend", job)
    slurm.command("scontrol", "update", "nodename=ev001", "state=drain", "reason=bad dimm")
    done = subprocess.run(["setpriv", "--reuid=nobody", "--regid=nogroup", "--clear-groups", OPERATOR, "check", *arguments],
                          env={"PATH": "/usr/bin:/bin"}, capture_output=True, text=True, check=False, timeout=60)
    assert done.returncode == 1
    assert re.search(r"x privileges +are missing: no Machine is released\b.*user nobody \(PrivateData=jobs\)",
                     done.stdout, re.DOTALL), done.stdout
    one = site.start("--leader-elect=false", user="nobody")
    machines.add("m1", "ev001")
    machines.delete("m1")
    wait_until(lambda: "could not list the jobs on its Slurm node: Slurm hides what is not its own from user nobody "
               "(PrivateData=jobs)" in one.output(), what="the words")
    wait_until(lambda: "MachineWaits" in site.events("m1"), what="the Event")
    site.wait_dumps("ev001", 4)
    assert machines.held("m1")
    one.kill()
    site.start("--leader-elect=false")
    site.wait_dumps("ev001", 4)
    assert machines.held("m1")
    slurm.command("scontrol", "resume", job)
    slurm.command("scancel", job)
    machines.wait_released("m1")


@pytest.mark.slow
def test_nodes_left_behind_go_and_nobody_says_so_of_anothers(site_of, cluster, machines):
    """By Cluster API's annotation, or by the Node's own providerID where that is missing. None of these has a slurmlet
    but `alive`, whose Lease is renewed."""
    site = site_of(cluster, ["ev001", "ev002"])
    machines.add("m1", "ev001")
    gone = {"cluster.x-k8s.io/machine": "gone", "cluster.x-k8s.io/cluster-name": "c1",
            "cluster.x-k8s.io/cluster-namespace": "default"}
    uuid = "2d55eb75-ed44-431e-9898-e26241198918"
    provider = "metal3://default/host/"
    leftover = {"dead": ({"annotations": gone}, None), "dead-p": ({}, provider + "gone")}
    stay = {"alive": ({"annotations": gone}, None),
            "twin": ({"labels": {"metal3.io/uuid": uuid}}, None),  # as ev001, which lives
            "other": ({}, "metal3://elsewhere/host/gone"),  # of Machines that are not known here
            "alien": ({"annotations": {**gone, "slurmlet.io/slurm-cluster": "alien"}}, None)}
    site.api.merge(node_path("ev001"), {"metadata": {"labels": {"metal3.io/uuid": uuid}}})
    for name, (metadata, provider_id) in {**leftover, **stay}.items():
        site.add(name)
        site.api.merge(node_path(name), {"metadata": metadata, **(
            {"spec": {"providerID": provider_id}} if provider_id else {})})
        site.api.create(NODE_LEASES, {"metadata": {"name": name}, "spec": {"holderIdentity": name}})
    began = time.monotonic()
    site.start()

    def are_gone():
        site.api.merge(f"{NODE_LEASES}/alive", {"spec": {"renewTime": time.strftime("%Y-%m-%dT%H:%M:%S.000000Z")}})
        return not any(site.api.find(node_path(name)) for name in leftover)
    try:
        wait_until(are_gone, 300, "the Nodes to go")
        assert time.monotonic() - began > 120
        for name in leftover:
            site.names.remove(name)
            assert "LeftoverNodeDeleted" in site.events(name)
        assert all(site.api.find(node_path(name)) for name in ["ev001", "ev002", *stay])
    finally:
        for name in [*leftover, *stay]:
            site.api.delete(f"{NODE_LEASES}/{name}")


def test_a_requeued_job_that_squeue_still_lists_holds_no_machine(site, machines):
    """It is pending. 22.05 forgets the nodes of its last run only when its epilog has ended, or its node is back."""
    slurm = site.slurm
    states.hold_epilog(slurm, "ev001")
    job = slurm.submit("ev001", "--requeue", "--exclusive")
    slurm.command("scontrol", "requeue", job)
    wait_until(lambda: "COMPLETING" in site.state("ev001"), what="the epilog")
    slurm.daemon("kill", "slurmd:ev001")
    slurm.command("scontrol", "update", "nodename=ev001", "state=down", "reason=fire")

    def listed():
        return slurm.command("squeue", "-h", "-j", job, "-O", "State:|,NodeList:|").stdout.strip()
    wait_until(lambda: listed() == "PENDING|ev001|", what=lambda: f"the job, which is {listed()}")
    site.start()
    machines.add("m1", "ev001")
    machines.delete("m1")
    machines.wait_released("m1")
    assert listed() == "PENDING|ev001|"
    assert {"DOWN", "DRAIN"} <= set(site.state("ev001")) and site.reason("ev001") == "fire"


class Meddler(Front):
    """Writes the Machine m1 right before its hook is removed, once."""
    machines = None

    def wait_of(self, request):
        if self.machines and f'"{HOOK}":null'.encode() in request:
            machines, self.machines = self.machines, None
            machines.api.merge(f"{MACHINES}/m1", {"metadata": {"labels": {"meddled": "yes"}}})
        return 0


def test_a_machine_that_another_writes_meanwhile_is_released_at_once(site_of, cluster, account, machines, tmp_path):
    """409 Conflict is no failure: the Machine is read anew."""
    with Meddler(account, tmp_path / "front") as front:
        front.machines = machines
        site = site_of(cluster, ["ev001"], front)
        port = free_port()
        site.start(f"--metrics-address=127.0.0.1:{port}")
        machines.add("m1", "ev001")
        machines.delete("m1")
        wait_until(lambda: front.machines is None, what="the conflict")
        began = time.monotonic()
        machines.wait_released("m1")
        assert time.monotonic() - began < 8  # a failure waits for ten
        assert "meddled" in machines.get("m1")["metadata"]["labels"]
        wait_until(lambda: sample(get_page(port, "/metrics")[1], "slurmlet_operator_machine_actions_total",
                                  action="release") == 1, what="the release to be counted")
        assert sample(get_page(port, "/metrics")[1], "slurmlet_operator_machine_actions_total", action="failure") == 0


def test_the_hook_of_an_idle_machine_goes_right_after_its_drain(site, machines, timing):
    """Not with the next dump of an operator that makes one every 15 seconds."""
    site.start("--interval=15s")
    for name in ("ev001", "ev002"):
        machines.add(f"m-{name}", name)
        site.wait_record(name, lambda r: r["text"])
    for name in ("ev001", "ev002"):
        machines.delete(f"m-{name}")
        site.wait_drained(name)
        began = time.monotonic()
        machines.wait_released(f"m-{name}")
        seconds = time.monotonic() - began
        timing("drain to release, interval 15 s", seconds)
        assert seconds < 20  # bench/operator/cordons.py has the goal


# -- hosts that are silent --------------------------------------------------------------------

CORDONED, LEFT, WAS_DOWN = "sl001", "sl002", "sl003"


@pytest.fixture(scope="module")
def quick(slurm_root, own_slurm):
    """slurmctld is quick to take a slurmd for gone."""
    names = [CORDONED, LEFT, WAS_DOWN]
    return own_slurm(nodes=names, cpus=2, cluster_name="silen", root=slurm_root, slurmd_timeout=SILENT,
                     node_hosts={name: name for name in names})


def returns_to_service(slurm, how):
    """ReturnToService=how from now on."""
    slurm.spec.conf_lines = [f"ReturnToService={how}"]
    write_slurm_conf(slurm.layout, slurm.spec)
    slurm.daemon("restart", "slurmctld")


def silence(slurm, names):
    for name in names:
        slurm.daemon("kill", f"slurmd:{name}")
    wait_until(lambda: all({"DOWN", "NOT_RESPONDING"} <= set(slurm.node_state(name)) for name in names), 90,
               "slurmctld to notice")


@pytest.mark.alone  # slurmctld takes a slurmd that is late for gone
@pytest.mark.parametrize("how", [1, 2])
def test_no_job_runs_on_a_node_that_was_cordoned_while_it_was_down(site_of, quick, how):
    """It would return by itself: with 1 only where its Reason still is that it did not respond."""
    returns_to_service(quick, how)
    site = site_of(quick, [WAS_DOWN])
    silence(quick, [WAS_DOWN])
    site.start()
    site.cordon(WAS_DOWN)
    site.wait_drained(WAS_DOWN)
    job, other = (quick.command("sbatch", "--parsable", "--output=/dev/null", "--chdir=/", f"--nodelist={name}",
                                "--wrap=sleep 600").stdout.strip() for name in (WAS_DOWN, CORDONED))
    quick.daemon("start", f"slurmd:{WAS_DOWN}")
    returned = ["DOWN" if how == 1 else "IDLE", "DRAIN"]
    wait_until(lambda: site.state(WAS_DOWN) == returned, what=lambda: f"its return:\n{quick.show_node(WAS_DOWN)}")
    wait_until(lambda: is_running(quick, other), what="the scheduler")
    site.wait_dumps(WAS_DOWN, 3)
    assert not is_running(quick, job) and "DRAIN" in site.state(WAS_DOWN)
    site.cordon(WAS_DOWN, False)
    wait_until(lambda: is_running(quick, job), what="the job to run")


@pytest.mark.alone  # slurmctld takes a slurmd that is late for gone
@pytest.mark.parametrize("how", [0, 1, 2])
def test_a_host_that_was_silent_under_our_drain_comes_back_into_service(site_of, quick, machines, timing, how):
    """As every one that is provisioned anew: it was off for longer than SlurmdTimeout."""
    returns_to_service(quick, how)
    site = site_of(quick, [CORDONED, LEFT])
    site.start()
    machines.add("m1", LEFT)
    site.cordon(CORDONED)
    machines.delete("m1")
    for name in (CORDONED, LEFT):
        site.wait_drained(name)
    machines.wait_released("m1")
    silence(quick, [CORDONED, LEFT])
    next_machine(site, machines, LEFT)
    site.cordon(CORDONED, False)
    wait_until(lambda: "DrainNotEnded" in site.events(CORDONED), what="the Event")
    site.wait_dumps(CORDONED, 3)
    assert all({"DOWN", "DRAIN"} <= set(site.state(name)) for name in (CORDONED, LEFT))
    for name in (CORDONED, LEFT):
        began = time.monotonic()
        quick.daemon("start", f"slurmd:{name}")
        wait_until(lambda name=name: site.state(name) == ["IDLE"], 60, lambda name=name: quick.show_node(name))
        seconds = time.monotonic() - began
        timing("slurmd's start to service", seconds)
        assert seconds < 30
    for name in (CORDONED, LEFT):
        wait_until(lambda name=name: site.reason(name) in ("", "slurmlet: undrained"), 20, "another Reason")
