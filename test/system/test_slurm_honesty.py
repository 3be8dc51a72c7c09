"""What is no answer about this node never looks like one: it becomes Unknown with its cause within
the staleness bound, and a good answer afterwards is taken up without a restart. The real sinfo is
there all the time; a script in slurm.binDir stands before it and spoils what it says."""
import pathlib
import shutil
import stat
import time

import pytest

from harness.api import condition
from harness.rig import wait_until
from slurmcluster.processes import process_stat

CORE = ["Idle", "Mixed", "Allocated", "Completing", "Drain", "Down", "Fail", "Maintenance",
        "NotResponding", "InvalidReg"]

# What the script does instead of only running sinfo, the condition's reason, words of its message.
SPOILED = {
    "truncated": ('"$real" "$@" | head -c 40', "AnswerNotUnderstood", ""),
    "other-node": ('"$real" "$@" | sed s/nid000001/nid000002/', "AnswerNotUnderstood",
                   "nid000002"),
    "html": ("echo '<html><body>502 Bad Gateway</body></html>'", "AnswerNotUnderstood", ""),
    "not-utf8": (r"printf '\377\376\000\200|\377|\n'", "AnswerNotUnderstood", ""),
    "ten-megabytes": ("head -c 10485760 /dev/zero | tr '\\0' x", "AnswerNotUnderstood",
                      "more than"),
    "empty": ("exit 0", "NotInSlurm", "no node nid000001"),
    "crash": ("kill -SEGV $$", "AnswerNotUnderstood", "signal 11"),
    "hang": ("trap '' TERM; sleep 1000 & wait; sleep 1000", "ControllerTimeout", ""),
    "rate-limit": ("while :; do echo 'sinfo: RPC rate limited 3 time(s). Sleeping then trying "
                   "again.' >&2; sleep 1; done", "ControllerRateLimited", "rl_enable"),
    "other-munge-key": ("echo 'slurm_load_partitions: Zero Bytes were transmitted or received' >&2; "
                        "exit 1", "AuthenticationRefused", "clock"),
    "clock": ("echo 'sinfo: error: Munge decode failed: Rewound credential' >&2; exit 1",
              "ClockSkew", "Rewound"),
}


class Spoiler:
    """A directory with a `sinfo` that can be told to misbehave."""

    def __init__(self, rig):
        self.directory = rig.directory / "spoiled"
        self.directory.mkdir(mode=0o755)
        self.mode = self.directory / "mode"
        real = shutil.which("sinfo", path=rig.slurm.bin_dir or None)
        script = self.directory / "sinfo"
        cases = "\n".join(f"  {name}) {command} ;;" for name, (command, _, _) in SPOILED.items())
        script.write_text(f'#!/bin/sh\nreal={real}\ncase "$(cat {self.mode})" in\n{cases}\n'
                          '  *) exec "$real" "$@" ;;\nesac\n')
        script.chmod(script.stat().st_mode | stat.S_IXUSR | stat.S_IXGRP | stat.S_IXOTH)
        self.set("good")

    def set(self, mode):
        fresh = self.mode.with_suffix(".new")
        fresh.write_text(mode + "\n")
        fresh.rename(self.mode)


@pytest.fixture(scope="module")
def spoiled(_rigs):
    """One daemon for all cases: it must come back from each without a restart."""
    rig = _rigs()
    spoiler = Spoiler(rig)
    rig.slurm.reset("nid000001")
    rig.configure(slurm={"binDir": str(spoiler.directory)})
    rig.start_and_know()
    yield rig, spoiler
    rig.clean()


def left_of(directory):
    """Processes that the script of that directory left, and zombies, by what /proc tells."""
    found = []
    for entry in pathlib.Path("/proc").iterdir():
        try:
            if entry.name.isdigit() and str(directory).encode() in (entry / "cmdline").read_bytes():
                found.append(entry.name)
        except OSError:
            continue
    return found


def zombies_of(pid):
    children = pathlib.Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    return [child for child in children if (found := process_stat(child)) and found[1] == "Z"]


@pytest.mark.parametrize("mode", SPOILED)
def test_no_answer_is_unknown_with_its_cause_and_ends_without_a_restart(spoiled, mode, timing):
    rig, spoiler = spoiled
    _, reason, words = SPOILED[mode]
    rig.wait_known()
    began = time.monotonic()
    spoiler.set(mode)

    def unknown(node):
        found = [condition(node, "SlurmNodeState" + name) for name in CORE]
        return all(one.get("status") == "Unknown" and one.get("reason") == reason for one in found)
    node = rig.wait(unknown)
    timing(f"{mode} to Unknown (staleAfter 8 s)", time.monotonic() - began)
    message = condition(node, "SlurmNodeStateDrain")["message"]
    assert words in message
    assert "last answer at 20" in message
    assert condition(node, "Ready")["status"] == "True"
    pid = rig.daemon.pid

    spoiler.set("good")
    rig.wait_known()
    assert rig.daemon.pid == pid and rig.daemon.process.poll() is None
    wait_until(lambda: not zombies_of(pid), timeout=20, what="no zombie")
    if mode in ("hang", "rate-limit"):
        wait_until(lambda: not left_of(spoiler.directory), timeout=20,
                   what="nothing of the hanging question to be left")


@pytest.mark.parametrize("release", ["22.05", "24.11"])
def test_a_node_set_down_is_not_mixed_whatever_word_is_the_reason(release, request, own_slurm, rig_of):
    """sinfo prints "none" for a node without a Reason as well; an salloc has no step whose end shows."""
    root = "" if release == "22.05" else request.getfixturevalue("slurm_24_11")
    slurm = own_slurm(nodes=["n1"], cpus=4, cluster_name="alps", root=root, slurmrestd=True)
    rigs = {"cli": rig_of(slurm), "rest": rig_of(slurm)}
    for source, rig in rigs.items():
        rest = {"binDir": "/nonexistent", "restURL": f"unix:{slurm.layout.restd_socket}"}
        rig.configure(node={"readyFollows": "slurm"},
                      slurm={"nodeName": "n1", "pollInterval": "2s", "commandTimeout": "1900ms",
                             "staleAfter": "60s", "confirmInterval": "40s", "source": source,
                             **(rest if source == "rest" else {})})
    slurm.command("salloc", "--no-shell", "--time=60", "--ntasks=1", "--nodelist=n1")
    for rig in rigs.values():
        rig.start(ready=False)
    for rig in rigs.values():
        rig.wait_condition("SlurmNodeStateMixed", "True", timeout=60)
        rig.wait_condition("Ready", "True")
    slurm.command("scontrol", "update", "nodename=n1", "state=down", "reason=none")
    for rig in rigs.values():  # before the next full query, which is 20 s away or more
        rig.wait(lambda node: all(condition(node, name)["status"] != "True"
                                  for name in ("SlurmNodeStateMixed", "Ready")), timeout=15)
    for rig in rigs.values():
        rig.wait_condition("SlurmNodeStateDown", "True", timeout=60)
        rig.wait_condition("Ready", "False")
