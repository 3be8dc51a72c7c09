"""The API server restarts, hangs or is away; the daemon goes on as the same process."""
import time

import pytest

from harness.api import condition, slurm_states
from harness.rig import GENERAL_WAIT, wait_until

SLURM_NODE = "nid000001"


@pytest.fixture(name="api_server")
def api_server_control(plane):
    """Acts on the API server and has it run again after the test."""
    yield lambda action: plane.ctl(action, "kube-apiserver")
    state = [line for line in plane.run("ctl", "--dir", plane.directory, "status").splitlines()
             if "kube-apiserver" in line][0]
    if "paused" in state:
        plane.ctl("resume", "kube-apiserver")
    elif "running" not in state:
        plane.ctl("start", "kube-apiserver")


def assert_recovered(rig, pid, last_renewal, since):
    """The lease goes on, no second Node was made, and watches work: a change comes through."""
    lease = rig.wait_renewed(last_renewal)
    assert lease["metadata"]["ownerReferences"][0]["uid"] == rig.node()["metadata"]["uid"]
    assert rig.daemon.pid == pid and rig.daemon.process.poll() is None
    rig.wait_condition("Ready", "True")
    created = [entry for entry in rig.audit.requests(since) if entry[1] == "create" and
               entry[2] in ("nodes", "leases")]
    assert created == []


def test_restarted_api_server(shared_rig, api_server, idle_slurm, timing):
    pid, renewed = shared_rig.daemon.pid, shared_rig.wait_renewed()["spec"]["renewTime"]
    since = shared_rig.audit.mark()
    api_server("restart")
    began = time.monotonic()
    assert_recovered(shared_rig, pid, renewed, since)
    timing("API server back to lease renewed", time.monotonic() - began)
    idle_slurm.set_state(SLURM_NODE, "drained", "after a restart")
    shared_rig.wait_condition("SlurmNodeStateDrain", "True")
    # The watch of its own Node works again, too.
    shared_rig.admin.merge(shared_rig.path, {"metadata": {"labels": {"type": "other"}}})
    shared_rig.wait(lambda node: node["metadata"]["labels"]["type"] == "virtual-kubelet")


def test_change_during_an_outage_is_written_after_it(shared_rig, api_server, idle_slurm):
    pid, renewed = shared_rig.daemon.pid, shared_rig.wait_renewed()["spec"]["renewTime"]
    since = shared_rig.audit.mark()
    shared_rig.wait(lambda node: slurm_states(node) == {"Idle"})  # what was before has been written
    api_server("stop")
    idle_slurm.set_state(SLURM_NODE, "drained", "while nobody looked")
    wait_until(lambda: "not written" in shared_rig.log() or "not renewed" in shared_rig.log())
    api_server("start")
    found = shared_rig.wait_condition("SlurmNodeStateDrain", "True")
    assert '"while nobody looked"' in found["message"]
    assert_recovered(shared_rig, pid, renewed, since)
    wait_until(lambda: "is written again" in shared_rig.log() or
               "is renewed again" in shared_rig.log())


def test_hanging_api_server(shared_rig, api_server, timing):
    pid, renewed = shared_rig.daemon.pid, shared_rig.wait_renewed()["spec"]["renewTime"]
    since = shared_rig.audit.mark()
    api_server("pause")
    time.sleep(5)  # the promise is about a server that hangs for this long
    api_server("resume")
    began = time.monotonic()
    assert_recovered(shared_rig, pid, renewed, since)
    timing("API server resumed to lease renewed", time.monotonic() - began)


def test_daemon_started_before_the_api_server(rig, api_server):
    api_server("stop")
    rig.start(ready=False)
    rig.wait_log("not written")
    api_server("start")
    rig.wait_condition("Ready", "True")
    rig.wait_renewed()
    assert len([line for line in rig.log().splitlines() if "not written" in line]) == 1


def test_node_deleted_during_an_outage_of_the_daemon_s_view(rig, api_server):
    """Deleted right before a restart of the API server, so that the watch may miss it."""
    rig.start()
    old = rig.node()["metadata"]["uid"]
    rig.admin.delete(rig.path)
    api_server("restart")
    rig.wait(lambda node: node and node["metadata"]["uid"] != old and
             condition(node, "Ready").get("status") == "True", GENERAL_WAIT)
