"""slurmd, slurmctld and munge end, hang and come back."""
import time

from harness.api import condition
from registry import row
from slurmcluster.processes import wait_for

STATES = ("Idle", "Mixed", "Allocated", "Completing", "Drain", "Down", "Fail", "NotResponding")
STALE = 15  # slurm.staleAfter of the trials
OUTAGE = 45
SLURM = ("Slurm", "SlurmStates")
SLURMD = ("Ready", "SlurmdReady", "Slurm", "SlurmStates")


def slurmd(trial, action):
    trial.node.slurm.daemon(action, "slurmd:" + trial.node.slurm.nodes[0])


def wait_slurmd(trial, status, reason=None):
    return trial.node.wait_condition("SlurmdReady", status, reason, timeout=120)


def slurmd_away(trial, action, reason, seen_within):
    with trial.fault():
        slurmd(trial, action)
        wait_slurmd(trial, "False", reason)
        trial.seen("SlurmdReady", within=seen_within)
        trial.node.wait_condition("Ready", "False", timeout=120)
        trial.seen("Ready", within=seen_within + 20)
        slurmd(trial, "resume" if action == "pause" else "start")


@row("slurmd killed", may=SLURMD, done="SIGKILL, started again once the Node is NotReady",
     must="SlurmdReady False within 2 s, Ready False after 15 s of grace, both True within 15 s of its start")
def slurmd_killed(trial):
    slurmd_away(trial, "kill", "SlurmdNotRunning", 2)
    trial.back(within=15)


@row("slurmd stopped", may=SLURMD, done="SIGTERM, likewise", must="as killed")
def slurmd_stopped(trial):
    slurmd_away(trial, "stop", "SlurmdNotRunning", 2)
    trial.back(within=15)


@row("slurmd hung", may=SLURMD, done="SIGSTOP until the Node is NotReady",
     must="SlurmdReady False within 31 s (checked every 30 s), True within 15 s of its end")
def slurmd_hung(trial):
    slurmd_away(trial, "pause", "SlurmdStopped", 31)
    trial.back(within=15)


def outage(trial, name, action, reasons):
    """Nothing is guessed meanwhile: the states are Unknown with a reason, the Node stays Ready."""
    node = trial.node

    def unknown(one):
        found = [condition(one or {}, "SlurmNodeState" + state) for state in STATES]
        return all(entry.get("status") == "Unknown" and entry.get("reason") in reasons
                   for entry in found)
    with trial.fault():
        began = time.monotonic()
        node.slurm.daemon(action, name)
        seen = node.wait(unknown, 120)
        trial.seen("Unknown", within=STALE + 15)
        trial.require(condition(seen, "Ready")["status"] == "True", "Ready is not True")
        time.sleep(max(0, OUTAGE - (time.monotonic() - began)))
        still = node.node()
        trial.require(condition(still, "Ready")["status"] == "True", "Ready is not True")
        trial.require(unknown(still), "no longer Unknown while the outage lasts")
        node.slurm.daemon({"pause": "resume"}.get(action, "start"), name)
    trial.back(within=45)


UNREACHABLE = ("ControllerUnreachable", "ControllerTimeout")
PROMISE = f"Slurm's conditions Unknown within {STALE + 15} s, Node Ready; known within 45 s of its end"
SAME = "as slurmctld down"


@row("slurmctld down", may=SLURM, done=f"killed for {OUTAGE} s", must=PROMISE)
def slurmctld_down(trial):
    outage(trial, "slurmctld", "kill", UNREACHABLE)


@row("slurmctld hung", may=SLURM, done=f"SIGSTOP for {OUTAGE} s", must=SAME)
def slurmctld_hung(trial):
    outage(trial, "slurmctld", "pause", UNREACHABLE)


@row("slurmctld failed over", may=SLURM,
     slurm={"controllers": {"slurmctld": ("ctl1", "127.0.0.1"),
                            "slurmctld-backup": ("ctl2", "127.0.0.2")},
            "conf_lines": ["SlurmctldTimeout=5", "MessageTimeout=2"]},
     done="primary killed, node drained on the backup (SlurmctldTimeout 5 s)",
     must="drain on the Node within 45 s")
def failed_over(trial):
    slurm = trial.node.slurm
    with trial.fault():
        slurm.daemon("kill", "slurmctld")
        deadline = time.monotonic() + 60
        while not slurm.succeeds("scontrol", "update", f"nodename={slurm.nodes[0]}", "state=drain",
                                 "reason=backup"):
            if time.monotonic() > deadline:
                raise TimeoutError("the backup did not take over")
            time.sleep(0.5)
        trial.seen("accepted", within=60)
        trial.node.wait_condition("SlurmNodeStateDrain", "True", timeout=90)
        trial.seen("drain", within=45)
        # Before slurmd has registered with the backup slurmctld rejects it, and resumes the node.
        slurm.command("scontrol", "update", f"nodename={slurm.nodes[0]}", "state=resume", check=False)
        wait_for("the node not to be drained", 60,
                 lambda: "DRAIN" not in slurm.node_state(slurm.nodes[0]))
    trial.back(within=45)


@row("munge down", may=SLURM, done=f"stopped for {OUTAGE} s", must=SAME + ", reason MungeUnavailable")
def munge_down(trial):
    outage(trial, "munged", "stop", ("MungeUnavailable",))


@row("munge hung", may=SLURM, done=f"SIGSTOP for {OUTAGE} s", must=SAME)
def munge_hung(trial):
    outage(trial, "munged", "pause", UNREACHABLE)
