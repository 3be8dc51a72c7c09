"""What a table and a soak judge by: pure rules, and the reading of an audit log."""
import json
import pathlib
import sys

import pytest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent.parent / "test/lab"))

from trial import unhindered  # noqa: E402
from watcher import AuditTail, Change, is_false, seconds  # noqa: E402


@pytest.mark.parametrize("pauses, longest", [
    ([], 10), ([(0, 5)], 10), ([(25, 30)], 10), ([(12, 15)], 5), ([(5, 15)], 5), ([(15, 30)], 5),
    ([(0, 30)], 0), ([(11, 14), (12, 16)], 4), ([(12, 16), (11, 14)], 4), ([(11, 18), (12, 13)], 2),
    ([(11, 12), (19, 20)], 7), ([(13, 13)], 7)])
def test_time_without_a_renewal_that_nothing_hinders(pauses, longest):
    assert unhindered(10, 20, pauses) == longest


SLURM = ("Slurm", "SlurmStates")


@pytest.mark.parametrize("kind, status, reason, may, hindered, false", [
    ("Ready", "True", "SlurmdRunning", (), False, False),
    ("Ready", "False", "SlurmdNotRunning", (), False, True),
    ("Ready", "False", "SlurmdNotRunning", ("Ready",), False, False),
    ("Ready", "Unknown", "NodeStatusUnknown", (), False, True),
    ("Ready", "Unknown", "NodeStatusUnknown", (), True, False),
    ("Ready", "Unknown", "SlurmdUnknown", (), True, True),
    ("SlurmdReady", "False", "SlurmdStopped", SLURM, True, True),
    ("DiskPressure", "True", "KubeletHasDiskPressure", (), False, True),
    ("SlurmNodeStateIdle", "False", "NotIdle", (), False, False),
    ("SlurmNodeStateIdle", "Unknown", "ControllerTimeout", (), False, True),
    ("SlurmNodeStateIdle", "Unknown", "ControllerTimeout", SLURM, False, False),
    ("SlurmNodeStateIdle", "Unknown", "JobStarted", (), False, False),
    ("SlurmNodeStateDown", "True", "Down", (), False, True),
    ("SlurmNodeStateNotResponding", "True", "NotResponding", ("Slurm",), False, True),
    ("SlurmNodeStateNotResponding", "True", "NotResponding", SLURM, False, False),
    ("SlurmNodeStateDrain", "True", "Drained", (), False, False),  # rows drain
    ("GPUHealthy", "False", "GPUMissing", (), False, False)])
def test_false_condition(kind, status, reason, may, hindered, false):
    assert is_false(Change(0, "n", kind, status, reason, ""), may, hindered) == false


def entry(user, verb, resource, code, at="2026-01-02T03:04:05.250000Z", **more):
    return json.dumps({"user": {"username": user}, "verb": verb, "requestReceivedTimestamp": at,
                       "objectRef": {"resource": resource}, "responseStatus": {"code": code},
                       **more}) + "\n"


def test_audit_log_is_read_as_it_grows(tmp_path):
    path = tmp_path / "audit.log"
    path.write_text(entry("system:node:n1", "update", "leases", 200))  # before: not counted
    tail = AuditTail(path)
    text = (entry("system:node:n1", "update", "leases", 200) +
            entry("system:node:n1", "update", "leases", 409) +
            entry("system:node:n1", "get", "leases", 200) +
            entry("system:node:n2", "watch", "nodes", 200, stage="ResponseStarted") +
            entry("kubernetes-admin", "update", "leases", 200, note="system:node:n1"))
    with open(path, "a", encoding="ascii") as log:
        log.write(text[:150])
        log.flush()
        tail.read()
        assert not tail.requests
        log.write(text[150:])
    tail.read()
    tail.close()
    at = seconds("2026-01-02T03:04:05.250000Z")
    assert at == 1767323045.25
    assert tail.renewals == {"n1": [at]}
    assert tail.requests == {"n1": 3} and tail.by_second == {1767323045: 3}
    assert tail.codes == {200: 2, 409: 1}
