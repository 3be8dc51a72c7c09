"""deploy/operator/rbac.yaml: each right of slurmlet-operator taken away alone breaks what it is for, the log
names it, and `slurmlet-operator check` does so before the operator runs."""
import contextlib
import copy
import json
import subprocess

import pytest
import yaml

from harness.api import node_path, repository
from harness.audit import Audit
from harness.operator_site import Machines, is_approved, request_certificate
from harness.rig import wait_until
from harness.service_account import ServiceAccount
from test_operator import NODES, OPERATOR, Site

MANIFEST = repository() / "deploy/operator/rbac.yaml"
NAME = "slurmlet-operator"
GROUP = "system:bootstrappers:rights"
CLIENTS = f"--approve-clients-of-group={GROUP}"
LEASE = f"/apis/coordination.k8s.io/v1/namespaces/kube-system/leases/{NAME}"


def documents():
    return list(yaml.safe_load_all(MANIFEST.read_text()))


def place_of(role):
    """"@NAMESPACE" of a Role that is not where the operator is."""
    namespace = role["metadata"].get("namespace", "kube-system")
    return "" if namespace == "kube-system" else "@" + namespace


def rights():
    """{(resource, verb)} of all roles."""
    return {(resource + place_of(one), verb) for one in documents() for rule in one.get("rules", [])
            for resource in rule["resources"] for verb in rule["verbs"]}


def changed(name, without=None):
    """The manifest's objects for a service account of that name, without one right."""
    objects = copy.deepcopy(documents())
    for one in objects:
        one["metadata"]["name"] = name
        for rule in one.get("rules", []):
            rule["verbs"] = [verb for verb in rule["verbs"] if (rule["resources"][0] + place_of(one), verb) != without]
        if "roleRef" in one:
            one["roleRef"]["name"] = one["subjects"][0]["name"] = name
    for one in objects:
        if "rules" in one:
            one["rules"] = [rule for rule in one["rules"] if rule["verbs"]]
    return objects


def allowed(plane, user, resource, verb):
    resource, _, namespace = resource.partition("@")
    [group] = {rule["apiGroups"][0] for one in documents() for rule in one.get("rules", [])
               if resource in rule["resources"]}
    where = {"namespace": namespace} if namespace else {
        "leases": {"namespace": "kube-system", "name": NAME},
        "signers": {"name": "kubernetes.io/kubelet-serving"}}.get(resource, {})
    resource, _, where["subresource"] = resource.partition("/")
    return plane.admin.create("/apis/authorization.k8s.io/v1/subjectaccessreviews", {"spec": {
        "user": user, "resourceAttributes": {"verb": verb, "group": group, "resource": resource, **where}}}
    )["status"]["allowed"]


@pytest.fixture(scope="module")
def cluster(own_slurm):
    return own_slurm(nodes=NODES, cpus=2, cluster_name="opera")


@pytest.fixture(scope="module", name="machines")
def machines_of_the_module(plane):
    one = Machines(plane)
    yield one
    one.end()


@pytest.fixture(name="site")
def site_with_rights(request, plane, cluster, machines, tmp_path):
    """make(without): a site whose operators have all rights but that one."""
    made = []

    def make(without=None):
        name = "-".join([NAME, *(without or ("all",))]).replace("/", "-").replace("@", "-")
        manifest = tmp_path / "rbac.json"
        manifest.write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": changed(name, without)}))
        plane.kubectl_output("apply", "-f", str(manifest))
        account = ServiceAccount(plane, name, "kube-system")
        wait_until(lambda: [one for one in sorted(rights()) if allowed(plane, account.user, *one)] ==
                   sorted(rights() - {without}), what="the rights")
        for node in NODES:
            cluster.reset(node)
        one = Site(plane, cluster, account, tmp_path)
        one.plane, one.machines = plane, machines
        one.audit = Audit(plane.directory / "audit.log", account.user)
        made.append((one, manifest))
        for node in NODES:
            one.add(node)
            one.api.delete("/api/v1/namespaces/default/events?fieldSelector=involvedObject.name=" + node)
        return one
    yield make
    machines.finish_all()
    for one, manifest in made:
        one.print_logs()
        one.end()
        plane.kubectl_output("delete", "-f", str(manifest))
    for node in NODES:
        cluster.reset(node)


def denied(site, resource, verb):
    """Whether the API server has said no to that."""
    if resource == "signers":  # a right that another request needs, too
        resource, verb = "certificatesigningrequests/approval", "patch"
    resource, _, namespace = resource.partition("@")
    resource, _, subresource = resource.partition("/")
    return any(entry["verb"] == verb and entry.get("objectRef", {}).get("resource") == resource and
               entry["objectRef"].get("subresource", "") == subresource and
               (not namespace or entry["objectRef"].get("namespace") == namespace) and
               entry.get("responseStatus", {}).get("code") == 403 for entry in site.audit.entries())


def check(site):
    directory = site.directory / "check"
    directory.mkdir(exist_ok=True)
    return subprocess.run(
        [OPERATOR, "check", f"--kubeconfig={site.account.kubeconfig(directory)}",
         f"--slurm-conf={site.slurm.conf_path}", CLIENTS], capture_output=True, text=True, check=False, timeout=60)


def drained_and_told(site):
    site.cordon("op001")
    site.wait_drained("op001")
    site.wait_record("op001", lambda r: "DRAIN" in r["text"])


def nothing_is_known(site, operator):
    wait_until(lambda: "/api/v1/nodes" in operator.output() and "403 Forbidden" in operator.output(), what="the words")
    site.cordon("op001")
    site.wait_dumps("op001")
    assert site.record("op001") is None
    assert "DRAIN" not in site.state("op001")


def later_changes_are_not_seen_at_once(site, operator):
    wait_until(lambda: "WATCH /api/v1/nodes" in operator.output() and "403 Forbidden" in operator.output(),
               what="the words")


def no_record(site, operator):
    for number in range(12):
        site.add(f"more{number}")
    site.cordon("op001")
    site.wait_drained("op001")  # that needs no right to write
    wait_until(lambda: "PATCH /api/v1/nodes/" in operator.output() and "403 Forbidden" in operator.output(),
               what="the words")
    assert site.record("op001") is None
    site.wait_dumps("op001", 3)
    assert operator.output().count("403 Forbidden") <= 2  # not one for each Node and dump


def no_event(site, _):
    drained_and_told(site)
    wait_until(lambda: denied(site, "events", "create"), what="the refusal")
    assert "SlurmNodeDrained" not in site.events("op001")


def events_are_not_counted(site, _):
    """The same news again: sent a minute later, as a count."""
    drained_and_told(site)
    wait_until(lambda: "SlurmNodeDrained" in site.events("op001"), what="the Event")
    site.cordon("op001", False)
    site.wait_undrained("op001")
    drained_and_told(site)
    wait_until(lambda: denied(site, "events", "patch"), 90, "the refusal")
    counts = [one["count"] for one in site.api.get(
        "/api/v1/events?fieldSelector=involvedObject.name=op001")["items"] if one["reason"] == "SlurmNodeDrained"]
    assert counts == [1]


def never_leads(site, operator):
    wait_until(lambda: "/leases" in operator.output() and "403 Forbidden" in operator.output(), what="the words")
    site.cordon("op001")
    assert "this operator leads" not in operator.output()
    assert "DRAIN" not in site.state("op001")


def leads_once(site, operator):
    wait_until(lambda: "this operator leads" in operator.output(), what="a leader")
    wait_until(lambda: "another operator leads, or none can be elected" in operator.output(), what="its end")
    assert "/leases/slurmlet-operator" in operator.output() and "403 Forbidden" in operator.output()


def a_machine_is_not_seen(site, _):
    site.machines.add("m1", "op001")
    site.machines.delete("m1")
    wait_until(lambda: denied(site, "machines", "list"), what="the refusal")
    site.wait_dumps("op001", 3)
    assert site.machines.held("m1") and "DRAIN" not in site.state("op001")


def machines_are_only_listed(site, operator):
    """Once, so what happens to them later is not known: nothing is done."""
    wait_until(lambda: "WATCH /apis/cluster.x-k8s.io" in operator.output(), what="the words")
    site.machines.add("m1", "op001")
    site.machines.delete("m1")
    site.wait_dumps("op001", 3)
    assert site.machines.held("m1")


def left_behind(site):
    """A Node whose Machine is gone, and another Machine of that cluster."""
    site.machines.add("m1", "op002")
    site.api.merge(node_path("op001"), {"metadata": {"annotations": {
        "cluster.x-k8s.io/machine": "gone", "cluster.x-k8s.io/cluster-name": "c1",
        "cluster.x-k8s.io/cluster-namespace": "default"}}})


def a_node_left_behind_is_not_read(site, _):
    left_behind(site)
    wait_until(lambda: denied(site, "leases@kube-node-lease", "get"), 90, "the refusal")
    assert site.api.find(node_path("op001"))


def a_node_left_behind_stays(site, operator):
    left_behind(site)
    wait_until(lambda: "Node op001 was not deleted: " in operator.output(), 240, "the words")
    assert site.api.find(node_path("op001"))


def asked_for_a_client_certificate(site):
    with contextlib.suppress(RuntimeError):
        return request_certificate(site.plane, site.directory, "op009", [], group=GROUP)


def a_client_certificate_is_not_approved(site, _):
    site.machines.add("op009", "")
    site.plane.kubectl_output("create", "clusterrolebinding", GROUP, "--clusterrole=system:node-bootstrapper",
                              f"--group={GROUP}")
    request = wait_until(lambda: asked_for_a_client_certificate(site), what="the right to ask")
    site.plane.kubectl_output("delete", "clusterrolebinding", GROUP)
    wait_until(lambda: denied(site, "nodes", "get"), what="the refusal")
    assert not is_approved(site.api, request)


def the_hook_stays(site, _):
    site.machines.add("m1", "op001")
    site.machines.delete("m1")
    site.wait_drained("op001")
    wait_until(lambda: denied(site, "machines", "patch"), what="the refusal")
    assert site.machines.held("m1")


def a_certificate_is_not_approved(site, _):
    site.machines.add("m1", "op001", addresses=[("Hostname", "op001")])
    request = request_certificate(site.plane, site.directory, "op001", ["DNS:op001"])
    site.wait_dumps("op001", 4)
    assert not is_approved(site.api, request)


def requests_are_only_listed(site, _):
    wait_until(lambda: denied(site, "certificatesigningrequests", "watch"), what="the refusal")


BREAKS = {
    ("nodes", "list"): nothing_is_known,
    ("nodes", "watch"): later_changes_are_not_seen_at_once,
    ("nodes", "patch"): no_record,
    ("nodes", "get"): a_client_certificate_is_not_approved,
    ("nodes", "delete"): a_node_left_behind_stays,
    ("leases@kube-node-lease", "get"): a_node_left_behind_is_not_read,
    ("machines", "list"): a_machine_is_not_seen,
    ("machines", "watch"): machines_are_only_listed,
    ("machines", "patch"): the_hook_stays,
    ("certificatesigningrequests", "list"): a_certificate_is_not_approved,
    ("certificatesigningrequests", "watch"): requests_are_only_listed,
    ("certificatesigningrequests/approval", "patch"): a_certificate_is_not_approved,
    ("signers", "approve"): a_certificate_is_not_approved,
    ("events", "create"): no_event,
    ("events", "patch"): events_are_not_counted,
    ("leases", "create"): never_leads,
    ("leases", "get"): never_leads,
    ("leases", "update"): leads_once,
}


def test_each_right_has_its_test():
    assert rights() == set(BREAKS)


def test_with_all_of_them_nothing_is_refused(site, plane, tmp_path):
    one = site()
    assert f"all {len(rights()) + 1} that it needs" in check(one).stdout  # two signers
    operator = one.start(CLIENTS)
    drained_and_told(one)
    wait_until(lambda: "SlurmNodeDrained" in one.events("op001"), what="the Event")
    one.machines.add("m1", "op002", addresses=[("Hostname", "OP002.site"), ("InternalIP", "192.0.2.2")])
    own = request_certificate(plane, tmp_path, "op002", ["DNS:op002", "DNS:op002.site", "IP:192.0.2.2"])
    wait_until(lambda: is_approved(one.api, own), what="the approval")
    foreign = request_certificate(plane, tmp_path, "op002", ["DNS:op002", "DNS:op001"], "foreign")
    wait_until(lambda: "CertificateNotApproved" in one.events("op002"), what="the Event")
    assert not is_approved(one.api, foreign)
    one.machines.delete("m1")
    one.machines.wait_released("m1")
    assert [entry["requestURI"] for entry in one.audit.entries()
            if entry.get("responseStatus", {}).get("code") == 403] == []
    assert "403 Forbidden" not in operator.output()


@pytest.mark.slow
@pytest.mark.parametrize("right", sorted(BREAKS), ids="-".join)
def test_without_it(site, right):
    one = site(right)
    resource, verb = right
    checked = check(one)
    assert checked.returncode == 1
    assert f"missing: {verb} {resource.partition('/')[0].partition('@')[0]}" in checked.stdout
    assert one.api.find(LEASE) is None  # check writes nothing
    operator = one.start(CLIENTS)
    BREAKS[right](one, operator)
    wait_until(lambda: denied(one, resource, verb), what="the refusal")
