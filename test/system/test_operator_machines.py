"""slurmlet-operator and Machines that are being deleted: real slurmctld and slurmd with jobs, the real API server
with Cluster API's own CRD. Its controllers are played by the test."""
import contextlib
import os
import re
import shutil

import pytest

from harness.api import node_path
from harness.operator_site import Site
from harness.rig import wait_until

NODES = ["mc001", "mc002"]
MINE = "slurmlet: machine deleted"


@pytest.fixture(scope="module")
def cluster(own_slurm):
    return own_slurm(nodes=NODES, cpus=2, cluster_name="machi", node_hosts={name: name for name in NODES})


@contextlib.contextmanager
def run_site(plane, cluster, account, tmp_path, machines, nodes):
    one = Site(plane, cluster, account, tmp_path)
    for name in nodes:
        one.add(name, name)
    try:
        yield one
    finally:
        one.print_logs()
        one.end()
        machines.finish_all()


@pytest.fixture
def site(plane, cluster, account, machines, tmp_path):
    for name in NODES:
        cluster.reset(name)
    with run_site(plane, cluster, account, tmp_path, machines, NODES) as one:
        yield one
    cluster.command("scancel", "-u", "root")
    for name in NODES:
        cluster.reset(name)


def job_state(slurm, job):
    shown = slurm.command("scontrol", "show", "job", job).stdout
    return re.search(r"JobState=(\S+)", shown).group(1), re.search(r"ExitCode=(\S+)", shown).group(1)


def submit_waiting(slurm, node, gate):
    """A job that ends by itself, with exit code 0, once the file `gate` is there."""
    job = slurm.command("sbatch", "--parsable", "--output=/dev/null", "--chdir=/", "--time=60", f"--nodelist={node}",
                        f"--wrap=until [ -e {gate} ]; do sleep 0.2; done").stdout.strip()
    wait_until(lambda: job_state(slurm, job)[0] == "RUNNING", what="the job to run")
    return job


def next_machine(site, machines):
    """The host of m1 becomes that of m2."""
    machines.finish("m1")
    site.api.delete(node_path("mc001"))
    site.add("mc001", "mc001")
    machines.add("m2", "mc001")


def detach(site, name):
    return site.node(name)["metadata"].get("annotations", {}).get("slurmlet.io/detach")


def test_a_machine_goes_when_its_job_has_ended_by_itself(site, machines, tmp_path, timing):
    """Whatever happens to the operator meanwhile."""
    tmp_path.chmod(0o755)
    one = site.start("--leader-elect=false")
    machines.add("m-first", "mc001")
    job = submit_waiting(site.slurm, "mc001", tmp_path / "gate")
    machines.delete("m-first")
    site.wait_drained("mc001")
    assert site.reason("mc001") == f"{MINE} [{site.node('mc001')['metadata']['uid']}]"
    one.kill()
    two = site.start("--leader-elect=false")
    wait_until(lambda: detach(site, "mc001") == "Draining", what="the mark")
    wait_until(lambda: "MachineWaits" in site.events("mc001") & site.events("m-first"), what="the Events")
    site.wait_dumps("mc001", 3)
    assert machines.held("m-first")
    two.kill()
    (tmp_path / "gate").touch()
    wait_until(lambda: job_state(site.slurm, job)[0] == "COMPLETED", what="the job's end")
    site.start("--leader-elect=false")
    machines.wait_released("m-first")
    assert job_state(site.slurm, job) == ("COMPLETED", "0:0")
    assert detach(site, "mc001") == "Detached"
    wait_until(lambda: "MachineReleased" in site.events("mc001") & site.events("m-first"), what="the Events")
    site.wait_dumps("mc001")
    assert "DRAIN" in site.state("mc001")
    # Cluster API deletes the Node last; then the host gets its next Machine.
    machines.finish("m-first")
    site.api.delete(node_path("mc001"))
    site.wait_dumps("mc001")
    assert "DRAIN" in site.state("mc001")
    site.add("mc001", "mc001")
    machines.add("m2", "mc001")
    site.wait_undrained("mc001")
    assert "DRAIN" not in site.state("mc002")


def test_a_cordon_before_the_deletion_becomes_the_machines_drain(site, machines):
    site.start()
    machines.add("m1", "mc001")
    job = site.slurm.submit("mc001")
    site.cordon("mc001")
    site.wait_drained("mc001")
    machines.delete("m1")
    wait_until(lambda: site.reason("mc001").startswith(MINE), 20, "the Reason")
    site.cordon("mc001", False)
    site.wait_dumps("mc001", 3)
    assert "DRAIN" in site.state("mc001")
    assert machines.held("m1")
    assert job_state(site.slurm, job)[0] == "RUNNING"


def test_a_suspended_job_holds_its_machine(site, machines):
    site.start()
    machines.add("m1", "mc001")
    job = site.slurm.submit("mc001")
    site.slurm.command("scontrol", "suspend", job)
    machines.delete("m1")
    site.wait_drained("mc001")
    site.wait_dumps("mc001", 4)
    assert machines.held("m1")


@pytest.mark.parametrize("how", ["annotation", "configuration", "deadline"])
def test_jobs_are_requeued_or_cancelled_where_the_policy_says_so(site, machines, how):
    site.start(*(["--drain-policy=now"] if how == "configuration" else []))
    policy = {"annotation": "now", "configuration": None, "deadline": "deadline=5s"}[how]
    machines.add("m1", "mc001", policy)
    requeued = site.slurm.submit("mc001", "--ntasks=1", "--requeue")
    cancelled = site.slurm.submit("mc001", "--ntasks=1", "--no-requeue")
    machines.delete("m1")
    site.wait_drained("mc001")
    if how == "deadline":
        wait_until(lambda: "what is left at" in site.operators[0].output(), what="the words")
        assert machines.held("m1")
    machines.wait_released("m1")
    assert job_state(site.slurm, requeued)[0] == "PENDING"
    assert job_state(site.slurm, cancelled)[0] == "CANCELLED"
    assert "IDLE" in site.state("mc001")


def test_one_task_of_an_array_is_ended_alone(site, machines):
    """The last one to start has the number of the whole array."""
    slurm = site.slurm
    array = slurm.command("sbatch", "--parsable", "--array=1-3", "--no-requeue", "--exclusive", "--output=/dev/null",
                          "--chdir=/", "--wrap=sleep 600").stdout.strip()

    def on(node):
        shown = slurm.command("squeue", "-h", "-t", "R", "-w", node, "-O", "JobID:|,ArrayTaskID:|").stdout.split("|")
        return shown[0].strip(), shown[1].strip()

    wait_until(lambda: all(len(slurm.command("squeue", "-h", "-t", "R", "-w", node).stdout) > 0 for node in NODES),
               what="a task on each node")
    ended = next(node for node in NODES if on(node)[0] == array or node == NODES[-1])
    task, [other] = on(ended)[1], [node for node in NODES if node != ended]
    kept = on(other)[1]
    site.start("--drain-policy=now")
    machines.add("m1", ended)
    machines.delete("m1")
    machines.wait_released("m1")
    states = {line.split("|")[0].strip(): line.split("|")[1].strip() for line in slurm.command(
        "squeue", "-h", "-r", "-t", "all", "-j", array, "-O", "ArrayTaskID:|,State:|").stdout.splitlines()}
    assert states.get(task, "CANCELLED") in ("CANCELLED", "COMPLETING")
    assert states[kept] == "RUNNING"
    [waits] = {"1", "2", "3"} - {task, kept}
    assert states[waits] == "PENDING"
    slurm.command("scancel", array)


@pytest.mark.slow
def test_a_heterogeneous_job_is_requeued_as_a_whole(site, machines):
    """Slurm requeues its components together, by the number of their leader, which runs elsewhere."""
    slurm = site.slurm
    leader = slurm.command("sbatch", "--parsable", "--requeue", "--output=/dev/null", "--chdir=/", "-n1", "-wmc001", ":",
                           "-n1", "-wmc002", "--wrap=sleep 600").stdout.strip()

    def states():
        return slurm.command("squeue", "-h", "-t", "all", "-j", leader, "-O", "State").stdout.split()

    # The backfill scheduler alone starts them, twice a minute.
    wait_until(lambda: states() == ["RUNNING", "RUNNING"], 100, "both components to run")
    site.start("--drain-policy=now")
    machines.add("m1", "mc002")
    machines.delete("m1")
    machines.wait_released("m1")
    assert set(states()) <= {"PENDING", "COMPLETING"}
    assert f"requested a requeue of job {leader}" in site.operators[0].output()
    slurm.command("scancel", leader)


def test_a_reboot_that_would_end_the_drain_holds_its_machine(site, machines):
    site.slurm.command("scontrol", "update", "nodename=mc001", "state=drain", "reason=bad dimm")
    job = site.slurm.submit("mc002")  # elsewhere
    site.slurm.command("scontrol", "reboot", "ASAP", "nextstate=RESUME", "mc001", check=False)
    if not {"REBOOT_REQUESTED", "REBOOT_ISSUED"} & set(site.state("mc001")):
        pytest.skip("slurmctld takes no reboot here")
    site.start()
    machines.add("m1", "mc001")
    machines.delete("m1")
    wait_until(lambda: "which may end the drain" in site.operators[0].output(), what="the words")
    site.wait_dumps("mc001", 2)
    assert machines.held("m1")
    assert job_state(site.slurm, job)[0] == "RUNNING"
    site.slurm.command("scontrol", "cancel_reboot", "mc001", check=False)  # not what was issued already


def test_while_slurmctld_is_away_nothing_goes(site, machines):
    one = site.start()
    machines.add("m1", "mc001")
    site.wait_record("mc001", lambda r: r["text"])
    site.slurm.daemon("stop", "slurmctld")
    try:
        machines.delete("m1")
        wait_until(lambda: "Machine default/m1: slurmctld did not report" in one.output(), 40, "the words")
        assert machines.held("m1")
    finally:
        site.slurm.daemon("start", "slurmctld")
    machines.wait_released("m1", 60)
    assert "DRAIN" in site.state("mc001")


def test_without_squeue_nothing_goes_and_people_are_told(site, machines, tmp_path):
    programs = tmp_path / "bin"
    programs.mkdir()
    for name in ("scontrol", "sinfo"):
        (programs / name).symlink_to(shutil.which(name))
    one = site.start(f"--slurm-bin-dir={programs}")
    machines.add("m1", "mc001")
    machines.delete("m1")
    wait_until(lambda: "Machine default/m1: could not list the jobs on its Slurm node: "
               in one.output(), what="the words")
    assert f"{programs}/squeue" in one.output()
    site.wait_dumps("mc001", 3)
    assert one.output().count("could not list the jobs") == 1
    assert machines.held("m1")
    (programs / "squeue").symlink_to(shutil.which("squeue"))
    machines.wait_released("m1")


def test_a_node_that_is_down_is_drained_with_its_reason_and_left_to_an_administrator(site, machines):
    site.slurm.command("scontrol", "update", "nodename=mc001", "state=down", "reason=Kill task failed")
    site.start()
    machines.add("m1", "mc001")
    machines.delete("m1")
    machines.wait_released("m1")
    assert {"DOWN", "DRAIN"} <= set(site.state("mc001"))
    next_machine(site, machines)
    site.wait_dumps("mc001", 3)
    assert {"DOWN", "DRAIN"} <= set(site.state("mc001"))
    assert site.reason("mc001") == "Kill task failed"


def test_an_administrators_drain_stays(site, machines):
    site.slurm.command("scontrol", "update", "nodename=mc001", "state=drain", "reason=bad dimm")
    site.start()
    machines.add("m1", "mc001")
    machines.delete("m1")
    machines.wait_released("m1")
    next_machine(site, machines)
    site.wait_record("mc001", lambda r: r["text"])
    site.wait_dumps("mc001", 3)
    assert site.reason("mc001") == "bad dimm"
    assert "DRAIN" in site.state("mc001")


def test_a_machine_that_never_had_a_node_goes(site, machines):
    site.start()
    machines.add("m-new", None)
    machines.delete("m-new")
    machines.wait_released("m-new")
    assert "DRAIN" not in site.state("mc001") + site.state("mc002")


def test_a_machine_that_lives_keeps_its_hook(site, machines):
    site.start()
    machines.add("m1", "mc001")
    site.wait_record("mc001", lambda r: r["text"])
    site.wait_dumps("mc001", 3)
    assert machines.held("m1")
    assert "DRAIN" not in site.state("mc001")


def test_a_dry_run_keeps_the_hook(site, machines):
    one = site.start("--dry-run")
    machines.add("m1", "mc001")
    machines.delete("m1")
    wait_until(lambda: "dry run: Slurm node mc001 is to be drained" in one.output(), what="the words")
    assert machines.held("m1")
    assert "DRAIN" not in site.state("mc001")


def test_a_dynamic_node_is_deleted_when_its_machine_has_gone_and_its_slurmd_too(own_slurm, plane, account, machines,
                                                                                tmp_path, slurm_root):
    """Not before: a slurmd that still runs would register it again, undrained."""
    slurm = own_slurm(nodes=["dynm1"], cpus=os.cpu_count(), root=slurm_root, dynamic=["dynm1"], slurmd_timeout=6,
                      slurmd_arguments={"dynm1": ["-Z", "--conf", "Feature=dyn"]})
    with run_site(plane, slurm, account, tmp_path, machines, ["dynm1"]) as site:
        machines.add("m1", "dynm1")
        one = site.start("--leader-elect=false")
        machines.delete("m1")
        machines.wait_released("m1")
        assert detach(site, "dynm1") == "Detached"
        one.kill()
        site.start("--leader-elect=false")
        machines.finish("m1")
        site.api.delete(node_path("dynm1"))
        site.names.remove("dynm1")
        site.wait_dumps("dynm1", 3)
        assert "DRAIN" in slurm.node_state("dynm1")
        slurm.daemon("kill", "slurmd:dynm1")
        wait_until(lambda: slurm.node_state("dynm1") == [], what="the record's end")
