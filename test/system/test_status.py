"""`slurmlet status` and GET /status: what the running daemon says of itself."""
import http.client
import json

import pytest

from harness.api import ApiError
from harness.commands import run_beside
from harness.programs import free_port
from harness.rig import wait_until

NOT_HEALTHY, BAD_CONFIGURATION, NOT_RUNNING = 1, 2, 3


@pytest.fixture(name="port")
def health_port():
    return free_port()


def ask(port, path="/status"):
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=10)
    connection.request("GET", path)
    answer = connection.getresponse()
    return answer.status, answer.getheader("Content-Type"), answer.read()


def status(rig, *arguments):
    return run_beside(rig, "status", *arguments)


def test_registered_node(rig, port):
    rig.configure(endpoint={"healthzPort": port})
    rig.provision("1f6c1a52-32c7-4a93-8c58-7b7f5d3a2c11")
    rig.start_and_know()
    rig.wait_renewed()
    done = status(rig)
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.startswith(f"{rig.name}: Ready, Slurm ")
    assert "registered" in done.stdout and "running, pid" in done.stdout
    code, kind, body = ask(port)
    assert (code, kind) == (200, "application/json")
    told = json.loads(body)
    assert told["pid"] == rig.daemon.pid and told["node"] == rig.name
    assert told["registered"] and told["healthy"] and told["lease"]["held"]
    assert told["problems"] == []
    assert told["apiServer"].startswith("https://127.0.0.1:")
    assert told["slurm"]["node"] == "nid000001" and told["slurm"]["cluster"] == "alps"
    assert told["slurmd"]["running"] is True
    assert told["metal3"]["providerID"] == f"metal3://metal3/node-0/{rig.name}"
    assert b"PRIVATE KEY" not in body and b"BEGIN" not in body
    printed = json.loads(status(rig, "-o", "json").stdout)
    assert printed["pid"] == told["pid"] and list(printed) == list(told)


def test_news_of_slurm_does_not_wait_for_an_api_server_that_hangs(rig, plane, idle_slurm, port):
    def drained():
        summary = json.loads(ask(port)[2])["summary"]
        return summary if "DRAIN" in summary else None

    rig.configure(endpoint={"healthzPort": port})
    rig.start_and_know()
    plane.ctl("pause", "kube-apiserver")
    try:
        idle_slurm.set_state("nid000001", "drained", "told on this machine")
        assert "Node update failed" not in wait_until(drained, what="the state on this machine")
    finally:
        plane.ctl("resume", "kube-apiserver")
    rig.wait_condition("SlurmNodeStateDrain", "True")


def test_nobody_runs(rig, port):
    rig.configure(endpoint={"healthzPort": port})
    done = status(rig)
    assert done.returncode == NOT_RUNNING
    assert "slurmlet is not running here" in done.stderr and "systemctl status slurmlet" in done.stderr
    rig.configure()
    done = status(rig)
    assert done.returncode == NOT_RUNNING
    assert "endpoint.healthzPort is 0" in done.stderr


def test_a_bad_configuration_is_not_a_daemon_that_is_away(rig):
    rig.config_path.write_text("apiVersion: slurmlet.io/v1alpha1\nkind: SlurmletConfiguration\n"
                               "endpoint: {healthzPort: many}\n")
    assert status(rig).returncode == BAD_CONFIGURATION


def test_a_node_that_may_not_register(rig, port):
    """The credential is taken, but another machine's Node has the name."""
    rig.configure(endpoint={"healthzPort": port}, node={"metal3UUID": "0c7d-mine"})
    rig.admin.create("/api/v1/nodes", {"apiVersion": "v1", "kind": "Node", "metadata": {
        "name": rig.name, "labels": {"metal3.io/uuid": "0c7d-theirs"}}})
    rig.start(ready=False)
    rig.wait_log("belongs to another machine")
    done = status(rig)
    assert done.returncode == NOT_HEALTHY
    assert "belongs to another machine" in done.stdout


@pytest.fixture(name="no_provider_id")
def a_policy_against_provider_ids(rig):
    """In force for this rig's Node."""
    name = f"no-provider-id-{rig.name}"
    group = "/apis/admissionregistration.k8s.io/v1/"
    head = {"apiVersion": "admissionregistration.k8s.io/v1", "metadata": {"name": name}}
    rules = [{"apiGroups": [""], "apiVersions": ["v1"], "operations": ["UPDATE"], "resources": ["nodes"]}]
    rig.admin.create(group + "validatingadmissionpolicies", {**head, "kind": "ValidatingAdmissionPolicy", "spec": {
        "failurePolicy": "Fail", "matchConstraints": {"resourceRules": rules},
        "matchConditions": [{"name": "this-node", "expression": f"object.metadata.name == '{rig.name}'"}],
        "validations": [{"expression": "!has(object.spec.providerID)", "message": "no providerID at this site"}]}})
    try:
        rig.admin.create(group + "validatingadmissionpolicybindings", {
            **head, "kind": "ValidatingAdmissionPolicyBinding",
            "spec": {"policyName": name, "validationActions": ["Deny"]}})
        yield
        rig.admin.delete(f"{group}validatingadmissionpolicybindings/{name}")
    finally:
        rig.admin.delete(f"{group}validatingadmissionpolicies/{name}")


def test_a_rejected_provider_id_is_a_problem(rig, port, no_provider_id):
    """All else of the Node is written."""
    rig.configure(endpoint={"healthzPort": port})
    rig.admin.create("/api/v1/nodes", {"apiVersion": "v1", "kind": "Node", "metadata": {"name": rig.name}})

    def refused():
        try:
            rig.admin.merge(f"{rig.path}?dryRun=All", {"spec": {"providerID": "metal3://a/b/c"}})
            return None
        except ApiError as error:
            return error

    wait_until(refused, what="the policy")
    rig.provision("1f6c1a52-32c7-4a93-8c58-7b7f5d3a2c12")
    rig.start_and_know()
    rig.wait_log("rejects spec.providerID")
    wait_until(lambda: status(rig).returncode == NOT_HEALTHY, what="the problem")
    done = status(rig)
    assert "node: spec.providerID is rejected: " in done.stdout and "no providerID at this site" in done.stdout
    assert "Node differs: spec.providerID is rejected" in done.stdout.splitlines()[0]
    code, _, body = ask(port, "/readyz?verbose")
    assert code == 503 and b"spec.providerID is rejected" in body, body
