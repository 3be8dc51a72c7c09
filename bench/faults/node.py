"""One node whose daemon has a user of its own (the kernel limits a user's inotify instances, and a
machine has one daemon) and reaches the API server over a link that can be broken."""
import base64
import json
import os
import pathlib
import re

from harness.audit import Audit
from harness.daemon import BINARY
from harness.rig import Rig, merged

FIRST_USER = 61000  # numbers that no account has

# Slurm is asked often, so that outages show within a trial; what concerns Kubernetes is as shipped.
SETTINGS = {
    "slurm": {"pollInterval": "5s", "commandTimeout": "4s", "staleAfter": "15s",
              "maxBackoff": "10s"},
    "endpoint": {"port": 0, "healthzPort": 0},
    "node": {"notReadyGracePeriod": "15s"},
}
PATIENCE = 120  # seconds; the machine may be busy


class FaultNode(Rig):
    """`prefix` are words before those that change the user (nsenter …), `inside` after them; `server`
    is where its kubeconfig points to, if not to the link."""

    def __init__(self, plane, slurm, name, directory, link, number, server=None, credential=None):
        # What Rig.__init__ does, but for the kubeconfig and the user.
        self.plane, self.slurm, self.name, self.user = plane, slurm, name, None
        self.link, self.uid = link, FIRST_USER + number
        self.prefix, self.inside = [], []
        self.server = server or f"https://127.0.0.1:{link.port}"
        self.admin = plane.admin
        self.directory = pathlib.Path(directory)
        self.directory.mkdir(mode=0o755, parents=True)
        self.state_dir = self.directory / "state"
        self.state_dir.mkdir(mode=0o755)
        os.chown(self.state_dir, self.uid, self.uid)
        self.config_path = self.directory / "config.yaml"
        self.metadata_path = self.directory / "instance-data.json"
        self.audit = Audit(plane.directory / "audit.log", "system:node:" + name)
        self.environment = {"SLURM_CONF": str(slurm.conf_path)}
        self.sockets, self.daemon, self.config = (), None, {}
        self.kubeconfig = self.directory / "kubeconfig"
        self.first_credential(credential)
        self.configure()

    def first_credential(self, pair):
        """`pair`: files with a certificate and its key, or None."""
        self.put(kubeconfig_text(self.plane, self.server, *pair) if pair
                 else self.fresh_credential())

    def configure(self, **changes):
        super().configure(**merged(SETTINGS, changes))

    def fresh_credential(self, *arguments):
        """The text of another kubeconfig for this node."""
        path = self.directory / "fresh"
        self.plane.node_kubeconfig(self.name, "--server", self.server, *arguments, out=path)
        text = path.read_text()
        path.unlink()
        return text

    def renew(self, lab):
        """Another certificate in the kubeconfig."""
        self.put(kubeconfig_text(self.plane, self.server, *lab.issue(self.name)))

    def put(self, text):
        """Replaces the kubeconfig."""
        self.give(self.kubeconfig, text)

    def give(self, path, text):
        """Replaces a secret file of the daemon's user."""
        new = path.with_suffix(".new")
        new.touch(mode=0o600)
        os.chown(new, self.uid, self.uid)
        new.write_text(text)
        os.replace(new, path)

    def start(self, arguments=None, program=None, ready=True):
        own = list(map(str, arguments or self.arguments()))
        words = [*self.prefix, "setpriv", f"--reuid={self.uid}", f"--regid={self.uid}",
                 "--clear-groups", "--inh-caps=-all", *self.inside, str(program or BINARY), *own]
        return super().start(arguments=words[1:], program=words[0], ready=ready)

    def wait_right(self, timeout=PATIENCE):
        """Until the Node shows a node that is in order."""
        def right(node):
            found = {entry["type"]: entry["status"]
                     for entry in (node or {}).get("status", {}).get("conditions", [])}
            return all(found.get(kind) == status for kind, status in RIGHT.items())
        return self.wait(right, timeout)


class BootstrapNode(FaultNode):
    """Gets its certificate with a bootstrap token, and keeps it in its state directory."""

    def first_credential(self, pair):
        self.kubeconfig = self.state_dir / "kubeconfig"
        self.bootstrap = self.directory / "bootstrap.kubeconfig"
        self.plane.run("bootstrap-kubeconfig", "--dir", self.plane.directory, "--server",
                       self.server, "--out", self.directory / "fresh")
        self.give(self.bootstrap, (self.directory / "fresh").read_text())
        self.current = self.state_dir / "pki" / "slurmlet-client-current.pem"

    def certificate(self):
        """The one in use, with its key; "" for none."""
        return self.current.read_text() if self.current.exists() else ""

    def put_ending_certificate(self):
        """Gives the stopped daemon one of which 75 % are over, to be renewed within seconds."""
        path = self.directory / "ending"
        self.plane.node_kubeconfig(self.name, "--embed=false", "--ttl", "20s", out=path)
        target = self.current.resolve()
        self.give(target, "".join(path.with_suffix(end).read_text() for end in (".crt", ".key")))
        os.utime(target, (0, 0))  # it has been here since the beginning of its life

    def arguments(self):
        return ["--bootstrap-kubeconfig", self.bootstrap, *super().arguments()]


RIGHT = {"Ready": "True", "SlurmdReady": "True", "SlurmNodeStateIdle": "True",
         "SlurmNodeStateDrain": "False", "SlurmNodeStateDown": "False"}


def kubeconfig_text(plane, server, certificate, key):
    """With a certificate and a key (files); without starting a program, for hundreds of nodes."""
    def data(path):
        return base64.b64encode(pathlib.Path(path).read_bytes()).decode()
    return json.dumps({
        "apiVersion": "v1", "kind": "Config", "current-context": "c",
        "clusters": [{"name": "c", "cluster": {
            "server": server, "certificate-authority-data": data(plane.directory / "pki/ca.crt")}}],
        "contexts": [{"name": "c", "context": {"cluster": "c", "user": "u"}}],
        "users": [{"name": "u", "user": {"client-certificate-data": data(certificate),
                                         "client-key-data": data(key)}}]})


def token_kubeconfig_text(plane, server, token_file):
    ca = base64.b64encode((plane.directory / "pki/ca.crt").read_bytes()).decode()
    return json.dumps({
        "apiVersion": "v1", "kind": "Config", "current-context": "c",
        "clusters": [{"name": "c", "cluster": {"server": server,
                                               "certificate-authority-data": ca}}],
        "contexts": [{"name": "c", "context": {"cluster": "c", "user": "u"}}],
        "users": [{"name": "u", "user": {"tokenFile": str(token_file)}}]})


def warnings_of(text):
    """Lines of a log at warning or above."""
    return [line for line in text.splitlines() if re.search(r"\b(warning|error|critical)\b", line)]
