"""deploy/kubectl/slurm.columns: what kubectl, today's and an old one, prints of a node by it, held
against sinfo."""
import os
import re
import subprocess

import pytest

from harness.api import repository
from harness.programs import OLD_KUBECTL
from harness.rig import GENERAL_WAIT, wait_until

COLUMNS = repository() / "deploy/kubectl/slurm.columns"
SLURM_NODE = "nid000001"
NONE = "<none>"


def row(rig, which):
    """{header: value} of our node."""
    command = [str(OLD_KUBECTL)] if which == "old" else rig.plane.kubectl
    done = subprocess.run(
        [*command, "get", "nodes", rig.name, "-o", f"custom-columns-file={COLUMNS}"], check=True,
        capture_output=True, text=True, timeout=GENERAL_WAIT,
        env={**os.environ, "KUBECONFIG": str(rig.plane.admin_kubeconfig)})
    header, values = done.stdout.rstrip("\n").split("\n")
    found = list(re.finditer(r"\S+", header))
    ends = [one.start() for one in found[1:]] + [None]
    return {one.group(): values[one.start():end].strip() for one, end in zip(found, ends)}


def sinfo(slurm, form):
    return slurm.command("sinfo", "-h", "-N", "-n", SLURM_NODE, "-o", form).stdout.splitlines()[0].strip()


def prepare(rig):
    rig.configure()


@pytest.mark.parametrize("which", ["new", "old"])
def test_it_prints_what_sinfo_does(shared_rig, idle_slurm, which):
    rig, slurm = shared_rig, idle_slurm
    cpus = sinfo(slurm, "%c")
    wait_until(lambda: row(rig, which)["STATE"] == "IDLE", what="an idle node")
    idle = row(rig, which)
    assert idle["NODE"] == rig.name
    assert (idle["READY"], idle["DRAIN"], idle["CPUS"], idle["GPUS"]) == ("True", "NotDrained", cpus, "4")
    assert (idle["CPUS-USED"], idle["GPUS-USED"], idle["JOBS"], idle["REASON"]) == ("0", "0", "0", NONE)
    partitions = slurm.command("sinfo", "-h", "-n", SLURM_NODE, "-o", "%R").stdout.split()
    assert sorted(idle["PARTITIONS"].split(",")) == sorted(set(partitions))
    job = slurm.submit(SLURM_NODE, "--gres=gpu:a100:1", "--cpus-per-task=1")
    slurm.command("scontrol", "update", f"nodename={SLURM_NODE}", "state=drain", "reason=bad dimm in slot 3")
    wait_until(lambda: row(rig, which)["DRAIN"] == "Draining" and row(rig, which)["CPUS-USED"] == "1",
               what="the drain")
    busy = row(rig, which)
    # An answer about one node calls all or part of it allocated (docs/reference/conditions.md).
    assert busy["STATE"] in ("MIXED+DRAIN", "ALLOCATED+DRAIN")
    assert (busy["GPUS-USED"], busy["JOBS"]) == ("1", "1")
    assert busy["REASON"].startswith("bad dimm in slot 3")
    assert busy["REASON"].startswith(sinfo(slurm, "%E"))
    slurm.command("scancel", job)


def test_a_state_that_is_not_current_is_told(rig, idle_slurm):
    """The annotation of the last known state stays; the column DRAIN has why it is old."""
    rig.start_and_know()
    idle_slurm.daemon("stop", "slurmctld")
    try:
        wait_until(lambda: row(rig, "new")["DRAIN"].startswith("Controller"), what="the cause")
        assert row(rig, "new")["STATE"] == "IDLE"
    finally:
        idle_slurm.daemon("start", "slurmctld")
