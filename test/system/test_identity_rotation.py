"""Certificates that end a minute after they were issued: renewal, and what follows on an expired
one.

kube-controller-manager dates certificates back by five minutes. Of the six minutes that such a
certificate lives, more than 80 % are over when it is issued: renewing it is due soon or at once,
and must not become a flood of requests."""
import time

import pytest

from harness.bootstrap import SERVING, BootstrapRig, credential_id, openssl_text, public_key
from harness.control_plane import ControlPlane
from harness.kubelet_client import ServingCertificate
from harness.programs import free_port
from harness.rig import wait_until

LIFE = 60  # seconds until an issued certificate ends
LONGEST_PAUSE = 15  # seconds between two renewals of the lease; 10 are meant


@pytest.fixture(scope="module", name="hasty_plane")
def plane_with_a_hasty_signer(work):
    with ControlPlane(work / "cp-hasty", "--audit",
                      f"--controller-manager-arg=--cluster-signing-duration={LIFE}s") as running:
        yield running


@pytest.fixture(name="node")
def rotating_node(bootstrap_rig, hasty_plane):
    return bootstrap_rig(BootstrapRig, hasty_plane)


def not_after(pem):
    text = openssl_text("x509", "-noout", "-enddate", "-dateopt", "iso_8601", text=pem)
    return time.mktime(time.strptime(text.strip().split("=")[1], "%Y-%m-%d %H:%M:%SZ")
                       ) - time.timezone


def wait_next_certificate(node, before):
    def another():
        """There is none for a moment where the token has to help."""
        text = node.certificate() if node.current.exists() else before
        return text if text != before else None
    return wait_until(another, LIFE + 30, "the next certificate")


def wait_expired(pem):
    """Nothing tells that a time has passed."""
    time.sleep(max(0, not_after(pem) - time.time()) + 1)


def longest_pause(times):
    assert len(times) > 3
    return max(later - earlier for earlier, later in zip(times, times[1:]))


@pytest.mark.slow
def test_two_rotations_without_a_late_lease(node, timing):
    began = time.time()
    node.start()
    since, pid = node.audit.mark(), node.daemon.pid
    certificates = [node.certificate()]
    for _ in range(2):
        certificates.append(wait_next_certificate(node, certificates[-1]))
        left = not_after(certificates[-2]) - time.time()
        timing("left when it was renewed", left)
        assert left > 0
    wait_until(lambda: len(node.audit.renewals(since)) > 3, what="renewals of the lease")
    assert len({public_key(pem) for pem in certificates}) == 3, "a key was used twice"
    wanted = {credential_id(pem) for pem in certificates[1:]}
    wait_until(lambda: wanted <= set(node.audit.credentials(since)), what="the new certificates")
    pause = longest_pause(node.audit.renewals(since))
    timing("longest pause between renewals of the lease", pause)
    assert pause <= LONGEST_PAUSE
    assert node.daemon.pid == pid and node.daemon.process.poll() is None
    # Renewals are asked for by the node itself, and not more often than every few seconds.
    askers = [one["spec"]["username"].split(":")[1] for one in node.requests()]
    assert askers.count("bootstrap") == 1
    assert askers.count("node") <= 2 + (time.time() - began) / 8
    # Of the files of old only the one before is kept.
    assert len(list(node.pki.glob("slurmlet-client-2*.pem"))) == 2


@pytest.mark.slow
def test_rotation_survives_an_api_server_that_is_away_when_it_is_due(node):
    """With time left: the cluster's controllers need half a minute to come back themselves."""
    node.start()
    pid = node.daemon.pid
    node.plane.ctl("stop", "kube-apiserver")
    try:
        before = node.certificate()
        time.sleep(max(0, not_after(before) - LIFE * 2 / 3 - time.time()))
        assert node.certificate() == before
    finally:
        node.plane.ctl("start", "kube-apiserver")
    wait_next_certificate(node, before)
    assert time.time() < not_after(before)
    node.wait_renewed(node.lease()["spec"]["renewTime"])
    assert [one["spec"]["username"].split(":")[1] for one in node.requests()].count(
        "bootstrap") == 1
    assert node.daemon.pid == pid and node.daemon.process.poll() is None


@pytest.mark.slow
def test_expired_while_the_daemon_was_off_falls_back_to_the_token(node):
    node.start()
    uid = node.node()["metadata"]["uid"]
    node.stop()
    before = node.certificate()
    wait_expired(before)
    renewed = node.lease()["spec"]["renewTime"]
    node.start(ready=False)
    node.wait_renewed(renewed)
    assert "expired" in node.log()
    assert node.certificate() != before
    assert node.node()["metadata"]["uid"] == uid
    assert [one["spec"]["username"].split(":")[1] for one in node.requests()].count(
        "bootstrap") == 2


@pytest.mark.slow
def test_expired_while_the_api_server_was_away_falls_back_without_a_restart(node):
    """The daemon runs on, with nothing it could renew with."""
    node.start()
    pid = node.daemon.pid
    node.plane.ctl("stop", "kube-apiserver")
    try:
        before = node.certificate()
        wait_expired(before)
    finally:
        node.plane.ctl("start", "kube-apiserver")
    renewed = node.lease()["spec"]["renewTime"]
    node.wait_renewed(renewed)
    assert node.certificate() != before
    assert node.daemon.pid == pid and node.daemon.process.poll() is None


@pytest.mark.slow
def test_rotation_can_be_turned_off(node):
    node.configure(kubernetes={"rotateCertificates": False})
    node.start()
    before = node.certificate()
    time.sleep(max(0, not_after(before) - 2 - time.time()))
    assert node.certificate() == before
    assert len(node.requests()) == 1


@pytest.mark.slow
def test_serving_certificate_rotates_under_open_eyes(node):
    port = free_port()
    node.configure(endpoint={"port": port})
    node.start()
    request = node.wait_request(signer=SERVING)
    node.approve(request)
    wait_until(lambda: not ServingCertificate(port).self_signed, what="the issued certificate")
    first = ServingCertificate(port)
    second = node.wait_request(lambda one: one["metadata"]["uid"] != request["metadata"]["uid"],
                               signer=SERVING, timeout=LIFE + 30)
    # Until it is approved the old one serves.
    assert ServingCertificate(port).pem == first.pem
    node.approve(second)
    wait_until(lambda: ServingCertificate(port).pem != first.pem, what="the renewed certificate")
    assert ServingCertificate(port).names == first.names


# -- without a bootstrap token --------------------------------------------------------------------


@pytest.mark.slow
def test_expired_credential_says_what_to_do_and_a_new_one_works_without_restart(rig):
    """The kubeconfig came from an administrator, who has to bring the next one."""
    rig.plane.node_kubeconfig(rig.name, "--ttl", "20s")
    rig.start()
    pid = rig.daemon.pid
    rig.wait_log(f"put a fresh credential for system:node:{rig.name} into {rig.kubeconfig}")
    said = rig.log().count("put a fresh credential")
    renewed = rig.lease()["spec"]["renewTime"]
    with pytest.raises(TimeoutError):
        rig.admin.wait(rig.lease_path.rsplit("/", 1)[0],
                       lambda lease, _: lease["spec"]["renewTime"] > renewed, 12,
                       f"metadata.name={rig.name}")
    assert rig.log().count("put a fresh credential") == said == 1
    rig.plane.node_kubeconfig(rig.name)
    rig.wait_renewed(renewed)
    rig.wait_log("accepts this node's credential again")
    assert rig.daemon.pid == pid and rig.daemon.process.poll() is None
