#!/usr/bin/python3
"""./dev bench noise: what the daemon takes from jobs, as the HPC field measures OS noise (FWQ).

bench/noise/fwq.cpp does a fixed quantum of work over and over on every measured core and notes by how
much each was delayed: with nothing beside it, beside slurmlet (with a real slurmctld and slurmd
mirrored) and beside the virtual-kubelet program. The three take turns in short slices, so that what
the machine does by itself falls on all alike. The servers (API server, slurmctld) would be elsewhere on
a real site: they keep to the last core, the probe and the daemon have the others.
"""
import argparse
import collections
import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
sys.path[:0] = [str(ROOT / "test/lab"), str(ROOT / "bench")]
import bench  # noqa: E402
from harness.control_plane import ControlPlane  # noqa: E402
from slurmcluster import SlurmCluster  # noqa: E402

PROBE = ROOT / "build/release/fwq"
TURNS = ("alone", "slurmlet", "virtual-kubelet")
SHOWN = (0.5, 0.9, 0.99, 0.999, 0.9999, 1.0)


class Delays:
    """How many quanta were delayed by at most so many microseconds."""

    def __init__(self):
        self.buckets, self.quanta, self.taken = collections.Counter(), 0, []

    def add(self, output):
        for line in output.splitlines():
            _, edge, *rest = line.split()
            if edge == "total":
                self.quanta += int(rest[0])
                self.taken.append(float(rest[1]))
            else:
                self.buckets[float(edge)] += int(rest[0])

    def quantile(self, share):
        wanted, seen = share * self.quanta, 0
        for edge in sorted(self.buckets):
            seen += self.buckets[edge]
            if seen >= wanted:
                return edge
        return 0.0


def probe(cpus, seconds, quantum):
    return subprocess.run(["taskset", "-c", cpus, str(PROBE), str(seconds), str(quantum)], check=True,
                          capture_output=True, text=True).stdout


def start(turn, measured, plane, slurm):
    """The program of this turn, on the measured cores; nothing for none."""
    if turn == "alone":
        return
    {"slurmlet": lambda: measured.start_slurmlet(plane, slurm),
     "virtual-kubelet": lambda: measured.start_virtual_kubelet(plane)}[turn]()


def measure(options, work, plane, slurm, cpus):
    delays = {turn: Delays() for turn in TURNS}
    slices = max(1, options.seconds // options.slice)
    for number in range(slices):
        for turn in TURNS:
            place = work / f"{turn}-{number}"
            place.mkdir()
            measured = bench.Bench(place, 0, 0)
            os.sched_setaffinity(0, cpus)  # inherited by what is started now
            try:
                start(turn, measured, plane, slurm)
                time.sleep(options.settle)  # its start is not what is measured
                delays[turn].add(probe(",".join(map(str, cpus)), options.slice, options.quantum))
            finally:
                measured.stop_all()
            print(f"{number + 1}/{slices} {turn}: {100 * delays[turn].taken[-1]:.4f} % taken",
                  flush=True)
    return delays


def table(delays):
    print("| delay of a quantum, µs | " + " | ".join(TURNS) + " |")
    print("|---" * (len(TURNS) + 1) + "|")
    for share in SHOWN:
        name = "longest" if share == 1 else f"{100 * share:g} % at most"
        print(f"| {name} | " + " | ".join(f"{delays[t].quantile(share):.4g}" for t in TURNS) + " |")
    print("| time taken, % | " + " | ".join(
        f"{100 * sum(delays[t].taken) / len(delays[t].taken):.4f}" for t in TURNS) + " |")
    print("| least and most of a slice, % | " + " | ".join(
        f"{100 * min(delays[t].taken):.4f}–{100 * max(delays[t].taken):.4f}" for t in TURNS) + " |")
    print("| quanta | " + " | ".join(str(delays[t].quanta) for t in TURNS) + " |")


def plot(delays, path):
    """Share of the quanta that were delayed by more than so much, both axes logarithmic."""
    import matplotlib  # only for --plot: python3-matplotlib
    matplotlib.use("Agg")
    from matplotlib import pyplot
    figure, axes = pyplot.subplots(figsize=(7, 4), dpi=90)
    for turn in TURNS:
        left, edges, shares = delays[turn].quanta, [], []
        for edge in sorted(delays[turn].buckets):
            left -= delays[turn].buckets[edge]
            edges.append(edge)
            shares.append(max(left, 0.5) / delays[turn].quanta)
        axes.loglog(edges, shares, label=turn)
    axes.set_xlabel("delay of a quantum, µs")
    axes.set_ylabel("share of quanta delayed by more")
    axes.legend()
    figure.tight_layout()
    figure.savefig(path)


def main():
    parser = argparse.ArgumentParser(prog="./dev bench noise", description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=int, default=600, help="of probing for each of the three")
    parser.add_argument("--slice", type=int, default=60, help="seconds of a turn")
    parser.add_argument("--settle", type=int, default=10, help="seconds before each slice")
    parser.add_argument("--quantum", type=int, default=1000, help="microseconds of work")
    parser.add_argument("--plot", help="write a PNG here")
    parser.add_argument("--json", help="write the distributions here")
    options = parser.parse_args()
    every = sorted(os.sched_getaffinity(0))
    if len(every) < 2:
        raise SystemExit("one core is for the servers, so this takes two or more")
    work = pathlib.Path(tempfile.mkdtemp(prefix="slurmlet-noise-", dir="/tmp"))
    work.chmod(0o755)
    slurm = SlurmCluster(str(work / "slurm"))
    try:
        os.sched_setaffinity(0, every[-1:])
        with ControlPlane(work / "plane") as plane:
            slurm.up(nodes=["bench1"], cluster_name="alps")
            delays = measure(options, work, plane, slurm, every[:-1])
    finally:
        slurm.down()
        shutil.rmtree(work, ignore_errors=True)
    table(delays)
    if options.plot:
        plot(delays, options.plot)
    if options.json:
        pathlib.Path(options.json).write_text(json.dumps(
            {t: {"taken": delays[t].taken, "buckets": delays[t].buckets} for t in TURNS}, indent=1))
    return 0


if __name__ == "__main__":
    sys.exit(main())
