"""Bringing a node into each Slurm state, and back.

Each state is a function that pushes the node there and a test on the tokens
of `scontrol show node`. Every change starts from idle.
"""

import os
import pwd
import re
import signal
import time
import warnings

from .config import ClusterError, write_slurm_conf
from .processes import StillWaiting, process_stat, wait_for


def set_state(cluster, node, state, reason=None):
    """Reset the node, push it into the state, wait for it, twice if need be; returns "MIXED+DRAIN"."""
    if state not in STATES:
        raise ClusterError(f"no state '{state}'; there are: {', '.join(sorted(STATES))}")
    if node not in cluster.nodes:
        raise ClusterError(f"no node '{node}' in this cluster")
    push, reached = STATES[state]

    def arrived():
        tokens = cluster.node_state(node)
        return tokens if reached(set(tokens)) else None

    def push_and_wait():
        push(cluster, node, reason or f"slurmcluster: {state}")
        return "+".join(wait_for(f"{node} to be {state}", 60, arrived))
    reset(cluster, node)
    try:
        return push_and_wait()
    except StillWaiting as error:
        # slurmctld may note late what slurmd had answered, or had not, before the reset.
        warnings.warn(f"{error}; once more, for it is:\n{cluster.show_node(node)}")
        reset(cluster, node)
        return push_and_wait()


# -- the epilog's fifo ------------------------------------------------------

def hold_epilog(cluster, node):
    """From now on the node's epilog blocks."""
    path = cluster.layout.at("hold", node)
    if not os.path.exists(path):
        os.mkfifo(path, 0o600)


def release_epilog(cluster, node):
    """Let a blocked epilog, and all later ones, end."""
    path = cluster.layout.at("hold", node)
    try:
        # Opened for both directions this does not block and is the writer an
        # epilog waits for; unlinked before it is closed, nobody waits anew.
        descriptor = os.open(path, os.O_RDWR | os.O_NONBLOCK)
    except FileNotFoundError:
        return
    os.unlink(path)
    # An epilog between its open() and now gets end of file by this close.
    os.close(descriptor)


# -- pushing ------------------------------------------------------------------

def _update(cluster, node, state, reason=None):
    words = ["scontrol", "update", f"nodename={node}", f"state={state}"]
    cluster.command(*words, *([f"reason={reason}"] if reason else []))


def _idle(_cluster, _node, _reason):
    pass


def _allocated(cluster, node, _reason):
    cluster.submit(node, "--exclusive", *([f"--gres=gpu:{cluster.spec.gpu_count}"] if cluster.spec.gpus else []))


def _job(cluster, node):
    """A job of one task; on a node of one CPU that is all of it."""
    cluster.submit(node, "--ntasks=1")


def _drained(cluster, node, reason):
    _update(cluster, node, "drain", reason)


def _draining(cluster, node, reason):
    _job(cluster, node)
    _update(cluster, node, "drain", reason)


def _down(cluster, node, reason):
    _update(cluster, node, "down", reason)


def _fail(cluster, node, reason):
    _update(cluster, node, "fail", reason)


def _reservation(cluster, node, flags):
    user = pwd.getpwuid(os.geteuid()).pw_name
    cluster.command("scontrol", "create", f"reservation=slurmcluster-{node}", f"user={user}", "starttime=now",
                    "duration=1-00:00:00", f"nodes={node}", f"flags={flags}")


def _maintenance(cluster, node, _reason):
    _reservation(cluster, node, "maint,ignore_jobs")


def _reserved(cluster, node, _reason):
    _reservation(cluster, node, "ignore_jobs")


def _require_registration(cluster, node):
    """resume makes slurmctld say NOT_RESPONDING until the node registers.

    With slurmd silent that shows at once what otherwise takes SlurmdTimeout. What slurmd had
    answered before (to a ping, say) slurmctld may note a second or two later, and then takes the
    node for responding: once more.
    """
    def stays_silent():
        _update(cluster, node, "drain", "slurmcluster")
        _update(cluster, node, "resume")
        shown = False
        end = time.monotonic() + 3
        while time.monotonic() < end:
            now = "NOT_RESPONDING" in cluster.node_state(node)
            if shown and not now:
                return False
            shown = now
            time.sleep(0.1)
        return shown
    wait_for(f"{node} to stay silent", 30, stays_silent)


def _not_responding(cluster, node, _reason):
    cluster.daemon("pause", f"slurmd:{node}")
    _require_registration(cluster, node)


def _reboot_requested(cluster, node, reason):
    _job(cluster, node)
    cluster.command("scontrol", "reboot", f"reason={reason}", node)


def _reboot_issued(cluster, node, reason):
    """Where the node booted in the second of the order, its answer to the order counts as the boot:
    base state idle, and REBOOT_ISSUED stays (24.11.5: node_did_resp after waiting_for_node_boot).
    """
    wait_for(f"the last boot of {node} to be over", 10, lambda: time.time() - boot_time(cluster, node) > 2)
    cluster.command("scontrol", "reboot", "ASAP", "nextstate=RESUME", f"reason={reason}", node)


def boot_time(cluster, node):
    """When the node booted, as slurmd told slurmctld (slurmd -b: when slurmd started): seconds since the epoch."""
    told = re.search(r"\bBootTime=(\S+)", cluster.show_node(node)).group(1)
    return 0 if told == "None" else time.mktime(time.strptime(told, "%Y-%m-%dT%H:%M:%S"))


def _inval(cluster, node, _reason):
    """One GPU missing; without GPUs, more memory configured than there is."""
    spec = cluster.spec
    spec.invalid = {"node": node, "how": "gpus" if spec.gpus else "memory"}
    _apply_conf(cluster, node)


def _apply_conf(cluster, node):
    """Write slurm.conf again and restart whom it concerns."""
    write_slurm_conf(cluster.layout, cluster.spec)
    cluster.daemon("restart", "slurmctld")
    cluster.daemon("restart", f"slurmd:{node}")
    # A restarted slurmctld shows nodes as UNKNOWN until they register.
    wait_for("the nodes to register again", 30, lambda: not any(
        "UNKNOWN" in cluster.node_state(name) and "INVALID_REG" not in cluster.node_state(name)
        for name in cluster.nodes))


def _planned(cluster, node, _reason):
    """A job waits for this node and a busy one; backfill then plans both."""
    others = [name for name in cluster.nodes if name != node]
    if not others:
        raise ClusterError("planned needs a second node: up --nodes a,b")
    reset(cluster, others[0])
    cluster.submit(others[0], "--exclusive")
    cluster.command("sbatch", "--job-name=slurmcluster", "--output=/dev/null", "--chdir=/", "--time=10", "--exclusive",
                    "--nodes=2", f"--nodelist={node},{others[0]}", "--wrap=exec sleep 3600")


def _future(cluster, node, _reason):
    _update(cluster, node, "future")


def _power(state):
    def push(cluster, node, _reason):
        if not cluster.spec.power_save:
            raise ClusterError("power states need power_save=True")
        _update(cluster, node, "power_down")
        if state == "powering_up":
            wait_for(f"{node} to be powered down", 60, lambda: "POWERED_DOWN" in cluster.node_state(node))
            _update(cluster, node, "power_up")
    return push


def _exactly(*tokens):
    return lambda found: found == set(tokens)


def _busy_with(flag):
    return lambda found: flag in found and bool(found & {"MIXED", "ALLOCATED"})


# name: (push, test on the tokens)
STATES = {
    "idle": (_idle, _exactly("IDLE")),
    "allocated": (_allocated, _exactly("ALLOCATED")),
    "draining": (_draining, _busy_with("DRAIN")),
    "drained": (_drained, _exactly("IDLE", "DRAIN")),
    "down": (_down, _exactly("DOWN")),
    "fail": (_fail, _exactly("IDLE", "FAIL")),
    "maintenance": (_maintenance, lambda found: {"IDLE", "MAINTENANCE"} <= found),
    "reserved": (_reserved, lambda found: "RESERVED" in found and "MAINTENANCE" not in found),
    "not_responding": (_not_responding, lambda found: "NOT_RESPONDING" in found and "DOWN" not in found),
    "reboot_requested": (_reboot_requested, _busy_with("REBOOT_REQUESTED")),
    "reboot_issued": (_reboot_issued, lambda found: {"DOWN", "REBOOT_ISSUED"} <= found),
    "inval": (_inval, lambda found: "INVALID_REG" in found),
    "planned": (_planned, lambda found: "PLANNED" in found),
    "future": (_future, lambda found: "FUTURE" in found),
    "powering_down": (_power("powering_down"), lambda found: "POWERING_DOWN" in found),
    "powered_down": (_power("powered_down"), lambda found: "POWERED_DOWN" in found),
    "powering_up": (_power("powering_up"), lambda found: "POWERING_UP" in found),
}


# -- back to idle -------------------------------------------------------------

def reset(cluster, node, seconds=60):
    """Undo everything set_state() and people may have done to the node."""
    release_epilog(cluster, node)
    for name in ("munged", "slurmctld", f"slurmd:{node}"):
        _make_run(cluster, name)
    if cluster.spec.invalid:
        invalid_node = cluster.spec.invalid["node"]
        cluster.spec.invalid = {}
        _apply_conf(cluster, invalid_node)
    cluster.command("scontrol", "delete", f"reservation=slurmcluster-{node}", check=False)
    cluster.command("scancel", "--name=slurmcluster", "--state=PENDING", check=False)
    cluster.command("scancel", f"--nodelist={node}", check=False)

    last_done = {}

    def once_per(interval, name, action):
        if time.monotonic() - last_done.get(name, -interval) >= interval:
            last_done[name] = time.monotonic()
            action()

    def back():
        tokens = set(cluster.node_state(node))
        if tokens == {"IDLE"}:
            return True
        for name, interval, action in _remedies(cluster, node, tokens):
            once_per(interval, name, action)
        return False
    wait_for(lambda: f"{node} to be idle again: {cluster.node_state(node)}", seconds, back)
    return "IDLE"


def _make_run(cluster, name):
    """Continue a stopped daemon, start a missing one."""
    pid = cluster.pid(name)
    if pid is None:
        cluster.daemon("start", name)
    elif process_stat(pid)[1] == "T":
        os.kill(pid, signal.SIGCONT)


def _remedies(cluster, node, tokens):
    """What may help against these tokens: (name, not more often than s, action)."""
    def scontrol(*words):
        return lambda: cluster.command("scontrol", *words, check=False)

    def restart(*arguments):
        return lambda: cluster.daemon("restart", f"slurmd:{node}", *arguments)
    update = ["update", f"nodename={node}"]
    if not tokens or "FUTURE" in tokens:
        yield "unhide", 5, scontrol(*update, "state=idle")
        yield "restart", 15, restart()
    elif "INVALID_REG" in tokens:
        yield "restart", 15, restart()
    elif "POWERED_DOWN" in tokens:
        yield "power_up", 5, scontrol(*update, "state=power_up")
    elif "REBOOT_ISSUED" in tokens and "DOWN" not in tokens:
        # See _reboot_issued(): no registration ends it then.
        yield "resume", 2, scontrol(*update, "state=resume")
    elif tokens & {"POWERING_UP", "POWER_UP"} or "REBOOT_ISSUED" in tokens:
        # Only a registration with a newer boot time ends these: slurmd -b.
        yield "reboot", 15, restart("-b")
    elif "REBOOT_REQUESTED" in tokens:
        yield "cancel", 2, scontrol("cancel_reboot", node)
    elif tokens & {"DOWN", "DRAIN", "FAIL"}:
        yield "resume", 2, scontrol(*update, "state=resume")
    elif tokens & {"ALLOCATED", "MIXED"}:
        yield "cancel", 2, lambda: cluster.command("scancel", f"--nodelist={node}", check=False)
