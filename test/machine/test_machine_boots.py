"""Boots that begin badly, or without our package: each on a machine of its own."""
import shutil
import threading
import time

import apt_directory
import pytest
from hpc_node import SENTINEL
from user_data import shipped, virtual_kubelet, with_package

from harness import api

UNIT = "slurmlet.service"
REPOSITORY = "/srv/packages"
LATE = 60  # seconds from power-on to a connected cable


def test_cloud_init_installs_the_package(new_node, bare, package, timing):
    node = new_node(bare)
    apt_directory.make(node.machine.file(REPOSITORY), package)
    node.provision(with_package(node, REPOSITORY))
    node.machine.power_on()
    node.wait_ready(180)
    timing("power-on to Node Ready, package by cloud-init",
           time.monotonic() - node.machine.powered_on_at)
    timing("unit start to Node Ready, package by cloud-init", node.seconds_since_start())
    node.machine.wait_booted()
    found = node.node()
    assert found["metadata"]["labels"]["metal3.io/uuid"] == node.uuid
    assert found["spec"]["providerID"] == node.provider_id
    assert node.daemon()["UnitFileState"] == "enabled"
    assert node.machine.attempt("test", "-s", SENTINEL)[0] == 0
    # Written before the package came, and read.
    assert "/etc/slurmlet/config.d/10-site.yaml" in node.machine.attempt("slurmlet", "check")[1]
    assert node.machine.run("systemctl", "--failed", "--no-legend", "--plain") == ""


def test_package_is_the_rpm(new_node, rpm_image, timing):
    """Its scripts made the user and enabled the unit while the image was built."""
    node = new_node(rpm_image)
    node.provision(shipped(node))
    node.machine.power_on()
    node.wait_ready(120)
    timing("power-on to Node Ready, with the RPM", time.monotonic() - node.machine.powered_on_at)
    found = node.node()
    assert found["metadata"]["labels"]["metal3.io/uuid"] == node.uuid
    assert found["spec"]["providerID"] == node.provider_id
    shown = node.daemon()
    assert (shown["UnitFileState"], shown["NRestarts"]) == ("enabled", "0")
    assert node.machine.run("ps", "-o", "user=", "-p", shown["MainPID"]).strip() == "slurmlet"
    assert node.machine.attempt("dpkg", "-s", "slurmlet")[0] != 0, "a DEB is there as well"
    node.machine.wait_booted()
    assert node.machine.attempt("test", "-s", SENTINEL)[0] == 0
    status, shown = node.machine.attempt("slurmlet", "check")
    assert status == 0, shown


def test_network_comes_a_minute_late(new_node, image, timing):
    """And nothing waits for it: the daemon starts into a machine without an address."""
    node = new_node(image)
    node.provision(shipped(node))
    node.machine.write("/etc/systemd/system/systemd-networkd-wait-online.service.d/test.conf",
                       "[Service]\nExecStart=\nExecStart=/lib/systemd/systemd-networkd-wait-online "
                       "--timeout=5\n")
    node.machine.power_on(connected=False)
    late = threading.Timer(LATE - (time.monotonic() - node.machine.powered_on_at), node.machine.plug)
    late.start()
    try:
        node.wait_unit(UNIT, "active", LATE - 5)
        restarts = node.daemon()["NRestarts"]
        assert node.node() is None
        print("\n".join(node.log().splitlines()[-4:]))
        late.join()
        plugged = time.monotonic()
        node.wait(lambda seen: seen is not None, 120)
        timing("cable connected to Node registered", time.monotonic() - plugged)
        # Slurm's own daemons end where no address can be looked up, and stay so until somebody
        # starts them: that is news on the Node, and no reason for it to be missing.
        node.machine.run("systemctl", "restart", "slurmctld", "slurmd")
        node.wait_ready(120)
    finally:
        late.cancel()
    assert node.daemon()["NRestarts"] == restarts


def test_api_server_is_absent_at_boot(new_node, image, timing):
    node = new_node(image)
    node.provision(shipped(node))
    node.machine.power_on(reachable=False)
    node.wait_unit(UNIT, "active")
    node.wait_log("onnection refused")
    restarts = node.daemon()["NRestarts"]
    assert node.node() is None
    node.machine.server.open()
    began = time.monotonic()
    node.wait_ready(120)
    timing("API server there to Node Ready", time.monotonic() - began)
    assert node.daemon()["NRestarts"] == restarts


@pytest.fixture(scope="module", name="small")
def machine_with_a_small_disk_for_state(new_node, image):
    """/var/lib/slurmlet is a file system of 256 KiB, and full when the daemon starts."""
    node = new_node(image)
    node.machine.write("/etc/fstab", "state /var/lib/slurmlet tmpfs size=256k,mode=0750,uid=slurmlet,"
                       "gid=slurmlet 0 0\n")
    node.machine.write("/etc/systemd/system/fill.service", """[Unit]
DefaultDependencies=no
RequiresMountsFor=/var/lib/slurmlet
Before=slurmlet.service
[Service]
Type=oneshot
ExecStart=-/bin/dd if=/dev/zero of=/var/lib/slurmlet/filler bs=1k
[Install]
WantedBy=multi-user.target
""")
    link = node.machine.file("/etc/systemd/system/multi-user.target.wants/fill.service")
    link.parent.mkdir(parents=True, exist_ok=True)
    link.symlink_to("/etc/systemd/system/fill.service")
    node.provision(shipped(node))
    node.machine.power_on()
    node.wait_log("No space left on device", 120)
    return node


def test_full_disk_is_named_and_room_cures_it(small, timing):
    print("\n".join(line for line in small.log().splitlines() if "space" in line)[:1500])
    assert small.node() is None, "registered with a key that is nowhere"
    small.machine.run("rm", "/var/lib/slurmlet/filler")
    began = time.monotonic()
    small.wait_ready(180)
    timing("room on the disk to Node Ready", time.monotonic() - began)
    assert len(small.client_requests()) == 1


def test_disk_that_fills_up_later_costs_no_identity(small):
    small.machine.run("rm", "-f", "/var/lib/slurmlet/filler")
    small.wait_ready(180)
    before = small.node()
    certificate = small.machine.run("cat", "/var/lib/slurmlet/pki/slurmlet-client-current.pem")
    small.machine.attempt("dd", "if=/dev/zero", "of=/var/lib/slurmlet/filler", "bs=1k")
    small.machine.run("systemctl", "restart", UNIT)
    small.wait_renewed(since=time.time())
    small.wait_ready()
    assert small.node()["metadata"]["uid"] == before["metadata"]["uid"]
    assert len(small.client_requests()) == 1
    small.machine.run("rm", "/var/lib/slurmlet/filler")
    small.machine.run("systemctl", "restart", UNIT)
    small.wait_renewed(since=time.time())
    assert small.machine.run(
        "cat", "/var/lib/slurmlet/pki/slurmlet-client-current.pem") == certificate


def test_unit_of_the_public_bootstrap_provider(new_node, bare, workshop, image, timing):
    """Under the name virtual-kubelet, with its flags and environment, as root: unchanged."""
    node = new_node(bare)
    program = node.machine.file("/usr/local/bin/virtual-kubelet")
    program.parent.mkdir(parents=True, exist_ok=True)
    shutil.copyfile(workshop.file(image[0]) / "usr/sbin/slurmlet", program)
    node.provision(virtual_kubelet(node))
    node.machine.power_on()
    node.wait_ready(120)
    timing("power-on to Node Ready, as virtual-kubelet",
           time.monotonic() - node.machine.powered_on_at)
    found = node.node()
    assert found["metadata"]["name"] == node.name
    assert found["metadata"]["labels"]["metal3.io/uuid"] == node.uuid
    assert found["spec"]["providerID"] == node.provider_id
    assert api.condition(found, "SlurmdReady")["status"] == "True"
    shown = node.machine.unit("virtual-kubelet", "ActiveState", "NRestarts", "UnitFileState")
    assert shown == {"ActiveState": "active", "NRestarts": "0", "UnitFileState": "enabled"}
