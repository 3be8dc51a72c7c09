"""From a bootstrap token to system:node:NAME, with and without somebody who has to approve, over
crashes at every step."""
import base64
import shutil
import stat
import subprocess
import time

import pytest

from harness.bootstrap import (SERVING, BootstrapRig, bootstrap_token, ca_hash, has_condition, is_issued, is_pending,
                               modes, openssl_text, public_key, request_pem, wait_file)
from harness.control_plane import ControlPlane
from harness.programs import free_port
from harness.rig import GENERAL_WAIT, wait_until
from slurmcluster.processes import sleeps


@pytest.fixture(scope="module", name="strict_plane")
def plane_without_auto_approval(work):
    with ControlPlane(work / "cp-strict", "--audit", "--no-auto-approve") as running:
        yield running


@pytest.fixture(name="node")
def bootstrapping_node(bootstrap_rig, plane):
    """A node of a cluster that approves by itself."""
    return bootstrap_rig(BootstrapRig, plane)


@pytest.fixture(name="waiting")
def node_that_waits_for_approval(bootstrap_rig, strict_plane):
    """Its daemon runs, and its request is there."""
    node = bootstrap_rig(BootstrapRig, strict_plane)
    node.start(ready=False)
    node.request = node.wait_request()
    return node


# -- with auto-approval ---------------------------------------------------------------------------


def test_bootstrap_to_ready(node, timing):
    timing("bootstrap to Ready", node.start())
    request, = node.requests()
    assert request["spec"]["username"].startswith("system:bootstrap:")
    assert request["spec"]["signerName"] == "kubernetes.io/kube-apiserver-client-kubelet"
    assert sorted(request["spec"]["usages"]) == ["client auth", "digital signature"]
    text = openssl_text("req", "-noout", "-text", text=request_pem(request))
    assert "prime256v1" in text
    assert "Subject Alternative Name" not in text
    assert node.audit.requests(), "nothing was asked as system:node"
    assert node.node()["metadata"]["name"] == node.name


def test_key_and_certificate_are_private_and_a_pair(node):
    node.start()
    assert stat.S_IMODE(node.pki.stat().st_mode) == 0o700
    assert set(modes(node.pki).values()) == {0o600}
    assert node.current.is_symlink()
    assert not node.pending_key.exists()
    pem = node.certificate()
    key = pem[pem.index("-----BEGIN", pem.index("-----END CERTIFICATE")):]
    assert public_key(pem) == public_key(key)
    assert "PRIVATE KEY" not in node.log()


def test_kubeconfig_is_written_for_the_next_start(node):
    """And works by itself, for kubectl too."""
    node.start()
    assert stat.S_IMODE(node.kubeconfig.stat().st_mode) == 0o600
    assert "PRIVATE KEY" not in node.kubeconfig.read_text()
    shown = node.plane.kubectl_output("--kubeconfig", str(node.kubeconfig), "get", "node",
                                      node.name, "-o", "name")
    assert shown.strip() == f"node/{node.name}"
    node.stop()
    node.bootstrap.unlink()
    node.start(arguments=node.arguments()[2:])
    assert len(node.requests()) == 1


def test_lifetime_that_is_asked_for_is_what_the_signer_gives(node):
    """Of both certificates, and the renewal follows the certificate."""
    port = free_port()
    node.configure(kubernetes={"certificateDuration": "10m"}, endpoint={"port": port})
    node.start()
    serving = node.wait_request(signer=SERVING)
    node.approve(serving)
    serving = node.wait_request(is_issued, signer=SERVING)
    client, = node.requests()
    for request in client, serving:
        assert request["spec"]["expirationSeconds"] == 600
        # The signer's default is a year; it dates the beginning back by minutes.
        pem = base64.b64decode(request["status"]["certificate"]).decode()
        assert openssl_text("x509", "-noout", "-checkend", "540", text=pem)
        ended = subprocess.run(["openssl", "x509", "-noout", "-checkend", "601"], input=pem,
                               text=True, capture_output=True, check=False)
        assert ended.returncode == 1


# -- where the server and its CA come from --------------------------------------------------------


def server_of(plane):
    return plane.admin.host, plane.admin.port


def token_arguments(node, **kubernetes):
    """Without a bootstrap kubeconfig: address and token file, and what is given."""
    token = bootstrap_token(node.plane, node.directory / "bootstrap-token")
    host, port = server_of(node.plane)
    node.configure(kubernetes={"server": f"https://{host}:{port}", **kubernetes})
    return ["--bootstrap-token-file", token, "--config", node.config_path, "--metadata",
            node.metadata_path, "--state-dir", node.state_dir]


@pytest.mark.parametrize("way", ["file", "inline", "hash"])
def test_token_file_with_the_ca(node, way):
    ca = node.plane.directory / "pki/ca.crt"
    given = {"file": {"caFile": str(ca)}, "inline": {"caData": ca.read_text()}, "hash": {}}[way]
    arguments = token_arguments(node, **given)
    if way == "hash":
        arguments += ["--discovery-token-ca-cert-hash", ca_hash(ca.read_text())]
    node.start(arguments=arguments)
    assert (node.state_dir / "kubeconfig").exists()
    assert len(node.requests()) == 1


def test_wrong_ca_hash_is_believed_by_nobody(node):
    arguments = token_arguments(node) + ["--discovery-token-ca-cert-hash", "sha256:" + "0" * 64]
    node.start(arguments=arguments, ready=False)
    # At first the cluster's own signer may be late.
    wait_until(lambda: any("hash" in line for line in node.log().splitlines()
                           if "bootstrap failed, retrying: " in line), what="the hash to be named")
    assert node.requests() == []
    token = (node.directory / "bootstrap-token").read_text().strip()
    assert token.split(".")[1] not in node.log()


def test_bootstrap_token_that_nobody_knows_then_a_right_one(node):
    """The token is replaced on disk; no restart."""
    good = node.bootstrap.read_text()
    start = good.index('token: "') + len('token: "')
    bad = good[:start] + "aaaaaa.0123456789abcdef" + good[start + 23:]
    node.bootstrap.write_text(bad)
    node.start(ready=False)
    node.wait_log("401")
    assert "0123456789abcdef" not in node.log()
    replacement = node.directory / "replacement"
    replacement.write_text(good)
    replacement.rename(node.bootstrap)
    node.wait_ready()


# -- without auto-approval ------------------------------------------------------------------------


def test_waits_for_approval_and_says_so(waiting):
    waiting.wait_log(f"is waiting for approval: kubectl certificate approve "
                     f"{waiting.request['metadata']['name']}")
    assert waiting.admin.find(waiting.path) is None
    waiting.approve(waiting.request)
    waiting.wait_ready()
    assert len(waiting.requests()) == 1


def test_crash_before_the_request_keeps_the_key(bootstrap_rig, strict_plane):
    """The API server is away when the daemon first starts."""
    node = bootstrap_rig(BootstrapRig, strict_plane)
    strict_plane.ctl("stop", "kube-apiserver")
    try:
        node.start(ready=False)
        wait_file(node.pending_key)
        key = public_key(node.pending_key.read_text())
        node.crash()
    finally:
        strict_plane.ctl("start", "kube-apiserver")
    node.start(ready=False)
    request = node.wait_request()
    assert public_key(request_pem(request)) == key
    node.approve(request)
    node.wait_ready()
    assert public_key(node.certificate()) == key


def test_crashes_before_approval_make_no_second_request(waiting):
    key = public_key(waiting.pending_key.read_text())
    assert modes(waiting.pki) == {waiting.pending_key.name: 0o600}
    for restart in range(1, 4):
        waiting.crash()
        waiting.start(ready=False)
        wait_until(lambda: waiting.log().count("continuing with request") == restart,
                   what=f"restart {restart} to find its request")
    waiting.approve(waiting.request)
    waiting.wait_ready()
    request, = waiting.requests()
    assert request["metadata"]["uid"] == waiting.request["metadata"]["uid"]
    assert public_key(waiting.certificate()) == key


def test_approved_while_the_daemon_is_away(waiting):
    key = public_key(waiting.pending_key.read_text())
    waiting.crash()
    waiting.approve(waiting.request)
    waiting.wait_request(is_issued)
    waiting.start()
    assert len(waiting.requests()) == 1
    assert public_key(waiting.certificate()) == key


@pytest.mark.parametrize("moment", ["issued", "stored", "kubeconfig"])
def test_crash_just_after(waiting, moment):
    """The certificate is issued; killed at about that moment, wherever the daemon is then."""
    key = public_key(waiting.pending_key.read_text())
    waiting.approve(waiting.request)
    if moment == "issued":
        waiting.wait_request(is_issued)
    else:
        wait_file(waiting.current if moment == "stored" else waiting.kubeconfig)
    waiting.crash()
    waiting.start()
    assert len(waiting.requests()) == 1
    assert public_key(waiting.certificate()) == key
    assert set(modes(waiting.pki).values()) == {0o600}


def test_torn_write_of_a_crash_is_got_over(waiting):
    """Half a key on disk, as a full disk leaves it: another key and request, and no loop."""
    waiting.crash()
    text = waiting.pending_key.read_text()
    waiting.pending_key.write_text(text[:len(text) // 2])
    waiting.start(ready=False)
    first = waiting.request["metadata"]["uid"]
    second = waiting.wait_request(lambda one: one["metadata"]["uid"] != first)
    waiting.approve(second)
    waiting.wait_ready()
    assert len(waiting.requests()) == 2


@pytest.mark.slow
def test_denied_request_is_asked_again_with_another_key(waiting):
    first = waiting.request
    waiting.deny(first)
    waiting.wait_log("was denied")
    second = waiting.wait_request(
        lambda one: one["metadata"]["uid"] != first["metadata"]["uid"] and is_pending(one))
    assert public_key(request_pem(second)) != public_key(request_pem(first))
    assert has_condition(waiting.requests()[0], "Denied") or has_condition(
        waiting.requests()[1], "Denied")
    waiting.approve(second)
    waiting.wait_ready()


def test_deleted_request_is_asked_again_with_the_same_key(waiting):
    first = waiting.request
    waiting.admin.delete("/apis/certificates.k8s.io/v1/certificatesigningrequests/" +
                         first["metadata"]["name"])
    second = waiting.wait_request(
        lambda one: one["metadata"]["uid"] != first["metadata"]["uid"], timeout=GENERAL_WAIT)
    assert public_key(request_pem(second)) == public_key(request_pem(first))
    waiting.approve(second)
    waiting.wait_ready()


def test_kubeconfig_that_cannot_be_written_costs_nothing_and_is_written_later(waiting):
    """Each try makes and removes a file in a directory that the daemon watches."""
    (waiting.kubeconfig / "in the way").mkdir(parents=True)
    waiting.approve(waiting.request)
    waiting.wait_log("the kubeconfig of this node cannot be written")
    before = sum(sleeps(waiting.daemon.pid).values())
    time.sleep(5)
    assert sum(sleeps(waiting.daemon.pid).values()) - before < 50
    assert waiting.log().count("the kubeconfig of this node cannot be written") == 1
    shutil.rmtree(waiting.kubeconfig)
    waiting.wait_ready()
    assert len(waiting.requests()) == 1
