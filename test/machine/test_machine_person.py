"""What a person does who reads only the pages, on a machine that boots, and how long it takes: README to a Ready Node, five
causes of a Node that is not Ready to their fixes, uninstall. The commands are the blocks of the pages, and a fix is the
command of the section that has the message. Drain by cordon: test/system/test_documents.py."""
import concurrent.futures
import os
import re
import shutil
import subprocess
import sys
import time

import pytest
from hpc_node import HpcNode
from machine import SERVER, Machine

from harness.api import node_path, repository
from harness.bootstrap import GROUP, bootstrap_token, ca_hash
from harness.control_plane import BINARY as CONTROL_PLANE, ControlPlane
from harness.rig import wait_until

sys.path.insert(0, str(repository() / "scripts/docs"))
import blocks  # noqa: E402

TROUBLE, CONDITIONS = "docs/troubleshooting.md", "docs/reference/conditions.md"
SITE = """apiVersion: slurmlet.io/v1alpha1
kind: SlurmletConfiguration
node: {readyFollows: slurm}
slurm: {pollInterval: 5s}
"""


@pytest.fixture(scope="module", name="person")
def a_person_with_a_cluster_and_a_node(work, workshop, bare, package):
    """A cluster that approves nothing by itself; a node with Slurm, and the package in /root under the pages' name."""
    with ControlPlane(work / "cp-person", "--no-auto-approve") as plane:
        machine = Machine(workshop, bare, work / "person", plane.admin.port)
        one = Person(plane, HpcNode(plane, machine, "hpc-person"))
        try:
            one.node.provision("#cloud-config\n{}\n")
            machine.power_on()
            machine.wait_booted()
            shutil.copyfile(package, machine.file("/root/slurmlet_0.2.0-1_amd64.deb"))
            yield one
        finally:
            print(machine.journal("-u", "slurmlet")[-4000:])
            machine.remove()


class Person:
    def __init__(self, plane, node):
        self.plane, self.node = plane, node

    def at_the_desk(self, text):
        """With kubectl, an administrator's kubeconfig, and a clone of the repository."""
        script = f'kubectl() {{ {CONTROL_PLANE} kubectl "$@"; }}\n{text}'
        done = subprocess.run(["bash", "-euc", script], cwd=repository(), capture_output=True, text=True, check=False,
                              env={**os.environ, "KUBECONFIG": str(self.plane.admin_kubeconfig)})
        print(f"desk$ {text}\n{done.stdout}{done.stderr}")
        assert done.returncode == 0, done.stderr
        return done.stdout

    def on_the_node(self, text, exit_code=0):
        status, said = self.node.machine.attempt("bash", "-euc", f"cd /root; export DEBIAN_FRONTEND=noninteractive\n{text}")
        print(f"node# {text}\n{said}")
        assert status == exit_code, said
        return said

    def pending(self):
        """A request that kubectl shows as Pending."""
        shown = self.plane.kubectl_output("get", "csr", "--no-headers")
        return next((line.split()[0] for line in shown.splitlines() if line.endswith("Pending")), None)


def block(page, beginning):
    [one] = [each for each in blocks.of_page(repository() / page) if each.text.startswith(beginning)]
    return one


def section(page, heading):
    text = (repository() / page).read_text()
    found = re.search(rf"(?ms)^#+ [^\n]*{re.escape(heading)}[^\n]*\n(.*?)(?=^#|\Z)", text)
    assert found, f"{page} has no heading with: {heading}"
    return found.group(1)


def fix(page, heading, program):
    """The command of a section that begins with the program."""
    return next(span for span in re.findall(r"`([^`]+)`", section(page, heading)) if span.startswith(program))


def test_readme_to_a_ready_node(person, timing):
    began = time.monotonic()
    person.at_the_desk(block("README.md", "kubectl apply -k deploy/rbac").text)
    # kubeadm token create, as README has it, is not among the tests' programs.
    assert f"--groups {GROUP}" in block("README.md", "kubeadm token create").text
    token = bootstrap_token(person.plane, person.node.machine.directory / "token", GROUP).read_text().strip()
    arguments = "{}:{} --token {} --discovery-token-ca-cert-hash {}".format(
        *SERVER, token, ca_hash((person.plane.directory / "pki/ca.crt").read_text()))
    install = re.sub(r"join HOST:6443 --token … --discovery-token-ca-cert-hash sha256:…", f"join {arguments}",
                     block("README.md", "apt install").text)
    assert arguments in install
    with concurrent.futures.ThreadPoolExecutor() as beside:
        joined = beside.submit(person.on_the_node, install)
        request = wait_until(person.pending, 120, "the request")
        person.at_the_desk(block("README.md", "kubectl get csr").script({"NAME": request, "$REQUEST": request}))
        joined.result(timeout=120)
    person.node.wait_ready()
    timing("README to a Ready Node", time.monotonic() - began)
    assert person.on_the_node("slurmlet status || true").startswith(f"{person.node.name}: Ready")


@pytest.mark.parametrize("what, cause, symptom, page, heading, program", [
    ("slurmd ended", "systemctl stop slurmd", "False", TROUBLE, "slurmd is not running on this machine", "systemctl start"),
    ("slurmd is suspended", "kill -STOP $(pidof -s slurmd)", "False", TROUBLE, "is suspended (SIGSTOP or debugger)", "kill -CONT"),
    ("slurmlet ended", "systemctl stop slurmlet", "Unknown", TROUBLE, "NodeStatusUnknown", "systemctl start"),
    ("DOWN in Slurm", "scontrol update nodename=NAME state=down reason=test", "False", CONDITIONS, "SlurmNodeStateDown",
     "scontrol update"),
    ("FAIL in Slurm", "scontrol update nodename=NAME state=fail reason=test", "False", CONDITIONS, "SlurmNodeStateFail",
     "scontrol update"),
])
def test_not_ready_to_its_fix(person, timing, what, cause, symptom, page, heading, program):
    node = person.node
    if "scontrol" in cause:
        node.machine.write("/etc/slurmlet/config.d/10-site.yaml", SITE)
        person.on_the_node("systemctl restart slurmlet")
        node.wait_ready()
        node.wait_condition("SlurmNodeStateIdle", "True", timeout=90)
    person.on_the_node(cause.replace("NAME", node.name))
    shown = node.wait_condition("Ready", symptom, timeout=120)
    began = time.monotonic()
    print(f"Ready {shown['status']} {shown['reason']}: {shown['message']}")
    if page == TROUBLE:
        assert heading == shown["reason"] or heading in shown["message"]
    else:
        # The reason leads to a row of that page, and the row to the section.
        assert heading in section(CONDITIONS, "Ready with readyFollows: slurm").partition(f"`{shown['reason']}`")[2]
    command = fix(page, heading, program).replace("NAME", node.name)
    person.on_the_node(re.sub(r"\bPID\b", "$(pidof -s slurmd)", command))
    node.wait_ready(timeout=90)
    timing(f"{what}: Ready again by the page's fix", time.monotonic() - began)


def test_uninstall(person, timing):
    began = time.monotonic()
    leave = block("docs/how-to/uninstall.md", "$ slurmlet leave")
    person.on_the_node(leave.script({}), exit_code=leave.exit_code)
    assert "`kubectl delete node NAME`" in section("docs/how-to/uninstall.md", "2. A node")
    person.at_the_desk(f"kubectl delete node {person.node.name}")
    purge = block("docs/how-to/uninstall.md", "apt purge slurmlet").text.splitlines()[0]
    person.on_the_node(purge.replace("apt purge", "apt purge --yes"))
    timing("uninstall", time.monotonic() - began)
    assert person.plane.admin.find(node_path(person.node.name)) is None
    assert person.node.machine.attempt("test", "-e", "/usr/sbin/slurmlet")[0] != 0
    # Slurm goes on.
    assert person.on_the_node("sinfo -h -o %T").strip()
