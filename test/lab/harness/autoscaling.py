"""A MachineDeployment that slurmlet-operator scales by the queue of Slurm: a stand-in for an infrastructure provider that
starts a real slurmd for each Machine, and a cluster of Slurm without a node."""
import os
import pathlib
import re

from slurmcluster.config import free_ports
from slurmcluster.isolation import as_host

from .api import ApiError, repository
from .cluster_api import CLUSTER, CORE, INFRASTRUCTURE, Infrastructure
from .operator_site import HOOK, operator_account
from .rig import wait_until
from .service_account import apply, can

CPUS = os.cpu_count()
SILENT = 30  # seconds, until slurmctld takes a slurmd for gone
SIZE = "cluster.x-k8s.io/cluster-api-autoscaler-node-group-"
MARK = "cluster.x-k8s.io/delete-machine"
FLAGS = ["--autoscale", f"--machine-cluster=default/{CLUSTER}", "--leader-elect=false"]


class Hosts(Infrastructure):
    """Each machine is a host of its own, whose slurmd runs as long as the machine is there."""

    def __init__(self, api, names):
        super().__init__(api, None)
        self.names, self.slurm, self.free, self.used, self.booting = names, None, [], {}, True

    def begin(self, slurm):
        self.slurm, self.free, self.used, self.booting = slurm, list(self.names), {}, True

    def power_on(self, host):
        """As the only dynamic node of this host. slurmd listens at the port of slurm.conf."""
        slurm = self.slurm
        words = [*slurm.program("slurmd"), "-D", "-Z", "-N", host]
        slurm.processes.spawn(f"slurmd.{host}", words, slurm.own_env(), None)

    def run(self):
        while not self.ended.wait(0.2):
            try:
                items = self.api.get(f"{INFRASTRUCTURE}/standinmachines")["items"]
                for item in items:
                    self.provision(item)
                names = {item["metadata"]["name"] for item in items}
                for name in [name for name in self.used if name not in names]:
                    self.slurm.processes.stop(f"slurmd.{self.used.pop(name)}")
            except (ApiError, OSError):
                continue

    def provision(self, item):
        name = item["metadata"]["name"]
        if not item["metadata"].get("ownerReferences") or item["metadata"].get("deletionTimestamp"):
            return
        if name not in self.used and self.booting:
            self.host = self.used[name] = self.free.pop(0)
            self.power_on(self.host)
            super().provision(item)


class SeparateHosts(Hosts):
    """Many at a time: each has a host name and a port, of which slurmd -Z 22.05 knows nothing. There slurm.conf names
    the nodes."""

    def power_on(self, host):
        slurm = self.slurm
        if not slurm.spec.dynamic:
            slurm.daemon("start", f"slurmd:{host}")
            return
        etc, [port] = pathlib.Path(slurm.layout.at("etc")), free_ports(1)
        conf, names = etc / f"{host}.conf", etc / f"hosts.{host}"
        conf.write_text(re.sub(r"SlurmdPort=\d+", f"SlurmdPort={port}", pathlib.Path(slurm.conf_path).read_text()))
        names.write_text(f"127.0.0.1 localhost {' '.join(self.names)}\n")
        slurm.processes.spawn(f"slurmd.{host}", [
            *as_host(host, str(names), slurm.layout.at("run")), *slurm.program("slurmd"), "-D", "-Z", "-f", str(conf),
            "--conf", f"Port={port}"], slurm.own_env(), None)


def up_without_nodes(up, slurmd_timeout=SILENT, **fields):
    """A cluster whose partition is empty until a slurmd -Z registers; `up` is as SlurmCluster.up."""
    slurm = up(nodes=["dyn0"], cpus=CPUS, dynamic=["dyn0"], slurmd_timeout=slurmd_timeout,
               slurmd_arguments={"dyn0": ["-Z"]}, **fields)
    slurm.daemon("stop", "slurmd:dyn0")
    slurm.command("scontrol", "delete", "nodename=dyn0")
    return slurm


def scaling_account(plane):
    """The operator's, with the rights of deploy/operator to scale."""
    account = operator_account(plane)
    apply(plane, repository() / "deploy/operator/admission.yaml")
    apply(plane, repository() / "deploy/operator/rbac-autoscaling.yaml")
    wait_until(lambda: can(plane, "patch", "machinedeployments/scale", account.user, api_group="cluster.x-k8s.io"),
               what="the rights")
    return account


def make_scaled(cluster_api, name, least, most, idle_after="5s"):
    """A MachineDeployment for partition normal, of at most one Machine until it is scaled."""
    cluster_api.make_deployment(name, {HOOK: ""}, min(least, 1))
    cluster_api.api.merge(f"{CORE}/machinedeployments/{name}", {"metadata": {"annotations": {
        "slurmlet.io/scale-for": "partition=normal", SIZE + "min-size": str(least), SIZE + "max-size": str(most),
        "capacity.cluster-autoscaler.kubernetes.io/cpu": str(CPUS), "slurmlet.io/idle-after": idle_after}}})
