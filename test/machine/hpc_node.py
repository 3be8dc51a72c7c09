"""A machine as a site has it: Slurm on it, Metal3's metadata on its config drive, and slurmlet."""
import datetime
import os
import time
import uuid as uuids

from harness import api
from harness.audit import Audit
from harness.bootstrap import CLIENT, REQUESTS, openssl_text, request_pem
from harness.rig import GENERAL_WAIT, wait_until

_LEASES = "/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases"
SENTINEL = "/run/cluster-api/bootstrap-success.complete"


class HpcNode:
    """The Machine `name` of Cluster API, on a machine of ours. Its slurmctld runs on it as well, as
    on the smallest of sites."""

    def __init__(self, plane, machine, name):
        self.plane, self.machine = plane, machine
        self.admin = plane.admin
        self.name, self.uuid = None, None
        self.new_identity(name)

    # -- what Metal3 does -------------------------------------------------------

    def new_identity(self, name):
        """Another Machine of Cluster API, on another BareMetalHost as far as its metadata tells."""
        self.name, self.uuid = name, str(uuids.uuid4())
        self.audit = Audit(self.plane.directory / "audit.log", "system:node:" + name)

    @property
    def provider_id(self):
        return f"metal3://metal3/node-0/{self.name}"

    def meta_data(self):
        """meta_data.json of a config drive, for a Metal3DataTemplate with name, local-hostname,
        local_hostname and providerid."""
        return {"uuid": self.uuid, "metal3-namespace": "metal3", "metal3-name": "node-0",
                "name": self.name, "local-hostname": self.name, "local_hostname": self.name,
                "providerid": f"metal3/node-0/{self.name}"}

    def provision(self, user_data):
        """Writes the config drive, and the site's slurm.conf."""
        self.machine.provision(self.meta_data(), user_data)
        self.machine.write("etc/slurm/slurm.conf", self.slurm_conf())

    def slurm_conf(self):
        return f"""ClusterName=alps
SlurmctldHost={self.name}(127.0.0.1)
SlurmUser=slurm
StateSaveLocation=/var/lib/slurm/slurmctld
SlurmdSpoolDir=/var/lib/slurm/slurmd
SlurmctldPidFile=/run/slurmctld.pid
SlurmdPidFile=/run/slurmd.pid
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
MpiDefault=none
MailProg=/bin/true
ReturnToService=2
SlurmdParameters=config_overrides
NodeName={self.name} NodeAddr=127.0.0.1 CPUs={os.cpu_count()} RealMemory=1024
PartitionName=normal Nodes=ALL Default=YES MaxTime=INFINITE State=UP
"""

    # -- what the API server has --------------------------------------------------

    def node(self):
        return self.admin.find(api.node_path(self.name))

    def wait(self, predicate, timeout=GENERAL_WAIT):
        return api.wait_node(self.admin, self.name, predicate, timeout)[0]

    def wait_condition(self, kind, status, reason=None, timeout=GENERAL_WAIT):
        node, _ = api.wait_condition(self.admin, self.name, kind, status, timeout, reason)
        return api.condition(node, kind)

    def wait_ready(self, timeout=GENERAL_WAIT):
        return self.wait_condition("Ready", "True", timeout=timeout)

    def lease(self, name=None):
        return self.admin.get(f"{_LEASES}/{name or self.name}")

    def wait_renewed(self, since, timeout=GENERAL_WAIT):
        """Until the Lease is renewed at a moment later than `since` (seconds since the epoch)."""
        moment = datetime.datetime.fromtimestamp(since, datetime.timezone.utc)
        text = moment.strftime("%Y-%m-%dT%H:%M:%S.%fZ")
        return self.admin.wait(_LEASES, lambda lease, _: lease["spec"].get("renewTime", "") > text,
                               timeout, f"metadata.name={self.name}")[0]

    def client_requests(self):
        """The requests for a client certificate of this node."""
        wanted = f"CN=system:node:{self.name}"
        return [one for one in self.admin.get(REQUESTS)["items"]
                if one["spec"]["signerName"] == CLIENT and wanted in openssl_text(
                    "req", "-noout", "-subject", "-nameopt", "RFC2253",
                    text=request_pem(one)).strip().split("=", 1)[1].split(",")]

    # -- the daemon -----------------------------------------------------------------

    def seconds_since_start(self):
        """Since the daemon's last start. Machines have the clock of the machine below."""
        return time.monotonic() - int(self.daemon()["ExecMainStartTimestampMonotonic"]) / 1e6

    def daemon(self):
        """What systemd knows of it."""
        return self.machine.unit("slurmlet", "ActiveState", "SubState", "UnitFileState", "MainPID",
                                 "NRestarts", "StatusText", "Result", "InvocationID",
                                 "ExecMainStartTimestampMonotonic")

    def main_pid(self, unit):
        """On the machine; 0 for none."""
        return int(self.machine.unit(unit, "MainPID")["MainPID"])

    def wait_unit(self, name, state, timeout=GENERAL_WAIT):
        return wait_until(lambda: self.machine.unit(name, "ActiveState")["ActiveState"] == state,
                          timeout, f"{name} {state}")

    def log(self):
        return self.machine.journal("-u", "slurmlet")

    def wait_log(self, text, timeout=GENERAL_WAIT):
        return wait_until(lambda: text in self.log(), timeout, f'"{text}" in slurmlet\'s log')
