#!/usr/bin/python3
"""./dev bench operator: how soon slurmlet-operator does what a cordon or the deletion of a Machine asks for.

  bench/operator/cordons.py [--nodes 1000] [--slow-cordons 100] [--machines 20]

A real API server with --nodes Nodes (no daemon: they are not needed), a real slurmctld with as many nodes, one operator
with the rights of deploy/operator and its default settings:

  at once    all Nodes are cordoned side by side: from the last cordon to the last drain, and whether whoever was
             cordoned first is drained first. Then all are uncordoned.
  slow       each scontrol takes 2 s longer: from --slow-cordons cordons to the last drain, and how long a Node whose
             Slurm node is not drained yet is without an Event
  machines   --machines idle Machines are deleted, one after the other: from the drain to the removal of the hook; then
             as many whose hook cannot be removed at first, as somebody else has just written the Machine (409)

When Slurm nodes were drained is what the operator's own `scontrol update` says: it ends when slurmctld has done it.
Exit code 1 where a goal is missed.
"""
import argparse
import concurrent.futures
import os
import pathlib
import re
import shlex
import shutil
import statistics
import sys
import tempfile
import threading
import time
import types
import urllib.request

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
sys.path[:0] = [str(ROOT / "test/lab"), str(ROOT / "bench")]
from harness.api import node_path  # noqa: E402
from harness.control_plane import ControlPlane  # noqa: E402
from harness.operator_site import HOOK, MACHINES, Machines, Site, operator_account  # noqa: E402
from harness.programs import free_port  # noqa: E402
from harness.rig import wait_until  # noqa: E402
from harness.slow_front import SlowFront  # noqa: E402
from slurmctld_load import cluster_of, node_name  # noqa: E402

SLOW = 2  # seconds
EVENTS = "/api/v1/namespaces/default/events"
SIDE_BY_SIDE = 16  # requests of ours
# In bash: dash knows no time of day.
SCRIPT = """#!/bin/bash
began=$EPOCHREALTIME
sleep {seconds}
{program} "$@"
code=$?
echo "$began $EPOCHREALTIME $code $*" >> {log}
exit $code
"""


class Programs:
    """Slurm's commands in a directory of their own; of scontrol is noted when it did what."""

    def __init__(self, directory, seconds):
        self.directory, self._log = directory, directory / "log"
        directory.mkdir()
        self._log.touch()
        for name in ("scontrol", "squeue", "sinfo", "scancel", "sacctmgr"):
            if program := shutil.which(name):
                (directory / name).symlink_to(program)
        (directory / "scontrol").unlink()
        script = directory / "scontrol"
        script.write_text(SCRIPT.format(seconds=seconds, program=shutil.which("scontrol"),
                                        log=shlex.quote(str(self._log))))
        script.chmod(0o755)

    def calls(self, since=0.0):
        """[(began, ended, arguments)] of those that succeeded."""
        lines = [line.split(" ", 3) for line in self._log.read_text().splitlines()]
        return sorted((float(began), float(ended), rest) for began, ended, code, rest in lines
                      if code == "0" and float(began) >= since)

    def updates(self, state, since=0.0):
        """[(began, ended, nodes)] of `scontrol update … state=STATE`."""
        found = [(began, ended, re.search(rf"update nodename=(\S+) state={state}\b", rest))
                 for began, ended, rest in self.calls(since)]
        return [(began, ended, match[1].split(",")) for began, ended, match in found if match]

    def changed(self, state, since=0.0):
        """{node: when}"""
        return {name: ended for _, ended, names in self.updates(state, since) for name in names}


class Rows:
    """The table."""

    def __init__(self):
        self.missed = 0
        print(f"{os.cpu_count()} CPUs, on which {os.getloadavg()[0]:.1f} programs ran in the last minute\n"
              f"{'':76} {'goal':>8} {'seen':>9}", flush=True)

    def add(self, what, seen, goal=None, unit="s"):
        """`goal`: the most."""
        misses = goal is not None and seen > goal
        self.missed += misses
        shown = f"{seen:.2f}" if isinstance(seen, float) else seen
        print(f"{what:76} {'' if goal is None else f'≤ {goal}':>8} {shown:>9} {unit}{'   missed' if misses else ''}",
              flush=True)


def side_by_side(do, names):
    with concurrent.futures.ThreadPoolExecutor(SIDE_BY_SIDE) as pool:
        return list(pool.map(do, names))


def metric(port, name):
    """Of a series, with its labels."""
    text = urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=10).read().decode()
    return next((float(line.split()[-1]) for line in text.splitlines() if line.startswith(name + " ")), 0.0)


def cordon_all(site, names, on=True):
    """[(when it was done, name)] in the order of the API server."""
    def cordon(name):
        answer = site.api.merge(node_path(name), {"spec": {"unschedulable": on}})
        return int(answer["metadata"]["resourceVersion"]), time.time(), name
    return [(when, name) for _, when, name in sorted(side_by_side(cordon, names))]


def wait_changed(programs, state, names, since, timeout):
    """{node: when}, once all have been."""
    wait_until(lambda: programs.changed(state, since).keys() >= set(names), timeout,
               lambda: f"state={state} of {len(set(names) - programs.changed(state, since).keys())} more nodes")
    return programs.changed(state, since)


def overtaken(cordons, drained):
    """Of those that were drained after one that was cordoned later: how much later, in seconds."""
    found, first, latest_cordon = [], float("inf"), 0.0
    for when, name in reversed(cordons):
        if drained[name] > first:
            found.append(max(0.0, latest_cordon - when))
        elif drained[name] < first:
            first, latest_cordon = drained[name], when
    return found


class EventTimes:
    """When the first Event about each Node came, as a context. Those of before are deleted."""

    def __init__(self, api, reason):
        self._api, self._reason = api, reason
        self.first, self._ends = {}, False
        self._thread = threading.Thread(target=api.wait, args=(EVENTS, self._take, 600), daemon=True)

    def _take(self, event, kind):
        if kind == "ADDED" and event["reason"] == self._reason:
            self.first.setdefault(event["involvedObject"]["name"], time.time())
        return self._ends

    def __enter__(self):
        self._api.delete(EVENTS)
        self._thread.start()
        return self

    def __exit__(self, *_):
        self._ends = True
        self._api.create(EVENTS, {  # wakes it
            "metadata": {"generateName": "end-"}, "reason": "End", "involvedObject": {"namespace": "default"}})
        self._thread.join(10)


class Conflicts(SlowFront):
    """The way of `account` to the API server; somebody writes a Machine just before the operator does, once for each of
    `machines`."""

    def __init__(self, plane, account, directory):
        directory.mkdir()
        client = types.SimpleNamespace(plane=plane, directory=directory, kubeconfig=account.kubeconfig(directory))
        super().__init__(client)
        self._kubeconfig_path, self._admin = client.kubeconfig, plane.admin
        self.machines = set()

    def kubeconfig(self, _):
        return self._kubeconfig_path

    def wait_of(self, request):
        method, path = request.decode(errors="replace").split(" ", 2)[:2]
        name = path.partition("?")[0].rpartition("/")[2]
        if method == "PATCH" and "/machines/" in path and name in self.machines:
            self.machines.discard(name)
            self._admin.merge(f"{MACHINES}/{name}", {"metadata": {"labels": {"written-by": "somebody"}}})
        return 0


class Bench:
    def __init__(self, plane, slurm, directory, rows):
        self.plane, self.slurm, self.directory, self.rows = plane, slurm, directory, rows
        self.account = operator_account(plane)
        self.port = 0

    def add_nodes(self, count):
        self.nodes = [node_name(index) for index in range(1, count + 1)]
        side_by_side(Site(self.plane, self.slurm, self.account, self.directory).add, self.nodes)

    def start(self, name, seconds, account=None):
        """An operator that has nothing to do now; returns its Site and its Slurm commands."""
        directory = self.directory / name
        directory.mkdir()
        site = Site(self.plane, self.slurm, account or self.account, directory)
        programs, self.port = Programs(directory / "bin", seconds), free_port()
        site.start("--interval=auto", f"--slurm-bin-dir={programs.directory}", f"--metrics-address=127.0.0.1:{self.port}")
        wait_until(lambda: "this operator leads" in site.operators[0].output(), what="the lead")
        writes = 'slurmlet_operator_record_writes_total{result="success"}'
        wait_until(lambda: metric(self.port, "slurmlet_operator_dumps_total{result=\"success\"}") > 0, what="a dump")
        last = -1
        while last != (last := metric(self.port, writes)):
            time.sleep(3)
        return site, programs

    def at_once(self):
        site, programs = self.start("at-once", 0)
        try:
            began = time.time()
            cordons = cordon_all(site, self.nodes)
            drained = wait_changed(programs, "drain", self.nodes, began, 120)
            last = max(when for when, _ in cordons)
            updates = programs.updates("drain", began)
            late = overtaken(cordons, drained)
            count = len(self.nodes)
            self.rows.add(f"{count} Nodes cordoned within", last - began)
            self.rows.add("the last cordon → the last drain", max(drained.values()) - last, 10)
            self.rows.add("a cordon → its drain, median", statistics.median(drained[n] - when for when, n in cordons))
            self.rows.add("a cordon → its drain, longest", max(drained[n] - when for when, n in cordons))
            self.rows.add("drained after a Node that was cordoned later", len(late), unit="Nodes")
            self.rows.add("    how much later, longest", max(late, default=0.0), 1)
            self.rows.add("scontrol update", len(updates), unit="commands")
            self.profile(programs, began)
            self.check(self.nodes, "DRAIN")
            began = time.time()
            last = max(when for when, _ in cordon_all(site, self.nodes, False))
            undrained = wait_changed(programs, "undrain", self.nodes, began, 120)
            self.rows.add("all uncordoned: the last uncordon → the last undrain", max(undrained.values()) - last)
            self.rows.add("scontrol update", len(programs.updates("undrain", began)), unit="commands")
            self.profile(programs, began)
        except BaseException:
            site.print_logs()
            raise
        finally:
            site.end()

    def profile(self, programs, since):
        """Where the time goes."""
        for what in ("show node", "update"):
            took = [ended - began for began, ended, rest in programs.calls(since) if what in rest]
            print(f"    {len(took)} × scontrol {what}, {sum(took):.2f} s in all, longest {max(took, default=0):.2f} s")

    def check(self, names, state):
        shown = self.slurm.command("scontrol", "--oneliner", "show", "node").stdout
        states = dict(re.findall(r"^NodeName=(\S+) .*? State=(\S+)", shown, re.MULTILINE))
        assert all(state in states[name] for name in names), "slurmctld's answer is not what was changed"

    def slow(self, count):
        names = self.nodes[:count]
        site, programs = self.start("slow", SLOW)
        try:
            with EventTimes(site.api, "SlurmNodeNotChanged") as events:
                began = time.time()
                cordons = cordon_all(site, names)
                drained = wait_changed(programs, "drain", names, began, 120)
                time.sleep(2)
            last = max(when for when, _ in cordons)
            waits = [min(drained[name], events.first.get(name, drained[name])) - when for when, name in cordons]
            late = [when - drained[name] for name, when in events.first.items() if when > drained[name]]
            self.rows.add(f"slurmctld takes {SLOW} s: {count} cordons → the last drain", max(drained.values()) - last, 30)
            self.rows.add("a Node waits without an Event, longest", max(waits), 5)
            self.rows.add("Nodes with an Event that their Slurm node is not changed yet", len(events.first), unit="Nodes")
            self.rows.add("    of these, after it was", len(late), unit="Nodes")
            self.rows.add("scontrol update", len(programs.updates("drain", began)), unit="commands")
            self.profile(programs, began)
        except BaseException:
            site.print_logs()
            raise
        finally:
            site.end()

    def machines(self, count):
        with Conflicts(self.plane, self.account, self.directory / "front") as front:
            machines = Machines(self.plane)
            site, programs = self.start("machines", 0, front)
            try:
                for what, name in (("idle Machine", "m"), ("its hook's removal fails once with 409", "c")):
                    nodes = self.nodes[-count:] if name == "m" else self.nodes[-2 * count:-count]
                    names = {f"{name}{index}": node for index, node in enumerate(nodes)}
                    front.machines = set(names) if name == "c" else set()
                    took = [self.release(machines, programs, one, node) for one, node in names.items()]
                    assert not front.machines
                    self.rows.add(f"{what}: its drain → the hook's removal, median of {count}", statistics.median(took))
                    self.rows.add("    longest", max(took), 5)
                failures = metric(self.port, 'slurmlet_operator_machine_actions_total{action="failure"}')
                self.rows.add('slurmlet_operator_machine_actions_total{action="failure"}', int(failures), 0, "")
            except BaseException:
                site.print_logs()
                raise
            finally:
                site.end()

    def release(self, machines, programs, name, node):
        machines.add(name, node, addresses=[("Hostname", node)])
        began = time.time()
        machines.delete(name)
        self.plane.admin.wait(MACHINES, lambda one, _: HOOK not in one["metadata"].get("annotations", {}), 60,
                              "metadata.name=" + name)
        released = time.time()
        drained = wait_changed(programs, "drain", [node], began, 10)
        machines.finish(name)
        return released - drained[node]


def make_idle(slurm, names):
    """A node that has never registered cannot be undrained: `state=resume` makes it IDLE, as if it had."""
    for state in (["state=down", "reason=bench"], ["state=resume"]):
        slurm.command("scontrol", "update", "nodename=" + ",".join(names), *state)


def run(options, directory):
    rows = Rows()
    slurm = cluster_of(str(directory / "sl"), options.nodes + 1, 1, own_hosts=True)
    # Without its controllers: they would write to each Node, as none has a daemon.
    with slurm, ControlPlane(directory / "cp") as plane:
        bench = Bench(plane, slurm, directory, rows)
        plane.ctl("stop", "kube-controller-manager")
        bench.add_nodes(options.nodes)
        make_idle(slurm, bench.nodes)
        bench.at_once()
        bench.slow(options.slow_cordons)
        bench.machines(options.machines)
    return rows.missed


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--nodes", type=int, default=1000)
    parser.add_argument("--slow-cordons", type=int, default=100)
    parser.add_argument("--machines", type=int, default=20)
    options = parser.parse_args()
    if max(options.slow_cordons, 2 * options.machines) > options.nodes:
        parser.error("--nodes must be at least --slow-cordons and twice --machines")
    with tempfile.TemporaryDirectory(prefix="op", dir="/tmp") as directory:
        pathlib.Path(directory).chmod(0o755)
        return 1 if run(options, pathlib.Path(directory)) else 0


if __name__ == "__main__":
    sys.exit(main())
