"""`slurmlet check` on real machines in real trouble: each finding names the
thing, the cause and the fix, and nothing is written anywhere."""
import base64
import json
import os
import socket
import time

import pytest

from harness.api import read_kubeconfig
from harness.bootstrap import SERVING, BootstrapRig, is_pending
from harness.certificates import Authority
from harness.commands import run_beside
from harness.programs import free_port
from harness.rig import wait_until
from harness.tls_front import TlsFront

OK, ERRORS, BAD_CONFIGURATION = 0, 1, 2
LONGEST = 20  # seconds that check may take, whatever hangs
UUID = "1f6c1a52-32c7-4a93-8c58-7b7f5d3a2c11"


class Checked:
    """One run of check."""

    def __init__(self, rig, user=None):
        began = time.monotonic()
        done = run_beside(rig, "check", "-o", "json", user=user)
        assert time.monotonic() - began < LONGEST
        self.code, self.errors = done.returncode, done.stderr
        self.findings = json.loads(done.stdout)["findings"]

    def of(self, subject):
        return [one for one in self.findings if one["subject"] == subject]

    def worst(self, subject):
        """(severity, all its words) of the subject's worst finding."""
        order = ["ok", "info", "warning", "error"]
        one = max(self.of(subject), key=lambda entry: order.index(entry["severity"]))
        return one["severity"], " ".join(filter(None, (one["found"], one["cause"], one["fix"])))

    def troubles(self):
        return [f"{one['subject']}: {one['found']}" for one in self.findings
                if one["severity"] == "error"]


def snapshot(rig):
    """What check must leave as it is."""
    files = {path: path.read_bytes() for path in rig.state_dir.rglob("*") if path.is_file()}
    return files, rig.admin.find(rig.path), rig.admin.find(rig.lease_path)


# What a loaded machine can keep; others may run a slurmd here.
PATIENT = {"nodeName": "nid000001", "pollInterval": "10s", "commandTimeout": "9s",
           "staleAfter": "60s", "maxBackoff": "10s"}


def ports():
    return {"healthzPort": free_port(), "port": free_port()}


@pytest.fixture(name="ported")
def rig_with_ports(rig):
    rig.configure(endpoint=ports(), slurm=PATIENT)
    return rig


def test_fresh_machine(ported):
    ported.provision(UUID)
    checked = Checked(ported)
    assert checked.code == OK, checked.findings
    assert "all 22 that it needs" in checked.worst("rights")[1]
    assert checked.worst("node") == ("info",
                                     f"{ported.name} is not registered: slurmlet "
                                     "registers it once it is running")
    assert checked.worst("daemon")[0] == "info"
    assert f"as system:node:{ported.name}" in checked.worst("API server")[1]
    assert f"providerID metal3://metal3/node-0/{ported.name}" in checked.worst(
        "metal3 metadata")[1]
    assert [one["severity"] for one in checked.of("ports")] == ["ok", "ok"]
    assert not list(ported.state_dir.iterdir())
    assert ported.admin.find(ported.path) is None and ported.admin.find(ported.lease_path) is None


@pytest.mark.parametrize("user", [None, "nobody"])
def test_beside_a_healthy_daemon(ported, user):
    if user:
        ported.kubeconfig.chmod(0o644)
    ported.start_and_know()
    ported.wait_renewed()
    before = snapshot(ported)[0]
    checked = Checked(ported, user)
    assert checked.troubles() == []
    assert checked.worst("daemon")[1].startswith(f"{ported.name}: Ready")
    assert "exists and is this machine's" in checked.of("node")[0]["found"]
    assert checked.worst("lease")[0] == "ok"
    assert "answered in" in checked.worst("slurmctld")[1]
    assert all(one["severity"] == "ok" for one in checked.of("ports")), checked.of("ports")
    if user:
        fixes = [one["fix"] for one in checked.of("credential")]
        assert f"chmod o= {ported.kubeconfig}" in fixes
    assert snapshot(ported)[0] == before


def test_text_ends_with_the_sum(ported):
    done = run_beside(ported, "check")
    assert done.stdout.splitlines()[-1] in ("no errors", "1 warning", "2 warnings")
    assert "configuration" in done.stdout.splitlines()[0]


def test_bad_configuration(rig):
    rig.config_path.write_text("apiVersion: slurmlet.io/v1alpha1\nkind: SlurmletConfiguration\n"
                               "slurm: {polInterval: 5s}\n")
    checked = Checked(rig)
    assert checked.code == BAD_CONFIGURATION
    severity, words = checked.worst("configuration")
    assert severity == "error" and f"{rig.config_path}:3:" in words
    assert 'did you mean "slurm.pollInterval"?' in words


def test_expired_certificate(rig):
    rig.kubeconfig = rig.plane.node_kubeconfig(rig.name, "--ttl", "1s")
    wait_until(lambda: Checked(rig).worst("credential")[0] == "error", what="its end")
    checked = Checked(rig)
    assert checked.code == ERRORS
    severity, words = checked.worst("credential")
    assert severity == "error" and "expired at" in words and str(rig.kubeconfig) in words
    assert "rejects this node's credential" in checked.worst("API server")[1]


def changed_kubeconfig(rig, change):
    """The kubeconfig with change(cluster, user) applied."""
    document = read_kubeconfig(rig.kubeconfig)
    change(document["clusters"][0]["cluster"], document["users"][0]["user"])
    rig.kubeconfig = rig.directory / "changed.kubeconfig"
    rig.kubeconfig.touch(mode=0o600)
    rig.kubeconfig.write_text(json.dumps(document))


@pytest.mark.parametrize("names,days,words", [
    (["IP:127.0.0.1"], -1, ["its certificate has expired", "kubeadm certs renew"]),
    (["DNS:api.example"], 1, ["its certificate is for other names", "tls-server-name"])])
def test_certificate_of_the_api_server_that_needs_no_other_ca(rig, names, days, words):
    authority = Authority(rig.directory / "front")
    certificate = authority.issue("front", "front", names=names, days=days)
    with TlsFront(1, *certificate) as front:
        changed_kubeconfig(rig, lambda cluster, _: cluster.update({
            "server": front.url,
            "certificate-authority-data": base64.b64encode(authority.crt.read_bytes()).decode()}))
        checked = Checked(rig)
    severity, found = checked.worst("API server")
    assert severity == "error" and "cluster's CA" not in found
    for word in words:
        assert word in found


@pytest.mark.parametrize("server,words", [
    ("https://no-such-host.invalid:6443", "the name cannot be resolved"),
    ("https://127.0.0.1:1", "cannot be reached")])
def test_api_server_away(rig, server, words):
    changed_kubeconfig(rig, lambda cluster, _: cluster.update({"server": server}))
    checked = Checked(rig)
    assert checked.code == ERRORS
    assert checked.worst("API server")[0] == "error" and words in checked.worst("API server")[1]
    assert not checked.of("rights")


def test_api_server_that_hangs(rig):
    rig.configure(slurm=PATIENT)
    with socket.create_server(("127.0.0.1", 0)) as silent:
        changed_kubeconfig(rig, lambda cluster, _: cluster.update(
            {"server": f"https://127.0.0.1:{silent.getsockname()[1]}"}))
        checked = Checked(rig)
    severity, words = checked.worst("API server")
    assert severity == "error" and "cannot be reached" in words and "firewall" in words
    assert checked.worst("slurmctld")[0] == "ok"


def test_bootstrap_kubeconfig_that_is_none(bootstrap_rig, plane):
    """Whoever did as one is told would have one."""
    node = bootstrap_rig(BootstrapRig, plane)
    node.bootstrap.write_text("abcdef.0123456789abcdef\n")
    severity, words = Checked(node).worst("bootstrap")
    assert severity == "error" and "put a kubeconfig with a bootstrap token" in words
    assert str(node.bootstrap) in words


def test_file_of_the_configuration_that_cannot_be_read(rig):
    """Nothing is known of what is in it."""
    if os.geteuid() != 0:
        pytest.skip("needs another user")
    rig.config_path.chmod(0o600)
    checked = Checked(rig, "nobody")
    assert checked.code == BAD_CONFIGURATION
    assert "Permission denied" in checked.worst("configuration")[1]
    assert not [one for one in checked.findings if "no API server" in one["found"]]


def test_missing_rights(rig):
    """A user of the cluster who is no node."""
    rig.kubeconfig = rig.directory / "user.kubeconfig"
    rig.plane.user_kubeconfig("somebody", rig.kubeconfig)
    checked = Checked(rig)
    assert checked.code == ERRORS
    assert '"somebody", not for a node' in checked.worst("credential")[1]
    severity, words = checked.worst("rights")
    assert severity == "error" and f"patch nodes/status {rig.name}" in words
    assert f"system:node:{rig.name}" in words


def test_credential_of_another_node(rig):
    rig.kubeconfig = rig.plane.node_kubeconfig("another")
    checked = Checked(rig)
    assert checked.code == ERRORS
    assert "--nodename another" in checked.worst("credential")[1]
    severity, words = checked.worst("rights")
    assert severity == "error"
    assert f"get leases.coordination.k8s.io kube-node-lease/{rig.name}" in words
    assert f"watch nodes {rig.name}" in words


def test_node_of_another_machine(rig):
    rig.configure(node={"metal3UUID": "0c7d-mine"})
    rig.admin.create("/api/v1/nodes", {"apiVersion": "v1", "kind": "Node", "metadata": {
        "name": rig.name, "labels": {"metal3.io/uuid": "0c7d-theirs"}}})
    checked = Checked(rig)
    severity, words = checked.worst("node")
    assert (checked.code, severity) == (ERRORS, "error") and "belongs to another machine" in words


def test_pending_serving_certificate(bootstrap_rig, plane):
    node = bootstrap_rig(BootstrapRig, plane)
    node.configure(endpoint=ports(), slurm=PATIENT)
    node.start()
    request = node.wait_request(is_pending, signer=SERVING)["metadata"]["name"]
    node.wait_log("kubectl certificate approve " + request)
    checked = Checked(node)
    severity, words = checked.worst("serving cert")
    assert severity == "warning" and f"kubectl certificate approve {request}" in words
    assert checked.code == OK, checked.findings
    assert checked.worst("bootstrap")[0] == "ok"


def test_before_the_bootstrap(bootstrap_rig, plane):
    node = bootstrap_rig(BootstrapRig, plane)
    node.configure(slurm=PATIENT)
    checked = Checked(node)
    assert checked.code == OK, checked.findings
    assert "requests one with the bootstrap token" in checked.worst("credential")[1]
    assert "as system:bootstrap:" in checked.worst("API server")[1]
    assert node.requests() == [] and not list(node.state_dir.iterdir())


def test_port_of_somebody_else(ported):
    with socket.create_server(("127.0.0.1", ported.config["endpoint"]["healthzPort"])):
        checked = Checked(ported)
    assert checked.code == ERRORS
    severity, words = checked.worst("ports")
    assert severity == "error" and f"(pid {os.getpid()}," in words
    assert checked.worst("daemon")[0] == "error"


def outage(rig, name):
    rig.slurm.daemon("stop", name)
    try:
        return Checked(rig)
    finally:
        rig.slurm.daemon("start", name)


def test_munge_away(rig, idle_slurm):
    checked = outage(rig, "munged")
    assert checked.code == ERRORS
    severity, words = checked.worst("slurmctld")
    assert severity == "error" and "systemctl start munge" in words
    assert checked.worst("API server")[0] == "ok"


def test_slurmctld_away(rig, idle_slurm):
    checked = outage(rig, "slurmctld")
    assert checked.code == ERRORS
    severity, words = checked.worst("slurmctld")
    # As fast as scontrol gives up.
    assert severity == "error" and ("scontrol ping" in words or "sdiag" in words), words
