"""`slurmlet wait-registered`: for cloud-init, which says that the machine is ready only then."""
import json
import socket
import stat
import subprocess
import time

import pytest

from harness.bootstrap import BootstrapRig, is_pending
from harness.commands import command_beside, run_beside
from harness.control_plane import ControlPlane
from harness.documents import assert_shown
from harness.programs import free_port
from harness.rig import GENERAL_WAIT

NOT_REGISTERED, BAD_COMMAND_LINE = 1, 2


@pytest.fixture(name="strict_plane", scope="module")
def plane_without_auto_approval(work):
    with ControlPlane(work / "cp-wait", "--audit", "--no-auto-approve") as running:
        yield running


@pytest.fixture(name="port")
def health_port():
    return free_port()


def start_waiting(rig, *arguments):
    command, environment = command_beside(rig, "wait-registered", *arguments)
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                            env=environment)


def test_waits_for_the_daemon_and_the_node(rig, port):
    rig.configure(endpoint={"healthzPort": port})
    sentinel = rig.directory / "run" / "bootstrap-success.complete"
    with start_waiting(rig, f"--timeout={GENERAL_WAIT}", "--sentinel", sentinel) as waiting:
        assert "waiting: slurmlet is not running here" in waiting.stderr.readline()
        assert waiting.poll() is None and not sentinel.exists()
        rig.start()
        out, errors = waiting.communicate(timeout=GENERAL_WAIT)
    assert waiting.returncode == 0, errors
    assert out == f"Node {rig.name} is registered\n"
    assert sentinel.read_text() == "success\n"
    assert stat.S_IMODE(sentinel.stat().st_mode) == 0o644
    assert rig.lease()["spec"]["renewTime"], "the Lease is held by then"


def test_a_daemon_that_does_not_come(rig, port):
    rig.configure(endpoint={"healthzPort": port})
    sentinel = rig.directory / "never"
    began = time.monotonic()
    done = run_beside(rig, "wait-registered", "--timeout=600ms", "--sentinel", sentinel)
    assert time.monotonic() - began >= 0.6
    assert done.returncode == NOT_REGISTERED
    assert "is not registered after 600ms: slurmlet is not running here" in done.stderr
    assert not sentinel.exists()


def test_each_answer_comes_over_a_connection_of_its_own(rig, port):
    """Who holds the port is known for new connections only."""
    rig.configure(endpoint={"healthzPort": port})
    with socket.create_server(("127.0.0.1", port)) as listener, start_waiting(
            rig, f"--timeout={GENERAL_WAIT}") as waiting:
        listener.settimeout(GENERAL_WAIT / 2)
        try:
            first, _ = listener.accept()
            first.settimeout(GENERAL_WAIT / 2)
            with first:
                assert first.recv(65536).startswith(b"GET /status ")
                first.sendall(b"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n")
                assert first.recv(65536) == b"", "the next question over the same connection"
        finally:
            waiting.kill()


def test_what_waiting_cannot_cure(rig, port):
    done = run_beside(rig, "wait-registered")
    assert done.returncode == BAD_COMMAND_LINE and "endpoint.healthzPort is 0" in done.stderr
    rig.configure(endpoint={"healthzPort": port})
    done = run_beside(rig, "wait-registered", "--timeout=soon")
    assert done.returncode == BAD_COMMAND_LINE and '--timeout is "soon"' in done.stderr


def test_a_sentinel_that_cannot_be_written(rig, port):
    rig.configure(endpoint={"healthzPort": port})
    rig.start()
    done = run_beside(rig, "wait-registered", "--sentinel", "/proc/no/sentinel")
    assert done.returncode == NOT_REGISTERED and "--sentinel /proc/no/sentinel" in done.stderr


def test_tells_the_request_that_waits_for_approval(bootstrap_rig, strict_plane, port):
    rig = bootstrap_rig(BootstrapRig, strict_plane)
    rig.configure(endpoint={"healthzPort": port})
    rig.start(ready=False)
    request = rig.wait_request(is_pending)
    name = request["metadata"]["name"]
    rig.wait_log(name)
    done = run_beside(rig, "wait-registered", "--timeout=0")
    assert done.returncode == NOT_REGISTERED
    assert f"is not registered after 0s: waiting for approval of {name}" in done.stderr
    names = [(rig.name, "hpc-x7k2p")]
    done = run_beside(rig, "wait-registered", "--timeout=1")
    assert_shown("how-to/install-nodes.md", "slurmlet wait-registered --timeout=1", done.stderr, names)
    done = run_beside(rig, "status")
    assert done.returncode == 1
    assert f"kubectl certificate approve {name}" in done.stdout
    told = json.loads(run_beside(rig, "status", "-o", "json").stdout)
    assert told["phase"] == "bootstrap" and not told["registered"]
    assert told["clientCertificate"]["pendingRequest"] == name
    rig.approve(request)
    assert run_beside(rig, "wait-registered", f"--timeout={GENERAL_WAIT - 5}").returncode == 0
