"""For those who scale by other means: the metrics of a partition, and marks on idle Machines, of which Cluster API takes those
first. And how autoscaling ends."""
import pytest

from harness.autoscaling import MARK, SIZE
from harness.cluster_api import CORE
from harness.metric_names import SCALING_METRICS, scraped
from harness.operator_site import HOOK, Site
from harness.rig import wait_until
from slurmcluster.config import free_ports
from test_autoscaling import (MARKED, a_pool_of_one_to_three, autoscaling_account,  # noqa: F401
                              cluster_api, drained, end, hosts, idle, live, marked, replicas, start, start_held,
                              start_slurm, states, submit, wait_states, whole)


def annotate(cluster_api, name, annotations):
    cluster_api.api.merge(f"{CORE}/machinedeployments/{name}", {"metadata": {"annotations": annotations}})


def make(cluster_api):
    cluster_api.make_deployment("workers", {HOOK: ""})
    annotate(cluster_api, "workers", {
        "slurmlet.io/scale-for": "partition=normal", "slurmlet.io/mark-idle": "true", "slurmlet.io/idle-after": "5s",
        SIZE + "min-size": "1", SIZE + "max-size": "6"})
    cluster_api.scale("workers", 3)


def test_metrics_and_marks(plane, cluster_api, hosts, autoscaling_account, own_slurm, tmp_path):  # noqa: F811
    slurm = start_slurm(own_slurm, "", "signals")
    hosts.begin(slurm)
    tmp_path.chmod(0o755)
    gate = tmp_path / "gate"
    make(cluster_api)
    site = Site(plane, slurm, autoscaling_account, tmp_path)
    [port] = free_ports(1)
    start(site, f"--metrics-address=127.0.0.1:{port}")

    def metrics(*names):
        now = scraped(port)
        found = [now.get(f"slurmlet_operator_{name}") for name in names]
        return [int(one[0][1]) if one else None for one in found]

    def of_partition():
        return metrics("partition_pending_jobs", "partition_pending_nodes", "partition_idle_nodes",
                       "partition_allocated_nodes")

    def of_machines():
        return metrics("partition_wanted_machines", "machinedeployment_replicas", "machinedeployment_max_size",
                       "machinedeployment_late_machines")

    def marks():
        return {one["metadata"]["name"] for one in live(cluster_api, "workers")
                if one["metadata"]["annotations"].get(MARK) == "slurmlet"}

    def machine_on(node):
        return next(one["metadata"]["name"] for one in live(cluster_api, "workers")
                    if one["status"].get("addresses", [{}])[0].get("address") == node)

    try:
        wait_until(lambda: idle(slurm) == "3", what="three machines")
        job = submit(slurm, gate, "-N1", "-n1", "--exclusive")
        wait_states(slurm, [job], ("RUNNING", "0:0"))
        wide = submit(slurm, gate, "-N4", "-n4", "--exclusive")
        wait_until(lambda: of_partition() == [1, 4, 2, 1], what=lambda: f"metrics: {of_partition()}")
        wait_until(lambda: of_machines() == [5, 3, 6, 0], what=lambda: f"metrics: {of_machines()}")
        busy = machine_on(slurm.command("squeue", "-h", "-j", job, "-o", "%N").stdout.strip())
        wait_until(lambda: len(marks()) == 2, what=lambda: f"marks: {marks()}")
        assert busy not in marks()
        found = scraped(port)
        for name, labels in SCALING_METRICS.items():
            for pairs, _ in found.get(name, []):
                assert set(pairs) == labels, name
        assert {name for name in SCALING_METRICS if name not in found} <= {"slurmlet_operator_jobs_unknown_reason"}
        assert found["slurmlet_operator_jobs_too_large"][0][1] == 0
        # The operator changes nothing for the demand.
        assert replicas(cluster_api, "workers") == 3
        slurm.command("scancel", wide)
        wait_until(lambda: of_machines() == [1, 3, 6, 0], what=lambda: f"metrics: {of_machines()}")
        site.wait_dumps("dyn0", 8)
        assert drained(slurm) == 0 and replicas(cluster_api, "workers") == 3  # nor for its end
        # As a HorizontalPodAutoscaler would.
        path = f"{CORE}/machinedeployments/workers/scale"
        scale = plane.admin.get(path)
        scale["spec"]["replicas"] = of_machines()[0]
        plane.admin.call("PUT", path, scale)
        wait_until(lambda: len(cluster_api.machines()) == 1, what="one Machine")
        assert {one["metadata"]["name"] for one in live(cluster_api)} == {busy}
        assert set(states(slurm, [job]).values()) == {("RUNNING", "0:0")}
        gate.touch()
        wait_states(slurm, [job], ("COMPLETED", "0:0"))
        hosts.booting = False
        annotate(cluster_api, "workers", {"slurmlet.io/boot-timeout": "1s"})
        cluster_api.scale("workers", 2)
        wait_until(lambda: of_machines()[1:] == [2, 6, 1], what=lambda: f"a late machine: {of_machines()}")
        hosts.booting = True
        wait_until(lambda: of_machines()[1:] == [2, 6, 0], what=lambda: f"none: {of_machines()}")
    finally:
        hosts.booting = True
        end(cluster_api, site, slurm, gate, "workers")


@pytest.mark.parametrize("change, why", [
    ({"slurmlet.io/scale-for": None}, "is not scaled any more"),
    ({"slurmlet.io/mark-idle": "true"}, "another program scales"),
    ({SIZE + "min-size": "2"}, "demand came back"),
], ids=["not scaled", "by another program", "minimum"])
def test_what_was_begun_ends_with_its_cause(cluster_api, pool, change, why):  # noqa: F811
    """As docs/how-to/autoscaling.md says, before autoscaling is turned off."""
    name, slurm, gate, site, steps = pool
    jobs = whole(slurm, gate, 2)
    start_held(site, steps)
    wait_states(slurm, jobs, ("RUNNING", "0:0"))
    steps.stop_at("after", MARKED)
    gate.touch()
    wait_until(steps.is_reached, what="a drained and marked machine")
    assert drained(slurm) == marked(cluster_api) == 1
    annotate(cluster_api, name, change)
    steps.let_all()
    if "slurmlet.io/mark-idle" in change:  # idle ones are marked anew
        wait_until(lambda: drained(slurm) == 0 and marked(cluster_api) == 2, what="the end of the drain")
    else:
        wait_until(lambda: drained(slurm) == marked(cluster_api) == 0, what="the end of the drain and of its mark")
    assert replicas(cluster_api, name) == len(live(cluster_api)) == 2
    undrained = [line for line in site.operators[-1].output().splitlines() if "undrained Slurm node" in line]
    assert undrained and all(why in line for line in undrained)
