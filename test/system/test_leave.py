"""`slurmlet leave` on a real cluster: what it deletes and what it leaves. That the service ends: test/machine."""
import json
import os

import pytest

from harness.bootstrap import BootstrapRig, bootstrap_token, ca_hash
from harness.commands import run_beside
from harness.rig import wait_until
from harness.service_account import can, ensure

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="slurmlet leave needs root")
RBAC = "/apis/rbac.authorization.k8s.io/v1"


class JoinedRig(BootstrapRig):
    """As slurmlet join leaves a node, with a systemctl that only notes what it is called with."""

    def __init__(self, plane, slurm, name, directory):
        super().__init__(plane, slurm, name, directory)
        self.kubeconfig = self.state_dir / "kubeconfig"
        self.token = bootstrap_token(plane, self.directory / "bootstrap-token")
        self.join = self.directory / "config.d/20-join.yaml"
        self.join.parent.mkdir()
        self.join.write_text(json.dumps({
            "apiVersion": "slurmlet.io/v1alpha1", "kind": "SlurmletConfiguration",
            "kubernetes": {"server": f"https://{plane.admin.host}:{plane.admin.port}",
                           "bootstrapTokenFile": str(self.token),
                           "caCertHashes": ca_hash((plane.directory / "pki/ca.crt").read_text())}}))
        self.calls = self.directory / "systemctl.calls"
        stub = self.directory / "bin/systemctl"
        stub.parent.mkdir()
        stub.write_text(f'#!/bin/sh\necho "$@" >>{self.calls}\n')
        stub.chmod(0o755)
        self.environment["PATH"] = f"{stub.parent}:{os.environ['PATH']}:/usr/sbin:/sbin"
        self.provision("1f6c1a52-32c7-4a93-8c58-7b7f5d3a2c12")

    def arguments(self):
        return ["--config", self.config_path, "--metadata", self.metadata_path, "--state-dir", self.state_dir]

    def own_files(self):
        return [path for path in (self.kubeconfig, self.pki, self.token, self.join) if path.exists()]

    def leave(self, *arguments):
        """(exit code, what it said)"""
        done = run_beside(self, "leave", *arguments)
        print(done.stdout + done.stderr)
        return done.returncode, done.stdout

    def stopped(self):
        """Whether the service was stopped and disabled."""
        return self.calls.exists() and "disable --quiet --now slurmlet.socket slurmlet.service" in \
            self.calls.read_text()

    def may_delete_its_node(self):
        """As no cluster allows by itself."""
        user = f"system:node:{self.name}"
        rules = [{"verbs": ["delete"], "apiGroups": [""], "resources": ["nodes"], "resourceNames": [self.name]}]
        name = f"leave-{self.name}"
        ensure(self.admin, f"{RBAC}/clusterroles", {"metadata": {"name": name}, "rules": rules})
        ensure(self.admin, f"{RBAC}/clusterrolebindings", {
            "metadata": {"name": name},
            "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": name},
            "subjects": [{"kind": "User", "apiGroup": "rbac.authorization.k8s.io", "name": user}]})
        review = {"spec": {"user": user, "groups": ["system:nodes"], "resourceAttributes": {
            "verb": "delete", "resource": "nodes", "name": self.name}}}
        wait_until(lambda: self.admin.create("/apis/authorization.k8s.io/v1/subjectaccessreviews",
                                             review)["status"]["allowed"], what="the right to delete it")


@pytest.fixture(name="node")
def joined_node(bootstrap_rig, plane):
    """Its daemon has run, and is stopped."""
    node = bootstrap_rig(JoinedRig, plane)
    node.start()
    node.wait_renewed()
    assert len(node.own_files()) == 4
    node.stop()
    return node


def test_nothing_is_left(node):
    node.may_delete_its_node()
    assert node.lease()["metadata"]["ownerReferences"][0]["uid"] == node.node()["metadata"]["uid"]
    code, said = node.leave("--dry-run")
    assert code == 0 and f"would delete Node {node.name}" in said and f"would remove {node.token}" in said
    assert len(node.own_files()) == 4 and node.admin.find(node.path) and not node.stopped()

    code, said = node.leave()
    assert code == 0 and f"deleted Node {node.name}" in said
    assert node.stopped() and node.own_files() == []
    assert node.admin.find(node.path) is None
    wait_until(lambda: node.admin.find(node.lease_path) is None, what="the Lease to go with its Node")

    code, said = node.leave()
    assert code == 0 and "removed" not in said and "deleted" not in said


def test_the_node_authorizer_lets_no_node_delete_itself(node):
    """So an administrator has to."""
    assert not can(node.plane, "delete", "nodes", f"system:node:{node.name}", "system:nodes")
    code, said = node.leave()
    assert code == 1 and f"-> kubectl delete node {node.name}" in said
    assert node.stopped() and node.own_files() == [] and node.admin.find(node.path)


def test_another_machines_node_is_left_alone(node):
    node.may_delete_its_node()
    node.admin.merge(node.path, {"metadata": {"labels": {"metal3.io/uuid": "of-another-machine"}}})
    code, said = node.leave()
    assert code == 0 and f"Node {node.name} belongs to another machine" in said
    assert node.own_files() == [] and node.admin.find(node.path)


def test_a_daemon_of_another_unit_is_named(node):
    node.may_delete_its_node()
    node.start()
    code, _ = node.leave()
    assert code == 1 and len(node.own_files()) == 4 and node.admin.find(node.path)


def test_jobs_are_named_and_go_on(node, slurm):
    job = slurm.submit("nid000001")
    try:
        assert f"1 job of Slurm runs here ({job})" in node.leave()[1]
        assert slurm.job_state(job) == "RUNNING"
    finally:
        slurm.command("scancel", job)
