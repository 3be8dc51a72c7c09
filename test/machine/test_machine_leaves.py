"""A machine without slurmlet, from `apt install` and `slurmlet join` to a Ready Node, and back: `slurmlet leave` and
`apt purge` leave nothing of ours. The tests share the machine, in this order. What a terminal shows from the package's file
to a Ready Node is recorded to build/recordings/install.cast."""
import shutil

import pytest
from machine import SERVER
from recording import Recording

from harness.api import node_path, repository
from harness.bootstrap import GROUP, bootstrap_token, ca_hash
from harness.documents import assert_shown
from harness.rig import wait_until

DEB = "/root/slurmlet.deb"
APT = ("env", "DEBIAN_FRONTEND=noninteractive", "apt-get", "--yes")
DOCUMENTED = "hpc-x7k2p"  # this machine, in docs/
OWN = ("/etc/slurmlet", "/var/lib/slurmlet", "/run/slurmlet", "/usr/sbin/slurmlet")


@pytest.fixture(scope="module", name="node")
def the_machine(new_node, bare, package):
    one = new_node(bare)
    one.provision("#cloud-config\n{}\n")
    one.machine.power_on()
    one.machine.wait_booted()
    shutil.copyfile(package, one.machine.file(DEB))
    one.before = names(one)
    one.recording = Recording(repository() / "build/recordings/install.cast", "slurmlet: from the package to a Ready Node")
    return one


def names(node):
    """Of ours, on the machine's disk and among what its service manager knows."""
    files = node.machine.run("find", "/", "-xdev", "-name", "*slurmlet*", "-not", "-path", "/proc/*", "-not", "-path",
                             "/sys/*", "-not", "-path", DEB)
    units = node.machine.run("systemctl", "list-units", "--all", "--no-legend", "--plain", "slurmlet*")
    return set(files.splitlines()) | {line.split()[0] for line in units.splitlines()}


def join_command(node):
    token = bootstrap_token(node.plane, node.machine.directory / "token", GROUP).read_text().strip()
    return ("slurmlet", "join", "{}:{}".format(*SERVER), "--token", token, "--discovery-token-ca-cert-hash",
            ca_hash((node.plane.directory / "pki/ca.crt").read_text()), "--timeout=60")


def test_installed_it_waits_and_nothing_is_red(node):
    said = node.machine.run(*APT, "install", DEB)
    node.recording.show(f"apt install {DEB}", said)
    print(said)
    assert "Could not" not in said and "Failed" not in said
    shown = node.daemon()
    assert (shown["ActiveState"], shown["UnitFileState"], shown["NRestarts"]) == ("active", "enabled", "0")
    assert "waiting for configuration" in shown["StatusText"]


def test_join_makes_it_a_node(node, timing):
    command = join_command(node)
    token = command[command.index("--token") + 1]
    status, said = node.machine.attempt(*command)
    node.recording.show(" ".join(command).replace(token, "abcdef.0123456789abcdef"), said)
    print(said)
    assert status == 0 and f"Node {node.name} is registered" in said
    node.wait_ready()
    shown = node.plane.kubectl_output("get", "node", node.name)
    node.recording.show(f"kubectl get node {node.name}", shown)
    timing("apt install to Node Ready, by slurmlet join", node.recording.seconds)
    assert node.recording.seconds < 60 and " Ready " in shown
    # The token is for root and the service, and in no log.
    assert node.machine.run("stat", "-c", "%a %U:%G", "/etc/slurmlet/bootstrap-token").strip() == "640 root:slurmlet"
    assert token not in node.machine.journal() + said
    # Again: nothing changes.
    uid = node.node()["metadata"]["uid"]
    assert node.machine.attempt(*join_command(node))[0] == 0
    node.wait_ready()
    assert node.node()["metadata"]["uid"] == uid
    # Of another cluster, as far as its name says: the service would keep the credential that it has.
    node.machine.write("etc/hosts", node.machine.file("etc/hosts").read_text() + SERVER[0] + " kubernetes\n")
    other = [word.replace(SERVER[0], "kubernetes") for word in join_command(node)]
    status, said = node.machine.attempt(*other)
    assert status == 1 and "slurmlet leave" in said, said


def test_leave_while_a_job_runs(node):
    """The Node itself has to go by an administrator's hand: Kubernetes lets no node delete it."""
    node.wait_condition("SlurmNodeStateIdle", "True", timeout=90)
    job = node.machine.run("sbatch", "--parsable", "--output=/dev/null", "--wrap=exec sleep 600").strip()
    state = lambda: node.machine.run("squeue", "-h", "-j", job, "-o", "%T").strip()  # noqa: E731
    wait_until(lambda: state() == "RUNNING", 30, "the job")
    _, said = node.machine.attempt("slurmlet", "leave", "--dry-run")
    assert "would stop and disable slurmlet.service" in said and node.daemon()["ActiveState"] == "active"
    status, said = node.machine.attempt("slurmlet", "leave")
    print(said)
    assert status == 1
    assert_shown("how-to/uninstall.md", "slurmlet leave", said, [(node.name, DOCUMENTED), (job, "17")])
    shown = node.daemon()
    assert (shown["ActiveState"], shown["UnitFileState"]) == ("inactive", "disabled")
    assert state() == "RUNNING"
    node.machine.run("scancel", job)
    for path in ("/etc/slurmlet/bootstrap-token", "/etc/slurmlet/config.d/20-join.yaml", "/var/lib/slurmlet/kubeconfig",
                 "/var/lib/slurmlet/pki"):
        assert node.machine.attempt("test", "-e", path)[0] != 0, path
    node.admin.delete(node_path(node.name))
    wait_until(lambda: node.admin.find(
        f"/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases/{node.name}") is None, what="no Lease")
    status, said = node.machine.attempt("slurmlet", "leave")
    assert status == 0 and "removed" not in said, said


def test_joins_again_after_leaving(node):
    assert node.machine.attempt(*join_command(node))[0] == 0
    node.wait_ready()
    assert node.daemon()["UnitFileState"] == "enabled"
    node.machine.attempt("slurmlet", "leave")
    node.admin.delete(node_path(node.name))


def test_purge_leaves_nothing(node):
    print(node.machine.run(*APT, "purge", "slurmlet"))
    for path in OWN:
        assert node.machine.attempt("test", "-e", path)[0] != 0, path
    node.machine.run("systemctl", "daemon-reload")
    assert names(node) - node.before == set()
    assert node.node() is None
