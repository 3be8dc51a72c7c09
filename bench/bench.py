#!/usr/bin/python3
"""./dev bench: what one idle node costs, side by side in one run against one API server.

  slurmlet          with a real slurmd and slurmctld mirrored; the portable program where ./dev portable
                    has built it, and then beside it the one that links the distribution's libraries
  virtual-kubelet   bench/virtualkubelet: the leanest program on that library that registers the
                    same zero-pod node
  lease loop        bench/lease_loop.cpp: one libcurl handle that renews one Lease, the floor

Memory and context switches (of the threads that stay) come from /proc/PID/{status,task/*/status},
CPU time from the process's clock (clock_getcpuclockid, ended threads too) plus, for slurmlet, what its
ended children used (getrusage, published as a metric), requests from the API server's audit log.
"""
import argparse
import collections
import json
import os
import pathlib
import re
import shutil
import socket
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT / "test/lab"), str(ROOT / "bench")]
from cpu_clock import cpu_seconds  # noqa: E402
from harness.api import wait_condition  # noqa: E402
from harness.control_plane import ControlPlane  # noqa: E402
from harness.daemon import BINARY, Slurmlet  # noqa: E402
from harness.shakers import Shakers  # noqa: E402
from slurmcluster import SlurmCluster  # noqa: E402

# What is measured of ours: {column: program}; the first one's figures are the product's.
PORTABLE = ROOT / "build/portable/build-amd64/slurmlet"
OURS = {"slurmlet": PORTABLE, "distribution": BINARY} if PORTABLE.exists() else {"slurmlet": BINARY}

BUDGETS = [  # key, title, unit, budget of slurmlet
    ("rss", "RSS", "MB", 12), ("private", "private (RssAnon)", "MB", 1.5),
    ("switches", "context switches", "/s", 0.5), ("own_cpu", "CPU", "ms", 8),
    ("cpu", "CPU incl. children", "ms", 12), ("threads", "threads", "", 6),
    ("ready", "start → Ready", "s", "virtual-kubelet's"),
    ("killed", "slurmd killed → SlurmdReady=False", "s", 1),
    ("flood", "CPU in a flood of handshakes", "% of a core", 2), ("writes", "API writes", "/h", 372),
    ("reads", "API reads (GET, LIST, WATCH)", "/h", 0), ("binary", "stripped binary", "MB", 6)]


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


def status_field(path, name):
    match = re.search(rf"^{name}:\s+(\d+)", path.read_text(), re.M)
    return int(match[1]) if match else 0


def approve_serving_certificates(plane, count):
    """As a cluster does: a node whose request is pending keeps a third watch open."""
    deadline = time.monotonic() + 20
    while len(requests := plane.kubectl_output("get", "csr", "-o", "name").split()) < count:
        if time.monotonic() > deadline:
            sys.exit("slurmlet has requested no serving certificate")
        time.sleep(0.2)
    plane.kubectl_output("certificate", "approve", *requests)


def children_cpu_ms(plane, column):
    """From the daemon's own metrics, asked for through the API server."""
    text = plane.kubectl_output("get", "--raw", f"/api/v1/nodes/bench-{column}/proxy/metrics")
    match = re.search(r"^slurmlet_children_cpu_seconds_total ([\d.e+-]+)", text, re.M)
    return float(match[1]) * 1000


class Sample:
    """One reading of a process."""

    def __init__(self, pid):
        proc = pathlib.Path(f"/proc/{pid}")
        tasks = list((proc / "task").iterdir())
        self.rss = status_field(proc / "status", "VmRSS") / 1024
        self.private = status_field(proc / "status", "RssAnon") / 1024
        self.threads = len(tasks)
        self.switches = sum(status_field(t / "status", "voluntary_ctxt_switches") +
                            status_field(t / "status", "nonvoluntary_ctxt_switches") for t in tasks)
        self.cpu_ms = cpu_seconds(pid) * 1e3


def audit_counts(path, offset):
    """{user: Counter of verbs} since a byte offset; a watch counts when it is opened."""
    counts = collections.defaultdict(collections.Counter)
    with open(path, "rb") as log:
        log.seek(offset)
        for line in log:
            event = json.loads(line)
            # A watch is logged when it is answered and when it ends; count its beginning.
            stage = "ResponseStarted" if event["verb"] == "watch" else "ResponseComplete"
            if event["stage"] == stage:
                counts[event["user"]["username"]][event["verb"]] += 1
    return counts


def stripped_size(binary):
    with tempfile.NamedTemporaryFile() as copy:
        shutil.copyfile(binary, copy.name)
        subprocess.run(["strip", copy.name], check=True)
        return os.path.getsize(copy.name) / 1e6


def per_hour(counter, verbs, seconds):
    return sum(counter[v] for v in verbs) * 3600 / seconds


class Bench:
    def __init__(self, work, seconds, settle):
        self.work, self.seconds, self.settle = work, seconds, settle
        self.results = {**{column: {} for column in OURS}, "virtual-kubelet": {}, "lease loop": {}}
        self.processes = {}
        self.ports = {}

    def start_all(self, plane, slurm):
        for column, program in OURS.items():
            self.start_slurmlet(plane, slurm, column, program)
        approve_serving_certificates(plane, len(OURS))
        self.start_virtual_kubelet(plane)
        self.start_lease_loop(plane)

    def start_slurmlet(self, plane, slurm, column, program):
        # In a directory of its own, as on a node: beside the API server's audit log every line of
        # that log would be an event of the directory.
        work, name, port = self.work / column, f"bench-{column}", free_port()
        (work / "etc").mkdir(parents=True)
        kubeconfig = shutil.copy(plane.node_kubeconfig(name), work / "etc")
        arguments = ["--kubeconfig", kubeconfig, "--nodename", name, "--slurm-node", slurm.nodes[0],
                     "--state-dir", work / "state", "--port", str(port), "--healthz-port", str(free_port())]
        # The environment that systemd/slurmlet.service sets.
        environment = dict(line.split("=", 2)[1:] for line in
                           (ROOT / "systemd/slurmlet.service").read_text().splitlines()
                           if line.startswith("Environment="))
        environment["SLURM_CONF"] = str(slurm.conf_path)
        began = time.monotonic()
        daemon = Slurmlet(work / "daemon", arguments, environment, program=program)
        wait_condition(plane.admin, name, "Ready", "True", 30)
        self.results[column]["ready"] = time.monotonic() - began
        self.processes[column], self.ports[column] = daemon.process, port
        self.results[column]["binary"] = stripped_size(program)

    def start_virtual_kubelet(self, plane):
        binary = ROOT / "build/bench/virtualkubelet"
        kubeconfig = plane.node_kubeconfig("bench-vk")
        log = open(self.work / "vk.log", "ab")
        began = time.monotonic()
        process = subprocess.Popen([binary, "--kubeconfig", kubeconfig, "--nodename", "bench-vk"],
                                   stdout=log, stderr=log)
        self.processes["virtual-kubelet"] = process
        wait_condition(plane.admin, "bench-vk", "Ready", "True", 60)
        self.results["virtual-kubelet"]["ready"] = time.monotonic() - began
        self.results["virtual-kubelet"]["binary"] = stripped_size(binary)

    def start_lease_loop(self, plane):
        binary = ROOT / "build/release/lease_loop"
        kubeconfig = plane.node_kubeconfig("bench-lease", "--embed=false")
        log = open(self.work / "lease.log", "ab")
        self.processes["lease loop"] = subprocess.Popen(
            [binary, f"https://{plane.admin.host}:{plane.admin.port}",
             plane.directory / "pki/ca.crt", f"{kubeconfig}.crt", f"{kubeconfig}.key",
             "bench-lease"], stdout=log, stderr=log)
        self.results["lease loop"]["binary"] = stripped_size(binary)

    def sample_all(self):
        return {name: Sample(process.pid) for name, process in self.processes.items()}

    def measure(self, plane):
        print(f"letting all settle for {self.settle} s, then {self.seconds} s of steady state …",
              flush=True)
        time.sleep(self.settle)  # a measurement over time is a wait for time, not for an event
        audit = plane.directory / "audit.log"
        # Being asked for metrics costs the daemon something too: outside the window.
        children = {column: children_cpu_ms(plane, column) for column in OURS}
        time.sleep(3)
        offset = audit.stat().st_size
        before, began = self.sample_all(), time.monotonic()
        time.sleep(self.seconds)
        after, took = self.sample_all(), time.monotonic() - began
        children = {column: children_cpu_ms(plane, column) - then for column, then in children.items()}
        counts = audit_counts(audit, offset)
        users = {**{column: f"system:node:bench-{column}" for column in OURS},
                 "virtual-kubelet": "system:node:bench-vk", "lease loop": "system:node:bench-lease"}
        for name, result in self.results.items():
            old, new, verbs = before[name], after[name], counts[users[name]]
            result.update(
                rss=new.rss, private=new.private, threads=new.threads,
                switches=(new.switches - old.switches) / took,
                cpu=new.cpu_ms - old.cpu_ms + children.get(name, 0),
                writes=per_hour(verbs, ("create", "update", "patch", "delete"), took),
                reads=per_hour(verbs, ("get", "list", "watch"), took), verbs=dict(verbs),
                own_cpu=new.cpu_ms - old.cpu_ms)

    def flood(self):
        """Clients of port 10250 that do nothing but TLS handshakes: one, then many addresses."""
        shares = []
        for addresses in (["127.0.3.1"], [f"127.0.4.{host}" for host in range(1, 49)]):
            with Shakers(self.ports["slurmlet"], addresses):
                time.sleep(8)  # what may be had at once is used up; as `settle` above
                before, began = Sample(self.processes["slurmlet"].pid), time.monotonic()
                time.sleep(20)
                used = Sample(self.processes["slurmlet"].pid).cpu_ms - before.cpu_ms
                shares.append(used / 10 / (time.monotonic() - began))
        self.results["slurmlet"]["flood"] = max(shares)

    def kill_slurmd(self, plane, slurm):
        pid = slurm.pid("slurmd")
        began = time.monotonic()
        os.kill(pid, 9)
        wait_condition(plane.admin, "bench-slurmlet", "SlurmdReady", "False", 10)
        self.results["slurmlet"]["killed"] = time.monotonic() - began

    def stop_all(self):
        for process in self.processes.values():
            process.terminate()
        for process in self.processes.values():
            try:
                process.wait(10)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()


def figure(value):
    if value is None:
        return "–"
    return f"{value:.0f}" if value >= 100 or value == int(value) else f"{value:.3g}"


def table(results, seconds):
    ours, vk = results["slurmlet"], results["virtual-kubelet"]
    rows = [("", *results, "vk / slurmlet", "budget")]
    missed = []
    for key, title, unit, budget in BUDGETS:
        if unit == "ms":
            title, budget = f"{title} in {seconds} s", budget * seconds / 120
        if key == "ready":
            budget = vk[key]
        mine, theirs = ours.get(key), vk.get(key)
        ratio = f"{theirs / mine:.1f} ×" if mine and theirs is not None else "–"
        verdict = "–" if budget is None else f"≤ {figure(budget)}"
        if budget is not None and mine is not None and mine > budget:
            verdict += "  MISSED"
            missed.append(f"{title}: {figure(mine)} {unit}, the budget is {figure(budget)}")
        rows.append((f"{title} {unit}".strip(), *(figure(one.get(key)) for one in results.values()), ratio,
                     verdict))
    widths = [max(len(r[i]) for r in rows) for i in range(len(rows[0]))]
    for number, row in enumerate(rows):
        print("| " + " | ".join(c.ljust(w) for c, w in zip(row, widths)) + " |")
        if number == 0:
            print("|" + "|".join("-" * (w + 2) for w in widths) + "|")
    print("slurmlet's requests:", ours.get("verbs"))
    return missed


def main():
    parser = argparse.ArgumentParser(prog="./dev bench", description=__doc__)
    parser.add_argument("--seconds", type=int, default=120, help="steady state to measure")
    parser.add_argument("--settle", type=int, default=70, help="time to settle before it: slurmlet leaves "
                        "out the first regular query where it has just asked")
    options = parser.parse_args()
    work = pathlib.Path(tempfile.mkdtemp(prefix="slurmlet-bench-", dir="/tmp"))
    work.chmod(0o755)
    bench = Bench(work, options.seconds, options.settle)
    slurm = SlurmCluster(str(work / "slurm"))
    try:
        with ControlPlane(work / "cp", "--audit") as plane:
            slurm.up(nodes=["bench1"], gpus="a100:4", cluster_name="alps")
            try:
                bench.start_all(plane, slurm)
                bench.measure(plane)
                bench.flood()
                bench.kill_slurmd(plane, slurm)
            finally:
                bench.stop_all()
                slurm.down()
    finally:
        shutil.rmtree(work, ignore_errors=True)
    missed = table(bench.results, options.seconds)
    ours = bench.results["slurmlet"]
    print(f"\nslurmlet's own threads used {ours['own_cpu']:.1f} ms, its scontrol children "
          f"{ours['cpu'] - ours['own_cpu']:.1f} ms. Requests in the window: "
          + "; ".join(f"{n}: {r['verbs']}" for n, r in bench.results.items()))
    for line in missed:
        print("missed: " + line)
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
