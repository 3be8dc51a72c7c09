"""slurmlet-operator that dumps all nodes by slurmrestd: records in JSON, what a quiet site costs, what happens when
slurmrestd or slurmctld goes, over the unix socket and over HTTPS with a token."""
import json
import pathlib
import re
import shutil
import subprocess

import pytest

from harness.api import condition, slurm_states
from harness.certificates import Authority
from harness.metric_names import one as sample
from harness.operator_site import OPERATOR, RECORD, Site
from harness.programs import free_port, get_page
from harness.rig import wait_until
from harness.tls_front import TlsFront

NODES = ["rest001", "rest002"]


@pytest.fixture(scope="module")
def cluster(slurm_root, own_slurm):
    return own_slurm(nodes=NODES, cpus=2, gpus="a100:2", cluster_name="opera", root=slurm_root, slurmrestd=True,
                     jwt=True, conf_lines=["MessageTimeout=2"])


def by_socket(cluster):
    return ["--slurm-source=rest", f"--slurm-rest-url=unix:{cluster.layout.restd_socket}"]


@pytest.fixture(name="site")
def site_of_two_nodes(request, plane, cluster, account, tmp_path):
    for daemon in ("slurmctld", "slurmrestd", "slurmrestd-jwt"):
        if cluster.pid(daemon) is None:
            cluster.daemon("start", daemon)
    for name in NODES:
        cluster.reset(name)
    one = Site(plane, cluster, account, tmp_path)
    for name in NODES:
        one.add(name)
    yield one
    one.print_logs()
    one.end()


def states(record):
    """Of a record's text, in upper case, whatever the release."""
    told = json.loads(record["text"])
    words = told["state"] if isinstance(told["state"], list) else told["state"].split("+")
    return {word.upper() for word in [*words, *(told.get("state_flags") or [])]}


def metric(port, name):
    return sample(get_page(port, "/metrics")[1], name)


def test_records_drains_and_cordons(site):
    one = site.start(*by_socket(site.slurm))
    for name in NODES:
        record = site.wait_record(name, lambda r: r["text"])
        told = json.loads(record["text"])
        assert record["cluster"] == "opera" and told["name"] == name and "cpu_load" not in told
        assert states(record) == {"IDLE"}
    site.slurm.command("scontrol", "update", "nodename=rest001", "state=drain", "reason=bad dimm")
    site.wait_record("rest001", lambda r: states(r) == {"IDLE", "DRAIN"} and "bad dimm" in r["text"])
    site.cordon("rest002")
    site.wait_drained("rest002")
    assert site.reason("rest002") == "slurmlet: cordoned"
    site.wait_record("rest002", lambda r: "DRAIN" in states(r))
    site.cordon("rest002", False)
    site.wait_undrained("rest002")
    assert site.reason("rest001") == "bad dimm"  # an administrator's
    assert "slurmSource=rest" in one.output()


def test_a_job_makes_mixed_and_its_end_idle(site):
    site.start(*by_socket(site.slurm))
    job = site.slurm.submit("rest001", "-n1", "--gres=gpu:a100:1")
    record = site.wait_record("rest001", lambda r: states(r) == {"MIXED"})
    assert "gpu:a100:1" in json.loads(record["text"])["gres_used"]
    site.slurm.command("scancel", job)
    site.wait_record("rest001", lambda r: states(r) == {"IDLE"})


def test_a_quiet_site_answers_that_nothing_has_changed(site):
    """Since 24.11's v0.0.42, where the answer says of when it is; a change shows all the same."""
    port = free_port()
    site.start(*by_socket(site.slurm), f"--metrics-address=127.0.0.1:{port}")
    site.wait_record("rest001", lambda r: r["text"])
    if site.slurm.release >= (23, 11):
        wait_until(lambda: metric(port, "slurmlet_operator_dumps_unchanged_total") > 2, 30, "a dump without changes")
    else:
        wait_until(lambda: metric(port, "slurmlet_operator_dump_timestamp_seconds") > 0, 30, "a dump")
        assert metric(port, "slurmlet_operator_dumps_unchanged_total") == 0
    site.slurm.command("scontrol", "update", "nodename=rest001", "state=drain", "reason=after that")
    site.wait_record("rest001", lambda r: states(r) == {"IDLE", "DRAIN"})


def test_slurmrestd_and_slurmctld_are_told_apart(site):
    one = site.start(*by_socket(site.slurm))
    site.wait_record("rest001", lambda r: r["text"])
    for daemon, words in (("slurmrestd", r"slurmrestd unavailable: slurmrestd unix:\S+: connection refused"),
                          ("slurmctld", "(ControllerUnreachable|ControllerTimeout): ")):
        said = len(one.output())
        site.slurm.daemon("kill", daemon)
        wait_until(lambda words=words, said=said: re.search("did not report the nodes: " + words,
                                                            one.output()[said:]), 30, "the failure in the log")
        assert states(site.record("rest001")) == {"IDLE"}
        began = one.output().count("slurmctld reports 2 nodes")
        site.slurm.daemon("start", daemon)
        wait_until(lambda began=began: one.output().count("slurmctld reports 2 nodes") > began, 60, "a good dump")
    assert one.process.poll() is None


def check(site, *flags):
    done = subprocess.run([OPERATOR, "check", f"--kubeconfig={site.account.kubeconfig(site.directory)}",
                           f"--slurm-conf={site.slurm.conf_path}", *flags], env={"PATH": "/usr/bin:/bin"},
                          capture_output=True, text=True, check=False, timeout=60)
    return done.stdout + done.stderr


def test_check_looks_at_slurmrestd(site):
    url = f"unix:{site.slurm.layout.restd_socket}"
    said = check(site, *by_socket(site.slurm))
    assert re.search(rf"\+ slurmctld +2 nodes in \d+ ms by slurmrestd {url}\n", said), said
    site.slurm.daemon("kill", "slurmrestd")
    said = check(site, *by_socket(site.slurm))
    assert re.search(rf"x slurmctld +does not report its nodes: .*slurmrestd {url}: connection refused", said), said
    assert "slurmSource is rest, but slurmRestURL is not set" in check(site, "--slurm-source=rest")


# A copied setting would publish another cluster's states, and nothing would look wrong.
def test_check_does_not_take_another_clusters_slurmrestd(site, tmp_path):
    if site.slurm.release < (23, 2):
        pytest.skip("this release's slurmrestd does not say whose it is")
    conf = tmp_path / "slurm.conf"
    text = pathlib.Path(site.slurm.conf_path).read_text(encoding="utf-8")
    conf.write_text(re.sub("(?m)^ClusterName=.*", "ClusterName=other", text), encoding="utf-8")
    said = check(site, *by_socket(site.slurm), f"--slurm-conf={conf}")
    assert re.search(r"x slurmctld +belongs to another cluster: .*answers for cluster opera, "
                     "but ClusterName in slurm.conf is other", said), said


def test_over_https_with_a_token(site, tmp_path_factory, tmp_path):
    """Slurmrestd's CA changes before the operator's file does."""
    old, new = (Authority(tmp_path_factory.mktemp(name)) for name in ("old", "new"))
    certificate, key = new.issue("slurmrestd", "slurmrestd", names=["IP:127.0.0.1"])
    ca_file = tmp_path / "ca.crt"
    shutil.copy(old.crt, ca_file)
    token = tmp_path / "slurm.jwt"
    token.touch(mode=0o600)
    token.write_text(site.slurm.token("root"))
    with TlsFront(site.slurm.spec.ports["slurmrestd-jwt"], certificate, key) as front:
        one = site.start("--slurm-source=rest", f"--slurm-rest-url={front.url}", f"--slurm-jwt-file={token}",
                         f"--slurm-rest-ca-file={ca_file}")
        wait_until(lambda: "slurmctld did not report the nodes: " in one.output(), what="the words")
        assert "certificate" in one.output().partition("slurmctld did not report the nodes: ")[2].splitlines()[0]
        assert not site.record("rest001")
        shutil.copy(new.crt, tmp_path / "next")
        (tmp_path / "next").rename(ca_file)
        site.wait_record("rest001", lambda r: r["text"])
        assert token.read_text().rpartition(".")[2] not in one.output()


def test_the_daemon_of_a_node_reads_it(rig_of, cluster, account, plane, tmp_path):
    rig = rig_of(cluster)
    rig.environment.update({"PATH": "/nonexistent"})
    rig.configure(slurm={"source": "operator", "binDir": "/nonexistent", "nodeName": NODES[0]})
    site = Site(plane, cluster, account, tmp_path)
    cluster.reset(NODES[0])
    rig.start()
    try:
        site.start(*by_socket(cluster))
        rig.wait_known()
        assert json.loads(json.loads(rig.node()["metadata"]["annotations"][RECORD])["text"])["name"] == NODES[0]
        assert slurm_states(rig.node()) == {"Idle"}
        assert rig.node()["status"]["capacity"]["nvidia.com/gpu"] == "2"
        cluster.command("scontrol", "update", f"nodename={NODES[0]}", "state=drain", 'reason=dimm "3" is bad')
        found = rig.wait_condition("SlurmNodeStateDrain", "True", "Drained")
        assert 'dimm "3" is bad' in found["message"] and " by root" in found["message"]
        cluster.reset(NODES[0])
        job = cluster.submit(NODES[0], "-n1")
        rig.wait(lambda node: slurm_states(node) == {"Mixed"})
        cluster.command("scancel", job)
        rig.wait(lambda node: slurm_states(node) == {"Idle"})
        assert condition(rig.node(), "Ready")["status"] == "True"
    finally:
        site.end()
        rig.stop()
