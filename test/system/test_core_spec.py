"""`cpuAffinity: slurmd` beside a slurmd that keeps a core from jobs (CoreSpecCount): slurmlet goes to
that core, and no job shares it."""
import contextlib
import os
import pathlib
import re

import pytest

from harness.rig import wait_until

CPUS = sorted(os.sched_getaffinity(0))
NODE = "cs1"
# As slurmd shall see the machine, whatever its cores and threads are.
LAYOUT = f"Sockets=1 CoresPerSocket={len(CPUS)} ThreadsPerCore=1 CoreSpecCount=1"

pytestmark = pytest.mark.skipif(
    len(CPUS) < 2 or CPUS != list(range(len(CPUS))), reason="needs two CPUs or more, all of them ours")


def allowed(text):
    """Of one or more /proc/PID/status: {CPU, …}."""
    found = set()
    for words in re.findall(r"(?m)^Cpus_allowed_list:\s+(\S+)$", text):
        for part in words.split(","):
            first, _, last = part.partition("-")
            found |= set(range(int(first), int(last or first) + 1))
    return found


def of_process(pid):
    found = set()
    for status in pathlib.Path(f"/proc/{pid}/task").glob("*/status"):
        with contextlib.suppress(OSError):  # slurmd starts a thread for each message: it has ended
            found |= allowed(status.read_text())
    return found


@pytest.mark.parametrize("parameter", [None, "SlurmdOffSpec"])
def test_the_daemon_has_the_specialised_core(own_slurm, rig_of, parameter):
    slurm = own_slurm(nodes=[NODE], cpus=len(CPUS), node_line_extra=LAYOUT,
                      conf_lines=[f"TaskPluginParam={parameter}"] if parameter else [])
    slurmd = of_process(slurm.pid(f"slurmd:{NODE}"))
    assert len(slurmd) == (1 if parameter is None else len(CPUS) - 1), "slurmd confined itself"
    apart = slurmd if parameter is None else set(CPUS) - slurmd
    rig = rig_of(slurm)
    rig.configure(cpuAffinity="slurmd")
    rig.start_and_know()
    wait_until(lambda: of_process(rig.daemon.pid) == apart, what=f"CPU {apart}")
    job = allowed(slurm.command("srun", f"--ntasks={len(CPUS) - 1}", "cat",
                                "/proc/self/status").stdout)
    assert job and not job & apart, "a job runs on the daemon's core"
