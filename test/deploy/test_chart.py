"""deploy/charts/slurmlet by the real helm: what it makes is what deploy/ has, each part can be switched off,
and the API server takes it, changes it and loses it again."""
import json
import re
import subprocess
import tempfile

import pytest
import yaml

from harness.api import repository
from harness.rig import GENERAL_WAIT, wait_until
from harness.service_account import can

DEPLOY = repository() / "deploy"
CHART = DEPLOY / "charts/slurmlet"
HELM = repository() / "build/tools/helm"
NAMESPACE = "slurm-system"
POD = {"operator.deployment": "true", "operator.image": "registry.example.org/slurmlet-operator:0.1.0",
       "operator.slurm.configMap": "slurm-conf", "operator.slurm.jwtSecret": "slurm-jwt"}
NAMES = {"admission.pods": "true", "admission.nodeNames": r"nid[0-9]{6}|hpc-\\d+"}
ALL = {**POD, **NAMES, "admission.daemonsets": "true", "alerts.enabled": "true", "dashboard.enabled": "true",
       "operator.autoscale": "true"}
NOTHING = {"operator.rbac": "false", "admission.nodeWrites": "false"}
OPERATOR = ["operator/rbac.yaml", "operator/admission.yaml"]
LEADERS = "slurmlet-system"
# Of the Prometheus operator: enough to be taken.
CRDS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"


# Helm keeps there what it has learnt of a server.
HOME = tempfile.TemporaryDirectory(prefix="helm")


def helm(*arguments, kubeconfig="/dev/null", fails=False):
    assert HELM.exists(), f"{HELM} is missing; run ./dev system or test/lab/tools/build.sh"
    done = subprocess.run([HELM, *map(str, arguments)], capture_output=True, text=True, check=False, timeout=120,
                          env={"PATH": "/usr/bin:/bin", "HOME": HOME.name, "KUBECONFIG": str(kubeconfig)})
    assert (done.returncode != 0) == fails, done.stdout + done.stderr
    return done.stderr if fails else done.stdout


def flags(values):
    return [word for key, value in values.items() for word in ("--set", f"{key}={value}")]


def rendered(values, namespace=NAMESPACE):
    text = helm("template", "slurmlet", CHART, "--namespace", namespace, *flags(values))
    return [one for one in yaml.safe_load_all(text) if one]


def shipped(*names, namespace=NAMESPACE):
    """The documents of those files, in the release's namespace."""
    return [one for name in names for one in yaml.safe_load_all(
        (DEPLOY / name).read_text().replace("namespace: kube-system", f"namespace: {namespace}")) if one]


def by_name(objects):
    return {(one["kind"], one["metadata"]["name"]): one for one in objects}


def test_lint():
    for values in ({}, NOTHING, POD, ALL, {**ALL, "operator.slurm.auth": "munge"}, {**POD, **MANAGEMENT}):
        assert "0 chart(s) failed" in helm("lint", "--strict", CHART, *flags(values))


def test_version():
    chart = yaml.safe_load((CHART / "Chart.yaml").read_text())
    [version] = re.findall(r"project\(slurmlet VERSION ([0-9.]+)", (repository() / "CMakeLists.txt").read_text())
    assert (chart["version"], chart["appVersion"]) == (version, version)


def test_its_files_are_those_of_deploy():
    """Copies, which ./dev format makes."""
    for path in (CHART / "files").iterdir():
        assert path.read_bytes() == (DEPLOY / path.name.replace("-", "/", 1)).read_bytes(), path


def test_the_packed_chart_makes_the_same(tmp_path):
    helm("package", CHART, "--destination", tmp_path)
    [packed] = tmp_path.glob("slurmlet-*.tgz")
    assert helm("template", "slurmlet", packed, *flags(ALL)) == helm("template", "slurmlet", CHART, *flags(ALL))


@pytest.mark.parametrize("values, files", [
    ({}, [*OPERATOR, "admission/node-writes.yaml"]),
    (NOTHING, []),
    ({**NOTHING, "operator.rbac": "true"}, OPERATOR),
    ({**NOTHING, "operator.rbac": "true", "operator.settings.approveClientsOfGroup": "g"},
     [*OPERATOR, "operator/rbac-client-certificates.yaml"]),
    ({**NOTHING, "operator.rbac": "true", "operator.autoscale": "true"}, [*OPERATOR, "operator/rbac-autoscaling.yaml"]),
    ({**NOTHING, "operator.rbac": "true", "operator.power": "true"}, [*OPERATOR, "operator/power.yaml"]),
    ({**NOTHING, "admission.nodeWrites": "true"}, ["admission/node-writes.yaml"]),
    ({**NOTHING, "admission.daemonsets": "true"}, ["admission/daemonsets.yaml", "admission/daemonsets-check.yaml"]),
], ids=["default", "nothing", "rbac", "client certificates", "autoscale", "power", "node-writes", "daemonsets"])
def test_it_makes_what_deploy_has(values, files):
    assert by_name(rendered(values)) == by_name(shipped(*files))
    assert by_name(rendered(values, "kube-system")) == by_name(shipped(*files, namespace="kube-system"))


def test_it_does_not_make_the_namespace_that_it_is_installed_into():
    """Helm would find that it is not its own."""
    made = by_name(rendered({}, LEADERS))
    wanted = by_name(shipped(*OPERATOR, "admission/node-writes.yaml", namespace=LEADERS))
    del wanted["Namespace", LEADERS]
    assert made == wanted


def test_names_of_nodes_go_into_the_policy():
    made = by_name(rendered({**NOTHING, **NAMES}))
    wanted = by_name(shipped("admission/pods.yaml", "admission/node-names.yaml"))
    wanted["ConfigMap", "slurmlet-nodes"]["data"]["names"] = r"nid[0-9]{6}|hpc-\d+"
    assert made == wanted


def test_alerts_and_dashboard():
    made = by_name(rendered({**NOTHING, "alerts.enabled": "true", "dashboard.enabled": "true"}))
    assert set(made) == {("PrometheusRule", "slurmlet"), ("ConfigMap", "slurmlet-dashboard")}
    assert [made["PrometheusRule", "slurmlet"]["spec"]] == \
        list(yaml.safe_load_all((DEPLOY / "prometheus/slurmlet.rules.yaml").read_text()))
    assert json.loads(made["ConfigMap", "slurmlet-dashboard"]["data"]["slurmlet.json"]) == \
        json.loads((DEPLOY / "grafana/slurmlet.json").read_text())


@pytest.mark.parametrize("missing", sorted(set(POD) - {"operator.deployment"}))
def test_what_a_pod_needs_is_asked_for(missing):
    values = {key: value for key, value in POD.items() if key != missing}
    assert f"{missing} is needed" in helm("template", CHART, *flags(values), fails=True)


def test_other_values_that_are_wrong_are_named():
    assert "admission.nodeNames is needed" in helm(
        "template", CHART, "--set", "admission.pods=true", fails=True)
    assert "operator.slurm.auth must be jwt or munge" in helm(
        "template", CHART, *flags({**POD, "operator.slurm.auth": "none"}), fails=True)


def operator_settings(values):
    made = by_name(rendered({**NOTHING, **values}))
    return yaml.safe_load(made["ConfigMap", "slurmlet-operator"]["data"]["operator.yaml"])


def test_a_value_that_does_not_exist_is_named():
    """A typo would leave the default in force."""
    assert "deploymnet" in helm("template", CHART, "--set", "operator.deploymnet=true", fails=True)


def test_settings_of_the_operator():
    """Each is one that it has, and what it needs in a pod is there."""
    program = repository() / "build/release/slurmlet-operator"
    known = subprocess.run([program, "--help"], capture_output=True, text=True, check=True).stdout
    with_jwt, with_munge = operator_settings(POD), operator_settings({**POD, "operator.slurm.auth": "munge"})
    for key in set(with_jwt) | set(with_munge):
        assert f"[{key}]" in known or key in ("apiVersion", "kind")
    assert (with_jwt["leaderNamespace"], with_jwt["metricsAddress"]) == (LEADERS, "0.0.0.0:10258")
    # Where its Lease may be, and that of a service beside slurmctld is: one of them leads when a site moves.
    assert [one["metadata"]["namespace"] for one in shipped(*OPERATOR) if one["kind"] == "Role" and
            "create" in one["rules"][0]["verbs"]] == [LEADERS]
    assert set(with_jwt) - set(with_munge) == {"slurmJwtFile"}
    assert "autoscale" not in with_jwt and operator_settings({**POD, "operator.autoscale": "true"})["autoscale"] is True
    assert operator_settings({**POD, "operator.settings.dryRun": "true"})["dryRun"] is True


def test_slurm_conf_is_a_directory_in_which_only_root_can_replace_a_file():
    """A single file (subPath) would not follow the ConfigMap; a directory of another kind has no sticky bit."""
    pod = by_name(rendered(POD))["Deployment", "slurmlet-operator"]["spec"]["template"]["spec"]
    assert {"name": "slurm-conf", "mountPath": "/etc/slurm", "readOnly": True} in pod["containers"][0]["volumeMounts"]
    assert {"name": "slurm-conf", "projected": {"sources": [{"configMap": {"name": "slurm-conf"}}]}} in pod["volumes"]
    assert operator_settings(POD)["slurmConf"] == "/etc/slurm/slurm.conf"


def test_the_dump_by_slurmrestd():
    rest = {**POD, "operator.slurm.rest.url": "https://head:6820"}
    settings = operator_settings(rest)
    assert (settings["slurmSource"], settings["slurmRestURL"]) == ("rest", "https://head:6820")
    assert "slurmRestCAFile" not in settings and "slurmSource" not in operator_settings(POD)
    rest["operator.slurm.rest.caConfigMap"] = "restd-ca"
    assert operator_settings(rest)["slurmRestCAFile"] == "/run/secrets/slurmrestd/ca.crt"
    pod = by_name(rendered(rest))["Deployment", "slurmlet-operator"]["spec"]["template"]["spec"]
    assert {"name": "slurmrestd-ca", "configMap": {"name": "restd-ca"}} in pod["volumes"]
    assert any(mount["mountPath"] == "/run/secrets/slurmrestd" for mount in pod["containers"][0]["volumeMounts"])
    assert "needs operator.slurm.auth: jwt" in helm(
        "template", CHART, *flags({**rest, "operator.slurm.auth": "munge"}), fails=True)


MANAGEMENT = {"operator.management.kubeconfigSecret": "management", "operator.settings.machineCluster": "metal3/hpc"}


def test_machines_in_another_cluster():
    """Its kubeconfig is mounted where the settings say; without the value there is neither."""
    settings = operator_settings({**POD, **MANAGEMENT})
    assert settings["managementKubeconfig"] == "/run/secrets/management/kubeconfig"
    assert settings["machineCluster"] == "metal3/hpc"
    pods = [by_name(rendered({**POD, **more}))["Deployment", "slurmlet-operator"]["spec"]["template"]["spec"]
            for more in ({}, MANAGEMENT)]
    [container] = pods[1]["containers"]
    [mount] = [one for one in container["volumeMounts"] if one["name"] == "management"]
    assert mount == {"name": "management", "mountPath": "/run/secrets/management", "readOnly": True}
    [volume] = [one for one in pods[1]["volumes"] if one["name"] == "management"]
    assert volume["secret"] == {"secretName": "management", "defaultMode": 0o440,
                                "items": [{"key": "kubeconfig", "path": "kubeconfig"}]}
    # The right to scale is needed there, and not here.
    assert ("ClusterRole", "slurmlet-operator-autoscaling") not in by_name(
        rendered({**POD, **MANAGEMENT, "operator.autoscale": "true"}))
    assert "managementKubeconfig" not in operator_settings(POD)
    assert "management" not in str(pods[0])
    # As a key of another name: Cluster API has its kubeconfigs under "value".
    values = {**POD, **MANAGEMENT, "operator.management.kubeconfigKey": "value"}
    pod = by_name(rendered(values))["Deployment", "slurmlet-operator"]["spec"]["template"]["spec"]
    assert {"key": "value", "path": "kubeconfig"} in [
        item for one in pod["volumes"] for item in one.get("secret", {}).get("items", [])]
    assert "operator.settings.machineCluster is needed with operator.management.kubeconfigSecret" in helm(
        "template", CHART, *flags({**POD, "operator.management.kubeconfigSecret": "x"}), fails=True)


@pytest.fixture(name="monitoring", scope="module")
def kinds_of_the_prometheus_operator(plane):
    made = []
    for kind in ("PrometheusRule", "PodMonitor"):
        plural = kind.lower() + "s"
        made.append(plane.admin.create(CRDS, {
            "metadata": {"name": f"{plural}.monitoring.coreos.com"},
            "spec": {"group": "monitoring.coreos.com", "scope": "Namespaced",
                     "names": {"kind": kind, "plural": plural},
                     "versions": [{"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": {
                         "type": "object", "x-kubernetes-preserve-unknown-fields": True}}}]}}))
        wait_until(lambda p=plural: _served(plane, p), GENERAL_WAIT, plural)
    yield plane
    for one in made:
        plane.admin.delete(f"{CRDS}/{one['metadata']['name']}")


def _served(plane, plural):
    try:
        return plane.admin.find(f"/apis/monitoring.coreos.com/v1/{plural}") is not None
    except Exception:  # noqa: BLE001 (429 while its storage is made)
        return False


@pytest.mark.parametrize("auth", ["jwt", "munge"])
def test_it_is_installed_changed_and_uninstalled(monitoring, auth):
    plane = monitoring
    release = ["slurmlet", CHART, "--namespace", NAMESPACE]
    everything = {**ALL, "operator.slurm.auth": auth}

    def objects(values):
        return {(one["kind"], one["metadata"]["name"], one["metadata"].get("namespace", NAMESPACE))
                for one in rendered(values)}

    def there(kind, name, namespace):
        return plane.kubectl_output("get", kind, name, "-n", namespace, "--ignore-not-found") != ""

    def wait_gone():
        """All else is gone at once."""
        wait_until(lambda: not there("Namespace", LEADERS, NAMESPACE), GENERAL_WAIT, "the end of the namespace")
    helm("install", *release, "--create-namespace", *flags(everything), kubeconfig=plane.admin_kubeconfig)
    try:
        assert {one for one in objects(everything) if not there(*one)} == set()
        user = f"system:serviceaccount:{NAMESPACE}:slurmlet-operator"
        wait_until(lambda: can(plane, "patch", "nodes", user), GENERAL_WAIT, "the operator's rights")
        # Its pods pass admission, and are as the server would run them.
        pods = f"/api/v1/namespaces/{NAMESPACE}/pods"
        wait_until(lambda: len(plane.admin.get(pods)["items"]) == 2, GENERAL_WAIT, "two pods")
        helm("upgrade", *release, *flags(NOTHING), "--set", "admission.nodeWrites=true",
             kubeconfig=plane.admin_kubeconfig)
        wait_gone()
        assert {one for one in objects(everything) if there(*one)} == objects({**NOTHING, "admission.nodeWrites": "true"})
    finally:
        helm("uninstall", "slurmlet", "--namespace", NAMESPACE, kubeconfig=plane.admin_kubeconfig)
        wait_gone()
        assert {one for one in objects(everything) if there(*one)} == set()
        plane.kubectl_output("delete", "namespace", NAMESPACE)
