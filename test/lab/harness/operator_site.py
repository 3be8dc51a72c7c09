"""slurmlet-operator beside a real slurmctld and a real API server: Nodes without daemons, Machines without
Cluster API."""
import base64
import json
import re
import shutil
import signal

import yaml

from .api import node_path, repository
from .certificates import openssl
from .daemon import BINARY, Slurmlet
from .rig import wait_until
from .service_account import ServiceAccount, apply, can

OPERATOR = BINARY.parent / "slurmlet-operator"
RECORD = "slurmlet.io/record"
LEADER_NAMESPACE = "slurmlet-system"
LEADER_LEASES = f"/apis/coordination.k8s.io/v1/namespaces/{LEADER_NAMESPACE}/leases"
INTERVAL = 1  # seconds
HOOK = "pre-terminate.delete.hook.machine.cluster.x-k8s.io/slurmlet"
CRDS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
MACHINES = "/apis/cluster.x-k8s.io/v1beta2/namespaces/default/machines"


def operator_account(plane):
    """The account of deploy/operator: the operator has no other right."""
    for name in ("rbac.yaml", "rbac-client-certificates.yaml"):
        apply(plane, repository() / "deploy/operator" / name)
    one = ServiceAccount(plane, "slurmlet-operator", "kube-system")
    wait_until(lambda: can(plane, "patch", "nodes", one.user), what="the operator's rights")
    return one


class Site:
    """Nodes of the API server for the nodes of a Slurm cluster, and operators."""

    def __init__(self, plane, cluster, account, directory):
        self.api, self.slurm, self.account, self.directory = plane.admin, cluster, account, directory
        self.names, self.operators = [], []

    @property
    def lease(self):
        """The leader's."""
        return f"{LEADER_LEASES}/slurmlet-operator-{self.slurm.spec.cluster_name.lower()}"

    def add(self, name, slurm_node=None):
        annotations = {"slurmlet.io/slurm-cluster": self.slurm.spec.cluster_name.lower(),
                       **({"slurmlet.io/slurm-node": slurm_node} if slurm_node else {})}
        self.api.create("/api/v1/nodes", {"metadata": {
            "name": name, "labels": {"slurmlet.io/version": "0.1.0"}, "annotations": annotations}})
        self.names = [*{*self.names, name}]

    def start(self, *flags, environment=None, user=None):
        """`environment` stands in for --slurm-conf."""
        directory = self.directory / f"operator{len(self.operators)}"
        directory.mkdir()
        kubeconfig = self.account.kubeconfig(directory)
        if user:
            shutil.chown(kubeconfig, user)
        one = Slurmlet(directory, [
            f"--kubeconfig={kubeconfig}",
            *([] if environment else [f"--slurm-conf={self.slurm.conf_path}"]),
            *([f"--slurm-bin-dir={self.slurm.bin_dir}"] if self.slurm.bin_dir else []),
            f"--interval={INTERVAL}s", "--metrics-address=", *flags], environment=environment, program=OPERATOR,
            user=user)
        self.operators.append(one)
        return one

    def print_logs(self):
        """pytest shows them where a test fails."""
        for one in self.operators:
            print("--- log of an operator ---\n" + one.output()[-6000:])

    def node(self, name):
        return self.api.get(node_path(name))

    def cordon(self, name, on=True):
        self.api.merge(node_path(name), {"spec": {"unschedulable": on}})

    def record(self, name):
        text = self.node(name)["metadata"].get("annotations", {}).get(RECORD)
        return json.loads(text) if text else None

    def wait_record(self, name, holds, timeout=20):
        return wait_until(lambda: (r := self.record(name)) and holds(r) and r, timeout,
                          lambda: f"the record of {name}, which is {self.record(name)}")

    def state(self, name):
        return self.slurm.node_state(name)

    def reason(self, name):
        found = re.search(r"Reason=(.*?)(?: \[\S+\])?$", self.slurm.show_node(name), re.MULTILINE)
        return found.group(1) if found else ""

    def wait_drained(self, name):
        wait_until(lambda: "DRAIN" in self.state(name), 20, f"{name} to drain")

    def wait_undrained(self, name):
        wait_until(lambda: "DRAIN" not in self.state(name), 20, f"{name} to be undrained")

    def wait_dumps(self, name, count=2):
        """Until so many dumps that began from now on have been read."""
        self.slurm.sdiag(reset=True)
        wait_until(lambda: self.slurm.sdiag()["by_type"].get("REQUEST_NODE_INFO", {}).get("count", 0) > count,
                   20, "dumps")

    def events(self, name):
        items = self.api.get("/api/v1/events?fieldSelector=involvedObject.name=" + name)["items"]
        return {item["reason"] for item in items}

    def end(self):
        for one in self.operators:
            one.signal(signal.SIGCONT)
            one.kill()
        for name in self.names:
            self.api.delete(node_path(name))
        if self.api.find(self.lease):
            self.api.delete(self.lease)  # the next one need not wait for its end


def request_certificate(plane, directory, node, names, name="serving", group=None, suffix=b""):
    """The node asks for a serving certificate, or one of that group for its client certificate; returns the
    request's path. `suffix` goes behind the request."""
    key, request = directory / f"{name}.key", directory / f"{name}.csr"
    openssl("ecparam", "-name", "prime256v1", "-genkey", "-noout", "-out", key)
    openssl("req", "-new", "-key", key, "-subj", f"/O=system:nodes/CN=system:node:{node}",
            *(["-addext", "subjectAltName=" + ",".join(names)] if names else []), "-out", request)
    request.write_bytes(request.read_bytes() + suffix)
    signer, usage = (("kube-apiserver-client-kubelet", "client auth") if group else
                     ("kubelet-serving", "server auth"))
    body = directory / f"{name}.json"
    body.write_text(json.dumps({
        "apiVersion": "certificates.k8s.io/v1", "kind": "CertificateSigningRequest",
        "metadata": {"generateName": "csr-"},
        "spec": {"request": base64.b64encode(request.read_bytes()).decode(),
                 "signerName": "kubernetes.io/" + signer, "usages": ["digital signature", usage]}}))
    made = plane.kubectl_output("create", *([f"--as=system:bootstrap:{name}", f"--as-group={group}"] if group else
                                            [f"--as=system:node:{node}", "--as-group=system:nodes"]),
                                "--as-group=system:authenticated", "-o", "name", "-f", str(body)).strip()
    return f"/apis/certificates.k8s.io/v1/certificatesigningrequests/{made.rpartition('/')[2]}"


def is_approved(api, path):
    return any(one["type"] == "Approved" for one in api.get(path).get("status", {}).get("conditions", []))


class Machines:
    """Machines of Cluster API by its own CRD. Their controllers are played by the test: a finalizer holds what
    is deleted until finish()."""

    def __init__(self, plane, crd=None):
        """`crd` stands in for Cluster API's own."""
        self.api = plane.admin
        crd = crd or self.own_crd()
        self.crd = f"{CRDS}/{crd['metadata']['name']}"
        self.api.create(CRDS, crd)
        self.wait_served()

    def wait_served(self):
        wait_until(self._served, what="the Machines")

    @staticmethod
    def own_crd():
        directory = sorted((repository() / "build/crds").glob("cluster-api-*"))[-1]
        [crd] = yaml.safe_load_all((directory / "cluster.x-k8s.io_machines.yaml").read_text())
        crd["spec"].pop("conversion", None)
        return crd

    def _served(self):
        try:
            return self.api.find(MACHINES) is not None
        except Exception:  # pylint: disable=broad-except
            return False  # 429 while its storage is made

    def finish_all(self):
        for item in self.api.get(MACHINES)["items"]:
            self.finish(item["metadata"]["name"])

    def end(self):
        self.finish_all()
        self.api.delete(self.crd)
        wait_until(lambda: self.api.find(self.crd) is None, what="the end of the Machines")

    def add(self, name, node, policy=None, addresses=()):
        annotations = {HOOK: "", **({"slurmlet.io/drain-policy": policy} if policy else {})}
        self.api.create(MACHINES, {
            "apiVersion": "cluster.x-k8s.io/v1beta2", "kind": "Machine",
            "metadata": {"name": name, "finalizers": ["machine.cluster.x-k8s.io"], "annotations": annotations,
                         "labels": {"cluster.x-k8s.io/cluster-name": "c1"}},
            "spec": {"clusterName": "c1", "bootstrap": {"dataSecretName": "none"}, "infrastructureRef": {
                "apiGroup": "infrastructure.cluster.x-k8s.io", "kind": "None", "name": name}}})
        if node or addresses:
            self.api.merge(f"{MACHINES}/{name}/status", {"status": {
                **({"nodeRef": {"name": node}} if node else {}),
                "addresses": [{"type": kind, "address": address} for kind, address in addresses]}})

    def get(self, name):
        return self.api.get(f"{MACHINES}/{name}")

    def delete(self, name):
        self.api.delete(f"{MACHINES}/{name}")

    def held(self, name):
        return HOOK in self.get(name)["metadata"].get("annotations", {})

    def wait_released(self, name, timeout=30):
        wait_until(lambda: not self.held(name), timeout, f"the hook of {name} to go")

    def finish(self, name):
        """What Cluster API does once the hook has gone."""
        if not self.get(name)["metadata"].get("deletionTimestamp"):
            self.delete(name)
        self.api.merge(f"{MACHINES}/{name}", {"metadata": {"finalizers": None}})
