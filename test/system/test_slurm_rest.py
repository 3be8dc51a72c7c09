"""slurmrestd over its unix socket instead of sinfo: the state is mirrored without any of Slurm's
commands, outages of slurmctld and of slurmrestd are told apart, and auto falls back on sinfo. Over
HTTPS with a token: test_slurm_jwt.py."""
import getpass
import pathlib
import time

import pytest

from harness.api import condition, slurm_states

NODE = "nid000043"
# sinfo, scontrol and all else are out of reach.
NO_PROGRAMS = {"PATH": "/nonexistent"}
# Slurm gives up on slurmctld within two seconds then, and has time to say why.
PATIENT = {"pollInterval": "5s", "commandTimeout": "4s", "staleAfter": "12s", "maxBackoff": "5s",
           "queriesPerHour": 3600}


@pytest.fixture(scope="module", name="slurm")
def slurm_with_slurmrestd(own_slurm):
    return own_slurm(nodes=[NODE], cpus=2, gpus="a100:4", cluster_name="alps", slurmrestd=True,
                     conf_lines=["MessageTimeout=2"])


@pytest.fixture(autouse=True)
def all_is_well_again(slurm):
    yield
    for name in ("slurmctld", "slurmrestd"):
        if slurm.pid(name) is None:
            slurm.daemon("start", name)
        slurm.daemon("resume", name)
    slurm.reset(NODE)


def url(slurm):
    return "unix:" + str(slurm.layout.restd_socket)


@pytest.fixture(scope="module", name="rig")
def rig_without_sinfo(slurm, rig_of):
    one = rig_of(slurm)
    one.environment.update(NO_PROGRAMS)
    one.configure(slurm={"source": "rest", "restURL": url(slurm), "binDir": "/nonexistent",
                         **PATIENT})
    one.start_and_know()
    return one


def unknown_for(rig, reason):
    """The message, once all that Slurm says is Unknown for that reason, and the node still is
    Ready."""
    found = rig.wait_condition("SlurmNodeStateDrain", "Unknown", reason)
    assert rig.condition("Ready")["status"] == "True"
    return found["message"]


def test_all_facts_come_through_slurmrestd(rig, slurm):
    node = rig.node()
    assert slurm_states(node) == {"Idle"}
    assert node["status"]["capacity"]["nvidia.com/gpu"] == "4"
    assert node["status"]["capacity"]["cpu"] == "2"
    assert node["metadata"]["annotations"]["slurmlet.io/slurm-node"] == NODE
    assert f"queries slurmctld through slurmrestd {url(slurm)}: slurm.source is rest" in rig.log()


def test_drain_is_seen(rig, slurm, timing):
    began = time.monotonic()
    slurm.set_state(NODE, "drained", 'dimm 3 of "cpu1" is bad')
    found = rig.wait_condition("SlurmNodeStateDrain", "True", "Drained")
    timing("drain to condition (pollInterval 5 s)", time.monotonic() - began)
    assert 'dimm 3 of "cpu1" is bad' in found["message"]
    assert f" by {getpass.getuser()}" in found["message"]
    slurm.reset(NODE)
    rig.wait(lambda seen: slurm_states(seen) == {"Idle"})


def test_draining_is_not_drained(rig, slurm):
    slurm.set_state(NODE, "draining", "soon")
    rig.wait_condition("SlurmNodeStateDrain", "True", "Draining")
    slurm.reset(NODE)
    rig.wait(lambda seen: slurm_states(seen) == {"Idle"})


def test_killed_slurmctld_is_told_from_slurmrestd(rig, slurm):
    rig.wait_known()
    slurm.daemon("kill", "slurmctld")
    assert "slurmctld" in unknown_for(rig, "ControllerUnreachable")
    slurm.daemon("start", "slurmctld")
    rig.wait_known()


def test_killed_slurmrestd_is_told_and_comes_back(rig, slurm, timing):
    rig.wait_known()
    pid = rig.daemon.pid
    slurm.daemon("kill", "slurmrestd")
    message = unknown_for(rig, "RestUnavailable")
    assert f"slurmrestd {url(slurm)}: connection refused" in message
    began = time.monotonic()
    slurm.daemon("start", "slurmrestd")
    rig.wait_known()
    timing("slurmrestd is back to known states (pollInterval 5 s)", time.monotonic() - began)
    assert rig.daemon.pid == pid and rig.daemon.process.poll() is None


def test_stopped_slurmrestd_leaves_no_socket(rig, slurm):
    rig.wait_known()
    slurm.daemon("stop", "slurmrestd")
    pathlib.Path(slurm.layout.restd_socket).unlink(missing_ok=True)
    rig.wait(lambda node: "the socket does not exist" in condition(
        node, "SlurmNodeStateDrain").get("message", ""))
    slurm.daemon("start", "slurmrestd")
    rig.wait_known()


def test_hanging_slurmrestd_ends_at_our_deadline(rig, slurm):
    rig.wait_known()
    slurm.daemon("pause", "slurmrestd")
    message = unknown_for(rig, "ControllerTimeout")
    assert f"slurmrestd {url(slurm)} did not answer within slurm.commandTimeout" in message
    slurm.daemon("resume", "slurmrestd")
    rig.wait_known()


def test_auto_falls_back_on_sinfo_and_says_so_once(slurm, rig_of):
    rig = rig_of(slurm)
    rig.configure(slurm={"restURL": url(slurm), **PATIENT})
    rig.start_and_know()
    assert f"queries slurmctld through slurmrestd {url(slurm)}: slurm.restURL is set" in rig.log()
    slurm.daemon("kill", "slurmrestd")
    change = f"uses sinfo instead of slurmrestd {url(slurm)}: "
    rig.wait_log(change)
    slurm.set_state(NODE, "drained", "seen by sinfo")
    assert "seen by sinfo" in rig.wait_condition("SlurmNodeStateDrain", "True")["message"]
    slurm.daemon("start", "slurmrestd")
    slurm.reset(NODE)
    rig.wait(lambda seen: slurm_states(seen) == {"Idle"})
    assert rig.log().count(change) == 1


def test_auto_does_not_switch_when_slurmctld_is_down(slurm, rig_of):
    rig = rig_of(slurm)
    rig.configure(slurm={"restURL": url(slurm), **PATIENT})
    rig.start_and_know()
    slurm.daemon("kill", "slurmctld")
    unknown_for(rig, "ControllerUnreachable")
    slurm.daemon("start", "slurmctld")
    rig.wait_known()
    assert "instead of" not in rig.log()


def test_print_node_asks_slurmrestd(slurm, rig_of):
    rig = rig_of(slurm)
    rig.environment.update(NO_PROGRAMS)
    rig.configure(slurm={"source": "rest", "restURL": url(slurm), "binDir": "/nonexistent",
                         **PATIENT})
    slurm.set_state(NODE, "drained", "for print-node")
    rig.start(arguments=["print-node", *rig.arguments()], ready=False)
    rig.daemon.process.wait(30)
    assert "for print-node" in rig.log()
