#!/usr/bin/python3
"""docs/images/demo.svg: what ./dev demo prints, one screen for each of its sections. Runs the demo, or reads its output.

  scripts/docs/recording.py [FILE]"""
import os
import re
import subprocess
import sys
from html import escape
from pathlib import Path

from markdown import ROOT

IMAGE = ROOT / "docs/images/demo.svg"
COLUMNS, ROWS, CHARACTER, LINE, SECONDS = 100, 28, 7.23, 17, 6
# Not shown: logs, and what kubectl describe prints beside taints and capacity.
LEFT_OUT = re.compile(r"slurmlet-operator's log|\d{4}-\d\d-\d\dT\S+ (info|warning) |# (HELP|TYPE) |Ready \d|slurmlet ended|The demo took")
KEPT_OF_DESCRIPTION = re.compile(r"Name: |Taints: |  +virtual-kubelet.io/provider=|Capacity:|  cpu: +\d+$|  memory: .*Ki$|  nvidia.com/gpu: +\d+$|  pods: |ProviderID:")


def output():
    if len(sys.argv) > 1:
        return Path(sys.argv[1]).read_text()
    program = os.environ.get("SLURMLET_UNDER_TEST") or str(ROOT / "build/release/slurmlet")
    return subprocess.run([str(ROOT / "test/lab/harness/own_processes.sh"), "/usr/bin/python3", str(ROOT / "test/demo/demo.py")],
                          env={**os.environ, "SLURMLET_UNDER_TEST": program}, stdout=subprocess.PIPE, text=True, check=True).stdout


def described(lines):
    """The lines of kubectl describe that are shown; others become one "…"."""
    out, inside, allocatable = [], False, False
    for line in lines:
        if line.startswith("$ "):
            inside, allocatable = line.startswith("$ kubectl describe"), False
        if inside and not line.startswith("$ "):
            allocatable = allocatable or line.startswith("Allocatable:")
            if allocatable and not line.startswith("ProviderID") or not KEPT_OF_DESCRIPTION.match(line):
                line = "…"
            if line == "…" and out and out[-1] == "…":
                continue
        out.append(line)
    return out


def screens(text):
    text = re.sub(r"/tmp/slurmlet-demo-\w+/", "", re.sub(r"\x1b\[[0-9;]*m", "", text))
    out = []
    for section in re.split(r"(?m)^==> ", text)[1:]:
        head, *lines = section.split("\n")
        if head == "slurmlet's log":
            continue
        lines = [line.rstrip() for line in described(lines) if not LEFT_OUT.match(line)]
        lines = [line for line, after in zip(lines, [*lines[1:], ""]) if line or after]
        lines = [line if len(line) <= COLUMNS else line[:COLUMNS - 1] + "…" for line in lines]
        if not [line for line in lines if line]:
            continue
        for begin in range(0, len(lines), ROWS - 2):
            out.append((head, lines[begin:begin + ROWS - 2]))
    return out


def svg(shown):
    width, height, total = round(COLUMNS * CHARACTER) + 32, ROWS * LINE + 34, len(shown) * SECONDS
    part = 100 / len(shown)
    out = [f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" height="{height}" role="img" '
           f'font-family="DejaVu Sans Mono, Menlo, Consolas, monospace" font-size="12">',
           "<title>./dev demo: a Node, a drain, a pod, a cordon, a deleted Machine, slurmd killed, a Machine for a job</title>",
           "<!-- Made by scripts/docs/recording.py -->",
           f"<style>g{{visibility:hidden;animation:show {total}s step-end infinite}}g:first-of-type{{visibility:visible}}"
           f"@keyframes show{{0%{{visibility:visible}}{part:.3f}%,100%{{visibility:hidden}}}}"
           "@media(prefers-reduced-motion:reduce){g{animation:none}}text{white-space:pre}</style>",
           f'<rect width="{width}" height="{height}" rx="8" fill="#10171e"/>']
    for number, (head, lines) in enumerate(shown):
        out.append(f'<g style="animation-delay:{number * SECONDS - (total if number else 0)}s">')
        out.append(f'<text x="16" y="28" fill="#7fd1a0" font-weight="bold">==&gt; {escape(head)}</text>')
        for row, line in enumerate(lines, 2):
            colour = "#ffffff" if line.startswith("$ ") else "#c3cdd6"
            if line:
                out.append(f'<text x="16" y="{28 + row * LINE - LINE // 2}" fill="{colour}" xml:space="preserve">{escape(line)}</text>')
        out.append("</g>")
    return "\n".join([*out, "</svg>"]) + "\n"


if __name__ == "__main__":
    found = screens(output())
    IMAGE.write_text(svg(found))
    print(f"docs/images/demo.svg: {len(found)} screens, {IMAGE.stat().st_size} bytes")
