#!/usr/bin/python3
"""./dev bench operator scale: what scaling by the queue of Slurm costs slurmlet-operator at a large site.

  bench/operator/scale.py [--nodes 10000] [--deployments 200] [--jobs 100000] [--seconds 300] [--decisions 5]

A real API server with --nodes Nodes, as many Machines and --deployments MachineDeployments of Cluster API's CRDs. A real
slurmctld with as many nodes, in one partition for each MachineDeployment, and --jobs pending jobs: a tenth are elements of
ten arrays, the others were submitted one by one. Missing are Cluster API's controllers, so no Machine comes or goes, and
slurmd, so no job starts: to the operator all nodes are allocated but those of --decisions partitions (Queue.programs).

  settled     CPU of the operator and of its children (scontrol, squeue) for --seconds, memory, and what one squeue takes
  decision    a job asks for two nodes more than its partition has: from sbatch to `replicas`, --decisions times

The goals are those of the table; exit code 1 where one is missed. Setting up takes twenty minutes on two cores.
"""
import argparse
import concurrent.futures
import http.client
import json
import os
import pathlib
import re
import resource
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
sys.path[:0] = [str(ROOT / "test/lab"), str(ROOT / "bench"), str(ROOT / "bench/operator")]
from cordons import Rows, make_idle, metric, side_by_side  # noqa: E402
from harness.autoscaling import FLAGS, SIZE, scaling_account  # noqa: E402
from harness.cluster_api import CORE, CRDS, LABELS, own_crds  # noqa: E402
from harness.control_plane import ControlPlane  # noqa: E402
from harness.operator_site import HOOK, Site  # noqa: E402
from harness.programs import free_port  # noqa: E402
from harness.rig import wait_until  # noqa: E402
from slurmcluster import SlurmCluster  # noqa: E402
from slurmcluster.config import find_program, write_script  # noqa: E402
from slurmctld_load import node_name  # noqa: E402

CPUS, MORE, ARRAYS, CLIENTS = 128, 2, 10, 3
REFRESH = 600  # seconds, of records at 10,000 Nodes
KINDS = ("machines.cluster.x-k8s.io", "machinedeployments.cluster.x-k8s.io")


def partition_of(index):
    return f"q{index:03d}"


class Queue:
    """slurmctld, and what is in its queue. Of the partitions the last `free` ones have idle nodes and no jobs."""

    def __init__(self, directory, nodes, partitions, free):
        self.slurm, self.partitions, self.free = SlurmCluster(directory), partitions, free
        self.each = nodes // partitions
        self.nodes = [node_name(index + 1) for index in range(self.each * partitions)]

    def up(self):
        names = f"c[00001-{len(self.nodes):05d}]"
        self.slurm.up(nodes=["n1"], cpus=4, jwt=True, conf_lines=[
            f"NodeName={names} NodeHostname={names} NodeAddr=127.0.0.1 Port={free_port()} CPUs={CPUS} RealMemory=512000 "
            "Gres=gpu:a100:4", "GresTypes=gpu", "SlurmdTimeout=0", "MaxJobCount=200000", "MaxArraySize=20000",
            # None of the jobs can start, so let the scheduler hardly try.
            "SchedulerType=sched/builtin", "SchedulerParameters=defer,default_queue_depth=1,sched_min_interval=20000000"])
        with open(self.slurm.conf_path, "a", encoding="ascii") as conf:
            for index in range(self.partitions):
                first = index * self.each + 1
                conf.write(f"PartitionName={partition_of(index)} Nodes=c[{first:05d}-{first + self.each - 1:05d}]\n")
        self.slurm.daemon("restart", "slurmctld")
        make_idle(self.slurm, self.nodes)

    def programs(self, directory):
        """Slurm's, for the operator. Without a slurmd no node is allocated or idle, so scontrol lists what slurmctld lists,
        after it has been asked, but with other states."""
        directory.mkdir()
        for name in ("squeue", "sinfo", "scancel"):
            (directory / name).symlink_to(find_program(name))
        environment = {**self.slurm.own_env(), "SLURM_TIME_FORMAT": "%s"}
        text = self.slurm.command("scontrol", "-a", "-d", "-o", "show", "node", environment=environment).stdout
        used = {f" Partitions={partition_of(index)} " for index in range(self.partitions - self.free)}
        (directory / "nodes").write_text("".join(
            re.sub(r" State=\S+", " State=" + ("ALLOCATED" if any(one in used for one in re.findall(r" Partitions=\S+ ", line))
                                               else "IDLE"), line, count=1) for line in text.splitlines(True)))
        write_script(str(directory / "scontrol"), f"""#!/bin/sh
case "$*" in *"show node"*) {find_program("scontrol")} "$@" >/dev/null && exec cat {directory}/nodes ;; esac
exec {find_program("scontrol")} "$@"
""")
        return directory

    def submit(self, count):
        """A tenth as arrays. slurmrestd takes the others sooner than as many sbatch."""
        used = self.partitions - self.free
        elements = max(count // 10 // ARRAYS, 1)
        for index in range(ARRAYS):
            self.slurm.command("sbatch", f"--array=1-{elements}", f"--partition={partition_of(index * used // ARRAYS)}", "-n1",
                               "-c8", "--mem=16G", "--output=/dev/null", "--chdir=/", "--wrap=true")
        token, port = self.slurm.token(lifespan=36000), self.slurm.spec.ports["slurmrestd-jwt"]
        headers = {"X-SLURM-USER-NAME": "root", "X-SLURM-USER-TOKEN": token, "Content-Type": "application/json"}

        def send(first):
            connection = http.client.HTTPConnection("127.0.0.1", port)
            for index in range(first, count - ARRAYS * elements, CLIENTS):
                connection.request("POST", "/slurm/v0.0.38/job/submit", json.dumps({
                    "script": "#!/bin/sh\n", "job": {
                        "partition": partition_of(index % used), "current_working_directory": "/", "tasks": 1,
                        "cpus_per_task": 4 + index % 13, "environment": {"PATH": "/bin"}, "name": "bench"}}), headers)
                answer = connection.getresponse()
                text = answer.read()
                if answer.status != 200:
                    raise RuntimeError(f"slurmrestd: {answer.status}: {text[-500:]}")
        with concurrent.futures.ThreadPoolExecutor(CLIENTS) as pool:
            list(pool.map(send, range(CLIENTS)))

    def ask(self):
        """(lines of squeue, its CPU seconds)"""
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        lines = self.slurm.command("squeue", "--local", "-a", "-h", "-t", "PENDING", "-O", "JobID,Reason,tres-alloc",
                                   seconds=300).stdout.count("\n")
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        return lines, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


class Objects:
    """Nodes, Machines and MachineDeployments."""

    def __init__(self, api, queue):
        self.api, self.queue = api, queue

    def create(self, site):
        for crd in own_crds():
            if crd["metadata"]["name"] in KINDS:
                self.api.create(CRDS, crd)
        wait_until(lambda: all(any(one["type"] == "Established" and one["status"] == "True" for one in
                                   self.api.get(f"{CRDS}/{name}").get("status", {}).get("conditions", []))
                               for name in KINDS), what="Cluster API's kinds")
        side_by_side(self.make_deployment, range(self.queue.partitions))
        side_by_side(lambda name: site.api.create("/api/v1/nodes", {"metadata": {
            "name": name, "labels": {"slurmlet.io/version": "0.1.0"}, "annotations": {
                "slurmlet.io/slurm-node": name,
                "slurmlet.io/slurm-cluster": self.queue.slurm.spec.cluster_name.lower()}}}), self.queue.nodes)
        side_by_side(self.make_machine, range(len(self.queue.nodes)))

    def make_deployment(self, index):
        name = partition_of(index)
        is_free = index >= self.queue.partitions - self.queue.free
        template = {"clusterName": LABELS["cluster.x-k8s.io/cluster-name"], "bootstrap": {"dataSecretName": "none"},
                    "infrastructureRef": {"apiGroup": "infrastructure.cluster.x-k8s.io", "kind": "None", "name": name}}
        self.api.create(f"{CORE}/machinedeployments", {
            "apiVersion": "cluster.x-k8s.io/v1beta2", "kind": "MachineDeployment",
            "metadata": {"name": name, "labels": LABELS, "annotations": {
                "slurmlet.io/scale-for": f"partition={name}", "slurmlet.io/idle-after": "24h",
                SIZE + "min-size": str(self.queue.each if is_free else 0),
                SIZE + "max-size": str(self.queue.each + (MORE if is_free else 0)),
                "capacity.cluster-autoscaler.kubernetes.io/cpu": str(CPUS)}},
            "spec": {"clusterName": template["clusterName"], "replicas": self.queue.each,
                     "selector": {"matchLabels": {"pool": name}},
                     "template": {"metadata": {"labels": {**LABELS, "pool": name}}, "spec": template}}})

    def make_machine(self, index):
        node = self.queue.nodes[index]
        pool = partition_of(index // self.queue.each)
        self.api.create(f"{CORE}/machines", {
            "apiVersion": "cluster.x-k8s.io/v1beta2", "kind": "Machine",
            "metadata": {"name": f"m-{node}", "annotations": {HOOK: ""}, "labels": {
                **LABELS, "cluster.x-k8s.io/deployment-name": pool}},
            "spec": {"clusterName": LABELS["cluster.x-k8s.io/cluster-name"], "bootstrap": {"dataSecretName": "none"},
                     "infrastructureRef": {"apiGroup": "infrastructure.cluster.x-k8s.io", "kind": "None", "name": node}}})
        self.api.merge(f"{CORE}/machines/m-{node}/status", {"status": {
            "nodeRef": {"name": node}, "addresses": [{"type": "Hostname", "address": node}]}})

    def replicas(self, name):
        return self.api.get(f"{CORE}/machinedeployments/{name}")["spec"]["replicas"]


class Meter:
    """What the operator uses: (own CPU seconds, those of its ended children), and its memory in MB."""

    def __init__(self, pid):
        self._proc = pathlib.Path(f"/proc/{pid}")

    def cpu(self):
        fields = [int(one) for one in self._proc.joinpath("stat").read_text().rpartition(")")[2].split()[11:15]]
        tick = os.sysconf("SC_CLK_TCK")
        return sum(fields[:2]) / tick, sum(fields[2:]) / tick

    def megabytes(self, key="VmRSS"):
        text = self._proc.joinpath("status").read_text()
        return next(int(line.split()[1]) for line in text.splitlines() if line.startswith(key + ":")) * 1024 / 1e6


def settle(options, rows, operator, port):
    """Each Node has its record, and they are written anew, as always then."""
    began = time.monotonic()
    writes = 'slurmlet_operator_record_writes_total{result="success"}'
    wait_until(lambda: metric(port, writes) >= options.nodes, 1200, "each Node's record")
    rows.add("each Node has its record after", time.monotonic() - began)
    rows.add("memory, most until then", Meter(operator.pid).megabytes("VmHWM"), unit="MB")
    time.sleep(max(0.0, REFRESH - (time.monotonic() - began)))


def spend(options, rows, operator, port):
    meter = Meter(operator.pid)
    began, (own, children), most = time.monotonic(), meter.cpu(), 0.0
    while time.monotonic() - began < options.seconds:
        most = max(most, meter.megabytes())
        time.sleep(1)
    passed, (own_after, children_after) = time.monotonic() - began, meter.cpu()
    own, children = (own_after - own) / passed * 100, (children_after - children) / passed * 100
    rows.add(f"CPU in {passed:.0f} s, with scontrol and squeue", own + children, 3, "% of a core")
    rows.add("    slurmlet-operator itself", own, unit="% of a core")
    rows.add("    scontrol and squeue", children, unit="% of a core")
    rows.add("memory", most, 80, "MB")
    rows.add("a dump takes", metric(port, "slurmlet_operator_dump_seconds"))


def decide(options, rows, queue, objects):
    took = []
    for index in range(queue.partitions - queue.free, queue.partitions):
        name = partition_of(index)
        before = objects.replicas(name)
        time.sleep(35 + 7 * (index % 4))  # not in step with the operator's interval, which an action shortens
        queue.slurm.command("sbatch", f"--partition={name}", f"--nodes={queue.each + MORE}", "--exclusive",
                            "--output=/dev/null", "--chdir=/", "--wrap=true", seconds=300)
        began = time.monotonic()
        objects.api.wait(f"{CORE}/machinedeployments",
                         lambda one, _, most=before: one["spec"]["replicas"] > most, 120, "metadata.name=" + name)
        took.append(time.monotonic() - began)
        assert objects.replicas(name) == before + MORE
    rows.add(f"from sbatch to replicas, longest of {len(took)}", max(took), 30)
    rows.add("    shortest", min(took))


def run(options, directory):
    rows = Rows()
    queue = Queue(str(directory / "sl"), options.nodes, options.deployments, options.decisions)
    with queue.slurm, ControlPlane(directory / "cp") as plane:
        queue.up()
        # Without its controllers: they would write to each Node, as none has a daemon.
        site = Site(plane, queue.slurm, scaling_account(plane), directory)
        plane.ctl("stop", "kube-controller-manager")
        objects, port, began = Objects(plane.admin, queue), free_port(), time.monotonic()
        objects.create(site)
        rows.add("Nodes, Machines and MachineDeployments created in", time.monotonic() - began)
        began = time.monotonic()
        queue.submit(options.jobs)
        rows.add(f"{options.jobs} jobs submitted in", time.monotonic() - began)
        lines, cpu = queue.ask()
        rows.add("lines of squeue", lines, unit="")
        rows.add("CPU of one squeue", cpu)
        operator = site.start(*FLAGS, f"--slurm-bin-dir={queue.programs(directory / 'bin')}", "--interval=auto", f"--metrics-address=127.0.0.1:{port}")
        try:
            wait_until(lambda: "this operator leads" in operator.output(), what="the lead")
            settle(options, rows, operator, port)
            jobs = sum(metric(port, f'slurmlet_operator_partition_pending_jobs{{partition="{partition_of(index)}"}}')
                       for index in range(options.deployments))
            rows.add("jobs that the operator counts", int(jobs), unit="")
            spend(options, rows, operator, port)
            decide(options, rows, queue, objects)
        except BaseException:
            site.print_logs()
            raise
        finally:
            operator.stop()
    return rows.missed


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--nodes", type=int, default=10000)
    parser.add_argument("--deployments", type=int, default=200)
    parser.add_argument("--jobs", type=int, default=100000)
    parser.add_argument("--seconds", type=int, default=300, help="of the settled site")
    parser.add_argument("--decisions", type=int, default=5)
    options = parser.parse_args()
    if options.nodes % options.deployments or not ARRAYS < options.deployments - options.decisions:
        parser.error("--nodes must be a multiple of --deployments, and these more than --decisions and ten")
    with tempfile.TemporaryDirectory(prefix="op", dir="/tmp") as directory:
        pathlib.Path(directory).chmod(0o755)
        return 1 if run(options, pathlib.Path(directory)) else 0


if __name__ == "__main__":
    sys.exit(main())
