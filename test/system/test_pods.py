"""Pods that reach a node without room for any."""
import concurrent.futures
import itertools
import pathlib
import re
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
        # One for all pods of the namespace without a controller: it names the first.
        lambda event, _: event["reason"] == "PodRejected" and
        "rejected pod default/" in event["message"] and "(of" not in event["message"],
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


def test_statuses_of_a_pod_that_had_run_keep_what_is_known(shared_rig):
    """It ran under a kubelet that had this node's name."""
    shared_rig.stop()
    name = bound_pod(shared_rig, restartPolicy="Never", containers=[
        {"name": one, "image": "registry.example/none"} for one in ("up", "over", "never")],
        initContainers=[{"name": "first", "image": "registry.example/none"},
                        {"name": "sidecar", "image": "registry.example/none",
                         "restartPolicy": "Always"}])
    since = "2026-11-20T14:00:00Z"

    def status(container, **state):
        return {"name": container, "image": "registry.example/none", "imageID": "sha256:1",
                "containerID": f"cri://{container}", "ready": "running" in state,
                "started": "running" in state, "restartCount": 0, "state": state}
    ended = {"exitCode": 3, "reason": "Error", "startedAt": since, "finishedAt": since}
    shared_rig.admin.merge(f"{PODS}/{name}/status", {"status": {
        "phase": "Running", "startTime": since,
        "initContainerStatuses": [
            status("first", terminated={**ended, "exitCode": 0, "reason": "Completed"}),
            status("sidecar", running={"startedAt": since})],
        "containerStatuses": [
            status("up", running={"startedAt": since}), status("over", terminated=ended),
            {**status("never", waiting={"reason": "ImagePullBackOff"}), "containerID": ""}]}})
    shared_rig.start()
    pod, _ = wait_pod(shared_rig, name, failed)
    found = {one["name"]: one for key in ("initContainerStatuses", "containerStatuses")
             for one in pod["status"][key]}
    assert found["first"]["state"]["terminated"]["exitCode"] == 0
    assert found["over"]["state"]["terminated"] == {**ended, "containerID": "cri://over"} or \
        found["over"]["state"]["terminated"] == ended
    for one in ("up", "sidecar"):
        terminated = found[one]["state"]["terminated"]
        assert (terminated["exitCode"], terminated["reason"]) == (137, "SlurmNodeNoPods")
        assert terminated["startedAt"] == since and terminated["containerID"] == f"cri://{one}"
        assert not found[one]["ready"]
    assert found["never"]["state"]["waiting"]["reason"] == "SlurmNodeNoPods"


# -- many, and large ones ------------------------------------------------------------


def peak_memory(rig):
    status = pathlib.Path(f"/proc/{rig.daemon.pid}/status").read_text()
    return int(re.search(r"VmHWM:\s+(\d+)", status)[1]) // 1024


def create_bound(rig, count, annotation_bytes):
    """As they stay after a node has been bound to for long."""
    names = [f"stray-{next(_numbers)}" for _ in range(count)]

    def create(name):
        rig.admin.create(PODS, {
            "metadata": {"name": name, "annotations": {"x": "x" * annotation_bytes}},
            "spec": {"nodeName": rig.name, "containers": [CONTAINER],
                     "tolerations": TOLERATE_ALL}})
    with concurrent.futures.ThreadPoolExecutor(8) as pool:
        list(pool.map(create, names))


def delete_all(rig):
    """One by one: a collection of hundreds may take longer than a client waits for one answer."""
    mine = rig.admin.get(f"{PODS}?fieldSelector=spec.nodeName%3D{rig.name}")["items"]

    def delete(pod):
        rig.admin.delete(f"{PODS}/{pod['metadata']['name']}", {"gracePeriodSeconds": 0})
    with concurrent.futures.ThreadPoolExecutor(8) as pool:
        list(pool.map(delete, mine))


@pytest.mark.slow
@pytest.mark.parametrize("count, annotation_bytes", [(20, 250 * 1024), (900, 4096)])
def test_more_pods_than_one_answer_holds(rig, timing, count, annotation_bytes):
    """More than 4 MiB of them: they are read in pages, and those that come later are seen too."""
    rig.start()
    rig.stop()
    create_bound(rig, count, annotation_bytes)
    # The daemon lists what the API server has in memory, which may be behind etcd.
    mine = f"{PODS}?resourceVersion=0&fieldSelector=spec.nodeName%3D{rig.name}"
    wait_until(lambda: len(rig.admin.get(mine)["items"]) == count, 30, "the watch cache to have all")
    since = rig.audit.mark()
    began = time.monotonic()
    rig.start()

    def pending():
        return rig.admin.get(f"{PODS}?fieldSelector=spec.nodeName%3D{rig.name},"
                             "status.phase%3DPending&limit=1")["items"]
    wait_until(lambda: not pending(), 150, "all of them to be failed")
    timing(f"{count} pods listed and failed", time.monotonic() - began)
    assert any("limit=" in entry["requestURI"] for entry in rig.audit.entries(since))
    assert "continue=" in "".join(entry["requestURI"] for entry in rig.audit.entries(since))
    rig.restart()
    pod, _ = wait_pod(rig, bound_pod(rig), failed)
    assert pod["status"]["reason"] == "SlurmNodeNoPods"
    timing(f"peak memory with {count} pods, MiB", peak_memory(rig))
    assert peak_memory(rig) < 64
    assert "cannot be read" not in rig.log()
    delete_all(rig)


def test_pod_of_the_largest_size_is_failed(rig, timing):
    """1.35 MB in etcd are 8.1 MB as the API server's JSON, in which "<" is six bytes."""
    large = {"name": "c", "image": "registry.example/none",
             "env": [{"name": "X", "value": "<" * 1_350_000}]}
    rig.start()
    rig.stop()
    listed = bound_pod(rig, containers=[large])
    rig.start()
    wait_pod(rig, listed, failed)
    watched = bound_pod(rig, containers=[large])
    wait_pod(rig, watched, failed)
    wait_pod(rig, bound_pod(rig), failed)
    rig.admin.delete(f"{PODS}/{watched}")
    wait_until(lambda: rig.admin.find(f"{PODS}/{watched}") is None)
    timing("peak memory with pods of 8 MB, MiB", peak_memory(rig))
    assert peak_memory(rig) < 128
    assert "cannot be read" not in rig.log() and "not rejected" not in rig.log()
    delete_all(rig)


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


@pytest.fixture(name="job")
def created_job(shared_rig):
    """Makes a Job of one pod that is bound by name, and cleans it up."""
    jobs = "/apis/batch/v1/namespaces/default/jobs"
    made = []

    def create(name, **spec):
        shared_rig.admin.create(jobs, {"metadata": {"name": name}, "spec": {
            "backoffLimit": 0, "template": template(
                shared_rig, {"app": name}, nodeName=shared_rig.name, restartPolicy="Never"),
            **spec}})
        made.append(name)
    yield create
    for name in made:
        shared_rig.admin.delete(f"{jobs}/{name}", {"propagationPolicy": "Background"})


def wait_job_failed(rig, name):
    """Returns the reason."""
    def ends(job, _):
        return [one for one in job.get("status", {}).get("conditions", [])
                if one["type"] == "Failed" and one["status"] == "True"]
    job, _ = rig.admin.wait("/apis/batch/v1/namespaces/default/jobs", ends, GENERAL_WAIT,
                            f"metadata.name={name}")
    return ends(job, "")[0]["reason"]


def test_job_whose_pod_is_deleted_ends(shared_rig, job):
    """Its controller holds the pod by a finalizer until it has a terminal phase."""
    def pods():
        return shared_rig.admin.get(f"{PODS}?labelSelector=app%3Dtracked")["items"]
    shared_rig.stop()
    job("tracked", podReplacementPolicy="Failed")
    name = wait_until(pods, what="the Job's pod")[0]["metadata"]["name"]
    shared_rig.admin.delete(f"{PODS}/{name}")
    pod = shared_rig.admin.get(f"{PODS}/{name}")
    assert pod["metadata"]["deletionTimestamp"] and pod["status"]["phase"] == "Pending"
    assert "batch.kubernetes.io/job-tracking" in pod["metadata"]["finalizers"]
    phases = []
    shared_rig.start()
    wait_pod(shared_rig, name, lambda one: one is None or failed(one) and not phases.append(one))
    assert wait_job_failed(shared_rig, "tracked") == "BackoffLimitExceeded"
    wait_until(lambda: not pods(), what="the pod to be gone")
    assert all(one["status"]["reason"] == "SlurmNodeNoPods" for one in phases)


def test_pod_that_never_ran_matches_no_rule_about_exit_codes(shared_rig, job):
    """NotIn: any exit code but this one would fail the Job for another reason."""
    job("judged", podFailurePolicy={"rules": [
        {"action": "FailJob", "onExitCodes": {"operator": "NotIn", "values": [1]}}]})
    assert wait_job_failed(shared_rig, "judged") == "BackoffLimitExceeded"


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
    shared_rig.wait_event("PodCreationLoop", timeout=9)


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
    node_api = Api(shared_rig.kubeconfig)
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
