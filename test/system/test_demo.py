"""`./dev demo` is the first thing that people run, and README and the tutorial show what it prints."""
import re
import subprocess
import sys
import time

import pytest

from harness.api import repository
from harness.documents import printed_in_order

WHAT_IT_PRINTS = re.compile(r"(?ms)^<!-- not run: what the demo prints; .*? -->\n```\n(.*?)^```")


@pytest.mark.slow
def test_demo_runs_to_its_end(timing):
    began = time.monotonic()
    done = subprocess.run([sys.executable, repository() / "test/demo/demo.py"],
                          capture_output=True, text=True, timeout=600, check=False,
                          stdin=subprocess.DEVNULL)
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]
    timing("README to the end of the demo, built and prepared", time.monotonic() - began)
    for shown in ("Ready", "SlurmNodeNoPods", "bad dimm", "Reason=slurmlet: cordoned [",
                  "MachineReleased", "JobState=COMPLETED", "SlurmdReady=False after", "(PartitionConfig)",
                  "scaled from 0 to 1 Machines", "slurmlet: scale-down", "scaled from 1 to 0 Machines",
                  "everything it started has ended"):
        assert shown in done.stdout, shown
    for page in ("README.md", "docs/tutorials/demo.md"):
        parts = WHAT_IT_PRINTS.findall((repository() / page).read_text())
        assert parts, page
        for part in parts:
            assert printed_in_order(part, done.stdout) == [], page
