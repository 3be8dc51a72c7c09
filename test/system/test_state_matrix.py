"""What is published of {job} x {action} x {who ran sinfo before}, by each source, against a full dump
taken at the end. Prints a table; no cell may be wrong.

One Slurm node for each kind of job, and one daemon for each node and source. A round brings all
nodes into one (action, sinfo) while the daemons are stopped (SIGSTOP), and lets them look one group
after the other, because a full query of any of them refreshes what slurmctld tells the others:

1. `cli?`, `rest?`: daemons that make no full query, but for one a day, after which the round is
   played again. What they cannot know is Unknown, NotConfirmed, and nothing else: may_be_open() has
   what the source leaves open.
2. `cli`, `rest`: daemons that may confirm. Nothing is open, for longer than it takes from one full
   query to the next: in between they have answers about one node only.
3. the dump (scontrol show node), and then `operator`, whose record is a line of another dump.
"""
import concurrent.futures
import http.client
import json
import os
import re
import signal
import socket
import time

import pytest

from harness.api import condition, quantity
from harness.rig import wait_until
from slurmcluster import states
from slurmcluster.processes import wait_for

NODES = {"none": "n1", "partial": "n2", "salloc": "n3", "between": "n5", "completing": "n6"}
HEAD = "n4"  # where the batch script of the job of two nodes runs
ACTIONS = ("none", "drain", "down", "fail", "resume", "reboot")
FIRST, SECOND = ("cli?", "rest?"), ("cli", "rest")
SOURCES = (*FIRST, *SECOND, "operator")
CORE = {"Idle": "IDLE", "Mixed": "MIXED", "Allocated": "ALLOCATED", "Completing": "COMPLETING",
        "Drain": "DRAIN", "Down": "DOWN", "Fail": "FAIL", "Maintenance": "MAINTENANCE",
        "NotResponding": "NOT_RESPONDING", "InvalidReg": "INVALID_REG"}
UNREADY = {"INVALID_REG", "FAIL", "NOT_RESPONDING", "DOWN", "POWERED_DOWN", "POWERING_DOWN",
           "POWERING_UP", "FUTURE"}
HINTS_AT_DOWN = {"DRAIN", "FAIL", "NOT_RESPONDING", "INVALID_REG", "REBOOT_ISSUED",
                 "POWERING_DOWN", "POWERED_DOWN", "POWERING_UP"}
ANNOTATION = "slurmlet.io/slurm-"
LOOK_SECONDS = 40  # for a group to show what it has asked; the machine may be busy
POLL_SECONDS, CONFIRM_SECONDS = 2, 5


# -- the daemons -----------------------------------------------------------------------------


class Fleet:
    """The daemons of all nodes and sources, stopped but for the group that is to look."""

    def __init__(self, slurm, rig_of):
        self.slurm = slurm
        self.rigs = {(job, source): rig_of(slurm) for job in NODES for source in SOURCES}
        self.admin = next(iter(self.rigs.values())).admin
        self.names = {rig.name: key for key, rig in self.rigs.items()}
        self.rounds, self.rows, self.played_again = 0, [], []
        for (job, source), rig in self.rigs.items():
            rig.configure(node={"readyFollows": "slurm"}, slurm=self._settings(job, source))

    def _settings(self, job, source):
        # Slower than a question, so that a busy machine does not make timeouts of answers.
        settings = {"nodeName": NODES[job], "pollInterval": f"{POLL_SECONDS}s",
                    "commandTimeout": "1900ms", "staleAfter": "60s",
                    "confirmInterval": f"{CONFIRM_SECONDS}s"}
        if source in FIRST:
            settings["confirmInterval"] = "24h"
        if source == "operator":
            return {**settings, "source": "operator", "binDir": "/nonexistent"}
        if source.startswith("rest"):
            return {**settings, "source": "rest", "binDir": "/nonexistent",
                    "restURL": f"unix:{self.slurm.layout.restd_socket}"}
        return {**settings, "source": "cli"}

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
        calm = CONFIRM_SECONDS + 0.5 if sources == SECOND else 0.5
        while True:
            nodes = self._nodes(wanted)
            now = {key: published(node) for key, node in nodes.items()}
            if now != before:
                last = [change for key in nodes if key in earlier
                        for change in changes(key, earlier[key], nodes[key])] or last
                before, since, earlier = now, time.monotonic(), nodes
            fresh = all(shows(node, marker) for node in nodes.values())
            settled = fresh and time.monotonic() - since > calm
            confirmed = sources == FIRST or not any(is_open(node) for node in nodes.values())
            at_rest = settled and confirmed
            if at_rest or time.monotonic() > end:
                break
            time.sleep(0.15)
        self.pause(sources)
        return nodes, [] if at_rest else [
            f"{marker}: {sources} do not come to rest (fresh: {fresh}, confirmed: {confirmed}); written "
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


def told_by_sinfo(slurm, node):
    """Base state and flags, whether there is a Reason, and whether the base state is slurmctld's own,
    which no client has put MIXED over."""
    state, reason = slurm.sinfo("-h", "-N", "-n", node, "-O", "StateComplete:|,Reason:").split("|")
    return set(state.strip().upper().split("+")), reason.strip() != "none", False


def told_by_slurmrestd(slurm, node):
    """The same of slurmrestd's answer. It is not that of sinfo: before 23.11, sinfo shows no MIXED
    beside DRAIN."""
    path = "v0.0.41/node/{}?flags=ALL&flags=DETAIL" if is_base(slurm) else "v0.0.38/node/{}"
    with socket.socket(socket.AF_UNIX) as client:
        client.connect(slurm.layout.restd_socket)
        client.sendall(f"GET /slurm/{path.format(node)} HTTP/1.0\r\n\r\n".encode())
        answer = http.client.HTTPResponse(client)
        answer.begin()
        found, = json.loads(answer.read())["nodes"]
    state = found["state"] if isinstance(found["state"], list) else [found["state"]]
    words = {word.upper() for word in [*state, *found.get("state_flags", [])]}
    return words, found["reason"] != "", is_base(slurm)


def told_by_each(slurm):
    return {source: {job: ask(slurm, node) for job, node in NODES.items()}
            for source, ask in zip(FIRST, (told_by_sinfo, told_by_slurmrestd))}


def is_base(slurm):
    return tuple(slurm.release) >= (23, 11)


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


def may_be_open(source, told, has_steps):
    """What the answer about one node alone leaves open; `told` as told_by_sinfo() has it."""
    if source not in FIRST:
        return set()
    words, has_reason, is_base = told
    if not {"MIXED", "ALLOCATED"} & words:
        # Until the processes of a job that completes are gone, as seen on the machine.
        return {"cpus", "memory"} if "COMPLETING" in words else set()
    found = {"Mixed", "Allocated", "cpus", "memory"}
    if "MIXED" not in words or is_base:
        return found
    if not has_steps or "COMPLETING" in words:
        found |= {"Idle"}
    if not has_steps or has_reason or words & HINTS_AT_DOWN:
        found |= {"Down", "Ready"}
    if not has_steps and "COMPLETING" not in words:
        found |= {"Jobs"}
    return found


def compare(node, truth, marker, may_be):
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
    if not set(left) <= may_be:
        wrong.append("open: " + " ".join(sorted(set(left) - may_be)))
    return wrong, left


def show(release, rows):
    heads = ["action", "sinfo", "job", "full dump", *SOURCES]
    table = [heads] + rows
    widths = [max(len(row[i]) for row in table) for i in range(len(heads))]
    print(f"\nSlurm {release}: ok, or what is Unknown (NotConfirmed), or !what is wrong")
    for row in table:
        print("  ".join(cell.ljust(width) for cell, width in zip(row, widths)).rstrip())


def one_round(fleet, action, somebody, marker):
    """The rows of the table, and what is wrong; None if somebody made a full query meanwhile."""
    slurm = fleet.slurm
    reset(slurm)
    start_jobs(slurm)
    if somebody:
        slurm.sinfo()
    end_jobs(slurm)
    act(slurm, action, marker)
    wait_quiet(slurm, action)
    told = told_by_each(slurm)
    steps = {job: bool(spooled(slurm, node)) for job, node in NODES.items()}
    seen, faults = fleet.look(FIRST, marker)
    if told_by_each(slurm) != told:
        return None
    rows = []

    def look(sources):
        nodes, wrong = fleet.look(sources, marker)
        seen.update(nodes)
        faults.extend(wrong)
    look(SECOND)
    truth = dump(slurm)
    fleet.publish()
    look(("operator",))
    for job, (words, cpus, memory) in truth.items():
        row = [action, "yes" if somebody else "no", job, f"{'+'.join(words)} {cpus} {memory}M"]
        for source in SOURCES:
            may_be = may_be_open(source, told.get(source, {}).get(job), steps[job])
            wrong, left = compare(seen[job, source], (words, cpus, memory), marker, may_be)
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
        show(".".join(map(str, slurm.release)), fleet.rows)
        print("played again:", fleet.played_again)


@pytest.mark.parametrize("action, somebody", [(action, somebody) for action in ACTIONS
                                              for somebody in (False, True)])
def test_every_cell_is_true(fleet, action, somebody):
    fleet.rounds += 1
    played = one_round(fleet, action, somebody, f"r{fleet.rounds}")
    if not played:
        fleet.played_again.append((action, somebody))
        # By chance it is one daemon's time of the day.
        assert len(fleet.played_again) < 2, f"somebody makes full queries before anybody may: {fleet.played_again}"
        played = one_round(fleet, action, somebody, f"r{fleet.rounds}again")
    assert played, "somebody makes full queries before anybody may"
    rows, faults = played
    fleet.rows += rows
    assert not faults, "\n".join(faults)
