"""Certificates that end half a minute after they were issued: renewal, and what follows on one that
expired or is refused. The nodes of `Fleet` age side by side, so that the tests need not wait for
them one after the other."""
import base64
import datetime
import itertools
import re
import shutil
import time

import pytest

from harness.bootstrap import (SERVING, BootstrapRig, credential_id, is_issued, modes, openssl_text,
                               public_key, request_pem)
from harness.certificates import Authority
from harness.control_plane import ControlPlane
from harness.kubelet_client import ServingCertificate
from harness.programs import free_port
from harness.rig import Rig, wait_until

LIFE = 30  # seconds until an issued certificate ends
SHORT = 10  # the same of one that is not renewed in time
LONGEST_PAUSE = 15  # seconds between two renewals of the lease; 10 are meant
EARLIEST = 0.66  # of its life, when it is renewed: 70 %, and requests have whole seconds

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module", name="hasty_plane")
def plane_with_a_hasty_signer(work):
    # Without an election, so that its controllers are back as soon as they are started again.
    with ControlPlane(work / "cp-hasty", "--audit",
                      "--controller-manager-arg=--leader-elect=false",
                      f"--controller-manager-arg=--cluster-signing-duration={LIFE}s") as running:
        yield running


def put_inline(node, certificate, key):
    """Into the kubeconfig itself, and nothing in the store."""
    shutil.rmtree(node.pki)
    config = ["config", "--kubeconfig", node.kubeconfig, "set-credentials", "inline",
              "--embed-certs", "--client-certificate", certificate, "--client-key", key]
    node.plane.kubectl_output(*map(str, config))
    node.plane.kubectl_output("config", "--kubeconfig", str(node.kubeconfig), "set-context",
                              "--current", "--user", "inline")


class Fleet:
    """Nodes that run since the first test began."""

    def __init__(self, make, plane):
        def running(**changes):
            one = make(BootstrapRig, plane)
            one.configure(**changes)
            one.start()
            one.first = one.certificate()
            return one
        self.rotating = running()
        self.fixed = running(kubernetes={"rotateCertificates": False})
        self.port = free_port()
        self.serving = running(endpoint={"port": self.port})
        self.serving.request = self.serving.wait_request(signer=SERVING)
        self.serving.approve(self.serving.request)

        self.refused = {"stored": running(), "inline": running()}
        for place, one in self.refused.items():
            one.stop()
            stranger = Authority(one.directory / "stranger", "stranger")
            files = stranger.issue("node", f"system:node:{one.name}", ["system:nodes"])
            one.first = files[0].read_text()
            if place == "stored":
                one.put_pair(*(file.read_text() for file in files))
            else:
                put_inline(one, *files)
            one.start(ready=False)

        # Its kubeconfig is an administrator's.
        self.given = make(Rig, plane)
        plane.node_kubeconfig(self.given.name, "--ttl", f"{SHORT}s")
        self.given.expiry = time.time() + SHORT
        self.given.start()


@pytest.fixture(scope="module", name="fleet")
def running_fleet(request, hasty_plane, making):
    with making(lambda: getattr(request.module, "any_failed", False)) as make:
        yield Fleet(make, hasty_plane)


@pytest.fixture(name="node")
def node_of_one_test(bootstrap_rig, hasty_plane):
    node = bootstrap_rig(BootstrapRig, hasty_plane)
    node.start()
    node.wait_renewed()
    return node


def not_after(pem):
    text = openssl_text("x509", "-noout", "-enddate", "-dateopt", "iso_8601", text=pem)
    return time.mktime(time.strptime(text.strip().split("=")[1], "%Y-%m-%d %H:%M:%SZ")
                       ) - time.timezone


def created(request):
    """Whole seconds since the epoch."""
    return datetime.datetime.fromisoformat(
        request["metadata"]["creationTimestamp"].replace("Z", "+00:00")).timestamp()


def wait_next_certificate(node, before):
    def another():
        """There is none for a moment where a refused one was dropped."""
        text = node.certificate() if node.current.exists() else before
        return text if text != before else None
    return wait_until(another, LIFE + 30, "the next certificate")


def sleep_until(moment):
    """Nothing tells that a time has passed."""
    time.sleep(max(0, moment - time.time()))


def longest_pause(times):
    assert len(times) > 3
    return max(later - earlier for earlier, later in zip(times, times[1:]))


def logged_at(node, text, after=""):
    """When the daemon first said it, of what it said since its first line with `after`."""
    since = itertools.dropwhile(lambda line: after not in line, node.log().splitlines())
    line = next(line for line in since if text in line)
    return datetime.datetime.fromisoformat(re.match(r"\S+", line).group()).timestamp()


def assert_runs_on(node, pid):
    assert node.daemon.pid == pid and node.daemon.process.poll() is None


# -- side by side ---------------------------------------------------------------------------------


def test_two_rotations_without_a_late_lease(fleet, timing):
    node, pid = fleet.rotating, fleet.rotating.daemon.pid

    def three():
        """The first requests for a certificate; before a slow machine is here there may be more."""
        found = sorted(filter(is_issued, node.requests()), key=created)
        return found[:3] if len(found) >= 3 else None
    requests = wait_until(three, 2 * LIFE + 30, "two renewed certificates")
    assert [one["spec"]["username"].split(":")[1] for one in requests] == ["bootstrap", "node", "node"]
    certificates = [base64.b64decode(one["status"]["certificate"]).decode() for one in requests]
    for pem, request, renewal in zip(certificates, requests, requests[1:]):
        share = (created(renewal) - created(request)) / (not_after(pem) - created(request))
        timing("share of its life when it was renewed", share)
        assert EARLIEST <= share < 1
    assert len({public_key(pem) for pem in certificates}) == 3, "a key was used twice"
    used = {credential_id(pem) for pem in certificates}
    wait_until(lambda: used <= set(node.audit.credentials()), what="the new certificates in use")
    pause = longest_pause(node.audit.renewals())
    timing("longest pause between renewals of the lease", pause)
    assert pause <= LONGEST_PAUSE
    assert_runs_on(node, pid)
    # Of the files of old only the one before is kept.
    assert len(list(node.pki.glob("slurmlet-client-2*.pem"))) == 2
    assert set(modes(node.pki).values()) == {0o600}
    node.stop()


def test_rotation_can_be_turned_off_and_the_token_helps_after_the_end(fleet):
    node, pid = fleet.fixed, fleet.fixed.daemon.pid
    wait_next_certificate(node, node.first)
    assert node.current.stat().st_mtime >= not_after(node.first)
    assert set(node.askers()) == {"bootstrap"}
    assert "expired at" in node.log()
    node.wait_next_renewal()
    assert_runs_on(node, pid)
    node.stop()


def test_serving_certificate_rotates_under_open_eyes(fleet):
    node, port = fleet.serving, fleet.port
    first = ServingCertificate(port)
    assert not first.self_signed
    second = node.wait_request(
        lambda one: one["metadata"]["uid"] != node.request["metadata"]["uid"], signer=SERVING,
        timeout=LIFE + 30)
    # Until it is approved the old one serves.
    assert ServingCertificate(port).pem == first.pem
    node.approve(second)
    wait_until(lambda: ServingCertificate(port).pem != first.pem, what="the renewed certificate")
    assert ServingCertificate(port).names == first.names
    assert public_key(ServingCertificate(port).pem) != public_key(first.pem)
    assert len(node.requests(SERVING)) == 2
    node.stop()


@pytest.mark.parametrize("place", ["stored", "inline"])
def test_refused_credential_falls_back_to_the_token(fleet, place, timing):
    """Valid by its dates, but the API server answers 401 to it, as after a change of the CA."""
    node = fleet.refused[place]
    pid = node.daemon.pid
    node.wait_log("rejects this node's credential (401 Unauthorized): requesting "
                  "another one with the bootstrap token")
    wait_until(lambda: node.askers().count("bootstrap") == 2, 90, "a request with the token")
    refused = "401 Unauthorized): requesting"
    patience = (logged_at(node, ": submitted request", refused) -
                logged_at(node, refused))
    timing("refused until the token is used", patience)
    # Spread, so that the nodes of a cluster do not ask at once.
    assert 29 <= patience <= 120  # 40 to 56 s on an idle machine, more beside other work
    wait_next_certificate(node, node.first)
    node.wait_ready()
    assert node.askers().count("bootstrap") == 2
    assert_runs_on(node, pid)
    node.stop()


def test_expired_credential_says_what_to_do_and_a_new_one_works_without_restart(fleet):
    """The kubeconfig came from an administrator, who has to bring the next one."""
    node, pid = fleet.given, fleet.given.daemon.pid
    said = f"put a fresh credential for system:node:{node.name} into {node.kubeconfig}"
    node.wait_log(said)
    sleep_until(node.expiry + LONGEST_PAUSE)
    assert max(node.audit.renewals()) <= node.expiry + 1
    assert node.log().count(said) == 1
    node.plane.node_kubeconfig(node.name)
    node.wait_next_renewal()
    node.wait_log("accepts this node's credential again")
    assert_runs_on(node, pid)
    node.stop()


# -- one after the other --------------------------------------------------------------------------


def test_expired_while_the_daemon_was_off_falls_back_to_the_token(node):
    uid = node.node()["metadata"]["uid"]
    node.stop()
    node.put_pair_for("1s")
    before = node.certificate()
    sleep_until(not_after(before) + 1)
    renewed = node.lease()["spec"]["renewTime"]
    node.start(ready=False)
    node.wait_renewed(renewed)
    assert "expired at" in node.log()
    assert node.certificate() != before
    assert node.node()["metadata"]["uid"] == uid
    assert node.askers() == ["bootstrap", "bootstrap"]


def test_crashes_at_every_step_of_a_renewal_make_one_request(node):
    """While nobody approves or signs."""
    plane, before = node.plane, node.certificate()
    node.stop()
    node.make_due()
    plane.ctl("stop", "kube-controller-manager")
    try:
        node.start(ready=False)
        request = node.wait_request(lambda one: "system:node:" in one["spec"]["username"])
        key = public_key(node.pending_key.read_text())
        assert key == public_key(request_pem(request)) != public_key(before)
        for restart in range(1, 3):
            node.crash()
            node.start(ready=False)
            wait_until(lambda: node.log().count("continuing with request") == restart,
                       what=f"restart {restart} to find its request")
        assert node.certificate() == before
        node.crash()
        node.approve(request)
    finally:
        plane.ctl("start", "kube-controller-manager")
    # Issued while the daemon is away; killed once more as soon as it has stored it.
    node.wait_request(lambda one: one["metadata"]["uid"] == request["metadata"]["uid"] and
                      is_issued(one))
    assert node.certificate() == before
    node.start(ready=False)
    after = wait_next_certificate(node, before)
    node.crash()
    node.start(ready=False)
    node.wait_next_renewal()
    assert public_key(after) == key
    assert sorted(node.askers()) == ["bootstrap", "node"]
    wait_until(lambda: not node.pending_key.exists(), what="the key of before to be tidied up")
    assert set(modes(node.pki).values()) == {0o600}


def test_api_server_that_is_away(node, bootstrap_rig):
    """When one node's renewal is due, and while another node's certificate ends."""
    ending = bootstrap_rig(BootstrapRig, node.plane)
    ending.start()
    ending.stop()
    ending.put_pair_for(f"{SHORT}s")
    ended = ending.certificate()
    ending.start()
    node.stop()
    # It outlives the start of an API server on a busy machine, and its renewal is due.
    node.put_pair_for(f"{4 * LIFE}s", age=f"{100 * LIFE}s")
    before = node.certificate()
    node.make_due()
    node.plane.ctl("stop", "kube-apiserver")
    try:
        sleep_until(not_after(ended) + 1)
        # Not before: its attempts come ever more rarely, and one must come before its own end.
        node.start(ready=False)
        node.wait_log(f"client certificate of node {node.name}: ")
        assert (node.certificate(), ending.certificate()) == (before, ended)
    finally:
        node.plane.ctl("start", "kube-apiserver")
        # Its informers would look again after up to half a minute.
        node.plane.ctl("restart", "kube-controller-manager")
    pids = node.daemon.pid, ending.daemon.pid
    wait_next_certificate(node, before)
    assert node.current.stat().st_mtime < not_after(before)
    wait_next_certificate(ending, ended)
    for one, pid in zip((node, ending), pids):
        one.wait_next_renewal()
        assert_runs_on(one, pid)
    # One renewed with what it had, the other had nothing to renew with; its new one may be due while the first waits.
    assert node.askers().count("bootstrap") == 1
    assert ending.askers().count("bootstrap") == 2
