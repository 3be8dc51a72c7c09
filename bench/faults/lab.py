"""The servers of a run, and the nodes of its trials: one control plane, and for every trial a Slurm
cluster of its own."""
import contextlib
import itertools
import os
import pathlib
import resource
import shutil
import tempfile
import threading

from clock import aged
from harness.certificates import Authority, cluster_authority
from harness.control_plane import BINARY as CONTROL_PLANE, ControlPlane
from harness.daemon import BINARY as SLURMLET
from link import Link, Loop
from node import FaultNode
from slurmcluster import SlurmCluster
from watcher import NodeWatcher

SLURM_NODE = "n1"
OLD_NODES = ("clock-ahead", "clock-behind")  # have certificates that are a day old
API_NAMES = ["DNS:localhost", "DNS:kubernetes", "DNS:kubernetes.default",
             "DNS:kubernetes.default.svc", "DNS:kubernetes.default.svc.cluster.local",
             "IP:127.0.0.1", "IP:10.96.0.1"]


class Lab(contextlib.ExitStack):
    """As a context: everything ends with it."""

    def __init__(self):
        super().__init__()
        for program in (SLURMLET, CONTROL_PLANE):
            if not program.exists():
                raise SystemExit(f"{program} is missing; run ./dev faults")
        self.work = pathlib.Path(tempfile.mkdtemp(prefix="ft", dir="/tmp"))
        self.work.chmod(0o755)
        self.callback(shutil.rmtree, self.work, ignore_errors=True)
        self.numbers = itertools.count(1)
        self._lock = threading.Lock()

    def begin(self):
        """Starts what all trials share."""
        _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
        resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
        self.old_credentials = old_authority(self.work / "cp" / "pki")
        self.plane = self.enter_context(ControlPlane(self.work / "cp", "--audit"))
        self.loop = self.enter_context(Loop())
        self.watcher = self.enter_context(NodeWatcher(self.plane.admin))
        self.authority = cluster_authority(self.plane, self.work / "issued")
        return self

    @property
    def api_port(self):
        return self.plane.admin.port

    def new_number(self):
        with self._lock:
            return next(self.numbers)

    @contextlib.contextmanager
    def slurm(self, **fields):
        """A cluster; one node unless the fields say otherwise."""
        cluster = SlurmCluster(str(self.work / f"s{self.new_number()}"))
        with cluster:
            # Two CPUs, so that the node can be MIXED; slurmd is told not to mind.
            yield cluster.up(**{"nodes": [SLURM_NODE], "cpus": max(2, os.cpu_count()),
                                "gpus": "a100:4", "cluster_name": "alps", **fields})

    @contextlib.contextmanager
    def node(self, slurm, name=None, kind=FaultNode, **options):
        """A node; its daemon is not started yet."""
        number = self.new_number()
        name = name or f"fault-{number}"
        one = kind(self.plane, slurm, name, self.work / f"n{number}",
                   options.pop("link", None) or Link(self.loop, self.api_port), number, **options)
        try:
            yield one
        finally:
            one.clean()

    def issue(self, name):
        """(certificate, key) of a node, without a program of 130 MB for each."""
        return self.authority.issue(name, f"system:node:{name}", ["system:nodes"])


def old_authority(directory):
    """The authority and the API server's certificate are a day old, as anywhere but in a lab: for a
    clock that is an hour behind they must not be of the future. Returns {name: pair} of nodes."""
    with aged():
        authority = Authority(directory)
        authority.issue("apiserver", "kube-apiserver", names=API_NAMES, days=3)
        return {name: authority.issue(name, f"system:node:{name}", ["system:nodes"], days=3)
                for name in OLD_NODES}
