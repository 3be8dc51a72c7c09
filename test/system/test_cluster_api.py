"""The turn-over of a compute node by Cluster API's own core manager: a MachineDeployment is scaled down while a
job runs, slurmlet-operator lets the Machine go when the policy allows it, nothing is left behind, and the next
Machine of the same host runs. So it is, too, when the operator is killed before and after each of its steps."""
import contextlib
import itertools
import os
import re

import pytest

from harness.api import node_path
from harness.cluster_api import CORE, ClusterAPI, provider_of
from harness.history import History
from harness.operator_site import HOOK, Site, operator_account
from harness.rig import Rig, wait_until
from harness.turnstile import Turnstile

NODE = "dyn7"
SILENT = 30  # seconds, until slurmctld takes a slurmd for gone


@pytest.fixture(scope="module")
def cluster_api(plane, work):
    one = ClusterAPI(plane, work / "capi", NODE)
    yield one
    one.stop()


@pytest.fixture(scope="module")
def cluster(own_slurm):
    return own_slurm(nodes=[NODE], cpus=os.cpu_count(), dynamic=[NODE], cluster_name="turno",
                     slurmd_timeout=SILENT, slurmd_arguments={NODE: ["-Z"]})


@contextlib.contextmanager
def host(plane, cluster, directory):
    """As its daemon sees it."""
    one = Rig(plane, cluster, NODE, directory)
    run = one.directory / "run"
    run.mkdir()
    one.environment["RUNTIME_DIRECTORY"] = str(run)
    one.mark = run / "detached"
    try:
        yield one
    finally:
        print(f"--- log of the daemon ---\n{one.log()[-4000:]}")
        one.clean()


@pytest.fixture
def rig(plane, cluster, work, request):
    with host(plane, cluster, work / f"host-{request.node.name.partition('[')[2][:4]}") as one:
        yield one


def provision(rig, machine):
    """The host becomes this Machine: other metadata, slurmd and slurmlet start."""
    rig.configure(node={"providerID": provider_of(machine)}, slurm={"nodeName": NODE})
    if rig.slurm.pid(f"slurmd:{NODE}") is None:
        rig.slurm.daemon("start", f"slurmd:{NODE}")
    rig.start()


def is_prepared(machine):
    return provider_of(machine) and machine["status"].get("addresses")


def is_running(machine):
    return machine["status"].get("phase") == "Running" and machine["status"]["nodeRef"]["name"] == NODE


def in_slurm(slurm):
    return slurm.command("scontrol", "show", "node", NODE, check=False).returncode == 0


def job_state(slurm, job):
    shown = slurm.command("scontrol", "show", "job", job).stdout
    return re.search(r"JobState=(\S+)", shown).group(1), re.search(r"ExitCode=(\S+)", shown).group(1)


def submit(slurm, gate):
    """A job that ends by itself, with exit code 0, once the file `gate` is there."""
    job = slurm.command("sbatch", "--parsable", "--output=/dev/null", "--chdir=/", "--time=60", "--no-requeue",
                        f"--nodelist={NODE}", f"--wrap=until [ -e {gate} ]; do sleep 0.2; done").stdout.strip()
    wait_until(lambda: job_state(slurm, job)[0] == "RUNNING", what="the job to run")
    return job


def next_machine_runs(cluster_api, rig, name, first, uid):
    """On the same host, after the Machine `first` with the Node of that uid."""
    cluster_api.scale(name, 1)
    second = cluster_api.wait_machine(is_prepared, "a providerID and an address")
    assert provider_of(second) != provider_of(first)
    provision(rig, second)
    cluster_api.wait_machine(is_running, "the next Machine to run")
    wait_until(lambda: not rig.mark.exists(), what="no mark")
    assert rig.node()["metadata"]["uid"] != uid
    # The record of its last Machine is drained until the operator knows whose host it is.
    wait_until(lambda: in_slurm(rig.slurm) and rig.slurm.node_state(NODE) == ["IDLE"], what="an idle node")


def end(cluster_api, site, name):
    site.print_logs()
    site.end()  # first: what is deleted here is nothing to be drained for
    cluster_api.delete_deployment(name)


@pytest.mark.parametrize("policy", ["wait", "deadline=3s", "now"])
def test_turn_over(plane, cluster_api, cluster, rig, tmp_path, policy, timing):
    name = "hpc-" + policy[:4]
    tmp_path.chmod(0o755)
    gate = tmp_path / "gate"
    cluster_api.make_deployment(name, {HOOK: "", "slurmlet.io/drain-policy": policy})
    first = cluster_api.wait_machine(is_prepared, "a providerID and an address")
    provision(rig, first)
    cluster_api.wait_machine(is_running, "the Machine to run")
    site = Site(plane, cluster, operator_account(plane), tmp_path)
    site.start()
    job = submit(cluster, gate)
    uid = rig.node()["metadata"]["uid"]
    try:
        cluster_api.scale(name, 0)
        if policy == "wait":
            site.wait_drained(NODE)
            # Cluster API cordons first, as no hook before that holds it.
            wait_until(lambda: rig.node()["spec"].get("unschedulable"), what="the cordon")
            site.wait_dumps(NODE, 4)
            assert HOOK in cluster_api.wait_machine(lambda _: True, "it to be there")["metadata"]["annotations"]
            assert job_state(cluster, job)[0] == "RUNNING"
            gate.touch()
        wait_until(rig.mark.exists, what="the daemon's mark")
        cluster.daemon("stop", f"slurmd:{NODE}")  # what slurmlet-detach.path does
        wait_until(lambda: not cluster_api.machines(), what="the Machine to go")
        # On a busy machine SIGKILL follows before the job has obeyed SIGTERM.
        assert job_state(cluster, job) in (
            [("COMPLETED", "0:0")] if policy == "wait" else [("CANCELLED", "0:15"), ("CANCELLED", "0:9")])
        wait_until(lambda: plane.admin.find(node_path(NODE)) is None, what="the Node to go")
        rig.wait_log("was deleted with its Machine")  # and it registers no other
        assert plane.admin.find(node_path(NODE)) is None
        rig.stop()

        if policy == "now":  # its slurmd is there before anybody can tell whose the host is
            cluster.daemon("start", f"slurmd:{NODE}")
            assert "DRAIN" in site.state(NODE)
        else:
            wait_until(lambda: not in_slurm(cluster), what="the record of the dynamic node to go")
        next_machine_runs(cluster_api, rig, name, first, uid)
    finally:
        gate.touch()
        end(cluster_api, site, name)


# Of the operator, in their order: a request or a command of Slurm's has this text.
MARK = '"slurmlet.io/detach":"Draining"'
DRAIN = f"update nodename={NODE} state=drain"
DELETE = f"delete nodename={NODE}"
DETACH = '"slurmlet.io/detach":"Detached"'
RELEASE = f'"{HOOK}":null'


def test_turn_over_while_the_operator_is_killed_at_each_step(plane, cluster_api, own_slurm, work, tmp_path, timing):
    """Before it is done, and when it is done but the operator has not heard so."""
    slurm = own_slurm(nodes=[NODE, "st8"], cpus=os.cpu_count(), dynamic=[NODE], cluster_name="kills",
                      slurmd_timeout=SILENT, slurmd_arguments={NODE: ["-Z"]}, node_hosts={"st8": "st8"})
    name = "hpc-kill"
    tmp_path.chmod(0o755)
    gate = tmp_path / "gate"
    with host(plane, slurm, work / "host-kill") as rig, \
            Turnstile(plane, operator_account(plane), tmp_path / "front") as steps:
        cluster_api.make_deployment(name, {HOOK: ""})
        first = cluster_api.wait_machine(is_prepared, "a providerID and an address")
        provision(rig, first)
        cluster_api.wait_machine(is_running, "the Machine to run")
        node = History(plane.admin, "/api/v1/nodes", NODE)
        machine = History(plane.admin, f"{CORE}/machines", first["metadata"]["name"])
        uid = rig.node()["metadata"]["uid"]
        site = Site(plane, slurm, steps, tmp_path)

        def start():
            return site.start("--leader-elect=false", f"--slurm-bin-dir={steps.programs}")

        def detach():
            return rig.node()["metadata"]["annotations"].get("slurmlet.io/detach")

        def hooks():
            return [HOOK in one["metadata"].get("annotations", {}) for _, one in machine.seen]

        def is_held():
            """And was all the time."""
            machine.until_now()
            return all(hooks())

        def kill_at(when, step, what_holds, job_is):
            """The next one goes on from there."""
            wait_until(steps.is_reached, what=f"the step {step}, {when}")
            assert not job_is or job_state(slurm, job) == job_is
            assert what_holds()
            site.operators[-1].kill()

        running, completed = ("RUNNING", "0:0"), ("COMPLETED", "0:0")
        before = [("before", MARK, lambda: not detach() and is_held()),
                  ("after", MARK, lambda: detach() == "Draining" and is_held()),
                  ("before", DRAIN, lambda: "DRAIN" not in slurm.node_state(NODE) and is_held()),
                  ("after", DRAIN, lambda: "DRAIN" in slurm.node_state(NODE) and is_held())]
        after = [("before", DETACH, lambda: detach() == "Draining" and is_held()),
                 ("after", DETACH, lambda: detach() == "Detached" and is_held()),
                 ("before", RELEASE, is_held),
                 ("after", RELEASE, lambda: wait_until(lambda: not all(hooks()), what="the hook to go"))]
        at_last = [("before", DELETE, lambda: in_slurm(slurm)), ("after", DELETE, lambda: not in_slurm(slurm))]
        try:
            start()
            job = submit(slurm, gate)
            site.wait_record(NODE, lambda record: "ALLOCATED" in record["text"] or "MIXED" in record["text"])
            steps.stop_at(*before[0][:2])
            cluster_api.scale(name, 0)
            wait_until(lambda: rig.node()["spec"].get("unschedulable"), what="the cordon")
            for when, step, what_holds in before:
                if when + step != before[0][0] + before[0][1]:
                    steps.stop_at(when, step)
                    start()
                kill_at(when, step, what_holds, running)
            steps.let_all()
            waits = start()
            wait_until(lambda: f"1 job on Slurm node {NODE}" in waits.output(), what="the words")
            site.wait_dumps(NODE, 3)
            waits.kill()
            assert is_held()
            assert job_state(slurm, job) == running
            gate.touch()
            wait_until(lambda: job_state(slurm, job) == completed, what="the job's end")
            for when, step, what_holds in after:
                steps.stop_at(when, step)
                start()
                kill_at(when, step, what_holds, completed)
            steps.let_all()
            start()
            wait_until(rig.mark.exists, what="the daemon's mark")
            slurm.daemon("stop", f"slurmd:{NODE}")
            wait_until(lambda: not cluster_api.machines(), what="the Machine to go")
            wait_until(lambda: plane.admin.find(node_path(NODE)) is None, what="the Node to go")
            rig.wait_log("was deleted with its Machine")
            site.operators[-1].kill()
            for when, step, what_holds in at_last:
                steps.stop_at(when, step)
                start()
                kill_at(when, step, what_holds, None)  # by now slurmctld may have forgotten it
            steps.let_all()
            start()
            rig.stop()
            marks = [one["metadata"]["annotations"].get("slurmlet.io/detach", "") for _, one in node.seen]
            assert [mark for mark, _ in itertools.groupby(marks)] == ["", "Draining", "Detached"]
            assert [kind for kind, _ in node.seen if kind != "MODIFIED"] == ["ADDED", "DELETED"]
            next_machine_runs(cluster_api, rig, name, first, uid)
            assert len({one["metadata"]["uid"] for _, one in node.until_now()}) == 2
        finally:
            gate.touch()
            steps.let_all()
            end(cluster_api, site, name)
