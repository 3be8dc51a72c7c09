"""`slurmlet-operator init` and `uninstall`: a real API server of their own that starts empty, real Slurm with jobs,
Cluster API's own CRDs. systemctl is a script that records its calls."""
import datetime
import pwd
import re
import stat
import subprocess

import pytest
import yaml

from harness.api import node_path, repository
from harness.control_plane import ControlPlane
from harness.daemon import Slurmlet
from harness.operator_site import CRDS, HOOK, LEADER_LEASES, MACHINES, OPERATOR, RECORD, Machines, Site
from harness.rig import wait_until
from test_operator_machines import job_state

pytestmark = pytest.mark.slow
NODES = ["in001", "in002", "in003"]
USER = "nobody"
POLICY = "slurmlet.io/drain-policy"
DEPLOYMENTS = MACHINES.replace("machines", "machinedeployments")
SECRETS = "/api/v1/namespaces/kube-system/secrets"
RBAC = "/apis/rbac.authorization.k8s.io/v1"
POLICIES = "/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicies"
APPLIED = ["operator/admission.yaml", "operator/rbac.yaml", "admission/node-writes.yaml"]
MARK = "cluster.x-k8s.io/delete-machine"


def own_crd(plural):
    directory = sorted((repository() / "build/crds").glob("cluster-api-*"))[-1]
    [crd] = yaml.safe_load_all((directory / f"cluster.x-k8s.io_{plural}.yaml").read_text())
    crd["spec"].pop("conversion", None)
    return crd


@pytest.fixture(name="empty", scope="module")
def empty_control_plane(work):
    with ControlPlane(work / "cp-init") as running:
        yield running


@pytest.fixture(name="machines", scope="module")
def machines_of_cluster_api(empty):
    empty.admin.create(CRDS, own_crd("machinedeployments"))
    one = Machines(empty)
    wait_until(lambda: served(empty, DEPLOYMENTS), what="the MachineDeployments")
    yield one
    one.finish_all()


def served(plane, path):
    try:
        return plane.admin.find(path) is not None
    except Exception:  # pylint: disable=broad-except
        return False  # 429 while its storage is made


@pytest.fixture(scope="module")
def cluster(own_slurm):
    return own_slurm(nodes=NODES, cpus=2, cluster_name="inita", node_hosts={name: name for name in NODES})


class Host(Site):
    """A host with an operator that was installed and not configured, and its Nodes."""

    def __init__(self, plane, cluster, directory):
        super().__init__(plane, cluster, None, directory)
        directory.chmod(0o755)
        self.plane = plane
        self.kubeconfig, self.config = directory / "operator.kubeconfig", directory / "operator.yaml"
        self.config.write_text(yaml.safe_dump({
            "apiVersion": "slurmlet.io/v1alpha1", "kind": "OperatorConfiguration", "kubeconfig": str(self.kubeconfig),
            "slurmConf": str(cluster.conf_path), "interval": "1s", "metricsAddress": "",
            **({"slurmBinDir": str(cluster.bin_dir)} if cluster.bin_dir else {})}))
        programs = directory / "bin"
        programs.mkdir()
        self.calls = directory / "systemctl.calls"
        self.calls.touch()
        (programs / "systemctl").write_text(
            f'#!/bin/sh\necho "$*" >>{self.calls}\n'
            f'[ "$1" != show ] || printf "User={USER}\\nUnitFileState=enabled\\nActiveState=active\\n"\n')
        (programs / "systemctl").chmod(0o755)
        self.environment = {"PATH": f"{programs}:/usr/bin:/bin"}

    def command(self, name, *flags):
        done = subprocess.run([OPERATOR, name, f"--config={self.config}",
                               f"--kubeconfig={self.plane.admin_kubeconfig}", *flags], env=self.environment,
                              capture_output=True, text=True, check=False, timeout=120)
        print(f"--- {name} {flags}: {done.returncode}\n{done.stdout[-3000:]}{done.stderr}")
        return done.returncode, done.stdout + done.stderr

    def init(self, *flags):
        code, said = self.command("init", *flags)
        assert code == 0, said
        return said

    def run_operator(self):
        """As the service would."""
        one = Slurmlet(self.directory / f"operator{len(self.operators)}", [f"--config={self.config}"],
                       environment=self.environment, program=OPERATOR)
        self.operators.append(one)
        for name in self.names:
            self.wait_record(name, lambda r: r["text"])
        return one

    def token(self):
        return yaml.safe_load(self.kubeconfig.read_text())["users"][0]["user"]["token"]

    def secrets(self):
        return [one for one in self.api.get(SECRETS)["items"]
                if one["type"] == "kubernetes.io/service-account-token"]

    def objects(self):
        """{(path, namespace, name): version} of what init applies, and of its like, without status."""
        collections = [SECRETS, "/api/v1/namespaces", "/api/v1/namespaces/kube-system/serviceaccounts", POLICIES,
                       POLICIES.replace("policies", "policybindings"), f"{RBAC}/clusterroles",
                       f"{RBAC}/clusterrolebindings", f"{RBAC}/roles", f"{RBAC}/rolebindings"]

        def version(path, metadata):
            # Of a Namespace that is applied again the API server writes the managers anew.
            return metadata["uid"] if path.endswith("/namespaces") else \
                metadata.get("generation") or metadata["resourceVersion"]
        return {(path, one["metadata"].get("namespace"), one["metadata"]["name"]): version(path, one["metadata"])
                for path in collections for one in self.api.get(path)["items"]}

    def ours(self):
        """What is left in the cluster."""
        return [key for key in self.objects() if "slurmlet" in key[2]]

    def annotations(self, name):
        return {key for key in self.node(name)["metadata"].get("annotations", {})
                if key in (RECORD, "slurmlet.io/drain", "slurmlet.io/detach")}

    def end(self):
        for one in self.operators:
            one.kill()
        # A Lease that was taken over or not given back ends by itself.
        wait_until(lambda: self.command("uninstall", "--no-service")[0] == 0, 60, "the end of all that is left")
        for name in self.names:
            self.api.delete(node_path(name))
        wait_until(lambda: self.api.find("/api/v1/namespaces/slurmlet-system") is None, what="the namespace's end")


@pytest.fixture(name="host")
def host_with_an_operator(empty, cluster, machines, tmp_path):
    for name in NODES:
        cluster.reset(name)
    one = Host(empty, cluster, tmp_path)
    for name in NODES:
        one.add(name, name)
    yield one
    one.print_logs()
    cluster.command("scancel", "-u", "root")
    machines.finish_all()
    one.end()
    for name in NODES:
        cluster.reset(name)


def documents(text):
    return [one for one in yaml.safe_load_all(text) if one]


def test_a_dry_run_of_init_shows_all_and_changes_nothing(host):
    before = host.objects()
    said = host.init("--dry-run")
    assert documents(said) == [one for name in APPLIED
                               for one in documents((repository() / "deploy" / name).read_text())]
    assert f"# write it to {host.kubeconfig} (0600, user {USER})" in said
    assert "systemctl enable slurmlet-operator.service" in said
    assert host.objects() == before
    assert not host.kubeconfig.exists()
    assert all(line.startswith("show ") for line in host.calls.read_text().splitlines())


def test_with_autoscale_init_gives_the_right_to_scale(host):
    with host.config.open("a") as config:
        config.write("autoscale: true\n")
    wanted = documents((repository() / "deploy/operator/rbac-autoscaling.yaml").read_text())
    assert [one for one in documents(host.init("--dry-run")) if one in wanted] == wanted
    host.init()
    assert re.search(r"\+ autoscale +all 2 that it needs", check(host)[1])
    host.api.delete(f"{RBAC}/clusterroles/slurmlet-operator-autoscaling")
    wait_until(lambda: "x autoscale" in check(host)[1], what="the missing right")
    code, said = check(host)
    assert code == 1
    assert re.search(r"x autoscale +2 of 2 missing: .*machinedeployments\S*/scale", said), said
    assert "rbac-autoscaling.yaml" in said


def test_init_gives_the_service_all_that_it_needs(host):
    said = host.init()
    assert "ClusterRole slurmlet-operator: created" in said
    assert "ValidatingAdmissionPolicy slurmlet-node-writes: created" in said
    assert host.token() not in said
    found = host.kubeconfig.stat()
    assert (stat.S_IMODE(found.st_mode), found.st_uid) == (0o600, pwd.getpwnam(USER).pw_uid)
    calls = [line for line in host.calls.read_text().splitlines() if not line.startswith("show ")]
    assert calls == ["enable --quiet slurmlet-operator.service", "restart slurmlet-operator.service"]
    host.run_operator()
    code, found = check(host)
    assert code == 0, found


def check(host):
    done = subprocess.run([OPERATOR, "check", f"--config={host.config}"], env={"PATH": "/usr/bin:/bin"},
                          capture_output=True, text=True, check=False, timeout=60)
    return done.returncode, done.stdout + done.stderr


def test_init_again_changes_nothing_but_the_token(host):
    host.init()
    before, token, [secret] = host.objects(), host.token(), host.secrets()
    said = host.init()
    assert ": created" not in said and ": changed" not in said
    after = host.objects()
    gone = (SECRETS, "kube-system", secret["metadata"]["name"])
    assert {key: after.get(key) for key in before if key != gone} == \
           {key: version for key, version in before.items() if key != gone}
    assert len(host.secrets()) == 1 and gone not in after
    assert host.token() != token
    host.run_operator()


def test_a_policy_that_others_applied_stays_theirs(host):
    host.plane.kubectl_output("apply", "-f", str(repository() / "deploy/admission/node-writes.yaml"))
    try:
        said = host.init()
        assert "ValidatingAdmissionPolicy slurmlet-node-writes: applied by another manager" in said
        code, said = host.command("uninstall")
        assert code == 0, said
        assert {key[2] for key in host.ours()} - {"slurmlet-system"} == {"slurmlet-node-writes"}
    finally:
        host.plane.kubectl_output("delete", "-f", str(repository() / "deploy/admission/node-writes.yaml"))


def test_without_a_right_init_says_which(host, tmp_path):
    stranger = host.plane.user_kubeconfig("stranger", tmp_path / "stranger.kubeconfig")
    done = subprocess.run([OPERATOR, "init", f"--config={host.config}", f"--kubeconfig={stranger}"],
                          env=host.environment, capture_output=True, text=True, check=False, timeout=60)
    assert done.returncode == 1
    assert "403 Forbidden" in done.stderr and "stranger" in done.stderr
    assert not host.kubeconfig.exists()


def add_deployment(host):
    host.api.create(DEPLOYMENTS, {
        "apiVersion": "cluster.x-k8s.io/v1beta2", "kind": "MachineDeployment", "metadata": {"name": "hpc"},
        "spec": {"clusterName": "c1", "replicas": 1, "selector": {"matchLabels": {"a": "b"}}, "template": {
            "metadata": {"labels": {"a": "b"}, "annotations": {HOOK: "", POLICY: "now", "other": "x"}},
            "spec": {"clusterName": "c1", "bootstrap": {"dataSecretName": "none"}, "infrastructureRef": {
                "apiGroup": "infrastructure.cluster.x-k8s.io", "kind": "None", "name": "x"}}}}})


def template_annotations(host):
    return host.api.get(f"{DEPLOYMENTS}/hpc")["spec"]["template"]["metadata"].get("annotations")


def test_uninstall_takes_all_back(host, machines):
    """A drain that outlived its cordon, one whose cordon lasts, and one of an administrator."""
    host.init()
    one = host.run_operator()
    machines.add("m-live", NODES[0], policy="now")
    host.api.merge(f"{MACHINES}/m-live", {"metadata": {"annotations": {MARK: "slurmlet"}}})
    for name in ("rbac-autoscaling", "power"):
        host.plane.kubectl_output("apply", "-f", str(repository() / f"deploy/operator/{name}.yaml"))
    add_deployment(host)
    for name in NODES[:2]:
        host.cordon(name)
        host.wait_drained(name)
    host.slurm.command("scontrol", "update", f"nodename={NODES[2]}", "state=drain", "reason=bad dimm")
    one.stop()
    host.cordon(NODES[0], False)
    before = host.objects()

    code, listed = host.command("uninstall", "--dry-run")
    assert code == 0, listed
    for line in (f'Slurm node {NODES[0]} (Reason "slurmlet: cordoned"): state=undrain',
                 f'Slurm node {NODES[1]} (Reason "slurmlet: cordoned"): set Reason="cordoned in Kubernetes"',
                 f"MachineDeployment default/hpc: remove from its template {HOOK}, {POLICY}",
                 f"Machine default/m-live: remove {HOOK}, {POLICY}, {MARK}", f"Node {NODES[2]}: remove {RECORD}",
                 "ClusterRole slurmlet-operator: delete", "ClusterRole slurmlet-operator-autoscaling: delete",
                 "ValidatingAdmissionPolicy slurmlet-operator-power: delete", "Lease slurmlet-system/slurmlet-operator-inita: delete",
                 f"{host.kubeconfig}: delete"):
        assert line in listed
    assert NODES[2] not in [line.split()[2] for line in listed.splitlines() if line.startswith("Slurm node")]
    assert host.objects() == before
    assert machines.held("m-live") and host.reason(NODES[0]) == "slurmlet: cordoned"
    assert "disable" not in host.calls.read_text()

    code, said = host.command("uninstall")
    assert code == 0, said
    assert "disable --now --quiet slurmlet-operator.service" in host.calls.read_text()
    assert "DRAIN" not in host.state(NODES[0])
    assert "DRAIN" in host.state(NODES[1]) and host.reason(NODES[1]) == "cordoned in Kubernetes"
    assert "DRAIN" in host.state(NODES[2]) and host.reason(NODES[2]) == "bad dimm"
    assert not any(host.reason(name).startswith("slurmlet:") for name in NODES)
    assert not any(host.annotations(name) for name in NODES)
    assert template_annotations(host) == {"other": "x"}
    annotations = machines.get("m-live")["metadata"].get("annotations", {})
    assert not {HOOK, POLICY, MARK} & set(annotations)
    wait_until(lambda: not host.ours(), what="the end of all in the cluster")
    assert not host.secrets() and not host.kubeconfig.exists()

    code, said = host.command("uninstall")
    assert code == 0, said
    host.api.delete(f"{DEPLOYMENTS}/hpc")
    machines.finish("m-live")


def test_a_machine_whose_job_runs_is_kept_and_named(host, machines):
    """Nothing at all begins: only the operator lets the Machine go when its job has ended."""
    host.init()
    host.run_operator()
    machines.add("m-busy", NODES[0])
    job = host.slurm.submit(NODES[0])
    machines.delete("m-busy")
    host.wait_drained(NODES[0])
    for flags in (["--dry-run"], []):
        code, said = host.command("uninstall", *flags)
        assert code == 1
        assert "Machine default/m-busy is being deleted and waits for its jobs" in said
    assert machines.held("m-busy") and job_state(host.slurm, job)[0] == "RUNNING"
    assert "disable" not in host.calls.read_text()
    assert all(RECORD in host.annotations(name) for name in NODES)
    assert "DRAIN" in host.state(NODES[0])
    host.slurm.command("scancel", job)
    machines.wait_released("m-busy")
    # Its host goes off, and a job that started there would be lost.
    host.operators[0].stop()
    code, said = host.command("uninstall")
    assert code == 1
    assert f"kept: Slurm node {NODES[0]} stays drained: Machine default/m-busy is being deleted" in said
    assert "DRAIN" in host.state(NODES[0])
    assert ("ClusterRole slurmlet-operator" not in said) and host.api.find(f"{RBAC}/clusterroles/slurmlet-operator")
    machines.finish("m-busy")
    code, said = host.command("uninstall")
    assert code == 0, said
    assert "DRAIN" not in host.state(NODES[0])


def test_while_an_operator_leads_nothing_begins(host):
    host.init()
    one = host.run_operator()
    code, said = host.command("uninstall", "--no-service")  # it runs on, as one that was started by hand
    assert code == 1
    assert "an operator renews Lease slurmlet-system/slurmlet-operator-inita" in said
    assert all(RECORD in host.annotations(name) for name in NODES)
    one.kill()
    lease = host.api.get(host.lease)
    lease["spec"].update(holderIdentity="head2_0123456789abcdef", renewTime=datetime.datetime.now(
        datetime.timezone.utc).strftime("%Y-%m-%dT%H:%M:%S.%fZ"))
    host.api.call("PUT", host.lease, lease)
    code, said = host.command("uninstall")
    assert code == 1
    assert "slurmlet-operator on head2 leads" in said
    assert "disable" not in host.calls.read_text()


def test_what_another_slurm_clusters_operator_needs_stays(host, machines):
    host.init()
    host.run_operator().stop()
    machines.add("m-unknown", None)
    machines.add("m-here", NODES[0])
    host.api.create(LEADER_LEASES, {"metadata": {"name": "slurmlet-operator-other"}, "spec": {}})
    code, said = host.command("uninstall")
    assert code == 1
    assert f"kept: Machine default/m-unknown keeps {HOOK}: " in said
    assert machines.held("m-unknown") and not machines.held("m-here")
    machines.finish("m-unknown")
    code, said = host.command("uninstall")
    assert code == 0, said
    assert "rights and policies stay, for the operator of Lease slurmlet-system/slurmlet-operator-other" in said
    assert host.api.find(f"{RBAC}/clusterroles/slurmlet-operator")
    assert host.api.find(host.lease) is None and not host.secrets() and not host.kubeconfig.exists()
    host.api.delete(f"{LEADER_LEASES}/slurmlet-operator-other")
    machines.finish("m-here")


def test_machines_of_another_cluster_are_given_back_by_an_administrator_there(host, work):
    host.init()
    host.run_operator().stop()
    with ControlPlane(work / "cp-management") as there:
        there.admin.create(CRDS, own_crd("machinedeployments"))
        far = Machines(there)
        far.add("m-far", NODES[0])
        flags = "--machine-cluster=default/c1", f"--management-kubeconfig={there.admin_kubeconfig}"
        there.ctl("stop", "kube-apiserver")
        code, said = host.command("uninstall", *flags)
        assert code == 1 and f":{there.admin.port}" in said
        assert all(RECORD in host.annotations(name) for name in NODES) and host.ours()
        assert "disable" not in host.calls.read_text()
        there.ctl("start", "kube-apiserver")
        wait_until(lambda: served(there, MACHINES) and served(there, DEPLOYMENTS), what="the Machines")
        code, said = host.command("uninstall", *flags)
        assert code == 0, said
        assert not far.held("m-far")
    wait_until(lambda: not host.ours(), what="the end of all in the cluster")
