"""What of the private cluster no test of test/system shows: its races and its end.

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
from .states import _remedies, boot_time

pytestmark = [
    pytest.mark.skipif(os.geteuid() != 0, reason="the cluster needs root"),
    pytest.mark.skipif(shutil.which("slurmctld", path="/usr/sbin:" + os.environ["PATH"]) is None,
                       reason="no slurmctld; Debian package slurmctld"),
]


@pytest.fixture(scope="module", name="cluster")
def running_cluster():
    """Two nodes with GPUs, all daemons; a short directory name for the sockets."""
    directory = tempfile.mkdtemp(prefix="slc", dir="/tmp")
    cluster = SlurmCluster(directory)
    with cluster:
        yield cluster.up(nodes=["n1", "n2"], cpus=4, gpus="a100:2")
    assert not cluster.processes.strays()
    shutil.rmtree(directory)


@pytest.mark.filterwarnings("error")  # a second try would hide it
def test_reboot_is_not_ordered_in_the_second_of_a_boot(cluster):
    """slurmctld would take the answer to the order for the boot, and keep REBOOT_ISSUED for good."""
    for _ in range(2):  # the reset before the second ends the first by a boot
        cluster.set_state("n1", "reboot_issued")
        ordered = re.search(r"Reason=.*\[root@(\S+)\]", cluster.show_node("n1")).group(1)
        assert time.mktime(time.strptime(ordered, "%Y-%m-%dT%H:%M:%S")) - boot_time(cluster, "n1") > 1


def test_remedy_for_a_reboot_that_counts_as_done(cluster):
    remedies = [name for name, _, _ in _remedies(cluster, "n1", {"IDLE", "DRAIN", "REBOOT_ISSUED"})]
    assert remedies == ["resume"]


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
    with subprocess.Popen(another, cwd=os.path.dirname(config.__file__), stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                          text=True) as process:
        assert process.stdout.readline() == "False\n"
        its_port = int(process.stdout.readline())
        assert not config.claim_port(its_port)
        process.stdin.close()
        process.wait()
    assert config.claim_port(its_port)
