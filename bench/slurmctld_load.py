#!/usr/bin/python3
"""What a fleet costs slurmctld: every node asks for itself, or one reader asks for all.

  bench/slurmctld_load.py [--nodes 1000] [--partitions 4] [--questions 1000] [--dumps 20] [--sinfo-dumps 1]

Starts a private slurmctld that knows --nodes nodes (no slurmd: their records are all that matters)
and asks it

  single       the daemon's own question, `sinfo -N -n NODE` (the format is read from src/slurm/sinfo*.cpp),
               --questions times, one node after the other: a minute of a fleet that asks once a
               minute, if --questions is --nodes
  dump         what slurmlet-operator asks, `scontrol -a -d -o show node`, --dumps times
  sinfo dump   the daemon's question without -n, for comparison: given up after two minutes

For each: requests and the microseconds slurmctld spent on them (sdiag), CPU time of slurmctld and
munged (less what slurmctld uses unasked), CPU time of the clients (getrusage), bytes on the wire (one question
through a counting relay). Then the cost per minute of a site of --nodes nodes, both ways. Needs
munged, slurmctld and the clients (test/lab/slurmcluster/README.md); five minutes at most.
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
DUMP, SINFO_DUMP = object(), object()  # in the place of a node's name


def own_format():
    """The -O of the daemon's question."""
    for path in sorted((ROOT / "src/slurm/answers").glob("sinfo*")):
        found = re.search(r'kFormat\s*=([^;]*);', path.read_text(encoding="utf-8"))
        if found:
            return "".join(re.findall(r'"([^"]*)"', found[1]))
    raise SystemExit("no kFormat in src/slurm/answers/sinfo*")


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
        self._format = own_format()

    def ask(self, node, conf=None):
        words = {DUMP: ["scontrol", "-a", "-d", "-o", "show", "node"],
                 SINFO_DUMP: ["sinfo", "-h", "-a", "-N", "-O", self._format]}.get(
                     node, ["sinfo", "-h", "-a", "-N", "-n", str(node), "-O", self._format])
        environment = {**self._environment, **({"SLURM_CONF": conf} if conf else {})}
        return subprocess.run(words, env=environment, stdout=subprocess.PIPE, check=True, timeout=MAX_SECONDS / 2).stdout

    def bytes_on_the_wire(self, node):
        """(sent, received) of one question."""
        relay = Relay(self._cluster.spec.ports["slurmctld"])
        conf = self._cluster.layout.at("etc", "relayed.conf")
        text = pathlib.Path(self._cluster.conf_path).read_text(encoding="utf-8")
        text = re.sub(r"(?m)^SlurmctldPort=\d+$", f"SlurmctldPort={relay.port}", text)
        pathlib.Path(conf).write_text(text, encoding="utf-8")
        self.ask(node, conf)
        relay.close()
        return relay.sent, relay.received

    @staticmethod
    def _idle_share(pid, seconds=8):
        """CPU seconds a second that slurmctld uses unasked, on nodes that do not register."""
        before = cpu_seconds(pid)
        time.sleep(seconds)
        return (cpu_seconds(pid) - before) / seconds

    def measure(self, nodes):
        """Asks about each of `nodes` (DUMP, SINFO_DUMP: all nodes at once)."""
        slurmctld, munged = self._cluster.pid("slurmctld"), self._cluster.pid("munged")
        wire = self.bytes_on_the_wire(nodes[0])
        idle = self._idle_share(slurmctld)
        self._cluster.sdiag(reset=True)
        before = cpu_seconds(slurmctld), cpu_seconds(munged)
        used = resource.getrusage(resource.RUSAGE_CHILDREN)
        began = time.monotonic()
        asked = printed = 0
        for node in nodes:
            printed = len(self.ask(node))
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


def print_tables(nodes, results):
    print(f"\nOne question, {nodes} nodes in slurmctld ({results['version']}):\n")
    print("| | asked | requests | in slurmctld (sdiag) | slurmctld CPU | munged CPU | client CPU | client wall "
          "| received | printed |")
    print("|---|---|---|---|---|---|---|---|---|---|")
    for name in [name for name in ("single", "dump", "sinfo dump") if name in results]:
        one = results[name]
        print(f"| {name} | {one['asked']} | {one['rpc']:.1f} | {one['inside_us'] / 1000:.3f} ms "
              f"| {one['ctld_ms']:.2f} ms | {one['munge_ms']:.2f} ms | {one['client_ms']:.1f} ms "
              f"| {one['wall_ms']:.1f} ms | {one['received']:,} B | {one['printed']:,} B |")
    for name in ("single", "dump"):
        for kind, (count, average) in sorted(results[name]["types"].items()):
            print(f"    {name}: {kind} × {count}, {average:.0f} µs each")
    print(f"\nOne minute of a site of {nodes} nodes:\n")
    print("| | requests | in slurmctld | slurmctld CPU | munged CPU | client CPU, all hosts | received |")
    print("|---|---|---|---|---|---|---|")
    ways = [("every node asks once a minute", "single", nodes), ("every node asks each 10 minutes", "single", nodes / 10),
            ("one dump each 30 s", "dump", 2), ("one dump each 10 s", "dump", 6)]
    for title, name, times in ways:
        one = results[name]
        print(f"| {title} | {one['rpc'] * times:,.0f} | {one['inside_us'] * times / 1e3:,.1f} ms "
              f"| {one['ctld_ms'] * times:,.0f} ms | {one['munge_ms'] * times:,.0f} ms "
              f"| {one['client_ms'] * times:,.0f} ms | {one['received'] * times / 1e6:,.2f} MB |")


def main():
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--nodes", type=int, default=1000, help="nodes that slurmctld knows (at most 20000)")
    options.add_argument("--partitions", type=int, default=4, help="that have all nodes")
    options.add_argument("--sinfo-dumps", type=int, default=1, help="dumps by sinfo; 0 for none")
    options.add_argument("--questions", type=int, default=1000, help="single questions")
    options.add_argument("--dumps", type=int, default=20, help="full dumps")
    given = options.parse_args()
    if not 2 <= given.nodes <= 20000:
        options.error("--nodes must be between 2 and 20000")
    directory = tempfile.mkdtemp(prefix="load", dir="/tmp")
    cluster = cluster_of(directory, given.nodes, given.partitions)
    try:
        asker = Asker(cluster)
        names = [node_name(1 + i % (given.nodes - 1)) for i in range(given.questions)]
        results = {"version": cluster.command("sinfo", "--version").stdout.strip(),
                   "single": asker.measure(names), "dump": asker.measure([DUMP] * given.dumps)}
        try:
            if given.sinfo_dumps:
                results["sinfo dump"] = asker.measure([SINFO_DUMP] * given.sinfo_dumps)
        except subprocess.TimeoutExpired:
            print(f"sinfo dump: no answer within {MAX_SECONDS // 2} s")
        print_tables(given.nodes, results)
    finally:
        cluster.down()
        shutil.rmtree(directory, ignore_errors=True)


if __name__ == "__main__":
    main()
