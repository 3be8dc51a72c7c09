"""What people who take the node for an ordinary one get from kubectl, today's and an old one."""
import json
import os
import subprocess

import pytest

from harness.audit import Audit
from harness.programs import OLD_KUBECTL, free_port
from harness.rig import GENERAL_WAIT, wait_until

PODS = "/api/v1/namespaces/default/pods"
KUBECTLS = ["new", "old"]
# The controller manager's controllers for taints go by this name.
TAINT_EVICTION = "system:serviceaccount:kube-system:node-controller"


def prepare(rig):
    rig.ports = {"port": free_port(), "healthzPort": free_port()}
    rig.configure(endpoint=rig.ports)


@pytest.fixture(scope="module", name="held", autouse=True)
def held_back_pod(shared_rig):
    """A function that gives the name of a pod bound to the node and held back: Pending, with time
    left. A Deployment whose pods are refused ever more slowly makes them."""
    path = "/apis/apps/v1/namespaces/default/deployments"
    shared_rig.admin.create(path, {"metadata": {"name": "hot"}, "spec": {
        "selector": {"matchLabels": {"app": "hot"}},
        "template": {"metadata": {"labels": {"app": "hot"}}, "spec": {
            "nodeName": shared_rig.name, "tolerations": [{"operator": "Exists"}],
            "containers": [{"name": "c", "image": "registry.example/none"}]}}}})
    shared_rig.wait_event("PodCreationLoop")

    def current():
        pods = shared_rig.admin.get(f"{PODS}?labelSelector=app%3Dhot")["items"]
        return next((pod["metadata"]["name"] for pod in pods
                     if pod["status"].get("phase") == "Pending"), None)
    yield lambda: wait_until(current, what="a pod that is held back")
    shared_rig.admin.delete(f"{path}/hot", {"propagationPolicy": "Background"})
    wait_until(lambda: not shared_rig.admin.get(f"{PODS}?labelSelector=app%3Dhot")["items"],
               what="the Deployment's pods to be gone")


def run(rig, which, *arguments, timeout=GENERAL_WAIT):
    """A kubectl command that must fail: what it said on stderr. Raises when it hangs."""
    command = [str(OLD_KUBECTL)] if which == "old" else rig.plane.kubectl
    environment = {**os.environ, "KUBECONFIG": str(rig.plane.admin_kubeconfig)}
    done = subprocess.run([*command, *arguments], capture_output=True, text=True, check=False,
                          env=environment, stdin=subprocess.DEVNULL, timeout=timeout)
    assert done.returncode != 0, done.stdout
    return done.stderr


def refused(rig, held, which, *arguments):
    """Runs with the current pod's name for POD, again where that pod was failed meanwhile."""
    for _ in range(3):
        pod = held()
        said = run(rig, which, *[part.replace("POD", pod) for part in arguments])
        if "completed pod" not in said and "not found" not in said and "not running" not in said:
            return said
    return said


def sentence(rig, what):
    return (f'node {rig.name} belongs to Slurm cluster "alps" and runs no pods: there are no '
            f"containers {what}. Use Slurm's tools (srun, sattach, sbatch output files) instead.")


def assert_one_clear_sentence(rig, said, what):
    """It is there, once and readable: no JSON, no escapes around it, on the last line."""
    assert said.count(sentence(rig, what)) == 1, said
    assert said.strip().splitlines()[-1].startswith(("Error from server", "error: ")), said
    assert '{"' not in said and '\\"' not in said, said


@pytest.mark.parametrize("which", KUBECTLS)
@pytest.mark.parametrize("arguments, what", [
    (["logs", "POD"], "to read logs from"), (["exec", "POD", "--", "true"], "to run commands in"),
    (["attach", "POD"], "to attach to")], ids=["logs", "exec", "attach"])
def test_a_stream_is_refused(shared_rig, held, which, arguments, what):
    assert_one_clear_sentence(shared_rig, refused(shared_rig, held, which, *arguments), what)


@pytest.mark.parametrize("which", KUBECTLS)
def test_logs_of_a_failed_pod(shared_rig, which):
    """What people try first after seeing SlurmNodeNoPods."""
    name = f"failed-{which}"
    shared_rig.admin.create(PODS, {"metadata": {"name": name}, "spec": {
        "nodeName": shared_rig.name, "tolerations": [{"operator": "Exists"}],
        "containers": [{"name": "c", "image": "registry.example/none"}]}})
    shared_rig.admin.wait(PODS, lambda pod, _: pod["status"].get("phase") == "Failed",
                          GENERAL_WAIT, f"metadata.name={name}")
    said = run(shared_rig, which, "logs", name)
    shared_rig.admin.delete(f"{PODS}/{name}", {"gracePeriodSeconds": 0})
    assert_one_clear_sentence(shared_rig, said, "to read logs from")


@pytest.mark.parametrize("which", KUBECTLS)
def test_cp(shared_rig, held, which):
    """Copies by running tar in the container."""
    said = refused(shared_rig, held, which, "cp", "POD:/etc/hostname",
                   str(shared_rig.directory / "hostname"))
    assert sentence(shared_rig, "to run commands in") in said


@pytest.mark.parametrize("which", KUBECTLS)
def test_port_forward(shared_rig, held, which):
    """kubectl itself refuses pods that do not run, so this one is said to."""
    def attempt():
        shared_rig.admin.merge(f"{PODS}/{held()}/status", {"status": {"phase": "Running"}})
        running = [pod["metadata"]["name"]
                   for pod in shared_rig.admin.get(f"{PODS}?labelSelector=app%3Dhot")["items"]
                   if pod["status"].get("phase") == "Running"]
        said = run(shared_rig, which, "port-forward", running[0], f"{free_port()}:80"
                   ) if running else ""
        return said if "not running" not in said else ""
    said = wait_until(attempt, what="a pod that is said to run")
    assert sentence(shared_rig, "to forward ports to") in said


def test_debug_of_the_node(shared_rig):
    """kubectl waits for ever for the container to run or to have ended, and then shows its logs: so
    the refused pod has to say of each container that it ended."""
    said = run(shared_rig, "new", "debug", f"node/{shared_rig.name}", "-i", "--image=busybox")
    assert_one_clear_sentence(shared_rig, said, "to read logs from")


@pytest.fixture(name="nobody_evicts")
def without_taint_eviction(plane):
    """The control plane without controllers, so without the one that deletes pods for taints."""
    plane.ctl("stop", "kube-controller-manager")
    yield
    plane.ctl("start", "kube-controller-manager")


def test_debug_of_the_node_with_the_old_kubectl(shared_rig, nobody_evicts):
    """As with the new one, as long as its pod lives; see the next test."""
    said = run(shared_rig, "old", "debug", f"node/{shared_rig.name}", "-i", "--image=busybox")
    assert_one_clear_sentence(shared_rig, said, "to read logs from")


def test_debugging_pods_of_the_old_kubectl_are_deleted_by_the_control_plane(shared_rig, plane):
    """They tolerate no taint (those of the new one tolerate all), so that the controller manager
    deletes them for the node's NoExecute taint as soon as they are bound, whatever the node says.
    kubectl 1.20 sees that pod as one that ended and prints the sentence, or not any more and says
    that it is not found, or misses its whole life and waits for ever. That is decided between the
    two of them: which it is cannot be tested, only who deletes."""
    since = shared_rig.audit.mark()
    shared_rig.admin.create(PODS, {"metadata": {"name": "untolerant"}, "spec": {
        "nodeName": shared_rig.name,
        "containers": [{"name": "c", "image": "registry.example/none"}]}})
    wait_until(lambda: not shared_rig.admin.find(f"{PODS}/untolerant"), what="the pod to be gone")
    audits = [shared_rig.audit, Audit(plane.directory / "audit.log", TAINT_EVICTION)]

    def deletions():
        return [(entry["requestReceivedTimestamp"], audit.user)
                for audit in audits for entry in audit.entries(since)
                if (entry["verb"], entry["objectRef"].get("name")) == ("delete", "untolerant")
                and entry["responseStatus"]["code"] == 200]
    # Written when it is answered, perhaps after the next one's.
    wait_until(lambda: TAINT_EVICTION in [user for _, user in deletions()],
               what="the eviction in the audit log")
    seen = deletions()
    assert min(seen)[1] == TAINT_EVICTION, seen


@pytest.mark.slow
def test_debug_of_a_pod(shared_rig, held):
    """With an ephemeral container in a pod that is held back: until that pod is failed, in a minute
    at most. (The old kubectl speaks an alpha form that API servers no longer have.)"""
    said = run(shared_rig, "new", "debug", held(), "-i", "--image=busybox", "--container=debugger",
               timeout=120)
    assert_one_clear_sentence(shared_rig, said, "to read logs from")


@pytest.mark.parametrize("which", KUBECTLS)
@pytest.mark.parametrize("path, expected", [
    ("pods", {"kind": "PodList", "items": []}),
    ("runningpods/", {"kind": "PodList", "items": []}),
    ("configz", {}),
    ("stats/summary", {"pods": []}),
])
def test_json_through_the_node_proxy(shared_rig, which, path, expected):
    answer = json.loads(raw(shared_rig, which, path))
    assert {key: answer.get(key) for key in expected} == expected
    if path == "stats/summary":
        assert answer["node"]["nodeName"] == shared_rig.name
    if path == "configz":
        assert answer, "an empty configuration"
        assert "BEGIN" not in json.dumps(answer)


@pytest.mark.parametrize("which", KUBECTLS)
def test_text_through_the_node_proxy(shared_rig, which):
    assert raw(shared_rig, which, "healthz").strip() == "ok"
    assert "slurmlet_build_info{" in raw(shared_rig, which, "metrics")
    assert "node_cpu_usage_seconds_total " in raw(shared_rig, which, "metrics/resource")


def raw(rig, which, path):
    command = [str(OLD_KUBECTL)] if which == "old" else rig.plane.kubectl
    environment = {**os.environ, "KUBECONFIG": str(rig.plane.admin_kubeconfig)}
    done = subprocess.run([*command, "get", "--raw", f"{rig.path}/proxy/{path}"], check=False,
                          capture_output=True, text=True, env=environment, timeout=GENERAL_WAIT)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_node_says_where_its_kubelet_port_is(shared_rig):
    status = shared_rig.node()["status"]
    assert status["daemonEndpoints"]["kubeletEndpoint"]["Port"] == shared_rig.ports["port"]
    assert [one for one in status["addresses"] if one["type"] == "InternalIP"]
