"""Starts the control plane of test/lab/controlplane and hands out credentials."""
import os
import pathlib
import select
import subprocess
import time

from .api import Api, repository
from .programs import end

# KUBERNETES=1.37: another release than the usual one (test/lab/controlplane/build.sh).
RELEASE = os.environ.get("KUBERNETES", "")
BINARY = repository() / ("build/controlplane" + (f"-{RELEASE}" if RELEASE else "")) / "controlplane"


class ControlPlane:
    """A running etcd, kube-apiserver, controller-manager and scheduler; see `controlplane --help`."""

    def __init__(self, directory, *arguments):
        self.directory = pathlib.Path(directory)
        self.directory.mkdir(parents=True, exist_ok=True)
        self.log = open(self.directory / "controlplane.log", "ab")
        self.process = subprocess.Popen(
            [BINARY, "up", "--dir", str(self.directory), *arguments], stdout=subprocess.PIPE,
            stderr=self.log, text=True)
        self._wait_ready(300)
        self.admin_kubeconfig = self.directory / "admin.kubeconfig"
        self.kubectl = [str(BINARY), "kubectl"]
        self.admin = Api(self.admin_kubeconfig)

    def _wait_ready(self, timeout):
        deadline = time.monotonic() + timeout
        while True:
            ready, _, _ = select.select([self.process.stdout], [], [],
                                        max(0, deadline - time.monotonic()))
            line = self.process.stdout.readline() if ready else ""
            if line.startswith("ready"):
                return
            if not line:
                self.stop()
                raise RuntimeError("the control plane did not start; see "
                                   f"{self.directory}/controlplane.log and logs/")

    def run(self, *arguments, program=BINARY):
        done = subprocess.run([program, *map(str, arguments)], capture_output=True, text=True)
        if done.returncode != 0:
            raise RuntimeError(f"{program} {' '.join(map(str, arguments))}: {done.stderr}")
        return done.stdout

    def ctl(self, action, component):
        return self.run("ctl", "--dir", self.directory, action, component)

    def kubectl_output(self, *arguments):
        environment = dict(os.environ, KUBECONFIG=str(self.admin_kubeconfig))
        done = subprocess.run([*self.kubectl, *arguments], capture_output=True, text=True,
                              env=environment)
        if done.returncode != 0:
            raise RuntimeError(f"kubectl {' '.join(arguments)}: {done.stderr}")
        return done.stdout

    def node_kubeconfig(self, name, *arguments, out=None):
        """With a certificate of the node's; more arguments: see `kubeconfig node --help`."""
        return self._kubeconfig("node", "--name", name, out or self.directory / f"node-{name}.kubeconfig",
                                *arguments)

    def user_kubeconfig(self, name, out, *arguments):
        return self._kubeconfig("user", "--cn", name, out, *arguments)

    def _kubeconfig(self, whose, key, name, out, *arguments):
        self.run(whose, "--dir", self.directory, key, name, "--out", out, *arguments,
                 program=BINARY.parent / "kubeconfig")
        return out

    def stop(self):
        end(self.process)
        self.log.close()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.stop()
