"""slurmlet-operator with a real slurmctld and a real API server: records on Nodes, cordon and drain, two
operators. Its Nodes have no daemon: none of this needs one."""
import json
import pathlib
import re
import signal
import time

import pytest

from harness.api import node_path
from harness.daemon import Slurmlet
from harness.operator_site import INTERVAL, OPERATOR, RECORD, Site
from harness.rig import wait_until
from harness.service_manager import ServiceManager

NODES = ["op001", "op002"]
DRAIN = "slurmlet.io/drain"


@pytest.fixture(scope="module")
def cluster(own_slurm):
    return own_slurm(nodes=NODES, cpus=2, cluster_name="opera")


@pytest.fixture
def site(request, plane, cluster, account, tmp_path):
    for name in NODES:
        cluster.reset(name)
    one = Site(plane, cluster, account, tmp_path)
    for name in NODES:
        one.add(name)
    yield one
    one.print_logs()
    one.end()
    for name in NODES:
        cluster.reset(name)


def test_each_node_gets_its_record_and_a_drain_shows_within_an_interval(site, timing):
    site.start()
    for name in NODES:
        record = site.wait_record(name, lambda r: r["text"])
        assert record["cluster"] == "opera"
        assert record["text"].startswith(f"NodeName={name} ")
        assert "CPULoad=N/A" in record["text"]
    began = time.monotonic()
    site.slurm.command("scontrol", "update", "nodename=op001", "state=drain", "reason=bad dimm")
    site.wait_record("op001", lambda r: "State=IDLE+DRAIN" in r["text"] and "bad dimm" in r["text"])
    seconds = time.monotonic() - began
    timing(f"drain to record, interval {INTERVAL} s", seconds)
    assert seconds < INTERVAL + 10


def test_a_quiet_site_is_written_once(site):
    site.start()
    for name in NODES:
        site.wait_record(name, lambda r: r["text"])
    site.wait_dumps("op001")  # what was under way in slurmctld is over

    def written(name):
        """By the operator; controllers write to new Nodes too."""
        fields = site.node(name)["metadata"]["managedFields"]
        return [one for one in fields if one["manager"].startswith("slurmlet")], site.record(name)["text"]
    before = [written(name) for name in NODES]
    assert all(fields for fields, _ in before)
    site.wait_dumps("op001", 3)
    assert before == [written(name) for name in NODES]


def test_words_in_a_comment_make_no_record_of_another_node(site):
    """Nor do they make its own one unreadable."""
    forged = "NodeName=op002 Arch=x CoresPerSocket=1 CPUAlloc=0 CPUTot=2 State=DOWN AllocTRES= Comment="
    site.start()
    for name, comment in (("op001", f"x\n{forged}"), ("op002", "replaced, CPUs=2 only")):
        site.slurm.command("scontrol", "update", f"nodename={name}", f"comment={comment}")
    site.wait_record("op001", lambda r: forged in r["text"])
    record = site.wait_record("op002", lambda r: "CPUs=2 only" in r["text"])
    assert record["text"].count("NodeName=") == 1 and " State=DOWN" not in record["text"]
    for name in NODES:
        site.cordon(name)
        site.wait_drained(name)
        site.wait_record(name, lambda r: "DRAIN" in r["text"])
    for name in NODES:
        site.slurm.command("scontrol", "update", f"nodename={name}", "comment=")


def test_a_node_that_slurm_does_not_know_gets_an_empty_record(site):
    """Once its daemon has said which of Slurm's nodes it is."""
    site.add("op-unknown", "op-unknown")
    site.add("op-silent")
    site.start()
    assert site.wait_record("op-unknown", lambda r: r["dumpedAt"])["text"] == ""
    site.wait_dumps("op001")
    assert site.record("op-silent") is None


def test_nodes_of_others_are_left_alone(site):
    site.start()
    site.api.create("/api/v1/nodes", {"metadata": {"name": "foreign", "labels": {"type": "virtual-kubelet"}}})
    try:
        site.wait_record("op001", lambda r: r["text"])
        site.wait_dumps("op001")
        assert RECORD not in site.node("foreign")["metadata"].get("annotations", {})
    finally:
        site.api.delete(node_path("foreign"))


def test_a_cordon_drains_and_an_uncordon_undrains(site, timing):
    site.start()
    site.wait_record("op001", lambda r: r["text"])
    began = time.monotonic()
    site.cordon("op001")
    site.wait_drained("op001")
    timing("cordon to drain", time.monotonic() - began)
    assert site.reason("op001") == "slurmlet: cordoned"
    assert "DRAIN" not in site.state("op002")
    wait_until(lambda: "SlurmNodeDrained" in site.events("op001"), what="the Event")
    site.cordon("op001", False)
    site.wait_undrained("op001")
    wait_until(lambda: "SlurmNodeUndrained" in site.events("op001"), what="the Event")


def test_a_running_job_goes_on_when_its_node_is_cordoned(site):
    site.start()
    job = site.slurm.submit("op001")
    site.cordon("op001")
    site.wait_drained("op001")
    site.wait_dumps("op001")
    assert site.slurm.job_state(job) == "RUNNING"
    site.slurm.command("scancel", job)


@pytest.mark.parametrize("order", ["drained first", "cordoned first"])
def test_a_drain_by_an_administrator_is_neither_overwritten_nor_undone(site, order):
    site.start()
    site.wait_record("op001", lambda r: r["text"])
    if order == "cordoned first":
        site.cordon("op001")
        site.wait_drained("op001")
    site.slurm.command("scontrol", "update", "nodename=op001", "state=drain", "reason=bad dimm")
    site.cordon("op001")
    site.wait_dumps("op001")
    assert site.reason("op001") == "bad dimm"
    site.cordon("op001", False)
    site.wait_dumps("op001", 3)
    assert "DRAIN" in site.state("op001")
    assert site.reason("op001") == "bad dimm"


@pytest.mark.parametrize("state", ["down", "fail"])
def test_a_node_that_is_down_or_fails_is_drained_and_keeps_its_reason(site, state):
    """Slurm has one for all; that the drain is ours stands on the Node meanwhile."""
    site.slurm.command("scontrol", "update", "nodename=op001", f"state={state}", "reason=fire")
    before = site.state("op001")
    site.cordon("op001")
    site.start()
    site.wait_drained("op001")
    assert site.reason("op001") == "fire"
    assert json.loads(site.node("op001")["metadata"]["annotations"][DRAIN]) == {
        "slurmNode": "op001", "state": state.upper(), "reason": "fire"}
    site.cordon("op001", False)
    site.wait_undrained("op001")
    wait_until(lambda: site.state("op001") == before, what="the state of before")  # DOWN: once slurmd has answered again
    assert site.reason("op001") == "fire"
    wait_until(lambda: DRAIN not in site.node("op001")["metadata"]["annotations"], what="no annotation")


def test_the_end_of_an_administrators_drain_of_a_node_that_is_down_is_his(site):
    """Another Reason than the one that was noted."""
    site.slurm.command("scontrol", "update", "nodename=op001", "state=down", "reason=fire")
    site.cordon("op001")
    site.start()
    site.wait_drained("op001")
    site.slurm.command("scontrol", "update", "nodename=op001", "state=drain", "reason=bad dimm")
    site.cordon("op001", False)
    wait_until(lambda: DRAIN not in site.node("op001")["metadata"]["annotations"], what="no annotation")
    site.wait_dumps("op001")
    assert "DRAIN" in site.state("op001") and site.reason("op001") == "bad dimm"


def test_a_node_in_no_partition_is_drained(site):
    partition = re.search(r"PartitionName=(\S+)", site.slurm.command("scontrol", "show", "partition").stdout)[1]
    site.slurm.command("scontrol", "update", f"partitionname={partition}", "nodes=op002")
    try:
        site.start()
        site.cordon("op001")
        site.wait_drained("op001")
        site.cordon("op001", False)
        site.wait_undrained("op001")
    finally:
        site.slurm.command("scontrol", "update", f"partitionname={partition}", "nodes=op001,op002")


def test_a_node_that_claims_to_be_another_drains_nothing(site):
    site.add("intruder", slurm_node="op001")
    site.cordon("intruder")
    site.start()
    wait_until(lambda: "CordonNotDrained" in site.events("intruder"), what="the Event")
    site.wait_dumps("op001")
    assert "DRAIN" not in site.state("op001")


@pytest.mark.parametrize("reported, told", [("alien", False), (None, True)], ids=["of another", "of none yet"])
def test_a_node_of_another_cluster_is_not_touched(site, reported, told):
    """By what its daemon reports; it has the name of a node of ours."""
    site.api.merge(node_path("op001"), {"metadata": {"annotations": {"slurmlet.io/slurm-cluster": reported}}})
    site.cordon("op001")
    site.start()
    site.wait_record("op002", lambda r: r["text"])
    if told:
        wait_until(lambda: "CordonNotDrained" in site.events("op001"), what="the Event")
    site.wait_dumps("op001")
    assert "DRAIN" not in site.state("op001")
    assert site.record("op001") is None
    assert ("CordonNotDrained" in site.events("op001")) == told


def test_its_slurm_conf_is_that_of_its_commands_and_the_service_manager_hears_that_it_lives(site, tmp_path):
    with ServiceManager(tmp_path / "notify") as manager:
        site.start(environment={"SLURM_CONF": str(site.slurm.conf_path),
                                **manager.environment(watchdog_seconds=3)})
        manager.wait(lambda message: message.get("READY") == "1")
        assert site.wait_record("op001", bool)["cluster"] == "opera"
        for _ in range(3):
            manager.wait(lambda message: message.get("WATCHDOG") == "1", timeout=3)


def test_a_dry_run_changes_nothing(site):
    site.cordon("op001")
    one = site.start("--dry-run")
    wait_until(lambda: "would drain Slurm node op001" in one.output(), what="the words")
    site.wait_dumps("op001")
    assert "DRAIN" not in site.state("op001")
    assert site.record("op001") is None


def test_an_operator_that_is_killed_goes_on_where_it_was(site):
    for _ in range(3):
        one = site.start("--leader-elect=false")
        site.cordon("op001")
        site.cordon("op002")
        wait_until(lambda: "DRAIN" in site.state("op001") + site.state("op002"), 30, "a drain")
        one.kill()
        two = site.start("--leader-elect=false")
        site.wait_drained("op001")
        site.wait_drained("op002")
        site.cordon("op001", False)
        site.cordon("op002", False)
        wait_until(lambda: "DRAIN" not in site.state("op001") or "DRAIN" not in site.state("op002"), 30,
                   "an undrain")
        two.kill()
        three = site.start("--leader-elect=false")
        site.wait_undrained("op001")
        site.wait_undrained("op002")
        assert three.stop() < 5


def test_of_two_one_acts_and_the_other_takes_over(site, timing):
    first = site.start()
    wait_until(lambda: "this operator leads" in first.output(), what="a leader")
    second = site.start()
    first.signal(signal.SIGSTOP)
    began = time.monotonic()
    site.cordon("op001")
    wait_until(lambda: "DRAIN" in site.state("op001"), 25, "the other to act")
    seconds = time.monotonic() - began
    timing("leader stopped to the other's first act", seconds)
    assert seconds < 20
    first.signal(signal.SIGCONT)
    wait_until(lambda: "this operator does not lead" in first.output(), what="it to notice")
    drained = first.output().count("drained Slurm node")
    site.cordon("op001", False)
    site.wait_undrained("op001")
    assert first.output().count("drained Slurm node") == drained
    wait_until(lambda: "undrained Slurm node op001" in second.output(), what="it in the log")


def test_an_orderly_end_hands_over_at_once(site, timing):
    first = site.start()
    wait_until(lambda: "this operator leads" in first.output(), what="a leader")
    second = site.start()
    began = time.monotonic()
    assert first.stop() < 5
    wait_until(lambda: "this operator leads" in second.output(), what="the other to lead")
    timing("orderly hand-over", time.monotonic() - began)
    assert time.monotonic() - began < 6


def test_slurmctld_away_changes_nothing_and_is_told(site):
    one = site.start()
    before = site.wait_record("op001", lambda r: r["text"])
    site.slurm.daemon("stop", "slurmctld")
    try:
        wait_until(lambda: "slurmctld did not report the nodes" in one.output(), 40, "the words")
        site.cordon("op001")
        assert site.record("op001")["text"] == before["text"]
    finally:
        site.slurm.daemon("start", "slurmctld")
    site.wait_drained("op001")


@pytest.mark.parametrize("arguments, words", [
    (["--interval=0s"], '--interval is "0s"; it must be whole seconds between 1s and 3600s'),
    (["--frobnicate"], "there is no flag --frobnicate"),
    (["--metrics-address=nowhere"], '--metrics-address is "nowhere"; it must be ADDRESS:PORT'),
    (["--drain-policy=soon"], '--drain-policy is "soon"; it must be wait, now or deadline=DURATION'),
    (["--machine-cluster=hpc"], '--machine-cluster is "hpc"; it must be NAMESPACE/NAME'),
    (["--management-kubeconfig=/k"], "managementKubeconfig is set, but machineCluster is not"),
    (["--config=/nonexistent/o.yaml"], "/nonexistent/o.yaml"),
    (["--slurm-conf=/nonexistent/slurm.conf", "--kubeconfig=/nonexistent/k"], "/nonexistent/slurm.conf"),
])
def test_bad_input_names_the_flag_and_the_fix(tmp_path, arguments, words):
    one = Slurmlet(tmp_path / "one", arguments, program=OPERATOR)
    assert one.process.wait(20) != 0
    assert words in one.output()


def test_a_configuration_file(tmp_path):
    path = pathlib.Path(tmp_path) / "operator.yaml"
    path.write_text("apiVersion: slurmlet.io/v1alpha1\nkind: OperatorConfiguration\n"
                    "interval: 0s\nsurprise: 1\n")
    one = Slurmlet(tmp_path / "one", [f"--config={path}"], program=OPERATOR)
    assert one.process.wait(20) == 2
    assert f"{path}:3:1: interval is \"0s\"" in one.output()
    assert f"{path}:4:1: there is no setting \"surprise\"" in one.output()
