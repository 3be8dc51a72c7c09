"""Release 0.1.0 to this one and back, on a machine with both programs, a cordon and a job that runs all the while. The
tests share the machine, in this order; each changes one package."""
import shutil
import time

import pytest
from machine import SERVER
from user_data import shipped

from harness.api import node_path, repository
from harness.rig import wait_until
from harness.service_account import ServiceAccount, apply

BEFORE = repository() / "build/release-0.1.0"
# Without a terminal, a prompt is an error.
DPKG = ("env", "DEBIAN_FRONTEND=noninteractive", "dpkg", "--install")
ADMIN = "/root/admin.kubeconfig"
MOST_GAP = 15  # seconds between two renewals of a Lease


def package(directory, name):
    return next(directory.glob(name + "_*.deb"))


@pytest.fixture(scope="module", name="node")
def the_machine(new_node, bare, package_directory):
    if not BEFORE.exists():
        pytest.skip("no release 0.1.0: this clone has no history (test/machine/release_before.sh)")
    one = new_node(bare)
    for release, directory in (("old", BEFORE), ("new", package_directory)):
        for name in ("slurmlet", "slurmlet-operator"):
            shutil.copyfile(package(directory, name), one.machine.file(f"/root/{release}-{name}.deb"))
    one.provision(shipped(one))
    one.machine.power_on()
    one.machine.wait_booted()
    apply(one.plane, BEFORE / "deploy/operator/rbac.yaml")
    account = ServiceAccount(one.plane, "slurmlet-operator", "kube-system")
    return begin(one, account)


def begin(one, account):
    """Both programs of 0.1.0 as a site had them: configuration edited in place. A job runs, then the Node is cordoned."""
    machine, url = one.machine, "https://{}:{}".format(*SERVER)
    machine.run(*DPKG, "/root/old-slurmlet.deb", "/root/old-slurmlet-operator.deb")
    config = machine.file("/etc/slurmlet/config.yaml")
    config.write_text(config.read_text().replace("  #labels: {}", "  labels: {site: edited}"))
    machine.run("systemctl", "restart", "slurmlet")
    one.wait_ready()
    kubeconfig = account.kubeconfig(machine.directory)
    text = kubeconfig.read_text().replace(f"https://127.0.0.1:{one.plane.admin.port}", url)
    machine.write("/etc/slurmlet/operator.kubeconfig", text, 0o600)
    machine.run("chown", "slurm:slurm", "/etc/slurmlet/operator.kubeconfig")
    machine.run("systemctl", "enable", "--now", "slurmlet-operator")
    admin = machine.directory / "admin.kubeconfig"
    one.plane.user_kubeconfig("kubernetes-admin", admin, "--org", "system:masters", "--server", url)
    machine.write(ADMIN, admin.read_text(), 0o600)
    one.wait_condition("SlurmNodeStateIdle", "True", timeout=90)
    one.job = machine.run("sbatch", "--parsable", "--output=/dev/null", "--wrap=exec sleep 3600").strip()
    wait_until(lambda: job_runs(one), 30, "the job")
    cordon(one)
    return one


def cordon(one, on=True):
    one.admin.merge(node_path(one.name), {"spec": {"unschedulable": on}})
    wait_until(lambda: drained(one) is on, 60, "drained" if on else "undrained")


def drained(one):
    return "DRAIN" in one.machine.run("scontrol", "show", "node", one.name)


def job_runs(one):
    return one.machine.run("squeue", "-h", "-j", one.job, "-o", "%T").strip() == "RUNNING"


class Watch:
    """What may not happen while a package changes."""

    def __init__(self, one):
        self.one, self.mark = one, one.audit.mark()
        self.last = max(one.audit.renewals())

    def end(self, timing, what):
        """After two more renewals."""
        one = self.one
        one.wait_renewed(since=time.time())
        one.wait_ready()
        one.wait_renewed(since=time.time())
        moments = [self.last, *one.audit.renewals(self.mark)]
        gap = max(b - a for a, b in zip(moments, moments[1:]))
        timing(f"{what}: longest gap of the Lease", gap)
        assert gap <= MOST_GAP, moments
        assert job_runs(one) and drained(one)
        assert one.node()["metadata"]["labels"]["site"] == "edited"


def change(one, timing, release, name):
    watch = Watch(one)
    said = one.machine.run(*DPKG, f"/root/{release}-{name}.deb")
    assert "Could not" not in said, said
    watch.end(timing, f"{name}: {release}")


def operator_leads(one):
    """Its answer to an uncordon, and to a cordon."""
    cordon(one, False)
    assert job_runs(one)
    cordon(one)


def test_daemon_first(node, timing):
    change(node, timing, "new", "slurmlet")
    operator_leads(node)


def test_then_the_operator(node, timing):
    """As docs/how-to/upgrade.md has it: stopped before, rights by init after."""
    node.machine.run("systemctl", "stop", "slurmlet-operator")
    change(node, timing, "new", "slurmlet-operator")
    status, said = node.machine.attempt("slurmlet-operator", "init", f"--kubeconfig={ADMIN}")
    assert status == 2 and "mv /etc/slurmlet/operator.kubeconfig" in said, said  # not of init
    node.machine.run("mv", "/etc/slurmlet/operator.kubeconfig", "/etc/slurmlet/operator.kubeconfig.0.1")
    print(node.machine.run("slurmlet-operator", "init", f"--kubeconfig={ADMIN}"))
    operator_leads(node)
    assert node.machine.attempt("slurmlet-operator", "check")[0] == 0


def test_operator_back(node, timing):
    node.machine.run("systemctl", "stop", "slurmlet-operator")
    change(node, timing, "old", "slurmlet-operator")
    node.machine.run("systemctl", "start", "slurmlet-operator")


def test_daemon_back(node, timing):
    change(node, timing, "old", "slurmlet")


def test_operator_first(node, timing):
    node.machine.run("systemctl", "stop", "slurmlet-operator")
    change(node, timing, "new", "slurmlet-operator")
    print(node.machine.run("slurmlet-operator", "init", f"--kubeconfig={ADMIN}"))
    node.wait_unit("slurmlet-operator", "active")


def test_then_the_daemon(node, timing):
    change(node, timing, "new", "slurmlet")
    operator_leads(node)


def test_daemon_back_first(node, timing):
    change(node, timing, "old", "slurmlet")


def test_operator_uninstalled(node):
    """While the job runs and the Node is cordoned: it stays drained, by a Reason that is no longer the operator's."""
    node.machine.run(*DPKG, "/root/new-slurmlet.deb")
    node.wait_ready()
    status, said = node.machine.attempt("slurmlet-operator", "uninstall", f"--kubeconfig={ADMIN}")
    print(said)
    assert status == 0
    assert drained(node) and "Reason=cordoned in Kubernetes" in node.machine.run("scontrol", "show", "node", node.name)
    assert job_runs(node)
    # What 0.1 left, as the documents of the upgrade have it.
    node.plane.kubectl_output("-n", "kube-system", "delete", "role,rolebinding,lease", "slurmlet-operator",
                              "--ignore-not-found")
    left = node.plane.kubectl_output("get", "clusterrole,clusterrolebinding,role,rolebinding,lease,serviceaccount,secret",
                                     "-A", "-o", "name")
    assert [line for line in left.splitlines() if "slurmlet-operator" in line] == []
    assert not {"slurmlet.io/record", "slurmlet.io/drain"} & set(node.node()["metadata"]["annotations"])
    node.machine.run("dpkg", "--purge", "slurmlet-operator")
    found = node.machine.run("find", "/etc", "/usr", "/var/lib/systemd", "-name", "*slurmlet-operator*")
    assert found == "" and node.machine.attempt("test", "-e", "/etc/slurmlet/operator.kubeconfig")[0] != 0
