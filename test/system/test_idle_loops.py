"""What the daemon costs while its Node is not its own: nothing, though watches of before may tell of
pods and bookmarks. All states at once, each with a daemon of its own, over the same 75 seconds: the
API server sends a bookmark about once a minute."""
import contextlib
import datetime
import threading
import time

import pytest

from harness.api import ApiError
from harness.rig import GENERAL_WAIT, wait_until
from slurmcluster.processes import cpu_seconds, sleeps

PODS = "/api/v1/namespaces/default/pods"
UUID = "5b0f2c52-2b7e-4c0c-9a53-0f3c1a2b4d5e"
OTHER_UUID = "c0ffee00-1d2e-4f30-8a9b-7c6d5e4f3a2b"
WINDOW = 75  # seconds
MOST_CPU = 0.75  # seconds, one per cent of a core
MOST_TURNS = 2  # a second, of each thread
# Slurm is asked once at the start: this is not about the children that ask it.
QUIET = {"slurm": {"pollInterval": "10m", "commandTimeout": "10s", "staleAfter": "1h",
                   "maxBackoff": "10m"}}


def bind_pod(rig, name):
    rig.admin.create(PODS, {"metadata": {"name": name}, "spec": {
        "nodeName": rig.name, "containers": [{"name": "c", "image": "registry.example/none"}],
        "tolerations": [{"operator": "Exists"}]}})


def wait_phase(rig, name, phase):
    return rig.admin.wait(PODS, lambda pod, event: event != "DELETED" and
                          pod["status"].get("phase") == phase, GENERAL_WAIT,
                          f"metadata.name={name}")[0]


def now():
    return datetime.datetime.now(datetime.timezone.utc).strftime("%Y-%m-%dT%H:%M:%S.%fZ")


class Repeated:
    """Does something again and again until the end of the block."""

    def __init__(self, action, pause):
        self.action, self.pause = action, pause
        self.over = threading.Event()
        self.thread = threading.Thread(target=self._run)

    def _run(self):
        while not self.over.wait(self.pause):
            with contextlib.suppress(ApiError, OSError):
                self.action()

    def __enter__(self):
        self.thread.start()

    def __exit__(self, *_):
        self.over.set()
        self.thread.join()


def make_foreign(rig):
    """Another machine has made a Node of this name."""
    def put():
        node = rig.admin.find(rig.path)
        if node and node["metadata"]["labels"].get("metal3.io/uuid") == OTHER_UUID:
            return "belongs to another machine" in rig.log()
        with contextlib.suppress(ApiError):  # the daemon makes it again, and may be faster
            rig.admin.delete(rig.path)
            rig.admin.create("/api/v1/nodes", {"metadata": {
                "name": rig.name, "labels": {"metal3.io/uuid": OTHER_UUID}}})
        return False
    wait_until(put, what="the Node to be another machine's")


def hold_lease(rig):
    """What the daemon of another machine does to keep the Node."""
    rig.admin.merge(rig.lease_path, {"spec": {
        "holderIdentity": f"{rig.name}/{OTHER_UUID}", "leaseDurationSeconds": 40,
        "renewTime": now()}})


def delete_node(rig):
    if rig.admin.find(rig.path):
        rig.admin.delete(rig.path)


@pytest.fixture(name="rigs")
def rigs_in_their_states(rig_of, slurm):
    rigs = {state: rig_of(slurm) for state in ("foreign", "released", "backing off", "never")}
    for rig in rigs.values():
        rig.provision(UUID)
        rig.configure(**QUIET)
    rigs["never"].configure(**QUIET, node={"recreate": "never"})
    for rig in rigs.values():
        rig.start()
    for state, rig in rigs.items():
        rig.wait_renewed()
        # The watch of pods is open.
        bind_pod(rig, f"before-{rig.name}")
        wait_phase(rig, f"before-{rig.name}", "Failed")
    return rigs


@pytest.mark.slow
def test_no_state_costs_anything(rigs, timing):
    foreign, held = rigs["foreign"], rigs["released"]
    deleted, never = rigs["backing off"], rigs["never"]
    with contextlib.ExitStack() as meanwhile:
        hold_lease(held)
        meanwhile.enter_context(Repeated(lambda: hold_lease(held), 5))
        held.wait_log("is released")
        make_foreign(foreign)
        delete_node(never)
        never.wait_log("was deleted")
        meanwhile.enter_context(Repeated(lambda: delete_node(deleted), 0.1))
        deleted.wait_log("was deleted; registering it again")
        before = {state: cpu_seconds(rig.daemon.pid) for state, rig in rigs.items()}
        slept = {state: sleeps(rig.daemon.pid) for state, rig in rigs.items()}
        began = time.monotonic()
        for rig in rigs.values():
            bind_pod(rig, f"while-{rig.name}")
            # The API server tells the watches of this node of it.
            rig.admin.wait(PODS, lambda pod, event: True, GENERAL_WAIT,
                           f"spec.nodeName={rig.name},metadata.name=while-{rig.name}")
        time.sleep(max(0, WINDOW - (time.monotonic() - began)))  # the time that is measured
        cost = {state: cpu_seconds(rig.daemon.pid) - before[state] for state, rig in rigs.items()}
        lasted = time.monotonic() - began
        turns = {state: max((count - slept[state].get(thread, 0)) / lasted
                            for thread, count in sleeps(rig.daemon.pid).items())
                 for state, rig in rigs.items()}
    for state, seconds in cost.items():
        timing(f"CPU time in {WINDOW} s, {state}", seconds)
        timing(f"most turns of a thread per second, {state}", turns[state])
    assert max(cost.values()) < MOST_CPU, cost
    assert max(turns.values()) < MOST_TURNS, turns
    # What came while it rested is seen when the Node is its own again.
    bind_pod(foreign, f"then-{foreign.name}")
    foreign.admin.delete(foreign.path)
    wait_phase(foreign, f"then-{foreign.name}", "Failed")
    foreign.wait_condition("Ready", "True")


@pytest.fixture(autouse=True)
def no_pods_left(plane, rigs):
    yield
    for rig in rigs.values():
        plane.admin.delete(f"{PODS}?fieldSelector=spec.nodeName%3D{rig.name}",
                           {"gracePeriodSeconds": 0})
