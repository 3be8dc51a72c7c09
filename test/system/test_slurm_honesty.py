"""What is no answer about this node never looks like one: it becomes Unknown with its cause within
the staleness bound, and a good answer afterwards is taken up without a restart. The real scontrol is
there all the time; a script in slurm.binDir stands before it and spoils what it says."""
import pathlib
import shutil
import stat
import time

import pytest

from harness.api import condition
from harness.rig import wait_until
from slurmcluster.processes import process_stat

# What the script does instead of only running scontrol, the condition's reason, words of its message.
SPOILED = {
    "truncated": ('"$real" "$@" | head -c 40', "AnswerNotUnderstood", ""),
    "other-node": ('"$real" "$@" | sed s/nid000001/nid000002/g', "NotInSlurm", "no node nid000001"),
    "html": ("echo '<html><body>502 Bad Gateway</body></html>'", "AnswerNotUnderstood", ""),
    "not-utf8": (r"printf '\377\376\000\200|\377|\n'", "AnswerNotUnderstood", ""),
    "twenty-megabytes": ("head -c 20971520 /dev/zero | tr '\\0' x", "AnswerNotUnderstood",
                          "more than"),
    "empty": ("exit 0", "AnswerNotUnderstood", "printed nothing"),
    "state": ('"$real" "$@" | sed "s/ State=[^ ]*/ State=DWN*DRAIN/"', "AnswerNotUnderstood", ""),
    "crash": ("kill -SEGV $$", "AnswerNotUnderstood", "signal 11"),
    "hang": ("trap '' TERM; sleep 1000 & wait; sleep 1000", "ControllerTimeout", ""),
    "rate-limit": ("while :; do echo 'scontrol: RPC rate limited 3 time(s). Sleeping then trying "
                   "again.' >&2; sleep 1; done", "ControllerRateLimited", "rl_enable"),
    "other-munge-key": ("echo 'slurm_load_partitions: Zero Bytes were transmitted or received' >&2; "
                        "exit 1", "AuthenticationRefused", "clock"),
    "clock": ("echo 'scontrol: error: Munge decode failed: Rewound credential' >&2; exit 1",
              "ClockSkew", "Rewound"),
}


class Spoiler:
    """A directory with a `scontrol` that can be told to misbehave."""

    def __init__(self, rig):
        self.directory = rig.directory / "spoiled"
        self.directory.mkdir(mode=0o755)
        self.mode = self.directory / "mode"
        real = shutil.which("scontrol", path=rig.slurm.bin_dir or None)
        script = self.directory / "scontrol"
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
    node = rig.wait_unknown(reason)
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
