#!/usr/bin/python3
"""Draws a flame graph (SVG) of what `perf script` prints, for docs/contributors/performance.md.

  perf record -F 9999 --call-graph dwarf,8192 -p PID,PID,... -o perf.data -- sleep 120
  perf script -i perf.data -F comm,ip,sym | bench/flamegraph.py --title "idle node" > docs/contributors/plots/flame.svg

A box is a function, as wide as its share of the samples; what it called stands on it. Boxes under
--least percent are left out, names are shortened: the file is for people, the data is perf's.
"""
import argparse
import html
import re
import sys

WIDTH, ROW, FONT = 1200, 16, 11


class Box:
    def __init__(self):
        self.count, self.above = 0, {}

    def add(self, stack):
        self.count += 1
        if stack:
            self.above.setdefault(stack[0], Box()).add(stack[1:])

    def depth(self, least):
        if self.count < least:
            return 0
        return 1 + max((box.depth(least) for box in self.above.values()), default=0)


def short(symbol):
    """slurmlet::sync::LeaseSync::renew, std::vector::emplace_back: no arguments, no templates."""
    symbol = re.sub(r"\(.*", "", symbol.strip())
    while (plain := re.sub(r"<[^<>]*>", "", symbol)) != symbol:
        symbol = plain
    return re.sub(r"\[abi:\w+\]", "", symbol).replace("slurmlet::", "") or "?"


def stacks(lines):
    """Outermost first, with the program's name below; runs of unknown frames are one."""
    command, frames = "", []
    for line in lines:
        if not line.strip():
            if frames:
                yield [command, *reversed(frames)]
            frames = []
        elif not line[0].isspace():
            command = line.split()[0]
        else:
            name = short(line.split(None, 1)[1] if len(line.split()) > 1 else "?")
            if not (frames and frames[-1] == name == "[unknown]"):
                frames.append(name)
    if frames:
        yield [command, *reversed(frames)]


def draw(box, name, x, level, height, scale, least, out):
    width = box.count * scale
    if box.count < least:
        return
    y = height - (level + 1) * ROW
    hue = sum(map(ord, name)) % 50
    label = html.escape(name if len(name) * FONT * 0.6 < width else name[:int(width / FONT / 0.6)])
    out.append(f'<g><title>{html.escape(name)}: {box.count} samples</title><rect x="{x:.1f}" y="{y}" '
               f'width="{max(width - 0.5, 0.5):.1f}" height="{ROW - 1}" fill="hsl({hue},85%,70%)"/>'
               f'<text x="{x + 2:.1f}" y="{y + ROW - 5}">{label if width > 20 else ""}</text></g>')
    for above, child in sorted(box.above.items()):
        draw(child, above, x, level + 1, height, scale, least, out)
        x += child.count * scale


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--title", default="")
    parser.add_argument("--least", type=float, default=0.4, help="percent")
    options = parser.parse_args()
    root = Box()
    for stack in stacks(sys.stdin):
        root.add(stack)
    if root.count == 0:
        sys.exit("no samples: is this the output of perf script?")
    least = root.count * options.least / 100
    height = (root.depth(least) + 2) * ROW
    boxes = []
    draw(root, f"all: {root.count} samples", 0, 0, height, WIDTH / root.count, least, boxes)
    print(f'<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH}" height="{height}" '
          f'font-family="sans-serif" font-size="{FONT}"><rect width="100%" height="100%" fill="white"/>'
          f'<text x="4" y="12">{html.escape(options.title)}</text>')
    print("\n".join(boxes))
    print("</svg>")


if __name__ == "__main__":
    main()
