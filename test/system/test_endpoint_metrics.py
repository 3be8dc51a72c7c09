"""Numbers: /metrics, /metrics/resource and /stats/summary, read as their users read them."""
import os
import pathlib
import re
import threading
import time

import pytest

from harness.api import quantity, repository
from harness.certificates import cluster_authority
from harness.kubelet_client import KubeletClient
from harness.metric_names import METRICS, OLD_NAMES, one, samples
from harness.metrics_server import MetricsServer
from harness.programs import free_port
from harness.prometheus import Prometheus, check_metrics
from harness.rig import wait_until
from harness.service_account import ServiceAccount, apply

TICKS = os.sysconf("SC_CLK_TCK")
# Not there until something of the kind happened, or as long as there is nothing to count.
LATER = {"slurmlet_slurmctld_failures_total", "slurmlet_endpoint_rejected_connections_total",
         "slurmlet_certificate_expiration_timestamp_seconds",
         "slurmlet_certificate_request_pending", "slurmlet_certificate_requests_total",
         "slurmlet_certificate_renewals_total"}


def prepare(rig):
    """With a serving certificate of the cluster's CA for all that clients may call the node."""
    rig.ports = {"port": free_port(), "healthzPort": free_port()}
    rig.pki = cluster_authority(rig.plane, rig.directory / "pki")
    names = [f"DNS:{rig.name}", "IP:127.0.0.1", *[f"IP:{one}" for one in own_addresses()]]
    certificate, key = rig.pki.issue("serving", f"system:node:{rig.name}", ["system:nodes"], names)
    for path in (rig.pki.directory, certificate, key):
        path.chmod(0o755 if path.is_dir() else 0o644)  # the daemon is another user
    rig.configure(endpoint={**rig.ports, "certificateFile": str(certificate), "keyFile": str(key)})


def own_addresses():
    """IPv4 addresses of this machine but loopback."""
    text = pathlib.Path("/proc/net/fib_trie").read_text()
    found = set(re.findall(r"\|-- ([\d.]+)\n\s+/32 host LOCAL", text))
    return sorted(one for one in found if not one.startswith("127."))


@pytest.fixture(scope="module", name="reader")
def metrics_reader(shared_rig, plane):
    """A client with the rights of deploy/rbac/metrics-reader.yaml and no others."""
    apply(plane, repository() / "deploy/rbac/metrics-reader.yaml")
    account = ServiceAccount(plane, "slurmlet-metrics-reader", "kube-system")
    return KubeletClient(shared_rig.ports["port"], ca=shared_rig.pki.crt, token=account.token())


# -- form and names --------------------------------------------------------------------------


@pytest.mark.parametrize("path", ["/metrics", "/metrics/resource"])
def test_promtool_finds_no_fault(reader, path):
    answer = reader.get(path)
    assert answer.status == 200
    assert answer.headers["Content-Type"].startswith("text/plain; version=0.0.4")
    assert check_metrics(answer.text) == ""


def test_metrics_are_those_that_the_alerts_know(reader):
    found = samples(reader.get("/metrics").text)
    ours = {name for name in found if name.startswith(("slurmlet_", "process_"))}
    assert ours - METRICS.keys() == OLD_NAMES
    assert METRICS.keys() - ours <= LATER
    for name in ours - OLD_NAMES:
        for labels, _ in found[name]:
            assert set(labels) == METRICS[name], name


def test_slurm_s_figures(shared_rig, idle_slurm, reader):
    def value(name, **labels):
        return one(reader.get("/metrics").text, name, **labels)
    assert value("slurmlet_slurmd_up") == 1
    assert value("slurmlet_slurm_gpus", kind="total") == 4
    assert value("slurmlet_slurm_cpus", kind="total") == max(2, os.cpu_count())
    idle_slurm.set_state("nid000001", "drained", "to be counted")
    wait_until(lambda: {labels["state"] for labels, number in samples(
        reader.get("/metrics").text)["slurmlet_slurm_node_state"] if number == 1} ==
        {"idle", "drain"}, what="the state in the metrics")
    assert value("slurmlet_node_registered") == 1
    assert value("slurmlet_lease_age_seconds") < 40


def test_memory_of_jobs_is_slurm_s_or_left_out(shared_rig, idle_slurm, reader):
    """The jobs of this Slurm have no cgroup with a limit: until slurmctld answers nobody knows what they hold."""
    given = 64 << 20
    seen = []

    def kinds():
        found = samples(reader.get("/metrics").text)
        assert {labels["kind"] for labels, _ in found["slurmlet_slurm_gpus"]} == {
            "total", "allocated"}
        seen.append({labels["kind"]: value for labels, value in found["slurmlet_slurm_memory_bytes"]})
        return seen[-1]
    total = kinds()["total"]
    assert total <= meminfo("MemTotal")
    none, known = ({"total": total, "allocated": value} for value in (0, given))
    wait_until(lambda: kinds() == none, what="no memory given away")
    seen.clear()
    idle_slurm.submit("nid000001", "--mem=64M")
    wait_until(lambda: kinds() == known, what="the job's memory")
    assert all(one in (none, {"total": total}, known) for one in seen)
    idle_slurm.reset("nid000001")
    wait_until(lambda: kinds() == none, what="the job's memory back")


def test_process_figures_are_the_daemon_s(shared_rig, reader):
    text = reader.get("/metrics").text
    status = pathlib.Path(f"/proc/{shared_rig.daemon.pid}/status").read_text()
    rss = int(re.search(r"VmRSS:\s+(\d+)", status)[1]) * 1024
    assert one(text, "process_resident_memory_bytes") == pytest.approx(rss, rel=0.2)
    threads = int(re.search(r"Threads:\s+(\d+)", status)[1])
    assert one(text, "process_threads") == threads
    assert one(text, "process_start_time_seconds") == pytest.approx(
        pathlib.Path(f"/proc/{shared_rig.daemon.pid}").stat().st_mtime, abs=5)
    files = len(list(pathlib.Path(f"/proc/{shared_rig.daemon.pid}/fd").iterdir()))
    assert abs(one(text, "process_open_fds") - files) <= 6  # a connection, and a child's pipes


# -- true use of the machine -------------------------------------------------------------------


def busy_seconds():
    """CPU time since boot that was not idle, of all CPUs."""
    fields = [int(one) for one in
              pathlib.Path("/proc/stat").read_text().split("\n", 1)[0].split()[1:9]]
    user, nice, system, _idle, _iowait, irq, softirq, steal = fields
    return (user + nice + system + irq + softirq + steal) / TICKS


def meminfo(name):
    text = pathlib.Path("/proc/meminfo").read_text()
    return int(re.search(rf"^{re.escape(name)}:\s+(\d+)", text, re.M)[1]) * 1024


def working_set():
    """As the kubelet has it: processes' and files' pages, less those of files long untouched."""
    used = sum(meminfo(name) for name in ("AnonPages", "Cached", "Buffers", "SwapCached"))
    return used - meminfo("Inactive(file)")


def test_resource_metrics_are_true(reader):
    before = busy_seconds()
    text = reader.get("/metrics/resource").text
    assert before - 1 <= one(text, "node_cpu_usage_seconds_total") <= busy_seconds() + 1
    assert one(text, "node_memory_working_set_bytes") == pytest.approx(
        working_set(), abs=0.02 * meminfo("MemTotal"))
    assert one(text, "resource_scrape_error") == 0


def test_stats_summary_is_true(shared_rig, reader):
    node = reader.get("/stats/summary").json()["node"]
    assert node["nodeName"] == shared_rig.name
    assert node["cpu"]["usageCoreNanoSeconds"] / 1e9 == pytest.approx(busy_seconds(), abs=2)
    total = meminfo("MemTotal")
    assert node["memory"]["workingSetBytes"] == pytest.approx(working_set(), abs=0.02 * total)
    assert node["memory"]["availableBytes"] <= total
    root = os.statvfs("/")
    assert node["fs"]["capacityBytes"] == root.f_blocks * root.f_frsize


class CpuRecord:
    """The machine's CPU use over the time of a `with` block, to be asked for any part of it."""

    def __enter__(self):
        self.samples = [(time.time(), busy_seconds())]
        self.over = threading.Event()
        self.thread = threading.Thread(target=self._record)
        self.thread.start()
        return self

    def _record(self):
        while not self.over.wait(0.25):
            self.samples.append((time.time(), busy_seconds()))

    def __exit__(self, *_):
        self.over.set()
        self.thread.join()

    def cores(self, begin, end):
        """(least, most) of the windows of that length that begin or end within a second of it: the
        API's times have whole seconds."""
        found = []
        for shift in (-1, -0.5, 0, 0.5, 1):
            first = min(self.samples, key=lambda one: abs(one[0] - begin - shift))
            last = min(self.samples, key=lambda one: abs(one[0] - end - shift))
            found.append((last[1] - first[1]) / (last[0] - first[0]))
        return min(found), max(found)


def seconds_of(timestamp):
    return time.mktime(time.strptime(timestamp, "%Y-%m-%dT%H:%M:%SZ")) - time.timezone


@pytest.mark.alone
@pytest.mark.slow
@pytest.mark.parametrize("verified", [False, True], ids=["insecure-tls", "with-ca"])
def test_kubectl_top_node_prints_true_figures(shared_rig, plane, work, verified):
    """Through metrics-server and the aggregation layer; once as its manifest for trials has it,
    once verifying the node's certificate."""
    ca = plane.directory / "pki/ca.crt" if verified else None
    with CpuRecord() as record, MetricsServer(plane, work / f"ms-{verified}", ca) as server:
        server.wait_available()
        metrics = server.wait_node(shared_rig.name)
        shown = plane.kubectl_output("top", "node", shared_rig.name, "--no-headers")
    end = seconds_of(metrics["timestamp"])
    least, most = record.cores(end - float(metrics["window"].rstrip("s")), end)
    cores = quantity(metrics["usage"]["cpu"])
    assert least - 0.15 <= cores <= most + 0.15
    total = meminfo("MemTotal")
    memory = quantity(metrics["usage"]["memory"])
    assert memory == pytest.approx(working_set(), abs=0.05 * total)
    name, millicores, _, mebibytes, _ = shown.split()
    assert name == shared_rig.name
    # The window of a busy machine is not the kernel's tick: a thousandth or two over all of it.
    assert float(millicores.removesuffix("m")) <= os.cpu_count() * 1000 * 1.05
    assert int(mebibytes.removesuffix("Mi")) * 2**20 == pytest.approx(memory, abs=0.05 * total)


# -- Prometheus ----------------------------------------------------------------------------------


def test_prometheus_scrapes_with_a_service_account_token(shared_rig, plane, work, reader):
    account = ServiceAccount(plane, "slurmlet-metrics-reader", "kube-system")
    directory = work / "prometheus"
    directory.mkdir()
    target = f"127.0.0.1:{shared_rig.ports['port']}"
    jobs = (("slurmlet", "/metrics"), ("slurmlet-resource", "/metrics/resource"))
    rules = [repository() / "deploy/prometheus/slurmlet.rules.yaml"]
    with Prometheus(directory, target, jobs, account.token_file(directory),
                    plane.directory / "pki/ca.crt", rules) as prometheus:
        for job, _ in jobs:
            prometheus.wait_query(f'up{{job="{job}"}} == 1')
        wait_until(lambda: {health for _, health, _ in prometheus.targets()} == {"up"},
                   what="both to be up at once")
        labels, value = prometheus.wait_query("slurmlet_build_info")[0]
        assert (value, labels["job"]) == (1, "slurmlet")
        # Counted, as a rate needs it: two scrapes that differ.
        prometheus.wait_query('changes(node_cpu_usage_seconds_total[30s]) > 0')


def test_prometheus_without_the_right_is_down(shared_rig, plane, work):
    account = ServiceAccount(plane, "without-metrics")
    directory = work / "prometheus-refused"
    directory.mkdir()
    with Prometheus(directory, f"127.0.0.1:{shared_rig.ports['port']}",
                    token_file=account.token_file(directory)) as prometheus:
        prometheus.wait_query('up{job="slurmlet"} == 0')
        # At first it may have been too slow.
        wait_until(lambda: "403" in prometheus.targets()[0][2], what="the scrape to be refused")
