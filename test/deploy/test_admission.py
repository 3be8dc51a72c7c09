"""The policies of deploy/admission at the real API server, with the real DaemonSet controller and
scheduler: what they change and refuse, what they leave alone, and who is exempt."""
import copy
import json
import os
import pathlib
import re
import shutil
import subprocess
import tempfile

import pytest
import yaml

from harness.api import Api, ApiError, repository
from harness.control_plane import RELEASE
from harness.rig import GENERAL_WAIT, wait_until

SHIPPED = repository() / "deploy/admission"
OPERATOR = repository() / "deploy/operator/admission.yaml"
DOCUMENT = repository() / "docs/how-to/keep-pods-off.md"
APPS = "/apis/apps/v1/namespaces"
ADMISSION = "/apis/admissionregistration.k8s.io/v1"
LABEL = "slurmlet.io/workload-policy"
ABSENT = {"key": "slurmlet.io/version", "operator": "DoesNotExist"}
OURS, ORDINARY = "nid000001", "worker-1"
CONTAINERS = [{"name": "c", "image": "registry.example.org/nothing"}]


def policies_for(release):
    """As they are shipped; for Kubernetes 1.35 as the head of daemonsets.yaml says."""
    if release != "1.35":
        return SHIPPED
    copy_of_them = pathlib.Path(tempfile.mkdtemp(prefix="admission", dir="/tmp")) / "admission"
    shutil.copytree(SHIPPED, copy_of_them)
    path = copy_of_them / "daemonsets.yaml"
    [command] = re.findall(r"^# +sed '(s,.*,)' ", path.read_text(), re.M)
    subprocess.run(["sed", "-i", command, path], check=True)
    return copy_of_them


POLICIES = policies_for(RELEASE)


def ensure(plane, path, body):
    try:
        plane.admin.create(path, body)
    except ApiError as error:
        if error.status != 409:
            raise


def add_node(plane, name, labels, pods):
    """A Node as its daemon would register it: ready, with room for `pods` pods."""
    plane.admin.create("/api/v1/nodes", {"metadata": {"name": name, "labels": labels}})
    resources = {"cpu": "8", "memory": "8Gi", "pods": pods}
    plane.admin.merge(f"/api/v1/nodes/{name}/status", {"status": {
        "capacity": resources, "allocatable": resources,
        "conditions": [{"type": "Ready", "status": "True", "reason": "Test", "message": "test"}]}})


@pytest.fixture(scope="module")
def cluster(plane):
    """One of our nodes, whose taint everything below tolerates, and an ordinary one; three
    namespaces."""
    add_node(plane, OURS, {"slurmlet.io/version": "0.1.0", "type": "virtual-kubelet"}, "0")
    add_node(plane, ORDINARY, {"disk": "ssd"}, "110")
    for name, labels in (("held", {}), ("free", {LABEL: "ignore"})):
        ensure(plane, "/api/v1/namespaces", {"metadata": {"name": name, "labels": labels}})
        account = f"/api/v1/namespaces/{name}/serviceaccounts/default"
        wait_until(lambda path=account: plane.admin.find(path), GENERAL_WAIT, account)
    yield plane
    for name in (OURS, ORDINARY):
        plane.admin.delete(f"/api/v1/nodes/{name}")


def probe(plane, kind):
    """Whether the policies are in force in the API server (it takes them up from a watch)."""
    if kind == "daemonsets":
        made = plane.admin.create(f"{APPS}/held/daemonsets?dryRun=All", daemonset("probe"))
        return affinity(made) is not None
    return refusal(plane, "held", pod("probe", OURS), dry_run=True) is not None


@pytest.fixture(scope="module")
def policies(cluster):
    """The policies as they are shipped, in force."""
    cluster.kubectl_output("apply", "--validate=strict", "-k", str(POLICIES))
    cluster.kubectl_output("apply", "--validate=strict", "-f", str(OPERATOR))
    for kind in ("daemonsets", "pods"):
        wait_until(lambda k=kind: probe(cluster, k), GENERAL_WAIT, f"the policy on {kind}")
    yield cluster
    cluster.kubectl_output("delete", "--ignore-not-found", "-k", str(POLICIES))
    cluster.kubectl_output("delete", "-f", str(OPERATOR))


# -- DaemonSets ------------------------------------------------------------------------


def daemonset(name, node_affinity=None, labels=None):
    spec = {"containers": CONTAINERS, "tolerations": [{"operator": "Exists"}]}
    if node_affinity is not None:
        spec["affinity"] = {"nodeAffinity": node_affinity}
    return {"metadata": {"name": name, "labels": labels or {}},
            "spec": {"selector": {"matchLabels": {"app": name}},
                     "template": {"metadata": {"labels": {"app": name}}, "spec": spec}}}


def affinity(made):
    return made["spec"]["template"]["spec"].get("affinity")


def required(*terms):
    return {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": list(terms)}}


def create(plane, namespace, body):
    return plane.admin.create(f"{APPS}/{namespace}/daemonsets", body)


def remove(plane, namespace, name):
    plane.admin.delete(f"{APPS}/{namespace}/daemonsets/{name}", {"propagationPolicy": "Background"})


def wait_desired(plane, namespace, name, number):
    """Until the controller, having seen the newest template, wants that many pods."""
    def seen(one, _):
        status = one["status"]
        return status.get("observedGeneration") == one["metadata"]["generation"] and \
            status["desiredNumberScheduled"] == number
    return plane.admin.wait(f"{APPS}/{namespace}/daemonsets", seen, GENERAL_WAIT,
                            f"metadata.name={name}")[0]


def test_desired_leaves_our_nodes_out(policies):
    """The same DaemonSet wants a pod more where the policy does not hold."""
    try:
        create(policies, "held", daemonset("agent"))
        create(policies, "free", daemonset("agent"))
        wait_desired(policies, "held", "agent", 1)
        wait_desired(policies, "free", "agent", 2)
        pods = policies.admin.wait(
            "/api/v1/namespaces/held/pods",
            lambda one, _: one["metadata"]["labels"].get("app") == "agent" and
            one["spec"].get("nodeName"), GENERAL_WAIT)[0]
        assert pods["spec"]["nodeName"] == ORDINARY
    finally:
        remove(policies, "held", "agent")
        remove(policies, "free", "agent")


IN = {"key": "disk", "operator": "In", "values": ["ssd"]}
NAMED = {"key": "metadata.name", "operator": "In", "values": [ORDINARY]}
PREFERRED = [{"weight": 1, "preference": {"matchExpressions": [IN]}}]


@pytest.mark.parametrize("before, after", [
    (None, required({"matchExpressions": [ABSENT]})),
    ({}, required({"matchExpressions": [ABSENT]})),
    ({"preferredDuringSchedulingIgnoredDuringExecution": PREFERRED},
     {"preferredDuringSchedulingIgnoredDuringExecution": PREFERRED,
      **required({"matchExpressions": [ABSENT]})}),
    (required({"matchExpressions": [IN]}), required({"matchExpressions": [IN, ABSENT]})),
    (required({"matchFields": [NAMED]}),
     required({"matchExpressions": [ABSENT], "matchFields": [NAMED]})),
    # Terms are alternatives; an empty one selects nothing and has to stay so.
    (required({"matchExpressions": [IN]}, {}, {"matchExpressions": [ABSENT, IN]},
              {"matchExpressions": [IN], "matchFields": [NAMED]}),
     required({"matchExpressions": [IN, ABSENT]}, {}, {"matchExpressions": [ABSENT, IN]},
              {"matchExpressions": [IN, ABSENT], "matchFields": [NAMED]})),
    (required({}), required({})),
    # The place of a term in a path has more than one digit; the key alone is not the expression.
    (required(*[{"matchExpressions": [IN]}] * 12), required(*[{"matchExpressions": [IN, ABSENT]}] * 12)),
    (required({"matchExpressions": [{**ABSENT, "operator": "Exists"}]}),
     required({"matchExpressions": [{**ABSENT, "operator": "Exists"}, ABSENT]})),
    (required({"matchExpressions": [ABSENT]}), required({"matchExpressions": [ABSENT]})),
], ids=["none", "empty", "preferred", "expressions", "fields", "several", "empty-term", "many", "operator", "done"])
def test_affinity_keeps_what_it_had(policies, before, after):
    made = policies.admin.create(f"{APPS}/held/daemonsets?dryRun=All", daemonset("one", before))
    assert affinity(made) == {"nodeAffinity": after}


def test_pod_affinity_is_kept(policies):
    body = daemonset("one")
    other = {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [
        {"topologyKey": "kubernetes.io/hostname", "labelSelector": {"matchLabels": {"a": "b"}}}]}}
    body["spec"]["template"]["spec"]["affinity"] = copy.deepcopy(other)
    made = policies.admin.create(f"{APPS}/held/daemonsets?dryRun=All", body)
    assert affinity(made) == {**other, "nodeAffinity": required({"matchExpressions": [ABSENT]})}


def test_writing_again_changes_nothing(policies):
    """No new generation, so no rollout: not by what the server has, nor by the same manifest."""
    path = f"{APPS}/held/daemonsets/twice"
    first = create(policies, "held", daemonset("twice"))
    try:
        def write():
            body = policies.admin.get(path)
            body["metadata"]["annotations"] = {"example.org/touched": "yes"}
            return policies.admin.call("PUT", path, body)
        again = wait_until(lambda: _unless_conflict(write), GENERAL_WAIT, "a write")
        assert again["metadata"]["annotations"]["example.org/touched"] == "yes"
        assert again["metadata"]["generation"] == first["metadata"]["generation"]
        body = daemonset("twice")
        body["metadata"]["resourceVersion"] = ""
        replaced = policies.admin.call("PUT", path, {**body, "metadata": {"name": "twice"}})
        assert replaced["metadata"]["generation"] == first["metadata"]["generation"]
        assert affinity(replaced) == affinity(first)
    finally:
        remove(policies, "held", "twice")


def _unless_conflict(call):
    """The call's answer, or None where the DaemonSet's controller wrote in between."""
    try:
        return call()
    except ApiError as error:
        if error.status != 409:
            raise
        return None


def test_exempt_daemonset_and_namespace(policies):
    made = create(policies, "held", daemonset("exempt", labels={LABEL: "ignore"}))
    remove(policies, "held", "exempt")
    assert affinity(made) is None
    made = policies.admin.create(f"{APPS}/free/daemonsets?dryRun=All", daemonset("exempt"))
    assert affinity(made) is None


def test_other_kinds_are_left_alone(policies):
    body = daemonset("deploy")
    made = policies.admin.create(f"{APPS}/held/deployments?dryRun=All", body)
    assert affinity(made) is None


def test_taking_it_back_by_the_document(policies):
    """As the document says: exempt, then remove the affinity; DESIRED is what it was."""
    create(policies, "held", daemonset("back"))
    try:
        wait_desired(policies, "held", "back", 1)
        policies.kubectl_output("-n", "held", "label", "daemonset", "back", f"{LABEL}=ignore")
        assert affinity(policies.admin.get(f"{APPS}/held/daemonsets/back")) is not None
        policies.kubectl_output(
            "-n", "held", "patch", "daemonset", "back", "--type=json", "-p",
            json.dumps([{"op": "remove", "path": "/spec/template/spec/affinity"}]))
        wait_desired(policies, "held", "back", 2)
        # and under the policy again, by the same label
        policies.kubectl_output("-n", "held", "label", "daemonset", "back", f"{LABEL}-")
        wait_desired(policies, "held", "back", 1)
    finally:
        remove(policies, "held", "back")


WARNING = "Warning: Validation failed for ValidatingAdmissionPolicy 'slurmlet-daemonsets-check'"


def warnings(plane, tmp_path, namespace, body):
    """What kubectl shows when it creates that, as a dry run; it does so in any case."""
    path = tmp_path / "daemonset.yaml"
    path.write_text(json.dumps({"apiVersion": "apps/v1", "kind": "DaemonSet", **body}))
    done = subprocess.run([*plane.kubectl, "-n", namespace, "create", "--dry-run=server", "-f", str(path)], text=True,
                          capture_output=True, check=False, env={**os.environ, "KUBECONFIG": str(plane.admin_kubeconfig)})
    assert done.returncode == 0, done.stderr
    return [line for line in done.stderr.splitlines() if line.startswith("Warning: ")]


def test_no_warning_where_the_policy_works(policies, tmp_path):
    assert warnings(policies, tmp_path, "held", daemonset("one")) == []
    assert warnings(policies, tmp_path, "held", daemonset("one", required({"matchFields": [NAMED]}, {}))) == []
    assert warnings(policies, tmp_path, "held", daemonset("one", labels={LABEL: "ignore"})) == []
    assert warnings(policies, tmp_path, "free", daemonset("one")) == []


def test_a_warning_where_the_policy_fails_or_is_missing(policies, tmp_path):
    """A DaemonSet that it cannot change is stored, but not in silence: failurePolicy Ignore hides the error."""
    broken = daemonset("one", required({"matchExpressions": [IN]}))
    [policy, _] = yaml.safe_load_all((POLICIES / "daemonsets.yaml").read_text())
    policy["spec"]["mutations"] = [{"patchType": "JSONPatch", "jsonPatch": {
        "expression": "[JSONPatch{op: 'add', path: '/spec/template/spec/affinity', value: object.spec.absent}]"}}]
    path = tmp_path / "broken.json"
    path.write_text(json.dumps(policy))
    try:
        policies.kubectl_output("apply", "-f", str(path))
        for body in (daemonset("one"), broken):
            [warning] = wait_until(lambda b=body: warnings(policies, tmp_path, "held", b), GENERAL_WAIT, "a warning")
            assert warning.startswith(WARNING) and "the policy slurmlet-daemonsets did not work here" in warning
        policies.kubectl_output("delete", "-f", str(POLICIES / "daemonsets.yaml"))
        [warning] = warnings(policies, tmp_path, "held", daemonset("one"))
        assert warning.startswith(WARNING)
        # Done by hand, as the warning says.
        assert warnings(policies, tmp_path, "held", daemonset("one", required({"matchExpressions": [ABSENT]}))) == []
        assert warnings(policies, tmp_path, "held", daemonset("one", labels={LABEL: "ignore"})) == []
    finally:
        policies.kubectl_output("apply", "-f", str(POLICIES / "daemonsets.yaml"))
        wait_until(lambda: probe(policies, "daemonsets") and not warnings(policies, tmp_path, "held", broken),
                   GENERAL_WAIT, "the policy")


def copied(expression):
    """What the values of its JSONPatches take from elsewhere. Kubernetes 1.37 cannot convert a part of `object`."""
    bare = re.sub(r"'[^']*'", "", expression)
    found = []
    for start in (match.end() for match in re.finditer(r"\bvalue:", bare)):
        depth, end = 1, start
        while depth:
            depth += {"{": 1, "}": -1}.get(bare[end], 0)
            end += 1
        found += re.findall(r"[A-Za-z_][\w.]*", bare[start:end])
    return found


def test_no_mutation_copies_a_part_of_the_object():
    assert copied("[JSONPatch{op: 'add', path: '/a', value: {'b': [{'c': 'object'}]}}]") == []
    assert copied("[JSONPatch{op: 'add', path: '/a', value: {'b': variables.terms}}]") == ["variables.terms"]
    assert copied("x.map(t, JSONPatch{op: 'add', path: '/a', value: [{'b': 'c'}] + [t]})") == ["t"]
    seen = 0
    for path in (repository() / "deploy").rglob("*.yaml"):
        if "MutatingAdmissionPolicy\n" in path.read_text():
            for one in yaml.safe_load_all(path.read_text()):
                for mutation in one["spec"].get("mutations", []):
                    assert mutation["patchType"] == "JSONPatch"
                    assert copied(mutation["jsonPatch"]["expression"]) == [], path
                    seen += 1
    assert seen == 2  # deploy/admission and the chart's copy


def test_the_version_for_older_kubernetes():
    """The command of the policy's head and of the document changes the version and nothing else."""
    path = SHIPPED / "daemonsets.yaml"
    command = "sed 's,admissionregistration.k8s.io/v1$,&beta1,' deploy/admission/daemonsets.yaml"
    assert command in path.read_text() and command in DOCUMENT.read_text()
    text = subprocess.run(command, shell=True, cwd=repository(), check=True, capture_output=True, text=True).stdout
    shipped, made = list(yaml.safe_load_all(path.read_text())), list(yaml.safe_load_all(text))
    for one in shipped:
        assert one["kind"].startswith("MutatingAdmissionPolicy")
        one["apiVersion"] += "beta1"
    assert made == shipped


# -- pods --------------------------------------------------------------------------------


def pod(name, node=None, generate=False):
    spec = {"containers": CONTAINERS, "tolerations": [{"operator": "Exists"}]}
    if node:
        spec["nodeName"] = node
    return {"metadata": {"generateName" if generate else "name": name}, "spec": spec}


def refusal(plane, namespace, body, dry_run=False, api=None):
    """The API server's refusal of a pod, None if it is created."""
    query = "?dryRun=All" if dry_run else ""
    try:
        (api or plane.admin).create(f"/api/v1/namespaces/{namespace}/pods{query}", body)
        return None
    except ApiError as error:
        return error


def bind(plane, namespace, name, node, legacy=False):
    """The API server's refusal of a binding, None if the pod is bound."""
    body = {"metadata": {"name": name}, "target": {"kind": "Node", "name": node}}
    path = f"/api/v1/namespaces/{namespace}/" + \
        ("bindings" if legacy else f"pods/{name}/binding")
    try:
        plane.admin.create(path, body)
        return None
    except ApiError as error:
        return error


@pytest.fixture(name="waiting")
def waiting_pod(policies):
    """make(namespace): a pod for no scheduler; its name."""
    made = []

    def make(namespace):
        body = pod("waiting-", generate=True)
        body["spec"]["schedulerName"] = "nobody"
        one = policies.admin.create(f"/api/v1/namespaces/{namespace}/pods", body)
        made.append((namespace, one["metadata"]["name"]))
        return one["metadata"]["name"]
    yield make
    for namespace, name in made:
        policies.admin.delete(f"/api/v1/namespaces/{namespace}/pods/{name}",
                              {"gracePeriodSeconds": 0})


def test_node_name_is_refused_with_the_reason(policies):
    error = refusal(policies, "held", pod("direct", OURS))
    assert error.status == 403
    assert error.body["reason"] == "Forbidden"
    assert f"node {OURS} belongs to Slurm and runs no pods: submit a Slurm job" in \
        error.body["message"]
    assert not policies.admin.find("/api/v1/namespaces/held/pods/direct")


@pytest.mark.parametrize("legacy", [False, True], ids=["subresource", "bindings"])
def test_binding_is_refused(policies, waiting, legacy):
    name = waiting("held")
    error = bind(policies, "held", name, OURS, legacy)
    assert (error.status, error.body["reason"]) == (403, "Forbidden")
    assert f"node {OURS} belongs to Slurm" in error.body["message"]
    bound = policies.admin.get(f"/api/v1/namespaces/held/pods/{name}")
    assert "nodeName" not in bound["spec"]


@pytest.mark.parametrize("legacy", [False, True], ids=["subresource", "bindings"])
def test_ordinary_nodes_are_unaffected(policies, waiting, legacy):
    name = waiting("held")
    assert bind(policies, "held", name, ORDINARY, legacy) is None
    bound = policies.admin.get(f"/api/v1/namespaces/held/pods/{name}")
    assert bound["spec"]["nodeName"] == ORDINARY


def test_pods_without_node_and_of_ordinary_nodes_pass(policies):
    assert refusal(policies, "held", pod("none"), dry_run=True) is None
    assert refusal(policies, "held", pod("there", ORDINARY), dry_run=True) is None
    # The names have to match as a whole.
    assert refusal(policies, "held", pod("longer", "x" + OURS + "x"), dry_run=True) is None


def test_the_scheduler_goes_on(policies):
    """A pod that the real scheduler places under the policy."""
    policies.admin.create("/api/v1/namespaces/held/pods", pod("scheduled"))
    try:
        one, _ = policies.admin.wait("/api/v1/namespaces/held/pods",
                                     lambda found, _: found["spec"].get("nodeName"), GENERAL_WAIT,
                                     "metadata.name=scheduled")
        assert one["spec"]["nodeName"] == ORDINARY
    finally:
        policies.admin.delete("/api/v1/namespaces/held/pods/scheduled", {"gracePeriodSeconds": 0})


def test_exempt_namespace(policies, waiting):
    assert refusal(policies, "free", pod("direct", OURS), dry_run=True) is None
    assert bind(policies, "free", waiting("free"), OURS) is None


def test_exempt_group(policies, tmp_path):
    apis = {}
    for name, groups in (("member", ["slurmlet.io:may-bind"]), ("other", ["elsewhere"])):
        path = tmp_path / name
        policies.user_kubeconfig(name, path, *(word for group in groups for word in ("--org", group)))
        apis[name] = Api(path)
    policies.kubectl_output("create", "clusterrolebinding", "test-users", "--clusterrole=edit",
                            "--user=member", "--user=other")
    try:
        def allowed():
            return refusal(policies, "held", pod("mine"), True, apis["other"]) is None
        wait_until(allowed, GENERAL_WAIT, "the rights of the users")
        assert refusal(policies, "held", pod("mine", OURS), True, apis["member"]) is None
        assert refusal(policies, "held", pod("mine", OURS), True, apis["other"]).status == 403
    finally:
        policies.kubectl_output("delete", "clusterrolebinding", "test-users")


CONFIG_MAP = "/api/v1/namespaces/kube-system/configmaps/slurmlet-nodes"


NAMES_BINDING = f"{ADMISSION}/validatingadmissionpolicybindings/slurmlet-node-names"


def names_rejection(plane, text):
    try:
        plane.admin.merge(CONFIG_MAP + "?dryRun=All", {"data": {"names": text}})
        return None
    except ApiError as error:
        return error


@pytest.mark.parametrize("text, words", [
    ("", "data.names must be a regular expression"), ("\n", "data.names must be a regular expression"),
    (None, "data.names must be a regular expression"), ("(", "error parsing regexp: missing closing )"),
    ("a{2,1}", "error parsing regexp: invalid repeat count"),
    ("(?=a)", "error parsing regexp: invalid or unsupported Perl syntax"),
], ids=["empty", "blank", "none", "parenthesis", "repeat", "not RE2"])
def test_names_that_would_make_the_policy_void_are_rejected(policies, text, words):
    error = wait_until(lambda: names_rejection(policies, text), GENERAL_WAIT, "the policy")
    assert error.status in (403, 422)
    assert words in error.body["message"]
    assert names_rejection(policies, "nid[0-9]+") is None


def test_what_becomes_of_other_names(policies):
    """Another expression holds soon; an empty or broken one, or none, lets every pod pass. Only one that is older
    than the policy of the ConfigMap can be so."""
    shipped = policies.admin.get(CONFIG_MAP)["data"]["names"]
    policies.admin.delete(NAMES_BINDING)
    wait_until(lambda: names_rejection(policies, "(") is None, GENERAL_WAIT, "the end of the policy")

    def names(text):
        policies.admin.merge(CONFIG_MAP, {"data": {"names": text}})

    def refused(node):
        return refusal(policies, "held", pod("probe", node), dry_run=True) is not None
    try:
        names("worker-9")
        wait_until(lambda: refused("worker-9"), GENERAL_WAIT, "the new names")
        assert not refused(OURS)
        for text in ("", "(", "\n"):
            names("worker-9")
            wait_until(lambda: refused("worker-9"), GENERAL_WAIT, "the new names")
            names(text)
            wait_until(lambda: not refused("worker-9"), GENERAL_WAIT, f"names {text!r}")
            assert not refused(ORDINARY)
        policies.admin.delete(CONFIG_MAP)
        wait_until(lambda: not refused(OURS), GENERAL_WAIT, "the end of the ConfigMap")
    finally:
        policies.kubectl_output("apply", "-f", str(POLICIES / "pods.yaml"))
        policies.kubectl_output("apply", "-f", str(POLICIES / "node-names.yaml"))
        names(shipped)
        wait_until(lambda: names_rejection(policies, "("), GENERAL_WAIT, "the policy")
        wait_until(lambda: refused(OURS), GENERAL_WAIT, "the shipped names")


def test_the_document_shows_what_kubectl_shows(policies, tmp_path):
    path = tmp_path / "pod.yaml"
    path.write_text(json.dumps({"apiVersion": "v1", "kind": "Pod", **pod("direct", OURS)}))
    with pytest.raises(RuntimeError) as refused:
        policies.kubectl_output("-n", "held", "create", "-f", str(path))
    message = str(refused.value)[str(refused.value).index("Error from server"):].strip()
    assert message.replace(str(path), "pod.yaml") in DOCUMENT.read_text().splitlines()
    # What the tests here do is what it says.
    for command in (""" -p '[{"op":"remove","path":"/spec/template/spec/affinity"}]'""",
                    f"kubectl label daemonset NAME {LABEL}=ignore",
                    f"kubectl label namespace NAME {LABEL}=ignore",
                    "kubectl annotate daemonsets --all --all-namespaces --overwrite "
                    "slurmlet.io/policy-since="):
        assert command in DOCUMENT.read_text()


def test_the_api_server_finds_no_fault_in_the_expressions(policies):
    """Type checking of the validating policy; the other kind has none."""
    for name in ("pods", "node-names", "daemonsets-check", "node-writes", "operator-nodes", "operator-machines"):
        one = policies.admin.wait(
            f"{ADMISSION}/validatingadmissionpolicies",
            lambda found, _: found.get("status", {}).get("observedGeneration") ==
            found["metadata"]["generation"], GENERAL_WAIT, f"metadata.name=slurmlet-{name}")[0]
        assert one["status"].get("typeChecking", {}).get("expressionWarnings", []) == [], name


def test_what_was_there_before_the_policies(policies):
    """Without them nothing is changed or refused, so the tests above can fail. A DaemonSet of that
    time is changed by the command of the document. Takes the policies away and brings them back."""
    policies.kubectl_output("delete", "-k", str(POLICIES))
    try:
        for kind in ("daemonsets", "pods"):
            wait_until(lambda k=kind: not probe(policies, k), GENERAL_WAIT, f"the end of {kind}")
        create(policies, "held", daemonset("before"))
        wait_desired(policies, "held", "before", 2)
        policies.kubectl_output("apply", "-k", str(POLICIES))
        wait_until(lambda: probe(policies, "daemonsets"), GENERAL_WAIT, "the policy")
        wait_desired(policies, "held", "before", 2)
        policies.kubectl_output("annotate", "daemonsets", "--all", "--all-namespaces",
                                "--overwrite", "slurmlet.io/policy-since=2026-11")
        wait_desired(policies, "held", "before", 1)
    finally:
        remove(policies, "held", "before")
        policies.kubectl_output("apply", "-k", str(POLICIES))
