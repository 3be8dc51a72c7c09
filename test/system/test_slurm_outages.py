"""slurmctld or munge is away or hangs: the states are Unknown with the cause, the node stays
Ready, and nothing of a hanging question is left."""
import pathlib
import shutil
import time

import pytest

from harness.api import condition
from harness.rig import wait_until

SLURM_NODE = "nid000001"
def prepare(rig):
    """A slurm.conf of its own, with which scontrol gives up on slurmctld within three seconds instead of
    ten, so that a second look at it may be late and still finds it waiting to connect again; and
    time for it to say why."""
    etc = rig.directory / "etc"
    etc.mkdir()
    source = pathlib.Path(rig.slurm.conf_path).parent
    for name in ("slurm.conf", "gres.conf"):
        shutil.copy(source / name, etc / name)
    with open(etc / "slurm.conf", "a", encoding="ascii") as conf:
        conf.write("MessageTimeout=3\n")
    rig.environment["SLURM_CONF"] = str(etc / "slurm.conf")
    rig.configure(slurm={"pollInterval": "6s", "commandTimeout": "5s", "staleAfter": "8s",
                         "maxBackoff": "6s"})


@pytest.fixture(autouse=True)
def registered_slurmd(slurm):
    """Long pauses make slurmctld doubt slurmd; a new registration ends that."""
    yield
    for name in ("munged", "slurmctld"):
        if slurm.pid(name) is None:
            slurm.daemon("start", name)
    for name in ("munged", "slurmctld"):
        slurm.daemon("resume", name)
    slurm.daemon("restart", "slurmd:" + SLURM_NODE)
    slurm.reset(SLURM_NODE)


def outage(rig, daemon, action, reason, timing):
    """Stops or pauses a daemon of Slurm; returns the Node when its conditions are Unknown."""
    rig.wait_known()
    began = time.monotonic()
    rig.slurm.daemon(action, daemon)
    node = rig.wait_unknown(reason)
    timing(f"{action} {daemon} to Unknown (staleAfter 8 s)", time.monotonic() - began)
    assert condition(node, "Ready")["status"] == "True"
    assert condition(node, "SlurmdReady")["status"] == "True"
    # What was known stays readable, as what it is: the past.
    assert node["metadata"]["annotations"]["slurmlet.io/slurm-state"]
    assert node["status"]["capacity"]["nvidia.com/gpu"] == "4"
    assert "last answer at 20" in condition(node, "SlurmNodeStateDrain")["message"]
    return node


def end_of_outage(rig, daemon, action):
    rig.slurm.daemon(action, daemon)
    rig.wait_known()


def test_stopped_slurmctld(shared_rig, timing):
    node = outage(shared_rig, "slurmctld", "stop", "ControllerUnreachable", timing)
    message = condition(node, "SlurmNodeStateDrain")["message"]
    assert "slurmctld (" in message and "does not answer" in message
    # Ended when it began to wait, or all nodes would meet slurmctld as it comes back.
    assert "scontrol was waiting to connect again" in message
    end_of_outage(shared_rig, "slurmctld", "start")
    shared_rig.wait_event("SlurmStateUnknown")
    shared_rig.wait_event("SlurmStateKnown")


def test_hanging_slurmctld(shared_rig, timing):
    outage(shared_rig, "slurmctld", "pause", "ControllerUnreachable", timing)
    end_of_outage(shared_rig, "slurmctld", "resume")


def test_stopped_munged_names_the_cure(shared_rig, timing):
    node = outage(shared_rig, "munged", "stop", "MungeUnavailable", timing)
    assert "systemctl start munge" in condition(node, "SlurmNodeStateDrain")["message"]
    end_of_outage(shared_rig, "munged", "start")


def children(pid):
    return pathlib.Path(f"/proc/{pid}/task/{pid}/children").read_text().split()


def processes_named(name, directory):
    """Processes of that name that use this rig's slurm.conf."""
    found = []
    for entry in pathlib.Path("/proc").iterdir():
        try:
            if entry.name.isdigit() and (entry / "comm").read_text().strip() == name and \
                    str(directory).encode() in (entry / "environ").read_bytes():
                found.append(int(entry.name))
        except OSError:
            continue
    return found


def test_hanging_munged_holds_no_scontrol(shared_rig, timing):
    """scontrol alone would hang for more than two minutes."""
    outage(shared_rig, "munged", "pause", "ControllerTimeout", timing)
    wait_until(lambda: children(shared_rig.daemon.pid), what="the next question")
    asked = children(shared_rig.daemon.pid)
    wait_until(lambda: not set(asked) & set(children(shared_rig.daemon.pid)), timeout=30,
               what="the question to be ended and reaped")
    wait_until(lambda: not processes_named("scontrol", shared_rig.directory), timeout=30,
               what="no scontrol to be left")
    end_of_outage(shared_rig, "munged", "resume")


def test_hanging_munged_does_not_delay_the_daemon_s_end(rig):
    rig.configure(slurm={"commandTimeout": "30s", "pollInterval": "31s", "staleAfter": "60s",
                         "maxBackoff": "60s"})
    rig.slurm.daemon("pause", "munged")
    rig.start(ready=False)
    wait_until(lambda: children(rig.daemon.pid), what="the question")
    assert rig.stop() < 2
    wait_until(lambda: not processes_named("scontrol", rig.slurm.layout.root), timeout=10,
               what="no scontrol to be left")


def test_daemon_restarted_during_an_outage_keeps_what_was_known(shared_rig):
    shared_rig.wait_known()
    shared_rig.slurm.daemon("stop", "slurmctld")
    before = shared_rig.wait_unknown("ControllerUnreachable")
    shared_rig.restart()
    shared_rig.wait(lambda node: "last answer" not in condition(
        node, "SlurmNodeStateDrain")["message"])
    after = shared_rig.wait_unknown("ControllerUnreachable")
    for kind in ("capacity", "allocatable"):
        assert after["status"][kind] == before["status"][kind]
    assert after["metadata"]["annotations"] == before["metadata"]["annotations"]
    assert after["metadata"]["labels"] == before["metadata"]["labels"]
    assert condition(after, "Ready")["status"] == "True"


def test_missing_scontrol_says_what_to_install(rig):
    empty = rig.directory / "bin"
    empty.mkdir()
    rig.configure(slurm={"binDir": str(empty)})
    rig.start()
    node = rig.wait_unknown("SlurmCommandMissing")
    assert "slurm.binDir" in condition(node, "SlurmNodeStateDrain")["message"]
    assert condition(node, "Ready")["status"] == "True"


def test_node_that_slurm_does_not_know(rig):
    rig.configure(slurm={"nodeName": "nid999999"})
    rig.start(ready=False)
    node = rig.wait_unknown("NotInSlurm")
    assert "slurm.nodeName" in condition(node, "SlurmNodeStateDrain")["message"]
