"""What is not known is not nothing: where slurmctld does not answer, or hides the jobs of others, no Machine comes or goes, and
no drain begins or ends."""
import os
import shutil
import tempfile
import time
from pathlib import Path

import pytest

from harness.autoscaling import FLAGS, make_scaled
from harness.metric_names import scraped
from harness.operator_site import Site
from harness.rig import wait_until
from slurmcluster.config import free_ports
from test_autoscaling import (a_pool_of_one_to_three, autoscaling_account, cluster_api, drained, end, hosts,  # noqa: F401
                              idle, live, marked, replicas, start, start_slurm, submit, wait_states, whole)

LONG = 60  # seconds: several lists of jobs


@pytest.mark.slow
def test_slurmctld_away_for_a_minute(cluster_api, pool):  # noqa: F811
    """While jobs run and one waits. Those that run end meanwhile, of which nothing is known."""
    name, slurm, gate, site, _ = pool
    cluster_api.scale(name, 3)
    wait_until(lambda: idle(slurm) == "3", what="three machines")
    jobs = whole(slurm, gate, 2)
    wait_states(slurm, jobs, ("RUNNING", "0:0"))
    one = site.start(*FLAGS)
    wait_until(lambda: drained(slurm) == 1 or replicas(cluster_api, name) == 2, what="the third to go")
    wait_until(lambda: len(cluster_api.machines()) == 2, what="two Machines")
    slurm.daemon("stop", "slurmctld")
    began, said = time.monotonic(), len(one.output())
    gate.touch()
    while time.monotonic() - began < LONG:
        assert (replicas(cluster_api, name), len(live(cluster_api)), marked(cluster_api)) == (2, 2, 0)
        time.sleep(1)
    assert "slurmctld did not report" in one.output()[said:]
    assert "scaled from" not in one.output()[said:] and "drained Slurm node" not in one.output()[said:]
    slurm.daemon("start", "slurmctld")
    wait_states(slurm, jobs, ("COMPLETED", "0:0"))
    wait_until(lambda: len(cluster_api.machines()) == 1, 180, "one Machine")
    gate.unlink()
    more = whole(slurm, gate, 2)
    wait_states(slurm, more, ("RUNNING", "0:0"))
    gate.touch()
    wait_states(slurm, more, ("COMPLETED", "0:0"))


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root, to be another user")
def test_jobs_that_slurm_hides_are_not_an_empty_queue(plane, cluster_api, hosts, autoscaling_account,  # noqa: F811
                                                      own_slurm):
    slurm = start_slurm(own_slurm, "", "hidden", ["PrivateData=jobs"])
    hosts.begin(slurm)
    directory = Path(tempfile.mkdtemp(prefix="hidden", dir="/tmp"))
    directory.chmod(0o755)
    gate = directory / "gate"
    make_scaled(cluster_api, "hidden", 1, 4)
    cluster_api.scale("hidden", 2)
    site = Site(plane, slurm, autoscaling_account, directory)
    [port] = free_ports(1)
    try:
        wait_until(lambda: idle(slurm) == "2", what="two machines")
        running = whole(slurm, gate, 1)
        wait_states(slurm, running, ("RUNNING", "0:0"))
        waiting = submit(slurm, gate, "-N3", "-n3", "--exclusive")
        one = site.start(*FLAGS, f"--metrics-address=127.0.0.1:{port}", user="nobody")
        wait_until(lambda: "autoscaling: the jobs are not known: Slurm hides what is not its own from user nobody "
                   "(PrivateData=jobs)" in one.output(), what="the words")
        site.wait_dumps("dyn0", 10)  # longer than idle-after
        assert (replicas(cluster_api, "hidden"), len(live(cluster_api)), marked(cluster_api)) == (2, 2, 0)
        assert drained(slurm) == 0
        assert not any(key.startswith("slurmlet_operator_partition_") for key in scraped(port))
        one.kill()
        start(site)  # as root, who sees them
        wait_states(slurm, [*running, waiting][1:], ("RUNNING", "0:0"))
        assert replicas(cluster_api, "hidden") == 4
    finally:
        end(cluster_api, site, slurm, gate, "hidden")
        shutil.rmtree(directory, ignore_errors=True)
