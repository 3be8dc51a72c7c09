"""Credentials replaced on disk under the running daemon."""
import os
import shutil
import time

import pytest

from harness.bootstrap import credential_id, kubeconfig_certificate
from harness.certificates import Authority, cluster_authority
from harness.kubelet_client import ServingCertificate
from harness.programs import free_port
from harness.rig import wait_until
from harness.service_account import ServiceAccount

PROMISE = 10  # seconds until a replaced file is in use
LONGEST_PAUSE = 15  # seconds between two renewals of the lease


def fresh(rig, name):
    """A new kubeconfig for the node in its directory: (path, credential id)."""
    path = rig.directory / name
    rig.plane.run("node-kubeconfig", "--dir", rig.plane.directory, "--name", rig.name, "--out",
                  path)
    return path, credential_id(kubeconfig_certificate(rig.plane, path))


def by_rename(rig, replacement):
    os.replace(replacement, rig.kubeconfig)


def in_place(rig, replacement):
    rig.kubeconfig.write_bytes(replacement.read_bytes())


def by_symlink(rig, replacement):
    """As a mounted Secret is replaced: a link to a directory is swapped."""
    version = rig.directory / f"..{replacement.name}"
    version.mkdir()
    shutil.move(replacement, version / "kubeconfig")
    swap = rig.directory / "..swap"
    swap.symlink_to(version.name)
    os.replace(swap, rig.directory / "..data")


@pytest.fixture(name="own")
def rig_with_its_own_kubeconfig(rig):
    """In the node's directory, as the file itself; a test may make it a link."""
    rig.kubeconfig = rig.directory / "kubeconfig"
    path, rig.first = fresh(rig, "first")
    os.replace(path, rig.kubeconfig)
    return rig


def assert_in_use(rig, wanted, since, timing):
    """The API server sees the new credential, also for the lease, soon; none was late for it."""
    began = time.monotonic()
    wait_until(lambda: wanted in rig.audit.credentials(since), PROMISE, "the new credential")
    timing("replaced to in use", time.monotonic() - began)
    # The log is written after watches are told.
    times = wait_until(lambda: len(rig.audit.renewals(since)) > 2 and rig.audit.renewals(since),
                       what="three renewals of the lease")
    assert max(later - earlier for earlier, later in zip(times, times[1:])) <= LONGEST_PAUSE
    # What is asked from now on is asked with the new one, watches included.
    later = rig.audit.mark()
    wait_until(lambda: rig.audit.renewals(later), what="a renewal of the lease")
    assert set(rig.audit.credentials(later)) == {wanted}


@pytest.mark.slow
@pytest.mark.parametrize("replace", [by_rename, in_place, by_symlink])
def test_replaced_kubeconfig_is_in_use_within_ten_seconds(own, replace, timing):
    if replace is by_symlink:
        (own.directory / "..v0").mkdir()
        os.replace(own.kubeconfig, own.directory / "..v0/kubeconfig")
        (own.directory / "..data").symlink_to("..v0")
        own.kubeconfig.symlink_to("..data/kubeconfig")
    own.start_and_know()
    pid, uid = own.daemon.pid, own.node()["metadata"]["uid"]
    replacement, wanted = fresh(own, "replacement")
    since = own.audit.mark()
    replace(own, replacement)
    assert_in_use(own, wanted, since, timing)
    assert own.daemon.pid == pid and own.daemon.process.poll() is None
    assert own.node()["metadata"]["uid"] == uid
    # What was known of Slurm is not forgotten over it.
    assert own.condition("SlurmNodeStateIdle")["status"] == "True"


BROKEN = {
    "empty": lambda text, rig: "",
    "half": lambda text, rig: text[:len(text) // 2],
    "no yaml": lambda text, rig: "{ this is : [ not yaml",
    "another node's": lambda text, rig: another_node(rig),
    "no server": lambda text, rig: text.replace("server:", "serverless:"),
}


def another_node(rig):
    path = rig.directory / "other"
    rig.plane.run("node-kubeconfig", "--dir", rig.plane.directory, "--name", "another", "--out",
                  path)
    return path.read_text()


@pytest.mark.slow
@pytest.mark.parametrize("kind", BROKEN)
def test_broken_replacement_is_refused_and_the_old_one_goes_on(own, kind):
    own.start()
    good = own.kubeconfig.read_text()
    broken = own.directory / "broken"
    broken.write_text(BROKEN[kind](good, own))
    since = own.audit.mark()
    os.replace(broken, own.kubeconfig)
    own.wait_log("the old one stays in use", timeout=PROMISE)
    line = next(line for line in own.log().splitlines() if "stays in use" in line)
    assert str(own.kubeconfig) in line or "kubeconfig" in line
    assert "PRIVATE" not in line
    for _ in range(2):
        own.wait_renewed(own.lease()["spec"]["renewTime"])
    assert set(own.audit.credentials(since)) == {own.first}
    # The way back.
    replacement, wanted = fresh(own, "replacement")
    os.replace(replacement, own.kubeconfig)
    wait_until(lambda: wanted in own.audit.credentials(since), PROMISE, "the good credential")


def test_certificate_and_key_in_files_of_their_own(rig, timing):
    """Replaced one after the other: what does not belong together is never used."""
    rig.kubeconfig = rig.directory / "kubeconfig"
    make = ["node-kubeconfig", "--dir", rig.plane.directory, "--name", rig.name, "--embed=false",
            "--out"]
    rig.plane.run(*make, rig.kubeconfig)
    rig.start()
    other = rig.directory / "other"
    rig.plane.run(*make, other)
    since = rig.audit.mark()
    os.replace(f"{other}.crt", f"{rig.kubeconfig}.crt")
    with open(f"{rig.kubeconfig}.crt", encoding="ascii") as file:
        wanted = credential_id(file.read())
    rig.wait_renewed(rig.lease()["spec"]["renewTime"])  # with the old pair
    assert wanted not in rig.audit.credentials(since)
    os.replace(f"{other}.key", f"{rig.kubeconfig}.key")
    assert_in_use(rig, wanted, since, timing)


def test_token_file(rig, timing):
    """As a service account that may do all of this; projected tokens are replaced every hour."""
    account = ServiceAccount(rig.plane, "daemon")
    account.grant("daemon-all", [{"apiGroups": ["*"], "resources": ["*"], "verbs": ["*"]}])
    token = account.token_file(rig.directory)
    host, port = rig.plane.admin.host, rig.plane.admin.port
    rig.configure(kubernetes={"server": f"https://{host}:{port}", "tokenFile": str(token),
                              "caFile": str(rig.plane.directory / "pki/ca.crt")})
    rig.audit.user = account.user
    rig.start(arguments=rig.arguments()[2:])
    before = set(rig.audit.credentials())
    since = rig.audit.mark()
    replacement = rig.directory / "replacement"
    replacement.write_text(account.token())
    os.replace(replacement, token)
    new = wait_until(lambda: set(rig.audit.credentials(since)) - before, PROMISE, "the new token")
    assert len(new) == 1
    rig.wait_renewed(rig.lease()["spec"]["renewTime"])


def test_ca_bundle_with_another_ca_added_and_one_that_is_broken(own, timing):
    """A rotation of the cluster's CA begins with a bundle of both."""
    bundle = own.directory / "ca.crt"
    good = (own.plane.directory / "pki/ca.crt").read_text()
    bundle.write_text(good)
    text = own.kubeconfig.read_text()
    start = text.index("certificate-authority-data:")
    own.kubeconfig.write_text(text[:start] + f"certificate-authority: {bundle}" +
                              text[text.index("\n", start):])
    own.start()
    other = Authority(own.directory / "other-ca", "other")
    replacement = own.directory / "replacement"
    replacement.write_text(other.crt.read_text() + good)
    os.replace(replacement, bundle)
    own.wait_log("was replaced and is in use", timeout=PROMISE)
    own.wait_renewed(own.lease()["spec"]["renewTime"])
    bundle.write_text("no certificate\n")
    own.wait_log("the old one stays in use", timeout=PROMISE)
    own.wait_renewed(own.lease()["spec"]["renewTime"])


def test_serving_certificate_files(rig, timing):
    """Replaced by a renewal, then by something broken."""
    authority = cluster_authority(rig.plane, rig.directory / "pki")
    certificate, key = authority.issue("serving", rig.name, names=["IP:127.0.0.1"])
    port = free_port()
    rig.configure(endpoint={"port": port, "certificateFile": str(certificate),
                            "keyFile": str(key)})
    rig.start()
    before = ServingCertificate(port)
    assert (before.self_signed, before.names) == (False, {"IP:127.0.0.1"})
    new_certificate, new_key = authority.issue("renewed", rig.name,
                                               names=["IP:127.0.0.1", "DNS:renewed"])
    began = time.monotonic()
    os.replace(new_certificate, certificate)
    os.replace(new_key, key)
    wait_until(lambda: ServingCertificate(port).pem != before.pem, PROMISE, "the new certificate")
    timing("serving certificate replaced to in use", time.monotonic() - began)
    assert ServingCertificate(port).names == {"IP:127.0.0.1", "DNS:renewed"}
    good = ServingCertificate(port).pem
    certificate.write_text("no certificate\n")
    rig.wait_log("the old one stays in use", timeout=PROMISE)
    assert ServingCertificate(port).pem == good
