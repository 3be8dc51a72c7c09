"""What is published of {job} x {action} x {who ran sinfo before}, by each source, against a full dump
taken at the end. Prints a table; no cell may be wrong.

One Slurm node for each kind of job, and one daemon for each node and source. A round brings all
nodes into one (action, sinfo) while the daemons are stopped (SIGSTOP), and lets them look one group
after the other, because a full query of any of them refreshes what slurmctld tells the others:

1. `cli?`, `rest?`: daemons that make no full query. What they cannot know is Unknown, NotConfirmed.
2. `cli`, `rest`: daemons that may confirm.
3. the dump (scontrol show node), and then `feed`, whose reader makes full dumps itself.
"""
import concurrent.futures
import os
import re
import signal
import time

import pytest

from harness.api import condition, quantity
from harness.daemon import Slurmlet
from harness.rig import wait_until
from slurmcluster import states
from slurmcluster.processes import wait_for

NODES = {"none": "n1", "partial": "n2", "salloc": "n3", "between": "n5", "completing": "n6"}
HEAD = "n4"  # where the batch script of the job of two nodes runs
ACTIONS = ("none", "drain", "down", "fail", "resume", "reboot")
FIRST, SECOND = ("cli?", "rest?"), ("cli", "rest")
SOURCES = (*FIRST, *SECOND, "feed")
CORE = {"Idle": "IDLE", "Mixed": "MIXED", "Allocated": "ALLOCATED", "Completing": "COMPLETING",
        "Drain": "DRAIN", "Down": "DOWN", "Fail": "FAIL", "Maintenance": "MAINTENANCE",
        "NotResponding": "NOT_RESPONDING", "InvalidReg": "INVALID_REG"}
UNREADY = {"INVALID_REG", "FAIL", "NOT_RESPONDING", "DOWN", "POWERED_DOWN", "POWERING_DOWN",
           "POWERING_UP", "FUTURE"}
BASES = ("Idle", "Mixed", "Allocated", "Down")
ANNOTATION = "slurmlet.io/slurm-"
LOOK_SECONDS = 20  # for a group to show what it has asked; the machine may be busy


# -- the daemons -----------------------------------------------------------------------------


class Fleet:
    """The daemons of all nodes and sources, stopped but for the group that is to look."""

    def __init__(self, slurm, rig_of):
        self.slurm = slurm
        self.rigs = {(job, source): rig_of(slurm) for job in NODES for source in SOURCES}
        self.admin = next(iter(self.rigs.values())).admin
        self.feed_directory = slurm.layout.at("feed")
        self.reader = None
        self.names = {rig.name: key for key, rig in self.rigs.items()}
        for (job, source), rig in self.rigs.items():
            rig.configure(node={"readyFollows": "slurm"}, slurm=self._settings(job, source))

    def _settings(self, job, source):
        # Slower than a question, so that a busy machine does not make timeouts of answers.
        settings = {"nodeName": NODES[job], "pollInterval": "2s", "commandTimeout": "1900ms",
                    "staleAfter": "60s", "confirmInterval": "1s"}
        if source in FIRST:
            settings["confirmInterval"] = "24h"
        if source == "feed":
            return {**settings, "source": "feed", "feed": self.feed_directory}
        if source.startswith("rest"):
            return {**settings, "source": "rest", "binDir": "/nonexistent",
                    "restURL": f"unix:{self.slurm.layout.restd_socket}"}
        return {**settings, "source": "cli"}

    def start(self):
        arguments = ["feed", "--output", self.feed_directory, "--interval", "1s"]
        if self.slurm.bin_dir:
            arguments += ["--slurm-bin-dir", self.slurm.bin_dir]
        self.reader = Slurmlet(self.slurm.layout.at("reader"), arguments,
                               {"SLURM_CONF": str(self.slurm.conf_path)})
        for rig in self.rigs.values():
            rig.start(ready=False)
        for rig in self.rigs.values():
            rig.wait_known()
        self.pause()

    def end(self):
        self.go_on(SOURCES)
        for daemon in [self.reader, *(rig.daemon for rig in self.rigs.values())]:
            if daemon:
                daemon.kill()

    def _daemons(self, sources):
        found = [rig.daemon for (_, source), rig in self.rigs.items() if source in sources]
        return [one for one in (*found, self.reader if "feed" in sources else None) if one]

    def pause(self, sources=SOURCES):
        for daemon in self._daemons(sources):
            daemon.signal(signal.SIGSTOP)

    def go_on(self, sources):
        for daemon in self._daemons(sources):
            daemon.signal(signal.SIGCONT)

    def look(self, sources, marker):
        """Lets these daemons ask, until what they publish is of this round and stays; their Nodes,
        by (job, source)."""
        self.go_on(sources)
        wanted = {key for key in self.rigs if key[1] in sources}
        before, since, end = None, None, time.monotonic() + LOOK_SECONDS
        while True:
            nodes = self._nodes(wanted)
            now = {key: node["metadata"]["resourceVersion"] for key, node in nodes.items()}
            if now != before:
                before, since = now, time.monotonic()
            fresh = all(shows(node, marker) for node in nodes.values())
            # Metadata and status are written one after the other.
            settled = fresh and time.monotonic() - since > 0.5
            confirmed = sources == FIRST or not any(is_open(node) for node in nodes.values())
            if (settled and confirmed) or time.monotonic() > end:
                break
            time.sleep(0.05)
        self.pause(sources)
        return nodes

    def _nodes(self, wanted):
        items = self.admin.get("/api/v1/nodes")["items"]
        keys = {self.names.get(node["metadata"]["name"]): node for node in items}
        return {key: keys[key] for key in wanted}


def shows(node, marker):
    return node["metadata"]["annotations"].get(ANNOTATION + "features") == marker


def is_open(node):
    return any(one.get("reason") == "NotConfirmed" for one in node["status"]["conditions"])


# -- bringing Slurm there --------------------------------------------------------------------


def single_state(slurm, node):
    """Slurm's words by a query that refreshes nothing."""
    return slurm.sinfo("-h", "-N", "-n", node, "-O", "StateComplete:").strip()


def in_parallel(calls):
    with concurrent.futures.ThreadPoolExecutor(len(calls)) as pool:
        for done in [pool.submit(*call) for call in calls]:
            done.result()


def start_jobs(slurm):
    """Each node's job; nobody makes a full dump meanwhile. Returns their ids."""
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
        gone = action == "down" and any("completing" in shown[job] or spooled(slurm, NODES[job])
                                        for job in ("partial", "salloc", "between"))
        rebooting = action == "reboot" and "reboot_issued" not in shown["none"]
        silent = any("not_responding" in words for words in shown.values())
        if gone or silent or (rebooting and action == "reboot"):
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


def compare(node, truth, marker, may_be_open):
    """What is wrong with the Node, as sentences, and what it leaves open."""
    words, cpus, memory = truth
    wrong, left = [], []
    if not shows(node, marker):
        return ["has not asked since"], left

    def check(name, expected):
        found = condition(node, name)
        short = name.removeprefix("SlurmNodeState")
        if found.get("status") == "Unknown" and found.get("reason") == "NotConfirmed":
            left.append(short)
        elif found.get("status") != expected:
            wrong.append(f"{short}={found.get('status')} ({found.get('reason')})")
    for name, word in CORE.items():
        check("SlurmNodeState" + name, "True" if word in words else "False")
    check("Ready", "False" if UNREADY & set(words) else "True")
    busy = bool({"MIXED", "ALLOCATED", "COMPLETING"} & set(words))
    drain = condition(node, "SlurmNodeStateDrain").get("reason")
    if drain == "JobsUnknown":
        left.append("Jobs")
    elif drain != ("NotDrained" if "DRAIN" not in words else "Draining" if busy else "Drained"):
        wrong.append(f"drain is {drain}")
    annotations = node["metadata"]["annotations"]
    for name, expected, read in (("cpus", cpus, int),
                                 ("memory", memory, lambda text: quantity(text) // 2**20)):
        text = annotations.get(ANNOTATION + "allocated-" + name)
        if text is None:
            left.append(name)
        elif read(text) != expected:
            wrong.append(f"allocated {name} {text} instead of {expected}")
    if left and not may_be_open:
        wrong.append("open: " + " ".join(left))
    if not set(left) <= {*BASES, "Ready", "Jobs", "cpus", "memory"}:
        wrong.append("cannot be open: " + " ".join(left))
    return wrong, left


def show(release, rows):
    heads = ["action", "sinfo", "job", "full dump", *SOURCES]
    table = [heads] + rows
    widths = [max(len(row[i]) for row in table) for i in range(len(heads))]
    print(f"\nSlurm {release}: ok, or what is Unknown (NotConfirmed), or !what is wrong")
    for row in table:
        print("  ".join(cell.ljust(width) for cell, width in zip(row, widths)).rstrip())


def one_round(fleet, action, somebody, marker):
    """The rows of the table, and what is wrong."""
    slurm = fleet.slurm
    reset(slurm)
    start_jobs(slurm)
    if somebody:
        slurm.sinfo()
    end_jobs(slurm)
    act(slurm, action, marker)
    wait_quiet(slurm, action)
    seen = fleet.look(FIRST, marker)
    seen.update(fleet.look(SECOND, marker))
    truth = dump(slurm)
    seen.update(fleet.look(("feed",), marker))
    rows, faults = [], []
    for job, (words, cpus, memory) in truth.items():
        row = [action, "yes" if somebody else "no", job, f"{'+'.join(words)} {cpus} {memory}M"]
        for source in SOURCES:
            wrong, left = compare(seen[job, source], (words, cpus, memory), marker,
                                  source in FIRST)
            row.append("!" + ", ".join(wrong) if wrong else ",".join(left) or "ok")
            faults += [f"{' '.join(row[:4])} {source}: {one}" for one in wrong]
        rows.append(row)
    return rows, faults


@pytest.fixture(scope="module", params=["22.05", "24.11"], name="fleet")
def fleet_of_release(request, own_slurm, rig_of):
    root = "" if request.param == "22.05" else request.getfixturevalue("slurm_24_11")
    slurm = own_slurm(nodes=[*NODES.values(), HEAD], cpus=4, cluster_name="alps", root=root,
                      slurmrestd=True)
    fleet = Fleet(slurm, rig_of)
    try:
        fleet.start()
        yield fleet
    finally:
        fleet.end()


def test_every_cell_is_true(fleet):
    rows, faults = [], []
    began = time.monotonic()
    try:
        for number, (action, somebody) in enumerate(
                (action, somebody) for action in ACTIONS for somebody in (False, True)):
            more, wrong = one_round(fleet, action, somebody, f"r{number}")
            rows += more
            faults += wrong
    finally:
        show(".".join(map(str, fleet.slurm.release)), rows)
        print(f"{time.monotonic() - began:.0f} s")
    assert not faults, "\n".join(faults)
