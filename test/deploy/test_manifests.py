"""What ships for the cluster and for the management cluster is what the API server and the real
CustomResourceDefinitions take, every field of it, and it gives what it says."""
import base64
import copy
import http.client
import os
import pathlib
import ssl
import subprocess

import pytest
import yaml

from harness.api import Api, ApiError, repository
from harness.bootstrap import (CLIENT, GROUP, REQUESTS, SERVING, bootstrap_kubeconfig,
                               has_condition, openssl_text)
from harness.programs import OLD_KUBECTL
from harness.rig import GENERAL_WAIT, wait_until
from harness.service_account import ServiceAccount, can

DEPLOY = repository() / "deploy"
OVERLAY = DEPLOY / "metal3/overlays/example"
CLOUD_INIT = repository() / "packaging/cloud-init"
CRDS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
USERS = "kubernetes.io/kube-apiserver-client"
KUSTOMIZATIONS = sorted([*DEPLOY.rglob("kustomization.yaml"),
                         *CLOUD_INIT.rglob("kustomization.yaml")])
# Directories of CRDs by NAME-VERSION: what test/lab/crds/fetch.sh brought, and what somebody else has.
CRD_DIRECTORIES = [repository() / "build/crds",
                   *map(pathlib.Path, filter(None, [os.environ.get("SLURMLET_CRDS")]))]


def documents(path):
    return [one for one in yaml.safe_load_all(path.read_text()) if one]


def manifests():
    """Files with objects of Kubernetes: not kustomizations, patches, or other programs' files."""
    found = []
    for path in sorted([*DEPLOY.rglob("*.yaml"), *CLOUD_INIT.rglob("*.yaml")]):
        if path.name == "kustomization.yaml" or "prometheus" in path.parts \
                or {"overlays", "charts"} & set(path.parts):
            continue
        if all(isinstance(one, dict) and "kind" in one for one in documents(path)):
            found.append(path)
    return found


def is_plain(path):
    """Whether the API server knows all its kinds without a CRD."""
    return not any("x-k8s.io" in one["apiVersion"] or "keda.sh" in one["apiVersion"] for one in documents(path))


PLAIN = [path for path in manifests() if is_plain(path)]
CUSTOM = [path for path in manifests() if not is_plain(path)]


def test_the_page_takes_back_what_was_once_applied():
    """kubectl apply deletes nothing: the binding that left the kustomization stays."""
    [binding] = documents(DEPLOY / "rbac/approve-client-csrs.yaml")
    assert f"kubectl delete clusterrolebinding {binding['metadata']['name']}`" in \
        (DEPLOY.parent / "docs/how-to/certificates.md").read_text()


def name_of(path):
    return str(path.relative_to(repository()))


def kustomize(program, directory):
    done = subprocess.run([*program, "kustomize", str(directory)], capture_output=True, text=True,
                          check=False)
    assert done.returncode == 0, done.stderr
    objects = sorted(yaml.safe_load_all(done.stdout),
                     key=lambda one: (one["kind"], one["metadata"]["name"]))
    for one in objects:
        if one["kind"] == "Secret":  # versions differ in where they fold base64
            one["data"] = {key: "".join(value.split()) for key, value in one["data"].items()}
    return objects


def test_there_are_manifests():
    assert {name_of(path) for path in PLAIN} == {
        "deploy/admission/daemonsets-check.yaml", "deploy/admission/daemonsets.yaml", "deploy/admission/node-names.yaml",
        "deploy/admission/node-writes.yaml", "deploy/admission/pods.yaml", "deploy/autoscaling/hpa/hpa.yaml",
        "deploy/operator/admission.yaml",
        "deploy/operator/management/admission.yaml", "deploy/operator/management/rbac.yaml",
        "deploy/operator/power.yaml", "deploy/operator/rbac-autoscaling.yaml",
        "deploy/operator/rbac-client-certificates.yaml", "deploy/operator/rbac.yaml", "deploy/rbac/approve-client-csrs.yaml",
        "deploy/rbac/approve-client-renewals.yaml", "deploy/rbac/approve-serving-csrs.yaml", "deploy/rbac/bootstrap-token.yaml",
        "deploy/rbac/metrics-reader.yaml", "deploy/rbac/node-bootstrapper.yaml"}
    assert {name_of(path) for path in CUSTOM} == {
        "deploy/autoscaling/keda/scaledobject.yaml", "deploy/metal3/base/datatemplate.yaml",
        "deploy/metal3/base/machinedeployment.yaml",
        "deploy/metal3/base/machinetemplate.yaml", "deploy/metal3/health-checks/reboot.yaml",
        "deploy/metal3/health-checks/replace.yaml", "packaging/cloud-init/virtual-kubelet-config-template.yaml"}


# -- kustomize ---------------------------------------------------------------------------


@pytest.mark.parametrize("path", KUSTOMIZATIONS, ids=name_of)
def test_every_kubectl_builds_the_same(plane, path):
    """kubectl 1.20, as Debian 12 has it, and the newest."""
    new = kustomize(plane.kubectl, path.parent)
    assert new
    assert kustomize([str(OLD_KUBECTL)], path.parent) == new


def test_every_directory_of_manifests_is_a_kustomization():
    directories = {path.parent for path in manifests()}
    assert directories == {path.parent for path in KUSTOMIZATIONS} - {OVERLAY}


# -- plain objects -------------------------------------------------------------------------


@pytest.mark.parametrize("path", PLAIN, ids=name_of)
def test_plain_manifest_is_accepted(plane, path):
    """Every field is known, and the objects can really be made."""
    strict = ["--validate=strict", "-f", str(path)]
    for one in documents(path):  # a dry run makes none, and then misses it
        if one["kind"] == "Namespace":
            plane.admin.create("/api/v1/namespaces", {"metadata": one["metadata"]})
    assert "server dry run" in plane.kubectl_output("apply", "--dry-run=server", *strict)
    try:
        assert "created" in plane.kubectl_output("apply", *strict)
    finally:
        plane.kubectl_output("delete", "--ignore-not-found", "-f", str(path))


def test_an_unknown_field_is_refused(plane, tmp_path):
    """So the test above can fail."""
    changed = tmp_path / "changed.yaml"
    changed.write_text((DEPLOY / "admission/pods.yaml").read_text().replace("failurePolicy",
                                                                           "failurePolice"))
    with pytest.raises(RuntimeError, match='unknown field "spec.failurePolice"'):
        plane.kubectl_output("apply", "--dry-run=server", "--validate=strict", "-f", str(changed))


# -- what they give ---------------------------------------------------------------------


def who(plane, token):
    """HTTP status of a request with that bearer token."""
    api = plane.admin
    connection = http.client.HTTPSConnection(
        api.host, api.port, timeout=30,
        context=ssl.create_default_context(cafile=plane.directory / "pki/ca.crt"))
    try:
        connection.request("GET", "/apis/certificates.k8s.io/v1/certificatesigningrequests",
                           headers={"Authorization": "Bearer " + token})
        return connection.getresponse().status
    finally:
        connection.close()


def test_example_token_is_worth_nothing_until_it_is_changed(plane, tmp_path):
    path = DEPLOY / "rbac/bootstrap-token.yaml"
    example = documents(path)[0]
    data = example["stringData"]
    token = f"{data['token-id']}.{data['token-secret']}"
    secrets = "/api/v1/namespaces/kube-system/secrets"
    bindings = DEPLOY / "rbac/node-bootstrapper.yaml"
    changed = tmp_path / "changed.yaml"
    # A random token may have digits alone, which YAML takes for a number.
    text = path.read_text().replace("0123456789abcdef", "1" * 16).replace("abcdef", "123456")
    changed.write_text(text.replace("2020-", "2099-"))
    for manifest in (path, bindings):
        plane.kubectl_output("apply", "-f", str(manifest))
    try:
        assert who(plane, token) == 401
        # kube-controller-manager takes it away.
        wait_until(lambda: plane.admin.find(f"{secrets}/{example['metadata']['name']}") is None,
                   GENERAL_WAIT, "the end of the token")
        assert who(plane, token) == 401
        plane.kubectl_output("apply", "-f", str(changed))
        wait_until(lambda: who(plane, "123456." + "1" * 16) == 200, GENERAL_WAIT, "a token that is good")
    finally:
        for manifest in (path, bindings, changed):
            plane.kubectl_output("delete", "--ignore-not-found", "-f", str(manifest))


def certificate_request(plane, name, signer, requester):
    """A request of the node NAME for that signer, as its daemon would ask."""
    key = openssl_text("ecparam", "-genkey", "-name", "prime256v1", text="")
    path = plane.directory / f"{name}.key"
    path.write_text(key)
    more = ["-addext", "subjectAltName=DNS:" + name] if signer == SERVING else []
    pem = openssl_text("req", "-new", "-key", str(path), "-subj",
                       f"/O=system:nodes/CN=system:node:{name}", *more, text="")
    usage = "server auth" if signer == SERVING else "client auth"
    made = requester.create(REQUESTS, {"metadata": {"generateName": name + "-"}, "spec": {
        "request": base64.b64encode(pem.encode()).decode(), "signerName": signer,
        "usages": ["digital signature", usage]}})
    return made["metadata"]["name"]


def approve(api, name):
    """Asks for the approval of a request; the API server's refusal, or None."""
    request = api.get(f"{REQUESTS}/{name}")
    request["status"]["conditions"] = [*request["status"].get("conditions", []), {
        "type": "Approved", "status": "True", "reason": "Test", "message": "compared"}]
    try:
        api.call("PUT", f"{REQUESTS}/{name}/approval", request)
        return None
    except ApiError as error:
        return error


def asks(plane, who, name, made):
    """The request of somebody for the client certificate of node NAME, or the status that he got."""
    try:
        made.append(certificate_request(plane, name, CLIENT, who))
        return made[-1]
    except ApiError as error:
        return error.status


@pytest.fixture(name="holder")
def holder_of_a_token(plane, tmp_path):
    """holder(GROUP): talks with a bootstrap token of that group."""
    def make(group):
        path = tmp_path / f"{group.rpartition(':')[2]}.kubeconfig"
        api = Api(bootstrap_kubeconfig(plane, path, group))
        # Since the token was made with another group first.
        wait_until(lambda: group in api.create(
            "/apis/authentication.k8s.io/v1/selfsubjectreviews", {})["status"]["userInfo"]["groups"],
            GENERAL_WAIT, f"a token of {group}")
        return api
    return make


@pytest.mark.parametrize("blanket", [False, True], ids=["compared", "blanket"])
def test_what_a_token_can_have(plane, holder, blanket):
    """A member of our group may ask for any name, and has it only where all are approved; tokens of
    other groups get nothing from our manifests."""
    ours, others = holder(GROUP), holder("system:bootstrappers:other")
    kubeadms = holder("system:bootstrappers:kubeadm:default-node-token")
    names = ["node-bootstrapper", "approve-client-renewals"] + ["approve-client-csrs"] * blanket
    paths = [DEPLOY / f"rbac/{name}.yaml" for name in names]
    made = []
    for path in paths:
        plane.kubectl_output("apply", "-f", str(path))
    try:
        wait_until(lambda: [can(plane, "create", "certificatesigningrequests" + kind, "somebody",
                                GROUP, "certificates.k8s.io") for kind in ("", "/nodeclient")]
                   == [True, blanket], GENERAL_WAIT, "the rights")
        assert asks(plane, others, "control-plane-0", made) == 403
        # A name that no token should have: nothing compares it with who asks.
        asked = asks(plane, ours, "control-plane-0", made)
        # Approved by kubeadm's own binding: when it is, the controller has seen the one before.
        after = asks(plane, kubeadms, "canary", made)

        def is_approved(name):
            return has_condition(plane.admin.get(f"{REQUESTS}/{name}"), "Approved")
        wait_until(lambda: is_approved(after), GENERAL_WAIT, "approval of the request after it")
        if blanket:
            wait_until(lambda: is_approved(asked), GENERAL_WAIT, "approval")
            return
        assert not is_approved(asked)
        # By hand, by whoever compared.
        plane.kubectl_output("certificate", "approve", asked)
        wait_until(lambda: plane.admin.get(f"{REQUESTS}/{asked}")["status"].get("certificate"),
                   GENERAL_WAIT, "the certificate")
    finally:
        for name in made:
            plane.admin.delete(f"{REQUESTS}/{name}")
        for path in paths:
            plane.kubectl_output("delete", "--ignore-not-found", "-f", str(path))


def test_serving_approver_may_approve_serving_certificates_and_no_others(plane, tmp_path):
    node = Api(plane.node_kubeconfig("served"))
    path = DEPLOY / "rbac/approve-serving-csrs.yaml"
    plane.kubectl_output("apply", "-f", str(path))
    made = []
    try:
        account = ServiceAccount(plane, "slurmlet-serving-csr-approver", "kube-system")
        approver = Api(account.kubeconfig(tmp_path))
        made.append(certificate_request(plane, "served", SERVING, node))
        assert approve(approver, made[-1]) is None
        wait_until(lambda: plane.admin.get(f"{REQUESTS}/{made[0]}")["status"].get("certificate"),
                   GENERAL_WAIT, "the certificate")
        # For a user's client certificate; one of a node would be approved by the controller.
        made.append(certificate_request(plane, "served", USERS, plane.admin))
        assert approve(approver, made[-1]).status == 403
    finally:
        for name in made:
            plane.admin.delete(f"{REQUESTS}/{name}")
        plane.kubectl_output("delete", "--ignore-not-found", "-f", str(path))


# -- Cluster API, Metal3, the provider for virtual-kubelet -----------------------------------


def crd_sets(name):
    """{version: directory} of the CRDs of one project that are to be had."""
    return {path.name[len(name) + 1:]: path for directory in CRD_DIRECTORIES
            for path in sorted(directory.glob(name + "-*")) if path.is_dir()}


def installed(plane, directory, kinds):
    """Installs the CRDs of these kinds, without the webhooks of their controllers; their names."""
    names, served = [], []
    for path in sorted(directory.glob("*.yaml")):
        for crd in documents(path):
            if crd.get("kind") != "CustomResourceDefinition" or \
                    crd["spec"]["names"]["kind"] not in kinds:
                continue
            crd["spec"].pop("conversion", None)
            plane.admin.create(CRDS, crd)
            names.append(crd["metadata"]["name"])
            served += [f"/apis/{crd['spec']['group']}/{version['name']}/{crd['spec']['names']['plural']}"
                       for version in crd["spec"]["versions"] if version["served"]]
    for name in names:
        plane.admin.wait(CRDS, lambda one, _: any(
            c["type"] == "Established" and c["status"] == "True"
            for c in one.get("status", {}).get("conditions") or []), GENERAL_WAIT,
            f"metadata.name={name}")
    for path in served:
        wait_until(lambda p=path: is_served(plane, p), GENERAL_WAIT, path)
    return names


def is_served(plane, path):
    """A moment after Established: 404 at first, then 429 while the storage is made."""
    try:
        return plane.admin.find(path) is not None
    except ApiError as error:
        if error.status == http.client.TOO_MANY_REQUESTS:
            return False
        raise


def uninstalled(plane, names):
    for name in names:
        plane.admin.delete(f"{CRDS}/{name}")
    for name in names:
        wait_until(lambda n=name: plane.admin.find(f"{CRDS}/{n}") is None, GENERAL_WAIT,
                   f"the end of {name}")


def strictly(plane, objects, namespace, change=lambda _: None):
    """Creates the objects in a namespace with every field checked, for real."""
    for one in objects:
        one = copy.deepcopy(one)
        one["metadata"]["namespace"] = namespace
        change(one)
        plural = one["kind"].lower() + "s"
        plane.admin.create(f"/apis/{one['apiVersion']}/namespaces/{namespace}/{plural}"
                           "?fieldValidation=Strict", one)


@pytest.fixture(scope="module")
def metal3_namespace(plane):
    plane.admin.create("/api/v1/namespaces", {"metadata": {"name": "metal3"}})
    yield plane
    plane.admin.delete("/api/v1/namespaces/metal3")


def check_against(plane, project, group):
    """The objects of a group: those in the files, and those of the example overlay."""
    sets = crd_sets(project)
    if not sets:
        pytest.skip(f"no CRDs of {project} were to be had: see build/crds; name a directory with "
                    "NAME-VERSION/*.yaml in SLURMLET_CRDS")
    shipped = [one for path in CUSTOM for one in documents(path)]
    overlay = kustomize(plane.kubectl, OVERLAY)
    shipped, overlay = ([one for one in objects if one["apiVersion"].startswith(group + "/")]
                        for objects in (shipped, overlay))
    assert shipped
    kinds = {one["kind"] for one in shipped}

    def misspell(one):
        one["spec"]["colour"] = "blue"
    for version, directory in sets.items():
        names = installed(plane, directory, kinds)
        try:
            assert len(names) == len(kinds), (version, names)
            strictly(plane, shipped, "default")
            strictly(plane, overlay, "metal3")
            for one in shipped:
                with pytest.raises(ApiError, match='unknown field "spec.colour"'):
                    strictly(plane, [one], "metal3", misspell)
        finally:
            uninstalled(plane, names)


def test_cluster_api_takes_the_manifests(metal3_namespace):
    assert len(crd_sets("cluster-api")) >= 2, "run test/lab/crds/fetch.sh"
    check_against(metal3_namespace, "cluster-api", "cluster.x-k8s.io")


def test_metal3_takes_the_manifests(metal3_namespace):
    check_against(metal3_namespace, "metal3", "infrastructure.cluster.x-k8s.io")


def test_keda_takes_its_example(metal3_namespace):
    assert crd_sets("keda"), "run test/lab/crds/fetch.sh"
    check_against(metal3_namespace, "keda", "keda.sh")


@pytest.mark.parametrize("path", ["hpa/hpa.yaml", "keda/scaledobject.yaml"])
def test_the_examples_of_autoscaling_name_what_can_be_scaled(metal3_namespace, path):
    """The MachineDeployment of deploy/metal3, by the subresource that a HorizontalPodAutoscaler writes."""
    plane = metal3_namespace
    [example] = documents(DEPLOY / "autoscaling" / path)
    target = example["spec"]["scaleTargetRef"]
    shipped = documents(DEPLOY / "metal3/base/machinedeployment.yaml")
    for version, directory in crd_sets("cluster-api").items():
        names = installed(plane, directory, {"MachineDeployment"})
        try:
            strictly(plane, shipped, "metal3")
            path_of = f"/apis/{target['apiVersion']}/namespaces/metal3/machinedeployments/{target['name']}"
            assert target["kind"] == "MachineDeployment"
            scale = plane.admin.get(path_of + "/scale")
            scale["spec"]["replicas"] = 3
            plane.admin.call("PUT", path_of + "/scale", scale)
            assert plane.admin.get(path_of)["spec"]["replicas"] == 3, version
        finally:
            uninstalled(plane, names)


def test_the_provider_for_virtual_kubelet_takes_its_template(metal3_namespace):
    check_against(metal3_namespace, "virtual-kubelet", "bootstrap.cluster.x-k8s.io")


# -- what the manifests promise -----------------------------------------------------------


def test_overlay_fits_together(plane):
    """Names that one object has of another, and what a Machine of slurmlet must not have."""
    objects = {one["kind"]: one for one in kustomize(plane.kubectl, OVERLAY)}
    assert set(objects) == {"MachineDeployment", "Metal3MachineTemplate", "Metal3DataTemplate",
                            "Secret"}
    machines = objects["MachineDeployment"]["spec"]["template"]
    secret = objects["Secret"]
    assert machines["spec"]["bootstrap"]["dataSecretName"] == secret["metadata"]["name"]
    assert machines["spec"]["infrastructureRef"]["name"] == \
        objects["Metal3MachineTemplate"]["metadata"]["name"]
    assert objects["Metal3MachineTemplate"]["spec"]["template"]["spec"]["dataTemplate"]["name"] == \
        objects["Metal3DataTemplate"]["metadata"]["name"]
    cluster = machines["spec"]["clusterName"]
    assert objects["MachineDeployment"]["spec"]["clusterName"] == cluster
    # Nobody but an administrator chooses machines to delete: jobs may run on them.
    assert objects["MachineDeployment"]["spec"]["rollout"] == {"strategy": {"type": "OnDelete"}}
    assert secret["metadata"]["labels"] == {"cluster.x-k8s.io/cluster-name": cluster,
                                            "clusterctl.cluster.x-k8s.io/move": ""}
    assert secret["type"] == "cluster.x-k8s.io/secret"
    assert {one["metadata"]["namespace"] for one in objects.values()} == {"metal3"}
    assert machines["metadata"]["labels"]["node-role.kubernetes.io/slurm"] == ""
    assert "version" not in machines["spec"]
    assert base64.b64decode(secret["data"]["value"]).decode() == \
        (OVERLAY / "user-data.yaml").read_text()
    assert base64.b64decode(secret["data"]["format"]) == b"cloud-config"
    keys = {one["key"] for one in
            objects["Metal3DataTemplate"]["spec"]["metaData"]["objectNames"]}
    assert keys == {"name", "local-hostname", "local_hostname"}


@pytest.mark.parametrize("name", ["replace", "reboot"])
def test_health_checks_are_slow_and_use_our_conditions(name):
    check = documents(DEPLOY / f"metal3/health-checks/{name}.yaml")[0]["spec"]
    vocabulary = (repository() / "src/node/vocabulary.h").read_text()
    for one in check["checks"]["unhealthyNodeConditions"]:
        assert f'"{one["type"]}"' in vocabulary
        assert one["type"] not in ("Ready", "SlurmNodeStateDown", "SlurmNodeStateDrain")
        assert one["timeoutSeconds"] >= 3600
    startup = check["checks"]["nodeStartupTimeoutSeconds"]
    assert startup == 0 or startup >= 3600
    # A number: Cluster API rounds a percentage of few machines down to none.
    assert isinstance(check["remediation"]["triggerIf"]["unhealthyLessThanOrEqualTo"], int)
