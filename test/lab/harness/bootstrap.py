"""A node that gets its certificate by a bootstrap token."""
import base64
import hashlib
import os
import pathlib
import stat
import subprocess

from .api import Api, ApiError, read_kubeconfig
from .rig import GENERAL_WAIT, Rig, wait_until

REQUESTS = "/apis/certificates.k8s.io/v1/certificatesigningrequests"
CLIENT = "kubernetes.io/kube-apiserver-client-kubelet"
SERVING = "kubernetes.io/kubelet-serving"
GROUP = "system:bootstrappers:slurmlet"  # of deploy/rbac


def openssl_text(*arguments, text):
    return subprocess.run(["openssl", *arguments], input=text, capture_output=True, text=True,
                          check=True).stdout


def request_pem(request):
    return base64.b64decode(request["spec"]["request"]).decode()


def public_key(pem):
    """Of a certificate, a request or a private key."""
    if "CERTIFICATE REQUEST" in pem:
        return openssl_text("req", "-noout", "-pubkey", text=pem)
    if "BEGIN CERTIFICATE" in pem:
        return openssl_text("x509", "-noout", "-pubkey", text=pem)
    return openssl_text("pkey", "-pubout", text=pem)


def ca_hash(ca):
    """As kubeadm's documentation computes it."""
    key = openssl_text("x509", "-pubkey", "-noout", text=ca)
    der = openssl_text("pkey", "-pubin", "-outform", "PEM", text=key)
    body = "".join(der.splitlines()[1:-1])
    return "sha256:" + hashlib.sha256(base64.b64decode(body)).hexdigest()


def credential_id(pem):
    """As the audit log names a client certificate."""
    body = pem.split("-----BEGIN CERTIFICATE-----")[1].split("-----END")[0]
    return "X509SHA256=" + hashlib.sha256(base64.b64decode(body)).hexdigest()


def kubeconfig_certificate(path):
    """The client certificate of a kubeconfig, PEM."""
    user = read_kubeconfig(path)["users"][0]["user"]
    return base64.b64decode(user["client-certificate-data"]).decode()


def bootstrap_kubeconfig(plane, path, group=None):
    """With a new token of kubeadm's group, or of another one."""
    plane.run("bootstrap-kubeconfig", "--dir", plane.directory, "--out", path)
    if group:
        token = Api(path).token
        plane.admin.merge(f"/api/v1/namespaces/kube-system/secrets/bootstrap-token-{token[:6]}",
                          {"stringData": {"auth-extra-groups": group}})
    return path


def bootstrap_token(plane, path, group=None):
    """A bootstrap token in a file of its own."""
    scratch = bootstrap_kubeconfig(plane, pathlib.Path(f"{path}.kubeconfig"), group)
    token = Api(scratch).token
    scratch.unlink()
    path.touch(mode=0o600)
    path.write_text(token + "\n")
    return path


class BootstrapRig(Rig):
    """Starts without a credential but a bootstrap kubeconfig."""

    def __init__(self, plane, slurm, name, directory):
        super().__init__(plane, slurm, name, directory)
        self.kubeconfig = self.directory / "node.kubeconfig"  # written by the daemon
        self.pki = self.state_dir / "pki"
        self.pending_key = self.pki / "slurmlet-client.key.tmp"
        self.current = self.pki / "slurmlet-client-current.pem"
        self.bootstrap = self.directory / "bootstrap.kubeconfig"
        bootstrap_kubeconfig(plane, self.bootstrap)

    def arguments(self):
        return ["--bootstrap-kubeconfig", self.bootstrap, *super().arguments()]

    def crash(self):
        self.daemon.kill()
        self.daemon = None

    def put_pair(self, certificate, key):
        """Gives the stopped daemon another certificate, which comes now."""
        self.current.resolve().write_text(certificate + key)

    def put_pair_for(self, ttl, age="0s"):
        """The same with a certificate of the cluster's that ends soon."""
        path = self.directory / "short"
        self.plane.node_kubeconfig(self.name, "--embed=false", "--ttl", ttl, "--age", age, out=path)
        self.put_pair(*(pathlib.Path(f"{path}.{end}").read_text() for end in ("crt", "key")))

    def make_due(self):
        """Renewal of a short-lived certificate: the stopped daemon takes it for one that came at
        the beginning of its life, which the signer dates back by five minutes."""
        os.utime(self.current.resolve(), (0, 0))

    # -- its certificate requests -------------------------------------------

    def _is_mine(self, request, signer):
        if request["spec"]["signerName"] != signer:
            return False
        subject = openssl_text("req", "-noout", "-subject", "-nameopt", "RFC2253",
                               text=request_pem(request)).strip()
        return f"CN=system:node:{self.name}" in subject.split("=", 1)[1].split(",")

    def requests(self, signer=CLIENT):
        return [one for one in self.admin.get(REQUESTS)["items"] if self._is_mine(one, signer)]

    def askers(self):
        """Who made the requests for a client certificate: "bootstrap" or "node", for each."""
        return [one["spec"]["username"].split(":")[1] for one in self.requests()]

    def wait_request(self, predicate=lambda request: True, signer=CLIENT, timeout=GENERAL_WAIT):
        """Until one of this node's requests fits; returns it."""
        return self.admin.wait(
            REQUESTS, lambda one, event: event != "DELETED" and self._is_mine(one, signer) and
            predicate(one), timeout)[0]

    def approve(self, request):
        self.plane.kubectl_output("certificate", "approve", request["metadata"]["name"])

    def deny(self, request):
        self.plane.kubectl_output("certificate", "deny", request["metadata"]["name"])

    def wait_ready(self):
        return self.wait_condition("Ready", "True")

    def certificate(self):
        """The certificate in use, PEM."""
        return self.current.read_text()

    def clean(self):
        super().clean()
        for signer in (CLIENT, SERVING):
            for request in self.requests(signer):
                try:
                    self.admin.delete(f"{REQUESTS}/{request['metadata']['name']}")
                except ApiError as error:
                    if error.status != 404:
                        raise


def has_condition(request, kind):
    return any(one["type"] == kind for one in request.get("status", {}).get("conditions", []))


def is_pending(request):
    return not request.get("status", {}).get("conditions")


def is_issued(request):
    return bool(request.get("status", {}).get("certificate"))


def modes(directory):
    """{name: permissions} of the files, links aside."""
    return {path.name: stat.S_IMODE(path.lstat().st_mode) for path in directory.iterdir()
            if not path.is_symlink()}


def wait_file(path):
    return wait_until(path.exists, what=str(path))
