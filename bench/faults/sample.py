"""What a daemon uses, by /proc."""
import os
import pathlib
import re

from slurmcluster.processes import cpu_seconds

GROWTH_MB = 1.0
GROWTH_DESCRIPTORS = 5  # two watches that open late, the pipes of a scontrol


class Sample:
    """One reading of a process."""

    def __init__(self, pid):
        text = pathlib.Path(f"/proc/{pid}/status").read_text()
        self.rss = _field(text, "VmRSS") / 1024
        self.private = _field(text, "RssAnon") / 1024
        self.descriptors = len(os.listdir(f"/proc/{pid}/fd"))
        self.cpu = cpu_seconds(pid)


def _field(text, name):
    return int(re.search(rf"^{name}:\s+(\d+)", text, re.M)[1])


def load():
    """The machine's load average of the last minute."""
    return os.getloadavg()[0]
