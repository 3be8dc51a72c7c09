#!/usr/bin/env python3
"""Record what `sinfo` answers in good and bad times, as captures/VERSION/CASE.{out,err,cmd}.

Run as root: capture.py [DIR]. It makes a cluster of its own in DIR (default
/tmp/slurmcap), takes about four minutes (a paused munged alone
blocks sinfo for more than two), and replaces DIR by /slurm in the files.
"""

import os
import shutil
import subprocess
import sys
import time

_HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:] = [os.path.dirname(_HERE)] + [p for p in sys.path if os.path.abspath(p or ".") != _HERE]

from slurmcluster.cluster import SlurmCluster  # noqa: E402

FIELDS = ("NodeList:|,Partition:|,StateComplete:|,CPUsState:|,Memory:|,AllocMem:|,FreeMem:|,CPUsLoad:|,Gres:|,"
          "GresUsed:|,Version:|,Features:|,Cluster:|,Timestamp:|,User:|,Reason:|")
NOBODY = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups"]


class Recorder:
    """Runs a command and writes its three files."""

    def __init__(self, cluster, target):
        self.cluster, self.target = cluster, target

    def record(self, case, command):
        """Run the command (a list) in the cluster's environment."""
        started = time.monotonic()
        done = subprocess.run(command, env=self.cluster.env, capture_output=True, stdin=subprocess.DEVNULL, check=False)
        took = round((time.monotonic() - started) * 1000)
        shown = " ".join(word if word.isalnum() or word.startswith("-") and ":" not in word else f"'{word}'" for word in command)
        self.write(case, "out", done.stdout)
        self.write(case, "err", done.stderr)
        self.write(case, "cmd", f"{shown}\n# exit={done.returncode} wall_ms={took}\n".encode())
        print(f"{case}: exit {done.returncode}, {took} ms, {done.stdout!r} {done.stderr!r}")

    def write(self, case, kind, content):
        """Write one file, free of local paths."""
        root = self.cluster.layout.root.encode()
        with open(os.path.join(self.target, f"{case}.{kind}"), "wb") as out:
            out.write(content.replace(root, b"/slurm"))

    def sinfo(self, case, node="n1", prefix=()):
        """The query under test."""
        self.record(case, [*prefix, "sinfo", "-h", "-a", "-N", "-n", node, "-O", FIELDS])


def main():
    """Record all cases."""
    directory = sys.argv[1] if len(sys.argv) > 1 else "/tmp/slurmcap"
    cluster = SlurmCluster(directory)
    with cluster:
        cluster.up(nodes=["n1", "n2"], cpus=4, memory=8000, gpus="a100:2", slurmd_timeout=30)
        version = cluster.command("sinfo", "--version").stdout.split()[-1]
        target = os.path.join(_HERE, "captures", version)
        shutil.rmtree(target, ignore_errors=True)
        os.makedirs(target)
        recorder = Recorder(cluster, target)

        recorder.sinfo("idle")
        recorder.sinfo("idle-as-nobody", prefix=NOBODY)
        recorder.sinfo("unknown-node", node="nope01")
        # Right after a job started, before and after anybody's full dump.
        job = cluster.submit("n1", "--ntasks=1", "--gres=gpu:1")
        recorder.sinfo("job-started-before-full-dump")
        cluster.show_node("n1")
        recorder.sinfo("mixed-after-full-dump")
        cluster.command("scancel", job)
        recorder.sinfo("job-just-cancelled")
        cluster.set_state("n1", "allocated")
        recorder.sinfo("allocated")
        cluster.set_state("n1", "draining", "disk | bad, State=DOWN fake")
        recorder.sinfo("draining")
        cluster.set_state("n1", "drained", "line one\nline two")
        recorder.sinfo("drained-two-line-reason")
        for state in ("down", "completing", "not_responding", "maintenance", "reboot_issued", "inval", "future"):
            cluster.set_state("n1", state)
            recorder.sinfo(state.replace("_", "-"))
        cluster.reset("n1")

        cluster.daemon("stop", "slurmd:n1")
        recorder.sinfo("slurmd-stopped")
        cluster.daemon("start", "slurmd:n1")
        for action, undo in (("stop", "start"), ("pause", "resume")):
            for daemon in ("slurmctld", "munged"):
                cluster.daemon(action, daemon)
                recorder.sinfo(f"{daemon}-{'stopped' if action == 'stop' else 'paused'}")
                cluster.daemon(undo, daemon)
        os.rename(cluster.conf_path, cluster.conf_path + ".away")
        recorder.sinfo("conf-missing")
        os.rename(cluster.conf_path + ".away", cluster.conf_path)
        recorder.sinfo("idle-again")
    cluster.down(remove=True)


if __name__ == "__main__":
    main()
