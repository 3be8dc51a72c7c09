"""The annotation slurmlet.io/record in place of queries: what is believed of it, how long, and what
is done without it. A few lines here stand in for slurmlet-operator: they dump the real slurmctld
and patch the Node as the cluster's administrator."""
import json
import pathlib
import shutil
import time

import pytest

from harness.api import condition, slurm_states
from harness.commands import run_beside
from harness.rig import wait_until

SLURM_NODE = "nid000001"
RECORD = "slurmlet.io/record"
REFRESH, INTERVAL = 3, 1  # seconds; a record is too old after three of both
TOO_OLD = 3 * (REFRESH + INTERVAL)


class Operator:
    def __init__(self, rig, programs):
        self.rig, self.queries = rig, programs / "queries"
        self.cluster = rig.slurm.command("scontrol", "show", "config").stdout.split("ClusterName")[1].split()[1]
        self.text = ""

    def dump(self):
        lines = self.rig.slurm.command("scontrol", "--local", "-a", "-d", "-o", "show", "node").stdout
        self.text = next(line + "\n" for line in lines.splitlines()
                         if line.startswith(f"NodeName={SLURM_NODE} "))

    def annotation(self, **changes):
        fields = {"format": 1, "cluster": self.cluster, "dumpedAt": int(time.time()),
                  "intervalSeconds": INTERVAL, "refreshSeconds": REFRESH, "text": self.text, **changes}
        return json.dumps({key: value for key, value in fields.items() if value is not None})

    def write(self, annotation):
        """None removes it."""
        self.rig.admin.merge(self.rig.path, {"metadata": {"annotations": {RECORD: annotation}}})

    def publish(self):
        self.dump()
        self.write(self.annotation())

    def scontrol_runs(self):
        return self.queries.read_text().count("\n") if self.queries.exists() else 0


def prepare(rig, source):
    """A scontrol that counts how often it is run; nothing else of Slurm can be found."""
    programs = rig.directory / "programs"
    programs.mkdir(mode=0o755)
    real = shutil.which("scontrol", path=rig.slurm.bin_dir or None)
    script = programs / "scontrol"
    script.write_text(f'#!/bin/sh\necho >> {programs / "queries"}\nexec {real} "$@"\n')
    script.chmod(0o755)
    rig.configure(slurm={"source": source, "binDir": str(programs), "pollInterval": "2s",
                         "commandTimeout": "1900ms", "staleAfter": "8s", "maxBackoff": "2s"})
    return Operator(rig, programs)


@pytest.fixture(name="operator")
def with_operator(rig, idle_slurm):
    """A daemon that has a record and nothing else, and its writer."""
    operator = prepare(rig, "operator")
    operator.dump()
    rig.start()
    operator.write(operator.annotation(refreshSeconds=60))
    rig.wait_known()
    return operator


@pytest.fixture(name="auto")
def auto_with_operator(rig, idle_slurm):
    operator = prepare(rig, "auto")
    rig.start_and_know()
    operator.dump()
    return operator


def drain(rig, reason="records"):
    rig.slurm.command("scontrol", "update", f"nodename={SLURM_NODE}", "state=drain", f"reason={reason}")


def children(pid):
    return pathlib.Path(f"/proc/{pid}/task/{pid}/children").read_text().split()


def test_drain_shows_at_once_and_nobody_is_queried(rig, operator, timing):
    drain(rig)
    operator.dump()
    rig.slurm.sdiag(reset=True)
    began = time.monotonic()
    operator.write(operator.annotation(refreshSeconds=60))
    rig.wait(lambda node: node and slurm_states(node) == {"Idle", "Drain"})
    seconds = time.monotonic() - began
    timing("record written to condition", seconds)
    assert seconds < 20  # not with the next record: those come every 60 s
    assert rig.node()["metadata"]["annotations"]["slurmlet.io/slurm-reason"].startswith("records")
    end = time.monotonic() + 6  # three of the intervals in which others query
    seen = set()
    while time.monotonic() < end:
        seen.update(children(rig.daemon.pid))
        time.sleep(0.02)
    asked = rig.slurm.sdiag()["by_type"]
    assert not seen
    assert operator.scontrol_runs() == 0
    assert not [name for name in asked if name.startswith(("REQUEST_NODE_INFO", "REQUEST_PARTITION"))]


def test_the_daemon_lets_the_operators_annotations_be(rig, operator):
    others = {"slurmlet.io/detach": "Draining", "slurmlet.io/drain-policy": "wait",
              "slurmlet.io/leftover": "of an earlier release"}
    rig.admin.merge(rig.path, {"metadata": {"annotations": others}})
    node = rig.wait(lambda node: "slurmlet.io/leftover" not in node["metadata"]["annotations"])
    kept = node["metadata"]["annotations"]
    assert kept["slurmlet.io/detach"] == "Draining" and kept["slurmlet.io/drain-policy"] == "wait"
    assert json.loads(kept[RECORD])["text"] == operator.text


# All there are: test/unit/slurm/record_source_test.cpp.
REFUSED = {
    "of another node": (lambda o: o.annotation(text=o.text.replace(SLURM_NODE, "nid000002")),
                        "is about nid000002, but this node is nid000001"),
    "from the future": (lambda o: o.annotation(dumpedAt=int(time.time()) + 120), "set the clocks"),
    "garbage": (lambda o: "\x00{\u202e" + "x" * 1000, "was not written by slurmlet-operator"),
    "huge": (lambda o: o.annotation(text="NodeName=nid000001 " + "x" * 240_000),
             "is cut off"),
    "none": (lambda o: None, "has no annotation slurmlet.io/record"),
}


def test_unusable_records_are_refused_with_the_reason(rig, operator):
    """Of one daemon, which comes back from each at the next good record."""
    for name, (make, words) in REFUSED.items():
        operator.write(operator.annotation(refreshSeconds=1))  # too old after three seconds
        rig.wait_known()
        operator.write(make(operator))

        def refused(node, words=words):
            found = condition(node, "SlurmNodeStateDrain")
            return found["reason"] == "RecordUnavailable" and words in found["message"]
        node = rig.wait(refused, timeout=30)
        assert condition(node, "Ready")["status"] == "True", name
        assert condition(node, "SlurmdReady")["status"] == "True", name
    assert operator.scontrol_runs() == 0
    operator.publish()
    rig.wait_known()


def test_more_than_the_api_server_takes_never_comes_here(rig, operator):
    with pytest.raises(Exception, match="(?i)too long|262144|annotations"):
        operator.write("x" * (300 << 10))
    assert condition(rig.node(), "SlurmNodeStateIdle")["status"] == "True"


def test_what_lies_with_slurmctld_makes_it_unknown_and_nobody_queries_instead(rig, auto, timing):
    auto.write(auto.annotation())
    wait_until(lambda: "uses slurmlet-operator" in rig.log(), what="the record to be used")
    runs = auto.scontrol_runs()
    dumped = int(time.time())
    began = time.monotonic()

    def idle():
        """Its condition, while the operator goes on to say so."""
        auto.write(auto.annotation(dumpedAt=dumped, failedAt=int(time.time()),
                                   failure="ControllerUnreachable: connect failure"))
        return condition(rig.node(), "SlurmNodeStateIdle")
    wait_until(lambda: idle()["reason"] == "ControllerUnreachable", 30, "Unknown")
    found = idle()
    seconds = time.monotonic() - began
    assert found["status"] == "Unknown"
    timing(f"last dump to Unknown (bound {TOO_OLD} s)", seconds)
    assert TOO_OLD - 2 < seconds < TOO_OLD + 4
    assert "connect failure" in found["message"]
    end = time.monotonic() + TOO_OLD
    while time.monotonic() < end:
        idle()
        assert auto.scontrol_runs() == runs
        time.sleep(0.5)  # the time that is measured
    began = time.monotonic()  # the operator dies
    wait_until(lambda: auto.scontrol_runs() > runs, 30, "a query of its own")
    seconds = time.monotonic() - began
    timing(f"last word of the operator to own query (bound {TOO_OLD} s + pollInterval 2 s)", seconds)
    assert TOO_OLD - 2 < seconds < TOO_OLD + 4
    auto.publish()
    rig.wait_known()


def test_without_a_record_it_queries_itself_and_goes_back(rig, auto, timing):
    assert auto.scontrol_runs() >= 1  # as there was no record
    auto.write(auto.annotation(refreshSeconds=60))
    wait_until(lambda: "uses slurmlet-operator" in rig.log(), what="the record to be used")
    runs = auto.scontrol_runs()
    drain(rig)
    time.sleep(5)  # it would have seen it by itself
    assert auto.scontrol_runs() == runs
    assert slurm_states(rig.node()) == {"Idle"}
    auto.write(None)
    began = time.monotonic()
    rig.wait(lambda node: slurm_states(node) == {"Idle", "Drain"})
    timing("record removed to own query (pollInterval 2 s)", time.monotonic() - began)
    assert auto.scontrol_runs() > runs
    rig.slurm.reset(SLURM_NODE)
    auto.publish()
    rig.wait(lambda node: slurm_states(node) == {"Idle"})
    wait_until(lambda: rig.log().count('uses slurmlet-operator') == 2, what="the record to be used")


def test_check_uses_the_record_too(rig, operator):
    findings = json.loads(run_beside(rig, "check", "-o", "json").stdout)["findings"]
    found = next(one for one in findings if one["subject"] == "slurmctld")
    assert found["severity"] == "ok" and "slurmlet-operator reported at" in found["found"]
    assert operator.scontrol_runs() == 0
