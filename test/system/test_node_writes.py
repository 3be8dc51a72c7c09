"""deploy/admission/node-writes.yaml with the real API server: what root on a compute node can no longer do
with the node's credential, and that the real daemon misses nothing."""
import pytest

from harness.api import Api, ApiError, condition, repository
from harness.rig import wait_until

MANIFEST = repository() / "deploy/admission/node-writes.yaml"
RECORD = "slurmlet.io/record"
UUID = "metal3.io/uuid"
SLURM_NODE = "nid000001"

CORDON = {"spec": {"unschedulable": True}}
FORGED = {"metadata": {"annotations": {RECORD: "forged"}}}
NO_RECORD = {"metadata": {"annotations": {RECORD: None}}}
UNKNOWN = {"metadata": {"labels": {"slurmlet.io/version": None}}}


def annotated(key, value):
    return {"metadata": {"annotations": {"slurmlet.io/" + key: value}}}


def uuid(value):
    return {"metadata": {"labels": {UUID: value}}}


@pytest.fixture(scope="module", autouse=True)
def policy(plane):
    """In force: the API server takes it up from a watch."""
    node = Api(plane.node_kubeconfig("probe"))
    plane.admin.create("/api/v1/nodes", {"metadata": {"name": "probe", "labels": {"slurmlet.io/version": "0"}}})
    assert refusal(node, "probe", CORDON, dry_run=True) is None  # without it
    plane.kubectl_output("apply", "--validate=strict", "-f", str(MANIFEST))
    wait_until(lambda: refusal(node, "probe", CORDON, dry_run=True), what="the policy")
    yield
    plane.kubectl_output("delete", "-f", str(MANIFEST))
    plane.admin.delete("/api/v1/nodes/probe")


def refusal(api, name, change, part="", dry_run=False):
    """The API server's refusal of a change, None when it is made."""
    try:
        api.merge(f"/api/v1/nodes/{name}{part}{'?dryRun=All' if dry_run else ''}", change)
        return None
    except ApiError as error:
        return error


@pytest.fixture(name="node", scope="module")
def a_node(plane):
    """(its credential, its name): cordoned, with a record."""
    name = "written"
    plane.admin.create("/api/v1/nodes", {
        "metadata": {"name": name, "labels": {"slurmlet.io/version": "0", UUID: "0a"}, "annotations": {
            RECORD: "true", "slurmlet.io/drain": "true"}},
        **CORDON})
    yield Api(plane.node_kubeconfig(name)), name
    plane.admin.delete(f"/api/v1/nodes/{name}")


@pytest.mark.parametrize("part", ["", "/status"], ids=["node", "status"])
@pytest.mark.parametrize("change, words", [
    ({"spec": {"unschedulable": None}}, "may not cordon or uncordon itself"),
    ({"spec": {"unschedulable": False}}, "may not cordon or uncordon itself"),
    (FORGED, f"{RECORD} is slurmlet-operator's to write"),
    (NO_RECORD, f"{RECORD} is slurmlet-operator's to write"),
    (UNKNOWN, "may not remove its label slurmlet.io/version"),
    (annotated("detach", "Detached"), "slurmlet.io/detach is slurmlet-operator's"),
    (annotated("detach", ""), "slurmlet.io/detach is slurmlet-operator's"),
    (annotated("drain", "forged"), "slurmlet.io/drain is slurmlet-operator's"),
    (annotated("drain", None), "slurmlet.io/drain is slurmlet-operator's"),
    (uuid("0b"), "may not change its label metal3.io/uuid"),
    (uuid(""), "may not change its label metal3.io/uuid"),
    (uuid(None), "may not change its label metal3.io/uuid"),
], ids=["uncordon", "uncordon by false", "forge", "remove record", "remove label", "detach", "empty detach", "drain",
        "remove drain", "another's UUID", "empty UUID", "remove UUID"])
def test_a_node_cannot_change_what_the_operator_goes_by(plane, node, change, words, part):
    api, name = node
    before = plane.admin.get(f"/api/v1/nodes/{name}")
    error = refusal(api, name, change, part)
    if part and "spec" in change:
        assert error is None  # of the spec nothing can be written there
    else:
        assert (error.status, error.body["reason"]) == (403, "Forbidden")
        assert words in error.body["message"]
    after = plane.admin.get(f"/api/v1/nodes/{name}")
    for one in (before, after):
        for field in ("resourceVersion", "managedFields"):
            one["metadata"].pop(field, None)
        # Those of the node controller come and go at any time.
        one["spec"]["taints"] = [taint for taint in one["spec"].get("taints", [])
                                 if not taint["key"].startswith("node.kubernetes.io/")]
        one["metadata"]["annotations"].pop("node.alpha.kubernetes.io/ttl", None)
    assert (before["spec"], before["metadata"]) == (after["spec"], after["metadata"])


def test_nor_get_round_it_by_deleting_the_node(node):
    api, name = node
    with pytest.raises(ApiError) as refused:
        api.delete(f"/api/v1/nodes/{name}")
    assert refused.value.status == 403


@pytest.mark.parametrize("part", ["", "/status"], ids=["node", "status"])
def test_all_else_of_its_own_it_may_write(node, part):
    api, name = node
    assert refusal(api, name, {"metadata": {
        "annotations": {"slurmlet.io/slurm-state": "IDLE", "slurmlet.io/slurm-cluster": "linux"},
        "labels": {"slurmlet.io/version": "1", UUID: "0A"}}}, part) is None


def test_a_uuid_it_may_set_once(plane):
    plane.admin.create("/api/v1/nodes", {"metadata": {"name": "late", "labels": {"slurmlet.io/version": "0"}}})
    try:
        api = Api(plane.node_kubeconfig("late"))
        assert refusal(api, "late", uuid("0c")) is None
        assert "may not change its label metal3.io/uuid" in refusal(api, "late", uuid("0d")).body["message"]
    finally:
        plane.admin.delete("/api/v1/nodes/late")


@pytest.mark.parametrize("key", ["record", "detach", "drain"])
def test_nor_get_round_it_by_creating_the_node(plane, key):
    """With it, or without our label, to get that later."""
    api = Api(plane.node_kubeconfig("fresh"))
    for labels in ({"slurmlet.io/version": "0"}, {}):
        with pytest.raises(ApiError) as refused:
            api.create("/api/v1/nodes", {"metadata": {"name": "fresh", "labels": labels,
                                                      **annotated(key, "forged")["metadata"]}})
        assert refused.value.status == 403
        assert f"slurmlet.io/{key} is slurmlet-operator's to write" in refused.value.body["message"]
    api.create("/api/v1/nodes", {"metadata": {"name": "fresh"}})
    try:
        assert f"slurmlet.io/{key} is" in refusal(api, "fresh", annotated(key, "forged")).body["message"]
        assert refusal(api, "fresh", {"metadata": {"labels": {"slurmlet.io/version": "0"}}}) is None
    finally:
        plane.admin.delete("/api/v1/nodes/fresh")


def test_nodes_of_kubelets_and_everybody_else_are_left_alone(plane, node):
    for change in ({"spec": {"unschedulable": False}}, FORGED, CORDON):
        assert refusal(plane.admin, node[1], change) is None
    plane.admin.create("/api/v1/nodes", {"metadata": {"name": "kubelet"}})
    try:
        kubelet = Api(plane.node_kubeconfig("kubelet"))
        assert refusal(kubelet, "kubelet", CORDON) is None
    finally:
        plane.admin.delete("/api/v1/nodes/kubelet")


def test_the_daemon_misses_nothing(rig, idle_slurm):
    """Registers, reports a drain, keeps what others wrote, and comes back with its cordon."""
    rig.provision("5d2d0f0c-6f0e-4b6e-9d3a-0d0f5ad1a0c1")
    rig.start_and_know()
    rig.admin.merge(rig.path, {**CORDON, **FORGED})
    idle_slurm.command("scontrol", "update", f"nodename={SLURM_NODE}", "state=drain", "reason=policy")
    rig.wait_condition("SlurmNodeStateDrain", "True")
    assert rig.node()["metadata"]["annotations"][RECORD] == "forged"
    idle_slurm.command("scontrol", "update", f"nodename={SLURM_NODE}", "state=resume")
    rig.wait_condition("SlurmNodeStateDrain", "False")
    rig.restart()
    rig.wait_known()
    before = rig.node()
    rig.admin.delete(rig.path)
    node = rig.wait(lambda one: one and one["metadata"]["uid"] != before["metadata"]["uid"] and
                    condition(one, "Ready").get("status") == "True")
    assert node["spec"]["unschedulable"] is True
    assert node["spec"]["providerID"] == before["spec"]["providerID"]
    assert "slurmlet.io/version" in node["metadata"]["labels"]
    rig.wait_known()
    assert "node-writes" not in rig.log() and "403 Forbidden" not in rig.log()
