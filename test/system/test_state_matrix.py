"""What is published of {job} x {action}, by each source, against Slurm's own list of nodes. Prints a
table; no cell may be wrong, and none Unknown.

One Slurm node for each kind of job, and one daemon for each node and source. A round brings all
nodes into one action while the daemons are stopped (SIGSTOP), and lets them look, one source after
the other: `scontrol`, and `operator`, whose record is a line of another such list.
"""
import concurrent.futures
import json
import os
import re
import signal
import time

import pytest

from harness.api import condition, quantity
from slurmcluster import states
from slurmcluster.processes import wait_for

NODES = {"none": "n1", "partial": "n2", "salloc": "n3", "between": "n5", "completing": "n6"}
HEAD = "n4"  # where the batch script of the job of two nodes runs
ACTIONS = ("none", "drain", "down", "fail", "resume", "reboot")
SOURCES = ("scontrol", "operator")
CORE = {"Idle": "IDLE", "Mixed": "MIXED", "Allocated": "ALLOCATED", "Completing": "COMPLETING",
        "Drain": "DRAIN", "Down": "DOWN", "Fail": "FAIL", "Maintenance": "MAINTENANCE",
        "NotResponding": "NOT_RESPONDING", "InvalidReg": "INVALID_REG"}
UNREADY = {"INVALID_REG", "FAIL", "NOT_RESPONDING", "DOWN", "POWERED_DOWN", "POWERING_DOWN",
           "POWERING_UP", "FUTURE"}
ANNOTATION = "slurmlet.io/slurm-"
LOOK_SECONDS = 40  # for a group to show what it has asked; the machine may be busy
POLL_SECONDS = 2


# -- the daemons -----------------------------------------------------------------------------


class Fleet:
    """The daemons of all nodes and sources, stopped but for the group that is to look."""

    def __init__(self, slurm, rig_of):
        self.slurm = slurm
        self.rigs = {(job, source): rig_of(slurm) for job in NODES for source in SOURCES}
        self.admin = next(iter(self.rigs.values())).admin
        self.names = {rig.name: key for key, rig in self.rigs.items()}
        self.rounds, self.rows = 0, []
        for (job, source), rig in self.rigs.items():
            rig.configure(node={"readyFollows": "slurm"}, slurm=self._settings(job, source))

    def _settings(self, job, source):
        # Slower than a question, so that a busy machine does not make timeouts of answers.
        settings = {"nodeName": NODES[job], "pollInterval": f"{POLL_SECONDS}s",
                    "commandTimeout": "1900ms", "staleAfter": "60s", "source": source}
        return {**settings, "binDir": "/nonexistent"} if source == "operator" else settings

    def start(self):
        for rig in self.rigs.values():
            rig.start(ready=False)
        for rig in self.rigs.values():
            rig.wait(lambda node: node)
        self.publish()
        for rig in self.rigs.values():
            rig.wait_known()
        self.pause()

    def end(self):
        self.go_on(SOURCES)
        for rig in self.rigs.values():
            if rig.daemon:
                rig.daemon.kill()

    def publish(self):
        """A dump, as slurmlet-operator writes it to the Nodes."""
        lines = self.slurm.command("scontrol", "--local", "-a", "-d", "-o", "show", "node").stdout.splitlines()
        for job, name in NODES.items():
            text = next(line + "\n" for line in lines if line.startswith(f"NodeName={name} "))
            record = {"format": 1, "cluster": "alps", "dumpedAt": int(time.time()),
                      "intervalSeconds": 30, "refreshSeconds": 300, "text": text}
            self.admin.merge(self.rigs[job, "operator"].path,
                             {"metadata": {"annotations": {"slurmlet.io/record": json.dumps(record)}}})

    def _daemons(self, sources):
        return [rig.daemon for (_, source), rig in self.rigs.items() if source in sources and rig.daemon]

    def pause(self, sources=SOURCES):
        for daemon in self._daemons(sources):
            daemon.signal(signal.SIGSTOP)

    def go_on(self, sources):
        for daemon in self._daemons(sources):
            daemon.signal(signal.SIGCONT)

    def look(self, sources, marker):
        """Lets these daemons ask, until what they publish is of this round and stays; their Nodes,
        by (job, source), and what is wrong."""
        self.go_on(sources)
        wanted = {key for key in self.rigs if key[1] in sources}
        before, since, end = {}, None, time.monotonic() + LOOK_SECONDS
        earlier, last = {}, []  # what was written last
        # Metadata and status are written one after the other.
        while True:
            nodes = self._nodes(wanted)
            now = {key: published(node) for key, node in nodes.items()}
            if now != before:
                last = [change for key in nodes if key in earlier
                        for change in changes(key, earlier[key], nodes[key])] or last
                before, since, earlier = now, time.monotonic(), nodes
            fresh = all(shows(node, marker) for node in nodes.values())
            at_rest = fresh and time.monotonic() - since > 0.5
            if at_rest or time.monotonic() > end:
                break
            time.sleep(0.15)
        self.pause(sources)
        return nodes, [] if at_rest else [
            f"{marker}: {sources} do not come to rest (fresh: {fresh}); written "
            f"last, {time.monotonic() - since:.1f} s before: {last}"]

    def _nodes(self, wanted):
        items = self.admin.get("/api/v1/nodes")["items"]
        keys = {self.names.get(node["metadata"]["name"]): node for node in items}
        return {key: keys[key] for key in wanted}


def published(node):
    """What the daemon writes. The taints of the node controller, which takes a daemon that was paused
    for one that is dead, come and go for seconds after."""
    spec = {**node["spec"], "taints": [taint for taint in node["spec"].get("taints", [])
                                       if not taint["key"].startswith("node.kubernetes.io/")]}
    return node["metadata"]["labels"], node["metadata"]["annotations"], spec, node["status"]


def shows(node, marker):
    return node["metadata"]["annotations"].get(ANNOTATION + "features") == marker


def changes(key, before, after):
    """Where two versions of a Node differ, without the times of conditions, as text."""
    def flat(node):
        found = {f"{part}.{name}": value for part in ("metadata", "spec", "status")
                 for name, value in node[part].items() if name not in ("conditions", "managedFields")}
        found |= {one["type"]: (one["status"], one.get("reason"), one.get("message"))
                  for one in node["status"]["conditions"]}
        found |= node["metadata"].get("annotations", {})
        return found
    old, new = flat(before), flat(after)
    return [(key, name, old.get(name), new.get(name)) for name in sorted(old | new)
            if old.get(name) != new.get(name) and name not in ("metadata.resourceVersion", "metadata.annotations")]


# -- bringing Slurm there --------------------------------------------------------------------


def single_state(slurm, node):
    """Slurm's words."""
    return slurm.sinfo("-h", "-N", "-n", node, "-O", "StateComplete:").strip()


def in_parallel(calls):
    with concurrent.futures.ThreadPoolExecutor(len(calls)) as pool:
        for done in [pool.submit(*call) for call in calls]:
            done.result()


def start_jobs(slurm):
    """Each node's job."""
    states.hold_epilog(slurm, NODES["completing"])
    options = ["--job-name=slurmcluster", "--time=60"]
    # Of two nodes the first one by name has the script, the other no process at all.
    in_parallel([*[(slurm.submit, NODES[job], "--ntasks=1")
                   for job in ("none", "partial", "completing")],
                 (slurm.command, "salloc", "--no-shell", *options, "--ntasks=1",
                  f"--nodelist={NODES['salloc']}"),
                 (slurm.command, "sbatch", *options, "--output=/dev/null", "--chdir=/", "--nodes=2",
                  "--ntasks-per-node=1", f"--nodelist={NODES['between']},{HEAD}",
                  "--wrap=exec sleep 3600")])
    wait_for("all jobs to run", 30, lambda: slurm.command(
        "squeue", "-h", "-o", "%T").stdout.split().count("RUNNING") == 5)


def end_jobs(slurm):
    """That of "none" has ended, and that of "completing" waits for its epilog."""
    slurm.command("scancel", f"--nodelist={NODES['none']},{NODES['completing']}")
    wait_for("one job to end and one to complete", 30, lambda: sorted(slurm.command(
        "squeue", "-h", "-o", "%T").stdout.split()) == ["COMPLETING", *["RUNNING"] * 3])


def act(slurm, action, marker):
    nodes = ",".join(NODES.values())
    update = ["scontrol", "update", f"nodename={nodes}"]
    if action in ("drain", "down", "fail"):
        slurm.command(*update, f"state={action}", f"reason=because {marker}")
    elif action == "resume":
        slurm.command(*update, "state=drain", f"reason=because {marker}")
        slurm.command(*update, "state=resume")
    elif action == "reboot":
        slurm.command("scontrol", "reboot", f"reason=because {marker}", nodes)
    slurm.command(*update, f"availablefeatures={marker}", f"activefeatures={marker}")


def wait_quiet(slurm, action):
    """Until what follows from the action by itself has happened."""
    def over():
        shown = {job: single_state(slurm, node) for job, node in NODES.items()}
        going = action == "down" and (
            any("completing" in shown[job] for job in ("partial", "salloc", "between")) or
            any(spooled(slurm, node) for node in NODES.values()))
        rebooting = action == "reboot" and "reboot_issued" not in shown["none"]
        silent = any("not_responding" in words for words in shown.values())
        if going or silent or rebooting:
            return None
        return shown
    first = wait_for("the nodes to come to rest", 40, over)
    wait_for("the nodes to stay at rest", 20, lambda: over() == first or None)


def spooled(slurm, node):
    return [name for name in os.listdir(slurm.layout.at("spool", node))
            if re.fullmatch(rf"{node}_\d+\.\d+", name)]


def reset(slurm):
    for job, node in NODES.items():
        if job == "completing":
            states.release_epilog(slurm, node)
    slurm.command("scancel", "--name=slurmcluster", check=False)
    in_parallel([(slurm.reset, node) for node in [*NODES.values(), HEAD]])


def dump(slurm):
    """{job: (base state and flags, allocated CPUs, allocated MiB)} of a full dump."""
    found = {}
    text = slurm.command("scontrol", "show", "node").stdout
    for job, node in NODES.items():
        record = re.search(rf"(?ms)^NodeName={node} .*?(?=^NodeName=|\Z)", text).group(0)
        words = re.search(r"^\s+State=(\S+)", record, re.MULTILINE).group(1).split("+")
        figures = [int(re.search(rf"\b{key}=(\d+)", record).group(1))
                   for key in ("CPUAlloc", "AllocMem")]
        found[job] = (words, *figures)
    return found


# -- comparing -------------------------------------------------------------------------------


def compare(node, truth, marker):
    """What is wrong with the Node, as sentences."""
    words, cpus, memory = truth
    wrong = []
    if not shows(node, marker):
        return ["has not asked since"]

    def check(name, expected):
        found = condition(node, name)
        short = name.removeprefix("SlurmNodeState")
        if found.get("status") != expected:
            wrong.append(f"{short}={found.get('status')} ({found.get('reason')})")
    for name, word in CORE.items():
        check("SlurmNodeState" + name, "True" if word in words else "False")
    check("Ready", "False" if UNREADY & set(words) else "True")
    busy = bool({"MIXED", "ALLOCATED", "COMPLETING"} & set(words))
    drain = condition(node, "SlurmNodeStateDrain").get("reason")
    if drain != ("NotDrained" if "DRAIN" not in words else "Draining" if busy else "Drained"):
        wrong.append(f"drain is {drain}")
    annotations = node["metadata"]["annotations"]
    for name, expected, read in (("cpus", cpus, int),
                                 ("memory", memory, lambda text: quantity(text) // 2**20)):
        text = annotations.get(ANNOTATION + "allocated-" + name)
        if text is None or read(text) != expected:
            wrong.append(f"allocated {name} {text} instead of {expected}")
    return wrong


def show(release, rows):
    heads = ["action", "job", "slurmctld", *SOURCES]
    table = [heads] + rows
    widths = [max(len(row[i]) for row in table) for i in range(len(heads))]
    print(f"\nSlurm {release}: ok, or what is wrong")
    for row in table:
        print("  ".join(cell.ljust(width) for cell, width in zip(row, widths)).rstrip())


def one_round(fleet, action, marker):
    """The rows of the table, and what is wrong."""
    slurm = fleet.slurm
    reset(slurm)
    start_jobs(slurm)
    end_jobs(slurm)
    act(slurm, action, marker)
    wait_quiet(slurm, action)
    seen, faults = fleet.look(("scontrol",), marker)
    truth = dump(slurm)
    fleet.publish()
    nodes, more = fleet.look(("operator",), marker)
    seen.update(nodes)
    faults.extend(more)
    rows = []
    for job, (words, cpus, memory) in truth.items():
        row = [action, job, f"{'+'.join(words)} {cpus} {memory}M"]
        for source in SOURCES:
            wrong = compare(seen[job, source], (words, cpus, memory), marker)
            row.append(", ".join(wrong) or "ok")
            faults += [f"{' '.join(row[:3])} {source}: {one}" for one in wrong]
        rows.append(row)
    return rows, faults


@pytest.fixture(scope="module", name="fleet")
def fleet_of_release(slurm_root, own_slurm, rig_of):
    slurm = own_slurm(nodes=[*NODES.values(), HEAD], cpus=4, cluster_name="alps", root=slurm_root)
    fleet = Fleet(slurm, rig_of)
    try:
        fleet.start()
        yield fleet
    finally:
        fleet.end()
        show(".".join(map(str, slurm.release)), fleet.rows)


@pytest.mark.parametrize("action", ACTIONS)
def test_every_cell_is_true(fleet, action):
    fleet.rounds += 1
    rows, faults = one_round(fleet, action, f"r{fleet.rounds}")
    fleet.rows += rows
    assert not faults, "\n".join(faults)
