#!/usr/bin/python3
"""./dev bench site: requests per second at API server and slurmctld when something happens to a
whole site. The daemon's own rules run on one simulated clock (bench/site/*.cpp), without processes.

Prints the table, leaves a CSV file for each scenario in build/site, and draws them where matplotlib
(python3-matplotlib) is installed; --before draws an earlier run's CSV files beside them.
"""
import argparse
import csv
import io
import pathlib
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
PROGRAM = ROOT / "build/release/site"
GOAL_RATIO, GOAL_RPCS = 3, 40  # as in report.h
API_FIRST, API_LAST = "lease_get", "watch_refused"
MOST_BYTES = 60_000


class Run:
    """A CSV file as the program writes it."""

    def __init__(self, path):
        self.events, rows = [], []
        for line in path.read_text().splitlines():
            if line.startswith("# event "):
                second, what = line.removeprefix("# event ").split(" ", 1)
                self.events.append((int(second), what))
            elif line.startswith("# "):
                self.title = line[2:]
            else:
                rows.append(line)
        head, *lines = csv.reader(rows)
        api = slice(head.index(API_FIRST), head.index(API_LAST) + 1)
        rpc = head.index("slurm_rpc")
        self.api = [sum(map(int, line[api])) for line in lines]
        self.slurmctld = [int(line[rpc]) for line in lines]
        words = self.title.replace(":", "").split()
        self.scenario, self.nodes = words[0], int(words[1])
        begin, end = int(words[-4]), int(words[-2])
        self.steady = sum(self.api[begin:end]) / (end - begin)


def draw(runs, path):
    """runs: {"before": Run, "after": Run}, or one of them."""
    import matplotlib
    matplotlib.use("Agg")
    from matplotlib import pyplot
    from PIL import Image

    last = list(runs.values())[-1]
    first = last.events[0][0]
    figure, panels = pyplot.subplots(2, 1, figsize=(8, 5), sharex=True)
    for panel, name in zip(panels, ("api", "slurmctld")):
        for (label, run), color in zip(runs.items(), ("#d08060", "#205090")):
            offset = run.events[0][0]
            values = getattr(run, name)
            panel.plot([second - offset for second in range(len(values))],
                       [max(value, 0.01) for value in values], color=color, linewidth=0.8,
                       label=label)
        panel.set_yscale("log")
        panel.set_ylim(bottom=1)
        panel.grid(True, which="major", color="#dddddd", linewidth=0.5)
        for index, (second, what) in enumerate(last.events):
            panel.axvline(second - first, color="#888888", linewidth=0.8, linestyle=":")
            if name == "api":
                panel.text(second - first, 1.02 if index % 2 == 0 else 0.03, " " + what, fontsize=7,
                           transform=panel.get_xaxis_transform())
    panels[0].axhline(GOAL_RATIO * last.steady, color="#408040", linewidth=0.8, linestyle="--",
                      label="3 × steady")
    panels[1].axhline(GOAL_RPCS, color="#408040", linewidth=0.8, linestyle="--",
                      label=f"{GOAL_RPCS} RPC/s")
    panels[0].set_ylabel("API server, requests/s")
    panels[1].set_ylabel("slurmctld, RPC/s")
    panels[1].set_xlabel(f"seconds ({last.scenario}, {last.nodes} nodes)")
    panels[1].set_xlim(-60, len(last.api) - first)
    for panel in panels:
        panel.legend(loc="upper right", fontsize=7)
    figure.tight_layout()
    buffer = io.BytesIO()
    figure.savefig(buffer, dpi=100)
    pyplot.close(figure)
    Image.open(buffer).convert("RGB").quantize(64).save(path, optimize=True)
    if path.stat().st_size > MOST_BYTES:
        sys.exit(f"{path} has {path.stat().st_size} bytes, more than {MOST_BYTES}")


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0], prog="./dev bench site")
    parser.add_argument("--nodes", type=int, default=10000)
    parser.add_argument("--scenario", action="append", default=[], help="only this; may be repeated")
    parser.add_argument("--into", type=pathlib.Path, default=ROOT / "build/site", help="CSV files")
    parser.add_argument("--before", type=pathlib.Path, help="CSV files of an earlier run")
    parser.add_argument("--plots", type=pathlib.Path, help="where to draw; as --into")
    arguments = parser.parse_args()
    arguments.into.mkdir(parents=True, exist_ok=True)
    command = [PROGRAM, "--nodes", str(arguments.nodes), "--into", arguments.into]
    for scenario in arguments.scenario:
        command += ["--scenario", scenario]
    began = {path: path.stat().st_mtime_ns for path in arguments.into.glob("*.csv")}
    if subprocess.run(command).returncode != 0:
        sys.exit(1)
    try:
        import matplotlib  # noqa: F401
    except ImportError:
        print("no plots: install python3-matplotlib")
        return
    plots = arguments.plots or arguments.into
    plots.mkdir(parents=True, exist_ok=True)
    for path in sorted(arguments.into.glob("*.csv")):
        if path.stat().st_mtime_ns == began.get(path):
            continue  # of an earlier run
        before = arguments.before / path.name if arguments.before else None
        runs = {"before": Run(before)} if before and before.exists() else {}
        runs["after" if runs else "now"] = Run(path)
        draw(runs, plots / f"site-{path.stem}.png")


if __name__ == "__main__":
    main()
