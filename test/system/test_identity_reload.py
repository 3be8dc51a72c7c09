"""Credentials replaced on disk under the running daemon."""
import collections
import functools
import json
import os
import shutil
import time

import pytest

from harness.bootstrap import credential_id, kubeconfig_certificate
from harness.certificates import Authority, cluster_authority
from harness.commands import run_beside
from harness.kubelet_client import ServingCertificate
from harness.programs import free_port
from harness.rig import Rig, wait_until
from harness.service_account import ServiceAccount

PROMISE = 10  # seconds until a replaced file is in use
# The lease is renewed every three seconds here, so that a late renewal shows soon.
QUICK_LEASE = {"leaseDuration": "12s"}
LONGEST_PAUSE = 5  # seconds between two renewals; a missed one would make it six

Use = collections.namedtuple("Use", "begin sure credential")


def used_since(rig, mark):
    """What was asked with since then, once something was: the log is written after the answer."""
    return wait_until(lambda: set(rig.audit.credentials(mark)), what="a request in the audit log")


class Subject(Rig):
    """Remembers which credential was to be used from when on."""

    def __init__(self, plane, slurm, name, directory):
        super().__init__(plane, slurm, name, directory)
        self.configure(kubernetes=QUICK_LEASE)
        self.kubeconfig = self.directory / "kubeconfig"
        self.uses = []

    def fresh(self, name):
        """A new kubeconfig for the node in its directory: (path, credential id)."""
        path = self.directory / name
        self.plane.node_kubeconfig(self.name, out=path)
        return path, credential_id(kubeconfig_certificate(path))

    def wait_in_use(self, wanted, began):
        """Until the API server sees the credential; returns the seconds since `began`."""
        wait_until(lambda: wanted in self.audit.credentials(), PROMISE, "the new credential")
        sure = time.time()
        self.uses.append(Use(began, sure, wanted))
        return sure - began

    def assert_alone_in_use(self):
        """Nothing is asked with another credential than the last one, the lease included."""
        self.wait_next_renewal()
        since = self.audit.mark()
        self.wait_next_renewal()
        wait_until(lambda: self.audit.renewals(since), what="the renewal in the audit log")
        assert set(self.audit.credentials(since)) == {self.uses[-1].credential}

    def replace(self, way, name):
        """Replaces the kubeconfig by a fresh one; returns the seconds until it is in use."""
        path, wanted = self.fresh(name)
        began = time.time()
        way(self, path)
        return self.wait_in_use(wanted, began)


def longest_pause(times):
    return max((later - earlier for earlier, later in zip(times, times[1:])), default=0)


def by_rename(node, replacement):
    os.replace(replacement, node.kubeconfig)


def in_place(node, replacement):
    node.kubeconfig.write_bytes(replacement.read_bytes())


def by_link(node, replacement):
    """The file becomes a link, as in a mounted Secret: kubeconfig → ..data/kubeconfig."""
    swap_data(node, replacement)
    link = node.directory / "link"
    link.symlink_to("..data/kubeconfig")
    os.replace(link, node.kubeconfig)


def by_swap(node, replacement):
    """As a mounted Secret is replaced: ..data, a link to a directory, is swapped."""
    if not node.kubeconfig.is_symlink():
        node.replace(by_link, "link-first")
    swap_data(node, replacement)


def swap_data(node, replacement):
    version = node.directory / f"..{replacement.name}"
    version.mkdir()
    shutil.move(replacement, version / "kubeconfig")
    swap = node.directory / "..swap"
    swap.symlink_to(version.name)
    os.replace(swap, node.directory / "..data")


@pytest.fixture(scope="module", name="node")
def running_node(request, plane, making):
    """One daemon for all tests of its kubeconfig."""
    with making(lambda: getattr(request.module, "any_failed", False)) as make:
        node = make(Subject, plane)
        path, first = node.fresh("first")
        os.replace(path, node.kubeconfig)
        began = time.time()
        node.start_and_know()
        node.uses.append(Use(began, began, first))
        node.pid, node.uid = node.daemon.pid, node.node()["metadata"]["uid"]
        yield node


@pytest.mark.parametrize("way", [by_rename, in_place, by_link, by_swap])
def test_replaced_kubeconfig_is_in_use_within_ten_seconds(node, way, timing):
    timing("replaced to in use", node.replace(way, way.__name__))
    node.assert_alone_in_use()


BROKEN = {
    "empty": lambda text, node: "",
    "half": lambda text, node: text[:len(text) // 2],
    "no yaml": lambda text, node: "{ this is : [ not yaml",
    "another node's": lambda text, node: another_node(node),
    "expired": lambda text, node: expired(node),
    "no server": lambda text, node: text.replace("server:", "serverless:"),
}
REASONS = {"another node's": 'is for node "another"', "expired": "expired at"}


def another_node(node):
    path = node.directory / "other"
    node.plane.node_kubeconfig("another", out=path)
    return path.read_text()


def expired(node):
    path = node.directory / "expired"
    node.plane.node_kubeconfig(node.name, "--ttl", "1s", out=path)
    time.sleep(2)
    return path.read_text()


@pytest.mark.parametrize("kind", BROKEN)
def test_broken_replacement_is_refused_and_the_old_one_goes_on(node, kind):
    good, used = node.kubeconfig.read_text(), node.uses[-1].credential
    broken = node.directory / "broken"
    broken.write_text(BROKEN[kind](good, node))
    since, said = node.audit.mark(), len(node.log())
    os.replace(broken, node.kubeconfig)
    wait_until(lambda: "the old one stays in use" in node.log()[said:], PROMISE, "the refusal")
    line = next(line for line in node.log()[said:].splitlines() if "stays in use" in line)
    assert str(node.kubeconfig) in line
    assert REASONS.get(kind, "") in line
    assert "PRIVATE" not in line and good[-100:-50] not in line
    node.wait_next_renewal()
    assert used_since(node, since) == {used}
    # The way back.
    node.replace(by_rename, "good")


def test_no_lease_was_late_and_nothing_forgotten_over_all_this(node, timing):
    # Alone it has something to look at, too.
    node.replace(by_rename, "last")
    assert node.daemon.pid == node.pid and node.daemon.process.poll() is None
    assert node.node()["metadata"]["uid"] == node.uid
    pause = longest_pause(node.audit.renewals())
    timing("longest pause between renewals of the lease", pause)
    assert pause <= LONGEST_PAUSE
    # What was known of Slurm is not asked anew.
    assert node.condition("SlurmNodeStateIdle")["status"] == "True"
    assert node.log().count(" starts: ") == 1
    assert node.log().count("adopted") + node.log().count("registered as") == 1
    # Each credential was used in its time only. (Another thread may have begun a request with the
    # old one when the first came with the new one.)
    ends = [use.sure for use in node.uses[1:]] + [time.time()]
    for use, end in zip(node.uses, ends):
        moments = [moment for moment, credential in node.audit.credential_moments()
                   if credential == use.credential]
        assert use.begin <= min(moments) and max(moments) <= end + 1


@pytest.fixture(name="other")
def node_of_one_test(bootstrap_rig, plane):
    return bootstrap_rig(Subject, plane)


def test_certificate_and_key_in_files_of_their_own(other, timing):
    """Replaced one after the other: what does not belong together is never used."""
    make = functools.partial(other.plane.node_kubeconfig, other.name, "--embed=false")
    make(out=other.kubeconfig)
    other.start()
    other.wait_renewed()
    files = other.directory / "files"
    make(out=files)
    since = other.audit.mark()
    os.replace(f"{files}.crt", f"{other.kubeconfig}.crt")
    with open(f"{other.kubeconfig}.crt", encoding="ascii") as file:
        wanted = credential_id(file.read())
    other.wait_log("the old one stays in use", timeout=PROMISE)
    other.wait_next_renewal()  # with the old pair
    assert wanted not in other.audit.credentials(since)
    began = time.time()
    os.replace(f"{files}.key", f"{other.kubeconfig}.key")
    timing("key replaced to in use", other.wait_in_use(wanted, began))
    other.assert_alone_in_use()
    assert longest_pause(other.audit.renewals()) <= LONGEST_PAUSE


def test_token_file(other, timing):
    """As a service account that may do all of this; projected tokens are replaced every hour."""
    account = ServiceAccount(other.plane, "daemon")
    account.grant("daemon-all", [{"apiGroups": ["*"], "resources": ["*"], "verbs": ["*"]}])
    token = account.token_file(other.directory)
    host, port = other.plane.admin.host, other.plane.admin.port
    other.configure(kubernetes={"server": f"https://{host}:{port}", "tokenFile": str(token),
                                "caFile": str(other.plane.directory / "pki/ca.crt"),
                                **QUICK_LEASE})
    other.audit.user = account.user
    other.start(arguments=other.arguments()[2:])
    other.wait_renewed()
    before = set(other.audit.credentials())
    since = other.audit.mark()
    replacement = other.directory / "replacement"
    replacement.write_text(account.token())
    began = time.time()
    os.replace(replacement, token)
    new = wait_until(lambda: set(other.audit.credentials(since)) - before, PROMISE,
                     "the new token")
    timing("token replaced to in use", time.time() - began)
    assert len(new) == 1
    later = other.audit.mark()
    other.wait_next_renewal()
    assert used_since(other, later) == new
    assert longest_pause(other.audit.renewals()) <= LONGEST_PAUSE
    # A broken one is not sent.
    token.write_text("two\nlines\n")
    other.wait_log("the old one stays in use", timeout=PROMISE)
    later = other.audit.mark()
    other.wait_next_renewal()
    assert used_since(other, later) == new


def test_ca_bundle_with_another_ca_added_and_one_that_is_broken(other):
    """A rotation of the cluster's CA begins with a bundle of both."""
    bundle = other.directory / "ca.crt"
    good = (other.plane.directory / "pki/ca.crt").read_text()
    bundle.write_text(good)
    path, _ = other.fresh("whole")
    text = path.read_text()
    start = text.index("certificate-authority-data:")
    other.kubeconfig.write_text(text[:start] + f"certificate-authority: {bundle}" +
                                text[text.index("\n", start):])
    other.start()
    other.wait_renewed()
    authority = Authority(other.directory / "other-ca", "other")
    replacement = other.directory / "replacement"
    replacement.write_text(authority.crt.read_text() + good)
    os.replace(replacement, bundle)
    other.wait_log("was replaced and is in use", timeout=PROMISE)
    other.wait_next_renewal()
    assert "the old one stays in use" not in other.log()
    bundle.write_text("no certificate\n")
    other.wait_log("the old one stays in use", timeout=PROMISE)
    other.wait_next_renewal()
    assert longest_pause(other.audit.renewals()) <= LONGEST_PAUSE


@pytest.mark.parametrize("key", ["certificate-authority", "certificate-authority-data"])
def test_ca_that_is_emptied_is_not_the_public_ones(other, key):
    """A file that is named, and a key that is there, hold a certificate, or the old one stays."""
    bundle = other.directory / "ca.crt"
    bundle.write_text((other.plane.directory / "pki/ca.crt").read_text())
    path, _ = other.fresh("whole")
    text = path.read_text()
    start = text.index("certificate-authority-data:")
    end = text.index("\n", start)
    other.kubeconfig.write_text(
        text if key.endswith("data") else
        f"{text[:start]}certificate-authority: {bundle}{text[end:]}")
    other.start()
    other.wait_renewed()
    if key.endswith("data"):
        empty = other.directory / "empty"
        empty.write_text(f'{text[:start]}certificate-authority-data: ""{text[end:]}')
        os.replace(empty, other.kubeconfig)
        named = f"{other.kubeconfig}:"
    else:
        bundle.write_text("")
        named = f"{bundle}: contains no PEM certificate"
    other.wait_log("the old one stays in use", timeout=PROMISE)
    for _ in range(3):
        other.wait_next_renewal()
    lines = [line for line in other.log().splitlines() if "stays in use" in line]
    assert len(lines) == 1 and named in lines[0]
    assert "is in use" not in other.log().replace(lines[0], "")
    assert longest_pause(other.audit.renewals()) <= LONGEST_PAUSE
    # With what the system trusts in the place of the cluster's CA it would be believed.
    other.environment["SSL_CERT_FILE"] = str(other.plane.directory / "pki/ca.crt")
    checked = run_beside(other, "check", "-o", "json")
    assert checked.returncode == 1
    assert any(one["severity"] == "error" and named in " ".join(map(str, one.values()))
               for one in json.loads(checked.stdout)["findings"])
    other.daemon.stop()
    refused = run_beside(other, "run")
    assert refused.returncode == 2 and named in refused.stderr


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
