"""The API server is away, slow or forgets connections; objects are deleted."""
import contextlib
import time

from harness.api import condition, node_path
from link import Link
from network import Far
from registry import row

OUTAGE = 60  # seconds
DRAINED = "by the trial"
RESUMED = ("SlurmStates",)  # until slurmd has registered again Slurm says NOT_RESPONDING


def drain(trial):
    slurm = trial.node.slurm
    slurm.command("scontrol", "update", f"nodename={slurm.nodes[0]}", "state=drain",
                  f"reason={DRAINED}")


def resume(trial):
    slurm = trial.node.slurm
    slurm.command("scontrol", "update", f"nodename={slurm.nodes[0]}", "state=resume")


def changed_meanwhile(trial):
    """What changed during an outage is on the Node after it."""
    trial.node.wait_condition("SlurmNodeStateDrain", "True", timeout=60)
    resume(trial)


@row("API server killed", alone=True, hinders=True, may=RESUMED,
     done="SIGKILL, started again after 60 s; node drained meanwhile",
     must="lease within 15 s of its return, drain on the Node")
def api_killed(trial):
    plane = trial.lab.plane
    with trial.fault():
        plane.run("ctl", "--dir", plane.directory, "--grace", "0", "stop", "kube-apiserver")
        drain(trial)
        time.sleep(OUTAGE)
        plane.ctl("start", "kube-apiserver")
    changed_meanwhile(trial)
    trial.back(within=30)
    made = [one for one in trial.node.audit.requests(trial.mark)
            if one[1:3] == ("create", "nodes")]
    trial.require(not made, "the Node was created again")


@row("API server hung", alone=True, hinders=True,
     done="SIGSTOP for 60 s", must="lease within 40 s of its return (two renewals timed out)")
def api_hung(trial):
    with trial.fault():
        trial.lab.plane.ctl("pause", "kube-apiserver")
        time.sleep(OUTAGE)
        trial.lab.plane.ctl("resume", "kube-apiserver")
    trial.back(within=45)


@row("API server unreachable", hinders=True, may=RESUMED,
     done="connections reset for 60 s; node drained meanwhile",
     must="lease within 15 s, drain on the Node")
def api_unreachable(trial):
    with trial.fault():
        trial.node.link.refuse()
        drain(trial)
        time.sleep(OUTAGE)
        trial.node.link.open()
    changed_meanwhile(trial)
    trial.back(within=30)


@row("API server slow", may=RESUMED,
     done="all traffic delayed by 2 s for 90 s; node drained",
     must="no late lease, drain within 30 s")
def api_slow(trial):
    trial.allowed_gap += 2 * 2  # of two renewals one may be as early as the other is late
    with trial.fault():
        trial.node.link.slow_down(2.0)
        drain(trial)
        trial.node.wait_condition("SlurmNodeStateDrain", "True", timeout=90)
        trial.seen("drain", within=30)
        time.sleep(max(0, 90 - (time.time() - trial.since)))
        trial.node.link.open()
    resume(trial)
    trial.back(within=30)


@row("half-open TCP: packets dropped", hinders=True, own_nodes=True, may=("Slurm",),
     done="bridge between two network namespaces down for 60 s",
     must="lease within 40 s (two renewals timed out)")
def packets_dropped(trial):
    lab = trial.lab
    with contextlib.ExitStack() as at_end:
        far = at_end.enter_context(Far())
        link = Link(lab.loop, lab.api_port, far.listener(6443))
        node = at_end.enter_context(lab.node(
            at_end.enter_context(lab.slurm()), link=link,
            server=f"https://{far.address}:6443"))
        node.prefix = far.enter()
        # slurmctld is beyond it too; slurmd is seen all the same.
        trial.adopt(node)
        node.start()
        trial.wait_right = lambda: node.wait_condition("Ready", "True", timeout=120)
        trial.prepare()
        with trial.fault():
            far.cut()
            time.sleep(OUTAGE)
            far.mend()
        trial.back(within=45)
        trial.finish()


@row("half-open TCP: connections forgotten", may=RESUMED,
     done="established connections go silent, new ones work; node drained",
     must="renewals at most 35 s apart (a renewal times out after 20 s), drain within 45 s")
def connections_forgotten(trial):
    trial.allowed_gap = 35
    with trial.fault():
        trial.node.link.lose()
        drain(trial)
        trial.node.wait_condition("SlurmNodeStateDrain", "True", timeout=90)
        trial.seen("drain", within=45)
        time.sleep(20)
    resume(trial)
    trial.back(within=60)


@row("Node deleted", done="kubectl delete node", must="registered within 5 s, lease within 10 s")
def node_deleted(trial):
    trial.same_node = False
    with trial.fault():
        trial.node.admin.delete(node_path(trial.node.name))
    trial.node.wait(lambda node: node and node["metadata"]["uid"] != trial.uid and
                    condition(node, "Ready").get("status") == "True")
    trial.seen("registered", within=5)
    trial.back(within=10)
    lease = trial.node.lease()
    trial.require(lease["metadata"]["ownerReferences"][0]["uid"] ==
                  trial.node.node()["metadata"]["uid"], "the lease belongs to the old Node")


@row("Lease deleted", done="kubectl delete lease", must="lease within 15 s")
def lease_deleted(trial):
    with trial.fault():
        trial.node.admin.delete(trial.node.lease_path)
    trial.node.wait_renewed()
    trial.seen("lease", within=15)
    trial.back(within=20)
