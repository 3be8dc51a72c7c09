"""Drives every state and daemon action of the private cluster once, for real.

Run as root: python3 -m pytest test/lab/slurmcluster
"""

import os
import re
import shutil
import subprocess
import sys
import tempfile
import time

import pytest

from . import config
from .cluster import SlurmCluster
from .config import ClusterError, ClusterSpec, Layout
from .states import STATES, _remedies, boot_time

COMMAND = [sys.executable, os.path.join(os.path.dirname(os.path.abspath(__file__)), "slurmcluster.py")]

pytestmark = [
    pytest.mark.skipif(os.geteuid() != 0, reason="the cluster needs root"),
    pytest.mark.skipif(shutil.which("slurmctld", path="/usr/sbin:" + os.environ["PATH"]) is None,
                       reason="no slurmctld; Debian package slurmctld"),
]


def run(*words):
    """Run the command line tool."""
    return subprocess.run([*COMMAND, *words], capture_output=True, text=True, check=False, timeout=120)


@pytest.fixture(scope="module", name="cluster")
def running_cluster():
    """Two nodes with GPUs, all daemons; a short directory name for the sockets."""
    directory = tempfile.mkdtemp(prefix="slc", dir="/tmp")
    cluster = SlurmCluster(directory)
    with cluster:
        yield cluster.up(nodes=["n1", "n2"], cpus=4, gpus="a100:2", slurmd_timeout=10, slurmrestd=True, power_save=True)
    assert not cluster.processes.strays()
    shutil.rmtree(directory)


# These wait 15 to 30 s for a timer of slurmctld; powering_up passes through powered_down.
SLOW = () if os.environ.get("SLURMCLUSTER_ALL_STATES") else ("down_not_responding", "powering_down", "powered_down")


@pytest.mark.parametrize("state", [name for name in STATES if name not in SLOW])
def test_state(cluster, state):
    reported = cluster.set_state("n1", state)
    assert "+".join(cluster.node_state("n1")) == reported
    expected = {"mixed": "MIXED", "allocated": "ALLOCATED", "draining": "MIXED+DRAIN", "drained": "IDLE+DRAIN",
                "down": "DOWN", "fail": "IDLE+FAIL", "idle": "IDLE"}
    assert reported == expected.get(state, reported)
    assert cluster.node_state("n2") == (["ALLOCATED"] if state == "planned" else ["IDLE"])
    if state == "planned":
        cluster.reset("n2")


@pytest.mark.filterwarnings("error")  # a second try would hide it
def test_reboot_is_not_ordered_in_the_second_of_a_boot(cluster):
    """slurmctld would take the answer to the order for the boot, and keep REBOOT_ISSUED for good."""
    for _ in range(2):  # the reset before the second ends the first by a boot
        cluster.set_state("n1", "reboot_issued")
        ordered = re.search(r"Reason=.*\[root@(\S+)\]", cluster.show_node("n1")).group(1)
        assert time.mktime(time.strptime(ordered, "%Y-%m-%dT%H:%M:%S")) - boot_time(cluster, "n1") > 1


class LateAnswer:
    """A cluster whose slurmctld notes an answer of before just after the first resume."""

    def __init__(self):
        self.spec, self.resumed, self.asked = ClusterSpec(), 0, 0

    def daemon(self, *_):
        pass

    def command(self, *words):
        self.resumed += "state=resume" in words

    def node_state(self, _):
        self.asked += 1
        return ["IDLE"] if self.resumed == 1 and self.asked > 2 else ["IDLE", "NOT_RESPONDING"]


def test_silent_node_stays_silent():
    cluster = LateAnswer()
    push, reached = STATES["not_responding"]
    push(cluster, "n1", "")
    assert cluster.resumed == 2 and reached(set(cluster.node_state("n1")))


def test_remedy_for_a_reboot_that_counts_as_done(cluster):
    remedies = [name for name, _, _ in _remedies(cluster, "n1", {"IDLE", "DRAIN", "REBOOT_ISSUED"})]
    assert remedies == ["resume"]


def test_reset_and_command_line(cluster):
    directory = cluster.layout.root
    assert run("state", "--dir", directory, "--node", "n1", "drained", "--reason", "a | b").stdout == "IDLE+DRAIN\n"
    assert "Reason=a | b" in cluster.show_node("n1")
    assert run("reset", "--dir", directory).stdout == "IDLE\nIDLE\n"
    assert run("env", "--dir", directory).stdout == f"export SLURM_CONF={cluster.conf_path}\n"
    failed = run("state", "--dir", directory, "--node", "nope", "idle")
    assert (failed.returncode, failed.stderr) == (1, "slurmcluster: no node 'nope' in this cluster\n")


@pytest.mark.parametrize("name", ["munged", "slurmctld", "slurmd:n1", "slurmrestd"])
def test_daemon_actions(cluster, name):
    first = cluster.pid(name)
    cluster.daemon("pause", name)
    cluster.daemon("resume", name)
    cluster.daemon("kill", name)
    assert cluster.pid(name) is None
    cluster.daemon("start", name)
    cluster.daemon("restart", name)
    assert cluster.pid(name) not in (None, first)
    cluster.reset("n1")


def test_unprivileged_reader(cluster):
    reader = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", "sinfo", "-h", "-N", "-n", "n1", "-o", "%N %T"]
    assert subprocess.run(reader, env=cluster.env, capture_output=True, text=True, check=True).stdout == "n1 idle\n"


def test_questions_are_counted(cluster):
    cluster.sdiag(reset=True)
    for _ in range(3):
        cluster.sinfo("-h", "-N", "-n", "n1")
    counts = cluster.sdiag()
    assert counts["by_type"]["REQUEST_NODE_INFO_SINGLE"]["count"] == 3
    assert counts["by_user"]["root"]["count"] >= 6


def test_down_ends_orphaned_jobs():
    """A job whose slurmd was killed has only init as its parent."""
    with tempfile.TemporaryDirectory(prefix="slc", dir="/tmp") as directory:
        cluster = SlurmCluster(directory)
        # A second form of the node line: the machine's own CPUs, no GPUs.
        cluster.up(nodes=["solo"], node_line_extra="MemSpecLimit=512", conf_lines=["SlurmctldDebug=debug"])
        try:
            assert "UNKNOWN+DRAIN+INVALID_REG" == cluster.set_state("solo", "inval")
            cluster.reset("solo")
            cluster.submit("solo", "--ntasks=1")
            cluster.daemon("kill", "slurmd")
            assert cluster.processes.strays()
        finally:
            cluster.down()
        assert not cluster.processes.strays()
        assert not cluster.processes.recorded()


def test_a_port_is_given_once_while_its_process_lives():
    ports = config.free_ports(20)
    assert not any(config.claim_port(port) for port in ports)
    another = [sys.executable, "-c", "import config, sys; print(config.claim_port(int(sys.argv[1]))); "
               "print(config.free_ports(1)[0], flush=True); sys.stdin.read()", str(ports[0])]
    with subprocess.Popen(another, cwd=os.path.dirname(COMMAND[1]), stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                          text=True) as process:
        assert process.stdout.readline() == "False\n"
        its_port = int(process.stdout.readline())
        assert not config.claim_port(its_port)
        process.stdin.close()
        process.wait()
    assert config.claim_port(its_port)


def test_long_directory_is_refused():
    with pytest.raises(ClusterError, match="directory name too long"):
        Layout("/tmp/" + "x" * 80).check_socket_paths(ClusterSpec())


def test_directory_that_another_root_does_not_see_is_refused():
    with pytest.raises(ClusterError, match="not under /tmp"):
        Layout("/srv/sc1").check_socket_paths(ClusterSpec(root="/srv/slurm"))


def test_root_without_slurm_names_what_makes_it(tmp_path):
    with pytest.raises(ClusterError, match="root-24.11.sh"):
        SlurmCluster("/tmp/never-made").up(root=str(tmp_path))


def test_missing_program_names_its_package(monkeypatch):
    monkeypatch.setenv("PATH", "/nonexistent")
    monkeypatch.setattr(config, "SBIN_PATH", "/nonexistent")
    with pytest.raises(ClusterError, match="'sinfo' not found; on Debian: apt-get install slurm-client"):
        config.find_program("sinfo")
