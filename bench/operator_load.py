#!/usr/bin/python3
"""What slurmlet-operator costs at a large site, and how fast it is there.

  bench/operator_load.py [--nodes 10000] [--machines 2000] [--interval auto] [--quiet 600]

A real API server with --nodes Nodes (no daemon: they are not needed) and --machines Machines of Cluster API's CRD, a real
slurmctld with as many nodes, one operator:

  first records   from its start until each Node has its record
  quiet           memory, CPU with children, record writes and requests while nothing happens, for --quiet seconds
  drain           from `scontrol update … state=drain` to the record on the Node, five times
  cordon          from the cordon to DRAIN in slurmctld, five times
  busy            the same as quiet while 1,000 nodes an hour change their state (as 1,000 job starts would make them)

The goals are in GOALS; what misses is said, nothing fails.
"""
import argparse
import concurrent.futures
import pathlib
import socket
import statistics
import sys
import tempfile
import time
import urllib.request

ROOT = pathlib.Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "test/lab"))
sys.path.insert(0, str(ROOT / "bench"))
from harness.api import node_path  # noqa: E402
from harness.control_plane import ControlPlane  # noqa: E402
from harness.daemon import BINARY, Slurmlet  # noqa: E402
from harness.operator_site import Machines  # noqa: E402
from harness.rig import wait_until  # noqa: E402
from slurmcluster.processes import cpu_seconds  # noqa: E402
from slurmctld_load import cluster_of, node_name  # noqa: E402

RECORD = "slurmlet.io/record"
GOALS = {"memory MB": 60, "CPU % of a core": 2, "cordon to drain s": 2}


def create_nodes(plane, count, slurm_cluster):
    def create(index):
        api = plane.admin
        name = node_name(index)
        api.create("/api/v1/nodes", {"metadata": {
            "name": name, "labels": {"slurmlet.io/version": "0.1.0"},
            "annotations": {"slurmlet.io/slurm-node": name, "slurmlet.io/slurm-cluster": slurm_cluster}}})
    with concurrent.futures.ThreadPoolExecutor(8) as pool:
        list(pool.map(create, range(1, count)))


def create_machines(plane, count):
    machines = Machines(plane)
    with concurrent.futures.ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda index: machines.add(f"m{index}", node_name(index),
                                                 addresses=[("Hostname", node_name(index))]), range(1, count + 1)))


class Meter:
    """CPU seconds with children, and memory, of the operator."""

    def __init__(self, pid):
        self.pid = pid

    def cpu(self):
        return cpu_seconds(self.pid)

    def megabytes(self, key="VmRSS"):
        status = pathlib.Path(f"/proc/{self.pid}/status").read_text(encoding="ascii")
        return int(next(line for line in status.splitlines() if line.startswith(key + ":")).split()[1]) / 1024


def is_up(port):
    try:
        socket.create_connection(("127.0.0.1", port), timeout=1).close()
        return True
    except OSError:
        return False


def metric(port, name, **labels):
    text = urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=5).read().decode()
    shown = "{" + ",".join(f'{key}="{value}"' for key, value in labels.items()) + "}" if labels else ""
    return next(float(line.split()[-1]) for line in text.splitlines() if line.startswith(name + shown + " "))


def say(what, value, unit=""):
    goal = GOALS.get(f"{what} {unit}".strip())
    verdict = "" if goal is None else f"   goal {goal}: " + ("met" if value <= goal else f"misses by {value - goal:.2f}")
    print(f"{what:42} {value:10.2f} {unit}{verdict}", flush=True)


def spend(operator, meter, port, seconds, during=lambda left: None):
    began, cpu, writes = time.monotonic(), meter.cpu(), metric(port, "slurmlet_operator_record_writes_total", result="success")
    most = 0.0
    while (left := seconds - (time.monotonic() - began)) > 0:
        during(left)
        most = max(most, meter.megabytes())
        time.sleep(min(1, left))
    passed = time.monotonic() - began
    assert operator.process.poll() is None, operator.output()[-2000:]
    return ((meter.cpu() - cpu) / passed * 100, most,
            (metric(port, "slurmlet_operator_record_writes_total", result="success") - writes) / passed * 3600)


def run(options, directory):
    cluster = cluster_of(str(directory / "sl"), options.nodes, 4, own_hosts=True)
    with cluster, ControlPlane(directory / "cp") as plane:
        began = time.monotonic()
        create_nodes(plane, options.nodes, cluster.spec.cluster_name)
        create_machines(plane, options.machines)
        say("Nodes and Machines created in", time.monotonic() - began, "s")
        port = 20258
        operator = Slurmlet(directory / "operator", [
            f"--kubeconfig={plane.admin_kubeconfig}", f"--slurm-conf={cluster.conf_path}", 
            f"--interval={options.interval}", f"--metrics-address=127.0.0.1:{port}"], program=BINARY.parent / "slurmlet-operator")
        try:
            measure(options, cluster, plane.admin, operator, port)
        finally:
            operator.stop()


def measure(options, cluster, api, operator, port):
    meter = Meter(operator.pid)
    began = time.monotonic()
    wait_until(lambda: is_up(port), what="the operator's port")
    wait_until(lambda: metric(port, "slurmlet_operator_record_writes_total", result="success") >= options.nodes - 1, 900,
               "each Node's record")
    say("first records in", time.monotonic() - began, "s")
    say("memory, most until then", meter.megabytes("VmHWM"), "MB")
    cpu, most, writes = spend(operator, meter, port, options.quiet)
    say("CPU", cpu, "% of a core")
    say("memory", most, "MB")
    say("record writes, quiet site", writes, "an hour")
    say("a dump takes", metric(port, "slurmlet_operator_dump_seconds"), "s")
    shown, drained = [], []
    for index in range(1, 6):
        name = node_name(index)
        began = time.monotonic()
        cluster.command("scontrol", "update", f"nodename={name}", "state=drain", "reason=bench")
        api.wait("/api/v1/nodes", lambda node, _: "DRAIN" in node["metadata"]["annotations"].get(RECORD, ""), 60,
                 "metadata.name=" + name)
        shown.append(time.monotonic() - began)
    for index in range(11, 16):
        name = node_name(index)
        began = time.monotonic()
        api.merge(node_path(name), {"spec": {"unschedulable": True}})
        while "drain" not in cluster.sinfo("-h", "-N", "-n", name, "-O", "StateComplete"):
            time.sleep(0.02)
        drained.append(time.monotonic() - began)
    say("drain to record, median", statistics.median(shown), "s")
    say(f"drain to record, worst (interval {options.interval})", max(shown), "s")
    say("cordon to drain, median", statistics.median(drained), "s")
    say("cordon to drain", max(drained), "s")
    index = [1000]

    def change(_left):
        index[0] += 1
        if index[0] % 4 == 0:  # each 3.6 s
            name = node_name(index[0] % (options.nodes - 1) + 1)
            cluster.command("scontrol", "update", f"nodename={name}", f"comment=job-{index[0]}")
    cpu, most, writes = spend(operator, meter, port, options.quiet, change)
    say("busy: CPU", cpu, "% of a core")
    say("busy: memory", most, "MB")
    say("busy: record writes", writes, "an hour")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--nodes", type=int, default=10000)
    parser.add_argument("--machines", type=int, default=2000)
    parser.add_argument("--interval", default="auto")
    parser.add_argument("--quiet", type=int, default=600,
                        help="seconds; in a refresh (10 min at 10,000 Nodes) each record is written again once")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="op", dir="/tmp") as directory:
        pathlib.Path(directory).chmod(0o755)
        run(options, pathlib.Path(directory))


if __name__ == "__main__":
    main()
