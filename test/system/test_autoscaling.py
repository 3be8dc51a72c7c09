"""slurmlet-operator gives a MachineDeployment as many Machines as the queue of Slurm needs: real slurmctld, real
Cluster API, and a stand-in for an infrastructure provider whose machines are dynamic nodes (slurmd -Z)."""
import os
import re
import time

import pytest

from harness.autoscaling import (CPUS, FLAGS, MARK, SILENT, SeparateHosts, make_scaled,  # noqa: F401
                                 scaling_account, up_without_nodes)
from harness.cluster_api import CORE, ClusterAPI
from harness.metric_names import scraped
from harness.operator_site import HOOK, Site
from harness.rig import wait_until
from harness.service_account import can
from harness.turnstile import Turnstile
from slurmcluster.config import free_ports

HOSTS = [f"dyn{number}" for number in range(1, 16)]


@pytest.fixture(scope="module")
def hosts(plane):
    return SeparateHosts(plane.admin, HOSTS)


@pytest.fixture(scope="module")
def cluster_api(plane, work, hosts):
    one = ClusterAPI(plane, work / "capi", None, hosts)
    yield one
    one.stop()


def start_slurm(own_slurm, root, name, conf_lines=()):
    """Without a node that is there. With 22.05 slurm.conf names them: see SeparateHosts."""
    if root:
        return up_without_nodes(own_slurm, root=root, cluster_name=name)
    slurm = own_slurm(nodes=HOSTS, cpus=CPUS, cluster_name=name, slurmd_timeout=SILENT,
                      hosts={host: [host, f"127.0.0.1 {' '.join(HOSTS)}", host] for host in HOSTS},
                      conf_lines=["ReturnToService=2", *conf_lines])
    for host in HOSTS:
        slurm.daemon("stop", f"slurmd:{host}")
    slurm.command("scontrol", "update", "nodename=" + ",".join(HOSTS), "state=down", "reason=off")
    return slurm


@pytest.fixture(scope="module")
def autoscaling_account(plane):
    return scaling_account(plane)


def start(site, *flags):
    return site.start(*FLAGS, "--scale-up-per-minute=100", *flags)


def live(cluster_api, name=""):
    return [one for one in cluster_api.machines() if not one["metadata"].get("deletionTimestamp") and
            one["metadata"]["labels"]["cluster.x-k8s.io/deployment-name"].startswith(name)]


def replicas(cluster_api, name):
    return cluster_api.api.get(f"{CORE}/machinedeployments/{name}")["spec"]["replicas"]


def submit(slurm, gate, *arguments, check=True):
    done = slurm.command("sbatch", "--parsable", "--output=/dev/null", "--chdir=/", "--time=60", "--no-requeue", *arguments,
                         f"--wrap=until [ -e {gate} ]; do sleep 0.2; done", check=check)
    return done.stdout.strip()


def states(slurm, jobs):
    out = {}
    for job in jobs:
        shown = slurm.command("scontrol", "show", "job", job).stdout
        out[job] = re.search(r"JobState=(\S+)", shown).group(1), re.search(r"ExitCode=(\S+)", shown).group(1)
    return out


def wait_states(slurm, jobs, wanted, timeout=120):
    def state():
        return set(states(slurm, jobs).values())
    wait_until(lambda: state() == {wanted}, timeout,
               lambda: f"{wanted}: {states(slurm, jobs)}\n{slurm.command('sinfo', '-N', '-l').stdout}"
                       f"{slurm.command('squeue').stdout}")


def twelve(slurm, gate):
    """Jobs of three shapes; one that no machine can hold and one that is held are not in the answer."""
    whole = [submit(slurm, gate, "-N2", f"-n{2 * CPUS}") for _ in range(2)]
    large = [submit(slurm, gate, f"-c{CPUS}", "-n1") for _ in range(3)]
    small = [submit(slurm, gate, "-n1", "-c1") for _ in range(5)]
    submit(slurm, gate, "--hold", "-n1")
    submit(slurm, gate, "-c64", "-n1", check=False)  # 24.11 does not take it
    return [*whole, *large, *small]


NEEDED = 2 * 2 + 3 + -(-5 // CPUS)


def end(cluster_api, site, slurm, gate, *names):
    gate.touch()
    site.print_logs()
    slurm.command("scancel", "-u", "root", check=False)
    site.end()
    for name in names[1:]:
        cluster_api.api.delete(f"{CORE}/machinedeployments/{name}")
    cluster_api.delete_deployment(names[0])
    wait_until(lambda: not cluster_api.infrastructure.used, what="the machines to go")


def test_up_and_down(plane, cluster_api, hosts, autoscaling_account, own_slurm, slurm_root, tmp_path, timing):
    name = "scale" + os.path.basename(slurm_root).replace(".", "")
    slurm = start_slurm(own_slurm, slurm_root, name)
    hosts.begin(slurm)
    tmp_path.chmod(0o755)
    gate = tmp_path / "gate"
    make_scaled(cluster_api, name, 2, 12)
    site = Site(plane, slurm, autoscaling_account, tmp_path)
    start(site)
    try:
        wait_until(lambda: slurm.sinfo("-h", "-t", "idle", "-o", "%D").split() == ["2"], 60, "the least machines")
        jobs = twelve(slurm, gate)
        wait_states(slurm, jobs, ("RUNNING", "0:0"))
        assert len(live(cluster_api)) == replicas(cluster_api, name) == NEEDED
        gate.touch()
        wait_states(slurm, jobs, ("COMPLETED", "0:0"))
        wait_until(lambda: len(cluster_api.machines()) == 2, 180,
                   lambda: f"two Machines: {slurm.command('sinfo', '-R').stdout}")
        assert replicas(cluster_api, name) == 2
        assert not [one for one in live(cluster_api) if MARK in one["metadata"].get("annotations", {})]
        assert set(states(slurm, jobs).values()) == {("COMPLETED", "0:0")}
    finally:
        end(cluster_api, site, slurm, gate, name)


UP_OR_DOWN = "/scale?fieldManager="
DRAIN = "state=drain reason=slurmlet: scale-down"
MARKED = f'"{MARK}":"slurmlet"'
RELEASE = f'"{HOOK}":null'


def whole(slurm, gate, count):
    return [submit(slurm, gate, "-n1", f"-c{CPUS}") for _ in range(count)]


def idle(slurm):
    return slurm.sinfo("-h", "-t", "idle", "-o", "%D").strip()


def drained(slurm):
    """By us, and not yet released."""
    return len(re.findall(r"State=IDLE\S*DRAIN\S* [^\n]*Reason=slurmlet: scale-down",
                          slurm.command("scontrol", "-o", "show", "node").stdout))


def marked(cluster_api):
    return len([one for one in cluster_api.machines() if MARK in one["metadata"].get("annotations", {})])


@pytest.fixture(name="pool")
def a_pool_of_one_to_three(plane, cluster_api, hosts, autoscaling_account, own_slurm, tmp_path, request):
    """(name, slurm, gate, site, steps)"""
    name = "pool" + str(sum(map(ord, request.node.name)))
    slurm = start_slurm(own_slurm, "", name)
    hosts.begin(slurm)
    tmp_path.chmod(0o755)
    gate = tmp_path / "gate"
    make_scaled(cluster_api, name, 1, 3)
    with Turnstile(plane, autoscaling_account, tmp_path / "front") as steps:
        site = Site(plane, slurm, steps, tmp_path)
        try:
            wait_until(lambda: idle(slurm) == "1", what="the first machine")
            yield name, slurm, gate, site, steps
        finally:
            steps.let_all()
            end(cluster_api, site, slurm, gate, name)


def start_held(site, steps):
    return site.start(*FLAGS, f"--slurm-bin-dir={steps.programs}")


def test_the_operator_is_killed_at_each_step(cluster_api, pool):
    """Before it is done, and when it is done but the operator has not heard so."""
    name, slurm, gate, site, steps = pool
    jobs = whole(slurm, gate, 2)
    wait_until(lambda: sorted(states(slurm, jobs).values()) == [("PENDING", "0:0"), ("RUNNING", "0:0")], what="one job")

    def kill_at(when, step, holds):
        steps.stop_at(when, step)
        start_held(site, steps)
        wait_until(steps.is_reached, what=f"the step {step}, {when}")
        wait_until(holds, 10, f"what holds {when} {step}")
        site.operators[-1].kill()

    def has(count):
        return replicas(cluster_api, name) == count

    kill_at("before", UP_OR_DOWN, lambda: has(1))
    kill_at("after", UP_OR_DOWN, lambda: has(2))
    wait_states(slurm, jobs, ("RUNNING", "0:0"))
    gate.touch()
    wait_states(slurm, jobs, ("COMPLETED", "0:0"))
    kill_at("before", DRAIN, lambda: has(2) and drained(slurm) == 0)
    kill_at("after", DRAIN, lambda: has(2) and drained(slurm) == 1)
    kill_at("before", MARKED, lambda: has(2) and marked(cluster_api) == 0)
    kill_at("after", MARKED, lambda: has(2) and marked(cluster_api) == 1 and drained(slurm) == 1)
    kill_at("before", UP_OR_DOWN, lambda: has(2) and drained(slurm) == 1)
    kill_at("after", UP_OR_DOWN, lambda: has(1))
    kill_at("before", RELEASE, lambda: len(cluster_api.machines()) == 2)
    kill_at("after", RELEASE, lambda: has(1))
    steps.let_all()
    start_held(site, steps)
    wait_until(lambda: len(cluster_api.machines()) == 1, what="one Machine")
    assert has(1) and marked(cluster_api) == 0


def test_what_comes_between(cluster_api, pool):
    """Demand after the drain, a job that got in before it, an administrator's drain, and slurmctld's absence."""
    name, slurm, gate, site, steps = pool
    other = gate.with_name("other")
    jobs = whole(slurm, gate, 2)
    first = start_held(site, steps)
    wait_states(slurm, jobs, ("RUNNING", "0:0"))
    steps.stop_at("before", MARKED)
    gate.touch()
    wait_until(steps.is_reached, what="a drained machine")
    assert drained(slurm) == 1 and replicas(cluster_api, name) == 2
    again = whole(slurm, other, 2)  # demand: the drain ends
    wait_until(lambda: "None" not in slurm.command("squeue", "-h", "-t", "pending", "-o", "%r").stdout,
               what="slurmctld to have looked at them")
    first.kill()
    steps.let_all()
    start_held(site, steps)
    wait_states(slurm, again, ("RUNNING", "0:0"))
    assert replicas(cluster_api, name) == 2

    node = slurm.command("squeue", "-h", "-j", again[0], "-o", "%N").stdout.strip()
    machine = next(one for one in cluster_api.machines()
                   if node in [address["address"] for address in one["status"].get("addresses", [])])
    uid = machine["metadata"]["uid"]
    slurm.command("scontrol", "update", f"nodename={node}", "state=drain", f"reason=slurmlet: scale-down [{uid}]")
    site.wait_undrained(node)  # a job has got in
    slurm.command("scontrol", "update", f"nodename={node}", "state=drain", "reason=fan")
    slurm.daemon("stop", "slurmctld")
    other.touch()
    waits = len(site.operators[-1].output())
    wait_until(lambda: "slurmctld did not report" in site.operators[-1].output()[waits - 200:], 60, "its absence")
    assert replicas(cluster_api, name) == 2
    slurm.daemon("start", "slurmctld")
    wait_states(slurm, again, ("COMPLETED", "0:0"))
    # The one that the administrator has drained stays and is none that a job can use.
    wait_until(lambda: "DRAIN" in slurm.node_state(node), what="the drain")
    site.wait_dumps(node, 8)
    assert site.reason(node) == "fan" and replicas(cluster_api, name) in (1, 2)


def test_two_deployments_of_one_partition(plane, cluster_api, hosts, autoscaling_account, own_slurm, tmp_path):
    slurm = start_slurm(own_slurm, "", "twopools")
    hosts.begin(slurm)
    tmp_path.chmod(0o755)
    gate = tmp_path / "gate"
    make_scaled(cluster_api, "left", 1, 2)
    make_scaled(cluster_api, "right", 1, 2)
    site = Site(plane, slurm, autoscaling_account, tmp_path)
    [port] = free_ports(1)
    start(site, f"--metrics-address=127.0.0.1:{port}")

    def shows(idle_nodes, allocated, wanted):
        now = {name + str(sorted(labels.values())): value
               for name, some in scraped(port).items() for labels, value in some}
        some = "slurmlet_operator_partition_"
        return (now.get(f"{some}idle_nodes['normal']"), now.get(f"{some}allocated_nodes['normal']"),
                now.get(f"{some}wanted_machines['default/left', 'normal']")) == (idle_nodes, allocated, wanted)

    try:
        wait_until(lambda: idle(slurm) == "2", what="the least machines")
        wait_until(lambda: shows(2, 0, 1), what="the metrics of idle machines")
        jobs = [submit(slurm, gate, "-N4", f"-n{4 * CPUS}")]
        wait_states(slurm, jobs, ("RUNNING", "0:0"))
        assert replicas(cluster_api, "left") == replicas(cluster_api, "right") == 2
        wait_until(lambda: shows(0, 4, 2), what="the metrics of a job")
        gate.touch()
        wait_states(slurm, jobs, ("COMPLETED", "0:0"))
        wait_until(lambda: len(cluster_api.machines()) == 2, 120, "two Machines")
        assert len(live(cluster_api, "left")) == len(live(cluster_api, "right")) == 1
    finally:
        end(cluster_api, site, slurm, gate, "left", "right")


def test_what_must_not_be_scaled(plane, cluster_api, pool):
    """A MachineDeployment of another Cluster, and one with a Machine that nothing protects."""
    name, slurm, gate, site, _ = pool
    path, [port] = f"{CORE}/machinedeployments/foreign", free_ports(1)
    own = cluster_api.api.get(f"{CORE}/machinedeployments/{name}")
    labels = {**own["metadata"]["labels"], "cluster.x-k8s.io/cluster-name": "other"}
    cluster_api.api.create(f"{CORE}/machinedeployments", {
        **{key: own[key] for key in ("apiVersion", "kind")},
        "metadata": {"name": "foreign", "labels": labels, "annotations": own["metadata"]["annotations"]},
        "spec": {**own["spec"], "clusterName": "other", "replicas": 0, "paused": True,
                 "selector": {"matchLabels": {"pool": "foreign"}},
                 "template": {**own["spec"]["template"], "metadata": {"labels": {"pool": "foreign"}},
                              "spec": {**own["spec"]["template"]["spec"], "clusterName": "other"}}}})
    try:
        one = site.start("--autoscale", "--leader-elect=false")  # no machineCluster
        wait_until(lambda: one.output().count("is not scaled: ") == 2, 30, "what keeps both from being scaled")
        assert "default/other" in one.output() and replicas(cluster_api, "foreign") == 0
        one.kill()
    finally:
        cluster_api.api.delete(path)

    cluster_api.scale(name, 2)
    wait_until(lambda: idle(slurm) == "2", what="two machines")
    bare = live(cluster_api)[0]["metadata"]["name"]
    template = {"spec": {"template": {"metadata": {"annotations": {HOOK: None}}}}}
    cluster_api.api.merge(f"{CORE}/machinedeployments/{name}", template)
    wait_until(lambda: all(HOOK not in one["metadata"].get("annotations", {}) for one in live(cluster_api)), what="no hook")
    cluster_api.api.merge(f"{CORE}/machines/{live(cluster_api)[1]['metadata']['name']}",
                          {"metadata": {"annotations": {HOOK: ""}}})
    one = site.start(*FLAGS, f"--metrics-address=127.0.0.1:{port}")
    wait_until(lambda: f"is not scaled down: Machine default/{bare}" in one.output(), 60, "what keeps it")
    wait_until(lambda: scraped(port)["slurmlet_operator_dumps_total"][0][1] > 15, 60, "more than idle-after")
    assert (replicas(cluster_api, name), drained(slurm), marked(cluster_api)) == (2, 0, 0)

    cluster_api.api.merge(f"{CORE}/machinedeployments/{name}", {"metadata": {"annotations": {"slurmlet.io/scale-for": None}}})
    wait_until(lambda: "slurmlet_operator_partition_wanted_machines" not in scraped(port), 20, "no metrics of what was")


def test_what_is_rejected_is_not_tried_again_before_the_next_interval(plane, cluster_api, pool, autoscaling_account):
    name, slurm, gate, site, _ = pool
    role, [port] = "/apis/rbac.authorization.k8s.io/v1/clusterroles/slurmlet-operator-autoscaling", free_ports(1)
    rules = plane.admin.get(role)["rules"]
    seen = {}

    def rejected(times):
        failures = {labels["action"]: value for labels, value in scraped(port)["slurmlet_operator_scale_actions_total"]}
        seen.setdefault(failures["failure"], time.monotonic())
        return failures["failure"] >= times

    try:
        plane.admin.merge(role, {"rules": [rule for rule in rules if rule["verbs"] == ["list"]]})
        wait_until(lambda: not can(plane, "patch", "machinedeployments/scale", autoscaling_account.user,
                                   api_group="cluster.x-k8s.io"), what="no right")
        jobs = whole(slurm, gate, 2)
        wait_until(lambda: sorted(states(slurm, jobs).values()) == [("PENDING", "0:0"), ("RUNNING", "0:0")], what="one job")
        one = site.start(*FLAGS, "--interval=10s", f"--metrics-address=127.0.0.1:{port}")
        wait_until(lambda: "could not be scaled" in one.output(), 30, "the first rejection")
        wait_until(lambda: rejected(3), 60, "three rejections")
        assert seen[3] - seen[2] > 5
        assert replicas(cluster_api, name) == 1
    finally:
        plane.admin.merge(role, {"rules": rules})


def test_no_more_machines_than_jobs_can_use(cluster_api, pool):
    """An array that may run two elements at once, and a job that names a node on which another runs."""
    name, slurm, gate, site, _ = pool
    [port] = free_ports(1)
    array = submit(slurm, gate, "--array=1-4%2", "-n1", f"-c{CPUS}")
    wait_until(lambda: not idle(slurm).strip("0"), what="the first element")
    [node] = slurm.command("squeue", "-h", "-t", "running", "-o", "%N").stdout.split()
    named = submit(slurm, gate, f"--nodelist={node}", "-n1", f"-c{CPUS}")
    one = site.start(*FLAGS, f"--metrics-address=127.0.0.1:{port}")
    wait_until(lambda: len(slurm.command("squeue", "-h", "-t", "running", "-o", "%i").stdout.split()) == 2,
               what="two elements")
    seen = scraped(port)["slurmlet_operator_dumps_total"][0][1]
    wait_until(lambda: scraped(port)["slurmlet_operator_dumps_total"][0][1] > seen + 10, 60, "what is not needed")
    assert replicas(cluster_api, name) == 2 and "to 3 Machines" not in one.output()
    gate.touch()
    wait_until(lambda: not slurm.command("squeue", "-h", "-o", "%i").stdout.split(), 120, "the end of all jobs")
    assert states(slurm, [named])[named] == ("COMPLETED", "0:0") == states(slurm, [array])[array]


def test_what_another_slurm_cluster_has_is_left_alone(plane, cluster_api, pool):
    name, slurm, gate, site, _ = pool
    [port] = free_ports(1)
    wait_until(lambda: "providerID" in live(cluster_api)[0]["spec"], what="the provider's answer")
    [machine] = live(cluster_api)
    plane.admin.create("/api/v1/nodes", {
        "metadata": {"name": "elsewhere", "labels": {"slurmlet.io/version": "0.1.0"},
                     "annotations": {"slurmlet.io/slurm-cluster": "other"}},
        "spec": {"providerID": machine["spec"]["providerID"]}})
    try:
        cluster_api.api.merge(f"{CORE}/machines/{machine['metadata']['name']}",
                              {"metadata": {"annotations": {MARK: "slurmlet"}}})
        jobs = whole(slurm, gate, 2)
        wait_until(lambda: sorted(states(slurm, jobs).values()) == [("PENDING", "0:0"), ("RUNNING", "0:0")], what="one job")
        one = site.start(*FLAGS, f"--metrics-address=127.0.0.1:{port}")
        wait_until(lambda: "slurmctld reports" in one.output() and
                   scraped(port)["slurmlet_operator_dumps_total"][0][1] > 10, 60, "some dumps")
        assert (replicas(cluster_api, name), marked(cluster_api)) == (1, 1)
    finally:
        plane.admin.delete("/api/v1/nodes/elsewhere")
    wait_states(slurm, jobs, ("RUNNING", "0:0"))
    assert replicas(cluster_api, name) == 2
