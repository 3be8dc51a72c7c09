"""metrics-server on loopback, registered with the API server's aggregation layer, so that
`kubectl top node` works. Built by test/lab/tools/build.sh."""
import base64
import json
import pathlib

from .api import ApiError
from .certificates import Authority
from .programs import METRICS_SERVER, Program, free_port
from .rig import wait_until
from .service_account import ServiceAccount, apply

NAMESPACE = "kube-system"
API_SERVICE = "/apis/apiregistration.k8s.io/v1/apiservices/v1beta1.metrics.k8s.io"
RESOLUTION = 10  # seconds, the least it takes
MANIFESTS = pathlib.Path(__file__).parent / "metrics_server.yaml"


class MetricsServer(Program):
    """Works as the service account kube-system/metrics-server with upstream's RBAC rules.
    `kubelet_ca`: what it trusts on nodes; without it, --kubelet-insecure-tls."""

    def __init__(self, plane, directory, kubelet_ca=None, addresses="InternalIP,Hostname"):
        self.plane = plane
        directory = pathlib.Path(directory)
        directory.mkdir(parents=True, exist_ok=True)
        apply(plane, MANIFESTS)
        kubeconfig = ServiceAccount(plane, "metrics-server", NAMESPACE).kubeconfig(directory)
        authority = Authority(directory, "metrics-server-ca")
        certificate, key = authority.issue(
            "serving", "metrics-server", names=[f"DNS:metrics-server.{NAMESPACE}.svc"])
        self.port = free_port()
        trust = [f"--kubelet-certificate-authority={kubelet_ca}"] if kubelet_ca else [
            "--kubelet-insecure-tls"]
        super().__init__(directory, [
            METRICS_SERVER, "--bind-address=127.0.0.1", f"--secure-port={self.port}",
            f"--tls-cert-file={certificate}", f"--tls-private-key-file={key}",
            f"--kubeconfig={kubeconfig}", f"--authentication-kubeconfig={kubeconfig}",
            f"--authorization-kubeconfig={kubeconfig}",
            f"--kubelet-preferred-address-types={addresses}", "--kubelet-use-node-status-port",
            f"--metric-resolution={RESOLUTION}s", "--kubelet-request-timeout=5s", *trust],
            "metrics-server")
        self._register(authority.crt.read_bytes())

    def _register(self, ca):
        """The Service is an ExternalName: endpoints on loopback are not valid, and the API server
        goes to this name itself."""
        self._replace(f"/api/v1/namespaces/{NAMESPACE}/services", {
            "metadata": {"name": "metrics-server"},
            "spec": {"type": "ExternalName", "externalName": "localhost"}})
        self._replace(API_SERVICE.rsplit("/", 1)[0], {
            "metadata": {"name": "v1beta1.metrics.k8s.io"},
            "spec": {"group": "metrics.k8s.io", "version": "v1beta1", "groupPriorityMinimum": 100,
                     "versionPriority": 100, "caBundle": base64.b64encode(ca).decode(),
                     "service": {"name": "metrics-server", "namespace": NAMESPACE,
                                 "port": self.port}}})

    def _replace(self, collection, body):
        path = f"{collection}/{body['metadata']['name']}"
        if self.plane.admin.find(path):
            self.plane.admin.merge(path, body)
        else:
            self.plane.admin.create(collection, body)

    def wait_available(self, timeout=60):
        """Until the API server reaches it."""
        def available():
            self.alive()
            found = self.plane.admin.find(API_SERVICE) or {}
            return any(entry["type"] == "Available" and entry["status"] == "True"
                       for entry in found.get("status", {}).get("conditions", []))
        return wait_until(available, timeout, "the API v1beta1.metrics.k8s.io")

    def node_metrics(self, name):
        """The NodeMetrics of a node, or None while there are none (two samples are needed)."""
        self.alive()
        try:
            return self.plane.admin.get(f"/apis/metrics.k8s.io/v1beta1/nodes/{name}")
        except ApiError as error:
            if error.status in (404, 503):
                return None
            raise

    def wait_node(self, name, timeout=90):
        try:
            return wait_until(lambda: self.node_metrics(name), timeout, f"metrics of {name}")
        except TimeoutError as error:
            raise TimeoutError(f"{error}\n{self.log()[-3000:]}\n"
                               f"{json.dumps(self.plane.admin.find(API_SERVICE))}") from error

    def stop(self):
        """Also takes it out of the API, whose discovery would be slow without it."""
        super().stop()
        try:
            self.plane.admin.delete(API_SERVICE)
        except (ApiError, OSError):
            pass
