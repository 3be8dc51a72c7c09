#!/usr/bin/python3
"""./dev bench fleet: N real programs on this machine beside one API server, one kind after the other.

  slurmlet          each mirrors its node of a real slurmctld with N nodes
  virtual-kubelet   bench/virtualkubelet
  lease-loop        bench/lease_loop.cpp, the floor

Each program has a PID namespace, a /proc, a credential and (slurmlet) an endpoint of its own; beside it
a sleeping process of the name slurmd, which is not counted. Measured
for each kind: how long the start of all takes, machine memory per program (MemAvailable, so the growth
of the kernel, the API server and etcd counts), CPU per program with its children, CPU of the API server
and of etcd, the oldest lease that any of the looks found (one every five seconds), and how long after
an API server that was away for --outage seconds all leases are fresh again.

With --start-rate the programs start so many a second, and overload shows: the requests for each started
program, by verb (with --audit, which costs the API server much, only those that it makes itself), the leases
that were late (over LATE seconds old) at any look, and how long after the last start, and after the outage,
the API server is calm: within CALM_LOAD of its settled load from then on, averaged over CALM_LOOKS looks.
--operator runs slurmlet-operator beside them, so that they have records. Needs root.
"""
import argparse
import collections
import concurrent.futures
import datetime
import http.client
import json
import math
import os
import pathlib
import re
import shutil
import signal
import statistics
import sys
import tempfile
import threading
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
sys.path[:0] = [str(ROOT / "test/lab"), str(ROOT / "bench")]
import slurmctld_load  # noqa: E402
import programs  # noqa: E402
from cpu_clock import cpu_seconds  # noqa: E402
from harness.api import ApiError  # noqa: E402
from harness.control_plane import ControlPlane  # noqa: E402
from harness.daemon import BINARY, Slurmlet  # noqa: E402
from slurmcluster import SlurmCluster  # noqa: E402

KINDS = ("slurmlet", "virtual-kubelet", "lease-loop")
LEASES = "/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases?resourceVersion=0"
CSRS = "/apis/certificates.k8s.io/v1/certificatesigningrequests"
APPROVED = {"type": "Approved", "status": "True", "reason": "Bench"}
FRESH = 15  # seconds; of leases that are renewed every ten
CALM = 20  # seconds, for the servers to settle before the programs start
CALM_LOAD = 1.3  # of the API server's settled load
CALM_LOOKS = 4  # over which its load is averaged
LATE = 40  # seconds: the node controller's patience, and the duration of a lease
LOOK = 5  # seconds
AWAY = (OSError, RuntimeError, KeyError, ApiError, http.client.HTTPException)  # the servers do not answer, or too late
AFTER_OUTAGE = 120  # seconds that are looked at
VERBS = {"create": "POST", "update": "PUT"}  # of the audit log
RENEWALS = ("PUT leases", "PATCH leases")


def mem_available():
    for line in pathlib.Path("/proc/meminfo").read_text().splitlines():
        if line.startswith("MemAvailable"):
            return int(line.split()[1]) / 1024
    raise RuntimeError("no MemAvailable in /proc/meminfo")


def servers(plane):
    """{"kube-apiserver": pid, "etcd": pid} of this control plane."""
    found = {}
    for entry in pathlib.Path("/proc").glob("[0-9]*"):
        try:
            words = (entry / "cmdline").read_bytes().decode(errors="replace").split("\0")
        except OSError:
            continue
        if any(str(plane.directory) in word for word in words):
            for name in ("kube-apiserver", "etcd"):
                if name in words[:2] or words[0].endswith("/" + name):
                    found[name] = int(entry.name)
    return found


def requests_of(plane):
    """{"PUT leases": count, …} that this API server has answered: to all or, with an audit log, to nodes."""
    found = collections.Counter()
    audit = plane.directory / "audit.log"
    if audit.exists():
        stages = map(json.loads, audit.read_text().splitlines())  # a watch has two
        for event in {stage["auditID"]: stage for stage in stages}.values():
            if event["user"]["username"].startswith("system:node:"):
                what = event.get("objectRef", {}).get("resource", event["requestURI"])
                found[f"{VERBS.get(event['verb'], event['verb'].upper())} {what}"] += 1
        return found
    for line in plane.admin.get("/metrics").splitlines():
        if line.startswith("apiserver_request_total{"):
            labels = dict(re.findall(r'(\w+)="([^"]*)"', line))
            found[f"{labels['verb']} {labels['resource']}"] += float(line.rpartition(" ")[2])
    return found


class Looks(threading.Thread):
    """Of each look: the API server's CPU since the one before, and how many leases were late."""

    def __init__(self, fleet):
        super().__init__(daemon=True)
        self.fleet, self.seen, self.over = fleet, [], threading.Event()

    def run(self):
        pid = used = None
        at = 0.0
        while not self.over.wait(LOOK):
            try:
                pid = pid or servers(self.fleet.plane)["kube-apiserver"]  # reads all of /proc
                cpu, now = cpu_seconds(pid), time.monotonic()
                late = sum(age > LATE for age in self.fleet.leases().values())
            except AWAY:
                pid = used = None  # away
                continue
            if used is not None:
                self.seen.append((now, (cpu - used) / (now - at), late))
            used, at = cpu, now

    def end(self):
        self.over.set()
        self.join()

    def calm_after(self, began, settled, until=math.inf):
        """Seconds from `began` until the load was, and stayed till `until`, within CALM_LOAD of `settled`."""
        loads = [load for _, load, _ in self.seen]
        busy = [now for i, (now, _, _) in enumerate(self.seen) if began < now < until
                and statistics.fmean(loads[max(0, i + 1 - CALM_LOOKS):i + 1]) > CALM_LOAD * settled]
        return max(busy, default=began) - began

    def most_late(self, began=0, until=math.inf):
        return max((late for now, _, late in self.seen if began < now < until), default=0)


class Approver(threading.Thread):
    """Approves serving certificates as they are requested, by a watch, as a cluster does."""

    def __init__(self, plane):
        super().__init__(daemon=True)
        self.plane, self.over = plane, threading.Event()

    def run(self):
        self.plane.admin.wait(CSRS, self.approve, 2 * 3600)

    def approve(self, csr, event):
        wanted = event == "ADDED" and not csr.get("status")
        while wanted and not self.over.wait(0):
            try:
                csr["status"] = {"conditions": [APPROVED]}
                self.plane.admin.call("PUT", f"{CSRS}/{csr['metadata']['name']}/approval", csr)
                break
            except AWAY as problem:
                if getattr(problem, "status", 0) in (404, 409):
                    break  # requested anew
                time.sleep(1)
        return self.over.is_set()


class Fleet:
    """The programs of one kind."""

    def __init__(self, kind, plane, slurm, work, count):
        self.kind, self.plane, self.slurm, self.count = kind, plane, slurm, count
        self.work = work / kind
        self.work.mkdir()
        self.names = [slurmctld_load.node_name(i + 1) for i in range(count)]
        self.pids, self.slurmds = [], []
        self.outage_began = math.inf  # there is none yet

    def node(self, name):
        return f"{self.kind[0]}-{name}"

    def own(self, name):
        """The directory of one: slurmlet wakes for each change of a directory that it reads from."""
        return self.work / name

    def credentials(self):
        """Made before the clock runs."""
        def make(name):
            options = () if self.kind != "lease-loop" else ("--embed=false",)
            self.own(name).mkdir()
            return shutil.copy(self.plane.node_kubeconfig(self.node(name), *options), self.own(name))
        with concurrent.futures.ThreadPoolExecutor(2) as pool:
            self.kubeconfigs = list(pool.map(make, self.names))

    def command(self, index):
        name, kubeconfig = self.names[index], self.kubeconfigs[index]
        if self.kind == "virtual-kubelet":
            return [str(ROOT / "build/bench/virtualkubelet"), "--kubeconfig", kubeconfig,
                    "--nodename", self.node(name)]
        if self.kind == "lease-loop":
            base = self.plane.directory / f"node-{self.node(name)}.kubeconfig"
            return [str(ROOT / "build/release/lease_loop"),
                    f"https://{self.plane.admin.host}:{self.plane.admin.port}",
                    str(self.plane.directory / "pki/ca.crt"), f"{base}.crt", f"{base}.key",
                    self.node(name)]
        return [str(BINARY), "--kubeconfig", kubeconfig, "--nodename",
                self.node(name), "--slurm-node", name, "--state-dir", str(self.own(name) / "state"), "--port",
                str(10000 + index), "--healthz-port", "0"]

    def start(self, rate=0):
        """Seconds until all are there (their leases are), and how many failed to start."""
        environment = {"PATH": "/usr/sbin:/usr/bin:/sbin:/bin", "LANG": "C.UTF-8",
                       "SLURM_CONF": str(self.slurm.conf_path)}
        for line in (ROOT / "systemd/slurmlet.service").read_text().splitlines():
            if line.startswith("Environment="):
                key, _, value = line[len("Environment="):].partition("=")
                environment[key] = value
        self.start_slurmds()
        self.asked_before = requests_of(self.plane)
        before, began = mem_available(), time.monotonic()
        for index, name in enumerate(self.names):
            if rate:
                time.sleep(max(0.0, began + index / rate - time.monotonic()))
            self.pids.append(programs.start(self.slurmds[index], self.command(index), environment,
                                            self.own(name) / "log"))
        self.last_start = time.monotonic()
        while (there := len(self.leases_at_last())) < self.count:
            if time.monotonic() - began > 600:
                asked = {what: round(n / self.count, 1) for what, n in
                         (requests_of(self.plane) - self.asked_before).most_common(12)}
                raise SystemExit(f"{there} of {self.count} {self.kind} have a lease after ten minutes; "
                                 f"requests of each: {asked}")
            time.sleep(LOOK)  # the leases of so many are not watched
        self.memory_before = before
        return time.monotonic() - began

    def start_slurmds(self):
        """With the pidfile and the spool directory that slurm.conf names."""
        program = shutil.copy("/bin/sleep", self.work / "slurmd")
        for name in self.names:
            pathlib.Path(self.slurm.layout.at("run", f"slurmd.{name}.pid")).write_text("1\n")
            pathlib.Path(self.slurm.layout.at("spool", name)).mkdir(exist_ok=True)
            self.slurmds.append(programs.start_node(str(program)))
        for pid in self.slurmds:  # its /proc is mounted before that
            while pathlib.Path(f"/proc/{pid}/comm").read_text() != "slurmd\n":
                time.sleep(0.01)

    def end(self):
        programs.end(self.pids)
        programs.end(self.slurmds, [signal.SIGKILL])

    def leases(self):
        """{node: age in seconds} of this kind."""
        now = datetime.datetime.now(datetime.timezone.utc)
        prefix, ages = self.kind[0] + "-", {}
        for lease in self.plane.admin.get(LEASES)["items"]:
            if lease["metadata"]["name"].startswith(prefix):
                renewed = datetime.datetime.fromisoformat(
                    lease["spec"]["renewTime"].replace("Z", "+00:00"))
                ages[lease["metadata"]["name"]] = (now - renewed).total_seconds()
        return ages

    def leases_at_last(self):
        """The same; an overloaded server may need several requests to answer one."""
        for _ in range(20):
            try:
                return self.leases()
            except AWAY:
                time.sleep(LOOK)
        return self.leases()

    def measure(self, seconds, settle):
        time.sleep(settle)  # a wait for time, not for an event
        pids = servers(self.plane)
        self.asked_at_start = requests_of(self.plane) - self.asked_before
        asked = requests_of(self.plane)
        before = {pid: programs.Usage(pid) for pid in self.pids + list(pids.values())}
        began, oldest = time.monotonic(), 0.0
        while time.monotonic() - began < seconds:
            time.sleep(5)
            oldest = max(oldest, max(self.leases_at_last().values()))
        took = time.monotonic() - began
        after = {pid: programs.Usage(pid) for pid in before}
        asked = requests_of(self.plane) - asked
        share = lambda pid, of: (getattr(after[pid], of) - getattr(before[pid], of)) / took  # noqa: E731
        mean = lambda values: sum(values) / self.count  # noqa: E731
        return {
            "memory": (self.memory_before - mem_available()) / self.count,
            "rss": mean(after[p].rss for p in self.pids),
            "private": mean(after[p].private for p in self.pids),
            "cpu": 100 * mean(share(p, "own") + share(p, "children") for p in self.pids),
            "own": 100 * mean(share(p, "own") for p in self.pids),
            "switches": mean(share(p, "switches") for p in self.pids),
            "apiserver": share(pids["kube-apiserver"], "own"), "etcd": share(pids["etcd"], "own"),
            "oldest": oldest,
            "requests": {what: n * 3600 / took / self.count for what, n in asked.most_common()}}

    def outage(self, seconds):
        """Seconds from the return of the API server until every lease is fresh."""
        self.outage_began = time.monotonic()
        self.plane.ctl("stop", "kube-apiserver")
        time.sleep(seconds)
        self.outage_ended = began = time.monotonic()
        starts = threading.Thread(target=self.plane.ctl, args=("start", "kube-apiserver"))
        starts.start()  # it waits for /readyz, which an overloaded one does not answer in time
        while True:
            try:
                if max(self.leases().values()) < FRESH:
                    return time.monotonic() - began
            except AWAY:
                pass  # not back yet
            time.sleep(2)  # a list of all is load, too


ROWS = [("started", "start of all", "s"), ("memory", "machine memory each", "MB"),
        ("rss", "RSS", "MB"), ("private", "private (RssAnon)", "MB"),
        ("cpu", "CPU each, with children", "% of a core"), ("own", "CPU each, own", "% of a core"),
        ("switches", "context switches each", "/s"), ("apiserver", "API server", "cores"),
        ("etcd", "etcd", "cores"), ("oldest", "oldest lease seen", "s"),
        ("outage", "all leases fresh after the outage", "s"),
        ("late_start", "leases late at one look, at the start", ""),
        ("calm_start", "calm after the last start", "s"),
        ("late_outage", "leases late at one look, after the outage", ""),
        ("calm_outage", "calm after the outage", "s"),
        ("per_start", "requests of each start, without writes of leases", "")]


def table(results):
    kinds = list(results)
    print("| | " + " | ".join(f"{results[k]['count']} {k}" for k in kinds) + " |")
    print("|---" * (len(kinds) + 1) + "|")
    for key, title, unit in ROWS:
        cells = [f"{results[k][key]:.4g}" if key in results[k] else "–" for k in kinds]
        print(f"| {title}, {unit} | " + " | ".join(cells) + " |")
    for kind in kinds:  # of the harness's own, too
        for key, title in (("requests", "an hour"), ("start_requests", "until settled")):
            shares = ", ".join(f"{what} {n:.2g}" for what, n in results[kind].get(key, {}).items())
            print(f"{kind}, requests each {title}: {shares}")


def run(kind, plane, slurm, work, options):
    fleet = Fleet(kind, plane, slurm, work, options.count)
    print(f"{options.count} × {kind}: credentials …", flush=True)
    fleet.credentials()
    time.sleep(CALM)
    looks, approver = Looks(fleet), Approver(plane)
    operator = start_operator(plane, slurm, work) if options.operator and kind == "slurmlet" else None
    try:
        looks.start()
        approver.start()
        result = {"count": options.count, "started": fleet.start(options.start_rate)}
        print(f"all there after {result['started']:.1f} s; measuring …", flush=True)
        result.update(fleet.measure(options.seconds, options.settle))
        if options.outage:
            result["outage"] = fleet.outage(options.outage)
            time.sleep(AFTER_OUTAGE)
        looks.end()
        result.update(overload(fleet, looks, result["apiserver"], options))
    finally:
        looks.end()
        approver.over.set()
        fleet.end()
        if operator:
            operator.stop()
    return result


def start_operator(plane, slurm, work):
    return Slurmlet(work / "operator", [
        f"--kubeconfig={plane.admin_kubeconfig}", f"--slurm-conf={slurm.conf_path}", "--metrics-address="],
        program=BINARY.parent / "slurmlet-operator")


def overload(fleet, looks, settled, options):
    """Figures of the start and of the outage."""
    started = {what: n / fleet.count for what, n in fleet.asked_at_start.most_common() if n >= fleet.count / 20}
    found = {"start_requests": started,
             "per_start": sum(n for what, n in started.items() if what not in RENEWALS)}
    if options.start_rate:
        found["late_start"] = looks.most_late(until=min(fleet.last_start + AFTER_OUTAGE, fleet.outage_began))
        found["calm_start"] = looks.calm_after(fleet.last_start, settled, fleet.outage_began)
    if options.outage:
        found["late_outage"] = looks.most_late(fleet.outage_ended)
        found["calm_outage"] = looks.calm_after(fleet.outage_ended, settled)
    return found


def main():
    parser = argparse.ArgumentParser(prog="./dev bench fleet", description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--count", type=int, default=300, help="programs of each kind")
    parser.add_argument("--kinds", default=",".join(KINDS), help="comma-separated")
    parser.add_argument("--seconds", type=int, default=90, help="steady state to measure")
    parser.add_argument("--settle", type=int, default=20,
                        help="time to settle before it (slurmlet spreads its first steps over minutes)")
    parser.add_argument("--start-rate", type=float, default=0, help="programs started a second; 0: as fast as it goes")
    parser.add_argument("--audit", action="store_true", help="count the programs' own requests; for some dozens")
    parser.add_argument("--operator", action="store_true", help="slurmlet-operator beside slurmlet")
    parser.add_argument("--outage", type=int, default=0, help="seconds without an API server")
    parser.add_argument("--json", help="write the figures here")
    options = parser.parse_args()
    programs.adopt_orphans()
    work = pathlib.Path(tempfile.mkdtemp(prefix="slurmlet-fleet-", dir="/tmp"))
    work.chmod(0o755)
    slurm = SlurmCluster(str(work / "slurm"))
    results = {}
    try:
        slurm = slurmctld_load.cluster_of(str(work / "slurm"), options.count + 1, 1)
        for kind in options.kinds.split(","):
            # A new one for each: none inherits.
            with ControlPlane(work / f"plane-{kind}", *(["--audit"] if options.audit else [])) as plane:
                results[kind] = run(kind, plane, slurm, work, options)
        table(results)
        if options.json:
            pathlib.Path(options.json).write_text(json.dumps(results, indent=1))
    finally:
        slurm.down()
        shutil.rmtree(work, ignore_errors=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
