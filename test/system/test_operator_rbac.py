"""deploy/operator: each right of slurmlet-operator taken away alone breaks what it is for, the log names it, and
`slurmlet-operator check` does so before the operator runs. What the rights would allow beyond that, its policies
reject."""
import contextlib
import copy
import json
import re
import subprocess

import pytest
import yaml

from harness.api import Api, ApiError, node_path, repository
from harness.audit import Audit
from harness.operator_site import (HOOK, LEADER_LEASES, LEADER_NAMESPACE, MACHINES,
                                   is_approved, operator_account, request_certificate)
from harness.rig import wait_until
from harness.service_account import ServiceAccount, ensure
from test_operator import NODES, OPERATOR, Site

DEPLOY = repository() / "deploy/operator"
RBAC, CLIENT_CERTIFICATES, LIMITS = (DEPLOY / name for name in
                                     ("rbac.yaml", "rbac-client-certificates.yaml", "admission.yaml"))
NAME = "slurmlet-operator"
GROUP = "system:bootstrappers:rights"
CLIENTS = f"--approve-clients-of-group={GROUP}"


def documents(*files):
    """Of those files, but for the namespace of the Lease, which outlives all operators."""
    return [one for path in files or (RBAC, CLIENT_CERTIFICATES) for one in yaml.safe_load_all(path.read_text())
            if one["kind"] != "Namespace"]


def place_of(role):
    """"@NAMESPACE" of a Role that is not where the operator is."""
    namespace = role["metadata"].get("namespace", "kube-system")
    return "" if namespace == "kube-system" else "@" + namespace


def rights():
    """{(resource, verb)} of all roles."""
    return {(resource + place_of(one), verb) for one in documents() for rule in one.get("rules", [])
            for resource in rule["resources"] for verb in rule["verbs"]}


def limits(name):
    """The policies, for a service account of that name."""
    text = LIMITS.read_text().replace("slurmlet-operator(-machines)?$", name + "$")
    assert text != LIMITS.read_text()
    objects = list(yaml.safe_load_all(text))
    for one in objects:
        one["metadata"]["name"] = one["metadata"]["name"].replace(NAME, name)
        if "policyName" in one["spec"]:
            one["spec"]["policyName"] = one["metadata"]["name"]
    return objects


def changed(name, without=None, files=()):
    """The manifests' objects for a service account of that name, without one right."""
    objects = copy.deepcopy(documents(*files))
    for one in objects:
        one["metadata"]["name"] = one["metadata"]["name"].replace(NAME, name)
        for rule in one.get("rules", []):
            rule["verbs"] = [verb for verb in rule["verbs"] if (rule["resources"][0] + place_of(one), verb) != without]
        if "roleRef" in one:
            one["roleRef"]["name"] = one["metadata"]["name"]
            one["subjects"][0]["name"] = name
    for one in objects:
        if "rules" in one:
            one["rules"] = [rule for rule in one["rules"] if rule["verbs"]]
    return objects + limits(name)


def allowed(plane, user, resource, verb):
    resource, _, namespace = resource.partition("@")
    [group] = {rule["apiGroups"][0] for one in documents() for rule in one.get("rules", [])
               if resource in rule["resources"]}
    where = {"namespace": namespace} if namespace else {
        "signers": {"name": "kubernetes.io/kubelet-serving"}}.get(resource, {})
    resource, _, where["subresource"] = resource.partition("/")
    return plane.admin.create("/apis/authorization.k8s.io/v1/subjectaccessreviews", {"spec": {
        "user": user, "resourceAttributes": {"verb": verb, "group": group, "resource": resource, **where}}}
    )["status"]["allowed"]


@pytest.fixture(scope="module")
def cluster(own_slurm):
    return own_slurm(nodes=NODES, cpus=2, cluster_name="opera")


@pytest.fixture(name="site")
def site_with_rights(request, plane, cluster, machines, tmp_path):
    """make(without, files): a site whose operators have all rights of those files but that one."""
    made = []
    ensure(plane.admin, "/api/v1/namespaces", {"metadata": {"name": LEADER_NAMESPACE}})

    def make(without=None, files=()):
        name = "-".join([NAME, *(without or ("all",))]).replace("/", "-").replace("@", "-")
        manifest = tmp_path / "rbac.json"
        manifest.write_text(json.dumps({"apiVersion": "v1", "kind": "List",
                                        "items": changed(name, without, files)}))
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
    wait_until(lambda: "this operator does not lead" in operator.output(), what="its end")
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
    wait_until(lambda: "Node op001 was not deleted: " in operator.output(), 400, "the words")
    assert site.api.find(node_path("op001"))


def asked_for_a_client_certificate(site):
    with contextlib.suppress(RuntimeError):
        return request_certificate(site.plane, site.directory, "op009", [], group=GROUP)


def ask_for_a_client_certificate(site):
    """For a Machine without Node; the request's path."""
    site.machines.add("op009", "")
    site.plane.kubectl_output("create", "clusterrolebinding", GROUP, "--clusterrole=system:node-bootstrapper",
                              f"--group={GROUP}")
    request = wait_until(lambda: asked_for_a_client_certificate(site), what="the right to ask")
    site.plane.kubectl_output("delete", "clusterrolebinding", GROUP)
    return request


def a_client_certificate_is_not_approved(site, _):
    request = ask_for_a_client_certificate(site)
    wait_until(lambda: denied(site, "nodes", "get"), what="the refusal")
    assert not is_approved(site.api, request)


def the_hook_stays(site, _):
    site.machines.add("m1", "op001")
    site.machines.delete("m1")
    site.wait_drained("op001")
    wait_until(lambda: denied(site, "machines", "patch"), what="the refusal")
    assert site.machines.held("m1")


def no_job_is_ended_for_a_machine_that_is_not_read(site, _):
    """By the watch alone nothing is done that cannot be taken back."""
    job = site.slurm.submit("op001")
    site.machines.add("m1", "op001", policy="now")
    site.machines.delete("m1")
    try:
        wait_until(lambda: denied(site, "machines", "get"), what="the refusal")
        site.wait_dumps("op001", 3)
        assert site.slurm.job_state(job) == "RUNNING"
    finally:
        site.slurm.command("scancel", job)


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
    ("machines", "get"): no_job_is_ended_for_a_machine_that_is_not_read,
    ("machines", "list"): a_machine_is_not_seen,
    ("machines", "watch"): machines_are_only_listed,
    ("machines", "patch"): the_hook_stays,
    ("certificatesigningrequests", "list"): a_certificate_is_not_approved,
    ("certificatesigningrequests", "watch"): requests_are_only_listed,
    ("certificatesigningrequests/approval", "patch"): a_certificate_is_not_approved,
    ("signers", "approve"): a_certificate_is_not_approved,
    ("events", "create"): no_event,
    ("events", "patch"): events_are_not_counted,
    (f"leases@{LEADER_NAMESPACE}", "create"): never_leads,
    (f"leases@{LEADER_NAMESPACE}", "get"): never_leads,
    (f"leases@{LEADER_NAMESPACE}", "update"): leads_once,
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


def test_client_certificates_are_approved_with_a_file_of_its_own(site):
    """By default there is no such right: check says so, and only serving certificates are approved."""
    one = site(files=(RBAC,))
    assert re.search(r"missing: approve signers\S* \S*kube-apiserver-client-kubelet", check(one).stdout)
    one.start(CLIENTS)
    request = ask_for_a_client_certificate(one)
    wait_until(lambda: denied(one, "certificatesigningrequests/approval", "patch"), what="the refusal")
    assert not is_approved(one.api, request)
    one.machines.add("m1", "op001", addresses=[("Hostname", "op001")])
    serving = request_certificate(one.plane, one.directory, "op001", ["DNS:op001"])
    wait_until(lambda: is_approved(one.api, serving), what="the approval")


@pytest.mark.slow
@pytest.mark.parametrize("right", sorted(BREAKS), ids="-".join)
def test_without_it(site, right):
    one = site(right)
    resource, verb = right
    checked = check(one)
    assert checked.returncode == 1
    assert f"missing: {verb} {resource.partition('/')[0].partition('@')[0]}" in checked.stdout
    assert one.api.get(LEADER_LEASES)["items"] == []  # check writes nothing
    operator = one.start(CLIENTS)
    BREAKS[right](one, operator)
    wait_until(lambda: denied(one, resource, verb), what="the refusal")


# -- with its token, past the program ----------------------------------------------------------------

MINE, FOREIGN = "limited-1", "limited-2"


@pytest.fixture(scope="module", name="token")
def token_of_the_operator(plane, machines, tmp_path_factory):
    """The Api of whoever has the operator's token, with rights and policies as they are shipped."""
    account = operator_account(plane)
    plane.kubectl_output("apply", "--validate=strict", "-f", str(LIMITS))
    for name, labels in ((MINE, {"slurmlet.io/version": "0.1.0"}), (FOREIGN, {})):
        plane.admin.create("/api/v1/nodes", {"metadata": {"name": name, "labels": labels,
                                                          "annotations": {"example.org/a": "b"}}})
    api = Api(account.kubeconfig(tmp_path_factory.mktemp("token")))
    wait_until(lambda: rejection(api, node_path(MINE), {"spec": {"unschedulable": True}}, dry_run=True),
               what="the policy of Nodes")
    machines.add("probe", "")
    wait_until(lambda: rejection(api, f"{MACHINES}/probe", annotated(**{HOOK: None}), dry_run=True),
               what="the policy of Machines")
    yield api
    plane.kubectl_output("delete", "-f", str(LIMITS))
    for name in (MINE, FOREIGN):
        plane.admin.delete(node_path(name))
    machines.finish("probe")


def annotated(**annotations):
    return {"metadata": {"annotations": annotations}}


def rejection(api, path, change, dry_run=False):
    """The API server's, None if it made the change."""
    try:
        api.merge(f"{path}{'?dryRun=All' if dry_run else ''}", change)
        return None
    except ApiError as error:
        return error


def assert_rejected(error, words):
    assert error, words
    assert (error.status, error.body["reason"]) == (403, "Forbidden")
    assert words in error.body["message"]


TAINT = {"spec": {"taints": [{"key": "k", "effect": "NoExecute"}]}}


@pytest.mark.parametrize("change, words", [
    (TAINT, "may change nothing of a Node but its own annotations"),
    ({"spec": {"unschedulable": True}}, "may change nothing of a Node but its own annotations"),
    ({"spec": {"providerID": "metal3://x"}}, "may change nothing of a Node but its own annotations"),
    ({"metadata": {"labels": {"a": "b"}}}, "may change nothing of a Node but its own annotations"),
    ({"metadata": {"labels": {"slurmlet.io/version": None}}}, "may change nothing of a Node but its own annotations"),
    ({"metadata": {"finalizers": ["example.org/f"]}}, "may change nothing of a Node but its own annotations"),
    ({"metadata": {"ownerReferences": [{"apiVersion": "v1", "kind": "Node", "name": "n", "uid": "u"}]}},
     "may change nothing of a Node but its own annotations"),
    (annotated(**{"example.org/new": "x"}), "may change no annotations of a Node but"),
    (annotated(**{"example.org/a": "x"}), "may change no annotations of a Node but"),
    (annotated(**{"example.org/a": None}), "may change no annotations of a Node but"),
    (annotated(**{"slurmlet.io/slurm-cluster": "other"}), "may change no annotations of a Node but"),
    ({"metadata": {"annotations": {"slurmlet.io/record": "x"}, "labels": {"a": "b"}}}, "may change nothing"),
], ids=["taint", "cordon", "providerID", "label", "own label", "finalizer", "owner", "annotation",
        "annotation changed", "annotation removed", "the daemon's annotation", "beside its own"])
def test_of_a_node_it_changes_only_its_annotations(plane, token, change, words):
    before = plane.admin.get(node_path(MINE))
    assert_rejected(rejection(token, node_path(MINE), change), words)
    after = plane.admin.get(node_path(MINE))
    for one in (before, after):
        one["metadata"].pop("resourceVersion")
        one["metadata"].pop("managedFields")
    assert before["spec"].get("unschedulable") == after["spec"].get("unschedulable")
    assert before["metadata"].get("labels") == after["metadata"].get("labels")


@pytest.mark.parametrize("key", ["record", "detach", "drain"])
def test_its_annotations_it_sets_changes_and_removes(token, key):
    for value in ("one", "two", "", None):
        token.merge(node_path(MINE), annotated(**{"slurmlet.io/" + key: value}))
        annotations = token.get(node_path(MINE))["metadata"]["annotations"]
        assert annotations.get("slurmlet.io/" + key) == value
    assert annotations["example.org/a"] == "b"


def test_nodes_of_others_are_out_of_reach(plane, token):
    for change in (annotated(**{"slurmlet.io/record": "x"}), {"metadata": {"labels": {"slurmlet.io/version": "1"}}}):
        assert_rejected(rejection(token, node_path(FOREIGN), change), "only Nodes with the label slurmlet.io/version")
    with pytest.raises(ApiError) as caught:
        token.delete(node_path(FOREIGN))
    assert_rejected(caught.value, "only Nodes with the label slurmlet.io/version")
    assert plane.admin.find(node_path(FOREIGN))


def test_a_node_of_ours_it_deletes(plane, token):
    plane.admin.create("/api/v1/nodes", {"metadata": {"name": "limited-3", "labels": {"slurmlet.io/version": "1"}}})
    token.delete(node_path("limited-3"))
    assert plane.admin.find(node_path("limited-3")) is None


@pytest.mark.parametrize("change, words", [
    (annotated(**{HOOK: None}), "only from a Machine that is being deleted"),
    (annotated(**{HOOK: "x"}), "may change nothing of a Machine, but"),
    (annotated(**{"pre-terminate.delete.hook.machine.cluster.x-k8s.io/other": None}), "may change nothing of a"),
    (annotated(**{"pre-drain.delete.hook.machine.cluster.x-k8s.io/slurmlet": ""}), "may change nothing of a"),
    (annotated(**{"slurmlet.io/drain-policy": "now"}), "may change nothing of a Machine, but"),
    (annotated(**{"cluster.x-k8s.io/delete-machine": "yes"}), "may change nothing of a Machine, but"),
    (annotated(**{"cluster.x-k8s.io/skip-remediation": ""}), "may change nothing of a Machine, but"),
    ({"metadata": {"labels": {"a": "b"}}}, "may change nothing of a Machine, but"),
    ({"metadata": {"finalizers": []}}, "may change nothing of a Machine, but"),
    ({"spec": {"providerID": "metal3://x"}}, "may change nothing of a Machine, but"),
], ids=["hook", "hook changed", "another's hook", "another hook", "policy", "another mark", "remediation", "label",
        "finalizer", "spec"])
@pytest.mark.parametrize("deleted", [False, True], ids=["living", "deleted"])
def test_of_a_machine_it_removes_only_its_hook_once_it_is_deleted(plane, machines, token, deleted, change, words):
    machines.add("held", "", policy="wait")
    plane.admin.merge(f"{MACHINES}/held", annotated(**{"pre-terminate.delete.hook.machine.cluster.x-k8s.io/other": ""}))
    try:
        if deleted:
            machines.delete("held")
        error = rejection(token, f"{MACHINES}/held", change)
        if deleted and change == annotated(**{HOOK: None}):
            assert error is None and not machines.held("held")
            # and not again
            assert_rejected(rejection(token, f"{MACHINES}/held", annotated(**{HOOK: ""})), "may change nothing of a")
        else:
            assert_rejected(error, words)
            assert machines.held("held")
    finally:
        machines.finish("held")


@pytest.mark.parametrize("mark", ["cluster.x-k8s.io/delete-machine", "cluster.x-k8s.io/skip-remediation"])
def test_of_a_machine_it_sets_and_removes_its_own_marks(plane, machines, token, mark):
    machines.add("marked", "")
    try:
        for value in ("slurmlet", None):
            assert rejection(token, f"{MACHINES}/marked", annotated(**{mark: value})) is None
            assert machines.get("marked")["metadata"]["annotations"].get(mark) == value
        plane.admin.merge(f"{MACHINES}/marked", annotated(**{mark: "an administrator's"}))
        for value in ("slurmlet", None):
            assert_rejected(rejection(token, f"{MACHINES}/marked", annotated(**{mark: value})),
                            "may change nothing of a Machine, but")
    finally:
        machines.finish("marked")


def test_leases_of_others_are_out_of_reach(plane, token):
    lease = {"metadata": {"name": NAME}, "spec": {"holderIdentity": "x"}}
    other = "/apis/coordination.k8s.io/v1/namespaces/kube-system/leases"
    for path in (other, "/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases"):
        with pytest.raises(ApiError) as caught:
            token.create(path, lease)
        assert caught.value.status == 403
    held = plane.admin.create(other, {"metadata": {"name": f"{NAME}-of-kube-system"}, "spec": {"holderIdentity": "y"}})
    held_path = f"{other}/{held['metadata']['name']}"
    try:
        assert rejection(token, held_path, {"spec": {"holderIdentity": "x"}}).status == 403
        for method, body in (("GET", None), ("PUT", held), ("DELETE", None)):
            with pytest.raises(ApiError) as caught:
                token.call(method, held_path, body)
            assert caught.value.status == 403
    finally:
        plane.admin.delete(held_path)
    path = f"{LEADER_LEASES}/{NAME}-linux"
    made = token.create(LEADER_LEASES, {"metadata": {"name": f"{NAME}-linux"}, "spec": {"holderIdentity": "x"}})
    try:
        made["spec"]["holderIdentity"] = "y"
        assert token.call("PUT", path, made)["spec"]["holderIdentity"] == "y"
        with pytest.raises(ApiError) as caught:
            token.delete(path)
        assert caught.value.status == 403
    finally:
        plane.admin.delete(path)


def test_others_are_not_limited(plane, machines, token):  # pylint: disable=unused-argument
    assert rejection(plane.admin, node_path(FOREIGN), {"metadata": {"labels": {"a": "b"}}}) is None
    assert rejection(plane.admin, f"{MACHINES}/probe", {"metadata": {"labels": {"a": "b"}}}) is None


def test_the_account_in_a_management_cluster_is_limited_likewise(plane, machines, token, tmp_path):  # pylint: disable=unused-argument
    plane.kubectl_output("apply", "-f", str(DEPLOY / "management/rbac.yaml"))
    account = ServiceAccount(plane, "slurmlet-operator-machines", "kube-system")
    api = Api(account.kubeconfig(tmp_path))
    hook = annotated(**{HOOK: None})
    machines.add("held", "")
    try:
        wait_until(lambda: "ValidatingAdmissionPolicy" in str(rejection(api, f"{MACHINES}/held", hook).body), what="its rights")
        assert_rejected(rejection(api, f"{MACHINES}/held", hook), "only from a Machine that is being deleted")
        assert_rejected(rejection(api, f"{MACHINES}/held", {"metadata": {"labels": {"a": "b"}}}), "may change nothing")
        machines.delete("held")
        assert rejection(api, f"{MACHINES}/held", hook) is None
    finally:
        machines.finish("held")
        plane.kubectl_output("delete", "-f", str(DEPLOY / "management/rbac.yaml"))


def test_the_management_cluster_has_the_same_policy():
    ours = {(one["kind"], one["metadata"]["name"]): one for one in documents(LIMITS)}
    theirs = {(one["kind"], one["metadata"]["name"]): one for one in documents(DEPLOY / "management/admission.yaml")}
    assert theirs == {key: one for key, one in ours.items() if key[1] == "slurmlet-operator-machines"}
    assert len(theirs) == 2
