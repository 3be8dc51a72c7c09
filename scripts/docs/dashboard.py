#!/usr/bin/python3
"""docs/images/dashboard.svg: the first panels of deploy/grafana/slurmlet.json with real data. Four slurmds, four daemons, jobs,
a drain and a slurmd that dies, scraped by Prometheus for two minutes; the panels' own expressions, queried as Grafana would.
Grafana itself is not among the tests' programs, so this draws them, in their places.

  test/lab/harness/own_processes.sh scripts/docs/dashboard.py [DATA.json]      reads DATA.json where it is, else writes it"""
import json
import re
import sys
import tempfile
import time
from html import escape
from pathlib import Path

from markdown import ROOT

IMAGE = ROOT / "docs/images/dashboard.svg"
SECONDS, STEP, RATE = 120, 3, "15s"
NODES = ["nid0001", "nid0002", "nid0003", "nid0004"]
LOWEST = 30  # panels below this row of the grid are left out
CELL, ROW, GAP = 34, 22, 6
COLOURS = ("#73bf69", "#f2cc0c", "#5794f2", "#ff780a", "#e02f44", "#b877d9")


def panels():
    found = json.loads((ROOT / "deploy/grafana/slurmlet.json").read_text())["panels"]
    return [panel for panel in found if panel["gridPos"]["y"] < LOWEST]


def expression(target):
    text = target["expr"].replace("$__rate_interval", RATE)
    return text.replace("$job", "slurmlet").replace("$node", ".*")


def queried():
    """{expression: what query_range or query answers}"""
    sys.path.insert(0, str(ROOT / "test/lab"))
    from harness.control_plane import ControlPlane
    from harness.programs import free_port
    from harness.prometheus import Prometheus
    from harness.rig import Rig
    from harness.service_account import ServiceAccount
    from slurmcluster import SlurmCluster

    work = Path(tempfile.mkdtemp(prefix="slurmlet-dashboard-", dir="/tmp"))
    work.chmod(0o755)
    with ControlPlane(work / "cp", "--audit") as plane, SlurmCluster(str(work / "slurm")) as slurm:
        slurm.up(nodes=NODES, cpus=8, gpus="a100:4", cluster_name="alps", slurmd_timeout=20)
        plane.kubectl_output("apply", "-k", str(ROOT / "deploy/rbac"))
        rigs, ports = [], {}
        try:
            for name in NODES:
                rig = Rig(plane, slurm, name, work / name)
                ports[name] = free_port()
                rig.configure(slurm={"nodeName": name}, endpoint={"port": ports[name]})
                rig.start()
                rigs.append(rig)
            account = ServiceAccount(plane, "slurmlet-metrics-reader", "kube-system")
            targets = {name: f"127.0.0.1:{port}" for name, port in ports.items()}
            with Prometheus(work / "prometheus", targets, token_file=account.token_file(work)) as prometheus:
                prometheus.wait_query(f"count(slurmlet_build_info) == {len(NODES)}")
                return watched(prometheus, slurm)
        finally:
            for rig in rigs:
                rig.stop()


def watched(prometheus, slurm):
    """Two minutes of a small cluster."""
    def job(seconds, cpus, gpus=0):
        slurm.command("sbatch", "--parsable", "--output=/dev/null", "--chdir=/", f"--ntasks={cpus}",
                      *([f"--gres=gpu:{gpus}"] if gpus else []), f"--wrap=sleep {seconds}")

    begin = time.time()
    plan = [(5, lambda: job(40, 8, 4)), (12, lambda: job(60, 6, 2)), (20, lambda: job(30, 8)), (35, lambda: job(70, 16, 4)),
            (45, lambda: slurm.command("scontrol", "update", f"nodename={NODES[1]}", "state=drain", "reason=bad dimm")),
            (80, lambda: slurm.daemon("kill", f"slurmd:{NODES[3]}")), (SECONDS, lambda: None)]
    for at, what in plan:
        time.sleep(max(0, begin + at - time.time()))
        what()
    out = {}
    for panel in panels():
        for target in panel.get("targets", []):
            text = expression(target)
            if panel["type"] == "stat":
                out[text] = prometheus.api("query", query=text)["result"]
            else:
                out[text] = prometheus.api("query_range", query=text, start=begin, end=begin + SECONDS, step=STEP)["result"]
    return out


def amount(value, unit):
    if unit == "bytes":
        return f"{value / 2**30:.3g} GiB"
    if unit == "s":
        return f"{value:.3g} s"
    return f"{value:.3g}"


def label(legend, metric):
    return re.sub(r"\{\{(\w+)\}\}", lambda match: metric.get(match.group(1), ""), legend) or " ".join(metric.values())


def curve(values, begin, top, box):
    """Of [[time, text], …]: level pieces as h, so that a step of a state is short."""
    x, y, width, height = box
    points = [(round(x + (float(when) - begin) / SECONDS * width), round(y + height - float(text) / top * height))
              for when, text in values]
    path, last = f"M{points[0][0]} {points[0][1]}", points[0]
    for number, point in enumerate(points[1:], 1):
        level = point[1] == last[1]
        if level and number + 1 < len(points) and points[number + 1][1] == point[1]:
            continue
        path += f"H{point[0]}" if level else f"L{point[0]} {point[1]}"
        last = point
    return path


def drawn(panel, data, out):
    grid, unit = panel["gridPos"], panel.get("fieldConfig", {}).get("defaults", {}).get("unit", "")
    x, y, width, height = grid["x"] * CELL + GAP, grid["y"] * ROW + GAP, grid["w"] * CELL - GAP, grid["h"] * ROW - GAP
    if panel["type"] == "row":
        out.append(f'<text x="{x}" y="{y + 14}" class="b">{escape(panel["title"])}</text>')
        return
    out.append(f'<rect x="{x}" y="{y}" width="{width}" height="{height}" rx="3" fill="#181b1f" stroke="#2c3036"/>'
               f'<text x="{x + 8}" y="{y + 16}">{escape(panel["title"])}</text>')
    series = [(label(target.get("legendFormat", ""), one["metric"]), one) for target in panel["targets"]
              for one in data[expression(target)]]
    series = sorted(series, key=lambda one: one[0]) if len(panel["targets"]) == 1 else series
    if panel["type"] == "stat":
        value = amount(float(series[0][1]["value"][1]), unit) if series else "0"
        out.append(f'<text x="{x + width // 2}" y="{y + height - 20}" class="n">{value}</text>')
        return
    if not series:
        out.append(f'<text x="{x + width // 2}" y="{y + height // 2}" class="m">No data</text>')
        return
    begin = min(float(one["values"][0][0]) for _, one in series)
    top = max(float(text) for _, one in series for _, text in one["values"]) or 1
    box = (x + 56, y + 26, width - 66, height - 56)
    out.append(f'<path d="M{box[0]} {box[1]}h{box[2]}m0 {box[3]}h-{box[2]}" stroke="#2c3036"/>'
               f'<text x="{box[0] - 4}" y="{box[1] + 4}" class="e">{amount(top, unit)}</text>'
               f'<text x="{box[0] - 4}" y="{box[1] + box[3] + 4}" class="e">0</text>')
    at = box[0]
    for number, (name, one) in enumerate(series):
        colour = COLOURS[number % len(COLOURS)]
        out.append(f'<path d="{curve(one["values"], begin, top, box)}" stroke="{colour}"/>'
                   f'<text x="{at}" y="{y + height - 10}" style="fill:{colour}">{escape(name)}</text>')
        at += 7 * len(name) + 14


def svg(data):
    shown = panels()
    width, height = 24 * CELL + GAP, max(panel["gridPos"]["y"] + panel["gridPos"]["h"] for panel in shown) * ROW + GAP
    out = [f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" height="{height}" role="img" '
           'font-family="Helvetica, Arial, DejaVu Sans, sans-serif" font-size="12">',
           "<title>The first panels of the dashboard: nodes by state, CPUs, GPUs, queries, of four nodes in two minutes</title>",
           "<!-- Made by scripts/docs/dashboard.py -->",
           "<style>text{fill:#ccccdc}path{fill:none;stroke-width:1.5}.b{font-weight:bold}.n{font-size:30px;text-anchor:middle;fill:#73bf69}"
           ".m{text-anchor:middle}.e{text-anchor:end;font-size:10px}</style>",
           f'<rect width="{width}" height="{height}" fill="#111217"/>']
    for panel in shown:
        drawn(panel, data, out)
    return "\n".join([*out, "</svg>"]) + "\n"


def main():
    kept = Path(sys.argv[1]) if len(sys.argv) > 1 else None
    data = json.loads(kept.read_text()) if kept and kept.exists() else queried()
    if kept and not kept.exists():
        kept.write_text(json.dumps(data))
    IMAGE.write_text(svg(data))
    print(f"{IMAGE.relative_to(ROOT)}: {len(panels())} panels, {IMAGE.stat().st_size} bytes")


if __name__ == "__main__":
    main()
