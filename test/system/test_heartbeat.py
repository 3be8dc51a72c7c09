"""The lease is renewed whatever else hangs: other requests, the resolver, the reader of the log. The
gaps are those of the API server's audit log."""
import fcntl
import os
import signal
import time

import pytest

from harness.audit import seconds_of
from harness.daemon import BINARY
from harness.name_server import NameServer
from harness.rig import GENERAL_WAIT, wait_until
from harness.slow_front import SlowFront

LONGEST_GAP = 15  # seconds; the Node is lost after 40
SLOW = 8
# Renewed every five seconds.
LEASE = {"leaseDuration": "20s"}


class Renewals:
    """Of the lease of a Rig's node from now on."""

    def __init__(self, rig):
        self.rig, self.began, self._mark = rig, time.time(), rig.audit.mark()

    def moments(self):
        """In seconds since the epoch."""
        return [seconds_of(entry) for entry in self.rig.audit.entries(self._mark)
                if entry.get("objectRef", {}).get("resource") == "leases"
                and entry["verb"] in ("create", "update", "patch")
                and entry["responseStatus"]["code"] < 300
                and seconds_of(entry) > self.began]

    def gap(self):
        moments = [self.began, *self.moments(), time.time()]
        return max(after - before for before, after in zip(moments, moments[1:]))

    def expect(self, more):
        """With no longer gap than allowed, also before."""
        times = len(self.moments()) + more
        wait_until(lambda: len(self.moments()) >= times or self.gap() > LONGEST_GAP,
                   what="renewals")
        assert self.gap() <= LONGEST_GAP, f"{self.began} {self.moments()}"


def is_about_lease(_, path):
    return "/leases" in path


@pytest.fixture(name="node")
def registered_node(rig):
    """A node that asks the API server through `node.front`."""
    with SlowFront(rig) as front:
        rig.front = front
        (rig.state_dir / "system-uuid").write_text("0a1b2c3d-0000-4000-8000-00000000beef\n")
        rig.configure(kubernetes=LEASE)
        rig.start()
        rig.wait_renewed()
        yield rig
        rig.daemon.kill()


def test_restart_while_all_else_is_slow(node, timing):
    node.stop()
    node.front.slow_down(SLOW, is_about_lease)
    renewals = Renewals(node)
    node.start(ready=False)
    renewals.expect(1)
    timing("start to lease renewed", renewals.moments()[0] - renewals.began)
    renewals.expect(2)


def test_restarts_keep_the_lease(node, timing):
    """Renewed unread, before the Node is looked at; so the Node never becomes NotReady."""
    renewals = Renewals(node)
    mark = node.audit.mark()
    for _ in range(3):
        node.restart()
        renewals.expect(1)
    timing("longest gap over restarts", renewals.gap())
    first = [entry["verb"] for entry in node.audit.entries(mark)
             if entry.get("objectRef", {}).get("resource") == "leases"]
    assert first.count("patch") == 3


def test_recreation_while_all_else_is_slow(node, timing):
    old = node.node()["metadata"]["uid"]
    node.front.slow_down(SLOW, is_about_lease)
    renewals = Renewals(node)
    node.admin.delete(node.path)
    node.wait(lambda made: made and made["metadata"]["uid"] != old)
    deleted = renewals.began

    def made_anew():  # in the audit log, which comes after the Node
        return [moment for moment, verb, resource, _ in node.audit.requests()
                if (verb, resource) == ("create", "nodes") and moment > deleted]
    wait_until(made_anew, what="the creation in the audit log")
    renewals.began = made_anew()[-1]
    renewals.expect(1)
    waited = renewals.moments()[0] - renewals.began
    timing("Node made to lease renewed", waited)
    assert waited < SLOW, "another request came first"
    owner = node.lease()["metadata"]["ownerReferences"][0]
    assert owner["uid"] == node.node()["metadata"]["uid"]


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can have a resolv.conf of its own")
def test_silent_resolver(rig):
    with NameServer("front.test") as names, SlowFront(rig, "front.test") as front:
        rig.configure(kubernetes=LEASE)
        rig.start(program=names.program(rig.directory, BINARY))
        rig.wait_renewed()
        assert names.answered > 0
        names.silent = True
        renewals = Renewals(rig)
        front.cut()
        renewals.expect(1)
        front.cut()
        renewals.expect(2)
        # Not only the lease.
        rig.admin.merge(rig.path, {"metadata": {"labels": {"type": "other"}}})
        rig.wait(lambda node: node["metadata"]["labels"]["type"] == "virtual-kubelet")
        rig.daemon.kill()


def fill(pipe):
    """Until nothing more goes in."""
    fcntl.fcntl(pipe, fcntl.F_SETPIPE_SZ, 4096)
    os.set_blocking(pipe, False)
    for size in (4096, 1):
        try:
            while True:
                os.write(pipe, b"." * size)
        except BlockingIOError:
            pass


def test_log_that_nobody_reads(rig):
    path, script = rig.directory / "log-pipe", rig.directory / "with-log-pipe"
    os.mkfifo(path)
    script.write_text(f'#!/bin/sh\nexec {BINARY} "$@" 2>{path}\n')
    script.chmod(0o755)
    pipe = os.open(path, os.O_RDWR)
    try:
        fill(pipe)
        rig.configure(kubernetes=LEASE)
        renewals = Renewals(rig)
        rig.start(program=script)
        renewals.expect(1)
        rig.daemon.signal(signal.SIGHUP)
        renewals.expect(2)
        said = os.read(pipe, 65536)
        assert said.strip(b".") == b"", "there was room for a line"
        rig.daemon.signal(signal.SIGHUP)
        said = []

        def is_told():
            try:
                said.append(os.read(pipe, 65536))
            except BlockingIOError:
                pass
            return b"log messages are missing here" in b"".join(said)
        wait_until(is_told, GENERAL_WAIT, "the number of lines that were lost")
        renewals.expect(1)
    finally:
        rig.daemon.kill()
        os.close(pipe)
