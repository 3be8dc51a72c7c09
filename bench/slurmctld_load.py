#!/usr/bin/python3
"""What a site without slurmlet-operator costs slurmctld, and with it.

  bench/slurmctld_load.py [--nodes 100,1000,3000] [--partitions 4] [--queries 60]

Starts a private slurmctld that knows as many nodes (no slurmd: their records are all that matters) and
queries it as a daemon and as slurmlet-operator do, `scontrol --local -a -d -o show node`, --queries times.

For each number of nodes: requests and the microseconds slurmctld spent on them (sdiag), CPU time of slurmctld and
munged (less what slurmctld uses unasked), CPU time of the clients (getrusage), bytes on the wire (one query
through a counting relay). Then what all nodes together take of slurmctld's time at their interval
(docs/explanation/slurm-state.md), and one dump each 15 s. Needs munged, slurmctld and the clients
(test/lab/slurmcluster/README.md); a minute for each number.
"""
import argparse
import os
import pathlib
import re
import resource
import shutil
import socket
import subprocess
import sys
import tempfile
import threading
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT / "test/lab"), str(ROOT / "bench")]
from cpu_clock import cpu_seconds  # noqa: E402
from slurmcluster import SlurmCluster  # noqa: E402
from slurmcluster.config import free_ports  # noqa: E402

MAX_SECONDS = 240  # of asking; what was not asked by then is not counted


def interval_of(nodes):
    """Of each node's queries, as src/slurm/sources/poll_pace.cpp has it."""
    return max(60, nodes * nodes * 500e-6)


def node_name(index):
    return f"c{index:05d}"


def cluster_of(directory, count, partitions, own_hosts=False):
    """slurmctld with `count` nodes, one of them that of slurmcluster, all in each partition; all on this host, or
    each on one of its own."""
    cluster = SlurmCluster(directory)
    names = f"c[{1:05d}-{count - 1:05d}]"
    host = names if own_hosts else os.uname().nodename.split(".")[0]
    # One port for all: nobody listens there, and with SlurmdTimeout=0 nobody is declared down.
    port = free_ports(1)[0]
    cluster.up(nodes=["n1"], cpus=4, conf_lines=[
        f"NodeName={names} NodeHostname={host} NodeAddr=127.0.0.1 Port={port} CPUs=128 RealMemory=512000 "
        "Gres=gpu:a100:4 Feature=mi200,rack1",
        "GresTypes=gpu", "SlurmdTimeout=0"])
    with open(cluster.conf_path, "a", encoding="ascii") as conf:
        for index in range(partitions):
            conf.write(f"PartitionName=p{index} Nodes=ALL MaxTime=1-0\n")
    cluster.daemon("restart", "slurmctld")
    return cluster


class Relay:
    """Counts what a client sends and receives."""

    def __init__(self, port):
        self.sent = self.received = 0
        self._target = port
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port = self._listener.getsockname()[1]
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self):
        while True:
            try:
                client, _ = self._listener.accept()
            except OSError:
                return
            server = socket.create_connection(("127.0.0.1", self._target))
            for source, sink, name in ((client, server, "sent"), (server, client, "received")):
                threading.Thread(target=self._copy, args=(source, sink, name), daemon=True).start()

    def _copy(self, source, sink, name):
        try:
            while block := source.recv(65536):
                setattr(self, name, getattr(self, name) + len(block))
                sink.sendall(block)
            sink.shutdown(socket.SHUT_WR)
        except OSError:
            pass

    def close(self):
        self._listener.close()


class Asker:
    """Asks as the daemon does and adds up what it costs."""

    def __init__(self, cluster):
        self._cluster = cluster
        self._environment = {**cluster.env, "SLURM_TIME_FORMAT": "%s"}

    def ask(self, conf=None):
        words = ["scontrol", "--local", "-a", "-d", "-o", "show", "node"]
        environment = {**self._environment, **({"SLURM_CONF": conf} if conf else {})}
        return subprocess.run(words, env=environment, stdout=subprocess.PIPE, check=True, timeout=MAX_SECONDS / 2).stdout

    def bytes_on_the_wire(self):
        """(sent, received) of one query."""
        relay = Relay(self._cluster.spec.ports["slurmctld"])
        conf = self._cluster.layout.at("etc", "relayed.conf")
        text = pathlib.Path(self._cluster.conf_path).read_text(encoding="utf-8")
        text = re.sub(r"(?m)^SlurmctldPort=\d+$", f"SlurmctldPort={relay.port}", text)
        pathlib.Path(conf).write_text(text, encoding="utf-8")
        self.ask(conf)
        relay.close()
        return relay.sent, relay.received

    @staticmethod
    def _idle_share(pid, seconds=8):
        """CPU seconds a second that slurmctld uses unasked, on nodes that do not register."""
        before = cpu_seconds(pid)
        time.sleep(seconds)
        return (cpu_seconds(pid) - before) / seconds

    def measure(self, queries):
        slurmctld, munged = self._cluster.pid("slurmctld"), self._cluster.pid("munged")
        wire = self.bytes_on_the_wire()
        idle = self._idle_share(slurmctld)
        self._cluster.sdiag(reset=True)
        before = cpu_seconds(slurmctld), cpu_seconds(munged)
        used = resource.getrusage(resource.RUSAGE_CHILDREN)
        began = time.monotonic()
        asked = printed = 0
        for _ in range(queries):
            printed = len(self.ask())
            asked += 1
            if time.monotonic() - began > MAX_SECONDS / 2:
                break
        wall = time.monotonic() - began
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        spent = max(0, cpu_seconds(slurmctld) - before[0] - idle * wall), cpu_seconds(munged) - before[1]
        types = {name: one for name, one in self._cluster.sdiag()["by_type"].items()
                 if name in ("REQUEST_NODE_INFO", "REQUEST_NODE_INFO_SINGLE", "REQUEST_PARTITION_INFO")}
        client = after.ru_utime + after.ru_stime - used.ru_utime - used.ru_stime
        return {"asked": asked, "rpc": sum(one["count"] for one in types.values()) / asked,
                "inside_us": sum(one["total_time"] for one in types.values()) / asked,
                "types": {name: (one["count"], one["total_time"] / one["count"]) for name, one in types.items()},
                "ctld_ms": 1000 * spent[0] / asked, "munge_ms": 1000 * spent[1] / asked,
                "client_ms": 1000 * client / asked, "wall_ms": 1000 * wall / asked,
                "sent": wire[0], "received": wire[1], "printed": printed}


def print_tables(version, results):
    print(f"\nOne query ({version}):\n")
    print("| nodes | queries | requests | in slurmctld (sdiag) | slurmctld CPU | munged CPU | client CPU | client wall "
          "| received | printed |")
    print("|---|---|---|---|---|---|---|---|---|---|")
    for nodes, one in results.items():
        print(f"| {nodes} | {one['asked']} | {one['rpc']:.1f} | {one['inside_us'] / 1000:.3f} ms "
              f"| {one['ctld_ms']:.2f} ms | {one['munge_ms']:.2f} ms | {one['client_ms']:.1f} ms "
              f"| {one['wall_ms']:.1f} ms | {one['received']:,} B | {one['printed']:,} B |")
    for nodes, one in results.items():
        for kind, (count, average) in sorted(one["types"].items()):
            print(f"    {nodes}: {kind} × {count}, {average:.0f} µs each")
    print("\nA site:\n")
    print("| nodes | every node queries each | in slurmctld | slurmctld CPU | received | one dump each 15 s | slurmctld CPU |")
    print("|---|---|---|---|---|---|---|")
    for nodes, one in results.items():
        rate = nodes / interval_of(nodes)
        print(f"| {nodes} | {interval_of(nodes):.0f} s | {one['inside_us'] * rate / 1e4:.2f} % | {one['ctld_ms'] * rate / 10:.2f} % "
              f"| {one['received'] * rate / 1e6:.2f} MB/s | {one['inside_us'] / 15 / 1e4:.3f} % | {one['ctld_ms'] / 150:.3f} % |")


def measure(nodes, partitions, queries):
    """(release, what a query costs)"""
    directory = tempfile.mkdtemp(prefix="load", dir="/tmp")
    cluster = cluster_of(directory, nodes, partitions)
    try:
        return cluster.command("sinfo", "--version").stdout.strip(), Asker(cluster).measure(queries)
    finally:
        cluster.down()
        shutil.rmtree(directory, ignore_errors=True)


def main():
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--nodes", default="100,1000,3000", help="that slurmctld knows (at most 20000), one after the other")
    options.add_argument("--partitions", type=int, default=4, help="that have all nodes")
    options.add_argument("--queries", type=int, default=60, help="of each")
    given = options.parse_args()
    numbers = [int(number) for number in given.nodes.split(",")]
    if not all(2 <= number <= 20000 for number in numbers):
        options.error("--nodes must be between 2 and 20000")
    version, results = "", {}
    for number in numbers:
        version, results[number] = measure(number, given.partitions, given.queries)
    print_tables(version, results)


if __name__ == "__main__":
    main()
