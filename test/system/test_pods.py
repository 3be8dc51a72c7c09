"""Pods that reach a node without room for any."""
import itertools
import time

import pytest

from harness.api import Api, ApiError
from harness.rig import GENERAL_WAIT, wait_until

PODS = "/api/v1/namespaces/default/pods"
CONTAINER = {"name": "c", "image": "registry.example/none"}
TOLERATE_ALL = [{"operator": "Exists"}]
_numbers = itertools.count(1)


def bound_pod(rig, **spec):
    """Creates a pod with spec.nodeName; returns its name."""
    name = f"stray-{next(_numbers)}"
    rig.admin.create(PODS, {"metadata": {"name": name}, "spec": {
        "nodeName": rig.name, "containers": [CONTAINER], "tolerations": TOLERATE_ALL, **spec}})
    return name


def wait_pod(rig, name, predicate, timeout=GENERAL_WAIT):
    """Waits on one pod; None stands for a deleted one. Returns (pod, seconds)."""
    return rig.admin.wait(PODS, lambda pod, event: predicate(None if event == "DELETED" else pod),
                          timeout, f"metadata.name={name}")


def failed(pod):
    return pod is not None and pod["status"].get("phase") == "Failed"


def template(rig, labels, **spec):
    return {"metadata": {"labels": labels}, "spec": {
        "containers": [CONTAINER], "tolerations": TOLERATE_ALL,
        "nodeSelector": {"kubernetes.io/hostname": rig.name}, **spec}}


@pytest.fixture(name="workload")
def created_workload(request, shared_rig):
    """Makes a Deployment or DaemonSet that is deleted, with its pods, after the test."""
    made = []

    def create(kind, name, **spec):
        path = f"/apis/apps/v1/namespaces/default/{kind}"
        shared_rig.admin.create(path, {
            "metadata": {"name": name},
            "spec": {"selector": {"matchLabels": {"app": name}},
                     "template": template(shared_rig, {"app": name}, **spec)}})
        made.append(f"{path}/{name}")
        return name
    yield create
    for path in made:
        shared_rig.admin.delete(path, {"propagationPolicy": "Background"})

        def pods_of_it():
            app = path.rsplit("/", 1)[1]
            return shared_rig.admin.get(f"{PODS}?labelSelector=app%3D{app}")["items"]
        wait_until(lambda: not pods_of_it(), what="the workload's pods to be gone")


# -- single pods ---------------------------------------------------------------------


def test_bound_pod_is_failed_and_told_why(shared_rig, timing):
    name = bound_pod(shared_rig)
    pod, seconds = wait_pod(shared_rig, name, failed)
    timing("pod bound to the node to Failed", seconds)
    assert pod["status"]["reason"] == "SlurmNodeNoPods"
    assert pod["status"]["message"] == (
        f'node {shared_rig.name} belongs to Slurm cluster "alps" and runs no pods. Submit a Slurm '
        "job, or remove spec.nodeName or the toleration that brought the pod here.")
    shown = shared_rig.plane.kubectl_output("get", "pod", name, "--no-headers")
    assert "SlurmNodeNoPods" in shown


def test_pod_without_toleration_is_removed(shared_rig):
    """By the controller of the NoExecute taint; the daemon lets nothing of it stay."""
    name = bound_pod(shared_rig, tolerations=[])
    wait_until(lambda: shared_rig.admin.find(f"{PODS}/{name}") is None)


def test_rejection_is_an_event_of_node_and_pod(shared_rig):
    name = bound_pod(shared_rig)
    wait_pod(shared_rig, name, failed)
    shared_rig.admin.wait(
        "/api/v1/namespaces/default/events",
        lambda event, _: event["reason"] == "PodRejected" and f"default/{name}" in event["message"],
        GENERAL_WAIT, f"involvedObject.name={shared_rig.name}")
    shared_rig.admin.wait("/api/v1/namespaces/default/events",
                          lambda event, _: event["reason"] == "SlurmNodeNoPods", GENERAL_WAIT,
                          f"involvedObject.name={name}")
    assert "PodRejected" in shared_rig.plane.kubectl_output("describe", "node", shared_rig.name)


def test_deleted_pod_goes_at_once(shared_rig):
    name = bound_pod(shared_rig, terminationGracePeriodSeconds=3600)
    wait_pod(shared_rig, name, failed)
    shared_rig.admin.delete(f"{PODS}/{name}")
    wait_until(lambda: shared_rig.admin.find(f"{PODS}/{name}") is None)


def test_pods_created_while_the_daemon_was_away_are_failed(shared_rig):
    shared_rig.stop()
    names = [bound_pod(shared_rig) for _ in range(3)]
    shared_rig.start()
    for name in names:
        pod, _ = wait_pod(shared_rig, name, failed)
        assert pod["status"]["reason"] == "SlurmNodeNoPods"


def test_pod_deleted_while_the_daemon_was_away_is_removed(shared_rig):
    shared_rig.stop()
    name = bound_pod(shared_rig, terminationGracePeriodSeconds=30)
    shared_rig.admin.delete(f"{PODS}/{name}")
    # Pending pods without a kubelet stay, terminating.
    assert shared_rig.admin.get(f"{PODS}/{name}")["metadata"]["deletionTimestamp"]
    shared_rig.start()
    wait_until(lambda: shared_rig.admin.find(f"{PODS}/{name}") is None)


# -- controllers ---------------------------------------------------------------------


def test_daemonset_that_tolerates_everything_is_not_scheduled(shared_rig, workload):
    name = workload("daemonsets", "tolerant")

    def refused(pod, _):
        return pod["metadata"].get("labels", {}).get("app") == name and any(
            entry["type"] == "PodScheduled" and entry["status"] == "False" and
            "Too many pods" in entry["message"] for entry in pod["status"].get("conditions", []))
    pod, _ = shared_rig.admin.wait(PODS, refused, GENERAL_WAIT)
    assert "nodeName" not in pod["spec"]


def test_daemonset_bound_by_name_is_failed(shared_rig, workload):
    name = workload("daemonsets", "bound", nodeName=shared_rig.name)
    shared_rig.admin.wait(
        PODS, lambda pod, _: pod["metadata"].get("labels", {}).get("app") == name and failed(pod),
        GENERAL_WAIT)


def rejections(rig, since):
    """When the daemon failed pods, seconds since the epoch."""
    return [moment for moment, verb, resource, _ in rig.audit.requests(since)
            if verb == "patch" and resource == "pods/status"]


@pytest.mark.slow
def test_controller_that_keeps_coming_is_slowed_down(shared_rig, workload, timing):
    since = shared_rig.audit.mark()
    workload("deployments", "stubborn", nodeName=shared_rig.name)
    wait_until(lambda: rejections(shared_rig, since))

    def pauses_of(times):
        return [later - earlier for earlier, later in zip(times, times[1:])]

    def slow():
        found = rejections(shared_rig, since)
        return found if max(pauses_of(found), default=0) > 3.5 else None
    times = wait_until(slow, what="a pause of more than 3.5 s")
    timing("rejections until a pause of more than 3.5 s", len(times))
    assert len(times) < 120
    pauses = pauses_of(times)
    long = [pause for pause in pauses if pause > 0.9]
    timing("longest pause between rejections", max(long))
    assert len(long) >= 2
    assert long[-1] > 1.5 * long[0]
    # Not behind the Events of all these pods.
    shared_rig.wait_event("PodsKeepComing", timeout=9)


def test_pod_without_controller_never_waits_for_one_that_does(shared_rig, workload):
    since = shared_rig.audit.mark()
    workload("deployments", "insistent", nodeName=shared_rig.name)
    wait_until(lambda: len(rejections(shared_rig, since)) > 1)
    _, seconds = wait_pod(shared_rig, bound_pod(shared_rig), failed)
    assert seconds < 30


def test_node_credential_cannot_touch_pods_of_other_nodes(shared_rig):
    """The rig's premise: the daemon works with the least privileged credential there is."""
    other = "elsewhere"
    shared_rig.admin.create(PODS, {"metadata": {"name": other}, "spec": {
        "nodeName": "another-node", "containers": [CONTAINER]}})
    node_api = Api(shared_rig.kubeconfig, shared_rig.plane.kubectl)
    with pytest.raises(ApiError) as error:
        node_api.delete(f"{PODS}/{other}")
    assert error.value.status == 403
    shared_rig.admin.delete(f"{PODS}/{other}", {"gracePeriodSeconds": 0})


@pytest.fixture(scope="module", autouse=True)
def no_pods_left(shared_rig):
    yield
    for number in range(1, next(_numbers)):
        try:
            shared_rig.admin.delete(f"{PODS}/stray-{number}", {"gracePeriodSeconds": 0})
        except ApiError as error:
            assert error.status == 404
