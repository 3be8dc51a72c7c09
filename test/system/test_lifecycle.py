"""The Node object between others: deleted, foreign, changed by hand, and over restarts."""
import time

import pytest

from harness.api import condition
from harness.rig import GENERAL_WAIT
from test_two_daemons import is_rejected_renewal

UUID = "5d0f6f1e-8a41-4c0e-9d5e-3f1a2b6c7d80"
OTHER_UUID = "00000000-aaaa-4bbb-8ccc-dddddddddddd"


def uid_of(node):
    return node["metadata"]["uid"]


def delete_and_wait_for_a_new_one(rig):
    """Deletes the Node; returns the one that is registered after it."""
    old = uid_of(rig.node())
    rig.admin.delete(rig.path)
    return rig.wait(lambda node: node and uid_of(node) != old and
                    condition(node, "Ready").get("status") == "True")


# -- deleted ----------------------------------------------------------------------------


def test_deleted_node_is_registered_again_as_it_was(rig, timing):
    rig.provision(UUID)
    rig.start_and_know()
    before = rig.node()
    began = time.monotonic()
    after = delete_and_wait_for_a_new_one(rig)
    timing("kubectl delete node to registered again", time.monotonic() - began)
    assert after["spec"]["providerID"] == before["spec"]["providerID"]
    assert after["metadata"]["labels"]["metal3.io/uuid"] == UUID
    ours = [taint for taint in after["spec"]["taints"]
            if taint["key"] == "virtual-kubelet.io/provider"]
    assert len(ours) == 2
    # The lease follows, so that garbage collection does not take it.
    path, name = rig.lease_path.rsplit("/", 1)
    rig.admin.wait(path, lambda lease, event: event != "DELETED" and lease["metadata"][
        "ownerReferences"][0]["uid"] == uid_of(after), GENERAL_WAIT, f"metadata.name={name}")
    rig.wait_event("Reregistered")


def test_provider_id_set_by_cluster_api_survives_the_node(rig):
    """Where the metadata has none CAPM3 sets it, and a Node made anew has to have it again."""
    provider_id = "metal3://metal3/node-7/machine-7"
    rig.provision(UUID, with_provider_id=False)
    rig.start_and_know()  # it watches its Node now
    assert "providerID" not in rig.node()["spec"]
    rig.admin.merge(rig.path, {"spec": {"providerID": provider_id}})
    assert delete_and_wait_for_a_new_one(rig)["spec"]["providerID"] == provider_id
    # The same when the daemon was away meanwhile.
    rig.stop()
    rig.admin.delete(rig.path)
    rig.start()
    assert rig.node()["spec"]["providerID"] == provider_id


def test_newly_provisioned_host_forgets_the_provider_id_of_before(rig):
    rig.provision(UUID, with_provider_id=False)
    rig.start_and_know()
    rig.admin.merge(rig.path, {"spec": {"providerID": "metal3://metal3/node-7/machine-7"}})
    delete_and_wait_for_a_new_one(rig)
    rig.stop()
    rig.admin.delete(rig.path)
    rig.provision(OTHER_UUID, with_provider_id=False)
    rig.start()
    assert rig.node()["metadata"]["labels"]["metal3.io/uuid"] == OTHER_UUID
    assert "providerID" not in rig.node()["spec"]
    assert "reprovisioned" in rig.log()


def test_recreate_never_leaves_a_deleted_node_deleted(rig):
    rig.configure(node={"recreate": "never"})
    rig.start()
    rig.admin.delete(rig.path)
    rig.wait_log("was deleted; not registered again (node.recreate)")
    with pytest.raises(TimeoutError):
        rig.wait(lambda node: node is not None, timeout=5)


# -- another machine's ---------------------------------------------------------------------


@pytest.fixture(name="foreign")
def node_of_another_machine(rig):
    """A Node of our name that belongs to the machine OTHER_UUID."""
    rig.provision(UUID)
    rig.admin.create("/api/v1/nodes", {"metadata": {
        "name": rig.name, "labels": {"metal3.io/uuid": OTHER_UUID}}})
    return rig


def writes(rig, since):
    """The daemon's requests that change Nodes or Leases of this name."""
    return [(entry["verb"], entry["requestURI"]) for entry in rig.audit.entries(since)
            if not is_rejected_renewal(entry) and (
                entry["verb"] in ("patch", "update", "delete") or
                (entry["verb"] == "create" and "/leases" in entry["requestURI"]))]


def test_foreign_node_is_left_alone(foreign):
    since = foreign.audit.mark()
    foreign.start(ready=False)
    foreign.wait_log(f"Node {foreign.name} belongs to another machine: its metal3.io/uuid is "
                     f"{OTHER_UUID}, this machine's is {UUID}")
    assert f"kubectl delete node {foreign.name}" in foreign.log()
    # The daemon has long been able to do harm when a Node of its own would have been renewed.
    with pytest.raises(TimeoutError):
        foreign.wait(lambda node: condition(node, "SlurmdReady"), timeout=4)
    assert writes(foreign, since) == []
    node = foreign.node()
    assert node["metadata"]["labels"]["metal3.io/uuid"] == OTHER_UUID
    assert {field["manager"] for field in node["metadata"]["managedFields"]} & {"slurmlet"} == set()
    assert foreign.admin.find(foreign.lease_path) is None


# -- what others wrote ------------------------------------------------------------------------


THEIRS = {
    "metadata": {"labels": {"node-role.kubernetes.io/slurm": "", "cluster.x-k8s.io/owner": "md-0"},
                 "annotations": {"cluster.x-k8s.io/machine": "machine-7"}},
}
THEIR_CONDITION = {"type": "KernelDeadlock", "status": "False", "reason": "KernelHasNoDeadlock",
                   "message": "kernel has no deadlock",
                   "lastTransitionTime": "2026-01-01T00:00:00Z"}
THEIR_TAINT = {"key": "site.example/maintenance", "value": "yes", "effect": "NoSchedule"}


def write_theirs(rig):
    rig.admin.merge(rig.path, THEIRS)
    taints = rig.node()["spec"]["taints"] + [THEIR_TAINT]
    rig.admin.merge(rig.path, {"spec": {"taints": taints, "unschedulable": True}})
    rig.admin.call("PATCH", rig.path + "/status", {"status": {"conditions": [THEIR_CONDITION]}},
                   "application/strategic-merge-patch+json")


def assert_theirs(node):
    for kind in ("labels", "annotations"):
        for key, value in THEIRS["metadata"][kind].items():
            assert node["metadata"][kind].get(key) == value, key
    found = condition(node, "KernelDeadlock")
    assert {key: found[key] for key in THEIR_CONDITION} == THEIR_CONDITION
    assert THEIR_TAINT in node["spec"]["taints"]
    assert node["spec"]["unschedulable"] is True


def test_what_others_wrote_survives_updates_and_restarts(rig, idle_slurm):
    rig.start_and_know()
    write_theirs(rig)
    idle_slurm.set_state("nid000001", "drained", "an update")
    rig.wait_condition("SlurmNodeStateDrain", "True")
    assert_theirs(rig.node())
    rig.stop()
    rig.configure(node={"labels": {"site.example/second": "start"}})
    rig.start()
    rig.wait(lambda node: node["metadata"]["labels"].get("site.example/second") == "start")
    assert_theirs(rig.node())
    ours = {taint["effect"] for taint in rig.node()["spec"]["taints"]
            if taint["key"] == "virtual-kubelet.io/provider"}
    assert ours == {"NoSchedule", "NoExecute"}


# -- restarts ------------------------------------------------------------------------------------


def test_restart_changes_no_transition_time_and_no_uid(rig):
    rig.start_and_know()
    before = rig.node()
    time.sleep(1.1)  # the API's times have whole seconds: one of the restart would show
    since = rig.audit.mark()
    rig.restart()
    rig.wait_next_renewal()
    rig.wait_known()
    after = rig.node()
    assert uid_of(after) == uid_of(before)
    times = {entry["type"]: entry["lastTransitionTime"] for entry in before["status"]["conditions"]}
    assert {entry["type"]: entry["lastTransitionTime"]
            for entry in after["status"]["conditions"]} == times
    assert "belongs to this machine; adopted" in rig.log()
    patches = [request for request in rig.audit.requests(since) if request[2] == "nodes/status"]
    assert len(patches) <= 1
