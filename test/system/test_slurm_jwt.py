"""slurmrestd over HTTPS with a token (JWT) of Slurm's own making: both releases, and what goes wrong
with tokens and certificates. The daemon has no Slurm command to fall back to."""
import base64
import hashlib
import hmac
import json
import os
import pathlib
import shutil
import subprocess
import sys
import time

import pytest

from harness.api import condition, slurm_states
from harness.certificates import Authority
from harness.rig import wait_until
from harness.shared_mount import SharedMount
from harness.tls_front import TlsFront

NODE = "nid000042"
USER = "root"


@pytest.fixture(scope="module", name="authority")
def site_authority(tmp_path_factory):
    return Authority(tmp_path_factory.mktemp("jwt-ca"))


@pytest.fixture(scope="module", name="slurm", params=["own", "24.11"])
def slurm_with_tokens(request, own_slurm):
    # slurmctld 22.05 can die where two daemons ask for a node with GPUs (docs/slurm-load.md); what its
    # slurmrestd says of them: test_slurm_rest.py.
    root, gpus = ("", "") if request.param == "own" else (request.getfixturevalue("slurm_24_11"), "a100:4")
    return own_slurm(nodes=[NODE], cpus=2, gpus=gpus, cluster_name="alps", root=root, jwt=True)


@pytest.fixture(scope="module", name="front")
def tls_before_slurmrestd(slurm, authority):
    certificate, key = authority.issue(f"slurmrestd{slurm.release[0]}", "slurmrestd",
                                       names=["IP:127.0.0.1"])
    with TlsFront(slurm.spec.ports["slurmrestd-jwt"], certificate, key) as running:
        yield running


@pytest.fixture(scope="module", name="rig")
def rig_with_a_token(slurm, front, authority, rig_of):
    one = rig_of(slurm)
    configure(one, front, authority.crt)
    write_token(one, slurm.token(USER))
    one.start_and_know()
    return one


@pytest.fixture(autouse=True)
def a_good_token(slurm, rig):
    yield
    write_token(rig, slurm.token(USER))
    rig.wait_known()


def configure(rig, front, ca_file, token_file=None):
    rig.configure(slurm={
        "source": "rest", "restURL": front.url, "restCAFile": str(ca_file), "restUser": USER,
        "jwtFile": str(token_file or token_path(rig)), "binDir": "/nonexistent"})


def token_path(rig):
    return rig.directory / "slurm.jwt"


def write_token(rig, token):
    """As who renews a token does: another file of that name."""
    path = token_path(rig)
    new = path.with_suffix(".new")
    new.touch(mode=0o600)
    new.write_text(token + "\n")
    os.replace(new, path)


def signed(key, claims):
    """A token as Slurm signs it (HS256)."""
    def part(data):
        return base64.urlsafe_b64encode(data).rstrip(b"=")
    text = b".".join(part(json.dumps(one).encode())
                     for one in ({"alg": "HS256", "typ": "JWT"}, claims))
    return (text + b"." + part(hmac.new(key, text, hashlib.sha256).digest())).decode()


def wait_refused(rig, slurm, known_to_us=False):
    """22.05 says the same of a bad token as of a slurmctld that is down; what our own look at the
    token shows (`known_to_us`) does not depend on the release."""
    if known_to_us or slurm.release >= (24, 11):
        found = rig.wait_condition("SlurmNodeStateDrain", "Unknown", "TokenRefused")
        assert "slurm.jwtFile" in found["message"]
    else:
        def unknown(node):
            found = condition(node, "SlurmNodeStateDrain")
            # slurmrestd may have been too slow to say anything at first.
            return found.get("status") == "Unknown" and "token" in found["message"]
        found = condition(rig.wait(unknown), "SlurmNodeStateDrain")
    assert "token" in found["message"]
    assert rig.condition("Ready")["status"] == "True"


def test_facts(rig, slurm):
    node = rig.node()
    assert slurm_states(node) == {"Idle"}
    if slurm.spec.gpus:
        assert node["status"]["capacity"]["nvidia.com/gpu"] == "4"
    assert node["metadata"]["annotations"]["slurmlet.io/slurm-node"] == NODE
    slurm.set_state(NODE, "drained", "over https")
    found = rig.wait_condition("SlurmNodeStateDrain", "True", "Drained")
    assert '"over https"' in found["message"] and " by root" in found["message"]
    slurm.reset(NODE)
    rig.wait(lambda seen: slurm_states(seen) == {"Idle"})


def test_expired_token_and_its_successor(rig, slurm, timing):
    """Slurm signed it, its time is over; the next one helps without a restart."""
    key = pathlib.Path(slurm.layout.jwt_key).read_bytes()
    now = int(time.time())
    write_token(rig, signed(key, {"exp": now + 600, "iat": now, "sun": USER}))
    rig.wait_known()  # our signature is as good as Slurm's
    write_token(rig, signed(key, {"exp": now - 60, "iat": now - 600, "sun": USER}))
    wait_refused(rig, slurm, known_to_us=True)
    pid = rig.daemon.pid
    began = time.monotonic()
    write_token(rig, slurm.token(USER))
    rig.wait_known()
    timing("new token to known states (pollInterval 2 s)", time.monotonic() - began)
    assert rig.daemon.pid == pid and rig.daemon.process.poll() is None


def test_token_of_another_key_is_refused(rig, slurm):
    now = int(time.time())
    write_token(rig, signed(os.urandom(32), {"exp": now + 600, "iat": now, "sun": USER}))
    wait_refused(rig, slurm)


def test_missing_token_file_is_named_and_waited_for(rig_of, slurm, front, authority):
    late = rig_of(slurm)
    configure(late, front, authority.crt)
    late.start()
    found = late.wait_condition("SlurmNodeStateDrain", "Unknown", "TokenRefused")
    assert str(token_path(late)) in found["message"]
    write_token(late, slurm.token(USER))
    late.wait_known()
    late.stop()


@pytest.mark.skipif(not os.path.exists("/dev/fuse") or os.geteuid() != 0, reason="needs FUSE and root")
def test_token_and_authority_on_a_file_system_that_does_not_answer(rig_of, slurm, front, authority,
                                                                   tmp_path):
    tmp_path.chmod(0o755)
    source = tmp_path / "source"
    source.mkdir(mode=0o755)
    shutil.copy(authority.crt, source / "ca.pem")
    (source / "jwt").touch(mode=0o600)
    (source / "jwt").write_text(slurm.token(USER))
    one = rig_of(slurm)
    with SharedMount(source, tmp_path / "shared") as shared:
        configure(one, front, shared.path / "ca.pem", shared.path / "jwt")
        shared.hang()
        one.start()
        found = one.wait_condition("SlurmNodeStateDrain", "Unknown", "FileSystemNotResponding")
        assert str(shared.path) in found["message"]
        one.wait_next_renewal()
        shared.answer()
        one.wait_known()
        shared.hang()
        one.wait_next_renewal()
        assert one.stop() < 5


# Takes the port of slurmrestd and prints what it is sent.
TAKER = """
import socket, sys
with socket.create_server(("127.0.0.1", int(sys.argv[1]))) as server:
    print("listens", flush=True)
    while True:
        with server.accept()[0] as taken:
            print(taken.recv(65536), flush=True)
"""


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root, to start another user's process")
def test_a_user_who_takes_the_port_of_plain_http_gets_no_token(rig, rig_of, slurm):
    rig.stop()  # the TLS front passes its token on, whoever listens behind it
    port = slurm.spec.ports["slurmrestd-jwt"]
    one = rig_of(slurm)
    write_token(one, slurm.token(USER))
    one.configure(slurm={"source": "rest", "restURL": f"http://127.0.0.1:{port}", "restUser": USER,
                         "jwtFile": str(token_path(one)), "binDir": "/nonexistent"})
    one.start_and_know()
    slurm.daemon("stop", "slurmrestd-jwt")
    with subprocess.Popen([sys.executable, "-c", TAKER, str(port)], user=1234, group=1234, extra_groups=[],
                          stdout=subprocess.PIPE, text=True, env={}, cwd="/") as taker:
        try:
            assert taker.stdout.readline() == "listens\n"
            found = one.wait_condition("SlurmNodeStateDrain", "Unknown", "RestUnavailable")
            if "uid 1234" not in found["message"]:  # it was seen before anybody had the port
                one.wait(lambda node: "uid 1234" in condition(node, "SlurmNodeStateDrain")["message"])
        finally:
            taker.terminate()
        assert taker.stdout.read() == ""
    slurm.daemon("start", "slurmrestd-jwt")
    one.wait_known()
    one.stop()
    rig.start()


def test_token_is_never_shown(rig, slurm):
    token = slurm.token(USER)
    write_token(rig, token)
    rig.wait_known()
    secret = token.rpartition(".")[2]
    assert secret not in rig.log()
    assert secret not in json.dumps(rig.node())
    arguments = pathlib.Path(f"/proc/{rig.daemon.pid}/cmdline").read_bytes()
    assert secret.encode() not in arguments


def test_certificate_of_another_authority_is_named(rig_of, slurm, front, authority, tmp_path):
    other = Authority(tmp_path, "stranger")
    rig = rig_of(slurm)
    configure(rig, front, other.crt)
    write_token(rig, slurm.token(USER))
    refused = front.failed_handshakes
    rig.start()
    found = rig.wait_condition("SlurmNodeStateDrain", "Unknown", "RestUnavailable")
    assert "certificate" in found["message"]
    assert front.url in found["message"] or "slurmrestd" in found["message"]
    wait_until(lambda: front.failed_handshakes > refused, what="the refusal at the server")
    # The right one in its place, and all is well without a restart.
    shutil.copy(authority.crt, other.crt)
    rig.wait_known()


def test_slurmrestd_gone_and_back(rig, slurm):
    slurm.daemon("kill", "slurmrestd-jwt")
    rig.wait_condition("SlurmNodeStateDrain", "Unknown", "RestUnavailable")
    assert rig.condition("Ready")["status"] == "True"
    slurm.daemon("start", "slurmrestd-jwt")
    rig.wait_known()


def test_slurmctld_gone_is_no_fault_of_the_token(rig, slurm):
    """22.05 answers both with the same words: 500, errno -1."""
    slurm.daemon("kill", "slurmctld")
    found = rig.wait_condition("SlurmNodeStateDrain", "Unknown")
    assert found["reason"] != "TokenRefused", found
    slurm.daemon("start", "slurmctld")
    rig.wait_known()
