#!/usr/bin/python3
"""docs/images/*.svg: the overview, the life of a Machine, the bootstrap's sequence. Narrow, so that a phone shows them.

  scripts/docs/pictures.py             writes them
  scripts/docs/pictures.py --check     says which are not current, and exits with 1 then"""
from html import escape

import generated
from markdown import ROOT

IMAGES = ROOT / "docs/images"
WIDTH = 520
INK, LINE, PAPER = "#1c2733", "#5b6b7b", "#ffffff"
# Whose part it is: (fill, border).
OURS, OPERATOR, SLURM, KUBERNETES, METAL3 = (
    ("#d9f2e3", "#2e8b57"), ("#ffe8cc", "#d9822b"), ("#e4e0f7", "#6a5acd"), ("#dbe9fb", "#326ce5"), ("#eceff2", "#7b8794"))


class Picture:
    def __init__(self, title, height, width=WIDTH):
        self.title, self.width, self.height, self.parts = title, width, height, []

    def add(self, part):
        self.parts.append(part)

    def text(self, x, y, text, size=14, anchor="middle", weight="normal", colour=INK):
        """Lines around (x, y), the first one at y."""
        for number, line in enumerate(text.split("\n")):
            self.add(f'<text x="{x}" y="{y + number * (size + 4)}" font-size="{size}" text-anchor="{anchor}" '
                     f'font-weight="{weight}" fill="{colour}">{escape(line)}</text>')

    def box(self, x, y, width, height, colours, head="", text="", dashed=False):
        fill, border = colours
        self.add(f'<rect x="{x}" y="{y}" width="{width}" height="{height}" rx="7" fill="{fill}" stroke="{border}" '
                 f'stroke-width="1.5"{" stroke-dasharray=" + chr(34) + "6 4" + chr(34) if dashed else ""}/>')
        if head:
            self.text(x + width / 2, y + 22, head, 15, weight="bold")
        if text:
            self.text(x + width / 2, y + (42 if head else 24), text, 13)

    def arrow(self, points, text="", at=None, anchor="start", dashed=False, both=False):
        path = "M" + " L".join(f"{x} {y}" for x, y in points)
        self.add(f'<path d="{path}" fill="none" stroke="{LINE}" stroke-width="1.6" marker-end="url(#end)"'
                 f'{" marker-start=" + chr(34) + "url(#begin)" + chr(34) if both else ""}'
                 f'{" stroke-dasharray=" + chr(34) + "5 4" + chr(34) if dashed else ""}/>')
        if text:
            self.text(*at, text, 13, anchor)

    def svg(self):
        head = "M0 0 L9 4.5 L0 9 z"
        return (f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {self.width} {self.height}" width="{self.width}" '
                f'height="{self.height}" role="img" font-family="Helvetica, Arial, DejaVu Sans, sans-serif">\n'
                f"<title>{escape(self.title)}</title>\n<!-- Made by scripts/docs/pictures.py -->\n<defs>\n"
                f'<marker id="end" viewBox="0 0 9 9" refX="8" refY="4.5" markerWidth="8" markerHeight="8" orient="auto">'
                f'<path d="{head}" fill="{LINE}"/></marker>\n'
                f'<marker id="begin" viewBox="0 0 9 9" refX="8" refY="4.5" markerWidth="8" markerHeight="8" '
                f'orient="auto-start-reverse"><path d="{head}" fill="{LINE}"/></marker>\n</defs>\n'
                f'<rect width="{self.width}" height="{self.height}" rx="8" fill="{PAPER}"/>\n' + "\n".join(self.parts) + "\n</svg>\n")


def overview():
    p = Picture("slurmd and slurmctld feed slurmlet, which keeps the Node; a cordon becomes a drain by slurmlet-operator", 570)
    for x in (20, 280):  # what is drawn later lies above
        p.box(x, 226, 220, 312, ("#f7f9fb", "#9aa5b1"), dashed=True)
    p.text(150, 24, "kubectl get nodes · Prometheus", 13)
    p.text(390, 24, "kubectl cordon NAME", 13, weight="bold")
    p.arrow([(150, 66), (150, 34)])
    p.arrow([(390, 32), (390, 64)])
    p.box(20, 68, 480, 76, KUBERNETES, "Node  (Kubernetes API server)",
          "Ready · SlurmNodeStateDrain · capacity · labels · Events\nruns no pods")
    p.arrow([(130, 248), (130, 146)], "registers, keeps\nconditions, Lease", (138, 182))
    p.arrow([(345, 146), (345, 248)], "cordon", (338, 192), "end")
    p.arrow([(420, 248), (420, 146)], "record of\neach node", (428, 182))
    p.box(36, 250, 188, 84, OURS, "slurmlet", "one on each\ncompute node")
    p.box(296, 250, 188, 84, OPERATOR, "slurmlet-operator", "one for each\nSlurm cluster")
    p.box(36, 420, 188, 84, SLURM, "slurmd", "and its jobs")
    p.box(296, 420, 188, 84, SLURM, "slurmctld", "schedules the jobs")
    p.arrow([(90, 418), (90, 336)], "up? jobs?", (98, 384))
    p.arrow([(345, 336), (345, 418)], "drain,\nundrain", (338, 370), "end")
    p.arrow([(420, 418), (420, 336)], "state of\nall nodes", (428, 370))
    p.arrow([(226, 474), (294, 474)], both=True)
    p.arrow([(296, 440), (260, 440), (260, 292), (226, 292)], dashed=True)
    p.text(130, 526, "compute node", 13, colour=LINE)
    p.text(390, 526, "slurmctld's host, or pods", 13, colour=LINE)
    p.text(260, 558, "dashed line: without slurmlet-operator slurmlet queries slurmctld itself", 12, colour=LINE)
    return p


LIFE = [
    (METAL3, "BareMetalHost available", "inspected, powered off"),
    (METAL3, "Machine is created: Provisioning", "the image and a config drive are written; CAPM3 sets providerID"),
    (OURS, "the host boots", "cloud-init; slurmlet reads uuid and providerID, requests its certificate"),
    (OURS, "Node is registered", "with the label metal3.io/uuid and spec.providerID"),
    (METAL3, "Machine is Running", "Cluster API has found its Node"),
    (SLURM, "in service", "Slurm starts jobs; kubectl shows its state"),
    (METAL3, "Machine is deleted: Deleting", "the Node is cordoned; slurmlet's hook holds the Machine"),
    (OPERATOR, "drained", "Reason “slurmlet: machine deleted”; jobs run on (drain-policy)"),
    (OPERATOR, "released", "no job is left: annotation detach: Detached, the hook is removed"),
    (METAL3, "the host is powered off and cleaned", "the Node is deleted; slurmlet does not register it again"),
]


def life():
    step, height, left, width = 78, 54, 58, 440
    p = Picture("The life of a Machine, from BareMetalHost to released", 44 + step * len(LIFE) + 8)
    legend = [(METAL3, "Metal3, Cluster API"), (OURS, "slurmlet"), (SLURM, "Slurm"), (OPERATOR, "slurmlet-operator")]
    x = left
    for colours, name in legend:
        p.box(x, 12, 14, 14, colours)
        p.text(x + 20, 24, name, 12, "start")
        x += 36 + 6.6 * len(name)
    for number, (colours, head, text) in enumerate(LIFE):
        y = 44 + number * step
        p.box(left, y, width, height, colours, head)
        p.text(left + width / 2, y + 42, text, 12.5)
        if number + 1 < len(LIFE):
            p.arrow([(left + width / 2, y + height), (left + width / 2, y + step - 1)])
    bottom, top = 44 + step * (len(LIFE) - 1) + height / 2, 44 + height / 2
    p.arrow([(left, bottom), (28, bottom), (28, top), (left - 1, top)])
    p.add(f'<text transform="translate(20 {(top + bottom) / 2}) rotate(-90)" font-size="13" text-anchor="middle" '
          f'fill="{INK}">the host is free for another Machine</text>')
    return p


LANES = [(70, "administrator", METAL3), (200, "slurmlet", OURS), (330, "API server", KUBERNETES), (450, "approver", OPERATOR)]
# (from, to, what is written above the arrow)
BOOTSTRAP = [
    (0, 2, "kubeadm token create"),
    (0, 1, "slurmlet join"),
    (1, 2, "cluster-info: whose CA?"),
    (1, 1, "compares CA hash and signature"),
    (1, 2, "request: client cert"),
    (3, 2, "approve"),
    (2, 1, "certificate"),
    (1, 2, "Node, Lease"),
    (1, 1, "the Node is Ready"),
    (1, 2, "request: serving cert"),
    (3, 2, "approve"),
    (2, 1, "certificate"),
    (1, 1, "port 10250 is trusted"),
    (1, 2, "renews by itself"),
]


def bootstrap():
    step, top = 42, 92
    end = top + step * len(BOOTSTRAP) + 4
    p = Picture("The bootstrap: from a token to a Node with certificates", end + 58)
    for x, name, colours in LANES:
        p.add(f'<path d="M{x} 56 L{x} {end}" stroke="#b8c2cc" stroke-width="1.4"/>')
        p.box(x - 56, 16, 112, 38, colours)
        p.text(x, 40, name, 14, weight="bold")
    for number, (begin, to, text) in enumerate(BOOTSTRAP):
        y = top + number * step
        x, target = LANES[begin][0], LANES[to][0]
        if begin == to:
            width = 7.0 * len(text) + 20
            p.box(x - 12, y - 17, width, 26, ("#ffffff", OURS[1]))
            p.text(x - 2, y + 1, text, 13, "start")
            continue
        away = 4 if target > x else -4
        p.arrow([(x + away, y), (target - away, y)])
        middle = (x + target) / 2
        p.add(f'<rect x="{middle - 3.4 * len(text)}" y="{y - 20}" width="{6.8 * len(text)}" height="13" fill="{PAPER}"/>')
        p.text(middle, y - 9, text, 12.5)
    p.text(WIDTH / 2, end + 22, "approver: an administrator who compares, or slurmlet-operator by the Machine", 12, colour=LINE)
    p.text(WIDTH / 2, end + 42, "the token may be deleted after the first certificate", 12, colour=LINE)
    return p


PICTURES = {"overview": overview, "machine-life": life, "bootstrap": bootstrap}


def main():
    generated.write({IMAGES / f"{name}.svg": draw().svg() for name, draw in PICTURES.items()})


if __name__ == "__main__":
    main()
