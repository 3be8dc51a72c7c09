"""One Kubernetes node under test: its credential, metadata and configuration, and the daemon."""
import copy
import json
import os
import pathlib
import pwd
import time

from slurmcluster.processes import wait_for

from . import api
from .audit import Audit
from .daemon import BINARY, Slurmlet, readable_copy

# Fast enough to test, slow enough for a loaded machine.
FAST = {
    "apiVersion": "slurmlet.io/v1alpha1", "kind": "SlurmletConfiguration",
    "node": {"notReadyGracePeriod": "2s"},
    "slurm": {"pollInterval": "2s", "commandTimeout": "1900ms", "staleAfter": "8s",
              "maxBackoff": "2s"},
    "endpoint": {"port": 0, "healthzPort": 0},
}

GENERAL_WAIT = 60  # seconds; the machine may be busy


def wait_until(condition, timeout=GENERAL_WAIT, what="it"):
    """For what no watch tells (a log line, a process)."""
    return wait_for(what, timeout, condition)


def metal3_metadata(uuid, name, provider_id):
    """cloud-init's instance-data.json of a machine that Metal3 provisioned."""
    meta = {"uuid": uuid, "instance-id": uuid, "metal3-namespace": "metal3",
            "metal3-name": "node-0", "name": name, "local-hostname": name, "local_hostname": name}
    if provider_id:
        meta["providerid"] = provider_id
    return {"ds": {"meta_data": meta, "network_json": {}},
            "v1": {"cloud_id": "configdrive", "local_hostname": name}}


def merged(base, changes):
    """`base` with the maps of `changes` merged in."""
    result = copy.deepcopy(base)
    for key, value in changes.items():
        if isinstance(value, dict) and isinstance(result.get(key), dict):
            result[key] = merged(result[key], value)
        else:
            result[key] = copy.deepcopy(value)
    return result


class Rig:
    """The node `name`, mirrored from the Slurm cluster `slurm` by a daemon that runs as `user`."""

    def __init__(self, plane, slurm, name, directory, user=None):
        self.plane, self.slurm, self.name, self.user = plane, slurm, name, user
        self.admin = plane.admin
        self.directory = pathlib.Path(directory)
        self.directory.mkdir(mode=0o755)
        self.state_dir = self._owned_directory("state")
        self.config_path = self.directory / "config.yaml"
        self.metadata_path = self.directory / "instance-data.json"
        self.kubeconfig = plane.node_kubeconfig(name)
        if user:
            self.kubeconfig = readable_copy(self.kubeconfig, self.directory, user)
        self.audit = Audit(plane.directory / "audit.log", "system:node:" + name)
        self.environment = {"SLURM_CONF": str(slurm.conf_path)}
        self.sockets = ()  # what a socket unit would hand over
        self.daemon = None
        self.config = {}
        self.configure()

    def _owned_directory(self, name):
        path = self.directory / name
        path.mkdir(mode=0o755)
        if self.user:
            os.chown(path, *_ids(self.user))
        return path

    # -- before the start ---------------------------------------------------

    def configure(self, **changes):
        """Writes the configuration: FAST with these changes (JSON is YAML)."""
        own = {"node": {"name": self.name}}
        if self.slurm.bin_dir:
            own["slurm"] = {"binDir": self.slurm.bin_dir}
        self.config = merged(merged(FAST, own), changes)
        self.config_path.write_text(json.dumps(self.config, indent=2))

    def provision(self, uuid, with_provider_id=True):
        """Leaves Metal3's metadata on the machine."""
        provider_id = f"metal3/node-0/{self.name}" if with_provider_id else ""
        document = metal3_metadata(uuid, self.name, provider_id)
        self.metadata_path.write_text(json.dumps(document))

    def arguments(self):
        return ["--kubeconfig", self.kubeconfig, "--config", self.config_path,
                "--metadata", self.metadata_path, "--state-dir", self.state_dir]

    # -- the daemon -----------------------------------------------------------

    def start(self, arguments=None, program=None, ready=True):
        """Starts the daemon; returns the seconds until Ready (None with ready=False)."""
        began = time.monotonic()
        environment = {"PATH": os.environ["PATH"] + ":/usr/sbin:/sbin", **self.environment}
        self.daemon = Slurmlet(self.directory / "daemon", arguments or self.arguments(),
                               environment, self.user, program or BINARY, self.sockets)
        if not ready:
            return None
        self.wait_condition("Ready", "True")
        return time.monotonic() - began

    def start_and_know(self, **options):
        """Starts the daemon and waits for slurmctld's first answer."""
        seconds = self.start(**options)
        self.wait_known()
        return seconds

    def stop(self):
        seconds = self.daemon.stop()
        self.daemon = None
        return seconds

    def restart(self):
        self.stop()
        self.start()

    def log(self):
        return (self.directory / "daemon" / "slurmlet.log").read_text(errors="replace")

    def wait_log(self, text, timeout=GENERAL_WAIT):
        return wait_until(lambda: text in self.log(), timeout,
                          f'"{text}" in the log:\n{self.log()[-3000:]}')

    def clean(self):
        """Ends the daemon and removes what it left on the API server."""
        if self.daemon:
            self.daemon.kill()
        for path in (api.node_path(self.name), self.lease_path):
            try:
                self.admin.delete(path)
            except api.ApiError as error:
                if error.status != 404:
                    raise

    # -- what the API server has ----------------------------------------------

    @property
    def path(self):
        return api.node_path(self.name)

    @property
    def lease_path(self):
        return "/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases/" + self.name

    def node(self):
        return self.admin.get(self.path)

    def lease(self):
        return self.admin.get(self.lease_path)

    def condition(self, type_name):
        return api.condition(self.node(), type_name)

    def wait(self, predicate, timeout=GENERAL_WAIT):
        """Waits until predicate(Node, None once deleted) holds; returns the Node."""
        return api.wait_node(self.admin, self.name, predicate, timeout)[0]

    def wait_condition(self, type_name, status, reason=None, timeout=GENERAL_WAIT):
        """Returns the condition when it has that status (and reason)."""
        node, _ = api.wait_condition(self.admin, self.name, type_name, status, timeout, reason)
        return api.condition(node, type_name)

    def wait_known(self):
        """Until slurmctld's answer is on the Node."""
        try:
            self.wait(lambda node: node and api.condition(node, "SlurmNodeStateIdle").get(
                "status") in ("True", "False"))
        except TimeoutError as error:
            if self.slurm.pid("slurmctld") is None:
                raise RuntimeError("slurmctld has died") from error
            raise

    def wait_renewed(self, after=""):
        """Until the Lease has a renewTime later than `after`; returns the Lease."""
        path, name = self.lease_path.rsplit("/", 1)
        return self.admin.wait(
            path, lambda lease, _: lease["spec"].get("renewTime", "") > after, GENERAL_WAIT,
            f"metadata.name={name}")[0]

    def wait_next_renewal(self):
        """That after the one that the Lease shows; at first there may be none."""
        return self.wait_renewed(self.wait_renewed()["spec"]["renewTime"])

    def wait_unknown(self, reason):
        """Until nothing of Slurm's state is known for that reason; returns the Node."""
        def unknown(node):
            found = [api.condition(node, "SlurmNodeState" + name) for name in api.SLURM_CORE]
            return all((one.get("status"), one.get("reason")) == ("Unknown", reason) for one in found)
        return self.wait(unknown)

    def wait_event(self, reason, timeout=GENERAL_WAIT):
        return self.admin.wait(
            "/api/v1/namespaces/default/events", lambda event, _: event["reason"] == reason,
            timeout, f"involvedObject.kind=Node,involvedObject.name={self.name}")[0]


def _ids(user):
    account = pwd.getpwnam(user)
    return account.pw_uid, account.pw_gid
