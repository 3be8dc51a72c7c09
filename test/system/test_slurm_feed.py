"""One reader for a site: `slurmlet feed` asks the real slurmctld, a daemon reads what it wrote."""
import json
import os
import time

import pytest

from harness.api import condition, slurm_states
from harness.daemon import Slurmlet
from harness.rig import wait_until

SLURM_NODE = "nid000001"
INTERVAL = 2  # seconds


class Feed:
    """The reader's process and its directory."""

    def __init__(self, rig):
        self.rig = rig
        self.path = rig.directory / "feed"
        self.process = None

    def start(self):
        environment = {"SLURM_CONF": str(self.rig.slurm.conf_path)}
        arguments = ["feed", "--output", self.path, "--interval", f"{INTERVAL}s"]
        if self.rig.slurm.bin_dir:
            arguments += ["--slurm-bin-dir", self.rig.slurm.bin_dir]
        self.process = Slurmlet(self.rig.directory / "reader", arguments, environment)
        wait_until(lambda: self.header().get("dumpedAt", 0) > time.time() - 2 * INTERVAL, what="a dump")

    def header(self):
        try:
            return json.loads((self.path / "feed.json").read_text())
        except FileNotFoundError:
            return {}


@pytest.fixture(name="feed")
def running_feed(rig, idle_slurm):
    """A daemon that reads a running feed and could ask nobody: there is no sinfo for it."""
    feed = Feed(rig)
    empty = rig.directory / "no-programs"
    empty.mkdir()
    for name in ("cat",):  # all that it may need
        os.symlink(f"/bin/{name}", empty / name)
    rig.environment["PATH"] = str(empty)
    rig.configure(slurm={"source": "feed", "feed": str(feed.path), "binDir": str(empty),
                         "pollInterval": "10s", "commandTimeout": "5s", "staleAfter": "11s",
                         "maxBackoff": "10s", "queriesPerHour": 1})
    feed.start()
    rig.start_and_know()
    yield feed
    feed.process.kill()


def test_drain_shows_within_an_interval(rig, feed, timing):
    began = time.monotonic()
    rig.slurm.command("scontrol", "update", f"nodename={SLURM_NODE}", "state=drain", "reason=feed")
    rig.wait(lambda node: node and slurm_states(node) == {"Idle", "Drain"})
    seconds = time.monotonic() - began
    timing(f"scontrol drain to condition (feed interval {INTERVAL} s)", seconds)
    assert seconds < INTERVAL + 1 + 2  # two for a busy machine


def test_slurmctld_sees_the_reader_only(rig, feed):
    rig.slurm.sdiag(reset=True)
    began = time.time()
    time.sleep(5 * INTERVAL)  # the time that is measured
    asked = rig.slurm.sdiag()["by_type"]
    intervals = (time.time() - began) / INTERVAL
    assert "REQUEST_NODE_INFO_SINGLE" not in asked
    assert 1 <= asked["REQUEST_NODE_INFO"]["count"] <= intervals + 1
    assert asked["REQUEST_PARTITION_INFO"]["count"] <= intervals + 1


def test_a_reader_that_is_gone_makes_the_states_unknown_until_it_is_back(rig, feed, timing):
    feed.process.kill()
    began = time.monotonic()
    # The reason may be that the answer is too old until it is read once more.
    found = rig.wait_condition("SlurmNodeStateIdle", "Unknown", "FeedUnavailable")
    timing("reader killed to Unknown (bound 5 x 2 s, staleAfter 11 s)", time.monotonic() - began)
    assert "has stopped writing" in found["message"]
    assert rig.condition("Ready")["status"] == "True"
    feed.start()
    began = time.monotonic()
    rig.wait(lambda node: node and slurm_states(node) == {"Idle"})
    timing("reader back to known", time.monotonic() - began)


def test_the_reader_ends_at_sigterm(feed):
    assert feed.process.stop() < 5
    assert feed.process.process.returncode == 0
