"""A user of the machine who runs a "slurmd" of his own, with a slurm.conf and plugins of his own:
nothing of his is read, run or reported, by the daemon or by the commands beside it."""
import ctypes
import http.client
import json
import os
import pathlib
import pwd
import shutil
import signal
import socket
import subprocess
import sys

import pytest

from harness import invented_owners
from harness.api import condition
from harness.commands import run_beside
from harness.daemon import BINARY
from harness.programs import free_port
from harness.rig import GENERAL_WAIT, wait_until
from slurmcluster.processes import process_stat

USER = "daemon"  # an account that neither Slurm nor slurmlet has here
STRANGER = pwd.getpwnam(USER).pw_uid
SLURM_NODE = "nid000001"
SLURMD = "slurmd:" + SLURM_NODE

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="only root can be another user")


class Stranger:
    """A user's directory with slurmd, slurm.conf and a plugin that tells who loaded it."""

    def __init__(self, directory):
        self.directory = pathlib.Path(directory)
        self.directory.mkdir(mode=0o755)
        self.loaded = self.directory / "loaded"
        self.conf = self.directory / "slurm.conf"
        self.processes = []
        self.controller = socket.create_server(("127.0.0.1", 0))  # who connects loads plugins
        (self.directory / "plugins").mkdir()
        plugin = (f'#include <fcntl.h>\n#include <unistd.h>\n__attribute__((constructor)) static void '
                  f'run(void) {{ close(open("{self.loaded}/x", O_CREAT | O_WRONLY, 0644)); }}\n')
        compile_c(plugin, self.directory / "plugins/auth_munge.so", "-shared", "-fPIC")
        compile_c("#include <unistd.h>\nint main(void) { for (;;) pause(); }\n",
                  self.directory / "slurmd")
        self.conf.write_text(
            "ClusterName=strange\nSlurmctldHost=strangehost(127.0.0.1)\n"
            f"SlurmctldPort={self.controller.getsockname()[1]}\n"
            f"SlurmUser={USER}\nPluginDir={self.directory}/plugins\nAuthType=auth/munge\n"
            f"SlurmdPidFile={self.directory}/slurmd.pid\nNodeName=strange1 NodeHostname=x\n")
        for path in [self.directory, *self.directory.rglob("*")]:
            os.chown(path, STRANGER, STRANGER)
        self.loaded.mkdir(mode=0o777)
        self.loaded.chmod(0o777)

    def run_slurmd(self, *arguments, uid=STRANGER, **environment):
        child = subprocess.Popen(
            ["./slurmd", *map(str, arguments)], cwd=self.directory, user=uid, group=uid,
            extra_groups=[], env={"PATH": "/usr/bin", **environment})
        self.processes.append(child)
        (self.directory / "slurmd.pid").write_text(f"{child.pid}\n")
        wait_until(lambda: process_stat(child.pid)[0] == "slurmd", what="its name")
        return child

    def was_loaded(self):
        return any(self.loaded.iterdir())

    def end(self):
        for child in self.processes:
            child.send_signal(signal.SIGKILL)
            child.wait()
        self.controller.close()


def compile_c(text, output, *flags):
    subprocess.run(["cc", *flags, "-o", output, "-x", "c", "-"], input=text, text=True, check=True)


@pytest.fixture(name="stranger")
def stranger_(work):
    directory = work / "stranger"
    one = Stranger(directory)
    yield one
    one.end()
    shutil.rmtree(directory)


@pytest.fixture(name="any_rig", params=["root", "nobody"])
def rig_of_user(request, rig_of, slurm):
    one = rig_of(slurm, None if request.param == "root" else "nobody")
    yield one
    one.clean()


def all_words(rig):
    """All that is said anywhere: the Node, the log, and the commands that root runs."""
    words = [str(rig.admin.find(rig.path)), rig.log()]
    for command in (["check"], ["print-node"], ["status"]):
        done = run_beside(rig, *command)
        words += [done.stdout, done.stderr]
    return "\n".join(words)


def test_the_bait_works(stranger):
    """Whoever runs scontrol with that file runs the plugin."""
    subprocess.run(["timeout", "-s", "KILL", "20", "scontrol", "show", "node"], check=False, capture_output=True,
                   env={"PATH": os.environ["PATH"], "SLURM_CONF": str(stranger.conf)})
    assert stranger.was_loaded()


@pytest.mark.parametrize("real", [True, False], ids=["slurmd-runs", "slurmd-dead"])
def test_nothing_of_a_strangers_slurmd_is_used(any_rig, stranger, idle_slurm, real):
    """No slurm.conf is set, and his is the only one that his process can be seen to read."""
    any_rig.environment = {}
    if not real:
        idle_slurm.daemon("kill", SLURMD)
    try:
        stranger.run_slurmd("-f", stranger.conf, "-N", "strange1")
        stranger.run_slurmd(SLURM_CONF=str(stranger.conf))
        any_rig.start(ready=False)
        runs = real and not any_rig.user  # root sees by itself what the real one reads
        # Other tests' slurmd may be clusters of their own.
        any_rig.wait(lambda node: node and (
            condition(node, "SlurmdReady")["status"] == ("True" if runs else "False") or
            "several clusters" in condition(node, "SlurmdReady")["message"]))
        said = all_words(any_rig)
        assert "strange" not in said.replace(str(stranger.directory.parent), "")
        assert not stranger.was_loaded()
    finally:
        if not real:
            idle_slurm.daemon("start", SLURMD)


def test_a_dead_slurmd_does_not_look_alive(any_rig, stranger, idle_slurm):
    any_rig.start_and_know()
    stranger.run_slurmd("-N", SLURM_NODE, SLURM_CONF=str(idle_slurm.conf_path))
    idle_slurm.daemon("kill", SLURMD)
    try:
        found = any_rig.wait_condition("SlurmdReady", "False", "SlurmdNotRunning")
        assert str(stranger.processes[0].pid) not in found["message"]
        stranger.run_slurmd()  # one that appears later
        any_rig.wait_condition("Ready", "False", "SlurmdNotRunning")
        assert any_rig.condition("SlurmdReady")["status"] == "False"
    finally:
        idle_slurm.daemon("start", SLURMD)
    any_rig.wait_condition("SlurmdReady", "True")


@pytest.mark.parametrize("how", ["setting", "real-slurmd"])
def test_a_file_that_others_may_change_is_named(rig, stranger, idle_slurm, how):
    """Somebody else's directory, by our own setting or by the -f of root's only slurmd."""
    idle_slurm.daemon("kill", SLURMD)
    try:
        names_the_file(rig, stranger, how)
    finally:
        idle_slurm.daemon("start", SLURMD)


def names_the_file(rig, stranger, how):
    rig.environment = {"SLURM_CONF": str(stranger.conf)} if how == "setting" else {}
    if how == "real-slurmd":
        stranger.run_slurmd("-f", stranger.conf, uid=0)
    rig.start(ready=False)
    found = rig.wait_condition("SlurmNodeStateIdle", "Unknown", "SlurmConfInvalid")
    words = (f"{stranger.conf} is not used, because users other than root and Slurm may change it: "
             f"{stranger.directory} has owner {STRANGER}")
    assert words in found["message"]
    assert words in rig.log()
    assert condition(rig.node(), "SlurmdReady")["status"] == "Unknown"
    done = run_beside(rig, "check")
    if how == "setting":
        assert words in done.stdout
    else:
        assert "check ignores a running slurmd's slurm.conf" in done.stdout
        assert "strange" not in done.stdout.replace(str(stranger.directory.parent), "")
    assert not stranger.was_loaded()


@pytest.mark.skipif(not os.path.exists("/dev/fuse"), reason="this kernel has no FUSE")
@pytest.mark.parametrize("uid", [0, STRANGER])
def test_owners_that_a_users_own_file_system_shows_do_not_count(tmp_path, uid):
    """All that lies on it "belongs to root"; with user_allow_other in /etc/fuse.conf root sees that."""
    conf = tmp_path / "slurm.conf"
    done = subprocess.run(
        ["unshare", "-m", sys.executable, invented_owners.__file__, tmp_path, str(uid),
         "ClusterName=strange\nNodeName=n1\n", BINARY, "print-node", "--nodename", "n1",
         "--slurm-conf", conf],
        capture_output=True, text=True, timeout=GENERAL_WAIT, check=False)
    words = f"{conf} is not used: {tmp_path} is on a file system that user {STRANGER} mounted"
    assert (words in done.stderr) == (words in done.stdout) == (uid == STRANGER)
    assert ('"slurmlet.io/slurm-cluster": "strange"' in done.stdout) == (uid == 0)


def test_a_command_of_slurm_reaches_no_key(rig_of, slurm):
    """scontrol runs as the daemon's user; what it loads is not the daemon's."""
    rig = rig_of(slurm, "nobody")
    seen = rig.directory / "seen"
    seen.mkdir()
    seen.chmod(0o777)
    commands = rig.directory / "bin"
    commands.mkdir()
    script = commands / "scontrol"
    real = shutil.which("scontrol", path=slurm.bin_dir or None)
    script.write_text(
        f'#!/bin/sh\ncat {rig.kubeconfig} {rig.state_dir}/* >{seen}/secrets 2>{seen}/denied\n'
        f'env >{seen}/env\ngrep -E "^(Cap|NoNewPrivs)" /proc/self/status >{seen}/status\n'
        f'head -c 1 /proc/$PPID/environ >{seen}/parent 2>&1\nexec {real} "$@"\n')
    script.chmod(0o755)
    rig.configure(slurm={"binDir": str(commands)})
    (rig.state_dir / "key").write_text("secret\n")
    (rig.state_dir / "key").chmod(0o644)
    rig.environment["SLURM_JWT"] = "a-token"
    rig.environment["BOOTSTRAP_TOKEN"] = "another-token"
    rig.start_and_know()
    status = (seen / "status").read_text().split()
    assert status[status.index("CapAmb:") + 1] == status[status.index("CapEff:") + 1] == 16 * "0"
    assert status[status.index("NoNewPrivs:") + 1] == "1"
    names = {line.partition("=")[0] for line in (seen / "env").read_text().splitlines()}
    assert names <= {"PATH", "LANG", "TZ", "LD_LIBRARY_PATH", "RES_OPTIONS", "SLURM_CONF", "PWD",
                     "SLURM_TIME_FORMAT", "_", "SHLVL", "OLDPWD"} | {
                         name for name in names if name.startswith("LC_")}
    assert "denied" in (seen / "parent").read_text()
    if ctypes.CDLL(None).syscall(444, None, 0, 1) < 1:  # landlock_create_ruleset(2)
        pytest.skip("this kernel has no Landlock, so files are not kept from children")
    assert (seen / "secrets").read_text() == ""
    assert (seen / "denied").read_text().count("Permission denied") >= 2


# Answers any request with the text of its standard input, with its own pid for PID, as "slurmlet".
FORGER = r"""
import ctypes, os, socket, sys
ctypes.CDLL(None).prctl(15, b"slurmlet", 0, 0, 0)  # PR_SET_NAME
body = sys.stdin.read().replace('"PID"', str(os.getpid())).encode()
listener = socket.create_server(("127.0.0.1", int(sys.argv[1])))
print("listens", flush=True)
while True:
    client, _ = listener.accept()
    client.recv(65536)
    client.sendall(b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nConnection: close\r\n"
                   b"Content-Length: %d\r\n\r\n" % len(body) + body)
    client.close()
"""


def fetch_status(port):
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=GENERAL_WAIT)
    connection.request("GET", "/status")
    return connection.getresponse().read().decode()


def start_forger(port, answer, uid):
    forger = subprocess.Popen(
        [sys.executable, "-I", "-c", FORGER, str(port)], stdin=subprocess.PIPE,
        stdout=subprocess.PIPE, text=True, cwd="/", user=uid, group=uid, extra_groups=[], env={})
    forger.stdin.write(json.dumps({**json.loads(answer), "pid": "PID"}))
    forger.stdin.close()
    assert forger.stdout.readline() == "listens\n"
    return forger


@pytest.mark.parametrize("user", ["root", "nobody"])
def test_a_status_that_another_user_serves_is_not_believed(rig_of, slurm, user):
    rig = rig_of(slurm, None if user == "root" else user)
    port = free_port()
    rig.configure(endpoint={"healthzPort": port})
    rig.start_and_know()
    rig.wait_renewed()
    sentinel = rig.directory / "registered"

    def wait_registered():
        return run_beside(rig, "wait-registered", "--timeout=1", "--sentinel", sentinel)

    def of(subject):
        found = json.loads(run_beside(rig, "check", "-o", "json").stdout)["findings"]
        return [(one["severity"], one["found"]) for one in found if one["subject"] == subject]

    # What the daemon itself says is believed, whoever it runs as and whoever asks.
    assert wait_registered().returncode == 0 and sentinel.read_text() == "success\n"
    for asker in (None, "nobody", USER):
        assert run_beside(rig, "status", user=asker).returncode == 0, asker
    answer = fetch_status(port)
    rig.stop()
    sentinel.unlink()
    with start_forger(port, answer, STRANGER) as forger:
        holder = f"slurmlet (pid {forger.pid}, uid {STRANGER})"
        try:
            assert json.loads(fetch_status(port))["pid"] == forger.pid, "the forgery works"
            done = run_beside(rig, "status")
            assert done.returncode == 3 and not done.stdout, done.stdout
            assert f"not trusted: 127.0.0.1:{port}" in done.stderr and holder in done.stderr
            assert run_beside(rig, "status", user="nobody").returncode == 3
            done = wait_registered()
            assert done.returncode == 1 and holder in done.stderr and not sentinel.exists()
            assert of("ports") == [
                ("error", f"{port} (endpoint.healthzPort) is in use by {holder}")]
            assert of("daemon")[0][0] == "error" and "not trusted" in of("daemon")[0][1]
        finally:
            forger.kill()
