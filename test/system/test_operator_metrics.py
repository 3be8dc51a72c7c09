"""What slurmlet-operator serves at --metrics-address: the metrics that alerts and the dashboard use, and whether
it is ready."""
import socket

import pytest

from harness.cluster_api import CRDS, stand_in_crd
from harness.metric_names import OPERATOR_METRICS, one as sample, samples
from harness.programs import free_port, get_page
from harness.rig import wait_until
from test_operator import NODES, Site

# While a Machine waits.
ONLY_THEN = {"slurmlet_operator_machines_waiting_since_timestamp_seconds"}


@pytest.fixture(scope="module")
def cluster(own_slurm):
    return own_slurm(nodes=NODES, cpus=2, cluster_name="opera")


@pytest.fixture(name="site")
def site_with_nodes(plane, cluster, account, tmp_path):
    one = Site(plane, cluster, account, tmp_path)
    for name in NODES:
        cluster.reset(name)
        one.add(name)
    yield one
    one.end()
    for name in NODES:
        cluster.reset(name)


def test_metrics_are_those_that_others_use(site):
    port = free_port()
    site.start(f"--metrics-address=127.0.0.1:{port}")
    site.wait_record("op001", lambda r: r["text"])
    site.cordon("op001")
    site.wait_drained("op001")
    wait_until(lambda: sample(get_page(port, "/metrics")[1], "slurmlet_operator_node_updates_total", action="drain") == 1,
               what="the drain to be counted")
    text = get_page(port, "/metrics")[1]
    found = samples(text)
    assert set(found) <= set(OPERATOR_METRICS)
    assert set(OPERATOR_METRICS) - set(found) <= ONLY_THEN
    for name, all_of_it in found.items():
        for labels, _ in all_of_it:
            assert set(labels) == OPERATOR_METRICS[name], name
    assert sample(text, "slurmlet_operator_leader") == 1
    assert sample(text, "slurmlet_operator_nodes") == sample(text, "slurmlet_operator_slurm_nodes") == 2
    assert sample(text, "slurmlet_operator_dumps_total", result="success") >= 1
    assert get_page(port, "/healthz")[0] == 200
    wait_until(lambda: get_page(port, "/readyz")[0] == 200, what=lambda: "readiness: " + get_page(port, "/readyz")[1])
    site.slurm.daemon("stop", "slurmctld")
    try:
        wait_until(lambda: get_page(port, "/readyz")[0] == 503, what="it not to be ready")
        assert get_page(port, "/readyz")[1].startswith(f"slurmlet on {socket.gethostname().lower()} is not ready\nslurmctld: ")
        assert get_page(port, "/healthz")[0] == 200
        assert sample(get_page(port, "/metrics")[1], "slurmlet_operator_dumps_total", result="failure") >= 1
    finally:
        site.slurm.daemon("start", "slurmctld")


def test_others_of_cluster_apis_kinds_without_machines(plane, site):
    """What is left of a Cluster API whose Machines have gone: nobody removes the finalizers of the rest."""
    crd = stand_in_crd("cluster.x-k8s.io", "Rest")
    path = f"{CRDS}/{crd['metadata']['name']}"
    plane.admin.create(CRDS, crd)
    try:
        wait_until(lambda: plane.admin.find("/apis/cluster.x-k8s.io/v1beta2"), what="the kind to be served")
        port = free_port()
        site.start(f"--metrics-address=127.0.0.1:{port}")
        wait_until(lambda: get_page(port, "/readyz")[0] == 200, what=lambda: "readiness: " + get_page(port, "/readyz")[1])
    finally:
        plane.admin.delete(path)
        wait_until(lambda: plane.admin.find(path) is None, what="its end")
