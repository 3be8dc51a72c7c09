"""Two machines that claim one Node name."""
import datetime
import pathlib

import pytest

from harness.api import condition
from harness.bootstrap import credential_id, kubeconfig_certificate
from harness.rig import Rig, wait_until

UUID = "1c9f6a0e-3f0d-4a57-8a3c-2d1e5b7f9a10"
OTHER_UUID = "9e8d7c6b-5a49-4838-9271-605f4e3d2c1b"
LEASE_SECONDS = 12
SHORT_LEASE = 5  # seconds, of a holder that the test plays
QUICK_LEASE = {"leaseDuration": f"{LEASE_SECONDS}s"}  # renewed every three seconds
HAS_SMBIOS = pathlib.Path("/sys/class/dmi/id/product_uuid").exists()


class SecondMachine(Rig):
    """The same name in another directory, with a credential of its own for it."""

    def __init__(self, first):
        super().__init__(first.plane, first.slurm, first.name,
                         first.directory.parent / f"{first.name}-second")
        path = self.directory / "kubeconfig"
        first.plane.node_kubeconfig(first.name, out=path)
        self.kubeconfig = path
        self.credential = credential_id(kubeconfig_certificate(path))

    def clean(self):
        """The Node is the first one's to clean."""
        if self.daemon:
            self.daemon.kill()


@pytest.fixture(name="second")
def second_machine(rig):
    other = SecondMachine(rig)
    yield other
    other.clean()


def identify(rig, way, uuid):
    """Gives a machine its identity: Metal3's uuid, or that of the machine itself."""
    if way == "metal3":
        rig.provision(uuid)
    else:
        (rig.state_dir / "system-uuid").write_text(uuid + "\n")


# The uuid in the state directory counts on machines without SMBIOS only.
WAYS = ["metal3"] + ([] if HAS_SMBIOS else ["system"])


def is_rejected_renewal(entry):
    """A restarted daemon renews the Lease that it held by a patch which says whose it must be."""
    return (entry["verb"] == "patch" and "/leases/" in entry["requestURI"]
            and entry["responseStatus"]["code"] in (404, 422))


def writes(rig, credential, since):
    """Requests with that credential that would change anything, whatever came of them; but for the
    patch of a Lease that only its holder can make."""
    return [(entry["verb"], entry["requestURI"]) for entry in rig.audit.entries(since)
            if not is_rejected_renewal(entry)
            and credential in entry["user"].get("extra", {}).get(
                "authentication.kubernetes.io/credential-id", [])
            and entry["verb"] not in ("get", "list", "watch")]


def reads(rig, credential, since):
    return [one for one in rig.audit.credentials(since) if one == credential]


@pytest.mark.parametrize("way", WAYS)
def test_second_machine_refuses_and_does_not_disturb_the_first(rig, second, way):
    identify(rig, way, UUID)
    identify(second, way, OTHER_UUID)
    rig.configure(kubernetes=QUICK_LEASE)
    rig.start_and_know()
    rig.wait_renewed()
    before = rig.node()
    holder = rig.lease()["spec"]["holderIdentity"]
    since = rig.audit.mark()
    second.start(ready=False)
    second.wait_log(f"Node {rig.name} belongs to another machine")
    # Who holds the name.
    assert UUID in second.log()
    # Three leases later the second has written nothing, and the first goes on as before.
    for _ in range(3):
        rig.wait_next_renewal()
    assert reads(rig, second.credential, since), "the audit log does not show the second"
    assert writes(rig, second.credential, since) == []
    after = rig.node()
    assert after["metadata"]["uid"] == before["metadata"]["uid"]
    assert after["status"]["addresses"] == before["status"]["addresses"]
    assert after["status"]["nodeInfo"] == before["status"]["nodeInfo"]
    assert condition(after, "Ready")["status"] == "True"
    assert rig.lease()["spec"]["holderIdentity"] == holder
    assert "belongs to another machine" not in rig.log()
    times = rig.audit.renewals(since)
    assert max(later - earlier for earlier, later in zip(times, times[1:])) < LEASE_SECONDS / 2
    assert second.daemon.process.poll() is None


@pytest.mark.slow
@pytest.mark.skipif(HAS_SMBIOS, reason="two machines cannot be told apart by SMBIOS on one")
def test_living_holder_of_the_lease_is_respected_when_the_node_is_gone(rig, second):
    """The Node was deleted at this moment; the Lease still tells that somebody lives."""
    identify(rig, "system", UUID)
    identify(second, "system", OTHER_UUID)
    rig.configure(node={"recreate": "never"})
    rig.start()
    since = rig.audit.mark()
    rig.admin.delete(rig.path)
    rig.wait_log("was deleted")
    rig.stop()  # from here on the test beats in its place
    # The Lease belonged to the Node, and garbage collection must not come between.
    wait_until(lambda: rig.admin.find(rig.lease_path) is None, what="the Lease to follow the Node")
    holder = f"{rig.name}/{UUID}"
    beat(rig, holder)
    second.start(ready=False)
    wait_until(lambda: beat(rig, holder) and f"held by {holder}" in second.log(),
               what="the second to name the holder")
    assert reads(rig, second.credential, since), "the audit log does not show the second"
    assert writes(rig, second.credential, since) == []
    # It falls silent: the name is free.
    node = second.wait(lambda node: node and condition(node, "Ready").get("status") == "True",
                       timeout=150)
    assert node["metadata"]["uid"]


def beat(rig, holder):
    """Writes the Lease as its holder would; True."""
    now = datetime.datetime.now(datetime.timezone.utc).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
    body = {"metadata": {"name": rig.name, "namespace": "kube-node-lease"},
            "spec": {"holderIdentity": holder, "leaseDurationSeconds": SHORT_LEASE,
                     "renewTime": now}}
    if rig.admin.find(rig.lease_path) is None:
        rig.admin.create(rig.lease_path.rsplit("/", 1)[0], body)
    else:
        rig.admin.merge(rig.lease_path, {"spec": body["spec"]})
    return True


@pytest.mark.parametrize("way", WAYS)
def test_reinstalled_host_passes(rig, second, way):
    """Another disk, another state directory, another machine id, the same machine by its UUID."""
    identify(rig, way, UUID)
    identify(second, way, UUID)
    rig.start_and_know()
    rig.wait_renewed()
    node = rig.node()
    rig.stop()
    own, before = node["status"]["nodeInfo"]["machineID"], "0" * 32
    rig.admin.merge(rig.path + "/status", {"status": {"nodeInfo": {"machineID": before,
                                                                   "bootID": before}}})
    renewed = rig.lease()["spec"]["renewTime"]
    second.start()
    second.wait_renewed(renewed)
    after = second.wait(
        lambda node: node and node["status"]["nodeInfo"]["machineID"] == own != before)
    assert after["metadata"]["uid"] == node["metadata"]["uid"]
    assert "another machine" not in second.log()


def test_first_machine_s_end_hands_the_name_over_when_an_administrator_says_so(rig, second):
    rig.provision(UUID)
    second.provision(OTHER_UUID)
    rig.start()
    second.start(ready=False)
    second.wait_log(f"kubectl delete node {rig.name}")
    rig.stop()
    rig.admin.delete(rig.path)
    node = second.wait(lambda node: node and condition(node, "Ready").get("status") == "True",
                       timeout=150)
    assert node["metadata"]["labels"]["metal3.io/uuid"] == OTHER_UUID
