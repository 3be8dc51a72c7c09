#!/usr/bin/python3
"""The runbook_url of each alert: its heading in docs/reference/alerts.md, on the site. Writes it into the rules, their copy
in the chart, and what promtool's tests expect.

  scripts/docs/runbooks.py             writes them
  scripts/docs/runbooks.py --check     says where one is missing or another, and exits with 1 then"""
import re

import generated
from markdown import ROOT

SITE = "https://slurmlet.io/docs/reference/alerts/#"
RULES = ROOT / "deploy/prometheus/slurmlet.rules.yaml"
CHART = ROOT / "deploy/charts/slurmlet/files/prometheus-slurmlet.rules.yaml"
TESTS = [ROOT / "deploy/prometheus" / name for name in ("slurmlet.rules.test.yaml", "slurmlet.rules.days.test.yaml")]
NAME = re.compile(r"^ *- \{?(?:alert|alertname): (\w+)")
PLACE = re.compile(r"^( *)(?:annotations|exp_annotations):$")


def with_urls(text):
    """The first line below each (exp_)annotations is the runbook_url of the alert above it."""
    out, name = [], ""
    for line in text.split("\n"):
        if re.match(r" *runbook_url: ", line):
            continue
        if found := NAME.match(line):
            name = found.group(1)
        out.append(line)
        if place := PLACE.match(line):
            out.append(f"{place.group(1)}  runbook_url: {SITE}{name.lower()}")
    return "\n".join(out)


def main():
    generated.write({**{path: with_urls(path.read_text()) for path in [RULES, *TESTS]}, CHART: with_urls(RULES.read_text())})


if __name__ == "__main__":
    main()
