"""The core manager of Cluster API on the API server of a test, which is management and workload cluster in one.
Stand-ins play what is not Cluster API: a control plane that another program manages, and an infrastructure provider
whose machines are there at once. Built by test/lab/tools/build.sh."""
import base64
import pathlib
import threading

import yaml

from .api import ApiError, repository
from .certificates import Authority
from .operator_site import HOOK
from .programs import CLUSTER_API, Program, free_port
from .rig import wait_until

CRDS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
CORE = "/apis/cluster.x-k8s.io/v1beta2/namespaces/default"
INFRASTRUCTURE = "/apis/infrastructure.cluster.x-k8s.io/v1beta2/namespaces/default"
CONTROL_PLANE = "/apis/controlplane.cluster.x-k8s.io/v1beta2/namespaces/default"
CLUSTER = "c1"
LABELS = {"cluster.x-k8s.io/cluster-name": CLUSTER}


def stand_in_crd(group, kind):
    """Of any content; the label says which contract of Cluster API it keeps."""
    plural = kind.lower() + "s"
    schema = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    return {"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
            "metadata": {"name": f"{plural}.{group}", "labels": {"cluster.x-k8s.io/v1beta2": "v1beta2"}},
            "spec": {"group": group, "scope": "Namespaced",
                     "names": {"kind": kind, "listKind": kind + "List", "plural": plural, "singular": kind.lower()},
                     "versions": [{"name": "v1beta2", "served": True, "storage": True,
                                   "subresources": {"status": {}}, "schema": {"openAPIV3Schema": schema}}]}}


def own_crds():
    """Cluster API's, without the conversion that its webhook would do: there are no older objects."""
    directory = sorted((repository() / "build/crds").glob("cluster-api-*"))[-1]
    for path in sorted(directory.glob("*.yaml")):
        for crd in yaml.safe_load_all(path.read_text()):
            crd["spec"].pop("conversion", None)
            yield crd


class Infrastructure(threading.Thread):
    """A StandInMachine that belongs to a Machine has its providerID and the name of its host, as Metal3's has, and is
    provisioned at once."""

    def __init__(self, api, host):
        super().__init__(daemon=True)
        self.api, self.host, self.ended = api, host, threading.Event()

    def run(self):
        while not self.ended.wait(0.2):
            try:
                for item in self.api.get(f"{INFRASTRUCTURE}/standinmachines")["items"]:
                    self.provision(item)
            except (ApiError, OSError):
                continue  # deleted meanwhile, or the API server is away

    def provision(self, item):
        meta = item["metadata"]
        if not meta.get("ownerReferences") or item.get("status", {}).get("initialization"):
            return
        path = f"{INFRASTRUCTURE}/standinmachines/{meta['name']}"
        self.api.merge(path, {"spec": {"providerID": f"stand-in://{meta['name']}"}})
        self.api.merge(path + "/status", {"status": {
            "addresses": [{"type": "Hostname", "address": self.host}], "initialization": {"provisioned": True}}})


class ClusterAPI(Program):
    def __init__(self, plane, directory, host, infrastructure=None):
        """`infrastructure` takes the place of the stand-in whose machines are all of that host."""
        self.api = plane.admin
        directory = pathlib.Path(directory)
        directory.mkdir(parents=True, exist_ok=True)
        self.crds = [*own_crds(), stand_in_crd("infrastructure.cluster.x-k8s.io", "StandInMachine"),
                     stand_in_crd("infrastructure.cluster.x-k8s.io", "StandInMachineTemplate"),
                     stand_in_crd("controlplane.cluster.x-k8s.io", "StandInControlPlane")]
        for crd in self.crds:
            self.api.create(CRDS, crd)
        wait_until(self._served, what="Cluster API's kinds")
        Authority(directory, "webhook").issue("tls", "localhost", names=["DNS:localhost"])
        super().__init__(directory, [
            CLUSTER_API, f"--kubeconfig={plane.admin_kubeconfig}", "--diagnostics-address=0", "--health-addr=0",
            f"--webhook-port={free_port()}", f"--webhook-cert-dir={directory}",
            "--skip-crd-migration-phases=StorageVersionMigration,CleanupManagedFields",
            "--machineset-preflight-checks="], "cluster-api")
        self.infrastructure = infrastructure or Infrastructure(self.api, host)
        self.infrastructure.start()
        self._make_cluster(plane)

    def _served(self):
        def is_established(crd):
            found = self.api.get(f"{CRDS}/{crd['metadata']['name']}").get("status", {}).get("conditions", [])
            return any(one["type"] == "Established" and one["status"] == "True" for one in found)
        return all(map(is_established, self.crds))

    def _make_cluster(self, plane):
        self.api.create("/api/v1/namespaces/default/secrets", {
            "metadata": {"name": f"{CLUSTER}-kubeconfig", "labels": LABELS}, "type": "cluster.x-k8s.io/secret",
            "data": {"value": base64.b64encode(pathlib.Path(plane.admin_kubeconfig).read_bytes()).decode()}})
        kind = {"apiGroup": "controlplane.cluster.x-k8s.io", "kind": "StandInControlPlane", "name": CLUSTER}
        self.api.create(f"{CONTROL_PLANE}/standincontrolplanes", {
            "apiVersion": "controlplane.cluster.x-k8s.io/v1beta2", "kind": "StandInControlPlane",
            "metadata": {"name": CLUSTER, "labels": LABELS}, "spec": {}})
        self.api.create(f"{CORE}/clusters", {
            "apiVersion": "cluster.x-k8s.io/v1beta2", "kind": "Cluster", "metadata": {"name": CLUSTER},
            "spec": {"controlPlaneEndpoint": {"host": "127.0.0.1", "port": 6443}, "controlPlaneRef": kind}})
        self.api.merge(f"{CONTROL_PLANE}/standincontrolplanes/{CLUSTER}/status", {"status": {
            "externalManagedControlPlane": True, "initialization": {"controlPlaneInitialized": True}}})

    def make_deployment(self, name, annotations, replicas=1):
        """A MachineDeployment whose Machines have these annotations."""
        self.api.create(f"{INFRASTRUCTURE}/standinmachinetemplates", {
            "apiVersion": "infrastructure.cluster.x-k8s.io/v1beta2", "kind": "StandInMachineTemplate",
            "metadata": {"name": name}, "spec": {"template": {"spec": {}}}})
        labels = {**LABELS, "pool": name}
        self.api.create(f"{CORE}/machinedeployments", {
            "apiVersion": "cluster.x-k8s.io/v1beta2", "kind": "MachineDeployment",
            "metadata": {"name": name, "labels": LABELS},
            "spec": {"clusterName": CLUSTER, "replicas": replicas, "selector": {"matchLabels": labels},
                     "rollout": {"strategy": {"type": "RollingUpdate",
                                              "rollingUpdate": {"maxSurge": 0, "maxUnavailable": 1}}},
                     "template": {"metadata": {"labels": labels, "annotations": annotations}, "spec": {
                         "clusterName": CLUSTER, "bootstrap": {"dataSecretName": "none"},
                         "infrastructureRef": {"apiGroup": "infrastructure.cluster.x-k8s.io",
                                               "kind": "StandInMachineTemplate", "name": name}}}}})

    def scale(self, name, replicas):
        self.api.merge(f"{CORE}/machinedeployments/{name}", {"spec": {"replicas": replicas}})

    def delete_deployment(self, name):
        """With its Machines, whatever holds them."""
        self.api.delete(f"{CORE}/machinedeployments/{name}")
        wait_until(lambda: not [self.let_go(machine) for machine in self.machines()], what="no Machines")

    def let_go(self, machine):
        """Again and again: until it is deleted, its MachineSet gives it back its hook."""
        try:
            self.api.merge(f"{CORE}/machines/{machine['metadata']['name']}",
                           {"metadata": {"annotations": {HOOK: None}}})
        except ApiError as error:
            if error.status != 404:
                raise

    def machines(self):
        self.alive()
        return self.api.get(f"{CORE}/machines")["items"]

    def wait_machine(self, holds, what, timeout=60):
        """The one Machine, once it holds."""
        def check():
            found = self.machines()
            return found[0] if len(found) == 1 and holds(found[0]) else None
        try:
            return wait_until(check, timeout, what)
        except TimeoutError as error:
            raise TimeoutError(f"{error}\n{self.machines()}\n{self.log()[-4000:]}") from error

    def stop(self):
        self.infrastructure.ended.set()
        self.infrastructure.join()
        super().stop()
        for kind in "clusters", "machinedeployments", "machinesets", "machines":  # no controller is left to remove them
            for item in self.api.get(f"{CORE}/{kind}")["items"]:
                self.api.merge(f"{CORE}/{kind}/{item['metadata']['name']}", {"metadata": {"finalizers": None}})
        self.api.delete(f"/api/v1/namespaces/default/secrets/{CLUSTER}-kubeconfig")
        for crd in self.crds:
            self.api.delete(f"{CRDS}/{crd['metadata']['name']}")
        for crd in self.crds:
            wait_until(lambda path=f"{CRDS}/{crd['metadata']['name']}": self.api.find(path) is None,
                       what=f"the end of {crd['metadata']['name']}")


def provider_of(machine):
    return machine["spec"].get("providerID", "")


