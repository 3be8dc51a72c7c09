"""A machine with our package in its image, from power-on over all that happens to it to its next life
under another name. The tests share one machine, in this order; each makes it Ready first."""
import re
import time

import pytest
from hpc_node import SENTINEL
from user_data import shipped

from harness import api
from harness.documents import assert_shown
from harness.rig import wait_until

UNIT = "slurmlet.service"
DOCUMENTED = "hpc-x7k2p"  # this machine, in docs/


@pytest.fixture(scope="module", name="shared")
def the_machine(new_node, image):
    one = new_node(image)
    one.provision(shipped(one))
    one.machine.power_on()
    return one


@pytest.fixture(name="node")
def ready_node(shared):
    if not shared.machine.is_on:
        shared.machine.power_on()
    shared.wait_ready(120)
    return shared


@pytest.fixture(name="quick")
def node_with_quick_questions(node):
    """Asks slurmctld every two seconds and does not trust old answers for long."""
    path = "/etc/slurmlet/config.d/10-site.yaml"
    node.machine.write(path, """apiVersion: slurmlet.io/v1alpha1
kind: SlurmletConfiguration
slurm:
  pollInterval: 2s
  commandTimeout: 1900ms
  staleAfter: 8s
  maxBackoff: 2s
""")
    node.machine.run("systemctl", "restart", UNIT)
    yield node
    node.machine.file(path).unlink()
    node.machine.run("systemctl", "restart", UNIT)


def drop_in(node, unit, text):
    node.machine.write(f"/etc/systemd/system/{unit}.d/test.conf", text)
    node.machine.run("systemctl", "daemon-reload")


def no_drop_in(node, unit):
    node.machine.file(f"/etc/systemd/system/{unit}.d/test.conf").unlink()
    node.machine.run("systemctl", "daemon-reload")


# -- power-on ---------------------------------------------------------------------------------------


def test_power_on_to_ready(shared, timing):
    shared.wait_ready(120)
    timing("power-on to Node Ready", time.monotonic() - shared.machine.powered_on_at)
    timing("unit start to Node Ready", shared.seconds_since_start())
    shared.machine.wait_booted()
    for line in shared.machine.run("systemd-analyze", "time").splitlines():
        print(line)
    blame = shared.machine.run("systemd-analyze", "blame").splitlines()
    print("\n".join(line for line in blame[:6] + blame[6:] if "ms" not in line or UNIT in line))
    print(shared.machine.run("systemd-analyze", "critical-chain", UNIT))


def test_node_carries_metal3s_identity(node):
    found = node.node()
    assert found["metadata"]["name"] == node.name
    assert found["metadata"]["labels"]["metal3.io/uuid"] == node.uuid
    assert found["metadata"]["labels"]["kubernetes.io/hostname"] == node.name
    assert found["spec"]["providerID"] == node.provider_id


def test_slurm_runs_and_is_mirrored(node):
    for unit in ("munge", "slurmd", "slurmctld"):
        assert node.machine.unit(unit, "ActiveState")["ActiveState"] == "active", unit
    node.wait_condition("SlurmdReady", "True")
    found = node.wait(lambda one: one and api.slurm_states(one) == {"Idle"}, 120)
    assert found["metadata"]["annotations"]["slurmlet.io/slurm-state"] == "IDLE"


def test_unit_is_enabled_and_says_how_it_is(node):
    found = node.daemon()
    assert (found["ActiveState"], found["UnitFileState"]) == ("active", "enabled")
    assert found["NRestarts"] == "0", "the daemon gave up in the course of the boot"
    text = wait_until(lambda: re.search(r"Ready.*IDLE.*lease", node.daemon()["StatusText"]), 60,
                      "the status line").string
    assert text.startswith(node.name + ": ")
    status, shown = node.machine.attempt("systemctl", "status", UNIT)
    print(shown)
    assert status == 0
    assert f'Status: "{node.name}: ' in shown


def test_whole_boot_is_without_failure(node):
    node.machine.wait_booted()
    assert node.machine.run("systemctl", "--failed", "--no-legend", "--plain") == ""
    assert node.machine.run("cloud-init", "status").split() == ["status:", "done"]


def test_sentinel_says_that_the_node_is_registered(node):
    node.machine.wait_booted()
    assert node.machine.attempt("test", "-s", SENTINEL)[0] == 0
    assert node.node()


def test_check_finds_nothing_wrong(node):
    node.wait_condition("SlurmNodeStateIdle", "True", timeout=90)
    status, shown = node.machine.attempt("slurmlet", "check")
    print(shown)
    assert status == 0
    assert_shown("tutorials/first-node.md", "slurmlet check", shown, [(node.name, DOCUMENTED)])


def test_check_by_root_sees_what_the_service_cannot_read(node):
    node.machine.run("chmod", "0600", "/etc/slurmlet/config.yaml")
    try:
        status, shown = node.machine.attempt("slurmlet", "check")
    finally:
        node.machine.run("chmod", "0644", "/etc/slurmlet/config.yaml")
    assert status == 2, shown
    assert "user slurmlet of slurmlet.service cannot read /etc/slurmlet/config.yaml" in shown


def test_check_misses_a_service_that_does_not_run(node):
    node.machine.run("systemctl", "stop", "slurmlet")
    try:
        status, shown = node.machine.attempt("slurmlet", "check")
    finally:
        node.machine.run("systemctl", "start", "slurmlet")
    assert (status, len(re.findall("(?m)^x ", shown))) == (1, 1) and "slurmlet is not running here" in shown, shown
    node.machine.run("slurmlet", "wait-registered", "--timeout=60")
    wait_until(lambda: "by scontrol" in node.machine.attempt("slurmlet", "status")[1], 60, "Slurm's answer")


def test_status_is_what_the_documents_show(node):
    node.wait_condition("SlurmNodeStateIdle", "True", timeout=90)
    _, shown = node.machine.attempt("slurmlet", "status")
    print(shown)
    assert_shown("tutorials/first-node.md", "slurmlet status", shown, [(node.name, DOCUMENTED)])


def test_token_and_key_are_nobodys_but_the_daemons(node):
    credential = "/etc/credstore/slurmlet.bootstrap-kubeconfig"
    modes = node.machine.run("stat", "-c", "%a %U:%G %n", credential, "/var/lib/slurmlet",
                             "/var/lib/slurmlet/pki")
    assert modes.splitlines() == [f"600 root:root {credential}",
                                  "750 slurmlet:slurmlet /var/lib/slurmlet",
                                  "700 slurmlet:slurmlet /var/lib/slurmlet/pki"]
    status, _ = node.machine.attempt("setpriv", "--reuid=nobody", "--clear-groups", "cat",
                                     credential)
    assert status != 0


# -- the daemon ----------------------------------------------------------------------------------------


def test_killed_daemon_is_back_with_the_same_identity(node, timing):
    before, requests, pid = node.node(), len(node.client_requests()), node.main_pid(UNIT)
    restarts = int(node.daemon()["NRestarts"])
    began = time.monotonic()
    node.machine.run("kill", "-KILL", pid)
    wait_until(lambda: node.main_pid(UNIT) not in (0, pid), 60, "another process")
    timing("SIGKILL to running again", time.monotonic() - began)
    node.wait_ready()
    lease = node.wait_renewed(since=time.time())
    assert lease["spec"]["holderIdentity"] == before["metadata"]["name"]
    assert int(node.daemon()["NRestarts"]) == restarts + 1
    assert node.node()["metadata"]["uid"] == before["metadata"]["uid"]
    assert len(node.client_requests()) == requests


def test_stopped_daemon_is_ended_by_the_watchdog(node, timing):
    """With a shorter patience than the unit's own, which is looked at as well."""
    usual = node.machine.unit(UNIT, "WatchdogUSec")["WatchdogUSec"]
    assert usual not in ("0", "infinity"), "the unit has no watchdog"
    drop_in(node, UNIT, "[Service]\nWatchdogSec=5\n")
    try:
        node.machine.run("systemctl", "restart", UNIT)
        node.wait_ready()
        pid = node.main_pid(UNIT)
        began = time.monotonic()
        node.machine.run("kill", "-STOP", pid)
        wait_until(lambda: node.main_pid(UNIT) not in (0, pid), 120, "another process")
        timing(f"SIGSTOP to running again (WatchdogSec=5, the unit's own is {usual})",
               time.monotonic() - began)
        node.wait_renewed(since=time.time())
        assert "Watchdog timeout" in node.log()
    finally:
        no_drop_in(node, UNIT)
        node.machine.run("systemctl", "restart", UNIT)


# -- Slurm ------------------------------------------------------------------------------------------------


def test_slurmd_in_a_crash_loop_is_news_and_nothing_else(quick, timing):
    node = quick
    drop_in(node, "slurmd.service",
            "[Unit]\nStartLimitIntervalSec=0\n[Service]\nRestart=always\nRestartSec=1\n")
    conf = node.machine.file("/etc/slurm/slurm.conf")
    before, daemon, good = node.daemon(), node.main_pid(UNIT), conf.read_text()
    mark = node.audit.mark()
    try:
        conf.write_text(good + "NoSuchSettingOfSlurm=1\n")
        began = time.monotonic()
        node.machine.run("systemctl", "kill", "--signal=KILL", "slurmd")
        node.wait_condition("SlurmdReady", "False")
        timing("slurmd killed to SlurmdReady=False", time.monotonic() - began)
        # The grace begins anew whenever one of them lives long enough to be seen.
        found = node.wait_condition("Ready", "False", timeout=180)
        timing("slurmd killed to Ready=False", time.monotonic() - began)
        print(found)
        wait_until(lambda: int(node.machine.unit("slurmd", "NRestarts")["NRestarts"]) >= 10, 60,
                   "ten crashes")
        writes = [verb for _, verb, what, _ in node.audit.requests(mark) if what == "nodes/status"]
        print(f"status writes over ten crashes and {time.monotonic() - began:.0f} s: {len(writes)}")
        assert node.main_pid(UNIT) == daemon
        assert node.daemon()["NRestarts"] == before["NRestarts"]
    finally:
        conf.write_text(good)
        wait_until(lambda: node.machine.attempt("scontrol", "ping")[0] == 0, 60, "slurmctld")
        node.machine.run("systemctl", "restart", "slurmd")
        no_drop_in(node, "slurmd.service")
    node.wait_ready()
    node.wait_condition("SlurmdReady", "True")
    assert node.main_pid(UNIT) == daemon


def test_slurmd_of_a_machine_that_has_left_slurm_stays_stopped(quick):
    """The operator's mark, its path unit, and the way back."""
    node = quick
    state = lambda: node.machine.unit("slurmd", "ActiveState")["ActiveState"]  # noqa: E731
    marked = lambda: node.machine.attempt("test", "-e", "/run/slurmlet/detached")[0] == 0  # noqa: E731
    annotate = lambda value: node.admin.merge(  # noqa: E731
        api.node_path(node.name), {"metadata": {"annotations": {"slurmlet.io/detach": value}}})
    assert not marked()
    try:
        annotate("Detached")
        wait_until(marked, 30, "the mark")
        assert state() == "active", "without slurmlet-detach.path slurmd runs on"
        node.machine.run("systemctl", "start", "slurmlet-detach.path")
        wait_until(lambda: state() == "inactive", 30, "slurmd to stop")
        node.machine.attempt("systemctl", "start", "slurmd")
        wait_until(lambda: state() == "inactive", 30, "slurmd to stop again")
        annotate(None)
        wait_until(lambda: not marked(), 30, "no mark")
        node.machine.run("systemctl", "start", "slurmd")
        node.wait_condition("SlurmdReady", "True")
        assert state() == "active"
    finally:
        annotate(None)
        node.machine.run("systemctl", "stop", "slurmlet-detach.path", "slurmlet-detach.service")
        node.machine.run("systemctl", "start", "slurmd")
    node.wait_ready()


def test_slurmd_killed_again_and_again(quick):
    """Each time up for a moment, so that it looks well to who looks at the wrong time."""
    node = quick
    drop_in(node, "slurmd.service", "[Unit]\nStartLimitIntervalSec=0\n"
            "[Service]\nRestart=always\nRestartSec=100ms\n")
    daemon, restarts = node.main_pid(UNIT), node.daemon()["NRestarts"]
    mark = node.audit.mark()
    try:
        killed = {0}
        for _ in range(15):
            pid = wait_until(lambda: ({node.main_pid("slurmd")} - killed or {0}).pop(), 30, "slurmd")
            node.machine.attempt("kill", "-KILL", pid)
            killed.add(pid)
    finally:
        no_drop_in(node, "slurmd.service")
        node.machine.run("systemctl", "restart", "slurmd")
    node.wait_condition("SlurmdReady", "True")
    node.wait_ready()
    writes = [verb for _, verb, what, _ in node.audit.requests(mark) if what == "nodes/status"]
    print(f"status writes over 15 kills: {len(writes)}")
    assert (node.main_pid(UNIT), node.daemon()["NRestarts"]) == (daemon, restarts)


def test_munge_stopped_is_news_and_nothing_else(quick):
    node = quick
    daemon = node.main_pid(UNIT)
    node.machine.run("systemctl", "stop", "munge")
    try:
        found = node.wait_condition("SlurmNodeStateIdle", "Unknown", "MungeUnavailable", 90)
        assert "munge" in found["message"]
        assert node.main_pid(UNIT) == daemon
        # slurmd runs on without munge, and so the Node is ready.
        assert api.condition(node.node(), "Ready")["status"] == "True"
        status, shown = node.machine.attempt("slurmlet", "check")
        print(shown)
        assert status != 0
        assert_shown("tutorials/first-node.md", "slurmlet check", shown, [(node.name, DOCUMENTED)], number=1)
    finally:
        node.machine.run("systemctl", "start", "munge")
    node.wait_condition("SlurmNodeStateIdle", "True", timeout=90)


# -- reboot, shutdown and another life --------------------------------------------------------------------


def test_reboot_keeps_the_identity_and_asks_for_nothing(node, timing):
    before, requests = node.node(), len(node.client_requests())
    certificate = node.machine.run("readlink", "/var/lib/slurmlet/pki/slurmlet-client-current.pem")
    node.machine.reboot()
    node.wait_renewed(since=time.time(), timeout=120)
    node.wait_ready()
    timing("reboot to Node Ready", time.monotonic() - node.machine.powered_on_at)
    timing("unit start to Node Ready, after a reboot", node.seconds_since_start())
    after = node.node()
    assert after["metadata"]["uid"] == before["metadata"]["uid"]
    assert after["spec"]["providerID"] == node.provider_id
    assert len(node.client_requests()) == requests
    assert node.machine.run(
        "readlink", "/var/lib/slurmlet/pki/slurmlet-client-current.pem") == certificate


def test_boot_without_munge(node):
    """Not there at all: Slurm's own daemons may start or fail, slurmlet starts and says so."""
    # Slurm's daemons do not end by themselves without munge, and would hold up the reboot.
    node.machine.run("systemctl", "stop", "slurmd", "slurmctld")
    node.machine.run("systemctl", "mask", "munge.service")
    node.machine.reboot()
    node.wait_renewed(since=time.time(), timeout=120)
    found = node.wait_condition("SlurmNodeStateIdle", "Unknown", "MungeUnavailable", 90)
    print(found["message"])
    assert node.daemon()["ActiveState"] == "active"
    node.machine.run("systemctl", "unmask", "munge.service")
    node.machine.run("systemctl", "start", "munge")
    node.machine.run("systemctl", "restart", "slurmctld", "slurmd")
    node.wait_ready(90)


def test_shutdown_is_said_before_it_happens(node):
    node.machine.run("systemctl", "--no-block", "poweroff")
    found = node.wait_condition("Ready", "False", "NodeShuttingDown")
    assert found["message"] == "node is shutting down"
    # slurmd 22.05 may not end while slurmctld is gone, and its unit forbids to kill it.
    node.machine.pull_plug()


def test_host_provisioned_anew_is_another_node(node, shared, timing):
    """The same disk with what the last life left, another config drive."""
    old = node.node()
    if node.machine.is_on:
        node.machine.pull_plug()
    renewed = node.lease()["spec"]["renewTime"]
    old_name, old_path = node.name, api.node_path(node.name)
    node.new_identity(node.name + "-again")
    node.provision(shipped(node))
    node.machine.power_on()
    node.wait_ready(120)
    timing("power-on to Node Ready, provisioned anew", time.monotonic() - node.machine.powered_on_at)
    found = node.node()
    assert found["metadata"]["uid"] != old["metadata"]["uid"]
    assert found["spec"]["providerID"] == node.provider_id
    assert found["metadata"]["labels"]["metal3.io/uuid"] == node.uuid
    # A credential of its own; the old one is used no more.
    assert len(node.client_requests()) == 1
    subject = node.machine.run("openssl", "x509", "-noout", "-subject", "-in",
                               "/var/lib/slurmlet/pki/slurmlet-client-current.pem")
    assert subject.strip().endswith("CN = system:node:" + node.name)
    assert node.lease(old_name)["spec"]["renewTime"] == renewed
    assert node.admin.get(old_path)["spec"]["providerID"] == old["spec"]["providerID"]
    assert old_name in node.log(), "nobody was told that the old state is refused"
    print("\n".join(line for line in node.log().splitlines() if old_name in line))
