"""Slurm's files and programs on a shared file system whose server stops answering: that costs what is
read from there and nothing else. The lease goes on, the Node says which file it is, the daemon obeys
signals, and all is right again when the server is back."""
import os
import pathlib
import shutil
import threading
import time

import pytest

from harness.api import slurm_states
from harness.commands import run_beside
from harness.rig import GENERAL_WAIT, wait_until
from harness.service_manager import ServiceManager
from harness.shared_mount import SharedMount

pytestmark = pytest.mark.skipif(not os.path.exists("/dev/fuse") or os.geteuid() != 0,
                                reason="needs FUSE and root")
SLURM_NODE = "nid000001"
LONGEST_GAP = 15  # seconds between two renewals of the Lease; they are due every 10 s
HANGS = 21  # seconds: two renewals, the deadline of five, several of scontrol's
CAUSE = "FileSystemNotResponding"


@pytest.fixture
def mounts(tmp_path):
    """mount(source): the directory on a shared file system."""
    made = []

    def mount(source, directory=None):
        made.append(SharedMount(source, directory or tmp_path / f"shared{len(made)}"))
        return made[-1]
    tmp_path.chmod(0o755)
    yield mount
    for one in made:
        one.close()


@pytest.fixture
def conf(mounts, rig):
    """slurm.conf and gres.conf on a shared file system."""
    shared = mounts(pathlib.Path(rig.slurm.conf_path).parent)
    rig.environment["SLURM_CONF"] = str(shared.path / "slurm.conf")
    return shared


@pytest.fixture
def programs(mounts, rig, tmp_path):
    """scontrol and slurmd on a shared file system."""
    source = tmp_path / "programs"
    source.mkdir(mode=0o755)
    for name in ("scontrol", "slurmd"):
        shutil.copy(rig.slurm.program(name)[0], source)
    shared = mounts(source)
    rig.configure(slurm={"binDir": str(shared.path)})
    return shared


def longest_gap(rig, mark, began, ended):
    """Between two renewals, or one and the beginning or end of the time."""
    moments = [began, *(at for at in rig.audit.renewals(mark) if began < at < ended), ended]
    return max(later - earlier for earlier, later in zip(moments, moments[1:]))


class Listener:
    """Counts the pings that the service manager gets."""

    def __init__(self, manager):
        self.manager, self.pings, self.running = manager, 0, True
        self.thread = threading.Thread(target=self._listen)
        self.thread.start()

    def _listen(self):
        while self.running:
            self.pings += "WATCHDOG" in (self.manager.next(0.5) or {})

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.running = False
        self.thread.join()


class Hang:
    """The time that a mount hangs."""

    def __init__(self, rig, mount):
        self.rig, self.mount, self.mark = rig, mount, rig.audit.mark()
        self.began = time.time()
        mount.hang()

    def end(self):
        """After long enough to see that the lease goes on."""
        wait_until(lambda: time.time() > self.began + HANGS, HANGS + 5)
        self.mount.answer()
        assert longest_gap(self.rig, self.mark, self.began, time.time()) < LONGEST_GAP

    def wait_cause(self, *words):
        """Slurm's conditions are Unknown, and say why."""
        found = self.rig.wait_condition("SlurmNodeStateIdle", "Unknown", CAUSE)
        assert all(str(word) in found["message"] for word in words), found["message"]


class Fixed:
    """What no hang may change: capacity, and each label. (A controller may add one.)"""

    def __init__(self, node):
        self.capacity, self.labels = node["status"]["capacity"], node["metadata"]["labels"]

    def __eq__(self, before):
        lost = before.labels.items() - self.labels.items()
        assert not lost, lost
        return self.capacity == before.capacity


def test_a_slurm_conf_that_stops_answering(rig, conf, tmp_path):
    with ServiceManager(tmp_path / "notify") as manager, Listener(manager) as listener:
        rig.environment.update(manager.environment(watchdog_seconds=5))
        rig.start_and_know()
        before = Fixed(rig.node())
        hang, pings = Hang(rig, conf), listener.pings
        hang.wait_cause(conf.path / "slurm.conf")
        assert Fixed(rig.node()) == before
        assert rig.condition("SlurmdReady")["status"] == "True"
        assert rig.condition("Ready")["status"] == "True"
        hang.end()
        assert listener.pings - pings >= HANGS // 5, "the service manager would have restarted it"
        rig.wait_known()
        assert Fixed(rig.node()) == before
        rig.stop()


def test_a_restart_beside_a_slurm_conf_that_does_not_answer(rig, conf):
    rig.start_and_know()
    before = Fixed(rig.node())
    rig.stop()
    last = rig.lease()["spec"]["renewTime"]
    hang = Hang(rig, conf)
    began = time.monotonic()
    rig.start(ready=False)
    rig.wait_renewed(last)
    assert time.monotonic() - began < 5  # at once, but that it waits a second for slurm.conf
    hang.wait_cause(conf.path / "slurm.conf", "did not answer for 5 s")
    assert rig.condition("SlurmdReady")["status"] == "Unknown"
    assert str(conf.path) in rig.condition("SlurmdReady")["message"]
    assert rig.condition("MemoryPressure")["status"] == "False"
    assert Fixed(rig.node()) == before
    assert rig.log().count("slurm.conf not read: ") == 1

    hang.end()
    rig.wait_condition("Ready", "True")
    rig.wait_known()
    assert Fixed(rig.node()) == before
    rig.wait_log("slurm.conf answers again; before, ")

    conf.hang()
    assert rig.stop() < 5


def test_a_new_node_beside_a_slurm_conf_that_does_not_answer(rig, conf):
    conf.hang()
    rig.start(ready=False)
    node = rig.wait(lambda found: found is not None, timeout=10)
    assert int(node["status"]["capacity"]["cpu"]) == os.cpu_count()
    rig.wait_condition("SlurmNodeStateIdle", "Unknown", CAUSE)
    assert rig.stop() < 5
    conf.answer()


def test_an_include_that_stops_answering(rig, mounts, tmp_path):
    """The name of the file that hangs is not that of slurm.conf."""
    source = tmp_path / "nodes"
    source.mkdir(mode=0o755)
    text = pathlib.Path(rig.slurm.conf_path).read_text()
    lines = [line for line in text.splitlines() if line.startswith("NodeName=")]
    (source / "nodes.conf").write_text("\n".join(lines) + "\n")
    shared = mounts(source)
    local = tmp_path / "etc"
    local.mkdir(mode=0o755)
    conf = local / "slurm.conf"
    conf.write_text("".join(f"{line}\n" for line in text.splitlines() if line not in lines)
                    + f"Include {shared.path}/nodes.conf\n")
    gres = pathlib.Path(rig.slurm.conf_path).parent / "gres.conf"
    if gres.exists():
        shutil.copy(gres, local)
    rig.environment["SLURM_CONF"] = str(conf)
    shared.hang()
    rig.start(ready=False)
    found = rig.wait_condition("SlurmNodeStateIdle", "Unknown", CAUSE)
    assert f"{shared.path}/nodes.conf did not answer for 5 s" in found["message"]
    shared.answer()
    rig.wait_known()


def test_programs_that_stop_answering(rig, programs):
    rig.start_and_know()
    before = Fixed(rig.node())
    hang = Hang(rig, programs)
    hang.wait_cause(programs.path / "scontrol")
    assert rig.condition("SlurmdReady")["status"] == "True"
    assert Fixed(rig.node()) == before
    hang.end()
    rig.wait_known()
    programs.hang()
    assert rig.stop() < 5


def test_a_start_beside_programs_that_do_not_answer(rig, programs):
    rig.start_and_know()
    rig.stop()
    last = rig.lease()["spec"]["renewTime"]
    hang = Hang(rig, programs)
    rig.start()
    rig.wait_renewed(last)
    hang.wait_cause(programs.path / "scontrol")
    assert rig.condition("SlurmdReady")["status"] == "True"
    hang.end()
    rig.wait_known()


def test_a_spool_directory_that_stops_answering(rig, idle_slurm, mounts, tmp_path):
    """slurmd itself uses the directory behind it, or it would hang as well."""
    conf = tmp_path / "slurm.conf"
    spool = None
    lines = []
    for line in pathlib.Path(rig.slurm.conf_path).read_text().splitlines():
        if line.startswith("SlurmdSpoolDir="):
            spool = mounts(pathlib.Path(line.partition("=")[2]).parent)
            line = f"SlurmdSpoolDir={spool.path}/%n"
        lines.append(line)
    conf.write_text("\n".join(lines) + "\n")
    rig.environment["SLURM_CONF"] = str(conf)
    rig.start_and_know()
    hang = Hang(rig, spool)
    rig.slurm.set_state(SLURM_NODE, "drained", "spool")  # news, so that the jobs are looked at
    rig.wait_log(f"this machine's jobs are unknown: {spool.path}/{SLURM_NODE} did not answer for 5 s")
    assert rig.condition("SlurmdReady")["status"] == "True"
    hang.end()
    rig.wait_log("this machine's jobs are known again")
    spool.hang()
    assert rig.stop() < 5


def test_a_fifo_for_slurm_conf(rig, tmp_path):
    tmp_path.chmod(0o755)
    fifo = tmp_path / "slurm.conf"
    os.mkfifo(fifo)
    rig.environment["SLURM_CONF"] = str(fifo)
    rig.start(ready=False)
    rig.wait(lambda found: found is not None, timeout=10)
    rig.wait_log(f"{fifo} is not a regular file")
    assert rig.stop() < 5


@pytest.fixture
def credential(rig, mounts, tmp_path):
    """The client certificate and its key on a shared file system; the kubeconfig names them there."""
    source = tmp_path / "credential"
    source.mkdir(mode=0o755)
    rig.plane.node_kubeconfig(rig.name, "--embed=false", out=source / "kubeconfig")
    shared = mounts(source)
    rig.kubeconfig = tmp_path / "kubeconfig"
    rig.kubeconfig.write_text((source / "kubeconfig").read_text().replace(str(source), str(shared.path)))
    return shared


def test_a_credential_that_stops_answering(rig, credential):
    rig.start_and_know()
    uid = rig.node()["metadata"]["uid"]
    hang = Hang(rig, credential)
    rig.wait_log("credential files: ", timeout=2 * GENERAL_WAIT)  # looked at every 30 s
    rig.slurm.set_state(SLURM_NODE, "drained", "credential")  # all goes on
    rig.wait_condition("SlurmNodeStateDrain", "True", "Drained")
    rig.slurm.reset(SLURM_NODE)
    hang.end()
    rig.wait_log("the credential files answer again")
    rig.wait_known()
    assert rig.node()["metadata"]["uid"] == uid
    credential.hang()
    assert rig.stop() < 5


def test_a_start_beside_a_credential_that_does_not_answer(rig, credential):
    """The service manager tries again."""
    credential.hang()
    rig.start(ready=False)
    rig.wait_log("kubeconfig.crt does not answer")
    assert rig.daemon.process.wait(10) == 1
    credential.answer()
    rig.start()


def test_a_state_directory_that_stops_answering(rig, mounts, tmp_path):
    (tmp_path / "state").mkdir()
    rig.start_and_know()
    before = Fixed(rig.node())
    state = mounts(tmp_path / "state", rig.state_dir)
    hang = Hang(rig, state)
    found = rig.wait_condition("DiskPressure", "Unknown", CAUSE, timeout=2 * GENERAL_WAIT)
    assert f"{state.path} did not answer for 5 s" in found["message"]
    rig.slurm.set_state(SLURM_NODE, "drained", "state")  # all goes on
    rig.wait_condition("SlurmNodeStateDrain", "True", "Drained")
    rig.slurm.reset(SLURM_NODE)
    rig.slurm.daemon("kill", f"slurmd:{SLURM_NODE}")
    rig.wait_log("SlurmdNotRunning: ")
    rig.slurm.daemon("start", f"slurmd:{SLURM_NODE}")  # with the new one the machine is read again
    rig.wait_log("SlurmdRunning: ")
    owner = {"cluster.x-k8s.io/machine": "m1", "cluster.x-k8s.io/cluster-name": "c1"}
    rig.admin.merge(rig.path, {"metadata": {"annotations": owner}, "spec": {"unschedulable": True}})
    rig.wait_log(f"whether this Node was cordoned is not saved yet: {state.path}/node-end.json does not answer")
    hang.end()
    rig.admin.merge(rig.path, {"metadata": {"annotations": dict.fromkeys(owner)},
                               "spec": {"unschedulable": None}})
    rig.wait_condition("DiskPressure", "False")
    rig.slurm.set_state(SLURM_NODE, "drained", "later")
    rig.wait_condition("SlurmNodeStateDrain", "True", "Drained")
    rig.slurm.reset(SLURM_NODE)
    rig.wait(lambda node: Fixed(node) == before)
    state.hang()
    assert rig.stop() < 10


@pytest.mark.parametrize("command", ["print-node", "check"])
def test_the_commands_end_and_name_the_file(rig, conf, command):
    with conf.hanging():
        began = time.monotonic()
        done = run_beside(rig, command)
        assert time.monotonic() - began < 20
    assert f"{conf.path}/slurm.conf did not answer" in done.stdout + done.stderr
